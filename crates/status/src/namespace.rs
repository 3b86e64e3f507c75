//! Namespaces, as the status names them.

use serde::{Deserialize, Serialize};

/// A part of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Name by which clients ask for it, 1 to 255 bytes.
    pub name: String,
    /// Its first byte on the drive, a multiple of 4096.
    pub offset_bytes: u64,
    /// Its bytes, a multiple of 4096 above zero.
    pub size_bytes: u64,
}

impl Namespace {
    /// The byte after its last one.
    pub const fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.size_bytes
    }
}
