//! Loss of a die: no page is placed on it from then on, what it held is rebuilt or lost, and less
//! spare space makes relocation dearer.

use blockio::Rng;
use ftl::{Cause, Config, ConfigError, DieId, Ftl, Geometry, Lpn, MediaOp, NoMedia, Watermarks};

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

/// A drive that was written twice over at random.
fn settled(stripe_dies: u32) -> (Ftl, Rng) {
    let mut ftl = Ftl::format(&config(stripe_dies)).expect("a feasible format");
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
        assert_eq!(ftl.lose_die(die, &mut ops), Ok(0), "nothing is lost with parity");
        ftl.check_invariants();
        let held = pages_on(&ftl, die);
        assert!(held > 1000, "it held data: {held}");
        while ftl.is_rebuilding() {
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
    let lost = ftl.lose_die(DieId(5), &mut NoMedia).expect("there is spare space");
    let is_lost = |ftl: &Ftl, lpn: u32| ftl.is_page_lost(Lpn(lpn));
    let counted = (0..ftl.config().pages_logical).filter(|lpn| is_lost(&ftl, *lpn)).count();
    assert_eq!(lost, counted as u64);
    // What was still in the buffer is not lost.
    assert!(counted <= held && counted + 16 > held, "{counted} of {held}");
    assert!(!ftl.is_rebuilding());
    ftl.check_invariants();
    write(&mut ftl, &mut rng, 6, &mut Vec::new());
    let left = (0..ftl.config().pages_logical).filter(|lpn| is_lost(&ftl, *lpn)).count();
    assert!(left < counted / 100, "{left} of {counted} were not written since");
    ftl.check_invariants();
}

#[test]
fn a_die_that_a_drive_lacks_or_cannot_do_without_is_refused() {
    let (mut ftl, _) = settled(8);
    let refused = ftl.lose_die(DieId(16), &mut NoMedia).map_err(|error| error.to_string());
    assert_eq!(refused, Err("die is 16, must be below 16, the dies of a module".to_owned()));
    assert_eq!(ftl.lose_die(DieId(1), &mut NoMedia), Ok(0));
    let second = ftl.lose_die(DieId(2), &mut NoMedia).map_err(|error| error.to_string());
    assert_eq!(second, Err("dies lost is 2, must be at most 1".to_owned()));
    let mut tight = config(8);
    tight.pages_logical = u32::try_from(tight.geometry.pages() * 86 / 100).expect("a small drive");
    tight.pages_stored_max = tight.pages_logical;
    let mut ftl = Ftl::format(&tight).expect("a feasible format");
    let refused = ftl.lose_die(DieId(1), &mut NoMedia);
    assert!(matches!(refused, Err(ConfigError::NoSpare { .. })), "{refused:?}");
}

#[test]
fn a_die_without_which_a_bank_would_hold_nothing_is_refused() {
    for stripe_dies in [0, 2] {
        let mut narrow = config(stripe_dies);
        narrow.geometry.dies_per_bank = stripe_dies.max(1);
        narrow.geometry.banks = 16;
        narrow.pages_logical = u32::try_from(narrow.geometry.pages() / 4).expect("a small drive");
        narrow.pages_stored_max = narrow.pages_logical;
        narrow.watermarks = Watermarks { low: 40, high: 50, ..narrow.watermarks };
        let mut ftl = Ftl::format(&narrow).expect("a feasible format");
        let refused = ftl.lose_die(DieId(3), &mut NoMedia).map_err(|error| error.to_string());
        let expected = "dies that hold data is 1, must be at least 2 in each bank";
        assert!(refused.as_ref().is_err_and(|text| text.starts_with(expected)), "{refused:?}");
        ftl.check_invariants();
    }
}
