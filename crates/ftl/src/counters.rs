//! What the flash translation layer did, by cause.

use serde::{Deserialize, Serialize};

/// Pages (of the mapping unit, 4 KiB) programmed, by cause; and other events.
///
/// `host + relocation + wear + parity + metadata` is all that the NAND programmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes that the host sent, before read-modify-write filled up whole pages.
    pub host_sent_bytes: u64,
    /// Bytes that the host read.
    pub host_read_bytes: u64,
    /// Pages programmed for host data.
    pub pages_host: u64,
    /// Pages programmed by garbage collection.
    pub pages_relocation: u64,
    /// Pages programmed by wear levelling.
    pub pages_wear: u64,
    /// Pages of parity members.
    pub pages_parity: u64,
    /// Pages of padding and metadata.
    pub pages_metadata: u64,
    /// Pages trimmed by the host.
    pub pages_trimmed: u64,
    /// Superblocks erased.
    pub superblocks_erased: u64,
}
