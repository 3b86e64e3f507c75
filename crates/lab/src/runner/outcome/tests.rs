//! Warnings about whole runs, and what a run keeps of its plan.

use results::{LatencySummary, Summary, TargetKind, TrackedMetric, WrittenAmount};
use workload::catalogue;

use super::*;
use crate::plan::Plan;

fn plan() -> Plan {
    let protocol = catalogue::find_protocol("quick").expect("the catalogue has it");
    Plan::new(&protocol, &catalogue::workloads(), 7).expect("its workloads are there")
}

fn target(kind: TargetKind, time_lapse: u32) -> Target {
    Target {
        name: "it".into(),
        title: "It".into(),
        user_capacity_bytes: 1_000_000,
        time_lapse,
        ..Target::of_kind(kind)
    }
}

/// The step of `plan` numbered `index` with `writes` of 4 KiB at `iops`.
fn step(plan: &Plan, index: usize, iops: f64, writes: u64) -> Step {
    let planned = &plan.steps[index];
    let written =
        WrittenAmount { since_purge_bytes: 1, since_purge_share: 0.01, addressed_share: 0.01 };
    let bare = Record::unmeasured(planned, String::new(), written).step;
    let write = LatencySummary { count: writes, ..LatencySummary::default() };
    let summary = Summary {
        span_s: 1.0,
        iops,
        write,
        throughput_write_mb_s: writes as f64 * 4096.0 / 1e6,
        latency: write,
        ..Summary::default()
    };
    Step { summary: Some(summary), duration_s: 1.0, ..bare }
}

fn made(kind: TargetKind, time_lapse: u32, steps: Vec<Step>) -> Run {
    let records = steps.into_iter().map(|step| Record { step, warnings: Vec::new() });
    let outcome = Outcome {
        target: target(kind, time_lapse),
        environment: Environment::default(),
        records: records.enumerate().collect(),
        interrupted: false,
        spared: 0,
    };
    outcome.into_run(&plan(), "id".into(), "1970-01-01T00:00:00Z".into())
}

fn kinds(run: &Run) -> Vec<WarningKind> {
    run.warnings.iter().map(|warning| warning.kind).collect()
}

#[test]
fn a_model_has_its_version_and_a_real_drive_has_none() {
    let model = made(TargetKind::Model, 1, Vec::new());
    assert_eq!(model.model_version, Some(ssd::MODEL_VERSION));
    assert_eq!(made(TargetKind::File, 1, Vec::new()).model_version, None);
    assert_eq!((model.seed, model.protocol.as_str()), (7, "quick"));
    assert!(model.warnings.is_empty());
}

#[test]
fn time_lapse_is_told_with_the_way_to_full_scale() {
    let run = made(TargetKind::Model, 32, Vec::new());
    assert_eq!(kinds(&run), [WarningKind::Scale]);
    assert!(run.warnings[0].text.contains("simulated at 1/32 scale (time lapse 32)"));
    assert!(run.warnings[0].remedy.starts_with("--full-scale"));
    assert_eq!(run.warnings[0].step, "", "it is about the whole run");
}

#[test]
fn only_figures_of_a_settled_drive_are_said_to_be_those_of_full_scale() {
    let claims = |run: &Run| run.warnings[0].text.contains("mean latency are those of full scale");
    let fresh = made(TargetKind::Model, 32, unprepared(100));
    assert!(!claims(&fresh));
    let text = &fresh.warnings[0].text;
    assert!(text.contains("1 of 1 write loads were measured before steady state"), "{text}");
    assert!(fresh.warnings[0].remedy.contains("a smaller --time-lapse"));
    assert!(claims(&made(TargetKind::Model, 32, unprepared(0))), "reads have no start");
    let settled = made(TargetKind::Model, 32, prepared(100.0));
    assert!(claims(&settled));
    let text = &settled.warnings[0].text;
    assert!(
        text.contains("a measurement after it lasts 1/32 of its time and can differ"),
        "{text}"
    );
    assert!(text.contains("in the last five rounds of a preconditioning, IOPS"), "{text}");
}

/// Writes at 100 IOPS after a steady preconditioning under the same load, at `iops` in the end.
fn prepared(iops: f64) -> Vec<Step> {
    let steps = unprepared(100);
    let mut before = steps[0].clone();
    before.id = "precondition".into();
    before.kind = StepKind::Precondition;
    before.settled = Some(Summary { iops, ..before.summary.clone().unwrap() });
    before.steady = Some(Steady {
        achieved: true,
        evidence: None,
        rounds: 5,
        at_s: 9000.0,
        round_s: 1800.0,
        variables: Vec::new(),
    });
    std::iter::once(before).chain(steps).collect()
}

#[test]
fn a_measurement_that_is_not_what_its_preconditioning_settled_at_was_too_short() {
    let run = made(TargetKind::Model, 32, prepared(70.0));
    assert_eq!(kinds(&run), [WarningKind::Scale, WarningKind::Environment]);
    let told = &run.warnings[1];
    assert_eq!(told.step, run.steps[1].id);
    assert!(told.text.starts_with("100 IOPS, but 70 in the last five rounds of its"), "{told:?}");
    assert_eq!(run.distrusted(&run.steps[1]).as_ref(), Some(&told.text), "no ratio rests on it");
    assert_eq!(run.distrusted(&run.steps[0]), None);
    let none = |lapse: u32, change: fn(&mut Vec<Step>)| {
        let mut steps = prepared(70.0);
        change(&mut steps);
        !kinds(&made(TargetKind::Model, lapse, steps)).contains(&WarningKind::Environment)
    };
    assert!(none(1, |_| {}), "at full scale it lasts as long as it is said to");
    assert!(none(32, |steps| steps[0].queue_per_thread += 1), "another load");
    assert!(none(32, |steps| steps[0].settled.as_mut().unwrap().iops = 84.0), "within 20 %");
    assert!(
        none(32, |steps| steps[0].steady.as_mut().unwrap().achieved = false),
        "no steady state"
    );
}

#[test]
fn an_interrupted_run_says_how_far_it_came_without_the_steps_that_it_was_spared() {
    let plan = plan();
    let outcome = Outcome {
        target: target(TargetKind::Model, 1),
        environment: Environment::default(),
        records: Vec::new(),
        interrupted: true,
        spared: 2,
    };
    let run = outcome.into_run(&plan, "id".into(), String::new());
    let planned = plan.steps.len() - 2;
    assert_eq!(kinds(&run), [WarningKind::Interrupted]);
    assert_eq!(run.warnings[0].text, format!("stopped after 0 of {planned} steps"));
    assert_eq!(usize::try_from(run.steps_planned).unwrap(), planned);
}

#[test]
fn warnings_of_steps_stand_in_their_order() {
    let plan = plan();
    let warning = |text: &str| Warning {
        kind: WarningKind::Environment,
        step: String::new(),
        text: text.into(),
        remedy: String::new(),
    };
    let record = |index: usize, text: &str| {
        let step = step(&plan, index, 1.0, 0);
        (index, Record { step, warnings: vec![warning(text)] })
    };
    let outcome = Outcome {
        target: target(TargetKind::Model, 1),
        environment: Environment::default(),
        records: vec![record(0, "first"), record(1, "second")],
        interrupted: false,
        spared: 0,
    };
    let run = outcome.into_run(&plan, "id".into(), String::new());
    let texts: Vec<&str> = run.warnings.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(texts, ["first", "second"]);
}

/// A suite without a preconditioning that measured `writes`.
fn unprepared(writes: u64) -> Vec<Step> {
    let plan = plan();
    let at = plan.steps.iter().position(|step| step.kind == StepKind::Measure).unwrap();
    vec![step(&plan, at, 100.0, writes)]
}

#[test]
fn writes_of_a_real_drive_without_a_preconditioning_are_a_burst() {
    let run = made(TargetKind::BlockDevice, 1, unprepared(100));
    assert_eq!(kinds(&run), [WarningKind::NotPreconditioned]);
    assert_eq!(run.warnings[0].step, run.steps[0].id);
    assert!(kinds(&made(TargetKind::BlockDevice, 1, unprepared(0))).is_empty(), "it only read");
    assert!(kinds(&made(TargetKind::Model, 1, unprepared(100))).is_empty(), "a model was asked to");
}

#[test]
fn a_preconditioning_before_them_or_rounds_are_enough() {
    let prepared = |change: fn(&mut Step)| {
        let mut steps = unprepared(100);
        let mut before = steps[0].clone();
        change(&mut before);
        steps.insert(0, before);
        kinds(&made(TargetKind::BlockDevice, 1, steps))
    };
    assert!(prepared(|step| step.kind = StepKind::Precondition).is_empty());
    assert!(prepared(|step| step.round = Some(1)).is_empty());
    let elsewhere = prepared(|step| {
        step.kind = StepKind::Precondition;
        step.suite = "another".into();
    });
    assert_eq!(elsewhere, [WarningKind::NotPreconditioned], "that was another suite");
}

/// Rounds of a suite, of which the tracked rate of each is given.
fn rounds(rates: &[f64], since_purge_share: f64) -> Vec<Step> {
    let plan = plan();
    let at = plan.steps.iter().position(|step| step.kind == StepKind::Measure).unwrap();
    let of = |(round, iops): (u32, &f64)| {
        let written = WrittenAmount {
            since_purge_bytes: 1,
            since_purge_share,
            addressed_share: since_purge_share,
        };
        Step {
            id: format!("rounds/round-{round}"),
            round: Some(round),
            tracked: Some(TrackedMetric::Iops),
            written: Some(written),
            ..step(&plan, at, *iops, 100)
        }
    };
    (1..).zip(rates).map(of).collect()
}

#[test]
fn rounds_that_never_met_the_rule_are_warned_of_with_the_last_of_them() {
    let run = made(TargetKind::Model, 1, rounds(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], 9.0));
    assert_eq!(kinds(&run), [WarningKind::NotSteady]);
    assert_eq!(run.warnings[0].step, "rounds/round-6");
    assert_eq!(run.warnings[0].text, "steady state not achieved in 6 rounds");
}

#[test]
fn level_rounds_of_a_drive_that_was_hardly_written_are_not_steady() {
    let level = [100.0; 5];
    let run = made(TargetKind::Model, 1, rounds(&level, 0.01));
    assert_eq!(kinds(&run), [WarningKind::NotSteady]);
    assert!(run.warnings[0].text.contains("too little had been written by then"), "{run:?}");
    let enough = made(TargetKind::Model, 1, rounds(&level, 2.0));
    assert!(kinds(&enough).is_empty(), "{:?}", enough.warnings);
}

#[test]
fn level_rounds_that_two_fills_prepared_say_how_little_they_wrote() {
    let mut steps = rounds(&[100.0; 5], 2.0);
    steps.iter_mut().filter_map(|it| it.written.as_mut()).for_each(|it| it.addressed_share = 0.01);
    let run = made(TargetKind::BlockDevice, 1, steps);
    assert_eq!(kinds(&run), [WarningKind::NotPreconditioned]);
    assert_eq!(run.warnings[0].step, "rounds/round-5");
    assert!(run.warnings[0].text.contains("wrote 5.0 % of what they address"), "{run:?}");
}
