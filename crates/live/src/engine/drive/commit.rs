//! Commits: what a flush does.
//!
//! What rows hold that are not complete goes to the journal, so that a flush after each page costs
//! one short write and one sync for each copy of the journal. Rows that were completed since the
//! last commit are made durable first, and then listed in the batch: a recovery that finds the
//! batch knows that they were there. Many that flush at once share one commit.

use std::sync::MutexGuard;

use device::DeviceError;
use status::Promise;

use super::Drive;
use super::execution::Still;
use crate::engine::core::Core;
use crate::engine::core::completed_rows::completed_bytes_due;
use crate::engine::core::write_buffer::{RingEnds, WriteBuffer};
use crate::engine::dies::header_copies;
use crate::engine::dies::sync_failed;
use crate::engine::log::journal::{Journal, Scope};
use crate::format::die_set::DieSet;
use crate::format::header::Header;
use crate::lock::lock;
use crate::mutants::{self, Mutant};

/// Batches that the journal keeps room for: the one at hand, and two of a checkpoint.
pub(super) const BATCHES_RESERVED: u64 = 3;
/// Checkpoints that may be taken to make room for one commit: others may fill it meanwhile.
const TRIES: u32 = 1000;

/// A batch that was collected, and the state of the core then.
#[must_use = "what is in no batch is not durable"]
pub(super) struct CollectedBatch {
    /// Count of events.
    seq: u64,
    /// Dies to be synced before the batch is written.
    dirty: DieSet,
    /// Superblocks that were erased and may be used once it is durable.
    held: usize,
    /// True if there is nothing in it.
    is_empty: bool,
    /// Bytes that the host has given up.
    freed: u64,
    /// Ends of the write buffer's rings.
    buffered: RingEnds,
    /// True if nothing is left that is older than a start from an earlier state.
    is_renewed: bool,
}

impl Drive {
    /// Makes everything of `scope` durable that happened before.
    pub(crate) fn commit(&self, scope: Scope) -> Result<(), DeviceError> {
        let before = self.core()?.seq;
        for _ in 0..TRIES {
            self.check_sound()?;
            let mut journal = self.journal()?;
            // Another thread's batch may have had it while this one waited for the journal.
            if scope == Scope::Host && journal.committed >= before {
                return Ok(());
            }
            if scope == Scope::Relocation && self.core()?.ftl.held_erased().is_empty() {
                // Another thread has committed it meanwhile.
                return Ok(());
            }
            if self.commit_to(&mut journal, scope, |_| ())?.is_some() {
                return self.shorten(journal);
            }
            // A checkpoint makes room, which others may fill before this one comes to it.
            drop(journal);
            self.checkpoint()?;
        }
        let reason = "checkpoints leave no room in the journal".to_owned();
        Err(DeviceError::Poisoned { reason })
    }

    /// Makes durable what was acknowledged from the write buffer, if nothing was added since there
    /// were `seen` events. Returns the number of events now, for the next call: what comes between
    /// the two is rest.
    pub(crate) fn commit_at_rest(&self, seen: u64) -> Result<u64, DeviceError> {
        let seq = self.core()?.seq;
        if seq == seen && self.promise() == Promise::ServerDeath {
            self.commit(Scope::Host)?;
        }
        Ok(seq)
    }

    /// Makes superblocks usable that relocation has erased, once what superseded their pages lies
    /// in completed rows: a batch that lists those is short. If another thread holds the journal,
    /// returns, or waits for it where room is short.
    pub(super) fn release_superblocks(&self, is_short: bool) -> Result<(), DeviceError> {
        let journal = if is_short { Some(self.journal()?) } else { self.journal_if_free()? };
        let Some(mut journal) = journal else { return Ok(()) };
        // The thread that held it before may have failed, and what supersedes the pages is not
        // durable.
        self.check_sound()?;
        let (dirty, released, buffered) = {
            let mut core = self.still()?;
            let released = core.releasable();
            if released == 0 {
                return Ok(());
            }
            if !self.has_room(&journal, &core, BATCHES_RESERVED) {
                drop(core);
                drop(journal);
                // Only a commit takes the checkpoint that makes room.
                return self.commit(Scope::Relocation);
            }
            journal.begin();
            journal.collect_completed(&mut core, released);
            let buffered = core.buffer.as_ref().map(WriteBuffer::ends).unwrap_or_default();
            (std::mem::take(&mut core.dirty), released, buffered)
        };
        self.noting(self.make_durable(&mut journal, dirty))?;
        if let Some(buffer) = self.store.buffer() {
            buffer.note_trims(buffered);
        }
        let mut core = self.core_mut()?;
        assert!(released <= core.releasable(), "no row that is open now was open at an erasure");
        core.release_erased(released);
        Ok(())
    }

    /// Commits with the journal at hand; `see` is shown the state that is made durable. None if the
    /// journal has no room for that and a checkpoint: never for [`Scope::Again`].
    pub(super) fn commit_to(
        &self,
        journal: &mut Journal,
        scope: Scope,
        see: impl FnOnce(&mut Core),
    ) -> Result<Option<()>, DeviceError> {
        self.check_sound()?;
        let Some(collected) = self.collect(journal, self.still()?, scope, see)? else {
            return Ok(None);
        };
        self.write_collected(journal, scope, &collected).map(Some)
    }

    /// Collects a batch from the core, which gives up its lock then; none as
    /// [`Drive::commit_to`].
    pub(super) fn collect(
        &self,
        journal: &mut Journal,
        mut core: Still<'_>,
        scope: Scope,
        see: impl FnOnce(&mut Core),
    ) -> Result<Option<CollectedBatch>, DeviceError> {
        // Checkpoints themselves may use what the rest leaves.
        let batches = if scope == Scope::Together { 1 } else { BATCHES_RESERVED };
        let has_reserve = self.has_room(journal, &core, batches);
        if !has_reserve && scope != Scope::Again {
            return Ok(None);
        }
        let held = if scope.is_host() { 0 } else { core.ftl.held_erased().len() };
        let is_empty = !core.is_dirty() && scope != Scope::Again && held == 0;
        // What is in rows that are not complete is in the batch. Where no batch is written nothing
        // is synced, and what was programmed stays to be.
        let dirty = if is_empty || core.completed.is_empty() && scope.is_host() {
            DieSet::default()
        } else {
            std::mem::take(&mut core.dirty)
        };
        journal.begin();
        journal.collect(&mut core, &self.store.layout, scope);
        // Of the last way to a checkpoint the batch counts, not the largest there can be.
        if !journal.fits_batch() {
            // What was collected is in no batch, and the next one would leave it out.
            let reason = "the journal has no room left for a checkpoint".to_owned();
            let _ = self.poison.set(reason.clone());
            return Err(DeviceError::Poisoned { reason });
        }
        see(&mut core);
        let buffered = core.buffer.as_ref().map(WriteBuffer::ends).unwrap_or_default();
        let is_renewed = core.older.as_ref().is_some_and(|older| older.count() == 0);
        Ok(Some(CollectedBatch {
            seq: core.seq,
            dirty,
            held,
            is_empty,
            freed: core.freed,
            buffered,
            is_renewed,
        }))
    }

    /// Makes a batch that was collected durable, with what it lists.
    pub(super) fn write_collected(
        &self,
        journal: &mut Journal,
        scope: Scope,
        collected: &CollectedBatch,
    ) -> Result<(), DeviceError> {
        let CollectedBatch { seq, dirty, held, is_empty, freed, buffered, is_renewed } = *collected;
        if !is_empty {
            self.noting(self.make_durable(journal, dirty))?;
        }
        if is_renewed {
            self.core_mut()?.older = None;
            self.note_renewed();
        }
        assert!(journal.committed <= seq, "what is durable stays so");
        journal.committed = seq;
        if let Some(buffer) = self.store.buffer() {
            buffer.note_committed(buffered, seq);
        }
        if !scope.is_host() || freed > 0 {
            let mut core = self.core_mut()?;
            assert!(freed <= core.freed, "what is free was given up");
            core.freed -= freed;
            core.release_erased(held);
        }
        Ok(())
    }

    /// True if the journal has room for so many batches of the largest size.
    pub(super) fn has_room(&self, journal: &Journal, core: &Core, batches: u64) -> bool {
        journal.used() + batches * self.bytes_at_most(core) <= journal.size
    }

    /// Lets go of the journal, and takes a checkpoint if it is half full and no other thread is at
    /// one.
    pub(super) fn shorten(&self, journal: MutexGuard<'_, Journal>) -> Result<(), DeviceError> {
        let is_due = journal.used() > journal.size / 2;
        drop(journal);
        if is_due && self.checkpoints.try_lock().is_ok() { self.checkpoint() } else { Ok(()) }
    }

    /// Bytes that a batch takes of the ring at most.
    pub(super) fn bytes_at_most(&self, core: &Core) -> u64 {
        let shape = &self.store.layout.shape;
        let row_bytes = self.store.layout.unit_bytes as u64 * u64::from(shape.dies);
        // The list may grow so far until a thread commits it.
        let listed = completed_bytes_due(&self.store.layout).max(core.completed.len() as u64);
        2 * (row_bytes * (core.open.len() as u64 + 1)
            + core.trims.len() as u64 * 32
            + core.lost.unsaved_next() as u64 * 32
            + core.ftl.held_erased().len() as u64 * 32
            + listed
            + 4096)
    }

    /// Makes durable what was written to the dies, which of them have failed, and then the batch,
    /// which says so.
    pub(super) fn make_durable(
        &self,
        journal: &mut Journal,
        dirty: DieSet,
    ) -> Result<(), DeviceError> {
        // A batch is believed: what it lists must be durable before it can be.
        if !mutants::is(Mutant::JournalBeforeRows) {
            self.store.dies.sync_all(dirty).map_err(sync_failed)?;
        }
        // Recovery relies on rows that a batch lists, and looks for no unit that they lack: a die
        // that is back must not count as one that has it.
        self.tell_header()?;
        journal.write(&self.store)?;
        self.keep_header()
    }

    /// Has the journal tell pages that were found lost, if there are so many.
    pub(crate) fn tell_lost(&self) -> Result<(), DeviceError> {
        let is_due = self.core()?.lost.is_batch_full();
        if is_due { self.commit(Scope::Everything) } else { Ok(()) }
    }

    /// Makes durable which pages are known to be lost, if the journal does not tell all of them
    /// yet. Nothing is written where it does.
    ///
    /// # Errors
    /// As [`device::Device::flush`].
    pub fn keep_losses(&self) -> Result<(), DeviceError> {
        while self.core()?.lost.is_unsaved() && !mutants::is(Mutant::LossesForgotten) {
            self.commit(Scope::Everything)?;
        }
        Ok(())
    }

    /// Says on the remaining dies which ones have been lost, if that has changed, and has rows that
    /// are begun from then on leave them out.
    pub(crate) fn keep_header(&self) -> Result<(), DeviceError> {
        // Headers are synced: the system tells an error of what was written before only once.
        let told = self.noting(self.tell_header())?;
        self.noting(self.adapt_rows(told))
    }

    /// Says on the remaining dies which ones have been lost, if that has changed; returns them.
    pub(super) fn tell_header(&self) -> Result<DieSet, DeviceError> {
        let dies = &self.store.dies;
        let mut header = lock(&self.header);
        let is_told =
            |header: &Header| (header.lost, header.removed) == (dies.incomplete(), dies.removed());
        while !is_told(&header) {
            header_copies::write_to_all(&mut header, dies)?;
        }
        Ok(header.lost)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Condvar, Mutex};
    use std::time::Duration;
    use std::{io, thread};

    use blockio::Bytes;
    use ftl::Lpn;

    use super::super::formatting::Beyond;
    use super::Scope;
    use crate::engine::drive::SMALL_SHAPE;
    use crate::engine::drive::creation::Capacity;
    use crate::format::layout::{Layout, PAGE_BYTES};
    use crate::lock::lock;
    use crate::simulation::{DiskFault, Disks};
    use crate::volume::check::check_media;
    use crate::{Drive, Medium, Shape};
    use device::{Device as _, DeviceError, Durability};

    /// A die fails before a row is complete, and the power goes while a batch is written that lists
    /// the row. The die is back, and later another one is gone.
    #[test]
    fn a_die_has_failed_before_a_batch_lists_rows_that_lack_its_unit() {
        let shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
        let row_bytes = (shape.data_units() * shape.unit_pages) as usize * PAGE_BYTES;
        let mut redundant = 0;
        for (failing, commands) in (0..3).flat_map(|die| (0..20).map(move |cut| (die, cut))) {
            let disks = Disks::formatted(&shape);
            let drive = Drive::open_media(disks.media()).unwrap();
            drive.write(0, &[7; PAGE_BYTES], Durability::Durable).unwrap();
            disks.set_fault(failing, DiskFault::Dead);
            let rest = vec![7; row_bytes - PAGE_BYTES];
            drive.write(PAGE_BYTES as u64, &rest, Durability::Volatile).unwrap();
            disks.cut_after(commands);
            let _ = drive.flush();
            drop(drive);
            disks.restore_by(|_| true);
            disks.set_fault(failing, DiskFault::None);

            let drive = Drive::open_media(disks.media()).unwrap();
            let is_redundant = drive.is_redundant();
            drop(drive);
            redundant += u32::from(is_redundant);
            for missing in (0..3).filter(|_| is_redundant) {
                let mut media = disks.fork().media();
                media.remove(missing);
                let drive = Drive::open_media(media).unwrap();
                let mut page = [0; PAGE_BYTES];
                let read = drive.read(0, &mut page);
                read.unwrap_or_else(|error| panic!("{failing}, {missing}, {commands}: {error}"));
                assert_eq!(page, [7; PAGE_BYTES], "a page that was flushed");
            }
        }
        assert!(redundant > 0, "some cuts come before headers say that the die has failed");
    }

    /// The system tells an error of a sync once. After that no later flush may say that everything
    /// is durable.
    #[test]
    fn a_flush_after_a_sync_that_failed_elsewhere_does_not_succeed() {
        let disks = Disks::formatted(&SMALL_SHAPE);
        let drive = Drive::open_media(disks.media()).unwrap();
        let unit = vec![7; SMALL_SHAPE.unit_pages as usize * PAGE_BYTES];
        drive.write(0, &unit, Durability::Volatile).unwrap();
        disks.set_fault(0, DiskFault::SyncFails);
        let failed = drive.sync_healthy();
        assert!(matches!(failed, Err(DeviceError::Medium { .. })), "{failed:?}");
        let flushed = drive.flush();
        assert!(matches!(flushed, Err(DeviceError::Poisoned { .. })), "{flushed:?}");
        let resized = drive.resize(
            &Capacity { size: Bytes(50 * PAGE_BYTES as u64), physical: None },
            Beyond::Lost,
        );
        assert!(resized.is_err() && drive.size() == 100 * PAGE_BYTES as u64, "nothing changed");
    }

    /// A medium of which syncs wait while a gate is closed.
    #[derive(Debug)]
    struct Gated {
        disk: Box<dyn Medium>,
        gate: Arc<Gate>,
    }

    #[derive(Debug, Default)]
    struct Gate {
        is_closed: Mutex<bool>,
        waiting: AtomicU32,
        opened: Condvar,
    }

    impl Medium for Gated {
        fn size(&self) -> u64 {
            self.disk.size()
        }
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.disk.read_at(offset, buffer)
        }
        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.disk.write_at(offset, bytes)
        }
        fn sync(&self) -> io::Result<()> {
            let mut is_closed = lock(&self.gate.is_closed);
            // Only the first to come waits.
            if *is_closed && self.gate.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
                while *is_closed {
                    is_closed = self.gate.opened.wait(is_closed).unwrap();
                }
            }
            drop(is_closed);
            self.disk.sync()
        }
    }

    /// One thread is told that a sync of die 0 failed, and still waits for die 1. The sync of die 0
    /// by another thread does not fail any more: its flush must not say that all is durable.
    #[test]
    fn a_flush_beside_a_sync_that_failed_and_is_not_over_does_not_succeed() {
        let shape = Shape { dies: 2, ..SMALL_SHAPE };
        let disks = Disks::formatted(&shape);
        let gate = Arc::new(Gate::default());
        let mut media = disks.media();
        let disk = media.pop().unwrap();
        media.push(Box::new(Gated { disk, gate: Arc::clone(&gate) }));
        let drive = Drive::open_media(media).unwrap();
        let row = vec![7; (shape.dies * shape.unit_pages) as usize * PAGE_BYTES];
        drive.write(0, &row, Durability::Volatile).unwrap();
        disks.set_fault(0, DiskFault::SyncFails);
        *lock(&gate.is_closed) = true;
        let flushed = thread::scope(|scope| {
            let failing = scope.spawn(|| drive.sync_healthy());
            while gate.waiting.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            let flushing = scope.spawn(|| drive.flush());
            thread::sleep(Duration::from_millis(100));
            *lock(&gate.is_closed) = false;
            gate.opened.notify_all();
            assert!(failing.join().unwrap().is_err());
            flushing.join().unwrap()
        });
        assert!(flushed.is_err(), "{flushed:?}");
    }

    #[test]
    fn what_is_not_added_to_is_durable_after_a_rest() {
        let disks = Disks::formatted(&SMALL_SHAPE);
        let drive = Drive::open_with_buffer(disks.media(), Some(disks.buffer())).unwrap();
        let fill = |page: u64| {
            drive.write(page * PAGE_BYTES as u64, &[7; PAGE_BYTES], Durability::Volatile).unwrap();
        };
        let durable = || {
            let fork = disks.fork();
            fork.restore_by(|_| false);
            let drive = Drive::open_media(fork.media()).unwrap();
            let mut found = [[0; PAGE_BYTES]; 2];
            for (offset, page) in [0, PAGE_BYTES as u64].into_iter().zip(&mut found) {
                drive.read(offset, page).unwrap();
            }
            found.map(|page| page[0])
        };
        fill(0);
        let seen = drive.commit_at_rest(0).unwrap();
        fill(1);
        let seen = drive.commit_at_rest(seen).unwrap();
        assert_eq!(durable(), [0, 0], "more was added each time");
        assert_eq!(drive.commit_at_rest(seen).unwrap(), seen);
        assert_eq!(durable(), [7, 7]);
        let commands = disks.commands();
        drive.commit_at_rest(seen).unwrap();
        assert_eq!(disks.commands(), commands, "once is enough");
    }

    /// A drive with parity goes on without the die whose sync failed, and says so on the others.
    #[test]
    fn a_die_whose_sync_failed_counts_as_failed_after_a_crash() {
        let shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
        let pages = u64::from(shape.data_units() * shape.unit_pages) * 2;
        for failing in 0..3 {
            let disks = Disks::formatted(&shape);
            let drive = Drive::open_media(disks.media()).unwrap();
            for page in 0..pages {
                let content = [page.to_le_bytes()[0]; PAGE_BYTES];
                drive.write(page * PAGE_BYTES as u64, &content, Durability::Volatile).unwrap();
            }
            disks.set_fault(failing, DiskFault::SyncFails);
            drive.sync_healthy().unwrap();
            drive.flush().unwrap();
            drop(drive);
            disks.restore_by(|_| false);
            let drive = Drive::open_media(disks.media()).unwrap();
            assert!(!drive.is_redundant(), "what die {failing} did not write is missing there");
            for page in 0..pages {
                let mut found = [0; PAGE_BYTES];
                drive.read(page * PAGE_BYTES as u64, &mut found).unwrap();
                assert_eq!(found, [page.to_le_bytes()[0]; PAGE_BYTES], "flushed page {page}");
            }
        }
    }

    /// The power goes at each command of a replacement, and takes another die along. If the headers
    /// said that the drive was redundant, nothing that was flushed may be missing.
    #[test]
    fn a_replaced_die_has_the_journal_and_a_checkpoint_once_it_counts() {
        for dies in [2, 3] {
            let shape = Shape { dies, is_protected: true, ..SMALL_SHAPE };
            let (mut redundant, mut commands) = (0, 0);
            loop {
                let disks = Disks::formatted(&shape);
                let drive = Drive::open_media(disks.media()).unwrap();
                drive.write(0, &[7; PAGE_BYTES], Durability::Durable).unwrap();
                drive.fail_die(1).unwrap();
                drive.write(PAGE_BYTES as u64, &[8; PAGE_BYTES], Durability::Durable).unwrap();
                let medium = disks.replace(1);
                disks.cut_after(commands);
                let is_whole = drive.replace_die(1, medium).is_ok();
                drop(drive);
                disks.restore_by(|_| true);
                let was_redundant = {
                    let fork = disks.fork();
                    Drive::open_media(fork.media()).unwrap().is_redundant()
                };
                assert!(was_redundant || !is_whole);
                redundant += u32::from(was_redundant);
                for missing in (0..dies as usize).filter(|_| was_redundant) {
                    let mut media = disks.fork().media();
                    media.remove(missing);
                    let drive = Drive::open_media(media)
                        .unwrap_or_else(|error| panic!("{dies}, {commands}, {missing}: {error}"));
                    for (number, content) in [(0, 7), (1, 8)] {
                        let mut page = [0; PAGE_BYTES];
                        drive.read(number * PAGE_BYTES as u64, &mut page).unwrap();
                        assert_eq!(page, [content; PAGE_BYTES], "a page that was flushed");
                    }
                }
                if is_whole {
                    break;
                }
                commands += 1;
            }
            assert!(redundant > 1 && commands > 10, "some cuts come after the headers");
        }
    }

    fn content(page: u64) -> [u8; PAGE_BYTES] {
        [page.to_le_bytes()[0] + 1; PAGE_BYTES]
    }

    fn write(drive: &Drive, pages: std::ops::Range<u64>) {
        for page in pages {
            let offset = page * PAGE_BYTES as u64;
            drive.write(offset, &content(page), Durability::Volatile).unwrap();
        }
    }

    /// A commit of everything that finds nothing to write syncs nothing. What was programmed before
    /// it is still to be synced by the commit that lists its row.
    #[test]
    fn a_commit_that_writes_nothing_leaves_what_is_to_be_synced() {
        for (dies, is_protected) in [(2, false), (4, true), (4, false), (8, true), (8, false)] {
            let shape = Shape { dies, is_protected, journal_bytes: 4 << 20, ..SMALL_SHAPE };
            let disks = Disks::formatted(&shape);
            let drive = Drive::open_media(disks.media()).unwrap();
            let pages = u64::from(shape.data_units() * shape.unit_pages);
            let before_last_unit = pages - u64::from(shape.unit_pages);
            write(&drive, 0..before_last_unit);
            drive.flush().unwrap();
            drive.commit(Scope::Everything).unwrap();
            write(&drive, before_last_unit..pages);
            drive.flush().unwrap();
            drop(drive);
            disks.restore_by(|_| false);
            let drive = Drive::open_media(disks.media()).unwrap();
            for page in 0..pages {
                let mut found = [0; PAGE_BYTES];
                let read = drive.read(page * PAGE_BYTES as u64, &mut found);
                read.unwrap_or_else(|error| panic!("{dies} dies, flushed page {page}: {error}"));
                assert_eq!(found, content(page), "{dies} dies, flushed page {page}");
            }
        }
    }

    /// Each trim of everything says all that the earlier ones do: however many a client sends
    /// without a flush, the journal has room for them.
    #[test]
    fn trims_of_everything_take_the_room_of_one() {
        let disks = Disks::formatted(&SMALL_SHAPE);
        let drive = Drive::open_media(disks.media()).unwrap();
        write(&drive, 0..1);
        for _ in 0..40_000 {
            drive.trim(0, drive.size(), Durability::Volatile).unwrap();
        }
        assert_eq!(drive.core().unwrap().trims.len(), 1);
        drive.flush().unwrap();
        drop(drive);
        disks.restore_by(|_| false);
        let mut page = [1; PAGE_BYTES];
        Drive::open_media(disks.media()).unwrap().read(0, &mut page).unwrap();
        assert_eq!(page, [0; PAGE_BYTES]);
    }

    /// A scrub finds half of the pages lost, no two of them neighbours, and the journal is small.
    #[test]
    fn more_lost_pages_than_the_journal_has_room_for_leave_a_drive_that_opens() {
        let pages: u32 = 8000;
        let mut shape = Shape {
            pages_logical: pages,
            pages_stored_max: pages,
            pages_mappable: pages,
            unit_pages: 1,
            rows: 64,
            superblocks: 160,
            ..SMALL_SHAPE
        };
        let layout = Layout::new(&shape);
        shape.journal_bytes = (19 * layout.unit_bytes as u64 + 7 * 4096).next_multiple_of(4096);
        let layout = Layout::new(&shape);
        let disks = Disks::formatted(&shape);
        let drive = Drive::open_media(disks.media()).unwrap();
        for page in 0..u64::from(pages) {
            let offset = page * PAGE_BYTES as u64;
            drive.write(offset, &[7; PAGE_BYTES], Durability::Volatile).unwrap();
        }
        let places: Vec<_> = (0..pages)
            .step_by(2)
            .map(|lpn| layout.place(drive.core().unwrap().place_of(Lpn(lpn)).unwrap()))
            .collect();
        drive.close().unwrap();
        for place in &places {
            let at = usize::try_from(layout.unit_from(place.row)).unwrap()
                + layout.extent_from(place.slot).unwrap()
                + 132;
            disks.damage(0, at..at + 1, |byte| byte ^ 1);
        }
        let drive = Drive::open_media(disks.media()).unwrap();
        assert_eq!(drive.scrub(true).unwrap().lost_lbas.len(), places.len());
        drive.flush().unwrap();
        drop(drive);
        disks.restore_by(|_| true);
        let drive = Drive::open_media(disks.media()).unwrap();
        assert_eq!(drive.lost_pages().unwrap(), places.len() as u64);
    }

    /// Relocation moves a page that cannot be read as one that is lost. A crash before its row is
    /// complete leaves it to the journal, which must not say that it is as good as any other.
    #[test]
    fn a_page_that_was_moved_as_lost_is_lost_after_a_crash() {
        let disks = Disks::formatted(&SMALL_SHAPE);
        let drive = Drive::open_media(disks.media()).unwrap();
        let pages = u64::from(SMALL_SHAPE.data_units() * SMALL_SHAPE.unit_pages) * 4;
        write(&drive, 0..pages);
        drive.flush().unwrap();
        let at = {
            let core = drive.core().unwrap();
            let layout = &drive.store().layout;
            let place = layout.place(core.place_of(Lpn(5)).unwrap());
            let unit_from = usize::try_from(layout.unit_from(place.row)).unwrap();
            unit_from + layout.extent_from(place.slot).unwrap() + 132
        };
        drive.close().unwrap();
        disks.damage(0, at..at + 1, |byte| byte ^ 1);
        let drive = Drive::open_media(disks.media()).unwrap();
        assert!(drive.move_page(Lpn(5), false, |_| true).unwrap());
        assert_eq!(drive.lost_pages().unwrap(), 1);
        drive.commit(Scope::Everything).unwrap();
        drop(drive);
        disks.restore_by(|_| true);
        let report = check_media(disks.fork().media(), |_, _| ()).unwrap();
        assert_eq!(report.findings.iter().filter(|it| it.lba == Some(40)).count(), 1);
        let drive = Drive::open_media(disks.media()).unwrap();
        assert_eq!(drive.lost_pages().unwrap(), 1, "after the crash");
        let read = drive.read(5 * PAGE_BYTES as u64, &mut [0; PAGE_BYTES]);
        assert!(matches!(read, Err(DeviceError::Unreadable { lba: 40, .. })), "{read:?}");
        drive.close().unwrap();
        let drive = Drive::open_media(disks.media()).unwrap();
        assert_eq!(drive.lost_pages().unwrap(), 1, "after it was closed");
        write(&drive, 5..6);
        assert_eq!(drive.lost_pages().unwrap(), 0, "it was written again");
    }
}
