//! Opening a drive, whether it was closed or the power went.
//!
//! ```text
//!  headers ─► newest checkpoint ─► batches since ─► rows since ─► events in order ─► map
//!          ─► what only the journal holds is written anew ─► checkpoint ─► host
//! ```
//!
//! First everything is **accounted for**, and nothing is written: what a later structure proves to
//! have existed must be there, or opening refuses and leaves the evidence as it is. Only then
//! headers, units and the journal are written.
//!
//! - A newer checkpoint that cannot be read is passed over where the journal reaches back to the
//!   one before it.
//! - A row that the journal lists was durable: its pages are where the list says, and if they
//!   cannot be read, reading them fails. Other rows were never acknowledged: one counts if all of
//!   it is what was programmed, or if one unit is missing and the others give it back.
//! - No unit may have been programmed after a batch of the journal that is not there.
//!
//! Nothing that recovery needs is overwritten before the checkpoint at its end has been taken, so
//! it may be interrupted as often as the power likes.

mod buffered;
mod continuity;
mod copies;
mod events;
mod rows;
mod salvage;

use std::collections::{BTreeMap, BTreeSet};

use blockio::Bytes;
use bytemuck::cast_slice_mut;
use device::DeviceError;
use ftl::{Debt, Ftl, Lpn, Ppn, Recovery, SuperblockId, SuperblockState};

pub use self::buffered::Upgrade;
pub(crate) use self::buffered::take_up;
use self::buffered::{BufferReplay, add_buffered};
use self::continuity::{check_journal, check_units, proven_batches};
pub(crate) use self::copies::whole_copies;
use self::copies::{spread_checkpoint, spread_last_batch};
use self::events::{Event, Events};
use self::rows::{Scan, ScanResult};
use crate::OpenError;
use crate::engine::core::completed_rows::CompletedRows;
use crate::engine::core::lost::LostPages;
use crate::engine::core::{Core, condemn_all};
use crate::engine::dies::die_number;
use crate::engine::dies::gathering::UnusedMedium;
use crate::engine::dies::header_copies;
use crate::engine::drive::Drive;
use crate::engine::log::checkpoint::{self, Reader};
use crate::engine::log::journal::Journal;
use crate::engine::log::replay::{self, LastBatch, Reading, Replay, ThinBatch};
use crate::engine::store::{Replica, Store};
use crate::format::checkpoint_header::CheckpointHeader;
use crate::format::die_set::DieSet;
use crate::format::header::{Closing, Header, first_event, next_session};
use crate::format::journal::{
    HEAD_BYTES, JournaledExtent, LISTED_BYTES, ListedRow, RECORD_BYTES, Record,
};
use crate::format::layout::{EXTENT_HEADER_BYTES, Layout, PAGE_BYTES, Place};
use crate::format::position::{Position, SECTOR_BYTES};
use crate::format::row::Rows;
use crate::format::unit::{Codec, Extent, Page};
use crate::mutants::{self, Mutant};

/// Extents that only the journal holds, by page.
pub(crate) type JournaledPages = BTreeMap<u32, (Extent, Vec<u8>)>;

/// Contents of the newest checkpoint that can be read.
struct SavedCheckpoint {
    summary: CheckpointHeader,
    /// The next checkpoint's number: higher than any that was begun, and of the other slot.
    next: u64,
    /// The copies that name it.
    holders: Vec<Replica>,
    /// Newer ones that cannot be read.
    damaged: Vec<CheckpointHeader>,
    rows: Rows,
    erase_counts: Vec<u32>,
    map: Recovery,
    lost: LostPages,
}

/// Doubts about a drive that cannot be accounted for. The first one makes opening fail, unless the
/// drive is recovered: then all are collected, to read its remaining data.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// True if opening goes on.
    pub(crate) is_recovery: bool,
    /// True if every copy is read whole, to tell which are damaged.
    pub(crate) is_thorough: bool,
    /// The checkpoint that `floatgate volume recover` begins with; none: the newest.
    pub(crate) checkpoint: Option<u64>,
    pub(crate) found: Vec<String>,
}

impl Doubts {
    fn raise(&mut self, what: String) -> Result<(), OpenError> {
        if !self.is_recovery {
            return Err(damaged(what));
        }
        self.found.push(what);
        Ok(())
    }
}

/// A drive as its dies have it, all of which is accounted for. Nothing was written.
pub(crate) struct AccountedDrive {
    pub(crate) ftl: Ftl<Debt>,
    pub(crate) rows: Rows,
    pub(crate) lost: LostPages,
    /// The checkpoint that it was found by.
    pub(crate) summary: CheckpointHeader,
    /// Newer checkpoints that cannot be read, by number.
    pub(crate) checkpoints_damaged: Vec<u64>,
    /// Position after the last batch of the journal.
    pub(crate) end: Position,
    /// Batches with fewer copies than there should be.
    pub(crate) thin: Vec<ThinBatch>,
    /// A die that the drive goes on without, since it lost what had been synced.
    pub(crate) outdated: Option<UnusedMedium>,
    /// The last batch of the journal, if it is needed.
    last: Option<LastBatch>,
    /// Batches that cannot be read, and are not needed: the drive was closed, and its checkpoint
    /// has everything.
    pub(crate) batches_lost: u64,
    /// Rows that no list names: what was not flushed may have torn them.
    pub(crate) unlisted: BTreeSet<u32>,
    /// Pages that only the journal holds.
    pub(crate) pending: JournaledPages,
    /// True if the journal has room for lists of rows, and for no extents.
    is_full: bool,
    next: u64,
    holders: Vec<Replica>,
    scanned: ScanResult,
    /// Outcome of looking at the write buffer.
    pub(crate) brought: BufferReplay,
}

/// Opens a drive: accounts for everything, and only then writes. Returns the die besides that it
/// goes on without, if there is one. Headers are written in this format.
fn open(
    mut store: Store,
    mut header: Header,
    ignored: &mut Option<String>,
    format: u32,
) -> Result<(Drive, Option<UnusedMedium>), OpenError> {
    let closed = if header.is_open { None } else { as_closed(&store, &header)? };
    let begin = |header: &mut Header, summary: &CheckpointHeader| {
        header.format = format;
        header.session = next_session(header.session, summary.seq);
        header.unsafe_shutdowns += u64::from(header.is_open);
        header.is_open = true;
        // A die that can be read and not written has failed.
        header_copies::write_to_all(header, &store.dies).map_err(OpenError::Device)
    };
    if let Some(closed) = closed {
        begin(&mut header, &closed.summary)?;
        return Ok((go_on(store, &header, closed), None));
    }
    let mut accounted = account(&store, &header, &mut Doubts::default())?;
    // The account has what counts of it.
    store.buffered = None;
    // Rows leave out dies from the beginning, which limits how many superblocks can be spared.
    accounted.ftl.leave_out(store.dies.removed().count());
    condemn_known(&store, &mut accounted.ftl);
    header.closing = Closing::default();
    header.left_out = DieSet(accounted.rows.left_out().0 | store.dies.incomplete().0);
    begin(&mut header, &accounted.summary)?;
    spread_checkpoint(&store, &accounted)?;
    spread_last_batch(&store, &accounted)?;
    accounted.scanned.mend(&store, &accounted.ftl)?;
    let outdated = accounted.outdated.take();
    *ignored = ignored.take().or(accounted.brought.unused.take());
    // Whatever comes next overwrites what tells of it.
    let last = accounted.end.number.saturating_sub(1);
    let is_isolated = |it: &&ThinBatch| it.number < last && outdated.is_none();
    let batches_lacking = accounted.thin.iter().filter(is_isolated).count() as u64;
    let drive = recover(store, header, accounted)?;
    drive.maintenance().batches_lacking = batches_lacking;
    Ok((drive, outdated))
}

/// Brings a drive back that was accounted for; its header has been raised to a session of its own.
fn recover(
    store: Store,
    mut header: Header,
    accounted: AccountedDrive,
) -> Result<Drive, OpenError> {
    let AccountedDrive {
        ftl,
        rows,
        lost,
        summary,
        end,
        pending,
        is_full,
        next,
        scanned,
        brought,
        ..
    } = accounted;
    let mut core =
        Core::new(store.layout.clone(), store.drive, ftl, rows, first_event(header.session));
    core.lost = lost;
    // What was read, and is relied upon from now on, need not have been durable.
    let synced = store.dies.sync_all(store.dies.healthy().collect());
    synced.map_err(|(die, source)| OpenError::medium(&format!("syncing die {die}"), source))?;
    if header.lost != store.dies.incomplete() {
        header_copies::write_to_all(&mut header, &store.dies)?;
    }
    assert!(header.is_open, "the headers say that it is open before anything else is written");
    assert!(summary.journal.number <= end.number, "the journal ends after the checkpoint");
    core.completed = scanned.unlisted;
    core.trims.clone_from(&brought.trims);
    // A crash may have come between a smaller size in the headers and the trim of what lies beyond.
    core.give_up_beyond_end(store.layout.shape.pages_mappable);
    store.note_batches(end.number);
    // As many as before the crash, or fewer: what is written anew finds the space that it had.
    core.batches = store.batches_durable();
    core.leave_out(store.dies.removed());
    let mut journal =
        Journal::new(store.drive, header.session, store.layout.shape.journal_bytes, end);
    journal.tail = summary.journal.at;
    if !is_full && !mutants::is(Mutant::BufferTrusted) {
        journal_buffer(&store, &mut journal, &mut core, &brought)?;
        // A die that took no batch has failed.
        if header.lost != store.dies.incomplete() {
            header_copies::write_to_all(&mut header, &store.dies)?;
        }
    }
    for (lpn, (extent, payload)) in &pending {
        let Extent { codec, key, payload_crc, .. } = *extent;
        if !core.ftl.can_write() {
            let what = "no superblock is left for what only the journal holds";
            return Err(damaged(what.to_owned()));
        }
        core.place(&Page { lpn: Lpn(*lpn), codec, key, payload, payload_crc });
        carry_out(&store, &mut core)?;
    }
    if is_full {
        core.finish_rows();
        carry_out(&store, &mut core)?;
    }
    let drive = Drive::assemble(store, core, journal, &header, next);
    drive.checkpoint()?;
    Ok(drive)
}

/// Has the journal hold what the write buffer does: that does not survive the power, and what it
/// supersedes is written over next. Half of what is left of the journal is for the checkpoint that
/// ends recovery: a journal without that room, which takes a damaged checkpoint, stays as it is.
fn journal_buffer(
    store: &Store,
    journal: &mut Journal,
    core: &mut Core,
    brought: &BufferReplay,
) -> Result<(), DeviceError> {
    let bytes = (HEAD_BYTES + core.completed.len() + brought.body.len()) as u64;
    let has_room = journal.used() + 4 * (bytes + 4096) <= journal.size;
    if brought.body.is_empty() || !has_room {
        return Ok(());
    }
    journal.begin();
    journal.list_rows(core);
    journal.add_records(&brought.body, brought.records);
    journal.write(store)
}

/// Programs what the core has decided.
fn carry_out(store: &Store, core: &mut Core) -> Result<(), DeviceError> {
    for program in core.take_programs() {
        let written = store.dies.program(&program)?;
        core.programmed(program.of, written);
    }
    Ok(())
}

/// A drive that was closed: its checkpoint has everything.
struct ClosedDrive {
    ftl: Ftl<Debt>,
    rows: Rows,
    lost: LostPages,
    summary: CheckpointHeader,
    next: u64,
    held: Vec<SuperblockId>,
}

/// A drive as it was closed; none where its checkpoint is not the one that the header names, or the
/// journal goes on, so that it has to be recovered.
///
/// Superblocks that come back free may hold rows that the checkpoint counts. They wait for the next
/// commit, as those do that are erased.
fn as_closed(store: &Store, header: &Header) -> Result<Option<ClosedDrive>, OpenError> {
    let Ok(saved) = load(store, &Doubts::default()) else { return Ok(None) };
    let SavedCheckpoint { summary, next, mut rows, erase_counts, map, lost, .. } = saved;
    let is_taken = mutants::is(Mutant::OneHeaderCopy)
        && header.closing.follows(&summary, store.layout.shape.journal_bytes);
    if !is_taken && !is_complete(store, header, &summary) {
        return Ok(None);
    }
    let released = BTreeMap::new();
    let scan = Scan::new(store, &summary, &released, rows.left_out());
    let ftl = finish(&scan, map, &rows, &erase_counts, &mut Doubts::default())?;
    let counts = |id: &SuperblockId| {
        let mut rows_of = store.layout.rows_of(id.0);
        ftl.superblock(*id).state == SuperblockState::Free
            && rows_of.any(|row| rows.life(row).seq != 0)
    };
    let held = (0..store.layout.shape.superblocks).map(SuperblockId).filter(counts).collect();
    clear_free(&store.layout, &ftl, &mut rows);
    Ok(Some(ClosedDrive { ftl, rows, lost, summary, next, held }))
}

/// True if a checkpoint is the one that the header of a closed drive names, and the journal ends
/// where the header says: it has everything, and nothing of the journal is needed.
fn is_complete(store: &Store, header: &Header, summary: &CheckpointHeader) -> bool {
    let Closing { journal: from, .. } = header.closing;
    header.closing.follows(summary, store.layout.shape.journal_bytes)
        && !replay::goes_on(Reading { store, from, is_thorough: false })
}

/// The map of a drive that was closed, and its lost pages; none where it has to be recovered.
///
/// # Errors
/// Fails if it is damaged.
pub(crate) fn view(
    store: &Store,
    header: &Header,
) -> Result<Option<(Ftl<Debt>, LostPages)>, OpenError> {
    Ok(as_closed(store, header)?.map(|closed| (closed.ftl, closed.lost)))
}

/// Goes on with a drive that was closed; nothing but its headers is written.
fn go_on(store: Store, header: &Header, closed: ClosedDrive) -> Drive {
    let ClosedDrive { mut ftl, rows, lost, summary, next, held } = closed;
    assert!(header.is_open, "the headers say that it is open before anything is written");
    assert_eq!(summary.number % 2, (next + 1) % 2, "the next checkpoint spares this one");
    ftl.hold_back(&held);
    let mut core =
        Core::new(store.layout.clone(), store.drive, ftl, rows, first_event(header.session));
    core.lost = lost;
    core.leave_out(store.dies.removed());
    condemn_known(&store, &mut core.ftl);
    let (size, end) = (store.layout.shape.journal_bytes, header.closing.journal);
    store.note_batches(end.number);
    let mut journal = Journal::new(store.drive, header.session, size, end);
    journal.tail = summary.journal.at;
    Drive::assemble(store, core, journal, header, next)
}

/// Has superblocks of which the folder lists bad places not be written again.
pub(crate) fn condemn_known(store: &Store, ftl: &mut Ftl<Debt>) {
    if !mutants::is(Mutant::BadPlacesForgotten) {
        condemn_all(ftl, &store.bad_places);
    }
}

/// Accounts for what lies on the dies of a drive; nothing is written.
///
/// # Errors
/// What must be there and is not.
pub(crate) fn account(
    store: &Store,
    header: &Header,
    doubts: &mut Doubts,
) -> Result<AccountedDrive, OpenError> {
    let (saved, is_salvage) = salvage::load_or_salvage(store, doubts)?;
    let (from, is_thorough) = (saved.summary.journal, doubts.is_thorough);
    let mut replay = replay::read(Reading { store, from, is_thorough });
    let is_complete = !header.is_open && is_complete(store, header, &saved.summary);
    if !is_complete {
        check_journal(&saved, header, proven_batches(store, header), &replay, doubts)?;
    }
    let is_relied_on = !is_complete && !doubts.is_recovery;
    let outdated = if is_relied_on { give_up_outdated(store, &replay) } else { None };
    let SavedCheckpoint {
        summary,
        next,
        holders,
        damaged,
        mut rows,
        mut erase_counts,
        mut map,
        mut lost,
    } = saved;
    let brought = (!is_complete).then(|| add_buffered(store, summary.seq, &mut replay));
    let brought = brought.unwrap_or_default();
    let released = released(&replay);
    forget_released(&store.layout, &released, &mut rows);
    let mut events = Events::new(&store.layout);
    list_rows(store, (&replay, &released), (&mut rows, &mut erase_counts), &mut events, &summary);
    let left_out = DieSet(header.left_out.0 | rows.left_out().0);
    let mut scan = Scan::new(store, &summary, &released, left_out);
    scan.session = replay.session.max(summary.session);
    let mut scanned = if is_salvage {
        salvage::survey_units(store, &released, &mut rows, &mut erase_counts, &mut events);
        ScanResult::default()
    } else {
        scan.run(&mut rows, &mut erase_counts, &mut events)
    };
    let end = if is_complete { header.closing.journal } else { replay.end };
    let batches_lost = end.number.saturating_sub(replay.end.number);
    check_units(&scanned, end, doubts)?;
    let extents = list_records(&store.layout, &replay, &rows, is_salvage, &mut events);
    let pending = apply(events, &extents, &mut map, &mut lost, summary.seq);
    let payload = |it: &JournaledExtent| replay.payload(it).to_vec();
    let pending: JournaledPages =
        pending.into_iter().map(|(lpn, it)| (lpn, (it.extent, payload(&it)))).collect();
    let kept = (&pending, &scanned.unlisted, brought.trims.len());
    let is_full = !is_complete && check_room(store, summary.journal, end, kept, doubts)?;
    let (thin, last) = (replay.thin, replay.last.filter(|_| !is_complete));
    let ftl = finish(&scan, map, &rows, &erase_counts, doubts)?;
    clear_free(&store.layout, &ftl, &mut rows);
    leave_out_free(&store.layout, &ftl, &mut scanned.unlisted);
    let checkpoints_damaged = damaged.iter().map(|summary| summary.number).collect();
    Ok(AccountedDrive {
        ftl,
        rows,
        lost,
        summary,
        checkpoints_damaged,
        end,
        thin,
        outdated,
        last,
        batches_lost,
        unlisted: scanned.rows.clone(),
        pending,
        is_full,
        next,
        holders,
        scanned,
        brought,
    })
}

/// Goes on without a die that lost what had been synced, if that is possible: it may lack units of
/// any row as well, and would be relied upon once another die fails.
fn give_up_outdated(store: &Store, replay: &Replay) -> Option<UnusedMedium> {
    let ThinBatch { number, die, .. } = replay.outdated()?;
    let name = store.dies.name(die);
    if mutants::is(Mutant::StaleDiesTaken) || !store.dies.lose(die) {
        return None;
    }
    let text = format!(
        "{name}, die {die}, holds an earlier state of the volume: it has batch {number} of the \
         journal no more, which had been synced, nor any later one"
    );
    Some(UnusedMedium { die: Some(die_number(die)), text })
}

/// Checks that the journal leaves room for the checkpoint at the end of recovery, and says whether
/// it leaves so little that nothing but lists of rows fits into its batches.
///
/// Operation sees to it that there is room since the newest checkpoint. Where that one was damaged
/// so that it is unknown, batches since an older one may take up the whole ring.
fn check_room(
    store: &Store,
    since: Position,
    end: Position,
    (pending, unlisted, trims): (&JournaledPages, &CompletedRows, usize),
    doubts: &mut Doubts,
) -> Result<bool, OpenError> {
    let size = store.layout.shape.journal_bytes;
    let left = size.saturating_sub(end.at - since.at);
    let listed = LISTED_BYTES + RECORD_BYTES + store.layout.shape.dies as usize * 4;
    // Head, the trim of what lies beyond the end, and rows of the pages that are written anew.
    let ranges = (1 + trims) * RECORD_BYTES;
    let lists = HEAD_BYTES + ranges + unlisted.len() + (pending.len() + 1) * listed;
    // A batch may leave as much unused at the end of the ring, and one of next to nothing follows.
    if left < 2 * (lists as u64 + 4096 + SECTOR_BYTES) {
        doubts.raise(format!(
            "the journal leaves no room for a checkpoint: {left} of {size} bytes are left since \
             the last one that can be read"
        ))?;
    }
    let extent = |(_, payload): &(Extent, Vec<u8>)| RECORD_BYTES + payload.len();
    let whole = lists + pending.values().map(extent).sum::<usize>();
    Ok(left < 4 * (whole as u64 + 4096 + SECTOR_BYTES))
}

/// By superblock the last event before which nothing of it counts.
fn released(replay: &Replay) -> BTreeMap<u32, u64> {
    let releases = replay.records.iter().filter_map(|record| match record {
        Record::Release { superblock, seq } => Some((*superblock, *seq)),
        _ => None,
    });
    releases.collect()
}

/// Forgets rows that were begun before their superblock was released.
fn forget_released(layout: &Layout, released: &BTreeMap<u32, u64>, rows: &mut Rows) {
    for (superblock, seq) in released {
        for row in layout.rows_of(*superblock) {
            if rows.life(row).seq < *seq {
                rows.forget(row..row + 1);
            }
        }
    }
}

/// Takes the rows that the journal lists as they were when they were durable.
fn list_rows(
    store: &Store,
    (replay, released): (&Replay, &BTreeMap<u32, u64>),
    (rows, erase_counts): (&mut Rows, &mut [u32]),
    events: &mut Events,
    summary: &CheckpointHeader,
) {
    for record in &replay.records {
        let Record::Row(listed) = record else { continue };
        let ListedRow { row, life, origin, .. } = *listed;
        let superblock = row / store.layout.shape.rows;
        if released.get(&superblock).is_some_and(|seq| life.seq < *seq) {
            continue;
        }
        rows.set(row, life);
        let erased = &mut erase_counts[superblock as usize];
        *erased = origin.erase_count.max(*erased);
        for (position, extents) in (0..).zip(replay.units(listed)) {
            events.add_unit(store.first(row, position), extents, summary.seq);
        }
    }
}

/// Looks at a drive over media that may not be written, whether it was closed or not.
pub(crate) fn look(store: &Store, header: &Header) -> Result<AccountedDrive, OpenError> {
    account(store, header, &mut Doubts { is_thorough: true, ..Doubts::default() })
}

fn damaged(what: String) -> OpenError {
    OpenError::Damaged { what }
}

/// Loads the newest checkpoint that can be read.
fn load(store: &Store, doubts: &Doubts) -> Result<SavedCheckpoint, OpenError> {
    let readers = checkpoint::find(store);
    let numbers: Vec<u64> = readers.iter().map(|reader| reader.summary.number).collect();
    let highest = numbers.iter().copied().max().unwrap_or(0);
    let mut unreadable = Vec::new();
    let is_wanted = |reader: &Reader<'_>| {
        doubts.checkpoint.is_none_or(|number| reader.summary.number == number)
    };
    for mut reader in readers.into_iter().filter(is_wanted) {
        let summary = reader.summary;
        let is_possible = summary.pages <= store.layout.shape.pages_mappable;
        let tables = if is_possible { load_tables(&store.layout, &mut reader)? } else { None };
        let Some(Tables { rows, erase_counts, map, lost }) = tables else {
            unreadable.push(summary);
            continue;
        };
        let next = highest + 1 + u64::from((highest + 1) % 2 == summary.number % 2);
        let (holders, damaged) = (reader.replicas, unreadable);
        return Ok(SavedCheckpoint {
            summary,
            next,
            holders,
            damaged,
            rows,
            erase_counts,
            map,
            lost,
        });
    }
    Err(damaged(match doubts.checkpoint {
        Some(number) => format!("no die holds an intact copy of checkpoint {number}"),
        None => "no die holds an intact checkpoint".to_owned(),
    }))
}

/// Numbers of the checkpoints that any die names, the newest first.
pub(crate) fn checkpoint_numbers(store: &Store) -> Vec<u64> {
    checkpoint::find(store).iter().map(|reader| reader.summary.number).collect()
}

/// Tables of a checkpoint: rows, superblocks and pages.
struct Tables {
    rows: Rows,
    erase_counts: Vec<u32>,
    map: Recovery,
    lost: LostPages,
}

/// The tables of a checkpoint, if it is whole.
fn load_tables(layout: &Layout, reader: &mut Reader<'_>) -> Result<Option<Tables>, OpenError> {
    let shape = &layout.shape;
    let mut rows = Rows::new(shape.rows_total());
    let mut erase_counts = vec![0_u32; shape.superblocks as usize];
    let mut map = Recovery::new(&shape.config())?;
    let mut lost = vec![0; shape.lost_map_bytes()];
    let [seqs, outs] = rows.tables_mut();
    let pages = reader.summary.pages as usize;
    let sizes = usize::from(shape.extents_per_page > 1);
    let filled = reader
        .fill(seqs)
        .and_then(|()| reader.fill(outs))
        .and_then(|()| reader.fill(cast_slice_mut(&mut erase_counts)))
        .and_then(|()| reader.fill_resized(cast_slice_mut(map.map_entries_mut()), pages * 4))
        .and_then(|()| reader.fill_resized(map.extent_sizes_mut(), pages * sizes))
        .and_then(|()| reader.fill(&mut lost));
    let is_whole = filled.is_ok() && rows.are_possible(shape);
    let mut lost = LostPages::of_bytes(&lost);
    let end = u32::try_from(map.map_entries_mut().len()).unwrap_or(u32::MAX);
    lost.clear(Lpn(end), u32::MAX - end);
    Ok(is_whole.then_some(Tables { rows, erase_counts, map, lost }))
}

/// Adds what the journal says besides the rows that it lists; returns extents by their index in the
/// events. Rows that are salvaged need not be whole, so that the journal may be all there is.
fn list_records(
    layout: &Layout,
    replay: &Replay,
    rows: &Rows,
    is_salvage: bool,
    events: &mut Events,
) -> Vec<JournaledExtent> {
    let mut extents = Vec::new();
    for record in &replay.records {
        match *record {
            Record::Trim(trim) => {
                events.add(trim.seq, Event::Trim { first: trim.first, pages: trim.pages });
            }
            Record::Lost(lost) => {
                events.add(lost.seq, Event::Lost { first: lost.first, pages: lost.pages });
            }
            Record::Release { .. } | Record::Row(_) => {}
            Record::Extent { journaled, ppn, row_seq } => {
                // Where its row is whole, that says the same.
                if is_salvage || rows.life(layout.place(ppn).row).seq != row_seq {
                    let Extent { lpn, seq, .. } = journaled.extent;
                    let index = u32::try_from(extents.len()).expect("a journal is below 16 TiB");
                    extents.push(journaled);
                    events.add(seq, Event::Journaled { lpn, ppn, index });
                }
            }
        }
    }
    extents
}

/// Applies events in the order in which they happened; returns extents that only the journal holds,
/// by page.
fn apply(
    events: Events,
    extents: &[JournaledExtent],
    map: &mut Recovery,
    lost: &mut LostPages,
    since: u64,
) -> BTreeMap<u32, JournaledExtent> {
    let mut pending = BTreeMap::new();
    let end = map.map_entries_mut().len();
    // What lies beyond the end was given up when the drive became smaller.
    let is_within = |lpn: Lpn| (lpn.0 as usize) < end;
    for (seq, event) in events.in_order() {
        match event {
            Event::Placed { lpn, .. } | Event::Journaled { lpn, .. } if !is_within(lpn) => {}
            Event::Placed { lpn, ppn, bytes, soon } => {
                map.prefetch(soon);
                // Only what was lost has no payload.
                if u64::from(bytes) == Layout::charged(EXTENT_HEADER_BYTES) {
                    lost.set(lpn);
                } else {
                    lost.clear(lpn, 1);
                }
                // What is pending is nowhere else.
                if !map.set_place(lpn, Some((ppn, Bytes(u64::from(bytes))))) {
                    pending.remove(&lpn.0);
                }
            }
            Event::Journaled { lpn, ppn, index } => {
                if seq >= since || map.place(lpn) == Some(ppn) {
                    let journaled = extents[index as usize];
                    if journaled.extent.codec == Codec::Lost {
                        lost.set(lpn);
                    } else {
                        lost.clear(lpn, 1);
                    }
                    map.set_place(lpn, None);
                    pending.insert(lpn.0, journaled);
                }
            }
            // The map of the checkpoint knows of what came before it.
            Event::Trim { .. } | Event::Lost { .. } if seq < since => {}
            Event::Lost { first, pages } => {
                (first.0..first.0.saturating_add(pages))
                    .map(Lpn)
                    .filter(|it| is_within(*it))
                    .for_each(|lpn| {
                        lost.set(lpn);
                    });
            }
            Event::Trim { first, pages } => {
                lost.clear(first, pages);
                let range = (first.0 as usize).min(end)..((first.0 + pages) as usize).min(end);
                map.map_entries_mut()[range.clone()].fill(0);
                if let Some(sizes) = map.extent_sizes_mut().get_mut(range) {
                    sizes.fill(0);
                }
                let after = pending.split_off(&first.0);
                pending.extend(after.into_iter().filter(|(lpn, _)| *lpn >= first.0 + pages));
            }
        }
    }
    pending
}

/// The translation layer of a map.
fn finish(
    scan: &Scan<'_>,
    map: Recovery,
    rows: &Rows,
    erase_counts: &[u32],
    doubts: &mut Doubts,
) -> Result<Ftl<Debt>, OpenError> {
    let (found, closed) = scan.survey(rows, erase_counts);
    let ftl = map.finish(&found, &closed).map_err(|error| damaged(error.to_string()))?;
    check_places(&scan.store.layout, &ftl, rows).or_else(|what| doubts.raise(what))?;
    Ok(ftl)
}

/// Checks that every page of the map lies in a row that counts.
fn check_places(layout: &Layout, ftl: &Ftl<Debt>, rows: &Rows) -> Result<(), String> {
    let shape = &layout.shape;
    let row_pages = shape.data_units() * shape.unit_pages;
    let lost = (0..shape.rows_total()).filter(|row| rows.life(*row).seq == 0);
    for row in lost {
        for layer in 0..shape.extents_per_page {
            let slot = layer * shape.unit_pages;
            let Ppn(first) = layout.ppn(Place { row, unit: 0, slot });
            if let Some(Lpn(lpn)) = ftl.map().page_within(first..first + row_pages) {
                return Err(format!("row {row} is lost, and it holds page {lpn}"));
            }
        }
    }
    Ok(())
}

/// Leaves out rows of superblocks that hold nothing. Those are written again before any batch
/// releases them: were their rows listed now, the next opening would not look for what is completed
/// there until the next batch.
fn leave_out_free(layout: &Layout, ftl: &Ftl<Debt>, unlisted: &mut CompletedRows) {
    let superblock_of = |row: u32| SuperblockId(row / layout.shape.rows);
    unlisted.retain(|row| ftl.superblock(superblock_of(row)).state != SuperblockState::Free);
}

fn clear_free(layout: &Layout, ftl: &Ftl<Debt>, rows: &mut Rows) {
    for superblock in 0..layout.shape.superblocks {
        if ftl.superblock(SuperblockId(superblock)).state == SuperblockState::Free {
            rows.forget(layout.rows_of(superblock));
        }
    }
}

/// Bytes that an extent is counted as.
fn charged(extent: &Extent) -> u16 {
    if mutants::is(Mutant::SizeForgotten) {
        return 1;
    }
    let bytes = Layout::charged(extent.stored_bytes()).min(PAGE_BYTES as u64);
    u16::try_from(bytes).expect("at most a page")
}

#[cfg(test)]
mod tests;
