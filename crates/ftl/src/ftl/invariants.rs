//! Invariants of a translation layer between any two commands, checked by counting its tables anew.
//!
//! Commands keep counts instead of counting, and each assertion on their way sees one of them. This
//! looks at all of them at once, which takes a walk over the map: for simulations and tests.

use std::ops::Add;

use crate::ftl::relocation::Thresholds;
use crate::{Counters, Ftl, HandleCounters, Lpn, SuperblockId, SuperblockState};

impl<C> Ftl<C> {
    /// Asserts that a superblock can be filled from unit number `unit` on.
    pub(crate) fn assert_open(&self, superblock: SuperblockId, unit: u32) {
        let state = self.superblocks.state(superblock);
        assert_eq!(state, SuperblockState::Open, "a superblock that is filled is open");
        assert!(unit < self.units_per_superblock, "a unit that is begun lies in its superblock");
    }

    /// Asserts that a superblock which has been listed as free can be opened.
    pub(crate) fn assert_gained(&self, superblock: SuperblockId) {
        let state = self.superblocks.state(superblock);
        assert_eq!(state, SuperblockState::Free, "a superblock that is gained is free");
        let holds = self.superblocks.granules_valid(superblock);
        assert_eq!(holds, 0, "a superblock that is gained holds nothing");
        self.assert_room();
    }

    /// Asserts that there is not more room than the media have.
    pub(crate) fn assert_room(&self) {
        let superblocks = u64::from(self.config.geometry.superblocks());
        let granules = superblocks * u64::from(self.config.granules_per_superblock());
        assert!(self.room <= granules, "room is at most what all superblocks have");
    }

    /// Asserts what holds between any two commands, whatever the host and the media have done. It
    /// reads the whole map.
    ///
    /// # Panics
    /// When it does not hold, which no input can bring about.
    pub fn check_invariants(&self) {
        self.check_map();
        self.check_free();
        self.check_condemned();
        self.check_room();
        self.check_relocation();
        self.check_counters();
        self.check_placement();
        self.check_lost_dies();
    }

    /// Pages of the map, bits of validity and counts of valid granules tell the same.
    fn check_map(&self) {
        let mut valid = vec![0_u64; self.config.geometry.superblocks() as usize];
        let (mut pages, mut granules_all) = (0_u64, 0_u64);
        for lpn in (0..self.config.pages_logical).map(Lpn) {
            let Some(ppn) = self.mapping.ppn(lpn) else { continue };
            assert!(self.mapping.is_valid(ppn), "the place {ppn:?} of {lpn:?} is valid");
            assert!(self.mapping.is_at(lpn, ppn), "{lpn:?} is found at its place {ppn:?}");
            let back = self.mapping.lpn(ppn);
            assert!(back.is_none_or(|back| back == lpn), "the way back from {lpn:?} is {back:?}");
            let superblock = self.superblock_of(ppn);
            let state = self.superblocks.state(superblock);
            assert!(
                !matches!(state, SuperblockState::Free | SuperblockState::Bad),
                "{lpn:?} lies in {superblock:?}, which is {state:?} and holds nothing"
            );
            let granules = self.extents.size(lpn);
            assert!(self.extents.is_size(granules), "{lpn:?} has {granules} granules");
            valid[superblock.0 as usize] += u64::from(granules);
            pages += 1;
            granules_all += u64::from(granules);
        }
        assert_eq!(pages, self.mapping.count_valid(), "each valid place is that of one page");
        assert_eq!(pages, self.extents.pages(), "stored pages are those of the map");
        assert_eq!(granules_all, self.extents.stored(), "what is stored is the sum of its extents");
        for (id, counted) in self.superblocks.ids().zip(valid) {
            let kept = u64::from(self.superblocks.granules_valid(id));
            assert_eq!(kept, counted, "{id:?} counts the extents that lie in it");
            let most = u64::from(self.config.granules_per_superblock());
            let most = match self.config.slc_cache {
                Some(cache) if self.superblocks.is_slc(id) => most / u64::from(cache.bits_per_cell),
                _ => most,
            };
            assert!(counted <= most, "{id:?} holds {counted} granules, it has {most}");
        }
    }

    /// Free superblocks are listed once, in their bank, or wait to be released.
    fn check_free(&self) {
        let mut listed = vec![false; self.config.geometry.superblocks() as usize];
        let mut list = |id: SuperblockId| {
            let state = self.superblocks.state(id);
            assert_eq!(state, SuperblockState::Free, "{id:?} is listed as free");
            assert!(!std::mem::replace(&mut listed[id.0 as usize], true), "{id:?} is listed once");
            assert_eq!(self.superblocks.granules_valid(id), 0, "{id:?} is free and holds nothing");
        };
        for (bank, free) in (0..).zip(&self.free_by_bank) {
            for id in free {
                assert_eq!(self.bank_of(*id), bank, "{id:?} is listed in its bank");
                list(*id);
            }
        }
        self.held.iter().flatten().copied().for_each(list);
        let count = listed.iter().filter(|is_listed| **is_listed).count();
        assert_eq!(count as u64, u64::from(self.superblocks.free()), "every free one is listed");
    }

    /// A condemned superblock is neither open nor to be opened, and enough are not condemned.
    fn check_condemned(&self) {
        for id in self.condemned.iter().copied() {
            let state = self.superblocks.state(id);
            let is_open = matches!(state, SuperblockState::Open | SuperblockState::Bad);
            assert!(!is_open, "{id:?} is condemned and {state:?}");
            let is_held = self.held.iter().flatten().any(|it| *it == id);
            let is_listed = state == SuperblockState::Free && !is_held;
            assert!(!is_listed, "{id:?} is condemned and waits to be released");
        }
    }

    /// Room is what listed superblocks have, and what open ones have left.
    fn check_room(&self) {
        let free: usize = self.free_by_bank.iter().map(Vec::len).sum();
        let mut room = free as u64 * u64::from(self.config.granules_per_superblock());
        let mut open = 0_u32;
        for frontier in self.streams.iter().flat_map(|stream| &stream.frontiers).flatten() {
            let id = frontier.superblock;
            let state = self.superblocks.state(id);
            assert_eq!(state, SuperblockState::Open, "{id:?} is being filled");
            assert!(frontier.unit < self.units_per_superblock, "{id:?} is filled within its end");
            assert!(
                frontier.granules_left <= frontier.granules_per_unit,
                "no more of a unit of {id:?} is left than it has"
            );
            let whole = self.units_per_superblock - frontier.unit - 1;
            let granules = self.granules_per_unit_of(id);
            assert_eq!(frontier.granules_per_unit, granules, "{id:?} is filled in its mode");
            room += u64::from(whole) * u64::from(granules);
            room += u64::from(frontier.granules_left);
            open += 1;
        }
        for stream in self.streams.iter() {
            let is_turn = stream.bank < stream.banks_joined;
            assert!(is_turn, "the turn is that of a bank which has joined");
            let banks = self.config.geometry.banks;
            assert!(stream.banks_joined <= banks, "no more banks have joined than there are");
        }
        assert_eq!(
            self.room, room,
            "room is that of free superblocks and of what open ones have left"
        );
        let is_open = |id: &SuperblockId| self.superblocks.state(*id) == SuperblockState::Open;
        let counted = self.superblocks.ids().filter(is_open).count();
        let in_slc_mode = self.superblocks.ids().filter(|id| self.superblocks.is_slc(*id)).count();
        assert_eq!(in_slc_mode as u64, u64::from(self.superblocks.slc()), "the cache is counted");
        assert_eq!(counted as u64, u64::from(open), "every open superblock is being filled");
    }

    /// The one victim is that of relocation, and host writes wait where room is short.
    fn check_relocation(&self) {
        let is_victim = |id: &SuperblockId| self.superblocks.state(*id) == SuperblockState::Victim;
        let victims: Vec<SuperblockId> = self.superblocks.ids().filter(is_victim).collect();
        let reclaimed: Vec<SuperblockId> = self.relocation.superblock().into_iter().collect();
        assert_eq!(victims, reclaimed, "a victim is what relocation reclaims");
        let Thresholds { stop, resume, .. } = self.thresholds;
        assert!(self.needs_room() || self.room > stop, "host writes wait where room is short");
        assert!(!self.needs_room() || self.room < resume, "host writes go on where there is room");
        let (free, good) = (self.superblocks.free(), self.superblocks_good());
        let good = good as usize + self.condemned.len();
        assert!(free as usize <= good, "{free} superblocks are free, {good} can be");
    }

    /// Each page is counted for the handle that it was written through, and lies where that
    /// handle's isolation says.
    fn check_placement(&self) {
        let by_handle = self.by_handle.counters();
        if by_handle.is_empty() {
            return;
        }
        let sum = by_handle.iter().copied().fold(HandleCounters::default(), Add::add);
        let Counters { pages_host, pages_relocation, pages_wear, .. } = self.counters;
        let counted = HandleCounters { pages_host, pages_relocation, pages_wear };
        assert_eq!(sum, counted, "pages of all handles are those that were programmed");
        for lpn in (0..self.config.pages_logical).map(Lpn) {
            let Some(ppn) = self.mapping.ppn(lpn) else { continue };
            let (superblock, handle) = (self.superblock_of(ppn), self.by_handle.of(lpn));
            let owner = self.superblocks.owner(superblock);
            let isolated = self.config.handles.owner(handle);
            assert_eq!(owner, isolated, "{lpn:?} of handle {handle} lies in {superblock:?}");
        }
    }

    /// Counts that can only grow together.
    fn check_counters(&self) {
        let counters = &self.counters;
        let by_cause = [
            ("host", counters.host_saved_bytes, counters.pages_host),
            ("relocation", counters.relocation_saved_bytes, counters.pages_relocation),
            ("wear", counters.wear_saved_bytes, counters.pages_wear),
        ];
        for (cause, saved_bytes, pages) in by_cause {
            let bytes = pages * self.config.geometry.page_bytes();
            assert!(saved_bytes <= bytes, "{cause}: no more is saved than {bytes} bytes written");
        }
        let erased = self.superblocks.ids().map(|id| u64::from(self.superblocks.erase_count(id)));
        let erased: u64 = erased.sum();
        assert!(counters.superblocks_erased <= erased, "each erase wears a superblock");
        let stored_max = self.extents.pages();
        let logical = u64::from(self.config.pages_logical);
        assert!(stored_max <= logical, "{stored_max} pages are stored of {logical}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Geometry, NoMedia, ReclaimUnitHandles, VictimPolicy, Watermarks};

    /// A small drive to which each page was written once.
    fn written() -> Ftl {
        let geometry = Geometry {
            banks: 1,
            dies_per_bank: 2,
            planes_per_die: 1,
            erase_blocks_per_plane: 32,
            pages_per_erase_block: 4,
            page_kib: 4,
            indirection_kib: 4,
            stripe_dies: 0,
        };
        let config = Config {
            geometry,
            pages_logical: 100,
            pages_stored_max: 100,
            extents_per_page: 1,
            victim: VictimPolicy::Greedy,
            watermarks: Watermarks { low: 4, high: 6, burst: 1.0, price_max: 1e9, batch_pages: 1 },
            wear_spread_max: 0,
            handles: ReclaimUnitHandles::ONE,
            slc_cache: None,
            seed: 1,
        };
        let mut ftl = Ftl::format(&config).unwrap();
        for lpn in (0..100).map(Lpn) {
            ftl.write(0, lpn, &mut NoMedia);
        }
        ftl.check_invariants();
        ftl
    }

    #[test]
    #[should_panic(expected = "room is that of free superblocks")]
    fn room_that_is_miscounted_is_noticed() {
        let mut ftl = written();
        ftl.room += 1;
        ftl.check_invariants();
    }

    #[test]
    #[should_panic(expected = "counts the extents that lie in it")]
    fn a_page_that_is_counted_twice_is_noticed() {
        let mut ftl = written();
        ftl.superblocks.validate(SuperblockId(0), 1);
        ftl.check_invariants();
    }

    #[test]
    #[should_panic(expected = "each valid place is that of one page")]
    fn a_place_that_stays_valid_without_its_page_is_noticed() {
        let mut ftl = written();
        ftl.mapping.entries_mut()[7] = 0;
        ftl.check_invariants();
    }

    #[test]
    #[should_panic(expected = "every free one is listed")]
    fn a_free_superblock_that_no_bank_lists_is_noticed() {
        let mut ftl = written();
        let forgotten = ftl.free_by_bank[0].pop();
        assert!(forgotten.is_some(), "one is free");
        ftl.check_invariants();
    }
}
