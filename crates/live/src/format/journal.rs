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

use crate::format::die_set::DieSet;
use crate::format::encoding::{self, put, seal, u16_at, u32_at, u64_at};
use crate::format::layout::Layout;
use crate::format::position::{Position, SECTOR_BYTES};
use crate::format::row::RowEpoch;
use crate::format::unit::{Codec, Extent, Origin};
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
    pub(crate) fn parse(head: &[u8], drive: u64) -> Option<Self> {
        let is_one =
            u64_at(head, 0) == MAGIC && encoding::is_sealed(head) && u64_at(head, 8) == drive;
        is_one.then(|| Self {
            position: Position {
                at: u64_at(head, 32),
                number: u64_at(head, 24),
                link: u32_at(head, 48),
            },
            session: u64_at(head, 16),
            copies: u32_at(head, 52),
            length: u32_at(head, 40),
            body_crc: u32_at(head, 56),
            crc: u32_at(head, HEAD_BYTES - 4),
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
        let head = Head::parse(&sector[..HEAD_BYTES], u64_at(&sector, 8))?;
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
    let (head, body) = batch.split_at_mut(HEAD_BYTES);
    put(head, 56, crc32c::crc32c(body).to_le_bytes());
    seal(head);
}

pub(crate) fn add_extent(batch: &mut Vec<u8>, extent: Extent, payload: &[u8], place: (u64, Ppn)) {
    assert_eq!(payload.len(), usize::from(extent.length), "a record tells its payload's length");
    assert!(place.0 != 0, "an extent lies in a row that was begun");
    let mut record = [0; RECORD_BYTES];
    record[0] = EXTENT;
    record[1] = if mutants::is(Mutant::CodecForgotten) { 0 } else { extent.codec as u8 };
    put(&mut record, 2, extent.length.to_le_bytes());
    put(&mut record, 4, extent.lpn.0.to_le_bytes());
    put(&mut record, 8, extent.seq.to_le_bytes());
    put(&mut record, 16, place.0.to_le_bytes());
    put(&mut record, 24, place.1.0.to_le_bytes());
    put(&mut record, 28, extent.payload_crc.to_le_bytes());
    batch.extend_from_slice(&record);
    batch.extend_from_slice(payload);
}

/// An extent, and where its payload lies in what was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journaled {
    pub(crate) extent: Extent,
    pub(crate) body: usize,
    pub(crate) from: usize,
}

/// Record of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// An extent, its place, and the life of the row that it was placed in.
    Extent { journaled: Journaled, ppn: Ppn, row_seq: u64 },
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
    let extent = Extent {
        lpn: Lpn(u32_at(entry, 0)),
        length: u16_at(entry, 4),
        codec: Codec::parse(entry[6])?,
        seq: u64_at(entry, 8),
        payload_crc: 0,
    };
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
        let (first, seq) = (u32_at(record, 4), u64_at(record, 8));
        records.push(match record[0] {
            TRIM | LOST => {
                let pages = u32_at(record, 16);
                first.checked_add(pages)?;
                let range = Trim { first: Lpn(first), pages, seq };
                if record[0] == TRIM { Record::Trim(range) } else { Record::Lost(range) }
            }
            ROW => {
                let length = usize::try_from(u32_at(record, 28)).ok()?;
                let (list, after) = rest.split_at_checked(length)?;
                let from = body.len() - rest.len();
                rest = after;
                Record::Row(parse_row(record, list, (number, from), layout)?)
            }
            RELEASE => Record::Release { superblock: first, seq },
            EXTENT => {
                let extent = Extent {
                    lpn: Lpn(first),
                    codec: Codec::parse(record[1])?,
                    length: u16_at(record, 2),
                    seq,
                    payload_crc: u32_at(record, 28),
                };
                let from = body.len() - rest.len();
                let (payload, after) = rest.split_at_checked(usize::from(extent.length))?;
                rest = after;
                let (row_seq, ppn) = (u64_at(record, 16), Ppn(u32_at(record, 24)));
                (extent.is_possible() && extent.holds(payload) && ppn.0 < layout.places())
                    .then_some(())?;
                let journaled = Journaled { extent, body: number, from };
                Record::Extent { journaled, ppn, row_seq }
            }
            _ => return None,
        });
    }
    Some(())
}

/// A listed row, if its list is one that such a row can have.
fn parse_row(
    record: &[u8],
    list: &[u8],
    (body, from): (usize, usize),
    layout: &Layout,
) -> Option<ListedRow> {
    let out = DieSet(u64_at(record, 16));
    let life = RowEpoch { seq: u64_at(record, 8), out };
    let units = u32::from(u16_at(record, 2));
    let row = u32_at(record, 4);
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
    let origin = Origin { is_relocation: record[1] != 0, erase_count: u32_at(record, 24) };
    rest.is_empty().then_some(ListedRow { row, life, origin, units, body, from })
}
