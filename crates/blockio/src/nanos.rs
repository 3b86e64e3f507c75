//! Time: whole nanoseconds since the start of a run.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A point in virtual time, or a span of it, in whole nanoseconds (range: 584 years).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of a run; as a span, nothing.
    pub const ZERO: Self = Self(0);
    /// Later than everything.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// A span given in microseconds, rounded to the nearest nanosecond.
    ///
    /// Negative and non-finite values become zero.
    pub fn from_micros_f64(micros: f64) -> Self {
        Self::from_secs_f64(micros / 1e6)
    }

    /// A span given in seconds, rounded to the nearest nanosecond.
    ///
    /// Negative and non-finite values become zero.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round().max(0.0) as u64)
    }

    /// This span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This span in microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The span since `earlier`, zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<u64> for Nanos {
    type Output = Self;
    /// Rounds down.
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    /// Three significant figures in the unit that suits: `82.6 us`, `6.25 ms`, `6.00 h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.as_secs_f64();
        let (value, unit) = match self.0 {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..1_000_000 => (secs * 1e6, "us"),
            1_000_000..1_000_000_000 => (secs * 1e3, "ms"),
            1_000_000_000..60_000_000_000 => (secs, "s"),
            60_000_000_000..3_600_000_000_000 => (secs / 60.0, "min"),
            _ => (secs / 3600.0, "h"),
        };
        let decimals = if value >= 100.0 { 0 } else { usize::from(value < 10.0) + 1 };
        write!(f, "{value:.decimals$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_picks_the_unit_that_suits() {
        let shown = |nanos| Nanos(nanos).to_string();
        assert_eq!(shown(7), "7 ns");
        assert_eq!(shown(82_600), "82.6 us");
        assert_eq!(shown(6_250_000), "6.25 ms");
        assert_eq!(shown(157_000_000), "157 ms");
        assert_eq!(shown(21_600_000_000_000), "6.00 h");
    }

    #[test]
    fn rounding_is_to_the_nearest_nanosecond() {
        assert_eq!(Nanos::from_micros_f64(7.7849), Nanos(7785));
        assert_eq!(Nanos::from_secs_f64(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_secs_f64(f64::NAN), Nanos::ZERO);
    }
}
