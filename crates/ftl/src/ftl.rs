//! The state machine.
//!
//! Every host page goes to the open superblock of the host stream, every page that garbage
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
//! - A free superblock remains for relocation whenever one is needed: `low` is more than all open
//!   superblocks can have left.

use blockio::{Bytes, Rng};

use crate::mapping::Mapping;
use crate::relocation::{Relocation, Thresholds};
use crate::superblock::Superblocks;
use crate::{
    Cause, Config, ConfigError, Counters, DieId, Divider, Layout, Media, MediaOp, SuperblockId,
    SuperblockState, Watermarks,
};

/// Bytes of a mapping unit: one logical page.
pub const UNIT_BYTES: u64 = 4096;

/// Logical page number: the unit of mapping, 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lpn(pub u32);

/// Physical page number: superblock x pages of a superblock + page within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppn(pub u32);

/// Writes kept together in open superblocks of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Host,
    Relocation,
    Wear,
}

/// One open superblock and how far it is filled.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    superblock: SuperblockId,
    /// First die of its bank.
    die_first: u32,
    /// The page to be written next.
    next: Ppn,
    /// The unit which that page belongs to.
    unit: u32,
    /// Pages of the unit that have not been written.
    unit_pages_left: u32,
}

/// The open superblocks of a stream, one a bank, and the bank whose turn it is.
///
/// Banks join one after the other, `units_per_bank` units apart, so that their superblocks are not
/// all full at the same moment: free superblocks are then used up one by one.
#[derive(Clone, Debug)]
struct StreamState {
    frontiers: Vec<Option<Frontier>>,
    bank: u32,
    banks_joined: u32,
    units_until_next_joins: u32,
}

impl StreamState {
    fn new(banks: u32, units_per_bank: u32) -> Self {
        Self {
            frontiers: vec![None; banks as usize],
            bank: 0,
            banks_joined: 1,
            units_until_next_joins: units_per_bank,
        }
    }

    /// Goes on to the next bank after one unit.
    #[inline]
    fn turn(&mut self, banks: u32, units_per_bank: u32) {
        if self.banks_joined < banks {
            self.units_until_next_joins -= 1;
            if self.units_until_next_joins == 0 {
                self.banks_joined += 1;
                self.units_until_next_joins = units_per_bank;
            }
        }
        self.bank += 1;
        if self.bank >= self.banks_joined {
            self.bank = 0;
        }
    }
}

/// What became of a superblock with an erase block gone bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// A spare took its place.
    Spare {
        /// Spares that the die has left.
        left: u32,
    },
    /// The superblock was retired.
    Retired,
}

/// A flash translation layer.
#[derive(Clone, Debug)]
pub struct Ftl {
    pub(crate) config: Config,
    layout: Layout,
    pub(crate) pages_per_superblock: Divider,
    pages_per_unit: Divider,
    banks: Divider,
    units_per_superblock: u32,
    /// Units of a superblock for each bank.
    units_per_bank: u32,
    pub(crate) mapping: Mapping,
    pub(crate) superblocks: Superblocks,
    pub(crate) free_by_bank: Vec<Vec<SuperblockId>>,
    /// Spare erase blocks left, die by die.
    spares_by_die: Vec<u32>,
    streams: [StreamState; 3],
    /// Pages that can be placed before something has to be erased.
    pub(crate) room_pages: u64,
    pub(crate) thresholds: Thresholds,
    pub(crate) relocation: Relocation,
    pub(crate) counters: Counters,
    pub(crate) rng: Rng,
}

impl Ftl {
    /// Formats factory-fresh media.
    ///
    /// # Errors
    /// When the format cannot work, says which count does not fit.
    pub fn format(config: &Config) -> Result<Self, ConfigError> {
        config.check()?;
        let geometry = &config.geometry;
        let pages = u32::try_from(geometry.pages()).expect("checked against 32 bits");
        let stream = StreamState::new(geometry.banks, geometry.units_per_bank());
        let mut ftl = Self {
            config: *config,
            layout: Layout::new(geometry),
            pages_per_superblock: Divider::new(geometry.pages_per_superblock()),
            pages_per_unit: Divider::new(geometry.pages_per_unit()),
            banks: Divider::new(geometry.banks),
            units_per_superblock: geometry.pages_per_superblock() / geometry.pages_per_unit(),
            units_per_bank: geometry.units_per_bank(),
            mapping: Mapping::new(config.pages_logical, pages),
            superblocks: Superblocks::new(geometry.superblocks()),
            free_by_bank: vec![Vec::new(); geometry.banks as usize],
            spares_by_die: vec![config.spares_per_die; geometry.dies() as usize],
            streams: [stream.clone(), stream.clone(), stream],
            room_pages: geometry.pages(),
            thresholds: Thresholds::new(config),
            relocation: Relocation::default(),
            counters: Counters::default(),
            rng: Rng::new(config.seed).split("victim"),
        };
        ftl.list_free();
        Ok(ftl)
    }

    /// Erases everything: the state before the first write, wear apart.
    pub fn purge(&mut self) {
        self.mapping.clear();
        self.counters.superblocks_erased += u64::from(self.superblocks.purge());
        let geometry = &self.config.geometry;
        self.streams.fill(StreamState::new(geometry.banks, geometry.units_per_bank()));
        self.relocation = Relocation::default();
        self.room_pages = self.pages_good();
        self.list_free();
    }

    /// Changes when garbage collection works; what is mapped, and where, stays.
    pub fn set_watermarks(&mut self, watermarks: Watermarks) {
        self.config.watermarks = watermarks;
        self.thresholds = Thresholds::new(&self.config);
        self.relocation.stopped = false;
        self.watch_room();
    }

    /// What it was formatted with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Mapping units that the host sees.
    pub fn pages_logical(&self) -> u32 {
        self.mapping.pages_logical()
    }

    /// Capacity that the host sees.
    pub fn user_capacity(&self) -> Bytes {
        Bytes(u64::from(self.pages_logical()) * UNIT_BYTES)
    }

    /// What has been done since the format.
    pub const fn counters(&self) -> &Counters {
        &self.counters
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

    /// Pages that can be placed before something has to be erased: free superblocks, and what the
    /// open ones have left.
    pub const fn room_pages(&self) -> u64 {
        self.room_pages
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

    /// Valid pages of one superblock.
    pub fn pages_valid(&self, superblock: SuperblockId) -> u32 {
        self.superblocks.pages_valid(superblock)
    }

    /// Where `lpn` is; none if it was never written, or trimmed.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.mapping.ppn(lpn)
    }

    /// What is at `ppn`, if it is valid.
    pub fn logical(&self, ppn: Ppn) -> Option<Lpn> {
        self.mapping.lpn_if_valid(ppn)
    }

    /// Superblock and program unit of a page, as one number that adjacent pages share.
    #[inline]
    pub fn unit_of(&self, ppn: Ppn) -> (SuperblockId, u32) {
        let (superblock, page) = self.pages_per_superblock.divide(ppn.0);
        (SuperblockId(superblock), self.pages_per_unit.divide(page).0)
    }

    /// The die that holds a unit.
    #[inline]
    pub fn die_of(&self, (superblock, unit): (SuperblockId, u32)) -> DieId {
        DieId(self.die_first(superblock) + u32::from(self.layout.unit(unit).die))
    }

    /// The die that holds page number `page` of a superblock whose bank begins with `die_first`.
    #[inline]
    pub(crate) fn die_at(&self, die_first: u32, page: u32) -> DieId {
        let (unit, _) = self.pages_per_unit.divide(page);
        DieId(die_first + u32::from(self.layout.unit(unit).die))
    }

    /// Whether the data of a unit is still in the write buffer, the unit not being full.
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
        let ppn = self.place(lpn, Stream::Host, Cause::Host, media);
        self.counters.pages_host += 1;
        self.keep_pace(media);
        ppn
    }

    /// Forgets `lpn`.
    pub fn trim(&mut self, lpn: Lpn) {
        if let Some(was) = self.mapping.unmap(lpn) {
            let (superblock, _) = self.pages_per_superblock.divide(was.0);
            self.superblocks.invalidate(SuperblockId(superblock));
            self.counters.pages_trimmed += 1;
        }
    }

    /// Has the processor fetch the map entry of a page that will be asked for soon.
    ///
    /// Changes nothing. One cache miss after another is what a large map costs; fetched ahead, they
    /// overlap with one another and with work.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.mapping.prefetch(lpn);
    }

    /// Has the processor fetch the rest of what writing `lpn` needs, some time after
    /// [`Ftl::prefetch`] and some time before it is written.
    #[inline]
    pub fn prefetch_write(&self, lpn: Lpn) {
        self.mapping.prefetch_validity(lpn);
    }

    /// Gives `lpn` the next page of a stream.
    #[inline]
    pub(crate) fn place(
        &mut self,
        lpn: Lpn,
        stream: Stream,
        cause: Cause,
        media: &mut impl Media,
    ) -> Ppn {
        let (superblock, ppn, unit_full) = self.advance(stream, cause);
        if let Some(was) = self.mapping.map(lpn, ppn) {
            let (superblock, _) = self.pages_per_superblock.divide(was.0);
            self.superblocks.invalidate(SuperblockId(superblock));
        }
        self.superblocks.validate(superblock);
        self.room_pages -= 1;
        self.watch_room();
        if cause != Cause::Host {
            let (from, die) = self.relocation.from;
            media.submit(MediaOp::Relocate { from, die, to: ppn, cause });
        }
        if unit_full {
            self.program(stream, cause, media);
        }
        ppn
    }

    /// Takes the next page of a stream: its superblock, the page, and whether it fills its unit.
    #[inline]
    fn advance(&mut self, stream: Stream, cause: Cause) -> (SuperblockId, Ppn, bool) {
        let state = &self.streams[stream as usize];
        let bank = state.bank;
        if state.frontiers[bank as usize].is_none() {
            let opened = self.open(bank, cause);
            self.streams[stream as usize].frontiers[bank as usize] = Some(opened);
        }
        let open = &mut self.streams[stream as usize].frontiers[bank as usize];
        let frontier = open.as_mut().expect("opened above");
        let ppn = frontier.next;
        frontier.next.0 += 1;
        frontier.unit_pages_left -= 1;
        (frontier.superblock, ppn, frontier.unit_pages_left == 0)
    }

    /// Programs the unit of a stream that has just been filled, and goes on to the next one.
    fn program(&mut self, stream: Stream, cause: Cause, media: &mut impl Media) {
        let state = &mut self.streams[stream as usize];
        let open = &mut state.frontiers[state.bank as usize];
        let frontier = open.as_mut().expect("a page of it was just written");
        let Frontier { superblock, die_first, unit, .. } = *frontier;
        frontier.unit += 1;
        frontier.unit_pages_left = self.pages_per_unit.divisor();
        if frontier.unit == self.units_per_superblock {
            *open = None;
            self.superblocks.close(superblock);
        }
        state.turn(self.banks.divisor(), self.units_per_bank);
        let place = self.layout.unit(unit);
        let row = u32::from(place.row);
        let die = DieId(die_first + u32::from(place.die));
        media.submit(MediaOp::Program { superblock, die, row, cause });
        if let Some(parity_die) = place.parity_die {
            let die = DieId(die_first + u32::from(parity_die));
            media.submit(MediaOp::Program { superblock, die, row, cause: Cause::Parity });
            self.counters.pages_parity += u64::from(self.pages_per_unit.divisor());
        }
    }

    /// Opens a free superblock of `bank`, as far as there is one.
    fn open(&mut self, bank: u32, cause: Cause) -> Frontier {
        let superblock = self.take_free(bank, cause);
        Frontier {
            superblock,
            die_first: self.die_first(superblock),
            next: Ppn(superblock.0 * self.pages_per_superblock.divisor()),
            unit: 0,
            unit_pages_left: self.pages_per_unit.divisor(),
        }
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
        self.superblocks.open(superblock);
        superblock
    }

    /// Erases a victim that holds nothing any more.
    pub(crate) fn erase(&mut self, superblock: SuperblockId, media: &mut impl Media) {
        let die_first = DieId(self.die_first(superblock));
        media.submit(MediaOp::Erase { superblock, die_first });
        self.superblocks.erase(superblock);
        self.counters.superblocks_erased += 1;
        let bank = self.bank_of(superblock);
        self.free_by_bank[bank as usize].push(superblock);
        self.room_pages += u64::from(self.pages_per_superblock.divisor());
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
    ) -> Result<Replacement, ConfigError> {
        let spares = &mut self.spares_by_die[die.0 as usize];
        if *spares > 0 {
            *spares -= 1;
            return Ok(Replacement::Spare { left: *spares });
        }
        self.retire(superblock, media)?;
        Ok(Replacement::Retired)
    }

    /// Retires a free superblock whose media has failed; its capacity is lost for good.
    ///
    /// Relocates before and after if there is too little room, as [`Ftl::write`] does.
    ///
    /// # Errors
    /// When too few would remain for the user capacity, retires nothing and says so: the owner
    /// makes the drive read-only.
    pub fn retire(
        &mut self,
        superblock: SuperblockId,
        media: &mut impl Media,
    ) -> Result<(), ConfigError> {
        let pages = u64::from(self.pages_per_superblock.divisor());
        let reserved = self.config.superblocks_reserved();
        let limit = self.pages_good().saturating_sub(u64::from(1 + reserved) * pages);
        let pages_logical = u64::from(self.pages_logical());
        if pages_logical >= limit {
            let superblocks = self.superblocks();
            return Err(ConfigError::NoSpare { pages_logical, limit, superblocks, reserved });
        }
        self.make_room(media);
        let bank = self.bank_of(superblock) as usize;
        self.superblocks.retire(superblock);
        self.free_by_bank[bank].retain(|id| *id != superblock);
        self.room_pages -= pages;
        self.watch_room();
        self.make_room(media);
        Ok(())
    }

    /// Pages of all superblocks that are not bad.
    fn pages_good(&self) -> u64 {
        let good = |id: &SuperblockId| self.superblocks.state(*id) != SuperblockState::Bad;
        self.superblocks.ids().filter(good).count() as u64
            * u64::from(self.pages_per_superblock.divisor())
    }

    fn list_free(&mut self) {
        self.free_by_bank.iter_mut().for_each(Vec::clear);
        for id in self.superblocks.ids() {
            if self.superblocks.state(id) == SuperblockState::Free {
                let bank = self.bank_of(id);
                self.free_by_bank[bank as usize].push(id);
            }
        }
    }

    #[inline]
    fn bank_of(&self, superblock: SuperblockId) -> u32 {
        self.banks.divide(superblock.0).1
    }

    #[inline]
    pub(crate) fn die_first(&self, superblock: SuperblockId) -> u32 {
        self.bank_of(superblock) * self.config.geometry.dies_per_bank
    }
}
