//! Runs as a list tells them: what each measured, and how far it came.

use std::fs;
use std::path::Path;

use results::Run;
use serde::Serialize;

use super::{ORDER, Order, RUN, Runs, STEPS, read, read_json};
use crate::{Error, Kind};

/// One run of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Name of its folder.
    pub name: String,
    /// What was measured.
    pub target: String,
    /// Format of a model; empty for a real drive.
    pub format: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Steps that are finished.
    pub done: usize,
    /// Steps that the plan has.
    pub planned: usize,
    /// Bytes that its files take.
    pub size_bytes: u64,
    /// Why it cannot be read; empty where it can.
    pub fault: String,
}

impl Runs {
    /// Every run, oldest first. One that cannot be read is in it, and says why.
    pub fn listed(&self) -> Vec<Listed> {
        let of = |name: String| {
            let path = self.root.join(&name);
            let size_bytes = size_of(&path);
            let listed = listed(&path).unwrap_or_else(|error| {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let fault = cause.unwrap_or_else(|| error.to_string());
                Listed { fault, ..Listed::nothing() }
            });
            Listed { name, size_bytes, ..listed }
        };
        self.names().into_iter().map(of).collect()
    }

    /// Removes a run with everything in its folder; returns its size in bytes.
    ///
    /// # Errors
    /// When there is none, it lies elsewhere, or it cannot be removed.
    pub fn delete(&self, asked: &str) -> Result<u64, Error> {
        let path = self.find(asked)?;
        let inside = path.parent().is_some_and(|parent| parent == self.root);
        let is_run = [ORDER, RUN].iter().any(|name| path.join(name).is_file());
        if !inside || !is_run {
            let text = format!("{} is no run in {}", path.display(), self.root.display());
            return Err(Error::new(Kind::Refused, text).hint("`floatgate runs` lists them"));
        }
        let size_bytes = size_of(&path);
        fs::remove_dir_all(&path).map_err(|source| {
            Error::new(Kind::Io, format!("removing {}", path.display())).source(source)
        })?;
        Ok(size_bytes)
    }
}

impl Listed {
    fn nothing() -> Self {
        Self {
            name: String::new(),
            target: String::new(),
            format: String::new(),
            protocol: String::new(),
            done: 0,
            planned: 0,
            size_bytes: 0,
            fault: String::new(),
        }
    }

    /// Whether its plan is done.
    pub fn is_complete(&self) -> bool {
        self.fault.is_empty() && self.done >= self.planned
    }
}

/// Reads what is there: the result, or the order and the steps that were kept so far.
fn listed(path: &Path) -> Result<Listed, Error> {
    if path.join(RUN).is_file() {
        let text = read(&path.join(RUN))?;
        let run = Run::from_json(&String::from_utf8_lossy(&text)).map_err(|source| {
            Error::new(Kind::Io, format!("reading {}", path.display())).source(source)
        })?;
        return Ok(Listed {
            target: run.target.name,
            format: run.target.format,
            protocol: run.protocol,
            done: run.steps.len(),
            planned: usize::try_from(run.steps_planned).unwrap_or(usize::MAX),
            ..Listed::nothing()
        });
    }
    let order: Order = read_json(&path.join(ORDER))?;
    let kept = fs::read_dir(path.join(STEPS)).map_or(0, |entries| {
        let names = entries.flatten().map(|entry| entry.path());
        names.filter(|path| path.extension().is_some_and(|it| it == "json")).count()
    });
    Ok(Listed {
        target: order.wanted.target,
        format: order.wanted.format,
        protocol: order.plan.protocol,
        done: kept,
        planned: order.plan.steps.len(),
        ..Listed::nothing()
    })
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
