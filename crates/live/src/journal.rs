//! The journal: what must be durable before its row is complete, and which rows are.
//!
//! A ring of bytes, each part of it in two copies on two dies, so that losing a die together with
//! the power loses nothing; a drive of one die keeps both copies there. Which dies hold a copy
//! changes as the ring goes round, so that none wears first.
//!
//! A **batch** is what one commit adds: extents of rows that are being filled, as they are stored,
//! trims, the rows that were completed, page by page, superblocks whose contents nothing needs any
//! more, and pages that were found lost.
//!
//! ```text
//!  batch 64   | magic | drive | session | number | position | bytes records | link | crc crc
//!  extent 32+ | 1 codec length lpn | order | order of the row | ppn, crc of the payload | payload
//!  trim 32    | 2           lpn    | order | pages
//!  release 32 | 3       superblock | order
//!  lost 32    | 4           lpn    | order | pages
//!  row 32+    | 5 stream units row | order of the row | dies left out | erase count, bytes |
//!             | for each data unit: extents 4, then each: lpn length codec order 16
//! ```
//!
//! Invariants:
//! - Batches follow each other by number across sessions; each carries the checksum of the head of
//!   the one before (its **link**), begins a sector, and no sector is written twice before the ring
//!   comes round.
//! - At most the last batch is not durable: each is synced before the next one is written. So a
//!   batch that is not whole is the end, unless a later one is found: then the media has failed.
//! - A row that a batch lists was durable before the batch was written. So whatever is found of it
//!   later, its pages are known to have existed.

use ftl::{Lpn, Ppn};

use crate::core::{Core, OpenRow, Trim};
use crate::dies::{DieSet, medium_error};
use crate::encoding::{put, seal, u16_at, u32_at, u64_at};
use crate::layout::{Layout, REPLICAS};
use crate::mutants::{self, Mutant};
use crate::row::RowEpoch;
use crate::store::{Replica, Store};
use crate::unit::{Codec, Entry, Extent, Origin};
use crate::{DeviceError, encoding};

const MAGIC: u64 = 0x6c6e_726a_5447_4c46; // "FLGTjrnl"
const HEAD_BYTES: usize = 64;
const RECORD_BYTES: usize = 32;
const SECTOR_BYTES: u64 = 512;
const EXTENT: u8 = 1;
const TRIM: u8 = 2;
const RELEASE: u8 = 3;
const LOST: u8 = 4;
const ROW: u8 = 5;
/// Bytes of an extent in the list of a row.
const LISTED_BYTES: usize = 16;

/// Events that a commit writes to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Writes and trims of the host.
    Host,
    /// The same as an atomic group: the writes are placed, so there must be room.
    Together,
    /// Copies made by relocation, too: then the superblocks that they were copied from may be
    /// erased. Nobody waits to be told that it is durable, so one copy is enough where rows are not
    /// protected.
    Relocation,
    /// The same for a caller that waits for it.
    Everything,
    /// All of what rows hold that are being filled, even what the journal holds already: then
    /// earlier batches may go.
    Again,
}

impl Scope {
    /// True if a batch takes only what the host wrote and trimmed.
    pub(crate) const fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::Together)
    }
}

/// Position of a batch in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Monotonic offset in bytes; `at % size` is the place in the ring.
    pub(crate) at: u64,
    /// Number of the batch.
    pub(crate) number: u64,
    /// Checksum of the head of the batch before; 0 for the first one.
    pub(crate) link: u32,
}

/// The end of the journal, where batches are added.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) drive: u64,
    pub(crate) session: u64,
    pub(crate) size: u64,
    pub(crate) head: Position,
    /// Monotonic offset of the earliest batch that is needed.
    pub(crate) tail: u64,
    /// Count of events before which every completed row is listed.
    pub(crate) listed: u64,
    /// Count of events before which everything is durable, in as many copies as there should be.
    pub(crate) committed: u64,
    /// True if the last batch has a single copy, so that damage to it would look like its absence.
    pub(crate) is_end_single: bool,
    /// Batch that is being assembled.
    batch: Vec<u8>,
    records: u32,
}

/// Limit of positions and numbers, low enough that counting on never overflows.
const COUNT_MAX: u64 = 1 << 62;

impl Position {
    /// True if a batch can lie at this position: it is a multiple of the sector size and in range.
    pub(crate) const fn is_possible(self) -> bool {
        self.at.is_multiple_of(SECTOR_BYTES) && self.at < COUNT_MAX && self.number < COUNT_MAX
    }
}

impl Journal {
    pub(crate) fn new(drive: u64, session: u64, size: u64, head: Position) -> Self {
        let (tail, batch) = (head.at, Vec::new());
        Self {
            drive,
            session,
            size,
            head,
            tail,
            listed: 0,
            committed: 0,
            is_end_single: false,
            batch,
            records: 0,
        }
    }

    /// Bytes of the ring that are in use.
    pub(crate) const fn used(&self) -> u64 {
        self.head.at - self.tail
    }

    /// True if the batch fits between head and tail, wherever it begins: one that does not fit
    /// before the end of the ring leaves less than its length unused there.
    pub(crate) fn has_room_for_batch(&self) -> bool {
        self.used() + 2 * (self.batch.len() as u64 + 4096) <= self.size
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
        for lost in core.lost.take_unsaved() {
            self.add(LOST, lost.first.0, lost.order, lost.pages);
        }
        self.list_rows(core);
        if !scope.is_host() {
            for superblock in core.ftl.held_erased() {
                self.add(RELEASE, superblock.0, core.order, 0);
            }
        }
        for open in &mut core.open {
            if open.origin.is_relocation && scope.is_host() {
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

    /// Adds the rows that were completed since they were listed last. They must be durable before
    /// the batch is written.
    pub(crate) fn list_rows(&mut self, core: &mut Core) {
        if !mutants::is(Mutant::RowsUnlisted) {
            self.batch.extend_from_slice(&core.completed.bytes);
            self.records += core.completed.rows;
        }
        core.completed.clear();
        self.listed = core.order;
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

    /// Ends the batch, of which there will be so many copies, with head and padding; returns where
    /// it lies and its bytes.
    pub(crate) fn finish(&mut self, copies: usize) -> (u64, &[u8]) {
        let (at, bytes) = self.extent_of_batch();
        let body = u64::try_from(self.batch.len() - HEAD_BYTES).expect("a length");
        let head = &mut self.batch[..HEAD_BYTES];
        let numbers = [
            (0, MAGIC),
            (8, self.drive),
            (16, self.session),
            (24, self.head.number),
            (32, at),
            (48, self.head.link.into()),
        ];
        for (place, number) in numbers {
            put(head, place, number.to_le_bytes());
        }
        put(head, 52, u32::try_from(copies).expect("a few").to_le_bytes());
        let body = u32::try_from(body).expect("a batch is far below 4 GiB");
        put(head, 40, body.to_le_bytes());
        put(head, 44, self.records.to_le_bytes());
        seal_batch(&mut self.batch);
        self.batch.resize(usize::try_from(bytes).expect("a length"), 0);
        assert!(at % self.size + bytes <= self.size, "a batch does not wrap");
        (at, &self.batch)
    }

    /// Writes the batch, and makes it durable. What it lists must be durable already.
    pub(crate) fn write(&mut self, store: &Store, scope: Scope) -> Result<(), DeviceError> {
        let is_single = scope == Scope::Relocation && !store.layout.shape.is_protected;
        let copies = if is_single { 1 } else { REPLICAS };
        let (at, bytes) = self.finish(copies);
        let length = bytes.len() as u64;
        let mut replicas = store.journal_replicas(at);
        replicas.truncate(copies);
        let place = at % store.layout.shape.journal_bytes;
        let writes: Vec<(usize, u64)> = replicas
            .iter()
            .map(|it| (it.die, store.layout.journal_from(it.region) + place))
            .collect();
        store.dies.write_durably(&writes, bytes).map_err(|(die, source)| {
            medium_error(format!("writing the journal and syncing die {die}"))(source)
        })?;
        let is_written = replicas.iter().any(|it| !store.dies.lost().has(it.die));
        assert!(is_written, "one die is left");
        let link = u32_at(bytes, HEAD_BYTES - 4);
        let next = Position { at: at + length, number: self.head.number + 1, link };
        assert!(next.at - self.tail <= self.size, "no batch that is needed was written over");
        if self.batch.capacity() > KEPT_BYTES_MAX {
            self.batch = Vec::new();
        }
        self.head = next;
        self.is_end_single = is_single;
        store.note_batches(next.number);
        Ok(())
    }
}

/// Rows that were completed and are in no batch yet, as records of one.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    bytes: Vec<u8>,
    rows: u32,
}

impl Completed {
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.rows = 0;
    }

    /// Adds a row that is complete, with each of its extents.
    pub(crate) fn add(&mut self, open: &OpenRow) {
        let begin = self.begin();
        for unit in &open.units {
            self.bytes.extend_from_slice(&unit.count.to_le_bytes());
            for entry in unit.entries() {
                self.bytes.extend_from_slice(&entry[..LISTED_BYTES]);
            }
        }
        let life = RowEpoch { order: open.order, out: open.out };
        self.end(begin, (open.row, life, open.origin), open.units.len());
    }

    /// Adds a row that was found complete, by the tables of its data units.
    pub(crate) fn add_tables(&mut self, of: (u32, RowEpoch, Origin), units: &[Vec<Entry>]) {
        let begin = self.begin();
        for table in units {
            let count = u32::try_from(table.len()).expect("the extents of a unit");
            self.bytes.extend_from_slice(&count.to_le_bytes());
            for Entry { extent, .. } in table {
                let from = self.bytes.len();
                self.bytes.resize(from + LISTED_BYTES, 0);
                extent.put_name(&mut self.bytes[from..]);
            }
        }
        self.end(begin, of, units.len());
    }

    fn begin(&mut self) -> usize {
        let begin = self.bytes.len();
        self.bytes.resize(begin + RECORD_BYTES, 0);
        begin
    }

    /// Ends the record that began at `begin`, of a row with so many data units.
    fn end(&mut self, begin: usize, (row, life, origin): (u32, RowEpoch, Origin), units: usize) {
        let length = u32::try_from(self.bytes.len() - begin - RECORD_BYTES).expect("a row");
        let record = &mut self.bytes[begin..begin + RECORD_BYTES];
        record[0] = ROW;
        record[1] = u8::from(origin.is_relocation);
        put(record, 2, u16::try_from(units).expect("64 dies").to_le_bytes());
        put(record, 4, row.to_le_bytes());
        put(record, 8, life.order.to_le_bytes());
        put(record, 16, life.out.0.to_le_bytes());
        put(record, 24, origin.erase_count.to_le_bytes());
        put(record, 28, length.to_le_bytes());
        self.rows += 1;
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
    record[1] = if mutants::is(Mutant::CodecForgotten) { 0 } else { extent.codec as u8 };
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

/// Record of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// An extent, its place, and the life of the row that it was placed in.
    Extent { journaled: Journaled, ppn: Ppn, row_order: u64 },
    /// Pages that were trimmed.
    Trim(Trim),
    /// Everything that a superblock held before this event is void.
    Release { superblock: u32, order: u64 },
    /// Pages that were found lost.
    Lost(Trim),
    /// A row that was complete and durable.
    Row(ListedRow),
}

/// A row as a batch lists it; its extents are told by [`Replay::units`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedRow {
    pub(crate) row: u32,
    pub(crate) life: RowEpoch,
    pub(crate) origin: Origin,
    /// Data units that it has.
    units: u32,
    body: usize,
    from: usize,
}

/// Reason why the end of a journal is uncertain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Gap {
    /// No die has the batch whole, though something later is there.
    #[error("batch {0} of the journal is lost, though a later one was written")]
    Lost(u64),
    /// Copies of what may be the next batch cannot be read.
    #[error("where batch {0} of the journal would lie cannot be read")]
    Unreadable(u64),
}

/// Contents of a journal from some position on.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) records: Vec<Record>,
    /// The records of each batch as they were read: whoever needs a payload takes it from there,
    /// not from another look, which might find less.
    bodies: Vec<Vec<u8>>,
    /// Position of the next batch.
    pub(crate) end: Position,
    /// Reason why `end` may not be the end; none if it is.
    pub(crate) gap: Option<Gap>,
    /// The session of the last batch; 0: there is none.
    pub(crate) session: u64,
    /// Batches of which fewer copies were found than there should be, and a die that lacks it.
    pub(crate) thin: Vec<(u64, usize)>,
}

impl Replay {
    /// The payload of an extent.
    pub(crate) fn payload(&self, journaled: &Journaled) -> &[u8] {
        let length = usize::from(journaled.extent.length);
        &self.bodies[journaled.body][journaled.from..journaled.from + length]
    }

    /// The extents of a listed row, unit by unit.
    pub(crate) fn units(
        &self,
        row: &ListedRow,
    ) -> impl Iterator<Item = impl Iterator<Item = Extent>> {
        let mut rest = &self.bodies[row.body][row.from..];
        let units = row.units;
        (0..units).map(move |_| {
            let (unit, after) = listed_unit(rest).expect("checked as it was read");
            rest = after;
            unit.iter().map(|entry| listed_extent(entry).expect("checked as it was read"))
        })
    }
}

/// The entries of the first unit in the list of a row, and what follows it.
fn listed_unit(list: &[u8]) -> Option<(&[[u8; LISTED_BYTES]], &[u8])> {
    let (count, rest) = list.split_first_chunk()?;
    let bytes = (u32::from_le_bytes(*count) as usize).checked_mul(LISTED_BYTES)?;
    let (entries, after) = rest.split_at_checked(bytes)?;
    Some((entries.as_chunks().0, after))
}

/// An extent in the list of a row; nothing is said of its payload.
fn listed_extent(entry: &[u8; LISTED_BYTES]) -> Option<Extent> {
    let extent = Extent {
        lpn: Lpn(u32_at(entry, 0)),
        length: u16_at(entry, 4),
        codec: Codec::parse(entry[6])?,
        order: u64_at(entry, 8),
        payload_crc: 0,
    };
    extent.is_possible().then_some(extent)
}

/// Parameters for reading a journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) store: &'a Store,
    pub(crate) from: Position,
    /// True if every copy is read whole, to tell which are damaged.
    pub(crate) is_thorough: bool,
}

/// Reads batches from a position on, each from the first die that has it whole, to where no further
/// one follows.
pub(crate) fn read(reading: Reading<'_>) -> Replay {
    let store = reading.store;
    let mut replay = Replay { end: reading.from, ..Replay::default() };
    let size = reading.size();
    let mut failed = [0; 2];
    while replay.gap.is_none() {
        failed = [0; 2];
        let [there, wrapped] = &mut failed;
        let place = replay.end.at % size;
        let found = reading.batch(replay.end, place, there).or_else(|| {
            let from_zero = Position { at: replay.end.at + size - place, ..replay.end };
            reading.batch(from_zero, 0, wrapped)
        });
        let Some(batch) = found else { break };
        let index = replay.bodies.len();
        if parse(&batch.body, index, &store.layout, &mut replay.records).is_none() {
            replay.gap = Some(Gap::Lost(replay.end.number));
            break;
        }
        if let Some(die) = batch.lacking {
            replay.thin.push((replay.end.number, die));
        }
        (replay.end, replay.session) = (batch.end, batch.session);
        replay.bodies.push(batch.body);
    }
    if replay.gap.is_none() && reading.has_later(replay.end) {
        replay.gap = Some(Gap::Lost(replay.end.number));
    }
    // One copy that says nothing of a batch is enough, unless a die with another one is missing.
    let unread = failed.into_iter().max().unwrap_or(0);
    let is_unknown = unread > 0 && unread + store.dies.missed().count() as usize >= REPLICAS;
    if replay.gap.is_none() && is_unknown {
        replay.gap = Some(Gap::Unreadable(replay.end.number));
    }
    replay
}

/// True if a batch follows at a position: then somebody went on there.
pub(crate) fn goes_on(reading: Reading<'_>) -> bool {
    let (at, size) = (reading.from, reading.size());
    let place = at.at % size;
    let from_zero = Position { at: at.at + size - place, ..at };
    reading.batch(at, place, &mut 0).is_some() || reading.batch(from_zero, 0, &mut 0).is_some()
}

struct Batch {
    body: Vec<u8>,
    session: u64,
    end: Position,
    /// A die that should have a copy of it, and has none.
    lacking: Option<usize>,
}

/// Head of a batch, decoded.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// Position of the batch, and the link to the one before.
    position: Position,
    session: u64,
    /// Copies of it that were written.
    copies: u32,
    /// Bytes of its records, and their checksum.
    length: u32,
    body_crc: u32,
    /// Its own checksum, which the next one links to.
    crc: u32,
}

impl Head {
    fn parse(head: &[u8], drive: u64) -> Option<Self> {
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
/// in bytes.
pub(crate) fn last_batch(ring: &[u8]) -> Option<((u64, u64), std::ops::Range<usize>)> {
    let whole = ring.as_chunks::<512>().0.iter().enumerate().filter_map(|(sector, bytes)| {
        let head = Head::parse(&bytes[..HEAD_BYTES], u64_at(bytes, 8))?;
        let from = sector * bytes.len();
        let end = from + HEAD_BYTES + usize::try_from(head.length).ok()?;
        let is_at_its_place = head.position.at % ring.len() as u64 == from as u64;
        let is_whole = crc32c::crc32c(ring.get(from + HEAD_BYTES..end)?) == head.body_crc;
        (is_at_its_place && is_whole).then_some(((head.position.number, head.session), from..end))
    });
    whole.max_by_key(|(last, _)| *last)
}

/// A copy of a batch, as far as its head was read.
#[derive(Clone, Copy, Debug)]
struct Found {
    replica: Replica,
    head: Head,
}

impl Reading<'_> {
    const fn size(&self) -> u64 {
        self.store.layout.shape.journal_bytes
    }

    /// The batch at a position, from the dies that should have it, else from any other one. Copies
    /// that could not be read are counted in `failed`.
    fn batch(&self, at: Position, place: u64, failed: &mut usize) -> Option<Batch> {
        (place + HEAD_BYTES as u64 <= self.size()).then_some(())?;
        let expected = self.store.journal_replicas(at.at);
        let mut found: Vec<Found> = Vec::new();
        for replica in &expected {
            let head = self.head(*replica, at, place, failed);
            found.extend(head.map(|head| Found { replica: *replica, head }));
        }
        if found.len() < expected.len() {
            let others = self.store.replicas_all().filter(|it| !expected.contains(it));
            let head = |replica| {
                let head = self.head(replica, at, place, &mut 0)?;
                Some(Found { replica, head })
            };
            found.extend(others.filter_map(head));
        }
        // Of two that a crash of recovery left, the later.
        found.sort_by_key(|it| std::cmp::Reverse(it.head.session));
        let mut body = None;
        found.retain(|it| {
            if body.is_some() && !self.is_thorough {
                return true;
            }
            let own = self.body(it.replica, &it.head, place).map(|own| (own, it.head));
            let is_whole = own.is_some();
            body = body.take().or(own);
            is_whole
        });
        let (body, head) = body?;
        let missing = self.store.dies.lost().count() as usize;
        let copies = (head.copies as usize).saturating_sub(missing);
        let is_thin = found.len() < copies;
        let has = |it: &&Replica| !found.iter().any(|found| found.replica == **it);
        let lacking = expected.iter().find(has).map(|it| it.die).filter(|_| is_thin);
        let bytes = HEAD_BYTES as u64 + u64::from(head.length);
        let end = Position {
            at: at.at + bytes.next_multiple_of(SECTOR_BYTES),
            number: at.number + 1,
            link: head.crc,
        };
        Some(Batch { body, session: head.session, end, lacking })
    }

    /// The head of the batch that lies at `place`, if it is the one of that position.
    fn head(&self, replica: Replica, at: Position, place: u64, failed: &mut usize) -> Option<Head> {
        let from = self.store.layout.journal_from(replica.region) + place;
        let mut head = [0; HEAD_BYTES];
        if self.store.dies.read(replica.die, from, &mut head).is_err() {
            *failed += 1;
            return None;
        }
        let head = Head::parse(&head, self.store.drive)?;
        let bytes = HEAD_BYTES as u64 + u64::from(head.length);
        (head.position == at && place + bytes <= self.size()).then_some(head)
    }

    /// The records of a batch, if they are whole.
    fn body(&self, replica: Replica, head: &Head, place: u64) -> Option<Vec<u8>> {
        let from = self.store.layout.journal_from(replica.region) + place;
        let mut body = vec![0; head.length as usize];
        self.store.dies.read(replica.die, from + HEAD_BYTES as u64, &mut body).ok()?;
        (crc32c::crc32c(&body) == head.body_crc).then_some(body)
    }

    /// True if any die has a batch that comes after `end`, or one there that follows another
    /// history.
    fn has_later(&self, end: Position) -> bool {
        if mutants::is(Mutant::LaterBatchesIgnored) {
            return false;
        }
        let mut chunk = vec![0; 1 << 18];
        let is_later = |head: Head| {
            let Position { number, link, .. } = head.position;
            number > end.number || number == end.number && link != end.link
        };
        self.store.replicas_all().any(|replica| {
            self.windows(end).into_iter().any(|(from, until)| {
                (from..until).step_by(chunk.len()).any(|at| {
                    let length = usize::try_from(until - at).unwrap_or(usize::MAX);
                    let part = &mut chunk[..length.min(1 << 18)];
                    let from = self.store.layout.journal_from(replica.region) + at;
                    if self.store.dies.read(replica.die, from, part).is_err() {
                        return false;
                    }
                    let sectors = part.as_chunks::<512>().0.iter();
                    let mut heads = sectors
                        .filter_map(|sector| Head::parse(&sector[..HEAD_BYTES], self.store.drive));
                    heads.any(is_later)
                })
            })
        })
    }

    /// The parts of the ring where the batches after `end` would lie, two of the largest at least.
    fn windows(&self, end: Position) -> Vec<(u64, u64)> {
        let size = self.size();
        let from = end.at % size;
        let length = (2 * largest_batch(&self.store.layout)).min(size);
        if from + length <= size {
            // One that did not fit before the end of the ring begins at 0.
            let wrapped = if from + length / 2 > size { length } else { 0 };
            return vec![(from, from + length), (0, wrapped)];
        }
        vec![(from, size), (0, length.min(from))]
    }
}

/// Bytes of the list of completed rows from which on it is time to commit it: a share of what the
/// journal has room for besides three batches of the largest size.
pub(crate) fn completed_bytes_due(layout: &Layout) -> u64 {
    let row = layout.unit_bytes as u64 * u64::from(layout.shape.dies);
    (layout.shape.journal_bytes.saturating_sub(18 * row) / 24).min(COMPLETED_BYTES_MAX)
}

/// Most bytes of that list: as many as 512 MiB of pages take.
const COMPLETED_BYTES_MAX: u64 = 2 << 20;
/// Largest buffer that is kept for the next batch or list; larger ones are rare.
const KEPT_BYTES_MAX: usize = 1 << 18;

/// Bytes that a batch has at most: all of three rows, the list of rows, trims and releases.
fn largest_batch(layout: &Layout) -> u64 {
    let row = layout.unit_bytes as u64 * u64::from(layout.shape.dies);
    let listed = completed_bytes_due(layout)
        + u64::from(layout.unit_slots) * u64::from(layout.shape.dies) * LISTED_BYTES as u64;
    let records =
        (crate::core::TRIMS_MAX as u64 + u64::from(layout.shape.superblocks)) * RECORD_BYTES as u64;
    4 * row + 2 * listed + 2 * records
}

/// Adds what the records of a batch say; none where one of them says what cannot be.
fn parse(body: &[u8], number: usize, layout: &Layout, records: &mut Vec<Record>) -> Option<()> {
    let mut rest = body;
    while !rest.is_empty() {
        let (record, after) = rest.split_at_checked(RECORD_BYTES)?;
        rest = after;
        let (first, order) = (u32_at(record, 4), u64_at(record, 8));
        records.push(match record[0] {
            TRIM | LOST => {
                let pages = u32_at(record, 16);
                first.checked_add(pages)?;
                let range = Trim { first: Lpn(first), pages, order };
                if record[0] == TRIM { Record::Trim(range) } else { Record::Lost(range) }
            }
            ROW => {
                let length = usize::try_from(u32_at(record, 28)).ok()?;
                let (list, after) = rest.split_at_checked(length)?;
                let from = body.len() - rest.len();
                rest = after;
                Record::Row(parse_row(record, list, (number, from), layout)?)
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
                (extent.is_possible() && extent.holds(payload) && ppn.0 < layout.places())
                    .then_some(())?;
                let journaled = Journaled { extent, body: number, from };
                Record::Extent { journaled, ppn, row_order }
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
    let life = RowEpoch { order: u64_at(record, 8), out };
    let units = u32::from(u16_at(record, 2));
    let row = u32_at(record, 4);
    let is_possible = life.order != 0
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
