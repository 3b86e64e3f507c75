//! Runs as a list tells them: what each measured, and how far it came.

use std::fs;
use std::path::{Path, PathBuf};

use results::Run;
use results::sweep::Dimension;
use serde::{Deserialize, Serialize};

use super::files::{
    ORDER, PAGE, RUN, STEPS, SWEEP_POINTS, SWEEP_RESULT, is_order_of_sweep, read, read_json,
};
use super::{Order, Runs, one_page_of, progress_file};
use crate::{Error, Kind};

/// One run of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunEntry {
    /// Name of its folder.
    pub name: String,
    /// Name of the target.
    pub target: String,
    /// Format of a model; empty for a real drive.
    pub format: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Steps that are finished.
    pub done: usize,
    /// Steps that the plan has.
    pub planned: usize,
    /// True if a process is carrying it out.
    pub is_running: bool,
    /// Bytes that its files take.
    pub size_bytes: u64,
    /// Reason why the run cannot be read; empty where it can.
    pub fault: String,
}

impl Runs {
    /// Every run, oldest first. One that cannot be read is in it, and says why.
    pub fn listed(&self) -> Vec<RunEntry> {
        let of = |name: String| {
            let path = self.root.join(&name);
            let size_bytes = size_of(&path);
            let listed = listed(&path)
                .unwrap_or_else(|error| RunEntry { fault: cause(&error), ..RunEntry::default() });
            RunEntry { name, size_bytes, is_running: progress_file::is_held(&path), ..listed }
        };
        self.names().into_iter().map(of).collect()
    }

    /// Removes a run with everything in its folder, and its review where that shows no other run;
    /// returns their size in bytes.
    ///
    /// # Errors
    /// Fails if there is none, it lies elsewhere, is under way, or cannot be removed.
    pub fn delete(&self, asked: &str) -> Result<u64, Error> {
        let path = self.find(asked)?;
        let inside = path.parent().is_some_and(|parent| parent == self.root);
        let is_run = [ORDER, RUN].iter().any(|name| path.join(name).is_file());
        if !inside || !is_run {
            let text = format!("{} is not a run in {}", path.display(), self.root.display());
            return Err(Error::new(Kind::Refused, text).hint("`floatgate runs` lists them"));
        }
        if progress_file::is_held(&path) {
            let text = format!("deleting {}: it is in progress", path.display());
            return Err(Error::new(Kind::Refused, text).hint("stop it first"));
        }
        let failed = |path: &Path, source| {
            Error::new(Kind::Io, format!("removing {}", path.display())).source(source)
        };
        let mut size_bytes = size_of(&path);
        let page = self.page_of(&path);
        fs::remove_dir_all(&path).map_err(|source| failed(&path, source))?;
        let Some(page) = page else { return Ok(size_bytes) };
        let is_shown = |name: String| self.page_of(&self.root.join(name)).as_ref() == Some(&page);
        if !self.names().into_iter().any(is_shown) {
            let one_page = Some(one_page_of(&page)).filter(|it| it.is_file());
            for page in std::iter::once(page).chain(one_page) {
                size_bytes += fs::metadata(&page).map_or(0, |it| it.len());
                fs::remove_file(&page).map_err(|source| failed(&page, source))?;
            }
        }
        Ok(size_bytes)
    }

    /// The review that shows the run in the folder `path`, where it has one.
    pub fn page_of(&self, path: &Path) -> Option<PathBuf> {
        let name = fs::read_to_string(path.join(PAGE)).ok()?;
        let page = path.parent().unwrap_or(&self.root).join(&name);
        let is_page = page.extension().is_some_and(|it| it == "html") && page.is_file();
        (is_page && !name.contains('/')).then_some(page)
    }
}

impl RunEntry {
    /// A run of which nothing is finished yet.
    pub(super) fn of_order(order: &Order) -> Self {
        Self {
            target: order.wanted.target.clone(),
            format: order.wanted.format.clone(),
            protocol: order.plan.protocol.clone(),
            planned: order.plan.steps.len(),
            ..Self::default()
        }
    }

    /// True if its plan is done.
    pub fn is_complete(&self) -> bool {
        self.fault.is_empty() && self.done >= self.planned
    }
}

/// Reads what is there: the result, or the order and the steps that were kept so far.
pub(super) fn listed(path: &Path) -> Result<RunEntry, Error> {
    if path.join(RUN).is_file() {
        let text = read(&path.join(RUN))?;
        let run = Run::from_json(&String::from_utf8_lossy(&text)).map_err(|source| {
            Error::new(Kind::Io, format!("reading {}", path.display())).source(source)
        })?;
        return Ok(RunEntry {
            target: run.target.name,
            format: run.target.format,
            protocol: run.protocol,
            done: run.steps.len(),
            planned: usize::try_from(run.steps_planned).unwrap_or(usize::MAX),
            ..RunEntry::default()
        });
    }
    if path.join(SWEEP_RESULT).is_file() || is_order_of_sweep(path) {
        return sweep(path);
    }
    let order: Order = read_json(&path.join(ORDER))?;
    Ok(RunEntry { done: results_in(&path.join(STEPS)), ..RunEntry::of_order(&order) })
}

/// Order of a sweep, as far as a list tells of it.
#[derive(Deserialize)]
struct Grid {
    #[serde(default)]
    drive: String,
    #[serde(default)]
    format: String,
    dimensions: Vec<Dimension>,
}

/// Name that a list has in place of the protocol for sweeps, which are no runs.
pub const SWEEP: &str = "sweep";

/// The folder of a sweep: the points of its grid stand for steps.
fn sweep(path: &Path) -> Result<RunEntry, Error> {
    let grid: Grid = read_json(&path.join(ORDER))?;
    let done = results_in(&path.join(SWEEP_POINTS));
    let planned = grid.dimensions.iter().map(|dimension| dimension.values.len()).product();
    // An interrupted sweep has a result too, of the points that it came to.
    let fault =
        if done < planned { "interrupted: `floatgate sweep --resume` continues it" } else { "" };
    let drive = ssd::DriveSpec::parse(&grid.drive, ORDER);
    Ok(RunEntry {
        target: drive.map_or_else(|_| String::new(), |drive| drive.name),
        format: grid.format,
        protocol: SWEEP.to_owned(),
        done,
        planned,
        fault: fault.to_owned(),
        ..RunEntry::default()
    })
}

/// Number of JSON files in a folder; 0 without one.
fn results_in(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, |entries| {
        let names = entries.flatten().map(|entry| entry.path());
        names.filter(|path| path.extension().is_some_and(|it| it == "json")).count()
    })
}

/// Cause of `error`, without its context, for a table.
pub(super) fn cause(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.unwrap_or_else(|| error.to_string())
}

/// Bytes of all files below `path`; what cannot be read counts nothing.
fn size_of(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let each = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    each.sum()
}

#[cfg(test)]
mod tests;
