//! The protocol's promises, on a driver that only remembers what it was told.

use std::sync::atomic::{AtomicUsize, Ordering};

use lab::Bytes;
use lab::driver::mock::{CommandLog, Mock};
use lab::plan::{Plan, PlannedStep};
use lab::progress::{Event, Progress, SilentProgress};
use lab::results::{StepKind, TargetKind, WarningKind};
use lab::runner::{Assignment, NoStepStore, Outcome, Record, carry_out};
use lab::workload::catalogue;
use lab::{Driver, Error};

fn plan(protocol: &str) -> Plan {
    let protocol = catalogue::find_protocol(protocol).expect("the catalogue has it");
    Plan::new(&protocol, &catalogue::workloads(), 1).expect("its workloads are there")
}

/// Carries `plan` out on mocks of `kind`, with `finished` from an earlier session.
fn carried_out(
    plan: &Plan,
    kind: TargetKind,
    finished: Vec<(usize, Record)>,
    progress: &dyn Progress,
) -> (Outcome, Vec<String>) {
    let told = CommandLog::default();
    let outcome = on_mock(plan, &Mock::new(kind, &told), finished, progress);
    (outcome, told.all())
}

/// Carries `plan` out on copies of `mock`, one for each suite.
fn on_mock(
    plan: &Plan,
    mock: &Mock,
    finished: Vec<(usize, Record)>,
    progress: &dyn Progress,
) -> Outcome {
    let drivers = || -> Result<Box<dyn Driver>, Error> { Ok(Box::new(mock.clone())) };
    let assignment =
        Assignment { label: "mock", plan, drivers: &drivers, step_store: &NoStepStore, finished };
    carry_out(&[assignment], 1, progress).expect("a mock does not fail").remove(0)
}

/// Stops after so many steps.
struct StopAfterSteps {
    left: AtomicUsize,
}

impl StopAfterSteps {
    fn new(steps: usize) -> Self {
        Self { left: AtomicUsize::new(steps) }
    }
}

impl Progress for StopAfterSteps {
    fn moved(&self, event: &Event<'_>) {
        if event.step_finished {
            let _ = self
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        }
    }

    fn stop(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

#[test]
fn each_suite_is_purged_once_preconditioned_once_and_then_measured() {
    let plan = plan("enterprise");
    let (_, told) = carried_out(&plan, TargetKind::Model, Vec::new(), &SilentProgress);
    let expected: Vec<&str> = plan
        .steps
        .iter()
        .map(|step| if step.kind == StepKind::Purge { "purge" } else { step.id.as_str() })
        .collect();
    assert_eq!(told, expected);
    assert_eq!(told.iter().filter(|what| *what == "purge").count(), 4);
    assert_eq!(told.iter().filter(|what| what.ends_with("/precondition")).count(), 4);
    assert_eq!(told.len(), 4 + 4 + 2 + 3 * 16);
}

#[test]
fn a_suite_that_says_so_is_filled_between_purge_and_the_first_load() {
    let mut protocol = catalogue::find_protocol("quick").expect("the catalogue has it");
    protocol.suites.truncate(1);
    protocol.suites[0].fill = Some("128k-seq-write".into());
    protocol.suites[0].precondition = None;
    let plan = Plan::new(&protocol, &catalogue::workloads(), 1).expect("its workloads are there");
    let (_, told) = carried_out(&plan, TargetKind::Model, Vec::new(), &SilentProgress);
    assert_eq!(told[..3], ["purge", "4k/fill", "4k/4k-rand-write/T2Q2"]);
}

#[test]
fn nothing_comes_between_preconditioning_and_measuring() {
    let plan = plan("enterprise");
    let (_, told) = carried_out(&plan, TargetKind::Model, Vec::new(), &SilentProgress);
    for (index, what) in told.iter().enumerate() {
        if what == "purge" {
            assert!(told[index + 1].ends_with("/precondition"));
        } else if let Some(suite) = what.strip_suffix("/precondition") {
            assert!(told[index + 1].starts_with(&format!("{suite}/")));
        }
    }
}

#[test]
fn a_stop_ends_before_the_next_step_and_keeps_what_was_finished() {
    let plan = plan("enterprise");
    let stop = StopAfterSteps::new(3);
    let (outcome, told) = carried_out(&plan, TargetKind::Model, Vec::new(), &stop);
    assert!(outcome.interrupted);
    assert_eq!(told.len(), 3);
    assert_eq!(outcome.records.len(), 3);
}

#[test]
fn a_real_drive_is_preconditioned_again_and_keeps_what_was_measured() {
    let plan = plan("enterprise");
    let (first, _) = carried_out(&plan, TargetKind::File, Vec::new(), &StopAfterSteps::new(3));
    let (second, told) = carried_out(&plan, TargetKind::File, first.records, &SilentProgress);
    assert_eq!(told[..2], ["purge", "4k/precondition"]);
    assert_eq!(told[2], plan.steps[3].id, "the third step was measured before");
    assert_eq!(second.records.len(), plan.steps.len());
    let repeated = &second.records[1].1.warnings;
    assert!(repeated.iter().any(|warning| warning.kind == WarningKind::Interrupted));
}

#[test]
fn a_suite_that_was_finished_is_not_touched_again() {
    let plan = plan("enterprise");
    let suite = plan.suites()[0].clone();
    for kind in [TargetKind::Model, TargetKind::BlockDevice] {
        let stop = StopAfterSteps::new(suite.len());
        let (first, _) = carried_out(&plan, kind, Vec::new(), &stop);
        let (second, told) = carried_out(&plan, kind, first.records, &SilentProgress);
        assert!(told.iter().all(|what| !what.starts_with("4k/")), "{told:?}");
        assert_eq!(second.records.len(), plan.steps.len());
    }
}

#[test]
fn a_model_begins_an_unfinished_suite_again() {
    let plan = plan("enterprise");
    let stop = StopAfterSteps::new(3);
    let (first, _) = carried_out(&plan, TargetKind::Model, Vec::new(), &stop);
    let (second, told) = carried_out(&plan, TargetKind::Model, first.records, &SilentProgress);
    assert_eq!(told.len(), plan.steps.len());
    assert!(second.records.iter().all(|(_, record)| record.warnings.is_empty()));
}

/// Warnings about suites that were not preconditioned, in a run of `protocol` on a mock of `kind`.
fn unprepared(protocol: &str, kind: TargetKind) -> Vec<String> {
    let plan = plan(protocol);
    let (outcome, _) = carried_out(&plan, kind, Vec::new(), &SilentProgress);
    let warnings = outcome.into_run(&plan, "run".into(), String::new()).warnings;
    let said = warnings.into_iter().filter(|it| it.kind == WarningKind::NotPreconditioned);
    said.map(|it| format!("{}: {}", it.step, it.text)).collect()
}

#[test]
fn writes_of_a_real_drive_that_was_not_preconditioned_are_warned_of_once_a_suite() {
    let said = unprepared("iometer", TargetKind::BlockDevice);
    let plan = plan("iometer");
    let writes = |step: &PlannedStep| {
        let workload = step.workload.as_ref().filter(|_| step.kind == StepKind::Measure);
        workload.is_some_and(|it| !it.only_reads())
    };
    let suites = plan.suites().into_iter();
    let suites = suites.filter(|suite| plan.steps[suite.clone()].iter().any(writes));
    assert_eq!(said.len(), suites.count());
    let burst = "writes were measured without a preconditioning: burst rates, not steady state";
    assert!(said.iter().all(|it| it.ends_with(burst)), "{said:?}");
    for protocol in ["enterprise", "snia-pts"] {
        assert_eq!(unprepared(protocol, TargetKind::BlockDevice), Vec::<String>::new());
    }
    assert_eq!(unprepared("iometer", TargetKind::Model), Vec::<String>::new());
}

#[test]
fn a_preconditioning_that_wrote_less_than_it_addresses_is_too_short() {
    let (plan, told) = (plan("quick"), CommandLog::default());
    let mock = Mock::new(TargetKind::BlockDevice, &told).with_latency_ns(200_000_000);
    let outcome = on_mock(&plan, &mock, Vec::new(), &SilentProgress);
    let run = outcome.into_run(&plan, "run".into(), String::new());
    let said = run.warnings.iter().filter(|it| it.kind == WarningKind::NotPreconditioned);
    let said: Vec<&str> = said.map(|it| it.text.as_str()).collect();
    // 256 outstanding at 200 ms for 90 s, 4 KiB each.
    let (written, whole) = (Bytes(256 * 5 * 90 * 4096), Bytes(1_000_000_000));
    let expected = format!(
        "IOPS and latency met the limits of the steady-state rule, but the load had written 47.2 % \
         of what it addresses ({written} of {whole}): a burst, not steady state"
    );
    assert_eq!(said, [expected.as_str(), expected.as_str()]);
    let steady = run.steps.iter().filter_map(|step| step.steady.as_ref());
    assert!(steady.clone().count() == 2 && steady.into_iter().all(|steady| !steady.achieved));
}

/// The latency test of the SNIA protocol: up to 25 rounds of nine cells, one of them tracked.
fn rounds() -> Plan {
    let mut protocol = catalogue::find_protocol("snia-pts").expect("the catalogue has it");
    protocol.suites.retain(|suite| suite.name == "lat");
    Plan::new(&protocol, &catalogue::workloads(), 1).expect("its workloads are there")
}

fn in_round(told: &[String], round: u32) -> usize {
    told.iter().filter(|what| what.starts_with(&format!("lat/round-{round:02}/"))).count()
}

#[test]
fn rounds_end_with_the_fifth_that_holds_still_and_what_follows_is_measured() {
    let plan = rounds();
    let (outcome, told) = carried_out(&plan, TargetKind::Model, Vec::new(), &SilentProgress);
    assert_eq!(told[..3], ["purge", "lat/fill", "lat/round-01/8k-rand-100-0/T1Q1"]);
    assert_eq!((1..=25).map(|round| in_round(&told, round)).sum::<usize>(), 5 * 9);
    assert_eq!(told.len(), 2 + 5 * 9 + 1);
    assert_eq!(told.last().unwrap(), "lat/4k-rand-write/T1Q1");
    assert_eq!((outcome.interrupted, outcome.spared), (false, 20 * 9));
    let run = outcome.into_run(&plan, "run".into(), String::new());
    assert_eq!(run.steps_planned as usize, run.steps.len(), "spared steps are not missing");
    assert_eq!(run.warnings, []);
}

#[test]
fn rounds_that_never_hold_still_are_all_measured_and_warned_of() {
    let (plan, told) = (rounds(), CommandLog::default());
    let mock = Mock::new(TargetKind::Model, &told).slowing_by(5_000);
    let outcome = on_mock(&plan, &mock, Vec::new(), &SilentProgress);
    assert_eq!((told.all().len(), outcome.spared), (plan.steps.len(), 0));
    let run = outcome.into_run(&plan, "run".into(), String::new());
    let warning = run.warnings.iter().find(|it| it.kind == WarningKind::NotSteady).unwrap();
    assert_eq!(warning.text, "steady state not achieved in 25 rounds");
    assert_eq!(warning.step, "lat/round-25/512b-rand-0-100/T1Q1");
}

#[test]
fn rounds_that_were_cut_short_begin_again_on_a_purged_drive() {
    let plan = rounds();
    for kind in [TargetKind::Model, TargetKind::BlockDevice] {
        let stop = StopAfterSteps::new(2 + 2 * 9 + 4);
        let (first, cut) = carried_out(&plan, kind, Vec::new(), &stop);
        assert_eq!(in_round(&cut, 3), 4);
        let (second, told) = carried_out(&plan, kind, first.records, &SilentProgress);
        assert_eq!(told[..3], ["purge", "lat/fill", "lat/round-01/8k-rand-100-0/T1Q1"]);
        assert_eq!((1..=5).map(|round| in_round(&told, round)).sum::<usize>(), 5 * 9);
        assert_eq!((second.records.len(), second.spared), (2 + 5 * 9 + 1, 20 * 9));
    }
}

#[test]
fn rounds_that_held_still_are_not_measured_again() {
    let plan = rounds();
    let (first, _) = carried_out(&plan, TargetKind::BlockDevice, Vec::new(), &SilentProgress);
    let (second, told) =
        carried_out(&plan, TargetKind::BlockDevice, first.records, &SilentProgress);
    assert_eq!(told, Vec::<String>::new());
    assert_eq!((second.records.len(), second.spared), (2 + 5 * 9 + 1, 20 * 9));
}

#[test]
fn progress_never_goes_back_and_ends_at_all_of_it() {
    struct Seen(std::sync::Mutex<Vec<f64>>);
    impl Progress for Seen {
        fn moved(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push(event.done);
        }
        fn stop(&self) -> bool {
            false
        }
    }
    let seen = Seen(std::sync::Mutex::default());
    carried_out(&plan("quick"), TargetKind::Model, Vec::new(), &seen);
    let seen = seen.0.into_inner().unwrap();
    assert!(seen.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9));
    assert!((seen.last().unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn a_failure_names_what_failed_and_nothing_follows_it() {
    let plan = plan("quick");
    let step = plan.steps[1].id.clone();
    let told = CommandLog::default();
    let drivers = || -> Result<Box<dyn Driver>, Error> {
        Ok(Box::new(Mock::new(TargetKind::File, &told).failing_at(&step)))
    };
    let assignment = Assignment {
        label: "mock",
        plan: &plan,
        drivers: &drivers,
        step_store: &NoStepStore,
        finished: Vec::new(),
    };
    let failed = carry_out(&[assignment], 1, &SilentProgress).unwrap_err();
    assert_eq!(failed.to_string(), "the mock was set up to fail");
    assert_eq!(told.all(), ["purge", step.as_str()]);
}

#[test]
fn recordings_are_refused_on_real_drives_before_anything_is_purged() {
    let plan = plan("applications");
    let told = CommandLog::default();
    let drivers = || -> Result<Box<dyn Driver>, Error> {
        Ok(Box::new(Mock::new(TargetKind::BlockDevice, &told)))
    };
    let assignment = Assignment {
        label: "mock",
        plan: &plan,
        drivers: &drivers,
        step_store: &NoStepStore,
        finished: Vec::new(),
    };
    let refused = carry_out(&[assignment], 1, &SilentProgress).unwrap_err();
    let said = "replays the recording of an application, which only models do";
    assert!(refused.to_string().ends_with(said), "{refused}");
    assert!(refused.remedy().contains("floatgate app"), "{}", refused.remedy());
    assert!(told.all().is_empty(), "{:?}", told.all());
}
