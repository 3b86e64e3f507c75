//! Runs of a folder for a viewer that looks again and again: those under way with every step, those
//! that have ended in a line each, and the reviews beside them.
//!
//! What does not change is read once: the order of a run, a step that was kept, a result, the title
//! of a page. A look at a folder in which nothing happens costs a few calls of the system a run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use results::{StepKind, Summary};
use serde::{Deserialize, Serialize};

use super::files::{ORDER, RUN, STEPS, read, read_json};
use super::listing::{self, RunEntry};
use super::progress_file::{self, PROGRESS, Underway};
use super::{Order, Runs};
use crate::Error;
use crate::progress::Glimpse;

/// Runs and pages that are told of, the newest.
const TOLD_MAX: usize = 100;
/// File name extension of pages.
const SUFFIX: &str = ".html";
/// Bytes of a page in which its title is looked for.
const TITLE_WITHIN: u64 = 4096;

/// Looks at the runs of a folder.
#[derive(Debug)]
pub struct RunMonitor {
    runs: Runs,
    /// Data read of each run, by name.
    known: BTreeMap<String, RunData>,
    /// Titles of pages, by name, with the time from which they are.
    titles: BTreeMap<String, (SystemTime, String)>,
}

/// Runs and pages at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunsSnapshot {
    /// The newest first.
    pub runs: Vec<SeenRun>,
    /// The newest first.
    pub pages: Vec<Page>,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// A process carries it out, or will when another one is done.
    Underway,
    /// The run was stopped, or its process is gone, before the plan was done.
    Interrupted,
    /// The plan is done.
    Done,
    /// The run cannot be read.
    Unreadable,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeenRun {
    /// Name, what was measured, and how far.
    #[serde(flatten)]
    pub listed: RunEntry,
    /// State of the run.
    pub state: RunState,
    /// Progress; absent while the run waits for another one, and when it has ended.
    pub underway: Option<Underway>,
    /// Steps of its plan, with the figures of finished ones; empty when it has ended.
    pub steps: Vec<SeenStep>,
}

/// A step of a run under way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeenStep {
    /// Name of the step.
    pub id: String,
    /// Kind of the step.
    pub kind: StepKind,
    /// Length in protocol seconds.
    pub length_s: f64,
    /// True if the step is finished and kept.
    pub is_done: bool,
    /// Figures of the whole step; absent until it is finished, or where it measures nothing.
    pub result: Option<Glimpse>,
}

/// A page beside the runs: a review, a comparison, a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Page {
    /// Name of the file.
    pub name: String,
    /// Title of the page; its name where it has none.
    pub title: String,
    /// Bytes.
    pub size_bytes: u64,
    /// Seconds since 1970 at which it was written.
    pub written_unix_s: u64,
}

/// Data read of a run.
#[derive(Debug, Default)]
struct RunData {
    order: Option<Order>,
    /// Finished steps by index, with what they measured.
    finished: BTreeMap<usize, Option<Glimpse>>,
    /// The result, and the time from which it is.
    ended: Option<(SystemTime, RunEntry)>,
}

/// Part of a finished step's file that the monitor reads.
#[derive(Deserialize)]
struct StepSummary {
    step: FinishedStep,
}

#[derive(Deserialize)]
struct FinishedStep {
    summary: Option<Summary>,
    /// The last rounds of a preconditioning, whose mean is a rate that the drive never had.
    settled: Option<Summary>,
}

impl RunMonitor {
    /// Looks at the runs of a folder, which need not exist yet.
    pub fn new(runs: Runs) -> Self {
        Self { runs, known: BTreeMap::new(), titles: BTreeMap::new() }
    }

    /// Reads the folder again and returns the newest runs and pages.
    pub fn look(&mut self) -> RunsSnapshot {
        let names = self.runs.names();
        let newest: Vec<String> = names.into_iter().rev().take(TOLD_MAX).collect();
        self.known.retain(|name, _| newest.contains(name));
        let runs = newest.into_iter().map(|name| {
            let known = self.known.entry(name.clone()).or_default();
            let mut run = known.look(&self.runs.root.join(&name));
            run.listed.name = name;
            run
        });
        let runs = runs.collect();
        RunsSnapshot { runs, pages: self.pages() }
    }

    /// The text of a page that a look told of.
    ///
    /// # Errors
    /// Fails if it cannot be read any more.
    pub fn page(&self, page: &Page) -> Result<String, Error> {
        let bytes = read(&self.runs.root.join(&page.name))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reviews and the like, the newest first.
    pub fn pages(&mut self) -> Vec<Page> {
        let entries = fs::read_dir(&self.runs.root).into_iter().flatten().flatten();
        let mut pages: Vec<(SystemTime, Page)> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                let written = metadata.modified().ok().filter(|_| name.ends_with(SUFFIX))?;
                let since = written.duration_since(UNIX_EPOCH).unwrap_or_default();
                let (size_bytes, written_unix_s) = (metadata.len(), since.as_secs());
                let title = String::new();
                Some((written, Page { name, title, size_bytes, written_unix_s }))
            })
            .collect();
        pages.sort_by(|a, b| (b.0, &b.1.name).cmp(&(a.0, &a.1.name)));
        pages.truncate(TOLD_MAX);
        self.titles.retain(|name, _| pages.iter().any(|(_, page)| page.name == *name));
        pages.into_iter().map(|(written, page)| self.titled(written, page)).collect()
    }

    fn titled(&mut self, written: SystemTime, page: Page) -> Page {
        let known = self.titles.get(&page.name).filter(|(at, _)| *at == written);
        let title = match known {
            Some((_, title)) => title.clone(),
            None => title(&self.runs.root.join(&page.name)).unwrap_or_else(|| page.name.clone()),
        };
        self.titles.insert(page.name.clone(), (written, title.clone()));
        Page { title, ..page }
    }
}

impl RunData {
    fn look(&mut self, path: &Path) -> SeenRun {
        let is_held = progress_file::is_held(path);
        let written = fs::metadata(path.join(RUN)).and_then(|it| it.modified()).ok();
        if let Some(written) = written.filter(|_| !is_held) {
            return self.ended(path, written);
        }
        if self.order.is_none() {
            match read_json(&path.join(ORDER)) {
                Ok(order) => self.order = Some(order),
                Err(error) => return unreadable(&error),
            }
        }
        self.take_up_steps(path);
        let order = self.order.as_ref().expect("it was read");
        let listed = RunEntry { done: self.finished.len(), ..RunEntry::of_order(order) };
        if !is_held {
            return SeenRun {
                listed,
                state: RunState::Interrupted,
                underway: None,
                steps: Vec::new(),
            };
        }
        let underway = read_json(&path.join(PROGRESS)).ok();
        let steps = order.plan.steps.iter().enumerate().map(|(index, step)| SeenStep {
            id: step.id.clone(),
            kind: step.kind,
            length_s: step.length_s(),
            is_done: self.finished.contains_key(&index),
            result: self.finished.get(&index).copied().flatten(),
        });
        SeenRun { listed, state: RunState::Underway, underway, steps: steps.collect() }
    }

    fn ended(&mut self, path: &Path, written: SystemTime) -> SeenRun {
        let known = self.ended.take().filter(|(at, _)| *at == written);
        let listed = match known.map_or_else(|| listing::listed(path), |(_, listed)| Ok(listed)) {
            Ok(listed) => listed,
            Err(error) => return unreadable(&error),
        };
        self.ended = Some((written, listed.clone()));
        let is_done = listed.is_complete();
        let state = if is_done { RunState::Done } else { RunState::Interrupted };
        SeenRun { listed, state, underway: None, steps: Vec::new() }
    }

    /// Reads the steps that were finished since the last look.
    fn take_up_steps(&mut self, path: &Path) {
        for entry in fs::read_dir(path.join(STEPS)).into_iter().flatten().flatten() {
            let file = entry.path();
            let is_step = file.extension().is_some_and(|it| it == "json");
            let stem = file.file_stem().filter(|_| is_step).and_then(|it| it.to_str());
            let Some(index) = stem.and_then(|it| it.parse().ok()) else { continue };
            if !self.finished.contains_key(&index)
                && let Ok(StepSummary { step }) = read_json(&file)
            {
                let figures = step.settled.or(step.summary);
                self.finished.insert(index, figures.as_ref().map(Glimpse::of_summary));
            }
        }
    }
}

fn unreadable(error: &Error) -> SeenRun {
    let listed = RunEntry { fault: listing::cause(error), ..RunEntry::default() };
    SeenRun { listed, state: RunState::Unreadable, underway: None, steps: Vec::new() }
}

/// Text between `<title>` and `</title>` of a page, with entities decoded.
fn title(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(TITLE_WITHIN).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, rest) = text.split_once("<title>")?;
    let (title, _) = rest.split_once("</title>")?;
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    let plain = |text: String, (name, char): (&str, &str)| text.replace(name, char);
    Some(entities.into_iter().fold(title.trim().to_owned(), plain))
}

#[cfg(test)]
mod tests;
