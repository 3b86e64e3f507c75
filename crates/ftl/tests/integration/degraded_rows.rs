//! Rows that leave out units at their ends.

use ftl::{Cause, Config, Geometry, Lpn, MediaOp, Ppn};

use crate::{PAGE, SMALL, indebted, write_paid};

const GEOMETRY: Geometry = Geometry {
    dies_per_bank: 5,
    erase_blocks_per_plane: 20,
    pages_per_erase_block: 3,
    page_kib: 8,
    stripe_dies: 5,
    ..SMALL.geometry
};

const CONFIG: Config =
    Config { geometry: GEOMETRY, pages_logical: 200, pages_stored_max: 200, ..SMALL };

/// The data unit of its row that a page lies in.
fn unit(ppn: Ppn) -> u32 {
    ppn.0 / GEOMETRY.pages_per_unit() % GEOMETRY.data_units_per_row()
}

#[test]
fn units_that_are_left_out_hold_nothing_and_relocation_goes_on() {
    let mut ftl = indebted(&CONFIG);
    ftl.leave_out(1);
    let mut ops = Vec::new();
    for round in 0..4000_u32 {
        let lpn = Lpn((round.wrapping_mul(2_654_435_761) >> 8) % 200);
        assert!(unit(write_paid(&mut ftl, lpn, PAGE, &mut ops)) < 3);
        assert!((0..200).filter_map(|lpn| ftl.lookup(Lpn(lpn))).all(|ppn| unit(ppn) < 3));
    }
    let programs = |cause: Cause| {
        let is_one =
            |op: &&MediaOp| matches!(op, MediaOp::Program { cause: it, .. } if *it == cause);
        ops.iter().filter(is_one).count()
    };
    // Each row has all of its programs, those of nothing too.
    let data = programs(Cause::Host) + programs(Cause::Relocation);
    assert!(programs(Cause::Relocation) > 100 && data / 4 == programs(Cause::Parity));
}

#[test]
fn a_row_is_shortened_from_its_beginning_or_not_at_all() {
    let mut ftl = indebted(&CONFIG);
    let mut ops = Vec::new();
    write_paid(&mut ftl, Lpn(0), PAGE, &mut ops);
    ftl.leave_out(2);
    let units: Vec<u32> =
        (1..13).map(|lpn| unit(write_paid(&mut ftl, Lpn(lpn), PAGE, &mut ops))).collect();
    assert_eq!(units, [0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 0]);
}

#[test]
fn finished_rows_are_programmed_to_their_ends() {
    let mut ftl = indebted(&CONFIG);
    let mut ops = Vec::new();
    write_paid(&mut ftl, Lpn(0), PAGE, &mut ops);
    ftl.finish_rows(&mut ops);
    assert_eq!(ops.len(), 5);
    assert!(matches!(ops[4], MediaOp::Program { cause: Cause::Parity, .. }));
    ops.clear();
    ftl.finish_rows(&mut ops);
    assert_eq!(ops, []);
    assert_eq!(write_paid(&mut ftl, Lpn(1), PAGE, &mut ops), Ppn(8));
}

#[test]
fn a_page_moves_out_of_turn_and_stays_what_it_is() {
    let mut ftl = indebted(&CONFIG);
    let mut ops = Vec::new();
    let from = write_paid(&mut ftl, Lpn(7), PAGE, &mut ops);
    ftl.relocate(Lpn(7), &mut ops);
    let to = ftl.lookup(Lpn(7)).unwrap();
    assert!(to != from && !ftl.map().is_valid(from) && ftl.map().is_at(Lpn(7), to));
    assert_eq!(ftl.counters().pages_relocation, 1);
    ftl.relocate(Lpn(8), &mut ops);
    assert_eq!(ftl.lookup(Lpn(8)), None);
}
