//! The write buffer as bytes: its head, where its rings are written, and records.
//!
//! ```text
//!  0     | head: magic, version | volume | session | nonce | machine start, file | rings | crc
//!  512   | position of the journal, two cells in turn: at | number | link | crc
//!  1024  | of each ring where its first record begins, and where the next one will
//!  4096  | ring of extents | ring of trims
//!  record 48+ | kind codec length lpn | seq | row seq, or pages | ppn, payload crc | at | crc
//! ```
//!
//! Positions in a ring count up; `position % size` is the place. A record that does not fit before
//! the end begins at 0.
//!
//! **Invariant**: the checksum of a record begins with the volume and the nonce, and covers its
//! position, so what an earlier round or an earlier opening left is no record.

use ftl::{Lpn, Ppn};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::format::encoding::{U16, U32, U64, is_sealed, prefix, seal};
use crate::format::journal::Trim;
use crate::format::position::Position;
use crate::format::unit::{Codec, Extent};
use crate::medium::MachineFile;

const MAGIC: u64 = 0x6675_6277_5447_4c46; // "FLGTwbuf"
const VERSION: u32 = 1;
pub(crate) const HEAD_BYTES: usize = 128;
/// Offsets of the cells with positions of the journal.
pub(crate) const CELLS_FROM: [u64; 2] = [512, 576];
pub(crate) const CELL_BYTES: usize = 24;
/// Offset of the positions of the rings, 16 bytes each.
const MARKS_FROM: u64 = 1024;
pub(crate) const RINGS_FROM: u64 = 4096;
pub(crate) const RECORD_BYTES: usize = 48;
/// Bytes that a record begins at multiples of.
const ALIGN: u64 = 16;
const EXTENT: u8 = 1;
const TRIM: u8 = 2;

/// Head of the buffer as bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct HeadBytes {
    magic: U64,
    version: U32,
    zero: U32,
    drive: U64,
    session: U64,
    nonce: U64,
    start: [u8; 16],
    device: U64,
    file: U64,
    rings: [U64; 2],
    zeroes: [u8; 36],
    crc: U32,
}

/// Cell with a position of the journal.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct CellBytes {
    at: U64,
    number: U64,
    link: U32,
    crc: U32,
}

/// Head of a record, which the payload of an extent follows.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct RecordHead {
    kind: u8,
    codec: u8,
    length: U16,
    first: U32,
    seq: U64,
    /// Of an extent the sequence number of its row, of a trim the number of pages.
    row_seq: U64,
    ppn: U32,
    payload_crc: U32,
    at: U64,
    zero: U32,
    crc: U32,
}

const _: () = {
    assert!(size_of::<HeadBytes>() == HEAD_BYTES, "as long as it is");
    assert!(size_of::<CellBytes>() == CELL_BYTES, "as long as it is");
    assert!(size_of::<RecordHead>() == RECORD_BYTES, "as long as it is");
};

/// Head of the buffer, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) drive: u64,
    pub(crate) session: u64,
    /// Drawn for each opening.
    pub(crate) nonce: u64,
    pub(crate) place: MachineFile,
    /// Bytes of the rings of extents and of trims.
    pub(crate) rings: [u64; 2],
}

impl Head {
    pub(crate) fn bytes(&self) -> [u8; HEAD_BYTES] {
        let mut bytes: [u8; HEAD_BYTES] = zerocopy::transmute!(HeadBytes {
            magic: MAGIC.into(),
            version: VERSION.into(),
            zero: U32::ZERO,
            drive: self.drive.into(),
            session: self.session.into(),
            nonce: self.nonce.into(),
            start: self.place.start.to_le_bytes(),
            device: self.place.device.into(),
            file: self.place.file.into(),
            rings: self.rings.map(U64::new),
            zeroes: [0; 36],
            crc: U32::ZERO,
        });
        seal(&mut bytes);
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let found = prefix::<HeadBytes>(bytes)?;
        let is_one = found.magic == MAGIC && found.version == VERSION && is_sealed(bytes);
        is_one.then(|| Self {
            drive: found.drive.get(),
            session: found.session.get(),
            nonce: found.nonce.get(),
            place: MachineFile {
                start: u128::from_le_bytes(found.start),
                device: found.device.get(),
                file: found.file.get(),
            },
            rings: found.rings.map(U64::get),
        })
    }

    /// Bytes of the whole buffer.
    pub(crate) fn bytes_total(&self) -> Option<u64> {
        RINGS_FROM.checked_add(self.rings[0])?.checked_add(self.rings[1])
    }

    /// Offset of a ring.
    pub(crate) const fn ring_from(&self, ring: usize) -> u64 {
        RINGS_FROM + if ring == 0 { 0 } else { self.rings[0] }
    }

    /// Checksum that those of cells and records begin with.
    pub(crate) fn seed(&self) -> u32 {
        let crc = crc32c::crc32c(&self.drive.to_le_bytes());
        crc32c::crc32c_append(crc, &self.nonce.to_le_bytes())
    }
}

/// Offset of the position of a ring's first record; that of the next record follows it.
pub(crate) const fn mark_from(ring: usize) -> u64 {
    MARKS_FROM + 16 * ring as u64
}

/// A position of the journal as a cell.
pub(crate) fn cell(position: Position, seed: u32) -> [u8; CELL_BYTES] {
    let mut cell = CellBytes {
        at: position.at.into(),
        number: position.number.into(),
        link: position.link.into(),
        crc: U32::ZERO,
    };
    cell.crc = crc32c::crc32c_append(seed, &cell.as_bytes()[..CELL_BYTES - 4]).into();
    zerocopy::transmute!(cell)
}

/// The position that a cell has, if it is whole.
pub(crate) fn parse_cell(bytes: &[u8; CELL_BYTES], seed: u32) -> Option<Position> {
    let found = prefix::<CellBytes>(bytes)?;
    let crc = crc32c::crc32c_append(seed, &bytes[..CELL_BYTES - 4]);
    let position =
        Position { at: found.at.get(), number: found.number.get(), link: found.link.get() };
    (found.crc == crc && position.is_possible()).then_some(position)
}

/// Record of the buffer; the payload of an extent follows its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// An extent of the host, its place, and the sequence number of the row that it lies in.
    Extent { extent: Extent, row_seq: u64, ppn: Ppn },
    /// Pages that were trimmed.
    Trim(Trim),
}

impl Record {
    /// Count of events when it happened.
    pub(crate) const fn seq(&self) -> u64 {
        match self {
            Self::Extent { extent, .. } => extent.seq,
            Self::Trim(trim) => trim.seq,
        }
    }

    /// Bytes that the record takes of its ring, payload included.
    pub(crate) fn bytes_total(&self) -> u64 {
        let payload = match self {
            Self::Extent { extent, .. } => u64::from(extent.length),
            Self::Trim(_) => 0,
        };
        (RECORD_BYTES as u64 + payload).next_multiple_of(ALIGN)
    }

    /// The head of the record at a position.
    pub(crate) fn head(&self, at: u64, seed: u32) -> [u8; RECORD_BYTES] {
        let mut head = match *self {
            Self::Extent { extent, row_seq, ppn } => RecordHead {
                kind: EXTENT,
                codec: extent.coding(),
                length: extent.length.into(),
                first: extent.lpn.0.into(),
                seq: extent.seq.into(),
                row_seq: row_seq.into(),
                ppn: ppn.0.into(),
                payload_crc: extent.payload_crc.into(),
                at: at.into(),
                zero: U32::ZERO,
                crc: U32::ZERO,
            },
            Self::Trim(Trim { first, pages, seq }) => RecordHead {
                kind: TRIM,
                codec: 0,
                length: U16::ZERO,
                first: first.0.into(),
                seq: seq.into(),
                row_seq: u64::from(pages).into(),
                ppn: U32::ZERO,
                payload_crc: U32::ZERO,
                at: at.into(),
                zero: U32::ZERO,
                crc: U32::ZERO,
            },
        };
        let crc = crc32c::crc32c_append(seed, &head.as_bytes()[..RECORD_BYTES - 4]);
        head.crc = crc.into();
        zerocopy::transmute!(head)
    }

    /// The record at a position; none if it is not the one that was written there.
    pub(crate) fn parse(bytes: &[u8; RECORD_BYTES], at: u64, seed: u32) -> Option<Self> {
        let head = prefix::<RecordHead>(bytes)?;
        let crc = crc32c::crc32c_append(seed, &bytes[..RECORD_BYTES - 4]);
        (head.crc == crc && head.at == at).then_some(())?;
        match head.kind {
            EXTENT => {
                let (codec, key) = Codec::parse(head.codec)?;
                let extent = Extent {
                    lpn: Lpn(head.first.get()),
                    codec,
                    key,
                    length: head.length.get(),
                    seq: head.seq.get(),
                    payload_crc: head.payload_crc.get(),
                };
                let (row_seq, ppn) = (head.row_seq.get(), Ppn(head.ppn.get()));
                extent.is_possible().then_some(Self::Extent { extent, row_seq, ppn })
            }
            TRIM => Some(Self::Trim(Trim {
                first: Lpn(head.first.get()),
                pages: u32::try_from(head.row_seq.get()).ok()?,
                seq: head.seq.get(),
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head {
        drive: 7,
        session: 3,
        nonce: 0x1234_5678_9abc_def0,
        place: MachineFile { start: 1 << 100 | 5, device: 6, file: 9 },
        rings: [1 << 20, 1 << 12],
    };

    #[test]
    fn a_head_is_read_as_it_was_written_and_not_with_any_byte_changed() {
        let bytes = HEAD.bytes();
        assert_eq!(Head::parse(&bytes), Some(HEAD));
        for at in 0..bytes.len() {
            let mut changed = bytes;
            changed[at] ^= 0x10;
            assert_eq!(Head::parse(&changed), None, "byte {at}");
        }
    }

    #[test]
    fn records_and_cells_are_read_at_their_place_and_in_their_life_alone() {
        let extent = Extent {
            lpn: Lpn(5),
            codec: Codec::Lz4,
            key: 3,
            length: 100,
            seq: 1 << 41,
            payload_crc: 0xabcd,
        };
        let records = [
            Record::Extent { extent, row_seq: 1 << 40, ppn: Ppn(77) },
            Record::Trim(Trim { first: Lpn(9), pages: u32::MAX, seq: 12 }),
        ];
        let later = Head { nonce: HEAD.nonce + 1, ..HEAD };
        for record in records {
            let bytes = record.head(4096, HEAD.seed());
            assert_eq!(Record::parse(&bytes, 4096, HEAD.seed()), Some(record));
            assert_eq!(Record::parse(&bytes, 4112, HEAD.seed()), None, "of another round");
            assert_eq!(Record::parse(&bytes, 4096, later.seed()), None, "of another opening");
        }
        let position = Position { at: 1024, number: 5, link: 99 };
        let bytes = cell(position, HEAD.seed());
        assert_eq!(parse_cell(&bytes, HEAD.seed()), Some(position));
        assert_eq!(parse_cell(&bytes, later.seed()), None);
    }
}
