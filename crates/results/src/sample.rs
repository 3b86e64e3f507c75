//! Numbers over a span of time: one interval, or one whole step.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use crate::Latencies;

/// Latency of one kind of request over a span. All in nanoseconds; zeroes where `count` is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Requests.
    pub count: u64,
    /// Arithmetic mean.
    pub latency_ns_avg: f64,
    /// Standard deviation (of the population).
    pub latency_ns_stdev: f64,
    /// Smallest.
    pub latency_ns_min: u64,
    /// Largest, exact.
    pub latency_ns_max: u64,
    /// Median, from the histogram.
    pub latency_ns_p50: u64,
    /// 90th percentile.
    pub latency_ns_p90: u64,
    /// 99th percentile.
    pub latency_ns_p99: u64,
    /// 99.9th percentile.
    pub latency_ns_p999: u64,
    /// 99.99th percentile.
    pub latency_ns_p9999: u64,
}

/// Bytes programmed, by cause. Host + relocation + parity + … = all that the NAND wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NandWrites {
    /// Bytes that the host sent (before any compression).
    pub host_sent_bytes: u64,
    /// Programmed for host data.
    pub host_bytes: u64,
    /// Programmed by garbage collection.
    pub relocation_bytes: u64,
    /// Programmed by wear levelling.
    pub wear_bytes: u64,
    /// Parity members of stripes.
    pub parity_bytes: u64,
    /// Padding and metadata.
    pub metadata_bytes: u64,
    /// Superblocks erased.
    pub erase_count: u64,
}

impl NandWrites {
    /// Everything programmed, in bytes.
    pub const fn total_bytes(&self) -> u64 {
        self.host_bytes
            + self.relocation_bytes
            + self.wear_bytes
            + self.parity_bytes
            + self.metadata_bytes
    }

    /// NAND writes ÷ host writes over this span; absent where the host wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_sent_bytes > 0).then(|| self.total_bytes() as f64 / self.host_sent_bytes as f64)
    }
}

impl Add for NandWrites {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            host_sent_bytes: self.host_sent_bytes + other.host_sent_bytes,
            host_bytes: self.host_bytes + other.host_bytes,
            relocation_bytes: self.relocation_bytes + other.relocation_bytes,
            wear_bytes: self.wear_bytes + other.wear_bytes,
            parity_bytes: self.parity_bytes + other.parity_bytes,
            metadata_bytes: self.metadata_bytes + other.metadata_bytes,
            erase_count: self.erase_count + other.erase_count,
        }
    }
}

impl Sub for NandWrites {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            host_sent_bytes: self.host_sent_bytes - earlier.host_sent_bytes,
            host_bytes: self.host_bytes - earlier.host_bytes,
            relocation_bytes: self.relocation_bytes - earlier.relocation_bytes,
            wear_bytes: self.wear_bytes - earlier.wear_bytes,
            parity_bytes: self.parity_bytes - earlier.parity_bytes,
            metadata_bytes: self.metadata_bytes - earlier.metadata_bytes,
            erase_count: self.erase_count - earlier.erase_count,
        }
    }
}

/// One step or one window as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Length of the span, in seconds of the drive's own time (not multiplied by the time lapse).
    pub span_s: f64,
    /// Requests completed in each second, reads and writes together.
    pub iops: f64,
    /// Reads completed in each second.
    pub iops_read: f64,
    /// Writes completed in each second.
    pub iops_write: f64,
    /// Decimal MB/s read.
    pub throughput_read_mb_s: f64,
    /// Decimal MB/s written.
    pub throughput_write_mb_s: f64,
    /// Mean of what was outstanding over the span.
    pub outstanding_avg: f64,
    /// Latency over reads and writes together.
    pub latency: LatencySummary,
    /// Latency of reads.
    pub read: LatencySummary,
    /// Latency of writes.
    pub write: LatencySummary,
    /// NAND writes in the span; absent for real drives.
    pub nand: Option<NandWrites>,
}

/// One interval of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// End of the interval in protocol time since the step began, in seconds.
    pub at_s: f64,
    /// What happened in it.
    pub summary: Summary,
    /// Share of superblocks that are free at its end, 0 to 1; absent for real drives.
    pub superblocks_free_share: Option<f64>,
}

/// What a driver measured in one interval, before it is summarised: everything else follows.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// End of the interval in protocol time since the step began, in seconds.
    pub at_s: f64,
    /// Length of the interval in the drive's own time (not multiplied by the time lapse), in seconds.
    pub span_s: f64,
    /// Latencies of the reads that completed in it.
    pub read: Latencies,
    /// Latencies of the writes that completed in it.
    pub write: Latencies,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// NAND writes in it; absent for real drives.
    pub nand: Option<NandWrites>,
    /// Share of superblocks that are free at its end, 0 to 1; absent for real drives.
    pub superblocks_free_share: Option<f64>,
}
