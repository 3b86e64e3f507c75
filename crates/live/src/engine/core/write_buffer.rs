//! The write buffer: what was acknowledged and is in no complete row and in no batch of the journal
//! yet, in memory that outlives the process.
//!
//! ```text
//!  add (the core locked) ─► ring of extents: until their row is complete ─┐
//!                        ─► ring of trims                                 ├─► or a batch has them
//!  opening ─► records ─► as if the journal had them                       ┘
//! ```
//!
//! A record is written to a ring before the command that it is of is acknowledged. Where there is
//! no room, or no buffer, that command has to be committed first ([`BufferState::lacks`]).
//!
//! Invariants:
//! - Rows of the host are given up in the order in which they were begun: recovery looks for the
//!   later rows of a superblock only where it finds the first one.
//! - What is written over was given up before, and the marks say so.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use status::LeftBuffer;

use crate::format::journal::Trim;
use crate::format::layout::{Layout, PAGE_BYTES};
use crate::format::position::Position;
use crate::format::unit::Extent;
use crate::format::write_buffer::{
    CELL_BYTES, CELLS_FROM, HEAD_BYTES, Head, RECORD_BYTES, RINGS_FROM, Record, cell, mark_from,
    parse_cell,
};
use crate::lock::lock;
use crate::medium::BufferMemory;
use crate::mutants::{self, Mutant};

/// The rings by what is in them.
const EXTENTS: usize = 0;
const TRIMS: usize = 1;
/// Rows that the ring of extents has room for, in quarters of a row.
const ROW_QUARTERS: u64 = 10;
/// Trims that their ring has room for: as many as wait for a batch, and as many more while that is
/// written.
const TRIMS_MAX: u64 = 2 * 4096 + 512;
/// Bytes that rings are multiples of.
const RING_ALIGN: u64 = 4096;

/// Bytes of the rings of a drive.
fn ring_bytes(layout: &Layout) -> [u64; 2] {
    let shape = &layout.shape;
    let pages = u64::from(shape.data_units()) * u64::from(shape.unit_pages);
    let extents = pages * u64::from(shape.extents_per_page);
    let row = pages * PAGE_BYTES as u64 + extents * (RECORD_BYTES as u64 + 16);
    let trims = TRIMS_MAX * RECORD_BYTES as u64;
    [row * ROW_QUARTERS / 4, trims].map(|bytes| bytes.next_multiple_of(RING_ALIGN))
}

/// Parts of the buffer that others than the core touch.
#[derive(Debug)]
pub(crate) struct BufferState {
    memory: Arc<dyn BufferMemory>,
    seed: u32,
    /// Number of positions of the journal that were noted.
    noted: std::sync::Mutex<usize>,
    /// Positions of the rings before which the journal has everything.
    journaled: [AtomicU64; 2],
    /// Count of events before which the journal has everything, and the last event that found no
    /// room in the buffer.
    committed: AtomicU64,
    lacking: AtomicU64,
}

impl BufferState {
    /// Notes where the next batch of the journal goes. Batches are noted one by one.
    pub(crate) fn note_journal_end(&self, end: Position) {
        let mut noted = lock(&self.noted);
        *noted += 1;
        let cell = cell(end, self.seed);
        self.memory.store(&[(CELLS_FROM[*noted % 2], &cell)]);
    }

    /// True if something was acknowledged, or is about to be, that the buffer lacks and no batch
    /// of the journal has.
    pub(crate) fn lacks(&self) -> bool {
        self.lacking.load(Ordering::Acquire) > self.committed.load(Ordering::Acquire)
    }

    /// Takes note that the journal has what happened before: records before these positions of the
    /// rings, and all events before `seq`.
    pub(crate) fn note_committed(&self, ends: RingEnds, seq: u64) {
        self.note_trims(ends);
        self.journaled[EXTENTS].fetch_max(ends.0[EXTENTS], Ordering::AcqRel);
        self.committed.fetch_max(seq, Ordering::AcqRel);
    }

    /// Takes note that the journal has the trims before these positions.
    pub(crate) fn note_trims(&self, ends: RingEnds) {
        self.journaled[TRIMS].fetch_max(ends.0[TRIMS], Ordering::AcqRel);
    }

    /// Gives the buffer up: the drive was closed.
    pub(crate) fn discard(&self) {
        self.memory.discard();
    }

    /// Makes durable what the buffer has, and has no more.
    ///
    /// # Errors
    /// Fails if it is not known to be.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.memory.sync()
    }
}

/// Positions at which the next records of the rings go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RingEnds([u64; 2]);

/// Row with records in the buffer.
#[derive(Debug)]
struct BufferedRow {
    row_seq: u64,
    /// Position of its first record.
    from: u64,
    /// None while the row is being filled; position of the ring up to which the journal must have
    /// everything before the records are given up, 0 if the row is complete.
    until: Option<u64>,
}

#[derive(Debug)]
struct Ring {
    /// Offset in memory, and bytes.
    from: u64,
    size: u64,
    /// Positions of the first record and of the next one.
    first: u64,
    end: u64,
}

impl Ring {
    /// Position of a record of so many bytes, which does not go across the end of the ring.
    const fn position_of(&self, bytes: u64) -> u64 {
        let place = self.end % self.size;
        if place + bytes > self.size { self.end + self.size - place } else { self.end }
    }

    /// Parts of the memory that hold no record: offsets and bytes.
    fn unused(&self) -> Vec<(u64, u64)> {
        let (first, end) = (self.first % self.size, self.end % self.size);
        if self.first == self.end {
            vec![(self.from, self.size)]
        } else if end < first {
            vec![(self.from + end, first - end)]
        } else {
            vec![(self.from, first), (self.from + end, self.size - end)]
        }
    }
}

/// The buffer while its drive is open: the core adds to it.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    state: Arc<BufferState>,
    rings: [Ring; 2],
    /// In the order in which they were begun.
    rows: VecDeque<BufferedRow>,
    /// True while pages are placed that one batch of the journal takes as a whole or not at all.
    is_paused: bool,
    /// A record that a mutant keeps back.
    late: Option<(Record, Vec<u8>)>,
}

impl WriteBuffer {
    /// Begins the buffer anew for an opening of a drive, whose journal ends there. What was in it
    /// counts no more.
    ///
    /// # Errors
    /// Fails if the memory cannot be had.
    pub(crate) fn begin(
        memory: Arc<dyn BufferMemory>,
        layout: &Layout,
        (drive, session): (u64, u64),
        journal_end: Position,
    ) -> io::Result<Self> {
        let rings = ring_bytes(layout);
        let total = RINGS_FROM + rings[0] + rings[1];
        if memory.size() != total {
            memory.reserve(total)?;
        }
        let mut nonce = [0; 8];
        rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty())?;
        let nonce = u64::from_le_bytes(nonce);
        let place = memory.place();
        if place.start == 0 {
            let what = "the system does not say when it was started";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let mut head = Head { drive, session, nonce, place, rings };
        let mut marks = [[0; 16]; 2];
        if mutants::is(Mutant::BufferTwice) {
            keep(&*memory, &mut head, &mut marks);
        }
        let seed = head.seed();
        let first = cell(journal_end, seed);
        // What was there is void with the first of these, and the head is the last.
        memory.store(&[
            (0, &[0; HEAD_BYTES]),
            (CELLS_FROM[0], &first),
            (CELLS_FROM[1], &[0; CELL_BYTES]),
            (mark_from(EXTENTS), &marks[EXTENTS]),
            (mark_from(TRIMS), &marks[TRIMS]),
            (0, &head.bytes()),
        ]);
        let ring = |index: usize| Ring {
            from: head.ring_from(index),
            size: rings[index],
            first: u64::from_le_bytes(*marks[index].first_chunk().expect("8 bytes")),
            end: u64::from_le_bytes(*marks[index].last_chunk().expect("8 bytes")),
        };
        let state = BufferState {
            memory,
            seed,
            noted: std::sync::Mutex::new(0),
            journaled: [ring(EXTENTS), ring(TRIMS)].map(|ring| AtomicU64::new(ring.first)),
            committed: AtomicU64::new(0),
            lacking: AtomicU64::new(0),
        };
        let (state, rings) = (Arc::new(state), [ring(EXTENTS), ring(TRIMS)]);
        Ok(Self { state, rings, rows: VecDeque::new(), is_paused: false, late: None })
    }

    /// The part that others touch.
    pub(crate) const fn state(&self) -> &Arc<BufferState> {
        &self.state
    }

    /// Positions at which the next records go.
    pub(crate) const fn ends(&self) -> RingEnds {
        RingEnds([self.rings[EXTENTS].end, self.rings[TRIMS].end])
    }

    /// Takes no extents for now: one batch of the journal takes them as a whole or not at all.
    pub(crate) const fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Adds an extent that the host wrote and that lies in a row that is being filled.
    pub(crate) fn add_extent(
        &mut self,
        extent: Extent,
        payload: &[u8],
        row_seq: u64,
        ppn: ftl::Ppn,
    ) {
        if self.is_paused {
            return;
        }
        let record = Record::Extent { extent, row_seq, ppn };
        if mutants::is(Mutant::BufferedLate) {
            if let Some((record, payload)) = self.late.replace((record, payload.to_vec())) {
                self.add_to_row(&record, &payload);
            }
            return;
        }
        self.add_to_row(&record, payload);
    }

    fn add_to_row(&mut self, record: &Record, payload: &[u8]) {
        let Some(at) = self.add(EXTENTS, record, payload) else { return };
        let Record::Extent { row_seq, .. } = *record else { return };
        if self.rows.back().is_none_or(|last| last.row_seq != row_seq) {
            self.rows.push_back(BufferedRow { row_seq, from: at, until: None });
        }
    }

    /// Adds pages that were trimmed.
    pub(crate) fn add_trim(&mut self, trim: Trim) {
        if !mutants::is(Mutant::BufferLacksTrims) {
            self.add(TRIMS, &Record::Trim(trim), &[]);
        }
    }

    /// Takes note that a row is complete.
    pub(crate) fn complete_row(&mut self, row_seq: u64) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.row_seq == row_seq) {
            row.until = Some(0);
        }
    }

    /// Takes note that all rows are void once the journal says so.
    pub(crate) fn forget_rows(&mut self) {
        let end = self.rings[EXTENTS].end;
        for row in self.rows.iter_mut().filter(|row| row.until.is_none()) {
            row.until = Some(end);
        }
    }

    /// Writes zeroes over what was given up.
    pub(crate) fn erase_unused(&mut self) {
        for index in [EXTENTS, TRIMS] {
            self.give_up(index);
            for (from, bytes) in self.rings[index].unused() {
                let zeroes = vec![0; usize::try_from(bytes).expect("a few megabytes")];
                self.state.memory.store(&[(from, &zeroes)]);
            }
        }
    }

    /// Writes a record to a ring and returns its position; none if there is no room.
    fn add(&mut self, index: usize, record: &Record, payload: &[u8]) -> Option<u64> {
        let bytes = record.bytes_total();
        let at = self.rings[index].position_of(bytes);
        let end = at + bytes;
        if end > self.rings[index].first + self.rings[index].size {
            self.give_up(index);
        }
        let ring = &mut self.rings[index];
        if end > ring.first + ring.size {
            self.state.lacking.fetch_max(record.seq() + 1, Ordering::AcqRel);
            return None;
        }
        let from = ring.from + at % ring.size;
        let head = record.head(at, self.state.seed);
        ring.end = end;
        self.state.memory.store(&[
            (from, &head),
            (from + RECORD_BYTES as u64, payload),
            (mark_from(index) + 8, &end.to_le_bytes()),
        ]);
        Some(at)
    }

    /// Gives up the records of a ring that are needed no more.
    fn give_up(&mut self, index: usize) {
        let journaled = self.state.journaled[index].load(Ordering::Acquire);
        let ring = &mut self.rings[index];
        let mut needed = ring.end;
        if index == EXTENTS {
            let is_over = |row: &BufferedRow| row.until.is_some_and(|until| until <= journaled);
            while self.rows.front().is_some_and(is_over) {
                self.rows.pop_front();
            }
            needed = self.rows.front().map_or(ring.end, |row| row.from);
        } else {
            needed = needed.min(journaled);
        }
        let first = needed.max(journaled);
        assert!((ring.first..=ring.end).contains(&first), "records are given up in order");
        ring.first = first;
        self.state.memory.store(&[(mark_from(index), &first.to_le_bytes())]);
    }
}

/// Has a mutant go on with what is in the buffer.
fn keep(memory: &dyn BufferMemory, head: &mut Head, marks: &mut [[u8; 16]; 2]) {
    let mut bytes = [0; HEAD_BYTES];
    memory.load(0, &mut bytes);
    let Some(kept) = Head::parse(&bytes).filter(|kept| kept.place == head.place) else { return };
    head.nonce = kept.nonce;
    for (ring, mark) in marks.iter_mut().enumerate() {
        memory.load(mark_from(ring), mark);
    }
}

/// Contents of the buffer that an opening of a drive left.
#[derive(Debug)]
pub(crate) struct BufferContents {
    pub(crate) session: u64,
    /// End of the journal that was noted last.
    pub(crate) journal_end: Position,
    /// In the order in which they were written, first the extents, and then the trims.
    pub(crate) records: Vec<(Record, Vec<u8>)>,
    /// Name of the buffer.
    pub(crate) name: String,
    /// True if it has less than its marks say.
    pub(crate) is_damaged: bool,
}

impl BufferContents {
    /// Returns what is in it, before anything says whether it counts.
    pub(crate) fn contents(&self) -> LeftBuffer {
        let mut pages = BTreeSet::new();
        let mut trims = 0;
        for (record, _) in &self.records {
            match record {
                Record::Extent { extent, .. } => _ = pages.insert(extent.lpn),
                Record::Trim(_) => trims += 1,
            }
        }
        LeftBuffer { pages: pages.len() as u64, trims, ..LeftBuffer::default() }
    }
}

/// Reads what an opening of a drive left in its buffer; none if nothing is there.
///
/// # Errors
/// Says why what is there does not count, one sentence.
pub(crate) fn read(
    memory: &dyn BufferMemory,
    drive: u64,
) -> Result<Option<BufferContents>, String> {
    let size = memory.size();
    if size < RINGS_FROM {
        return Ok(None);
    }
    let mut bytes = [0; HEAD_BYTES];
    memory.load(0, &mut bytes);
    let name = memory.name();
    let not_used = |why: &str| format!("the write buffer {name} {why}, and is not used");
    let Some(head) = Head::parse(&bytes) else {
        return if bytes == [0; HEAD_BYTES] { Ok(None) } else { Err(not_used("cannot be read")) };
    };
    let place = memory.place();
    let is_any = mutants::is(Mutant::BufferStale);
    if head.drive != drive {
        return Err(not_used("is of another volume"));
    } else if head.bytes_total() != Some(size) {
        return Err(not_used("is not whole"));
    } else if head.place.start != place.start && !is_any {
        return Err(not_used("was written before the machine was started again"));
    } else if head.place != place && !is_any {
        return Err(not_used("is a copy of the one that was written"));
    }
    let seed = head.seed();
    let cells = CELLS_FROM.map(|from| {
        let mut bytes = [0; CELL_BYTES];
        memory.load(from, &mut bytes);
        parse_cell(&bytes, seed)
    });
    let last = cells.into_iter().flatten().max_by_key(|position| position.number);
    let Some(journal_end) = last else { return Err(not_used("is not whole")) };
    let mut records = Vec::new();
    let is_whole = [EXTENTS, TRIMS].map(|ring| read_ring(memory, &head, ring, &mut records));
    let is_damaged = is_whole.contains(&false);
    Ok(Some(BufferContents { session: head.session, journal_end, records, name, is_damaged }))
}

/// Reads the records of a ring; says whether they are all that the marks say.
fn read_ring(
    memory: &dyn BufferMemory,
    head: &Head,
    ring: usize,
    records: &mut Vec<(Record, Vec<u8>)>,
) -> bool {
    let [first, end] = [0, 8].map(|from| {
        let mut mark = [0; 8];
        memory.load(mark_from(ring) + from, &mut mark);
        u64::from_le_bytes(mark)
    });
    let (from, size, seed) = (head.ring_from(ring), head.rings[ring], head.seed());
    let mut at = first;
    // One more than the marks say may be whole; it was not acknowledged.
    while at.checked_sub(first).is_some_and(|seen| seen < size) {
        let record = record_at(memory, (from, size), at, seed).or_else(|| {
            let wrapped = at.checked_next_multiple_of(size).filter(|wrapped| *wrapped > at)?;
            record_at(memory, (from, size), wrapped, seed)
        });
        let Some((record, payload, next)) = record else { break };
        records.push((record, payload));
        at = next;
    }
    first <= end && at >= end
}

/// The record at a position of a ring, if it is whole, its payload, and the position after it.
fn record_at(
    memory: &dyn BufferMemory,
    (from, size): (u64, u64),
    at: u64,
    seed: u32,
) -> Option<(Record, Vec<u8>, u64)> {
    let place = at % size;
    (place + RECORD_BYTES as u64 <= size).then_some(())?;
    let mut head = [0; RECORD_BYTES];
    memory.load(from + place, &mut head);
    let record = Record::parse(&head, at, seed)?;
    let bytes = record.bytes_total();
    (place + bytes <= size).then_some(())?;
    let mut payload = Vec::new();
    if let Record::Extent { extent, .. } = &record {
        payload.resize(usize::from(extent.length), 0);
        memory.load(from + place + RECORD_BYTES as u64, &mut payload);
        extent.holds(&payload).then_some(())?;
    }
    Some((record, payload, at + bytes))
}
