//! Taking checkpoints while the host goes on.

use bytemuck::cast_slice;

use std::sync::TryLockError;
use std::sync::atomic::Ordering;

use super::{Drive, lock};
use crate::DeviceError;
use crate::checkpoint::{self, Summary, Writer};
use crate::dies::{DieSet, medium_error};
use crate::journal::Scope;
use crate::layout::FRAME_BYTES;
use crate::row::Rows;
use crate::store::Store;

/// Pages of a drive for each page that is placed between two checkpoints, at most: recovery has to
/// do with those, and a checkpoint writes four bytes for each page of the drive.
const INTERVAL_DIVISOR: u64 = 16;
/// Pages that are worth a checkpoint however small the drive is: 1 GiB.
const INTERVAL_MIN: u64 = 1 << 18;
/// Events after which a mark is made though nobody flushes, 1 GiB: recovery reads the whole of
/// what was programmed since the last one.
const MARK_INTERVAL: u64 = 1 << 18;

const _: () = assert!(cfg!(target_endian = "little"), "maps are saved as they lie in memory");

/// The event from which on a checkpoint is due, if the last one was begun at `order`.
pub(super) fn due_after(order: u64, store: &Store) -> u64 {
    let pages = u64::from(store.layout.shape.pages_mappable);
    order + (pages / INTERVAL_DIVISOR).max(INTERVAL_MIN)
}

/// The event from which on a mark is due, if the last one was made at `order`.
pub(super) const fn mark_due_after(order: u64) -> u64 {
    order + MARK_INTERVAL
}

impl Drive {
    /// Whether so much was programmed since the last mark that it is time for the next one.
    pub(super) fn is_mark_due(&self, order: u64) -> bool {
        order >= self.mark_due.load(Ordering::Acquire)
    }

    /// Makes a mark if it is time.
    pub(super) fn keep_marks(&self) -> Result<(), DeviceError> {
        self.mark(MARK_INTERVAL)
    }

    /// Makes durable what rows hold that were programmed, and says so in the journal, so that
    /// recovery need not read all of them: for a host that hardly ever flushes. Not within so many
    /// events of the mark before, nor while somebody else is at the journal, who makes one too.
    ///
    /// # Errors
    /// As [`crate::Device::flush`].
    pub(crate) fn mark(&self, interval: u64) -> Result<(), DeviceError> {
        self.check_sound()?;
        let mut journal = match self.journal.try_lock() {
            Ok(journal) => journal,
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Poisoned(_)) => return Err(self.panicked()),
        };
        let (order, dirty) = {
            let mut core = self.core_mut()?;
            let has_room = journal.used() + 3 * self.bytes_at_most(&core) <= journal.size;
            let is_late = core.order >= journal.mark + interval;
            let due = if is_late { core.order } else { journal.mark };
            self.mark_due.store(mark_due_after(due), Ordering::Release);
            if !has_room || !is_late {
                return Ok(());
            }
            (core.order, std::mem::take(&mut core.dirty))
        };
        // It is written when what it says has become true.
        journal.mark = order;
        journal.begin();
        self.noting(self.make_durable(&mut journal, Scope::Everything, dirty))
    }

    /// Whether so much happened since the last checkpoint that it is time for the next one.
    pub(super) fn is_checkpoint_due(&self, order: u64) -> bool {
        order >= self.checkpoint_due.load(Ordering::Acquire)
    }

    /// Takes a checkpoint if it is time, and nobody else is at it.
    pub(super) fn keep_checkpoints(&self) -> Result<(), DeviceError> {
        let is_free = self.checkpoints.try_lock().is_ok();
        let order = self.core()?.order;
        if is_free && self.is_checkpoint_due(order) { self.checkpoint() } else { Ok(()) }
    }

    /// Saves the map, so that what the journal holds and what rows were written before need not be
    /// looked at again.
    ///
    /// # Errors
    /// As [`crate::Device::flush`].
    pub fn checkpoint(&self) -> Result<(), DeviceError> {
        let mut next = lock(&self.checkpoints);
        let number = *next;
        let mut summary = Summary { number, drive: self.store.drive, ..Summary::default() };
        let (mut rows, mut erase_counts) = (Rows::new(0), Vec::new());
        {
            let mut journal = self.journal()?;
            (summary.journal, summary.session) = (journal.head, journal.session);
            let begun = self.commit_to(&mut journal, Scope::Again, |core| {
                summary.order = core.order;
                summary.pages = core.ftl.pages_logical();
                rows.clone_from(&core.rows);
                let ids = (0..self.store.layout.shape.superblocks).map(ftl::SuperblockId);
                erase_counts = ids.map(|id| core.ftl.erase_count(id)).collect();
            })?;
            if begun.is_none() {
                return self.noting(Err(DeviceError::Poisoned {
                    reason: "the journal has no room left for a checkpoint".to_owned(),
                }));
            }
        }
        let saved = self.save(&mut summary, &rows, &erase_counts);
        self.noting(saved.and_then(|()| self.keep_header()))?;
        *next = number + 1;
        let due = due_after(summary.order, &self.store);
        self.checkpoint_due.store(due, Ordering::Release);
        self.journal()?.tail = summary.journal.at;
        Ok(())
    }

    fn save(
        &self,
        summary: &mut Summary,
        rows: &Rows,
        erase_counts: &[u32],
    ) -> Result<(), DeviceError> {
        let copies = self.store.copies();
        let mut writer = Writer::new(summary.number);
        let [orders, outs] = rows.tables();
        for bytes in [orders, outs, cast_slice(erase_counts)] {
            for part in <[u8]>::chunks(bytes, FRAME_BYTES) {
                self.write_frame(&mut writer, copies, part)?;
            }
        }
        let mut part = Vec::with_capacity(FRAME_BYTES);
        for table in [MapTable::Places, MapTable::Sizes] {
            for from in (0..).step_by(FRAME_BYTES) {
                part.clear();
                {
                    let core = self.core()?;
                    let all: &[u8] = match table {
                        MapTable::Places => cast_slice(core.ftl.map_entries()),
                        MapTable::Sizes => core.ftl.extent_sizes(),
                    };
                    let Some(rest) = all.get(from..).filter(|rest| !rest.is_empty()) else { break };
                    part.extend_from_slice(&rest[..rest.len().min(FRAME_BYTES)]);
                }
                self.write_frame(&mut writer, copies, &part)?;
            }
        }
        // Whatever the pieces refer to is durable before they count.
        self.commit_for_checkpoint(summary)?;
        let slot = self.store.layout.checkpoint_from(summary.number % 2);
        let dies = &self.store.dies;
        checkpoint::complete(dies, copies, (slot, summary))
            .map_err(|(_, source)| medium_error("syncing a checkpoint".to_owned())(source))
    }

    fn commit_for_checkpoint(&self, summary: &mut Summary) -> Result<(), DeviceError> {
        let mut journal = self.journal()?;
        let committed = self.commit_to(&mut journal, Scope::Everything, |_| ())?;
        if committed.is_none() {
            // What was reserved for it is gone: everything once more needs no more than that.
            self.commit_to(&mut journal, Scope::Again, |_| ())?;
        }
        summary.mark = journal.mark;
        Ok(())
    }

    fn write_frame(
        &self,
        writer: &mut Writer,
        copies: DieSet,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let slot = self.store.layout.checkpoint_from(writer.number() % 2);
        let (at, frame) = writer.frame(bytes);
        copies.iter().try_for_each(|die| self.write_slot(die, slot + at, frame))
    }

    fn write_slot(&self, die: usize, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let written = self.store.dies.write_or_lose(die, offset, bytes);
        written.map_err(medium_error("writing a checkpoint".to_owned()))
    }
}

/// A table of the map, saved piece by piece.
#[derive(Clone, Copy, Debug)]
enum MapTable {
    Places,
    Sizes,
}

#[cfg(test)]
mod tests {
    use blockio::Rng;

    use super::*;
    use crate::simulation::Disks;
    use crate::{Compression, Device as _, Durability, Shape, format};

    const SHAPE: Shape = Shape {
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

    #[test]
    fn checkpoints_come_by_themselves_though_nobody_flushes() {
        let bytes = usize::try_from(SHAPE.die_bytes().0).unwrap();
        let disks = Disks::new(1, bytes, Rng::new(0));
        format(disks.media(), &SHAPE, 1).unwrap();
        let drive = Drive::open_media(disks.media()).unwrap();
        let write = |count| {
            for page in 0..count {
                drive.write(page % 100 * 4096, &[1; 4096], Durability::Volatile).unwrap();
            }
            (*lock(&drive.checkpoints), drive.core().unwrap().order)
        };
        let (first, order) = write(0);
        assert!(!drive.is_checkpoint_due(order + INTERVAL_MIN - 1));
        drive.checkpoint_due.store(order + 2000, Ordering::Release);
        assert_eq!(write(1000).0, first);
        let (second, order) = write(1000);
        assert_eq!(second, first + 1);
        assert!(!drive.is_checkpoint_due(order) && drive.is_checkpoint_due(order + INTERVAL_MIN));
        // What recovery has to do with is what came since.
        drop(drive);
        let drive = Drive::open_media(disks.media()).unwrap();
        assert_eq!(drive.core().unwrap().ftl.pages_stored(), 100);
    }
}
