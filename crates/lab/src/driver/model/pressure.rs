//! Load generators in front of a modelled drive, as the driver sees them.

use blockio::{Completion, Nanos, Status};
use results::Interval;
use ssd::Drive;

use super::meter::Meter;
use super::{climate, space};
use crate::driver::Watch;
use crate::{Error, Kind};

/// Completions between two looks at whether to stop: some tens of milliseconds.
pub(super) const STOP_CHECK_COMPLETIONS: u32 = 1 << 14;

/// Load generator in front of a drive.
pub(super) trait Pressure {
    /// The drive under load.
    fn drive(&self) -> &Drive;
    /// Keeps the load up until every completion at or before `until` is counted.
    ///
    /// Returns false when it was told to stop before.
    ///
    /// # Errors
    /// Fails if a request failed.
    fn run(
        &mut self,
        until: Nanos,
        meter: &mut Meter,
        watch: &mut dyn Watch,
    ) -> Result<bool, Error>;
    /// Begins to measure: what was noted of the ramp is forgotten.
    fn forget(&mut self) {}
    /// Awaits everything outstanding without counting it; the last interval ended at `end`.
    fn drain(self, end: Nanos) -> OutstandingRequests;
}

/// Requests that were outstanding when a load ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutstandingRequests {
    /// Completion time of the last of them; 0 where nothing was outstanding.
    pub(super) completed_at: Nanos,
    /// Sum of their ages when the last interval ended.
    pub(super) waited: Nanos,
}

impl OutstandingRequests {
    pub(super) fn of(completions: impl Iterator<Item = Completion>, end: Nanos) -> Self {
        completions.fold(Self::default(), |rest, done| Self {
            completed_at: rest.completed_at.max(done.completed_at),
            waited: rest.waited + end.saturating_sub(done.submitted_at),
        })
    }

    /// Requests that `intervals`, of which it is the rest, lack on average.
    pub(super) fn unfinished(self, intervals: &[Interval]) -> f64 {
        let span_s: f64 = intervals.iter().map(|interval| interval.span_s).sum();
        if span_s > 0.0 { self.waited.as_secs_f64() / span_s } else { 0.0 }
    }
}

/// The error of a request that failed on a drive in time lapse; its time is told in protocol time,
/// counted from when the drive was made.
#[cold]
pub(crate) fn failed(done: &Completion, time_lapse: u32) -> Error {
    let Completion { op, status, .. } = done;
    let completed_at = done.completed_at * u64::from(time_lapse);
    match *status {
        Status::OutOfSpace => return space::exhausted(completed_at),
        Status::PoweredOff => return climate::switched_off(completed_at, done.sectors),
        Status::ReadOnly => {
            let text = format!(
                "after {completed_at} the model takes no more writes: its spare space does not \
                 suffice for the dies that failed"
            );
            return Error::new(Kind::Input, text).hint("have fewer dies fail, or fail later");
        }
        Status::Ok | Status::OutOfRange | Status::MediaError => {}
    }
    let text = format!("after {completed_at} a {op:?} of the model ended with {status:?}");
    Error::new(Kind::Program, text.to_lowercase())
}
