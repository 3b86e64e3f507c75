//! A drive of which no checkpoint proves itself, brought back from its units alone: each names its
//! pages, and says in which order they were written. For reading only.
//!
//! ```text
//!  journal, as far back as it is a chain ─► rows that it lists, trims, extents ─┐
//!  units, row by row ─► their tables, or what parity gives back of them ────────┴─► events ─► map
//! ```
//!
//! What nothing tells any more is which pages were trimmed before the journal begins: those are
//! back, as they were written last.

use std::collections::BTreeMap;

use super::events::Events;
use super::{Doubts, SavedCheckpoint, damaged, load};
use crate::OpenError;
use crate::engine::core::lost::LostPages;
use crate::engine::log::replay;
use crate::engine::store::Store;
use crate::format::checkpoint_header::CheckpointHeader;
use crate::format::layout::UNIT_HEADER_BYTES;
use crate::format::row::{RowEpoch, Rows};
use crate::format::unit::UnitHeader;

use ftl::Recovery;

/// The state that everything is replayed from, and whether it is that before the first event: the
/// newest checkpoint that can be read, or none at all where that is for reading only.
pub(super) fn load_or_salvage(
    store: &Store,
    doubts: &mut Doubts,
) -> Result<(SavedCheckpoint, bool), OpenError> {
    match load(store, doubts) {
        Err(error) if doubts.is_recovery && doubts.checkpoint.is_none() => {
            doubts.found.push(format!(
                "{error}: pages are those that units and the journal name; what was trimmed before \
                 may be back"
            ));
            Ok((empty(store)?, true))
        }
        loaded => Ok((loaded?, false)),
    }
}

/// The state of a drive before its first event, from which everything is replayed.
fn empty(store: &Store) -> Result<SavedCheckpoint, OpenError> {
    let shape = &store.layout.shape;
    let summary = CheckpointHeader {
        drive: store.drive,
        journal: replay::earliest(store),
        pages: shape.pages_logical,
        ..CheckpointHeader::default()
    };
    let map = Recovery::new(&shape.config()).map_err(|error| damaged(error.to_string()))?;
    Ok(SavedCheckpoint {
        summary,
        next: 1,
        holders: Vec::new(),
        damaged: Vec::new(),
        rows: Rows::new(shape.rows_total()),
        erase_counts: vec![0; shape.superblocks as usize],
        map,
        lost: LostPages::default(),
    })
}

/// Adds what the units of all rows say, as far as the journal has not said it of a later life of
/// their rows.
pub(super) fn survey_units(
    store: &Store,
    released: &BTreeMap<u32, u64>,
    rows: &mut Rows,
    erase_counts: &mut [u32],
    events: &mut Events,
) {
    let layout = &store.layout;
    for row in 0..layout.shape.rows_total() {
        let superblock = row / layout.shape.rows;
        let Some(life) = likely_life(store, row) else { continue };
        let is_over = released.get(&superblock).is_some_and(|seq| life.seq < *seq);
        if is_over || life.seq <= rows.life(row).seq {
            continue;
        }
        rows.set(row, life);
        let verified = store.verify(row, life, None);
        for named in verified.named_pages(store) {
            let erased = &mut erase_counts[superblock as usize];
            *erased = named.erase_count.max(*erased);
            let first = store.first(row, named.position);
            for (slot, extent) in named.extents {
                events.add_unit(layout.ppn_within(first, slot), std::iter::once(extent), 0);
            }
        }
    }
}

/// The life of a row that most of its units are of; of two that as many are of, the later one.
fn likely_life(store: &Store, row: u32) -> Option<RowEpoch> {
    let layout = &store.layout;
    let mut lives: BTreeMap<(u64, u64), u32> = BTreeMap::new();
    for die in store.dies.healthy() {
        let mut head = [0; UNIT_HEADER_BYTES];
        if store.dies.peek(die, layout.unit_from(row), &mut head).is_err() {
            continue;
        }
        let Some(unit) = UnitHeader::parse(&head) else { continue };
        let is_own = unit.row == row
            && unit.identity.drive == store.drive
            && layout.shape.may_leave_out(unit.out)
            && layout.position(row, die, unit.out) == Some(unit.position);
        if is_own && unit.identity.row_seq > 0 {
            *lives.entry((unit.identity.row_seq, unit.out.0)).or_default() += 1;
        }
    }
    let likely = lives.into_iter().max_by_key(|((seq, _), units)| (*units, *seq));
    likely.map(|((seq, out), _)| RowEpoch { seq, out: crate::format::die_set::DieSet(out) })
}
