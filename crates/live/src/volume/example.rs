//! Small volumes for tests.

use std::path::Path;

use blockio::Bytes;
use status::Compression;

use crate::{CreateOptions, Shape};

/// A volume of 4 MiB over the three dies `d0.img` to `d2.img` of `folder`.
pub(super) fn three_dies(folder: &Path) -> CreateOptions {
    CreateOptions {
        volume: folder.join("volume"),
        dies: (0..3).map(|die| folder.join(format!("d{die}.img"))).collect(),
        size: Bytes(4 << 20),
        is_protected: true,
        over_provisioning: 0.5,
        compression: Compression::None,
        physical: None,
        unit: None,
    }
}

/// A drive of one die with 60 pages.
pub(super) const ONE_DIE: Shape = Shape {
    pages_logical: 60,
    pages_stored_max: 60,
    pages_mappable: 60,
    dies: 1,
    is_protected: false,
    unit_pages: 2,
    rows: 4,
    superblocks: 24,
    extents_per_page: 1,
    compression: Compression::None,
    journal_bytes: 1 << 20,
};
