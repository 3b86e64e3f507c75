//! Results of a replay: the rate of transactions, their latency, and the share of the host.

use std::num::NonZeroU32;

use blockio::{Nanos, Op};
use results::{Latencies, LatencySummary};
use serde::Serialize;
use workload::recording::{
    self, Parent, RecordedRequest, Recording, Transaction, latency_percentile,
};

use super::RequestTree;

/// Largest share of the host in a replay's critical path at which a rate is predicted.
///
/// Above it the host determines the rate, of which only the sharing of processors is modelled.
pub const HOST_SHARE_MAX: f64 = 0.8;

/// Ratio of latencies from which on a prediction is an extrapolation.
pub const LATENCY_RATIO_MAX: f64 = 5.0;

/// Share of the host in the critical path above which a prediction is an extrapolation.
pub const HOST_SHARE_SHOWN: f64 = 0.5;

/// Largest share of the time of a recording in which no request was outstanding without a break.
///
/// A longer pause is the application's or its host's own, such as a checkpoint that holds all
/// clients up. It is in the prediction as often as in the recording, whatever the drive.
pub const PAUSE_SHARE_MAX: f64 = 0.05;

/// Fewest transactions of which a 99th percentile is told: of fewer, it is their largest latency.
const P99_TRANSACTIONS_MIN: usize = 100;

/// Latencies of the drive's requests, by operation.
#[derive(Clone, Debug, Default)]
pub struct ByOp {
    /// Latencies of reads.
    pub read: Latencies,
    /// Latencies of writes.
    pub write: Latencies,
    /// Latencies of flushes.
    pub flush: Latencies,
}

/// Predicted rate and latency of the recorded application's transactions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Transactions per second, of all copies together.
    pub tps: f64,
    /// Mean latency in milliseconds: that of the recording times the ratio of the spans of replay
    /// and recording, since the number of clients is the same (Little's law). Absent if the
    /// benchmark printed none.
    pub latency_ms_mean: Option<f64>,
    /// 99th percentile of the latency in milliseconds, from begin and commit of each logged
    /// transaction on the clock of the replay. Absent if the benchmark kept no log, or logged fewer
    /// than 100 transactions.
    pub latency_ms_p99: Option<f64>,
}

/// Result of replaying a recording on another drive.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayResult {
    /// Requests that were replayed.
    pub requests: u64,
    /// Time from the first issue to the last completion in the recording, in seconds.
    pub recorded_s: f64,
    /// Time from the first issue to the last completion in the replay, in seconds.
    pub replayed_s: f64,
    /// Longest time in the recording in which no request was outstanding, in seconds.
    pub recorded_pause_s: f64,
    /// Share of think times in the critical path of the recording, from 0 to 1. The critical path
    /// is the chain of parents of the request that completed last.
    pub recorded_host_share: f64,
    /// Share of think times in the critical path of the replay, from 0 to 1.
    pub host_share: f64,
    /// Share of the requests that waited for a timer of their client, from 0 to 1.
    pub timer_share: f64,
    /// Mean latency of requests of the drive in the recording over that in the replay; absent
    /// without requests to either.
    pub latency_ratio: Option<f64>,
    /// Mean number of concurrent think times in the replay.
    pub thinking_mean: f64,
    /// Processors that think times shared; absent if they shared none, as those of copies.
    pub processors: Option<NonZeroU32>,
    /// Prediction; absent if the recording has no benchmark result, or the host dominates.
    pub prediction: Option<Prediction>,
    /// Read latency; absent without reads.
    pub read: Option<LatencySummary>,
    /// Write latency; absent without writes.
    pub write: Option<LatencySummary>,
    /// Flush latency; absent without flushes.
    pub flush: Option<LatencySummary>,
}

impl ReplayResult {
    /// The result of a replay of `recording` whose requests completed as `clock` has them.
    pub fn new(
        recording: &Recording,
        tree: &RequestTree<'_>,
        clock: &Clock,
        latencies: &ByOp,
    ) -> Self {
        let (requests, parents) = (recording.measured(), &tree.parents);
        let recorded = recording::parents(requests);
        let start = requests[0].issued_at;
        let recorded_s = clock.recorded_end().saturating_sub(start).as_secs_f64();
        let replayed_s = clock.replayed_end().as_secs_f64();
        let host_share = clock.host_share(parents);
        let thought = clock.think_times.iter().map(|it| it.as_secs_f64()).sum::<f64>();
        let benchmark = recording.tail.as_ref().and_then(|tail| tail.benchmark.as_ref());
        let prediction = benchmark.filter(|_| host_share <= HOST_SHARE_MAX).map(|benchmark| {
            let slower = replayed_s / recorded_s;
            let copies = f64::from(tree.copies.get());
            let ends = tree.by_copy(&clock.completed_at).map(|of| of.iter().max().copied());
            let ends_s: f64 = ends.map(|it| it.unwrap_or_default().as_secs_f64()).sum();
            let slower_mean = ends_s / copies / recorded_s;
            let p99 = transactions_p99(recording, tree, clock);
            Prediction {
                tps: benchmark.tps * copies / slower,
                latency_ms_mean: benchmark.latency_ms_mean.map(|it| it * slower_mean),
                latency_ms_p99: p99.map(|it| it.as_secs_f64() * 1e3),
            }
        });
        let summary = |of: &Latencies| (of.count() > 0).then(|| of.summary());
        let timers = parents.iter().filter(|it| it.is_timer).count();
        Self {
            requests: tree.requests.len() as u64,
            recorded_s,
            replayed_s,
            recorded_pause_s: longest_pause(requests).as_secs_f64(),
            recorded_host_share: Clock::of_recording(requests, &recorded).host_share(&recorded),
            host_share,
            timer_share: timers as f64 / parents.len().max(1) as f64,
            latency_ratio: latency_ratio(requests, latencies),
            thinking_mean: if replayed_s > 0.0 { thought / replayed_s } else { 0.0 },
            processors: tree.processors,
            prediction,
            read: summary(&latencies.read),
            write: summary(&latencies.write),
            flush: summary(&latencies.flush),
        }
    }

    /// Time of the replay divided by the time of the recording.
    pub fn slowdown(&self) -> f64 {
        self.replayed_s / self.recorded_s
    }

    /// True if a rate is predicted of a drive or a host that the recording hardly shows: requests
    /// take a fifth or five times as long, or the host has more than half of the critical path. A
    /// wait that did not matter in the recording, such as one for a lock, may matter there.
    pub fn is_extrapolated(&self) -> bool {
        let is_alike = |ratio: f64| (1.0 / LATENCY_RATIO_MAX..=LATENCY_RATIO_MAX).contains(&ratio);
        let is_unlike = self.latency_ratio.is_some_and(|ratio| !is_alike(ratio));
        self.prediction.is_some() && (is_unlike || self.host_share > HOST_SHARE_SHOWN)
    }

    /// Share of the recording that its longest pause takes, if a rate is predicted from it and the
    /// share is above [`PAUSE_SHARE_MAX`].
    pub fn long_pause(&self) -> Option<f64> {
        let share = self.recorded_pause_s / self.recorded_s;
        (self.prediction.is_some() && share > PAUSE_SHARE_MAX).then_some(share)
    }
}

/// Mean latency of recorded requests over that of a replay, both of reads, writes and flushes.
fn latency_ratio(requests: &[RecordedRequest], replayed: &ByOp) -> Option<f64> {
    let of_drive = requests.iter().filter(|it| it.op != Op::Trim);
    let recorded: Vec<f64> = of_drive.map(|it| it.latency().as_secs_f64()).collect();
    let replayed = [&replayed.read, &replayed.write, &replayed.flush];
    let count: u64 = replayed.iter().map(|it| it.count()).sum();
    let mean_ns = |it: &Latencies| it.summary().mean_ns().unwrap_or_default();
    let total_ns: f64 = replayed.iter().map(|it| mean_ns(it) * it.count() as f64).sum();
    let ratio =
        recorded.iter().sum::<f64>() * 1e9 / recorded.len() as f64 / (total_ns / count as f64);
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// The longest time in which no request was outstanding, between the first issue and the last
/// completion.
fn longest_pause(requests: &[RecordedRequest]) -> Nanos {
    let mut spans: Vec<(Nanos, Nanos)> =
        requests.iter().map(|it| (it.issued_at, it.completed_at)).collect();
    spans.sort_unstable();
    let mut completed_until = spans.first().map_or(Nanos::ZERO, |(issued_at, _)| *issued_at);
    let mut longest = Nanos::ZERO;
    for (issued_at, completed_at) in spans {
        longest = longest.max(issued_at.saturating_sub(completed_until));
        completed_until = completed_until.max(completed_at);
    }
    longest
}

/// 99th percentile of the transactions' latencies on the clock of the replay; none without a log or
/// of few transactions. A copy that is a single transaction needs no log.
fn transactions_p99(recording: &Recording, tree: &RequestTree<'_>, clock: &Clock) -> Option<Nanos> {
    let mut latencies = Vec::new();
    let benchmark = recording.tail.as_ref().and_then(|tail| tail.benchmark.as_ref());
    let is_one = benchmark.is_some_and(|it| it.transactions == 1);
    for completed_at in tree.by_copy(&clock.completed_at) {
        if is_one {
            latencies.extend(completed_at.iter().max());
            continue;
        }
        let moments = Moments::new(recording.measured(), completed_at);
        let latency =
            |it: &Transaction| moments.replayed(it.to).saturating_sub(moments.replayed(it.from));
        latencies.extend(recording.measured_transactions().map(latency));
    }
    let is_told = latencies.len() >= P99_TRANSACTIONS_MIN;
    is_told.then(|| latency_percentile(&mut latencies, 99.0)).flatten()
}

/// Maps times of a recording to the clock of its replay: a time keeps its distance from the
/// latest completion before it.
struct Moments {
    /// Start of the recording: the replay begins at zero.
    start: Nanos,
    /// Time of each completion in the recording and in the replay, in order of the former.
    completions: Vec<(Nanos, Nanos)>,
}

impl Moments {
    fn new(requests: &[RecordedRequest], replayed: &[Nanos]) -> Self {
        assert_eq!(requests.len(), replayed.len(), "every request has completed");
        let start = requests.first().map_or(Nanos::ZERO, |it| it.issued_at);
        let recorded = requests.iter().map(|it| it.completed_at);
        let mut completions: Vec<(Nanos, Nanos)> = recorded.zip(replayed.iter().copied()).collect();
        completions.sort_unstable();
        Self { start, completions }
    }

    fn replayed(&self, moment: Nanos) -> Nanos {
        let before = self.completions.partition_point(|(recorded, _)| *recorded <= moment);
        match before.checked_sub(1).map(|last| self.completions[last]) {
            Some((recorded, replayed)) => replayed + (moment - recorded),
            None => moment.saturating_sub(self.start),
        }
    }
}

/// Completion times and think times of the requests of a recording or a replay.
#[derive(Debug)]
pub struct Clock {
    recorded_end: Nanos,
    completed_at: Vec<Nanos>,
    think_times: Vec<Nanos>,
}

impl Clock {
    /// The clock of a replay that began at zero, with completion and think time of each request.
    pub fn new(tree: &RequestTree<'_>, completed_at: Vec<Nanos>, think_times: Vec<Nanos>) -> Self {
        assert_eq!(tree.requests.len(), completed_at.len(), "every request has completed");
        assert_eq!(tree.requests.len(), think_times.len(), "every request was issued");
        Self { recorded_end: tree.recorded_end(), completed_at, think_times }
    }

    /// The clock of the recording itself, from its first issue on.
    pub(super) fn of_recording(requests: &[RecordedRequest], parents: &[Parent]) -> Self {
        let start = requests.first().map_or(Nanos::ZERO, |it| it.issued_at);
        let completed_at = requests.iter().map(|it| it.completed_at - start).collect();
        let recorded_end = requests.iter().map(|it| it.completed_at).max().unwrap_or_default();
        let think_times = parents.iter().map(|it| it.think_time).collect();
        Self { recorded_end, completed_at, think_times }
    }

    fn recorded_end(&self) -> Nanos {
        self.recorded_end
    }

    fn replayed_end(&self) -> Nanos {
        self.completed_at.iter().copied().max().unwrap_or_default()
    }

    /// Share of think times in the critical path: the think time of the request that completed
    /// last, that of its parent, and so on to the first.
    pub(super) fn host_share(&self, parents: &[Parent]) -> f64 {
        let last = (0..self.completed_at.len()).max_by_key(|index| self.completed_at[*index]);
        let mut next = last;
        let mut thought = Nanos::ZERO;
        while let Some(index) = next {
            thought += self.think_times[index];
            next = parents[index].index.map(|parent| parent as usize);
        }
        let end = self.replayed_end();
        let share =
            if end == Nanos::ZERO { 0.0 } else { thought.as_secs_f64() / end.as_secs_f64() };
        assert!((0.0..=1.0 + 1e-9).contains(&share), "a share of the span, and {share}");
        share.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{reads, reads_apart};
    use super::*;

    const US: fn(u64) -> Nanos = Nanos::from_micros;

    #[test]
    fn a_moment_keeps_its_distance_from_the_completion_before_it() {
        let recorded = reads(&[(1000, 1100), (1200, 1300)]);
        let moments = Moments::new(&recorded, &[US(400), US(900)]);
        let replayed_us = |moment: u64| moments.replayed(US(moment)).0 / 1000;
        assert_eq!(replayed_us(1000), 0, "the replay begins at zero");
        assert_eq!(replayed_us(1040), 40, "nothing has completed yet");
        assert_eq!((replayed_us(1100), replayed_us(1250)), (400, 550));
        assert_eq!((replayed_us(1300), replayed_us(5000)), (900, 4600));
        assert_eq!(replayed_us(7), 0, "before the recording there is nothing");
    }

    #[test]
    fn completions_count_in_the_order_of_the_recording_whichever_was_issued_first() {
        let recorded = reads(&[(0, 900), (10, 100)]);
        let moments = Moments::new(&recorded, &[US(5000), US(70)]);
        assert_eq!(moments.replayed(US(150)), US(120), "after the second, which completed first");
        assert_eq!(moments.replayed(US(950)), US(5050));
    }

    #[test]
    fn a_pause_is_a_time_in_which_nothing_is_outstanding() {
        // The second request is outstanding while the third waits to be issued.
        let recorded = reads(&[(100, 200), (150, 900), (800, 850), (960, 1000)]);
        assert_eq!(longest_pause(&recorded), US(60));
        assert_eq!(longest_pause(&reads(&[(40, 50)])), Nanos::ZERO);
        assert_eq!(longest_pause(&[]), Nanos::ZERO);
    }

    #[test]
    fn a_replay_that_took_no_time_has_no_share_of_the_host() {
        let requests = reads(&[(5, 5)]);
        let parents = recording::parents(&requests);
        let clock = Clock::of_recording(&requests, &parents);
        assert!(clock.host_share(&recording::parents(&requests)).abs() < 1e-12);
        assert!(Clock::of_recording(&[], &[]).host_share(&[]).abs() < 1e-12, "nor one of nothing");
    }

    #[test]
    fn only_think_times_on_the_way_to_the_last_completion_are_the_hosts() {
        // The third waits for the first and ends last; the second thinks for long beside it.
        let parents = [
            Parent { index: None, think_time: US(10), is_timer: false },
            Parent { index: Some(0), think_time: US(800), is_timer: false },
            Parent { index: Some(0), think_time: US(90), is_timer: false },
        ];
        let think_times = parents.iter().map(|it| it.think_time).collect();
        let completed_at = [100, 950, 1000].map(US).into();
        let clock = Clock { recorded_end: US(0), completed_at, think_times };
        assert!((clock.host_share(&parents) - 0.1).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn a_replay_at_the_speed_of_the_recording_moves_every_moment_to_its_start(
            spans in prop::collection::vec((0_u64..500, 1_u64..500), 1..20),
            moment in 0_u64..2000,
        ) {
            let recorded = reads_apart(&spans);
            let start = recorded[0].issued_at;
            let same: Vec<Nanos> = recorded.iter().map(|it| it.completed_at - start).collect();
            let moments = Moments::new(&recorded, &same);
            prop_assert_eq!(moments.replayed(US(moment)), US(moment).saturating_sub(start));
        }
    }
}
