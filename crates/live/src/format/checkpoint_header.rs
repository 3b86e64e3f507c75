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

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: CheckpointHeader = CheckpointHeader {
        drive: 7,
        number: 12,
        session: 3,
        seq: 99,
        journal: Position { at: 8192, number: 40, link: 0xabcd },
        pages: 1000,
    };

    #[test]
    fn no_flipped_bit_goes_unnoticed() {
        let bytes = HEADER.encode();
        assert_eq!(CheckpointHeader::parse(&bytes), Some(HEADER));
        for at in (0..bytes.len()).step_by(13).chain(0..80) {
            let mut torn = bytes.clone();
            torn[at] ^= 1 << (at % 8);
            assert_eq!(CheckpointHeader::parse(&torn), None, "byte {at}");
        }
    }

    #[test]
    fn a_header_that_is_cut_short_or_too_long_is_none() {
        let mut bytes = HEADER.encode();
        assert_eq!(CheckpointHeader::parse(&bytes[..bytes.len() - 1]), None);
        assert_eq!(CheckpointHeader::parse(&[]), None);
        bytes.push(0);
        assert_eq!(CheckpointHeader::parse(&bytes), None);
    }

    #[test]
    fn numbers_that_cannot_be_are_not_believed_under_a_right_checksum() {
        let claims = |change: fn(&mut SlotHeaderBytes)| {
            let mut bytes = HEADER.encode();
            let mut header = *prefix::<SlotHeaderBytes>(&bytes).unwrap();
            change(&mut header);
            put_prefix(&mut bytes, &header);
            seal(&mut bytes);
            CheckpointHeader::parse(&bytes)
        };
        assert!(claims(|_| ()).is_some());
        assert_eq!(claims(|it| it.number = 0.into()), None, "checkpoints count from 1");
        assert_eq!(claims(|it| it.number = (NUMBER_MAX + 1).into()), None);
        assert_eq!(claims(|it| it.session = 0.into()), None);
        assert_eq!(claims(|it| it.session = (SESSION_MAX + 1).into()), None);
        assert_eq!(claims(|it| it.journal_at = 513.into()), None, "batches lie on sectors");
        assert_eq!(claims(|it| it.journal_number = u64::MAX.into()), None);
        assert_eq!(claims(|it| it.magic = 1.into()), None);
    }

    #[test]
    fn a_frame_has_the_checksums_of_its_head_and_of_what_is_saved() {
        let head = FrameHead {
            number: 12.into(),
            index: 1.into(),
            length: 5.into(),
            body_crc: U32::ZERO,
            seq: 99.into(),
            crc: U32::ZERO,
        };
        let mut frame = head.as_bytes().to_vec();
        frame.extend_from_slice(b"saved");
        seal_frame(&mut frame);
        let (bytes, saved) = frame.split_at(FRAME_HEAD_BYTES);
        assert!(is_sealed(bytes));
        let head = prefix::<FrameHead>(bytes).unwrap();
        assert_eq!(head.body_crc.get(), crc32c::crc32c(saved));
        assert_eq!((head.number.get(), head.index.get()), (12, 1), "the rest is as it was");
    }
}
