//! A set of pages, one bit a page.
//!
//! Invariant: `count` is the number of bits that are set in `words`.

use bytemuck::{cast_slice, cast_slice_mut};
use ftl::Lpn;

/// A set of pages; it takes no memory while no page was ever in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageSet {
    words: Vec<u64>,
    count: u64,
}

impl PageSet {
    /// The set of all pages of a drive that has so many.
    pub(crate) fn full(pages: u32) -> Self {
        let mut words = vec![u64::MAX; pages as usize / 64];
        words.extend((!pages.is_multiple_of(64)).then(|| (1 << (pages % 64)) - 1));
        Self { words, count: pages.into() }
    }

    /// The set of which [`PageSet::bytes`] gave out the bitmap.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        if bytes.iter().all(|byte| *byte == 0) {
            return Self::default();
        }
        let mut words = vec![0; bytes.len() / 8];
        cast_slice_mut::<u64, u8>(&mut words).copy_from_slice(&bytes[..bytes.len() / 8 * 8]);
        let count = words.iter().map(|word: &u64| u64::from(word.count_ones())).sum();
        Self { words, count }
    }

    /// Returns the bitmap; empty while no page was ever in the set.
    pub(crate) fn bytes(&self) -> &[u8] {
        cast_slice(&self.words)
    }

    /// Pages in the set.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// True if a page is in the set.
    pub(crate) fn has(&self, lpn: Lpn) -> bool {
        self.words.get(lpn.0 as usize / 64).is_some_and(|word| word >> (lpn.0 % 64) & 1 != 0)
    }

    /// Adds a page; says whether it was not there.
    pub(crate) fn set(&mut self, lpn: Lpn) -> bool {
        let index = lpn.0 as usize / 64;
        if self.words.len() <= index {
            self.words.resize(index + 1, 0);
        }
        let (word, bit) = (&mut self.words[index], 1_u64 << (lpn.0 % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        self.count += u64::from(is_new);
        is_new
    }

    /// Takes out the pages from `first` up to `end`.
    pub(crate) fn clear(&mut self, first: u32, end: u32) {
        let known = u32::try_from(self.words.len() * 64).unwrap_or(u32::MAX);
        for lpn in first..end.min(known) {
            let (word, bit) = (&mut self.words[lpn as usize / 64], 1_u64 << (lpn % 64));
            assert!(*word & bit == 0 || self.count > 0, "the count is that of the set");
            self.count -= u64::from(*word & bit != 0);
            *word &= !bit;
        }
        assert!(
            self.count <= self.words.len() as u64 * 64,
            "no more pages are in the set than it has room for"
        );
    }

    /// The pages in the set, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Lpn> {
        (0_u32..).zip(&self.words).flat_map(|(index, word)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| Lpn(index * 64 + bit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_set_has_every_page_of_the_drive_and_no_other() {
        for pages in [1, 63, 64, 65, 200] {
            let mut set = PageSet::full(pages);
            assert!(set.iter().map(|lpn| lpn.0).eq(0..pages) && set.count() == u64::from(pages));
            assert_eq!(PageSet::of_bytes(set.bytes()), set);
            set.clear(0, u32::MAX);
            assert_eq!((set.count(), set.iter().count()), (0, 0));
        }
    }
}
