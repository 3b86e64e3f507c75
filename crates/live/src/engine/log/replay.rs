//! The journal read back: batches from a position on, each from the first die that has it whole.

use std::collections::BTreeMap;

use crate::engine::core::completed_rows::completed_bytes_due;
use crate::engine::store::{Replica, Store};
use crate::format::die_set::DieSet;
use crate::format::journal::{
    HEAD_BYTES, Head, JournaledExtent, LISTED_BYTES, ListedRow, RECORD_BYTES, Record,
    listed_extent, listed_unit, parse,
};
use crate::format::layout::{Layout, REPLICAS};
use crate::format::position::{Position, SECTOR_BYTES, SECTOR_LENGTH};
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
    /// The records of each batch as they were read: a caller that needs a payload takes it from
    /// there, not from another look, which might find less.
    bodies: Vec<Vec<u8>>,
    /// Position of the next batch.
    pub(crate) end: Position,
    /// Reason why `end` may not be the end; none if it is.
    pub(crate) gap: Option<Gap>,
    /// The session of the last batch; 0: there is none.
    pub(crate) session: u64,
    /// Batches of which fewer copies were found than there should be.
    pub(crate) thin: Vec<ThinBatch>,
    /// Numbers of batches of which all copies that are whole lie on one die, though several dies
    /// are there; known where every copy is read whole.
    pub(crate) on_one_die: Vec<u64>,
    /// By die the number of the last batch whose head was found there; 0: none was.
    found_last: Vec<u64>,
    /// The last batch; none if there is none.
    pub(crate) last: Option<LastBatch>,
}

/// A batch of which fewer copies were found than there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThinBatch {
    pub(crate) number: u64,
    /// A die that lacks it.
    pub(crate) die: usize,
    /// True if that die can be read there and has something else, not the same with damage.
    pub(crate) is_absent: bool,
}

/// The last batch of a journal, of which a crash may have left a single copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastBatch {
    /// Position at which it begins.
    pub(crate) at: u64,
    /// All of it, with its padding.
    pub(crate) bytes: Vec<u8>,
}

impl Replay {
    /// A batch that a die should have and has not, nor any later one: each is durable before the
    /// next one is written, so that die lost what had been synced, such as an earlier image of
    /// itself. Of the last batch the power may have left a single copy.
    pub(crate) fn outdated(&self) -> Option<ThinBatch> {
        let is_outdated = |it: &&ThinBatch| {
            let is_last = it.number + 1 == self.end.number;
            it.is_absent && !is_last && self.found_last[it.die] < it.number
        };
        self.thin.iter().find(is_outdated).copied()
    }

    /// Adds records that were written elsewhere; says whether they can be of this drive.
    pub(crate) fn add(&mut self, records: Vec<u8>, layout: &Layout) -> bool {
        let before = self.records.len();
        if parse(&records, self.bodies.len(), layout, &mut self.records).is_none() {
            self.records.truncate(before);
            return false;
        }
        self.bodies.push(records);
        true
    }

    /// True if the journal ends at a position, or with one batch of that session behind it.
    pub(crate) fn ends_at(&self, end: Position, session: u64) -> bool {
        let is_next = |last: &LastBatch| {
            let head = last.bytes.first_chunk::<HEAD_BYTES>();
            head.and_then(Head::of_any).is_some_and(|head| {
                let Position { number, link, .. } = head.position;
                (number, link, head.session) == (end.number, end.link, session)
            })
        };
        self.end == end || self.last.as_ref().is_some_and(is_next)
    }

    /// The payload of an extent.
    pub(crate) fn payload(&self, journaled: &JournaledExtent) -> &[u8] {
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
    let found_last = vec![0; store.dies.count()];
    let mut replay = Replay { end: reading.from, found_last, ..Replay::default() };
    let size = reading.size();
    let mut failed = [0; 2];
    let mut last = None;
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
        let number = replay.end.number;
        let thin = |(die, is_absent)| ThinBatch { number, die, is_absent };
        replay.on_one_die.extend(batch.is_on_one_die.then_some(number));
        replay.thin.extend(batch.lacking.into_iter().map(thin));
        for die in batch.headed.iter() {
            replay.found_last[die] = replay.end.number;
        }
        assert!(batch.end.at > replay.end.at, "positions rise");
        assert_eq!(batch.end.number, replay.end.number + 1, "batches follow each other");
        (replay.end, replay.session) = (batch.end, batch.session);
        last = Some((batch.at, batch.head));
        replay.bodies.push(batch.body);
    }
    replay.last = last.zip(replay.bodies.last()).map(|((at, head), body)| {
        let mut bytes = [&head[..], body].concat();
        bytes.resize(bytes.len().next_multiple_of(SECTOR_LENGTH), 0);
        LastBatch { at, bytes }
    });
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

/// The position of the earliest batch from which the journal is one chain to its last one, by the
/// heads that any die has; the beginning of the ring where there is none.
pub(crate) fn earliest(store: &Store) -> Position {
    let size = store.layout.shape.journal_bytes;
    let mut heads: BTreeMap<u64, Head> = BTreeMap::new();
    let mut chunk = vec![0; 1 << 18];
    for replica in store.replicas_all() {
        for at in (0..size).step_by(chunk.len()) {
            let length = usize::try_from(size - at).unwrap_or(usize::MAX).min(1 << 18);
            let part = &mut chunk[..length];
            let from = store.layout.journal_from(replica.region) + at;
            store.read_readable(replica.die, from, part);
            let sectors = (at..).step_by(SECTOR_LENGTH).zip(part.as_chunks::<SECTOR_LENGTH>().0);
            for (place, sector) in sectors {
                let head = Head::parse(&sector[..HEAD_BYTES], store.drive);
                // Data of a client may look like a head, but does not know where it will lie.
                let head = head.filter(|it| it.position.at % size == place);
                let Some(head) = head.filter(|it| it.position.is_possible()) else { continue };
                let known = heads.entry(head.position.number).or_insert(head);
                if head.session > known.session {
                    *known = head;
                }
            }
        }
    }
    let mut first: Option<Head> = None;
    for head in heads.into_values().rev() {
        let is_next = first.is_none_or(|first| {
            head.position.number + 1 == first.position.number && head.crc == first.position.link
        });
        if !is_next {
            break;
        }
        first = Some(head);
    }
    first.map_or_else(Position::default, |first| first.position)
}

/// True if a batch follows at a position: then an opening went on there.
pub(crate) fn goes_on(reading: Reading<'_>) -> bool {
    let (at, size) = (reading.from, reading.size());
    let place = at.at % size;
    let from_zero = Position { at: at.at + size - place, ..at };
    reading.batch(at, place, &mut 0).is_some() || reading.batch(from_zero, 0, &mut 0).is_some()
}

struct Batch {
    /// Position at which it begins.
    at: u64,
    head: [u8; HEAD_BYTES],
    body: Vec<u8>,
    session: u64,
    end: Position,
    /// The dies that have its head, whatever the rest of the copy is: they had all of it once.
    headed: DieSet,
    /// Dies that should have a copy of it and have none; true if one has something else there.
    lacking: Vec<(usize, bool)>,
    /// True if nothing is lacking, and yet all lies on one of several dies.
    is_on_one_die: bool,
}

/// A copy of a batch, as far as its head was read.
#[derive(Clone, Copy, Debug)]
struct FoundBatch {
    replica: Replica,
    head: Head,
    bytes: [u8; HEAD_BYTES],
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
        let mut found: Vec<FoundBatch> = Vec::new();
        for replica in &expected {
            found.extend(self.head(*replica, at, place, failed));
        }
        if found.len() < expected.len() {
            // A die that failed or went missing since has changed whose turn it was.
            for other in self.store.replicas_all().filter(|it| !expected.contains(it)) {
                found.extend(self.head(other, at, place, failed));
            }
        }
        // Of two that a crash of recovery left, the later.
        found.sort_by_key(|it| std::cmp::Reverse(it.head.session));
        let headed: Vec<FoundBatch> = found.clone();
        let mut body = None;
        found.retain(|it| {
            if body.is_some() && !self.is_thorough {
                return true;
            }
            let own = self.body(it.replica, &it.head, place, failed).map(|own| (own, *it));
            let is_whole = own.is_some();
            body = body.take().or(own);
            is_whole
        });
        let (body, FoundBatch { head, bytes: head_bytes, .. }) = body?;
        let missing = self.store.dies.lost().count() as usize;
        let copies = (head.copies as usize).saturating_sub(missing);
        let has = |of: &[FoundBatch], it: &Replica| of.iter().any(|found| found.replica == *it);
        // Whether a die is outdated is judged by heads, however much of the copies is read.
        let absent = expected.iter().find(|it| !has(&headed, it));
        let absent = absent.filter(|_| headed.len() < copies);
        let mut lacking: Vec<(usize, bool)> = Vec::new();
        lacking.extend(absent.map(|it| (it.die, self.is_absent(*it, place, &head_bytes))));
        let damaged = headed.iter().filter(|it| !has(&found, &it.replica));
        let damaged = damaged.map(|it| (it.replica.die, false));
        lacking.extend(damaged.take(copies.saturating_sub(found.len() + lacking.len())));
        let whole: DieSet = found.iter().map(|it| it.replica.die).collect();
        let is_on_one_die = self.is_thorough
            && lacking.is_empty()
            && missing == 0
            && self.store.dies.has_several_complete()
            && whole.count() == 1;
        let headed = headed.iter().filter(|it| it.head.crc == head.crc);
        let headed = headed.map(|it| it.replica.die).collect();
        let bytes = HEAD_BYTES as u64 + u64::from(head.length);
        let end = Position {
            at: at.at + bytes.next_multiple_of(SECTOR_BYTES),
            number: at.number + 1,
            link: head.crc,
        };
        let session = head.session;
        Some(Batch {
            at: at.at,
            head: head_bytes,
            body,
            session,
            end,
            headed,
            lacking,
            is_on_one_die,
        })
    }

    /// True if what lies at the place of a batch can be read, and is not its head with some damage:
    /// of another batch, or of zeroes, both checksums would differ.
    fn is_absent(&self, replica: Replica, place: u64, head: &[u8; HEAD_BYTES]) -> bool {
        let from = self.store.layout.journal_from(replica.region) + place;
        let mut found = [0; HEAD_BYTES];
        let is_read = self.store.dies.peek(replica.die, from, &mut found).is_ok();
        let differs = |at: usize| found[at..at + 4] != head[at..at + 4];
        is_read && differs(HEAD_BYTES - 8) && differs(HEAD_BYTES - 4)
    }

    /// The head of the batch that lies at `place`, if it is the one of that position.
    fn head(
        &self,
        replica: Replica,
        at: Position,
        place: u64,
        failed: &mut usize,
    ) -> Option<FoundBatch> {
        let from = self.store.layout.journal_from(replica.region) + place;
        let mut bytes = [0; HEAD_BYTES];
        if self.store.dies.read(replica.die, from, &mut bytes).is_err() {
            *failed += 1;
            return None;
        }
        let head = Head::parse(&bytes, self.store.drive)?;
        let length = HEAD_BYTES as u64 + u64::from(head.length);
        let is_it = head.position == at && place + length <= self.size();
        is_it.then_some(FoundBatch { replica, head, bytes })
    }

    /// The records of a batch, if they are whole.
    fn body(
        &self,
        replica: Replica,
        head: &Head,
        place: u64,
        failed: &mut usize,
    ) -> Option<Vec<u8>> {
        let from = self.store.layout.journal_from(replica.region) + place;
        let mut body = vec![0; head.length as usize];
        if self.store.dies.read(replica.die, from + HEAD_BYTES as u64, &mut body).is_err() {
            *failed += 1;
            return None;
        }
        (crc32c::crc32c(&body) == head.body_crc).then_some(body)
    }

    /// True if any die has a batch that comes after `end`, or one there that follows another
    /// history.
    fn has_later(&self, end: Position) -> bool {
        if mutants::is(Mutant::LaterBatchesIgnored) {
            return false;
        }
        let mut chunk = vec![0; 1 << 18];
        // Data of a client may look like a head, but does not know where it will lie.
        let is_later = |(place, head): (u64, Head)| {
            let Position { at, number, link } = head.position;
            let ahead = at.checked_sub(end.at).filter(|ahead| *ahead <= self.size());
            let is_possible = |ahead: u64| {
                // Each batch between them takes a sector at least.
                number.checked_sub(end.number).is_some_and(|more| more <= ahead / SECTOR_BYTES)
            };
            at % self.size() == place
                && ahead.is_some_and(is_possible)
                && (number > end.number || link != end.link)
        };
        self.store.replicas_all().any(|replica| {
            self.windows(end).into_iter().any(|(from, until)| {
                (from..until).step_by(chunk.len()).any(|at| {
                    let length = usize::try_from(until - at).unwrap_or(usize::MAX);
                    let part = &mut chunk[..length.min(1 << 18)];
                    let from = self.store.layout.journal_from(replica.region) + at;
                    self.store.read_readable(replica.die, from, part);
                    let sectors =
                        (at..).step_by(SECTOR_LENGTH).zip(part.as_chunks::<SECTOR_LENGTH>().0);
                    let mut heads = sectors.filter_map(|(place, sector)| {
                        Some((place, Head::parse(&sector[..HEAD_BYTES], self.store.drive)?))
                    });
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

/// Bytes that a batch has at most: all of three rows, the list of rows, trims, lost pages and
/// releases.
fn largest_batch(layout: &Layout) -> u64 {
    let row = layout.unit_bytes as u64 * u64::from(layout.shape.dies);
    let listed = completed_bytes_due(layout)
        + u64::from(layout.unit_slots) * u64::from(layout.shape.dies) * LISTED_BYTES as u64;
    let ranges = (crate::engine::core::TRIMS_MAX + crate::engine::core::lost::BATCH_MAX) as u64;
    let records = (ranges + u64::from(layout.shape.superblocks)) * RECORD_BYTES as u64;
    4 * row + 2 * listed + 2 * records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::drive::SMALL_SHAPE;
    use crate::format::journal::last_batch;
    use crate::format::layout::PAGE_BYTES;
    use crate::simulation::Disks;
    use crate::volume::check::{Kind, check_media};
    use crate::{Drive, Shape};
    use device::{Device as _, Durability};

    /// Copies of the last batch of the journal: die, and bytes of it.
    fn last_copies(disks: &Disks, layout: &Layout) -> Vec<(usize, std::ops::Range<usize>)> {
        let size = usize::try_from(layout.shape.journal_bytes).expect("a small drive");
        let from = usize::try_from(layout.journal_from(0)).expect("a small drive");
        let of_die = |(die, bytes): (usize, &Vec<u8>)| {
            let ring = &bytes[from..from + size];
            let (number, range) = last_batch(size, |range| (&ring[range]).into())?;
            Some((number, (die, from + range.start..from + range.end)))
        };
        let contents = disks.contents();
        let found: Vec<_> = contents.iter().enumerate().filter_map(of_die).collect();
        let last = found.iter().map(|(number, _)| *number).max();
        found.into_iter().filter(|it| Some(it.0) == last).map(|(_, copy)| copy).collect()
    }

    /// Offsets of the batches that a die has, in their order.
    fn batches_of(bytes: &[u8], layout: &Layout) -> Vec<usize> {
        let from = usize::try_from(layout.journal_from(0)).expect("a small drive");
        let size = usize::try_from(layout.shape.journal_bytes).expect("a small drive");
        let mut found: Vec<(u64, usize)> = (from..from + size)
            .step_by(SECTOR_LENGTH)
            .filter_map(|at| {
                Some((Head::parse(&bytes[at..at + HEAD_BYTES], 1)?.position.number, at))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect()
    }

    /// A die lacks a batch, and has the head of a later one, whose records are damaged: opening
    /// looks at heads, and a check at all of both copies.
    #[test]
    fn a_check_and_opening_judge_alike_which_dies_are_outdated() {
        let shape = Shape { dies: 3, is_protected: true, journal_bytes: 4 << 20, ..SMALL_SHAPE };
        let disks = Disks::formatted(&shape);
        let drive = Drive::open_media(disks.media()).unwrap();
        for round in 1..=40 {
            drive.write(0, &[round; PAGE_BYTES], Durability::Durable).unwrap();
        }
        drop(drive);
        disks.restore_by(|_| true);
        let layout = Layout::new(&shape);
        let mut outdated = [0; 2];
        for die in 0..3 {
            let batches = batches_of(&disks.contents()[die], &layout);
            let [.., first, last] = batches[..] else { continue };
            for is_last_there in [true, false] {
                let disks = disks.fork();
                disks.damage(die, first..first + 512, |_| 0);
                if is_last_there {
                    disks.damage(die, last + 200..last + 201, |byte| byte ^ 1);
                } else {
                    disks.damage(die, last..last + 512, |_| 0);
                }
                let report = check_media(disks.fork().media(), |_, _| ()).unwrap();
                let named = report.findings.iter().filter(|it| it.kind == Kind::Die);
                let named: Vec<usize> =
                    named.filter_map(|it| it.die).map(|die| die as usize).collect();
                let drive = Drive::open_media(disks.media()).unwrap();
                assert_eq!(named, drive.lost_dies(), "die {die}, its last head: {is_last_there}");
                outdated[usize::from(is_last_there)] += named.len();
            }
        }
        assert!(outdated[0] > 0 && outdated[1] == 0, "{outdated:?}");
    }

    /// Copies of a batch lie on dies that were whole when it was written, whichever are there when
    /// it is looked for.
    #[test]
    fn a_batch_whose_copies_are_missing_and_unreadable_is_not_taken_for_the_end() {
        let shape = Shape { dies: 5, journal_bytes: 4 << 20, ..SMALL_SHAPE };
        let shape = Shape { is_protected: true, ..shape };
        let disks = Disks::formatted(&shape);
        let drive = Drive::open_media(disks.media()).unwrap();
        let (mut refused, mut page) = (0, [0; PAGE_BYTES]);
        for round in 1..=100 {
            page.fill(round);
            drive.write(0, &page, Durability::Durable).unwrap();
            let copies = last_copies(&disks, &Layout::new(&shape));
            assert_eq!(copies.len(), REPLICAS, "a batch has its copies");
            for missing in 0..REPLICAS {
                let crashed = disks.fork();
                crashed.restore();
                let (die, bytes) = copies[1 - missing].clone();
                crashed.make_unreadable(die, bytes);
                let mut media = crashed.media();
                media.remove(copies[missing].0);
                match Drive::open_media(media) {
                    Err(_) => refused += 1,
                    Ok(drive) => {
                        let mut found = [0; PAGE_BYTES];
                        drive.read(0, &mut found).unwrap();
                        assert_eq!(found, page, "batch {round} without die {missing}");
                    }
                }
            }
        }
        assert!(refused > 100, "{refused} of 200 drives were refused");
    }
}
