//! Taking checkpoints while the host goes on.

use bytemuck::cast_slice;
use device::DeviceError;

use std::sync::atomic::Ordering;

use super::Drive;
use super::commit::BATCHES_RESERVED;
use crate::engine::core::Core;
use crate::engine::core::completed_rows::completed_bytes_due;
use crate::engine::dies::medium_error;
use crate::engine::log::checkpoint::{self, Writer};
use crate::engine::log::journal::Scope;
use crate::engine::store::{Replica, Store};
use crate::format::checkpoint_header::CheckpointHeader;
use crate::format::layout::FRAME_BYTES;
use crate::format::row::Rows;
use crate::lock::lock;

/// Pages of a drive for each page that is placed between two checkpoints, at most: recovery has to
/// do with those, and a checkpoint writes four bytes for each page of the drive.
const INTERVAL_DIVISOR: u64 = 16;
/// Pages that are worth a checkpoint however small the drive is: 1 GiB.
const INTERVAL_MIN: u64 = 1 << 18;
/// Events after which completed rows are listed though no client flushes, 256 MiB: recovery reads
/// the whole of those that are not.
const LISTING_INTERVAL: u64 = 1 << 16;

const _: () = assert!(cfg!(target_endian = "little"), "maps are saved as they lie in memory");

/// The event from which on a checkpoint is due, if the last one was begun at `seq`.
pub(super) fn due_after(seq: u64, store: &Store) -> u64 {
    let pages = u64::from(store.layout.shape.pages_mappable);
    seq + (pages / INTERVAL_DIVISOR).max(INTERVAL_MIN)
}

/// The event from which on completed rows are to be listed, if they were last at `seq`.
pub(super) const fn listing_due_after(seq: u64) -> u64 {
    seq + LISTING_INTERVAL
}

impl Drive {
    /// True if so much was completed since rows were listed last that it is time for it.
    pub(super) fn is_listing_due(&self, core: &Core) -> bool {
        core.seq >= self.listing_due.load(Ordering::Acquire) || self.is_list_long(core)
    }

    /// Lists completed rows in the journal if it is time.
    pub(super) fn list_rows_if_due(&self) -> Result<(), DeviceError> {
        self.list_completed(LISTING_INTERVAL)
    }

    /// Makes the rows durable that were completed, and lists them in the journal, so that recovery
    /// need not read all of them: for a host that hardly ever flushes. Not within so many events of
    /// the last list, nor while another thread is at the journal, which lists them too.
    ///
    /// Takes a checkpoint where the lists fill the journal: recovery needs what they would leave,
    /// and no commit of such a host would notice.
    ///
    /// # Errors
    /// As [`device::Device::flush`].
    pub(crate) fn list_completed(&self, interval: u64) -> Result<(), DeviceError> {
        self.check_sound()?;
        let Some(mut journal) = self.journal_if_free()? else { return Ok(()) };
        // The thread that held it before may have failed.
        self.check_sound()?;
        let dirty = {
            let mut core = self.still()?;
            let is_late = core.seq >= journal.listed + interval || self.is_list_long(&core);
            let due = if is_late { core.seq } else { journal.listed };
            self.listing_due.store(listing_due_after(due), Ordering::Release);
            if !is_late || core.completed.is_empty() {
                return Ok(());
            }
            if !self.has_room(&journal, &core, BATCHES_RESERVED) {
                drop(core);
                drop(journal);
                return self.make_room();
            }
            journal.begin();
            journal.list_rows(&mut core);
            std::mem::take(&mut core.dirty)
        };
        self.noting(self.make_durable(&mut journal, dirty))?;
        self.shorten(journal)
    }

    /// Takes a checkpoint unless the one that is under way made room in the journal.
    fn make_room(&self) -> Result<(), DeviceError> {
        let mut next = lock(&self.checkpoints);
        let has_room = {
            let journal = self.journal()?;
            self.has_room(&journal, &*self.core()?, BATCHES_RESERVED)
        };
        if has_room { Ok(()) } else { self.checkpoint_as(&mut next) }
    }

    /// True if the list of completed rows is as long as it may become.
    fn is_list_long(&self, core: &Core) -> bool {
        let due = completed_bytes_due(&self.store.layout);
        core.completed.len() as u64 >= due
    }

    /// True if enough events have passed since the last checkpoint that the next one is due.
    pub(super) fn is_checkpoint_due(&self, seq: u64) -> bool {
        seq >= self.checkpoint_due.load(Ordering::Acquire)
    }

    /// Takes a checkpoint if it is time, and no other thread takes one.
    pub(super) fn keep_checkpoints(&self) -> Result<(), DeviceError> {
        let is_free = self.checkpoints.try_lock().is_ok();
        let seq = self.core()?.seq;
        if is_free && self.is_checkpoint_due(seq) { self.checkpoint() } else { Ok(()) }
    }

    /// Saves the map, so that what the journal holds and what rows were written before need not be
    /// looked at again.
    ///
    /// # Errors
    /// As [`device::Device::flush`].
    pub fn checkpoint(&self) -> Result<(), DeviceError> {
        self.checkpoint_as(&mut lock(&self.checkpoints))
    }

    /// Takes a checkpoint with the number `next`, which it raises.
    fn checkpoint_as(&self, next: &mut u64) -> Result<(), DeviceError> {
        let number = *next;
        let mut summary =
            CheckpointHeader { number, drive: self.store.drive, ..CheckpointHeader::default() };
        let (mut rows, mut erase_counts) = (Rows::new(0), Vec::new());
        let mut older = None;
        {
            let mut journal = self.journal()?;
            (summary.journal, summary.session) = (journal.head, journal.session);
            let begun = self.commit_to(&mut journal, Scope::Again, |core| {
                summary.seq = core.seq;
                summary.pages = core.ftl.config().pages_logical;
                rows.clone_from(&core.rows);
                older.clone_from(&core.older);
                let ids = (0..self.store.layout.shape.superblocks).map(ftl::SuperblockId);
                erase_counts = ids.map(|id| core.ftl.superblock(id).erase_count).collect();
            })?;
            assert!(begun.is_some(), "a checkpoint has its batch, or the drive takes no more");
        }
        let saved = self.save(&mut summary, &rows, &erase_counts);
        self.noting(saved.and_then(|()| self.keep_header()))?;
        if let Some(witness) = self.store.dies.witness() {
            witness.note_batches(self.store.batches_durable());
            if let Some(older) = &older {
                witness.note_older(older);
            }
        }
        *next = number + 1;
        let due = due_after(summary.seq, &self.store);
        self.checkpoint_due.store(due, Ordering::Release);
        let mut journal = self.journal()?;
        assert!(journal.tail <= summary.journal.at, "the tail of the journal moves on");
        assert!(
            summary.journal.number <= journal.head.number,
            "a checkpoint begins before its end"
        );
        journal.tail = summary.journal.at;
        Ok(())
    }

    fn save(
        &self,
        summary: &mut CheckpointHeader,
        rows: &Rows,
        erase_counts: &[u32],
    ) -> Result<(), DeviceError> {
        let replicas = self.store.checkpoint_replicas(summary.number);
        let rows_total = self.store.layout.shape.rows_total();
        assert_eq!(rows.count(), rows_total, "a checkpoint has every row");
        assert_eq!(erase_counts.len(), self.store.layout.shape.superblocks as usize);
        let mut writer = Writer::new(summary);
        let mut run = FrameRun::default();
        let [seqs, outs] = rows.tables();
        for bytes in [seqs, outs, cast_slice(erase_counts)] {
            for part in <[u8]>::chunks(bytes, FRAME_BYTES) {
                self.write_frame(&mut writer, &replicas, &mut run, part)?;
            }
        }
        let mut part = Vec::with_capacity(FRAME_BYTES);
        for table in [MapTable::Places, MapTable::Sizes, MapTable::Lost] {
            for from in (0..).step_by(FRAME_BYTES) {
                part.clear();
                self.copy_map(table, from, &mut part)?;
                if part.is_empty() {
                    break;
                }
                self.write_frame(&mut writer, &replicas, &mut run, &part)?;
            }
        }
        self.write_run(writer.number(), &replicas, &mut run)?;
        // Whatever the pieces refer to is durable before they count.
        self.commit_for_checkpoint()?;
        checkpoint::complete(&self.store, &replicas, summary)
            .map_err(|(_, source)| medium_error("syncing a checkpoint".to_owned())(source))
    }

    /// Adds a frame's worth of a table of the map to `part`, from a byte on; nothing behind its
    /// end.
    fn copy_map(
        &self,
        table: MapTable,
        from: usize,
        part: &mut Vec<u8>,
    ) -> Result<(), DeviceError> {
        let core = self.core()?;
        let all: &[u8] = match table {
            MapTable::Places => cast_slice(core.ftl.map().entries()),
            MapTable::Sizes => core.ftl.map().extent_sizes(),
            MapTable::Lost => core.lost.bytes(),
        };
        let length = match table {
            // Zeroes, which take no space, as far as no page was lost.
            MapTable::Lost => self.store.layout.shape.lost_map_bytes(),
            MapTable::Places | MapTable::Sizes => all.len(),
        };
        let length = length.saturating_sub(from).min(FRAME_BYTES);
        let known = all.get(from..).unwrap_or_default();
        part.extend_from_slice(&known[..known.len().min(length)]);
        part.resize(length, 0);
        Ok(())
    }

    fn commit_for_checkpoint(&self) -> Result<(), DeviceError> {
        let mut journal = self.journal()?;
        let committed = self.commit_to(&mut journal, Scope::Everything, |_| ())?;
        if committed.is_none() {
            // What was reserved for it is gone: everything once more needs no more than that.
            let committed = self.commit_to(&mut journal, Scope::Again, |_| ())?;
            assert!(committed.is_some(), "a checkpoint has its batch, or the drive takes no more");
        }
        Ok(())
    }

    /// Adds a frame to those that are written together, after it has made room for it.
    fn write_frame(
        &self,
        writer: &mut Writer,
        replicas: &[Replica],
        run: &mut FrameRun,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let number = writer.number();
        let (at, frame) = writer.frame(bytes);
        if !run.takes(at) {
            self.write_run(number, replicas, run)?;
        }
        run.add(at, frame);
        Ok(())
    }

    /// Writes the frames that were gathered to each copy of a checkpoint.
    fn write_run(
        &self,
        number: u64,
        replicas: &[Replica],
        run: &mut FrameRun,
    ) -> Result<(), DeviceError> {
        for it in replicas {
            let from = self.store.layout.checkpoint_from(it.region, number % 2);
            let written = self.store.dies.write_or_lose(it.die, from + run.at, &run.bytes);
            written.map_err(medium_error("writing a checkpoint".to_owned()))?;
        }
        run.bytes.clear();
        Ok(())
    }
}

/// Frames that follow each other in a slot and are written in one go, since a medium that seeks
/// takes longer for each of two copies of many short ones than for all of them.
#[derive(Debug, Default)]
struct FrameRun {
    /// Offset of the first frame from the beginning of the slot, in bytes.
    at: u64,
    bytes: Vec<u8>,
}

impl FrameRun {
    /// Bytes that are gathered at most before they are written.
    const BYTES_MAX: usize = 1 << 20;
    /// Most bytes of a frame of zeroes that are written so that others may follow.
    const GAP_MAX: u64 = 1 << 16;

    /// True if a frame that begins there may be written together with these.
    fn takes(&self, at: u64) -> bool {
        let end = self.at + self.bytes.len() as u64;
        self.bytes.is_empty() || at - end <= Self::GAP_MAX && self.bytes.len() < Self::BYTES_MAX
    }

    fn add(&mut self, at: u64, frame: &[u8]) {
        if self.bytes.is_empty() {
            self.at = at;
        }
        assert!(at >= self.at + self.bytes.len() as u64, "frames follow each other");
        let before = usize::try_from(at - self.at).expect("little more than a frame");
        self.bytes.resize(before, 0);
        self.bytes.extend_from_slice(frame);
    }
}

/// A table of the map, saved piece by piece.
#[derive(Clone, Copy, Debug)]
enum MapTable {
    Places,
    Sizes,
    /// Pages known to be lost.
    Lost,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Shape;
    use crate::simulation::Disks;
    use device::{Device as _, Durability};
    use status::Compression;

    pub(crate) const SHAPE: Shape = Shape {
        pages_logical: 100,
        pages_stored_max: 100,
        pages_mappable: 100,
        dies: 1,
        is_protected: false,
        unit_pages: 4,
        rows: 4,
        superblocks: 24,
        extents_per_page: 1,
        compression: Compression::None,
        journal_bytes: 1 << 20,
    };

    /// A drive without a flush, whose lists of rows fill its journal long before a checkpoint is
    /// due by its pages.
    #[test]
    fn lists_of_rows_that_fill_the_journal_bring_a_checkpoint() {
        let disks = Disks::formatted(&Shape { journal_bytes: 1 << 19, ..SHAPE });
        let drive = Drive::open_media(disks.media()).unwrap();
        let first = *lock(&drive.checkpoints);
        for number in 0..20_000_u64 {
            let page = number % 100;
            let content = [page.to_le_bytes()[0]; 4096];
            drive.write(page * 4096, &content, Durability::Volatile).unwrap();
            drive.list_completed(8).unwrap();
            let unlisted = drive.core().unwrap().completed.len();
            assert!(unlisted < 1024, "{unlisted} bytes of rows in no list after {number} pages");
        }
        assert!(*lock(&drive.checkpoints) > first, "the pages alone ask for none");
        drop(drive);
        let drive = Drive::open_media(disks.media()).unwrap();
        let mut page = [0; 4096];
        drive.read(99 * 4096, &mut page).unwrap();
        assert_eq!(page, [99; 4096]);
    }

    #[test]
    fn checkpoints_come_by_themselves_though_no_client_flushes() {
        let disks = Disks::formatted(&SHAPE);
        let drive = Drive::open_media(disks.media()).unwrap();
        let write = |count| {
            for page in 0..count {
                drive.write(page % 100 * 4096, &[1; 4096], Durability::Volatile).unwrap();
            }
            (*lock(&drive.checkpoints), drive.core().unwrap().seq)
        };
        let (first, seq) = write(0);
        assert!(!drive.is_checkpoint_due(seq + INTERVAL_MIN - 1));
        drive.checkpoint_due.store(seq + 2000, Ordering::Release);
        assert_eq!(write(1000).0, first);
        let (second, seq) = write(1000);
        assert_eq!(second, first + 1);
        assert!(!drive.is_checkpoint_due(seq) && drive.is_checkpoint_due(seq + INTERVAL_MIN));
        // What recovery has to do with is what came since.
        drop(drive);
        let drive = Drive::open_media(disks.media()).unwrap();
        assert_eq!(drive.core().unwrap().ftl.occupancy().pages_stored, 100);
    }
}
