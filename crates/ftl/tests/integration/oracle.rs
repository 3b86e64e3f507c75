//! Any sequence of commands equals a plain map, and the media is used as NAND allows.
//!
//! The media of these tests keeps what each page holds. It obeys the write-buffer rule: a page that
//! has a place is in the buffer until its unit is programmed, and is read from there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use blockio::{Bytes, Rng};
use ftl::{
    Cause, Config, Debt, DieId, Ftl, Geometry, Lpn, Media, MediaOp, Pace, Ppn, ReclaimUnitHandles,
    SlcCache, SuperblockId, SuperblockState, Unit, VictimPolicy, Watermarks,
};
use proptest::prelude::*;

use crate::{indebted, write_paid};

/// Content of one place: logical page, version of its data, and the bytes that it takes.
type Content = (Lpn, u32, u64);

/// Source of the logical page at a place that is to be relocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// The translation layer's own memory.
    Kept,
    /// The media.
    Asked,
    /// The media, which often do not know, or say something else.
    AskedInVain,
}

/// NAND that stores a version number a page, and refuses what NAND cannot do.
struct Flash {
    geometry: Geometry,
    contents: Contents,
    rng: Rng,
    /// Most extents in a page.
    extents_per_page: u32,
    /// Bits of a cell, of which a superblock in SLC mode has one.
    bits_per_cell: u32,
    /// Superblocks that are in SLC mode.
    slc: BTreeSet<SuperblockId>,
    /// First page within the superblock of the data unit at (die of the bank, row).
    page_first: BTreeMap<(u32, u32), u32>,
    programmed: Vec<Option<Content>>,
    buffer: BTreeMap<Ppn, Content>,
    /// Host page on its way, which has no place yet.
    incoming: Option<Content>,
    /// Row that each die of each superblock programs next.
    row_next: BTreeMap<(SuperblockId, DieId), u32>,
    /// Data units and parity units that each superblock has programmed since its erase.
    units: BTreeMap<SuperblockId, (u32, u32)>,
    retired: BTreeSet<SuperblockId>,
    /// Pages relocated since the host's last command.
    relocated_running: u64,
    tally: Tally,
}

/// Operations that the media was asked for since the format.
#[derive(Default)]
struct Tally {
    programmed_bytes: u64,
    padding_bytes: u64,
    pages_parity: u64,
    pages_relocation: u64,
    relocation_bytes: u64,
    pages_wear: u64,
    wear_bytes: u64,
    dropped_bytes: u64,
    superblocks_erased: u64,
}

impl Flash {
    fn new(config: &Config, contents: Contents) -> Self {
        let Config { geometry, extents_per_page, slc_cache, seed, .. } = *config;
        let mut page_first = BTreeMap::new();
        let units_per_row = geometry.data_units_per_row();
        let layout = Pace::format(config);
        for unit in 0..geometry.pages_per_erase_block * units_per_row {
            let DieId(die) = layout.die_of(Unit { superblock: SuperblockId(0), index: unit });
            let place = (die, unit / units_per_row);
            let taken = page_first.insert(place, unit * geometry.pages_per_unit());
            assert_eq!(taken, None, "two units at {place:?}");
        }
        let pages = usize::try_from(geometry.pages()).expect("a small geometry");
        Self {
            geometry,
            contents,
            rng: Rng::new(seed).split("contents"),
            extents_per_page,
            bits_per_cell: slc_cache.map_or(1, |cache| cache.bits_per_cell),
            slc: BTreeSet::new(),
            page_first,
            programmed: vec![None; pages * extents_per_page as usize],
            buffer: BTreeMap::new(),
            incoming: None,
            row_next: BTreeMap::new(),
            units: BTreeMap::new(),
            retired: BTreeSet::new(),
            relocated_running: 0,
            tally: Tally::default(),
        }
    }

    fn read(&self, ppn: Ppn) -> Option<Content> {
        self.buffer.get(&ppn).copied().or(self.programmed[ppn.0 as usize])
    }

    fn die_first(&self, superblock: SuperblockId) -> u32 {
        superblock.0 % self.geometry.banks * self.geometry.dies_per_bank
    }

    fn dies_of(&self, superblock: SuperblockId) -> Range<u32> {
        let first = self.die_first(superblock);
        first..first + self.geometry.dies_per_bank
    }

    /// Notes that `die` programs `row`: every row of an erased block once, in ascending order.
    fn advance_row(&mut self, superblock: SuperblockId, die: DieId, row: u32) {
        assert!(!self.retired.contains(&superblock), "{superblock:?} is retired");
        let dies = self.dies_of(superblock);
        let row_next = self.row_next.entry((superblock, die)).or_insert(0);
        assert_eq!(row, *row_next, "{superblock:?} {die:?} programs rows out of order");
        assert!(dies.contains(&die.0), "{die:?} is not of the bank of {superblock:?}");
        *row_next += 1;
    }

    /// Data of a program unit of a superblock, in its mode.
    fn unit_bytes(&self, superblock: SuperblockId) -> u64 {
        let bits = if self.slc.contains(&superblock) { self.bits_per_cell } else { 1 };
        u64::from(self.geometry.pages_per_unit() / bits) * self.geometry.page_bytes()
    }

    fn places_per_superblock(&self) -> u32 {
        self.geometry.pages_per_superblock() * self.extents_per_page
    }

    /// Places of the unit whose first page is `page_first`, in the order in which they are taken.
    fn places(&self, superblock: SuperblockId, page_first: u32) -> Vec<Ppn> {
        let first = superblock.0 * self.places_per_superblock() + page_first;
        let (pages, unit) = (self.geometry.pages_per_superblock(), self.geometry.pages_per_unit());
        let layers = 0..self.extents_per_page;
        layers
            .flat_map(|layer| (0..unit).map(move |page| Ppn(first + layer * pages + page)))
            .collect()
    }

    fn program_data(&mut self, superblock: SuperblockId, die: DieId, row: u32, cause: Cause) {
        let die_of_bank = die.0 - self.die_first(superblock);
        let page_first = self.page_first[&(die_of_bank, row)];
        let (unit_bytes, page_bytes) = (self.unit_bytes(superblock), self.geometry.page_bytes());
        let mut bytes = 0;
        for ppn in self.places(superblock, page_first) {
            // The extent that fills the unit arrives with the command itself.
            let fits = |content: &Content| cause == Cause::Host && bytes + content.2 <= unit_bytes;
            let arrived = self.buffer.remove(&ppn).or_else(|| self.incoming.take_if(|it| fits(it)));
            let Some(content) = arrived else { break };
            assert_eq!(self.programmed[ppn.0 as usize], None, "{ppn:?} was not erased");
            self.programmed[ppn.0 as usize] = Some(content);
            bytes += content.2;
        }
        assert!(bytes <= unit_bytes, "{bytes} bytes in a unit of {unit_bytes}");
        assert!(bytes > unit_bytes - page_bytes || self.extents_per_page > 1, "a unit with holes");
        self.tally.programmed_bytes += bytes;
        self.tally.padding_bytes += unit_bytes - bytes;
        self.units.entry(superblock).or_default().0 += 1;
    }

    fn buffered_bytes(&self) -> u64 {
        self.buffer.values().map(|content| content.2).sum()
    }

    fn erase(&mut self, superblock: SuperblockId) {
        let places = self.places_per_superblock();
        let first = superblock.0 * places;
        for ppn in first..first + places {
            self.programmed[ppn as usize] = None;
        }
        self.row_next.retain(|(erased, _), _| *erased != superblock);
        self.units.remove(&superblock);
        self.slc.remove(&superblock);
        self.tally.superblocks_erased += 1;
    }

    /// Purges the media, as the owner of the drive does.
    fn purge(&mut self) {
        self.tally.dropped_bytes += self.buffered_bytes();
        self.buffer.clear();
        self.programmed.fill(None);
        self.row_next.clear();
        self.units.clear();
        self.slc.clear();
    }
}

impl Media for Flash {
    fn contents(&mut self, first: Ppn, pages: &mut [Option<Lpn>]) {
        assert_ne!(self.contents, Contents::Kept, "no caller needs to ask");
        for (place, page) in (first.0..).zip(pages) {
            *page = self.read(Ppn(place)).map(|(lpn, ..)| lpn);
            let is_off = self.contents == Contents::AskedInVain && self.rng.below(4) == 0;
            if is_off {
                let any = u32::try_from(self.rng.below(10_000)).expect("below a u32");
                *page = (any % 2 == 0).then_some(Lpn(any));
            }
        }
    }

    fn submit(&mut self, op: MediaOp) {
        match op {
            MediaOp::Relocate { from, superblock, die, to, lpn, extent, cause } => {
                let holds = SuperblockId(from.0 / self.places_per_superblock());
                assert_eq!(superblock, holds, "{superblock:?} does not hold {from:?}");
                assert!(
                    self.dies_of(superblock).contains(&die.0),
                    "{die:?} does not hold {from:?}"
                );
                let content = self.programmed[from.0 as usize].expect("a victim is programmed");
                assert_eq!((lpn, extent), (content.0, Bytes(content.2)), "{from:?} is another");
                self.buffer.insert(to, content);
                self.relocated_running += 1;
                let limit = 64 * self.programmed.len() as u64;
                assert!(self.relocated_running < limit, "relocation goes on without an end");
                if cause == Cause::Wear {
                    self.tally.pages_wear += self.geometry.counted_per_page();
                    self.tally.wear_bytes += extent.0;
                } else {
                    self.tally.pages_relocation += self.geometry.counted_per_page();
                    self.tally.relocation_bytes += extent.0;
                }
            }
            MediaOp::Program { superblock, die, row, cause, is_slc } => {
                self.advance_row(superblock, die, row);
                let begins = !self.units.contains_key(&superblock);
                if is_slc && begins {
                    assert_eq!(cause, Cause::Host, "the host alone writes to the cache");
                    self.slc.insert(superblock);
                }
                assert_eq!(is_slc, self.slc.contains(&superblock), "one mode until the erase");
                if cause == Cause::Parity {
                    self.units.entry(superblock).or_default().1 += 1;
                    self.tally.pages_parity += self.unit_bytes(superblock) / 4096;
                } else {
                    self.program_data(superblock, die, row, cause);
                }
            }
            MediaOp::Erase { superblock, die_first } => {
                assert_eq!(die_first.0, self.die_first(superblock));
                self.erase(superblock);
            }
        }
    }
}

/// One thing that is done to a drive.
#[derive(Clone, Debug)]
enum Command {
    WriteRandom {
        seed: u64,
        count: u32,
    },
    /// One page, over and over: all the invalid pages are young.
    WriteAgain {
        lpn: u32,
        count: u32,
    },
    WriteAscending {
        from: u32,
        count: u32,
    },
    Trim {
        from: u32,
        count: u32,
    },
    /// Data that takes so many bytes a page, from now on.
    Data {
        bytes: u64,
    },
    Purge,
    Condemn {
        count: u32,
    },
    /// Folds the cache in idle time.
    Fold {
        count: u32,
    },
}

/// Owner of a drive, as which the tests write.
trait Owner: Sized {
    fn format(config: &Config) -> Ftl<Self>;
    /// Announces a write; says whether there is space for it.
    fn announce(ftl: &mut Ftl<Self>, lpn: Lpn, extent: Bytes) -> bool;
    fn write(ftl: &mut Ftl<Self>, lpn: Lpn, extent: Bytes, flash: &mut Flash) -> Ppn;

    /// Folds a unit of the cache, if there is one.
    fn fold(_: &mut Ftl<Self>, _: &mut Flash) {}

    /// True if a superblock is not used again.
    fn condemn(_: &mut Ftl<Self>, _: SuperblockId) -> bool {
        false
    }

    /// Releases all that is erased.
    fn release(_: &mut Ftl<Self>) {}

    fn check_place(_: &Ftl<Self>, _: Ppn, _: &Flash) {}
}

impl Owner for Pace {
    fn format(config: &Config) -> Ftl {
        Ftl::format(config).expect("only feasible formats are drawn")
    }

    fn announce(ftl: &mut Ftl, lpn: Lpn, extent: Bytes) -> bool {
        ftl.expect_extents_of(extent);
        ftl.has_space_for(std::iter::once(lpn), 0)
    }

    fn write(ftl: &mut Ftl, lpn: Lpn, _: Bytes, flash: &mut Flash) -> Ppn {
        ftl.write(0, lpn, flash)
    }

    fn fold(ftl: &mut Ftl, flash: &mut Flash) {
        let state = |id| ftl.superblock(id).state;
        let is_busy = superblocks(ftl).any(|id| state(id) == SuperblockState::Victim);
        let (cached, wants) = (slc_count(ftl), ftl.wants_folding());
        let before = flash.tally.pages_relocation;
        if !ftl.needs_room() {
            ftl.fold_unit(flash);
            assert!(slc_count(ftl) <= cached, "folding empties the cache");
            let moved = flash.tally.pages_relocation > before;
            assert!(wants || is_busy || !moved, "nothing is relocated but the cache");
        }
    }

    fn check_place(ftl: &Ftl, ppn: Ppn, flash: &Flash) {
        let buffered = ftl.is_buffered(ftl.unit_of(ppn));
        assert_eq!(buffered, flash.buffer.contains_key(&ppn), "{ppn:?}");
    }
}

impl Owner for Debt {
    fn format(config: &Config) -> Ftl<Self> {
        indebted(config)
    }

    fn announce(ftl: &mut Ftl<Self>, lpn: Lpn, extent: Bytes) -> bool {
        ftl.has_space_for_extents(std::iter::once((lpn, extent)), Bytes::ZERO)
    }

    fn write(ftl: &mut Ftl<Self>, lpn: Lpn, extent: Bytes, flash: &mut Flash) -> Ppn {
        write_paid(ftl, lpn, extent, flash)
    }

    fn condemn(ftl: &mut Ftl<Self>, id: SuperblockId) -> bool {
        ftl.condemn(id)
    }

    fn release(ftl: &mut Ftl<Self>) {
        ftl.release_erased(ftl.held_erased().len());
    }

    fn check_place(ftl: &Ftl<Self>, ppn: Ppn, _: &Flash) {
        assert!(ftl.map().is_valid(ppn), "{ppn:?}");
    }
}

fn superblocks<C>(ftl: &Ftl<C>) -> impl Iterator<Item = SuperblockId> + use<C> {
    (0..ftl.config().geometry.superblocks()).map(SuperblockId)
}

fn slc_count<C>(ftl: &Ftl<C>) -> usize {
    superblocks(ftl).filter(|id| ftl.superblock(*id).is_slc).count()
}

/// A drive, its media and the plain map that it must equal.
struct Pair<C> {
    ftl: Ftl<C>,
    flash: Flash,
    map: Vec<Option<(u32, u64)>>,
    writes: u64,
    host_bytes: u64,
    /// Bytes that a page takes which is written now.
    extent_bytes: u64,
    trims: u64,
}

impl<C: Owner> Pair<C> {
    fn new(config: &Config, contents: Contents) -> Self {
        let flash = Flash::new(config, contents);
        let map = vec![None; config.pages_logical as usize];
        let extent_bytes = config.geometry.page_bytes();
        let ftl = C::format(config);
        Self { ftl, flash, map, writes: 0, host_bytes: 0, extent_bytes, trims: 0 }
    }

    /// Carries out commands, and checks after each all that holds between any two.
    fn run(mut self, commands: &[Command]) {
        for command in commands {
            self.carry_out(command);
            self.ftl.check_invariants();
            self.check_mapping();
            self.check_conservation();
            self.check_room();
            self.check_parity();
        }
    }

    fn carry_out(&mut self, command: &Command) {
        let pages = self.ftl.config().pages_logical;
        match *command {
            Command::WriteRandom { seed, count } => {
                let mut rng = Rng::new(seed);
                for _ in 0..count {
                    let lpn = u32::try_from(rng.below(pages.into())).expect("below a u32");
                    self.write(Lpn(lpn));
                }
            }
            Command::WriteAscending { from, count } => {
                (0..count).for_each(|step| self.write(Lpn((from + step) % pages)));
            }
            Command::WriteAgain { lpn, count } => {
                (0..count).for_each(|_| self.write(Lpn(lpn % pages)));
            }
            Command::Trim { from, count } => {
                (0..count.min(pages)).for_each(|step| self.trim(Lpn((from + step) % pages)));
            }
            Command::Data { bytes } => {
                if self.flash.extents_per_page > 1 {
                    let granules_min = 64_u64.div_ceil(self.flash.extents_per_page.into());
                    self.extent_bytes = bytes.next_multiple_of(64).clamp(granules_min * 64, 4096);
                }
            }
            Command::Purge => self.purge(),
            Command::Fold { count } => (0..count).for_each(|_| self.fold()),
            Command::Condemn { count } => (0..count).for_each(|_| self.condemn()),
        }
    }

    /// Writes a page, or hears that there is no space for it, which is then so.
    fn write(&mut self, lpn: Lpn) {
        let was_bytes = self.map[lpn.0 as usize].map_or(0, |(_, bytes)| bytes);
        let stored_bytes = self.stored_bytes() - was_bytes + self.extent_bytes;
        let fits =
            stored_bytes <= self.ftl.occupancy().stored_max.0 || self.extent_bytes <= was_bytes;
        let extent = Bytes(self.extent_bytes);
        assert_eq!(C::announce(&mut self.ftl, lpn, extent), fits, "{lpn:?}");
        if !fits {
            return;
        }
        self.writes += 1;
        self.flash.relocated_running = 0;
        self.host_bytes += self.extent_bytes;
        let version = u32::try_from(self.writes).expect("few writes");
        self.flash.incoming = Some((lpn, version, self.extent_bytes));
        let ppn = C::write(&mut self.ftl, lpn, extent, &mut self.flash);
        if let Some(content) = self.flash.incoming.take() {
            self.flash.buffer.insert(ppn, content);
        }
        self.map[lpn.0 as usize] = Some((version, self.extent_bytes));
        self.check_page(lpn);
    }

    fn trim(&mut self, lpn: Lpn) {
        self.ftl.trim(lpn);
        self.trims += u64::from(self.map[lpn.0 as usize].take().is_some());
        self.check_page(lpn);
    }

    fn purge(&mut self) {
        let used = [SuperblockState::Open, SuperblockState::Closed, SuperblockState::Victim];
        let erased = self.count(|state| used.contains(&state));
        self.flash.tally.superblocks_erased += u64::from(erased);
        self.flash.purge();
        self.ftl.purge();
        C::release(&mut self.ftl);
        self.map.fill(None);
    }

    /// Condemns a free superblock, where one is left and the owner and the drive can do without.
    fn condemn(&mut self) {
        let is_free = |id: &SuperblockId| self.ftl.superblock(*id).state == SuperblockState::Free;
        let Some(superblock) = superblocks(&self.ftl).find(is_free) else { return };
        if C::condemn(&mut self.ftl, superblock) {
            assert_eq!(self.ftl.superblock(superblock).state, SuperblockState::Bad);
            self.flash.retired.insert(superblock);
        }
    }

    /// Folds a unit of the cache, behind what is being reclaimed already; begins nothing else.
    fn fold(&mut self) {
        self.flash.relocated_running = 0;
        C::fold(&mut self.ftl, &mut self.flash);
    }

    fn count(&self, holds: impl Fn(SuperblockState) -> bool) -> u32 {
        let state = |id| self.ftl.superblock(id).state;
        let count = superblocks(&self.ftl).filter(|id| holds(state(*id))).count();
        u32::try_from(count).expect("few superblocks")
    }

    /// Bytes that the stored pages take, by the plain map.
    fn stored_bytes(&self) -> u64 {
        self.map.iter().flatten().map(|(_, bytes)| bytes).sum()
    }

    /// One logical page reads as the map says.
    fn check_page(&self, lpn: Lpn) {
        let expected = self.map[lpn.0 as usize].map(|(version, bytes)| (lpn, version, bytes));
        let ppn = self.ftl.lookup(lpn);
        assert_eq!(ppn.and_then(|ppn| self.flash.read(ppn)), expected, "{lpn:?} at {ppn:?}");
        if let Some(ppn) = ppn {
            C::check_place(&self.ftl, ppn, &self.flash);
        }
    }

    /// Every logical page reads as the map says, and free superblocks hold none.
    fn check_mapping(&self) {
        let mut taken = BTreeSet::new();
        for lpn in (0..self.ftl.config().pages_logical).map(Lpn) {
            self.check_page(lpn);
            if let Some(ppn) = self.ftl.lookup(lpn) {
                assert!(taken.insert(ppn), "{ppn:?} is mapped twice");
                let superblock = SuperblockId(ppn.0 / self.flash.places_per_superblock());
                let state = self.ftl.superblock(superblock).state;
                assert!(![SuperblockState::Free, SuperblockState::Bad].contains(&state));
            }
        }
        let occupancy = self.ftl.occupancy();
        assert_eq!(occupancy.stored, Bytes(self.stored_bytes()));
        let free = self.count(|state| state == SuperblockState::Free);
        assert_eq!(occupancy.superblocks_free, free);
    }

    /// Host + relocation + wear extents were placed, and each is programmed, buffered or dropped;
    /// with padding and parity they are all that was programmed.
    fn check_conservation(&self) {
        let (counters, tally) = (self.ftl.counters(), &self.flash.tally);
        let pages = self.flash.geometry.counted_per_page();
        assert_eq!(counters.pages_host, self.writes * pages);
        assert_eq!(counters.pages_relocation, tally.pages_relocation);
        assert_eq!(counters.pages_wear, tally.pages_wear);
        assert_eq!(counters.pages_parity, tally.pages_parity);
        assert_eq!(counters.pages_trimmed, self.trims * pages);
        assert_eq!(counters.superblocks_erased, tally.superblocks_erased);
        assert_eq!(counters.padding_bytes, tally.padding_bytes);
        let placed_bytes = self.host_bytes + tally.relocation_bytes + tally.wear_bytes;
        let waiting_bytes = self.flash.buffered_bytes() + tally.dropped_bytes;
        assert_eq!(tally.programmed_bytes + waiting_bytes, placed_bytes);
        let parity_bytes = tally.pages_parity * 4096;
        let programmed_bytes = placed_bytes + tally.padding_bytes + parity_bytes;
        assert_eq!(counters.programmed_bytes(), programmed_bytes);
    }

    /// Checks that room is all that is neither programmed nor buffered nor bad.
    fn check_room(&self) {
        let geometry = &self.flash.geometry;
        let bad = self.count(|state| state == SuperblockState::Bad);
        let good_bytes = u64::from(geometry.superblocks() - bad)
            * u64::from(geometry.pages_per_superblock())
            * geometry.page_bytes();
        let units = self.flash.units.iter();
        let programmed_bytes: u64 =
            units.map(|(id, (data, _))| u64::from(*data) * self.flash.unit_bytes(*id)).sum();
        // What cells in SLC mode do not hold.
        let superblock_bytes = good_bytes / u64::from((geometry.superblocks() - bad).max(1));
        let lost_bytes = superblock_bytes - superblock_bytes / u64::from(self.flash.bits_per_cell);
        let lost_bytes = lost_bytes * slc_count(&self.ftl) as u64;
        let used_bytes = programmed_bytes + lost_bytes + self.flash.buffered_bytes();
        assert_eq!(self.ftl.occupancy().room, Bytes(good_bytes - used_bytes));
    }

    /// Each stripe whose data is complete has its parity, and no other.
    fn check_parity(&self) {
        let stripe_dies = self.flash.geometry.stripe_dies;
        for (id, (data, parity)) in &self.flash.units {
            let completed = data.checked_div(stripe_dies.saturating_sub(1)).unwrap_or(0);
            assert_eq!(*parity, completed, "{id:?} has {data} data units");
        }
    }
}

fn geometries() -> impl Strategy<Value = Geometry> {
    let stripes = prop_oneof![
        (Just(0_u32), 1_u32..6),
        (Just(2_u32), 1_u32..4),
        (Just(4_u32), 1_u32..3),
        (Just(8_u32), Just(1_u32)),
    ];
    let pages = prop_oneof![Just(4_u32), Just(8), Just(16)];
    (1_u32..=4, stripes, 1_u32..=2, 1_u32..6, pages).prop_map(
        |(banks, (stripe_dies, stripes), planes_per_die, rows, page_kib)| Geometry {
            banks,
            dies_per_bank: stripe_dies.max(1) * stripes,
            planes_per_die,
            erase_blocks_per_plane: 1,
            pages_per_erase_block: rows,
            page_kib,
            indirection_kib: 4,
            stripe_dies,
        },
    )
}

fn contents() -> impl Strategy<Value = Contents> {
    prop_oneof![Just(Contents::Kept), Just(Contents::Asked), Just(Contents::AskedInVain)]
}

fn policies() -> impl Strategy<Value = VictimPolicy> {
    prop_oneof![
        Just(VictimPolicy::Greedy),
        Just(VictimPolicy::Fifo),
        Just(VictimPolicy::CostBenefit),
        (1_u32..5).prop_map(|choices| VictimPolicy::DChoices { choices }),
    ]
}

prop_compose! {
    fn watermarks()(
        low in 1_u32..3, high in 1_u32..5, burst in 0.1..3.0, price_max in 0.0..8.0,
        batch_pages in 1_u32..100,
    ) -> Watermarks {
        Watermarks { low, high: low + high, burst, price_max, batch_pages }
    }
}

prop_compose! {
    /// A feasible format: superblocks beyond the reserved ones, part of which the host sees.
    fn configs()(
        geometry in geometries(), victim in policies(), watermarks in watermarks(),
        spare in 2_u32..12, used_percent in 1_u64..101, wear_spread_max in 0_u32..4,
        extents_per_page in prop_oneof![Just(1_u32), Just(2), Just(4)],
        multiplied_percent in prop_oneof![Just(100_u32), 100_u32..400],
        (coarse_kib, slc_bits) in (prop_oneof![Just(4_u32), Just(8), Just(16)], 2_u32..5),
        (slc_static, slc_dynamic) in prop_oneof![Just((0_u32, 0_u32)), (0_u32..3, 0_u32..12)],
        seed: u64,
    ) -> Config {
        let banks = geometry.banks;
        let open = if wear_spread_max == 0 { 2 * banks } else { 3 * banks };
        let watermarks =
            Watermarks { low: watermarks.low + open, high: watermarks.high + open, ..watermarks };
        // An extent lies in one unit, so a unit of one page would hold one extent.
        let extents_per_page = if geometry.pages_per_unit() > 1 { extents_per_page } else { 1 };
        let mut geometry = geometry;
        if extents_per_page == 1
            && (geometry.planes_per_die * geometry.page_kib).is_multiple_of(coarse_kib)
        {
            geometry.indirection_kib = coarse_kib;
        }
        let cache = SlcCache {
            bits_per_cell: slc_bits,
            superblocks_static: slc_static,
            superblocks_dynamic: slc_dynamic,
            full_at: f64::from(slc_bits) / 4.0,
        };
        let fits = geometry.pages_per_unit().is_multiple_of(slc_bits) && extents_per_page == 1;
        let cached = fits && slc_static + slc_dynamic > 0;
        let direct = if cached { banks } else { 0 };
        let watermarks = Watermarks {
            low: watermarks.low + direct,
            high: watermarks.high + direct,
            ..watermarks
        };
        let mut config = Config {
            geometry,
            pages_logical: 1,
            pages_stored_max: 1,
            extents_per_page,
            victim,
            watermarks,
            wear_spread_max,
            handles: ReclaimUnitHandles::ONE,
            slc_cache: cached.then_some(cache),
            seed,
        };
        let superblocks = config.superblocks_reserved() + spare;
        config.geometry.erase_blocks_per_plane = superblocks.div_ceil(banks);
        let usable = config.geometry.superblocks() - config.superblocks_reserved();
        let units = geometry.pages_per_superblock() / geometry.pages_per_unit();
        // All but a granule of a page may be lost in each unit.
        let unit_granules = u64::from(geometry.pages_per_unit()) * 64;
        let lost = if extents_per_page > 1 { 63 } else { 0 };
        let pages = u64::from(usable) * u64::from(units) * (unit_granules - lost) / 64;
        let used = (pages * used_percent / 100).clamp(1, pages - 1);
        config.pages_stored_max = u32::try_from(used).expect("a small geometry");
        let multiplied = if extents_per_page > 1 { multiplied_percent } else { 100 };
        config.pages_logical = config.pages_stored_max * multiplied / 100;
        config
    }
}

fn commands() -> impl Strategy<Value = Command> {
    prop_oneof![
        2 => (0_u32..5000, 1_u32..3000)
            .prop_map(|(lpn, count)| Command::WriteAgain { lpn, count }),
        8 => (any::<u64>(), 1_u32..1500)
            .prop_map(|(seed, count)| Command::WriteRandom { seed, count }),
        4 => (0_u32..5000, 1_u32..800)
            .prop_map(|(from, count)| Command::WriteAscending { from, count }),
        4 => (0_u32..5000, 1_u32..300).prop_map(|(from, count)| Command::Trim { from, count }),
        4 => (0_u64..5000).prop_map(|bytes| Command::Data { bytes }),
        1 => Just(Command::Purge),
        2 => (1_u32..10).prop_map(|count| Command::Condemn { count }),
        3 => (1_u32..200).prop_map(|count| Command::Fold { count }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn any_sequence_of_commands_equals_a_plain_map(
        config in configs(),
        contents in contents(),
        commands in prop::collection::vec(commands(), 1..24),
    ) {
        if contents == Contents::Kept {
            Pair::<Pace>::new(&config, contents).run(&commands);
        } else {
            let config = Config { slc_cache: None, ..config };
            Pair::<Debt>::new(&config, contents).run(&commands);
        }
    }
}
