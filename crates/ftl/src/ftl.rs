//! The state machine.
//!
//! Every host page goes to the open superblock of the host stream, which there is one of for each
//! reclaim unit handle ([`crate::ReclaimUnitHandles`]), every page that garbage
//! collection saves to that of the relocation stream, and what wear levelling moves to a third,
//! since it has proven cold. A stream keeps one superblock open in each
//! bank and fills them unit by unit in turn, so that all dies work.
//!
//! ```text
//!  write(lpn) ─► make_room ─► place in host stream ─► keep_pace
//!                   │                                    │
//!                   └── relocate until enough is free    └── relocate in proportion
//! ```
//!
//! Invariants:
//! - A page is mapped as soon as it has a place; until its unit is full, its data is in the owner's
//!   write buffer ([`Ftl::is_buffered`]).
//! - `pages_host + pages_relocation + pages_wear` pages have been placed, no more and no fewer.
//! - Within a unit extents follow each other until the next one does not fit; none lies in two.
//! - A free superblock remains for relocation whenever one is needed: `low` is more than all open
//!   superblocks can have left.

mod capacity;
mod condemned;
mod degraded_rows;
mod invariants;
mod lost_die;
mod p2l;
pub(crate) mod recovery;
pub(crate) mod relocation;
mod slc_cache;

use std::collections::BTreeSet;

use blockio::{Bytes, Rng};

use self::degraded_rows::DegradedRows;
use self::lost_die::LostDie;
use self::relocation::{Relocation, Thresholds};
use self::slc_cache::SlcState;
use crate::extent::Extents;
use crate::mapping::Mapping;
use crate::p2l_cache::P2lCache;
use crate::placement::ByHandle;
use crate::stream::{Frontier, Origin, Stream, Streams};
use crate::superblock::Superblocks;
use crate::table::Use;
use crate::{
    Cause, Config, ConfigError, Counters, DieId, Divider, HandleCounters, Layout, Lpn, Media,
    MediaOp, Ppn, SuperblockId, SuperblockState, Watermarks,
};

/// Outcome of replacing an erase block gone bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraseBlockReplacement {
    /// A spare took its place.
    Spare {
        /// Spares that the die has left.
        left: u32,
    },
    /// The superblock was retired.
    Retired,
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
/// #     wear_spread_max: 0, spares_per_die: 0, handles: ftl::ReclaimUnitHandles::ONE,
/// #     slc_cache: None, seed: 1,
/// # };
/// let mut ftl = Ftl::format(&config)?;
/// let first = ftl.write(Lpn(7), &mut NoMedia);
/// let second = ftl.write(Lpn(7), &mut NoMedia);
/// assert_ne!(first, second);
/// assert_eq!(ftl.lookup(Lpn(7)), Some(second));
/// assert_eq!(ftl.lookup(Lpn(8)), None, "never written");
/// ftl.trim(Lpn(7));
/// assert_eq!(ftl.lookup(Lpn(7)), None);
/// assert_eq!((ftl.counters().pages_host, ftl.counters().pages_trimmed), (2, 1));
/// # Ok::<(), ftl::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ftl {
    pub(crate) config: Config,
    pub(crate) layout: Layout,
    pub(crate) pages_per_superblock: Divider,
    pub(crate) pages_per_unit: Divider,
    places_per_superblock: Divider,
    pub(crate) granules_per_unit: u32,
    banks: Divider,
    pub(crate) units_per_superblock: u32,
    /// Data units of a row.
    pub(crate) units_per_row: u32,
    /// Shortening of the rows that are begun from now on; [`DegradedRows::NOT`] while no die is
    /// lost.
    pub(crate) shortened: DegradedRows,
    /// Die that is out of service.
    pub(crate) lost: Option<Box<LostDie>>,
    /// Units of a superblock for each bank.
    units_per_bank: u32,
    pub(crate) mapping: Mapping,
    pub(crate) told: P2lCache,
    pub(crate) extents: Extents,
    pub(crate) superblocks: Superblocks,
    pub(crate) free_by_bank: Vec<Vec<SuperblockId>>,
    /// Erased superblocks that the owner has not released yet, where it wants to.
    pub(crate) held: Option<Vec<SuperblockId>>,
    /// Superblocks that are to be retired once they are released.
    pub(crate) condemned: BTreeSet<SuperblockId>,
    /// Spare erase blocks left, die by die.
    spares_by_die: Vec<u32>,
    pub(crate) streams: Streams,
    /// True if all host writes go to one stream.
    writes_plainly: bool,
    pub(crate) by_handle: ByHandle,
    /// Granules that can be placed before something has to be erased.
    pub(crate) room: u64,
    pub(crate) thresholds: Thresholds,
    pub(crate) relocation: Relocation,
    pub(crate) slc: SlcState,
    pub(crate) counters: Counters,
    pub(crate) rng: Rng,
}

impl Ftl {
    /// Formats factory-fresh media.
    ///
    /// # Errors
    /// Fails if the format cannot work, says which count does not fit.
    pub fn format(config: &Config) -> Result<Self, ConfigError> {
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
            spares_by_die: vec![config.spares_per_die; geometry.dies() as usize],
            streams: Streams::new(config),
            writes_plainly: config.handles.count == 1 && config.slc_cache.is_none(),
            by_handle: ByHandle::new(config.handles, config.pages_logical),
            room: geometry.pages() * u64::from(config.granules_per_page()),
            thresholds: Thresholds::new(config),
            relocation: Relocation::default(),
            slc: SlcState::default(),
            counters: Counters::default(),
            rng: Rng::new(config.seed).split("victim"),
        };
        ftl.list_free();
        Ok(ftl)
    }

    /// Changes when garbage collection works; what is mapped, and where, stays.
    pub fn set_watermarks(&mut self, watermarks: Watermarks) {
        self.config.watermarks = watermarks;
        self.thresholds = Thresholds::new(&self.config);
        self.relocation.stopped = false;
        self.watch_room();
    }

    /// Returns the present configuration: with the watermarks and the capacity that were set last.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Logical pages that the host sees.
    pub fn pages_logical(&self) -> u32 {
        self.mapping.pages_logical()
    }

    /// Capacity that the host sees.
    pub fn user_capacity(&self) -> Bytes {
        Bytes(u64::from(self.pages_logical()) * self.config.geometry.page_bytes())
    }

    /// Returns the counters since the format, in pages of 4 KiB.
    pub fn counters(&self) -> Counters {
        self.counters.in_pages_of(self.config.geometry.counted_per_page())
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

    /// Superblocks that are free.
    pub const fn superblocks_free(&self) -> u32 {
        self.superblocks.free()
    }

    /// Pages that can be placed whole before something has to be erased: free superblocks, and what
    /// the open ones have left.
    pub const fn room_pages(&self) -> u64 {
        self.room / self.config.granules_per_page() as u64
    }

    /// Flash that all stored pages take.
    pub const fn stored(&self) -> Bytes {
        Bytes(self.extents.stored() * self.extents.granule_bytes())
    }

    /// Pages that are stored.
    pub const fn pages_stored(&self) -> u64 {
        self.extents.pages()
    }

    /// Flash that stored pages may take at most.
    pub const fn stored_max(&self) -> Bytes {
        Bytes(self.extents.stored_max() * self.extents.granule_bytes())
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

    /// Superblocks in all, bad ones included.
    pub const fn superblocks(&self) -> u32 {
        self.config.geometry.superblocks()
    }

    /// Completed program/erase cycles of one superblock.
    pub fn erase_count(&self, superblock: SuperblockId) -> u32 {
        self.superblocks.erase_count(superblock)
    }

    /// State of one superblock.
    pub fn superblock_state(&self, superblock: SuperblockId) -> SuperblockState {
        self.superblocks.state(superblock)
    }

    /// Bytes of valid data in one superblock, as stored: compressed extents count at their size.
    pub fn valid(&self, superblock: SuperblockId) -> Bytes {
        let granules = self.superblocks.granules_valid(superblock);
        Bytes(u64::from(granules) * self.extents.granule_bytes())
    }

    /// Returns the physical page of `lpn`; `None` if it was never written, or trimmed.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.mapping.ppn(lpn)
    }

    /// Superblock and program unit of a page, as one number that adjacent pages share.
    #[inline]
    pub fn unit_of(&self, ppn: Ppn) -> (SuperblockId, u32) {
        let (superblock, place) = self.places_per_superblock.divide(ppn.0);
        (SuperblockId(superblock), self.unit_at(place))
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

    /// The die that holds a unit.
    #[inline]
    pub fn die_of(&self, (superblock, unit): (SuperblockId, u32)) -> DieId {
        DieId(self.die_first(superblock) + u32::from(self.layout.unit(unit).die))
    }

    /// The die that holds place number `place` of a superblock whose bank begins with `die_first`.
    #[inline]
    pub(crate) fn die_at(&self, die_first: u32, place: u32) -> DieId {
        let unit = self.unit_at(place);
        DieId(die_first + u32::from(self.layout.unit(unit).die))
    }

    /// True if the data of a unit is still in the write buffer because the unit is not full.
    #[inline]
    pub fn is_buffered(&self, (superblock, unit): (SuperblockId, u32)) -> bool {
        // Few superblocks are open, and closed ones are all that most requests meet.
        self.superblocks.state(superblock) == SuperblockState::Open
            && self
                .streams
                .iter()
                .flat_map(|stream| &stream.frontiers)
                .flatten()
                .any(|frontier| (frontier.superblock, frontier.unit) == (superblock, unit))
    }

    /// Maps `lpn` to a new page of the host stream.
    ///
    /// Relocates first while too little is free, and afterwards in proportion; what the media has
    /// to do, in order, goes to `media`.
    #[inline]
    pub fn write(&mut self, lpn: Lpn, media: &mut impl Media) -> Ppn {
        self.make_room(media);
        self.write_at_once(lpn, media)
    }

    /// As [`Ftl::write`], for an owner that has seen to [`Ftl::needs_room`] before the request that
    /// this page belongs to; the rest of that request may run into the reserve.
    #[inline]
    pub fn write_at_once(&mut self, lpn: Lpn, media: &mut impl Media) -> Ppn {
        self.write_through(0, lpn, media)
    }

    /// As [`Ftl::write_at_once`], through a reclaim unit handle; handle 0 stands for those that the
    /// format does not have.
    #[inline]
    pub fn write_through(&mut self, handle: u8, lpn: Lpn, media: &mut impl Media) -> Ppn {
        if !self.writes_plainly {
            return self.write_by_choice(handle, lpn, media);
        }
        self.write_to(Stream::HOST, lpn, media)
    }

    /// [`Ftl::write_through`] with several streams for host writes, outside the path of all other
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
        let ppn = self.place(stream, (lpn, granules), media);
        self.counters.pages_host += 1;
        self.counters.host_saved_bytes += self.saved_bytes(granules);
        self.keep_pace(granules, media);
        ppn
    }

    /// As [`Ftl::write_at_once`], for an owner that relocates by itself ([`Ftl::relocate_next`]):
    /// relocation in proportion is not carried out but owed ([`Ftl::owes_relocation`]).
    pub fn write_owing(&mut self, lpn: Lpn, media: &mut impl Media) -> Ppn {
        let granules = self.extents.incoming();
        let ppn = self.place(Stream::HOST, (lpn, granules), media);
        self.by_handle.write(lpn, 0);
        self.counters.pages_host += 1;
        self.counters.host_saved_bytes += self.saved_bytes(granules);
        self.owe(granules);
        ppn
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

    /// Forgets every page at once. What they took is gained as relocation comes to it.
    pub fn trim_all(&mut self) {
        self.counters.pages_trimmed += self.mapping.count_valid();
        self.forget_losses();
        self.mapping.clear();
        self.extents.clear();
        self.superblocks.invalidate_all();
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

    /// Gives `lpn`, which takes `granules`, the next place of a stream of the host.
    #[inline]
    fn place(
        &mut self,
        stream: Stream,
        (lpn, granules): (Lpn, u32),
        media: &mut impl Media,
    ) -> Ppn {
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
        (lpn, granules): (Lpn, u32),
        from: Origin,
        (stream, cause): (Stream, Cause),
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
        debug_assert_eq!(
            Some(self.unit_of(taken.1)),
            self.unit_to_fill(stream),
            "a place lies in the unit that is filled"
        );
        taken
    }

    /// The unit that a stream fills; none if it has no superblock open where it has its turn.
    fn unit_to_fill(&self, stream: Stream) -> Option<(SuperblockId, u32)> {
        let state = &self.streams[stream];
        let open = state.frontiers[state.bank as usize].as_ref();
        open.map(|open| (open.superblock, open.unit))
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

    /// An erase block of `die` in a free superblock has gone bad: a spare of the same die takes its
    /// place, so that the superblock stays whole. Without a spare the superblock is retired.
    ///
    /// # Errors
    /// As [`Ftl::retire`].
    pub fn replace_erase_block(
        &mut self,
        superblock: SuperblockId,
        die: DieId,
        media: &mut impl Media,
    ) -> Result<EraseBlockReplacement, ConfigError> {
        let spares = &mut self.spares_by_die[die.0 as usize];
        if *spares > 0 {
            *spares -= 1;
            return Ok(EraseBlockReplacement::Spare { left: *spares });
        }
        self.retire(superblock, media)?;
        Ok(EraseBlockReplacement::Retired)
    }

    /// Retires a free superblock whose media has failed; its capacity is lost for good.
    ///
    /// Relocates before and after if there is too little room, as [`Ftl::write`] does.
    ///
    /// # Errors
    /// Fails if too few would remain for the user capacity, or none for relocation to begin with,
    /// retires nothing and says so: the owner makes the drive read-only.
    pub fn retire(
        &mut self,
        superblock: SuperblockId,
        media: &mut impl Media,
    ) -> Result<(), ConfigError> {
        let reserved = self.config.superblocks_reserved();
        self.config.check_spare(self.superblocks_good().saturating_sub(1), reserved, 0)?;
        let free = self.superblocks_free();
        if free < 2 {
            let limit = "at least 2 to retire one".to_owned();
            return Err(ConfigError::OutOfRange {
                name: "free superblocks",
                value: free.to_string(),
                limit,
            });
        }
        // Off the list first, or making room could open it.
        let bank = self.bank_of(superblock) as usize;
        let is_listed = self.free_by_bank[bank].contains(&superblock);
        assert!(is_listed, "a superblock that is retired is listed as free");
        self.free_by_bank[bank].retain(|id| *id != superblock);
        self.make_room(media);
        self.superblocks.retire(superblock);
        self.room -= u64::from(self.config.granules_per_superblock());
        self.watch_room();
        self.make_room(media);
        Ok(())
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
