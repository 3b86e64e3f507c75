//! Batches of the journal as bytes: the head, and the records after it.
//!
//! ```text
//!  batch 64   | magic | drive | session | number | position | bytes records | link | crc crc
//!  extent 32+ | 1 codec length lpn | seq | seq of the row | ppn, crc of the payload | payload
//!  trim 32    | 2           lpn    | seq | pages
//!  release 32 | 3       superblock | seq
//!  lost 32    | 4           lpn    | seq | pages
//!  row 32+    | 5 stream units row | seq of the row | dies left out | erase count, bytes |
//!             | for each data unit: extents 4, then each: lpn length codec seq 16
//! ```

use std::borrow::Cow;
use std::ops::Range;

use ftl::{Lpn, Ppn};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::format::die_set::DieSet;
use crate::format::encoding::{U16, U32, U64, is_sealed, prefix, put_prefix, seal};
use crate::format::layout::Layout;
use crate::format::position::{Position, SECTOR_BYTES};
use crate::format::row::RowEpoch;
use crate::format::unit::{Codec, Extent, ExtentId, Origin};
use crate::mutants::{self, Mutant};

pub(crate) const MAGIC: u64 = 0x6c6e_726a_5447_4c46; // "FLGTjrnl"
pub(crate) const HEAD_BYTES: usize = 64;
pub(crate) const RECORD_BYTES: usize = 32;
pub(crate) const EXTENT: u8 = 1;
pub(crate) const TRIM: u8 = 2;
pub(crate) const RELEASE: u8 = 3;
pub(crate) const LOST: u8 = 4;
pub(crate) const ROW: u8 = 5;
/// Bytes of an extent in the list of a row.
pub(crate) const LISTED_BYTES: usize = 16;

/// Head of a batch as bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct HeadBytes {
    pub(crate) magic: U64,
    pub(crate) drive: U64,
    pub(crate) session: U64,
    pub(crate) number: U64,
    pub(crate) at: U64,
    /// Bytes of the records, and their number.
    pub(crate) length: U32,
    pub(crate) records: U32,
    pub(crate) link: U32,
    pub(crate) copies: U32,
    /// Checksums of the records and of all before.
    pub(crate) body_crc: U32,
    pub(crate) crc: U32,
}

/// Record of an extent, which its payload follows.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct ExtentRecord {
    kind: u8,
    codec: u8,
    length: U16,
    lpn: U32,
    seq: U64,
    row_seq: U64,
    ppn: U32,
    payload_crc: U32,
}

/// Record of pages that were trimmed or found lost, or of a superblock that is released.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RangeRecord {
    pub(crate) kind: u8,
    pub(crate) zeroes: [u8; 3],
    pub(crate) first: U32,
    pub(crate) seq: U64,
    pub(crate) pages: U32,
    pub(crate) rest: [u8; 12],
}

/// Record of a row, which the list of its extents follows.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RowRecord {
    pub(crate) kind: u8,
    pub(crate) is_relocation: u8,
    pub(crate) units: U16,
    pub(crate) row: U32,
    pub(crate) seq: U64,
    pub(crate) out: U64,
    pub(crate) erase_count: U32,
    /// Bytes of the list.
    pub(crate) length: U32,
}

const _: () = {
    assert!(size_of::<HeadBytes>() == HEAD_BYTES, "as long as it is");
    assert!(size_of::<ExtentRecord>() == RECORD_BYTES, "as long as it is");
    assert!(size_of::<RangeRecord>() == RECORD_BYTES, "as long as it is");
    assert!(size_of::<RowRecord>() == RECORD_BYTES, "as long as it is");
    assert!(size_of::<ExtentId>() == LISTED_BYTES, "as long as it is");
};

/// Pages that follow each other and were trimmed, or found lost, at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trim {
    pub(crate) first: Lpn,
    pub(crate) pages: u32,
    pub(crate) seq: u64,
}

/// Head of a batch, decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Position of the batch, and the link to the one before.
    pub(crate) position: Position,
    pub(crate) session: u64,
    /// Copies of it that were written.
    pub(crate) copies: u32,
    /// Bytes of its records, and their checksum.
    pub(crate) length: u32,
    pub(crate) body_crc: u32,
    /// Its own checksum, which the next one links to.
    pub(crate) crc: u32,
}

impl Head {
    /// The head of a batch of whatever drive.
    pub(crate) fn of_any(head: &[u8; HEAD_BYTES]) -> Option<Self> {
        Self::parse(head, prefix::<HeadBytes>(head)?.drive.get())
    }

    pub(crate) fn parse(head: &[u8], drive: u64) -> Option<Self> {
        let found = prefix::<HeadBytes>(head)?;
        let is_one = found.magic == MAGIC && is_sealed(head) && found.drive == drive;
        is_one.then(|| Self {
            position: Position {
                at: found.at.get(),
                number: found.number.get(),
                link: found.link.get(),
            },
            session: found.session.get(),
            copies: found.copies.get(),
            length: found.length.get(),
            body_crc: found.body_crc.get(),
            crc: found.crc.get(),
        })
    }
}

/// The last batch that is whole in one copy of the ring: its number and its session, and its range
/// in bytes. `read` gives a range of the ring, which has `size` bytes.
pub(crate) fn last_batch<'a>(
    size: usize,
    read: impl Fn(Range<usize>) -> Cow<'a, [u8]>,
) -> Option<((u64, u64), Range<usize>)> {
    let sector_bytes = usize::try_from(SECTOR_BYTES).expect("a sector");
    let whole = (0..size).step_by(sector_bytes).filter_map(|from| {
        let sector = read(from..from + sector_bytes);
        let drive = prefix::<HeadBytes>(&sector)?.drive.get();
        let head = Head::parse(&sector[..HEAD_BYTES], drive)?;
        let body = from + HEAD_BYTES..from + HEAD_BYTES + usize::try_from(head.length).ok()?;
        let is_at_its_place = head.position.at % size as u64 == from as u64;
        let is_whole = body.end <= size && crc32c::crc32c(&read(body.clone())) == head.body_crc;
        let number = (head.position.number, head.session);
        (is_at_its_place && is_whole).then_some((number, from..body.end))
    });
    whole.max_by_key(|(last, _)| *last)
}

/// Puts the checksums of a batch into its head.
pub(crate) fn seal_batch(batch: &mut [u8]) {
    assert!(batch.len() >= HEAD_BYTES, "a batch has a head");
    let (bytes, body) = batch.split_at_mut(HEAD_BYTES);
    let mut head = HeadBytes::read_from_bytes(bytes).expect("as long as it is");
    head.body_crc = crc32c::crc32c(body).into();
    put_prefix(bytes, &head);
    seal(bytes);
}

/// Checksum of the head of a batch, which the next one links to.
pub(crate) fn link_to(batch: &[u8]) -> u32 {
    prefix::<HeadBytes>(batch).expect("a batch has a head").crc.get()
}

pub(crate) fn add_extent(
    batch: &mut Vec<u8>,
    extent: Extent,
    payload: &[u8],
    row_seq: u64,
    ppn: Ppn,
) {
    assert_eq!(payload.len(), usize::from(extent.length), "a record tells its payload's length");
    assert!(row_seq != 0, "an extent lies in a row that was begun");
    let record = ExtentRecord {
        kind: EXTENT,
        codec: if mutants::is(Mutant::CodecForgotten) { 0 } else { extent.coding() },
        length: extent.length.into(),
        lpn: extent.lpn.0.into(),
        seq: extent.seq.into(),
        row_seq: row_seq.into(),
        ppn: ppn.0.into(),
        payload_crc: extent.payload_crc.into(),
    };
    batch.extend_from_slice(record.as_bytes());
    batch.extend_from_slice(payload);
}

/// An extent, and where its payload lies in what was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournaledExtent {
    pub(crate) extent: Extent,
    pub(crate) body: usize,
    pub(crate) from: usize,
}

/// Record of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// An extent, its place, and the life of the row that it was placed in.
    Extent { journaled: JournaledExtent, ppn: Ppn, row_seq: u64 },
    /// Pages that were trimmed.
    Trim(Trim),
    /// Everything that a superblock held before this event is void.
    Release { superblock: u32, seq: u64 },
    /// Pages that were found lost.
    Lost(Trim),
    /// A row that was complete and durable.
    Row(ListedRow),
}

/// A row as a batch lists it; [`listed_unit`] parts its extents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedRow {
    pub(crate) row: u32,
    pub(crate) life: RowEpoch,
    pub(crate) origin: Origin,
    /// Data units that it has.
    pub(crate) units: u32,
    pub(crate) body: usize,
    pub(crate) from: usize,
}

/// The entries of the first unit in the list of a row, and what follows it.
pub(crate) fn listed_unit(list: &[u8]) -> Option<(&[[u8; LISTED_BYTES]], &[u8])> {
    let (count, rest) = list.split_first_chunk()?;
    let bytes = (u32::from_le_bytes(*count) as usize).checked_mul(LISTED_BYTES)?;
    let (entries, after) = rest.split_at_checked(bytes)?;
    Some((entries.as_chunks().0, after))
}

/// An extent in the list of a row; nothing is said of its payload.
pub(crate) fn listed_extent(entry: &[u8; LISTED_BYTES]) -> Option<Extent> {
    let extent = prefix::<ExtentId>(entry)?.extent(0)?;
    extent.is_possible().then_some(extent)
}

/// Adds what the records of a batch say; none where one of them says what cannot be.
pub(crate) fn parse(
    body: &[u8],
    number: usize,
    layout: &Layout,
    records: &mut Vec<Record>,
) -> Option<()> {
    let mut rest = body;
    while !rest.is_empty() {
        let (record, after) = rest.split_at_checked(RECORD_BYTES)?;
        rest = after;
        let range = prefix::<RangeRecord>(record)?;
        let (first, seq) = (range.first.get(), range.seq.get());
        records.push(match range.kind {
            TRIM | LOST => {
                let pages = range.pages.get();
                first.checked_add(pages)?;
                let trim = Trim { first: Lpn(first), pages, seq };
                if range.kind == TRIM { Record::Trim(trim) } else { Record::Lost(trim) }
            }
            ROW => {
                let record = prefix::<RowRecord>(record)?;
                let length = usize::try_from(record.length.get()).ok()?;
                let (list, after) = rest.split_at_checked(length)?;
                let from = body.len() - rest.len();
                rest = after;
                Record::Row(parse_row(record, list, (number, from), layout)?)
            }
            RELEASE => {
                (first < layout.shape.superblocks).then_some(())?;
                Record::Release { superblock: first, seq }
            }
            EXTENT => {
                let record = prefix::<ExtentRecord>(record)?;
                let (codec, key) = Codec::parse(record.codec)?;
                let extent = Extent {
                    lpn: Lpn(first),
                    codec,
                    key,
                    length: record.length.get(),
                    seq,
                    payload_crc: record.payload_crc.get(),
                };
                let from = body.len() - rest.len();
                let (payload, after) = rest.split_at_checked(usize::from(extent.length))?;
                rest = after;
                let (row_seq, ppn) = (record.row_seq.get(), Ppn(record.ppn.get()));
                (extent.is_possible() && extent.holds(payload) && ppn.0 < layout.places())
                    .then_some(())?;
                let journaled = JournaledExtent { extent, body: number, from };
                Record::Extent { journaled, ppn, row_seq }
            }
            _ => return None,
        });
    }
    Some(())
}

/// A listed row, if its list is one that such a row can have.
fn parse_row(
    record: &RowRecord,
    list: &[u8],
    (body, from): (usize, usize),
    layout: &Layout,
) -> Option<ListedRow> {
    let out = DieSet(record.out.get());
    let life = RowEpoch { seq: record.seq.get(), out };
    let units = u32::from(record.units.get());
    let row = record.row.get();
    let is_possible = life.seq != 0
        && row < layout.shape.rows_total()
        && layout.shape.may_leave_out(out)
        && units == layout.data_units(out);
    is_possible.then_some(())?;
    let mut rest = list;
    for _ in 0..units {
        let (entries, after) = listed_unit(rest)?;
        let is_right = entries.len() <= layout.unit_slots as usize
            && entries.iter().all(|entry| listed_extent(entry).is_some());
        is_right.then_some(())?;
        rest = after;
    }
    let origin =
        Origin { is_relocation: record.is_relocation != 0, erase_count: record.erase_count.get() };
    rest.is_empty().then_some(ListedRow { row, life, origin, units, body, from })
}

#[cfg(test)]
mod tests;
