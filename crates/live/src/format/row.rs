//! Rows: the life that each of them is in, and the dies that it leaves out.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use ftl::Ppn;

use crate::Shape;
use crate::format::die_set::DieSet;

/// Life of a row, from when it is begun until its superblock is erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowEpoch {
    /// Count of events when it was begun; 0: the row holds nothing.
    pub(crate) seq: u64,
    /// Dies that have no unit of it, since they were lost before.
    pub(crate) out: DieSet,
}

/// The lives of all rows of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    seqs: Vec<u64>,
    outs: Vec<u64>,
}

impl Rows {
    /// Bytes of memory for each row.
    pub(crate) const BYTES: u64 = 16;

    /// Rows that hold nothing.
    pub(crate) fn new(count: u32) -> Self {
        let count = count as usize;
        Self { seqs: vec![0; count], outs: vec![0; count] }
    }

    /// Number of rows.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.seqs.len()).expect("made from a u32")
    }

    #[inline]
    pub(crate) fn life(&self, row: u32) -> RowEpoch {
        let row = row as usize;
        RowEpoch { seq: self.seqs[row], out: DieSet(self.outs[row]) }
    }

    pub(crate) fn set(&mut self, row: u32, life: RowEpoch) {
        let is_whole = life.seq != 0 || life.out == DieSet::default();
        assert!(is_whole, "a row that holds nothing leaves out no die");
        let row = row as usize;
        (self.seqs[row], self.outs[row]) = (life.seq, life.out.0);
    }

    pub(crate) fn forget(&mut self, rows: Range<u32>) {
        assert!(rows.end <= self.count(), "rows are those of the drive");
        for row in rows {
            self.set(row, RowEpoch::default());
        }
    }

    /// All rows that hold something.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u32, RowEpoch)> {
        let all = (0_u32..).zip(&self.seqs).zip(&self.outs);
        let lives = all.map(|((row, seq), out)| (row, RowEpoch { seq: *seq, out: DieSet(*out) }));
        lives.filter(|(_, life)| life.seq != 0)
    }

    /// True if every row leaves out only dies that it may leave out.
    pub(crate) fn are_possible(&self, shape: &Shape) -> bool {
        self.outs.iter().all(|out| shape.may_leave_out(DieSet(*out)))
    }

    /// Dies that some row leaves out.
    pub(crate) fn left_out(&self) -> DieSet {
        DieSet(self.held().fold(0, |all, (_, life)| all | life.out.0))
    }

    /// Returns the tables that a checkpoint saves.
    pub(crate) fn tables(&self) -> [&[u8]; 2] {
        [cast_slice(&self.seqs), cast_slice(&self.outs)]
    }

    /// Returns the tables to be filled in from a checkpoint.
    pub(crate) fn tables_mut(&mut self) -> [&mut [u8]; 2] {
        [cast_slice_mut(&mut self.seqs), cast_slice_mut(&mut self.outs)]
    }
}

/// A place on the media and the life of its row: enough to tell what is read from what is not
/// there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredPlace {
    pub(crate) ppn: Ppn,
    pub(crate) life: RowEpoch,
}

/// A unit of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) row: u32,
    pub(crate) position: u32,
    pub(crate) life: RowEpoch,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::layout::tests::SHAPE;

    fn epoch(seq: u64, out: u64) -> RowEpoch {
        RowEpoch { seq, out: DieSet(out) }
    }

    #[test]
    fn rows_hold_nothing_until_they_are_begun() {
        let mut rows = Rows::new(4);
        assert_eq!((rows.count(), rows.held().count()), (4, 0));
        rows.set(2, epoch(7, 0));
        rows.set(3, epoch(9, 0b10));
        assert_eq!(rows.held().collect::<Vec<_>>(), [(2, epoch(7, 0)), (3, epoch(9, 0b10))]);
        assert_eq!(rows.life(0), RowEpoch::default());
    }

    #[test]
    fn forgotten_rows_hold_nothing_and_leave_out_no_die() {
        let mut rows = Rows::new(4);
        for row in 0..4 {
            rows.set(row, epoch(5, 0b100));
        }
        assert_eq!(rows.left_out(), DieSet(0b100));
        rows.forget(1..4);
        assert_eq!(rows.held().map(|it| it.0).collect::<Vec<_>>(), [0]);
        rows.forget(0..1);
        assert_eq!(rows.left_out(), DieSet::default());
    }

    #[test]
    #[should_panic(expected = "leaves out no die")]
    fn a_row_that_holds_nothing_cannot_leave_out_a_die() {
        Rows::new(1).set(0, epoch(0, 1));
    }

    #[test]
    #[should_panic(expected = "rows are those of the drive")]
    fn rows_beyond_the_drive_are_not_forgotten() {
        Rows::new(4).forget(3..5);
    }

    #[test]
    fn tables_are_what_a_checkpoint_saves_and_loads() {
        let mut rows = Rows::new(3);
        rows.set(1, epoch(0x0102_0304, 0b11));
        let saved = rows.tables().map(<[u8]>::to_vec);
        let bytes = saved.iter().map(Vec::len).sum::<usize>() as u64;
        assert_eq!(bytes, 3 * Rows::BYTES);
        let mut loaded = Rows::new(3);
        for (table, saved) in loaded.tables_mut().into_iter().zip(&saved) {
            table.copy_from_slice(saved);
        }
        assert_eq!(loaded.held().collect::<Vec<_>>(), rows.held().collect::<Vec<_>>());
    }

    #[test]
    fn a_row_may_leave_out_as_many_dies_as_parity_and_a_data_unit_remain() {
        let mut rows = Rows::new(1);
        for (out, is_possible) in [(0b0001, true), (0b0011, true), (0b0111, false), (1 << 9, false)]
        {
            rows.set(0, epoch(1, out));
            assert_eq!(rows.are_possible(&SHAPE), is_possible, "{out:b} of four dies");
        }
    }
}
