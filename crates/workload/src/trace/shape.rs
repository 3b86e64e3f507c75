//! Shape of a synthesised trace: length, address space, order and time.

use serde::{Deserialize, Serialize};

use crate::error::Fault;
use crate::percent;

/// Additions of a synthesised trace to the requests of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
}

const fn poisson() -> f64 {
    1.0
}

/// Most requests of a made-up trace: they are held in memory, 24 bytes each.
const REQUESTS_MAX: u64 = 100_000_000;

impl TraceShape {
    pub(crate) fn check(&self) -> Result<(), Fault> {
        percent::up_to_whole("sequential_percent", self.sequential_percent)?;
        let in_range = |name: &str, value: f64, low: f64, high: f64| {
            Fault::unless(
                (low..=high).contains(&value),
                name,
                format!("{name} is {value}, not from {low} to {high}"),
            )
        };
        in_range("requests", self.requests as f64, 1.0, REQUESTS_MAX as f64)?;
        in_range("space_gb", self.space_gb, 0.001, 1e9)?;
        in_range("iops", self.iops, 0.001, 1e9)?;
        in_range("burstiness", self.burstiness, 1.0, 1e4)
    }
}
