//! The contract of drivers: laws that each of them keeps, whatever it measures.

use results::{Interval, Target};
use workload::{Workload, catalogue};

use crate::progress::Glimpse;
use crate::{Driver, Fill, Load, LoadResult, Watch};

/// Length of an interval of the loads, in protocol seconds.
const INTERVAL_S: f64 = 0.5;
/// Whole intervals of the loads.
const INTERVALS: usize = 3;

/// Length of the load that is stopped at once, in protocol seconds: far longer than a busy machine
/// takes to stop it.
const STOPPED_S: f64 = 60.0;

/// Observer that keeps what it was told, and stops the load when it was told anything, or never.
struct Witness {
    stops: bool,
    done: Vec<f64>,
    glimpses: Vec<Glimpse>,
}

impl Witness {
    fn new(stops: bool) -> Self {
        Self { stops, done: Vec::new(), glimpses: Vec::new() }
    }
}

impl Watch for Witness {
    fn progress(&mut self, done: f64, _: &str) {
        self.done.push(done);
    }

    fn saw(&mut self, glimpse: Glimpse) {
        self.glimpses.push(glimpse);
    }

    fn stop(&self) -> bool {
        self.stops
    }
}

fn load<'a>(workload: &'a Workload, step: &'a str) -> Load<'a> {
    Load {
        step,
        workload,
        threads: 2,
        queue_per_thread: 4,
        ramp_s: INTERVAL_S,
        duration_s: INTERVAL_S * INTERVALS as f64,
        interval_s: INTERVAL_S,
        rate: None,
        replay: None,
        seed: 7,
    }
}

/// Checks that `driver`, the one named `name`, keeps every law.
///
/// # Panics
/// If it does not.
pub fn check(name: &str, driver: &mut dyn Driver) {
    let before = driver.target();
    check_target(name, &before);
    assert!(!driver.purge().expect("it purges").is_empty(), "{name} says how it purged");
    check_fill(name, driver);
    for (workload, reads) in [("4k-rand-read", true), ("4k-rand-write", false)] {
        let workload = catalogue::find_workload(workload).expect("the catalogue has it");
        let mut witness = Witness::new(false);
        let loaded = driver.load(&load(&workload, &workload.name), &mut witness).expect("it loads");
        check_intervals(name, before.time_lapse, &loaded);
        check_directions(name, &loaded, reads);
        check_told(name, &witness);
        assert!(loaded.responses.is_none(), "{name}: nothing was due without a rate");
    }
    check_stop(name, before.time_lapse, driver);
    assert_eq!(driver.target(), before, "{name}: loads do not change what the target is");
}

fn check_target(name: &str, target: &Target) {
    assert!(target.user_capacity_bytes > 0, "{name} knows its capacity");
    assert!(target.devices > 0 && target.time_lapse > 0, "{name}: {target:?}");
    assert!(!target.name.is_empty() && !target.title.is_empty(), "{name}: {target:?}");
    let lapses = target.time_lapse > 1;
    assert!(target.kind.is_model() || !lapses, "{name}: real time passes as it does");
}

fn check_fill(name: &str, driver: &mut dyn Driver) {
    let workload = catalogue::find_workload("128k-seq-write").expect("the catalogue has it");
    let fill = Fill { step: "fill", workload: &workload, passes: 1 };
    let mut witness = Witness::new(false);
    let how = driver.fill(&fill, &mut witness).expect("it fills");
    assert!(!how.is_empty(), "{name} says how it filled");
    assert!(witness.done.iter().all(|done| (0.0..=1.0).contains(done)), "{name}: a share");
    let stopped = driver.fill(&fill, &mut Witness::new(true));
    stopped.unwrap_or_else(|error| panic!("{name}: being stopped is no error: {error}"));
}

/// Checks the intervals, which are as long as asked in protocol time: in time lapse each takes less
/// of the drive's own.
fn check_intervals(name: &str, time_lapse: u32, loaded: &LoadResult) {
    let LoadResult { intervals, counted, how, uncounted, unfinished, .. } = loaded;
    assert!(!how.is_empty(), "{name} says how it loaded");
    assert!(!intervals.is_empty() && intervals.len() <= INTERVALS, "{name}: {}", intervals.len());
    for (index, interval) in intervals.iter().enumerate() {
        let at_s = INTERVAL_S * (index + 1) as f64;
        let span_s = interval.span_s * f64::from(time_lapse);
        assert!((span_s - INTERVAL_S).abs() < 1e-6, "{name}: {span_s} s");
        assert!((interval.at_s - at_s).abs() < 1e-6, "{name}: {} s is {at_s} s", interval.at_s);
    }
    let total = |of: &[Interval]| -> u64 { of.iter().map(requests).sum() };
    assert!(total(intervals) > 0, "{name} completes requests");
    assert!(
        counted.is_empty() || total(counted) >= total(intervals),
        "{name} counts the intervals"
    );
    assert!(*uncounted >= 0.0, "{name}: {uncounted}");
    assert!(*unfinished >= 0.0, "{name}: {unfinished}");
}

fn requests(interval: &Interval) -> u64 {
    interval.read.count() + interval.write.count()
}

/// Counts what the load of 4 KiB requests in one direction asked for, and nothing else.
fn check_directions(name: &str, loaded: &LoadResult, reads: bool) {
    for interval in &loaded.intervals {
        let (read, write) = (interval.read.count(), interval.write.count());
        let (asked, other) = if reads { (read, write) } else { (write, read) };
        assert!(asked > 0 && other == 0, "{name}: {read} reads, {write} writes");
        let bytes = (interval.read_bytes, interval.write_bytes);
        assert_eq!(bytes, (read * 4096, write * 4096), "{name}: whole requests");
    }
}

fn check_told(name: &str, witness: &Witness) {
    assert!(!witness.done.is_empty(), "{name} tells its progress");
    assert!(witness.done.iter().all(|done| (0.0..=1.0).contains(done)), "{name}: a share");
    assert!(witness.done.is_sorted(), "{name}: progress goes on");
    let sane = |it: &Glimpse| it.iops >= 0.0 && it.throughput_mb_s >= 0.0;
    assert!(witness.glimpses.iter().all(sane), "{name}: {:?}", witness.glimpses);
}

/// Checks that a load that is stopped at once is no error, and does not harm the next.
fn check_stop(name: &str, time_lapse: u32, driver: &mut dyn Driver) {
    let workload = catalogue::find_workload("4k-rand-read").expect("the catalogue has it");
    let long = Load { duration_s: STOPPED_S, ..load(&workload, "stopped") };
    let stopped = driver.load(&long, &mut Witness::new(true));
    let stopped = stopped.unwrap_or_else(|error| panic!("{name}: no error: {error}"));
    let stopped_s = stopped.intervals.len() as f64 * INTERVAL_S;
    assert!(stopped_s < STOPPED_S, "{name}: it ends early, not after {stopped_s} s");
    let again = driver.load(&load(&workload, "again"), &mut Witness::new(false));
    check_intervals(name, time_lapse, &again.expect("it loads after it was stopped"));
}
