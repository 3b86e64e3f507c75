//! Traces on a modelled drive, from a protocol and from a file to the result.

use std::path::Path;

use lab::plan::{OneLoad, Pace, Plan};
use lab::replay::{self, PlannedReplay, Source};
use lab::results::StepKind;
use lab::workload::catalogue;
use lab::workload::catalogue::find_protocol;
use lab::workload::trace::Addresses;
use lab::{Error, Kind};

use super::carried_out;

/// The trace in the file at `path`, with a queue of 8, at `speed` if any.
fn of_file(path: &Path, speed: Option<f64>) -> Result<Plan, Error> {
    let workload = replay::workload_of(&replay::read(path)?);
    let asked = OneLoad {
        threads: 1,
        queue_per_thread: 8,
        precondition_s: 0.0,
        duration_s: 64.0,
        pace: speed.map(|speed| Pace::Trace { speed }),
        replay: Some(PlannedReplay {
            source: Source::File(path.to_owned()),
            addresses: Addresses::Wrapped,
        }),
    };
    Ok(Plan::of_one(&workload, &asked, 1))
}

#[test]
fn the_mail_server_is_replayed_light_and_heavy() {
    let protocol = find_protocol("mail-server").unwrap();
    let plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
    let run = carried_out(&plan).unwrap();
    let [_, light, _, heavy] = run.steps.as_slice() else { panic!("a purge before each load") };
    for (step, outstanding) in [(light, 8.0), (heavy, 48.0)] {
        let summary = step.summary.as_ref().unwrap();
        assert!((summary.outstanding_avg / outstanding - 1.0).abs() < 0.05, "{}", step.id);
        assert!((summary.iops_read / summary.iops - 0.95).abs() < 0.01);
        assert!(step.how.contains("synthetic trace mail-server (4000000 requests over 50.00 GB"));
        assert!(step.how.contains("addresses kept: 50.00 GB on 640.00 GB"), "{}", step.how);
    }
    assert!(light.how != heavy.how);
}

#[test]
fn a_trace_of_a_file_takes_the_place_of_the_one_that_is_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.spc");
    std::fs::write(&path, "0,0,4096,R,0\nbroken\n0,8,4096,R,0.001\n0,16,4096,W,0.002\n").unwrap();
    let protocol = find_protocol("mail-server").unwrap();
    let plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
    let workload = replay::workload_of(&replay::read(&path).unwrap());
    let run = carried_out(&plan.with_trace(&path, &workload).unwrap()).unwrap();
    let measured = run.steps.iter().find(|step| step.kind == StepKind::Measure).unwrap();
    assert_eq!(measured.workload, "mine");
    assert!(measured.how.contains("1 broken lines left out (first: line 2)"), "{}", measured.how);
    assert!(!measured.how.contains("synthetic"));
}

#[test]
fn a_trace_at_its_times_comes_at_its_rate_and_queues_when_that_is_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("even.csv");
    // A request each 100 us: 10,000 a second.
    let lines = (0..20_000).map(|n| format!("0,{},4096,R,{}\n", n * 8, f64::from(n) * 1e-4));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    let step = |speed| carried_out(&of_file(&path, Some(speed)).unwrap()).unwrap().steps.remove(1);
    let at_speed = step(1.0);
    let summary = at_speed.summary.as_ref().unwrap();
    assert!((summary.iops / 10_000.0 - 1.0).abs() < 0.01, "{}", summary.iops);
    let response = at_speed.response.unwrap().latency_ns_avg;
    assert!((response / summary.latency.latency_ns_avg - 1.0).abs() < 0.01);
    assert!((at_speed.rate.unwrap().iops / 10_000.0 - 1.0).abs() < 0.01);
    let too_fast = step(100.0);
    let latency = too_fast.summary.as_ref().unwrap().latency.latency_ns_avg;
    assert!(too_fast.response.unwrap().latency_ns_avg > 100.0 * latency);
}

#[test]
fn what_cannot_be_replayed_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("untimed.iolog");
    std::fs::write(&path, "fio version 2 iolog\n/a add\n/a read 0 4096\n").unwrap();
    let error = carried_out(&of_file(&path, Some(1.0)).unwrap()).unwrap_err();
    assert_eq!(error.kind(), Kind::Input);
    assert!(error.to_string().ends_with("untimed.iolog has no times to replay it at"), "{error}");

    std::fs::write(&path, "not a trace\n").unwrap();
    let error = of_file(&path, None).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("untimed.iolog:1: the first line is not of a known trace"), "{cause}");

    let protocol = find_protocol("quick").unwrap();
    let plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
    let workload = catalogue::find_workload("mail-server").unwrap();
    let error = plan.with_trace(&path, &workload).unwrap_err();
    assert_eq!(error.to_string(), "protocol quick replays no trace");

    let mut protocol = find_protocol("mail-server").unwrap();
    protocol.suites[0].measure[0].workload = "4k-rand-read".into();
    let error = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap_err();
    assert_eq!(error.to_string(), "suite light: no trace can be made of `4k-rand-read`");
}
