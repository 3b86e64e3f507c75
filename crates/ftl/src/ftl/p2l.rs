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

use crate::stream::Origin;
use crate::{Ftl, Lpn, Media, Ppn, SuperblockId};

impl<C> Ftl<C> {
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
        self.mapping.searches += 1;
        for (lpn, ppn) in self.mapping.pages_in(first..first + places) {
            self.told.pages[(ppn.0 - first) as usize] = Some(lpn);
        }
    }

    /// Logical page that was told for `ppn`, if the map agrees.
    fn told_rightly(&self, ppn: Ppn) -> Option<Lpn> {
        self.told.at(ppn).filter(|lpn| self.mapping.is_at(*lpn, ppn))
    }
}
