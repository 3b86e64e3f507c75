//! Suites on mocks: what is kept of a step that was stopped, and what a second session knows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use results::TargetKind;
use workload::catalogue;

use super::*;
use crate::driver::LoadResult;
use crate::driver::mock::{CommandLog, Mock};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::runner::{Outcome, StepStore};
use crate::{Kind, runner};

fn plan(protocol: &str, seed: u64) -> Plan {
    let protocol = catalogue::find_protocol(protocol).unwrap();
    Plan::new(&protocol, &catalogue::workloads(), seed).unwrap()
}

/// A step of a load with its seed and the rate that was asked for.
type Asked = (String, u64, Option<f64>);

/// A mock that notes what it is asked.
struct Noting {
    mock: Mock,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Driver for Noting {
    fn target(&self) -> Target {
        self.mock.target()
    }

    fn environment(&self) -> Environment {
        self.mock.environment()
    }

    fn purge(&mut self) -> Result<String, Error> {
        self.mock.purge()
    }

    fn fill(&mut self, fill: &Fill<'_>, watch: &mut dyn Watch) -> Result<String, Error> {
        self.mock.fill(fill, watch)
    }

    fn load(&mut self, load: &Load<'_>, watch: &mut dyn Watch) -> Result<LoadResult, Error> {
        let rate = load.rate.map(|rate| rate.iops);
        self.asked.lock().unwrap().push((load.step.to_owned(), load.seed, rate));
        self.mock.load(load, watch)
    }
}

/// A mock on a target of sectors of 4096 bytes.
struct Coarse(Mock);

impl Driver for Coarse {
    fn target(&self) -> Target {
        self.0.target()
    }

    fn environment(&self) -> Environment {
        self.0.environment()
    }

    fn check(&self, load: &Load<'_>) -> Result<(), Error> {
        let fits = load.workload.sizes.iter().all(|size| size.bytes >= 4096);
        fits.then_some(()).ok_or_else(|| Error::new(Kind::Input, format!("{}: sector", load.step)))
    }

    fn purge(&mut self) -> Result<String, Error> {
        panic!("a load of a later suite cannot be carried out");
    }

    fn fill(&mut self, fill: &Fill<'_>, watch: &mut dyn Watch) -> Result<String, Error> {
        self.0.fill(fill, watch)
    }

    fn load(&mut self, load: &Load<'_>, watch: &mut dyn Watch) -> Result<LoadResult, Error> {
        self.0.load(load, watch)
    }
}

#[test]
fn a_load_that_cannot_be_carried_out_is_told_before_the_first_purge() {
    let (plan, told) = (plan("snia-pts", 1), CommandLog::default());
    let drivers = || -> Result<Box<dyn Driver>, Error> {
        Ok(Box::new(Coarse(Mock::new(TargetKind::BlockDevice, &told))))
    };
    let assignment = Assignment {
        label: "",
        plan: &plan,
        drivers: &drivers,
        step_store: &runner::NoStepStore,
        finished: Vec::new(),
    };
    let progress = Observer::default();
    let error = runner::carry_out(&[assignment], 1, &progress).unwrap_err();
    assert_eq!(error.to_string(), "iops/round-01/512b-rand-100-0/T4Q32: sector");
}

/// Stops once `done` of `step` is over; notes what is told of steps that are finished.
#[derive(Default)]
struct Observer {
    stop_at: Option<(&'static str, f64)>,
    stopped: AtomicBool,
    finished: Mutex<Vec<(String, String)>>,
}

impl Observer {
    fn stopping_at(step: &'static str, done: f64) -> Self {
        Self { stop_at: Some((step, done)), ..Self::default() }
    }

    /// Texts that are told of steps which need not be carried out.
    fn passed(&self) -> Vec<(String, String)> {
        let finished = self.finished.lock().unwrap();
        finished.iter().filter(|(_, text)| !text.is_empty()).cloned().collect()
    }
}

impl Progress for Observer {
    fn moved(&self, event: &Event<'_>) {
        if event.step_finished {
            self.finished.lock().unwrap().push((event.step.id.clone(), event.text.to_owned()));
        }
        let is_at = |(step, done)| event.step.id == step && event.step_done >= done - 1e-9;
        if self.stop_at.is_some_and(is_at) {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    fn stop(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Keeps the indices of steps, and takes no more than `room` of them.
struct Shelf {
    room: usize,
    kept: Mutex<Vec<usize>>,
}

impl Shelf {
    fn with_room(room: usize) -> Self {
        Self { room, kept: Mutex::default() }
    }
}

impl StepStore for Shelf {
    fn keep(&self, index: usize, _: &Record) -> Result<(), Error> {
        let mut kept = self.kept.lock().unwrap();
        if kept.len() == self.room {
            return Err(Error::new(Kind::Io, "writing steps.jsonl: no space left on the device"));
        }
        kept.push(index);
        Ok(())
    }
}

/// One session, and what it asked of its driver.
struct Session {
    outcome: Result<Outcome, Error>,
    asked: Vec<Asked>,
}

impl Session {
    fn records(self) -> Vec<(usize, Record)> {
        self.outcome.unwrap().records
    }
}

fn session(
    plan: &Plan,
    finished: Vec<(usize, Record)>,
    progress: &dyn Progress,
    step_store: &dyn StepStore,
) -> Session {
    let asked = Arc::default();
    let drivers = || -> Result<Box<dyn Driver>, Error> {
        let mock = Mock::new(TargetKind::File, &CommandLog::default());
        Ok(Box::new(Noting { mock, asked: Arc::clone(&asked) }))
    };
    let assignment = Assignment { label: "mock", plan, drivers: &drivers, step_store, finished };
    let outcome = runner::carry_out(&[assignment], 1, progress).map(|mut all| all.remove(0));
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    Session { outcome, asked }
}

fn watched(plan: &Plan, finished: Vec<(usize, Record)>, progress: &dyn Progress) -> Session {
    session(plan, finished, progress, &runner::NoStepStore)
}

#[test]
fn a_step_that_was_stopped_midway_shows_what_was_measured_and_is_not_kept() {
    let (plan, shelf) = (plan("enterprise", 1), Shelf::with_room(99));
    let observer = Observer::stopping_at("4k/precondition", 0.5);
    let outcome = session(&plan, Vec::new(), &observer, &shelf).outcome.unwrap();
    assert!(outcome.interrupted);
    let (index, record) = outcome.records.last().unwrap();
    let (planned, found) = (&plan.steps[*index], &record.step);
    assert_eq!(found.id, "4k/precondition");
    assert!((found.duration_s - planned.duration_s / 2.0).abs() <= planned.interval_s);
    assert!(found.summary.is_some(), "what was measured is there");
    assert_eq!(*shelf.kept.lock().unwrap(), [0], "so that --resume repeats it");
    let stopped: Vec<&Warning> =
        record.warnings.iter().filter(|it| it.kind == WarningKind::Interrupted).collect();
    let text = format!("stopped after {:.0} s of {:.0} s", found.duration_s, planned.duration_s);
    assert_eq!(stopped.len(), 1);
    assert_eq!((stopped[0].text.as_str(), stopped[0].step.as_str()), (&*text, "4k/precondition"));
    assert!(stopped[0].remedy.contains("--resume"));
}

#[test]
fn a_stop_with_the_last_interval_loses_nothing_of_the_step() {
    let (plan, shelf) = (plan("enterprise", 1), Shelf::with_room(99));
    let observer = Observer::stopping_at("4k/precondition", 1.0);
    let outcome = session(&plan, Vec::new(), &observer, &shelf).outcome.unwrap();
    assert!(outcome.interrupted);
    assert_eq!(*shelf.kept.lock().unwrap(), [0, 1]);
    let record = &outcome.records.last().unwrap().1;
    assert!(!record.warnings.iter().any(|it| it.kind == WarningKind::Interrupted));
}

#[test]
fn a_step_that_cannot_be_kept_ends_the_run_at_once() {
    let plan = plan("enterprise", 1);
    let session = session(&plan, Vec::new(), &Observer::default(), &Shelf::with_room(2));
    let error = session.outcome.map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "writing steps.jsonl: no space left on the device");
    let told: Vec<&str> = session.asked.iter().map(|(step, ..)| step.as_str()).collect();
    assert_eq!(told, ["4k/precondition", plan.steps[2].id.as_str()], "nothing came after it");
}

#[test]
fn steps_that_are_passed_over_say_why() {
    let plan = plan("enterprise", 1);
    let first = Observer::stopping_at("4k/4k-rand-write/T16Q16", 1.0);
    let records = watched(&plan, Vec::new(), &first).records();
    assert_eq!(first.passed(), [], "everything was carried out");
    let second = Observer::default();
    watched(&plan, records, &second);
    let measured = ("4k/4k-rand-write/T16Q16".to_owned(), "measured before".to_owned());
    assert_eq!(second.passed(), [measured]);
    assert_eq!(second.finished.lock().unwrap().len(), plan.steps.len(), "each is told once");
}

#[test]
fn every_step_has_a_seed_of_its_own_that_a_second_session_repeats() {
    let seeds = |seed| {
        let asked = watched(&plan("enterprise", seed), Vec::new(), &Observer::default()).asked;
        asked.into_iter().map(|(step, seed, _)| (step, seed)).collect::<Vec<_>>()
    };
    let found = seeds(7);
    assert_eq!(found, seeds(7));
    assert!(found.iter().zip(seeds(8)).all(|(one, other)| one.1 != other.1));
    let mut distinct: Vec<u64> = found.iter().map(|(_, seed)| *seed).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), found.len());
}

/// A plan of the catalogue with loads at shares of a rate, of its first suite alone.
fn curve() -> Plan {
    let protocols = catalogue::protocols();
    let plans = protocols.iter().map(|it| plan(&it.name, 1));
    let of_share = |step: &PlannedStep| matches!(step.pace, Some(Pace::Share { .. }));
    let mut plan = plans.into_iter().find(|it| it.steps.iter().any(of_share)).unwrap();
    let suite = plan.steps.iter().find(|step| of_share(step)).unwrap().suite.clone();
    plan.steps.retain(|step| step.suite == suite);
    plan
}

#[test]
fn a_share_of_a_rate_is_of_what_was_reached_in_whichever_session_that_was() {
    let plan = curve();
    let shares = |asked: &[Asked]| -> Vec<(String, f64)> {
        let rated = asked.iter().filter_map(|(step, _, rate)| Some((step.clone(), (*rate)?)));
        rated.collect()
    };
    let whole = watched(&plan, Vec::new(), &Observer::default());
    let at_once = shares(&whole.asked);
    assert!(!at_once.is_empty());
    let records = whole.records();
    for (name, iops) in &at_once {
        let step = plan.steps.iter().find(|step| step.id == *name).unwrap();
        let Some(Pace::Share { of, percent, .. }) = &step.pace else { panic!("{name}") };
        let reached = reached(&records, of).unwrap();
        assert!((iops / (reached * percent / 100.0) - 1.0).abs() < 1e-9, "{name}: {iops}");
    }
    // All but the rated loads were measured in a session before.
    let is_rated = |index: usize| plan.steps[index].pace.is_some();
    let before = records.into_iter().filter(|(index, _)| !is_rated(*index)).collect();
    assert_eq!(shares(&watched(&plan, before, &Observer::default()).asked), at_once);
}

#[test]
fn a_share_of_a_step_that_completed_nothing_is_an_error() {
    let mut plan = curve();
    let of =
        plan.steps.iter().find_map(|step| step.pace.as_ref()?.depends_on()).unwrap().to_owned();
    plan.steps.iter_mut().find(|step| step.id == of).unwrap().interval_s = 1e9;
    let failed = watched(&plan, Vec::new(), &Observer::default()).outcome.map(|_| ()).unwrap_err();
    let said = format!("a share of {of}, which completed no request");
    assert!(failed.to_string().ends_with(&said), "{failed}");
    assert_eq!(failed.remedy(), "measure for longer");
}
