//! Suites made concrete: rounds, curves, replays, and what is refused in them.

use workload::{Gaps, Protocol, catalogue};

use super::super::Plan;
use super::*;

fn protocol(name: &str) -> Protocol {
    catalogue::find_protocol(name).expect("the catalogue has it")
}

fn planned(protocol: &Protocol) -> Result<Plan, Error> {
    Plan::new(protocol, &catalogue::workloads(), 1)
}

/// A protocol whose first suite is repeated in rounds.
fn in_rounds() -> Protocol {
    let protocols = catalogue::protocols();
    let found = protocols.into_iter().find(|it| it.suites.iter().any(|it| it.rounds.is_some()));
    let mut protocol = found.expect("the tests of the SNIA have rounds");
    protocol.suites.retain(|suite| suite.rounds.is_some());
    protocol.suites.truncate(1);
    protocol
}

#[test]
fn every_round_has_the_same_loads_under_names_of_its_own() {
    let protocol = in_rounds();
    let count = protocol.suites[0].rounds.as_ref().unwrap().count_max;
    let plan = planned(&protocol).unwrap();
    let of = |round: u32| -> Vec<&PlannedStep> {
        plan.steps.iter().filter(|step| step.round == Some(round)).collect()
    };
    let (first, last) = (of(1), of(count));
    assert!(!first.is_empty());
    assert_eq!(first.len(), last.len());
    for (a, b) in first.iter().zip(&last) {
        assert_eq!(a.id.replace("/round-01/", &format!("/round-{count:02}/")), b.id);
        assert_eq!((&a.workload, a.threads, a.tracked), (&b.workload, b.threads, b.tracked));
    }
    assert!(of(count + 1).is_empty());
    let mut ids: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "no name is there twice");
}

#[test]
fn what_is_tracked_is_marked_in_each_round() {
    let protocol = in_rounds();
    let rounds = protocol.suites[0].rounds.clone().unwrap();
    let plan = planned(&protocol).unwrap();
    for tracked in &rounds.track {
        let marked = plan
            .steps
            .iter()
            .filter(|step| step.workload_name() == tracked.workload && step.tracked.is_some());
        assert_eq!(u32::try_from(marked.count()).unwrap(), rounds.count_max, "{tracked:?}");
    }
}

#[test]
fn a_tracked_workload_that_no_round_measures_is_refused() {
    let mut protocol = in_rounds();
    let suite = protocol.suites[0].name.clone();
    protocol.suites[0].rounds.as_mut().unwrap().track[0].workload = "4k-rand-1-99".into();
    let error = planned(&protocol).unwrap_err();
    let expected = format!("suite {suite}: no round measures `4k-rand-1-99`, which is tracked");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_unknown_application_is_refused_with_the_nearest_one() {
    let mut protocol = protocol("quick");
    protocol.suites[0].application = Some("sysbench-oltq".into());
    let error = planned(&protocol).unwrap_err();
    assert_eq!(error.to_string(), "suite 4k: no application named `sysbench-oltq` is built in");
    assert_eq!(error.remedy(), "did you mean `sysbench-oltp`?");
    protocol.suites[0].application = Some("zzz".into());
    assert_eq!(planned(&protocol).unwrap_err().remedy(), "`floatgate app` lists them");
}

#[test]
fn an_application_is_replayed_once_for_each_number_of_clients() {
    let mut protocol = protocol("quick");
    protocol.suites.truncate(1);
    protocol.suites[0].application = Some("sysbench-oltp".into());
    protocol.suites[0].measure.clear();
    protocol.suites[0].precondition = None;
    let plan = planned(&protocol).unwrap();
    let applications = catalogue::applications();
    let of = applications.iter().find(|it| it.name == "sysbench-oltp").unwrap();
    let replays: Vec<&PlannedStep> =
        plan.steps.iter().filter(|step| step.kind == StepKind::Application).collect();
    let clients: Vec<u32> = replays.iter().map(|step| step.threads.into()).collect();
    assert_eq!(clients, of.threads);
    for step in replays {
        assert!(step.duration_s > 0.0, "as long as its recording: {}", step.id);
        assert_eq!(step.load_name(), format!("{} clients", step.threads));
        assert!(step.reads() && step.workload_name() == "sysbench-oltp");
    }
}

#[test]
fn a_replay_of_a_workload_without_a_trace_is_refused() {
    let mut protocol = protocol("mail-server");
    let suite =
        protocol.suites.iter_mut().find(|it| it.measure.iter().any(|it| it.replay.is_some()));
    let suite = suite.expect("it replays");
    let name = suite.name.clone();
    suite.measure[0].workload = "4k-rand-read".into();
    let error = planned(&protocol).unwrap_err();
    let expected = format!("suite {name}: no trace can be made of `4k-rand-read`");
    assert_eq!(error.to_string(), expected);
    assert!(error.remedy().contains("leave out replay"), "{}", error.remedy());
}

#[test]
fn a_workload_that_is_nowhere_is_refused_with_where_they_are_listed() {
    let mut protocol = protocol("quick");
    protocol.suites[0].measure[0].workload = "zzz".into();
    let error = planned(&protocol).unwrap_err();
    assert_eq!(error.to_string(), "suite 4k: no workload named `zzz`");
    assert_eq!(error.remedy(), "`floatgate workloads` lists them");
}

#[test]
fn a_fill_writes_as_often_as_the_suite_asks_with_its_data() {
    let mut protocol = protocol("quick");
    let suite = &mut protocol.suites[0];
    (suite.fill, suite.fill_passes) = (Some("128k-seq-write".into()), 2);
    suite.compressible_percent = Some(30.0);
    let plan = planned(&protocol).unwrap();
    let fill = plan.steps.iter().find(|step| step.kind == StepKind::Fill).unwrap();
    assert_eq!((fill.id.as_str(), fill.fill_passes), ("4k/fill", 2));
    assert!((fill.compressible_percent() - 30.0).abs() < 1e-9);
    assert_eq!(fill.load_name(), "", "a fill has no load of its own");
}

#[test]
fn a_measurement_at_a_rate_keeps_its_rate_and_gaps() {
    let mut protocol = protocol("quick");
    let measure = &mut protocol.suites[0].measure[0];
    (measure.rate_iops, measure.gaps) = (Some(5000.0), Gaps::Constant);
    let plan = planned(&protocol).unwrap();
    let step = plan.steps.iter().find(|step| step.pace.is_some()).unwrap();
    let rate = step.rate(|_| None).unwrap().unwrap();
    assert!((rate.iops - 5000.0).abs() < 1e-9);
    assert_eq!(rate.gaps, Gaps::Constant);
    assert_eq!(step.pace.as_ref().unwrap().depends_on(), None);
}

#[test]
fn a_share_of_a_rate_is_taken_of_what_the_step_reached() {
    let plan = planned(&protocol("quick")).unwrap();
    let free = plan.steps.iter().find(|step| step.kind == StepKind::Measure).unwrap();
    let curve = Curve {
        percents: vec![50.0],
        gaps: Gaps::Exponential,
        duration_s: 60,
        ramp_s: 5,
        interval_s: 1,
    };
    let step = on_curve(&curve, free).remove(0);
    assert_eq!(step.id, format!("{}-50percent", free.id));
    assert_eq!(step.pace.as_ref().unwrap().depends_on(), Some(free.id.as_str()));
    assert!((step.length_s() - 65.0).abs() < 1e-9);
    assert!(step.load_name().ends_with(" at 50 %"), "{}", step.load_name());
    let reached = |id: &str| (id == free.id).then_some(1000.0);
    assert!((step.rate(reached).unwrap().unwrap().iops - 500.0).abs() < 1e-9);
    for nothing in [None, Some(0.0)] {
        let error = step.rate(|_| nothing).unwrap_err();
        assert!(error.to_string().contains("which completed no request"), "{error}");
        assert_eq!(error.remedy(), "measure for longer");
    }
}

#[test]
fn a_fill_before_a_suite_has_data_like_its_loads() {
    let plan = planned(&protocol("quick")).unwrap().with_compressible(40.0);
    let range = plan.suites().remove(0);
    let fill = fill_before(&plan.steps[range.clone()], 3).unwrap();
    assert_eq!(fill.fill_passes, 3);
    assert!((fill.compressible_percent() - 40.0).abs() < 1e-9);
    let purge = &plan.steps[range.start];
    assert_eq!(purge.kind, StepKind::Purge);
    assert!(fill_before(std::slice::from_ref(purge), 1).is_none(), "there is nothing to fill for");
}
