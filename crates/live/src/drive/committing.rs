//! Commits: what a flush does.
//!
//! Dies that were written are synced, and what rows hold that are not complete goes to the journal,
//! so that a flush after each page costs one short write and one sync for each copy of the journal.
//! Many that flush at once share one commit.

use super::{Drive, lock};
use crate::DeviceError;
use crate::core::Core;
use crate::dies::{DieSet, medium_error};
use crate::journal::{Journal, Scope};

impl Drive {
    /// Makes everything of `scope` durable that happened before.
    pub(crate) fn commit(&self, scope: Scope) -> Result<(), DeviceError> {
        let before = self.core()?.order;
        loop {
            self.check_sound()?;
            let mut journal = self.journal()?;
            if scope == Scope::Host && journal.committed >= before {
                return Ok(());
            }
            if self.commit_to(&mut journal, scope, |_| ())?.is_some() {
                let is_due = journal.used() > journal.size / 2;
                drop(journal);
                // Another thread may be at it already.
                return if is_due && self.checkpoints.try_lock().is_ok() {
                    self.checkpoint()
                } else {
                    Ok(())
                };
            }
            drop(journal);
            self.checkpoint()?;
        }
    }

    /// Does so with the journal at hand, if it has room; `see` is shown the state that is made
    /// durable.
    pub(super) fn commit_to(
        &self,
        journal: &mut Journal,
        scope: Scope,
        see: impl FnOnce(&mut Core),
    ) -> Result<Option<()>, DeviceError> {
        self.check_sound()?;
        let (order, dirty, erased, is_empty) = {
            let mut core = self.core_mut()?;
            // Checkpoints themselves may use what the rest leaves.
            let reserve = if scope == Scope::Again { 1 } else { 3 };
            if journal.used() + reserve * self.bytes_at_most(&core) > journal.size {
                return Ok(None);
            }
            let is_empty = !core.is_dirty() && scope != Scope::Again;
            journal.begin();
            journal.collect(&mut core, &self.store.layout, scope);
            see(&mut core);
            let erased = core.ftl.held_erased();
            (core.order, std::mem::take(&mut core.dirty), erased, is_empty)
        };
        if !is_empty {
            self.noting(self.make_durable(journal, dirty))?;
        }
        journal.mark = order;
        journal.committed = order;
        if scope != Scope::Host {
            self.core_mut()?.ftl.release_erased(erased);
        }
        Ok(Some(()))
    }

    /// Bytes that a batch takes of the ring at most.
    fn bytes_at_most(&self, core: &Core) -> u64 {
        let row_bytes =
            self.store.layout.unit_bytes as u64 * u64::from(self.store.layout.shape.dies);
        2 * (row_bytes * (core.open.len() as u64 + 1) + core.trims.len() as u64 * 32 + 4096)
    }

    fn make_durable(&self, journal: &mut Journal, dirty: DieSet) -> Result<(), DeviceError> {
        let dies = &self.store.dies;
        let copies = self.copies();
        journal.write(dies, &copies)?;
        let mut pending = dirty;
        for die in &copies {
            pending.add(*die);
        }
        for die in dies.healthy().filter(|die| pending.has(*die)) {
            match dies.sync(die) {
                Ok(()) => {}
                Err(_) if dies.can_lose(die) => dies.lose(die),
                Err(error) => return Err(medium_error(format!("syncing die {die}"))(error)),
            }
        }
        self.keep_header()
    }

    /// Dies that hold the journal and the checkpoints.
    pub(super) fn copies(&self) -> Vec<usize> {
        let copies = if self.store.layout.shape.is_protected { 2 } else { 1 };
        self.store.dies.healthy().take(copies).collect()
    }

    /// Says on the remaining dies which ones have been lost, if that has changed.
    pub(super) fn keep_header(&self) -> Result<(), DeviceError> {
        let dies = &self.store.dies;
        let mut header = lock(&self.header);
        while header.lost != dies.lost() {
            if let Err((die, error)) = header.write(dies) {
                if !dies.can_lose(die) {
                    return Err(medium_error(format!("writing the header of die {die}"))(error));
                }
                dies.lose(die);
            }
        }
        Ok(())
    }
}
