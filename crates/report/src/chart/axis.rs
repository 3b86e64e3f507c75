//! An axis: what it measures, in which unit, and how its ticks read.

use std::borrow::Cow;

use super::scale::{Scale, Spacing};
use crate::number;

/// One axis of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// Name of the quantity, such as `Latency`.
    pub(crate) label: Cow<'static, str>,
    /// Unit of its values.
    pub(crate) unit: Unit,
    /// Spacing of values, such as linear or logarithmic.
    pub(crate) spacing: Spacing,
    /// True if a reader may switch between linear and logarithmic.
    pub(crate) switchable: bool,
    /// The least and the greatest value that it shows; absent where its data decide. A linear
    /// axis that is to begin above zero has both as they are.
    pub(crate) domain: Option<(f64, f64)>,
    /// The loads that stand in its places 0, 1, 2, …; empty for a continuous axis.
    pub(crate) slots: Vec<Slot>,
}

/// One load on an axis of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    /// Threads.
    pub(crate) threads: u16,
    /// Requests that each keeps outstanding.
    pub(crate) queue_per_thread: u16,
}

impl Slot {
    /// Requests outstanding in all.
    pub(crate) fn outstanding(self) -> u32 {
        u32::from(self.threads) * u32::from(self.queue_per_thread)
    }

    /// As it is written: `T8Q32`.
    pub(crate) fn name(self) -> String {
        format!("T{}Q{}", self.threads, self.queue_per_thread)
    }
}

/// Unit of the values on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Requests a second.
    Iops,
    /// Requests a second for each watt.
    IopsPerWatt,
    /// Decimal gigabytes a second.
    GigabytesPerSecond,
    /// Milliseconds of latency.
    Millis,
    /// Hours of protocol time.
    Hours,
    /// Minutes of protocol time.
    Minutes,
    /// Seconds of protocol time.
    Seconds,
    /// Shares, 0 to 1.
    Share,
    /// Shares of requests, 0 to 1, as percentiles.
    Percentile,
    /// NAND writes ÷ host writes.
    Times,
    /// Decimal petabytes.
    Petabytes,
    /// Years.
    Years,
    /// Watts.
    Watts,
    /// Degrees Celsius.
    Celsius,
    /// A number whose unit is said elsewhere.
    Plain,
    /// Nothing: the axis has slots.
    Load,
}

impl Unit {
    /// Symbol after a number.
    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::IopsPerWatt => "IOPS/W",
            Self::GigabytesPerSecond => "GB/s",
            Self::Millis => "ms",
            Self::Hours => "h",
            Self::Minutes => "min",
            Self::Seconds => "s",
            Self::Share => "%",
            Self::Petabytes => "PB",
            Self::Years => "years",
            Self::Watts => "W",
            Self::Celsius => "°C",
            Self::Percentile | Self::Plain | Self::Load => "",
            Self::Times => "×",
        }
    }

    /// The unit of time in which a span of `secs` seconds reads best, and its length in seconds.
    pub(crate) fn of_span(secs: f64) -> (Self, f64) {
        match secs {
            7200.0.. => (Self::Hours, 3600.0),
            300.0.. => (Self::Minutes, 60.0),
            _ => (Self::Seconds, 1.0),
        }
    }

    /// True of time.
    pub(crate) const fn is_time(self) -> bool {
        matches!(self, Self::Hours | Self::Minutes | Self::Seconds)
    }

    /// A number in this unit, without symbol.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Iops | Self::IopsPerWatt => number::short(value),
            Self::Share => number::trimmed(value * 100.0),
            Self::Percentile => number::round(value * 100.0, 7).to_string(),
            _ => number::trimmed(value),
        }
    }

    /// A number with its symbol.
    pub(crate) fn say(self, value: f64) -> String {
        format!("{} {}", self.show(value), self.symbol()).trim_end().to_owned()
    }
}

impl Axis {
    /// A linear axis.
    pub(crate) fn linear(label: impl Into<Cow<'static, str>>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            spacing: Spacing::Linear,
            switchable: false,
            domain: None,
            slots: Vec::new(),
        }
    }

    /// A logarithmic axis that a reader may switch to linear.
    pub(crate) fn log(label: impl Into<Cow<'static, str>>, unit: Unit) -> Self {
        Self { spacing: Spacing::Log, switchable: true, ..Self::linear(label, unit) }
    }

    /// An axis of percentiles, spread by nines.
    pub(crate) fn nines(label: &'static str) -> Self {
        Self { spacing: Spacing::Nines, ..Self::linear(label, Unit::Percentile) }
    }

    /// An axis of queue depths, on which each doubling is as far as the next.
    pub(crate) fn depths(label: &'static str) -> Self {
        Self { spacing: Spacing::Doublings, ..Self::linear(label, Unit::Plain) }
    }

    /// An axis of loads.
    pub(crate) fn loads(slots: Vec<Slot>) -> Self {
        Self { slots, ..Self::linear("load", Unit::Load) }
    }

    /// True if it is linear and begins above zero.
    fn is_cut(&self) -> bool {
        self.spacing == Spacing::Linear && self.domain.is_some_and(|(low, _)| low > 0.0)
    }

    /// Unit and spacing in words: `ms, log scale`.
    pub(crate) fn caption(&self) -> String {
        let scale = match self.spacing {
            Spacing::Log => "log scale",
            _ if self.is_cut() => "not from zero",
            Spacing::Linear | Spacing::Nines | Spacing::Doublings => "",
        };
        match (self.unit.symbol(), scale) {
            (symbol, "") => symbol.into(),
            ("", scale) => scale.into(),
            (symbol, scale) => format!("{symbol}, <span class=\"spacing\">{scale}</span>"),
        }
    }

    /// The scale that shows all of `values`.
    pub(crate) fn scale(&self, values: impl Iterator<Item = f64>) -> Scale {
        if !self.slots.is_empty() {
            return Scale::exact(-0.5, self.slots.len() as f64 - 0.5);
        }
        match self.domain {
            Some((low, high)) if self.is_cut() => return Scale::exact(low, high),
            Some((low, high)) => return Scale::fitted(self.spacing, low, high),
            None => {}
        }
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let (low, high) = positive
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        match self.unit {
            unit if unit.is_time() => Scale::exact(0.0, high),
            _ if self.spacing == Spacing::Doublings && low.is_finite() => {
                Scale::doublings(low, high)
            }
            Unit::Plain if low.is_finite() => Scale::exact(low, high),
            _ if low.is_finite() => Scale::fitted(self.spacing, low, high),
            _ => Scale::fitted(self.spacing, 0.0, 0.0),
        }
    }
}

#[cfg(test)]
mod tests;
