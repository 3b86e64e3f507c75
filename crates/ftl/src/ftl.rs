//! The state machine.
//!
//! Every host page goes to the open superblock of the host stream, which there is one of for each
//! reclaim unit handle ([`crate::ReclaimUnitHandles`]), every page that garbage
//! collection saves to that of the relocation stream, and what wear levelling moves to a third,
//! since it has proven cold. A stream keeps one superblock open in each
//! bank and fills them unit by unit in turn, so that all dies work.
//!
//! ```text
//!  write(lpn) ─► make room ─► place in host stream ─► keep_pace
//!                   │                                    │
//!                   └── relocate until enough is free    └── relocate in proportion
//! ```
//!
//! One core has two owners, each with an interface of its own:
//!
//! |                    | [`Pace`]: a model        | [`Debt`]: a drive of real bytes  |
//! |--------------------|--------------------------|----------------------------------|
//! | relocation         | with each write, if told | owed, and paid by the owner      |
//! | erased superblocks | opened at once           | once the owner releases them     |
//! | reverse map        | in memory                | asked of the media               |
//! | lost dies          | rebuilt here             | left out by rows of the owner    |
//!
//! Invariants:
//! - A page is mapped as soon as it has a place; until its unit is full, its data is in the owner's
//!   write buffer.
//! - `pages_host + pages_relocation + pages_wear` pages have been placed, no more and no fewer.
//! - Within a unit extents follow each other until the next one does not fit; none lies in two.
//! - A free superblock remains for relocation whenever one is needed: `low` is more than all open
//!   superblocks can have left.

mod capacity;
mod condemned;
mod degraded_rows;
mod invariants;
mod lost_dies;
mod p2l;
pub(crate) mod recovery;
pub(crate) mod relocation;
mod slc_cache;

use std::collections::BTreeSet;
use std::marker::PhantomData;

use blockio::{Bytes, Rng};

use self::degraded_rows::DegradedRows;
use self::lost_dies::LostDies;
pub use self::lost_dies::{DieLoss, Redundancy};
use self::relocation::{Relocation, Thresholds};
use self::slc_cache::SlcState;
use crate::extent::Extents;
use crate::mapping::{Map, Mapping};
use crate::p2l_cache::P2lCache;
use crate::placement::ByHandle;
use crate::stream::{ExtentMove, Frontier, Origin, Stream, Streams};
use crate::superblock::Superblocks;
use crate::table::Use;
use crate::{
    Cause, Config, ConfigError, Counters, DieId, Divider, HandleCounters, Layout, Lpn, Media,
    MediaOp, Ppn, SuperblockId, SuperblockState, Watermarks,
};

/// Mark of a translation layer that relocates in proportion as the host writes, and when it is told
/// to.
///
/// ```
/// let told = |ftl: &mut ftl::Ftl| ftl.relocate_unit(&mut ftl::NoMedia);
/// ```
///
/// It owes nothing:
///
/// ```compile_fail,E0599
/// let pays = |ftl: &mut ftl::Ftl| ftl.relocate_next(&mut ftl::NoMedia);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Pace {}

/// Mark of a translation layer whose owner relocates: what host pages owe is a debt.
///
/// What is erased may be opened once the owner has called [`Ftl::release_erased`]: its media keep
/// what was in a superblock until it is written anew, and it may have to go back to that. So it
/// relocates by itself where room is short ([`Ftl::needs_room`], [`Ftl::relocate_next`]), since
/// only it can make that room usable.
///
/// ```
/// let pays = |ftl: &mut ftl::Ftl<ftl::Debt>| ftl.relocate_next(&mut ftl::NoMedia);
/// ```
///
/// It is not told to collect:
///
/// ```compile_fail,E0599
/// let told = |ftl: &mut ftl::Ftl<ftl::Debt>| ftl.relocate_unit(&mut ftl::NoMedia);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Debt {}

/// A program unit: a NAND page on every plane of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The superblock that it is part of.
    pub superblock: SuperblockId,
    /// Its number there, data units alone counted.
    pub index: u32,
}

/// Use of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Flash that all stored pages take.
    pub stored: Bytes,
    /// Flash that stored pages may take at most.
    pub stored_max: Bytes,
    /// Pages that are stored.
    pub pages_stored: u64,
    /// Flash that can be written before something has to be erased: free superblocks, and what the
    /// open ones have left.
    pub room: Bytes,
    /// Superblocks that are free.
    pub superblocks_free: u32,
    /// True if rows that leave out dies limit stored data to less than the format allows.
    pub is_short_of_rows: bool,
    /// True if free space is below the high watermark, and relocation does not keep pace since the
    /// victim costs more than `price_max`.
    pub is_relocation_put_off: bool,
}

/// Condition of one superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperblockStatus {
    /// State in the cycle of its use.
    pub state: SuperblockState,
    /// Completed program/erase cycles.
    pub erase_count: u32,
    /// True in SLC mode.
    pub is_slc: bool,
    /// True if it is not used again.
    pub is_condemned: bool,
}

/// A flash translation layer.
///
/// Each write goes to a new place, which the map holds until the page is trimmed:
///
/// ```
/// use ftl::{Config, Ftl, Geometry, Lpn, NoMedia};
/// # let geometry = Geometry {
/// #     banks: 1, dies_per_bank: 4, planes_per_die: 1, erase_blocks_per_plane: 16,
/// #     pages_per_erase_block: 8, page_kib: 4, indirection_kib: 4, stripe_dies: 4,
/// # };
/// # let config = Config {
/// #     geometry, pages_logical: 192, pages_stored_max: 192, extents_per_page: 1,
/// #     victim: ftl::VictimPolicy::Greedy,
/// #     watermarks: ftl::Watermarks {
/// #         low: 3, high: 4, burst: 0.1, price_max: 0.0, batch_pages: 1,
/// #     },
/// #     wear_spread_max: 0, handles: ftl::ReclaimUnitHandles::ONE,
/// #     slc_cache: None, seed: 1,
/// # };
/// let mut ftl = Ftl::format(&config)?;
/// let first = ftl.write(0, Lpn(7), &mut NoMedia);
/// let second = ftl.write(0, Lpn(7), &mut NoMedia);
/// assert_ne!(first, second);
/// assert_eq!(ftl.lookup(Lpn(7)), Some(second));
/// assert_eq!(ftl.lookup(Lpn(8)), None, "never written");
/// ftl.trim(Lpn(7));
/// assert_eq!(ftl.lookup(Lpn(7)), None);
/// assert_eq!((ftl.counters().pages_host, ftl.counters().pages_trimmed), (2, 1));
/// # Ok::<(), ftl::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ftl<C = Pace> {
    config: Config,
    layout: Layout,
    pages_per_superblock: Divider,
    pages_per_unit: Divider,
    places_per_superblock: Divider,
    granules_per_unit: u32,
    banks: Divider,
    units_per_superblock: u32,
    /// Data units of a row.
    units_per_row: u32,
    /// Shortening of the rows that are begun from now on; [`DegradedRows::NOT`] while no die is
    /// lost.
    shortened: DegradedRows,
    /// Dies that are out of service.
    lost: Option<Box<LostDies>>,
    /// Units of a superblock for each bank.
    units_per_bank: u32,
    mapping: Mapping,
    told: P2lCache,
    extents: Extents,
    superblocks: Superblocks,
    free_by_bank: Vec<Vec<SuperblockId>>,
    /// Erased superblocks that the owner has not released yet; none where it does not have to.
    held: Option<Vec<SuperblockId>>,
    /// Superblocks that are to be retired once they are released.
    condemned: BTreeSet<SuperblockId>,
    streams: Streams,
    /// True if all host writes go to one stream.
    writes_plainly: bool,
    by_handle: ByHandle,
    /// Granules that can be placed before something has to be erased.
    room: u64,
    thresholds: Thresholds,
    relocation: Relocation,
    slc: SlcState,
    counters: Counters,
    rng: Rng,
    collection: PhantomData<C>,
}

impl<C> Ftl<C> {
    /// The translation layer of factory-fresh media.
    pub(crate) fn begin(config: &Config) -> Result<Self, ConfigError> {
        config.check()?;
        let geometry = &config.geometry;
        let places = geometry.pages() * u64::from(config.extents_per_page);
        let places = u32::try_from(places).expect("checked against 32 bits");
        // Most extents of a drive that compresses never reach the last of their layers.
        let by_ppn = if config.extents_per_page > 1 { Use::Parts } else { Use::Whole };
        let pages_per_unit = geometry.pages_per_unit();
        let mut ftl = Self {
            config: *config,
            layout: Layout::new(geometry),
            pages_per_superblock: Divider::new(geometry.pages_per_superblock()),
            pages_per_unit: Divider::new(pages_per_unit),
            places_per_superblock: Divider::new(config.places_per_superblock()),
            granules_per_unit: pages_per_unit * config.granules_per_page(),
            banks: Divider::new(geometry.banks),
            units_per_superblock: geometry.pages_per_superblock() / pages_per_unit,
            units_per_row: geometry.data_units_per_row(),
            shortened: DegradedRows::NOT,
            lost: None,
            units_per_bank: geometry.units_per_bank(),
            mapping: Mapping::new(config.pages_logical, places, by_ppn),
            told: P2lCache::default(),
            extents: Extents::new(config),
            superblocks: Superblocks::new(geometry.superblocks()),
            free_by_bank: vec![Vec::new(); geometry.banks as usize],
            held: None,
            condemned: BTreeSet::new(),
            streams: Streams::new(config),
            writes_plainly: config.handles.count == 1 && config.slc_cache.is_none(),
            by_handle: ByHandle::new(config.handles, config.pages_logical),
            room: geometry.pages() * u64::from(config.granules_per_page()),
            thresholds: Thresholds::new(config),
            relocation: Relocation::default(),
            slc: SlcState::default(),
            counters: Counters::default(),
            rng: Rng::new(config.seed).split("victim"),
            collection: PhantomData,
        };
        ftl.list_free();
        Ok(ftl)
    }

    /// Returns the present configuration: with the watermarks and the capacity that were set last.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the counters since the format, in pages of 4 KiB.
    pub fn counters(&self) -> Counters {
        self.counters.in_pages_of(self.config.geometry.counted_per_page())
    }

    /// Use of the flash at present.
    #[inline]
    pub fn occupancy(&self) -> Occupancy {
        let granule_bytes = self.extents.granule_bytes();
        Occupancy {
            stored: Bytes(self.extents.stored() * granule_bytes),
            stored_max: Bytes(self.extents.stored_max() * granule_bytes),
            pages_stored: self.extents.pages(),
            room: Bytes(self.room * granule_bytes),
            superblocks_free: self.superblocks.free(),
            is_short_of_rows: self.shortened.granules_max < self.extents.stored_max(),
            is_relocation_put_off: self.puts_relocation_off(),
        }
    }

    /// Condition of one superblock.
    #[inline]
    pub fn superblock(&self, id: SuperblockId) -> SuperblockStatus {
        SuperblockStatus {
            state: self.superblocks.state(id),
            erase_count: self.superblocks.erase_count(id),
            is_slc: self.superblocks.is_slc(id),
            is_condemned: self.is_condemned(id),
        }
    }

    /// Returns the physical page of `lpn`; `None` if it was never written, or trimmed.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.mapping.ppn(lpn)
    }

    /// True if there is flash for writing all `pages`, each with the granules that it takes,
    /// beside `kept` granules that are not to be touched.
    #[inline]
    fn has_space_beside(&self, kept: u64, pages: impl Iterator<Item = (Lpn, u32)>) -> bool {
        if self.config.pages_stored_max == self.config.pages_logical && self.shortened.units == 0 {
            return true;
        }
        let mut stored = self.extents.stored() + kept;
        for (lpn, incoming) in pages {
            let was = self.mapping.ppn(lpn).map_or(0, |_| u64::from(self.extents.size(lpn)));
            stored = stored + u64::from(incoming) - was;
        }
        let max = self.extents.stored_max().min(self.shortened.granules_max);
        stored <= max.max(self.extents.stored())
    }

    /// The unit that place number `place` of a superblock belongs to.
    #[inline]
    fn unit_at(&self, place: u32) -> u32 {
        // Where nothing is compressed all places are in the first layer.
        let in_first = place < self.pages_per_superblock.divisor();
        let page = if in_first { place } else { self.pages_per_superblock.divide(place).1 };
        self.pages_per_unit.divide(page).0
    }

    #[inline]
    pub(crate) fn superblock_of(&self, ppn: Ppn) -> SuperblockId {
        SuperblockId(self.places_per_superblock.divide(ppn.0).0)
    }

    /// The die that holds place number `place` of a superblock whose bank begins with `die_first`.
    #[inline]
    pub(crate) fn die_at(&self, die_first: u32, place: u32) -> DieId {
        let unit = self.unit_at(place);
        DieId(die_first + u32::from(self.layout.unit(unit).die))
    }

    /// Bytes by which an extent of `granules` is shorter than a page.
    #[inline]
    pub(crate) const fn saved_bytes(&self, granules: u32) -> u64 {
        (self.config.granules_per_page() - granules) as u64 * self.extents.granule_bytes()
    }

    /// Forgets `lpn`.
    pub fn trim(&mut self, lpn: Lpn) {
        if let Some(lost) = &mut self.lost {
            lost.written(lpn);
        }
        if self.forget(lpn) {
            self.counters.pages_trimmed += 1;
        }
    }

    /// Forgets `lpn`; true if it was mapped.
    pub(crate) fn forget(&mut self, lpn: Lpn) -> bool {
        let Some(was) = self.mapping.unmap(lpn) else { return false };
        let granules = self.extents.size(lpn);
        self.superblocks.invalidate(self.superblock_of(was), granules);
        self.extents.drop(lpn, granules);
        true
    }

    /// Gives `lpn`, which takes `granules`, the next place of a stream of the host.
    #[inline]
    fn place(&mut self, stream: Stream, lpn: Lpn, granules: u32, media: &mut impl Media) -> Ppn {
        let (superblock, ppn, unit_full) = self.advance(stream, granules, Cause::Host, media);
        if let Some(lost) = &mut self.lost {
            lost.written(lpn);
        }
        let was = self.mapping.map(lpn, ppn).map(|was| (was, self.extents.size(lpn)));
        if let Some((was, granules)) = was {
            self.superblocks.invalidate(self.superblock_of(was), granules);
        }
        self.extents.store(lpn, was.map(|(_, granules)| granules), granules);
        self.superblocks.validate(superblock, granules);
        self.use_room(granules);
        if unit_full {
            self.program(stream, Cause::Host, media);
        }
        ppn
    }

    /// Gives what is at `from`, in a victim, the next place of a stream.
    #[inline]
    pub(crate) fn move_extent(
        &mut self,
        ExtentMove { lpn, granules, stream, cause }: ExtentMove,
        from: Origin,
        media: &mut impl Media,
    ) {
        let (superblock, to, unit_full) = self.advance(stream, granules, cause, media);
        self.by_handle.moved(lpn, cause);
        self.mapping.relocate(lpn, from.ppn, to);
        self.superblocks.invalidate(from.superblock, granules);
        self.superblocks.validate(superblock, granules);
        self.use_room(granules);
        let extent = Bytes(u64::from(granules) * self.extents.granule_bytes());
        let Origin { ppn: from, superblock, die, .. } = from;
        media.submit(MediaOp::Relocate { from, superblock, die, to, lpn, extent, cause });
        if unit_full {
            self.program(stream, cause, media);
        }
    }

    #[inline]
    pub(crate) fn use_room(&mut self, granules: u32) {
        self.room -= u64::from(granules);
        self.watch_room();
    }

    /// Takes the next place of a stream for an extent: its superblock, the place, and whether the
    /// unit takes no more. A unit that the extent does not fit into is programmed as it is.
    #[inline]
    fn advance(
        &mut self,
        stream: Stream,
        granules: u32,
        cause: Cause,
        media: &mut impl Media,
    ) -> (SuperblockId, Ppn, bool) {
        let state = &mut self.streams[stream];
        let open = state.frontiers[state.bank as usize].as_mut();
        let taken = match open.filter(|open| open.granules_left >= granules) {
            Some(open) => open.take(granules, self.pages_per_superblock, self.pages_per_unit),
            None => self.advance_far(stream, granules, cause, media),
        };
        debug_assert!(self.fills(stream, taken.1), "a place lies in the unit that is filled");
        taken
    }

    /// True if a place lies in the unit that a stream fills.
    fn fills(&self, stream: Stream, ppn: Ppn) -> bool {
        let state = &self.streams[stream];
        let (superblock, place) = self.places_per_superblock.divide(ppn.0);
        let open = state.frontiers[state.bank as usize].as_ref();
        open.is_some_and(|it| (it.superblock.0, it.unit) == (superblock, self.unit_at(place)))
    }

    /// [`Ftl::advance`] where no superblock is open or the extent does not fit into the unit, apart
    /// from the path of all other pages.
    #[inline(never)]
    fn advance_far(
        &mut self,
        stream: Stream,
        granules: u32,
        cause: Cause,
        media: &mut impl Media,
    ) -> (SuperblockId, Ppn, bool) {
        self.open_next(stream, cause, media);
        let state = &self.streams[stream];
        let open = &state.frontiers[state.bank as usize];
        if open.as_ref().is_some_and(|open| open.granules_left < granules) {
            self.program(stream, cause, media);
            self.open_next(stream, cause, media);
        }
        let state = &mut self.streams[stream];
        let open = state.frontiers[state.bank as usize].as_mut().expect("opened above");
        open.take(granules, self.pages_per_superblock, self.pages_per_unit)
    }

    /// Sees to it that a stream has an open superblock in the bank whose turn it is.
    fn open_next(&mut self, stream: Stream, cause: Cause, media: &mut impl Media) {
        let bank = self.streams[stream].bank;
        if self.streams[stream].frontiers[bank as usize].is_none() {
            let superblock = self.take_free(bank, cause);
            if stream == Stream::HOST {
                self.open_slc(superblock);
            }
            let opened = self.frontier(superblock, 0);
            self.superblocks.set_owner(superblock, self.streams[stream].owner);
            self.streams[stream].frontiers[bank as usize] = Some(opened);
            if self.lost.is_some() {
                self.skip_left_out(stream, bank as usize, media);
            }
        }
    }

    /// The beginning of a unit.
    pub(crate) fn frontier(&self, superblock: SuperblockId, unit: u32) -> Frontier {
        let first = Ppn(superblock.0 * self.places_per_superblock.divisor());
        let pages = self.pages_per_unit.divisor();
        self.assert_open(superblock, unit);
        Frontier {
            superblock,
            die_first: self.die_first(superblock),
            first,
            next: Ppn(first.0 + unit * pages),
            unit,
            granules_per_unit: self.granules_per_unit_of(superblock),
            granules_left: self.granules_per_unit_of(superblock),
            layer_left: pages,
            left_out: self.shortened.units,
        }
    }

    /// Programs the unit of a stream that takes no more, and goes on to the next one. What is left
    /// of it is lost until it is erased.
    pub(crate) fn program(&mut self, stream: Stream, cause: Cause, media: &mut impl Media) {
        self.program_unit(stream, cause, media);
        while self.leaves_out_next(stream) {
            self.program_unit(stream, cause, media);
        }
    }

    /// Programs one unit; the next one may be one that its row leaves out.
    fn program_unit(&mut self, stream: Stream, cause: Cause, media: &mut impl Media) {
        let (left_out, units_per_row) = (self.shortened.units, self.units_per_row);
        let state = &mut self.streams[stream];
        let bank = state.bank as usize;
        let open = &mut state.frontiers[bank];
        let frontier = open.as_mut().expect("the unit's superblock is open");
        let &mut Frontier { superblock, die_first, unit, granules_left, .. } = frontier;
        let is_open = self.superblocks.state(superblock) == SuperblockState::Open;
        assert!(is_open, "a unit is programmed in an open superblock");
        if unit + 1 == self.units_per_superblock {
            self.superblocks.close(superblock);
            *open = None;
        } else {
            frontier.begin(unit + 1, self.pages_per_unit.divisor());
            if frontier.left_out != left_out && (unit + 1).is_multiple_of(units_per_row) {
                frontier.left_out = left_out;
            }
        }
        state.turn(self.banks.divisor(), self.units_per_bank);
        if granules_left > 0 {
            self.pad(granules_left);
        }
        let place = self.layout.unit(unit);
        let row = u32::from(place.row);
        let die = DieId(die_first + u32::from(place.die));
        let is_slc = self.superblocks.is_slc(superblock);
        debug_assert!(!self.is_lost(die), "nothing is programmed on a die that is lost");
        media.submit(MediaOp::Program { superblock, die, row, cause, is_slc });
        if let Some(parity_die) = place.parity_die {
            let die = DieId(die_first + u32::from(parity_die));
            let cause = Cause::Parity;
            media.submit(MediaOp::Program { superblock, die, row, cause, is_slc });
            self.counters.pages_parity += self.pages_of_parity(superblock);
        }
        if self.lost.is_some() {
            self.skip_left_out(stream, bank, media);
        }
    }

    /// Gives up what is left of a unit.
    fn pad(&mut self, granules: u32) {
        self.counters.padding_bytes += u64::from(granules) * self.extents.granule_bytes();
        self.use_room(granules);
    }

    /// Opens a free superblock of `bank`, or of the bank that has most if it has none: the least
    /// worn one, but the most worn one for what wear levelling moves, which stays longest.
    fn take_free(&mut self, bank: u32, cause: Cause) -> SuperblockId {
        let bank = if self.free_by_bank[bank as usize].is_empty() {
            let most =
                (0..self.free_by_bank.len()).rev().max_by_key(|b| self.free_by_bank[*b].len());
            most.expect("at least one bank")
        } else {
            bank as usize
        };
        let free = &self.free_by_bank[bank];
        let wear = |index: &usize| self.superblocks.erase_count(free[*index]);
        let index = match cause {
            Cause::Wear => (0..free.len()).max_by_key(wear),
            _ => (0..free.len()).min_by_key(wear),
        };
        let index = index.expect("low watermark keeps a free superblock for relocation");
        let superblock = self.free_by_bank[bank].remove(index);
        assert_eq!(self.bank_of(superblock) as usize, bank, "a bank opens a superblock of its own");
        self.superblocks.open(superblock);
        superblock
    }

    /// Erases a victim that holds nothing any more.
    pub(crate) fn erase(&mut self, superblock: SuperblockId, media: &mut impl Media) {
        let die_first = DieId(self.die_first(superblock));
        media.submit(MediaOp::Erase { superblock, die_first });
        self.superblocks.erase(superblock);
        if let Some(lost) = &mut self.lost {
            lost.erased(superblock, self.banks.divisor());
        }
        self.told.clear();
        self.counters.superblocks_erased += 1;
        match &mut self.held {
            Some(held) => held.push(superblock),
            None => self.release(superblock),
        }
    }

    /// An erased superblock may be opened from now on.
    pub(crate) fn gain(&mut self, superblock: SuperblockId) {
        let bank = self.bank_of(superblock);
        self.free_by_bank[bank as usize].push(superblock);
        self.room += u64::from(self.config.granules_per_superblock());
        self.assert_gained(superblock);
        self.watch_room();
    }

    /// Superblocks that are neither bad nor condemned.
    pub(crate) fn superblocks_good(&self) -> u32 {
        let good = |id: &SuperblockId| !self.is_condemned(*id);
        let count = self.superblocks.ids().filter(good).count();
        u32::try_from(count).expect("counted by a u32")
    }

    pub(crate) fn list_free(&mut self) {
        self.free_by_bank.iter_mut().for_each(Vec::clear);
        for id in self.superblocks.ids() {
            if self.superblocks.state(id) == SuperblockState::Free {
                let bank = self.bank_of(id);
                self.free_by_bank[bank as usize].push(id);
            }
        }
    }

    #[inline]
    pub(crate) fn bank_of(&self, superblock: SuperblockId) -> u32 {
        self.banks.divide(superblock.0).1
    }

    #[inline]
    pub(crate) fn die_first(&self, superblock: SuperblockId) -> u32 {
        self.bank_of(superblock) * self.config.geometry.dies_per_bank
    }
}

impl Ftl {
    /// Formats factory-fresh media.
    ///
    /// # Errors
    /// Fails if the format cannot work, says which count does not fit.
    pub fn format(config: &Config) -> Result<Self, ConfigError> {
        Self::begin(config)
    }

    /// Changes when garbage collection works; what is mapped, and where, stays.
    pub fn set_watermarks(&mut self, watermarks: Watermarks) {
        self.config.watermarks = watermarks;
        self.thresholds = Thresholds::new(&self.config);
        self.relocation.stopped = false;
        self.watch_room();
    }

    /// Pages of 4 KiB programmed for each reclaim unit handle since the format; empty where there
    /// is only one.
    pub fn counters_by_handle(&self) -> Vec<HandleCounters> {
        let pages = self.config.geometry.counted_per_page();
        self.by_handle.counters().iter().map(|counted| counted.in_pages_of(pages)).collect()
    }

    /// Counts bytes of host requests, which only the owner knows.
    pub fn count_host_bytes(&mut self, sent: Bytes, read: Bytes) {
        self.counters.host_sent_bytes += sent.0;
        self.counters.host_read_bytes += read.0;
    }

    /// Pages that the host writes from now on are `bytes` long when they are stored: compressed,
    /// with what the drive adds. Longer than a page, and all of them on a drive that does not
    /// compress, they are stored whole.
    pub fn expect_extents_of(&mut self, bytes: Bytes) {
        self.extents.expect(bytes.0);
    }

    /// Flash that `lpn` takes, if it is stored.
    #[inline]
    pub fn extent(&self, lpn: Lpn) -> Bytes {
        Bytes(u64::from(self.extents.size(lpn)) * self.extents.granule_bytes())
    }

    /// True if there is flash for writing all `lpns`, beside `waiting` pages that were promised
    /// theirs.
    #[inline]
    pub fn has_space_for(&self, lpns: impl Iterator<Item = Lpn>, waiting: u64) -> bool {
        let incoming = self.extents.incoming();
        self.has_space_beside(u64::from(incoming) * waiting, lpns.map(|lpn| (lpn, incoming)))
    }

    /// The program unit of a page, which adjacent pages share.
    #[inline]
    pub fn unit_of(&self, ppn: Ppn) -> Unit {
        let (superblock, place) = self.places_per_superblock.divide(ppn.0);
        Unit { superblock: SuperblockId(superblock), index: self.unit_at(place) }
    }

    /// The die that holds a unit.
    #[inline]
    pub fn die_of(&self, unit: Unit) -> DieId {
        DieId(self.die_first(unit.superblock) + u32::from(self.layout.unit(unit.index).die))
    }

    /// True if the data of a unit is still in the write buffer because the unit is not full.
    #[inline]
    pub fn is_buffered(&self, unit: Unit) -> bool {
        // Few superblocks are open, and closed ones are all that most requests meet.
        self.superblocks.state(unit.superblock) == SuperblockState::Open
            && self
                .streams
                .iter()
                .flat_map(|stream| &stream.frontiers)
                .flatten()
                .any(|open| (open.superblock, open.unit) == (unit.superblock, unit.index))
    }

    /// Maps `lpn` to a new page of the stream of a reclaim unit handle; handle 0 stands for those
    /// that the format does not have.
    ///
    /// Relocates first while too little is free, and afterwards in proportion; what the media has
    /// to do, in order, goes to `media`.
    #[inline]
    pub fn write(&mut self, handle: u8, lpn: Lpn, media: &mut impl Media) -> Ppn {
        while self.needs_room() {
            let is_writable = self.redundancy() != Redundancy::Exhausted;
            assert!(is_writable, "nothing is written once spare space was missing for a die");
            self.relocate_unit(media);
        }
        self.write_at_once(handle, lpn, media)
    }

    /// As [`Ftl::write`], for an owner that has seen to [`Ftl::needs_room`] before the request that
    /// this page belongs to; the rest of that request may run into the reserve.
    #[inline]
    pub fn write_at_once(&mut self, handle: u8, lpn: Lpn, media: &mut impl Media) -> Ppn {
        if !self.writes_plainly {
            return self.write_by_choice(handle, lpn, media);
        }
        self.write_to(Stream::HOST, lpn, media)
    }

    /// [`Ftl::write_at_once`] with several streams for host writes, outside the path of all other
    /// drives.
    #[inline(never)]
    fn write_by_choice(&mut self, handle: u8, lpn: Lpn, media: &mut impl Media) -> Ppn {
        if self.config.slc_cache.is_some() {
            let stream = if self.writes_to_slc() { Stream::HOST } else { Stream::DIRECT };
            return self.write_to(stream, lpn, media);
        }
        let handle = self.by_handle.named(handle);
        self.by_handle.write(lpn, handle);
        self.write_to(Stream::host(handle), lpn, media)
    }

    /// Writes a page to a stream of the host.
    #[inline]
    fn write_to(&mut self, stream: Stream, lpn: Lpn, media: &mut impl Media) -> Ppn {
        let granules = self.extents.incoming();
        let ppn = self.place(stream, lpn, granules, media);
        self.counters.pages_host += 1;
        self.counters.host_saved_bytes += self.saved_bytes(granules);
        self.keep_pace(granules, media);
        ppn
    }

    /// Prefetches the map entry of a page that will be accessed soon, and its size.
    ///
    /// Changes nothing. One cache miss after another is what a large map costs; they overlap here.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.mapping.prefetch(lpn);
        self.extents.prefetch(lpn);
    }

    /// Has the processor fetch the rest of what writing `lpn` needs, some time after
    /// [`Ftl::prefetch`] and some time before it is written.
    #[inline]
    pub fn prefetch_write(&self, lpn: Lpn) {
        self.mapping.prefetch_validity(lpn);
    }
}

impl Ftl<Debt> {
    /// The map, to be looked at.
    pub const fn map(&self) -> Map<'_> {
        Map { mapping: &self.mapping, extents: &self.extents }
    }

    /// True if there is flash for writing all `pages`, each with the bytes that its extent takes,
    /// beside `kept` bytes that are not to be touched.
    pub fn has_space_for_extents(
        &self,
        pages: impl Iterator<Item = (Lpn, Bytes)>,
        kept: Bytes,
    ) -> bool {
        let kept = kept.0.div_ceil(self.extents.granule_bytes());
        self.has_space_beside(kept, pages.map(|(lpn, it)| (lpn, self.extents.granules(it.0))))
    }

    /// Maps `lpn`, which takes `extent` when it is stored, to a new page of the host stream, in the
    /// reserve where there is no other room. Relocation in proportion is not carried out but owed
    /// ([`Ftl::owes_batches`]).
    pub fn write_owing(&mut self, lpn: Lpn, extent: Bytes, media: &mut impl Media) -> Ppn {
        let granules = self.extents.granules(extent.0);
        let ppn = self.place(Stream::HOST, lpn, granules, media);
        self.by_handle.write(lpn, 0);
        self.counters.pages_host += 1;
        self.counters.host_saved_bytes += self.saved_bytes(granules);
        self.owe(granules);
        ppn
    }

    /// Forgets every page at once. What they took is gained as relocation comes to it.
    pub fn trim_all(&mut self) {
        self.counters.pages_trimmed += self.mapping.count_valid();
        self.forget_losses();
        self.mapping.clear();
        self.extents.clear();
        self.superblocks.invalidate_all();
    }
}
