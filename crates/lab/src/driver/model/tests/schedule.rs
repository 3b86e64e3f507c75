//! Times at which the requests of an open loop are due, and what becomes of them.

use super::*;
use crate::driver::model::open::Open;
use crate::schedule::{Schedule, due};
use workload::trace::{self, Addresses};

use crate::replay::Replay;

fn rated(workload: &Workload, iops: f64, gaps: Gaps) -> Load<'_> {
    Load { rate: Some(Rate { iops, gaps }), ..load(workload) }
}

/// Due times of the first `count` requests, in nanoseconds.
fn due_ns(iops: f64, gaps: Gaps, seed: u64, count: usize) -> Vec<u64> {
    let workload = workload("4k-rand-read");
    let load = Load { seed, ..rated(&workload, iops, gaps) };
    due(&load, count).into_iter().map(|at| at.0).collect()
}

#[test]
fn even_requests_are_a_gap_apart_and_the_first_comes_after_one() {
    assert_eq!(due_ns(4000.0, Gaps::Constant, 1, 4), [250_000, 500_000, 750_000, 1_000_000]);
    let slow = due_ns(0.5, Gaps::Constant, 1, 2);
    assert_eq!(slow, [2_000_000_000, 4_000_000_000]);
}

#[test]
fn random_requests_come_at_their_rate_with_the_spread_of_a_poisson_process() {
    let count = 20_000;
    let due = due_ns(1000.0, Gaps::Exponential, 1, count);
    let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // Four standard deviations of the mean of 20,000 gaps are 3 %, of their variance 8 %.
    assert!((mean - 1.0).abs() < 0.03, "{mean} ms");
    assert!((variance / (mean * mean) - 1.0).abs() < 0.08, "{variance}");
    // A gap longer than the mean has the probability 1/e.
    let longer = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / gaps.len() as f64;
    assert!((longer - (-1.0_f64).exp()).abs() < 0.02, "{longer}");
}

#[test]
fn random_times_follow_from_the_seed() {
    let due = |seed| due_ns(1000.0, Gaps::Exponential, seed, 50);
    assert_eq!(due(3), due(3));
    assert_ne!(due(3), due(4));
}

#[test]
fn no_two_requests_are_due_at_once_however_high_the_rate() {
    for gaps in [Gaps::Constant, Gaps::Exponential] {
        let due = due_ns(1e12, gaps, 1, 1000);
        assert!(due.windows(2).all(|pair| pair[0] < pair[1]), "{gaps:?}");
    }
}

#[test]
fn a_load_has_a_schedule_only_where_its_requests_have_times() {
    let workload = workload("4k-rand-read");
    let text = "fio version 3 iolog\n0 /d add\n0 /d read 0 4096\n100 /d read 4096 4096\n";
    let trace = trace::read(text.as_bytes(), "mine").unwrap();
    let replayed = |speed| {
        let replay = Replay { trace: &trace, addresses: Addresses::Wrapped, speed };
        Load { replay: Some(replay), ..load(&workload) }
    };
    let has_times = |load: &Load<'_>| Schedule::of(load, Nanos::ZERO).is_some();
    assert!(!has_times(&load(&workload)));
    assert!(!has_times(&replayed(None)));
    assert!(has_times(&replayed(Some(1.0))));
    assert!(has_times(&rated(&workload, 10.0, Gaps::Constant)));
}

/// Requests of a load on a small drive, up to a time.
struct Ran {
    interval: Interval,
    responses: results::Latencies,
}

fn ran(load: &Load<'_>, until: Nanos) -> Ran {
    let mut drive = small();
    let feeds = Feed::of_all(load, &drive).unwrap();
    let schedule = Schedule::of(load, Nanos::ZERO).unwrap();
    let mut meter = Meter::new(&drive, Nanos::ZERO);
    let mut open = Open::start(&mut drive, feeds, load, schedule);
    assert!(open.run(until, &mut meter, &mut StopAfter(usize::MAX)).unwrap());
    let interval = meter.cut(open.drive(), until, 0.0);
    Ran { interval, responses: open.take_responses() }
}

#[test]
fn each_request_has_one_response_which_is_never_shorter_than_its_latency() {
    let workload = workload("4k-rand-read");
    let until = Nanos::from_millis(100);
    let ran = ran(&rated(&workload, 20_000.0, Gaps::Exponential), until);
    let count = ran.interval.read.count();
    assert!((1800..2200).contains(&count), "{count} of 2000 in a tenth of a second");
    assert_eq!(ran.responses.count(), count);
    assert!(ran.responses.sum_ns() >= ran.interval.read.sum_ns());
}

#[test]
fn at_a_rate_beyond_reach_no_more_are_on_the_drive_than_was_allowed() {
    let workload = workload("4k-rand-read");
    let until = Nanos::from_millis(20);
    let asked = Load { threads: 1, queue_per_thread: 2, ..rated(&workload, 1e7, Gaps::Constant) };
    let ran = ran(&asked, until);
    let outstanding = ran.interval.read.sum_ns() as f64 / until.0 as f64;
    assert!((1.9..=2.01).contains(&outstanding), "{outstanding}");
    // The last request came after half the load on average, and waited the rest at the host.
    let response_ns = ran.responses.sum_ns() as f64 / ran.responses.count() as f64;
    assert!((0.4..0.6).contains(&(response_ns / until.0 as f64)), "{response_ns}");
}

#[test]
fn what_was_noted_of_the_ramp_is_forgotten() {
    let workload = workload("4k-rand-read");
    let load = rated(&workload, 10_000.0, Gaps::Constant);
    let mut drive = small();
    let feeds = Feed::of_all(&load, &drive).unwrap();
    let schedule = Schedule::of(&load, Nanos::ZERO).unwrap();
    let mut meter = Meter::new(&drive, Nanos::ZERO);
    let mut open = Open::start(&mut drive, feeds, &load, schedule);
    let mut watch = StopAfter(usize::MAX);
    open.run(Nanos::from_millis(10), &mut meter, &mut watch).unwrap();
    open.forget();
    open.run(Nanos::from_millis(30), &mut meter, &mut watch).unwrap();
    let count = open.take_responses().count();
    assert!((199..=201).contains(&count), "{count}");
    assert_eq!(open.take_responses().count(), 0, "they were taken");
}
