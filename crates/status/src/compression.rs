//! Compression of pages.

use serde::{Deserialize, Serialize};

/// Compression of pages; one that does not become smaller is stored as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// LZ4, which takes a few microseconds a page.
    Lz4,
    /// Zstandard: smaller, and slower.
    Zstd,
}
