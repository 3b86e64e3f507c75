//! Relocation: paid for by whoever writes, one thread at a time.
//!
//! ```text
//!  core: which pages are next? ─► read them, verified ─► core: move them ─► ...
//!                                                    ─► commit, once superblocks are empty
//! ```
//!
//! A thread that writes while another relocates goes on; only where room is short do all wait.

use std::sync::{MutexGuard, TryLockError};

use ftl::Lpn;

use super::Drive;
use crate::DeviceError;
use crate::engine::core::{Core, Located, Relocated};
use crate::engine::journal::Scope;
use crate::engine::victim_unit::{NeededPages, VictimUnit};
use crate::format::row::Member;
use crate::lock::lock;
use crate::mutants::{self, Mutant};

impl Core {
    /// True if pages are to be relocated, or what relocation has gained is to be committed.
    pub(super) fn is_relocation_due(&self) -> bool {
        self.ftl.needs_room() || self.ftl.owes_relocation() || !self.ftl.held_erased().is_empty()
    }
}

impl Drive {
    /// Relocates what host pages owe, and while there is too little room, and makes usable what
    /// that has gained.
    pub(super) fn relocate(&self) -> Result<(), DeviceError> {
        loop {
            let is_short = self.core()?.ftl.needs_room();
            let unit = if is_short { Some(lock(&self.victim)) } else { self.victim_if_free() };
            let Some(mut unit) = unit else { return Ok(()) };
            self.relocate_owed(&mut unit)?;
            drop(unit);
            let (is_gained, is_short) = {
                let core = self.core()?;
                (!core.ftl.held_erased().is_empty(), core.ftl.needs_room())
            };
            if is_gained && mutants::is(Mutant::ReleasedEarly) {
                let mut core = self.core_mut()?;
                let held = core.ftl.held_erased().len();
                core.ftl.release_erased(held);
            } else if is_gained {
                self.commit(Scope::Relocation)?;
            }
            if !is_short {
                return Ok(());
            }
        }
    }

    /// The unit that relocation moves pages from, unless somebody is at it.
    fn victim_if_free(&self) -> Option<MutexGuard<'_, VictimUnit>> {
        match self.victim.try_lock() {
            Ok(unit) => Some(unit),
            Err(TryLockError::Poisoned(unit)) => Some(unit.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn relocate_owed(&self, unit: &mut VictimUnit) -> Result<(), DeviceError> {
        loop {
            match self.act(|core| core.relocate(unit))? {
                Relocated::Needs(wanted) => unit.read(&self.store, wanted),
                Relocated::Nothing if self.core()?.ftl.needs_room() => {
                    let reason = "relocation found nothing to gain".to_owned();
                    return Err(DeviceError::Poisoned { reason });
                }
                Relocated::Enough | Relocated::Nothing => return Ok(()),
            }
        }
    }

    /// Moves a page to another row if `is_wanted` says so of where it lies; says whether it did. A
    /// page that cannot be read is moved as a lost one, unless it is to be left where it is.
    pub(super) fn move_page(
        &self,
        lpn: Lpn,
        leaves_lost: bool,
        is_wanted: impl Fn(Located) -> bool,
    ) -> Result<bool, DeviceError> {
        let mut unit = VictimUnit::default();
        loop {
            self.check_sound()?;
            let located = self.core()?.locate(lpn);
            if located == Located::Nowhere || !is_wanted(located) {
                return Ok(false);
            }
            if let Located::Stored(stored) = located {
                let place = self.store.layout.place(stored.ppn);
                let of = Member { row: place.row, position: place.unit, life: stored.life };
                unit.read(&self.store, NeededPages { of, slots: vec![place.slot] });
                let is_right = unit.holds(of, place.slot, lpn);
                if !is_right && leaves_lost && self.core()?.locate(lpn) == located {
                    return Ok(false);
                }
            }
            let is_moved = self.act(|core| {
                let is_possible = core.locate(lpn) == located && !core.ftl.needs_room();
                if is_possible {
                    core.relocate_page(&unit, lpn);
                }
                is_possible
            })?;
            if self.core()?.is_relocation_due() {
                self.relocate()?;
            }
            if is_moved {
                return Ok(true);
            }
        }
    }
}
