//! `floatgate validate --cross`: each family of figures predicted from the others.

use anyhow::Result;
use lab::results::published::FigureRow;
use lab::subject::{find_drive, find_drive_text};
use study::fit::cross::{
    CrossQuestion, CrossTally, CrossValidation, cross_validate, drives_cross_validated, modelled,
    tally, tally_estimated,
};
use study::validate::{Bench, is_about, number_text, plans, range_text, validate as compare};

use super::{earlier, figures};
use crate::args::Validate;
use crate::progress::TerminalProgress;
use crate::{Ending, output, setup, table};

/// Prints every figure with its prediction, and the parameters with what they rest on.
pub(super) fn validate(args: &Validate) -> Result<Ending> {
    let names: Vec<&str> = match args.drives.as_slice() {
        [] => drives_cross_validated(),
        names => names.iter().map(String::as_str).collect(),
    };
    let table = figures(args.figures.as_deref())?;
    let mut crossed = Vec::new();
    for name in names {
        crossed.push(of_drive(name, &table, args)?);
    }
    if args.json {
        output::json(&crossed)?;
    } else {
        let texts: Vec<String> = crossed.iter().map(shown).collect();
        output::data(&texts.join("\n\n"))?;
    }
    Ok(Ending::Done)
}

fn of_drive(name: &str, table: &[FigureRow], args: &Validate) -> Result<CrossValidation> {
    let threads = setup::jobs(args.jobs);
    let drive = find_drive(name)?;
    let rows: Vec<&FigureRow> = table.iter().filter(|row| is_about(row, &drive)).collect();
    let (text, plans) = (find_drive_text(name)?, plans()?);
    let drives = [drive];
    let progress = TerminalProgress::new()?;
    let bench = Bench { drives: &drives, plans: &plans, threads };
    let compared = match args.from.as_deref() {
        Some(file) => Ok(earlier(file, &rows)?),
        None => compare(&rows, bench, &progress),
    };
    let found = compared.and_then(|compared| {
        let modelled = modelled(&drives[0].name, &compared);
        let question = CrossQuestion {
            drive: &drives[0].name,
            text: &text,
            figures: &rows,
            modelled: &modelled,
            plans: &plans,
            threads,
        };
        cross_validate(question, &progress)
    });
    progress.clear();
    Ok(found?)
}

fn shown(of: &CrossValidation) -> String {
    let head =
        ["row", "family left out", "metric", "published", "fitted", "predicted", "error", ""];
    let rows = of.rows.iter().map(|row| {
        let published = range_text(Some(row.low), Some(row.high));
        [
            row.id.clone(),
            row.family.clone(),
            row.metric.clone(),
            published,
            number_text(row.fitted),
            number_text(row.predicted),
            percent(row.error),
            if row.estimated { "estimated workload" } else { "" }.to_owned(),
        ]
    });
    let rows: Vec<[String; 8]> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let head = ["parameter", "low", "high", "start", "refitted", "drive file", "determined by"];
    let numbers = of.numbers.iter().map(|it| {
        let [low, high, start, refitted, file] =
            [it.low, it.high, it.start, it.refitted, it.file].map(number_text);
        let rests_on = it.rests_on.join("; ");
        [it.key.clone(), low, high, start, refitted, file, rests_on]
    });
    let numbers: Vec<[String; 7]> =
        std::iter::once(head.map(str::to_owned)).chain(numbers).collect();
    let tallies = [
        told("published workloads", tally(&of.rows)),
        told("estimated workloads", tally_estimated(&of.rows)),
    ];
    let tallies: Vec<String> = tallies.into_iter().flatten().collect();
    format!(
        "{}\n{}\n\n{}\n\n{}",
        of.drive,
        table::columns(&rows),
        table::columns(&numbers),
        tallies.join("\n")
    )
}

fn told(what: &str, tally: Option<CrossTally>) -> Option<String> {
    let CrossTally { rows, predicted, fitted } = tally?;
    Some(format!(
        "{what}: {rows} rates and averages; prediction error {} (median), {} (p90); error of the \
         drive file, which was fitted to these figures, {} and {}",
        percent(predicted.0),
        percent(predicted.1),
        percent(fitted.0),
        percent(fitted.1),
    ))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
