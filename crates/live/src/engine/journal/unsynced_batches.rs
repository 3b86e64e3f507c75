//! Batches of the journal that are written and not synced: what a killed process must not lose.
//!
//! ```text
//!  ring   … | synced batch N - 1 |        half        |        half        | … tail
//!                                ^ end   1 2 3 4 …      5 6 7 …
//!                                        1 is full        5 is full, and voids 1 to 4
//! ```
//!
//! The system has what was written, whatever becomes of the process. So nothing is synced here, and
//! the power may take any part of it. A flush makes a synced batch that has all of it once more,
//! and that is behind the last of these.
//!
//! Two halves of a window behind the end of the journal take them in turn, so that they need no
//! space of the ring however many there are. The first one in a half is **full**: it has whatever
//! open rows hold that no synced batch has, and all trims. Each further one has what came since.
//!
//! Invariants:
//! - Each has the number and the link of the next synced batch, and an order of its own. Once that
//!   batch is there, none of them counts.
//! - A half is written over only while the other one has a full batch and all that followed it.
//! - No program is under way when one is assembled, so each says which rows are open. The rows of
//!   its other extents are complete, and the system has them: where one of those is not, the power
//!   went, and nothing was promised of it.
//! - A superblock that held other rows in an earlier life was released by a synced batch before
//!   any of these is written: else the lists of its earlier rows would hide those that are complete
//!   now, and that no batch lists.
//! - Of several at one position, which copies on two dies and the end of the ring allow, the one
//!   with the highest order counts.
//! - Whoever finds one knows that the synced batch before it was durable.
//! - A die that failed is in the headers, durably, before a hand-over is answered, whether it wrote
//!   a batch or not: rows that were completed since lack a unit there.

use crate::DeviceError;
use crate::engine::core::Core;
use crate::engine::dies::medium_error;
use crate::engine::journal::Journal;
use crate::engine::store::Store;
use crate::format::journal::{OPEN, Order, TRIM, UNSYNCED_MAGIC, add_extent};
use crate::format::layout::{Layout, Place, REPLICAS};
use crate::format::position::SECTOR_BYTES;
use crate::mutants::{self, Mutant};

/// The batches behind the end of the journal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unsynced {
    /// Order of the last one, and of the full one that its half begins with; 0: there is none.
    order: u32,
    first: u32,
    /// Monotonic offset behind the last one, and of the end of its half.
    pub(crate) at: u64,
    until: u64,
    /// Count of events before which they, or synced batches, have everything.
    pub(crate) seq: u64,
}

impl Unsynced {
    pub(crate) const fn is_empty(&self) -> bool {
        self.order == 0
    }
}

/// Result of assembling a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// The batch is to be written there.
    At(u64),
    /// There is nothing that earlier ones lack.
    Nothing,
    /// The batch does not fit into a half.
    TooLong,
}

impl Journal {
    /// True if there are batches that were not synced.
    pub(crate) fn has_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Count of events before which the system has everything that the host changed.
    pub(crate) fn handed_over(&self) -> u64 {
        self.committed.max(self.unsynced.seq)
    }

    /// True if there is room for both halves, and for so many bytes behind them.
    pub(crate) fn has_window(&self, layout: &Layout, reserve: u64) -> bool {
        let end = self.head.at + 2 * layout.unsynced_bytes();
        end - self.tail + reserve <= self.size
    }

    /// Assembles a batch that is not synced, of what the host wrote and trimmed: what came since
    /// the last one, or a full one in the other half.
    pub(crate) fn assemble_unsynced(&mut self, core: &mut Core, layout: &Layout) -> Assembled {
        assert!(
            core.reclaimed.is_empty(),
            "rows that no batch lists count only behind a release of what was listed before"
        );
        let Unsynced { at, until, .. } = self.unsynced;
        let is_first = self.unsynced.is_empty();
        if !is_first {
            if !self.collect_unsynced(core, layout, false) {
                self.unsynced.seq = core.seq;
                return Assembled::Nothing;
            }
            if let Some(at) = self.fit(at, until) {
                self.unsynced.order += 1;
                return self.assembled(core, at);
            }
        }
        let is_something = self.collect_unsynced(core, layout, true);
        if is_first && !is_something {
            return Assembled::Nothing;
        }
        let half = layout.unsynced_bytes();
        let is_behind = !is_first && until == self.head.at + half;
        let from = self.head.at + if is_behind { half } else { 0 };
        let Some(at) = self.fit(from, from + half) else { return Assembled::TooLong };
        self.unsynced.until = from + half;
        self.unsynced.order += 1;
        self.unsynced.first = self.unsynced.order;
        self.assembled(core, at)
    }

    fn assembled(&mut self, core: &mut Core, at: u64) -> Assembled {
        self.unsynced.seq = core.seq;
        for unit in core.open.iter_mut().flat_map(|open| &mut open.units) {
            unit.handed_over = unit.count;
        }
        Assembled::At(at)
    }

    /// The position of the batch from `at` on; none if it reaches beyond `until`.
    fn fit(&self, at: u64, until: u64) -> Option<u64> {
        let bytes = (self.batch.len() as u64).next_multiple_of(SECTOR_BYTES);
        let at = self.place_of(at, bytes);
        (at + bytes <= until).then_some(at)
    }

    /// Puts what the host wrote and trimmed into the batch; says whether there is anything.
    fn collect_unsynced(&mut self, core: &Core, layout: &Layout, is_full: bool) -> bool {
        self.begin();
        for open in &core.open {
            self.add(OPEN, open.row, open.seq, 0);
        }
        let empty = self.records;
        let since = if is_full { 0 } else { self.unsynced.seq };
        for trim in core.trims.iter().filter(|trim| trim.seq >= since) {
            self.add(TRIM, trim.first.0, trim.seq, trim.pages);
        }
        let is_partial = !is_full || mutants::is(Mutant::HalfWithoutRest);
        for open in core.open.iter().filter(|open| !open.origin.is_relocation) {
            for (unit, position) in open.units.iter().zip(0..) {
                let known = if is_partial { unit.handed_over } else { 0 };
                for slot in known.max(unit.journaled)..unit.count {
                    let place = Place { row: open.row, unit: position, slot };
                    let (extent, payload) = unit.extent(slot);
                    add_extent(&mut self.batch, extent, payload, (open.seq, layout.ppn(place)));
                    self.records += 1;
                }
            }
        }
        self.records > empty
    }

    /// Writes the batch that was assembled, to the dies that hold the journal there; on one alone
    /// where rows are not protected, since no die is to fail besides.
    pub(crate) fn write_unsynced(&mut self, store: &Store, at: u64) -> Result<(), DeviceError> {
        let order = Order { order: self.unsynced.order, first: self.unsynced.first };
        self.seal(at, UNSYNCED_MAGIC, (order.order, order.first));
        self.unsynced.at = at + self.batch.len() as u64;
        let copies = if store.layout.shape.is_protected { REPLICAS } else { 1 };
        let place = at % self.size;
        if mutants::is(Mutant::HandOverDropped) {
            return Ok(());
        }
        for it in store.journal_replicas(at).iter().take(copies) {
            let from = store.layout.journal_from(it.region) + place;
            let written = store.dies.write_or_lose(it.die, from, &self.batch);
            written.map_err(medium_error(format!("writing the journal on die {}", it.die)))?;
        }
        self.give_memory_back();
        Ok(())
    }
}
