//! The journal read back: batches from a position on, each from the first die that has it whole.
//!
//! Behind the last one may lie batches that were not synced ([`unsynced_batches`]): they count as
//! far as they are whole. A batch that was synced lies behind those that it replaced, and is looked
//! for where they end, or, if the power took them, wherever it may be.
//!
//! [`unsynced_batches`]: crate::engine::journal::unsynced_batches

use std::collections::BTreeSet;

use crate::engine::completed_rows::completed_bytes_due;
use crate::engine::store::{Replica, Store};
use crate::format::journal::{
    HEAD_BYTES, Head, Journaled, LISTED_BYTES, ListedRow, Order, RECORD_BYTES, Record, Trim,
    listed_extent, listed_unit, parse,
};
use crate::format::layout::{Layout, REPLICAS};
use crate::format::position::{Position, SECTOR_BYTES};
use crate::format::unit::Extent;
use crate::mutants::{self, Mutant};

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
    /// Of those, how many are of batches that were synced.
    pub(crate) records_synced: usize,
    /// Rows that were open, and their lives, when the last batch was written that was not synced.
    pub(crate) open: BTreeSet<(u32, u64)>,
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
    let mut next = Next::default();
    while replay.gap.is_none() {
        next = reading.next(replay.end);
        let Some(batch) = next.batch.take() else { break };
        let index = replay.bodies.len();
        if parse(&batch.body, index, &store.layout, &mut replay.records).is_none() {
            replay.gap = Some(Gap::Lost(replay.end.number));
            break;
        }
        if let Some(die) = batch.lacking {
            replay.thin.push((replay.end.number, die));
        }
        assert!(batch.end.at > replay.end.at, "positions rise");
        assert_eq!(batch.end.number, replay.end.number + 1, "batches follow each other");
        (replay.end, replay.session) = (batch.end, batch.session);
        replay.bodies.push(batch.body);
    }
    replay.records_synced = replay.records.len();
    if replay.gap.is_none() && next.is_later {
        replay.gap = Some(Gap::Lost(replay.end.number));
    }
    // One copy that says nothing of a batch is enough, unless a die with another one is missing.
    let is_unknown =
        next.unread > 0 && next.unread + store.dies.missed().count() as usize >= REPLICAS;
    if replay.gap.is_none() && is_unknown {
        replay.gap = Some(Gap::Unreadable(replay.end.number));
    }
    replay.add_unsynced(next.unsynced, &store.layout);
    replay
}

impl Replay {
    /// Trims that no synced batch has.
    pub(crate) fn unsynced_trims(&self) -> Vec<Trim> {
        let trim = |record: &Record| match record {
            Record::Trim(trim) => Some(*trim),
            _ => None,
        };
        self.records[self.records_synced..].iter().filter_map(trim).collect()
    }

    /// Adds what batches say that were not synced, and goes on behind them.
    fn add_unsynced(&mut self, batches: Vec<UnsyncedBatch>, layout: &Layout) {
        for batch in batches {
            let mut records = Vec::new();
            if parse(&batch.body, self.bodies.len(), layout, &mut records).is_none() {
                return;
            }
            let open = |record: &Record| match record {
                Record::Open { row, seq } => Some((*row, *seq)),
                _ => None,
            };
            self.open = records.iter().filter_map(open).collect();
            self.records.extend(records);
            self.bodies.push(batch.body);
            self.end.at = batch.end;
        }
    }
}

/// True if a batch follows at a position: then somebody went on there.
pub(crate) fn goes_on(reading: Reading<'_>) -> bool {
    reading.near(reading.from, &mut 0).is_some()
        || reading.unsynced(reading.from, |_| true).is_some()
}

/// Batches that follow a position.
#[derive(Default)]
struct Next {
    /// The batch that follows, if it was synced.
    batch: Option<Batch>,
    /// Else the batches there that were not, as far as they are whole.
    unsynced: Vec<UnsyncedBatch>,
    /// True if something was written later than a batch that is not there.
    is_later: bool,
    /// Copies that could not be read where it would lie.
    unread: usize,
}

/// A batch that was not synced.
struct UnsyncedBatch {
    order: Order,
    body: Vec<u8>,
    /// Monotonic offset behind it.
    end: u64,
}

struct Batch {
    body: Vec<u8>,
    session: u64,
    end: Position,
    /// A die that should have a copy of it, and has none.
    lacking: Option<usize>,
}

/// A copy of a batch, as far as its head was read.
#[derive(Clone, Copy, Debug)]
struct FoundBatch {
    replica: Replica,
    head: Head,
}

impl Reading<'_> {
    const fn size(&self) -> u64 {
        self.store.layout.shape.journal_bytes
    }

    /// The batch that follows a position, or else what lies there.
    fn next(&self, end: Position) -> Next {
        let mut next = Next::default();
        next.batch = self.near(end, &mut next.unread);
        if next.batch.is_some() {
            return next;
        }
        let half = self.store.layout.unsynced_bytes();
        for from in [end.at, end.at + half] {
            let run = self.run(Position { at: from, ..end });
            let Some(last) = run.last() else { continue };
            let mut unread = 0;
            next.batch = self.near(Position { at: last.end, ..end }, &mut unread);
            if next.batch.is_some() {
                return next;
            }
            next.unread = next.unread.max(unread);
            // The one that begins later voids the other.
            if next.unsynced.first().is_none_or(|first| first.order.first < last.order.first) {
                next.unsynced = run;
            }
        }
        let (at, is_later) = self.search(end);
        let found = at.into_iter().filter_map(|at| self.near(Position { at, ..end }, &mut 0));
        next.batch = found.max_by_key(|batch| batch.session);
        next.is_later = is_later;
        next
    }

    /// The batch at a position, or at 0 where it does not fit before the end of the ring.
    fn near(&self, at: Position, unread: &mut usize) -> Option<Batch> {
        let (mut there, mut wrapped) = (0, 0);
        let [own, from_zero] = self.places(at);
        let found = self
            .batch(own, own.at % self.size(), &mut there)
            .or_else(|| self.batch(from_zero, 0, &mut wrapped));
        *unread = there.max(wrapped);
        found
    }

    /// A position, and the next one at which the ring begins anew.
    const fn places(&self, at: Position) -> [Position; 2] {
        let size = self.size();
        [at, Position { at: at.at + size - at.at % size, ..at }]
    }

    /// Batches that were not synced, from a full one on, each right behind the one before.
    fn run(&self, from: Position) -> Vec<UnsyncedBatch> {
        let mut run: Vec<UnsyncedBatch> = Vec::new();
        loop {
            let last = run.last().map(|last| last.order);
            let follows = |Order { order, first }: Order| match last {
                Some(last) => last == Order { order: order - 1, first },
                None => order == first,
            };
            let at = run.last().map_or(from.at, |last| last.end);
            let Some(batch) = self.unsynced(Position { at, ..from }, follows) else { return run };
            run.push(batch);
        }
    }

    /// The latest batch at a position that was not synced and whose order `counts`.
    ///
    /// A half that is begun again has another batch where its first one was. An earlier one may be
    /// left there all the same: on a die that lost the later write, or before the end of the ring,
    /// where the later one did not fit.
    fn unsynced(&self, at: Position, counts: impl Fn(Order) -> bool) -> Option<UnsyncedBatch> {
        let mut latest: Option<UnsyncedBatch> = None;
        for at in self.places(at) {
            let expected = self.store.journal_replicas(at.at);
            let others = self.store.replicas_all().filter(|it| !expected.contains(it));
            for replica in expected.iter().copied().chain(others) {
                let known = latest.as_ref().map_or(0, |it| it.order.order);
                let is_taken = known > 0 && mutants::is(Mutant::EarlierCopyTaken);
                let is_later = |it: Order| counts(it) && it.order > known && !is_taken;
                latest = self.unsynced_copy(replica, at, is_later).or(latest);
            }
        }
        latest
    }

    /// A die's copy of the batch at a position that was not synced, if it is whole and its order
    /// `counts`.
    fn unsynced_copy(
        &self,
        replica: Replica,
        at: Position,
        counts: impl Fn(Order) -> bool,
    ) -> Option<UnsyncedBatch> {
        let place = at.at % self.size();
        (place + HEAD_BYTES as u64 <= self.size()).then_some(())?;
        let from = self.store.layout.journal_from(replica.region) + place;
        let mut head = [0; HEAD_BYTES];
        self.store.dies.read(replica.die, from, &mut head).ok()?;
        let (head, order) = Head::parse_unsynced(&head, self.store.drive)?;
        let bytes = HEAD_BYTES as u64 + u64::from(head.length);
        let is_there = head.position == at && place + bytes <= self.size();
        (is_there && counts(order)).then_some(())?;
        let body = self.body(replica, &head, place)?;
        Some(UnsyncedBatch { order, body, end: at.at + bytes.next_multiple_of(SECTOR_BYTES) })
    }

    /// The batch at a position, from the dies that should have it, else from any other one. Copies
    /// that could not be read are counted in `failed`.
    fn batch(&self, at: Position, place: u64, failed: &mut usize) -> Option<Batch> {
        (place + HEAD_BYTES as u64 <= self.size()).then_some(())?;
        let expected = self.store.journal_replicas(at.at);
        let mut found: Vec<FoundBatch> = Vec::new();
        for replica in &expected {
            let head = self.head(*replica, at, place, failed);
            found.extend(head.map(|head| FoundBatch { replica: *replica, head }));
        }
        if found.len() < expected.len() {
            let others = self.store.replicas_all().filter(|it| !expected.contains(it));
            let head = |replica| {
                let head = self.head(replica, at, place, &mut 0)?;
                Some(FoundBatch { replica, head })
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

    /// Looks for batches that follow `end`: offsets at which the next one may lie, and whether any
    /// die has one that comes later, or follows another history.
    fn search(&self, end: Position) -> (BTreeSet<u64>, bool) {
        if mutants::is(Mutant::LaterBatchesIgnored) {
            return (BTreeSet::new(), false);
        }
        let (mut next, mut is_later) = (BTreeSet::new(), false);
        let mut see = |sector: &[u8]| {
            let drive = self.store.drive;
            if let Some((head, _)) = Head::parse_unsynced(sector, drive) {
                // The synced one before it was durable.
                is_later |= head.position.number > end.number;
            }
            let Some(head) = Head::parse(sector, drive) else { return };
            let Position { at, number, link } = head.position;
            // Whatever a head says, the ring is no longer than it is.
            let is_near = at > end.at && at - end.at <= self.size();
            if number == end.number && link == end.link && is_near {
                next.insert(at);
            }
            is_later |= number > end.number || number == end.number && link != end.link;
        };
        let mut chunk = vec![0; 1 << 18];
        for replica in self.store.replicas_all() {
            for (from, until) in self.windows(end) {
                for at in (from..until).step_by(chunk.len()) {
                    let length = usize::try_from(until - at).unwrap_or(usize::MAX);
                    let part = &mut chunk[..length.min(1 << 18)];
                    let from = self.store.layout.journal_from(replica.region) + at;
                    if self.store.dies.read(replica.die, from, part).is_ok() {
                        part.as_chunks::<512>().0.iter().for_each(|it| see(&it[..HEAD_BYTES]));
                    }
                }
            }
        }
        (next, is_later)
    }

    /// The parts of the ring where the batches after `end` would lie, two of the largest at least.
    fn windows(&self, end: Position) -> Vec<(u64, u64)> {
        let size = self.size();
        let from = end.at % size;
        let layout = &self.store.layout;
        // Each behind the batches that it replaced.
        let length = (2 * largest_batch(layout) + 4 * layout.unsynced_bytes()).min(size);
        if from + length <= size {
            // One that did not fit before the end of the ring begins at 0.
            let wrapped = if from + length / 2 > size { length } else { 0 };
            return vec![(from, from + length), (0, wrapped)];
        }
        vec![(from, size), (0, length.min(from))]
    }
}

/// Bytes that a batch has at most: all of three rows, the list of rows, trims and releases.
fn largest_batch(layout: &Layout) -> u64 {
    let row = layout.unit_bytes as u64 * u64::from(layout.shape.dies);
    let listed = completed_bytes_due(layout)
        + u64::from(layout.unit_slots) * u64::from(layout.shape.dies) * LISTED_BYTES as u64;
    let records = (crate::engine::core::TRIMS_MAX as u64 + u64::from(layout.shape.superblocks))
        * RECORD_BYTES as u64;
    4 * row + 2 * listed + 2 * records
}
