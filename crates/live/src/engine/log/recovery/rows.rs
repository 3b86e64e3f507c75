//! Rows that no list of the journal names: which of them count, and what they hold.

use std::collections::{BTreeMap, BTreeSet};

use device::is_host_full;
use ftl::{Cause, Debt, Ftl, RecoveredSuperblock, SuperblockId};

use super::events::Events;
use crate::OpenError;
use crate::engine::core::completed_rows::{CompleteRow, CompletedRows};
use crate::engine::dies::die_number;
use crate::engine::store::Store;
use crate::format::checkpoint_header::CheckpointHeader;
use crate::format::die_set::DieSet;
use crate::format::layout::{Layout, UNIT_HEADER_BYTES};
use crate::format::row::{Member, RowEpoch, Rows};
use crate::format::unit::{self, Entry, Origin, UnitHeader};

/// The search for rows that were completed since a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan<'a> {
    pub(super) store: &'a Store,
    /// The checkpoint has what happened before this event.
    since: u64,
    /// By superblock, the last event before which nothing of it counts.
    released: &'a BTreeMap<u32, u64>,
    /// Dies that some row may leave out.
    left_out: DieSet,
    /// The session of the last batch: of earlier ones only rows that are listed count.
    pub(super) session: u64,
}

/// Result of a scan, besides the events.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// Rows that count and were not listed, and the same as records for the journal.
    pub(super) rows: BTreeSet<u32>,
    pub(super) unlisted: CompletedRows,
    /// The highest number of batches that some unit says were durable.
    pub(super) batches: u64,
    mends: Vec<Mend>,
}

/// A unit that its row lacks, as the others give it back.
#[derive(Debug)]
struct Mend {
    row: u32,
    unit_header: UnitHeader,
    unit: Vec<u8>,
}

impl ScanResult {
    /// Writes units again that rows lack, so that those survive a further loss; not where a place
    /// is bad and its superblock is to be emptied.
    ///
    /// # Errors
    /// Fails if the host has no space: what tells of those rows would be overwritten next.
    pub(super) fn mend(&mut self, store: &Store, ftl: &Ftl<Debt>) -> Result<(), OpenError> {
        for Mend { row, unit_header, mut unit } in self.mends.drain(..) {
            unit_header.write(&mut unit);
            let die = store.layout.die(row, unit_header.position, unit_header.out);
            let superblock = store.layout.superblock_of(row);
            if ftl.superblock(superblock).is_condemned
                && store.bad_places.is_bad(die_number(die), superblock.0)
            {
                continue;
            }
            let written = store.dies.write_or_lose(die, store.layout.unit_from(row), &unit);
            // Where the drive cannot do without the die, the row is as good as it was.
            if let Some(error) = written.err().filter(is_host_full) {
                let attempted = format!("writing the unit that row {row} lacks on die {die}");
                return Err(OpenError::medium(&attempted, error));
            }
        }
        Ok(())
    }
}

/// A row that counts; what its units hold is in [`RowBuffers::tables`].
struct Row {
    life: RowEpoch,
    origin: Origin,
}

/// A unit as it was found.
struct FoundUnit<'a> {
    unit_header: UnitHeader,
    /// The unit, or as much of it as was read.
    bytes: &'a [u8],
}

/// Buffers into which rows are read, one after the other.
struct RowBuffers {
    /// Stamps, die by die.
    heads: Vec<u8>,
    /// A whole unit.
    unit: Vec<u8>,
    /// The entries of a row's units, by position.
    tables: Vec<Vec<Entry>>,
}

impl RowBuffers {
    fn new(layout: &Layout) -> Self {
        let dies = layout.shape.dies as usize;
        Self {
            heads: vec![0; dies * UNIT_HEADER_BYTES],
            unit: vec![0; layout.unit_bytes],
            tables: vec![Vec::new(); layout.shape.data_units() as usize],
        }
    }
}

impl<'a> Scan<'a> {
    /// A scan for what a checkpoint does not have.
    pub(super) const fn new(
        store: &'a Store,
        summary: &CheckpointHeader,
        released: &'a BTreeMap<u32, u64>,
        left_out: DieSet,
    ) -> Self {
        Self { store, since: summary.seq, released, left_out, session: 0 }
    }

    /// Finds rows that were completed since the checkpoint and are not in `rows`, notes them there,
    /// and adds what happened in them.
    pub(super) fn run(
        &self,
        rows: &mut Rows,
        erase_counts: &mut [u32],
        events: &mut Events,
    ) -> ScanResult {
        let layout = &self.store.layout;
        let mut buffers = RowBuffers::new(layout);
        let mut scanned = ScanResult::default();
        for superblock in 0..layout.shape.superblocks {
            let of_superblock = layout.rows_of(superblock);
            let is_held = |row: &u32| rows.life(*row).seq != 0;
            let is_begun = of_superblock.clone().any(|row| is_held(&row));
            let is_full = is_held(&(of_superblock.end - 1));
            let next_life = self.next_life(of_superblock.start);
            let batches = next_life.iter().map(|unit_header| unit_header.batches).max();
            scanned.batches = scanned.batches.max(batches.unwrap_or(0));
            if is_full || !is_begun && !next_life.iter().any(|it| self.is_near_end(it)) {
                continue;
            }
            let unknown: Vec<u32> = of_superblock.filter(|row| !is_held(row)).collect();
            for row in unknown {
                let found = self.row(row, &mut buffers, &mut scanned);
                let Some(Row { life, origin }) = found else { continue };
                rows.set(row, life);
                scanned.rows.insert(row);
                let erased = &mut erase_counts[superblock as usize];
                *erased = origin.erase_count.max(*erased);
                let units = &buffers.tables[..layout.data_units(life.out) as usize];
                scanned.unlisted.add_tables(CompleteRow { row, life, origin }, units);
                for (position, table) in (0..).zip(units) {
                    let extents = table.iter().map(|entry| entry.extent);
                    events.add_unit(self.store.first(row, position), extents, self.since);
                }
            }
        }
        scanned
    }

    /// The unit headers of a superblock's first row that were programmed since the checkpoint.
    /// They say which batches were durable then, even where the row is not complete, or where rows
    /// of an earlier life still count because the batch that released them is lost.
    fn next_life(&self, row: u32) -> Vec<UnitHeader> {
        let is_next = |unit_header: &UnitHeader| {
            unit_header.programmed_at >= self.since
                && unit_header.identity.row_seq >> 40 >= self.session
        };
        let dies = 0..self.store.layout.shape.dies as usize;
        let unit_headers = dies.filter_map(|die| {
            Some(self.unit_on(die, row, &mut [0; UNIT_HEADER_BYTES])?.unit_header)
        });
        unit_headers.filter(is_next).collect()
    }

    /// True if a unit is one of a row's last two, which are programmed together when all others
    /// have been; two, since one die may have lost what was written to it. Where rows leave out
    /// dies they come earlier.
    fn is_near_end(&self, unit_header: &UnitHeader) -> bool {
        let dies = self.store.layout.shape.dies;
        unit_header.position >= dies.saturating_sub(2 + self.left_out.count())
    }

    /// The stream that filled a row which counts.
    pub(super) fn stream(&self, row: u32, life: RowEpoch) -> Option<Cause> {
        let layout = &self.store.layout;
        let mut head = vec![0; layout.extents_from];
        let origin = (0..layout.data_units(life.out)).find_map(|position| {
            let unit = self.unit(Member { row, position, life }, &mut head)?;
            self.table(row, position, &unit, &mut Vec::new())
        })?;
        Some(if origin.is_relocation { Cause::Relocation } else { Cause::Host })
    }

    /// A unit that carries the unit header of its own place and life, as far as it is read.
    fn unit<'b>(&self, member: Member, bytes: &'b mut [u8]) -> Option<FoundUnit<'b>> {
        let Member { row, position, life } = member;
        let unit = self.unit_on(self.store.layout.die(row, position, life.out), row, bytes)?;
        is_of(&unit.unit_header, member).then_some(unit)
    }

    /// Reads a die's unit of a row, of whatever life, if its header says that it belongs there.
    fn unit_on<'b>(&self, die: usize, row: u32, bytes: &'b mut [u8]) -> Option<FoundUnit<'b>> {
        let layout = &self.store.layout;
        self.store.dies.read(die, layout.unit_from(row), bytes).ok()?;
        let unit_header = UnitHeader::parse(bytes)?;
        let (position, out) = (unit_header.position, unit_header.out);
        let is_own = unit_header.row == row
            && unit_header.identity.drive == self.store.drive
            && unit_header.is_parity == layout.is_parity(position)
            && layout.shape.may_leave_out(out)
            && layout.position(row, die, out) == Some(position);
        is_own.then_some(FoundUnit { unit_header, bytes })
    }

    fn table(
        &self,
        row: u32,
        position: u32,
        unit: &FoundUnit<'_>,
        entries: &mut Vec<Entry>,
    ) -> Option<Origin> {
        let (identity, first) = (unit.unit_header.identity, self.store.first(row, position));
        unit::read_table(&self.store.layout, unit.bytes, identity, first, entries)
    }

    /// A row, if it counts.
    fn row(&self, row: u32, buffers: &mut RowBuffers, scanned: &mut ScanResult) -> Option<Row> {
        let layout = &self.store.layout;
        let heads = buffers.heads.chunks_exact_mut(UNIT_HEADER_BYTES).enumerate();
        let unit_headers: Vec<UnitHeader> = heads
            .filter_map(|(die, head)| Some(self.unit_on(die, row, head)?.unit_header))
            .collect();
        let newest = unit_headers.iter().max_by_key(|unit_header| unit_header.identity.row_seq)?;
        let life = RowEpoch { seq: newest.identity.row_seq, out: newest.out };
        let released = self.released.get(&(row / layout.shape.rows));
        let is_over = released.is_some_and(|released| life.seq < *released);
        // What an earlier session had not listed when the next one began does not count.
        if is_over || life.seq >> 40 < self.session {
            return None;
        }
        let of_row = |unit_header: &UnitHeader| {
            (unit_header.identity.row_seq, unit_header.out) == (life.seq, life.out)
        };
        let present = || unit_headers.iter().filter(|unit_header| of_row(unit_header));
        if present().all(|unit_header| unit_header.programmed_at < self.since) {
            // Remains of an earlier life, or of a row that was never completed.
            return None;
        }
        let batches = present().map(|unit_header| unit_header.batches).max().unwrap_or(0);
        scanned.batches = scanned.batches.max(batches);
        self.whole(row, life, buffers, scanned)
    }

    /// The tables of a row whose units may be torn, if all but one are whole. That one is made anew
    /// from what was read and found right, not from another look.
    fn whole(
        &self,
        row: u32,
        life: RowEpoch,
        RowBuffers { unit: buffers, tables, .. }: &mut RowBuffers,
        scanned: &mut ScanResult,
    ) -> Option<Row> {
        let layout = &self.store.layout;
        let shape = &layout.shape;
        let mut sum = vec![0; if shape.is_protected { layout.unit_bytes } else { 0 }];
        let parity = self.parity(row, life, buffers);
        if parity.is_some() {
            unit::exclusive_or(&mut sum, buffers);
        }
        let mut missing = None;
        let mut origin = Origin { is_relocation: false, erase_count: 0 };
        for (position, table) in (0..layout.data_units(life.out)).zip(&mut *tables) {
            let unit = self.unit(Member { row, position, life }, buffers);
            let unit_header = unit.as_ref().map(|unit| unit.unit_header);
            let found = unit.and_then(|unit| self.checked(row, position, &unit, table));
            if let (Some(found), Some(unit_header)) = (found, unit_header) {
                origin = found;
                if unit::clear_gaps(buffers, table) {
                    scanned.mends.push(Mend { row, unit_header, unit: buffers.clone() });
                }
                if shape.is_protected {
                    unit::exclusive_or(&mut sum, buffers);
                }
            } else {
                missing.replace(position).is_none().then_some(())?;
            }
        }
        if let Some(position) = missing {
            let unit_header = UnitHeader { is_parity: false, position, batches: 0, ..parity? };
            let table = &mut tables[position as usize];
            let unit = FoundUnit { unit_header, bytes: &sum };
            origin = self.checked(row, position, &unit, table)?;
            scanned.mends.push(Mend { row, unit_header, unit: sum });
        } else if shape.is_protected && parity.is_none() {
            let unit_header = UnitHeader {
                is_parity: true,
                row,
                position: shape.dies - 1,
                identity: self.store.identity(life.seq),
                programmed_at: self.since,
                body_crc: crc32c::crc32c(&sum[UNIT_HEADER_BYTES..]),
                out: life.out,
                batches: 0,
            };
            scanned.mends.push(Mend { row, unit_header, unit: sum });
        }
        let lost = self.store.dies.lost();
        scanned.mends.retain(|it| {
            !lost.has(layout.die(it.row, it.unit_header.position, it.unit_header.out))
        });
        Some(Row { life, origin })
    }

    /// Reads a row's parity unit; its unit header, if that is what it should be.
    fn parity(&self, row: u32, life: RowEpoch, buffers: &mut [u8]) -> Option<UnitHeader> {
        let shape = &self.store.layout.shape;
        shape.is_protected.then_some(())?;
        let unit = self.unit(Member { row, position: shape.dies - 1, life }, buffers)?;
        let is_right =
            crc32c::crc32c(&unit.bytes[UNIT_HEADER_BYTES..]) == unit.unit_header.body_crc;
        is_right.then_some(unit.unit_header)
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
            unit::extent_in(unit.bytes, entry.from, unit.unit_header.identity, ppn)
                .is_some_and(|(extent, _)| extent == entry.extent)
        };
        (0..).zip(&*table).all(is_whole).then_some(origin)
    }
}

/// True if a unit header is that of a unit of this life of the row.
fn is_of(unit_header: &UnitHeader, member: Member) -> bool {
    let Member { position, life, .. } = member;
    (unit_header.position, unit_header.identity.row_seq, unit_header.out)
        == (position, life.seq, life.out)
}

impl Scan<'_> {
    /// Returns the state of each superblock for the translation layer, and the superblocks in the
    /// order in which they were begun.
    pub(super) fn survey(
        &self,
        rows: &Rows,
        erase_counts: &[u32],
    ) -> (Vec<RecoveredSuperblock>, Vec<SuperblockId>) {
        let layout = &self.store.layout;
        let shape = &layout.shape;
        let mut begun = Vec::new();
        let mut found = Vec::new();
        for (id, erase_count) in (0..shape.superblocks).zip(erase_counts) {
            let of_superblock = layout.rows_of(id);
            let is_held = |row: &u32| rows.life(*row).seq != 0;
            let last = of_superblock.clone().rev().find(is_held);
            let written = last.map_or(0, |row| row + 1 - of_superblock.start);
            let goes_on = last
                .filter(|row| row + 1 < of_superblock.end)
                .and_then(|row| self.stream(row, rows.life(row)));
            let units_written = written * shape.data_units();
            found.push(RecoveredSuperblock { erase_count: *erase_count, units_written, goes_on });
            let seqs = of_superblock.filter(is_held).map(|row| rows.life(row).seq);
            begun.extend(seqs.min().map(|seq| (seq, SuperblockId(id))));
        }
        begun.sort_unstable();
        (found, begun.into_iter().map(|(_, id)| id).collect())
    }
}
