//! Which rows count, and what they hold.

use std::collections::BTreeMap;

use ftl::{Cause, Lpn, Ppn};

use super::charged;
use crate::OpenError;
use crate::dies::DieSet;
use crate::layout::{Layout, STAMP_BYTES};
use crate::row::{Life, Rows};
use crate::store::{Member, Store};
use crate::unit::{self, Entry, Origin, Stamp};

/// Something that happened to the map.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A page got a place on the media, where it is counted as so many bytes.
    Placed { lpn: Lpn, ppn: Ppn, bytes: u32 },
    /// A page got a place in a row that was never completed; its extent is in the journal.
    Journaled { lpn: Lpn, ppn: Ppn, index: u32 },
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
    /// Dies that some row may leave out.
    pub(super) left_out: DieSet,
}

/// A row that counts.
struct Row {
    life: Life,
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
        rows: &mut Rows,
        erase_counts: &mut [u32],
    ) -> Result<Vec<(u64, Event)>, OpenError> {
        let layout = &self.store.layout;
        let mut events = Vec::new();
        for superblock in 0..layout.shape.superblocks {
            let of_superblock = layout.rows_of(superblock);
            if let Some(released) = self.released.get(&superblock) {
                for row in of_superblock.clone() {
                    if rows.life(row).order < *released {
                        rows.forget(row..row + 1);
                    }
                }
            }
            let is_held = |row: &u32| rows.life(*row).order != 0;
            let is_begun = of_superblock.clone().any(|row| is_held(&row));
            let is_full = is_held(&(of_superblock.end - 1));
            let is_new = |stamp: Stamp| stamp.programmed_at >= self.since;
            if is_full || !is_begun && !self.stamps(of_superblock.start).any(is_new) {
                continue;
            }
            let unknown: Vec<u32> = of_superblock.filter(|row| !is_held(row)).collect();
            for row in unknown {
                let Some(found) = self.row(row)? else { continue };
                rows.set(row, found.life);
                let erased = &mut erase_counts[superblock as usize];
                *erased = found.erase_count.max(*erased);
                self.list(row, &found, &mut events);
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
    /// die may have lost what was written to it. Where rows leave out dies they come earlier.
    fn stamps(&self, row: u32) -> impl Iterator<Item = Stamp> {
        let layout = &self.store.layout;
        let dies = layout.shape.dies;
        let positions = dies.saturating_sub(2 + self.left_out.count())..dies;
        positions.filter_map(move |position| {
            let die = layout.die(row, position, DieSet::default());
            self.unit_on(die, row, STAMP_BYTES).map(|unit| unit.stamp)
        })
    }

    /// The stream that filled a row which counts.
    pub(super) fn stream(&self, row: u32, life: Life) -> Option<Cause> {
        let layout = &self.store.layout;
        let bytes = layout.extents_from;
        let origin = (0..layout.data_units(life.out)).find_map(|position| {
            let unit = self.unit(Member { row, position, life }, bytes)?;
            self.table(row, position, &unit).map(|(origin, _)| origin)
        })?;
        Some(if origin.is_relocation { Cause::Relocation } else { Cause::Host })
    }

    /// A unit that carries the stamp of its own place and life, as far as `bytes`.
    fn unit(&self, member: Member, bytes: usize) -> Option<FoundUnit> {
        let Member { row, position, life } = member;
        let unit = self.unit_on(self.store.layout.die(row, position, life.out), row, bytes)?;
        let Stamp { position: found, identity, out, .. } = unit.stamp;
        let is_it = (found, identity.row_order, out) == (position, life.order, life.out);
        is_it.then_some(unit)
    }

    /// What a die has of a row, in whatever life, if the stamp says that it belongs there.
    fn unit_on(&self, die: usize, row: u32, bytes: usize) -> Option<FoundUnit> {
        let layout = &self.store.layout;
        let mut unit = vec![0; bytes];
        self.store.dies.read(die, layout.unit_from(row), &mut unit).ok()?;
        let stamp = Stamp::parse(&unit)?;
        let (position, out) = (stamp.position, stamp.out);
        let is_own = stamp.row == row
            && stamp.identity.drive == self.store.drive
            && stamp.is_parity == layout.is_parity(position)
            && layout.shape.may_leave_out(out)
            && layout.position(row, die, out) == Some(position);
        is_own.then_some(FoundUnit { stamp, bytes: unit })
    }

    fn table(&self, row: u32, position: u32, unit: &FoundUnit) -> Option<(Origin, Vec<Entry>)> {
        unit::table(
            &self.store.layout,
            &unit.bytes,
            unit.stamp.identity,
            self.store.first(row, position),
        )
    }

    /// A row, if it counts.
    fn row(&self, row: u32) -> Result<Option<Row>, OpenError> {
        let layout = &self.store.layout;
        let heads = (0..self.store.dies.count())
            .filter_map(|die| self.unit_on(die, row, layout.extents_from));
        let heads: Vec<FoundUnit> = heads.collect();
        let Some(newest) = heads.iter().max_by_key(|it| it.stamp.identity.row_order) else {
            return Ok(None);
        };
        let life = Life { order: newest.stamp.identity.row_order, out: newest.stamp.out };
        let released = self.released.get(&(row / layout.shape.rows));
        if released.is_some_and(|released| life.order < *released) {
            return Ok(None);
        }
        let of_row =
            |stamp: &Stamp| (stamp.identity.row_order, stamp.out) == (life.order, life.out);
        let present: Vec<&Stamp> =
            heads.iter().map(|unit| &unit.stamp).filter(|stamp| of_row(stamp)).collect();
        if present.iter().all(|stamp| stamp.programmed_at < self.since) {
            // Remains of an earlier life, or of a row that was never completed.
            return Ok(None);
        }
        let is_trusted = present.iter().all(|stamp| stamp.programmed_at < self.mark);
        // The last data unit and parity are programmed together, when all others have been.
        let last = layout.data_units(life.out) - 1;
        let was_complete =
            present.iter().any(|stamp| stamp.position >= last && stamp.programmed_at < self.mark);
        let found = self.gather(row, life, is_trusted);
        if found.is_none() && was_complete {
            let what = format!("row {row} is durable, and more than one of its units is lost");
            return Err(OpenError::Damaged { what });
        }
        Ok(found)
    }

    /// The tables of a row, if no more than one unit is missing; of one that may be torn, every
    /// extent is checked.
    fn gather(&self, row: u32, life: Life, is_trusted: bool) -> Option<Row> {
        let layout = &self.store.layout;
        let shape = &layout.shape;
        let bytes = if is_trusted { layout.extents_from } else { layout.unit_bytes };
        let mut missing = None;
        let (mut tables, mut erase_count) = (Vec::new(), 0);
        let mut sum = vec![0; bytes];
        for position in 0..layout.data_units(life.out) {
            let unit = self.unit(Member { row, position, life }, bytes);
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
        let parity = self.parity(row, life, is_trusted);
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
                return self.gather(row, life, false);
            }
            (None, None) if shape.is_protected => {
                let (position, identity) = (shape.dies - 1, self.store.identity(life.order));
                let body_crc = crc32c::crc32c(&sum[STAMP_BYTES..]);
                let (is_parity, programmed_at, out) = (true, self.since, life.out);
                let stamp =
                    Stamp { is_parity, row, position, identity, programmed_at, body_crc, out };
                self.put_back(row, FoundUnit { stamp, bytes: sum });
            }
            (None, _) => {}
        }
        Some(Row { life, erase_count, tables })
    }

    /// A unit as the others of its row give it back, whatever that is worth.
    fn restored(&self, row: u32, stamp: Stamp) -> Option<FoundUnit> {
        let mut bytes = vec![0; self.store.layout.unit_bytes];
        let body = &mut bytes[STAMP_BYTES..];
        let life = Life { order: stamp.identity.row_order, out: stamp.out };
        let member = Member { row, position: stamp.position, life };
        self.store.reconstruct(member, STAMP_BYTES, body).ok()?;
        Some(FoundUnit { stamp, bytes })
    }

    /// Writes a unit again, so that the row survives a further loss.
    fn put_back(&self, row: u32, mut unit: FoundUnit) {
        let layout = &self.store.layout;
        let die = layout.die(row, unit.stamp.position, unit.stamp.out);
        unit.stamp.write(&mut unit.bytes);
        // Where it cannot be written, the row is as good as it was.
        let _ = self.store.dies.write(die, layout.unit_from(row), &unit.bytes);
    }

    /// The stamp of a row's parity unit, if that is what it should be.
    fn parity(&self, row: u32, life: Life, is_trusted: bool) -> Option<Stamp> {
        let layout = &self.store.layout;
        layout.shape.is_protected.then_some(())?;
        let bytes = if is_trusted { STAMP_BYTES } else { layout.unit_bytes };
        let unit = self.unit(Member { row, position: layout.shape.dies - 1, life }, bytes)?;
        let is_right =
            is_trusted || crc32c::crc32c(&unit.bytes[STAMP_BYTES..]) == unit.stamp.body_crc;
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
