//! Units: what is programmed in one go, and the extents in it.
//!
//! ```text
//!  unit header 64   | magic kind position | row | seq of the row | programmed at | drive | … | crc
//!  table head | extents | stream, erase count | crc of the table
//!  entry 24   | lpn | length | codec | seq | where | crc of the payload
//!  …
//!  extent 32+ | lpn | length | codec | seq | crc of the payload | crc of this header
//! ```
//!
//! A parity unit has a header of its own; the rest of it is the exclusive or of the rests of the
//! row's data units.
//!
//! Checksums of tables and extents cover where they belong: drive, row, life of the row, position.
//! So what was written for another place, or for this one in an earlier life, is never taken for
//! what should be there.
//!
//! Parity adds units up by exclusive or, and so does CRC-32C: the sum of an odd number of units
//! would have right checksums for the sum of their places. With damaged parity, three pages that
//! were written in sequence could then pass for a fourth. So these checksums are [`fmix32`] of the
//! CRC-32C, which does not add up.

use std::sync::Arc;

use crc32c::{crc32c, crc32c_append};
use ftl::{Lpn, Ppn};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::format::die_set::DieSet;
use crate::format::encoding::{U16, U32, U64, is_sealed, prefix, put_prefix, seal};
use crate::format::key_area::KEYS_MAX;
use crate::format::layout::{
    ENTRY_BYTES, EXTENT_HEADER_BYTES, Layout, PAGE_BYTES, SLOT_BYTES, TABLE_HEAD_BYTES,
    UNIT_HEADER_BYTES,
};
use crate::mutants::{self, Mutant};

const MAGIC: u32 = 0x5447_4c46; // "FLGT"
const DATA: u8 = 1;
const PARITY: u8 = 2;

/// First 16 bytes of an extent's header, and of each entry that lists it.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct ExtentId {
    lpn: U32,
    length: U16,
    codec: u8,
    zero: u8,
    seq: U64,
}

/// Header of an extent as bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct ExtentHeader {
    id: ExtentId,
    payload_crc: U32,
    zeroes: [u8; 8],
    crc: U32,
}

/// Head of a table as bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct TableHead {
    /// Extents of the unit.
    pub(crate) count: U32,
    is_relocation: U32,
    erase_count: U32,
    crc: U32,
}

/// Entry of a table as bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct TableEntry {
    id: ExtentId,
    /// Offset of the extent's header within the unit.
    pub(crate) from: U32,
    payload_crc: U32,
}

/// Header of a unit as bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct UnitHeaderBytes {
    magic: U32,
    kind: u8,
    zeroes: [u8; 3],
    row: U32,
    pub(crate) position: U32,
    pub(crate) drive: U64,
    pub(crate) row_seq: U64,
    programmed_at: U64,
    pub(crate) body_crc: U32,
    out: U64,
    batches: U64,
    crc: U32,
}

const _: () = {
    assert!(size_of::<ExtentHeader>() == EXTENT_HEADER_BYTES, "as long as it is");
    assert!(size_of::<TableHead>() == TABLE_HEAD_BYTES, "as long as it is");
    assert!(size_of::<TableEntry>() == ENTRY_BYTES, "as long as it is");
    assert!(size_of::<UnitHeaderBytes>() == UNIT_HEADER_BYTES, "as long as it is");
};

/// Encoding of the payload of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Codec {
    /// Uncompressed.
    Raw = 0,
    /// LZ4 block.
    Lz4 = 1,
    /// Zstandard frame.
    Zstd = 2,
    /// No payload: the page could not be saved from a medium that failed.
    Lost = 255,
}

impl Codec {
    /// Decodes the byte that says how a payload is stored: its codec, and the slot of its key in
    /// the upper four bits.
    pub(crate) fn parse(byte: u8) -> Option<(Self, u8)> {
        if byte == Self::Lost as u8 {
            return Some((Self::Lost, 0));
        }
        let key = byte >> 4;
        let codecs = [Self::Raw, Self::Lz4, Self::Zstd].into_iter();
        let codec = codecs.into_iter().find(|codec| *codec as u8 == byte & 0xf)?;
        (usize::from(key) <= KEYS_MAX).then_some((codec, key))
    }
}

/// Metadata of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) lpn: Lpn,
    pub(crate) codec: Codec,
    /// Slot of the key that its payload is encrypted with; 0: it is not encrypted.
    pub(crate) key: u8,
    /// Bytes of its payload.
    pub(crate) length: u16,
    /// Count of events when it was placed.
    pub(crate) seq: u64,
    pub(crate) payload_crc: u32,
}

impl Extent {
    /// True if `payload` has the length and the checksum that were stored.
    pub(crate) fn holds(&self, payload: &[u8]) -> bool {
        payload.len() == usize::from(self.length)
            && (crc32c(payload) == self.payload_crc || mutants::is(Mutant::ChecksumSkipped))
    }

    /// True if a page can have such a codec and length.
    pub(crate) fn is_possible(&self) -> bool {
        let length = usize::from(self.length);
        match self.codec {
            Codec::Raw => length == PAGE_BYTES,
            Codec::Lz4 | Codec::Zstd => (1..PAGE_BYTES).contains(&length),
            Codec::Lost => length == 0,
        }
    }

    /// The byte that [`Codec::parse`] takes apart.
    pub(crate) const fn coding(&self) -> u8 {
        self.codec as u8 | self.key << 4
    }

    /// Bytes that it takes within a unit.
    pub(crate) const fn stored_bytes(&self) -> usize {
        EXTENT_HEADER_BYTES + self.length as usize
    }

    /// The header that stands before its payload at `ppn` of a row, whose life `identity` names.
    pub(crate) fn header(&self, identity: Identity, ppn: Ppn) -> [u8; EXTENT_HEADER_BYTES] {
        assert!(self.is_possible(), "an extent that is written can be read back");
        assert!(identity.row_seq != 0, "an extent lies in a row that was begun");
        let mut header = ExtentHeader {
            id: self.id(),
            payload_crc: self.payload_crc.into(),
            zeroes: [0; 8],
            crc: U32::ZERO,
        };
        header.seal(identity, ppn);
        zerocopy::transmute!(header)
    }

    /// Identification in headers, tables and lists.
    pub(crate) fn id(&self) -> ExtentId {
        ExtentId {
            lpn: self.lpn.0.into(),
            length: self.length.into(),
            codec: self.coding(),
            zero: 0,
            seq: self.seq.into(),
        }
    }

    /// Decodes the header of an extent; none unless its checksum is that of this row and place.
    pub(crate) fn parse(header: &[u8], identity: Identity, ppn: Ppn) -> Option<Self> {
        let header = prefix::<ExtentHeader>(header)?;
        (header.crc == header.checksum(identity, ppn)).then_some(())?;
        let extent = header.id.extent(header.payload_crc.get())?;
        extent.is_possible().then_some(extent)
    }
}

impl ExtentId {
    /// Length of the payload in bytes.
    pub(crate) const fn length(&self) -> u16 {
        self.length.get()
    }

    /// The extent with this payload, unchecked but for its codec.
    pub(crate) fn extent(&self, payload_crc: u32) -> Option<Extent> {
        let (codec, key) = Codec::parse(self.codec)?;
        Some(Extent {
            lpn: Lpn(self.lpn.get()),
            codec,
            key,
            length: self.length.get(),
            seq: self.seq.get(),
            payload_crc,
        })
    }
}

impl ExtentHeader {
    /// Length of the payload in bytes.
    pub(crate) const fn length(&self) -> u16 {
        self.id.length()
    }

    /// Says which payload follows, for tests that change it.
    pub(crate) fn set_payload_crc(&mut self, crc: u32) {
        self.payload_crc = crc.into();
    }

    /// Ends the header with its checksum.
    pub(crate) fn seal(&mut self, identity: Identity, ppn: Ppn) {
        self.crc = self.checksum(identity, ppn).into();
    }

    fn checksum(&self, identity: Identity, ppn: Ppn) -> u32 {
        let covered = &self.as_bytes()[..EXTENT_HEADER_BYTES - 4];
        fmix32(crc32c_append(identity.crc(ppn.0), covered))
    }
}

/// Identity that checksums cover besides the bytes: the life of a row of one drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Drawn when the drive was created.
    pub(crate) drive: u64,
    /// Count of events when the row was begun; 0 is never.
    pub(crate) row_seq: u64,
}

impl Identity {
    fn crc(self, place: u32) -> u32 {
        let crc = crc32c(&self.drive.to_le_bytes());
        crc32c_append(crc32c_append(crc, &self.row_seq.to_le_bytes()), &place.to_le_bytes())
    }
}

/// Header of a unit, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitHeader {
    pub(crate) is_parity: bool,
    pub(crate) row: u32,
    pub(crate) position: u32,
    pub(crate) identity: Identity,
    /// The drive's count of events when the unit was programmed.
    pub(crate) programmed_at: u64,
    /// Parity: checksum of the rest of the unit.
    pub(crate) body_crc: u32,
    /// Dies that the row leaves out.
    pub(crate) out: DieSet,
    /// Batches of the journal that were durable when the unit was programmed: those with a lower
    /// number.
    pub(crate) batches: u64,
}

impl UnitHeader {
    pub(crate) fn write(&self, unit: &mut [u8]) {
        assert!(self.identity.row_seq != 0, "a unit is programmed in a row that was begun");
        let header = UnitHeaderBytes {
            magic: MAGIC.into(),
            kind: if self.is_parity { PARITY } else { DATA },
            zeroes: [0; 3],
            row: self.row.into(),
            position: self.position.into(),
            drive: self.identity.drive.into(),
            row_seq: self.identity.row_seq.into(),
            programmed_at: self.programmed_at.into(),
            body_crc: self.body_crc.into(),
            out: self.out.0.into(),
            batches: self.batches.into(),
            crc: U32::ZERO,
        };
        put_prefix(unit, &header);
        seal(&mut unit[..UNIT_HEADER_BYTES]);
    }

    pub(crate) fn parse(unit: &[u8]) -> Option<Self> {
        let header = prefix::<UnitHeaderBytes>(unit)?;
        let is_known = header.magic == MAGIC && matches!(header.kind, DATA | PARITY);
        // A row of sequence number 0 was never begun.
        let is_one = is_known && is_sealed(header.as_bytes()) && header.row_seq != 0;
        is_one.then(|| Self {
            is_parity: header.kind == PARITY,
            row: header.row.get(),
            position: header.position.get(),
            identity: Identity { drive: header.drive.get(), row_seq: header.row_seq.get() },
            programmed_at: header.programmed_at.get(),
            body_crc: header.body_crc.get(),
            out: DieSet(header.out.get()),
            batches: header.batches.get(),
        })
    }
}

/// Origin of a unit: the stream that filled it, and the erases of its superblock by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// True if relocation filled it; otherwise the host did.
    pub(crate) is_relocation: bool,
    pub(crate) erase_count: u32,
}

/// An entry of a unit's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) extent: Extent,
    /// Offset of its header within the unit.
    pub(crate) from: usize,
}

/// The table of a unit, read from its bytes; none if the checksum says that it is not one, or if
/// its extents do not lie one after the other within the unit.
///
/// `unit` reaches at least to the end of the table; `first` is the unit's first place.
pub(crate) fn table(
    layout: &Layout,
    unit: &[u8],
    identity: Identity,
    first: Ppn,
) -> Option<(Origin, Vec<Entry>)> {
    let mut entries = Vec::new();
    let origin = read_table(layout, unit, identity, first, &mut entries)?;
    Some((origin, entries))
}

/// As [`table`], into `entries`, which hold nothing of worth where there is none.
pub(crate) fn read_table(
    layout: &Layout,
    unit: &[u8],
    identity: Identity,
    first: Ppn,
    entries: &mut Vec<Entry>,
) -> Option<Origin> {
    entries.clear();
    let head = prefix::<TableHead>(unit.get(UNIT_HEADER_BYTES..)?)?;
    let count = head.count.get();
    (count <= layout.unit_slots).then_some(())?;
    let covered = unit.get(UNIT_HEADER_BYTES + TABLE_HEAD_BYTES..Layout::entry_from(count))?;
    (head.crc == table_checksum(head, covered, identity, first)).then_some(())?;
    let origin =
        Origin { is_relocation: head.is_relocation != 0, erase_count: head.erase_count.get() };
    let mut end = layout.extents_from;
    for bytes in covered.as_chunks::<ENTRY_BYTES>().0 {
        let entry = entry(bytes)?;
        (entry.from >= end && entry.extent.is_possible()).then_some(())?;
        end = entry.from + entry.extent.stored_bytes();
        entries.push(entry);
    }
    (end <= layout.unit_bytes).then_some(origin)
}

/// Decodes one entry, unchecked but for its codec.
pub(crate) fn entry(bytes: &[u8]) -> Option<Entry> {
    let entry = prefix::<TableEntry>(bytes)?;
    let extent = entry.id.extent(entry.payload_crc.get())?;
    Some(Entry { extent, from: entry.from.get() as usize })
}

fn table_checksum(head: &TableHead, covered: &[u8], identity: Identity, first: Ppn) -> u32 {
    let head = &head.as_bytes()[..TABLE_HEAD_BYTES - 4];
    fmix32(crc32c_append(crc32c_append(identity.crc(first.0), head), covered))
}

/// The finalizer of `MurmurHash3` [appleby-2011]: a bijection of 32 bits, so that what the CRC
/// tells apart stays apart, in which no bit is a sum of others.
const fn fmix32(crc: u32) -> u32 {
    let hash = (crc ^ (crc >> 16)).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// The extent at a place of a unit whose bytes are all at hand, if it is whole.
pub(crate) fn extent_in(
    unit: &[u8],
    from: usize,
    identity: Identity,
    ppn: Ppn,
) -> Option<(Extent, &[u8])> {
    let header = unit.get(from..from + EXTENT_HEADER_BYTES)?;
    let extent = Extent::parse(header, identity, ppn)?;
    let payload = unit.get(from + EXTENT_HEADER_BYTES..from + extent.stored_bytes())?;
    extent.holds(payload).then_some((extent, payload))
}

/// Makes the bytes of a data unit zero that belong neither to its table nor to an extent; says
/// whether any was not. A write that the power tore leaves what was there before.
pub(crate) fn clear_gaps(unit: &mut [u8], table: &[Entry]) -> bool {
    let count = u32::try_from(table.len()).expect("the extents of a unit");
    let mut begin = Layout::entry_from(count);
    let mut is_changed = false;
    let ends = table.iter().map(|entry| (entry.from, entry.from + entry.extent.stored_bytes()));
    for (from, end) in ends.chain([(unit.len(), unit.len())]) {
        assert!(begin <= from, "extents follow each other");
        let gap = &mut unit[begin..from];
        if gap.iter().any(|byte| *byte != 0) {
            gap.fill(0);
            is_changed = true;
        }
        begin = end;
    }
    is_changed
}

/// A unit that is being filled, or that was and is being programmed.
#[derive(Debug)]
pub(crate) struct UnitBuffer {
    /// Shared, once it is finished, with the thread that programs it.
    bytes: Arc<Vec<u8>>,
    /// Extents in it.
    pub(crate) count: u32,
    /// Extents of it that the journal holds too.
    pub(crate) journaled: u32,
    /// True if the table and the header of the unit are written: nothing is changed from then on.
    is_finished: bool,
    /// Offset of the next extent.
    next: usize,
    /// Bytes from one extent to the next at least: where pages are stored whole, a number tells
    /// where an extent lies, also beyond one that was lost and has no payload.
    stride: usize,
}

impl UnitBuffer {
    /// An empty unit, in the memory of `bytes`, whatever they hold.
    pub(crate) fn new(layout: &Layout, mut bytes: Vec<u8>) -> Self {
        // What belongs to no extent becomes zeroes as it is passed over.
        bytes.resize(layout.unit_bytes, 0);
        let stride = if layout.shape.extents_per_page == 1 { SLOT_BYTES } else { 0 };
        let (bytes, next) = (Arc::new(bytes), layout.extents_from);
        Self { bytes, count: 0, journaled: 0, is_finished: false, next, stride }
    }

    /// The whole unit, once it is finished.
    pub(crate) fn finished(&self) -> Option<&Arc<Vec<u8>>> {
        self.is_finished.then_some(&self.bytes)
    }

    /// Its memory, to be used again, unless a thread still programs it.
    pub(crate) fn into_memory(self) -> Option<Vec<u8>> {
        Arc::try_unwrap(self.bytes).ok()
    }

    /// Puts an extent at the next place, which is `ppn`.
    pub(crate) fn append(&mut self, extent: &Extent, payload: &[u8], identity: Identity, ppn: Ppn) {
        assert_eq!(
            payload.len(),
            usize::from(extent.length),
            "a header tells its payload's length"
        );
        let entry = Layout::entry_from(self.count);
        let (begin, data) = (self.next, self.next + EXTENT_HEADER_BYTES);
        assert!(entry + ENTRY_BYTES <= begin, "the table ends before the extents begin");
        assert!(data + payload.len() <= self.bytes.len(), "an extent ends within its unit");
        assert!(!self.is_finished, "a unit that is finished takes no more");
        let header = extent.header(identity, ppn);
        let end = data + payload.len();
        self.next = end.max(begin + self.stride);
        let bytes = Arc::get_mut(&mut self.bytes).expect("a unit that is filled has one owner");
        bytes[begin..data].copy_from_slice(&header);
        bytes[data..end].copy_from_slice(payload);
        bytes[end..self.next].fill(0);
        let from = u32::try_from(begin).expect("a unit is far below 4 GiB");
        let listed = TableEntry {
            id: extent.id(),
            from: from.into(),
            payload_crc: extent.payload_crc.into(),
        };
        put_prefix(&mut bytes[entry..], &listed);
        self.count += 1;
    }

    /// The extent in `slot`, as it was put there.
    pub(crate) fn extent(&self, slot: u32) -> (Extent, &[u8]) {
        assert!(slot < self.count, "an extent is asked for that was appended");
        let at = Layout::entry_from(slot);
        let entry = entry(&self.bytes[at..at + ENTRY_BYTES]).expect("appended as an entry");
        let data = entry.from + EXTENT_HEADER_BYTES;
        (entry.extent, &self.bytes[data..data + usize::from(entry.extent.length)])
    }

    /// The entries of the extents in it, as the table will have them.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &[u8; ENTRY_BYTES]> {
        let table = &self.bytes[Layout::entry_from(0)..Layout::entry_from(self.count)];
        table.as_chunks::<ENTRY_BYTES>().0.iter()
    }

    /// Finishes the table, writes the header of the unit, and makes zero what nothing is in.
    pub(crate) fn finish(
        &mut self,
        layout: &Layout,
        unit_header: &UnitHeader,
        origin: Origin,
        first: Ppn,
    ) {
        assert!(!unit_header.is_parity, "parity has no table");
        assert!(self.journaled <= self.count, "what the journal holds was appended");
        assert!(!self.is_finished, "a unit is finished once");
        let until = Layout::entry_from(self.count);
        let bytes = Arc::get_mut(&mut self.bytes).expect("a unit that is filled has one owner");
        bytes[until..layout.extents_from].fill(0);
        bytes[self.next..].fill(0);
        let table = &mut bytes[UNIT_HEADER_BYTES..until];
        let head = TableHead {
            count: self.count.into(),
            is_relocation: u32::from(origin.is_relocation).into(),
            erase_count: origin.erase_count.into(),
            crc: U32::ZERO,
        };
        put_prefix(table, &head);
        seal_table(table, unit_header.identity, first);
        unit_header.write(bytes);
        self.is_finished = true;
    }
}

/// Puts the checksum of a table into its head.
pub(crate) fn seal_table(table: &mut [u8], identity: Identity, first: Ppn) {
    let (bytes, covered) = table.split_at_mut(TABLE_HEAD_BYTES);
    let mut head = TableHead::read_from_bytes(bytes).expect("as long as it is");
    head.crc = table_checksum(&head, covered, identity, first).into();
    put_prefix(bytes, &head);
}

/// Adds `other` to `sum`, bit by bit.
pub(crate) fn exclusive_or(sum: &mut [u8], other: &[u8]) {
    assert_eq!(sum.len(), other.len(), "units of a row are of one length");
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum ^= other;
    }
}

/// A page as it is to be stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    pub(crate) lpn: Lpn,
    pub(crate) codec: Codec,
    /// Slot of the key that the payload is encrypted with; 0: it is not encrypted.
    pub(crate) key: u8,
    pub(crate) payload: &'a [u8],
    pub(crate) payload_crc: u32,
}

impl Page<'_> {
    /// Bytes that it takes within a unit.
    pub(crate) const fn extent_bytes(&self) -> usize {
        EXTENT_HEADER_BYTES + self.payload.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of as many neighbours are not found to be the neighbour that is missing, although their
    /// pages and places add up to its page and its place.
    #[test]
    fn extents_do_not_add_up_to_another_extent() {
        let identity = Identity { drive: 7, row_seq: 9 };
        let extent = |at: u32| {
            let payload = [u8::try_from(at).unwrap(); PAGE_BYTES];
            let extent = Extent {
                lpn: Lpn(8 + at),
                codec: Codec::Raw,
                key: 0,
                length: u16::try_from(PAGE_BYTES).unwrap(),
                seq: u64::from(40 + at),
                payload_crc: crc32c(&payload),
            };
            let header = extent.header(identity, Ppn(4 + at));
            [header.as_slice(), &payload].concat()
        };
        let crc_of = |bytes| prefix::<ExtentHeader>(bytes).unwrap().payload_crc.get();
        let mut sum = extent(0);
        assert!(extent_in(&sum, 0, identity, Ppn(4)).is_some());
        exclusive_or(&mut sum, &extent(1));
        exclusive_or(&mut sum, &extent(2));
        assert_eq!(sum[..4], extent(3)[..4], "the page of the missing one");
        assert_eq!(crc32c(&sum[EXTENT_HEADER_BYTES..]), crc_of(&sum), "its payload adds up");
        assert!(extent_in(&sum, 0, identity, Ppn(7)).is_none());
    }
}
