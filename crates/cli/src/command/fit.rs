//! `floatgate fit`: a drive's free parameters from published or measured figures.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use lab::results::published;
use lab::runs::{Runs, write_text};
use lab::ssd::DriveSpec;
use lab::{Error, Kind};
use study::drive_file::DriveFile;
use study::fit::{self, Contradiction, Evidence, Fit, FittedNumber, JudgedFigure, Question};
use study::validate::{number_text, range_text};

use crate::args;
use crate::progress::TerminalProgress;
use crate::{Ending, output, setup, table};

/// Fits, writes the fitted drive, and prints what it does.
pub(crate) fn fit(args: &args::Fit) -> Result<Ending> {
    let file = DriveFile::read(&args.drive)?;
    let spec = file
        .spec()
        .map_err(|source| Error::new(Kind::Input, "reading the drive").source(source))?;
    let out = args.out.clone().unwrap_or_else(|| beside(&args.drive));
    setup::check_output(&out, args.overwrite)?;
    setup::check_writable(&out)?;
    let evidence = match &args.run {
        Some(run) => of_run(&spec, &args.dir, run)?,
        None => of_figures(args.figures.as_deref())?,
    };
    let (spec, rows) = evidence.about(spec, args.format.as_deref())?;
    if let Some(assumed) = &evidence.assumed {
        output::talk(&format!("note: {assumed}"));
    }
    for contradiction in fit::contradictions(&rows, spec.device_count()) {
        output::talk(&format!("contradiction: {}", told(&contradiction)));
    }
    let question = Question {
        free: &args.free,
        rows: &rows,
        evidence: &evidence.name,
        assumed: evidence.assumed.as_deref(),
        format: args.format.as_deref(),
        plans: &evidence.plans,
        published: evidence.published.as_ref(),
        swarm: args.search,
        seed: args.seed,
        threads: setup::jobs(args.jobs),
    };
    let progress = TerminalProgress::new()?;
    let found = fit::fit(&file, question, &progress);
    progress.clear();
    let found = found?;
    // What a long search found is printed first: writing may still fail.
    if args.json {
        output::json(&found)?;
    } else {
        output::data(&shown(&found))?;
    }
    write_text(&out, &found.drive)?;
    output::talk(&format!("wrote {}", out.display()));
    Ok(Ending::Done)
}

fn beside(drive: &Path) -> PathBuf {
    let stem = drive.file_stem().unwrap_or_default().to_string_lossy();
    drive.with_file_name(format!("{stem}-fitted.toml"))
}

fn of_figures(file: Option<&Path>) -> Result<Evidence> {
    let Some(path) = file else {
        let (name, table) = (published::FILE.to_owned(), published::figures().to_vec());
        return Ok(Evidence::of_table(name, String::new(), table)?);
    };
    let name = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|source| Error::new(Kind::Input, format!("reading {name}")).source(source))?;
    let table = published::parse(&text, &name).map_err(|source| {
        Error::new(Kind::Input, "reading published figures").source(source).hint(setup::FIGURES)
    })?;
    Ok(Evidence::of_table(name, text, table)?)
}

/// Returns the measurements of a run as figures, with the plan that it followed.
fn of_run(spec: &DriveSpec, dir: &Path, asked: &str) -> Result<Evidence> {
    let runs = Runs::new(dir);
    let run = runs.load(asked)?;
    Ok(Evidence::of_run(spec, &run, runs.plan(asked)?))
}

fn told(contradiction: &Contradiction) -> String {
    format!("{}: {}", contradiction.rows.join(" and "), contradiction.text)
}

/// Meaning of the uncertainty of a fitted number.
const DEVIATION: &str = "± is one standard deviation, from the scatter of the figures about the \
                         fitted model. Errors that\nfigures share are not in it, such as a \
                         mechanism that the model lacks or a wrong number that is\nnot free: the \
                         true value can lie several deviations away.";

fn shown(fit: &Fit) -> String {
    let parameters = format!("{}\n\n{DEVIATION}", table::columns(&parameters(fit)));
    let mut parts = vec![parameters, table::columns(&figures(fit))];
    let unused: Vec<[String; 6]> = fit.figures.iter().filter_map(unused_cells).collect();
    if !unused.is_empty() {
        parts.push(format!("not compared:\n{}", table::columns(&unused)));
    }
    if !fit.contradictions.is_empty() {
        let lines: Vec<String> = fit.contradictions.iter().map(told).collect();
        parts.push(format!("contradictions, not used:\n{}", lines.join("\n")));
    }
    parts.push(summary(fit));
    parts.join("\n\n")
}

fn parameters(fit: &Fit) -> Vec<[String; 5]> {
    let head = ["parameter", "start", "fitted", "bounds", ""].map(str::to_owned);
    let cells = |it: &FittedNumber| {
        let mut remarks = Vec::new();
        if !it.fixed_by.is_empty() {
            remarks.push(format!("by {}", it.fixed_by.join(", ")));
        }
        if it.undetermined {
            remarks.push("undetermined".to_owned());
        }
        if !it.goes_with.is_empty() {
            remarks.push(format!("only together with {}", it.goes_with.join(", ")));
        }
        if it.at_bound {
            remarks.push("at its bound".to_owned());
        }
        [
            it.path.clone(),
            number_text(it.start),
            format!("{} ± {}", number_text(it.value), number_text(it.deviation)),
            format!("{} to {}", number_text(it.low), number_text(it.high)),
            remarks.join("; "),
        ]
    };
    std::iter::once(head).chain(fit.parameters.iter().map(cells)).collect()
}

fn figures(fit: &Fit) -> Vec<[String; 12]> {
    let head = [
        "row",
        "model",
        "workload",
        "load",
        "phase",
        "metric",
        "published",
        "start",
        "fitted",
        "ratio",
        "left out",
        "",
    ];
    let cells = fit.figures.iter().filter_map(figure_cells);
    std::iter::once(head.map(str::to_owned)).chain(cells).collect()
}

fn figure_cells(figure: &JudgedFigure) -> Option<[String; 12]> {
    let fitted = figure.fitted?;
    let verdict = match figure.within {
        Some(true) => "in",
        Some(false) => "OUT",
        None => "",
    };
    let two = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    let remark =
        if figure.unused.is_empty() { String::new() } else { format!(" ({})", figure.unused) };
    Some([
        figure.id.clone(),
        figure.setup.clone(),
        figure.workload.clone(),
        figure.load.clone(),
        figure.phase.clone(),
        figure.metric.clone(),
        range_text(figure.value_low, figure.value_high),
        figure.start.map_or(String::new(), number_text),
        number_text(fitted),
        two(figure.ratio),
        two(figure.ratio_left_out),
        format!("{verdict}{remark}"),
    ])
}

fn unused_cells(figure: &JudgedFigure) -> Option<[String; 6]> {
    figure.fitted.is_none().then(|| {
        [
            figure.id.clone(),
            figure.workload.clone(),
            figure.load.clone(),
            figure.metric.clone(),
            range_text(figure.value_low, figure.value_high),
            figure.unused.clone(),
        ]
    })
}

fn summary(fit: &Fit) -> String {
    let of = |within| fit.figures.iter().filter(|it| it.within == Some(within)).count();
    let percent = |share: Option<f64>| {
        share.map_or("none".to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    let verified = if fit.verified {
        "figures are those of the protocols at the drive's own time lapse"
    } else {
        "stopped: figures are estimates from short simulations, `floatgate validate` verifies them"
    };
    format!(
        "{} in tolerance, {} out; {verified}\n\
         leave-one-out error, median: {} of all figures used, {} of rates (linear, one load at a \
         time)\n\
         {} parameter sets evaluated in time lapse {}",
        of(true),
        of(false),
        percent(fit.left_out_error_median),
        percent(fit.left_out_rate_error_median),
        fit.evaluations,
        fit.time_lapse_search
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitted_numbers_are_followed_by_what_their_deviation_leaves_out() {
        let number = FittedNumber {
            path: "controller.relocate_us".into(),
            low: 1.0,
            high: 50.0,
            start: 20.0,
            value: 22.0,
            deviation: 2.0,
            undetermined: false,
            fixed_by: vec!["4k-rand-write T16Q16".into()],
            goes_with: Vec::new(),
            at_bound: false,
        };
        let text = shown(&Fit {
            assumed: None,
            drive: String::new(),
            parameters: vec![number],
            figures: Vec::new(),
            contradictions: Vec::new(),
            left_out_error_median: None,
            left_out_rate_error_median: None,
            evaluations: 1,
            time_lapse_search: 32,
            verified: true,
            interrupted: false,
        });
        let (numbers, rest) = text.split_once("\n\n").unwrap();
        assert!(numbers.contains("22 ± 2"), "{text}");
        assert!(numbers.contains("by 4k-rand-write T16Q16"), "{text}");
        assert!(rest.starts_with(DEVIATION), "{text}");
    }
}
