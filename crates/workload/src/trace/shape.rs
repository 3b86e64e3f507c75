//! Shape of a synthesised trace: length, address space, order and time, and its phases.

use serde::{Deserialize, Serialize};

use crate::error::Fault;
use crate::mix::check_sizes;
use crate::{Access, SizeShare, percent};

/// Additions of a synthesised trace to the requests of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceShape {
    /// Requests, from 1 to 100 million.
    pub requests: u64,
    /// Address space of the traced volume, in decimal GB, above 0.
    pub space_gb: f64,
    /// Share of requests that begin where the last one of the same direction ended, 0 to 100; the
    /// rest go where the workload's `access` sends them.
    #[serde(default)]
    pub sequential_percent: f64,
    /// Requests a second on average, above 0.
    pub iops: f64,
    /// Squared coefficient of variation of the spans between requests, from 1: 1 is a Poisson
    /// process, more comes in bursts.
    #[serde(default = "poisson")]
    pub burstiness: f64,
    /// Times that the phases follow each other within the trace, from 1 to a million, and at most
    /// once for each request.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub cycles: u32,
    /// Phases, in their order; empty: the whole trace is alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<TracePhase>,
}

/// One phase of a synthesised trace. What it does not state is that of the trace, or of the
/// workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracePhase {
    /// Name, such as `logins`.
    pub name: String,
    /// Share of the requests of a cycle, above 0 to 100; the shares of all phases sum to 100.
    pub percent: f64,
    /// Share of requests that read, 0 to 100; absent: that of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<f64>,
    /// Order of addresses; absent: that of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Transfer sizes and their shares of the requests, which sum to 100; absent: those of the
    /// workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<SizeShare>>,
    /// Share of requests that begin where the last one of the same direction ended, 0 to 100;
    /// absent: that of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_percent: Option<f64>,
    /// Requests a second on average, above 0; absent: that of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<f64>,
    /// Squared coefficient of variation of the spans between requests, from 1; absent: that of the
    /// trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burstiness: Option<f64>,
}

const fn poisson() -> f64 {
    1.0
}

const fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_once(cycles: &u32) -> bool {
    *cycles == 1
}

/// Most requests of a made-up trace: they are held in memory, 24 bytes each.
const REQUESTS_MAX: u64 = 100_000_000;
/// Most cycles of phases.
const CYCLES_MAX: u32 = 1_000_000;

impl TraceShape {
    pub(crate) fn check(&self) -> Result<(), Fault> {
        in_range("requests", self.requests as f64, (1.0, REQUESTS_MAX as f64))?;
        in_range("space_gb", self.space_gb, (0.001, 1e9))?;
        check_order(self.sequential_percent, self.iops, self.burstiness)?;
        let cycles_max = self.requests.min(CYCLES_MAX.into());
        in_range("cycles", self.cycles.into(), (1.0, cycles_max as f64))?;
        if self.phases.is_empty() {
            let text = format!("cycles is {}, but there are no [[trace.phases]]", self.cycles);
            return Fault::unless(self.cycles == 1, "cycles", text);
        }
        for (index, phase) in self.phases.iter().enumerate() {
            let place = format!("phases.{index}");
            phase.check(self).map_err(|fault| fault.within(&place))?;
            Fault::unless(
                self.phases[..index].iter().all(|earlier| earlier.name != phase.name),
                format!("{place}.name"),
                format!("two phases are named `{}`", phase.name),
            )?;
        }
        percent::whole_sum("phases", "phases", self.phases.iter().map(|phase| phase.percent))
    }
}

impl TracePhase {
    fn check(&self, shape: &TraceShape) -> Result<(), Fault> {
        Fault::unless(!self.name.is_empty(), "name", "name is empty")?;
        percent::some("percent", self.percent)?;
        if let Some(read_percent) = self.read_percent {
            percent::up_to_whole("read_percent", read_percent)?;
        }
        if let Some(access) = &self.access {
            Fault::unless(
                *access != Access::Streams,
                "access",
                "access is of kind \"streams\", which a phase cannot have: use random, \
                 sequential, zipf or hot-cold",
            )?;
            access.check().map_err(|fault| fault.within("access"))?;
        }
        if let Some(sizes) = &self.sizes {
            check_sizes(sizes)?;
        }
        let Spacing { sequential_percent, iops, burstiness } = self.spacing(shape);
        check_order(sequential_percent, iops, burstiness)
    }

    /// Order and times of this phase of `shape`.
    pub(super) fn spacing(&self, shape: &TraceShape) -> Spacing {
        Spacing {
            sequential_percent: self.sequential_percent.unwrap_or(shape.sequential_percent),
            iops: self.iops.unwrap_or(shape.iops),
            burstiness: self.burstiness.unwrap_or(shape.burstiness),
        }
    }
}

/// Order and times of a phase, see [`TraceShape`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Spacing {
    pub(super) sequential_percent: f64,
    pub(super) iops: f64,
    pub(super) burstiness: f64,
}

fn check_order(sequential_percent: f64, iops: f64, burstiness: f64) -> Result<(), Fault> {
    percent::up_to_whole("sequential_percent", sequential_percent)?;
    in_range("iops", iops, (0.001, 1e9))?;
    in_range("burstiness", burstiness, (1.0, 1e4))
}

fn in_range(name: &str, value: f64, (low, high): (f64, f64)) -> Result<(), Fault> {
    Fault::unless(
        (low..=high).contains(&value),
        name,
        format!("{name} is {value}, not from {low} to {high}"),
    )
}
