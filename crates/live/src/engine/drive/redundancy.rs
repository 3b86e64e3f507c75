//! Full redundancy without the dies that have failed (Adaptive Flashback): rows leave them out, and
//! pages of rows that lack a unit are moved to such rows while the host goes on.
//!
//! ```text
//!  a die fails ─► headers say so ─► rows that are begun leave it out
//!              ─► pages of older rows are moved ─► checkpoint ─► headers: it is removed
//! ```
//!
//! Invariants:
//! - A row lacks at most one of its units: the dies that rows leave out are all incomplete ones,
//!   or all but one.
//! - A die is removed only while no page lies in a row that has a unit on it.
//! - Rows leave out a die only once headers say that rows may.

use std::sync::atomic::Ordering;

use device::DeviceError;
use ftl::Lpn;
use status::Redundancy;

use super::Drive;
use crate::engine::core::PageLocation;
use crate::engine::dies::erasure::STOPPED;
use crate::engine::log::journal::Scope;
use crate::format::die_set::DieSet;
use crate::format::row::{RowEpoch, StoredPlace};
use crate::mutants::{self, Mutant};

/// Pages that are gone through before `go_on` is told.
const PAGES_AT_ONCE: u32 = 16;
/// Outcome of an attempt to restore redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Restored,
    NoSpace,
    Overtaken,
    Stopped,
}

impl Ending {
    const fn failure(self) -> Option<&'static str> {
        match self {
            Self::Restored => None,
            Self::NoSpace => Some("too little space is left without the failed dies"),
            Self::Overtaken => Some("the dies or the free space changed meanwhile"),
            Self::Stopped => Some(STOPPED),
        }
    }
}

impl Drive {
    /// True if every row survives the loss of any one die.
    pub fn is_redundant(&self) -> bool {
        let dies = &self.store.dies;
        self.store.layout.shape.is_protected
            && dies.missed() == DieSet::default()
            && dies.healthy().count() > 1
    }

    /// Moves what lies in rows that lack a unit to rows without the dies that have failed, while
    /// the host goes on. Returns true if a further die can fail then without loss of data; false
    /// where too little space is left, or only one die.
    ///
    /// `go_on` is told now and then how many pages of how many have been gone through; once it says
    /// no, nothing more is moved. [`Drive::status`] tells how far it is.
    ///
    /// # Errors
    /// As [`device::Device::write`].
    pub fn restore_redundancy_while(
        &self,
        go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<bool, DeviceError> {
        if self.is_redundant() || !self.store.layout.shape.is_protected {
            return Ok(self.is_redundant());
        }
        let pages = u64::from(self.pages());
        let begun = Redundancy { is_running: true, pages, ..Redundancy::default() };
        self.maintenance().redundancy = Some(begun);
        let moved = self.noting(self.move_lacking(go_on));
        if let Some(redundancy) = &mut self.maintenance().redundancy {
            redundancy.is_running = false;
            redundancy.failure = match &moved {
                Ok(ending) => ending.failure().map(str::to_owned),
                Err(error) => Some(error.to_string()),
            };
        }
        Ok(moved? == Ending::Restored)
    }

    /// As [`Drive::restore_redundancy_while`], to its end.
    ///
    /// # Errors
    /// As [`Drive::restore_redundancy_while`].
    pub fn restore_redundancy(&self) -> Result<bool, DeviceError> {
        self.restore_redundancy_while(|_, _| true)
    }

    fn move_lacking(&self, mut go_on: impl FnMut(u64, u64) -> bool) -> Result<Ending, DeviceError> {
        let told = self.tell_header()?;
        let (out, choices) = {
            let removed = self.store.dies.removed();
            self.act(|core| {
                core.choose_rows(told, removed);
                (core.out, core.choices)
            })?
        };
        if !out.has_all(told) {
            return Ok(Ending::NoSpace);
        }
        let pages = self.pages();
        for first in (0..pages).step_by(PAGES_AT_ONCE as usize) {
            if !go_on(first.into(), pages.into()) {
                return Ok(Ending::Stopped);
            }
            if self.core()?.choices != choices {
                return Ok(Ending::Overtaken);
            }
            let end = pages.min(first.saturating_add(PAGES_AT_ONCE));
            self.move_pages(first..end, out)?;
            if let Some(redundancy) = &mut self.maintenance().redundancy {
                redundancy.pages_done = end.into();
            }
        }
        // From here on nothing refers to the rows that were left, and all copies of the journal
        // that are needed are on dies that have not failed.
        self.commit(Scope::Everything)?;
        self.checkpoint()?;
        let is_removed = {
            let core = self.core_mut()?;
            let dies = &self.store.dies;
            core.choices == choices && dies.incomplete().has_all(out) && dies.remove(out)
        };
        self.tell_header()?;
        let is_restored = is_removed && self.is_redundant();
        Ok(if is_restored { Ending::Restored } else { Ending::Overtaken })
    }

    /// Moves those of some pages that lie in rows which do not leave out all of these dies.
    fn move_pages(&self, pages: std::ops::Range<u32>, out: DieSet) -> Result<(), DeviceError> {
        let lacks_unit = |located: PageLocation| {
            let is_lacking = located.stored().is_some_and(|stored| !stored.life.out.has_all(out));
            is_lacking && !mutants::is(Mutant::RemovedEarly)
        };
        for lpn in pages {
            self.move_page(Lpn(lpn), false, lacks_unit)?;
        }
        Ok(())
    }

    /// Moves those of some pages that can be read, and still lie in a row that is in this life, to
    /// other rows, while the host goes on; says how many those were.
    ///
    /// # Errors
    /// As [`device::Device::write`].
    pub(crate) fn vacate_row(
        &self,
        row: u32,
        life: RowEpoch,
        pages: &[Lpn],
    ) -> Result<u64, DeviceError> {
        let layout = &self.store.layout;
        let lies_there = |located: PageLocation| {
            let is_of =
                |stored: StoredPlace| layout.place(stored.ppn).row == row && stored.life == life;
            matches!(located, PageLocation::Stored(stored) if is_of(stored))
        };
        let mut moved = 0;
        for lpn in pages {
            moved += u64::from(self.noting(self.move_page(*lpn, true, lies_there))?);
        }
        Ok(moved)
    }

    /// Has rows leave out the dies that have failed as headers tell, if that was not looked at yet.
    pub(super) fn adapt_rows(&self, told: DieSet) -> Result<(), DeviceError> {
        if self.adapted.swap(told.0, Ordering::AcqRel) != told.0 {
            self.act(|core| core.choose_rows(told, self.store.dies.removed()))?;
        }
        Ok(())
    }

    /// Has rows lack a unit again where rows without the failed dies have too little space; says
    /// whether that gave any.
    pub(super) fn spend_redundancy(&self) -> Result<bool, DeviceError> {
        let dies = &self.store.dies;
        let kept = {
            let core = self.core()?;
            if !core.ftl.occupancy().is_short_of_rows {
                return Ok(false);
            }
            let removed = dies.removed();
            if removed == core.out { removed.without_first() } else { removed }
        };
        loop {
            if !dies.remove(kept) {
                return Ok(false);
            }
            // Headers are synced: the system tells an error of what was written before only once.
            self.noting(self.tell_header())?;
            let is_done = self.act(|core| {
                // Another thread may have found meanwhile that a die can be removed.
                let is_still_so = kept.has_all(dies.removed());
                if is_still_so {
                    core.leave_out(kept);
                }
                is_still_so
            })?;
            if is_done {
                return Ok(true);
            }
        }
    }
}
