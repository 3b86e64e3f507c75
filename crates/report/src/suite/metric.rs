//! Numbers that are charted of a summary.

use results::{Step, Summary};

use crate::chart::{Axis, Ends, Unit};
use crate::number::millis;
use crate::subject::Subject;

/// A step with the run it belongs to.
pub(crate) type RunStep<'a> = (&'a Subject<'a>, &'a Step);

/// A number that is charted of a summary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// Name in identifiers.
    pub(crate) id: &'static str,
    /// Heading.
    pub(crate) title: &'static str,
    /// Its unit.
    pub(crate) unit: Unit,
    /// True if its values span decades, so that its axis is logarithmic.
    pub(crate) log: bool,
    /// The number itself; absent where it was not measured.
    pub(crate) of: fn(&Summary) -> Option<f64>,
}

/// Requests a second.
pub(crate) const RATE: Metric = Metric {
    id: "iops",
    title: "Throughput",
    unit: Unit::Iops,
    log: false,
    of: |it| Some(it.iops),
};
/// Bytes a second, where transfers are large.
pub(crate) const BANDWIDTH: Metric = Metric {
    id: "gb-s",
    title: "Throughput",
    unit: Unit::GigabytesPerSecond,
    log: false,
    of: |it| Some(it.throughput_mb_s() / 1e3),
};
/// Requests a second for each watt, where the power is known.
pub(super) const EFFICIENCY: Metric = Metric {
    id: "iops-w",
    title: "IOPS per watt",
    unit: Unit::IopsPerWatt,
    log: false,
    of: Summary::iops_per_watt,
};

/// Latency metrics that reviews chart, in their order.
pub(crate) const LATENCIES: [Metric; 3] = [
    Metric {
        id: "avg",
        title: "Average latency",
        unit: Unit::Millis,
        log: false,
        of: |it| it.latency.mean_ns().map(millis),
    },
    Metric {
        id: "max",
        title: "Maximum latency",
        unit: Unit::Millis,
        log: true,
        of: |it| Some(millis(it.latency.max_ns()? as f64)),
    },
    Metric {
        id: "stdev",
        title: "Standard deviation of latency",
        unit: Unit::Millis,
        log: true,
        of: |it| it.latency.stdev_ns().map(millis),
    },
];

/// Throughput as it is read for `taken`: in GB/s where every transfer is large.
pub(crate) fn throughput(taken: &[RunStep<'_>]) -> Metric {
    let mut summaries = taken.iter().filter_map(|(_, step)| step.summary.as_ref()).peekable();
    let is_large = summaries.peek().is_some() && summaries.all(Summary::has_large_transfers);
    if is_large { BANDWIDTH } else { RATE }
}

/// Throughput and latencies of `taken`.
pub(super) fn metrics(taken: &[RunStep<'_>]) -> [Metric; 4] {
    let [average, maximum, deviation] = LATENCIES;
    [throughput(taken), average, maximum, deviation]
}

impl Metric {
    /// Returns the number for the end of its line over time: never the mean, which would include
    /// the burst.
    pub(super) fn ends(self) -> Ends {
        if self.id == "max" { Ends::Maximum } else { Ends::Last }
    }

    /// The vertical axis of the metric.
    pub(crate) fn axis(self) -> Axis {
        if self.log {
            Axis::log(self.title, self.unit)
        } else {
            Axis { switchable: self.unit == Unit::Millis, ..Axis::linear(self.title, self.unit) }
        }
    }
}
