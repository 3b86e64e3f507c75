//! Counts of a tier, in blocks of 4 KiB.

use std::ops::Sub;

/// Blocks that moved since the tier was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierCounters {
    /// Blocks that the host read.
    pub read: u64,
    /// Blocks of them that the fast class held: hits.
    pub held: u64,
    /// Blocks of them that were read from the fast class.
    pub read_fast: u64,
    /// Blocks that the host wrote.
    pub written: u64,
    /// Blocks of them that were written to the slow class at once.
    pub written_slow: u64,
    /// Blocks that were written over data on the fast class, which therefore never left it.
    pub absorbed: u64,
    /// Blocks that left the fast class for the slow one.
    pub destaged: u64,
    /// Blocks that the garbage collection of a log moved.
    pub relocated: u64,
    /// Blocks that were taken into the read cache.
    pub admitted: u64,
}

impl Sub for TierCounters {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            read: self.read - earlier.read,
            held: self.held - earlier.held,
            read_fast: self.read_fast - earlier.read_fast,
            written: self.written - earlier.written,
            written_slow: self.written_slow - earlier.written_slow,
            absorbed: self.absorbed - earlier.absorbed,
            destaged: self.destaged - earlier.destaged,
            relocated: self.relocated - earlier.relocated,
            admitted: self.admitted - earlier.admitted,
        }
    }
}
