//! The header of a checkpoint slot, and the head of each frame in it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::format::encoding::{U32, U64, is_sealed, prefix, put_prefix, seal};
use crate::format::header::SESSION_MAX;
use crate::format::layout::{FRAME_HEAD_BYTES, HEADER_BYTES};
use crate::format::position::Position;

const MAGIC: u64 = 0x7470_6b63_5447_4c46; // "FLGTckpt"
/// Highest number of a checkpoint.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

/// Header of a checkpoint slot as bytes; the rest of its page is zeroes, and a checksum.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct SlotHeaderBytes {
    magic: U64,
    drive: U64,
    number: U64,
    session: U64,
    seq: U64,
    journal_at: U64,
    journal_number: U64,
    journal_link: U32,
    after_link: U32,
    pages: U32,
    after_pages: U32,
}

/// Head of a frame as bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct FrameHead {
    /// Number of the checkpoint.
    pub(crate) number: U64,
    /// Index of the frame within it.
    pub(crate) index: U32,
    /// Bytes that follow; 0: as many zeroes as belong there.
    pub(crate) length: U32,
    /// Checksum of them.
    pub(crate) body_crc: U32,
    /// Count of events of the checkpoint.
    pub(crate) seq: U64,
    /// Checksum of all before.
    pub(crate) crc: U32,
}

const _: () = assert!(size_of::<FrameHead>() == FRAME_HEAD_BYTES, "as long as it is");

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
        let header = SlotHeaderBytes {
            magic: MAGIC.into(),
            drive: self.drive.into(),
            number: self.number.into(),
            session: self.session.into(),
            seq: self.seq.into(),
            journal_at: self.journal.at.into(),
            journal_number: self.journal.number.into(),
            journal_link: self.journal.link.into(),
            after_link: U32::ZERO,
            pages: self.pages.into(),
            after_pages: U32::ZERO,
        };
        put_prefix(&mut bytes, &header);
        seal(&mut bytes);
        bytes
    }

    /// Decodes the header of a slot; none if its length, magic or checksum is wrong, or a value is
    /// impossible.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let is_whole = bytes.len() as u64 == HEADER_BYTES && is_sealed(bytes);
        let found = prefix::<SlotHeaderBytes>(bytes).filter(|it| is_whole && it.magic == MAGIC)?;
        let summary = Self {
            drive: found.drive.get(),
            number: found.number.get(),
            session: found.session.get(),
            seq: found.seq.get(),
            journal: Position {
                at: found.journal_at.get(),
                number: found.journal_number.get(),
                link: found.journal_link.get(),
            },
            pages: found.pages.get(),
        };
        let is_possible = (1..=NUMBER_MAX).contains(&summary.number)
            && (1..=SESSION_MAX).contains(&summary.session)
            && summary.journal.is_possible();
        is_possible.then_some(summary)
    }
}

/// Puts the checksums of a frame into its head.
pub(crate) fn seal_frame(frame: &mut [u8]) {
    let (bytes, saved) = frame.split_at_mut(FRAME_HEAD_BYTES);
    let mut head = FrameHead::read_from_bytes(bytes).expect("as long as it is");
    head.body_crc = crc32c::crc32c(saved).into();
    put_prefix(bytes, &head);
    seal(bytes);
}
