//! How far the work is, for whoever waits.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use results::{Interval, Summary};
use serde::{Deserialize, Serialize};

use crate::plan::PlannedStep;

/// Something moved.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Which run, as the caller labelled it: `stock`.
    pub run: &'a str,
    /// Which step of it.
    pub step: &'a PlannedStep,
    /// How much of the step is over, 0 to 1.
    pub step_done: f64,
    /// Whether the step is over and kept.
    pub step_finished: bool,
    /// How much of all the runs is over, by protocol time, 0 to 1.
    pub done: f64,
    /// Seconds of wall time left at the present pace; absent at the very start.
    pub left_s: Option<f64>,
    /// What was seen last, such as `42.6k IOPS`; may be empty.
    pub text: &'a str,
    /// The same in numbers; absent while nothing was measured.
    pub glimpse: Option<Glimpse>,
}

/// What a load did lately.
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
    /// What an interval measured.
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

    /// What a whole step measured.
    pub fn of_summary(summary: &Summary) -> Self {
        let latency = &summary.latency;
        Self {
            iops: summary.iops,
            throughput_mb_s: summary.throughput_mb_s(),
            latency_ns_avg: (latency.count > 0).then_some(latency.latency_ns_avg),
        }
    }
}

/// Whoever waits for runs. Steps of several suites may be under way at once.
pub trait Progress: Sync {
    /// Hears of progress.
    fn moved(&self, event: &Event<'_>);
    /// Whether all work is to end now, keeping what was measured.
    fn stop(&self) -> bool;
}

/// Nobody waits, and nobody stops it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Progress for Unwatched {
    fn moved(&self, _: &Event<'_>) {}

    fn stop(&self) -> bool {
        false
    }
}

/// Protocol time over, summed over everything that is under way.
#[derive(Debug)]
pub(crate) struct Tally {
    total_s: f64,
    over_s: Mutex<f64>,
    begun: Instant,
}

impl Tally {
    /// Nothing over of `total_s` protocol seconds.
    pub(crate) fn new(total_s: f64) -> Self {
        Self { total_s, over_s: Mutex::new(0.0), begun: Instant::now() }
    }

    /// Another `by_s` are over. Returns the share over and the wall seconds left.
    pub(crate) fn add(&self, by_s: f64) -> (f64, Option<f64>) {
        let mut over_s = self.over_s.lock().unwrap_or_else(PoisonError::into_inner);
        *over_s += by_s;
        let share = if self.total_s > 0.0 { (*over_s / self.total_s).clamp(0.0, 1.0) } else { 1.0 };
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        (share, (share > 0.0).then(|| elapsed_s * (1.0 - share) / share))
    }
}
