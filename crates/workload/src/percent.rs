//! Ranges of percentages.

use crate::error::Fault;

/// 0 to 100.
pub(crate) fn up_to_whole(place: &str, value: f64) -> Result<(), Fault> {
    Fault::unless(
        (0.0..=100.0).contains(&value),
        place,
        format!("{place} is {value}, not from 0 to 100"),
    )
}

/// Above 0, to 100.
pub(crate) fn some(place: &str, value: f64) -> Result<(), Fault> {
    Fault::unless(
        value > 0.0 && value <= 100.0,
        place,
        format!("{place} is {value}, not above 0 and up to 100"),
    )
}

/// Sums of shares are right to a thousandth of a percent.
const SHARE_TOLERANCE_PERCENT: f64 = 0.001;

/// Shares that sum to 100.
pub(crate) fn whole_sum(
    place: &str,
    what: &str,
    shares: impl Iterator<Item = f64>,
) -> Result<(), Fault> {
    let sum: f64 = shares.sum();
    let shown = (sum * 1000.0).round() / 1000.0;
    let text = format!("{what} sum to {shown} percent, not 100");
    Fault::unless((sum - 100.0).abs() <= SHARE_TOLERANCE_PERCENT, place, text)
}

/// Above 0, below 100.
pub(crate) fn inner(place: &str, value: f64) -> Result<(), Fault> {
    Fault::unless(
        value > 0.0 && value < 100.0,
        place,
        format!("{place} is {value}, not above 0 and below 100"),
    )
}
