//! Requests of a host to a drive, and their completions.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Lba, Nanos, SECTOR_BYTES};

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Returns what was last written there, or zeroes.
    Read,
    /// Replaces what is there.
    Write,
    /// Says that what is there is no longer needed.
    Trim,
    /// Makes everything acknowledged so far durable.
    Flush,
}

/// One request of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The host's own name for this request, returned with its completion.
    pub tag: u32,
    /// Host thread that submits it, dense from zero: each has a processor of its own.
    pub thread: u16,
    /// Operation.
    pub op: Op,
    /// Placement handle of a write: 0 is the default one. Drives without placement ignore it.
    pub handle: u8,
    /// First sector.
    pub lba: Lba,
    /// Sectors of 512 bytes, at least one except for a flush.
    pub sectors: u32,
}

impl Request {
    /// Bytes that this request covers.
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.sectors as u64 * SECTOR_BYTES)
    }
}

/// Status of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Done as asked.
    Ok,
    /// Some sector lies beyond the drive; nothing was done.
    OutOfRange,
    /// The media failed and redundancy could not help.
    MediaError,
    /// The drive no longer accepts writes.
    ReadOnly,
    /// A drive that offers more than it holds has no flash left for this data; nothing was done.
    OutOfSpace,
    /// The drive got too hot and switched itself off; nothing was done.
    PoweredOff,
}

/// The end of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the request.
    pub tag: u32,
    /// The thread of the request.
    pub thread: u16,
    /// Operation of the request.
    pub op: Op,
    /// Status of the request.
    pub status: Status,
    /// Sectors of the request.
    pub sectors: u32,
    /// Time of submission by the host.
    pub submitted_at: Nanos,
    /// Time at which the host sees the completion.
    pub completed_at: Nanos,
    /// Part of the latency for which a stall of the host held this request alone; in a model in
    /// time lapse 1/k of what it is at full scale. Zero if none did.
    pub stalled: Nanos,
}

impl Completion {
    /// Submission to completion, as the host sees it.
    pub fn latency(&self) -> Nanos {
        self.completed_at - self.submitted_at
    }
}
