//! The journal: what must be durable before its row is complete.
//!
//! A ring of bytes, the same on two dies where rows are protected, so that losing a die together
//! with the power loses nothing. A **batch** is what one commit adds: extents of rows that are
//! being filled, as they are stored, trims, and superblocks whose contents nothing needs any more.
//!
//! ```text
//!  batch 64   | magic | drive | session | number | position | bytes records | mark | crc crc
//!  extent 32+ | 1 codec length lpn | order | order of the row | ppn, crc of the payload | payload
//!  trim 32    | 2           lpn    | order | pages
//!  release 32 | 3       superblock | order
//! ```
//!
//! Invariants:
//! - Batches follow each other by number; each begins a sector, and no sector is written twice
//!   before the ring comes round.
//! - At most the last batch is not durable: each is synced before the next one is written. So a
//!   batch that is not whole is the end, unless a later one is found: then the media has failed.
//! - `mark`: rows that were programmed before it are durable.

use ftl::{Lpn, Ppn};

use crate::core::{Core, Trim};
use crate::dies::{DieSet, Dies, medium_error};
use crate::encoding::{put, seal, u16_at, u32_at, u64_at};
use crate::layout::Layout;
use crate::planted::{self, Bug};
use crate::unit::{Codec, Extent};
use crate::{DeviceError, encoding};

const MAGIC: u64 = 0x6c6e_726a_5447_4c46; // "FLGTjrnl"
const HEAD_BYTES: usize = 64;
const RECORD_BYTES: usize = 32;
const SECTOR_BYTES: u64 = 512;
const EXTENT: u8 = 1;
const TRIM: u8 = 2;
const RELEASE: u8 = 3;

/// What a batch takes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What the host wrote and trimmed.
    Host,
    /// What relocation copied, too: then what it was copied from may go.
    Everything,
    /// All of what rows hold that are being filled, even what the journal holds already: then
    /// earlier batches may go.
    Again,
}

/// Where in the ring a batch lies; counted on and on, the rest of the division is the place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) at: u64,
    /// Number of the batch.
    pub(crate) number: u64,
}

/// The end of the journal, where batches are added.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) drive: u64,
    pub(crate) session: u64,
    pub(crate) size: u64,
    pub(crate) head: Position,
    /// The earliest batch that is needed.
    pub(crate) tail: u64,
    pub(crate) mark: u64,
    /// Everything before this event is durable.
    pub(crate) committed: u64,
    /// The batch that is being made.
    batch: Vec<u8>,
    records: u32,
}

/// Positions and numbers stay below this, so that counting on never ends.
const COUNT_MAX: u64 = 1 << 62;

impl Position {
    /// Whether a batch can lie there.
    pub(crate) const fn is_possible(self) -> bool {
        self.at.is_multiple_of(SECTOR_BYTES) && self.at < COUNT_MAX && self.number < COUNT_MAX
    }
}

impl Journal {
    pub(crate) fn new(drive: u64, session: u64, size: u64, head: Position) -> Self {
        let (tail, batch) = (head.at, Vec::new());
        Self { drive, session, size, head, tail, mark: 0, committed: 0, batch, records: 0 }
    }

    /// The last batch as it was written.
    pub(crate) fn into_batch(self) -> Vec<u8> {
        self.batch
    }

    /// Bytes of the ring that are in use.
    pub(crate) const fn used(&self) -> u64 {
        self.head.at - self.tail
    }

    /// Begins a batch.
    pub(crate) fn begin(&mut self) {
        self.batch.clear();
        self.batch.resize(HEAD_BYTES, 0);
        self.records = 0;
    }

    /// Adds what `core` has for `scope`.
    pub(crate) fn collect(&mut self, core: &mut Core, layout: &Layout, scope: Scope) {
        for trim in core.trims.drain(..) {
            self.add(TRIM, trim.first.0, trim.order, trim.pages);
        }
        if scope != Scope::Host {
            for superblock in core.ftl.held_erased() {
                self.add(RELEASE, superblock.0, core.order, 0);
            }
        }
        for open in &mut core.open {
            if open.origin.is_relocation && scope == Scope::Host {
                continue;
            }
            for (unit, position) in open.units.iter_mut().zip(0..) {
                let first = if scope == Scope::Again { 0 } else { unit.journaled };
                for slot in first..unit.count {
                    let place = crate::layout::Place { row: open.row, unit: position, slot };
                    let (extent, payload) = unit.extent(slot);
                    add_extent(&mut self.batch, extent, payload, (open.order, layout.ppn(place)));
                    self.records += 1;
                }
                unit.journaled = unit.count;
            }
        }
    }

    fn add(&mut self, kind: u8, first: u32, order: u64, count: u32) {
        let mut record = [0; RECORD_BYTES];
        record[0] = kind;
        put(&mut record, 4, first.to_le_bytes());
        put(&mut record, 8, order.to_le_bytes());
        put(&mut record, 16, count.to_le_bytes());
        self.batch.extend_from_slice(&record);
        self.records += 1;
    }

    /// Bytes that the batch will take of the ring, and where it will lie.
    fn extent_of_batch(&self) -> (u64, u64) {
        let bytes = (self.batch.len() as u64).next_multiple_of(SECTOR_BYTES);
        let place = self.head.at % self.size;
        let skipped = if place + bytes > self.size { self.size - place } else { 0 };
        (self.head.at + skipped, bytes)
    }

    /// Writes the batch to `copies`, and makes it durable, with what was written to `dirty`.
    pub(crate) fn write(
        &mut self,
        dies: &Dies,
        copies: DieSet,
        dirty: DieSet,
    ) -> Result<(), DeviceError> {
        let (at, bytes) = self.extent_of_batch();
        let body = u64::try_from(self.batch.len() - HEAD_BYTES).expect("a length");
        let head = &mut self.batch[..HEAD_BYTES];
        let numbers = [
            (0, MAGIC),
            (8, self.drive),
            (16, self.session),
            (24, self.head.number),
            (32, at),
            (48, self.mark),
        ];
        for (place, number) in numbers {
            put(head, place, number.to_le_bytes());
        }
        let body = u32::try_from(body).expect("a batch is far below 4 GiB");
        put(head, 40, body.to_le_bytes());
        put(head, 44, self.records.to_le_bytes());
        seal_batch(&mut self.batch);
        self.batch.resize(usize::try_from(bytes).expect("a length"), 0);
        let place = Layout::journal_from() + at % self.size;
        dies.make_durable(dirty, copies, (place, &self.batch)).map_err(|(die, source)| {
            medium_error(format!("writing the journal and syncing die {die}"))(source)
        })?;
        let is_written = copies.iter().any(|die| !dies.lost().has(die));
        assert!(is_written || copies == DieSet::default(), "one die is left");
        self.head = Position { at: at + bytes, number: self.head.number + 1 };
        Ok(())
    }
}

/// Puts the checksums of a batch into its head.
pub(crate) fn seal_batch(batch: &mut [u8]) {
    let (head, body) = batch.split_at_mut(HEAD_BYTES);
    put(head, 56, crc32c::crc32c(body).to_le_bytes());
    seal(head);
}

fn add_extent(batch: &mut Vec<u8>, extent: Extent, payload: &[u8], place: (u64, Ppn)) {
    let mut record = [0; RECORD_BYTES];
    record[0] = EXTENT;
    record[1] = if planted::is(Bug::CodecForgotten) { 0 } else { extent.codec as u8 };
    put(&mut record, 2, extent.length.to_le_bytes());
    put(&mut record, 4, extent.lpn.0.to_le_bytes());
    put(&mut record, 8, extent.order.to_le_bytes());
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
    body: usize,
    from: usize,
}

/// One thing that a batch says.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// An extent, and where it was to lie in which life of its row.
    Extent { journaled: Journaled, ppn: Ppn, row_order: u64 },
    /// Pages that were trimmed.
    Trim(Trim),
    /// What a superblock held before this event counts no more.
    Release { superblock: u32, order: u64 },
}

/// What a journal says from some position on.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) records: Vec<Record>,
    /// The records of each batch as they were read: whoever needs a payload takes it from there,
    /// not from another look, which might find less.
    bodies: Vec<Vec<u8>>,
    /// Where the next batch goes.
    pub(crate) end: Position,
    /// The last mark.
    pub(crate) mark: u64,
}

impl Replay {
    /// The payload of an extent.
    pub(crate) fn payload(&self, journaled: &Journaled) -> &[u8] {
        let length = usize::from(journaled.extent.length);
        &self.bodies[journaled.body][journaled.from..journaled.from + length]
    }
}

/// Where to read a journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) drive: u64,
    pub(crate) session: u64,
    pub(crate) size: u64,
    pub(crate) from: Position,
    /// Places that the drive has.
    pub(crate) places: u32,
}

/// Reads batches of one session from a position on, each from the first die that has it whole.
/// The dies of `copies` are those that the last batch was written to.
///
/// # Errors
/// The number of a batch that no die has whole, though a later one exists.
pub(crate) fn read(dies: &Dies, copies: DieSet, reading: Reading) -> Result<Replay, u64> {
    read_batches(dies, dies.healthy().collect(), copies, reading)
}

/// As [`read`], from some of the dies.
pub(crate) fn read_copies(dies: &Dies, copies: DieSet, reading: Reading) -> Result<Replay, u64> {
    read_batches(dies, copies, copies, reading)
}

fn read_batches(
    dies: &Dies,
    copies: DieSet,
    last_copies: DieSet,
    reading: Reading,
) -> Result<Replay, u64> {
    let mut replay = Replay { end: reading.from, ..Replay::default() };
    loop {
        let place = replay.end.at % reading.size;
        let found = read_batch((dies, copies), reading, replay.end, place).or_else(|| {
            let skipped = reading.size - place;
            let wrapped = Position { at: replay.end.at + skipped, ..replay.end };
            read_batch((dies, copies), reading, wrapped, 0)
        });
        let Some(batch) = found else { break };
        replay.mark = batch.mark;
        replay.end = batch.end;
        let number = replay.bodies.len();
        parse(&batch.body, number, reading.places, &mut replay.records)
            .ok_or(batch.end.number - 1)?;
        replay.bodies.push(batch.body);
    }
    let is_lost = has_later((dies, last_copies), reading, replay.end);
    if is_lost { Err(replay.end.number) } else { Ok(replay) }
}

struct Batch {
    body: Vec<u8>,
    mark: u64,
    end: Position,
}

/// The head of a batch: its position, length of its records, mark, and their checksum.
fn parse_head(head: &[u8], reading: Reading) -> Option<(Position, u32, u64, u32)> {
    let is_one = u64_at(head, 0) == MAGIC
        && encoding::is_sealed(head)
        && u64_at(head, 8) == reading.drive
        && u64_at(head, 16) == reading.session;
    is_one.then(|| {
        let position = Position { at: u64_at(head, 32), number: u64_at(head, 24) };
        (position, u32_at(head, 40), u64_at(head, 48), u32_at(head, 56))
    })
}

/// Dies, and which of them are looked at.
type Copies<'a> = (&'a Dies, DieSet);

fn read_batch(
    (dies, copies): Copies<'_>,
    reading: Reading,
    at: Position,
    place: u64,
) -> Option<Batch> {
    copies.iter().find_map(|die| {
        let from = Layout::journal_from() + place;
        let mut head = [0; HEAD_BYTES];
        (place + HEAD_BYTES as u64 <= reading.size).then_some(())?;
        dies.read(die, from, &mut head).ok()?;
        let (position, length, mark, crc) = parse_head(&head, reading)?;
        let bytes = HEAD_BYTES as u64 + u64::from(length);
        (position == at && place + bytes <= reading.size).then_some(())?;
        let mut body = vec![0; length as usize];
        dies.read(die, from + HEAD_BYTES as u64, &mut body).ok()?;
        let next = at.at + bytes.next_multiple_of(SECTOR_BYTES);
        let end = Position { at: next, number: at.number + 1 };
        (crc32c::crc32c(&body) == crc).then_some(Batch { body, mark, end })
    })
}

/// Whether a batch after `end` exists anywhere in the ring.
fn has_later((dies, copies): Copies<'_>, reading: Reading, end: Position) -> bool {
    let mut chunk = vec![0; 1 << 18];
    copies.iter().any(|die| {
        (0..reading.size).step_by(chunk.len()).any(|from| {
            let length = usize::try_from(reading.size - from).unwrap_or(usize::MAX);
            let length = length.min(chunk.len());
            let part = &mut chunk[..length];
            if dies.read(die, Layout::journal_from() + from, part).is_err() {
                return false;
            }
            let sectors = part.as_chunks::<512>().0.iter();
            let mut heads = sectors.filter_map(|sector| parse_head(&sector[..HEAD_BYTES], reading));
            heads.any(|(position, ..)| position.number > end.number)
        })
    })
}

/// Adds what the records of a batch say; none where one of them says what cannot be.
fn parse(body: &[u8], number: usize, places: u32, records: &mut Vec<Record>) -> Option<()> {
    let mut rest = body;
    while !rest.is_empty() {
        let (record, after) = rest.split_at_checked(RECORD_BYTES)?;
        rest = after;
        let (first, order) = (u32_at(record, 4), u64_at(record, 8));
        records.push(match record[0] {
            TRIM => {
                let pages = u32_at(record, 16);
                first.checked_add(pages)?;
                Record::Trim(Trim { first: Lpn(first), pages, order })
            }
            RELEASE => Record::Release { superblock: first, order },
            EXTENT => {
                let extent = Extent {
                    lpn: Lpn(first),
                    codec: Codec::parse(record[1])?,
                    length: u16_at(record, 2),
                    order,
                    payload_crc: u32_at(record, 28),
                };
                let from = body.len() - rest.len();
                let (payload, after) = rest.split_at_checked(usize::from(extent.length))?;
                rest = after;
                let (row_order, ppn) = (u64_at(record, 16), Ppn(u32_at(record, 24)));
                (extent.is_possible() && extent.holds(payload) && ppn.0 < places).then_some(())?;
                let journaled = Journaled { extent, body: number, from };
                Record::Extent { journaled, ppn, row_order }
            }
            _ => return None,
        });
    }
    Some(())
}
