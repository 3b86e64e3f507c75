//! Relocation by the owner: what host pages owe is paid page by page, and each page is known before
//! it is moved.

use ftl::{Debt, Ftl, MediaOp, Ppn};

use crate::{PAGE, SMALL, indebted, page, relocate_next};

const ROUNDS: u32 = 8000;

/// Places that operations move pages from.
fn moved_from(ops: &[MediaOp]) -> Vec<Ppn> {
    let from = |op: &MediaOp| match op {
        MediaOp::Relocate { from, .. } => Some(*from),
        MediaOp::Program { .. } | MediaOp::Erase { .. } => None,
    };
    ops.iter().filter_map(from).collect()
}

/// Moves one page of the victim, which must be the one that was announced.
fn relocate(ftl: &mut Ftl<Debt>) {
    let announced = ftl.next_to_relocate();
    assert_eq!(ftl.next_to_relocate(), announced, "a look changes nothing");
    let mut ops = Vec::new();
    relocate_next(ftl, &mut ops);
    assert_eq!(moved_from(&ops), announced.into_iter().collect::<Vec<_>>());
}

/// Writes a load whose debts are paid after so many pages at a time; returns the drive.
fn written(pages_at_once: u32) -> Ftl<Debt> {
    let mut ftl = indebted(&SMALL);
    for round in 0..ROUNDS {
        while ftl.needs_room() {
            relocate(&mut ftl);
        }
        let mut ops = Vec::new();
        let ppn = ftl.write_owing(page(round), PAGE, &mut ops);
        assert_eq!(ftl.lookup(page(round)), Some(ppn));
        assert!(moved_from(&ops).is_empty(), "nothing is relocated but by the owner");
        while round % pages_at_once == 0 && ftl.owes_batches(1) {
            relocate(&mut ftl);
        }
    }
    ftl.check_invariants();
    ftl
}

#[test]
fn an_owner_that_pays_at_once_relocates_as_much_as_the_drive_itself() {
    let mut itself = Ftl::format(&SMALL).unwrap();
    for round in 0..ROUNDS {
        itself.write(0, page(round), &mut Vec::new());
    }
    let moved = itself.counters().pages_relocation as f64;
    let share = written(1).counters().pages_relocation as f64 / moved;
    assert!((0.95..1.05).contains(&share), "{share} of what the drive itself relocates");
}

/// Debts that add up while no caller pays must not have victims relocated that are full of valid
/// pages, or paying would be what makes the next ones dear.
#[test]
fn debts_that_added_up_cost_no_more() {
    let moved = |ftl: &Ftl<Debt>| ftl.counters().pages_relocation as f64;
    let share = moved(&written(300)) / moved(&written(1));
    assert!(share < 1.1, "{share} of what is relocated if each page pays at once");
}
