//! Conditions of a published figure, parsed: metric, loads, and compressibility of the data.

use crate::Summary;

/// Metric of a published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// `iops`: requests completed in each second.
    Iops,
    /// `mb_s`: MB read and written in each second.
    Throughput,
    /// `avg_latency_ms`: over reads and writes together.
    AvgLatency,
    /// `stdev_latency_ms`: the mean of that of reads and that of writes.
    StdevLatency,
    /// `max_latency_ms`: the largest.
    MaxLatency,
    /// `p50_latency_ms`: the median.
    P50Latency,
    /// `p99_latency_ms`.
    P99Latency,
    /// `p999_latency_ms`: the 99.9th percentile.
    P999Latency,
    /// `p9999_latency_ms`: the 99.99th percentile.
    P9999Latency,
}

impl Metric {
    /// The metric called `name` in a table; absent where no run has it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "iops" => Some(Self::Iops),
            "mb_s" => Some(Self::Throughput),
            "avg_latency_ms" => Some(Self::AvgLatency),
            "stdev_latency_ms" => Some(Self::StdevLatency),
            "max_latency_ms" => Some(Self::MaxLatency),
            "p50_latency_ms" => Some(Self::P50Latency),
            "p99_latency_ms" => Some(Self::P99Latency),
            "p999_latency_ms" => Some(Self::P999Latency),
            "p9999_latency_ms" => Some(Self::P9999Latency),
            _ => None,
        }
    }

    /// True if more is better: IOPS and throughput.
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Iops | Self::Throughput)
    }
}

/// The loads that a figure was measured at, as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    /// Jobs, and requests that each keeps outstanding.
    Grid(Range, Range),
    /// Jobs alone.
    Threads(Range),
    /// Requests outstanding in all.
    Outstanding(Range),
    /// Not stated.
    Unstated,
}

impl Loads {
    /// The loads of the two columns; absent where one of them is not a number or a range.
    pub fn parse(threads: &str, queue_per_thread: &str) -> Option<Self> {
        match (threads, queue_per_thread) {
            ("", "") => Some(Self::Unstated),
            (threads, "") => Some(Self::Threads(Range::parse(threads)?)),
            ("", outstanding) => Some(Self::Outstanding(Range::parse(outstanding)?)),
            (threads, queue) => Some(Self::Grid(Range::parse(threads)?, Range::parse(queue)?)),
        }
    }
}

/// Numbers from one to another, as `16`, `2-16` or `64+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    low: u32,
    high: u32,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        if let Some(low) = text.strip_suffix('+') {
            return Some(Self { low: low.parse().ok()?, high: u32::MAX });
        }
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        Some(Self { low: low.parse().ok()?, high: high.parse().ok()? })
    }

    /// Its only number; absent where it holds several.
    pub const fn one(self) -> Option<u32> {
        if self.low == self.high { Some(self.low) } else { None }
    }

    /// True if `value` lies within the range, ends included.
    pub const fn holds(self, value: u32) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Compressibility in percent where a mode is a property of the data and not a format:
/// `uncompressed`, or a ratio as `compressed-2:1`.
pub fn compressible(mode: &str) -> Option<f64> {
    if mode == "uncompressed" {
        return Some(0.0);
    }
    let (before, after) = mode.strip_prefix("compressed-")?.split_once(':')?;
    let (before, after): (f64, f64) = (before.parse().ok()?, after.parse().ok()?);
    (after > 0.0 && before >= after).then(|| (1.0 - after / before) * 100.0)
}

/// True if figures of `mode` are about data that compresses by `percent`: by as much as the mode
/// says, or by `unstated` where it says nothing of it.
pub fn is_of(mode: &str, percent: f64, unstated: f64) -> bool {
    (percent - compressible(mode).unwrap_or(unstated)).abs() < 0.05
}

impl Metric {
    /// Its value in the unit of its name, with `mb_bytes` in an MB; absent where nothing was
    /// completed, and where it was not measured.
    pub fn of(self, summary: &Summary, mb_bytes: u32) -> Option<f64> {
        let latency = &summary.latency;
        let ms = |latency_ns: Option<u64>| Some(latency_ns? as f64 / 1e6);
        let rate = |value: f64| (summary.iops > 0.0).then_some(value);
        match self {
            Self::Iops => rate(summary.iops),
            Self::Throughput => rate(summary.throughput_mb_s() * 1e6 / f64::from(mb_bytes)),
            Self::AvgLatency => Some(latency.mean_ns()? / 1e6),
            Self::StdevLatency => Some(summary.stdev_of_directions_ns()? / 1e6),
            Self::MaxLatency => ms(latency.max_ns()),
            Self::P50Latency => ms(latency.latency_ns_p50),
            Self::P99Latency => ms(latency.latency_ns_p99),
            Self::P999Latency => ms(latency.latency_ns_p999),
            Self::P9999Latency => ms(latency.latency_ns_p9999),
        }
    }

    /// The highest rate, or the lowest latency.
    pub(super) fn best(self, values: Vec<f64>) -> Option<f64> {
        values.into_iter().reduce(if self.is_rate() { f64::max } else { f64::min })
    }

    /// Reduces several values to one: the median, of a maximum the largest.
    pub(super) fn over_range(self, mut values: Vec<f64>) -> Option<f64> {
        values.sort_by(f64::total_cmp);
        match self {
            Self::MaxLatency => values.last().copied(),
            _ => values.get(values.len() / 2).copied(),
        }
    }
}
