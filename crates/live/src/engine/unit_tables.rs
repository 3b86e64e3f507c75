//! Tables of units, by which the media tell the translation layer which page lies where.
//!
//! The table of a unit names the pages in it, so that the way back of the map need not be in
//! memory; it is read when relocation comes to the unit, whose extents are read next.
//!
//! ```text
//!  row that is being filled ─► its unit in memory
//!  row on the media         ─► the unit's table ─► the same from the rest of its row ─► not known
//! ```
//!
//! What is not known the translation layer looks for in its whole map ([`ftl::Media::contents`]).

use ftl::{Lpn, Media, MediaOp, Ppn};

use crate::engine::open_row::OpenRow;
use crate::engine::store::{Member, Store};
use crate::format::layout::UNIT_HEADER_BYTES;
use crate::format::row::Rows;
use crate::format::unit::{self, Entry};

/// The table of a unit.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) of: Member,
    pub(crate) entries: Vec<Entry>,
}

/// The media beside the translation layer while it decides: what it wants done waits, what it asks
/// is answered at once.
#[derive(Debug)]
pub(crate) struct MediaAdapter<'a> {
    pub(crate) store: &'a Store,
    pub(crate) rows: &'a Rows,
    pub(crate) open: &'a [OpenRow],
    pub(crate) ops: &'a mut Vec<MediaOp>,
    /// The table that was read last.
    pub(crate) table: &'a mut Option<Table>,
}

impl Media for MediaAdapter<'_> {
    fn submit(&mut self, op: MediaOp) {
        self.ops.push(op);
    }

    fn contents(&mut self, first: Ppn, pages: &mut [Option<Lpn>]) {
        let place = self.store.layout.place(first);
        if let Some(open) = self.open.iter().find(|open| open.row == place.row) {
            let Some(unit) = open.units.get(place.unit as usize) else { return };
            for (slot, page) in (place.slot..unit.count).zip(pages) {
                *page = Some(unit.extent(slot).0.lpn);
            }
            return;
        }
        let life = self.rows.life(place.row);
        if life.seq == 0 {
            // A row that is begun by what waits to be done.
            return;
        }
        let of = Member { row: place.row, position: place.unit, life };
        if self.table.as_ref().is_none_or(|table| table.of != of) {
            *self.table = self.store.table(of).map(|entries| Table { of, entries });
        }
        let entries = self.table.iter().flat_map(|table| &table.entries);
        for (entry, page) in entries.skip(place.slot as usize).zip(pages) {
            *page = Some(entry.extent.lpn);
        }
    }
}

impl Store {
    /// The table of a unit; from the rest of its row where it is not what was programmed, and none
    /// where that does not help.
    fn table(&self, of: Member) -> Option<Vec<Entry>> {
        let Member { row, position, life } = of;
        let (identity, first) = (self.identity(life.seq), self.first(row, position));
        let mut bytes = vec![0; self.layout.extents_from];
        let die = self.layout.die(row, position, life.out);
        let read = self.dies.read(die, self.layout.unit_from(row), &mut bytes);
        if let Some((_, entries)) =
            read.ok().and_then(|()| unit::table(&self.layout, &bytes, identity, first))
        {
            return Some(entries);
        }
        self.layout.shape.is_protected.then_some(())?;
        self.reconstruct(of, UNIT_HEADER_BYTES, &mut bytes[UNIT_HEADER_BYTES..]).ok()?;
        unit::table(&self.layout, &bytes, identity, first).map(|(_, entries)| entries)
    }
}
