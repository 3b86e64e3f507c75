//! Opening a drive, whether it was closed or the power went.
//!
//! ```text
//!  headers ─► newest checkpoint ─► batches since ─► rows since ─► events in order ─► map
//!          ─► what only the journal holds is written anew ─► checkpoint ─► host
//! ```
//!
//! A row counts if all of it is what was programmed, or if one unit is missing and the others give
//! it back. What was programmed before the last mark is durable, so there the tables of the units
//! are enough; of later rows every extent is read.
//!
//! Nothing that recovery needs is overwritten before the checkpoint at its end has been taken, so
//! it may be interrupted as often as the power likes.

mod events;
mod rows;

use std::collections::BTreeMap;

use blockio::Bytes;
use bytemuck::cast_slice_mut;
use ftl::{Found, Ftl, Lpn, Ppn, Recovery, SuperblockId, SuperblockState};

use self::events::{Event, Events};
use self::rows::Scan;
use crate::checkpoint::{self, Reader, Summary};
use crate::core::{Core, Page};
use crate::dies::DieSet;
use crate::header::{Closing, Header};
use crate::journal::{self, Journal, Journaled, Position, Reading, Record, Replay};
use crate::layout::{FRAME_BYTES, HEADER_BYTES, Layout, PAGE_BYTES, Place};
use crate::planted::{self, Bug};
use crate::row::Rows;
use crate::store::Store;
use crate::unit::Extent;
use crate::{Drive, OpenError};

/// Extents that only the journal holds, by page.
type Pending = BTreeMap<u32, (Extent, Vec<u8>)>;

/// What the newest checkpoint holds.
struct Saved {
    summary: Summary,
    /// The next checkpoint's number: higher than any that was begun, and of the other slot.
    next: u64,
    /// The die that it was read from, and all that say they have it.
    from: usize,
    holders: DieSet,
    rows: Rows,
    erase_counts: Vec<u32>,
    map: Recovery,
}

/// Brings a drive back; its header has been raised to a session of its own already.
pub(crate) fn recover(store: Store, mut header: Header) -> Result<Drive, OpenError> {
    let saved = load(&store)?;
    let (summary, next) = (saved.summary, saved.next);
    spread(&store, &saved)?;
    let replay = read_journal(&store, &summary)?;
    let end: Position = replay.end;
    let (ftl, rows, pending) = replay_over(&store, &header, saved, replay)?;
    header.closing = Closing::default();
    header.left_out = DieSet(rows.left_out().0 | store.dies.incomplete().0);
    let mut core = Core::new(ftl, rows, (header.session << 40) + 1);
    // As many as before the crash, or fewer: what is written anew finds the space that it had.
    core.leave_out(&store, store.dies.done_without())?;
    for (lpn, (extent, payload)) in &pending {
        let Extent { codec, payload_crc, .. } = *extent;
        if !core.ftl.can_write() {
            let what = "no superblock is left for what only the journal holds";
            return Err(damaged(what.to_owned()));
        }
        core.place(&store, &Page { lpn: Lpn(*lpn), codec, payload, payload_crc })?;
    }
    // What was read, and is relied upon from now on, need not have been durable.
    for die in store.dies.healthy() {
        store.dies.sync(die).map_err(|source| OpenError::medium("syncing a die", source))?;
    }
    let mut journal =
        Journal::new(store.drive, header.session, store.layout.shape.journal_bytes, end);
    journal.tail = summary.journal.at;
    let drive = Drive::assemble(store, core, journal, (header, next));
    drive.checkpoint()?;
    Ok(drive)
}

/// Goes on with a drive that was closed: its checkpoint has everything, so that nothing but its
/// headers is written. Where that is not the newest one, or there is none, as [`recover`].
///
/// Superblocks that come back free may hold rows that the checkpoint counts. They wait for the next
/// commit, as those do that are erased.
pub(crate) fn go_on(store: Store, header: Header) -> Result<Drive, OpenError> {
    let closing = header.closing;
    let Saved { summary, next, mut rows, erase_counts, map, .. } = load(&store)?;
    if !closing.follows(&summary, store.layout.shape.journal_bytes) {
        return recover(store, header);
    }
    let released = BTreeMap::new();
    let (since, mark, left_out) = (summary.order, summary.mark, rows.left_out());
    let scan = Scan { store: &store, since, mark, released: &released, left_out };
    let mut ftl = finish(&scan, map, &rows, &erase_counts)?;
    ftl.hold_erased();
    let counts = |id: &SuperblockId| {
        let mut rows_of = store.layout.rows_of(id.0);
        ftl.superblock_state(*id) == SuperblockState::Free
            && rows_of.any(|row| rows.life(row).order != 0)
    };
    let held: Vec<SuperblockId> =
        (0..store.layout.shape.superblocks).map(SuperblockId).filter(counts).collect();
    if !planted::is(Bug::NotHeldBack) {
        ftl.hold_back(&held);
    }
    clear_free(&store.layout, &ftl, &mut rows);
    let mut core = Core::new(ftl, rows, (header.session << 40) + 1);
    core.leave_out(&store, store.dies.done_without())?;
    let size = store.layout.shape.journal_bytes;
    let mut journal = Journal::new(store.drive, summary.session, size, closing.journal);
    journal.tail = summary.journal.at;
    Ok(Drive::assemble(store, core, journal, (header, next)))
}

/// Brings the map of a checkpoint up to date.
fn replay_over(
    store: &Store,
    header: &Header,
    saved: Saved,
    replay: Replay,
) -> Result<(Ftl, Rows, Pending), OpenError> {
    let Saved { summary, mut rows, mut erase_counts, mut map, .. } = saved;
    let mut released = BTreeMap::new();
    for record in &replay.records {
        if let Record::Release { superblock, order } = record {
            released.insert(*superblock, *order);
        }
    }
    let mark = summary.mark.max(replay.mark);
    let left_out = DieSet(header.left_out.0 | rows.left_out().0);
    let scan = Scan { store, since: summary.order, mark, released: &released, left_out };
    let mut events = scan.run(&mut rows, &mut erase_counts)?;
    let extents = list_records(&store.layout, &replay.records, &rows, &mut events);
    let pending = apply(events, &extents, &mut map, summary.order);
    let pending = pending.into_iter().map(|(lpn, journaled)| {
        let payload = replay.payload(&journaled).to_vec();
        (lpn, (journaled.extent, payload))
    });
    let pending: Pending = pending.collect();
    drop(replay);
    if store.dies.is_unsure() {
        return Err(damaged("more dies fail to be read than it can do without".to_owned()));
    }
    let mut ftl = finish(&scan, map, &rows, &erase_counts)?;
    ftl.hold_erased();
    clear_free(&store.layout, &ftl, &mut rows);
    Ok((ftl, rows, pending))
}

/// A drive as opening it would bring it back.
pub(crate) struct Viewed {
    pub(crate) ftl: Ftl,
    pub(crate) rows: Rows,
    /// The checkpoint that it was found by.
    pub(crate) summary: Summary,
    /// Rows that were programmed before this event are durable.
    pub(crate) mark: u64,
    /// Where the journal ends.
    pub(crate) end: Position,
    /// Pages that only the journal holds.
    pub(crate) pages_journaled: u64,
}

/// Looks at a drive over media that may not be written, whether it was closed or not.
pub(crate) fn look(store: &Store, header: &Header) -> Result<Viewed, OpenError> {
    let saved = load(store)?;
    let summary = saved.summary;
    let replay = read_journal(store, &summary)?;
    let (end, mark) = (replay.end, summary.mark.max(replay.mark));
    let (ftl, rows, pending) = replay_over(store, header, saved, replay)?;
    Ok(Viewed { ftl, rows, summary, mark, end, pages_journaled: pending.len() as u64 })
}

/// Where the journal of a checkpoint is to be read.
pub(crate) const fn reading(store: &Store, summary: &Summary) -> Reading {
    Reading {
        drive: store.drive,
        session: summary.session,
        size: store.layout.shape.journal_bytes,
        from: summary.journal,
        places: store.layout.places(),
    }
}

fn read_journal(store: &Store, summary: &Summary) -> Result<Replay, OpenError> {
    journal::read(&store.dies, store.copies(), reading(store, summary))
        .map_err(|batch| damaged(format!("batch {batch} of the journal is lost")))
}

/// The translation layer of a drive that was closed; nothing is changed.
pub(crate) fn view(store: &Store) -> Result<Ftl, OpenError> {
    let Saved { summary, rows, erase_counts, map, .. } = load(store)?;
    let released = BTreeMap::new();
    let (since, mark, left_out) = (summary.order, summary.mark, rows.left_out());
    let scan = Scan { store, since, mark, released: &released, left_out };
    finish(&scan, map, &rows, &erase_counts)
}

fn damaged(what: String) -> OpenError {
    OpenError::Damaged { what }
}

/// Loads the newest checkpoint, from the first die that has it whole.
///
/// One that was taken is on both dies that hold it, so one that is on a single die of several was
/// not, and if it is not whole, the one before it counts.
fn load(store: &Store) -> Result<Saved, OpenError> {
    let readers = checkpoint::find(&store.dies, &store.layout, store.drive);
    let numbers: Vec<u64> = readers.iter().map(|reader| reader.summary.number).collect();
    let dies: Vec<usize> = readers.iter().map(|reader| reader.die).collect();
    let is_taken = |number: &u64| {
        let copies = numbers.iter().filter(|other| *other == number).count();
        copies > 1 || store.copies().count() == 1
    };
    let newest = numbers.iter().copied().find(is_taken);
    for mut reader in readers.into_iter().filter(|it| Some(it.summary.number) >= newest) {
        if reader.summary.pages > store.layout.shape.pages_mappable {
            continue;
        }
        if let Some(Tables { rows, erase_counts, map }) = load_tables(&store.layout, &mut reader)? {
            let (summary, from) = (reader.summary, reader.die);
            let holders = (numbers.iter().zip(&dies))
                .filter(|(number, _)| **number == summary.number)
                .map(|(_, die)| *die)
                .collect();
            let highest = numbers.iter().copied().max().unwrap_or(summary.number);
            let next = highest + 1 + u64::from((highest + 1) % 2 == summary.number % 2);
            return Ok(Saved { summary, next, from, holders, rows, erase_counts, map });
        }
    }
    Err(damaged("no die holds a whole checkpoint".to_owned()))
}

/// Has a checkpoint on all dies that are to hold it. One that the power cut off may be on a single
/// one; the one before it is written over soon, and then no die is to be the only one that knows.
fn spread(store: &Store, saved: &Saved) -> Result<(), OpenError> {
    let (dies, layout) = (&store.dies, &store.layout);
    let lacking: DieSet = store.copies().iter().filter(|die| !saved.holders.has(*die)).collect();
    if lacking == DieSet::default() {
        return Ok(());
    }
    let slot = layout.checkpoint_from(saved.summary.number % 2);
    let failed = |source| OpenError::medium("copying a checkpoint", source);
    let mut piece = vec![0; FRAME_BYTES];
    for at in (HEADER_BYTES..layout.slot_bytes).step_by(FRAME_BYTES) {
        let length = usize::try_from(layout.slot_bytes - at).unwrap_or(FRAME_BYTES);
        let piece = &mut piece[..length.min(FRAME_BYTES)];
        dies.read(saved.from, slot + at, piece).map_err(failed)?;
        for die in lacking.iter().filter(|die| !dies.lost().has(*die)) {
            dies.write_or_lose(die, slot + at, piece).map_err(failed)?;
        }
    }
    checkpoint::complete(dies, lacking, (slot, &saved.summary)).map_err(|(_, error)| failed(error))
}

/// What a checkpoint holds of rows, superblocks and pages.
struct Tables {
    rows: Rows,
    erase_counts: Vec<u32>,
    map: Recovery,
}

/// The tables of a checkpoint, if it is whole.
fn load_tables(layout: &Layout, reader: &mut Reader<'_>) -> Result<Option<Tables>, OpenError> {
    let shape = &layout.shape;
    let mut rows = Rows::new(shape.rows_total());
    let mut erase_counts = vec![0_u32; shape.superblocks as usize];
    let mut map = Recovery::new(&shape.config())?;
    let [orders, outs] = rows.tables_mut();
    let pages = reader.summary.pages as usize;
    let sizes = usize::from(shape.extents_per_page > 1);
    let filled = reader
        .fill(orders)
        .and_then(|()| reader.fill(outs))
        .and_then(|()| reader.fill(cast_slice_mut(&mut erase_counts)))
        .and_then(|()| reader.fill_resized(cast_slice_mut(map.map_entries_mut()), pages * 4))
        .and_then(|()| reader.fill_resized(map.extent_sizes_mut(), pages * sizes));
    let is_whole = filled.is_ok() && rows.are_possible(shape);
    Ok(is_whole.then_some(Tables { rows, erase_counts, map }))
}

/// The dies that hold a checkpoint whole, by its number.
pub(crate) fn whole_checkpoints(store: &Store, number: u64) -> Result<Vec<usize>, OpenError> {
    let mut whole = Vec::new();
    let found = checkpoint::find(&store.dies, &store.layout, store.drive);
    for mut reader in found.into_iter().filter(|it| it.summary.number == number) {
        if load_tables(&store.layout, &mut reader)?.is_some() {
            whole.push(reader.die);
        }
    }
    Ok(whole)
}

/// Adds what the journal says to what the rows say; returns extents by their index in the events.
fn list_records(
    layout: &Layout,
    records: &[Record],
    rows: &Rows,
    events: &mut Events,
) -> Vec<Journaled> {
    let mut extents = Vec::new();
    for record in records {
        match *record {
            Record::Trim(trim) => {
                events.add(trim.order, Event::Trim { first: trim.first, pages: trim.pages });
            }
            Record::Release { .. } => {}
            Record::Extent { journaled, ppn, row_order } => {
                // Where its row is whole, that says the same.
                if rows.life(layout.place(ppn).row).order != row_order {
                    let Extent { lpn, order, .. } = journaled.extent;
                    let index = u32::try_from(extents.len()).expect("a journal is below 16 TiB");
                    extents.push(journaled);
                    events.add(order, Event::Journaled { lpn, ppn, index });
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
    extents: &[Journaled],
    map: &mut Recovery,
    since: u64,
) -> BTreeMap<u32, Journaled> {
    let mut pending = BTreeMap::new();
    let end = map.map_entries_mut().len();
    // What lies beyond the end was given up when the drive became smaller.
    let is_within = |lpn: Lpn| (lpn.0 as usize) < end;
    for (order, event) in events.in_order() {
        match event {
            Event::Placed { lpn, .. } | Event::Journaled { lpn, .. } if !is_within(lpn) => {}
            Event::Placed { lpn, ppn, bytes, soon } => {
                map.prefetch(soon);
                // What is pending is nowhere else.
                if !map.set_place(lpn, Some((ppn, Bytes(u64::from(bytes))))) {
                    pending.remove(&lpn.0);
                }
            }
            Event::Journaled { lpn, ppn, index } => {
                if order >= since || map.place(lpn) == Some(ppn) {
                    map.set_place(lpn, None);
                    pending.insert(lpn.0, extents[index as usize]);
                }
            }
            // The map of the checkpoint knows of what came before it.
            Event::Trim { .. } if order < since => {}
            Event::Trim { first, pages } => {
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
) -> Result<Ftl, OpenError> {
    let (found, closed) = scan.survey(rows, erase_counts);
    let ftl = map.finish(&found, &closed).map_err(|error| damaged(error.to_string()))?;
    check_places(&scan.store.layout, &ftl, rows)?;
    Ok(ftl)
}

/// Checks that every page of the map lies in a row that counts.
fn check_places(layout: &Layout, ftl: &Ftl, rows: &Rows) -> Result<(), OpenError> {
    let shape = &layout.shape;
    let row_pages = shape.data_units() * shape.unit_pages;
    let lost = (0..shape.rows_total()).filter(|row| rows.life(*row).order == 0);
    for row in lost {
        for layer in 0..shape.extents_per_page {
            let slot = layer * shape.unit_pages;
            let Ppn(first) = layout.ppn(Place { row, unit: 0, slot });
            if let Some(Lpn(lpn)) = ftl.page_within(first..first + row_pages) {
                return Err(damaged(format!("row {row} is lost, which holds page {lpn}")));
            }
        }
    }
    Ok(())
}

fn clear_free(layout: &Layout, ftl: &Ftl, rows: &mut Rows) {
    for superblock in 0..layout.shape.superblocks {
        if ftl.superblock_state(SuperblockId(superblock)) == SuperblockState::Free {
            rows.forget(layout.rows_of(superblock));
        }
    }
}

impl Scan<'_> {
    /// What the translation layer has to know of each superblock, and in which order they were
    /// begun.
    fn survey(&self, rows: &Rows, erase_counts: &[u32]) -> (Vec<Found>, Vec<SuperblockId>) {
        let layout = &self.store.layout;
        let shape = &layout.shape;
        let mut begun = Vec::new();
        let mut found = Vec::new();
        for (id, erase_count) in (0..shape.superblocks).zip(erase_counts) {
            let of_superblock = layout.rows_of(id);
            let is_held = |row: &u32| rows.life(*row).order != 0;
            let last = of_superblock.clone().rev().find(is_held);
            let written = last.map_or(0, |row| row + 1 - of_superblock.start);
            let goes_on = last
                .filter(|row| row + 1 < of_superblock.end)
                .and_then(|row| self.stream(row, rows.life(row)));
            let units_written = written * shape.data_units();
            found.push(Found { erase_count: *erase_count, units_written, goes_on });
            let orders = of_superblock.filter(is_held).map(|row| rows.life(row).order);
            begun.extend(orders.min().map(|order| (order, SuperblockId(id))));
        }
        begun.sort_unstable();
        (found, begun.into_iter().map(|(_, id)| id).collect())
    }
}

/// Bytes that an extent is counted as.
fn charged(extent: &Extent) -> u16 {
    if planted::is(Bug::SizeForgotten) {
        return 1;
    }
    let bytes = Layout::charged(extent.stored_bytes()).min(PAGE_BYTES as u64);
    u16::try_from(bytes).expect("at most a page")
}
