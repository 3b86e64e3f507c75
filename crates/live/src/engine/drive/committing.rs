//! Commits: what a flush does.
//!
//! What rows hold that are not complete goes to the journal, so that a flush after each page costs
//! one short write and one sync for each copy of the journal. Rows that were completed since the
//! last commit are made durable first, and then listed in the batch: whoever finds the batch knows
//! that they were there. Many that flush at once share one commit.

use super::Drive;
use crate::DeviceError;
use crate::engine::completed_rows::completed_bytes_due;
use crate::engine::core::Core;
use crate::engine::dies::medium_error;
use crate::engine::journal::unsynced_batches::Assembled;
use crate::engine::journal::{Journal, Scope};
use crate::format::die_set::DieSet;
use crate::format::header::Header;
use crate::lock::lock;
use crate::mutants::{self, Mutant};

/// Checkpoints that may be taken to make room for one commit: others may fill it meanwhile.
const TRIES: u32 = 1000;

impl Drive {
    /// Makes everything of `scope` durable that happened before.
    pub(crate) fn commit(&self, scope: Scope) -> Result<(), DeviceError> {
        let before = self.core()?.seq;
        for _ in 0..TRIES {
            let mut journal = self.journal()?;
            if scope == Scope::Host && journal.committed >= before {
                return Ok(());
            }
            if scope == Scope::Relocation && self.core()?.ftl.held_erased().is_empty() {
                // Another thread has committed it meanwhile.
                return Ok(());
            }
            if self.commit_to(&mut journal, scope, |_| ())?.is_some() {
                let is_due = journal.used() > journal.size / 2;
                drop(journal);
                // Another thread may be at it already.
                return if is_due && self.checkpoints.try_lock().is_ok() {
                    self.checkpoint()
                } else {
                    Ok(())
                };
            }
            drop(journal);
            self.checkpoint()?;
        }
        let reason = "checkpoints leave no room in the journal".to_owned();
        Err(DeviceError::Poisoned { reason })
    }

    /// Has the system hold everything that the host changed before, so that the end of the process
    /// loses none of it; nothing is synced. Where the journal has no room for that, commits it.
    pub(crate) fn hand_over(&self) -> Result<(), DeviceError> {
        let before = self.core()?.seq;
        // The second time a checkpoint has made room, if that is possible at all.
        for _ in 0..2 {
            let mut journal = self.journal()?;
            if journal.handed_over() >= before {
                return Ok(());
            }
            let layout = &self.store.layout;
            let assembled = {
                // Rows are completed in order then: recovery looks for a superblock's first one.
                let mut core = self.still()?;
                let reserve = 3 * self.bytes_at_most(&core);
                let has_room = journal.has_window(layout, reserve);
                has_room.then(|| journal.assemble_unsynced(&mut core, layout))
            };
            match assembled {
                Some(Assembled::At(at)) => {
                    self.noting(journal.write_unsynced(&self.store, at))?;
                    return self.noting(self.keep_header());
                }
                // Rows that were completed meanwhile may lack a unit on a die that failed: it holds
                // an earlier state from then on, and who opens the drive has to know.
                Some(Assembled::Nothing) => return self.noting(self.keep_header()),
                Some(Assembled::TooLong) => break,
                None => {
                    drop(journal);
                    self.checkpoint()?;
                }
            }
        }
        self.commit(Scope::Host)
    }

    /// Makes superblocks usable that relocation has erased, once what superseded their pages lies
    /// in completed rows: a batch that lists those is short. If another thread holds the journal,
    /// returns, or waits for it where room is short.
    pub(super) fn release_superblocks(&self, is_short: bool) -> Result<(), DeviceError> {
        let journal = if is_short { Some(self.journal()?) } else { self.journal_if_free()? };
        let Some(mut journal) = journal else { return Ok(()) };
        let (dirty, released) = {
            let mut core = self.still()?;
            let released = core.releasable();
            if released == 0 {
                return Ok(());
            }
            if journal.used() + 3 * self.bytes_at_most(&core) > journal.size {
                drop(core);
                drop(journal);
                return self.commit(Scope::Relocation);
            }
            journal.begin();
            if journal.has_unsynced() {
                // The batch replaces those.
                journal.collect(&mut core, &self.store.layout, (Scope::Host, released));
            } else {
                journal.collect_completed(&mut core, released);
            }
            (std::mem::take(&mut core.dirty), released)
        };
        self.noting(self.make_durable(&mut journal, Scope::Relocation, dirty))?;
        let mut core = self.core_mut()?;
        assert!(released <= core.releasable(), "no row that is open now was open at an erasure");
        core.release_erased(released);
        Ok(())
    }

    /// Does so with the journal at hand, if it has room; `see` is shown the state that is made
    /// durable.
    pub(super) fn commit_to(
        &self,
        journal: &mut Journal,
        scope: Scope,
        see: impl FnOnce(&mut Core),
    ) -> Result<Option<()>, DeviceError> {
        self.check_sound()?;
        let (seq, dirty, held, is_empty, freed) = {
            let mut core = self.still()?;
            // Checkpoints themselves may use what the rest leaves.
            let reserve = if scope == Scope::Together { 1 } else { 3 };
            let has_reserve = journal.used() + reserve * self.bytes_at_most(&core) <= journal.size;
            if !has_reserve && scope != Scope::Again {
                return Ok(None);
            }
            let held = if scope.is_host() { 0 } else { core.ftl.held_erased().len() };
            let is_proven = !journal.is_end_single || scope == Scope::Relocation;
            let is_empty = !core.is_dirty() && scope != Scope::Again && held == 0 && is_proven;
            // What is in rows that are not complete is in the batch.
            let dirty = if core.completed.is_empty() && scope.is_host() {
                DieSet::default()
            } else {
                std::mem::take(&mut core.dirty)
            };
            journal.begin();
            journal.collect(&mut core, &self.store.layout, (scope, held));
            // The last way to a checkpoint: what counts is the batch, not the largest there can be.
            if !has_reserve && !journal.fits_batch() {
                return Ok(None);
            }
            see(&mut core);
            (core.seq, dirty, held, is_empty, core.freed)
        };
        if !is_empty {
            self.noting(self.make_durable(journal, scope, dirty))?;
        }
        if !journal.is_end_single {
            assert!(journal.committed <= seq, "what is durable stays so");
            journal.committed = seq;
        }
        if !scope.is_host() || freed > 0 {
            let mut core = self.core_mut()?;
            assert!(freed <= core.freed, "what is free was given up");
            core.freed -= freed;
            core.release_erased(held);
        }
        Ok(Some(()))
    }

    /// Bytes that a batch takes of the ring at most.
    pub(super) fn bytes_at_most(&self, core: &Core) -> u64 {
        let shape = &self.store.layout.shape;
        let row_bytes = self.store.layout.unit_bytes as u64 * u64::from(shape.dies);
        // The list may grow so far until somebody commits it.
        let listed = completed_bytes_due(&self.store.layout).max(core.completed.len() as u64);
        2 * (row_bytes * (core.open.len() as u64 + 1)
            + core.trims.len() as u64 * 32
            + core.reclaimed.len() as u64 * 32
            + core.ftl.held_erased().len() as u64 * 32
            + listed
            + 4096)
    }

    /// Makes durable what was written to the dies, which of them have failed, and then the batch,
    /// which says so.
    pub(super) fn make_durable(
        &self,
        journal: &mut Journal,
        scope: Scope,
        dirty: DieSet,
    ) -> Result<(), DeviceError> {
        if !mutants::is(Mutant::JournalBeforeRows) {
            let failed = |(die, source)| medium_error(format!("syncing die {die}"))(source);
            self.store.dies.sync_all(dirty).map_err(failed)?;
        }
        // Recovery relies on rows that a batch lists, and looks for no unit that they lack: a die
        // that is back must not count as one that has it.
        self.tell_header()?;
        journal.write(&self.store, scope)?;
        self.keep_header()
    }

    /// Says on the remaining dies which ones have been lost, if that has changed, and has rows that
    /// are begun from then on leave them out.
    pub(crate) fn keep_header(&self) -> Result<(), DeviceError> {
        let told = self.tell_header()?;
        self.adapt_rows(told)
    }

    /// Says on the remaining dies which ones have been lost, if that has changed; returns them.
    pub(super) fn tell_header(&self) -> Result<DieSet, DeviceError> {
        let dies = &self.store.dies;
        let mut header = lock(&self.header);
        let is_told =
            |header: &Header| (header.lost, header.removed) == (dies.incomplete(), dies.removed());
        while !is_told(&header) {
            header.write_to_all(dies)?;
        }
        Ok(header.lost)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use blockio::Rng;

    use super::super::checkpointing::tests::SHAPE;
    use crate::format::layout::PAGE_BYTES;
    use crate::simulation::{DiskFault, Disks};
    use crate::{Device as _, Drive, Durability, Medium, Shape, format};

    /// A die fails while a row is completed, so that no batch of the journal follows. The process
    /// is killed, and the die is back as it was.
    #[test]
    fn a_hand_over_without_a_batch_says_which_die_has_failed() {
        let shape = Shape { dies: 3, is_protected: true, ..SHAPE };
        let bytes = usize::try_from(shape.die_bytes().0).unwrap();
        let row_bytes = (shape.data_units() * shape.unit_pages) as usize * PAGE_BYTES;
        for failing in 0..3 {
            let disks = Disks::new(3, bytes, Rng::new(0));
            format(disks.media(), &shape, 1).unwrap();
            let drive = Drive::open_media(disks.media()).unwrap();
            disks.set_fault(failing, DiskFault::Dead);
            drive.write(0, &vec![7; row_bytes], Durability::Process).unwrap();
            assert_eq!(drive.lost_dies(), [failing], "a unit of the row is on each die");
            drop(drive);
            disks.restart();
            disks.set_fault(failing, DiskFault::None);

            for missing in (0..3).filter(|die| *die != failing) {
                let mut media = disks.fork().media();
                media.remove(missing);
                let opened = Drive::open_media(media);
                assert!(opened.is_err(), "die {failing} holds an earlier state");
            }
            let drive = Drive::open_media(disks.media()).unwrap();
            assert_eq!(drive.lost_dies(), [failing]);
            let mut found = vec![0; row_bytes];
            drive.read(0, &mut found).unwrap();
            assert!(found.iter().all(|byte| *byte == 7), "what was handed over is there");
        }
    }

    /// A die fails before a row is complete, and the power goes while a batch is written that lists
    /// the row. The die is back, and later another one is gone.
    #[test]
    fn a_die_has_failed_before_a_batch_lists_rows_that_lack_its_unit() {
        let shape = Shape { dies: 3, is_protected: true, ..SHAPE };
        let bytes = usize::try_from(shape.die_bytes().0).unwrap();
        let row_bytes = (shape.data_units() * shape.unit_pages) as usize * PAGE_BYTES;
        let mut redundant = 0;
        for (failing, commands) in (0..3).flat_map(|die| (0..20).map(move |cut| (die, cut))) {
            let disks = Disks::new(3, bytes, Rng::new(0));
            format(disks.media(), &shape, 1).unwrap();
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

    static IS_FAILING: AtomicBool = AtomicBool::new(false);
    static IS_UNDER_WAY: Barrier = Barrier::new(2);

    /// A disk of which a write takes long and fails.
    #[derive(Debug)]
    struct SlowlyFailing(Box<dyn Medium>);

    impl Medium for SlowlyFailing {
        fn size(&self) -> u64 {
            self.0.size()
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.0.read_at(offset, buffer)
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            if !IS_FAILING.load(Ordering::Acquire) {
                return self.0.write_at(offset, bytes);
            }
            IS_UNDER_WAY.wait();
            thread::sleep(Duration::from_millis(200));
            Err(io::Error::other("the disk fails"))
        }

        fn sync(&self) -> io::Result<()> {
            self.0.sync()
        }
    }

    #[test]
    fn a_hand_over_that_waits_for_one_that_fails_is_not_answered() {
        let bytes = usize::try_from(SHAPE.die_bytes().0).unwrap();
        let disks = Disks::new(1, bytes, Rng::new(0));
        format(disks.media(), &SHAPE, 1).unwrap();
        let slow = |disk| Box::new(SlowlyFailing(disk)) as Box<dyn Medium>;
        let drive = Drive::open_media(disks.media().into_iter().map(slow).collect()).unwrap();
        drive.write(0, &[7; PAGE_BYTES], Durability::Volatile).unwrap();
        IS_FAILING.store(true, Ordering::Release);
        thread::scope(|scope| {
            let first = scope.spawn(|| drive.hand_over());
            IS_UNDER_WAY.wait();
            drive.hand_over().expect_err("the system has nothing of the page");
            first.join().unwrap().unwrap_err();
        });
    }
}
