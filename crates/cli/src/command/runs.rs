//! `floatgate runs`: what was measured, in the folders that keep it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use blockio::Bytes;
use lab::results::mark::marked;
use lab::results::{Doubt, Run, Step, StepKind, Summary};
use lab::runs::{RunEntry, Runs, write_bytes, write_text};
use lab::{Error, Kind};
use serde::Serialize;

use super::summary::last_window;
use crate::args::RunsCommand;
use crate::{Ending, args, output, setup, table};

/// Folder of the runs where none is named.
const DIR_DEFAULT: &str = "runs";

/// Lists the runs, or shows, deletes or exports some.
pub(crate) fn runs(args: &args::Runs) -> Result<Ending> {
    let runs = Runs::new(&args.dir);
    if matches!(args.command, None | Some(RunsCommand::List)) {
        check_folder(&args.dir)?;
    }
    match &args.command {
        None | Some(RunsCommand::List) if args.json => output::json(&runs.listed())?,
        None | Some(RunsCommand::List) => list(&runs.listed(), &args.dir)?,
        Some(RunsCommand::Show { run }) if args.json => output::json(&runs.load(run)?)?,
        Some(RunsCommand::Show { run }) => output::data(&shown(&runs.load(run)?))?,
        Some(RunsCommand::Delete { runs: asked, yes }) => {
            print(args.json, delete(&runs, asked, *yes)?, |deleted| {
                deleted.iter().map(DeletedRun::text).collect::<Vec<_>>().join("\n")
            })?;
        }
        Some(RunsCommand::Export { runs: asked, out, overwrite }) => {
            let made = export(&runs, asked, out, *overwrite)?;
            print(args.json, made, |it| format!("{}\n{}", it.csv.display(), it.parquet.display()))?;
        }
        Some(RunsCommand::Import { file, title }) => {
            print(args.json, import(&runs, file, title.as_deref())?, |run| run.id.clone())?;
        }
    }
    Ok(Ending::Done)
}

/// Prints what was done as JSON, or as `text` of it.
fn print<T: Serialize>(is_json: bool, done: T, text: impl FnOnce(&T) -> String) -> Result<()> {
    if is_json { output::json(&done) } else { output::data(&text(&done)) }
}

/// Refuses to list a folder that was named and is not there; before the first run there is none.
pub(crate) fn check_folder(dir: &Path) -> Result<()> {
    if dir.is_dir() || dir == Path::new(DIR_DEFAULT) {
        return Ok(());
    }
    let text = format!("there is no folder {}", dir.display());
    let hint = "name the folder that holds the runs, or leave out --dir";
    Err(Error::new(Kind::Input, text).hint(hint).into())
}

fn list(listed: &[RunEntry], dir: &Path) -> Result<()> {
    if listed.is_empty() {
        output::talk(&format!("no runs in {}", dir.display()));
        return Ok(());
    }
    let head = ["RUN", "TARGET", "PROTOCOL", "STEPS", "SIZE", "STATE"].map(str::to_owned);
    let rows = listed.iter().map(|run| {
        let state = match (run.fault.as_str(), run.is_complete()) {
            ("", true) => "done",
            ("", false) if run.is_running => "running",
            ("", false) => "interrupted",
            (fault, _) => fault,
        };
        [
            run.name.clone(),
            format!("{} {}", run.target, run.format).trim_end().to_owned(),
            run.protocol.clone(),
            format!("{}/{}", run.done, run.planned),
            Bytes(run.size_bytes).to_string(),
            state.to_owned(),
        ]
    });
    output::data(&table::columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))
}

/// Returns the text of a run: one row of results per step, then its warnings.
fn shown(run: &Run) -> String {
    let Run { id, target, protocol_title, steps, steps_planned, .. } = run;
    let begun = run.begun();
    let mut text = format!(
        "{id}\n{}\n{protocol_title}, begun {begun}, {} of {steps_planned} steps\n\n",
        marked(format!("{} {}", target.title, target.format).trim_end(), target.unvalidated),
        steps.len(),
    );
    let head = ["STEP", "IOPS", "MB/S", "MEAN", "P99.9", "MAX", ""].map(str::to_owned);
    let rows = steps.iter().filter_map(|step| row(run, step));
    text.push_str(&table::columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>()));
    for step in steps {
        let note = figures(step).and_then(|(summary, _)| summary.latency.mean_note());
        if let Some(note) = note {
            let _ = write!(text, "\n{}: {note}", step.id);
        }
    }
    for warning in &run.warnings {
        let step = if warning.step.is_empty() { "whole run" } else { &warning.step };
        let _ = write!(text, "\n\nwarning: {step}: {}\n  {}", warning.text, warning.remedy);
    }
    text
}

/// Figures of a step, and what they are of; of a preconditioning those of its last five rounds,
/// since a mean over the write cliff is a rate that the drive never had.
fn figures(step: &Step) -> Option<(&Summary, String)> {
    match (&step.settled, step.kind) {
        (Some(settled), StepKind::Precondition) => Some((settled, last_window(step))),
        _ => Some((step.summary.as_ref()?, String::new())),
    }
}

fn row(run: &Run, step: &Step) -> Option<[String; 7]> {
    let Some((summary, what)) = figures(step) else {
        let dashes = [(); 5].map(|()| "-".to_owned());
        let [iops, mb_s, mean, p999, max] = dashes;
        let row = [step.id.clone(), iops, mb_s, mean, p999, max, "not measured".into()];
        return (step.kind == StepKind::Measure).then_some(row);
    };
    let doubt = Doubt::of(run, step, summary);
    let span = |latency_ns: Option<u64>| {
        latency_ns.map_or_else(|| "-".into(), |it| blockio::Nanos(it).to_string())
    };
    let mean = |latency_ns: f64| blockio::Nanos::from_micros_f64(latency_ns / 1e3).to_string();
    let p999 = summary.latency.p999_ns().filter(|_| doubt.is_none_or(Doubt::has_percentiles));
    let notes = [what].into_iter().chain(doubt.map(Doubt::note)).chain(step.sampling_note());
    Some([
        step.id.clone(),
        format!("{:.0}", summary.iops),
        format!("{:.1}", summary.throughput_mb_s()),
        summary.latency.mean_ns().map_or_else(|| "-".into(), mean),
        span(p999),
        span(summary.latency.max_ns()),
        notes.filter(|note| !note.is_empty()).collect::<Vec<_>>().join(", "),
    ])
}

/// A run that was deleted.
#[derive(Serialize)]
struct DeletedRun {
    id: String,
    size_bytes: u64,
}

impl DeletedRun {
    fn text(&self) -> String {
        format!("deleted {}, {}", self.id, Bytes(self.size_bytes))
    }
}

/// Files that the data of charts were written to.
#[derive(Serialize)]
struct ExportedFiles {
    csv: PathBuf,
    parquet: PathBuf,
}

fn delete(runs: &Runs, asked: &[String], yes: bool) -> Result<Vec<DeletedRun>> {
    // All of them are found before the first one goes.
    let found: Vec<_> = asked.iter().map(|run| runs.find(run)).collect::<Result<_, _>>()?;
    if !yes {
        let names: Vec<_> = found.iter().map(|path| path.display().to_string()).collect();
        let text = format!("{} would be deleted with all results", names.join(", "));
        return Err(Error::new(Kind::Refused, text).hint("add --yes to delete it").into());
    }
    let mut deleted: Vec<DeletedRun> = Vec::new();
    for path in found {
        let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let size_bytes = runs.delete(&id).inspect_err(|_| {
            // Which are gone is known even if the others stay.
            for run in &deleted {
                output::talk(&run.text());
            }
        })?;
        deleted.push(DeletedRun { id, size_bytes });
    }
    Ok(deleted)
}

/// Makes a run of a report of fio, or of a flat file of vdbench.
fn import(runs: &Runs, file: &Path, title: Option<&str>) -> Result<Run> {
    let run = lab::import::import_run(runs, file, title)?;
    for warning in &run.warnings {
        output::warning(warning);
    }
    Ok(run)
}

/// Writes the data of every chart that a review of the runs would show.
fn export(runs: &Runs, asked: &[String], out: &Path, overwrite: bool) -> Result<ExportedFiles> {
    let (csv, parquet) = (out.join("charts.csv"), out.join("charts.parquet"));
    for path in [&csv, &parquet] {
        setup::check_output(path, overwrite)?;
    }
    let loaded: Vec<Run> = asked.iter().map(|run| runs.load(run)).collect::<Result<_, _>>()?;
    let data = report::data(&loaded);
    fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    write_text(&csv, &data.to_csv())?;
    let mut bytes = Vec::new();
    data.to_parquet(&mut bytes).context("making Parquet of the charts")?;
    write_bytes(&parquet, &bytes)?;
    Ok(ExportedFiles { csv, parquet })
}
