//! Temperature and power of a drive under load, which ends where it is too hot.
//!
//! What is read is kept with its time, and goes into the intervals of the load. Nothing is filled
//! in: an interval in which nothing was read has no temperature.
//!
//! ```text
//! read every ten seconds ──► at the limit ──► read again after a second ──► still: the load ends
//! ```

use std::fmt;
use std::time::{Duration, Instant};

use lab::{Error, Kind};
use results::{Climate, Interval};

use crate::environment::SensorReadings;

/// Time between two readings of the sensor: each costs an NVMe drive a command, and a SATA drive
/// one that waits until its queue is empty.
const PERIOD: Duration = Duration::from_secs(10);
/// Time between two readings after one that was too hot.
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
    /// Returns the range that covers both.
    pub(super) fn and(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

impl fmt::Display for Heat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {} °C", self.low, self.high)
    }
}

/// Reading of the sensors at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    at: Instant,
    sensed: SensorReadings,
}

/// Readings under one load.
#[derive(Debug)]
pub(super) struct Thermometer {
    /// Degrees Celsius from which no load goes on; absent where nothing is too hot.
    max_c: Option<i64>,
    began: Instant,
    read_at: Option<Instant>,
    readings: Vec<Reading>,
    hot: u32,
}

impl Thermometer {
    /// Thermometer without readings, for a load that begins at `began`.
    pub(super) const fn new(max_c: Option<i64>, began: Instant) -> Self {
        Self { max_c, began, read_at: None, readings: Vec::new(), hot: 0 }
    }

    /// Reads `sensors`, where it is time to at `now`.
    pub(super) fn look(&mut self, now: Instant, sensors: impl FnOnce() -> SensorReadings) {
        let period = if self.hot > 0 { PERIOD_HOT } else { PERIOD };
        if self.read_at.is_some_and(|at| now.duration_since(at) < period) {
            return;
        }
        self.read_at = Some(now);
        let sensed = sensors();
        if sensed == SensorReadings::default() {
            return;
        }
        self.readings.push(Reading { at: now, sensed });
        let Some(celsius) = sensed.temperature_c else { return };
        let is_hot = self.max_c.is_some_and(|max_c| celsius >= max_c);
        self.hot = if is_hot { self.hot + 1 } else { 0 };
    }

    /// Temperatures that were read, where there is a sensor.
    pub(super) fn heat(&self) -> Option<Heat> {
        let temperatures = self.readings.iter().filter_map(|reading| reading.sensed.temperature_c);
        temperatures.map(|celsius| Heat { low: celsius, high: celsius }).reduce(Heat::and)
    }

    /// Adds to each of `intervals`, the first of which began `ramp_s` after the load, the highest
    /// temperature and the mean power that were read in it.
    pub(super) fn add_to(&self, intervals: &mut [Interval], ramp_s: f64) {
        let at_s =
            |reading: &&Reading| reading.at.duration_since(self.began).as_secs_f64() - ramp_s;
        for interval in intervals {
            let within = interval.at_s - interval.span_s..interval.at_s;
            let read: Vec<SensorReadings> = self
                .readings
                .iter()
                .filter(|reading| within.contains(&at_s(reading)))
                .map(|reading| reading.sensed)
                .collect();
            let powers: Vec<f64> = read.iter().filter_map(|sensed| sensed.power_w).collect();
            let count = powers.len() as f64;
            interval.climate = (!read.is_empty()).then(|| Climate {
                power_w: (count > 0.0).then(|| powers.iter().sum::<f64>() / count),
                temperature_c: read
                    .iter()
                    .filter_map(|sensed| sensed.temperature_c)
                    .max()
                    .map(|celsius| celsius as f64),
                ..Climate::default()
            });
        }
    }

    /// True if the load has to end.
    pub(super) const fn is_too_hot(&self) -> bool {
        self.hot >= HOT_MAX
    }

    /// Error for a load that ended for heat.
    pub(super) fn refusal(&self) -> Error {
        let (high, max) = (self.heat().map_or(0, |heat| heat.high), self.max_c.unwrap_or(0));
        let text = format!("the drive is {high} °C hot, the load ended: {max} °C is the limit");
        Error::new(Kind::Refused, text)
            .hint("let the drive cool down before you resume; see --temperature-max")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thermometer that read `celsius`, one after the other, a second apart.
    fn after(celsius: &[i64], max_c: Option<i64>) -> Thermometer {
        let begin = Instant::now();
        let mut thermometer = Thermometer::new(max_c, begin);
        for (seconds, celsius) in (0..).zip(celsius) {
            let sensed = SensorReadings { temperature_c: Some(*celsius), power_w: None };
            thermometer.look(begin + Duration::from_secs(seconds), || sensed);
        }
        thermometer
    }

    #[test]
    fn a_load_ends_when_it_was_too_hot_twice_in_a_row() {
        assert!(after(&[75, 76], Some(75)).is_too_hot());
        assert!(!after(&[75, 74, 75], Some(75)).is_too_hot());
        assert!(!after(&[99, 99, 99], None).is_too_hot(), "no limit was set");
        assert!(!after(&[75], Some(75)).is_too_hot(), "a reading may be wrong");
        let said = after(&[75, 76], Some(75)).refusal().to_string();
        assert_eq!(said, "the drive is 76 °C hot, the load ended: 75 °C is the limit");
    }

    #[test]
    fn a_cool_drive_is_asked_every_ten_seconds() {
        let thermometer = after(&[40, 1, 1, 1, 1, 1, 1, 1, 1, 1, 44, 99], Some(75));
        assert_eq!(thermometer.heat().unwrap().to_string(), "40 to 44 °C");
    }

    #[test]
    fn an_interval_has_what_was_read_in_it_and_nothing_else() {
        let begin = Instant::now();
        let mut thermometer = Thermometer::new(None, begin);
        for (at_s, celsius, power_w) in [(0, 30, 5.0), (10, 40, 6.0), (20, 43, 8.0), (30, 42, 9.0)]
        {
            let sensed = SensorReadings { temperature_c: Some(celsius), power_w: Some(power_w) };
            thermometer.look(begin + Duration::from_secs(at_s), || sensed);
        }
        let interval = |at_s| Interval { at_s, span_s: 20.0, ..Interval::default() };
        let mut intervals = [interval(20.0), interval(40.0), interval(60.0)];
        thermometer.add_to(&mut intervals, 5.0);
        let told = |at: usize| {
            intervals[at].climate.map(|climate| (climate.temperature_c, climate.power_w))
        };
        assert_eq!(told(0), Some((Some(43.0), Some(7.0))), "the ramp is left out");
        assert_eq!(told(1), Some((Some(42.0), Some(9.0))));
        assert_eq!(told(2), None, "nothing was read, and nothing is made up");
    }

    #[test]
    fn a_drive_without_sensors_has_no_climate() {
        let begin = Instant::now();
        let mut thermometer = Thermometer::new(None, begin);
        thermometer.look(begin, SensorReadings::default);
        let mut intervals = [Interval { at_s: 20.0, span_s: 20.0, ..Interval::default() }];
        thermometer.add_to(&mut intervals, 0.0);
        assert_eq!((thermometer.heat(), intervals[0].climate), (None, None));
    }
}
