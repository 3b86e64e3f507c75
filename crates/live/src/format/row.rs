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

    /// The same, to be filled in.
    pub(crate) fn tables_mut(&mut self) -> [&mut [u8]; 2] {
        [cast_slice_mut(&mut self.seqs), cast_slice_mut(&mut self.outs)]
    }
}

/// A place on the media and the life of its row: enough to tell what is read from what is not
/// there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
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
