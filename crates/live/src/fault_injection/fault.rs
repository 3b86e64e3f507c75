//! Kinds of faults.

use serde::{Deserialize, Serialize};

/// Fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Power cut: data that is not durable is lost or torn, sector by sector.
    CutPower,
    /// Every command to a die fails from now on.
    FailDie {
        /// Index of the die.
        die: u32,
    },
    /// Bits of a die's data flip.
    FlipBits {
        /// Index of the die; none: a random one.
        die: Option<u32>,
        /// Number of bits to flip.
        bits: u32,
    },
    /// Every command to any die waits until this time has gone by.
    Stall {
        /// Milliseconds, at most an hour.
        stall_ms: u64,
    },
    /// Writes fail with ENOSPC, except for the space that is trimmed from now on.
    Fill {
        /// Bytes that may still be written.
        left_bytes: u64,
    },
}
