//! Latency over time as a heat map: which share of the requests of a span had which latency.
//!
//! An interval keeps a histogram of twenty bins to a decade; a row of the map is two of them. A
//! request is counted by the upper end of the bin of its driver's histogram, 0.8 to 1.6 % wide, so
//! that a cell is exact but for requests that near its edge.

use crate::{Bin, Interval, Latencies, Sample};

/// Rows to a decade of latency.
const ROWS_PER_DECADE: f64 = 10.0;
/// Bins to a decade of latency that an interval keeps.
const BINS_PER_DECADE: f64 = 20.0;

/// The latencies of `interval`, reads and writes together, in bins of a twentieth of a decade.
pub(crate) fn decades(interval: &Interval) -> Vec<Bin> {
    let mut all = Latencies::default();
    all.merge(&interval.read);
    all.merge(&interval.write);
    let mut bins: Vec<(i32, u64)> = Vec::new();
    for Bin { latency_ns, count } in all.bins() {
        let at = place(latency_ns, BINS_PER_DECADE);
        match bins.last_mut() {
            Some((last, counted)) if *last == at => *counted += count,
            _ => bins.push((at, count)),
        }
    }
    let bin = |(at, count)| Bin { latency_ns: highest(at), count };
    bins.into_iter().map(bin).collect()
}

/// The row or bin of a latency, of which there are so many to a decade.
#[expect(clippy::cast_possible_truncation, reason = "a logarithm of a 64-bit number")]
fn place(latency_ns: u64, per_decade: f64) -> i32 {
    ((latency_ns.max(1) as f64).log10() * per_decade + ROUNDING).floor() as i32
}

/// An edge belongs to what lies above it, however the last bit of its logarithm was rounded.
const ROUNDING: f64 = 1e-9;

/// The highest latency of a bin, in nanoseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number")]
fn highest(bin: i32) -> u64 {
    let edge = 10_f64.powf(f64::from(bin + 1) / BINS_PER_DECADE);
    ((edge * (1.0 - ROUNDING)).ceil() as u64).saturating_sub(1).max(1)
}

/// Shares of requests over time and latency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// Lower edges of the rows in nanoseconds, ascending, and the upper edge of the last one.
    pub edges_ns: Vec<f64>,
    /// The columns, in the order of time.
    pub columns: Vec<HeatColumn>,
}

/// Column of a heat map: one span of time.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatColumn {
    /// Start in protocol time, in seconds.
    pub from_s: f64,
    /// End in protocol time, in seconds.
    pub to_s: f64,
    /// Share of its requests in each row, 0 to 1; all 0 where there was none.
    pub shares: Vec<f64>,
}

impl Heat {
    /// The map of `samples` in at most `columns_max` columns of as many samples each; nothing where
    /// they have no histograms.
    pub fn of(samples: &[Sample], columns_max: usize) -> Self {
        let counted = || samples.iter().flat_map(|sample| &sample.bins).map(|bin| row(*bin));
        let (Some(first), Some(last)) = (counted().min(), counted().max()) else {
            return Self::default();
        };
        let edges = (first..=last + 1).map(|row| 10_f64.powf(f64::from(row) / ROWS_PER_DECADE));
        let edges_ns: Vec<f64> = edges.collect();
        let each = samples.len().div_ceil(columns_max.max(1)).max(1);
        let mut from_s = 0.0;
        let columns = samples.chunks(each).map(|chunk| {
            let to_s = chunk.last().map_or(from_s, |sample| sample.at_s);
            let column = HeatColumn { from_s, to_s, shares: shares(chunk, first, last) };
            from_s = to_s;
            column
        });
        let columns = columns.collect();
        Self { edges_ns, columns }
    }
}

/// The row that a bin of an interval belongs to.
fn row(bin: Bin) -> i32 {
    place(bin.latency_ns, BINS_PER_DECADE).div_euclid(2)
}

/// Shares of all requests of `samples` in each row from `first` to `last`.
fn shares(samples: &[Sample], first: i32, last: i32) -> Vec<f64> {
    let bins = || samples.iter().flat_map(|sample| &sample.bins);
    let total: u64 = bins().map(|bin| bin.count).sum();
    let mut counts = vec![0_u64; usize::try_from(last - first + 1).unwrap_or(0)];
    for bin in bins() {
        let at = usize::try_from(row(*bin) - first).ok();
        if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
            *count += bin.count;
        }
    }
    counts.into_iter().map(|count| count as f64 / total.max(1) as f64).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Interval, Sample};

    fn sample(at_s: f64, latencies_ns: &[u64]) -> Sample {
        let mut interval = Interval { at_s, span_s: 1.0, ..Interval::default() };
        for latency_ns in latencies_ns {
            interval.write.record(*latency_ns);
        }
        Sample::of(&interval)
    }

    #[test]
    fn requests_that_took_equally_long_are_one_cell() {
        let heat = Heat::of(&[sample(1.0, &[200; 10]), sample(2.0, &[20_000; 10])], 10);
        assert_eq!(heat.columns.len(), 2);
        let filled = |column: &HeatColumn| {
            let cells = heat.edges_ns.windows(2).zip(&column.shares);
            let filled = cells.filter(|(_, share)| **share > 0.999).map(|(edges, _)| edges[0]);
            filled.collect::<Vec<_>>()
        };
        let (early, late) = (filled(&heat.columns[0]), filled(&heat.columns[1]));
        assert!(early.len() == 1 && late.len() == 1, "{heat:?}");
        assert!((190.0..=200.1).contains(&early[0]) && (15_800.0..=20_000.0).contains(&late[0]));
    }

    /// Percentiles say that a thousandth took longer than 1 ms, not that it took anything between.
    #[test]
    fn nothing_is_drawn_where_no_request_was() {
        let latencies: Vec<u64> = [vec![100_000; 9_990], vec![900_000_000; 10]].concat();
        let heat = Heat::of(&[sample(1.0, &latencies)], 1);
        let filled: Vec<f64> =
            heat.columns[0].shares.iter().copied().filter(|share| *share > 0.0).collect();
        assert_eq!(filled, [0.999, 0.001]);
    }

    #[test]
    fn a_sample_without_a_histogram_draws_nothing() {
        let bare = Sample { bins: Vec::new(), ..sample(1.0, &[200; 10]) };
        assert_eq!(Heat::of(&[bare], 10), Heat::default());
    }

    #[test]
    fn samples_share_columns_where_there_are_more_of_them() {
        let samples: Vec<Sample> = (1..=7_u32).map(|at| sample(f64::from(at), &[1000])).collect();
        let heat = Heat::of(&samples, 3);
        let spans: Vec<(f64, f64)> = heat.columns.iter().map(|it| (it.from_s, it.to_s)).collect();
        assert_eq!(spans, [(0.0, 3.0), (3.0, 6.0), (6.0, 7.0)]);
        assert_eq!(Heat::of(&[], 3), Heat::default());
    }

    proptest! {
        #[test]
        fn a_bin_holds_its_own_highest_latency(latency_ns in 1_u64..1 << 52) {
            let bin = place(latency_ns, BINS_PER_DECADE);
            prop_assert_eq!(place(highest(bin), BINS_PER_DECADE).max(0), bin.max(0));
        }

        #[test]
        fn every_request_is_in_some_cell(
            latencies in prop::collection::vec(1_u64..10_000_000_000, 1..200),
        ) {
            let heat = Heat::of(&[sample(1.0, &latencies)], 1);
            let sum: f64 = heat.columns[0].shares.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        }
    }
}
