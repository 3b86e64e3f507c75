//! Relocation: carried out by the threads that write.
//!
//! ```text
//!  one thread at a time, which holds the victim:    any number of threads:
//!  core: which pages are next? ─► read them,   ─► program the units that are full
//!        verified ─► core: move them           ─► release superblocks that are empty
//! ```
//!
//! A thread that writes while another holds the victim goes on, unless much is owed or room is
//! short. Programs are carried out without the victim, so that another thread can read and move the
//! next pages meanwhile.

use std::sync::{MutexGuard, TryLockError};

use device::DeviceError;
use ftl::Lpn;

use super::Drive;
use super::execution::Programs;
use crate::engine::core::{ERASED_MAX, PageLocation, RelocationStep};
use crate::engine::log::journal::Scope;
use crate::engine::store::victim_unit::{NeededPages, VictimUnit};
use crate::format::layout::PAGE_BYTES;
use crate::format::row::Member;
use crate::lock::lock;
use crate::mutants::{self, Mutant};

/// Batches of relocation that writers owe before they wait for the thread that holds the victim.
const BATCHES_MAX: u32 = 2;

/// Thread that holds the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// This one, which has relocated and let it go.
    This,
    Another,
}

impl Drive {
    /// Relocates what host pages owe, and while there is too little room, and makes usable what
    /// that has gained.
    pub(super) fn relocate(&self) -> Result<(), DeviceError> {
        loop {
            // Writers that owe much wait, or they use up room faster than it is gained.
            let waits = {
                let core = self.core()?;
                core.ftl.needs_room() || core.ftl.owes_batches(BATCHES_MAX)
            };
            if self.relocate_owed(waits)? == Holder::Another {
                return Ok(());
            }
            let (erased, releasable, is_short) = {
                let core = self.core()?;
                (core.ftl.held_erased().len(), core.releasable(), core.ftl.needs_room())
            };
            // The host completes rows at no cost to the journal, unless it waits for room itself.
            let wait_for_rows_below = if is_short { 1 } else { ERASED_MAX };
            if erased > 0 && mutants::is(Mutant::ReleasedEarly) {
                self.core_mut()?.release_erased(erased);
            } else if releasable > 0 {
                self.release_superblocks(is_short)?;
            } else if erased >= wait_for_rows_below {
                self.commit(Scope::Relocation)?;
            }
            if !is_short {
                return Ok(());
            }
        }
    }

    /// Relocates as long as anything is owed. If another thread holds the victim, waits for it or
    /// returns, as `waits` says.
    fn relocate_owed(&self, waits: bool) -> Result<Holder, DeviceError> {
        loop {
            let victim = if waits { Some(lock(&self.victim)) } else { self.victim_if_free() };
            let Some(mut unit) = victim else { return Ok(Holder::Another) };
            let (relocated, programs) = self.relocate_while_read(&mut unit)?;
            // Another thread may relocate while this one programs.
            drop(unit);
            self.carry_out(programs)?;
            match relocated {
                RelocationStep::Needs(_) => {}
                RelocationStep::Nothing if self.core()?.ftl.needs_room() => {
                    let reason = "relocation found nothing to gain".to_owned();
                    return Err(DeviceError::Poisoned { reason });
                }
                RelocationStep::Enough | RelocationStep::Nothing => return Ok(Holder::This),
            }
        }
    }

    /// Moves pages, reading more of them as they are needed, until units are full or nothing is
    /// owed any more.
    fn relocate_while_read(
        &self,
        unit: &mut VictimUnit,
    ) -> Result<(RelocationStep, Programs<'_>), DeviceError> {
        loop {
            match self.decide(|core| core.relocate(unit))? {
                (RelocationStep::Needs(wanted), programs) if programs.is_empty() => {
                    drop(programs);
                    unit.read(&self.store, wanted)?;
                }
                decided => return Ok(decided),
            }
        }
    }

    /// The unit that relocation moves pages from; none while another thread holds it.
    fn victim_if_free(&self) -> Option<MutexGuard<'_, VictimUnit>> {
        match self.victim.try_lock() {
            Ok(unit) => Some(unit),
            Err(TryLockError::Poisoned(unit)) => Some(unit.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Moves a page to another row if `is_wanted` says so of where it lies; says whether it did. A
    /// page that cannot be read is moved as a lost one, unless it is to be left where it is.
    pub(super) fn move_page(
        &self,
        lpn: Lpn,
        leaves_lost: bool,
        is_wanted: impl Fn(PageLocation) -> bool,
    ) -> Result<bool, DeviceError> {
        let mut unit = VictimUnit::default();
        loop {
            self.check_sound()?;
            let located = self.core()?.locate(lpn);
            if located == PageLocation::Nowhere || !is_wanted(located) {
                return Ok(false);
            }
            self.headroom.take(&self.store, PAGE_BYTES as u64)?;
            if let PageLocation::Stored(stored) = located {
                let place = self.store.layout.place(stored.ppn);
                let of = Member { row: place.row, position: place.unit, life: stored.life };
                unit.read(&self.store, NeededPages { of, slots: vec![place.slot] })?;
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
