//! Superblocks: the unit of allocation, garbage collection and erase.
//!
//! A superblock is one erase block from every plane of every die of its bank, written and erased
//! together. Its life is a cycle, and every transition is a method that asserts the state it starts
//! from:
//!
//! ```text
//!         open           close          choose               erase
//!  Free ───────► Open ───────► Closed ───────────► Victim ───────► Free
//! ```
//!
//! Invariants:
//! - `granules_valid` is at most what the layout holds, and counts exactly the granules of the
//!   extents that the mapping holds; where nothing is compressed, a granule is a page.
//! - Only an `Open` superblock accepts pages; only a `Victim` without valid pages is erased.
//!
//! SPDK calls this a *band*.

/// Index of a superblock on the drive, dense from zero; its bank is `id % banks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SuperblockId(pub u32);

/// State of a superblock in its program/erase cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuperblockState {
    /// Erased, holding nothing.
    Free,
    /// Accepting pages.
    Open,
    /// Full; a candidate for garbage collection.
    Closed,
    /// Chosen by garbage collection; its valid pages are being relocated.
    Victim,
    /// Retired, unless its owner reinstates it.
    Bad,
}

/// All superblocks of a drive, one vector a property so that scans are short.
#[derive(Clone, Debug)]
pub(crate) struct Superblocks {
    state: Vec<SuperblockState>,
    granules_valid: Vec<u32>,
    erase_count: Vec<u32>,
    closed_at: Vec<u64>,
    /// Handle whose pages alone lie in it; 0: those of all that share superblocks.
    owner: Vec<u8>,
    /// True while one bit a cell is written in it.
    is_slc: Vec<bool>,
    slc: u32,
    closes: u64,
    free: u32,
}

impl Superblocks {
    /// `count` factory-fresh superblocks.
    pub(crate) fn new(count: u32) -> Self {
        let count_index = count as usize;
        Self {
            state: vec![SuperblockState::Free; count_index],
            granules_valid: vec![0; count_index],
            erase_count: vec![0; count_index],
            closed_at: vec![0; count_index],
            owner: vec![0; count_index],
            is_slc: vec![false; count_index],
            slc: 0,
            closes: 0,
            free: count,
        }
    }

    /// Superblocks that are free.
    #[inline]
    pub(crate) const fn free(&self) -> u32 {
        self.free
    }

    /// Every superblock, in order.
    #[expect(clippy::cast_possible_truncation, reason = "made from a u32 count")]
    pub(crate) fn ids(&self) -> impl Iterator<Item = SuperblockId> + use<> {
        (0..self.state.len() as u32).map(SuperblockId)
    }

    pub(crate) fn state(&self, id: SuperblockId) -> SuperblockState {
        self.state[id.0 as usize]
    }

    pub(crate) fn granules_valid(&self, id: SuperblockId) -> u32 {
        self.granules_valid[id.0 as usize]
    }

    /// Completed program/erase cycles.
    pub(crate) fn erase_count(&self, id: SuperblockId) -> u32 {
        self.erase_count[id.0 as usize]
    }

    /// Sequence number of its close, counted since the format: larger is younger.
    pub(crate) fn closed_at(&self, id: SuperblockId) -> u64 {
        self.closed_at[id.0 as usize]
    }

    /// Handle whose pages alone lie in it; 0: those of all that share superblocks.
    pub(crate) fn owner(&self, id: SuperblockId) -> u8 {
        self.owner[id.0 as usize]
    }

    /// Gives a superblock that was opened to the handle whose pages it takes.
    pub(crate) fn set_owner(&mut self, id: SuperblockId, owner: u8) {
        self.owner[id.0 as usize] = owner;
    }

    /// Superblocks in SLC mode.
    pub(crate) const fn slc(&self) -> u32 {
        self.slc
    }

    /// True if one is in SLC mode.
    #[inline]
    pub(crate) fn is_slc(&self, id: SuperblockId) -> bool {
        self.is_slc[id.0 as usize]
    }

    /// Puts one that was opened into SLC mode.
    pub(crate) fn set_slc(&mut self, id: SuperblockId) {
        assert_eq!(self.state(id), SuperblockState::Open, "SLC mode begins with {id:?}");
        assert!(!std::mem::replace(&mut self.is_slc[id.0 as usize], true), "{id:?} is not yet");
        self.slc += 1;
    }

    /// Closes since the format.
    pub(crate) const fn closes(&self) -> u64 {
        self.closes
    }

    /// Opens a free superblock.
    pub(crate) fn open(&mut self, id: SuperblockId) {
        self.change(id, SuperblockState::Free, SuperblockState::Open);
        self.free -= 1;
    }

    /// Closes an open superblock.
    pub(crate) fn close(&mut self, id: SuperblockId) {
        self.change(id, SuperblockState::Open, SuperblockState::Closed);
        self.closes += 1;
        self.closed_at[id.0 as usize] = self.closes;
    }

    /// Marks a closed superblock as the garbage collector's choice.
    pub(crate) fn choose(&mut self, id: SuperblockId) {
        self.change(id, SuperblockState::Closed, SuperblockState::Victim);
    }

    /// Erases a victim. Its valid pages must have been relocated first.
    pub(crate) fn erase(&mut self, id: SuperblockId) {
        assert_eq!(self.granules_valid(id), 0, "{id:?} still holds valid pages");
        self.change(id, SuperblockState::Victim, SuperblockState::Free);
        let erase_count = &mut self.erase_count[id.0 as usize];
        *erase_count = erase_count.saturating_add(1);
        self.free += 1;
        self.slc -= u32::from(std::mem::take(&mut self.is_slc[id.0 as usize]));
        assert!(self.free as usize <= self.state.len(), "no more are free than there are");
    }

    /// Retires a free superblock.
    pub(crate) fn retire(&mut self, id: SuperblockId) {
        assert_eq!(self.granules_valid(id), 0, "what is retired holds nothing");
        self.change(id, SuperblockState::Free, SuperblockState::Bad);
        self.free -= 1;
    }

    /// Has a retired superblock be free again.
    pub(crate) fn reinstate(&mut self, id: SuperblockId) {
        assert_eq!(self.granules_valid(id), 0, "what was retired holds nothing");
        self.change(id, SuperblockState::Bad, SuperblockState::Free);
        self.free += 1;
    }

    /// Returns every superblock to `Free`, erasing those that were not; retired ones stay so.
    pub(crate) fn purge(&mut self) -> u32 {
        let mut erased = 0;
        for index in 0..self.state.len() {
            if !matches!(self.state[index], SuperblockState::Free | SuperblockState::Bad) {
                self.state[index] = SuperblockState::Free;
                self.erase_count[index] = self.erase_count[index].saturating_add(1);
                self.free += 1;
                erased += 1;
            }
        }
        self.granules_valid.fill(0);
        self.is_slc.fill(false);
        self.slc = 0;
        erased
    }

    /// Counts `granules` more that are valid.
    #[inline]
    pub(crate) fn validate(&mut self, id: SuperblockId, granules: u32) {
        self.granules_valid[id.0 as usize] += granules;
    }

    /// Counts `granules` less that are valid.
    #[inline]
    pub(crate) fn invalidate(&mut self, id: SuperblockId, granules: u32) {
        self.granules_valid[id.0 as usize] -= granules;
    }

    /// Counts nothing as valid any more.
    pub(crate) fn invalidate_all(&mut self) {
        self.granules_valid.fill(0);
    }

    /// Puts a superblock of factory-fresh media into the state that it was found in; closed ones in
    /// the order in which they were closed.
    pub(crate) fn restore(&mut self, id: SuperblockId, state: SuperblockState) {
        match state {
            SuperblockState::Free | SuperblockState::Victim => {}
            SuperblockState::Bad => self.retire(id),
            SuperblockState::Open => self.open(id),
            SuperblockState::Closed => {
                self.open(id);
                self.close(id);
            }
        }
    }

    /// Completed program/erase cycles, as they were found.
    pub(crate) fn set_erase_count(&mut self, id: SuperblockId, erase_count: u32) {
        self.erase_count[id.0 as usize] = erase_count;
    }

    fn change(&mut self, id: SuperblockId, from: SuperblockState, to: SuperblockState) {
        let state = &mut self.state[id.0 as usize];
        assert_eq!(*state, from, "{id:?} cannot become {to:?}");
        *state = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: SuperblockId = SuperblockId(0);

    #[test]
    #[should_panic(expected = "cannot become Free")]
    fn erase_rejects_a_free_superblock() {
        Superblocks::new(2).erase(FIRST);
    }

    #[test]
    #[should_panic(expected = "still holds valid pages")]
    fn erase_rejects_a_victim_with_valid_pages() {
        let mut superblocks = Superblocks::new(2);
        superblocks.open(FIRST);
        superblocks.validate(FIRST, 1);
        superblocks.close(FIRST);
        superblocks.choose(FIRST);
        superblocks.erase(FIRST);
    }

    #[test]
    fn a_cycle_costs_one_erase() {
        let mut superblocks = Superblocks::new(2);
        superblocks.open(FIRST);
        superblocks.close(FIRST);
        superblocks.choose(FIRST);
        assert_eq!(superblocks.free(), 1);
        superblocks.erase(FIRST);
        assert_eq!((superblocks.free(), superblocks.erase_count(FIRST)), (2, 1));
    }
}
