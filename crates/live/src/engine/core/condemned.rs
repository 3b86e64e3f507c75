//! Superblocks that are not used again, since a place of them is bad.

use ftl::{Debt, Ftl, Lpn, SuperblockState};

use super::Core;
use crate::engine::core::bad_places::BadPlaces;
use crate::format::layout::{Layout, Place};
use crate::format::row::RowEpoch;

impl Core {
    /// Rows of condemned superblocks that hold pages which can be moved, `most` at most.
    pub(crate) fn rows_to_drain(&self, places: &BadPlaces, most: usize) -> Vec<(u32, RowEpoch)> {
        let rows = self.ftl.condemned().flat_map(|id| self.layout.rows_of(id.0));
        let lives = rows.map(|row| (row, self.rows.life(row)));
        let drains = |(row, life): &(u32, RowEpoch)| {
            life.seq != 0 && self.holds_pages(*row) && !places.is_stuck(*row, *life)
        };
        lives.filter(drains).take(most).collect()
    }

    /// True if a row holds pages that are stored.
    pub(crate) fn holds_pages(&self, row: u32) -> bool {
        places_of(&self.layout, row).any(|place| self.ftl.map().is_valid(self.layout.ppn(place)))
    }

    /// True if a page is stored in a slot of a row.
    pub(crate) fn is_there(&self, lpn: Lpn, place: Place) -> bool {
        self.ftl.map().is_at(lpn, self.layout.ppn(place))
    }

    /// Erases condemned superblocks that hold nothing any more; says whether one waits to be
    /// released.
    pub(crate) fn erase_emptied(&mut self) -> bool {
        let condemned: Vec<_> = self.ftl.condemned().collect();
        for id in &condemned {
            self.decide(None, |ftl, media| ftl.erase_emptied(*id, media));
        }
        let waits = |id| self.ftl.superblock(id).state == SuperblockState::Free;
        condemned.into_iter().any(waits)
    }
}

fn places_of(layout: &Layout, row: u32) -> impl Iterator<Item = Place> {
    let slots = layout.unit_slots;
    let units = 0..layout.shape.data_units();
    units.flat_map(move |unit| (0..slots).map(move |slot| Place { row, unit, slot }))
}

/// Condemns superblocks with bad places, those that were found first before others, as long as
/// enough are left without them.
pub(crate) fn condemn_all(ftl: &mut Ftl<Debt>, places: &BadPlaces) {
    for id in places.superblocks() {
        ftl.condemn(id);
    }
}
