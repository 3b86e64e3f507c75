//! Which rows count, and what they hold.

use std::collections::BTreeMap;

use ftl::Cause;

use super::events::Events;
use crate::OpenError;
use crate::dies::DieSet;
use crate::layout::{Layout, STAMP_BYTES};
use crate::row::{Life, Rows};
use crate::store::{Member, Store};
use crate::unit::{self, Entry, Origin, Stamp};

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

/// A row that counts; what its units hold is in [`Room::tables`].
struct Row {
    life: Life,
    erase_count: u32,
}

/// A unit as it was found.
struct FoundUnit<'a> {
    stamp: Stamp,
    /// The unit, or as much of it as was read.
    bytes: &'a [u8],
}

/// What rows are read into, one after the other.
struct Room {
    /// Stamps and tables, die by die.
    heads: Vec<u8>,
    /// A whole unit.
    unit: Vec<u8>,
    /// The entries of a row's units, by position.
    tables: Vec<Vec<Entry>>,
}

impl Room {
    fn new(layout: &Layout) -> Self {
        let dies = layout.shape.dies as usize;
        Self {
            heads: vec![0; dies * layout.extents_from],
            unit: vec![0; layout.unit_bytes],
            tables: vec![Vec::new(); layout.shape.data_units() as usize],
        }
    }
}

impl Scan<'_> {
    /// Finds rows that were completed since the checkpoint, notes them in `rows`, and returns what
    /// happened in them.
    pub(super) fn run(
        &self,
        rows: &mut Rows,
        erase_counts: &mut [u32],
    ) -> Result<Events, OpenError> {
        let layout = &self.store.layout;
        let mut events = Events::new(layout);
        let mut room = Room::new(layout);
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
                let Some(Row { life, erase_count }) = self.row(row, &mut room)? else { continue };
                rows.set(row, life);
                let erased = &mut erase_counts[superblock as usize];
                *erased = erase_count.max(*erased);
                let units = layout.data_units(life.out) as usize;
                for (position, table) in (0..).zip(&room.tables[..units]) {
                    events.add_unit(self.store.first(row, position), table, self.since);
                }
            }
        }
        Ok(events)
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
            self.unit_on(die, row, &mut [0; STAMP_BYTES]).map(|unit| unit.stamp)
        })
    }

    /// The stream that filled a row which counts.
    pub(super) fn stream(&self, row: u32, life: Life) -> Option<Cause> {
        let layout = &self.store.layout;
        let mut head = vec![0; layout.extents_from];
        let origin = (0..layout.data_units(life.out)).find_map(|position| {
            let unit = self.unit(Member { row, position, life }, &mut head)?;
            self.table(row, position, &unit, &mut Vec::new())
        })?;
        Some(if origin.is_relocation { Cause::Relocation } else { Cause::Host })
    }

    /// A unit that carries the stamp of its own place and life, as far as it is read.
    fn unit<'b>(&self, member: Member, bytes: &'b mut [u8]) -> Option<FoundUnit<'b>> {
        let Member { row, position, life } = member;
        let unit = self.unit_on(self.store.layout.die(row, position, life.out), row, bytes)?;
        is_of(&unit.stamp, member).then_some(unit)
    }

    /// What a die has of a row, in whatever life, if the stamp says that it belongs there.
    fn unit_on<'b>(&self, die: usize, row: u32, bytes: &'b mut [u8]) -> Option<FoundUnit<'b>> {
        let layout = &self.store.layout;
        self.store.dies.read(die, layout.unit_from(row), bytes).ok()?;
        let stamp = Stamp::parse(bytes)?;
        let (position, out) = (stamp.position, stamp.out);
        let is_own = stamp.row == row
            && stamp.identity.drive == self.store.drive
            && stamp.is_parity == layout.is_parity(position)
            && layout.shape.may_leave_out(out)
            && layout.position(row, die, out) == Some(position);
        is_own.then_some(FoundUnit { stamp, bytes })
    }

    fn table(
        &self,
        row: u32,
        position: u32,
        unit: &FoundUnit<'_>,
        entries: &mut Vec<Entry>,
    ) -> Option<Origin> {
        let of = (unit.stamp.identity, self.store.first(row, position));
        unit::read_table(&self.store.layout, unit.bytes, of, entries)
    }

    /// A row, if it counts.
    fn row(&self, row: u32, room: &mut Room) -> Result<Option<Row>, OpenError> {
        let layout = &self.store.layout;
        let Room { heads, unit, tables } = room;
        let heads = heads.chunks_exact_mut(layout.extents_from).enumerate();
        let heads: Vec<FoundUnit<'_>> =
            heads.filter_map(|(die, head)| self.unit_on(die, row, head)).collect();
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
        let present = || heads.iter().map(|unit| &unit.stamp).filter(|stamp| of_row(stamp));
        if present().all(|stamp| stamp.programmed_at < self.since) {
            // Remains of an earlier life, or of a row that was never completed.
            return Ok(None);
        }
        // The last data unit and parity are programmed together, when all others have been.
        let last = layout.data_units(life.out) - 1;
        let was_complete =
            present().any(|stamp| stamp.position >= last && stamp.programmed_at < self.mark);
        let found = if present().all(|stamp| stamp.programmed_at < self.mark) {
            self.trusted(row, life, &heads, (unit, tables))
        } else {
            self.whole(row, life, (unit, tables))
        };
        if found.is_none() && was_complete {
            let what = format!("row {row} is durable, and more than one of its units is lost");
            return Err(OpenError::Damaged { what });
        }
        Ok(found)
    }

    /// The tables of a row whose units may be relied upon, if no more than one is missing.
    fn trusted(
        &self,
        row: u32,
        life: Life,
        heads: &[FoundUnit<'_>],
        (room, tables): (&mut [u8], &mut [Vec<Entry>]),
    ) -> Option<Row> {
        let layout = &self.store.layout;
        let is_protected = layout.shape.is_protected;
        let parity = Member { row, position: layout.shape.dies - 1, life };
        let mut stamps = heads.iter().map(|unit| unit.stamp).filter(|_| is_protected);
        let parity = stamps.find(|stamp| is_of(stamp, parity));
        let mut found = self.listed(row, life, heads, tables)?;
        if found.1.is_some() || is_protected && parity.is_none() {
            let missing = found.1.unwrap_or(layout.shape.dies - 1);
            let is_lost = self.store.dies.lost().has(layout.die(row, missing, life.out));
            // Where it can be written it is, if all that it is made from is right.
            let whole = if is_lost { None } else { self.whole(row, life, (room, tables)) };
            if whole.is_some() {
                return whole;
            }
            found = self.listed(row, life, heads, tables)?;
        }
        let (mut erase_count, missing) = found;
        if let Some(position) = missing {
            // Whatever that is worth: its table is all that is needed.
            let stamp = Stamp { is_parity: false, position, ..parity? };
            let mut head = vec![0; layout.extents_from];
            let member = Member { row, position, life };
            self.store.reconstruct(member, STAMP_BYTES, &mut head[STAMP_BYTES..]).ok()?;
            let unit = FoundUnit { stamp, bytes: &head };
            let table = &mut tables[position as usize];
            erase_count = self.table(row, position, &unit, table)?.erase_count;
        }
        Some(Row { life, erase_count })
    }

    /// The tables of a row as its units say; the erase count that they tell, and the position of
    /// the one that is missing. None where that is more than one.
    fn listed(
        &self,
        row: u32,
        life: Life,
        heads: &[FoundUnit<'_>],
        tables: &mut [Vec<Entry>],
    ) -> Option<(u32, Option<u32>)> {
        let (mut erase_count, mut missing) = (0, None);
        for (position, table) in (0..self.store.layout.data_units(life.out)).zip(tables) {
            let member = Member { row, position, life };
            let unit = heads.iter().find(|unit| is_of(&unit.stamp, member));
            match unit.and_then(|unit| self.table(row, position, unit, table)) {
                Some(origin) => erase_count = origin.erase_count,
                None => missing.replace(position).is_none().then_some(())?,
            }
        }
        Some((erase_count, missing))
    }

    /// The tables of a row whose units may be torn, if all but one are whole. That one is made anew
    /// from what was read and found right, not from another look.
    fn whole(
        &self,
        row: u32,
        life: Life,
        (room, tables): (&mut [u8], &mut [Vec<Entry>]),
    ) -> Option<Row> {
        let layout = &self.store.layout;
        let shape = &layout.shape;
        let mut sum = vec![0; if shape.is_protected { layout.unit_bytes } else { 0 }];
        let parity = self.parity(row, life, room);
        if parity.is_some() {
            unit::exclusive_or(&mut sum, room);
        }
        let (mut missing, mut erase_count) = (None, 0);
        for (position, table) in (0..layout.data_units(life.out)).zip(&mut *tables) {
            let unit = self.unit(Member { row, position, life }, room);
            let origin = unit.and_then(|unit| self.checked(row, position, &unit, table));
            if let Some(origin) = origin {
                erase_count = origin.erase_count;
                unit::exclusive_or(&mut sum, room);
            } else {
                missing.replace(position).is_none().then_some(())?;
            }
        }
        if let Some(position) = missing {
            let stamp = Stamp { is_parity: false, position, ..parity? };
            let table = &mut tables[position as usize];
            let unit = FoundUnit { stamp, bytes: &sum };
            erase_count = self.checked(row, position, &unit, table)?.erase_count;
            self.put_back(row, stamp, &mut sum);
        } else if shape.is_protected && parity.is_none() {
            let (position, identity) = (shape.dies - 1, self.store.identity(life.order));
            let body_crc = crc32c::crc32c(&sum[STAMP_BYTES..]);
            let (is_parity, programmed_at, out) = (true, self.since, life.out);
            let stamp = Stamp { is_parity, row, position, identity, programmed_at, body_crc, out };
            self.put_back(row, stamp, &mut sum);
        }
        Some(Row { life, erase_count })
    }

    /// Writes a unit again, so that the row survives a further loss.
    fn put_back(&self, row: u32, stamp: Stamp, unit: &mut [u8]) {
        let layout = &self.store.layout;
        let die = layout.die(row, stamp.position, stamp.out);
        stamp.write(unit);
        // Where it cannot be written, the row is as good as it was.
        let _ = self.store.dies.write(die, layout.unit_from(row), unit);
    }

    /// Reads a row's parity unit; its stamp, if that is what it should be.
    fn parity(&self, row: u32, life: Life, room: &mut [u8]) -> Option<Stamp> {
        let shape = &self.store.layout.shape;
        shape.is_protected.then_some(())?;
        let unit = self.unit(Member { row, position: shape.dies - 1, life }, room)?;
        let is_right = crc32c::crc32c(&unit.bytes[STAMP_BYTES..]) == unit.stamp.body_crc;
        is_right.then_some(unit.stamp)
    }

    /// The table of a unit that may be torn, if every extent is whole.
    fn checked(
        &self,
        row: u32,
        position: u32,
        unit: &FoundUnit<'_>,
        table: &mut Vec<Entry>,
    ) -> Option<Origin> {
        let origin = self.table(row, position, unit, table)?;
        let layout: &Layout = &self.store.layout;
        let first = self.store.first(row, position);
        let is_whole = |(slot, entry): (u32, &Entry)| {
            let ppn = layout.ppn_within(first, slot);
            unit::extent_in(unit.bytes, entry.from, unit.stamp.identity, ppn)
                .is_some_and(|(extent, _)| extent == entry.extent)
        };
        (0..).zip(&*table).all(is_whole).then_some(origin)
    }
}

/// Whether a stamp is that of a unit of a row's life.
fn is_of(stamp: &Stamp, member: Member) -> bool {
    let Member { position, life, .. } = member;
    (stamp.position, stamp.identity.row_order, stamp.out) == (position, life.order, life.out)
}
