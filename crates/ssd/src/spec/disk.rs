//! Hard disks: an arm over spinning platters.

use blockio::Bytes;
use serde::Deserialize;

/// A hard disk; then there is no NAND.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Capacity of a disk in decimal GB.
    pub gb: f64,
    /// Revolutions a minute.
    pub rpm: f64,
    /// Surfaces with a head each.
    pub heads: u32,
    /// Seeks of a read: to the next cylinder, on average over all pairs of cylinders, and over all
    /// of them, in milliseconds, settling included.
    pub read_seek_ms: [f64; 3],
    /// Seeks of a write, which settles longer.
    pub write_seek_ms: [f64; 3],
    /// Sustained rate at the outermost tracks, where addresses begin, in decimal MB/s.
    pub outer_mb_s: f64,
    /// Sustained rate at the innermost tracks, in decimal MB/s.
    pub inner_mb_s: f64,
    /// Commands among which the disk chooses the one with the shortest positioning time.
    pub queue_depth: u32,
    /// Waiting time after which a command goes first, however far it is, in milliseconds.
    pub wait_max_ms: f64,
    /// Memory for read-ahead while no command waits, in KiB; 0: none.
    pub read_ahead_kib: u32,
    /// Write cache, in KiB: writes are acknowledged before they are on the media. 0: a write is
    /// acknowledged when it is on the media.
    pub write_cache_kib: u32,
    /// Writes that the cache holds at most, among which the disk chooses as among commands.
    pub write_cache_entries: u32,
    /// Source.
    pub source: String,
}

impl DiskSpec {
    /// All media of one disk.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    pub(crate) fn raw_capacity(&self) -> Bytes {
        Bytes((self.gb * 1e9) as u64)
    }
}
