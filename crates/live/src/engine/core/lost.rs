//! Pages known to be lost: what they held can be read neither from their places nor from the rest
//! of their rows.
//!
//! A page stays in this set, across openings, until it is written or trimmed, so that a loss that
//! was found once is told until the owner has dealt with it. Reads do not look here: the page's own
//! checksums fail.

use ftl::Lpn;

use crate::format::journal::Trim;
use crate::format::layout::lba;
use crate::format::page_set::PageSet;

/// Ranges that a batch of the journal tells at most.
pub(crate) const BATCH_MAX: usize = 64;

/// The set of pages known to be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostPages {
    pages: PageSet,
    /// Pages that were added and are in no batch of the journal yet.
    unsaved: Vec<Trim>,
    /// True if a page of the last of these was taken out since: the journal must not say of it what
    /// it says of the next one that is found.
    is_range_over: bool,
    /// Pages that were ever added since the drive was opened.
    found: u64,
}

impl LostPages {
    /// The set that a checkpoint saved, as [`LostPages::bytes`] gave it out.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self { pages: PageSet::of_bytes(bytes), ..Self::default() }
    }

    /// Returns the bitmap as a checkpoint saves it; empty while no page was ever lost.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.pages.bytes()
    }

    /// Pages in the set.
    pub(crate) const fn count(&self) -> u64 {
        self.pages.count()
    }

    /// Pages that were added since the drive was opened, whatever became of them.
    pub(crate) const fn found(&self) -> u64 {
        self.found
    }

    /// First sectors of up to `most` of the pages, in order.
    pub(crate) fn lbas(&self, most: usize) -> Vec<u64> {
        self.iter().take(most).map(lba).collect()
    }

    /// True if a page is in the set.
    pub(crate) fn has(&self, lpn: Lpn) -> bool {
        self.pages.has(lpn)
    }

    /// Adds a page that was found lost at an event, to be told to the journal; says whether it was
    /// not known.
    pub(crate) fn find(&mut self, lpn: Lpn, seq: u64) -> bool {
        let is_new = self.set(lpn);
        assert!(self.has(lpn), "a page that was found lost is in the set");
        self.found += u64::from(is_new);
        if is_new {
            let is_over = std::mem::take(&mut self.is_range_over);
            let goes_on = |last: &&mut Trim| !is_over && last.first.0 + last.pages == lpn.0;
            match self.unsaved.last_mut().filter(goes_on) {
                Some(last) => (last.pages, last.seq) = (last.pages + 1, seq),
                None => self.unsaved.push(Trim { first: lpn, pages: 1, seq }),
            }
        }
        is_new
    }

    /// Adds a page; says whether it was not there.
    pub(crate) fn set(&mut self, lpn: Lpn) -> bool {
        self.pages.set(lpn)
    }

    /// Takes pages out: they were written or trimmed.
    #[inline]
    pub(crate) fn clear(&mut self, first: Lpn, pages: u32) {
        if self.count() > 0 {
            self.clear_some(first.0, first.0.saturating_add(pages));
        }
    }

    fn clear_some(&mut self, first: u32, end: u32) {
        let is_hit = |last: &Trim| first < last.first.0 + last.pages && last.first.0 < end;
        self.is_range_over |= self.unsaved.last().is_some_and(is_hit);
        self.pages.clear(first, end);
    }

    /// True if pages were added that no batch of the journal tells.
    pub(crate) const fn is_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Ranges that the next batch of the journal tells.
    pub(crate) fn unsaved_next(&self) -> usize {
        self.unsaved.len().min(BATCH_MAX)
    }

    /// True if so many ranges were added that it is time for a batch of the journal.
    pub(crate) const fn is_batch_full(&self) -> bool {
        self.unsaved.len() >= BATCH_MAX
    }

    /// Ranges that were added and not asked for yet, as many as a batch of the journal takes, the
    /// earliest first. What is left is told by the next one, or by a checkpoint.
    pub(crate) fn take_unsaved(&mut self) -> Vec<Trim> {
        self.unsaved.drain(..self.unsaved_next()).collect()
    }

    /// The pages in the set, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Lpn> {
        self.pages.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set_of_pages_that_a_checkpoint_gives_back(
            steps in prop::collection::vec((0..300_u32, 1..80_u32, any::<bool>()), 0..60),
        ) {
            let (mut lost, mut expected) = (LostPages::default(), BTreeSet::new());
            for (first, pages, is_found) in steps {
                if is_found {
                    prop_assert_eq!(lost.find(Lpn(first), 1), expected.insert(first));
                } else {
                    lost.clear(Lpn(first), pages);
                    expected.retain(|lpn| !(first..first + pages).contains(lpn));
                }
                prop_assert_eq!(lost.count(), expected.len() as u64);
            }
            prop_assert!(lost.iter().map(|lpn| lpn.0).eq(expected.iter().copied()));
            let again = LostPages::of_bytes(lost.bytes());
            prop_assert!(again.iter().eq(lost.iter()) && again.count() == lost.count());
            prop_assert!((0..400).all(|lpn| again.has(Lpn(lpn)) == expected.contains(&lpn)));
        }
    }

    #[test]
    fn pages_found_one_after_the_other_are_one_range_for_the_journal() {
        let mut lost = LostPages::default();
        for (lpn, seq) in [(5, 1), (6, 2), (6, 3), (9, 4)] {
            lost.find(Lpn(lpn), seq);
        }
        let ranges = lost.take_unsaved();
        let trim = |first, pages, seq| Trim { first: Lpn(first), pages, seq };
        assert_eq!(ranges, [trim(5, 2, 2), trim(9, 1, 4)]);
        assert!(!lost.is_unsaved());
    }

    #[test]
    fn the_journal_is_told_no_more_than_a_batch_takes_at_a_time() {
        let mut lost = LostPages::default();
        let pages = u32::try_from(BATCH_MAX).unwrap() + 2;
        (0..pages).for_each(|page| {
            lost.find(Lpn(page * 2), page.into());
        });
        assert!(lost.is_batch_full() && lost.unsaved_next() == BATCH_MAX);
        let told: Vec<u32> = [lost.take_unsaved(), lost.take_unsaved()]
            .iter()
            .flatten()
            .map(|range| range.first.0)
            .collect();
        assert!(told.iter().copied().eq((0..pages).map(|page| page * 2)) && !lost.is_unsaved());
    }

    /// A replay would count a page as lost after it was written again.
    #[test]
    fn a_page_that_was_written_since_is_in_no_range_that_goes_on() {
        let mut lost = LostPages::default();
        lost.find(Lpn(5), 1);
        lost.find(Lpn(6), 2);
        lost.clear(Lpn(5), 1);
        lost.find(Lpn(7), 4);
        lost.find(Lpn(8), 5);
        let trim = |first, pages, seq| Trim { first: Lpn(first), pages, seq };
        assert_eq!(lost.take_unsaved(), [trim(5, 2, 2), trim(7, 2, 5)]);
    }
}
