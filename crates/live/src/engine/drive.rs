//! The drive that stores: a [`Device`] over dies.
//!
//! ```text
//!  write ─► core (exclusive): place, copy into the row's unit ─► program full units ─► answer
//!  read  ─► core (shared): where? ─► medium, checked ─► stripe, if it was not right
//!  flush ─► journal: sync the dies that were written; what is in unfinished rows goes to the ring
//! ```
//!
//! Dies are read and programmed without the lock of the core ([`Drive::act`]).
//!
//! Locks are taken in this order: checkpoints, victim, journal, programming, core, header, those of
//! the [dies](crate::engine::dies::Dies). No thread waits for another beyond them, and none is
//! handed a request.

mod atomic;
mod checkpoint;
mod commit;
pub(crate) mod creation;
mod execution;
mod formatting;
mod keys;
mod promise;
pub(crate) mod queue;
mod read;
mod redundancy;
mod relocation;
pub(crate) mod scrub;
mod write;

#[cfg(test)]
pub(crate) use self::checkpoint::tests::SHAPE as SMALL_SHAPE;

use self::execution::DeferredPrograms;
pub use self::formatting::Beyond;
use self::promise::WritePromise;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError,
};

use blockio::Bytes;
use device::{Allocation, Device, DeviceError, Durability, ReadPart};
use ftl::Lpn;
use status::Life;
use status::{Health, HostShortage, Led, MaintenanceStatus, Promise, State, Status};

use crate::description::{self, SessionCounts};
use crate::engine::core::write_buffer::WriteBuffer;
use crate::engine::core::{Core, PageLocation};
use crate::engine::dies::gathering::UnusedMedium;
use crate::engine::dies::header_copies;
use crate::engine::dies::headroom::Headroom;
use crate::engine::dies::witness::Witness;
use crate::engine::log::journal::{Journal, Scope};
use crate::engine::store::Store;
use crate::engine::store::victim_unit::VictimUnit;
use crate::format::header::{Closing, Header};
use crate::format::layout::PAGE_BYTES;
use crate::format::page_set::PageSet;
use crate::format::position::Position;
use crate::lock::lock;

/// A drive over dies. Dropping it is what a crash of the process is; see [`Drive::close`].
///
/// ```
/// # use blockio::Bytes;
/// # use live::{Compression, CreateOptions, Preallocation, VolumeOptions};
/// use live::{Device as _, Drive, Durability};
/// # let folder = tempfile::tempdir()?;
/// # let volume = folder.path().join("volume");
/// # let options = CreateOptions {
/// #     volume: volume.clone(), dies: vec![folder.path().join("d0.img")], size: Bytes(8 << 20),
/// #     is_protected: false, over_provisioning: 0.15, compression: Compression::None,
/// #     physical: None, unit: None,
/// # };
/// # let sparse = VolumeOptions { preallocation: Preallocation::Off, ..VolumeOptions::default() };
/// # live::create(&options, &sparse)?;
///
/// let drive = Drive::open(&volume)?;
/// // Acknowledged as soon as it is seen by others; the flush is what makes it last.
/// drive.write(0, b"first", Durability::Volatile)?;
/// drive.flush()?;
/// // Several ranges at once: after a crash there are all of them, or none.
/// drive.atomic_write(&[(4096, b"head"), (1 << 20, b"body")])?;
/// drive.trim(0, 4096, Durability::Volatile)?;
///
/// let mut read = [0xff; 4];
/// drive.read(0, &mut read)?;
/// assert_eq!(read, [0; 4], "what was trimmed reads as zeroes");
/// assert!(drive.counters()?.pages_host >= 3);
/// drive.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Drive {
    store: Store,
    core: RwLock<Core>,
    /// Shared by threads that have decided programs until these are completed.
    programming: RwLock<()>,
    /// Programs that a simulation of several threads has wait.
    deferred: Mutex<Option<DeferredPrograms>>,
    /// The unit that relocation moves pages from; held by the thread that relocates.
    victim: Mutex<VictimUnit>,
    journal: Mutex<Journal>,
    /// Number of the next checkpoint.
    checkpoints: Mutex<u64>,
    /// Event from which on it is due, whatever the journal holds.
    checkpoint_due: AtomicU64,
    /// Event from which on it is time to say what is durable, though no client flushes.
    listing_due: AtomicU64,
    header: Mutex<Header>,
    maintenance: Mutex<MaintenanceStatus>,
    /// The count of events, and the number of the next checkpoint, when it was opened.
    opened_at: (u64, u64),
    /// Bytes that clients wrote since it was opened.
    sent_bytes: AtomicU64,
    /// Pages that clients address.
    pages: AtomicU32,
    /// The failed dies that rows were last chosen for, as a
    /// [`DieSet`](crate::format::die_set::DieSet).
    adapted: AtomicU64,
    /// Bytes that clients may write before the host is asked for its free space again.
    pub(crate) headroom: Headroom,
    /// Media that were given when it was opened and are not used, with why.
    unused: Vec<UnusedMedium>,
    /// Failure after which the drive takes no more writes, if there was one.
    poison: OnceLock<String>,
    /// True while a purge is under way.
    is_purging: AtomicBool,
    /// Promise about acknowledged writes.
    promised: WritePromise,
}

impl Drive {
    /// Free space of the host that is too little for a write of one page, or for one that was
    /// refused; none where there is enough.
    pub fn host_shortage(&self) -> Option<HostShortage> {
        self.headroom.shortage(self.store())
    }

    pub(crate) fn assemble(
        store: Store,
        mut core: Core,
        journal: Journal,
        header: &Header,
        checkpoint: u64,
    ) -> Self {
        core.key = store.packing().key();
        Self {
            opened_at: (core.seq, checkpoint),
            checkpoint_due: AtomicU64::new(checkpoint::due_after(core.seq, &store)),
            listing_due: AtomicU64::new(checkpoint::listing_due_after(core.seq)),
            sent_bytes: AtomicU64::new(0),
            pages: AtomicU32::new(core.ftl.config().pages_logical),
            adapted: AtomicU64::new(core.out.0),
            store,
            core: RwLock::new(core),
            programming: RwLock::new(()),
            deferred: Mutex::new(None),
            victim: Mutex::default(),
            journal: Mutex::new(journal),
            checkpoints: Mutex::new(checkpoint),
            header: Mutex::new(*header),
            maintenance: Mutex::default(),
            headroom: Headroom::default(),
            unused: Vec::new(),
            poison: OnceLock::new(),
            is_purging: AtomicBool::new(false),
            promised: WritePromise::default(),
        }
    }

    /// Takes up what is to be told of a start from an earlier state, if there was one: the pages
    /// that were not written since.
    pub(crate) fn take_up_stale_start(&mut self) {
        let Some(start) = self.store.dies.stale_start() else { return };
        let noted = self.store.dies.witness().and_then(|witness| witness.older(&start));
        let core = self.core.get_mut().unwrap_or_else(PoisonError::into_inner);
        let pages = core.ftl.config().pages_logical;
        core.older = Some(noted.unwrap_or_else(|| PageSet::full(pages)));
    }

    /// Notes outside of the dies that nothing is older than a start from an earlier state.
    pub(crate) fn note_renewed(&self) {
        if let Some(witness) = self.store.dies.witness() {
            witness.note_renewed();
        }
    }

    pub(crate) fn set_unused_media(&mut self, unused: Vec<UnusedMedium>) {
        self.unused = unused;
    }

    /// Media that were given when the drive was opened and are not used as dies, one sentence each:
    /// of another drive, with an earlier state, or too short.
    pub fn unused_media(&self) -> impl Iterator<Item = &str> {
        self.unused.iter().map(|unused| unused.text.as_str())
    }

    /// Number of this opening of the drive.
    pub(crate) fn session(&self) -> u64 {
        lock(&self.header).session
    }

    /// Position after the last batch of the journal.
    pub(crate) fn journal_end(&self) -> Position {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).head
    }

    /// Has a write buffer from now on.
    pub(crate) fn set_buffer(&self, buffer: WriteBuffer) {
        self.store.set_buffer(Arc::clone(buffer.state()));
        self.core.write().unwrap_or_else(PoisonError::into_inner).buffer = Some(buffer);
    }

    /// Pages that are known to be lost: they were found unreadable, in this session or before, and
    /// were neither written nor trimmed since.
    ///
    /// # Errors
    /// [`DeviceError::Poisoned`].
    pub fn lost_pages(&self) -> Result<u64, DeviceError> {
        Ok(self.core()?.lost.count())
    }

    /// First sectors of up to `most` of the pages that are known to be lost, in order.
    ///
    /// # Errors
    /// [`DeviceError::Poisoned`].
    pub fn lost_lbas(&self, most: usize) -> Result<Vec<u64>, DeviceError> {
        Ok(self.core()?.lost.lbas(most))
    }

    /// Makes everything durable and says so on the media, so that opening is quick.
    ///
    /// # Errors
    /// As [`Device::flush`]; what was flushed before is safe all the same.
    pub fn close(self) -> Result<(), DeviceError> {
        let now = (self.core()?.seq, *lock(&self.checkpoints));
        let mut checkpoint = lock(&self.header).closing.checkpoint;
        if now != self.opened_at || checkpoint == 0 {
            // What rows hold that are not complete would have to be written anew.
            self.act(Core::finish_rows)?;
            self.commit(Scope::Everything)?;
            self.checkpoint()?;
            checkpoint = *lock(&self.checkpoints) - 1;
        }
        let journal = self.journal()?.head;
        let mut header = lock(&self.header);
        header.is_open = false;
        header.closing = Closing { checkpoint, journal };
        let written = header_copies::write(&mut header, &self.store.dies);
        written.map_err(|(die, source)| DeviceError::Medium {
            attempted: format!("writing the header of die {die}"),
            source,
        })?;
        if let Some(buffer) = self.store.buffer() {
            buffer.discard();
        }
        Ok(())
    }

    /// Returns the counters of the translation layer since the drive was opened.
    ///
    /// # Errors
    /// [`DeviceError::Poisoned`].
    pub fn counters(&self) -> Result<ftl::Counters, DeviceError> {
        Ok(self.core()?.ftl.counters())
    }

    /// Space that data takes, and the most that it may take.
    ///
    /// # Errors
    /// [`DeviceError::Poisoned`].
    pub fn space(&self) -> Result<(Bytes, Bytes), DeviceError> {
        let core = self.core()?;
        let occupancy = core.ftl.occupancy();
        Ok((occupancy.stored, occupancy.stored_max))
    }

    /// Returns the status of the open drive: state, health, space, wear and traffic.
    pub fn status(&self) -> Status {
        let header = *lock(&self.header);
        let reason = self.poison.get().cloned();
        // After a panic numbers may be off; they are asked for all the more.
        let core = self.core.read().unwrap_or_else(PoisonError::into_inner);
        let mut maintenance = lock(&self.maintenance).clone();
        maintenance.stale_start = self.store.dies.stale_start();
        if let Some(start) = &mut maintenance.stale_start {
            start.pages_older = core.older.as_ref().map(PageSet::count);
        }
        maintenance.witness_failure = self.store.dies.witness().and_then(Witness::failure);
        let units = self.store.layout.data_units_left(core.out);
        let status = Status {
            schema: status::SCHEMA,
            drive: status::drive_id(self.store.drive),
            name: String::new(),
            folder: String::new(),
            health: Health::default(),
            state: State::Open,
            reason: None,
            refusal: None,
            led: Led::Attached,
            is_locate_led_on: false,
            format: description::format(&header, units),
            smart: description::smart(&header, Some(&core.ftl)),
            pages_lost: Some(core.lost.count()),
            lost_lbas: core.lost.lbas(status::LOST_LBAS_MAX),
            acknowledged_survives: Some(self.promise()),
            write_through_reason: self.write_through_reason(),
            write_buffer: None,
            dies: self.store.members(&header),
            hot_spares: 0,
            namespaces: Vec::new(),
            space: Some(description::space(&core.ftl)),
            wear: Some(description::wear(&core.ftl)),
            writes: None,
            life: Life::default(),
            maintenance,
            server: None,
        };
        let counts = SessionCounts {
            pages_lost: core.lost.found(),
            rebuild_bytes: self.store.dies.rebuilt_bytes(),
            host_sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
        };
        let places = self.store.bad_places.describe(&self.store.layout, Some(&core.ftl));
        let status = description::opened(status, &core.ftl, counts, reason);
        status.with_bad_places(places).judged()
    }

    /// Bytes that each die has at least.
    pub fn die_bytes(&self) -> Bytes {
        self.store.layout.shape.die_bytes()
    }

    /// Dies that the drive does without, by index.
    pub fn lost_dies(&self) -> Vec<usize> {
        let lost = self.store.dies.lost();
        (0..self.store.dies.count()).filter(|die| lost.has(*die)).collect()
    }

    /// Has `see` look at the newest header, which does not change meanwhile.
    pub(crate) fn with_header<T>(&self, see: impl FnOnce(&Header) -> T) -> T {
        see(&lock(&self.header))
    }

    /// Writes both copies of the header of every die again.
    pub(crate) fn rewrite_header(&self) -> Result<(), DeviceError> {
        self.noting(header_copies::write_to_all(&mut lock(&self.header), &self.store.dies))
    }

    /// Has `see` look at the number of the newest checkpoint and that of the next batch of the
    /// journal. No checkpoint is taken meanwhile.
    pub(crate) fn with_checkpoint<T>(
        &self,
        see: impl FnOnce(u64, u64) -> T,
    ) -> Result<T, DeviceError> {
        let next = lock(&self.checkpoints);
        let end = self.journal()?.head.number;
        Ok(see(*next - 1, end))
    }

    /// Pages that clients address.
    pub(crate) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Acquire)
    }

    /// Status of background work: rebuild, restoring redundancy, scrub, purge.
    pub(crate) fn maintenance(&self) -> MutexGuard<'_, MaintenanceStatus> {
        lock(&self.maintenance)
    }

    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn core(&self) -> Result<RwLockReadGuard<'_, Core>, DeviceError> {
        self.core.read().map_err(|_| self.panicked())
    }

    pub(crate) fn core_mut(&self) -> Result<RwLockWriteGuard<'_, Core>, DeviceError> {
        let mut core = self.core.write().map_err(|_| self.panicked())?;
        core.batches = self.store.batches_durable();
        Ok(core)
    }

    fn journal(&self) -> Result<MutexGuard<'_, Journal>, DeviceError> {
        self.journal.lock().map_err(|_| self.panicked())
    }

    /// The journal; none while another thread holds it.
    fn journal_if_free(&self) -> Result<Option<MutexGuard<'_, Journal>>, DeviceError> {
        match self.journal.try_lock() {
            Ok(journal) => Ok(Some(journal)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Poisoned(_)) => Err(self.panicked()),
        }
    }

    fn panicked(&self) -> DeviceError {
        let reason = self.poison.get_or_init(|| "a thread of the drive panicked".to_owned());
        DeviceError::Poisoned { reason: reason.clone() }
    }

    /// Refuses to go on after a failure.
    fn check_sound(&self) -> Result<(), DeviceError> {
        match self.poison.get() {
            Some(reason) => Err(DeviceError::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Takes note of a failure that makes any further promise impossible.
    pub(super) fn noting<T>(&self, result: Result<T, DeviceError>) -> Result<T, DeviceError> {
        if let Err(error @ DeviceError::Medium { .. }) = &result {
            let _ = self.poison.set(error.to_string());
        }
        result
    }
}

/// The part of a page that a range covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) lpn: Lpn,
    /// First byte within the page.
    pub(crate) from: usize,
    pub(crate) length: usize,
}

/// The pages that `length` bytes from `offset` on lie in.
pub(crate) fn parts(offset: u64, length: u64) -> impl Iterator<Item = Part> {
    let page_bytes = PAGE_BYTES as u64;
    let mut at = offset;
    let end = offset + length;
    std::iter::from_fn(move || {
        let lpn = u32::try_from(at / page_bytes).ok()?;
        let until = end.min((u64::from(lpn) + 1) * page_bytes);
        let from = usize::try_from(at % page_bytes).ok()?;
        let length = usize::try_from(until.checked_sub(at)?).ok().filter(|length| *length > 0)?;
        at = until;
        Some(Part { lpn: Lpn(lpn), from, length })
    })
}

impl Device for Drive {
    fn size(&self) -> u64 {
        u64::from(self.pages()) * PAGE_BYTES as u64
    }

    /// A page gets its new place at once.
    fn atomic_bytes(&self) -> u64 {
        PAGE_BYTES as u64
    }

    fn is_write_through(&self) -> bool {
        self.promise() == Promise::PowerLoss
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.read_ranges(&mut [ReadPart { offset, buffer }]).pop().expect("one answer to one read")
    }

    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        self.read_ranges(reads)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        self.check_range(offset, bytes.len() as u64)?;
        self.check_sound()?;
        self.headroom.take(&self.store, bytes.len() as u64)?;
        self.noting(self.write_range(offset, bytes))?;
        self.sent_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.settle(durability)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.commit(Scope::Host)
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.check_range(offset, length)?;
        self.check_sound()?;
        self.noting(self.trim_range(offset, length))?;
        self.settle(durability)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.check_range(offset, length)?;
        let core = self.core()?;
        let mut runs: Vec<Allocation> = Vec::new();
        for Part { lpn, length, .. } in parts(offset, length) {
            let is_stored = core.locate(lpn) != PageLocation::Nowhere;
            let length = length as u64;
            match runs.last_mut().filter(|run| run.is_stored == is_stored) {
                Some(run) => run.length += length,
                None => runs.push(Allocation { length, is_stored }),
            }
        }
        Ok(runs)
    }
}
