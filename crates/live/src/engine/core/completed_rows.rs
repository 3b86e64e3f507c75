//! Rows that are complete and not yet listed in the journal.

use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::engine::core::open_row::OpenRow;
use crate::format::encoding::put_prefix;
use crate::format::journal::{LISTED_BYTES, RECORD_BYTES, ROW, RowRecord};
use crate::format::layout::Layout;
use crate::format::row::RowEpoch;
use crate::format::unit::{Entry, Origin};

/// A row that is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompleteRow {
    pub(crate) row: u32,
    pub(crate) life: RowEpoch,
    pub(crate) origin: Origin,
}

/// Rows that were completed and are in no batch yet, as records of one.
#[derive(Debug, Default)]
pub(crate) struct CompletedRows {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: u32,
}

impl CompletedRows {
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.rows = 0;
    }

    /// Adds a row that is complete, with each of its extents.
    pub(crate) fn add(&mut self, open: &OpenRow) {
        assert!(!open.units.is_empty(), "a row that is complete has units");
        let begin = self.begin();
        for unit in &open.units {
            self.bytes.extend_from_slice(&unit.count.to_le_bytes());
            for entry in unit.entries() {
                self.bytes.extend_from_slice(&entry[..LISTED_BYTES]);
            }
        }
        let life = RowEpoch { seq: open.seq, out: open.out };
        let row = CompleteRow { row: open.row, life, origin: open.origin };
        self.end(begin, row, open.units.len());
    }

    /// Adds a row that was found complete, by the tables of its data units.
    pub(crate) fn add_tables(&mut self, row: CompleteRow, units: &[Vec<Entry>]) {
        let begin = self.begin();
        for table in units {
            let count = u32::try_from(table.len()).expect("the extents of a unit");
            self.bytes.extend_from_slice(&count.to_le_bytes());
            for Entry { extent, .. } in table {
                self.bytes.extend_from_slice(extent.id().as_bytes());
            }
        }
        self.end(begin, row, units.len());
    }

    /// Leaves the rows out that `is_kept` does not name.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        let whole = std::mem::take(self);
        let mut rest = &whole.bytes[..];
        while let Ok((record, _)) = RowRecord::read_from_prefix(rest) {
            let (row, others) = rest.split_at(RECORD_BYTES + record.length.get() as usize);
            if is_kept(record.row.get()) {
                self.bytes.extend_from_slice(row);
                self.rows += 1;
            }
            rest = others;
        }
        assert!(rest.is_empty() && self.rows <= whole.rows, "the list is whole records");
    }

    fn begin(&mut self) -> usize {
        let begin = self.bytes.len();
        self.bytes.resize(begin + RECORD_BYTES, 0);
        begin
    }

    /// Ends the record that began at `begin`, of a row with so many data units.
    fn end(&mut self, begin: usize, row: CompleteRow, units: usize) {
        let CompleteRow { row, life, origin } = row;
        let length = u32::try_from(self.bytes.len() - begin - RECORD_BYTES).expect("a row");
        assert!(life.seq != 0, "a row that is listed was begun");
        assert!(length as usize >= units * 4, "each unit is listed with its count");
        let record = RowRecord {
            kind: ROW,
            is_relocation: u8::from(origin.is_relocation),
            units: u16::try_from(units).expect("64 dies").into(),
            row: row.into(),
            seq: life.seq.into(),
            out: life.out.0.into(),
            erase_count: origin.erase_count.into(),
            length: length.into(),
        };
        put_prefix(&mut self.bytes[begin..], &record);
        self.rows += 1;
    }
}

/// Bytes of the list of completed rows from which on it is time to commit it: a share of what the
/// journal has room for besides three batches of the largest size.
pub(crate) fn completed_bytes_due(layout: &Layout) -> u64 {
    let row = layout.unit_bytes as u64 * u64::from(layout.shape.dies);
    (layout.shape.journal_bytes.saturating_sub(18 * row) / 24).min(COMPLETED_BYTES_MAX)
}

/// Most bytes of that list: as many as 512 MiB of pages take.
const COMPLETED_BYTES_MAX: u64 = 2 << 20;
/// Largest buffer that is kept for the next batch or list; larger ones are rare.
pub(crate) const KEPT_BYTES_MAX: usize = 1 << 18;
