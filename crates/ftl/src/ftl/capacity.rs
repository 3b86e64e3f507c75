//! Purge of all data, and change of the capacity that the host sees, over the same media.

use std::collections::BTreeSet;

use crate::ftl::relocation::Relocation;
use crate::stream::Streams;
use crate::{Config, ConfigError, Debt, Ftl, Lpn, SuperblockId, SuperblockState};

impl<C> Ftl<C> {
    /// Erases everything: the state before the first write, wear apart. Where the owner releases
    /// what is erased, that is all that was written.
    pub fn purge(&mut self) {
        self.mapping.clear();
        self.extents.clear();
        self.forget_losses();
        for id in self.superblocks.ids() {
            if let Some(lost) = &mut self.lost {
                lost.erased(id, self.banks.divisor());
            }
        }
        let state = |id: &SuperblockId| self.superblocks.state(*id);
        let is_free =
            |id: &SuperblockId| matches!(state(id), SuperblockState::Free | SuperblockState::Bad);
        if let Some(held) = &mut self.held {
            held.extend(self.superblocks.ids().filter(|id| !is_free(id)));
        }
        self.counters.superblocks_erased += u64::from(self.superblocks.purge());
        self.streams = Streams::new(&self.config);
        self.relocation = Relocation::default();
        self.forget_slc();
        self.list_free();
        let held: BTreeSet<SuperblockId> = self.held.iter().flatten().copied().collect();
        for free in &mut self.free_by_bank {
            free.retain(|id| !held.contains(id));
        }
        let free: usize = self.free_by_bank.iter().map(Vec::len).sum();
        self.room = free as u64 * u64::from(self.config.granules_per_superblock());
        let free = self.superblocks.free();
        let condemned = u32::try_from(self.condemned.len()).expect("no more than there are");
        let expected = self.superblocks_good() + condemned;
        assert_eq!(free, expected, "a purge leaves superblocks free, or bad");
        self.watch_room();
    }
}

impl Ftl<Debt> {
    /// Changes how many pages the host sees, and how many of them may be stored. Pages beyond the
    /// new end are forgotten first.
    ///
    /// # Errors
    /// Fails if the format cannot work, or more is stored than may be; then nothing has changed.
    pub fn resize(&mut self, pages_logical: u32, pages_stored_max: u32) -> Result<(), ConfigError> {
        let config = Config { pages_logical, pages_stored_max, ..self.config };
        config.check()?;
        config.check_spare(self.superblocks_good(), config.superblocks_reserved(), 0)?;
        let pages = u64::from(pages_stored_max) * u64::from(config.granules_per_page());
        let beyond = || (pages_logical..self.config.pages_logical).map(Lpn);
        let is_stored = |lpn: &Lpn| self.mapping.ppn(*lpn).is_some();
        let forgotten = beyond().filter(is_stored).map(|lpn| u64::from(self.extents.size(lpn)));
        let stored = self.extents.stored() - forgotten.sum::<u64>();
        if stored > pages {
            let limit = format!("at most {pages}, which is what may be stored");
            return Err(ConfigError::OutOfRange {
                name: "granules stored",
                value: stored.to_string(),
                limit,
            });
        }
        (pages_logical..self.config.pages_logical).map(Lpn).for_each(|lpn| self.trim(lpn));
        self.mapping.resize(pages_logical);
        self.by_handle.resize(pages_logical);
        self.extents.resize(&config);
        let (stored, most) = (self.extents.stored(), self.extents.stored_max());
        assert!(stored <= most, "what stays stored is no more than may be");
        self.config = config;
        Ok(())
    }
}
