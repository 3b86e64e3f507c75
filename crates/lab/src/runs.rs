//! Run folders.
//!
//! ```text
//! runs/2026-11-21T101503Z-iodrive-duo-stock/
//! ├── order.json          what was asked: plan and target, enough to go on after an interruption
//! ├── progress.json       how far it is, while it is under way
//! ├── steps/007.json      one finished step each, until the run is done
//! ├── fio/                job files, reports and logs of fio, where that was the load generator
//! ├── run.json            the result (schema of the crate `results`)
//! ├── page.txt            name of the review beside the folder that shows it
//! └── *.parquet           samples and histograms
//! ```
//!
//! Invariants:
//! - Every file appears whole or not at all; `run.json` appears last, when all else is there.
//! - A folder is made for one run and never used by another. Only resuming an interrupted run
//!   replaces its `run.json`, by one that holds more.
//! - The machine's clock is read here only, for the name and `started_at`.

mod durable;
mod files;
mod listing;
mod order;
mod progress_file;
mod run_monitor;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use blockio::nearest;
use chrono::{SecondsFormat, Utc};
use results::{Run, StepKind};

use self::durable::unwritable;
use self::files::{HISTOGRAMS, LATENCIES, ORDER, PAGE, RAW, RUN, SAMPLES, STEPS, read};
pub use self::files::{SWEEP_POINTS, SWEEP_RESULT, is_order_of_run, read_json, write_json};
use self::progress_file::{Board, hold};
use crate::plan::Plan;
use crate::progress::Event;
use crate::runner::{Outcome, Record, StepStore};
use crate::subject::{published, published_elsewhere, slug};
use crate::wanted::TargetSetup;
use crate::{Error, Kind};

pub use self::listing::{RunEntry, SWEEP};
pub use self::order::Order;
pub use self::progress_file::{StepUnderway, Underway};
pub use self::run_monitor::{Page, RunMonitor, RunState, RunsSnapshot, SeenRun, SeenStep};

/// A folder of runs.
#[derive(Clone, Debug)]
pub struct Runs {
    root: PathBuf,
}

impl Runs {
    /// The runs in `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Makes the folder of a new run.
    ///
    /// # Errors
    /// Fails if it cannot be made.
    pub fn create(&self, plan: Plan, wanted: TargetSetup) -> Result<Folder, Error> {
        self.create_begun(plan, wanted, |now| now)
    }

    /// Makes the folder of an imported run that began at the time `begun`; absent where that is not
    /// known.
    ///
    /// # Errors
    /// Fails if it cannot be made.
    pub fn create_imported(
        &self,
        plan: Plan,
        wanted: TargetSetup,
        begun: Option<String>,
    ) -> Result<Folder, Error> {
        self.create_begun(plan, wanted, |_| begun.unwrap_or_default())
    }

    fn create_begun(
        &self,
        plan: Plan,
        wanted: TargetSetup,
        begun: impl FnOnce(String) -> String,
    ) -> Result<Folder, Error> {
        let (path, id, now) = self.make_folder(&slug(&wanted))?;
        let started_at = begun(now);
        let order = Order::new(id, started_at, plan, wanted);
        write_json(&path.join(ORDER), &order)?;
        Folder::held(path, order, false)
    }

    /// Makes an empty folder that is named after the time and `slug`. Returns its path, its name
    /// and the time.
    pub fn make_folder(&self, slug: &str) -> Result<(PathBuf, String, String), Error> {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        fs::create_dir_all(&self.root).map_err(|source| unwritable(&self.root, source))?;
        let base = format!("{}-{slug}", now.replace(':', ""));
        for attempt in 1.. {
            let id = if attempt == 1 { base.clone() } else { format!("{base}-{attempt}") };
            let path = self.root.join(&id);
            match fs::create_dir(&path) {
                Ok(()) => return Ok((path, id, now)),
                Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(unwritable(&path, source)),
            }
        }
        unreachable!("some number is free")
    }

    /// Names of the runs, oldest first.
    pub fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let is_run = [ORDER, RUN].iter().any(|name| entry.path().join(name).is_file());
                is_run.then(|| entry.file_name().to_string_lossy().into_owned())
            })
            .collect();
        names.sort();
        names
    }

    /// The folder of a run given as a path, a name, or the beginning of one name only.
    ///
    /// # Errors
    /// Names the runs that are near or match.
    pub fn find(&self, asked: &str) -> Result<PathBuf, Error> {
        let path = Path::new(asked);
        if path.is_dir() {
            return Ok(path.to_owned());
        }
        if path.is_file() && path.file_name().is_some_and(|name| name == RUN) {
            return Ok(path.parent().unwrap_or(path).to_owned());
        }
        let names = self.names();
        if names.iter().any(|name| name == asked) {
            return Ok(self.root.join(asked));
        }
        let matches: Vec<&String> = names.iter().filter(|name| name.starts_with(asked)).collect();
        match matches.as_slice() {
            [only] if !asked.is_empty() => Ok(self.root.join(only)),
            [first, second, ..] if !asked.is_empty() => {
                let text = format!("run `{asked}`: {} runs begin with that", matches.len());
                Err(Error::new(Kind::Input, text).hint(format!("such as {first} and {second}")))
            }
            _ => Err(self.unknown(asked, &names)),
        }
    }

    /// Reads a finished or interrupted run.
    ///
    /// # Errors
    /// Fails if there is none, or it cannot be understood.
    pub fn load(&self, asked: &str) -> Result<Run, Error> {
        read_run(&self.find(asked)?)
    }

    /// The plan that a run follows.
    ///
    /// # Errors
    /// Fails if there is none, or it cannot be understood.
    pub fn plan(&self, asked: &str) -> Result<Plan, Error> {
        let order: Order = read_json(&self.find(asked)?.join(ORDER))?;
        Ok(order.plan)
    }

    /// Opens the folder of a run to go on with it.
    ///
    /// # Errors
    /// Fails if there is none, its order cannot be understood, or it is finished.
    pub fn open(&self, asked: &str) -> Result<Folder, Error> {
        let path = self.find(asked)?;
        if files::is_order_of_sweep(&path) {
            let text = format!("resuming {}: it is a sweep, not a run", path.display());
            let hint = format!("`floatgate sweep --resume {}` continues it", path.display());
            return Err(Error::new(Kind::Input, text).hint(hint));
        }
        let order: Order = read_json(&path.join(ORDER))?;
        order.check(&path)?;
        if path.join(RUN).exists() && !path.join(STEPS).exists() {
            let text = format!("resuming {}: it is finished", path.display());
            return Err(Error::new(Kind::Input, text)
                .hint(format!("`floatgate compare {}` shows it", path.display())));
        }
        Folder::held(path, order, true)
    }

    /// Writes a review of runs beside them, under `name`. Returns its path.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn write_review(&self, name: &str, html: &str) -> Result<PathBuf, Error> {
        let path = self.root.join(name);
        write_text(&path, html)?;
        Ok(path)
    }

    /// Notes in the folder of the run `id` that the page `name` beside it shows it: the page goes
    /// with the last of its runs.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn note_page(&self, id: &str, name: &str) -> Result<(), Error> {
        write_text(&self.root.join(id).join(PAGE), name)
    }

    /// Writes the page `html` of measured runs beside them, named after the first. Returns its
    /// path.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    ///
    /// # Panics
    /// Panics if there are no runs.
    pub fn publish(&self, measured: &[Run], html: &str) -> Result<PathBuf, Error> {
        let first = measured.first().expect("a page shows runs");
        let suffix = format!("-{}", first.target.format);
        let page = format!("{}.html", first.id.strip_suffix(&suffix).unwrap_or(&first.id));
        let path = self.write_review(&page, html)?;
        measured.iter().try_for_each(|run| self.note_page(&run.id, &page))?;
        Ok(path)
    }

    fn unknown(&self, asked: &str, names: &[String]) -> Error {
        let text = format!("no run `{asked}` in {}", self.root.display());
        let text = if self.root.is_dir() { text } else { format!("{text}, which is no folder") };
        let error = Error::new(Kind::Input, text);
        match nearest(asked, names.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None if names.is_empty() => error.hint("`floatgate review iodrive-duo` makes one"),
            None => error.hint(format!("the newest is {}", names[names.len() - 1])),
        }
    }
}

/// Path beside the review at `page` of its verdict and sheet on one page.
pub fn one_page_of(page: &Path) -> PathBuf {
    let stem = page.file_stem().unwrap_or_default().to_string_lossy();
    page.with_file_name(format!("{stem}-one-page.html"))
}

/// The folder of one run that is under way.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    order: Order,
    /// Lock that marks the run as in progress for other processes.
    hold: File,
    board: Board,
    is_resumed: bool,
}

impl Folder {
    fn held(path: PathBuf, order: Order, is_resumed: bool) -> Result<Self, Error> {
        let hold = hold(&path).map_err(|source| {
            let text = format!("resuming {}", path.display());
            match source.kind() {
                io::ErrorKind::WouldBlock => Error::new(Kind::Refused, text)
                    .hint("another process is running it: wait until it ends, or stop it"),
                _ => Error::new(Kind::Io, text).source(source),
            }
        })?;
        let board = Board::new(&path, &order.plan);
        Ok(Self { path, order, hold, board, is_resumed })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Order of the run.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Steps that are finished, by index in the plan, ascending; on the devices that the run was
    /// begun on, which by now are held open, so that no other one can take their place.
    ///
    /// # Errors
    /// Fails if one of them cannot be understood, or a device is another one.
    pub fn finished(&self) -> Result<Vec<(usize, Record)>, Error> {
        self.order.check_devices()?;
        self.kept()
    }

    fn kept(&self) -> Result<Vec<(usize, Record)>, Error> {
        let steps = 0..self.order.plan.steps.len();
        let written = steps.map(|index| (index, self.step_path(index)));
        written
            .filter(|(_, path)| path.is_file())
            .map(|(index, path)| Ok((index, read_json::<order::StoredStep>(&path)?.into())))
            .collect()
    }

    /// Writes the result; when the plan is done, the finished steps are no longer kept apart.
    ///
    /// # Errors
    /// Fails if something cannot be written; the finished steps are still there then.
    pub fn finish(&self, outcome: Outcome) -> Result<Run, Error> {
        let complete = !outcome.interrupted;
        let Order { id, started_at, plan, wanted, .. } = &self.order;
        let mut run = outcome.into_run(plan, id.clone(), started_at.clone());
        run.published = published(wanted, plan, &run);
        run.published_elsewhere = published_elsewhere(wanted, plan, &run);
        run.warnings.extend(self.order.unidentified().filter(|_| self.is_resumed));
        write_run(&self.path, &run)?;
        if complete {
            // The result holds all that is in there.
            let _ = fs::remove_dir_all(self.path.join(STEPS));
        }
        self.let_go();
        Ok(run)
    }

    /// Releases the lock of the run and removes its progress.
    fn let_go(&self) {
        self.board.clear();
        // What cannot be unlocked is when the folder is dropped.
        let _ = self.hold.unlock();
    }

    /// Stops carrying out the run. True if there is something to resume; else its folder is
    /// removed.
    pub fn give_up(&self) -> bool {
        self.let_go();
        let is_worth = |(_, record): &(usize, Record)| record.step.kind != StepKind::Purge;
        let kept = self.kept().map_or(true, |kept| kept.iter().any(is_worth));
        let begun = kept || self.path.join(RUN).exists();
        if !begun {
            // An empty folder that stays does no harm.
            let _ = fs::remove_dir_all(&self.path);
        }
        begun
    }

    /// Folder for what a load generator leaves.
    pub fn raw(&self) -> PathBuf {
        self.path.join(RAW)
    }

    fn step_path(&self, index: usize) -> PathBuf {
        self.path.join(STEPS).join(format!("{index:03}.json"))
    }
}

impl StepStore for Folder {
    fn keep(&self, index: usize, record: &Record) -> Result<(), Error> {
        let path = self.step_path(index);
        let steps = self.path.join(STEPS);
        fs::create_dir_all(&steps).map_err(|source| unwritable(&steps, source))?;
        write_json(&path, &order::StoredStep::from(record))
    }

    fn follow(&self, event: &Event<'_>) {
        self.board.note(event);
    }
}

/// Writes a text that is there whole or not at all.
///
/// # Errors
/// Fails if it cannot be written; what was there before stays.
pub fn write_text(path: &Path, text: &str) -> Result<(), Error> {
    write_bytes(path, text.as_bytes())
}

/// Writes bytes that are there whole or not at all.
///
/// # Errors
/// As [`write_text`].
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    durable::write(path, |file| file.write_all(bytes).map_err(|source| unwritable(path, source)))
}

/// Reads the result in the folder `path`, with its samples and histograms.
fn read_run(path: &Path) -> Result<Run, Error> {
    let refused = |source: results::Error| {
        let text = format!("reading the run in {}", path.display());
        Error::new(Kind::Input, text)
            .source(source)
            .hint("measure it again, or read it with the program that wrote it")
    };
    let text = String::from_utf8_lossy(&read(&path.join(RUN))?).into_owned();
    let mut run = Run::from_json(&text).map_err(refused)?;
    run.samples_from_parquet(read(&path.join(SAMPLES))?).map_err(refused)?;
    run.latencies_from_parquet(read(&path.join(LATENCIES))?).map_err(refused)?;
    // Absent in results from versions without it.
    if path.join(HISTOGRAMS).exists() {
        run.histograms_from_parquet(read(&path.join(HISTOGRAMS))?).map_err(refused)?;
    }
    Ok(run)
}

/// Writes the result into the folder `path`: what belongs to it first, `run.json` last.
fn write_run(path: &Path, run: &Run) -> Result<(), Error> {
    let failed = |name: &str, source: results::Error| {
        Error::new(Kind::Io, format!("writing {}", path.join(name).display())).source(source)
    };
    durable::write(&path.join(SAMPLES), |file| {
        run.samples_to_parquet(file).map_err(|source| failed(SAMPLES, source))
    })?;
    durable::write(&path.join(LATENCIES), |file| {
        run.latencies_to_parquet(file).map_err(|source| failed(LATENCIES, source))
    })?;
    durable::write(&path.join(HISTOGRAMS), |file| {
        run.histograms_to_parquet(file).map_err(|source| failed(HISTOGRAMS, source))
    })?;
    write_text(&path.join(RUN), &run.to_json().map_err(|source| failed(RUN, source))?)
}

#[cfg(test)]
mod tests;
