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
//! Invariants:
//! - Batches follow each other by number across sessions; each carries the checksum of the head of
//!   the one before (its **link**), begins a sector, and no sector is written twice before the ring
//!   comes round.
//! - At most the last batch is not durable: each is synced before the next one is written. So a
//!   batch that is not whole is the end, unless a later one is found: then the media has failed.
//! - A row that a batch lists was durable before the batch was written. So whatever is found of it
//!   later, its pages are known to have existed.
//! - A die that such a row lacks a unit on is in the headers, durably, before the batch is written.

use device::DeviceError;
use zerocopy::IntoBytes as _;

use crate::engine::core::Core;
use crate::engine::core::completed_rows::KEPT_BYTES_MAX;
use crate::engine::dies::medium_error;
use crate::engine::store::Store;
use crate::format::encoding::{U32, put_prefix};
use crate::format::journal::{
    HEAD_BYTES, HeadBytes, JournaledExtent, LOST, MAGIC, RELEASE, RangeRecord, Record, TRIM,
    add_extent, link_to, parse, seal_batch,
};
use crate::format::layout::{Layout, Place, REPLICAS};
use crate::format::position::{Position, SECTOR_BYTES};
use crate::mutants::{self, Mutant};

/// Events that a commit writes to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Writes and trims of the host.
    Host,
    /// Writes of the host as an atomic group: they are placed, so there must be room.
    Together,
    /// Copies made by relocation, too: then the superblocks that they were copied from may be
    /// erased. Nothing is written if none waits for that.
    Relocation,
    /// Copies made by relocation, too, whether or not a superblock waits for it.
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
    /// Batch that is being assembled.
    batch: Vec<u8>,
    records: u32,
}

impl Journal {
    /// The parts of the ring that hold batches which are needed.
    pub(crate) fn in_use(&self) -> Vec<(u64, u64)> {
        let (from, until) = (self.tail % self.size, self.head.at % self.size);
        match self.used() {
            0 => Vec::new(),
            _ if from < until => vec![(from, until)],
            _ => vec![(from, self.size), (0, until)],
        }
    }

    /// The parts of the ring that hold no batch which is needed.
    pub(crate) fn unused(&self) -> Vec<(u64, u64)> {
        let (from, until) = (self.head.at % self.size, self.tail % self.size);
        match self.used() {
            0 => vec![(0, self.size)],
            _ if from <= until => vec![(from, until)],
            _ => vec![(from, self.size), (0, until)],
        }
    }

    pub(crate) fn new(drive: u64, session: u64, size: u64, head: Position) -> Self {
        assert!(head.is_possible(), "a batch can lie at the end of the journal");
        assert!(size > 0 && size.is_multiple_of(SECTOR_BYTES), "the ring is whole sectors");
        let (tail, batch) = (head.at, Vec::new());
        Self { drive, session, size, head, tail, listed: 0, committed: 0, batch, records: 0 }
    }

    /// Bytes of the ring that are in use.
    pub(crate) const fn used(&self) -> u64 {
        assert!(self.tail <= self.head.at, "the tail does not pass the head");
        self.head.at - self.tail
    }

    /// True if the batch fits between head and tail, wherever it begins: one that does not fit
    /// before the end of the ring leaves less than its length unused there.
    pub(crate) fn fits_batch(&self) -> bool {
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
        let released = if scope.is_host() { 0 } else { core.ftl.held_erased().len() };
        self.collect_completed(core, released);
        for open in &mut core.open {
            if open.origin.is_relocation && scope.is_host() {
                continue;
            }
            for (unit, position) in open.units.iter_mut().zip(0..) {
                let first = if scope == Scope::Again { 0 } else { unit.journaled };
                for slot in first..unit.count {
                    let place = Place { row: open.row, unit: position, slot };
                    let (extent, payload) = unit.extent(slot);
                    add_extent(&mut self.batch, extent, payload, open.seq, layout.ppn(place));
                    self.records += 1;
                }
                assert!(unit.journaled <= unit.count, "what the journal holds was appended");
                unit.journaled = unit.count;
            }
        }
    }

    /// Adds everything but the contents of open rows, and the release of so many of the superblocks
    /// that were erased longest ago.
    pub(crate) fn collect_completed(&mut self, core: &mut Core, released: usize) {
        for trim in core.trims.drain(..) {
            self.add(TRIM, trim.first.0, trim.seq, trim.pages);
        }
        for lost in core.lost.take_unsaved() {
            self.add(LOST, lost.first.0, lost.seq, lost.pages);
        }
        self.list_rows(core);
        assert!(core.completed.is_empty(), "a superblock is released with what superseded it");
        for superblock in &core.ftl.held_erased()[..released] {
            self.add(RELEASE, superblock.0, core.seq, 0);
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
        assert!(self.listed <= core.seq, "events are counted up");
        self.listed = core.seq;
    }

    /// Adds records that are ready.
    pub(crate) fn add_records(&mut self, bytes: &[u8], records: u32) {
        self.batch.extend_from_slice(bytes);
        self.records += records;
    }

    fn add(&mut self, kind: u8, first: u32, seq: u64, count: u32) {
        let record = RangeRecord {
            kind,
            zeroes: [0; 3],
            first: first.into(),
            seq: seq.into(),
            pages: count.into(),
            rest: [0; 12],
        };
        self.batch.extend_from_slice(record.as_bytes());
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
        assert!((1..=REPLICAS).contains(&copies), "a batch has a copy or two");
        let (at, bytes) = self.extent_of_batch();
        assert!(at >= self.head.at && at.is_multiple_of(SECTOR_BYTES), "a batch begins a sector");
        let body = u32::try_from(self.batch.len() - HEAD_BYTES);
        let head = HeadBytes {
            magic: MAGIC.into(),
            drive: self.drive.into(),
            session: self.session.into(),
            number: self.head.number.into(),
            at: at.into(),
            length: body.expect("a batch is far below 4 GiB").into(),
            records: self.records.into(),
            link: self.head.link.into(),
            copies: u32::try_from(copies).expect("a few").into(),
            body_crc: U32::ZERO,
            crc: U32::ZERO,
        };
        put_prefix(&mut self.batch, &head);
        seal_batch(&mut self.batch);
        self.batch.resize(usize::try_from(bytes).expect("a length"), 0);
        assert!(at % self.size + bytes <= self.size, "a batch does not wrap");
        (at, &self.batch)
    }

    /// Has the batch hold pages as clients wrote them, for the mutant that forgets to encrypt.
    fn decrypt(&mut self, store: &Store) {
        let Some(keys) = store.keys() else { return };
        let mut records = Vec::new();
        let body = self.batch.split_off(HEAD_BYTES);
        parse(&body, 0, &store.layout, &mut records).expect("a batch that is written is whole");
        let mut clear = body.clone();
        for record in records {
            let Record::Extent { journaled: JournaledExtent { extent, from, .. }, .. } = record
            else {
                continue;
            };
            let place = from..from + usize::from(extent.length);
            let text = &mut clear[place.clone()];
            if keys.decrypt(&extent, &body[place], text).is_some() {
                let crc = crc32c::crc32c(text);
                clear[from - 4..from].copy_from_slice(&crc.to_le_bytes());
            }
        }
        self.batch.extend(clear);
    }

    /// Writes the batch, and makes it durable. What it lists must be durable already.
    pub(crate) fn write(&mut self, store: &Store) -> Result<(), DeviceError> {
        if mutants::is(Mutant::JournalInPlaintext) {
            self.decrypt(store);
        }
        let limit = self.tail + self.size;
        let (at, bytes) = self.finish(REPLICAS);
        let length = bytes.len() as u64;
        let replicas = store.journal_replicas(at);
        assert!(!replicas.is_empty(), "a batch has a place");
        assert!(at + length <= limit, "no batch that is needed is written over");
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
        let link = link_to(bytes);
        let next = Position { at: at + length, number: self.head.number + 1, link };
        assert!(next.at > self.head.at && next.is_possible(), "positions rise");
        if self.batch.capacity() > KEPT_BYTES_MAX {
            self.batch = Vec::new();
        }
        self.head = next;
        store.note_batches(next.number);
        if let Some(buffer) = store.buffer() {
            buffer.note_journal_end(next);
        }
        Ok(())
    }
}
