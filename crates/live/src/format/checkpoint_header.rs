//! The header of a checkpoint slot.

use crate::format::encoding::{is_sealed, put, seal, u32_at, u64_at};
use crate::format::header::SESSION_MAX;
use crate::format::layout::HEADER_BYTES;
use crate::format::position::Position;

const MAGIC: u64 = 0x7470_6b63_5447_4c46; // "FLGTckpt"
/// Highest number of a checkpoint.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

/// Header of a checkpoint slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckpointHeader {
    pub(crate) drive: u64,
    /// Counts checkpoints; the slot is its rest by two.
    pub(crate) number: u64,
    pub(crate) session: u64,
    /// Count of events at the checkpoint: the map has every event before this one.
    pub(crate) seq: u64,
    /// The first batch that is not in the map.
    pub(crate) journal: Position,
    /// Logical pages that the map has.
    pub(crate) pages: u32,
}

impl CheckpointHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        assert!((1..=NUMBER_MAX).contains(&self.number), "checkpoints are numbered from 1");
        assert!(self.journal.is_possible(), "a checkpoint begins at a batch of the journal");
        let mut bytes = vec![0; usize::try_from(HEADER_BYTES).expect("a page")];
        let numbers = [
            MAGIC,
            self.drive,
            self.number,
            self.session,
            self.seq,
            self.journal.at,
            self.journal.number,
            self.journal.link.into(),
            self.pages.into(),
        ];
        for (index, number) in numbers.into_iter().enumerate() {
            put(&mut bytes, index * 8, number.to_le_bytes());
        }
        seal(&mut bytes);
        bytes
    }

    /// Decodes the header of a slot; none if its length, magic or checksum is wrong, or a value is
    /// impossible.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let is_whole = bytes.len() as u64 == HEADER_BYTES && is_sealed(bytes);
        (is_whole && u64_at(bytes, 0) == MAGIC).then_some(())?;
        let summary = Self {
            drive: u64_at(bytes, 8),
            number: u64_at(bytes, 16),
            session: u64_at(bytes, 24),
            seq: u64_at(bytes, 32),
            journal: Position {
                at: u64_at(bytes, 40),
                number: u64_at(bytes, 48),
                link: u32_at(bytes, 56),
            },
            pages: u32_at(bytes, 64),
        };
        let is_possible = (1..=NUMBER_MAX).contains(&summary.number)
            && (1..=SESSION_MAX).contains(&summary.session)
            && summary.journal.is_possible();
        is_possible.then_some(summary)
    }
}
