//! `cargo xtask cross-validate`: families of figures predicted from the others, kept in a file of
//! data, and said in the documents.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lab::fit::cross::{CrossQuestion, Crossed, cross_validate, drives_cross_validated, modelled};
use lab::progress::Unwatched;
use lab::results::published::{FigureRow, figures};
use lab::ssd::{MODEL_VERSION, catalogue};
use lab::validate::{Bench, is_about, plans, validate};

use super::SEED;
use crate::root;

/// The data, which pages are written from.
pub(super) const FILE: &str = "docs/internals/cross-validation.json";

/// Cross-validates the drives that are named, or all that can be, and writes the data after each;
/// then the documents.
///
/// # Errors
/// Fails if a drive cannot be cross-validated, or a document cannot be written.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let names: Vec<&str> = match names {
        [] => drives_cross_validated(),
        names => names.iter().map(String::as_str).collect(),
    };
    for name in names {
        let began = Instant::now();
        let crossed = of_drive(name)?;
        println!("{name}: {} looks, {:.0} s", crossed.looks, began.elapsed().as_secs_f64());
        keep(crossed)?;
    }
    super::headline::write(&read()?)
}

/// The data that is checked in, in the order of the drives' names.
///
/// # Errors
/// Fails if it cannot be read, or is of another version of the models.
pub(super) fn read() -> Result<Vec<Crossed>> {
    let path = root().join(FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).context(FILE)?;
    serde_json::from_str(&text).context(FILE)
}

/// Those of the data that are of this version of the models; others say nothing of it.
pub(super) fn current() -> Result<Vec<Crossed>> {
    Ok(read()?.into_iter().filter(|it| it.model_version == MODEL_VERSION).collect())
}

/// Puts `crossed` into the data, in place of what was known of its drive.
fn keep(crossed: Crossed) -> Result<()> {
    let mut all = read()?;
    all.retain(|it| it.drive != crossed.drive);
    all.push(crossed);
    all.sort_by(|a, b| a.drive.cmp(&b.drive));
    let text = serde_json::to_string_pretty(&all)? + "\n";
    fs::write(root().join(FILE), text).with_context(|| format!("writing {FILE}"))
}

fn of_drive(name: &str) -> Result<Crossed> {
    let text =
        catalogue::text(name).with_context(|| format!("no drive {name} in the catalogue"))?;
    let drive = catalogue::find(name).with_context(|| format!("no drive {name}"))?;
    let rows: Vec<&FigureRow> = figures().iter().filter(|row| is_about(row, &drive)).collect();
    ensure!(!rows.is_empty(), "nothing was published of {name}");
    let plans = plans(SEED)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let drives = [drive];
    let cache = cache(name);
    let known = fs::read_to_string(&cache).ok();
    let known = known.and_then(|text| serde_json::from_str::<BTreeMap<String, f64>>(&text).ok());
    let modelled = if let Some(known) = known {
        known
    } else {
        let bench = Bench { drives: &drives, plans: &plans, threads };
        let modelled = modelled(name, &validate(&rows, bench, &Unwatched)?);
        fs::create_dir_all(cache.parent().expect("a file in a folder"))?;
        fs::write(&cache, serde_json::to_string(&modelled)?)
            .with_context(|| format!("writing {}", cache.display()))?;
        modelled
    };
    let question = CrossQuestion {
        drive: name,
        text,
        figures: &rows,
        modelled: &modelled,
        plans: &plans,
        threads,
    };
    Ok(cross_validate(question, &Unwatched)?)
}

/// File that keeps what the protocols give of a drive under this version of the models, so that an
/// interruption costs little.
fn cache(name: &str) -> PathBuf {
    root().join(format!("target/cross-validation/{name}-model-{MODEL_VERSION}.json"))
}
