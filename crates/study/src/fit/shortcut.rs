//! Estimates of what a protocol would measure, from short looks.
//!
//! ```text
//! drive, job of the work list ──► state before each step: purged, filled or settled (kept)
//!                                   └──► behind the candidate's timing, a short look at the load
//! ```
//!
//! What is approximated:
//!
//! - the drive is at a larger time lapse than its own, with fewer superblocks;
//! - the settled state is reached without time passing: it does not know how long relocation had in
//!   the background, nor that some protocols end before a slow drive has settled;
//! - a look lasts thousands of requests, not minutes: deviations and maxima are rough, and stalls
//!   of the host that are seconds apart are not seen.
//!
//! A step of few requests on a drive that is on its way to a steady state is simulated whole.
//!
//! How far off it is at one place is known exactly by running the protocols there; see
//! [`super::objective`].

use std::sync::{Arc, Mutex, PoisonError};

use lab::driver::model::Model;
use lab::driver::model::quick_measure::{Span, Stop, brief, fill, overwrite, settle};
use lab::plan::{Pace, Plan, PlannedStep};
use lab::pool::in_parallel;
use lab::progress::{Glimpse, Progress};
use lab::runner::{Outcome, Record};
use lab::wanted::TargetSetup;
use lab::{Driver as _, Error, Load, Watch};
use results::published::Part;
use results::{
    Environment, Interval, Run, Sample, StepKind, Summary, Target, TargetKind, WrittenAmount,
};
use ssd::{Drive, DriveSpec, Placement, Setup};

use super::Watcher;
use crate::validate::{Simulation, WorkList};

/// A drive of more pages than this is looked at in a larger time lapse.
const PAGES_MAX: u64 = 3_000_000;
/// Requests of a look at least, and at most.
const REQUESTS: (u64, u64) = (8_000, 60_000);
/// Requests of a step that is simulated whole, at most.
const REQUESTS_WHOLE_MAX: f64 = 100_000.0;
/// Superblocks of each module that a look writes at least.
const SUPERBLOCKS: f64 = 1.5;
/// States kept at once.
const STATES_MAX: usize = 48;

/// Finds what the jobs of a work list would measure.
pub(super) struct Shortcut<'a> {
    work_list: &'a WorkList,
    time_lapse: u32,
    threads: usize,
    /// Watcher that may end the looks.
    watcher: Option<&'a dyn Watcher>,
    states: Mutex<Vec<(Key, Arc<Drive>)>>,
}

/// Everything that the state of a drive before a look depends on.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    placement: Placement,
    before: Before,
}

/// Preparation of a drive before a look.
#[derive(Clone, Debug, PartialEq)]
enum Before {
    Nothing,
    /// The fills, in order.
    Filled(Vec<PlannedStep>),
    /// The fills, in order, and the preconditioning.
    Settled {
        fills: Vec<PlannedStep>,
        step: Box<PlannedStep>,
    },
}

/// One look that is needed.
struct Look<'a> {
    /// Index of the drive.
    drive: usize,
    /// Index of the job.
    job: usize,
    step: &'a PlannedStep,
    part: Part,
    /// True if all of the step is simulated.
    whole: bool,
    key: Key,
}

/// Ends a load that is simulated whole where the fit is stopped.
struct LookWatch<'a>(&'a Shortcut<'a>);

impl Watch for LookWatch<'_> {
    fn progress(&mut self, _: f64, _: &str) {}

    fn saw(&mut self, _: Glimpse) {}

    fn stop(&self) -> bool {
        self.0.stop()
    }
}

impl<'a> Shortcut<'a> {
    /// Creates a shortcut for drives like `spec`, with `threads` looks at once.
    pub(super) fn new(work_list: &'a WorkList, spec: &DriveSpec, threads: usize) -> Self {
        let setups = work_list.jobs().iter().map(|job| &job.setup);
        let time_lapse = setups.map(|setup| time_lapse(spec, setup)).min().unwrap_or(1);
        Self { work_list, time_lapse, threads, watcher: None, states: Mutex::default() }
    }

    /// Lets `watcher` end looks: their drives then count as not feasible.
    pub(super) fn watched_by(self, watcher: &'a dyn Watcher) -> Self {
        Self { watcher: Some(watcher), ..self }
    }

    fn stop(&self) -> bool {
        self.watcher.is_some_and(Progress::stop)
    }

    /// Time lapse of the looks.
    pub(super) const fn time_lapse(&self) -> u32 {
        self.time_lapse
    }

    /// The value of each row of the work list for each of `drives`, as [`WorkList::values`] gives
    /// it; nothing for a drive that is not feasible.
    ///
    /// # Errors
    /// Fails if a request of the model failed.
    pub(super) fn values(
        &self,
        drives: &[Option<DriveSpec>],
    ) -> Result<Vec<Option<Vec<Option<f64>>>>, Error> {
        let mut looks = Vec::new();
        let mut feasible = vec![true; drives.len()];
        for (index, spec) in drives.iter().enumerate() {
            let found = spec.as_ref().and_then(|spec| self.looks(index, spec));
            feasible[index] = found.is_some();
            looks.extend(found.unwrap_or_default());
        }
        self.settle_missing(drives, &looks)?;
        let intervals = in_parallel(self.threads, &looks, |look| self.look(drives, look));
        if self.stop() {
            return Ok(vec![None; drives.len()]);
        }
        let intervals = intervals.into_iter().collect::<Result<Vec<_>, _>>()?;
        let seen: Vec<(&Look<'_>, Interval)> = looks.iter().zip(intervals).collect();
        let values = feasible.iter().enumerate().map(|(drive, feasible)| {
            let runs = self.work_list.jobs().iter().enumerate();
            let runs: Vec<Run> = runs
                .map(|(job, it)| {
                    let of = |(look, _): &&(&Look<'_>, _)| look.drive == drive && look.job == job;
                    run(it, seen.iter().filter(of))
                })
                .collect();
            feasible.then(|| self.work_list.read(&runs))
        });
        Ok(values.collect())
    }

    /// Looks that the drive numbered `drive` needs; absent where it cannot be built.
    fn looks(&self, drive: usize, spec: &DriveSpec) -> Option<Vec<Look<'_>>> {
        let mut looks = Vec::new();
        for (job, it) in self.work_list.jobs().iter().enumerate() {
            let placement = Placement::new(spec, &self.setup(it)).ok()?;
            for (step, part) in self.work_list.needs(job) {
                let before = before(&it.plan, step, part);
                let whole = part == Part::Whole && self.is_seen_whole(job, step, &before);
                let key = Key { placement: placement.clone(), before };
                looks.push(Look { drive, job, step, part, whole, key });
            }
        }
        Some(looks)
    }

    /// True if all of `step` of the job numbered `job` is simulated: where the drive was not
    /// brought to a steady state, what is measured depends on how much was written since, and the
    /// figures say that the step has few requests.
    fn is_seen_whole(&self, job: usize, step: &PlannedStep, before: &Before) -> bool {
        let is_constant = matches!(step.pace, None | Some(Pace::Fixed(_))) && step.replay.is_none();
        let span_s = (step.ramp_s + step.duration_s) / f64::from(self.time_lapse);
        let requests = self.work_list.rate_iops(job, &step.id).map(|iops| iops * span_s);
        !matches!(before, Before::Settled { .. })
            && is_constant
            && requests.is_some_and(|requests| requests <= REQUESTS_WHOLE_MAX)
    }

    /// Placement of data in `spec`, job by job; absent where it cannot be built.
    pub(super) fn placements(&self, spec: &DriveSpec) -> Option<Vec<Placement>> {
        let jobs = self.work_list.jobs().iter();
        jobs.map(|job| Placement::new(spec, &self.setup(job)).ok()).collect()
    }

    fn setup(&self, job: &Simulation) -> Setup {
        TargetSetup { time_lapse: self.time_lapse, ..job.setup.clone() }.with_seed(job.plan.seed)
    }

    /// Brings drives into the states that `looks` need and that are not kept yet.
    fn settle_missing(
        &self,
        drives: &[Option<DriveSpec>],
        looks: &[Look<'_>],
    ) -> Result<(), Error> {
        let mut missing: Vec<&Look<'_>> = Vec::new();
        for look in looks {
            let known = missing.iter().any(|other| other.key == look.key);
            if !known && self.state(&look.key).is_none() {
                missing.push(look);
            }
        }
        let settled = in_parallel(self.threads, &missing, |look| {
            let job = &self.work_list.jobs()[look.job];
            // What is written in place is in no other state afterwards.
            let in_place = look.key.placement.pages().is_none();
            let before = if in_place { &Before::Nothing } else { &look.key.before };
            let made = (spec_of(drives, look), &self.setup(job));
            settled(made, before, job.plan.seed, &|| self.stop())
        });
        if self.stop() {
            return Ok(());
        }
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let surplus = (states.len() + missing.len()).saturating_sub(STATES_MAX);
        let needed = |key: &Key| looks.iter().any(|look| look.key == *key);
        let mut dropped = 0;
        states.retain(|(key, _)| {
            let drop = dropped < surplus && !needed(key);
            dropped += usize::from(drop);
            !drop
        });
        for (look, drive) in missing.into_iter().zip(settled) {
            states.push((look.key.clone(), Arc::new(drive?)));
        }
        Ok(())
    }

    fn state(&self, key: &Key) -> Option<Arc<Drive>> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.iter().find(|(known, _)| known == key).map(|(_, drive)| Arc::clone(drive))
    }

    fn look(&self, drives: &[Option<DriveSpec>], look: &Look<'_>) -> Result<Interval, Error> {
        if self.stop() {
            return Ok(Interval::default());
        }
        let job = &self.work_list.jobs()[look.job];
        let (spec, setup) = (spec_of(drives, look), self.setup(job));
        let state = self.state(&look.key).expect("settled before");
        let mut drive = state.retimed(spec, &setup).expect("its key says that it fits");
        if look.whole {
            let mut model = Model::in_state(spec.clone(), setup, drive);
            let load = whole_load(look.step, job.plan.seed_of(look.step));
            let loaded = model.load(&load, &mut LookWatch(self))?;
            return Ok(loaded.intervals.into_iter().next().unwrap_or_default());
        }
        brief(&mut drive, &load(look.step, job.plan.seed), span(spec), &|| self.stop())
    }
}

fn spec_of<'a>(drives: &'a [Option<DriveSpec>], look: &Look<'_>) -> &'a DriveSpec {
    drives[look.drive].as_ref().expect("only drives that can be built are looked at")
}

/// A larger time lapse than the drive's own where that makes it small enough to copy often.
///
/// The double of it must be feasible too, so that there is room for drives with less to spare.
fn time_lapse(spec: &DriveSpec, setup: &TargetSetup) -> u32 {
    let pages = |k| {
        let setup = TargetSetup { time_lapse: k, ..setup.clone() }.with_seed(0);
        Placement::new(spec, &setup).ok().and_then(|placement| placement.pages())
    };
    let mut k = spec.time_lapse_default();
    while pages(k).is_some_and(|pages| pages > PAGES_MAX) && pages(k.saturating_mul(4)).is_some() {
        k *= 2;
    }
    k
}

/// Length of a look, so that garbage collection is seen at work.
fn span(spec: &DriveSpec) -> Span {
    let geometry = &spec.geometry;
    let superblock_kib = u64::from(geometry.dies_per_bank)
        * u64::from(geometry.planes_per_die)
        * u64::from(geometry.pages_per_erase_block)
        * u64::from(geometry.page_kib);
    let kib = (superblock_kib * u64::from(spec.modules.count)) as f64 * SUPERBLOCKS;
    let (requests_min, requests_max) = REQUESTS;
    Span { requests_min, requests_max, written_min: bytes(kib * 1024.0) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive size")]
fn bytes(amount: f64) -> u64 {
    amount as u64
}

/// Preparation that `plan` gives the drive before the `part` of `step`.
fn before(plan: &Plan, step: &PlannedStep, part: Part) -> Before {
    let of = |kind| {
        let steps = plan.steps.iter();
        let steps = steps.filter(move |other| other.suite == step.suite && other.kind == kind);
        // Loads of one workload leave the same state, whatever their threads.
        let unnamed = |step: &PlannedStep| PlannedStep {
            id: String::new(),
            suite: String::new(),
            suite_title: String::new(),
            ..step.clone()
        };
        steps.map(unnamed)
    };
    let fills: Vec<PlannedStep> = of(StepKind::Fill).collect();
    match of(StepKind::Precondition).next() {
        Some(step) if part != Part::Burst => Before::Settled { fills, step: Box::new(step) },
        _ if fills.is_empty() => Before::Nothing,
        _ => Before::Filled(fills),
    }
}

fn settled(
    (spec, setup): (&DriveSpec, &Setup),
    before: &Before,
    seed: u64,
    stop: Stop<'_>,
) -> Result<Drive, Error> {
    let mut drive = Drive::new(spec, setup).expect("its placement was found feasible");
    match before {
        Before::Nothing => {}
        Before::Filled(fills) => fill_with(&mut drive, fills, seed, stop)?,
        Before::Settled { fills, step } => {
            fill_with(&mut drive, fills, seed, stop)?;
            settle(&mut drive, &load(step, seed), stop)?;
        }
    }
    Ok(drive)
}

fn fill_with(
    drive: &mut Drive,
    fills: &[PlannedStep],
    seed: u64,
    stop: Stop<'_>,
) -> Result<(), Error> {
    for step in fills {
        if step.is_fill_in_order() {
            fill(drive)?;
        } else {
            // A fill has no threads of its own.
            let load = Load { threads: 1, queue_per_thread: 1, ..load(step, seed) };
            overwrite(drive, &load, step.fill_passes, stop)?;
        }
    }
    Ok(())
}

fn load(step: &PlannedStep, seed: u64) -> Load<'_> {
    Load {
        step: &step.id,
        workload: step.workload.as_ref().expect("a step with a load"),
        threads: step.threads,
        queue_per_thread: step.queue_per_thread,
        ramp_s: 0.0,
        duration_s: 0.0,
        interval_s: 0.0,
        rate: None,
        replay: None,
        seed,
    }
}

/// The load of `step` as the protocol has it, in one interval.
fn whole_load(step: &PlannedStep, seed: u64) -> Load<'_> {
    let rate = match &step.pace {
        Some(Pace::Fixed(rate)) => Some(*rate),
        _ => None,
    };
    Load {
        ramp_s: step.ramp_s,
        duration_s: step.duration_s,
        interval_s: step.duration_s,
        rate,
        ..load(step, seed)
    }
}

/// The looks as the run that they stand for.
fn run<'a>(job: &Simulation, seen: impl Iterator<Item = &'a (&'a Look<'a>, Interval)>) -> Run {
    let mut records: Vec<Record> = job
        .plan
        .steps
        .iter()
        .map(|step| Record::unmeasured(step, String::new(), WrittenAmount::default()))
        .collect();
    for (look, interval) in seen {
        let record = records.iter_mut().find(|record| record.step.id == look.step.id);
        let step = &mut record.expect("looks are at steps of the plan").step;
        let summary = Summary::of(std::slice::from_ref(interval));
        match look.part {
            Part::Burst => step.samples = vec![Sample::of(interval)],
            Part::Settled => step.settled = Some(summary),
            Part::Whole => step.summary = Some(summary),
        }
    }
    let outcome = Outcome {
        target: target(&job.setup),
        environment: Environment::default(),
        records: records.into_iter().enumerate().collect(),
        interrupted: false,
        spared: 0,
    };
    outcome.into_run(&job.plan, job.setup.to_string(), String::new())
}

fn target(setup: &TargetSetup) -> Target {
    Target {
        name: setup.target.clone(),
        format: setup.format.clone(),
        host: setup.host.clone(),
        time_lapse: setup.time_lapse,
        ..Target::of_kind(TargetKind::Model)
    }
}

#[cfg(test)]
mod tests;
