//! Hard disks: an arm over spinning platters.

use blockio::{Bytes, SECTOR_BYTES};
use serde::Deserialize;

use crate::spec::{DriveSpec, FormatSpec};

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
    /// The same of a write, which has to settle better.
    pub write_seek_ms: [f64; 3],
    /// Sustained rate at the outermost tracks, where addresses begin, in decimal MB/s.
    pub outer_mb_s: f64,
    /// The same at the innermost tracks.
    pub inner_mb_s: f64,
    /// Commands among which the disk chooses the one with the shortest positioning time.
    pub queue_depth: u32,
    /// Time after which a command goes first, however far it is, in milliseconds.
    pub wait_max_ms: f64,
    /// Memory that reading ahead fills while nothing else is asked, in KiB; 0: none.
    pub read_ahead_kib: u32,
    /// Memory for writes that are acknowledged before they are on the media, in KiB; 0: a write is
    /// acknowledged when it is there.
    pub write_cache_kib: u32,
    /// Writes that this memory takes, among which the disk chooses as among commands.
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

impl DriveSpec {
    /// Sectors that the host sees of one module of media that have no map, at 1/`time_lapse`: whole
    /// stripe units, at least one.
    pub(crate) fn mapless_sectors(&self, format: &FormatSpec, time_lapse: u32) -> u64 {
        let unit = u64::from(self.modules.stripe_kib) * 1024 / SECTOR_BYTES;
        let module_bytes = format.user_gb * 1e9 / f64::from(self.modules.count);
        let sectors = whole(module_bytes / SECTOR_BYTES as f64 / f64::from(time_lapse));
        (sectors / unit).max(1) * unit
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn whole(number: f64) -> u64 {
    number as u64
}
