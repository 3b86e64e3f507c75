//! The map from logical to physical pages and back.
//!
//! Both directions are plain tables of 32-bit numbers, eight bytes a page; the way back may be left
//! to the media (`ftl/p2l.rs`). Beside them one bit says of each physical page whether it is
//! valid: it is small enough for a processor's cache where the tables are not, so that what a
//! victim still holds is found without looking up what it does not.
//!
//! Invariants:
//! - A physical page is valid exactly when a logical page is mapped to it.
//! - The way back, where it is kept, agrees for every valid page.

use std::ops::Range;

use prefetch_index::prefetch_index;

use crate::extent::Extents;
use crate::table::{Table, Use};
use crate::{Lpn, Ppn};

/// Pages of a word of validity.
const WORD_PAGES: u32 = u64::BITS;
/// Pages by which a look through the whole map has words of validity fetched ahead.
const AHEAD: usize = 32;

/// L2P, P2L and validity.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    /// PPN plus one, by LPN; 0 is none, so that untouched memory means nothing mapped.
    ppn_of: Table<u32>,
    /// LPN that was written last, by PPN; empty where that is left to the media.
    lpn_of: Table<u32>,
    /// True if the way back is kept.
    keeps_contents: bool,
    /// Validity, by PPN, one bit each.
    valid: Table<u64>,
    /// Searches of the whole map for a page that the media did not know.
    pub(crate) searches: u64,
}

/// The tables that say where a page is and what it takes.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a> {
    pub(crate) mapping: &'a Mapping,
    pub(crate) extents: &'a Extents,
}

impl<'a> Map<'a> {
    /// Returns the entries for an owner to save: by LPN, the PPN plus one; 0 is none.
    pub fn entries(self) -> &'a [u32] {
        self.mapping.entries()
    }

    /// By LPN, the granules of its extent, 0 being a whole page; empty where pages are always
    /// stored whole.
    pub fn extent_sizes(self) -> &'a [u8] {
        self.extents.sizes()
    }

    /// True if `ppn` holds valid data.
    pub fn is_valid(self, ppn: Ppn) -> bool {
        self.mapping.is_valid(ppn)
    }

    /// True if `lpn`, which may lie beyond the last one, is mapped to `ppn`.
    pub fn is_at(self, lpn: Lpn, ppn: Ppn) -> bool {
        self.mapping.is_at(lpn, ppn)
    }

    /// A page that is at any of the places of these numbers, if there is one: the first of them.
    pub fn page_within(self, places: Range<u32>) -> Option<Lpn> {
        // The map is looked through only where there is one.
        let is_any = self.mapping.is_any_valid(places.clone());
        is_any.then(|| self.mapping.pages_in(places).next().map(|(lpn, _)| lpn))?
    }

    /// Pages that are at any of `places`, which are in order, and where: by a look through the
    /// whole map.
    pub fn pages_at(self, places: &[Ppn]) -> Vec<(Lpn, Ppn)> {
        debug_assert!(places.is_sorted(), "places that are searched for are in order");
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return Vec::new() };
        let between = self.mapping.pages_in(first.0..last.0 + 1);
        between.filter(|(_, ppn)| places.binary_search(ppn).is_ok()).collect()
    }

    /// Returns the searches of the whole map that were needed because the owner did not know a
    /// page.
    pub const fn searches(self) -> u64 {
        self.mapping.searches
    }
}

impl Mapping {
    /// Map with nothing mapped; `by_ppn` says how much of the tables by PPN will be used, which
    /// depends on whether pages are stored whole.
    pub(crate) fn new(pages_logical: u32, pages_physical: u32, by_ppn: Use) -> Self {
        Self {
            ppn_of: Table::new(pages_logical as usize, Use::Whole),
            lpn_of: Table::new(pages_physical as usize, by_ppn),
            keeps_contents: pages_physical > 0,
            valid: Table::new(pages_physical.div_ceil(WORD_PAGES) as usize, by_ppn),
            searches: 0,
        }
    }

    /// Keeps no longer what lies where.
    pub(crate) fn leave_contents(&mut self) {
        self.lpn_of.resize(0);
        self.keeps_contents = false;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.ppn_of.clear();
        self.lpn_of.clear();
        self.valid.clear();
    }

    /// Has another number of logical pages; those beyond the end are not mapped.
    pub(crate) fn resize(&mut self, pages_logical: u32) {
        self.ppn_of.resize(pages_logical as usize);
    }

    /// Returns the physical page of `lpn`; `None` if it is not mapped.
    #[inline]
    pub(crate) fn ppn(&self, lpn: Lpn) -> Option<Ppn> {
        self.ppn_of.at(lpn.0).checked_sub(1).map(Ppn)
    }

    /// Returns the logical page at `ppn`, which must be valid; `None` if the media keeps the
    /// reverse map.
    #[inline]
    pub(crate) fn lpn(&self, ppn: Ppn) -> Option<Lpn> {
        self.lpn_of.get(ppn.0).map(Lpn)
    }

    /// True if `lpn`, which may lie beyond the last one, is mapped to `ppn`.
    #[inline]
    pub(crate) fn is_at(&self, lpn: Lpn, ppn: Ppn) -> bool {
        self.ppn_of.get(lpn.0) == Some(ppn.0 + 1)
    }

    /// Looks through the whole map for what is at the places of these numbers.
    pub(crate) fn pages_in(&self, places: Range<u32>) -> impl Iterator<Item = (Lpn, Ppn)> {
        let pages = (0..).map(Lpn).zip(self.ppn_of.entries());
        let mapped = pages.filter_map(|(lpn, entry)| Some((lpn, Ppn(entry.checked_sub(1)?))));
        mapped.filter(move |(_, ppn)| places.contains(&ppn.0))
    }

    /// True if `ppn` holds valid data.
    #[inline]
    pub(crate) fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid.at(word_of(ppn)) & bit_of(ppn) != 0
    }

    /// Validity of the pages from `first` on, before `end`, as far as one word of the bitmap
    /// reaches: bit `i` is set if page `first + i` is valid. Also returns the first page that the
    /// word does not cover.
    #[inline]
    pub(crate) fn validity(&self, first: u32, end: u32) -> (u64, u32) {
        let next = (first / WORD_PAGES + 1).saturating_mul(WORD_PAGES).min(end);
        let told = u64::MAX >> (WORD_PAGES - (next - first));
        let word = self.valid.at(word_of(Ppn(first))) >> (first % WORD_PAGES);
        (word & told, next)
    }

    /// Has the processor fetch the map entry of `lpn`, which will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, lpn: Lpn) {
        self.ppn_of.prefetch(lpn.0);
    }

    /// Has the processor fetch what overwriting `lpn` needs besides its map entry.
    #[inline]
    pub(crate) fn prefetch_validity(&self, lpn: Lpn) {
        if let Some(ppn) = self.ppn(lpn) {
            self.valid.prefetch(word_of(ppn));
        }
    }

    /// Maps `lpn` to `ppn`; returns where it was.
    #[inline]
    pub(crate) fn map(&mut self, lpn: Lpn, ppn: Ppn) -> Option<Ppn> {
        debug_assert!(!self.is_valid(ppn), "a page is mapped to a place that holds nothing");
        let was = self.ppn(lpn);
        self.ppn_of.set(lpn.0, ppn.0 + 1);
        self.keep(ppn, lpn);
        self.validate(ppn);
        self.invalidate(was)
    }

    /// Physical pages that are valid.
    pub(crate) fn count_valid(&self) -> u64 {
        self.valid.entries().iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the PPN plus one, by LPN; 0 is none.
    pub(crate) fn entries(&self) -> &[u32] {
        self.ppn_of.entries()
    }

    /// Returns the entries to be filled in before anything else is; [`Mapping::complete`] finishes
    /// it.
    pub(crate) fn entries_mut(&mut self) -> &mut [u32] {
        self.ppn_of.entries_mut()
    }

    /// Derives the rest of the map from its entries; says for each page where it is.
    ///
    /// # Errors
    /// The first page at a place that another one has, or that `found` says it cannot be at.
    pub(crate) fn complete(
        &mut self,
        mut found: impl FnMut(Lpn, Ppn) -> bool,
    ) -> Result<(), (Lpn, Ppn)> {
        let entries = self.ppn_of.entries();
        let (lpn_of, valid) = (self.lpn_of.entries_mut(), self.valid.entries_mut());
        for (index, entry) in entries.iter().enumerate() {
            let soon = entries.get(index + AHEAD).copied().unwrap_or_default();
            prefetch_index(&*valid, word_of(Ppn(soon)) as usize);
            let Some(ppn) = entry.checked_sub(1).map(Ppn) else { continue };
            #[expect(clippy::cast_possible_truncation, reason = "made from a u32")]
            let lpn = Lpn(index as u32);
            if !found(lpn, ppn) {
                return Err((lpn, ppn));
            }
            if let Some(kept) = lpn_of.get_mut(ppn.0 as usize) {
                *kept = lpn.0;
            }
            let word = &mut valid[word_of(ppn) as usize];
            if *word & bit_of(ppn) != 0 {
                return Err((lpn, ppn));
            }
            *word |= bit_of(ppn);
        }
        Ok(())
    }

    /// True if any page in `places` is valid.
    pub(crate) fn is_any_valid(&self, places: Range<u32>) -> bool {
        let mut at = places.start;
        while at < places.end {
            let (word, next) = self.validity(at, places.end);
            if word != 0 {
                return true;
            }
            at = next;
        }
        false
    }

    /// Maps `lpn`, which is at `from`, to `to`.
    ///
    /// Only writes to the large table: where it was is known, so nothing waits for a cache miss.
    #[inline]
    pub(crate) fn relocate(&mut self, lpn: Lpn, from: Ppn, to: Ppn) {
        debug_assert!(self.is_at(lpn, from), "a page is moved from where it is");
        debug_assert!(self.is_valid(from), "a page that is moved is valid where it was");
        debug_assert!(!self.is_valid(to), "a page is moved to a place that holds nothing");
        self.ppn_of.set(lpn.0, to.0 + 1);
        self.keep(to, lpn);
        self.validate(to);
        self.invalidate(Some(from));
    }

    /// Unmaps `lpn`; returns where it was.
    pub(crate) fn unmap(&mut self, lpn: Lpn) -> Option<Ppn> {
        let was = self.ppn(lpn);
        self.ppn_of.set(lpn.0, 0);
        self.invalidate(was)
    }

    #[inline]
    fn keep(&mut self, ppn: Ppn, lpn: Lpn) {
        if self.keeps_contents {
            self.lpn_of.set(ppn.0, lpn.0);
        }
    }

    #[inline]
    fn validate(&mut self, ppn: Ppn) {
        let word = word_of(ppn);
        self.valid.set(word, self.valid.at(word) | bit_of(ppn));
    }

    #[inline]
    fn invalidate(&mut self, was: Option<Ppn>) -> Option<Ppn> {
        if let Some(ppn) = was {
            debug_assert!(self.is_valid(ppn), "a place that is given up was valid");
            let word = word_of(ppn);
            self.valid.set(word, self.valid.at(word) & !bit_of(ppn));
        }
        was
    }
}

#[inline]
const fn word_of(ppn: Ppn) -> u32 {
    ppn.0 / WORD_PAGES
}

#[inline]
const fn bit_of(ppn: Ppn) -> u64 {
    1 << (ppn.0 % WORD_PAGES)
}
