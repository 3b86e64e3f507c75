//! The temperature of a drive under load, which ends where it is too high.
//!
//! ```text
//! read every ten seconds ──► at the limit ──► read again after a second ──► still: the load ends
//! ```

use std::fmt;
use std::time::{Duration, Instant};

use crate::{Error, Kind};

/// How often the sensor is read: each time costs an NVMe drive a command.
const PERIOD: Duration = Duration::from_secs(10);
/// How often after it was too hot.
const PERIOD_HOT: Duration = Duration::from_secs(1);
/// Readings in a row that are too hot before a load ends: one alone may be wrong.
const HOT_MAX: u32 = 2;

/// Lowest and highest temperature of a drive, in degrees Celsius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heat {
    low: i64,
    high: i64,
}

impl Heat {
    /// What covers both.
    pub(super) fn and(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

impl fmt::Display for Heat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {} °C", self.low, self.high)
    }
}

/// What was read under one load.
#[derive(Debug)]
pub(super) struct Thermometer {
    /// Degrees Celsius from which no load goes on; absent where nothing is too hot.
    max_c: Option<i64>,
    read_at: Option<Instant>,
    heat: Option<Heat>,
    hot: u32,
}

impl Thermometer {
    /// Nothing read yet.
    pub(super) const fn new(max_c: Option<i64>) -> Self {
        Self { max_c, read_at: None, heat: None, hot: 0 }
    }

    /// Reads `sensor`, where it is time to at `now`.
    pub(super) fn look(&mut self, now: Instant, sensor: impl FnOnce() -> Option<i64>) {
        let period = if self.hot > 0 { PERIOD_HOT } else { PERIOD };
        if self.read_at.is_some_and(|at| now.duration_since(at) < period) {
            return;
        }
        self.read_at = Some(now);
        let Some(celsius) = sensor() else { return };
        let read = Heat { low: celsius, high: celsius };
        self.heat = Some(self.heat.map_or(read, |heat| heat.and(read)));
        let is_hot = self.max_c.is_some_and(|max_c| celsius >= max_c);
        self.hot = if is_hot { self.hot + 1 } else { 0 };
    }

    /// Temperatures that were read, where there is a sensor.
    pub(super) const fn heat(&self) -> Option<Heat> {
        self.heat
    }

    /// Whether the load has to end.
    pub(super) const fn is_too_hot(&self) -> bool {
        self.hot >= HOT_MAX
    }

    /// What is said of a load that ended for heat.
    pub(super) fn refusal(&self) -> Error {
        let (high, max) = (self.heat.map_or(0, |heat| heat.high), self.max_c.unwrap_or(0));
        let text = format!("the drive is {high} °C hot, the load ended: {max} °C is the limit");
        Error::new(Kind::Refused, text)
            .hint("let it cool, and give it more air, before it goes on; see --temperature-max")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thermometer that read `celsius`, one after the other, a second apart.
    fn after(celsius: &[i64], max_c: Option<i64>) -> Thermometer {
        let mut thermometer = Thermometer::new(max_c);
        let begin = Instant::now();
        for (seconds, celsius) in (0..).zip(celsius) {
            thermometer.look(begin + Duration::from_secs(seconds), || Some(*celsius));
        }
        thermometer
    }

    #[test]
    fn a_load_ends_when_it_was_too_hot_twice_in_a_row() {
        assert!(after(&[75, 76], Some(75)).is_too_hot());
        assert!(!after(&[75, 74, 75], Some(75)).is_too_hot());
        assert!(!after(&[99, 99, 99], None).is_too_hot(), "nobody set a limit");
        assert!(!after(&[75], Some(75)).is_too_hot(), "a reading may be wrong");
        let said = after(&[75, 76], Some(75)).refusal().to_string();
        assert_eq!(said, "the drive is 76 °C hot, the load ended: 75 °C is the limit");
    }

    #[test]
    fn a_cool_drive_is_asked_every_ten_seconds() {
        let thermometer = after(&[40, 1, 1, 1, 1, 1, 1, 1, 1, 1, 44, 99], Some(75));
        assert_eq!(thermometer.heat().unwrap().to_string(), "40 to 44 °C");
    }
}
