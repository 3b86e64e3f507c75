//! How far the work is, for whoever waits.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

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
