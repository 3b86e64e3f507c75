//! Any sequence of commands equals a plain map, and the media is used as NAND allows.
//!
//! The media of these tests keeps what each page holds. It obeys the write-buffer rule: a page that
//! has a place is in the buffer until its unit is programmed, and is read from there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use blockio::Rng;
use ftl::{
    Cause, Config, DieId, Ftl, Geometry, Lpn, Media, MediaOp, Ppn, SuperblockId, SuperblockState,
    VictimPolicy, Watermarks,
};
use proptest::prelude::*;

/// What one page holds: which logical page, and how often that had been written.
type Content = (Lpn, u32);

/// NAND that stores a version number a page, and refuses what NAND cannot do.
struct Flash {
    geometry: Geometry,
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
    tally: Tally,
}

/// What the media was asked to do since the format.
#[derive(Default)]
struct Tally {
    pages_programmed: u64,
    pages_parity: u64,
    pages_relocation: u64,
    pages_wear: u64,
    pages_dropped: u64,
    superblocks_erased: u64,
}

impl Flash {
    fn new(ftl: &Ftl, geometry: Geometry) -> Self {
        let mut page_first = BTreeMap::new();
        let units_per_row = geometry.data_units_per_row();
        for unit in 0..geometry.pages_per_erase_block * units_per_row {
            let DieId(die) = ftl.die_of((SuperblockId(0), unit));
            let place = (die, unit / units_per_row);
            let taken = page_first.insert(place, unit * geometry.pages_per_unit());
            assert_eq!(taken, None, "two units at {place:?}");
        }
        let pages = usize::try_from(geometry.pages()).expect("a small geometry");
        Self {
            geometry,
            page_first,
            programmed: vec![None; pages],
            buffer: BTreeMap::new(),
            incoming: None,
            row_next: BTreeMap::new(),
            units: BTreeMap::new(),
            retired: BTreeSet::new(),
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

    fn program_data(&mut self, superblock: SuperblockId, die: DieId, row: u32) {
        let die_of_bank = die.0 - self.die_first(superblock);
        let page_first = self.page_first[&(die_of_bank, row)];
        let first = superblock.0 * self.geometry.pages_per_superblock() + page_first;
        for ppn in (first..first + self.geometry.pages_per_unit()).map(Ppn) {
            // The page that fills the unit arrives with the command itself.
            let content = self.buffer.remove(&ppn).or_else(|| self.incoming.take());
            assert_eq!(self.programmed[ppn.0 as usize], None, "{ppn:?} was not erased");
            self.programmed[ppn.0 as usize] = Some(content.expect("all data has arrived"));
            self.tally.pages_programmed += 1;
        }
        self.units.entry(superblock).or_default().0 += 1;
    }

    fn erase(&mut self, superblock: SuperblockId) {
        let pages = self.geometry.pages_per_superblock();
        let first = superblock.0 * pages;
        for ppn in first..first + pages {
            self.programmed[ppn as usize] = None;
        }
        self.row_next.retain(|(erased, _), _| *erased != superblock);
        self.units.remove(&superblock);
        self.tally.superblocks_erased += 1;
    }

    /// What the owner of the drive does when it is purged.
    fn purge(&mut self) {
        self.tally.pages_dropped += self.buffer.len() as u64;
        self.buffer.clear();
        self.programmed.fill(None);
        self.row_next.clear();
        self.units.clear();
    }
}

impl Media for Flash {
    fn submit(&mut self, op: MediaOp) {
        match op {
            MediaOp::Relocate { from, die, to, cause } => {
                let pages = self.geometry.pages_per_superblock();
                let superblock = SuperblockId(from.0 / pages);
                assert!(
                    self.dies_of(superblock).contains(&die.0),
                    "{die:?} does not hold {from:?}"
                );
                let content = self.programmed[from.0 as usize].expect("a victim is programmed");
                self.buffer.insert(to, content);
                match cause {
                    Cause::Wear => self.tally.pages_wear += 1,
                    _ => self.tally.pages_relocation += 1,
                }
            }
            MediaOp::Program { superblock, die, row, cause } => {
                self.advance_row(superblock, die, row);
                if cause == Cause::Parity {
                    self.units.entry(superblock).or_default().1 += 1;
                    self.tally.pages_parity += u64::from(self.geometry.pages_per_unit());
                } else {
                    self.program_data(superblock, die, row);
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
    Purge,
    Retire {
        count: u32,
    },
}

/// A drive, its media and the plain map that it must equal.
struct Pair {
    ftl: Ftl,
    flash: Flash,
    map: Vec<Option<u32>>,
    writes: u64,
    trims: u64,
}

impl Pair {
    fn new(config: &Config) -> Self {
        let ftl = Ftl::format(config).expect("only feasible formats are drawn");
        let flash = Flash::new(&ftl, config.geometry);
        let map = vec![None; config.pages_logical as usize];
        Self { ftl, flash, map, writes: 0, trims: 0 }
    }

    fn carry_out(&mut self, command: &Command) {
        let pages = self.ftl.pages_logical();
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
            Command::Purge => self.purge(),
            Command::Retire { count } => (0..count).for_each(|_| self.retire()),
        }
    }

    fn write(&mut self, lpn: Lpn) {
        self.writes += 1;
        let version = u32::try_from(self.writes).expect("few writes");
        self.flash.incoming = Some((lpn, version));
        let ppn = self.ftl.write(lpn, &mut self.flash);
        if let Some(content) = self.flash.incoming.take() {
            self.flash.buffer.insert(ppn, content);
        }
        self.map[lpn.0 as usize] = Some(version);
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
        self.map.fill(None);
    }

    /// Retires a free superblock, where one is left and the drive can do without.
    fn retire(&mut self) {
        let is_free = |id: &SuperblockId| self.ftl.superblock_state(*id) == SuperblockState::Free;
        let Some(superblock) = self.superblocks().find(is_free) else { return };
        self.flash.retired.insert(superblock);
        if self.ftl.retire(superblock, &mut self.flash).is_err() {
            self.flash.retired.remove(&superblock);
            assert_eq!(self.ftl.superblock_state(superblock), SuperblockState::Free);
        }
    }

    fn superblocks(&self) -> impl Iterator<Item = SuperblockId> + use<> {
        (0..self.ftl.superblocks()).map(SuperblockId)
    }

    fn count(&self, holds: impl Fn(SuperblockState) -> bool) -> u32 {
        let count = self.superblocks().filter(|id| holds(self.ftl.superblock_state(*id))).count();
        u32::try_from(count).expect("few superblocks")
    }

    /// One logical page reads as the map says.
    fn check_page(&self, lpn: Lpn) {
        let expected = self.map[lpn.0 as usize].map(|version| (lpn, version));
        let ppn = self.ftl.lookup(lpn);
        assert_eq!(ppn.and_then(|ppn| self.flash.read(ppn)), expected, "{lpn:?} at {ppn:?}");
        if let Some(ppn) = ppn {
            let buffered = self.ftl.is_buffered(self.ftl.unit_of(ppn));
            assert_eq!(buffered, self.flash.buffer.contains_key(&ppn), "{ppn:?}");
            assert_eq!(self.ftl.logical(ppn), Some(lpn));
        }
    }

    /// Every logical page reads as the map says, and the valid counts equal a recount.
    fn check_mapping(&self) {
        let mut pages_valid = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for lpn in (0..self.ftl.pages_logical()).map(Lpn) {
            self.check_page(lpn);
            if let Some(ppn) = self.ftl.lookup(lpn) {
                assert!(taken.insert(ppn), "{ppn:?} is mapped twice");
                *pages_valid.entry(self.ftl.unit_of(ppn).0).or_insert(0) += 1;
            }
        }
        for id in self.superblocks() {
            let recount = pages_valid.get(&id).copied().unwrap_or(0);
            assert_eq!(self.ftl.pages_valid(id), recount, "{id:?}");
            let holds_nothing = [SuperblockState::Free, SuperblockState::Bad];
            assert!(recount == 0 || !holds_nothing.contains(&self.ftl.superblock_state(id)));
        }
        let free = self.count(|state| state == SuperblockState::Free);
        assert_eq!(self.ftl.superblocks_free(), free);
    }

    /// Host + relocation + wear pages were placed, and each is programmed, buffered or dropped.
    fn check_conservation(&self) {
        let (counters, tally) = (self.ftl.counters(), &self.flash.tally);
        assert_eq!(counters.pages_host, self.writes);
        assert_eq!(counters.pages_relocation, tally.pages_relocation);
        assert_eq!(counters.pages_wear, tally.pages_wear);
        assert_eq!(counters.pages_parity, tally.pages_parity);
        assert_eq!(counters.pages_trimmed, self.trims);
        assert_eq!(counters.superblocks_erased, tally.superblocks_erased);
        let placed = counters.pages_host + counters.pages_relocation + counters.pages_wear;
        let buffered = self.flash.buffer.len() as u64;
        assert_eq!(tally.pages_programmed + buffered + tally.pages_dropped, placed);
    }

    /// What is neither programmed nor buffered nor bad is room.
    fn check_room(&self) {
        let bad = self.count(|state| state == SuperblockState::Bad);
        let good = u64::from(self.ftl.superblocks() - bad)
            * u64::from(self.flash.geometry.pages_per_superblock());
        let programmed = self.flash.programmed.iter().flatten().count();
        let taken = programmed + self.flash.buffer.len();
        assert_eq!(self.ftl.room_pages(), good - taken as u64);
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
            stripe_dies,
        },
    )
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
        seed: u64,
    ) -> Config {
        let banks = geometry.banks;
        let open = if wear_spread_max == 0 { 2 * banks } else { 3 * banks };
        let watermarks =
            Watermarks { low: watermarks.low + open, high: watermarks.high + open, ..watermarks };
        let mut config =
            Config {
 geometry, pages_logical: 1, victim, watermarks, wear_spread_max, spares_per_die: 0, seed };
        let superblocks = config.superblocks_reserved() + spare;
        config.geometry.erase_blocks_per_plane = superblocks.div_ceil(banks);
        let usable = config.geometry.superblocks() - config.superblocks_reserved();
        let pages = u64::from(usable) * u64::from(geometry.pages_per_superblock());
        let used = (pages * used_percent / 100).clamp(1, pages - 1);
        config.pages_logical = u32::try_from(used).expect("a small geometry");
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
        1 => Just(Command::Purge),
        2 => (1_u32..10).prop_map(|count| Command::Retire { count }),
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
        commands in prop::collection::vec(commands(), 1..24),
    ) {
        let mut pair = Pair::new(&config);
        for command in &commands {
            pair.carry_out(command);
            pair.check_mapping();
            pair.check_conservation();
            pair.check_room();
            pair.check_parity();
        }
    }
}
