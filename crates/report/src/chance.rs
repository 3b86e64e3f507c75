//! Intervals of confidence beside the figures of a table, and where they come from.

use results::{ConfidenceInterval, IntervalKind, LatencySpread};

use crate::number::{millis, plain};

/// A figure of a table with its interval, in its unit, below it; alone where it has none or is not
/// known.
pub(crate) fn beside(figure: String, interval: Option<ConfidenceInterval>) -> String {
    match interval {
        Some(it) if figure != "–" => format!("{figure}\n{} to {}", plain(it.low), plain(it.high)),
        _ => figure,
    }
}

/// A latency of a table as [`beside`] has it, with its interval in nanoseconds.
pub(crate) fn beside_millis(figure: String, interval: Option<ConfidenceInterval>) -> String {
    let in_millis =
        |it: ConfidenceInterval| ConfidenceInterval::new(it.kind, millis(it.low), millis(it.high));
    beside(figure, interval.map(in_millis))
}

/// The intervals of the percentiles that a table has beside each other.
pub(crate) const fn of_percentiles(spread: &LatencySpread) -> [Option<ConfidenceInterval>; 5] {
    [
        spread.latency_ns_p50,
        spread.latency_ns_p90,
        spread.latency_ns_p99,
        spread.latency_ns_p999,
        spread.latency_ns_p9999,
    ]
}

/// A sentence on the origin of `intervals`; empty without any.
pub(crate) fn origin(intervals: &[ConfidenceInterval]) -> String {
    let mut has = [false; 3];
    for interval in intervals {
        has[interval.kind as usize] = true;
    }
    let said: Vec<&str> =
        [IntervalKind::Repeats, IntervalKind::Batches, IntervalKind::OrderStatistics]
            .into_iter()
            .filter(|kind| has[*kind as usize])
            .map(method)
            .collect();
    if said.is_empty() {
        return String::new();
    }
    // Seeds of the ioDrive Duo have a p99.9 of 145 to 175 ms under one load, of which one run alone
    // says 165 to 183: a wave of relocation lasts for longer than a measurement.
    let runs = if has[IntervalKind::Repeats as usize] {
        ""
    } else {
        " They do not cover differences between runs; use --repeat for that."
    };
    format!(
        " In grey the interval of 95 % confidence, from {}: figures whose intervals overlap are \
         not told apart.{runs}",
        said.join("; where these are too few, from ")
    )
}

/// The method of `kind`, with its source.
const fn method(kind: IntervalKind) -> &'static str {
    match kind {
        IntervalKind::Repeats => "repeats with other seeds (Student 1908)",
        IntervalKind::Batches => {
            "consecutive parts of the one measurement (sectioning: Asmussen and Glynn 2007, III.5)"
        }
        IntervalKind::OrderStatistics => {
            "the requests around the percentile, taken as independent (order statistics: Conover \
             1999, 3.2)"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(kind: IntervalKind) -> ConfidenceInterval {
        ConfidenceInterval::new(kind, 1.5e6, 2.25e6)
    }

    #[test]
    fn an_interval_stands_below_its_figure_and_below_no_dash() {
        let it = Some(interval(IntervalKind::Batches));
        assert_eq!(beside_millis("1.8".into(), it), "1.8\n1.50 to 2.25");
        assert_eq!(beside_millis("–".into(), it), "–");
        assert_eq!(beside_millis("1.8".into(), None), "1.8");
        assert_eq!(beside("2M".into(), it), "2M\n1,500,000 to 2,250,000");
    }

    #[test]
    fn the_origin_of_intervals_is_named_once_each_with_its_source() {
        assert_eq!(origin(&[]), "");
        let batches = interval(IntervalKind::Batches);
        let all = [interval(IntervalKind::OrderStatistics), batches, batches];
        let said = origin(&all);
        assert_eq!(said.matches("Asmussen").count(), 1);
        assert!(said.find("parts").unwrap() < said.find("Conover").unwrap(), "{said}");
        assert!(!said.contains("seeds") && said.ends_with("use --repeat for that."), "{said}");
        let repeats = [interval(IntervalKind::Repeats), batches];
        assert!(!origin(&repeats).contains("between runs"));
    }
}
