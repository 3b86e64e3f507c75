//! Latency against load on a modelled drive, from a protocol to the result.

use lab::plan::Plan;
use lab::results::{RateLimit, Run, Step};
use lab::workload::{Protocol, catalogue};

use super::carried_out;

const PROTOCOL: &str = r#"
schema = 1
name = "curve"
title = "Curve"
description = "Reads at four rates."
source = "made up"

[[suites]]
name = "reads"
title = "Reads"
fill = "128k-seq-write"

[suites.curve]
percents = [20, 80, 100, 150]
duration_s = 128
ramp_s = 32
interval_s = 64

[[suites.measure]]
workload = "4k-rand-read"
threads = [4]
queue_per_thread = [4]
duration_s = 128
ramp_s = 32
interval_s = 64
"#;

fn measured() -> Run {
    let protocol = Protocol::parse(PROTOCOL, "curve.toml").expect("it is well formed");
    let plan = Plan::new(&protocol, &catalogue::workloads(), 1).expect("its workloads are there");
    carried_out(&plan).expect("no model fails")
}

fn response_over_latency(step: &Step) -> f64 {
    let latency = step.summary.as_ref().expect("it was measured").latency.latency_ns_avg;
    step.response.expect("it had a rate").latency_ns_avg / latency
}

#[test]
fn a_curve_shows_the_queue_before_a_drive_that_is_asked_for_too_much() {
    let run = Run::from_json(&measured().to_json().unwrap()).unwrap();
    let [.., free, light, busy, full, beyond] = run.steps.as_slice() else { panic!("five loads") };
    let most = free.summary.as_ref().unwrap().iops;
    assert_eq!((&free.rate, free.response), (&None, None));
    for (step, share) in [(light, 0.2), (busy, 0.8), (full, 1.0), (beyond, 1.5)] {
        let rate = step.rate.as_ref().unwrap();
        assert!((rate.iops / most - share).abs() < 1e-9, "{rate:?} of {most}");
    }
    // Below saturation what was asked for comes, within chance, and hardly anything waits.
    for (step, share) in [(light, 0.2), (busy, 0.8)] {
        let (rate, iops) = (step.rate.as_ref().unwrap(), step.summary.as_ref().unwrap().iops);
        assert!((iops / most - share).abs() < 0.02, "{iops} of {most}");
        assert_eq!(rate.limit, None);
    }
    assert!(response_over_latency(light) < 1.01);
    assert!(response_over_latency(busy) < response_over_latency(full));
    // Beyond it the latency of requests stays that of a full queue, as Vdbench prints it; the
    // response grows with the time that the drive is behind.
    let (saturated, iops) = (beyond.summary.as_ref().unwrap(), free.summary.as_ref().unwrap());
    assert!((saturated.iops / most - 1.0).abs() < 0.02);
    let longer = saturated.latency.latency_ns_avg / iops.latency.latency_ns_avg;
    assert!((longer - 1.0).abs() < 0.05, "{longer}");
    assert!(response_over_latency(beyond) > 50.0, "{}", response_over_latency(beyond));
    assert_eq!(beyond.rate.as_ref().unwrap().limit, Some(RateLimit::Drive));
}
