//! Sweeps: one drive under one kind of load, at every point of a grid.
//!
//! ```text
//! order ──► grid ──► points, each on a drive of its own, in parallel ──► Sweep
//!                     └─ kept as soon as it is done, so that an interrupted sweep goes on
//! ```
//!
//! A point whose drive cannot be is a result too: it says why.

pub mod dimension;
mod lifetime;
mod point;
mod store;
mod table;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lab::plan::{OneLoad, Plan, PlannedStep};
use lab::pool::in_parallel;
use lab::progress::{Event, Glimpse, Progress, TimeTally};
use lab::{Error, Kind, Watch};
use results::sweep::{Dimension, Point, PointOutcome, Sweep, Value};
use serde::{Deserialize, Serialize};
use ssd::{DriveSpec, Setup};
use workload::Workload;

use self::dimension::grid;
use self::point::{MEASURE_S, ROUND_S, ROUNDS_MAX, Setting, measure};
use crate::drive_file::DriveFile;

pub use self::store::Store;
pub use results::sweep::{COMPRESSIBLE, QUEUE, READ_PERCENT, THREADS, USER_CAPACITY};

/// Version of the order and of the points kept beside it.
const SCHEMA: u32 = 1;
/// Most jobs, and most requests of each.
const LOAD_MAX: f64 = 1024.0;
/// Rounds that a point is taken to need, for the time left.
const ROUNDS_EXPECTED: f64 = 8.0;

/// Order of a sweep: drive, load and dimensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepOrder {
    /// Version of this form.
    pub schema: u32,
    /// Version of the drive models that it began with.
    pub model_version: u32,
    /// Name of the folder; empty until it is made.
    pub id: String,
    /// Start of the sweep, RFC 3339 in UTC; empty until then.
    pub started_at: String,
    /// Text of the drive's file.
    pub drive: String,
    /// Format of the drive.
    pub format: String,
    /// Host driver.
    pub host: String,
    /// Time lapse, or the drive's own if absent.
    pub time_lapse: Option<u32>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Sizes, directions and addresses of the requests, where they are not swept.
    pub workload: Workload,
    /// Jobs, where they are not swept.
    pub threads: u16,
    /// Requests that each job keeps outstanding, where they are not swept.
    pub queue_per_thread: u16,
    /// Measurements of each point, with consecutive seeds. Absent: 1.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub repeat: u32,
    /// Load that the lifetime in years is for, in decimal GB a day.
    pub load_gb_per_day: Option<f64>,
    /// Dimensions of the grid.
    pub dimensions: Vec<Dimension>,
}

const fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_once(repeat: &u32) -> bool {
    *repeat < 2
}

impl SweepOrder {
    /// Version of the form that this program writes.
    pub const SCHEMA: u32 = SCHEMA;

    /// Refuses what cannot be swept: a key or a value that there is not, or a grid without a single
    /// drive that can be.
    ///
    /// # Errors
    /// Fails with the name of the invalid key, value or grid.
    pub fn check(&self) -> Result<(), Error> {
        for (key, fixed) in [(THREADS, self.threads), (QUEUE, self.queue_per_thread)] {
            load(key, &Value::Number(fixed.into()))?;
        }
        if let Some(load) = self.load_gb_per_day.filter(|it| !(*it > 0.0 && it.is_finite())) {
            let text = format!("load_gb_per_day is {load}, must be above 0");
            return Err(Error::new(Kind::Input, text));
        }
        self.check_capacity()?;
        let points = grid(&self.dimensions)?;
        let mut reason = String::new();
        let mut feasible = false;
        for at in &points {
            match self.setting(at)? {
                Ok(_) => feasible = true,
                Err(why) if reason.is_empty() => reason = why,
                Err(_) => {}
            }
        }
        if feasible {
            return Ok(());
        }
        Err(Error::new(Kind::Input, format!("no point of the sweep is feasible: {reason}")))
    }

    /// Refuses the user capacity of the format as two dimensions: the later one would hold.
    fn check_capacity(&self) -> Result<(), Error> {
        let is_swept = |key: &str| self.dimensions.iter().any(|dimension| dimension.key == key);
        let place = read(&self.drive)?.formats().iter().position(|it| *it == self.format);
        let by_place = place.map(|place| format!("format.{place}.user_gb"));
        let by_name = format!("format.{}.user_gb", self.format);
        let both = by_place.into_iter().chain([by_name]).find(|key| is_swept(key));
        match both.filter(|_| is_swept(USER_CAPACITY)) {
            Some(key) => {
                let text = format!("{USER_CAPACITY} and {key} are one value, and both are swept");
                Err(Error::new(Kind::Input, text).hint("give --user-capacity or --set, not both"))
            }
            None => Ok(()),
        }
    }

    /// Swept keys that change nothing, each with the reason: those of another format or host, and
    /// compressibility where the drive does not compress.
    ///
    /// # Errors
    /// Fails if the drive cannot be read.
    pub fn without_effect(&self) -> Result<Vec<String>, Error> {
        let drive = self.drive_spec()?;
        let of_other = |key: &str| {
            let (table, rest) = key.split_once('.')?;
            let (name, _) = rest.split_once('.')?;
            let (names, chosen) = match table {
                "format" => (drive.formats(), &self.format),
                "host" => (drive.hosts(), &self.host),
                _ => return None,
            };
            let place = name.parse::<usize>().ok().and_then(|place| names.get(place));
            let name = if names.iter().any(|it| it == name) { name } else { place? };
            (name != chosen).then(|| format!("`{key}` has no effect: the {table} is `{chosen}`"))
        };
        let reason = |dimension: &Dimension| match &*dimension.key {
            COMPRESSIBLE if drive.compression.is_none() => {
                let name = &drive.name;
                Some(format!("--compressible has no effect: {name} does not compress"))
            }
            key => of_other(key),
        };
        Ok(self.dimensions.iter().filter_map(reason).collect())
    }

    /// The drive of the order, before anything is swept.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn drive_spec(&self) -> Result<DriveSpec, Error> {
        read(&self.drive)
    }

    /// Carries the order out on at most `threads` threads, except for the points that are
    /// `finished`, and gives every other point to `keep`.
    ///
    /// Returns what was measured; fewer points than the grid has when it was stopped.
    ///
    /// # Errors
    /// The first failure in the order of the grid.
    pub fn carry_out(
        &self,
        finished: &[(usize, Point)],
        threads: usize,
        progress: &dyn Progress,
        keep: &(dyn Fn(usize, &Point) -> Result<(), Error> + Sync),
    ) -> Result<Sweep, Error> {
        let points = grid(&self.dimensions)?;
        let is_open = |index: &usize| finished.iter().all(|(done, _)| done != index);
        let open: Vec<usize> = (0..points.len()).filter(is_open).collect();
        let count = open.len() as f64;
        let state = SweepState {
            order: self,
            progress,
            tally: TimeTally::new((count, count), threads.min(open.len())),
            step: self.step(),
            failed: AtomicBool::new(false),
        };
        let done = in_parallel(threads, &open, |index| {
            let result = state.point(&points[*index]).and_then(|point| {
                point.as_ref().map_or(Ok(()), |point| keep(*index, point)).map(|()| point)
            });
            if result.is_err() {
                state.failed.store(true, Ordering::Relaxed);
            }
            result.map(|point| point.map(|point| (*index, point)))
        });
        let mut all = finished.to_vec();
        for result in done {
            all.extend(result?);
        }
        all.sort_by_key(|(index, _)| *index);
        self.sweep(all.into_iter().map(|(_, point)| point).collect())
    }

    /// Measures the one point at `index` of the grid; nothing when it was stopped before.
    ///
    /// # Errors
    /// Fails if there is no such point, the order was begun with models of another version, or a
    /// request failed.
    pub fn measure(&self, index: usize, progress: &dyn Progress) -> Result<Option<Point>, Error> {
        self.check_version(Path::new("a sweep"))?;
        let points = grid(&self.dimensions)?;
        let Some(at) = points.get(index) else {
            let text = format!("point {index} of a grid of {}", points.len());
            return Err(Error::new(Kind::Input, text).hint("points are counted from 0"));
        };
        let (tally, step) = (TimeTally::new((1.0, 1.0), 1), self.step());
        SweepState { order: self, progress, tally, step, failed: AtomicBool::new(false) }.point(at)
    }

    /// Returns the result that consists of `points`, in the order of the grid.
    ///
    /// # Errors
    /// Fails if the drive cannot be read.
    pub fn sweep(&self, points: Vec<Point>) -> Result<Sweep, Error> {
        let drive = read(&self.drive)?;
        Ok(Sweep {
            schema: Sweep::SCHEMA,
            id: self.id.clone(),
            started_at: self.started_at.clone(),
            model_version: self.model_version,
            seed: self.seed,
            title: drive.title.clone(),
            unvalidated: !drive.is_validated(),
            format: self.format.clone(),
            host: self.host.clone(),
            time_lapse: self.time_lapse.unwrap_or_else(|| drive.time_lapse_default()),
            drive: drive.name,
            workload: self.workload.name.clone(),
            threads: self.threads,
            queue_per_thread: self.queue_per_thread,
            repeat: self.repeat,
            load_gb_per_day: self.load_gb_per_day,
            price: None,
            dimensions: self.dimensions.clone(),
            points,
        })
    }

    /// Pages that its models move, estimated: those that cannot be are left out.
    ///
    /// # Errors
    /// Fails with the name of the invalid key, value or grid.
    pub fn work(&self) -> Result<f64, Error> {
        let mut pages = 0.0;
        for at in grid(&self.dimensions)? {
            let Ok(Setting { drive, setup, workload, threads, queue_per_thread, .. }) =
                self.setting(&at)?
            else {
                continue;
            };
            let load = OneLoad {
                threads,
                queue_per_thread,
                precondition_s: ROUNDS_EXPECTED * ROUND_S,
                duration_s: MEASURE_S,
                pace: None,
                replay: None,
            };
            let plan = Plan::of_one(&workload, &load, self.seed).for_drive(&drive);
            let lapse = f64::from(drive.time_lapse_default()) / f64::from(setup.time_lapse.max(1));
            pages += plan.work() * lapse;
        }
        Ok(pages * f64::from(self.repeat))
    }

    /// Name of the drive, for the folder.
    fn name(&self) -> String {
        read(&self.drive).map_or_else(|_| "drive".into(), |drive| drive.name)
    }

    /// Refuses an order that this program cannot resume: of another schema or model version.
    fn check_version(&self, path: &Path) -> Result<(), Error> {
        if self.schema == SCHEMA && self.model_version == ssd::MODEL_VERSION {
            return Ok(());
        }
        let text = format!(
            "resuming {}: begun with schema {} and model version {}, this is schema {SCHEMA} \
             and model version {}",
            path.display(),
            self.schema,
            self.model_version,
            ssd::MODEL_VERSION
        );
        Err(Error::new(Kind::Input, text).hint("begin a new sweep"))
    }

    /// Step that stands for a point in progress reports.
    fn step(&self) -> PlannedStep {
        let (threads, queue_per_thread) = (self.threads, self.queue_per_thread);
        let (precondition_s, duration_s) = (0.0, 1.0);
        let load = OneLoad {
            threads,
            queue_per_thread,
            precondition_s,
            duration_s,
            pace: None,
            replay: None,
        };
        let mut plan = Plan::of_one(&self.workload, &load, self.seed);
        plan.steps.pop().expect("one load has a measurement")
    }

    /// The drive and the load at a point of the grid; inside, why there is no such drive.
    fn setting(&self, at: &[Value]) -> Result<Result<Setting, String>, Error> {
        let mut file = DriveFile::parse(&self.drive, "the drive's file")?;
        let mut workload = self.workload.clone();
        let (mut threads, mut queue_per_thread) = (self.threads, self.queue_per_thread);
        for (Dimension { key, .. }, value) in self.dimensions.iter().zip(at) {
            match key.as_str() {
                USER_CAPACITY => {
                    let key = format!("format.{}.user_gb", self.format);
                    file.replace(&key, toml(value))?;
                }
                THREADS => threads = load(key, value)?,
                QUEUE => queue_per_thread = load(key, value)?,
                READ_PERCENT => workload.read_percent = percent(key, value)?,
                COMPRESSIBLE => workload.compressible_percent = percent(key, value)?,
                key => file.replace(key, toml(value))?,
            }
        }
        let drive = match file.spec() {
            Ok(drive) => drive,
            Err(fault) => return Ok(Err(last_line(&fault.text))),
        };
        let time_lapse = self.time_lapse.unwrap_or_else(|| drive.time_lapse_default());
        let (format, host) = (self.format.clone(), self.host.clone());
        let setup = Setup { format, host, time_lapse, seed: self.seed };
        let load_gb_per_day = self.load_gb_per_day;
        Ok(Ok(Setting { drive, setup, workload, threads, queue_per_thread, load_gb_per_day }))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole and within 2⁵³, checked")]
fn toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::Word(word) => match word.parse() {
            Ok(flag) => toml_edit::Value::Boolean(toml_edit::Formatted::new(flag)),
            Err(_) => word.as_str().into(),
        },
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            (*number as i64).into()
        }
        Value::Number(number) => (*number).into(),
    }
}

/// Message of a TOML error, without the excerpt before it.
fn last_line(text: &str) -> String {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}

fn read(text: &str) -> Result<DriveSpec, Error> {
    DriveSpec::parse(text, "drive")
        .map_err(|source| Error::new(Kind::Input, "reading a drive").source(source))
}

/// Reads `value` as the number of threads or of requests of each, which `key` is.
///
/// # Errors
/// Fails if it is not whole, or out of range.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 1024, checked")]
pub fn load(key: &str, value: &Value) -> Result<u16, Error> {
    match value.number() {
        Some(number) if number.fract() == 0.0 && (1.0..=LOAD_MAX).contains(&number) => {
            Ok(number as u16)
        }
        _ => {
            let text = format!("{key} is {value}, not a whole number from 1 to {LOAD_MAX}");
            Err(Error::new(Kind::Input, text))
        }
    }
}

fn percent(key: &str, value: &Value) -> Result<f64, Error> {
    value.number().filter(|number| (0.0..=100.0).contains(number)).ok_or_else(|| {
        Error::new(Kind::Input, format!("{key} is {value}, not a number from 0 to 100"))
    })
}

/// State that all points of one sweep share.
struct SweepState<'a> {
    order: &'a SweepOrder,
    progress: &'a dyn Progress,
    tally: TimeTally,
    step: PlannedStep,
    failed: AtomicBool,
}

impl SweepState<'_> {
    fn stop(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.progress.stop()
    }

    /// The point at these values; nothing when it was stopped before it was done.
    fn point(&self, at: &[Value]) -> Result<Option<Point>, Error> {
        if self.stop() {
            return Ok(None);
        }
        let (label, since) = (self.label(at), Instant::now());
        let mut watch =
            PointWatch { state: self, label, since, rounds: 0, round_done: 0.0, told: 0.0 };
        let outcome = match self.order.setting(at)? {
            Err(reason) => Some(PointOutcome::Infeasible { reason }),
            Ok(setting) => outcome(measure(&setting, self.order.repeat, &mut watch))?,
        };
        if outcome.is_some() {
            watch.tell(1.0, "", true);
        }
        Ok(outcome.map(|outcome| Point { at: at.to_vec(), outcome }))
    }

    /// `threads 16, user_capacity_gb 400`.
    fn label(&self, at: &[Value]) -> String {
        let keys = self.order.dimensions.iter().map(|dimension| &dimension.key);
        let words: Vec<String> =
            keys.zip(at).map(|(key, value)| format!("{key} {value}")).collect();
        words.join(", ")
    }
}

/// A drive that cannot be set up is a result; any other failure ends the sweep.
fn outcome(
    measured: Result<Option<results::sweep::SettledDrive>, Error>,
) -> Result<Option<PointOutcome>, Error> {
    match measured {
        Ok(settled) => Ok(settled.map(|settled| PointOutcome::Measured(Box::new(settled)))),
        Err(error) if error.kind() == Kind::Input => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            Ok(Some(PointOutcome::Infeasible {
                reason: cause.unwrap_or_else(|| error.to_string()),
            }))
        }
        Err(error) => Err(error),
    }
}

/// Passes what a driver says of one point on, as part of the whole.
struct PointWatch<'a> {
    state: &'a SweepState<'a>,
    label: String,
    /// Time of the last report.
    since: Instant,
    rounds: u32,
    round_done: f64,
    told: f64,
}

impl PointWatch<'_> {
    fn tell(&mut self, share: f64, text: &str, step_finished: bool) {
        let by = (share - self.told).max(0.0);
        self.told += by;
        let before = std::mem::replace(&mut self.since, Instant::now());
        let spent_s = self.since.duration_since(before).as_secs_f64();
        let (done, left_s) = self.state.tally.add((by, by), Some(spent_s));
        self.state.progress.moved(&Event {
            run: &self.label,
            step: &self.state.step,
            step_done: self.told,
            step_finished,
            done,
            left_s,
            text,
            glimpse: None,
        });
    }
}

impl Watch for PointWatch<'_> {
    fn progress(&mut self, done: f64, text: &str) {
        if done < self.round_done {
            self.rounds = (self.rounds + 1).min(ROUNDS_MAX);
        }
        self.round_done = done;
        // How many rounds it takes is not known before; nearly done is as far as this can tell.
        let share = (f64::from(self.rounds) + done) / (ROUNDS_EXPECTED + 2.0);
        self.tell(share.min(0.95), text, false);
    }

    /// Ignores figures: a sweep shows none of a single point.
    fn saw(&mut self, _: Glimpse) {}

    fn stop(&self) -> bool {
        self.state.stop()
    }
}

#[cfg(test)]
mod tests;
