//! A row that is being filled.

use std::sync::Arc;

use crate::engine::core::program::RowId;
use crate::format::die_set::DieSet;
use crate::format::layout::Layout;
use crate::format::unit::{Origin, UnitBuffer};

/// A row that is being filled: it is read from memory until all of its units are programmed.
#[derive(Debug)]
pub(crate) struct OpenRow {
    pub(crate) row: u32,
    pub(crate) seq: u64,
    pub(crate) origin: Origin,
    /// Dies that it leaves out.
    pub(crate) out: DieSet,
    /// By position; those that were begun.
    pub(crate) units: Vec<UnitBuffer>,
    /// Units, parity too, whose program was not decided yet.
    pub(crate) undecided: u32,
    /// Programs that were decided and are not completed.
    pub(crate) under_way: u32,
    /// True if its superblock was erased before all of them were completed.
    pub(crate) is_erased: bool,
}

impl OpenRow {
    /// The name of the row in programs.
    pub(crate) const fn id(&self) -> RowId {
        RowId { row: self.row, seq: self.seq }
    }

    /// True if every unit of it was handed out to be programmed.
    pub(crate) const fn is_full(&self) -> bool {
        self.undecided == 0
    }

    /// True if every unit of it is on the media.
    pub(crate) const fn is_programmed(&self) -> bool {
        self.undecided == 0 && self.under_way == 0
    }

    /// Dies on which a unit of it was programmed, or is to be by now.
    pub(crate) fn programmed(&self, layout: &Layout) -> DieSet {
        let is_finished = |(_, unit): &(u32, &UnitBuffer)| unit.finished().is_some();
        let units = (0..).zip(&self.units).filter(is_finished);
        units.map(|(position, _)| layout.die(self.row, position, self.out)).collect()
    }

    /// The bytes of all data units, each of which is finished.
    pub(crate) fn finished_units(&self) -> Vec<Arc<Vec<u8>>> {
        let unit = |unit: &UnitBuffer| unit.finished().map(Arc::clone);
        let units: Option<Vec<_>> = self.units.iter().map(unit).collect();
        units.expect("parity is programmed when all units are full")
    }
}
