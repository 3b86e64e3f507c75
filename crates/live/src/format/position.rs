//! Positions in the journal.

/// Bytes that every position in the journal is a multiple of.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// Bytes of a sector as the length of a slice.
pub(crate) const SECTOR_LENGTH: usize = 512;
const _: () = assert!(SECTOR_LENGTH as u64 == SECTOR_BYTES);
/// Limit of positions and numbers, low enough that counting on never overflows.
const COUNT_MAX: u64 = 1 << 62;

/// Position of a batch in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Monotonic offset in bytes; `at % size` is the place in the ring.
    pub(crate) at: u64,
    /// Number of the batch.
    pub(crate) number: u64,
    /// Checksum of the head of the batch before; 0 for the first one.
    pub(crate) link: u32,
}

impl Position {
    /// True if a batch can lie at this position: it is a multiple of the sector size and in range.
    pub(crate) const fn is_possible(self) -> bool {
        self.at.is_multiple_of(SECTOR_BYTES) && self.at < COUNT_MAX && self.number < COUNT_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_lies_on_a_sector_below_the_limit_of_counting() {
        let at = |at, number| Position { at, number, link: 0 }.is_possible();
        assert!(at(0, 0) && at(512, 1) && at(COUNT_MAX - 512, COUNT_MAX - 1));
        assert!(!at(1, 0) && !at(511, 0), "not on a sector");
        assert!(!at(COUNT_MAX, 0) && !at(0, COUNT_MAX), "beyond the limit");
    }
}
