//! `floatgate validate --rankings`: the models against the order that reviews state.

use std::path::Path;

use anyhow::Result;
use lab::ssd::DriveSpec;
use lab::subject::find_drive;
use lab::{Error, Kind};
use study::rankings::{
    JudgedStatement, RankingQuestion, RankingTally, RankingVerdict, SetupFigure, Statement, parse,
    statements,
};
use study::validate::number_text;

use crate::args::Validate;
use crate::progress::TerminalProgress;
use crate::{Ending, output, setup, table};

/// Prints each statement with the figures of the models; fails when fewer hold than asked for.
pub(super) fn judge(args: &Validate, file: Option<&Path>) -> Result<Ending> {
    let named: Vec<DriveSpec> =
        args.drives.iter().map(|name| find_drive(name)).collect::<Result<_, _>>()?;
    let asked = RankingQuestion::new(read(file)?, named)?;
    let progress = TerminalProgress::new()?;
    let jobs = setup::jobs(args.jobs);
    let judged = study::rankings::judge(&asked.statements, &asked.drives, jobs, &progress);
    progress.clear();
    let judged = judged?;
    if args.json {
        output::json(&judged)?;
    } else {
        output::data(&shown(&judged))?;
    }
    ending(&judged, args.at_least)
}

fn read(file: Option<&Path>) -> Result<Vec<Statement>> {
    let Some(path) = file else { return Ok(statements()) };
    let usage = "name a table of statements, or none; drives stand before --rankings";
    let text = setup::read_text(path).map_err(|error| error.hint(usage))?;
    Ok(parse(&text, &path.display().to_string())?)
}

fn shown(judged: &[JudgedStatement]) -> String {
    let head = ["row", "", "margin", "figures", "statement"].map(str::to_owned);
    let rows = judged.iter().filter_map(cells);
    let mut parts = vec![table::columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())];
    let reasons = judged.iter().filter_map(|statement| match &statement.verdict {
        RankingVerdict::NotRun { reason } => {
            Some([statement.id.clone(), reason.clone(), statement.text.clone()])
        }
        _ => None,
    });
    let reasons: Vec<[String; 3]> = reasons.collect();
    if !reasons.is_empty() {
        parts.push(format!("not run:\n{}", table::columns(&reasons)));
    }
    parts.push(tallied(judged));
    parts.join("\n\n")
}

fn cells(statement: &JudgedStatement) -> Option<[String; 5]> {
    let verdict = match statement.verdict {
        RankingVerdict::Holds => "holds",
        RankingVerdict::Tie { .. } => "tie",
        RankingVerdict::Fails => "FAILS",
        RankingVerdict::NotRun { .. } => return None,
    };
    let figure = |it: &SetupFigure| format!("{} {}", it.setup, number_text(it.value));
    let figures: Vec<String> = statement.figures.iter().map(figure).collect();
    Some([
        statement.id.clone(),
        verdict.to_owned(),
        format!("{:.2}", statement.margin?),
        figures.join(", "),
        statement.text.clone(),
    ])
}

/// A row for each review, and one for all.
fn tallied(judged: &[JudgedStatement]) -> String {
    let mut reviews: Vec<&str> = Vec::new();
    for statement in judged {
        if !reviews.contains(&statement.review.as_str()) {
            reviews.push(&statement.review);
        }
    }
    let row = |name: &str, tally: RankingTally| {
        let percent = tally.percent().map_or_else(|| "-".into(), |it| format!("{it:.1} %"));
        let RankingTally { holds, ties, ties_narrow, fails, not_run } = tally;
        let counts = [holds, ties, ties_narrow, fails, not_run].map(|it| it.to_string());
        let [holds, ties, narrow, fails, not_run] = counts;
        [name.to_owned(), holds, ties, narrow, fails, not_run, percent]
    };
    let head = ["review", "hold", "tie", "narrow", "fail", "not run", "hold or tie"];
    let mut rows = vec![head.map(str::to_owned)];
    for review in &reviews {
        let of_review = judged.iter().filter(|it| it.review == *review);
        rows.push(row(review, RankingTally::of(of_review)));
    }
    rows.push(row("all", RankingTally::of(judged)));
    format!(
        "{}\n\nA tie is a difference below 2 %; it is narrow where the intervals of all figures \
         are narrower than 10 %.",
        table::columns(&rows)
    )
}

fn ending(judged: &[JudgedStatement], at_least: f64) -> Result<Ending> {
    let tally = RankingTally::of(judged);
    let Some(percent) = tally.percent() else {
        let error = Error::new(Kind::Input, "no statement could be run");
        return Err(error.hint("give statements about drives of the catalogue").into());
    };
    if percent >= at_least {
        return Ok(Ending::Done);
    }
    let text = format!(
        "{percent:.1} % of {} statements hold or tie, at least {at_least} % were asked for",
        tally.run()
    );
    Err(Error::new(Kind::Program, text).into())
}
