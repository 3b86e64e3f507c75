//! A recording: every request that an application made of a served drive, with its completion.
//!
//! ```text
//! front end ──► file ──► requests in order of issue ──► parents ──► replay on another drive
//! ```
//!
//! A trace has the times of issue. A recording also has the times of completion, and with them the
//! dependencies of a request: its **parent** is the request whose completion it waited for, mostly
//! that which completed last before it was issued (`chains.rs`), and its **think time** is the time
//! between the two. On a faster drive the parent
//! completes earlier, and all requests that follow it come earlier. //TRACE (Mesnier et al., FAST
//! 2007) and hfplayer (Haghdoost et al., FAST 2017) predict an application on another drive in this
//! way.
//!
//! Invariants:
//! - Requests are in order of issue, the first one at zero, and complete no earlier than issued.
//! - Every request ends within the device that was recorded.

mod benchmark;
mod blkparse;
mod chains;
mod device_trace;
mod fio_log;
mod format;
mod parents;
mod transaction;

use blockio::{Nanos, Op};
use serde::{Deserialize, Serialize};

pub use benchmark::Benchmark;
pub use blkparse::read_blkparse;
pub use device_trace::DeviceTrace;
pub use fio_log::{FioLogs, read_fio};
pub use format::{Chunk, MAGIC, RecordingError, RecordingWriter, read};
pub use parents::{Parent, parents};
pub use transaction::{Transaction, latency_percentile};

/// One request with its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Time of issue since the recording began.
    pub issued_at: Nanos,
    /// Time of completion since the recording began.
    pub completed_at: Nanos,
    /// Operation.
    pub op: Op,
    /// True if it had to be durable before its completion (force unit access).
    pub fua: bool,
    /// First sector; 0 for a flush.
    pub lba: u64,
    /// Sectors of 512 bytes; 0 for a flush.
    pub sectors: u32,
    /// Client that made it, a connection or a queue, from 0.
    pub client: u16,
}

impl RecordedRequest {
    /// Issue to completion.
    pub fn latency(&self) -> Nanos {
        self.completed_at - self.issued_at
    }
}

/// Facts about a recording that are known when it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Version of the format, [`Head::SCHEMA`].
    pub schema: u32,
    /// Description of the recorded device.
    pub device: String,
    /// Size of the device in bytes.
    pub size_bytes: u64,
    /// Model whose latencies the replies had; absent if replies were sent at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Machine that it was recorded on: processors and kernel, as `2 x AMD EPYC, Linux 6.1`.
    pub machine: String,
    /// Start of the recording in nanoseconds since 1970, by the clock of that machine.
    pub began_unix_ns: u64,
    /// Time of a request outside the drive, in the file system and the front end, measured one
    /// request at a time before the recording; absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end_ns: Option<u64>,
    /// Factor by which the emulated processor of the application was slower than a real one, above
    /// 0; absent: the processor was real. Recorded think times are longer by this factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation_slowdown: Option<f64>,
}

impl Head {
    /// Version of the format that this version writes and reads.
    pub const SCHEMA: u32 = 1;

    /// Processors of the machine, with which its description begins: `2 x AMD EPYC, Linux 6.1`;
    /// none if it begins otherwise.
    pub fn processors(&self) -> Option<u32> {
        let (count, _) = self.machine.split_once(" x ")?;
        count.parse().ok().filter(|count| *count > 0)
    }
}

/// Facts about a recording that are known when it ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Command whose requests were recorded; empty for a server that recorded until it was stopped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Start of the measurement of the benchmark, or of the command, since the recording began.
    pub measured_from: Nanos,
    /// End of the measurement.
    pub measured_to: Nanos,
    /// Result that the benchmark printed; absent if no known benchmark printed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<Benchmark>,
}

/// Requests of an application, with their completions.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Facts about it.
    pub head: Head,
    /// Facts that were known at its end; absent if the recording is truncated.
    pub tail: Option<Tail>,
    /// Requests in order of issue.
    pub requests: Vec<RecordedRequest>,
    /// Number of requests that were lost because the file was written too slowly.
    pub lost: u64,
    /// Transactions that the benchmark logged, in order of their commits; empty without a log.
    pub transactions: Vec<Transaction>,
}

impl Recording {
    /// Sectors of the device that was recorded.
    pub const fn space_sectors(&self) -> u64 {
        self.head.size_bytes / blockio::SECTOR_BYTES
    }

    /// Requests issued during the measurement; all of them if its times are unknown.
    pub fn measured(&self) -> &[RecordedRequest] {
        let Some(tail) = &self.tail else { return &self.requests };
        let from = self.requests.partition_point(|it| it.issued_at < tail.measured_from);
        let to = self.requests.partition_point(|it| it.issued_at <= tail.measured_to);
        &self.requests[from..to.max(from)]
    }

    /// Transactions that began and were committed during the measurement.
    pub fn measured_transactions(&self) -> impl Iterator<Item = &Transaction> {
        let span = self.tail.as_ref().map(|tail| tail.measured_from..=tail.measured_to);
        let is_within = move |it: &&Transaction| {
            span.as_ref().is_none_or(|span| span.contains(&it.from) && span.contains(&it.to))
        };
        self.transactions.iter().filter(is_within)
    }

    /// Time of the last completion.
    pub fn end(&self) -> Nanos {
        self.requests.iter().map(|it| it.completed_at).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
