//! `cargo xtask cross-validate`: families of figures predicted from the others, kept in a file of
//! data, and said in the documents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};
use lab::progress::SilentProgress;
use lab::results::published::{FigureRow, figures};
use lab::ssd::{DriveSpec, MODEL_VERSION, catalogue};
use study::fit::cross::{
    CrossQuestion, CrossValidation, cross_validate, drives_cross_validated, modelled,
};
use study::validate::{Bench, Row, is_about, plans, validate};

use xtask::root;

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
        println!(
            "{name}: {} short simulations, {:.0} s",
            crossed.looks,
            began.elapsed().as_secs_f64()
        );
        keep(crossed)?;
    }
    super::headline::write(&current()?)
}

/// Adds the output of `floatgate validate --cross --json`, in `file`, to the data, and writes the
/// documents.
///
/// # Errors
/// Fails if the file cannot be read, or is of another version of the models.
pub(crate) fn take_from(file: &Path) -> Result<()> {
    let shown = file.display().to_string();
    let text = fs::read_to_string(file).with_context(|| format!("reading {shown}"))?;
    let printed: Vec<CrossValidation> =
        serde_json::from_str(&text).with_context(|| format!("reading {shown}"))?;
    for crossed in printed {
        let version = crossed.model_version;
        ensure!(version == MODEL_VERSION, "{shown} is of model version {version}");
        keep(crossed)?;
    }
    super::headline::write(&current()?)
}

/// The data that is checked in, in the order of the drives' names.
///
/// # Errors
/// Fails if it cannot be read, or is of another version of the models.
pub(super) fn read() -> Result<Vec<CrossValidation>> {
    let path = root().join(FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).context(FILE)?;
    serde_json::from_str(&text).context(FILE)
}

/// Returns the data of this version of the models; other versions say nothing of it.
pub(super) fn current() -> Result<Vec<CrossValidation>> {
    Ok(read()?.into_iter().filter(|it| it.model_version == MODEL_VERSION).collect())
}

/// Puts `crossed` into the data, in place of what was known of its drive.
fn keep(crossed: CrossValidation) -> Result<()> {
    let mut all = read()?;
    all.retain(|it| it.drive != crossed.drive);
    all.push(crossed);
    all.sort_by(|a, b| a.drive.cmp(&b.drive));
    let text = serde_json::to_string_pretty(&all)? + "\n";
    fs::write(root().join(FILE), text).with_context(|| format!("writing {FILE}"))
}

fn of_drive(name: &str) -> Result<CrossValidation> {
    let text =
        catalogue::text(name).with_context(|| format!("no drive {name} in the catalogue"))?;
    let drive = catalogue::find(name).with_context(|| format!("no drive {name}"))?;
    let rows: Vec<&FigureRow> = figures().iter().filter(|row| is_about(row, &drive)).collect();
    ensure!(!rows.is_empty(), "nothing was published of {name}");
    let plans = plans()?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let known = fs::read_to_string(cache(&drive)?).ok();
    let known = known.and_then(|text| serde_json::from_str::<BTreeMap<String, f64>>(&text).ok());
    let drives = [drive];
    let modelled = if let Some(known) = known {
        known
    } else {
        let bench = Bench { drives: &drives, plans: &plans, threads };
        let compared = validate(&rows, bench, &SilentProgress)?;
        remember(&compared, &drives)?;
        modelled(name, &compared)
    };
    let question = CrossQuestion {
        drive: name,
        text,
        figures: &rows,
        modelled: &modelled,
        plans: &plans,
        threads,
    };
    Ok(cross_validate(question, &SilentProgress)?)
}

/// Stores the results of a validation for `drives`, so that they are not simulated again after an
/// interruption or for a cross-validation.
///
/// # Errors
/// Fails if a file cannot be written.
pub(super) fn remember(rows: &[Row], drives: &[DriveSpec]) -> Result<()> {
    for drive in drives.iter().filter(|drive| drives_cross_validated().contains(&&*drive.name)) {
        let cache = cache(drive)?;
        fs::create_dir_all(cache.parent().expect("a file in a folder"))?;
        fs::write(&cache, serde_json::to_string(&modelled(&drive.name, rows))?)
            .with_context(|| format!("writing {}", cache.display()))?;
    }
    Ok(())
}

/// File that stores the results of the protocols for `drive`, by a sum of all its numbers and of
/// this program, which holds the models, the protocols and the published figures.
///
/// # Errors
/// Fails if this program cannot be read.
fn cache(drive: &DriveSpec) -> Result<PathBuf> {
    let program = env::current_exe().and_then(fs::read).context("reading this program")?;
    let sum = fnv(&[format!("{drive:?}").as_bytes(), &program].concat());
    Ok(root().join(format!("target/cross-validation/{}-{sum:016x}.json", drive.name)))
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
