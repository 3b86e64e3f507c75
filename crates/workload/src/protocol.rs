//! One protocol: which workloads run in which order, how loaded and for how long.

use serde::{Deserialize, Serialize};

/// A protocol, as in `protocols/enterprise.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// Version of this format, 1.
    pub schema: u32,
    /// Name, such as `enterprise`.
    pub name: String,
    /// Heading on a report.
    pub title: String,
    /// What question it answers, and what it cannot say.
    pub description: String,
    /// Where it comes from.
    pub source: String,
    /// Suites, in order; each begins with a purge.
    pub suites: Vec<Suite>,
}

/// One workload family: purge, precondition, then measure without erasing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Name, such as `4k`.
    pub name: String,
    /// Heading on a report.
    pub title: String,
    /// What runs first, at constant load.
    pub precondition: Precondition,
    /// What is measured afterwards, in order.
    pub measure: Vec<Measure>,
}

/// Constant load until the drive has settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// Name of the workload.
    pub workload: String,
    /// Jobs.
    pub threads: u16,
    /// Requests that each job keeps outstanding.
    pub queue_per_thread: u16,
    /// How long, in seconds.
    pub duration_s: u64,
    /// Length of one sample, in seconds.
    pub interval_s: u64,
    /// Length of one round of the steady-state rule, in seconds: five rounds make the window.
    pub round_s: u64,
}

/// One workload at each combination of threads and queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Name of the workload.
    pub workload: String,
    /// Jobs, each value in turn (outer loop).
    pub threads: Vec<u16>,
    /// Requests that each job keeps outstanding, each value in turn (inner loop).
    pub queue_per_thread: Vec<u16>,
    /// How long each combination is measured, in seconds.
    pub duration_s: u64,
    /// Load before each measurement that is not counted, in seconds.
    pub ramp_s: u64,
    /// Length of one sample, in seconds.
    pub interval_s: u64,
}
