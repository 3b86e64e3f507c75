//! Latency over time as a heat map: which share of the requests of a span had which latency.
//!
//! An interval keeps seven points of its distribution: minimum, five percentiles, maximum. What
//! lies between two neighbours is spread evenly over the logarithm of latency between them, so that
//! a cell is exact to the percentiles around it and no finer.

use crate::{LatencySummary, Sample};

/// Rows to a decade of latency.
const ROWS_PER_DECADE: f64 = 10.0;

/// Shares of requests over time and latency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// Lower edges of the rows in nanoseconds, ascending, and the upper edge of the last one.
    pub edges_ns: Vec<f64>,
    /// The columns, in the order of time.
    pub columns: Vec<HeatColumn>,
}

/// One span of time.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatColumn {
    /// Where it begins in protocol time, in seconds.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
    /// Share of its requests in each row, 0 to 1; all 0 where there was none.
    pub shares: Vec<f64>,
}

impl Heat {
    /// The map of `samples` in at most `columns_max` columns of as many samples each.
    pub fn of(samples: &[Sample], columns_max: usize) -> Self {
        let counted = || samples.iter().map(|it| &it.summary.latency).filter(|it| it.count > 0);
        let Some(low) = counted().map(|it| it.latency_ns_min.max(1)).min() else {
            return Self::default();
        };
        let high = counted().map(|it| it.latency_ns_max).max().unwrap_or(low);
        let (first, last) = (row(low as f64), row(high as f64));
        let edges = (first..=last + 1).map(|row| 10_f64.powf(f64::from(row) / ROWS_PER_DECADE));
        let edges_ns: Vec<f64> = edges.collect();
        let each = samples.len().div_ceil(columns_max.max(1)).max(1);
        let mut from_s = 0.0;
        let columns = samples.chunks(each).map(|chunk| {
            let to_s = chunk.last().map_or(from_s, |sample| sample.at_s);
            let column = HeatColumn { from_s, to_s, shares: shares(chunk, &edges_ns) };
            from_s = to_s;
            column
        });
        let columns = columns.collect();
        Self { edges_ns, columns }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a logarithm of a 64-bit number")]
fn row(latency_ns: f64) -> i32 {
    (latency_ns.log10() * ROWS_PER_DECADE).floor() as i32
}

/// Shares of all requests of `samples` in each row.
fn shares(samples: &[Sample], edges_ns: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; edges_ns.len().saturating_sub(1)];
    let total: u64 = samples.iter().map(|sample| sample.summary.latency.count).sum();
    for latency in samples.iter().map(|sample| &sample.summary.latency).filter(|it| it.count > 0) {
        add(&mut shares, edges_ns, latency, latency.count as f64 / total as f64);
    }
    shares
}

/// Adds `weight`, spread over the rows as `latency` tells.
fn add(shares: &mut [f64], edges_ns: &[f64], latency: &LatencySummary, weight: f64) {
    let knots = [
        (0.0, latency.latency_ns_min),
        (0.5, latency.latency_ns_p50),
        (0.9, latency.latency_ns_p90),
        (0.99, latency.latency_ns_p99),
        (0.999, latency.latency_ns_p999),
        (0.9999, latency.latency_ns_p9999),
        (1.0, latency.latency_ns_max),
    ];
    for pair in knots.windows(2) {
        let [(share, from), (next, to)] = [pair[0], pair[1]];
        // Percentiles are upper ends of bins: they may lie above the exact maximum.
        let held = |latency_ns: u64| latency_ns.clamp(1, latency.latency_ns_max.max(1)) as f64;
        let (from, to) = (held(from), held(to.max(from)));
        let (low, high) = (from.log10(), to.log10());
        for (cell, edges) in shares.iter_mut().zip(edges_ns.windows(2)) {
            let (floor, ceiling) = (edges[0].log10(), edges[1].log10());
            let within = if high > low {
                (ceiling.min(high) - floor.max(low)).max(0.0) / (high - low)
            } else {
                f64::from(u8::from((floor..ceiling).contains(&low)))
            };
            *cell += weight * (next - share) * within;
        }
    }
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
        fn every_request_is_in_some_cell(
            latencies in prop::collection::vec(1_u64..10_000_000_000, 1..200),
        ) {
            let heat = Heat::of(&[sample(1.0, &latencies)], 1);
            let sum: f64 = heat.columns[0].shares.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        }
    }
}
