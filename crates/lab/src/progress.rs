//! Progress of runs, for the caller that waits for them.

use std::sync::{Mutex, PoisonError};

use results::{Interval, Summary};
use serde::{Deserialize, Serialize};

use crate::plan::PlannedStep;

/// Something moved.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Label of the run that the caller gave it: `stock`.
    pub run: &'a str,
    /// Step under way.
    pub step: &'a PlannedStep,
    /// Share of the step that is over, 0 to 1.
    pub step_done: f64,
    /// True if the step is over and kept.
    pub step_finished: bool,
    /// Share of all the runs that is over, by protocol time, 0 to 1.
    pub done: f64,
    /// Seconds of wall time left at the present pace; absent at the very start.
    pub left_s: Option<f64>,
    /// Latest figures in words, such as `42.6k IOPS`; may be empty.
    pub text: &'a str,
    /// Latest figures as numbers; absent while nothing was measured.
    pub glimpse: Option<Glimpse>,
}

/// Latest figures of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Glimpse {
    /// Requests completed in each second.
    pub iops: f64,
    /// Decimal MB/s read and written.
    pub throughput_mb_s: f64,
    /// Mean latency in nanoseconds; absent where nothing was completed.
    pub latency_ns_avg: Option<f64>,
}

impl Glimpse {
    /// Figures of one interval.
    pub fn of(interval: &Interval) -> Self {
        let Interval { read, write, span_s, read_bytes, write_bytes, .. } = interval;
        let completed = read.count() + write.count();
        let spent_ns = (read.sum_ns() + write.sum_ns()) as f64;
        Self {
            iops: completed as f64 / span_s,
            throughput_mb_s: (read_bytes + write_bytes) as f64 / span_s / 1e6,
            latency_ns_avg: (completed > 0).then(|| spent_ns / completed as f64),
        }
    }

    /// Figures of a whole step.
    pub fn of_summary(summary: &Summary) -> Self {
        let latency = &summary.latency;
        Self {
            iops: summary.iops,
            throughput_mb_s: summary.throughput_mb_s(),
            latency_ns_avg: (latency.count > 0).then_some(latency.latency_ns_avg),
        }
    }
}

/// Observer of runs. Steps of several suites may be under way at once.
pub trait Progress: Sync {
    /// Takes a report of progress.
    fn moved(&self, event: &Event<'_>);
    /// True if all work is to end now, keeping what was measured.
    fn stop(&self) -> bool;
}

/// Observer that ignores progress and never stops a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentProgress;

impl Progress for SilentProgress {
    fn moved(&self, _: &Event<'_>) {}

    fn stop(&self) -> bool {
        false
    }
}

/// Protocol time and work that are done, summed over everything that is under way, and their wall
/// time.
///
/// The remaining wall time is estimated from the remaining work and the wall time of work so far: a
/// model takes minutes for hours of one drive and seconds for the same hours of another. Steps that
/// an earlier session finished take no time and do not count.
#[derive(Debug)]
pub struct TimeTally {
    total_s: f64,
    total_work: f64,
    /// Steps that are under way at once, at least 1.
    workers: f64,
    passed: Mutex<ElapsedWork>,
}

/// Time and work that have passed.
#[derive(Debug, Default)]
struct ElapsedWork {
    /// Protocol time, in seconds.
    over_s: f64,
    /// Work.
    work: f64,
    /// Work with known wall time.
    paced: f64,
    /// Wall time of that work in seconds, summed over the workers.
    spent_s: f64,
}

/// Wall time that must have been spent before anything is said of what is left, in seconds.
const SPENT_MIN_S: f64 = 2.0;

impl TimeTally {
    /// Tally for a total of protocol seconds and work, none of it done, for at most `workers` steps
    /// at once.
    pub fn new((total_s, total_work): (f64, f64), workers: usize) -> Self {
        let workers = workers.max(1) as f64;
        Self { total_s, total_work, workers, passed: Mutex::default() }
    }

    /// Adds protocol seconds and work that are done, which took `spent_s` of wall time; absent if
    /// an earlier session did them. Returns the share of protocol time that is done, and the
    /// remaining wall time in seconds; absent while too little is known.
    pub fn add(&self, (by_s, by_work): (f64, f64), spent_s: Option<f64>) -> (f64, Option<f64>) {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        passed.over_s += by_s;
        passed.work += by_work;
        if let Some(spent_s) = spent_s.filter(|_| by_work > 0.0) {
            passed.paced += by_work;
            passed.spent_s += spent_s;
        }
        let ElapsedWork { over_s, work, paced, spent_s } = *passed;
        let share = if self.total_s > 0.0 { (over_s / self.total_s).clamp(0.0, 1.0) } else { 1.0 };
        let is_known = spent_s >= SPENT_MIN_S && paced > 0.0;
        let left_s = (self.total_work - work).max(0.0) * spent_s / paced / self.workers;
        (share, is_known.then_some(left_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_by_the_pace_of_loads_alone() {
        let tally = TimeTally::new((1000.0, 1000.0), 1);
        let add = |by: f64, spent_s| tally.add((by, by), spent_s);
        assert_eq!(add(0.0, Some(600.0)), (0.0, None), "a purge says nothing of the pace");
        assert_eq!(add(500.0, None), (0.5, None), "nor does what an earlier session did");
        assert_eq!(add(100.0, Some(1.0)), (0.6, None), "a second is too short to tell");
        assert_eq!(add(100.0, Some(3.0)), (0.7, Some(6.0)));
    }

    #[test]
    fn what_is_left_goes_by_work_and_not_by_protocol_time() {
        let tally = TimeTally::new((1000.0, 1000.0), 1);
        let (share, left_s) = tally.add((900.0, 100.0), Some(10.0));
        assert_eq!((share, left_s), (0.9, Some(90.0)));
    }

    #[test]
    fn figures_of_an_interval_are_told_for_reads_and_writes_together() {
        let mut interval = Interval {
            span_s: 2.0,
            read_bytes: 3_000_000,
            write_bytes: 1_000_000,
            ..Interval::default()
        };
        interval.read.record_many(1000, 30);
        interval.write.record_many(5000, 10);
        let glimpse = Glimpse::of(&interval);
        assert!((glimpse.iops - 20.0).abs() < 1e-9);
        assert!((glimpse.throughput_mb_s - 2.0).abs() < 1e-9);
        assert!((glimpse.latency_ns_avg.unwrap() - 2000.0).abs() < 1e-9);
    }

    #[test]
    fn an_interval_in_which_nothing_completed_has_no_latency() {
        let interval = Interval { span_s: 1.0, ..Interval::default() };
        let glimpse = Glimpse::of(&interval);
        assert!(glimpse.iops.abs() < 1e-9);
        assert_eq!(glimpse.latency_ns_avg, None);
        assert_eq!(Glimpse::of_summary(&Summary::default()).latency_ns_avg, None);
    }

    #[test]
    fn work_of_no_length_is_over_at_once() {
        let tally = TimeTally::new((0.0, 0.0), 0);
        assert_eq!(tally.add((0.0, 0.0), None), (1.0, None));
    }

    #[test]
    fn more_than_was_planned_is_still_all_of_it() {
        let tally = TimeTally::new((100.0, 100.0), 1);
        let all = tally.add((150.0, 150.0), Some(10.0));
        assert_eq!(all, (1.0, Some(0.0)), "a preconditioning was longer");
    }

    #[test]
    fn several_workers_share_what_is_left() {
        let tally = TimeTally::new((1000.0, 1000.0), 2);
        tally.add((100.0, 100.0), Some(10.0));
        assert_eq!(tally.add((100.0, 100.0), Some(10.0)), (0.2, Some(40.0)));
    }
}
