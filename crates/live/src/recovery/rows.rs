//! Which rows count, and what they hold.

use std::collections::BTreeMap;

use ftl::{Cause, Lpn, Ppn};

use super::charged;
use crate::OpenError;
use crate::layout::{Layout, STAMP_BYTES};
use crate::store::Store;
use crate::unit::{self, Entry, Origin, Stamp};

/// Something that happened to the map.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A page got a place on the media, where it is counted as so many bytes.
    Placed { lpn: Lpn, ppn: Ppn, bytes: u32 },
    /// A page got a place in a row that was never completed; its extent is in the journal.
    Journaled { lpn: Lpn, ppn: Ppn, index: usize },
    /// Pages were trimmed.
    Trim { first: Lpn, pages: u32 },
}

/// The search for rows that were completed since a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan<'a> {
    pub(super) store: &'a Store,
    /// The checkpoint has what happened before this event.
    pub(super) since: u64,
    /// Rows that were programmed before this event are durable.
    pub(super) mark: u64,
    /// By superblock, the last event before which nothing of it counts.
    pub(super) released: &'a BTreeMap<u32, u64>,
}

/// A row that counts.
struct Row {
    order: u64,
    erase_count: u32,
    /// The entries of its units, by position.
    tables: Vec<Vec<Entry>>,
}

/// A unit as it was found.
struct FoundUnit {
    stamp: Stamp,
    /// The unit, or as much of it as was read.
    bytes: Vec<u8>,
}

impl Scan<'_> {
    /// Finds rows that were completed since the checkpoint, notes them in `rows`, and returns what
    /// happened in them.
    pub(super) fn run(
        &self,
        rows: &mut [u64],
        erase_counts: &mut [u32],
    ) -> Result<Vec<(u64, Event)>, OpenError> {
        let shape = &self.store.layout.shape;
        let mut events = Vec::new();
        for superblock in 0..shape.superblocks {
            let first = superblock * shape.rows;
            let known = &mut rows[first as usize..(first + shape.rows) as usize];
            if let Some(released) = self.released.get(&superblock) {
                for order in known.iter_mut().filter(|order| **order < *released) {
                    *order = 0;
                }
            }
            let is_begun = known.iter().any(|order| *order != 0);
            let is_full = known.last().is_some_and(|order| *order != 0);
            let is_new = |stamp: Stamp| stamp.programmed_at >= self.since;
            if is_full || !is_begun && !self.stamps(first).any(is_new) {
                continue;
            }
            for row in (0..shape.rows).filter(|row| known[*row as usize] == 0).collect::<Vec<_>>() {
                let Some(found) = self.row(first + row)? else { continue };
                known[row as usize] = found.order;
                let erased = &mut erase_counts[superblock as usize];
                *erased = found.erase_count.max(*erased);
                self.list(first + row, &found, &mut events);
            }
        }
        Ok(events)
    }

    fn list(&self, row: u32, found: &Row, events: &mut Vec<(u64, Event)>) {
        for (position, table) in (0..).zip(&found.tables) {
            let place = |slot| crate::layout::Place { row, unit: position, slot };
            for (slot, entry) in (0..).zip(table) {
                let extent = &entry.extent;
                if extent.order >= self.since {
                    let ppn = self.store.layout.ppn(place(slot));
                    let bytes = charged(extent);
                    events.push((extent.order, Event::Placed { lpn: extent.lpn, ppn, bytes }));
                }
            }
        }
    }

    /// The stamps that say whether a superblock has begun another life: those of its first row's
    /// last two positions, which are programmed together when all others have been; two, since one
    /// die may have lost what was written to it.
    fn stamps(&self, row: u32) -> impl Iterator<Item = Stamp> {
        let dies = self.store.layout.shape.dies;
        let positions = dies.saturating_sub(2)..dies;
        positions.filter_map(move |position| {
            self.unit(row, position, STAMP_BYTES).map(|unit| unit.stamp)
        })
    }

    /// The stream that filled a row which counts.
    pub(super) fn stream(&self, row: u32, order: u64) -> Option<Cause> {
        let layout = &self.store.layout;
        let bytes = layout.extents_from;
        let origin = (0..layout.shape.data_units()).find_map(|position| {
            let unit = self.unit(row, position, bytes)?;
            if unit.stamp.identity.row_order != order {
                return None;
            }
            self.table(row, position, &unit).map(|(origin, _)| origin)
        })?;
        Some(if origin.is_relocation { Cause::Relocation } else { Cause::Host })
    }

    /// A unit that carries a stamp of its own place, as far as `bytes`.
    fn unit(&self, row: u32, position: u32, bytes: usize) -> Option<FoundUnit> {
        let layout = &self.store.layout;
        let mut unit = vec![0; bytes];
        let die = layout.die(row, position);
        self.store.dies.read(die, layout.unit_from(row), &mut unit).ok()?;
        let stamp = Stamp::parse(&unit)?;
        let is_parity = layout.shape.is_protected && position == layout.shape.dies - 1;
        let is_own = (stamp.row, stamp.position) == (row, position)
            && stamp.identity.drive == self.store.drive
            && stamp.is_parity == is_parity;
        is_own.then_some(FoundUnit { stamp, bytes: unit })
    }

    fn table(&self, row: u32, position: u32, unit: &FoundUnit) -> Option<(Origin, Vec<Entry>)> {
        unit::table(&unit.bytes, unit.stamp.identity, self.store.first(row, position))
    }

    /// A row, if it counts.
    fn row(&self, row: u32) -> Result<Option<Row>, OpenError> {
        let layout = &self.store.layout;
        let dies = layout.shape.dies;
        let heads: Vec<Option<FoundUnit>> =
            (0..dies).map(|position| self.unit(row, position, layout.extents_from)).collect();
        let Some(order) = heads.iter().flatten().map(|it| it.stamp.identity.row_order).max() else {
            return Ok(None);
        };
        let released = self.released.get(&(row / layout.shape.rows));
        if released.is_some_and(|released| order < *released) {
            return Ok(None);
        }
        let of_row = |unit: &FoundUnit| unit.stamp.identity.row_order == order;
        let present: Vec<&FoundUnit> = heads.iter().flatten().filter(|it| of_row(it)).collect();
        if present.iter().all(|unit| unit.stamp.programmed_at < self.since) {
            // Remains of an earlier life, or of a row that was never completed.
            return Ok(None);
        }
        let is_trusted = present.iter().all(|unit| unit.stamp.programmed_at < self.mark);
        // The last data unit and parity are programmed together, when all others have been.
        let last = heads.len() - 1 - usize::from(layout.shape.is_protected);
        let was_complete = heads[last..]
            .iter()
            .flatten()
            .any(|last| of_row(last) && last.stamp.programmed_at < self.mark);
        let found = self.gather(row, order, is_trusted);
        if found.is_none() && was_complete {
            let what = format!("row {row} is durable, and more than one of its units is lost");
            return Err(OpenError::Damaged { what });
        }
        Ok(found)
    }

    /// The tables of a row, if no more than one unit is missing; of one that may be torn, every
    /// extent is checked.
    fn gather(&self, row: u32, order: u64, is_trusted: bool) -> Option<Row> {
        let layout = &self.store.layout;
        let shape = &layout.shape;
        let bytes = if is_trusted { layout.extents_from } else { layout.unit_bytes };
        let mut missing = None;
        let (mut tables, mut erase_count) = (Vec::new(), 0);
        let mut sum = vec![0; bytes];
        for position in 0..shape.data_units() {
            let unit = self
                .unit(row, position, bytes)
                .filter(|unit| unit.stamp.identity.row_order == order);
            let table = unit.and_then(|unit| {
                unit::exclusive_or(&mut sum, &unit.bytes);
                self.checked(row, position, &unit, is_trusted)
            });
            if let Some((origin, table)) = table {
                erase_count = origin.erase_count;
                tables.push(table);
            } else {
                missing.replace(position).is_none().then_some(())?;
                tables.push(Vec::new());
            }
        }
        let parity = self.parity(row, order, is_trusted);
        match (missing, parity) {
            (Some(position), parity) => {
                let stamp = Stamp { is_parity: false, position, ..parity? };
                let unit = self.restored(row, stamp)?;
                let (_, table) = self.checked(row, position, &unit, is_trusted)?;
                if self.checked(row, position, &unit, false).is_some() {
                    self.put_back(row, unit);
                }
                tables[position as usize] = table;
            }
            // Its parity is made anew from what was read and found right, not from another look.
            (None, None) if shape.is_protected && is_trusted => {
                return self.gather(row, order, false);
            }
            (None, None) if shape.is_protected => {
                let (position, identity) = (shape.dies - 1, self.store.identity(order));
                let body_crc = crc32c::crc32c(&sum[STAMP_BYTES..]);
                let programmed_at = self.since;
                let stamp =
                    Stamp { is_parity: true, row, position, identity, programmed_at, body_crc };
                self.put_back(row, FoundUnit { stamp, bytes: sum });
            }
            (None, _) => {}
        }
        Some(Row { order, erase_count, tables })
    }

    /// A unit as the others of its row give it back, whatever that is worth.
    fn restored(&self, row: u32, stamp: Stamp) -> Option<FoundUnit> {
        let mut bytes = vec![0; self.store.layout.unit_bytes];
        let body = &mut bytes[STAMP_BYTES..];
        self.store.reconstruct(row, stamp.position, STAMP_BYTES, body).ok()?;
        Some(FoundUnit { stamp, bytes })
    }

    /// Writes a unit again, so that the row survives a further loss.
    fn put_back(&self, row: u32, mut unit: FoundUnit) {
        let layout = &self.store.layout;
        let die = layout.die(row, unit.stamp.position);
        unit.stamp.write(&mut unit.bytes);
        // Where it cannot be written, the row is as good as it was.
        let _ = self.store.dies.write(die, layout.unit_from(row), &unit.bytes);
    }

    /// The stamp of a row's parity unit, if that is what it should be.
    fn parity(&self, row: u32, order: u64, is_trusted: bool) -> Option<Stamp> {
        let layout = &self.store.layout;
        layout.shape.is_protected.then_some(())?;
        let bytes = if is_trusted { STAMP_BYTES } else { layout.unit_bytes };
        let unit = self.unit(row, layout.shape.dies - 1, bytes)?;
        let is_right = unit.stamp.identity.row_order == order
            && (is_trusted || crc32c::crc32c(&unit.bytes[STAMP_BYTES..]) == unit.stamp.body_crc);
        is_right.then_some(unit.stamp)
    }

    /// The table of a unit; of one that may be torn, only if every extent is whole.
    fn checked(
        &self,
        row: u32,
        position: u32,
        unit: &FoundUnit,
        is_trusted: bool,
    ) -> Option<(Origin, Vec<Entry>)> {
        let (origin, table) = self.table(row, position, unit)?;
        let place = |slot| crate::layout::Place { row, unit: position, slot };
        let layout: &Layout = &self.store.layout;
        let is_whole = |(slot, entry): (u32, &Entry)| {
            let ppn = layout.ppn(place(slot));
            unit::extent_in(&unit.bytes, entry.from, unit.stamp.identity, ppn)
                .is_some_and(|(extent, _)| extent == entry.extent)
        };
        (is_trusted || (0..).zip(&table).all(is_whole)).then_some((origin, table))
    }
}
