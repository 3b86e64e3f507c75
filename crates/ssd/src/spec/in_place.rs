//! Media that is written in place: no erase, no relocation, no over-provisioning to speak of.

use blockio::Bytes;
use serde::Deserialize;

/// Media of one module that is written in place, such as 3D `XPoint`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InPlaceSpec {
    /// Raw capacity of a module in GiB.
    pub gib: u32,
    /// Unit of media access, in bytes: a line written in part is read first.
    pub line_bytes: u32,
    /// Unit in which the controller writes, in bytes, whole lines: a unit written in part is read
    /// first and written whole. A line if absent.
    #[serde(default)]
    pub write_unit_bytes: Option<u32>,
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
    /// Unit in which the controller writes.
    pub(crate) fn write_unit(&self) -> u32 {
        self.write_unit_bytes.unwrap_or(self.line_bytes)
    }

    /// All media of one module.
    pub(crate) fn raw_capacity(&self) -> Bytes {
        Bytes(u64::from(self.gib) << 30)
    }
}
