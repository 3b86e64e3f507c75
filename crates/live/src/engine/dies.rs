//! The dies of a drive: media, some of which may have failed.

mod damage_rate;
pub(crate) mod erasure;
pub(crate) mod gathering;
pub(crate) mod header_copies;
pub(crate) mod headroom;
mod membership;
mod room;
pub(crate) mod signature;
pub(crate) mod witness;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use device::DeviceError;
use device::is_host_full;
use status::{DieState, NotErased};

use self::damage_rate::DamageRate;
use crate::engine::core::program::Program;
use crate::engine::dies::witness::Witness;
use crate::format::die_set::DieSet;
use crate::format::layout::{HEADER_BYTES, PAGE_BYTES};
use crate::lock::lock;
use crate::medium::{file_of, overwrite, read_all, write_and_sync};
use crate::mutants::{self, Mutant};
use crate::{Access, FileMedium, Medium, MediumRead, MediumWrite, Preallocation};

/// Damaged places of a die in an hour that are no problem, unless something else is chosen: as many
/// read errors as Linux lets a member of a RAID correct in an hour (`max_read_errors` of md).
const DAMAGE_LIMIT: u64 = 20;

/// Request to read from a die.
#[derive(Debug)]
pub(crate) struct DieRead<'a, 'b> {
    pub(crate) die: usize,
    pub(crate) offset: u64,
    /// Buffers, filled one after the other.
    pub(crate) buffers: &'a mut [IoSliceMut<'b>],
}

/// Medium of a die at a time at which it held all that it should; none at another time.
#[derive(Debug)]
pub(crate) struct CompleteMedium {
    die: usize,
    bay: Bay,
}

impl CompleteMedium {
    /// True if there was one, and it is that of the die still.
    pub(crate) fn is_in_place(&self, dies: &Dies) -> bool {
        dies.is_in_place(self.die, &self.bay)
    }
}

/// Stand-in for the medium of a failed die; every command to it fails.
#[derive(Debug)]
struct FailedMedium;

impl FailedMedium {
    fn error<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::NotConnected, "the die has failed"))
    }
}

impl Medium for FailedMedium {
    fn size(&self) -> u64 {
        0
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Self::error()
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Self::error()
    }

    fn sync(&self) -> io::Result<()> {
        Self::error()
    }
}

/// The place of a medium; none: the die has failed. A thread that asks something of the medium has
/// a share of it and no lock until it has acted on the answer, so that a die whose requests hang
/// can be given up, and no failure of it counts as one of its successor.
type Bay = Option<Arc<dyn Medium>>;

/// All dies; those that failed are without medium.
///
/// Locks are taken in this order: `syncs` of ascending dies, `changing`, `media` or `given_up`.
/// Those of `media` are held while nothing is asked of a medium.
#[derive(Debug)]
pub(crate) struct Dies {
    media: Vec<RwLock<Bay>>,
    /// Of each die the last medium that was given up, as long as requests to it are under way.
    given_up: Vec<Mutex<Option<Weak<dyn Medium>>>>,
    /// Of each die, held while it is made durable; the error of the sync that failed.
    syncs: Vec<Mutex<Option<SyncFailure>>>,
    /// Held while one of the sets that follow is changed.
    changing: Mutex<()>,
    /// Failed dies, as a [`DieSet`].
    lost: AtomicU64,
    /// Dies whose contents are being restored, as a [`DieSet`].
    filling: AtomicU64,
    /// Dies among those that hold their units of all rows, and take copies of the journal and of
    /// checkpoints as well, as a [`DieSet`].
    joining: AtomicU64,
    /// Failed dies that no row has a unit on, as a [`DieSet`].
    removed: AtomicU64,
    /// Media that failed since a purge began, which it does not reach any more, each with the die
    /// that it was.
    unreached: Mutex<Vec<NotErased>>,
    /// True if rows have parity, so that each survives the loss of one die.
    is_protected: bool,
    traffic: Vec<TransferCounts>,
    /// Bytes written since the drive was opened that restored units.
    rebuilt_bytes: AtomicU64,
    /// Most damaged places of a die in an hour that are no problem.
    damage_limit: AtomicU64,
    /// Dies that did not respond when something was wanted that no other die gives back, as a
    /// [`DieSet`], until all respond.
    silent: AtomicU64,
    /// Proof, outside of the dies, of what they must hold; none of a drive without a folder.
    witness: OnceLock<Arc<dyn Witness>>,
}

/// Failure of a sync of a die, which the system tells once: a thread that syncs the die afterwards,
/// or waited while it was synced, must not take what was written before for durable.
#[derive(Debug)]
struct SyncFailure {
    /// Number of the error, where the system gave one.
    code: Option<i32>,
    text: String,
}

impl SyncFailure {
    fn of(error: &io::Error) -> Self {
        Self { code: error.raw_os_error(), text: error.to_string() }
    }

    fn error(&self) -> io::Error {
        let other = || io::Error::other(format!("an earlier sync failed: {}", self.text));
        self.code.map_or_else(other, io::Error::from_raw_os_error)
    }
}

/// Bytes moved since the drive was opened, and requests that failed.
#[derive(Debug, Default)]
struct TransferCounts {
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    failures: AtomicU64,
    /// Reads that the rest of the row answered, and places that they found damaged.
    reconstructed: AtomicU64,
    damaged: Mutex<DamageRate>,
    /// Time of the last write that succeeded, in seconds since 1970; 0: none did.
    written_at: AtomicU64,
    /// Error of the last failed request, and the kind of request.
    failure: Mutex<Option<String>>,
    /// Name of the medium that failed last; empty where it failed before the drive was opened.
    gone: Mutex<String>,
}

impl TransferCounts {
    /// Damaged places that reads found, all and those of the last hour.
    fn damaged_places(&self) -> (u64, u64) {
        let mut damaged = lock(&self.damaged);
        (damaged.total, damaged.of_hour(now_unix_s() / 60))
    }

    fn gone(&self) -> MutexGuard<'_, String> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a failed request, and keeps its error as the last one.
    fn fail(&self, what: &str, error: &io::Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(format!("{what} error: {error}"));
    }
}

impl Dies {
    pub(crate) fn new(media: Vec<Option<Box<dyn Medium>>>, is_protected: bool) -> Self {
        let mut lost = DieSet::default();
        for (die, medium) in media.iter().enumerate() {
            if medium.is_none() {
                lost.add(die);
            }
        }
        let bay = |medium: Option<Box<dyn Medium>>| RwLock::new(medium.map(Arc::from));
        let media: Vec<RwLock<Bay>> = media.into_iter().map(bay).collect();
        let mut given_up = Vec::new();
        given_up.resize_with(media.len(), Mutex::default);
        let mut traffic = Vec::new();
        traffic.resize_with(media.len(), TransferCounts::default);
        let mut syncs = Vec::new();
        syncs.resize_with(media.len(), Mutex::default);
        let lost = AtomicU64::new(lost.0);
        let [filling, joining, removed, silent] = [0; 4].map(AtomicU64::new);
        let changing = Mutex::new(());
        let rebuilt_bytes = AtomicU64::new(0);
        Self {
            media,
            given_up,
            syncs,
            changing,
            lost,
            filling,
            joining,
            removed,
            unreached: Mutex::default(),
            is_protected,
            traffic,
            rebuilt_bytes,
            damage_limit: AtomicU64::new(DAMAGE_LIMIT),
            silent,
            witness: OnceLock::new(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.media.len()
    }

    pub(crate) fn lost(&self) -> DieSet {
        DieSet(self.lost.load(Ordering::Acquire))
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the drive can do without `die`, in addition to the dies that have failed already.
    fn can_lose(&self, die: usize) -> bool {
        let is_spare = self.missed() == DieSet::default() && self.healthy().count() > 1;
        self.is_protected && (self.incomplete().has(die) || is_spare)
    }

    /// Dies without which some row lacks a unit.
    pub(crate) fn missed(&self) -> DieSet {
        DieSet(self.incomplete().0 & !self.removed().0)
    }

    /// Failed dies that no row has a unit on.
    pub(crate) fn removed(&self) -> DieSet {
        DieSet(self.removed.load(Ordering::Acquire) & self.incomplete().0)
    }

    /// Says which of the failed dies no row has a unit on; refuses where rows would lack more than
    /// one.
    pub(crate) fn remove(&self, dies: DieSet) -> bool {
        let _changing = self.changing();
        assert!(dies.iter().all(|die| die < self.count()), "a die is one of the drive");
        let missed = DieSet(self.incomplete().0 & !dies.0);
        let is_possible = missed.count() <= u32::from(self.is_protected);
        if is_possible {
            self.removed.store(dies.0, Ordering::Release);
        }
        is_possible
    }

    /// Goes on without a die, if the drive can do without it; says whether it can.
    pub(crate) fn lose(&self, die: usize) -> bool {
        let _changing = self.changing();
        if !self.can_lose(die) {
            return false;
        }
        if !self.incomplete().has(die) {
            self.removed.fetch_and(!(1 << die), Ordering::AcqRel);
        }
        self.lost.fetch_or(1 << die, Ordering::AcqRel);
        self.filling.fetch_and(!(1 << die), Ordering::AcqRel);
        let gone = self.media[die].write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(medium) = gone {
            *lock(&self.given_up[die]) = Some(Arc::downgrade(&medium));
            let path = medium.name();
            self.traffic[die].gone().clone_from(&path);
            self.unreached().push(NotErased::die(die_number(die), path));
        }
        assert!(self.lost().has(die) && self.is_protected, "only protected drives lose a die");
        true
    }

    /// True if requests are under way to the medium of a die that was given up. What they write
    /// there counts for nothing; how they end must not be taken for what its successor does.
    pub(crate) fn is_in_use(&self, die: usize) -> bool {
        let _changing = self.changing();
        lock(&self.given_up[die]).as_ref().is_some_and(|medium| medium.strong_count() > 0)
    }

    fn unreached(&self) -> MutexGuard<'_, Vec<NotErased>> {
        self.unreached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to note which media fail.
    pub(crate) fn note_unreached(&self) {
        let _changing = self.changing();
        let lost = self.lost();
        let gone = |die: usize| self.traffic[die].gone().clone();
        let media = lost.iter().map(|die| NotErased::die(die_number(die), gone(die)));
        *self.unreached() = media.collect();
    }

    /// Notes a hot spare, or a place of a die, that the purge which is under way did not erase.
    pub(crate) fn note_unerased(&self, what: NotErased) {
        self.unreached().push(what);
    }

    /// Notes why the headers of a die keep a key that was to be erased, whether the drive goes on
    /// without the die or not.
    pub(crate) fn note_key_kept(&self, die: usize, reason: &io::Error) {
        let (number, reason) = (die_number(die), Some(reason.to_string()));
        let mut unreached = self.unreached();
        match unreached.iter_mut().find(|it| it.die == Some(number) && it.reason.is_none()) {
            Some(lost) => lost.reason = reason,
            None => {
                unreached.push(NotErased { reason, ..NotErased::die(number, self.name(die)) });
            }
        }
    }

    /// Media that failed since [`Dies::note_unreached`], or had by then.
    pub(crate) fn unreached_media(&self) -> Vec<NotErased> {
        self.unreached().clone()
    }

    /// Returns the state and the traffic of each die since the drive was opened.
    pub(crate) fn traffic(&self) -> Vec<status::Die> {
        let (lost, missed, incomplete) = (self.lost(), self.missed(), self.incomplete());
        let silent = self.silent();
        let die = |(die, moved): (usize, &TransferCounts)| status::Die {
            state: match (lost.has(die), incomplete.has(die)) {
                (true, _) => DieState::Failed,
                (false, true) => DieState::Rebuilding,
                (false, false) => DieState::Good,
            },
            is_lost: lost.has(die),
            has_degraded_rows: missed.has(die),
            is_silent: silent.has(die),
            read_bytes: moved.read_bytes.load(Ordering::Relaxed),
            written_bytes: moved.written_bytes.load(Ordering::Relaxed),
            failures: moved.failures.load(Ordering::Relaxed),
            failure: moved.failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            reconstructed_reads: moved.reconstructed.load(Ordering::Relaxed),
            damaged_places: moved.damaged_places().0,
            damaged_places_hour: moved.damaged_places().1,
            damaged_places_limit: self.damage_limit.load(Ordering::Relaxed),
            ..status::Die::default()
        };
        self.traffic.iter().enumerate().map(die).collect()
    }

    /// Forgets the failures of a die that failed, in whose place another medium is to be put.
    pub(crate) fn forget_failures(&self, die: usize) {
        let failure = &self.traffic[die].failure;
        *failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.traffic[die].failures.store(0, Ordering::Relaxed);
        self.traffic[die].reconstructed.store(0, Ordering::Relaxed);
        *lock(&self.traffic[die].damaged) = DamageRate::default();
    }

    /// Counts a failed write to the medium that is to take the place of a die, unless the host has
    /// no space.
    pub(crate) fn count_failure(&self, die: usize, error: &io::Error) {
        if !is_host_full(error) {
            self.traffic[die].fail("write", error);
        }
    }

    /// Puts an empty medium in the place of a die that failed.
    pub(crate) fn fill(&self, die: usize, medium: Box<dyn Medium>) {
        let mut syncing = self.syncing(die);
        let _changing = self.changing();
        assert!(self.lost().has(die), "a die is replaced that has failed");
        let bay = &self.media[die];
        *bay.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::from(medium));
        *syncing = None;
        self.joining.fetch_and(!(1 << die), Ordering::AcqRel);
        self.silent.fetch_and(!(1 << die), Ordering::AcqRel);
        self.filling.fetch_or(1 << die, Ordering::AcqRel);
        self.lost.fetch_and(!(1 << die), Ordering::AcqRel);
    }

    /// Notes that a die whose contents are being restored holds its units of all rows: from now on
    /// it takes copies of the journal and of checkpoints.
    pub(crate) fn join(&self, die: usize) {
        let _changing = self.changing();
        self.joining.fetch_or(1 << die, Ordering::AcqRel);
    }

    /// Dies whose contents are being restored and that take copies of the journal and of
    /// checkpoints already.
    pub(crate) fn joining(&self) -> DieSet {
        DieSet(self.joining.load(Ordering::Acquire) & self.filling.load(Ordering::Acquire))
    }

    /// Notes that a die that was being filled holds all that it should, unless it has failed; says
    /// whether it does.
    pub(crate) fn settle(&self, die: usize) -> bool {
        let _changing = self.changing();
        if self.lost().has(die) {
            return false;
        }
        assert!(self.joining().has(die), "it has copies of the journal and of a checkpoint");
        self.filling.fetch_and(!(1 << die), Ordering::AcqRel);
        true
    }

    /// Dies that hold nothing, or not yet all that they should.
    pub(crate) fn incomplete(&self) -> DieSet {
        DieSet(self.lost().0 | self.filling.load(Ordering::Acquire))
    }

    /// True if more than one die holds all that it should.
    pub(crate) fn has_several_complete(&self) -> bool {
        self.count() - self.incomplete().count() as usize > 1
    }

    /// Dies that have not failed, in order.
    pub(crate) fn healthy(&self) -> impl Iterator<Item = usize> + use<> {
        let lost = self.lost();
        (0..self.count()).filter(move |die| !lost.has(*die))
    }

    /// Path by which people know the medium of a die; empty where it has none, or has failed.
    pub(crate) fn name(&self, die: usize) -> String {
        self.shared(die).as_ref().map_or_else(String::new, |medium| medium.name())
    }

    fn shared(&self, die: usize) -> Bay {
        self.media[die].read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns shares of the dies in a set, by index.
    fn shared_all(&self, which: DieSet) -> Vec<Option<Bay>> {
        let shared = |die| which.has(die).then(|| self.shared(die));
        (0..self.count()).map(shared).collect()
    }

    /// Returns the access mode of the dies, which replacements are to use as well.
    pub(crate) fn access(&self) -> Access {
        let access = |die| file_of(&**self.shared(die).as_ref()?).map(FileMedium::access);
        (0..self.count()).find_map(access).unwrap_or_default()
    }

    /// Returns whether files that replace dies are to be preallocated: they are unless a die is
    /// sparse.
    pub(crate) fn preallocation(&self) -> Preallocation {
        let taken = |die| Some(file_of(&**self.shared(die).as_ref()?)?.preallocation());
        let is_sparse = (0..self.count()).any(|die| taken(die) == Some(Preallocation::Off));
        if is_sparse { Preallocation::Off } else { Preallocation::Full }
    }

    pub(crate) fn read(&self, die: usize, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (bay, bytes) = (self.shared(die), buffer.len());
        let read = medium(&bay).read_at(offset, buffer);
        self.count_read(die, &bay, bytes, read)
    }

    /// As [`Dies::read`]; nothing follows if it fails.
    pub(crate) fn peek(&self, die: usize, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        medium(&self.shared(die)).read_at(offset, buffer)
    }

    /// As [`Dies::peek`], from the medium and not from the system's cache, as far as it can be told
    /// to drop what it holds: a file system in memory has nothing else.
    pub(crate) fn peek_stored(&self, die: usize, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        medium(&self.shared(die)).begin_sync(offset, buffer.len() as u64);
        self.peek(die, offset, buffer)
    }

    /// Tells damage from an outage: what could not be read need not be damaged while a die that has
    /// not failed does not respond to reads, so that neither copy of its header can be read.
    ///
    /// # Errors
    /// [`DeviceError::Transient`] if there is such a die.
    pub(crate) fn check_responsive(&self) -> Result<(), DeviceError> {
        if mutants::is(Mutant::OutageIsDamage) {
            return Ok(());
        }
        for die in self.healthy() {
            if let Err(error) = self.probe(die) {
                self.silent.fetch_or(1 << die, Ordering::AcqRel);
                let reason = format!("die {die} does not respond to reads: {error}");
                return Err(DeviceError::Transient { reason });
            }
        }
        self.silent.store(0, Ordering::Release);
        Ok(())
    }

    /// Dies without which reads fail, since they do not respond.
    fn silent(&self) -> DieSet {
        DieSet(self.silent.load(Ordering::Acquire) & !self.lost().0)
    }

    /// Looks whether dies without which reads fail respond again.
    pub(crate) fn look_for_silent(&self) {
        if self.silent() != DieSet::default() {
            // What it finds is noted.
            let _ = self.check_responsive();
        }
    }

    /// Reads a copy of the header of a die.
    ///
    /// # Errors
    /// Fails if neither copy can be read.
    fn probe(&self, die: usize) -> io::Result<()> {
        let mut copy = [0; PAGE_BYTES];
        let mut peek = |place| self.peek_stored(die, place * HEADER_BYTES, &mut copy);
        let first = peek(0);
        first.or_else(|_| peek(1))
    }

    /// True if a die gives out its header.
    pub(crate) fn responds(&self, die: usize) -> bool {
        self.probe(die).is_ok()
    }

    /// Dies that have not failed, and do not respond to reads now.
    pub(crate) fn unresponsive(&self) -> DieSet {
        self.healthy().filter(|die| !self.responds(*die)).collect()
    }

    /// True if a die has failed a request since its medium was put in place.
    pub(crate) fn has_failures(&self, die: usize) -> bool {
        self.traffic[die].failures.load(Ordering::Relaxed) > 0
    }

    /// Reads all of them, and says of each whether its buffers were filled.
    pub(crate) fn read_all(&self, reads: &mut [DieRead<'_, '_>]) -> Vec<io::Result<()>> {
        let which = reads.iter().map(|read| read.die).collect();
        let shared = self.shared_all(which);
        let mut below = Vec::with_capacity(reads.len());
        for DieRead { die, offset, buffers } in reads.iter_mut() {
            let medium = medium(shared[*die].as_ref().expect("one of those"));
            below.push(MediumRead { medium, offset: *offset, buffers });
        }
        let answers = read_all(&mut below);
        let count = |(read, answer): (&DieRead<'_, '_>, _)| {
            let bytes = read.buffers.iter().map(|buffer| buffer.len()).sum();
            let bay = shared[read.die].as_ref().expect("one of those");
            self.count_read(read.die, bay, bytes, answer)
        };
        reads.iter().zip(answers).map(count).collect()
    }

    fn count_read(
        &self,
        die: usize,
        asked: &Bay,
        bytes: usize,
        read: io::Result<()>,
    ) -> io::Result<()> {
        let moved = &self.traffic[die];
        match &read {
            Ok(()) if !self.lost().has(die) => {
                moved.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Err(error) if self.is_in_place(die, asked) => moved.fail("read", error),
            _ => {}
        }
        read
    }

    /// True if the medium of which something was asked is there, and that of the die still: what
    /// one that was given up answers says nothing of its successor.
    fn is_in_place(&self, die: usize, asked: &Bay) -> bool {
        let now = self.media[die].read().unwrap_or_else(PoisonError::into_inner);
        asked.as_ref().zip(now.as_ref()).is_some_and(|(asked, now)| Arc::ptr_eq(asked, now))
    }

    /// Medium of a die that holds all that it should; none of another one.
    pub(crate) fn complete(&self, die: usize) -> CompleteMedium {
        // In this order: a successor counts as incomplete before it is put in place.
        let bay = self.shared(die);
        CompleteMedium { die, bay: bay.filter(|_| !self.incomplete().has(die)) }
    }

    pub(crate) fn write(&self, die: usize, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let bay = self.shared(die);
        let written = medium(&bay).write_at(offset, bytes);
        self.count_write(die, &bay, bytes.len(), written)
    }

    /// As [`Dies::write`], of a unit that a rebuild or a scrub restores.
    pub(crate) fn restore(&self, die: usize, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(die, offset, bytes)?;
        self.rebuilt_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes that rebuilds and scrubs have written to dies since the drive was opened.
    pub(crate) fn rebuilt_bytes(&self) -> u64 {
        self.rebuilt_bytes.load(Ordering::Relaxed)
    }

    /// Programs a unit; returns the die that was written, none where the drive does without it.
    ///
    /// # Errors
    /// Fails if the die fails and the drive needs it.
    pub(crate) fn program(&self, program: &Program) -> Result<Option<usize>, DeviceError> {
        thread_local! {
            /// Memory for parity.
            static MEMORY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let Program { of, die, offset, contents } = program;
        let _kept = self.shared(*die);
        if self.lost().has(*die) {
            return Ok(None);
        }
        let written =
            MEMORY.with_borrow_mut(|memory| self.write(*die, *offset, contents.bytes(memory)));
        match written {
            Ok(()) => Ok(Some(*die)),
            Err(error) if self.lose_for(*die, &error) => Ok(None),
            Err(error) => {
                Err(medium_error(format!("programming row {} on die {die}", of.row))(error))
            }
        }
    }

    /// As [`Dies::write`]; goes on without the die if it fails, where that is possible.
    pub(crate) fn write_or_lose(&self, die: usize, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let _kept = self.shared(die);
        self.write(die, offset, bytes)
            .or_else(|error| if self.lose_for(die, &error) { Ok(()) } else { Err(error) })
    }

    /// Goes on without a die of which a write or a sync failed, if the drive can do without it, and
    /// says whether it does. A host without space is no fault of the die.
    pub(crate) fn lose_for(&self, die: usize, error: &io::Error) -> bool {
        !is_host_full(error) && self.lose(die)
    }

    fn count_write(
        &self,
        die: usize,
        asked: &Bay,
        bytes: usize,
        written: io::Result<()>,
    ) -> io::Result<()> {
        let moved = &self.traffic[die];
        match &written {
            Ok(()) if !self.lost().has(die) => {
                moved.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                moved.written_at.store(now_unix_s(), Ordering::Relaxed);
            }
            Err(error) if !is_host_full(error) && self.is_in_place(die, asked) => {
                moved.fail("write", error);
            }
            _ => {}
        }
        written
    }

    /// Has what lies there read as zeroes, once it is synced.
    pub(crate) fn erase(&self, die: usize, offset: u64, length: u64) -> io::Result<()> {
        let bay = self.shared(die);
        let erased = medium(&bay).erase(offset, length);
        self.count_write(die, &bay, 0, erased)
    }

    /// As [`Dies::erase`], by writing zeroes: the space stays that of the die.
    pub(crate) fn overwrite(&self, die: usize, offset: u64, length: u64) -> io::Result<()> {
        let bay = self.shared(die);
        let overwritten = overwrite(medium(&bay), offset, length);
        self.count_write(die, &bay, 0, overwritten)
    }

    pub(crate) fn sync(&self, die: usize) -> io::Result<()> {
        let mut syncing = self.syncing(die);
        if let Some(failure) = &*syncing {
            return Err(failure.error());
        }
        let synced = medium(&self.shared(die)).sync();
        if let Err(error) = &synced {
            *syncing = Some(SyncFailure::of(error));
        }
        synced
    }

    /// Waits until no other thread syncs a die. Several are waited for in ascending order.
    fn syncing(&self, die: usize) -> MutexGuard<'_, Option<SyncFailure>> {
        self.syncs[die].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes durable what was written to `dies`; goes on without those that fail where it can.
    ///
    /// # Errors
    /// The first die that failed and the drive needs.
    pub(crate) fn sync_all(&self, dies: DieSet) -> Result<(), (usize, io::Error)> {
        self.make_durable(dies, &[], &[])
    }

    /// Writes `bytes` at each of these dies and offsets, and makes them durable. Goes on without
    /// dies that fail where it can.
    ///
    /// # Errors
    /// The first die that failed and the drive needs.
    pub(crate) fn write_durably(
        &self,
        writes: &[(usize, u64)],
        bytes: &[u8],
    ) -> Result<(), (usize, io::Error)> {
        // Of two on one die the first goes before the one that is synced.
        let is_last = |index: usize, die: usize| writes[index + 1..].iter().all(|it| it.0 != die);
        let mut last = Vec::with_capacity(writes.len());
        for (index, (die, offset)) in writes.iter().copied().enumerate() {
            if is_last(index, die) {
                last.push((die, offset));
            } else {
                self.write_or_lose(die, offset, bytes).map_err(|error| (die, error))?;
            }
        }
        self.make_durable(DieSet::default(), &last, bytes)
    }

    /// Makes durable what was written to `dies`, and `bytes` at each of `writes`, one a die, which
    /// are written first.
    fn make_durable(
        &self,
        dies: DieSet,
        writes: &[(usize, u64)],
        bytes: &[u8],
    ) -> Result<(), (usize, io::Error)> {
        if mutants::is(Mutant::FlushDropped) {
            return writes.iter().try_for_each(|(die, offset)| {
                self.write(*die, *offset, bytes).map_err(|error| (*die, error))
            });
        }
        let copies: DieSet = writes.iter().map(|(die, _)| *die).collect();
        // Until all answers have been acted on, so that no thread whose sync does not fail, since
        // another one was told, says that all is durable.
        let wanted = DieSet((dies.0 | copies.0) & !self.lost().0);
        let mut syncing: BTreeMap<usize, _> =
            wanted.iter().map(|die| (die, self.syncing(die))).collect();
        for die in wanted.iter() {
            // The thread that was told may not have given up the die yet.
            let failure = syncing[&die].as_ref().map(SyncFailure::error);
            if let Some(error) = failure.filter(|error| !self.lose_for(die, error)) {
                return Err((die, error));
            }
        }
        let which = DieSet(wanted.0 & !self.lost().0);
        let shared = self.shared_all(which);
        let below = |die: usize| {
            let medium = medium(shared[die].as_ref().expect("one of those"));
            let write = writes.iter().find(|write| write.0 == die);
            MediumWrite { medium, write: write.map(|(_, offset)| (*offset, bytes)) }
        };
        let asked: Vec<MediumWrite<'_>> = which.iter().map(below).collect();
        let answers = write_and_sync(&asked);
        for (die, answer) in which.iter().zip(&answers) {
            if let (Err(error), Some(failure)) = (answer, syncing.get_mut(&die)) {
                **failure = Some(SyncFailure::of(error));
            }
        }
        for (die, answer) in which.iter().zip(answers) {
            let bytes = if copies.has(die) { bytes.len() } else { 0 };
            let bay = shared[die].as_ref().expect("one of those");
            match self.count_write(die, bay, bytes, answer) {
                Err(error) if !self.lose_for(die, &error) => return Err((die, error)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Seconds since 1970.
pub(crate) fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs())
}

/// The number of a die, as records and the status have it.
pub(crate) fn die_number(die: usize) -> u32 {
    u32::try_from(die).expect("at most 64 dies")
}

fn medium(bay: &Bay) -> &dyn Medium {
    bay.as_deref().unwrap_or(&FailedMedium)
}

/// The error of a die that could not be made durable.
pub(crate) fn sync_failed((die, source): (usize, io::Error)) -> DeviceError {
    medium_error(format!("syncing die {die}"))(source)
}

/// An error of the medium, with what was attempted.
pub(crate) fn medium_error(attempted: String) -> impl FnOnce(io::Error) -> DeviceError {
    move |source| DeviceError::Medium { attempted, source }
}

#[cfg(test)]
mod tests;
