//! Intervals of confidence: how far a figure may lie from what it estimates by chance alone.
//!
//! | kind | from | source |
//! |---|---|---|
//! | repeats | the same load with other seeds, Student's interval | [student-1908] |
//! | batches | consecutive parts of one measurement (sectioning) | [asmussen-glynn-2007] |
//! | order statistics | the requests around a percentile, as independent | [conover-1999] |
//!
//! Requests of a drive do depend on each other: one stall holds many. Order statistics alone
//! would give too narrow an interval, and serve only where no batch holds enough requests.

use serde::{Deserialize, Serialize};

/// Confidence of every interval.
pub const LEVEL: f64 = 0.95;

/// Quantiles 0.975 of Student's distribution for 1 to 30 degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// Quantile 0.975 of the normal distribution, for more degrees of freedom.
pub(crate) const QUANTILE_NORMAL: f64 = 1.960;

/// Interval in which a figure lies with a stated confidence, in the unit of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    /// Method by which it was found.
    pub kind: IntervalKind,
    /// Confidence, 0 to 1.
    pub level: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Method by which an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalKind {
    /// From repeats with other seeds.
    Repeats,
    /// From consecutive parts of one measurement.
    Batches,
    /// From the requests around a percentile.
    OrderStatistics,
}

impl ConfidenceInterval {
    /// The interval of that `kind` at the level of [`LEVEL`].
    pub const fn new(kind: IntervalKind, low: f64, high: f64) -> Self {
        Self { kind, level: LEVEL, low, high }
    }

    /// The interval of the mean of repeated figures, none of which is negative; absent for a single
    /// one.
    pub fn of_repeats(values: &[f64]) -> Option<Self> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Self::about(IntervalKind::Repeats, mean, values)
    }

    /// The interval of the figure of a `whole` measurement, from those of its parts; absent for a
    /// single part. Where most parts lie apart from the whole, as where one stall makes its tail,
    /// it reaches from the one to the other.
    pub fn of_batches(whole: f64, parts: &[f64]) -> Option<Self> {
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        let of = |centre| Self::about(IntervalKind::Batches, centre, parts);
        let (it, other) = (of(whole)?, of(mean)?);
        Some(Self { low: it.low.min(other.low), high: it.high.max(other.high), ..it })
    }

    fn about(kind: IntervalKind, centre: f64, values: &[f64]) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let count = values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - centre) * (value - centre)).sum();
        let half = student(count - 1.0) * (squares / (count * (count - 1.0))).sqrt();
        Some(Self::new(kind, (centre - half).max(0.0), centre + half))
    }

    /// True if the two have a value in common: a difference between their figures is no finding.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Quantile 0.975 of Student's distribution.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 30, checked")]
pub(crate) fn student(freedom: f64) -> f64 {
    if freedom > 30.0 { QUANTILE_NORMAL } else { QUANTILES[(freedom.max(1.0) as usize) - 1] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_repeats_have_students_interval_which_holds_each_of_them() {
        // Mean 12, deviation 2, two degrees of freedom: 4.303 × 2 ÷ √3 = 4.969.
        let it = ConfidenceInterval::of_repeats(&[10.0, 12.0, 14.0]).unwrap();
        assert!((it.low - 7.031).abs() < 1e-3 && (it.high - 16.969).abs() < 1e-3, "{it:?}");
        assert_eq!((it.kind, it.level), (IntervalKind::Repeats, 0.95));
        let outlier = ConfidenceInterval::of_repeats(&[1.0, 1.0, 9.0]).unwrap();
        assert!(outlier.low <= 1.0 && outlier.high >= 9.0, "{outlier:?}");
        assert_eq!(ConfidenceInterval::of_repeats(&[10.0]), None);
    }

    #[test]
    fn parts_are_measured_from_the_whole() {
        // Distances 1 and 3 from 11: √(10 ÷ 2) × 12.706 = 28.4.
        let it = ConfidenceInterval::of_batches(11.0, &[10.0, 14.0]).unwrap();
        assert!(it.low.abs() < 1e-9 && (it.high - 39.411).abs() < 1e-2, "{it:?}");
    }

    #[test]
    fn intervals_that_touch_overlap() {
        let of = |low, high| ConfidenceInterval::new(IntervalKind::Batches, low, high);
        assert!(of(1.0, 2.0).overlaps(&of(2.0, 3.0)) && of(2.0, 3.0).overlaps(&of(1.0, 2.0)));
        assert!(!of(1.0, 2.0).overlaps(&of(2.1, 3.0)) && !of(2.1, 3.0).overlaps(&of(1.0, 2.0)));
    }
}
