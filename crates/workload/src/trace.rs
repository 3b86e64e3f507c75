//! A trace: requests that a machine once made, or that were made up to resemble them.
//!
//! ```text
//! text of a file ──► format ──► requests, in order of time ──► placement ──► requests on a drive
//! shape of a workload ──► synthetic ─┘
//! ```
//!
//! A trace knows several units (disks, files, application storage units) as one space: they follow
//! each other, each as large as its highest address asks for.
//!
//! Invariants:
//! - There is at least one request, and their times ascend from zero.
//! - Every request ends within the space.

mod blkparse;
mod format;
mod iolog;
mod line;
mod msr;
mod placement;
mod reading;
mod shape;
mod spc;
mod statistics;
mod synthetic;
mod systor;

use blockio::{Nanos, Op};

pub use format::Format;
pub use iolog::{Iolog, IologRequest, SYNTHETIC};
pub use placement::{Addresses, Placement};
pub use reading::{BROKEN_MAX, Beneath, BrokenLine, SkippedLines, TraceError, read};
pub use shape::{TracePhase, TraceShape};
pub use statistics::{REGION_BYTES, SizeCount, Statistics};
pub use synthetic::synthesise;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Time of the request, counted from the first one.
    pub at: Nanos,
    /// First sector in the space of the trace.
    pub lba: u64,
    /// Sectors of 512 bytes, at least one.
    pub sectors: u32,
    /// Read or write.
    pub op: Op,
    /// Placement handle of a write; 0 in traces of formats that have none.
    pub handle: u8,
}

/// Requests in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    name: String,
    format: Format,
    requests: Vec<TraceRequest>,
    space_sectors: u64,
    synthetic: bool,
    skipped: SkippedLines,
}

impl Trace {
    /// Name of its file, or of the workload that it was synthesised from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Format that it was read from; [`Format::Shape`] if it was synthesised.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The requests, in order of time; at least one.
    pub fn requests(&self) -> &[TraceRequest] {
        &self.requests
    }

    /// Sectors that it addresses, untouched ones between them included.
    pub fn space_sectors(&self) -> u64 {
        self.space_sectors
    }

    /// True if it was synthesised from a workload.
    pub fn is_synthetic(&self) -> bool {
        self.synthetic
    }

    /// Lines and requests of its file that were left out.
    pub fn skipped(&self) -> &SkippedLines {
        &self.skipped
    }

    /// Time from the first request to the last; zero where the trace has no times.
    pub fn span(&self) -> Nanos {
        self.requests.last().map_or(Nanos::ZERO, |last| last.at)
    }
}

#[cfg(test)]
mod tests;
