//! Loads over intervals against single replays.

use blockio::Op;
use workload::recording::{Benchmark, Head, RecordedRequest, Tail};

use super::*;
use crate::application::ReplayHost;
use crate::driver::model::Model;
use crate::{Driver as _, Watch};

struct Alone;

impl Watch for Alone {
    fn progress(&mut self, _done: f64, _text: &str) {}

    fn saw(&mut self, _glimpse: crate::progress::Glimpse) {}

    fn stop(&self) -> bool {
        false
    }
}

/// Reads of 4 KiB, `clients` of them at a time, with `think` between them.
fn recording(clients: u64, think: Nanos) -> Recording {
    let latency = Nanos::from_millis(2);
    let each = latency + think;
    let requests: Vec<RecordedRequest> = (0..400)
        .map(|index| RecordedRequest {
            issued_at: each * (index / clients),
            completed_at: each * (index / clients) + latency,
            op: Op::Read,
            fua: false,
            lba: index * 7919 * 8 % (1 << 21),
            sectors: 8,
            client: 0,
        })
        .collect();
    let end = requests.iter().map(|it| it.completed_at).max().unwrap_or_default();
    let benchmark = Benchmark {
        tool: "db_bench".into(),
        transactions: 200,
        tps: 200.0 / end.as_secs_f64(),
        latency_ms_mean: Some(4.0),
        latency_ms_p99: None,
    };
    let tail = Tail { measured_to: end, benchmark: Some(benchmark), ..Tail::default() };
    let head = Head {
        schema: Head::SCHEMA,
        device: "a volume".into(),
        size_bytes: 1 << 30,
        model: None,
        machine: "2 x AMD EPYC, Linux".into(),
        began_unix_ns: 0,
        front_end_ns: None,
        emulation_slowdown: None,
    };
    Recording { head, tail: Some(tail), requests, lost: 0, transactions: Vec::new() }
}

fn replayed(recording: &Recording, looped: Option<LoopedLoad>) -> ReplayedApplication {
    let mut spec = ssd::catalogue::find("iodrive-duo").expect("the catalogue has it");
    // Stalls of a second, frequent in time lapse, would be most of what these replays wait for.
    spec.hosts.iter_mut().for_each(|host| host.stalls.clear());
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    let setup = ssd::Setup { format, host, time_lapse: 64, seed: 1 };
    let mut model = Model::new(spec, setup).unwrap();
    model.purge().unwrap();
    let host = ReplayHost::default();
    let load = RecordedLoad { step: "step", recording, host: &host, looped };
    model.replay(&load, &mut Alone).unwrap()
}

#[test]
fn intervals_have_the_rate_of_a_single_replay_and_add_up() {
    let recording = recording(4, Nanos::from_micros(50));
    let once = replayed(&recording, None);
    assert!(once.transactions.is_empty() && once.intervals.len() == 1);
    let looped = LoopedLoad { intervals: 6, interval_s: 0.2, begins_at: 0.25 };
    let lasted = replayed(&recording, Some(looped));
    assert_eq!((lasted.intervals.len(), lasted.transactions.len()), (6, 6));
    let told = once.replayed.prediction.unwrap();
    for (index, it) in (1..).zip(&lasted.transactions) {
        assert!((it.at_s - 0.2 * f64::from(index)).abs() < 1e-9);
        // The drive has read the same again and again, and nothing changes.
        assert!((it.tps / told.tps - 1.0).abs() < 0.1, "{} beside {}", it.tps, told.tps);
        // As many clients wait (Little's law).
        let clients = told.tps * told.latency_ms_mean.unwrap();
        assert!((it.tps * it.latency_ms_mean.unwrap() / clients - 1.0).abs() < 1e-9);
    }
    let mean = lasted.transactions.iter().map(|it| it.tps).sum::<f64>() / 6.0;
    assert!((lasted.replayed.prediction.unwrap().tps - mean).abs() < 1e-9);
    let read: u64 = lasted.intervals.iter().map(|it| it.read.count()).sum();
    let told: f64 = lasted.transactions.iter().map(|it| it.tps * 0.2).sum();
    assert!((read as f64 / 2.0 - told).abs() < 1e-6, "two reads a transaction: {read} and {told}");
}

#[test]
fn nothing_is_told_over_intervals_where_the_host_decides() {
    let recording = recording(1, Nanos::from_millis(20));
    let looped = LoopedLoad { intervals: 3, interval_s: 1.0, begins_at: 0.0 };
    let lasted = replayed(&recording, Some(looped));
    assert_eq!(lasted.replayed.prediction, None, "{}", lasted.replayed.host_share);
    assert!(lasted.transactions.is_empty(), "{:?}", lasted.transactions);
}

#[test]
fn drives_that_begin_elsewhere_in_the_recording_are_not_in_step() {
    let recording = recording(2, Nanos::from_micros(50));
    let at = |begins_at: f64| {
        let looped = LoopedLoad { intervals: 1, interval_s: 0.02, begins_at };
        replayed(&recording, Some(looped)).intervals[0].read.count()
    };
    assert!(at(0.0) > 0 && at(0.5) > 0 && at(1.0) > 0);
}
