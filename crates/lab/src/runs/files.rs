//! Files of a run: their names, and reading and writing them.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::durable::{self, unwritable};
use crate::{Error, Kind};

/// Order of the run.
pub(super) const ORDER: &str = "order.json";
/// Result.
pub(super) const RUN: &str = "run.json";
/// Samples of the result.
pub(super) const SAMPLES: &str = "samples.parquet";
/// Latencies of the result.
pub(super) const LATENCIES: &str = "latencies.parquet";
/// Histograms of the result.
pub(super) const HISTOGRAMS: &str = "histograms.parquet";
/// Folder for what a load generator leaves.
pub(super) const RAW: &str = "fio";
/// Name of the page beside the run that shows it.
pub(super) const PAGE: &str = "page.txt";
/// Folder of the finished steps of a run under way.
pub(super) const STEPS: &str = "steps";
/// Folder of the finished points of a sweep, which lies among the runs.
pub const SWEEP_POINTS: &str = "points";
/// Result of a sweep.
pub const SWEEP_RESULT: &str = "sweep.json";

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| {
        let folder = path.parent().unwrap_or(path);
        if folder.join(SWEEP_RESULT).exists() || is_order_of_sweep(folder) {
            let (text, folder) = (format!("reading {}", path.display()), folder.display());
            let hint = format!("{folder} is a sweep: open {folder}/sweep.html");
            return Error::new(Kind::Input, text).source(source).hint(hint);
        }
        let folder = folder.display();
        let hint = format!("`floatgate review --resume {folder}` continues an interrupted run");
        Error::new(Kind::Io, format!("reading {}", path.display())).source(source).hint(hint)
    })
}

/// Reads a value from a JSON file of a run or a sweep.
///
/// # Errors
/// Fails if the file cannot be read, or is something else.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = read(path)?;
    serde_json::from_slice(&text).map_err(|source| {
        Error::new(Kind::Io, format!("understanding {}", path.display())).source(source)
    })
}

/// True if the order in `folder` is that of a run; false of any other, and where there is none.
pub fn is_order_of_run(folder: &Path) -> bool {
    order_has(folder, "plan")
}

/// True if the order in `folder` is that of a sweep.
pub(super) fn is_order_of_sweep(folder: &Path) -> bool {
    order_has(folder, "dimensions")
}

fn order_has(folder: &Path, key: &str) -> bool {
    let text = fs::read(folder.join(ORDER)).unwrap_or_default();
    let order: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    order.is_some_and(|order| order.get(key).is_some())
}

/// Writes a value as JSON, whole or not at all.
///
/// # Errors
/// Fails if the system refuses.
pub fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), Error> {
    durable::write(path, |file| {
        serde_json::to_writer_pretty(&mut *file, value)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(b"\n"))
            .map_err(|source| unwritable(path, source))
    })
}
