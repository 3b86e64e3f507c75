//! Capacity that clients are to have.

use serde::{Deserialize, Serialize};

/// Capacity that clients are to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserCapacity {
    /// Capacity that leaves 15 % of it as spare space, the default of a new drive.
    Stock,
    /// Four fifths of stock, as the reviewed cards had it, for cheaper random writes.
    HighPerformance,
    /// So many bytes, a multiple of 4096.
    Bytes(u64),
}
