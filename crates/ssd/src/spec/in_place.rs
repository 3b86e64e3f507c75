//! Media that is written in place: no erase, no relocation, no over-provisioning to speak of.

use blockio::{Bytes, SECTOR_BYTES};
use serde::Deserialize;

use crate::spec::{DriveSpec, FormatSpec};

/// Media of one module that is written in place, such as 3D `XPoint`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InPlaceSpec {
    /// Raw capacity of a module in GiB.
    pub gib: u32,
    /// Unit of media access, in bytes: a line written in part is read first.
    pub line_bytes: u32,
    /// Time from an access to its data, the transfer apart.
    pub read_us: f64,
    /// Time from the arrival of data until it is on the media, the transfer apart.
    pub write_us: f64,
    /// Rate at which a module is read, in decimal MB/s.
    pub read_mb_s: f64,
    /// Rate at which a module is written, in decimal MB/s.
    pub write_mb_s: f64,
    /// Power-protected queue of a module in KiB that acknowledges before the media has the data;
    /// 0: none.
    pub queue_kib: u32,
    /// Source.
    pub source: String,
}

impl InPlaceSpec {
    /// All media of one module.
    pub(crate) fn raw_capacity(&self) -> Bytes {
        Bytes(u64::from(self.gib) << 30)
    }
}

impl DriveSpec {
    /// Sectors that the host sees of one module of in-place media, at 1/`time_lapse`: whole stripe
    /// units, at least one.
    pub(crate) fn in_place_sectors(&self, format: &FormatSpec, time_lapse: u32) -> u64 {
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
