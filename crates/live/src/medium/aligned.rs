//! Buffers as the system wants them where it moves bytes past its page cache.

use std::ops::Range;

/// Alignment of direct I/O in bytes, a multiple of every disk's block size.
pub(super) const ALIGN: usize = 4096;

/// Zeroed bytes that begin at an address which [`ALIGN`] divides.
#[derive(Debug)]
pub(super) struct AlignedBytes {
    bytes: Vec<u8>,
    place: Range<usize>,
}

impl AlignedBytes {
    pub(super) fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGN];
        let from = bytes.as_ptr().align_offset(ALIGN);
        Self { bytes, place: from..from + length }
    }

    /// A copy of bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut aligned = Self::new(bytes.len());
        aligned.bytes_mut().copy_from_slice(bytes);
        aligned
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.place.clone()]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.place.clone()]
    }
}

/// Whole blocks about a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cover {
    /// Offset of the first block.
    pub(super) offset: u64,
    /// Bytes of the blocks before the range.
    pub(super) before: usize,
    /// Bytes of all of them.
    pub(super) length: usize,
}

impl Cover {
    /// Blocks of `block_bytes`, at most [`ALIGN`], about `length` bytes from `offset` on.
    pub(super) fn of(offset: u64, length: usize, block_bytes: usize) -> Self {
        let before = usize::try_from(offset % block_bytes as u64).expect("below a block");
        let length = (before + length).next_multiple_of(block_bytes);
        Self { offset: offset - before as u64, before, length }
    }

    /// True if the blocks are exactly the range, of `length` bytes.
    pub(super) const fn is_exact(&self, length: usize) -> bool {
        self.before == 0 && self.length == length
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cover_is_the_fewest_whole_blocks_about_a_range(
            offset in 0..1_u64 << 40,
            length in 1..1_usize << 20,
            shift in 9..=12_u32,
        ) {
            let block = 1 << shift;
            let cover = Cover::of(offset, length, block);
            prop_assert_eq!(cover.offset % block as u64, 0);
            prop_assert_eq!(cover.length % block, 0);
            prop_assert_eq!(cover.offset + cover.before as u64, offset);
            prop_assert!(cover.before < block);
            prop_assert!(cover.before + length <= cover.length);
            prop_assert!(cover.length < cover.before + length + block);
        }

        #[test]
        fn aligned_bytes_are_as_many_as_asked_for(length in 0..1_usize << 16) {
            let mut aligned = AlignedBytes::new(length);
            prop_assert_eq!(aligned.bytes_mut().len(), length);
            prop_assert_eq!(aligned.bytes().as_ptr().align_offset(ALIGN), 0);
        }
    }
}
