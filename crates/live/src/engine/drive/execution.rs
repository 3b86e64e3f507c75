//! Decide, then execute: the core decides under its lock, dies are programmed without it.
//!
//! ```text
//!  lock the core ─► decide ─► unlock ─► program dies ─► lock the core ─► completed
//! ```
//!
//! Commits, and whatever must not meet a program under way, wait until all have been completed
//! ([`Drive::still`]). So a batch of the journal never sees a row of which some units are full and
//! on no die, and a superblock is not written again while an earlier program of it is under way.

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};

use blockio::Rng;
use device::DeviceError;

use super::Drive;
use crate::engine::core::Core;
use crate::engine::core::program::Program;
use crate::lock::lock;

/// Programs that are deferred at most.
const DEFERRED_MAX: u64 = 12;

/// The core while no program is under way.
pub(crate) struct Still<'a> {
    // Given back before programs may be decided again.
    core: RwLockWriteGuard<'a, Core>,
    _programming: RwLockWriteGuard<'a, ()>,
}

impl Deref for Still<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Still<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

/// Programs that were decided and are to be carried out. As long as they exist the core is not
/// [`Still`].
#[must_use = "the core waits for the completion of programs"]
pub(super) struct Programs<'a> {
    programs: Vec<Program>,
    _programming: RwLockReadGuard<'a, ()>,
}

impl Programs<'_> {
    pub(super) const fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }
}

/// Programs that wait, for a simulation of several threads by one: they are carried out late and in
/// any order.
#[derive(Debug)]
pub(super) struct DeferredPrograms {
    rng: Rng,
    programs: Vec<Program>,
}

impl DeferredPrograms {
    /// Takes one of the programs by chance, if more than `most` wait.
    fn take(&mut self, most: u64) -> Option<Program> {
        let count = self.programs.len() as u64;
        let index = (count > most).then(|| self.rng.below(count))?;
        Some(self.programs.swap_remove(usize::try_from(index).expect("an index")))
    }
}

impl Drive {
    /// Has the core decide something; carries out without its lock what follows for the dies, and
    /// tells it.
    ///
    /// # Errors
    /// Of a die that the drive cannot do without; nothing is promised from then on.
    pub(crate) fn act<T>(&self, decide: impl FnOnce(&mut Core) -> T) -> Result<T, DeviceError> {
        let (decided, programs) = self.decide(decide)?;
        self.carry_out(programs)?;
        Ok(decided)
    }

    /// Has the core decide something; returns the programs that follow, which the caller carries
    /// out before it decides anything else.
    pub(super) fn decide<T>(
        &self,
        decide: impl FnOnce(&mut Core) -> T,
    ) -> Result<(T, Programs<'_>), DeviceError> {
        let programming = self.programming.read().unwrap_or_else(PoisonError::into_inner);
        let mut core = self.core_mut()?;
        let decided = decide(&mut core);
        Ok((decided, Programs { programs: core.take_programs(), _programming: programming }))
    }

    /// Carries out programs that were decided, and tells the core.
    ///
    /// # Errors
    /// As [`Drive::act`].
    pub(super) fn carry_out(&self, decided: Programs<'_>) -> Result<(), DeviceError> {
        if decided.is_empty() {
            return Ok(());
        }
        self.noting(self.complete_or_defer(decided.programs))
    }

    /// The core once all programs that were decided have been completed; none is decided as long as
    /// it is held.
    ///
    /// # Errors
    /// As [`Drive::act`].
    pub(crate) fn still(&self) -> Result<Still<'_>, DeviceError> {
        let programming = self.programming.write().unwrap_or_else(PoisonError::into_inner);
        self.noting(self.carry_out_deferred(0))?;
        let core = self.core_mut()?;
        if core.is_programming() {
            // A program failed, which another client noted before it gave up the lock above.
            self.check_sound()?;
        }
        assert!(!core.is_programming(), "the thread that decides a program completes it");
        Ok(Still { core, _programming: programming })
    }

    /// From now on defers programs, and carries them out in any order.
    pub(crate) fn defer_programs(&self, rng: Rng) {
        *lock(&self.deferred) = Some(DeferredPrograms { rng, programs: Vec::new() });
    }

    fn complete_or_defer(&self, mut programs: Vec<Program>) -> Result<(), DeviceError> {
        let most = lock(&self.deferred).as_mut().map(|deferred| {
            deferred.programs.append(&mut programs);
            deferred.rng.below(DEFERRED_MAX)
        });
        most.map_or_else(|| self.complete(programs), |most| self.carry_out_deferred(most))
    }

    /// Carries out deferred programs until no more than so many are left.
    fn carry_out_deferred(&self, most: u64) -> Result<(), DeviceError> {
        loop {
            let next = lock(&self.deferred).as_mut().and_then(|it| it.take(most));
            let Some(program) = next else { return Ok(()) };
            self.complete(vec![program])?;
        }
    }

    /// Carries out programs, and tells the core.
    fn complete(&self, programs: Vec<Program>) -> Result<(), DeviceError> {
        let mut done = Vec::with_capacity(programs.len());
        for program in programs {
            done.push((program.of, self.store.dies.program(&program)?));
        }
        let mut core = self.core_mut()?;
        for (of, written) in done {
            core.programmed(of, written);
        }
        Ok(())
    }
}
