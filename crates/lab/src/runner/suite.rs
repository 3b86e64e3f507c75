//! One suite: purge, precondition, measure, on one driver.

use std::ops::Range;
use std::time::Instant;

use results::steady::WriteRequirement;
use results::{Environment, Steady, StepKind, Target, Warning, WarningKind};
use workload::Workload;

use super::{Assignment, Record, RunnerState, extension, write_requirement};
use crate::application::{self, ReplayHost};
use crate::driver::{LoopedLoad, RecordedLoad, only_models};
use crate::plan::{Pace, Plan, PlannedStep};
use crate::progress::{Event, Glimpse};
use crate::replay::Replay;
use crate::{Driver, Error, Fill, Load, Rate, Watch};

/// Outcome of one suite.
pub(super) struct Suite {
    pub(super) target: Target,
    pub(super) environment: Environment,
    pub(super) records: Vec<(usize, Record)>,
    pub(super) interrupted: bool,
    /// Steps of rounds that need not be measured, since those before were steady.
    pub(super) spared: usize,
}

/// Carries out the steps `range` of the plan, except those that an earlier session settled.
pub(super) fn carry_out(
    assignment: &Assignment<'_>,
    range: Range<usize>,
    state: &RunnerState<'_>,
) -> Result<Suite, Error> {
    let mut driver = (assignment.drivers)()?;
    let target = driver.target();
    // Before anything is purged.
    let replayed = assignment.plan.steps[range.clone()].iter().find(|it| it.application.is_some());
    if let Some(step) = replayed.filter(|_| !target.kind.is_model()) {
        return Err(only_models(&step.id));
    }
    let plan = assignment.plan.placed(target.user_capacity_bytes)?;
    check_loads(&plan, driver.as_ref())?;
    let kept = kept(assignment, &range, &target);
    let resumed = !kept.is_empty();
    let mut suite = Suite {
        target,
        environment: driver.environment(),
        records: kept,
        interrupted: false,
        spared: 0,
    };
    for index in range {
        let step = &plan.steps[index];
        let since = Instant::now();
        let work = assignment.plan.work_of(index);
        let mut watch =
            StepWatch { state, assignment, step, work, told: 0.0, since, glimpse: None };
        if suite.records.iter().any(|(kept, _)| *kept == index) {
            watch.pass("measured before");
            continue;
        }
        if is_spared(step, &suite.records, &suite.target) {
            watch.pass("the rounds reached steady state");
            suite.spared += 1;
            continue;
        }
        if state.stop() {
            suite.interrupted = true;
            break;
        }
        let rate = step.rate(|id| reached(&suite.records, id))?;
        let required = write_requirement::of((index, step), &suite.records, &suite.target);
        let mut record = perform(
            driver.as_mut(),
            (assignment.plan.seed_of(step), assignment.plan.seed),
            (step, rate, &required),
            &mut watch,
        )?;
        if resumed && step.kind == StepKind::Precondition {
            record.warnings.push(repeated(step));
        }
        if state.stop() && record.is_partial(step) {
            record.warnings.push(stopped(step, &record));
            suite.records.push((index, record));
            suite.interrupted = true;
            break;
        }
        assignment.step_store.keep(index, &record)?;
        watch.finish("");
        suite.records.push((index, record));
    }
    suite.environment = driver.environment();
    suite.records.sort_by_key(|(index, _)| *index);
    Ok(suite)
}

/// Checks every load of `plan`, also those of later suites, so that none fails after hours. Traces
/// are read when their turn comes.
fn check_loads(plan: &Plan, driver: &dyn Driver) -> Result<(), Error> {
    let loads = plan.steps.iter().filter(|step| step.threads > 0 && step.replay.is_none());
    for (step, workload) in loads.filter_map(|step| Some((step, step.workload.as_ref()?))) {
        // Of a rate that a step before decides, only the gaps are known.
        let rate = step.rate(|_| Some(1.0))?;
        driver.check(&load_of(step, workload, rate, None, plan.seed_of(step)))?;
    }
    Ok(())
}

/// Records that an earlier session settled in the steps `range`.
///
/// All of it when nothing is missing. Otherwise the state of the drive is not assumed to have
/// lasted: a model, whose every bit follows from the seed, starts the suite again; on a real drive
/// purge and preconditioning are repeated and finished measurements are kept.
fn kept(
    assignment: &Assignment<'_>,
    range: &Range<usize>,
    target: &Target,
) -> Vec<(usize, Record)> {
    let finished = || assignment.finished.iter().filter(|(index, _)| range.contains(index));
    let records: Vec<(usize, Record)> = finished().cloned().collect();
    let is_spared = |index: &usize| is_spared(&assignment.plan.steps[*index], &records, target);
    let spared = range.clone().filter(is_spared);
    if records.len() + spared.count() == range.len() {
        return records;
    }
    if !target.kind.outlives_the_program() {
        return Vec::new();
    }
    // Rounds follow each other without a purge between them, or they are none.
    let measured = |index: usize| {
        let step = &assignment.plan.steps[index];
        step.kind == StepKind::Measure && step.round.is_none()
    };
    finished().filter(|(index, _)| measured(*index)).cloned().collect()
}

/// True if `step` is of a round after those that reached steady state.
fn is_spared(step: &PlannedStep, records: &[(usize, Record)], target: &Target) -> bool {
    let Some(round) = step.round else { return false };
    let of_rounds = records.iter().map(|(_, record)| &record.step);
    let steady = Steady::of_rounds(of_rounds.filter(|step| step.round.is_some()), target);
    steady.is_some_and(|steady| steady.achieved && round > steady.rounds)
}

/// Requests a second that the step named `id` completed.
fn reached(records: &[(usize, Record)], id: &str) -> Option<f64> {
    let record = records.iter().map(|(_, record)| record).find(|record| record.step.id == id)?;
    Some(record.step.summary.as_ref()?.iops)
}

fn perform(
    driver: &mut dyn Driver,
    (seed, trace_seed): (u64, u64),
    (step, rate, required): (&PlannedStep, Option<Rate>, &WriteRequirement),
    watch: &mut StepWatch<'_>,
) -> Result<Record, Error> {
    if let Some(application) = &step.application {
        let (recording, copies) = application::copied(application, step.threads.into())
            .ok_or_else(|| application::no_recording(&application.name, step.threads.into()))?;
        let host = ReplayHost { copies, ..ReplayHost::default() };
        let looped = looped(step);
        let load = RecordedLoad { step: &step.id, recording: &recording, host: &host, looped };
        let replayed = driver.replay(&load, watch)?;
        return Ok(Record::of_application(step, required, application, &recording, replayed));
    }
    let Some(workload) = &step.workload else {
        watch.progress(0.0, "purging");
        let purged = WriteRequirement { before_bytes: 0.0, ..*required };
        return Ok(Record::unmeasured(
            step,
            driver.purge_watched(watch)?,
            purged.written(0.0, 0.0),
        ));
    };
    if step.kind == StepKind::Fill {
        let how = driver
            .fill(&Fill { step: &step.id, workload, passes: step.fill_passes.max(1) }, watch)?;
        return Ok(Record::unmeasured(step, how, write_requirement::filled(required, step)));
    }
    let trace = step
        .replay
        .as_ref()
        .map(|replay| replay.trace(&step.id, step.workload.as_ref(), trace_seed))
        .transpose()?;
    let replay = trace.as_ref().zip(step.replay.as_ref()).map(|(trace, planned)| Replay {
        trace,
        addresses: planned.addresses,
        speed: step.pace.as_ref().and_then(Pace::speed),
    });
    if let Some(replay) = &replay {
        replay.check()?;
    }
    let load = load_of(step, workload, rate, replay, seed);
    let loaded = driver.load(&load, watch)?;
    let loaded = extension::extended(driver, &load, (step, required), loaded, watch)?;
    let timed = replay.and_then(|replay| replay.rate());
    let asked = rate.map(|rate| rate.iops).or(timed);
    Ok(Record::of_load(step, driver.target().devices, required, asked, loaded))
}

/// The load of `step`, which has `workload`.
fn load_of<'a>(
    step: &'a PlannedStep,
    workload: &'a Workload,
    rate: Option<Rate>,
    replay: Option<Replay<'a>>,
    seed: u64,
) -> Load<'a> {
    Load {
        step: &step.id,
        workload,
        threads: step.threads,
        queue_per_thread: step.queue_per_thread,
        ramp_s: step.ramp_s,
        duration_s: step.duration_s,
        interval_s: step.interval_s,
        rate,
        replay,
        seed,
    }
}

/// The load of one of several drives, interval by interval; none in steps of other kinds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of intervals, at most 1000 as a protocol is read"
)]
fn looped(step: &PlannedStep) -> Option<LoopedLoad> {
    let node = step.node?;
    Some(LoopedLoad {
        intervals: (step.duration_s / step.interval_s).round() as u32,
        interval_s: step.interval_s,
        begins_at: f64::from(node.number - 1) / f64::from(node.count),
    })
}

/// Passes what a driver says of one step on, as part of the whole.
struct StepWatch<'a> {
    state: &'a RunnerState<'a>,
    assignment: &'a Assignment<'a>,
    step: &'a PlannedStep,
    /// Its work, see [`crate::plan::Plan::work_of`].
    work: f64,
    told: f64,
    /// Time of the last report.
    since: Instant,
    glimpse: Option<Glimpse>,
}

impl StepWatch<'_> {
    fn finish(&mut self, text: &str) {
        let spent_s = self.spent_s();
        self.tell(1.0, Some(spent_s), text, true);
    }

    /// The step need not be carried out.
    fn pass(&mut self, text: &str) {
        self.tell(1.0, None, text, true);
    }

    /// Wall time since something was told last, in seconds.
    fn spent_s(&mut self) -> f64 {
        let before = std::mem::replace(&mut self.since, Instant::now());
        self.since.duration_since(before).as_secs_f64()
    }

    fn tell(&mut self, step_done: f64, spent_s: Option<f64>, text: &str, step_finished: bool) {
        let by = (step_done - self.told).max(0.0);
        self.told += by;
        let passed = (by * self.step.length_s(), by * self.work);
        let (done, left_s) = self.state.tally.add(passed, spent_s);
        let step_done = self.told;
        let Self { state, assignment, step, glimpse, .. } = *self;
        let run = assignment.label;
        let event = Event { run, step, step_done, step_finished, done, left_s, text, glimpse };
        assignment.step_store.follow(&event);
        state.progress.moved(&event);
    }
}

impl Watch for StepWatch<'_> {
    fn progress(&mut self, done: f64, text: &str) {
        let spent_s = self.spent_s();
        self.tell(done, Some(spent_s), text, false);
    }

    fn saw(&mut self, glimpse: Glimpse) {
        self.glimpse = Some(glimpse);
    }

    fn stop(&self) -> bool {
        self.state.stop()
    }
}

fn repeated(step: &PlannedStep) -> Warning {
    Warning {
        kind: WarningKind::Interrupted,
        step: step.id.clone(),
        text: "the suite was measured in two sessions; purge and preconditioning were repeated \
               before the second"
            .into(),
        remedy: "repeat the suite in one session if figures of the two disagree".into(),
    }
}

fn stopped(step: &PlannedStep, record: &Record) -> Warning {
    let (done_s, asked_s) = (record.step.duration_s, step.duration_s);
    Warning {
        kind: WarningKind::Interrupted,
        step: step.id.clone(),
        text: format!("stopped after {done_s:.0} s of {asked_s:.0} s"),
        remedy: "`floatgate review --resume` repeats this step and continues".into(),
    }
}

#[cfg(test)]
mod tests;
