//! Hostile media: structures, and whole drives, of which any byte may say anything, with checksums
//! that are right. For property tests and fuzzers.
//!
//! Whatever bytes say, a drive reads them as a value that can be, or refuses them; it never panics,
//! and takes no more memory than the media are large.

use std::io;

use blockio::Rng;
use device::{Device as _, Durability};
use ftl::{Lpn, Ppn, RecoveredSuperblock, Recovery};
use status::Compression;

use super::disk::Disks;
use crate::engine::core::Core;
use crate::engine::core::completed_rows::CompleteRow;
use crate::engine::dies::Dies;
use crate::engine::log::checkpoint::Writer;
use crate::engine::log::journal::{Journal, Scope};
use crate::engine::log::recovery::whole_copies;
use crate::engine::log::replay::{self, Reading};
use crate::engine::store::Store;
use crate::format::checkpoint_header::{CheckpointHeader, FrameHead, seal_frame};
use crate::format::die_set::DieSet;
use crate::format::encoding::{prefix, put_prefix, seal};
use crate::format::header::{Closing, FORMAT_VERSION, Header};
use crate::format::journal::{HEAD_BYTES as BATCH_HEAD_BYTES, HeadBytes, Trim, seal_batch};
use crate::format::key_area::KeyArea;
use crate::format::layout::{
    ENTRY_BYTES, EXTENT_HEADER_BYTES, FRAME_HEAD_BYTES, HEADER_BYTES, Layout, Place,
    TABLE_HEAD_BYTES, UNIT_HEADER_BYTES,
};
use crate::format::position::Position;
use crate::format::row::{RowEpoch, Rows};
use crate::format::unit::{
    self, Codec, Extent, ExtentHeader, Identity, Origin, TableEntry, TableHead, UnitBuffer,
    UnitHeader, UnitHeaderBytes,
};
use crate::{Drive, Medium, Shape, format};

/// Number of every hostile drive.
const DRIVE: u64 = 7;
const SECTOR_BYTES: usize = 512;
const PAGE_BYTES: usize = 4096;
/// Most commands of a host that uses a hostile drive.
const COMMANDS: u64 = 60;

/// A drive of one die, small enough for many.
const SHAPE: Shape = Shape {
    pages_logical: 10,
    pages_stored_max: 10,
    pages_mappable: 16,
    dies: 1,
    is_protected: false,
    unit_pages: 3,
    rows: 2,
    superblocks: 13,
    extents_per_page: 4,
    compression: Compression::Lz4,
    journal_bytes: 80 * 4096,
};

/// The life of the row that hostile unit headers, tables and extents belong to.
const IDENTITY: Identity = Identity { drive: DRIVE, row_seq: 1 << 40 };
const FIRST: Ppn = Ppn(0);

/// A structure on the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The header of a die.
    Header,
    /// The header of a unit.
    UnitHeader,
    /// A unit with its table.
    Table,
    /// An extent.
    Extent,
    /// A batch of the journal.
    Batch,
    /// A slot with a checkpoint.
    Checkpoint,
}

impl Structure {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Header, Self::UnitHeader, Self::Table, Self::Extent, Self::Batch, Self::Checkpoint];

    /// One as a drive writes it.
    pub fn example(self) -> Vec<u8> {
        let layout = Layout::new(&SHAPE);
        match self {
            Self::Header => header().encode(),
            Self::UnitHeader => example_unit(&layout)[..UNIT_HEADER_BYTES].to_vec(),
            Self::Table => example_unit(&layout),
            Self::Extent => example_extent(),
            Self::Batch => example_batch(&layout),
            Self::Checkpoint => example_slot(&layout),
        }
    }

    /// Makes its checksums right, whatever it says.
    pub fn seal(self, bytes: &mut [u8]) {
        let layout = Layout::new(&SHAPE);
        match self {
            Self::Header if bytes.len() >= 4 => seal(bytes),
            Self::UnitHeader if bytes.len() >= UNIT_HEADER_BYTES => {
                seal(&mut bytes[..UNIT_HEADER_BYTES]);
            }
            Self::Table => seal_table(&layout, bytes, IDENTITY, FIRST),
            Self::Extent => seal_extent(bytes, IDENTITY, FIRST),
            Self::Batch => seal_journaled(bytes),
            Self::Checkpoint => seal_slot(&layout, bytes),
            Self::Header | Self::UnitHeader => {}
        }
    }

    /// Reads bytes that say anything, as they are, and put over an example with checksums made
    /// right.
    pub fn survives(self, bytes: &[u8]) {
        self.is_one(bytes);
        let mut sealed = bytes.to_vec();
        self.seal(&mut sealed);
        self.is_one(&sealed);
        let mut example = self.example();
        for (byte, difference) in example.iter_mut().zip(bytes) {
            *byte ^= difference;
        }
        self.seal(&mut example);
        self.is_one(&example);
    }

    /// True if a drive accepts bytes as this structure.
    ///
    /// # Panics
    /// When what comes of them cannot be: that is what this is for.
    pub fn is_one(self, bytes: &[u8]) -> bool {
        let layout = Layout::new(&SHAPE);
        match self {
            Self::Header => Header::parse(bytes).is_ok_and(|it| it.is_some_and(|it| is_sound(&it))),
            Self::UnitHeader => UnitHeader::parse(bytes).is_some(),
            Self::Table => is_table(&layout, bytes),
            Self::Extent => unit::extent_in(bytes, 0, IDENTITY, FIRST).is_some(),
            Self::Batch => is_batch(&layout, bytes),
            Self::Checkpoint => is_slot(&layout, bytes),
        }
    }
}

fn header() -> Header {
    Header {
        format: FORMAT_VERSION,
        drive: DRIVE,
        die: 0,
        shape: SHAPE,
        version: 1,
        version_everywhere: 0,
        session: 2,
        is_open: true,
        lost: DieSet::default(),
        lost_since: [0; 64],
        removed: DieSet::default(),
        left_out: DieSet::default(),
        unsafe_shutdowns: 0,
        closing: Closing::default(),
        keys: KeyArea::default(),
    }
}

/// A header that was taken for one says the same when it is written again, and has a layout.
fn is_sound(header: &Header) -> bool {
    let again = Header::parse(&header.encode());
    assert_eq!(again, Ok(Some(*header)));
    let layout = Layout::new(&header.shape);
    assert!(layout.die_bytes() > 0 && layout.places() > 0);
    true
}

fn example_extents() -> [(Extent, Vec<u8>); 2] {
    let extent = |lpn, codec, payload: Vec<u8>| {
        let length = u16::try_from(payload.len()).expect("at most a page");
        let payload_crc = crc32c::crc32c(&payload);
        let seq = IDENTITY.row_seq + 1 + u64::from(lpn);
        (Extent { lpn: Lpn(lpn), codec, key: 0, length, seq, payload_crc }, payload)
    };
    [extent(3, Codec::Raw, vec![3; PAGE_BYTES]), extent(5, Codec::Lz4, vec![5; 1000])]
}

fn example_extent() -> Vec<u8> {
    let [(extent, payload), _] = example_extents();
    [&extent.header(IDENTITY, FIRST)[..], &payload].concat()
}

fn example_unit(layout: &Layout) -> Vec<u8> {
    let mut buffer = UnitBuffer::new(layout, Vec::new());
    for (slot, (extent, payload)) in (0..).zip(example_extents()) {
        let ppn = layout.ppn(Place { row: 0, unit: 0, slot });
        buffer.append(&extent, &payload, IDENTITY, ppn);
    }
    let unit_header = UnitHeader {
        is_parity: false,
        row: 0,
        position: 0,
        identity: IDENTITY,
        programmed_at: IDENTITY.row_seq + 9,
        body_crc: 0,
        out: DieSet::default(),
        batches: 5,
    };
    buffer.finish(layout, &unit_header, Origin { is_relocation: false, erase_count: 4 }, FIRST);
    buffer.into_memory().expect("no thread programs it")
}

fn is_table(layout: &Layout, bytes: &[u8]) -> bool {
    let Some((_, entries)) = unit::table(layout, bytes, IDENTITY, FIRST) else { return false };
    for (slot, entry) in (0..).zip(entries) {
        let ppn = layout.ppn(Place { row: 0, unit: 0, slot });
        assert!(ppn.0 < layout.places());
        assert!(entry.from + entry.extent.stored_bytes() <= layout.unit_bytes);
    }
    true
}

fn seal_table(layout: &Layout, unit: &mut [u8], identity: Identity, first: Ppn) {
    let head = unit.get(UNIT_HEADER_BYTES..).and_then(prefix::<TableHead>);
    let Some(count) = head.map(|it| it.count.get().min(layout.unit_slots)) else { return };
    if let Some(table) = unit.get_mut(UNIT_HEADER_BYTES..Layout::entry_from(count)) {
        unit::seal_table(table, identity, first);
    }
}

fn seal_extent(bytes: &mut [u8], identity: Identity, ppn: Ppn) {
    let Some((mut header, rest)) = prefix(bytes).copied().zip(bytes.get(EXTENT_HEADER_BYTES..))
    else {
        return;
    };
    let header: &mut ExtentHeader = &mut header;
    if let Some(payload) = rest.get(..usize::from(header.length())) {
        header.set_payload_crc(crc32c::crc32c(payload));
    }
    header.seal(identity, ppn);
    put_prefix(bytes, header);
}

/// A batch of a trim, a lost page and the list of a row.
fn example_batch(layout: &Layout) -> Vec<u8> {
    let superblocks = vec![RecoveredSuperblock::default(); SHAPE.superblocks as usize];
    let empty = Recovery::new(&SHAPE.config()).expect("a shape that can be");
    let ftl = empty.finish(&superblocks, &[]).expect("nothing is mapped");
    let rows = Rows::new(SHAPE.rows_total());
    let mut core = Core::new(layout.clone(), DRIVE, ftl, rows, IDENTITY.row_seq);
    core.trims.push(Trim { first: Lpn(2), pages: 3, seq: IDENTITY.row_seq });
    core.lost.find(Lpn(7), IDENTITY.row_seq + 1);
    let life = RowEpoch { seq: IDENTITY.row_seq, out: DieSet::default() };
    let origin = Origin { is_relocation: false, erase_count: 4 };
    let entries = example_extents().map(|(extent, _)| unit::Entry { extent, from: 0 });
    core.completed.add_tables(CompleteRow { row: 3, life, origin }, &[entries.to_vec()]);
    let mut journal = Journal::new(DRIVE, 2, SHAPE.journal_bytes, FROM);
    journal.begin();
    journal.collect(&mut core, layout, Scope::Host);
    journal.finish(2).1.to_vec()
}

/// Position of the first batch.
const FROM: Position = Position { at: 0, number: 1, link: 0 };

fn is_batch(layout: &Layout, bytes: &[u8]) -> bool {
    let dies = slab(layout, layout.journal_from(0), bytes.to_vec());
    let store = Store::new(layout.clone(), dies, DRIVE);
    let replay = replay::read(Reading { store: &store, from: FROM, is_thorough: true });
    assert!(replay.end.at <= SHAPE.journal_bytes);
    replay.gap.is_none() && replay.end != FROM
}

fn seal_journaled(bytes: &mut [u8]) {
    let Some(head) = prefix::<HeadBytes>(bytes) else { return };
    let length = head.length.get() as usize;
    let until = BATCH_HEAD_BYTES.saturating_add(length).min(bytes.len());
    seal_batch(&mut bytes[..until]);
}

/// Bytes of the tables that a checkpoint holds.
fn tables(shape: &Shape) -> [usize; 6] {
    let rows = shape.rows_total() as usize * 8;
    let pages = shape.pages_logical as usize;
    let sizes = if shape.extents_per_page > 1 { pages } else { 0 };
    [rows, rows, shape.superblocks as usize * 4, pages * 4, sizes, shape.lost_map_bytes()]
}

fn example_slot(layout: &Layout) -> Vec<u8> {
    // Dies that rows leave out are none.
    let filled = (1..).zip(tables(&layout.shape));
    let saved = filled.map(|(index, bytes)| vec![if index == 2 { 0 } else { index }; bytes]);
    slot_of(SHAPE.pages_logical, saved)
}

/// A slot with a checkpoint of these tables.
fn slot_of(pages: u32, tables: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let summary = CheckpointHeader {
        drive: DRIVE,
        number: 2,
        session: 2,
        seq: IDENTITY.row_seq,
        journal: FROM,
        pages,
    };
    let mut slot = summary.encode();
    let mut writer = Writer::new(&summary);
    for table in tables {
        let (at, frame) = writer.frame(&table);
        slot.resize(usize::try_from(at).expect("a small slot"), 0);
        slot.extend_from_slice(frame);
    }
    slot
}

fn is_slot(layout: &Layout, bytes: &[u8]) -> bool {
    let dies = slab(layout, layout.checkpoint_from(0, 0), bytes.to_vec());
    let store = Store::new(layout.clone(), dies, DRIVE);
    let Some(summary) = bytes.get(..PAGE_BYTES).and_then(CheckpointHeader::parse) else {
        return false;
    };
    let whole = whole_copies(&store, summary.number).expect("the shape can be");
    !whole.is_empty()
}

/// Seals the header of a slot, and the frames where they should be.
fn seal_slot(layout: &Layout, slot: &mut [u8]) {
    let Some((header, mut rest)) = slot.split_at_mut_checked(PAGE_BYTES) else { return };
    if !header.starts_with(b"FLGTckpt") {
        return;
    }
    seal(header);
    for bytes in tables(&layout.shape).into_iter().filter(|bytes| *bytes > 0) {
        let room = (FRAME_HEAD_BYTES + bytes).min(rest.len());
        if room < FRAME_HEAD_BYTES {
            return;
        }
        let (frame, after) = rest.split_at_mut(room);
        let length = prefix::<FrameHead>(frame).map_or(0, |it| it.length.get() as usize);
        let length = length.min(room - FRAME_HEAD_BYTES);
        seal_frame(&mut frame[..FRAME_HEAD_BYTES + length]);
        rest = after;
    }
}

/// A medium that holds some bytes at a position, and zeroes elsewhere.
#[derive(Debug)]
struct Slab {
    size: u64,
    from: u64,
    bytes: Vec<u8>,
}

/// One such die.
fn slab(layout: &Layout, from: u64, bytes: Vec<u8>) -> Dies {
    let medium = Slab { size: layout.die_bytes(), from, bytes };
    Dies::new(vec![Some(Box::new(medium))], false)
}

impl Medium for Slab {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        assert!(end.is_some_and(|end| end <= self.size), "a read beyond the die");
        buffer.fill(0);
        for (at, byte) in (offset..).zip(buffer) {
            let index = at.checked_sub(self.from).and_then(|index| usize::try_from(index).ok());
            *byte = index.and_then(|index| self.bytes.get(index)).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The dies of a small drive, any bytes of which may be overwritten.
#[derive(Clone, Debug)]
pub struct Image {
    layout: Layout,
    dies: Vec<Vec<u8>>,
    /// Structures on the dies: die, offset, bytes.
    structures: Vec<(usize, usize, usize)>,
}

/// Bytes that are put somewhere into a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Index of the structure; counted on from the first after the last.
    pub structure: u16,
    /// Offset within it, likewise.
    pub at: u16,
    /// Number of bytes to write, modulo 8, less one.
    pub bytes: u8,
    /// Bytes to write, little-endian.
    pub value: u64,
}

impl Image {
    /// One of several drives, by number: of one die or protected, of whole or of compressed pages,
    /// closed or left by a crash.
    pub fn new(number: u8) -> Self {
        let is_protected = number & 1 != 0;
        let is_compressed = number & 2 != 0;
        let mut shape = Shape {
            dies: if is_protected { 3 } else { 1 },
            is_protected,
            extents_per_page: if is_compressed { 4 } else { 1 },
            compression: if is_compressed { Compression::Lz4 } else { Compression::None },
            unit_pages: if is_compressed { 2 } else { 1 },
            ..SHAPE
        };
        let row_bytes = Layout::new(&shape).unit_bytes as u64 * u64::from(shape.dies);
        shape.journal_bytes = (23 * row_bytes + 8 * 4096).next_multiple_of(4096);
        let layout = Layout::new(&shape);
        let bytes = usize::try_from(layout.die_bytes()).expect("a small drive");
        let disks = Disks::new(shape.dies as usize, bytes, Rng::new(number.into()));
        format(disks.media(), &shape, DRIVE).expect("a shape that can be");
        let drive = Drive::open_media(disks.media()).expect("it was made a moment ago");
        use_drive(&drive, u64::from(number));
        if number & 4 == 0 {
            drive.close().expect("the power is on");
        } else {
            drop(drive);
        }
        let dies = disks.contents();
        let structures = structures(&layout, &dies);
        Self { layout, dies, structures }
    }

    /// Puts bytes into a structure.
    pub fn edit(&mut self, edit: &Edit) {
        let count = self.structures.len();
        let (die, from, bytes) = self.structures[usize::from(edit.structure) % count];
        let at = from + usize::from(edit.at) % bytes;
        let room = &mut self.dies[die][at..];
        let length = usize::from(edit.bytes % 8 + 1).min(room.len());
        room[..length].copy_from_slice(&edit.value.to_le_bytes()[..length]);
    }

    /// Makes every checksum right.
    pub fn seal(&mut self) {
        let layout = &self.layout;
        let at = |bytes: u64| usize::try_from(bytes).expect("a small drive");
        for die in &mut self.dies {
            for copy in 0..2 {
                seal(&mut die[copy * PAGE_BYTES..(copy + 1) * PAGE_BYTES]);
            }
            for region in 0..layout.shape.regions() {
                let journal = layout.journal_from(region)..layout.checkpoint_from(region, 0);
                let journal = &mut die[at(journal.start)..at(journal.end)];
                for from in (0..journal.len()).step_by(SECTOR_BYTES) {
                    if journal[from..].starts_with(b"FLGTjrnl") {
                        seal_journaled(&mut journal[from..]);
                    }
                }
                for slot in 0..2 {
                    seal_slot(layout, &mut die[at(layout.checkpoint_from(region, slot))..]);
                }
            }
            for row in 0..layout.shape.rows_total() {
                seal_unit(layout, row, &mut die[at(layout.unit_from(row))..]);
            }
        }
    }

    /// Opens the drive, uses it, closes it, and does so again. It may refuse all of that.
    pub fn open(self) {
        let disks = Disks::holding(self.dies, Rng::new(1));
        for round in 0..2 {
            let Ok(drive) = Drive::open_media(disks.media()) else { return };
            let mut page = [0; PAGE_BYTES];
            for offset in (0..drive.size()).step_by(PAGE_BYTES) {
                // What it says of pages may well be wrong.
                let _ = drive.read(offset, &mut page);
            }
            use_drive(&drive, round);
            let _ = drive.status();
            if round == 0 {
                let _ = drive.close();
            }
        }
    }
}

/// Some commands of a host; no check looks at what comes of them.
fn use_drive(drive: &Drive, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..COMMANDS {
        let pages = drive.size() / PAGE_BYTES as u64;
        let offset = rng.below(pages) * PAGE_BYTES as u64;
        let content: [u8; PAGE_BYTES] = std::array::from_fn(|at| {
            let varied = (at as u64).wrapping_mul(rng.below(251) * 0x9e37_79b9) >> 7;
            if at % 3 == 0 { varied.to_le_bytes()[0] } else { 0 }
        });
        let _ = match rng.below(10) {
            0 => drive.flush(),
            1 => drive.trim(offset, PAGE_BYTES as u64, Durability::Volatile),
            2 => drive.checkpoint(),
            3 => drive.list_completed(0),
            _ => drive.write(offset, &content, Durability::Volatile),
        };
    }
}

/// Finds the structures on the dies that hold something.
fn structures(layout: &Layout, dies: &[Vec<u8>]) -> Vec<(usize, usize, usize)> {
    let at = |bytes: u64| usize::try_from(bytes).expect("a small drive");
    let mut found = Vec::new();
    for (index, die) in dies.iter().enumerate() {
        found.extend([0, PAGE_BYTES].map(|from| (index, from, 160)));
        for region in 0..layout.shape.regions() {
            let journal = at(layout.journal_from(region))..at(layout.checkpoint_from(region, 0));
            for from in journal.step_by(SECTOR_BYTES) {
                if die[from..].starts_with(b"FLGTjrnl") {
                    found.push((index, from, BATCH_HEAD_BYTES + 160));
                }
            }
            for slot in 0..2 {
                let from = at(layout.checkpoint_from(region, slot));
                found.push((index, from, 72));
                found.push((index, from + PAGE_BYTES, at(layout.slot_bytes) - PAGE_BYTES));
            }
        }
        for row in 0..layout.shape.rows_total() {
            let from = at(layout.unit_from(row));
            if die[from..].starts_with(b"FLGT") {
                found.push((index, from, UNIT_HEADER_BYTES));
                let table = TABLE_HEAD_BYTES + 4 * ENTRY_BYTES;
                found.push((index, from + UNIT_HEADER_BYTES, table));
                found.push((index, from + layout.extents_from, EXTENT_HEADER_BYTES));
            }
        }
    }
    found
}

/// Seals unit header, table and extents of a unit, as far as it says where they are.
fn seal_unit(layout: &Layout, row: u32, unit: &mut [u8]) {
    let unit = &mut unit[..layout.unit_bytes];
    if !unit.starts_with(b"FLGT") {
        return;
    }
    let mut header = *prefix::<UnitHeaderBytes>(unit).expect("a unit has a header");
    let identity = Identity { drive: header.drive.get(), row_seq: header.row_seq.get() };
    let position = header.position.get().min(layout.shape.dies - 1);
    if layout.is_parity(position) {
        header.body_crc = crc32c::crc32c(&unit[UNIT_HEADER_BYTES..]).into();
        put_prefix(unit, &header);
    } else {
        let ppn = |slot| layout.ppn(Place { row, unit: position, slot });
        let head = prefix::<TableHead>(&unit[UNIT_HEADER_BYTES..]).expect("a unit has a table");
        let count = head.count.get().min(layout.unit_slots);
        for slot in 0..count {
            let entry = prefix::<TableEntry>(&unit[Layout::entry_from(slot)..]);
            let from = entry.expect("a table has room for it").from.get() as usize;
            if let Some(bytes) = unit.get_mut(from..) {
                seal_extent(bytes, identity, ppn(slot));
            }
        }
        seal_table(layout, unit, identity, ppn(0));
    }
    seal(&mut unit[..UNIT_HEADER_BYTES]);
}

const _: () = assert!(HEADER_BYTES == PAGE_BYTES as u64, "headers are pages");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_structure() -> impl Strategy<Value = Structure> {
        prop::sample::select(Structure::ALL.to_vec())
    }

    fn any_edit() -> impl Strategy<Value = Edit> {
        let value = prop_oneof![
            any::<u64>(),
            0..4_u64,
            Just(u64::MAX),
            (0..64_u32).prop_map(|bit| 1_u64 << bit),
        ];
        (any::<u16>(), any::<u16>(), any::<u8>(), value)
            .prop_map(|(structure, at, bytes, value)| Edit { structure, at, bytes, value })
    }

    #[test]
    fn a_structure_is_read_as_it_was_written_and_not_with_a_bit_flipped() {
        for structure in Structure::ALL {
            let example = structure.example();
            assert!(structure.is_one(&example), "{structure:?}");
            let mut sealed = example.clone();
            structure.seal(&mut sealed);
            assert!(sealed == example, "{structure:?}");
            let mut flipped = example;
            // Tables do without the unit header before them.
            flipped[if structure == Structure::Table { UNIT_HEADER_BYTES + 17 } else { 17 }] ^= 4;
            assert!(!structure.is_one(&flipped), "{structure:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_structure_that_can_be_or_none(
            structure in any_structure(),
            bytes in prop::collection::vec(any::<u8>(), 0..5000),
        ) {
            prop_assert!(!structure.is_one(&bytes));
            let mut sealed = bytes;
            structure.seal(&mut sealed);
            // It may be one: extents have no magic.
            structure.is_one(&sealed);
        }

        #[test]
        fn a_structure_with_any_fields_overwritten_can_be_or_is_none(
            structure in any_structure(),
            edits in prop::collection::vec(any_edit(), 1..4),
            length in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut bytes = structure.example();
            for Edit { at, bytes: count, value, .. } in edits {
                let at = usize::from(at) % bytes.len().min(400);
                let count = usize::from(count % 8 + 1).min(bytes.len() - at);
                bytes[at..at + count].copy_from_slice(&value.to_le_bytes()[..count]);
            }
            if let Some(length) = length {
                bytes.truncate(length.index(bytes.len()));
            }
            structure.seal(&mut bytes);
            structure.is_one(&bytes);
        }

        #[test]
        fn a_drive_with_any_fields_overwritten_opens_or_is_refused(
            number in 0..8_u8,
            edits in prop::collection::vec(any_edit(), 1..4),
        ) {
            let mut image = Image::new(number);
            for edit in &edits {
                image.edit(edit);
            }
            image.seal();
            image.open();
        }
    }

    /// A drive of whole pages whose map has so many superblocks full of rows, with a page in each.
    fn scattered(superblocks: u32) -> Disks {
        let shape = Shape {
            pages_logical: 16,
            pages_stored_max: 16,
            extents_per_page: 1,
            compression: Compression::None,
            ..SHAPE
        };
        let layout = Layout::new(&shape);
        let bytes = usize::try_from(layout.die_bytes()).expect("a small drive");
        let disks = Disks::new(1, bytes, blockio::Rng::new(0));
        format(disks.media(), &shape, DRIVE).expect("a shape that can be");
        let held = superblocks * shape.rows;
        let seqs = (0..shape.rows_total()).map(|row| {
            let seq = IDENTITY.row_seq - u64::from(shape.rows_total()) + u64::from(row);
            if row < held { seq } else { 0 }
        });
        let places = (0..shape.pages_logical)
            .map(|lpn| if lpn < superblocks { lpn * shape.superblock_pages() + 1 } else { 0 });
        let [_, outs, erase_counts, .., lost] = tables(&shape);
        let tables = [
            seqs.flat_map(u64::to_le_bytes).collect(),
            vec![0; outs],
            vec![0; erase_counts],
            places.flat_map(u32::to_le_bytes).collect(),
            Vec::new(),
            vec![0; lost],
        ];
        let slot = slot_of(shape.pages_logical, tables.into_iter());
        for region in 0..shape.regions() {
            let written = disks.media()[0].write_at(layout.checkpoint_from(region, 0), &slot);
            written.expect("the power is on");
        }
        disks
    }

    #[test]
    fn a_map_that_leaves_no_superblock_free_is_refused_or_takes_no_writes() {
        let superblocks = SHAPE.superblocks;
        for filled in 0..=superblocks {
            let disks = scattered(filled);
            for _ in 0..2 {
                let drive = Drive::open_media(disks.media()).unwrap();
                let mut written = Ok(());
                for page in 0..100 {
                    let offset = page % 16 * PAGE_BYTES as u64;
                    written = written.and(drive.write(offset, &[7; 4096], Durability::Volatile));
                }
                let is_refused = matches!(written, Err(device::DeviceError::Poisoned { .. }));
                // One to relocate to may be enough, two are.
                assert!(is_refused || filled < superblocks, "{filled}: {written:?}");
                assert!(written.is_ok() || filled + 1 >= superblocks, "{filled}: {written:?}");
            }
        }
    }

    #[test]
    fn a_drive_of_which_nothing_is_overwritten_is_as_it_was() {
        for number in 0..8 {
            let image = Image::new(number);
            let mut sealed = image.clone();
            sealed.seal();
            assert!(sealed.dies == image.dies, "drive {number}");
        }
    }
}
