//! Intervals beside the figures of a load.

use blockio::Nanos;
use lab::results::{ConfidenceInterval, IntervalKind, LatencySpread, Spread};

/// The row below that of the percentiles of a kind of request; absent where no interval is known.
pub(super) fn row(spread: &LatencySpread) -> Option<[String; 6]> {
    let ends = [spread.latency_ns_p50, spread.latency_ns_p99, spread.latency_ns_p999];
    if ends.iter().all(Option::is_none) {
        return None;
    }
    let [p50, p99, p999] = ends.map(|it| it.map_or_else(|| "-".to_owned(), |it| latency(&it)));
    Some([String::new(), "95 %".to_owned(), p50, p99, p999, String::new()])
}

/// Line on the intervals of rate and mean, and on where all intervals come from; empty without any.
pub(super) fn note(spread: Option<&Spread>) -> String {
    let Some((spread, iops)) = spread.and_then(|it| Some((it, it.iops?))) else {
        return String::new();
    };
    let from = match iops.kind {
        IntervalKind::Repeats => "repeats with other seeds",
        IntervalKind::Batches | IntervalKind::OrderStatistics => "the parts of this run",
    };
    let mean = spread.latency.latency_ns_avg.map(|it| format!(", mean {}", latency(&it)));
    let mean = mean.unwrap_or_default();
    format!("\n95 % intervals, from {from}: {:.0} to {:.0} IOPS{mean}", iops.low, iops.high)
}

fn latency(it: &ConfidenceInterval) -> String {
    let nanos = |latency_ns: f64| Nanos::from_micros_f64(latency_ns / 1e3);
    format!("{} to {}", nanos(it.low), nanos(it.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_shown_with_both_ends_and_where_they_come_from() {
        let of = |kind, low, high| Some(ConfidenceInterval::new(kind, low, high));
        let latency = LatencySpread {
            latency_ns_avg: of(IntervalKind::Repeats, 1e6, 1.5e6),
            latency_ns_p999: of(IntervalKind::Batches, 65e6, 114e6),
            ..LatencySpread::default()
        };
        let iops = of(IntervalKind::Repeats, 90e3, 95e3);
        let spread = Spread { iops, latency, ..Spread::default() };
        let row = row(&spread.latency).expect("p99.9 has an interval");
        assert_eq!(row, ["", "95 %", "-", "-", "65.0 ms to 114 ms", ""]);
        assert_eq!(
            note(Some(&spread)),
            "\n95 % intervals, from repeats with other seeds: 90000 to 95000 IOPS, mean 1.00 ms \
             to 1.50 ms"
        );
        assert_eq!((super::row(&LatencySpread::default()), note(None)), (None, String::new()));
    }
}
