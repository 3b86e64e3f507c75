//! Another size of what clients may use: what lies beyond it is forgotten.

use ftl::{ConfigError, Lpn};

use super::Core;
use crate::format::journal::Trim;

impl Core {
    /// Forgets every page, and erases every superblock.
    pub(crate) fn forget_all(&mut self) {
        let (seq, pages) = (self.next_seq(), self.ftl.config().pages_logical);
        self.giving_up(|core| core.ftl.purge());
        assert_eq!(self.ftl.occupancy().pages_stored, 0, "a drive that was purged stores nothing");
        self.supersede(Lpn(0), pages);
        self.give_up_all(Trim { first: Lpn(0), pages, seq });
        self.forget_rows();
    }

    /// Has other numbers of pages; those beyond the end are forgotten.
    pub(crate) fn resize(&mut self, pages: u32, stored_max: u32) -> Result<(), ConfigError> {
        let before = self.ftl.config().pages_logical;
        self.giving_up(|core| core.ftl.resize(pages, stored_max))?;
        assert_eq!(self.ftl.config().pages_logical, pages, "the map has the new size");
        self.give_up_beyond_end(before);
        Ok(())
    }

    /// Has the journal tell that pages from the end on, up to `before`, are stored no more: a map
    /// that has become larger again must not bring them back, whichever checkpoint it begins with.
    pub(crate) fn give_up_beyond_end(&mut self, before: u32) {
        let pages = self.ftl.config().pages_logical;
        if pages < before {
            let seq = self.next_seq();
            self.trims.push(Trim { first: Lpn(pages), pages: before - pages, seq });
            self.supersede(Lpn(pages), before - pages);
        }
    }

    /// Has the journal tell that no page of the present size is stored. Trims of what lies beyond
    /// the end of a drive that became smaller are still to be told.
    pub(crate) fn give_up_all(&mut self, all: Trim) {
        self.trims.retain(|trim| trim.first.0 + trim.pages > all.pages);
        self.trims.push(all);
    }

    /// Pages from `first` on that are stored.
    pub(crate) fn stored_from(&self, first: u32) -> impl Iterator<Item = Lpn> {
        let entries = self.ftl.map().entries().iter().zip(0..).skip(first as usize);
        entries.filter(|(entry, _)| **entry != 0).map(|(_, lpn)| Lpn(lpn))
    }
}
