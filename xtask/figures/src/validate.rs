//! `cargo xtask validate`: published figures beside modelled ones, into the documents and the
//! gallery.

pub(crate) mod cross;
mod discussion;
mod gallery;
mod headline;
mod order;
mod page;

use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};
use lab::progress::SilentProgress;
use lab::results::published;
use lab::ssd::{DriveSpec, MODEL_VERSION, catalogue};
use serde::de::DeserializeOwned;
use study::validate::{Bench, Row, SEED, plans, unvalidated, validate, worst};

use self::discussion::Discussions;
use xtask::root;

const PAGE: &str = "docs/internals/validation.md";
const GALLERY: &str = "docs/gallery/validation.html";
/// Rows that are farthest from what was published, and discussed.
const WORST: usize = 10;

/// Simulates what rows of the project's own figures and statements need, or takes them from what
/// `floatgate validate --json` printed into the file `from`, with `--rankings` into
/// `rankings_from`, and writes the pages.
///
/// # Errors
/// Fails if a simulation failed, a page cannot be written, or the discussions do not fit the worst
/// rows; the pages are written all the same then.
pub(crate) fn run(from: Option<&Path>, rankings_from: Option<&Path>) -> Result<()> {
    let discussions = Discussions::read()?;
    let drives = catalogue::drives();
    let rows = match from {
        Some(file) => printed(file)?,
        None => simulated(&drives)?,
    };
    let judged = order::judged(&drives, threads(), rankings_from)?;
    cross::remember(&rows, &drives)?;
    let crossed = cross::current()?;
    let section = format!("{}\n{}", headline::marked_section(&crossed), order::section(&judged));
    let texts = [
        (PAGE, page::page(&rows, &discussions, SEED, &(unvalidated(&drives), section))),
        (GALLERY, gallery::page(&rows, &discussions, SEED, unvalidated(&drives))),
    ];
    for (page, text) in texts {
        fs::write(root().join(page), text).with_context(|| format!("writing {page}"))?;
    }
    headline::write(&crossed)?;
    println!("{PAGE}: {}", page::count(&rows));
    discussions.check(&worst(&rows, WORST))
}

fn simulated(drives: &[DriveSpec]) -> Result<Vec<Row>> {
    let figures: Vec<_> = published::figures().iter().collect();
    let plans = plans()?;
    let bench = Bench { drives, plans: &plans, threads: threads() };
    Ok(validate(&figures, bench, &SilentProgress)?)
}

/// A list that a command printed into a file as JSON.
fn of_json<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let read = || format!("reading {}", file.display());
    let text = fs::read_to_string(file).with_context(read)?;
    serde_json::from_str(&text).with_context(read)
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Every row, as `floatgate validate --json` printed it into `file` with this version of the
/// models.
fn printed(file: &Path) -> Result<Vec<Row>> {
    let shown = file.display();
    let rows: Vec<Row> = of_json(file)?;
    let (count, all) = (rows.len(), published::figures().len());
    ensure!(count == all, "{shown} has {count} rows, not the {all} that are published");
    for compared in rows.iter().filter_map(Row::compared) {
        let version = compared.model_version;
        ensure!(version == MODEL_VERSION, "{shown} is of model version {version}");
    }
    Ok(rows)
}
