//! Repeated replay of a recording, cut into intervals: the load of one of several drives, such as
//! the nodes of a database.
//!
//! ```text
//! recording once ──► prediction      rest of the recording, whole ones ──► intervals
//! ```

use blockio::Nanos;
use results::{ApplicationInterval, Interval};
use ssd::Drive;
use workload::recording::Recording;

use super::meter::Meter;
use super::recorded::{self, AddressMap, Run};
use crate::application::{Prediction, RequestTree};
use crate::driver::{LoopedLoad, RecordedLoad, ReplayedApplication};
use crate::{Error, Kind};

/// Cuts a replay into intervals of equal length.
pub(super) struct IntervalCutter {
    every: Nanos,
    /// End of the present interval; [`Nanos::MAX`] once all are cut.
    pub(super) next_at: Nanos,
    begun: Nanos,
    left: u32,
    /// Requests that were answered in the present interval.
    pub(super) answered: u64,
    cut: Vec<(Interval, u64)>,
}

impl IntervalCutter {
    /// A cutter without intervals.
    pub(super) const fn none() -> Self {
        Self {
            every: Nanos::MAX,
            next_at: Nanos::MAX,
            begun: Nanos::ZERO,
            left: 0,
            answered: 0,
            cut: Vec::new(),
        }
    }

    fn new(looped: &LoopedLoad, begun: Nanos) -> Self {
        let every = Nanos::from_secs_f64(looped.interval_s);
        let left = looped.intervals;
        let next_at = if left == 0 { Nanos::MAX } else { begun + every };
        Self { every, next_at, begun, left, answered: 0, cut: Vec::new() }
    }

    /// Ends the present interval. True once all are cut.
    pub(super) fn cut(&mut self, drive: &Drive, meter: &mut Meter) -> bool {
        assert!(self.left > 0, "an interval is under way");
        let at = self.next_at;
        let interval = meter.cut(drive, at, (at - self.begun).as_secs_f64());
        self.cut.push((interval, std::mem::take(&mut self.answered)));
        self.left -= 1;
        self.next_at = if self.left == 0 { Nanos::MAX } else { at + self.every };
        self.left == 0
    }
}

/// Replays a recording on an idle `drive` called `name`, from `start` on: once for its prediction,
/// then for as long as `looped` says.
///
/// # Errors
/// Fails as a single replay does.
pub(super) fn on(
    drive: &mut Drive,
    name: &str,
    load: &RecordedLoad<'_>,
    looped: &LoopedLoad,
    start: Nanos,
) -> Result<ReplayedApplication, Error> {
    let RecordedLoad { recording, host, .. } = *load;
    let once = recorded::on(drive, name, recording, host, start)?;
    let fit = AddressMap::new(recording, host, drive, name)?;
    let whole = host.tree(recording);
    let first = first_part(&whole, looped.begins_at);
    let mut replayed = once.replayed;
    let Some(prediction) = replayed.prediction else {
        // Without a predicted rate there is none for any interval.
        let (intervals, transactions) = (vec![once.interval], Vec::new());
        return Ok(ReplayedApplication { replayed, intervals, transactions });
    };
    let mut meter = Meter::new(drive, once.completed_at);
    let mut cutter = IntervalCutter::new(looped, once.completed_at);
    let (mut begin, mut tree) = (once.completed_at, &first);
    while cutter.left > 0 {
        let run = Run::new(drive, (tree, host), fit, begin);
        let completed_at = run.go(&mut meter, &mut cutter)?.completed_at;
        let end = completed_at.iter().copied().max().unwrap_or(begin);
        if end <= begin && cutter.left > 0 {
            let text = "the recording spans no time, so that it fills no interval";
            return Err(Error::new(Kind::Input, text));
        }
        (begin, tree) = (end, &whole);
    }
    let transactions = transactions(recording, &prediction, &replayed, &cutter, looped);
    replayed.prediction = Some(mean(&prediction, &transactions));
    let intervals = cutter.cut.into_iter().map(|(interval, _)| interval).collect();
    Ok(ReplayedApplication { replayed, intervals, transactions })
}

/// The requests of `whole` after a share of them; those whose parents come before have none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
fn first_part<'a>(whole: &'a RequestTree<'_>, share: f64) -> RequestTree<'a> {
    assert!((0.0..=1.0).contains(&share), "a share from 0 to 1, and {share}");
    let from = (whole.of_one() as f64 * share) as usize;
    whole.after(from.min(whole.of_one().saturating_sub(1)))
}

/// Transactions of each interval: its requests, times the transactions per request of the single
/// replay. The latency follows from the rate, since the number of clients is the same (Little's
/// law).
fn transactions(
    recording: &Recording,
    prediction: &Prediction,
    replayed: &crate::application::ReplayResult,
    cutter: &IntervalCutter,
    looped: &LoopedLoad,
) -> Vec<ApplicationInterval> {
    let each = prediction.tps * replayed.replayed_s / replayed.requests as f64;
    let clients = prediction.latency_ms_mean.map(|latency| latency * prediction.tps);
    assert!(recording.measured().len() as u64 <= replayed.requests, "copies have more");
    let of = |(interval, answered): &(Interval, u64)| {
        let tps = *answered as f64 * each / looped.interval_s;
        let latency_ms_mean = clients.map(|clients| clients / tps).filter(|it| it.is_finite());
        ApplicationInterval { at_s: interval.at_s, tps, latency_ms_mean }
    };
    cutter.cut.iter().map(of).collect()
}

/// Rate and mean latency over all intervals.
fn mean(prediction: &Prediction, intervals: &[ApplicationInterval]) -> Prediction {
    let count = intervals.len().max(1) as f64;
    let tps = intervals.iter().map(|it| it.tps).sum::<f64>() / count;
    let latency_ms_mean = prediction.latency_ms_mean.map(|it| it * prediction.tps / tps);
    Prediction { tps, latency_ms_mean, ..*prediction }
}

#[cfg(test)]
mod tests;
