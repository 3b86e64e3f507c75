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

/// Above 0, below 100.
pub(crate) fn inner(place: &str, value: f64) -> Result<(), Fault> {
    Fault::unless(
        value > 0.0 && value < 100.0,
        place,
        format!("{place} is {value}, not above 0 and below 100"),
    )
}
