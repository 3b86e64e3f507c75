//! Reading the remaining data of a drive that opening refuses.
//!
//! Opening refuses a drive of which something is proven to have existed and is not there. Recovery
//! goes on from the newest state that proves itself, or from an earlier checkpoint if that is
//! wanted, says what is doubtful, and reads pages with the same checks as an open drive: what is
//! returned was written to that page once, though it may not be what was written last. Nothing is
//! written to the dies. It is a [`Device`] that refuses writes, so that it can be exported.

use std::path::Path;
use std::sync::Arc;

use device::{Allocation, Device, DeviceError, Durability};
use ftl::Lpn;
use status::Compression;

use crate::engine::core::{Core, unreadable};
use crate::engine::dies::gathering::{GatheredDies, gather_all};
use crate::engine::dies::witness::Witness;
use crate::engine::drive::{Part, parts};
use crate::engine::log::recovery::{
    AccountedDrive, Doubts, JournaledPages, account, checkpoint_numbers, take_up,
};
use crate::engine::store::Store;
use crate::format::compress;
use crate::format::layout::{PAGE_BYTES, REPLICAS};
use crate::format::unit::Extent;
use crate::volume::folder_witness::FolderWitness;
use crate::volume::listed_dies::open_dies;
use crate::volume::opening::view_buffer;
use crate::{BufferMemory, FileMedium, Medium, OpenError, UnlockingKey};

/// Outcome of reading a page of a recovered drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveredPage {
    /// Nothing is stored: it reads as zeroes.
    Unmapped,
    /// Its contents were read, and are what was once written to it.
    Read,
    /// The page is stored, and cannot be read.
    Lost,
}

/// A drive that is opened for reading its remaining data.
#[derive(Debug)]
pub struct RecoveredVolume {
    store: Store,
    core: Core,
    /// Pages that only the journal holds.
    pending: JournaledPages,
    doubts: Vec<String>,
    checkpoint: u64,
    checkpoints: Vec<u64>,
}

impl RecoveredVolume {
    /// Opens the drive of a folder for reading, from a checkpoint by its number or else from the
    /// newest that can be read; `key` is that of an encrypted volume.
    ///
    /// # Errors
    /// Fails without that key, or if there is no drive, it is in use, no die has a header, or no
    /// such checkpoint is whole.
    pub fn open(
        volume: &Path,
        checkpoint: Option<u64>,
        key: Option<&UnlockingKey>,
    ) -> Result<Self, OpenError> {
        let (media, listing) = open_dies(volume, FileMedium::view)?;
        let witness = Some(FolderWitness::attached(volume));
        let buffer = view_buffer(volume)?;
        let mut recovered = Self::open_proven(media, witness, Some(&*buffer), checkpoint, key)?;
        recovered.doubts.extend(listing.foreign());
        Ok(recovered)
    }

    /// As [`RecoveredVolume::open`], of the drive whose dies these media are, in any order.
    ///
    /// # Errors
    /// As [`RecoveredVolume::open`].
    pub fn open_media(
        media: Vec<Box<dyn Medium>>,
        checkpoint: Option<u64>,
    ) -> Result<Self, OpenError> {
        Self::open_proven(media, None, None, checkpoint, None)
    }

    /// As [`RecoveredVolume::open_media`], with what the folder proves, and with what the death of
    /// a server left in the write buffer.
    fn open_proven(
        media: Vec<Box<dyn Medium>>,
        witness: Option<Arc<dyn Witness>>,
        buffer: Option<&dyn BufferMemory>,
        checkpoint: Option<u64>,
        key: Option<&UnlockingKey>,
    ) -> Result<Self, OpenError> {
        let GatheredDies { mut store, header, unused } = gather_all(media, witness)?;
        store.unlock(&header, key)?;
        if let Some(buffer) = buffer {
            // One that does not count is as good as none, as after a power loss.
            let _ = take_up(&mut store, &header, buffer);
        }
        let mut doubts = Doubts { is_recovery: true, checkpoint, ..Doubts::default() };
        doubts.found.extend(unused.into_iter().map(|unused| unused.text));
        let missed = store.dies.missed().count();
        if missed as usize >= REPLICAS {
            let dies = store.layout.shape.dies;
            doubts.found.push(format!(
                "{missed} of {dies} dies are missing, and may have had both copies of what was \
                 written last"
            ));
        }
        let checkpoints = checkpoint_numbers(&store);
        let accounted = account(&store, &header, &mut doubts)?;
        let AccountedDrive { ftl, rows, summary, pending, checkpoints_damaged, .. } = accounted;
        if checkpoint.is_none() {
            let newer = checkpoints_damaged.iter().map(|it| {
                let used = summary.number;
                format!("checkpoint {it} cannot be read; checkpoint {used} is used instead")
            });
            doubts.found.extend(newer);
        }
        let core = Core::new(store.layout.clone(), store.drive, ftl, rows, u64::MAX >> 1);
        let (doubts, checkpoint) = (doubts.found, summary.number);
        Ok(Self { store, core, pending, doubts, checkpoint, checkpoints })
    }

    /// Returns the doubts about the drive, one sentence each; none if it would open.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// The number of the checkpoint that it was opened from.
    pub const fn checkpoint(&self) -> u64 {
        self.checkpoint
    }

    /// Numbers of the checkpoints that the dies name, the newest first.
    pub fn checkpoints(&self) -> &[u64] {
        &self.checkpoints
    }

    /// Pages of 4096 bytes that clients addressed.
    pub fn pages(&self) -> u32 {
        self.core.ftl.config().pages_logical
    }

    /// Returns the compression of its pages.
    pub const fn compression(&self) -> Compression {
        self.store.layout.shape.compression
    }

    /// Reads a page; `page` is zeroes unless its contents were read.
    pub fn read(&self, index: u32, page: &mut [u8; PAGE_BYTES]) -> RecoveredPage {
        let (lpn, keys) = (Lpn(index), self.store.keys());
        if let Some((extent, payload)) = self.pending.get(&index) {
            let unpacked = compress::unpack(keys.as_deref(), extent, payload, page);
            return unpacked.map_or(RecoveredPage::Lost, |()| RecoveredPage::Read);
        }
        if !self.is_stored(lpn) {
            page.fill(0);
            return RecoveredPage::Unmapped;
        }
        let found = self.core.locate(lpn).stored().and_then(|it| self.store.find_extent(it));
        let found = found.filter(|(extent, _)| extent.lpn == lpn);
        let unpack = |(extent, payload): (Extent, Vec<u8>)| {
            compress::unpack(keys.as_deref(), &extent, &payload, page)
        };
        if found.and_then(unpack).is_some() {
            RecoveredPage::Read
        } else {
            page.fill(0);
            RecoveredPage::Lost
        }
    }

    fn is_stored(&self, lpn: Lpn) -> bool {
        self.pending.contains_key(&lpn.0) || self.core.place_of(lpn).is_some()
    }
}

impl Device for RecoveredVolume {
    fn size(&self) -> u64 {
        u64::from(self.pages()) * PAGE_BYTES as u64
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.check_range(offset, buffer.len() as u64)?;
        let mut page = [0; PAGE_BYTES];
        let mut rest = &mut *buffer;
        for Part { lpn, from, length } in parts(offset, rest.len() as u64) {
            let (here, after) = rest.split_at_mut(length);
            if Self::read(self, lpn.0, &mut page) == RecoveredPage::Lost {
                return Err(unreadable(lpn));
            }
            here.copy_from_slice(&page[from..from + length]);
            rest = after;
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8], _: Durability) -> Result<(), DeviceError> {
        self.check_range(offset, bytes.len() as u64)?;
        Err(DeviceError::ReadOnly)
    }

    /// Does nothing: nothing was acknowledged.
    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64, _: Durability) -> Result<(), DeviceError> {
        self.check_range(offset, length)?;
        Err(DeviceError::ReadOnly)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.check_range(offset, length)?;
        let mut runs: Vec<Allocation> = Vec::new();
        for Part { lpn, length, .. } in parts(offset, length) {
            let (length, is_stored) = (length as u64, self.is_stored(lpn));
            match runs.last_mut().filter(|run| run.is_stored == is_stored) {
                Some(run) => run.length += length,
                None => runs.push(Allocation { length, is_stored }),
            }
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use blockio::Rng;

    use super::*;
    use crate::format::layout::Layout;
    use crate::simulation::Disks;
    use crate::volume::example::ONE_DIE;
    use crate::{Drive, format};

    /// A drive with two generations of pages, the second written after a checkpoint, and a crash.
    fn crashed() -> Disks {
        let bytes = usize::try_from(ONE_DIE.die_bytes().0).expect("a small drive");
        let disks = Disks::new(1, bytes, Rng::new(0));
        format(disks.media(), &ONE_DIE, 1).unwrap();
        let drive = Drive::open_media(disks.media()).unwrap();
        for page in 0..20 {
            drive.write(page * 4096, &[1; 4096], Durability::Volatile).unwrap();
        }
        drive.checkpoint().unwrap();
        for page in 0..10 {
            drive.write(page * 4096, &[2; 4096], Durability::Durable).unwrap();
        }
        drop(drive);
        disks
    }

    #[test]
    fn what_is_whole_raises_no_doubt_and_is_read_as_it_is() {
        let recovered = RecoveredVolume::open_media(crashed().media(), None).unwrap();
        assert_eq!(recovered.doubts(), [] as [&str; 0]);
        let mut page = [0; PAGE_BYTES];
        for index in 0..ONE_DIE.pages_logical {
            let read = recovered.read(index, &mut page);
            let expected = match index {
                0..10 => (RecoveredPage::Read, 2),
                10..20 => (RecoveredPage::Read, 1),
                _ => (RecoveredPage::Unmapped, 0),
            };
            assert_eq!((read, page[7]), expected, "page {index}");
        }
    }

    #[test]
    fn a_gap_in_the_journal_that_opening_refuses_is_a_doubt_and_the_rest_is_read() {
        let disks = crashed();
        let layout = Layout::new(&ONE_DIE);
        let heads: Vec<usize> = (0..ONE_DIE.regions())
            .map(|region| usize::try_from(layout.journal_from(region)).unwrap())
            .collect();
        // Both copies of a batch in the middle of those since the checkpoint.
        let mut journal = vec![0; usize::try_from(ONE_DIE.journal_bytes).unwrap()];
        disks.media()[0].read_at(layout.journal_from(0), &mut journal).unwrap();
        let is_batch = |at: &usize| journal[*at..].starts_with(b"FLGTjrnl");
        let batches: Vec<usize> = (0..journal.len()).step_by(512).filter(is_batch).collect();
        let middle = batches[batches.len() - 5];
        for head in heads {
            disks.damage(0, head + middle + 100..head + middle + 101, |byte| byte ^ 1);
        }
        let refused = Drive::open_media(disks.media()).unwrap_err().to_string();
        assert!(refused.contains("is lost, though a later one was written"), "{refused}");
        let recovered = RecoveredVolume::open_media(disks.media(), None).unwrap();
        let [gap, unit] = recovered.doubts() else { panic!("{:?}", recovered.doubts()) };
        assert!(refused.contains(gap) && unit.contains("a unit was programmed after batch"));
        let mut page = [0; PAGE_BYTES];
        let newer = (0..20).filter(|index| {
            assert_eq!(recovered.read(*index, &mut page), RecoveredPage::Read);
            page[0] == 2
        });
        // Those that were flushed before the gap, and what later units give back.
        assert!(newer.count() >= 6);
    }

    #[test]
    fn it_is_a_device_that_is_read_as_the_drive_was_and_refuses_writes() {
        let disks = crashed();
        let before = disks.contents();
        let recovered = RecoveredVolume::open_media(disks.media(), None).unwrap();
        let device: &dyn Device = &recovered;
        assert_eq!(device.size(), 60 * 4096);
        let mut across = [9; 6000];
        device.read(19 * 4096 - 100, &mut across).unwrap();
        assert!(across[..100 + 4096].iter().all(|byte| *byte == 1));
        assert!(across[100 + 4096..].iter().all(|byte| *byte == 0), "never written");
        let runs = device.allocations(0, device.size()).unwrap();
        let runs: Vec<_> = runs.iter().map(|run| (run.length / 4096, run.is_stored)).collect();
        assert_eq!(runs, [(20, true), (40, false)]);
        let written = device.write(0, &[1; 512], Durability::Volatile);
        assert!(matches!(written, Err(DeviceError::ReadOnly)), "{written:?}");
        let trimmed = device.trim(0, 4096, Durability::Durable);
        assert!(matches!(trimmed, Err(DeviceError::ReadOnly)), "{trimmed:?}");
        let beyond = device.read(60 * 4096 - 1, &mut [0; 2]);
        assert!(matches!(beyond, Err(DeviceError::OutOfRange { .. })), "{beyond:?}");
        device.flush().unwrap();
        assert!(disks.contents() == before, "a die was written");
    }

    #[test]
    fn a_page_that_is_lost_is_an_error_with_its_sector() {
        let disks = crashed();
        let recovered = RecoveredVolume::open_media(disks.media(), None).unwrap();
        let layout = &recovered.store.layout;
        let place = layout.place(recovered.core.place_of(Lpn(15)).unwrap());
        let extents = usize::try_from(layout.unit_from(place.row)).unwrap() + layout.extents_from;
        // What is behind the header of the extent.
        let payload = extents + place.slot as usize * 4128 + 32;
        disks.damage(0, payload..payload + 1, |byte| byte ^ 1);
        let device: &dyn Device = &recovered;
        let lost = device.read(14 * 4096, &mut [0; 8192]).unwrap_err();
        assert!(matches!(lost, DeviceError::Unreadable { lba: 120, .. }), "{lost}");
        device.read(14 * 4096, &mut [0; 4096]).unwrap();
    }

    #[test]
    fn an_earlier_checkpoint_is_read_where_it_is_asked_for() {
        let disks = crashed();
        let recovered = RecoveredVolume::open_media(disks.media(), None).unwrap();
        let [newest, earlier] = recovered.checkpoints() else { panic!("two slots") };
        assert_eq!(recovered.checkpoint(), *newest);
        let recovered = RecoveredVolume::open_media(disks.media(), Some(*earlier)).unwrap();
        assert_eq!(recovered.checkpoint(), *earlier);
        let missing = RecoveredVolume::open_media(disks.media(), Some(77)).unwrap_err().to_string();
        assert!(missing.contains("no die holds an intact copy of checkpoint 77"), "{missing}");
    }
}
