//! Counters of the flash translation layer: host transfers, pages programmed by cause, trims,
//! erases.

use std::ops::Add;

use serde::{Deserialize, Serialize};

use crate::PAGE_BYTES;

/// Pages of 4 KiB programmed, by cause; and other events.
///
/// `host + relocation + wear + parity + metadata` is all that the NAND programmed, less what
/// compression saved of the first three, and the padding that it brought.
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
    /// Bytes by which compression made the pages of `pages_host` shorter.
    pub host_saved_bytes: u64,
    /// Bytes by which compression made the pages of `pages_relocation` shorter.
    pub relocation_saved_bytes: u64,
    /// Bytes by which compression made the pages of `pages_wear` shorter.
    pub wear_saved_bytes: u64,
    /// Bytes of program units that no extent fitted into.
    pub padding_bytes: u64,
    /// Pages trimmed by the host.
    pub pages_trimmed: u64,
    /// Superblocks erased.
    pub superblocks_erased: u64,
}

impl Counters {
    /// Counters of logical pages of `pages` x 4 KiB each, in pages of 4 KiB.
    pub(crate) const fn in_pages_of(self, pages: u64) -> Self {
        Self {
            pages_host: self.pages_host * pages,
            pages_relocation: self.pages_relocation * pages,
            pages_wear: self.pages_wear * pages,
            pages_parity: self.pages_parity * pages,
            pages_metadata: self.pages_metadata * pages,
            pages_trimmed: self.pages_trimmed * pages,
            ..self
        }
    }

    /// Pages programmed for any cause, as many as there would be without compression.
    pub const fn pages_programmed(&self) -> u64 {
        self.pages_host
            + self.pages_relocation
            + self.pages_wear
            + self.pages_parity
            + self.pages_metadata
    }

    /// Bytes programmed for any cause.
    pub const fn programmed_bytes(&self) -> u64 {
        let saved = self.host_saved_bytes + self.relocation_saved_bytes + self.wear_saved_bytes;
        self.pages_programmed() * PAGE_BYTES + self.padding_bytes - saved
    }
}

impl Add for Counters {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            host_sent_bytes: self.host_sent_bytes + other.host_sent_bytes,
            host_read_bytes: self.host_read_bytes + other.host_read_bytes,
            pages_host: self.pages_host + other.pages_host,
            pages_relocation: self.pages_relocation + other.pages_relocation,
            pages_wear: self.pages_wear + other.pages_wear,
            pages_parity: self.pages_parity + other.pages_parity,
            pages_metadata: self.pages_metadata + other.pages_metadata,
            host_saved_bytes: self.host_saved_bytes + other.host_saved_bytes,
            relocation_saved_bytes: self.relocation_saved_bytes + other.relocation_saved_bytes,
            wear_saved_bytes: self.wear_saved_bytes + other.wear_saved_bytes,
            padding_bytes: self.padding_bytes + other.padding_bytes,
            pages_trimmed: self.pages_trimmed + other.pages_trimmed,
            superblocks_erased: self.superblocks_erased + other.superblocks_erased,
        }
    }
}
