//! Figures of applications: transactions, not requests.

use serde::{Deserialize, Serialize};

/// Error of predicted rates of transactions against published ones, as
/// docs/internals/applications.md has it.
pub const PREDICTION_ERROR: &str = "Published SysBench rates of flash cards are predicted at 0.4 \
                                    to 1.8 of what they are: the host is not the same, and a \
                                    database writes less of a drive than what settled the model. \
                                    Ratios between cards can be off by a factor of four.";

/// Rate and latency of an application's transactions on the target, predicted by replaying a
/// recording of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplicationFigures {
    /// Name of the application, such as `sysbench-oltp`.
    pub application: String,
    /// Heading of the application, such as `SysBench OLTP on MariaDB`.
    pub title: String,
    /// Transactions per second; absent where the host dominates, so that none is predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tps: Option<f64>,
    /// Mean latency of a transaction in milliseconds: the benchmark's times the time of the replay
    /// over that of the recording; absent with `tps`, or where the benchmark printed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms_mean: Option<f64>,
    /// 99th percentile of the latency of logged transactions, from begin to commit in the replay;
    /// absent with `tps`, or where no transactions were logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms_p99: Option<f64>,
    /// Share of the host's think times in the critical path of the replay, 0 to 1: the chain of
    /// requests that the last completion waited for.
    pub host_share: f64,
    /// Number of the drive, from 1, if the suite has several drives with one load each; absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u16>,
    /// Rate and latency in each interval, in order; empty if the load has no intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<ApplicationInterval>,
    /// Requests of a transaction; absent if the benchmark counted none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<TransactionMix>,
    /// Recording that was replayed.
    pub recorded: RecordedApplication,
}

/// Transactions of an interval, estimated from its requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplicationInterval {
    /// End of the interval, in seconds since the load began.
    pub at_s: f64,
    /// Transactions per second: requests completed in the interval, divided by the requests of a
    /// transaction over the whole recording.
    pub tps: f64,
    /// Mean latency of a transaction in milliseconds, from the rate by Little's law; absent where
    /// the benchmark printed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms_mean: Option<f64>,
}

/// Requests that a transaction makes of the drive, on average over the recording.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransactionMix {
    /// Reads.
    pub reads: f64,
    /// Writes, those with force unit access included.
    pub writes: f64,
    /// Flushes, and again the writes with force unit access.
    pub flushes: f64,
    /// Bytes that are read.
    pub read_bytes: f64,
    /// Bytes that are written.
    pub write_bytes: f64,
}

/// Figures of the application where it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedApplication {
    /// Device, for people.
    pub device: String,
    /// Model whose times its replies kept to; absent where they were sent at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Machine, its processors first.
    pub machine: String,
    /// Requests that are replayed.
    pub requests: u64,
    /// Time from the first of them to the last completion, in seconds.
    pub span_s: f64,
    /// Transactions per second; absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tps: Option<f64>,
    /// Share of the host in the recording itself, 0 to 1.
    pub host_share: f64,
    /// Share of its time that its longest pause takes, in which no request of any client was
    /// outstanding, 0 to 1; absent where it is at most 0.05, or there is one client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_share: Option<f64>,
}
