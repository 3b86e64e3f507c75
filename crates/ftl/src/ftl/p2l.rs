//! Reverse map (physical to logical pages): kept in memory, or left to the media.
//!
//! Which page was written to a place is said by media of real bytes too, beside the page. An owner
//! of such media may do without the way back of the map, which is half of it: it is asked then what
//! a victim holds, a program unit at a time, as relocation comes to it.
//!
//! ```text
//!  valid place ─► told already? ─► the owner, of its unit ─► the whole map, for all of the victim
//! ```
//!
//! Invariant: what an owner says counts only where the map agrees.

use std::ops::Range;

use crate::stream::Origin;
use crate::{Ftl, Lpn, Media, Ppn, SuperblockId};

impl Ftl {
    /// Stops keeping the reverse map in memory, which saves four bytes a place: the owner is asked
    /// for the logical page when a place is to be relocated ([`Media::contents`]).
    pub fn leave_contents(&mut self) {
        self.mapping.leave_contents();
    }

    /// Returns the searches of the whole map that were needed because the owner did not know a
    /// page.
    pub const fn searches(&self) -> u64 {
        self.told.searches
    }

    /// True if `ppn` holds valid data.
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.mapping.is_valid(ppn)
    }

    /// A page that is at any of the places of these numbers, if there is one: the first of them.
    pub fn page_within(&self, places: Range<u32>) -> Option<Lpn> {
        // The map is looked through only where there is one.
        let is_any = self.mapping.is_any_valid(places.clone());
        is_any.then(|| self.mapping.pages_in(places).next().map(|(lpn, _)| lpn))?
    }

    /// True if `lpn`, which may lie beyond the last one, is mapped to `ppn`.
    pub fn is_at(&self, lpn: Lpn, ppn: Ppn) -> bool {
        self.mapping.is_at(lpn, ppn)
    }

    /// Pages that are at any of `places`, which are in order, and where: by a look through the
    /// whole map.
    pub fn pages_at(&self, places: &[Ppn]) -> Vec<(Lpn, Ppn)> {
        debug_assert!(places.is_sorted(), "places that are searched for are in order");
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return Vec::new() };
        let between = self.mapping.pages_in(first.0..last.0 + 1);
        between.filter(|(_, ppn)| places.binary_search(ppn).is_ok()).collect()
    }

    /// Returns the logical page at a valid place of a victim: told by the owner, or found in the
    /// map.
    // Out of line: drives that keep the way back do not come here.
    #[inline(never)]
    pub(crate) fn ask(&mut self, from: Origin, media: &mut impl Media) -> Lpn {
        let ppn = from.ppn;
        if !self.told.covers(ppn) {
            let unit = self.pages_per_unit.divisor();
            self.told.begin(ppn.0 / unit * unit, unit);
            assert!(self.told.covers(ppn), "a unit that is asked for holds the place");
            media.contents(Ppn(self.told.first), &mut self.told.pages);
            // All of them are looked up soon; together, so that the cache misses overlap.
            self.told.pages.iter().flatten().for_each(|lpn| self.mapping.prefetch(*lpn));
        }
        if let Some(lpn) = self.told_rightly(ppn) {
            return lpn;
        }
        self.search(from.superblock);
        self.told_rightly(ppn).expect("a page is mapped to what is valid")
    }

    /// Looks through the whole map for what a superblock holds.
    fn search(&mut self, superblock: SuperblockId) {
        let places = self.config.places_per_superblock();
        let first = superblock.0 * places;
        self.told.begin(first, places);
        self.told.searches += 1;
        for (lpn, ppn) in self.mapping.pages_in(first..first + places) {
            self.told.pages[(ppn.0 - first) as usize] = Some(lpn);
        }
    }

    /// Logical page that was told for `ppn`, if the map agrees.
    fn told_rightly(&self, ppn: Ppn) -> Option<Lpn> {
        self.told.at(ppn).filter(|lpn| self.mapping.is_at(*lpn, ppn))
    }
}
