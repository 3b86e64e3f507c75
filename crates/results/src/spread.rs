//! Spread of the figures of one load: an interval beside each rate, mean and percentile.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::confidence::{ConfidenceInterval, IntervalKind, QUANTILE_NORMAL};
use crate::{Interval, Latencies, LatencySummary, Summary, is_percentile_known};

/// Numbers of batches that are tried in turn, until each batch holds requests enough for the
/// figure: ten to thirty are advised [schmeiser-1982], and fewer give a wider interval.
const BATCHES: [usize; 3] = [20, 10, 5];

/// Intervals of the figures of one load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Of the requests completed in each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<ConfidenceInterval>,
    /// Of the latency over reads and writes together.
    #[serde(default, skip_serializing_if = "LatencySpread::is_empty")]
    pub latency: LatencySpread,
    /// Of the latency of reads.
    #[serde(default, skip_serializing_if = "LatencySpread::is_empty")]
    pub read: LatencySpread,
    /// Of the latency of writes.
    #[serde(default, skip_serializing_if = "LatencySpread::is_empty")]
    pub write: LatencySpread,
}

/// Intervals of the latency of one kind of request, in nanoseconds; absent where too few requests
/// were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySpread {
    /// Of the arithmetic mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns_avg: Option<ConfidenceInterval>,
    /// Of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns_p50: Option<ConfidenceInterval>,
    /// Of the 90th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns_p90: Option<ConfidenceInterval>,
    /// Of the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns_p99: Option<ConfidenceInterval>,
    /// Of the 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns_p999: Option<ConfidenceInterval>,
    /// Of the 99.99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns_p9999: Option<ConfidenceInterval>,
}

impl Spread {
    /// The spread of one measurement, from its consecutive `intervals`; absent where they are fewer
    /// than five.
    pub fn of_intervals(intervals: &[Interval]) -> Option<Self> {
        let batch = |range: Range<usize>| Summary::of(&intervals[range]);
        let batched = Self::of_batches(&Summary::of(intervals), (intervals.len(), 1), &batch)?;
        Some(batched.or(&Self::of_order(intervals)))
    }

    /// The spread of a measurement whose figures are those of `whole`, from batches of its
    /// consecutive parts, `least` to a batch or fewer batches, of which `summary` tells the
    /// figures. Absent where there are fewer than five parts.
    pub fn of_batches(
        whole: &Summary,
        (parts, least): (usize, usize),
        summary: &dyn Fn(Range<usize>) -> Summary,
    ) -> Option<Self> {
        let [.., fewest] = BATCHES;
        let at = |index: usize, count: usize| index * parts / count;
        let batches: Vec<Vec<Summary>> = BATCHES
            .into_iter()
            .filter(|count| *count <= parts && (parts / count >= least || *count == fewest))
            .map(|count| (0..count).map(|it| summary(at(it, count)..at(it + 1, count))).collect())
            .collect();
        if batches.is_empty() {
            return None;
        }
        Some(Self::by(&|figure| {
            let centre = figure(whole)?;
            let values = |batches: &Vec<Summary>| batches.iter().map(figure).collect();
            let parts: Vec<f64> = batches.iter().find_map(values)?;
            ConfidenceInterval::of_batches(centre, &parts)
        }))
    }

    /// The spread over repeats of one load; absent for a single one.
    pub fn of_repeats(repeats: &[&Summary]) -> Option<Self> {
        let by = || {
            Self::by(&|figure| {
                let values: Option<Vec<f64>> = repeats.iter().map(|it| figure(it)).collect();
                ConfidenceInterval::of_repeats(&values?)
            })
        };
        (repeats.len() > 1).then(by)
    }

    /// The spread over repeats of one load, completed by that of the `parts` of one of them; that
    /// alone where nothing was repeated.
    pub fn over(repeats: &[&Summary], parts: Option<Self>) -> Option<Self> {
        let repeated = Self::of_repeats(repeats);
        repeated.map(|it| it.or(&parts.unwrap_or_default())).or(parts)
    }

    /// Returns the intervals of `self`, and where there is none, those of `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            iops: self.iops.or(other.iops),
            latency: self.latency.or(&other.latency),
            read: self.read.or(&other.read),
            write: self.write.or(&other.write),
        }
    }

    /// The intervals that `estimate` finds for each figure.
    fn by(estimate: &Estimate<'_>) -> Self {
        Self {
            iops: estimate(&|it| Some(it.iops)),
            latency: LatencySpread::by(estimate, |it| &it.latency),
            read: LatencySpread::by(estimate, |it| &it.read),
            write: LatencySpread::by(estimate, |it| &it.write),
        }
    }

    /// Intervals of percentiles from the requests around them.
    fn of_order(intervals: &[Interval]) -> Self {
        let (mut read, mut write) = (Latencies::default(), Latencies::default());
        for interval in intervals {
            read.merge(&interval.read);
            write.merge(&interval.write);
        }
        let mut both = read.clone();
        both.merge(&write);
        Self {
            iops: None,
            latency: LatencySpread::of_order(&both),
            read: LatencySpread::of_order(&read),
            write: LatencySpread::of_order(&write),
        }
    }
}

/// Finds the interval of a figure that is read from summaries.
type Estimate<'a> = dyn Fn(&dyn Fn(&Summary) -> Option<f64>) -> Option<ConfidenceInterval> + 'a;

impl LatencySpread {
    /// True if there is no interval.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn by(estimate: &Estimate<'_>, of: fn(&Summary) -> &LatencySummary) -> Self {
        let percentile = |read: fn(&LatencySummary) -> Option<u64>| {
            estimate(&|it| read(of(it)).map(|latency_ns| latency_ns as f64))
        };
        Self {
            latency_ns_avg: estimate(&|it| of(it).mean_ns()),
            latency_ns_p50: percentile(LatencySummary::p50_ns),
            latency_ns_p90: percentile(LatencySummary::p90_ns),
            latency_ns_p99: percentile(LatencySummary::p99_ns),
            latency_ns_p999: percentile(LatencySummary::p999_ns),
            latency_ns_p9999: percentile(LatencySummary::p9999_ns),
        }
    }

    fn of_order(latencies: &Latencies) -> Self {
        let around = |share: f64| around(latencies, share);
        Self {
            latency_ns_avg: None,
            latency_ns_p50: around(0.5),
            latency_ns_p90: around(0.9),
            latency_ns_p99: around(0.99),
            latency_ns_p999: around(0.999),
            latency_ns_p9999: around(0.9999),
        }
    }

    fn or(&self, other: &Self) -> Self {
        Self {
            latency_ns_avg: self.latency_ns_avg.or(other.latency_ns_avg),
            latency_ns_p50: self.latency_ns_p50.or(other.latency_ns_p50),
            latency_ns_p90: self.latency_ns_p90.or(other.latency_ns_p90),
            latency_ns_p99: self.latency_ns_p99.or(other.latency_ns_p99),
            latency_ns_p999: self.latency_ns_p999.or(other.latency_ns_p999),
            latency_ns_p9999: self.latency_ns_p9999.or(other.latency_ns_p9999),
        }
    }
}

/// Requests between whose latencies the percentile at `share` lies: their ranks are normally
/// distributed about its own.
fn around(latencies: &Latencies, share: f64) -> Option<ConfidenceInterval> {
    let count = latencies.measured();
    if !is_percentile_known(count, share) {
        return None;
    }
    let half = QUANTILE_NORMAL * (share * (1.0 - share) / count as f64).sqrt();
    let [low, high] = latencies.between((share - half).max(0.0), (share + half).min(1.0));
    let kind = IntervalKind::OrderStatistics;
    Some(ConfidenceInterval::new(kind, low as f64, high as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second with so many writes of 1 ms, and so many of 50 ms.
    fn second(fast: u64, slow: u64) -> Interval {
        let mut interval = Interval { span_s: 1.0, ..Interval::default() };
        interval.write.record_many(1_000_000, fast);
        interval.write.record_many(50_000_000, slow);
        interval
    }

    #[test]
    fn a_level_load_has_narrow_intervals_from_twenty_batches() {
        let spread = Spread::of_intervals(&vec![second(20_000, 100); 60]).unwrap();
        let iops = spread.iops.unwrap();
        assert_eq!(iops.kind, IntervalKind::Batches);
        assert!((iops.low - 20_100.0).abs() < 1e-6 && (iops.high - 20_100.0).abs() < 1e-6);
        assert!(spread.read.is_empty(), "nothing was read");
        let p999 = spread.write.latency_ns_p999.unwrap();
        assert!((p999.high - p999.low).abs() < 1.0, "{p999:?}");
    }

    #[test]
    fn a_tail_that_one_stall_makes_is_uncertain() {
        let mut seconds = vec![second(20_000, 0); 60];
        seconds[30] = second(10_000, 10_000);
        let spread = Spread::of_intervals(&seconds).unwrap();
        let p999 = spread.write.latency_ns_p999.unwrap();
        assert_eq!(p999.kind, IntervalKind::Batches);
        // Nineteen of twenty batches have 1 ms where the whole has 50 ms.
        assert!(p999.low < 1_000_000.0 && p999.high > 70_000_000.0, "{p999:?}");
        let iops = spread.iops.unwrap();
        assert!((iops.high - iops.low) < 1.0, "the rate is certain: {iops:?}");
    }

    #[test]
    fn requests_around_a_percentile_bound_it_where_batches_hold_too_few() {
        // 5,000 requests: p99.9 has no ten beyond it anywhere, p99 in no batch but in the whole.
        let seconds = vec![second(495, 5); 10];
        let spread = Spread::of_intervals(&seconds).unwrap();
        assert_eq!(spread.write.latency_ns_p999, None);
        let p99 = spread.write.latency_ns_p99.unwrap();
        assert_eq!(p99.kind, IntervalKind::Batches, "five batches of a thousand hold it");
        let few = Spread::of_intervals(&vec![second(195, 5); 10]).unwrap();
        let p99 = few.write.latency_ns_p99.unwrap();
        assert_eq!(p99.kind, IntervalKind::OrderStatistics);
        assert_eq!(Spread::of_intervals(&vec![second(195, 5); 4]), None);
    }

    #[test]
    fn repeats_count_more_than_the_parts_of_one() {
        let one = |iops| Summary { iops, ..Summary::default() };
        let repeated = Spread::of_repeats(&[&one(10.0), &one(12.0), &one(14.0)]).unwrap();
        let alone = Spread::of_intervals(&vec![second(20_000, 100); 20]).unwrap();
        let both = repeated.or(&alone);
        assert_eq!(both.iops, repeated.iops);
        assert_eq!(both.write, alone.write);
        assert_eq!(Spread::of_repeats(&[&one(10.0)]), None);
    }
}
