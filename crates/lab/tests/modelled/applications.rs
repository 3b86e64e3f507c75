//! Recordings of applications in a run: transactions in the results, the same every time.

use lab::library::Library;
use lab::plan::Plan;
use lab::results::{Run, StepKind};
use lab::ssd::catalogue;
use lab::workload::Protocol;

/// The plan of the protocol with one number of clients of RocksDB.
fn plan() -> Plan {
    let library = Library::new(Vec::new());
    let protocol = library.find::<Protocol>("applications").expect("it is built in").value;
    let wanted = ["nosql-ycsb-a/nosql-ycsb-a/4-clients".to_owned()];
    library.plan(&protocol, 1).expect("all of it was recorded").with_steps(&wanted.into())
}

fn carried_out() -> Run {
    let spec = catalogue::find("iodrive-duo").expect("the catalogue has it");
    super::carried_out(&plan().for_drive(&spec)).expect("a model does not fail")
}

#[test]
fn a_step_has_the_transactions_that_its_replay_predicts() {
    let run = carried_out();
    let kinds: Vec<StepKind> = run.steps.iter().map(|step| step.kind).collect();
    let prepared = [StepKind::Purge, StepKind::Fill, StepKind::Precondition];
    assert_eq!((&kinds[..3], &kinds[3..]), (&prepared[..], &[StepKind::Application][..]));
    let step = &run.steps[3];
    let figures = step.application.as_ref().unwrap();
    let recorded = &figures.recorded;
    assert_eq!((figures.application.as_str(), step.threads), ("nosql-ycsb-a", 4));
    let faster = recorded.span_s / step.duration_s;
    let expected = recorded.tps.unwrap() * faster;
    assert!((figures.tps.unwrap() / expected - 1.0).abs() < 1e-9, "as much faster as the replay");
    assert!(faster > 2.0, "a card for PCIe beside media of 1 ms: {faster}");
    assert!(figures.host_share > recorded.host_share);
    let summary = step.summary.as_ref().unwrap();
    let requests = summary.read.count + summary.write.count;
    assert!(requests > 0 && requests <= recorded.requests, "flushes are in one of them alone");
    assert!(!step.is_primary(), "its rates are those of no load that was asked for");
}

#[test]
fn the_same_plan_gives_the_same_run() {
    assert_eq!(carried_out(), carried_out());
}

#[test]
fn an_application_without_a_recording_is_refused_with_the_nearest() {
    let library = Library::new(Vec::new());
    let mut protocol = library.find::<Protocol>("applications").unwrap().value;
    protocol.suites[0].application = Some("sysbench-olpt".into());
    let error = library.plan(&protocol, 1).unwrap_err();
    assert_eq!(error.remedy(), "did you mean `sysbench-oltp`?");
}
