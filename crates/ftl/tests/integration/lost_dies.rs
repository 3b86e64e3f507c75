//! Loss of dies: no page is placed on them from then on, what they held is rebuilt or lost,
//! redundancy is restored, and less spare space makes relocation dearer.

use std::collections::{BTreeMap, BTreeSet};

use blockio::Rng;
use ftl::{
    Cause, Config, ConfigError, DieId, DieLoss, Ftl, Geometry, Lpn, MediaOp, NoMedia, Redundancy,
    Watermarks,
};

use crate::SMALL;

/// Two banks of eight dies in stripes of `stripe_dies`, with a fifth of spare space.
fn config(stripe_dies: u32) -> Config {
    let geometry = Geometry {
        banks: 2,
        dies_per_bank: 8,
        planes_per_die: 2,
        erase_blocks_per_plane: 60,
        pages_per_erase_block: 16,
        page_kib: 8,
        stripe_dies,
        indirection_kib: 4,
    };
    let pages_logical = u32::try_from(geometry.pages() * 7 / 10).expect("a small drive");
    Config {
        geometry,
        pages_logical,
        pages_stored_max: pages_logical,
        watermarks: Watermarks { low: 7, high: 9, burst: 0.3, price_max: 10.0, batch_pages: 1 },
        ..SMALL
    }
}

/// Refusal where too many dies would be missing, whatever the spare space.
const DATA_MISSING: &str = "dies that hold data is 0, must be at least 1 in each row";

/// A loss that took nothing with it.
const KEPT: DieLoss = DieLoss { pages_lost: 0, pages_held: 60 * 16 * 4, is_writable: true };

/// A drive that was written twice over at random.
fn settled(stripe_dies: u32) -> (Ftl, Rng) {
    settled_as(&config(stripe_dies))
}

fn settled_as(config: &Config) -> (Ftl, Rng) {
    let mut ftl = Ftl::format(config).expect("a feasible format");
    let mut rng = Rng::new(3);
    (0..ftl.config().pages_logical).for_each(|lpn| _ = ftl.write(0, Lpn(lpn), &mut NoMedia));
    write(&mut ftl, &mut rng, 2, &mut Vec::new());
    (ftl, rng)
}

/// Writes at random, and keeps what the media had to do; returns pages relocated for each page.
fn write(ftl: &mut Ftl, rng: &mut Rng, drive_writes: u32, ops: &mut Vec<MediaOp>) -> f64 {
    let before = ftl.counters();
    for _ in 0..ftl.config().pages_logical * drive_writes {
        let lpn = u32::try_from(rng.below(ftl.config().pages_logical.into())).expect("below a u32");
        ftl.write(0, Lpn(lpn), ops);
    }
    let after = ftl.counters();
    let relocated = after.pages_relocation - before.pages_relocation;
    relocated as f64 / (after.pages_host - before.pages_host) as f64
}

/// Pages on a die.
fn pages_on(ftl: &Ftl, die: DieId) -> usize {
    let is_there =
        |lpn: &Lpn| ftl.lookup(*lpn).is_some_and(|ppn| ftl.die_of(ftl.unit_of(ppn)) == die);
    (0..ftl.config().pages_logical).map(Lpn).filter(is_there).count()
}

#[test]
fn a_lost_die_is_rebuilt_and_nothing_is_programmed_on_it_any_more() {
    for (stripe_dies, die) in [(8, DieId(3)), (4, DieId(0)), (4, DieId(13)), (2, DieId(15))] {
        let (mut ftl, mut rng) = settled(stripe_dies);
        let before = write(&mut ftl, &mut rng, 2, &mut Vec::new());
        let mut ops = Vec::new();
        assert_eq!(ftl.lose_die(die, &mut ops), Ok(KEPT), "nothing is lost with parity");
        ftl.check_invariants();
        let held = pages_on(&ftl, die);
        assert!(held > 1000, "it held data: {held}");
        while ftl.redundancy() == Redundancy::Rebuilding {
            ftl.relocate_unit(&mut ops);
        }
        ftl.check_invariants();
        assert_eq!(pages_on(&ftl, die), 0, "all of it was moved");
        let stored = (0..ftl.config().pages_logical).filter(|lpn| ftl.lookup(Lpn(*lpn)).is_some());
        assert_eq!(
            stored.count(),
            ftl.config().pages_logical as usize,
            "every page is still there"
        );
        let after = write(&mut ftl, &mut rng, 2, &mut ops);
        ftl.check_invariants();
        assert_eq!(pages_on(&ftl, die), 0);
        assert!(after > before * 1.05, "less spare space: {before:.3}, then {after:.3}");
        let on_it = |op: &&MediaOp| matches!(op, MediaOp::Program { die: on, .. } if *on == die);
        assert_eq!(ops.iter().filter(on_it).count(), 0, "nothing is programmed there");
        let parity = |op: &&MediaOp| matches!(op, MediaOp::Program { cause: Cause::Parity, .. });
        assert!(ops.iter().filter(parity).count() > 100, "parity goes on");
    }
}

#[test]
fn without_parity_the_pages_of_a_lost_die_are_lost_until_they_are_written_anew() {
    let (mut ftl, mut rng) = settled(0);
    let held = pages_on(&ftl, DieId(5));
    let lost = ftl.lose_die(DieId(5), &mut NoMedia).expect("there is such a die");
    assert!(lost.is_writable, "there is spare space");
    let lost = lost.pages_lost;
    let is_lost = |ftl: &Ftl, lpn: u32| ftl.is_page_lost(Lpn(lpn));
    let counted = (0..ftl.config().pages_logical).filter(|lpn| is_lost(&ftl, *lpn)).count();
    assert_eq!(lost, counted as u64);
    // What was still in the buffer is not lost.
    assert!(counted <= held && counted + 16 > held, "{counted} of {held}");
    assert_eq!(ftl.redundancy(), Redundancy::Whole, "nothing can be rebuilt");
    ftl.check_invariants();
    write(&mut ftl, &mut rng, 6, &mut Vec::new());
    let left = (0..ftl.config().pages_logical).filter(|lpn| is_lost(&ftl, *lpn)).count();
    assert!(left < counted / 100, "{left} of {counted} were not written since");
    ftl.check_invariants();
}

#[test]
fn a_die_that_a_drive_lacks_or_has_lost_is_refused() {
    let (mut ftl, _) = settled(8);
    let refused = ftl.lose_die(DieId(16), &mut NoMedia).map_err(|error| error.to_string());
    assert_eq!(refused, Err("die is 16, must be below 16, the dies of a module".to_owned()));
    assert_eq!(ftl.lose_die(DieId(1), &mut NoMedia), Ok(KEPT));
    let again = ftl.lose_die(DieId(1), &mut NoMedia).map_err(|error| error.to_string());
    assert_eq!(again, Err("die is 1, must be a die that is in service".to_owned()));
}

#[test]
fn a_drive_without_the_spare_space_for_a_lost_die_takes_no_more_and_keeps_what_it_has() {
    let mut tight = config(8);
    tight.pages_logical = u32::try_from(tight.geometry.pages() * 86 / 100).expect("a small drive");
    tight.pages_stored_max = tight.pages_logical;
    let mut ftl = Ftl::format(&tight).expect("a feasible format");
    (0..tight.pages_logical).for_each(|lpn| _ = ftl.write(0, Lpn(lpn), &mut NoMedia));
    let without = tight.check_without(&[DieId(1)]);
    assert!(matches!(without, Err(ConfigError::NoSpare { .. })), "{without:?}");
    let lost = ftl.lose_die(DieId(1), &mut NoMedia);
    assert_eq!(lost, Ok(DieLoss { is_writable: false, ..KEPT }), "parity has it all");
    assert!(
        !ftl.wants_room() && ftl.redundancy() == Redundancy::Exhausted,
        "there is nowhere to move it"
    );
    let before = ftl.counters();
    ftl.relocate_unit(&mut NoMedia);
    assert_eq!(ftl.counters(), before, "nothing is moved");
    let next = ftl.lose_die(DieId(2), &mut NoMedia).expect("there is such a die");
    assert!(next.pages_lost > 1000 && !next.is_writable, "two units are missing: {next:?}");
    ftl.check_invariants();
}

#[test]
fn a_stripe_of_which_too_little_is_left_takes_no_more() {
    for stripe_dies in [0, 2] {
        let mut narrow = config(stripe_dies);
        narrow.geometry.dies_per_bank = stripe_dies.max(1);
        narrow.geometry.banks = 16;
        narrow.pages_logical = u32::try_from(narrow.geometry.pages() / 4).expect("a small drive");
        narrow.pages_stored_max = narrow.pages_logical;
        narrow.watermarks = Watermarks { low: 40, high: 50, ..narrow.watermarks };
        let refused = narrow.check_without(&[DieId(3)]).map_err(|error| error.to_string());
        assert!(refused.as_ref().is_err_and(|text| text.starts_with(DATA_MISSING)), "{refused:?}");
    }
    let mut wide = config(4);
    wide.pages_logical = u32::try_from(wide.geometry.pages() / 4).expect("a small drive");
    wide.pages_stored_max = wide.pages_logical;
    assert!(wide.check_without(&[DieId(0), DieId(1), DieId(3), DieId(6)]).is_ok());
    let refused = wide.check_without(&[0, 1, 2, 4, 5, 6].map(DieId));
    assert!(refused.is_err_and(|error| error.to_string().starts_with(DATA_MISSING)));
}

#[test]
fn dies_fail_one_after_another_and_nothing_is_lost_once_redundancy_was_restored() {
    let mut spacious = config(8);
    spacious.pages_logical = u32::try_from(spacious.geometry.pages() / 2).expect("a small drive");
    spacious.pages_stored_max = spacious.pages_logical;
    let (mut ftl, mut rng) = settled_as(&spacious);
    let mut relocated = write(&mut ftl, &mut rng, 2, &mut Vec::new());
    for die in [DieId(3), DieId(4), DieId(12), DieId(0)] {
        assert_eq!(ftl.lose_die(die, &mut NoMedia), Ok(KEPT), "{die:?}");
        assert!(ftl.redundancy() == Redundancy::Rebuilding);
        while ftl.redundancy() == Redundancy::Rebuilding {
            ftl.relocate_unit(&mut NoMedia);
        }
        assert_eq!(pages_on(&ftl, die), 0, "its data was rebuilt first");
        assert_eq!(
            ftl.redundancy(),
            Redundancy::Restoring,
            "the others of its stripes lack a unit still"
        );
        while ftl.redundancy() == Redundancy::Restoring {
            ftl.relocate_unit(&mut NoMedia);
        }
        ftl.check_invariants();
        let dearer = write(&mut ftl, &mut rng, 3, &mut Vec::new());
        assert!(dearer > relocated, "less spare space each time: {relocated:.3}, then {dearer:.3}");
        relocated = dearer;
    }
}

#[test]
fn a_second_die_takes_with_it_what_had_not_been_made_redundant_again() {
    let (mut ftl, _) = settled(8);
    assert_eq!(ftl.lose_die(DieId(3), &mut NoMedia), Ok(KEPT));
    while ftl.redundancy() == Redundancy::Rebuilding {
        ftl.relocate_unit(&mut NoMedia);
    }
    let whole = ftl.clone().lose_die(DieId(12), &mut NoMedia).expect("there is such a die");
    assert_eq!(whole, KEPT, "the other bank has stripes of its own");
    let held = pages_on(&ftl, DieId(4)) as u64;
    let lost = ftl.lose_die(DieId(4), &mut NoMedia).expect("there is such a die").pages_lost;
    assert!(lost > held / 2 && lost <= held, "{lost} of {held} pages");
    ftl.check_invariants();
}

/// Rows of the media, by what was programmed and erased alone: the dies that hold a unit of each,
/// and those of them that have been lost since.
#[derive(Default)]
struct Rows {
    rows: BTreeMap<(u32, u32), (BTreeSet<u32>, BTreeSet<u32>)>,
    gone: BTreeSet<DieId>,
}

impl Rows {
    fn see(&mut self, ops: &mut Vec<MediaOp>) {
        for op in ops.drain(..) {
            match op {
                MediaOp::Program { superblock, die, row, .. } => {
                    assert!(!self.gone.contains(&die), "{die:?} is programmed, and was lost");
                    self.rows.entry((superblock.0, row)).or_default().0.insert(die.0);
                }
                MediaOp::Erase { superblock, .. } => {
                    self.rows.retain(|(of, _), _| *of != superblock.0);
                }
                MediaOp::Relocate { .. } => {}
            }
        }
    }

    fn lose(&mut self, die: DieId) {
        for (programmed, lost) in self.rows.values_mut() {
            lost.extend(programmed.contains(&die.0).then_some(die.0));
        }
    }

    /// True if a page can be read, from its die or from the rest of its stripe.
    fn is_readable(&self, ftl: &Ftl, lpn: Lpn) -> bool {
        let Some(ppn) = ftl.lookup(lpn) else { return false };
        let unit = ftl.unit_of(ppn);
        let spared = usize::from(ftl.config().geometry.stripe_dies > 0);
        ftl.is_buffered(unit)
            || !self.of(ftl, unit).1.contains(&ftl.die_of(unit).0)
            || self.lacking(ftl, lpn) <= spared
    }

    /// Units of the stripe of a page that were lost; none of a page in the buffer.
    fn lacking(&self, ftl: &Ftl, lpn: Lpn) -> usize {
        let Some(ppn) = ftl.lookup(lpn) else { return 0 };
        let (unit, geometry) = (ftl.unit_of(ppn), &ftl.config().geometry);
        if ftl.is_buffered(unit) {
            return 0;
        }
        let (_, lost) = self.of(ftl, unit);
        let die = ftl.die_of(unit).0;
        let first = die / geometry.dies_per_bank * geometry.dies_per_bank;
        let others = geometry.stripe_of(unit.index).filter(|die| lost.contains(&(first + die)));
        others.count() + usize::from(lost.contains(&die))
    }

    fn of(&self, ftl: &Ftl, unit: ftl::Unit) -> &(BTreeSet<u32>, BTreeSet<u32>) {
        let row = unit.index / ftl.config().geometry.data_units_per_row();
        &self.rows[&(unit.superblock.0, row)]
    }
}

#[test]
fn what_is_lost_with_dies_is_what_the_media_cannot_give_back() {
    for seed in 0..24 {
        let mut rng = Rng::new(seed);
        let stripe_dies = [0, 2, 4, 8][usize::try_from(seed % 4).expect("below 4")];
        let mut spacious = config(stripe_dies);
        spacious.pages_logical = u32::try_from(spacious.geometry.pages() / 3).expect("small");
        spacious.pages_stored_max = spacious.pages_logical;
        let mut ftl = Ftl::format(&spacious).expect("a feasible format");
        let (mut rows, mut ops) = (Rows::default(), Vec::new());
        (0..spacious.pages_logical).for_each(|lpn| _ = ftl.write(0, Lpn(lpn), &mut ops));
        let mut gone = BTreeSet::new();
        for _ in 0..6 {
            for _ in 0..rng.below(60_000) {
                let lpn = rng.below(spacious.pages_logical.into());
                ftl.write(0, Lpn(u32::try_from(lpn).expect("a page")), &mut ops);
                if rng.below(4) == 0 {
                    ftl.relocate_unit(&mut ops);
                }
            }
            rows.see(&mut ops);
            if ftl.redundancy() == Redundancy::Whole && stripe_dies > 0 {
                let is_whole = |lpn: u32| rows.lacking(&ftl, Lpn(lpn)) == 0;
                assert!((0..spacious.pages_logical).all(is_whole), "seed {seed} is redundant");
            }
            let die = DieId(u32::try_from(rng.below(16)).expect("a die"));
            let dies: Vec<DieId> = gone.iter().copied().chain([die]).collect();
            if spacious.check_without(&dies).is_err() {
                continue;
            }
            let written: Vec<Lpn> = (0..spacious.pages_logical).map(Lpn).collect();
            let stored = written.iter().copied().filter(|lpn| ftl.lookup(*lpn).is_some());
            let (before, stored) = (ftl.clone(), stored.collect::<Vec<Lpn>>());
            let Ok(loss) = ftl.lose_die(die, &mut ops) else { continue };
            rows.lose(die);
            rows.gone.insert(die);
            let unreadable = |lpn: &&Lpn| !rows.is_readable(&before, **lpn);
            let expected: BTreeSet<Lpn> = stored.iter().filter(unreadable).copied().collect();
            let lost = |lpn: &&Lpn| ftl.is_page_lost(**lpn) && !before.is_page_lost(**lpn);
            let lost: BTreeSet<Lpn> = written.iter().filter(lost).copied().collect();
            assert_eq!(lost, expected, "seed {seed}, {die:?}");
            assert_eq!(loss.pages_lost, lost.len() as u64, "seed {seed}, {die:?}");
            gone.insert(die);
            rows.see(&mut ops);
            ftl.check_invariants();
        }
        assert!(!gone.is_empty(), "seed {seed} lost no die");
    }
}
