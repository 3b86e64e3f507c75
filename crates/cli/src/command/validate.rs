//! `floatgate validate`: the models against published figures.

mod cross;
mod rankings;

use std::fs;
use std::path::Path;

use anyhow::Result;
use lab::results::published::{self, FigureRow};
use lab::ssd::{DriveSpec, MODEL_VERSION, catalogue};
use lab::subject::find_drive;
use lab::{Error, Kind};
use study::validate::{
    Bench, Row, Tally, Verdict, is_about, number_text, plans, plans_of_figures, unvalidated,
    validate as compare,
};

use crate::args::Validate;
use crate::progress::TerminalProgress;
use crate::{Ending, output, setup, table};

/// Sentence on the origin of the errors that follow it.
const FITTED: &str = "The drives' files were fitted to these figures; `floatgate validate \
                      --cross` gives the errors of predictions.";
/// Sentence on the errors of a drive file of which it is unknown whether it was fitted.
const FITTED_FILE: &str = "If the file was fitted to these figures, this shows the fit, not \
                           predictions.";

/// Prints every row with what the model made of it; fails when one is out of tolerance.
pub(crate) fn validate(args: &Validate) -> Result<Ending> {
    if args.cross {
        return cross::validate(args);
    }
    if let Some(file) = &args.rankings {
        return rankings::judge(args, file.as_deref());
    }
    let drives = drives(&args.drives)?;
    let table = figures(args.figures.as_deref())?;
    let of_drives = |row: &&FigureRow| {
        args.drives.is_empty() || drives.iter().any(|drive| is_about(row, drive))
    };
    let rows: Vec<&FigureRow> = table.iter().filter(of_drives).collect();
    let compared = if let Some(file) = args.from.as_deref() {
        earlier(file, &rows)?
    } else {
        let mut plans = plans()?;
        if args.figures.is_some() {
            plans.extend(plans_of_figures(&rows, &plans));
        }
        let bench = Bench { drives: &drives, plans: &plans, threads: setup::jobs(args.jobs) };
        let progress = TerminalProgress::new()?;
        let compared = compare(&rows, bench, &progress);
        progress.clear();
        compared?
    };
    if !args.drives.is_empty() && args.figures.is_none() {
        check_compared(&drives, &table, &compared)?;
    }
    if args.json {
        output::json(&compared)?;
    } else {
        output::data(
            format!("{}\n{}", shown(&compared, origin(&args.drives)), unvalidated(&drives))
                .trim_end(),
        )?;
    }
    judged(&compared)
}

/// Sentence on the origin of the errors of the drives that were named.
fn origin(drives: &[String]) -> &'static str {
    let is_listed = |name: &String| catalogue::find(name).is_some();
    if drives.iter().all(is_listed) { FITTED } else { FITTED_FILE }
}

/// Refuses to call a drive validated of which nothing was compared, and names the drive that it
/// was validated as.
fn check_compared(drives: &[DriveSpec], table: &[FigureRow], rows: &[Row]) -> Result<()> {
    let is_told = |row: &Row| row.compared().is_some() || row.stated().is_some();
    let silent = drives.iter().filter(|drive| drive.is_validated()).find(|drive| {
        let about = table.iter().filter(|row| is_about(row, drive));
        let ids: Vec<&str> = about.map(|row| row.id.as_str()).collect();
        !rows.iter().any(|row| ids.contains(&row.id.as_str()) && is_told(row))
    });
    let Some(drive) = silent else { return Ok(()) };
    let is_like = format!("like = \"{}\"", drive.name);
    let like = catalogue::drives().into_iter().find(|other| {
        let text = catalogue::text(&other.name).unwrap_or_default();
        other.is_validated() && text.lines().any(|line| line == is_like)
    });
    let text = format!("validating {}: no published figure is about it alone", drive.name);
    let hint = like.map_or_else(
        || "give figures of its own with `--figures FILE`".to_owned(),
        |DriveSpec { name, .. }| format!("validated as {name}: run `floatgate validate {name}`"),
    );
    Err(Error::new(Kind::Input, text).hint(hint).into())
}

fn drives(names: &[String]) -> Result<Vec<DriveSpec>> {
    if names.is_empty() {
        return Ok(catalogue::drives());
    }
    names.iter().map(|name| Ok(find_drive(name)?)).collect()
}

pub(super) fn figures(file: Option<&Path>) -> Result<Vec<FigureRow>> {
    let Some(path) = file else { return Ok(published::figures().to_vec()) };
    let text = setup::read_text(path)?;
    Ok(published::parse(&text, &path.display().to_string()).map_err(|source| {
        Error::new(Kind::Input, "reading published figures").source(source).hint(setup::FIGURES)
    })?)
}

/// Reads the rows of `wanted` that an earlier validation printed into `file` as JSON.
fn earlier(file: &Path, wanted: &[&FigureRow]) -> Result<Vec<Row>> {
    let what = format!("reading rows of an earlier validation from {}", file.display());
    let failed = |hint: &str| Error::new(Kind::Input, what.clone()).hint(hint);
    let usage = "`floatgate validate --json` prints them";
    let text = fs::read_to_string(file).map_err(|source| failed(usage).source(source))?;
    let rows: Vec<Row> =
        serde_json::from_str(&text).map_err(|source| failed(usage).source(source))?;
    let other = rows.iter().filter_map(Row::compared).map(|it| it.model_version);
    if let Some(version) = other.clone().find(|version| *version != MODEL_VERSION) {
        let text = format!("{what}: model version {version}, this is version {MODEL_VERSION}");
        return Err(Error::new(Kind::Input, text).hint("simulate them again").into());
    }
    let is_wanted = |row: &Row| wanted.iter().any(|wanted| wanted.id == row.id);
    Ok(rows.into_iter().filter(is_wanted).collect())
}

/// The rows that were compared, then those that could not be, each with its reason; `origin` says
/// where the errors come from.
fn shown(rows: &[Row], origin: &str) -> String {
    let head = ["row", "model", "workload", "load", "phase", "metric", "published", "modelled"];
    let head = head.into_iter().chain(["ratio", ""]).map(str::to_owned).collect::<Vec<_>>();
    let head: [String; 10] = head.try_into().expect("ten columns");
    let compared: Vec<[String; 10]> =
        std::iter::once(head).chain(rows.iter().filter_map(compared_cells)).collect();
    let facts: Vec<[String; 7]> = rows.iter().filter_map(stated_cells).collect();
    let others: Vec<[String; 6]> = rows.iter().filter_map(other_cells).collect();
    let mut parts = vec![table::columns(&compared)];
    if !facts.is_empty() {
        let facts = table::columns(&facts);
        parts.push(format!("data-sheet specifications and the drive files:\n{facts}"));
    }
    if !others.is_empty() {
        parts.push(format!("not comparable with a run:\n{}", table::columns(&others)));
    }
    parts.extend(ran_as_stated(rows));
    let tallies = tallied(rows);
    if !tallies.is_empty() {
        parts.push(origin.to_owned());
    }
    parts.push(tallies.into_iter().chain([count(rows)]).collect::<Vec<_>>().join("\n"));
    parts.join("\n\n")
}

/// Sentence on rows that no protocol of the catalogue has, and on the drive that they met; absent
/// without any.
fn ran_as_stated(rows: &[Row]) -> Option<String> {
    let protocols = lab::workload::catalogue::protocols();
    let is_own = |row: &&Row| {
        let compared = row.compared();
        compared.is_some_and(|it| protocols.iter().all(|protocol| protocol.name != it.protocol))
    };
    let ids: Vec<&str> = rows.iter().filter(is_own).map(|row| row.id.as_str()).collect();
    (!ids.is_empty()).then(|| {
        format!(
            "No protocol has the loads of {}: each ran as its row states it. In phase primary the \
             drive was written once in order and no more, since these reviews' preconditioning is \
             unknown.",
            ids.join(", ")
        )
    })
}

/// Returns the rows in tolerance and their median error, for measured rows and for those of data
/// sheets apart; those of which there is no row are left out.
fn tallied(rows: &[Row]) -> Vec<String> {
    let line = |what: &str, measured: bool| {
        let Tally { typical, spread, from_listed_stalls } =
            Tally::of(rows.iter().filter(|it| it.is_measured() == measured));
        let made = match from_listed_stalls.rows {
            0 => String::new(),
            count => format!(
                "{} of {count} standard deviations and maxima that follow from the stalls in a \
                 drive's file, which were fitted to them",
                from_listed_stalls.near
            ),
        };
        let rates = typical.error_median.map_or_else(String::new, |error| {
            format!(
                "{} of {} rates and average latencies, median error {:.1} %",
                typical.near,
                typical.rows,
                error * 100.0
            )
        });
        let others = match spread.rows {
            0 => String::new(),
            rows => format!(
                "{} of {rows} other standard deviations, maxima and percentiles",
                spread.near
            ),
        };
        let parts: Vec<String> =
            [rates, others, made].into_iter().filter(|part| !part.is_empty()).collect();
        (!parts.is_empty()).then(|| format!("{what}, in tolerance: {}", parts.join("; ")))
    };
    [line("measured", true), line("data sheets", false)].into_iter().flatten().collect()
}

fn compared_cells(row: &Row) -> Option<[String; 10]> {
    let compared = row.compared()?;
    let verdict = if matches!(row.verdict, Verdict::In(_)) { "in" } else { "OUT" };
    Some([
        row.id.clone(),
        compared.model.clone(),
        row.workload.clone(),
        row.load_text(),
        row.phase.clone(),
        row.metric.clone(),
        row.published_text(),
        number_text(compared.modelled),
        format!("{:.2}", compared.ratio),
        verdict.into(),
    ])
}

fn stated_cells(row: &Row) -> Option<[String; 7]> {
    let stated = row.stated()?;
    Some([
        row.id.clone(),
        format!("{} {}", stated.drive, stated.format),
        row.workload.clone(),
        row.metric.clone(),
        row.published_text(),
        number_text(stated.value),
        if stated.agrees { "agrees" } else { "DIFFERS" }.to_owned(),
    ])
}

fn other_cells(row: &Row) -> Option<[String; 6]> {
    let Verdict::NotExpressible { reason } = &row.verdict else { return None };
    Some([
        row.id.clone(),
        row.device.clone(),
        row.workload.clone(),
        row.metric.clone(),
        row.published_text(),
        reason.clone(),
    ])
}

fn count(rows: &[Row]) -> String {
    let of = |wanted: fn(&Verdict) -> bool| rows.iter().filter(|row| wanted(&row.verdict)).count();
    let inside = of(|verdict| matches!(verdict, Verdict::In(_)));
    let outside = of(|verdict| matches!(verdict, Verdict::Out(_)));
    let facts = of(|verdict| matches!(verdict, Verdict::Stated(_)));
    let agreeing = of(|verdict| matches!(verdict, Verdict::Stated(stated) if stated.agrees));
    let others = rows.len() - inside - outside - facts;
    format!(
        "{inside} in tolerance (rates 15 %, average latencies 20 %, all others a factor of 2), \
         {outside} out; {agreeing} of {facts} data-sheet specifications agree with the drive \
         files; {others} not comparable with a run"
    )
}

fn judged(rows: &[Row]) -> Result<Ending> {
    let out: Vec<&str> = rows
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Out(_)))
        .map(|row| row.id.as_str())
        .collect();
    if out.is_empty() {
        return Ok(Ending::Done);
    }
    let text = format!("{} rows out of tolerance: {}", out.len(), out.join(", "));
    Err(Error::new(Kind::Program, text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_rows_no_error_is_stated() {
        assert_eq!(tallied(&[]), Vec::<String>::new());
        assert!(
            !shown(&[], FITTED).contains("specifications and the drive files"),
            "{}",
            shown(&[], FITTED)
        );
    }

    #[test]
    fn rows_that_ran_as_they_are_stated_are_named_with_the_state_of_the_drive() {
        let row = |id: &str, protocol: &str| -> Row {
            let value = serde_json::json!({
                "id": id, "device": "d", "mode": "any", "host": "any", "workload": "w",
                "threads": "1", "queue_per_thread": "1", "phase": "primary", "metric": "iops",
                "value_low": 1.0, "value_high": 1.0, "verdict": "in", "drive": "d", "model": "d",
                "protocol": protocol, "modelled": 1.0, "ratio": 1.0, "from_listed_stalls": false,
                "model_version": MODEL_VERSION,
            });
            serde_json::from_value(value).expect("a row")
        };
        assert_eq!(ran_as_stated(&[row("A1", "enterprise")]), None);
        let said = shown(&[row("A1", "enterprise"), row("U9", "16k-rand-write primary")], FITTED);
        assert!(said.contains("No protocol has the loads of U9: each ran as"), "{said}");
    }

    #[test]
    fn of_a_drive_file_it_is_not_known_what_it_was_fitted_to() {
        let of = |drives: &[&str]| {
            let drives = drives.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            origin(&drives)
        };
        assert_eq!([of(&[]), of(&["iodrive-duo"])], [FITTED; 2]);
        assert_eq!(of(&["iodrive-duo", "mine.toml"]), FITTED_FILE);
    }

    #[test]
    fn numbers_are_as_long_as_they_are_worth() {
        assert_eq!(number_text(42_644.0), "42644");
        assert_eq!(number_text(0.0422), "0.042");
        assert_eq!(number_text(6.0), "6");
        assert_eq!(number_text(1.5), "1.5");
    }
}
