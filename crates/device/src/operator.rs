//! Operator: carries out [`Operations`] for any device that can be erased.
//!
//! ```text
//!   Operations ──► Operator ──► Portion: a namespace behind a gate ──► device
//!                     └───────► Backing: erase, verify, store what must outlast the server
//! ```
//!
//! **Invariants**
//! - Namespaces do not overlap, and lie within the device; no two have one identifier or name.
//! - A change is stored before it is reported as done; a sanitize, before it begins.
//! - One piece of work is under way at a time.

mod background;
mod portion;
mod sectors;
mod security;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use self::background::Background;
use self::portion::{Portion, PortionDevice};
pub use self::sectors::Sectors;
use self::security::Security;
use crate::locking::{LockedDevice, OpalDrive};
use crate::{
    Administration, Device, DeviceError, DriveEvent, DriveHealth, EventKind, Fence, FormatRequest,
    FormatResult, Identity, InjectedError, NamespaceRequest, NamespaceSpace, Operability,
    OperationError, OperationStatus, Operations, PersistentReservations, Protection,
    SanitizeRequest, SanitizeState, SecurityRefusal, SelfTest, SelfTestResult, ServedNamespace,
    Work,
};
use opal::Channel;

/// Most namespaces of a drive.
pub const NAMESPACES_MAX: u32 = 64;
/// Bytes of which the sizes of namespaces are multiples.
const GRANULARITY_BYTES: u64 = 4096;

/// The drive behind an operator. Many threads may call at once.
pub trait Backing: Administration {
    /// Erases all data that is stored or was, from the media too. Calls `go_on` with the part that
    /// is done and the whole, and stops when it returns false.
    ///
    /// # Errors
    /// The reason, as text.
    fn erase(&self, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), String>;

    /// Verifies all stored data, redundancy too, and calls `go_on` as [`Backing::erase`] does. A
    /// self-test reads the data of namespaces before.
    ///
    /// # Errors
    /// The reason, as text.
    fn verify(&self, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), String> {
        let _ = go_on;
        Ok(())
    }

    /// Stores the state that must outlast the server: all of it or nothing.
    ///
    /// # Errors
    /// The reason, as text; the state that was stored before is still there.
    fn keep(&self, kept: &PersistentState) -> Result<(), String>;

    /// True if what [`Backing::keep`] stores outlasts the server.
    fn is_durable(&self) -> bool {
        true
    }

    /// Returns the device of a namespace as clients are to use it, such as with counters.
    fn client_device(&self, id: u32, device: Arc<dyn Device>) -> Arc<dyn Device> {
        let _ = id;
        device
    }

    /// True if what is stored is encrypted, and [`Backing::erase`] erases its keys first.
    fn erases_keys(&self) -> bool {
        false
    }

    /// Returns its Opal, as it was stored last; none of a drive without.
    ///
    /// # Errors
    /// The reason, as text: the drive has one that cannot be read, and must not be served.
    fn opal(&self) -> Result<Option<OpalDrive>, String> {
        Ok(None)
    }

    /// True if hosts may have it show errors.
    fn injects_errors(&self) -> bool {
        false
    }

    /// Replaces the errors that are to come.
    ///
    /// # Errors
    /// The reason, as text.
    fn inject_errors(&self, errors: &[InjectedError]) -> Result<(), String> {
        let _ = errors;
        Err("the drive shows no errors".to_owned())
    }

    /// Returns the errors that are still to come.
    fn injected_errors(&self) -> Vec<InjectedError> {
        Vec::new()
    }

    /// Adds an event to the drive's history.
    fn note(&self, kind: EventKind, text: String);

    /// Returns the time of the clock that events have, in milliseconds since the beginning of 1970.
    fn now_unix_ms(&self) -> u64;

    /// Returns the latest events, the last at the end.
    fn events(&self) -> Vec<DriveEvent>;

    /// Returns the counters of the drive as text.
    fn telemetry(&self) -> Vec<u8>;
}

/// State of an operator that outlasts the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistentState {
    /// Namespaces, in ascending order of their identifiers.
    pub namespaces: Vec<KeptNamespace>,
    /// State of the last sanitize.
    pub sanitize: SanitizeState,
    /// True if a host may leave its failure mode without another sanitize.
    pub exit_is_free: bool,
    /// True if the last sanitize was to leave blocks allocated.
    pub keeps_blocks: bool,
    /// True if the last sanitize was to erase keys.
    pub is_crypto: bool,
    /// Sanitizes that ended.
    pub sanitizes_ended: u64,
    /// Self-tests that ended, the latest first.
    pub self_tests: Vec<SelfTestResult>,
}

impl PersistentState {
    /// The state of a device that no host has changed: namespace 1 is all of it.
    pub fn whole(block_bytes: u32) -> Self {
        let whole = KeptNamespace {
            id: 1,
            name: String::new(),
            offset: 0,
            size: None,
            block_bytes,
            unreadable: Sectors::default(),
            is_protected: false,
            is_private: false,
            reservations: PersistentReservations::default(),
        };
        Self { namespaces: vec![whole], ..Self::default() }
    }
}

/// A namespace as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptNamespace {
    /// Identifier, from 1.
    pub id: u32,
    /// Name.
    pub name: String,
    /// First byte on the device.
    pub offset: u64,
    /// Bytes; none for the whole device, whatever its size.
    pub size: Option<u64>,
    /// Bytes of a logical block.
    pub block_bytes: u32,
    /// Sectors that are marked as unreadable.
    pub unreadable: Sectors,
    /// True if a host protected it from changes.
    pub is_protected: bool,
    /// True if one controller at a time has it.
    pub is_private: bool,
    /// Registrations of hosts, and their reservation.
    pub reservations: PersistentReservations,
}

/// Operations of a drive.
pub struct Operator {
    shared: Arc<SharedState>,
    worker: Mutex<Option<JoinHandle<()>>>,
    is_read_only: bool,
}

/// State that the operator and its work share.
struct SharedState {
    backing: Arc<dyn Backing>,
    base: Arc<dyn Device>,
    /// In ascending order of their identifiers.
    entries: Mutex<Vec<Entry>>,
    version: AtomicU64,
    background: Mutex<Background>,
    /// Held while state is stored, so that the latest state is what remains.
    keeping: Mutex<()>,
    /// True if anything was written since the drive was sanitized last.
    is_written: Arc<AtomicBool>,
    is_stopping: AtomicBool,
    /// Opal; none of a drive without.
    security: Option<Security>,
}

/// A namespace.
#[derive(Clone, Debug)]
struct Entry {
    id: u32,
    name: String,
    block_bytes: u32,
    is_private: bool,
    portion: Arc<Portion>,
    /// Device behind the gate, without locks and counters.
    bare: Arc<dyn Device>,
    device: Arc<dyn Device>,
    fence: Arc<Fence>,
    reservations: Arc<Mutex<PersistentReservations>>,
}

impl Operator {
    /// Operates a device from its stored state. A sanitize that was under way goes on.
    ///
    /// # Errors
    /// Fails if the system has no thread for it.
    pub fn open(
        base: Arc<dyn Device>,
        backing: Arc<dyn Backing>,
        kept: PersistentState,
        is_read_only: bool,
    ) -> Result<Self, OperationError> {
        let background = Background::new(&kept);
        let security = open_security(&*backing, &kept)?;
        let PersistentState { namespaces, sanitize, .. } = kept;
        let shared = Arc::new(SharedState {
            backing,
            base,
            entries: Mutex::default(),
            version: AtomicU64::new(1),
            background: Mutex::new(background),
            keeping: Mutex::default(),
            is_written: Arc::new(AtomicBool::new(true)),
            is_stopping: AtomicBool::new(false),
            security,
        });
        for kept in namespaces {
            let entry = shared.entry(kept);
            lock(&shared.entries).push(entry);
        }
        let own = Self { shared, worker: Mutex::default(), is_read_only };
        match sanitize {
            SanitizeState::Running if !is_read_only => own.resume_sanitize()?,
            SanitizeState::Running | SanitizeState::Failed => {
                own.shared.close_gates(Work::SanitizeFailed);
            }
            SanitizeState::Never | SanitizeState::Done => {}
        }
        Ok(own)
    }

    /// Changes the size of a namespace in its place. Data beyond a smaller size is trimmed.
    ///
    /// # Errors
    /// Fails if there is no such namespace, the next one begins before its new end, or work is
    /// under way.
    pub fn resize_namespace(&self, id: u32, size: u64) -> Result<(), OperationError> {
        self.check_may_change()?;
        let _held = self.hold_locking()?;
        check_size(size)?;
        let mut entries = lock(&self.shared.entries);
        let entry = find(&mut entries, id)?.clone();
        let from = entry.portion.from();
        let starts = entries.iter().map(|it| it.portion.from()).filter(|start| *start > from);
        let room = starts.min().unwrap_or(self.shared.base.size()) - from;
        if size > room {
            return Err(OperationError::NoSpace { asked: size, free: room });
        }
        if size < entry.portion.bytes() {
            // Nothing is written there meanwhile.
            let _gate = entry.portion.gate();
            entry.portion.forget_from(size).map_err(failed("forgetting what lies beyond"))?;
            entry.portion.resize(size);
        } else {
            entry.portion.resize(size);
        }
        drop(entries);
        self.shared.keep()?;
        self.shared.version.fetch_add(1, Ordering::AcqRel);
        let text = format!("Namespace {id}, `{}`, now has {size} bytes.", entry.name);
        self.shared.backing.note(EventKind::Namespace, text);
        Ok(())
    }

    /// Has a namespace refuse writes from now on, as if its media were worn out.
    ///
    /// # Errors
    /// Fails if there is no such namespace.
    pub fn fail_writes(&self, id: u32) -> Result<(), OperationError> {
        let entry = find(&mut lock(&self.shared.entries), id)?.clone();
        entry.portion.gate().protection = Protection::ByDrive;
        Ok(())
    }

    /// Stops work that is under way, and waits until it has ended. A sanitize goes on when the
    /// drive is opened again.
    pub fn stop(&self) {
        self.shared.is_stopping.store(true, Ordering::Release);
        if let Some(worker) = lock(&self.worker).take() {
            // A worker that panicked has ended, too.
            let _ = worker.join();
        }
        if let Some(security) = &self.shared.security {
            security.stop();
        }
    }

    fn check_may_change(&self) -> Result<(), OperationError> {
        if self.is_read_only {
            return Err(OperationError::ReadOnly);
        }
        match lock(&self.shared.background).work() {
            None | Some(Work::SelfTest) => Ok(()),
            Some(work) => Err(OperationError::Busy(work)),
        }
    }
}

impl SharedState {
    fn entry(self: &Arc<Self>, kept: KeptNamespace) -> Entry {
        let KeptNamespace { id, name, offset, size, block_bytes, is_private, reservations, .. } =
            kept;
        let protection = if kept.is_protected { Protection::ByHost } else { Protection::Open };
        let marks = (kept.unreadable, protection);
        let (base, is_written) = (Arc::clone(&self.base), Arc::clone(&self.is_written));
        let portion = Arc::new(Portion::new(base, (offset, size), marks, is_written));
        let own = Arc::downgrade(self);
        let keep_marks = move || {
            let Some(own) = own.upgrade() else { return Err(DeviceError::Gone) };
            own.keep().map_err(|error| DeviceError::Poisoned { reason: error.to_string() })
        };
        let opened =
            PortionDevice { portion: Arc::clone(&portion), keep_marks: Arc::new(keep_marks) };
        let bare: Arc<dyn Device> = Arc::new(opened);
        let locked = match &self.security {
            Some(security) => Arc::new(LockedDevice {
                device: Arc::clone(&bare),
                locks: Arc::clone(&security.locks),
                store: Arc::clone(&security.store),
            }),
            None => Arc::clone(&bare),
        };
        let device = self.backing.client_device(id, locked);
        let fence = Arc::new(Fence::new(reservations.kind));
        let reservations = Arc::new(Mutex::new(reservations));
        Entry { id, name, block_bytes, is_private, portion, bare, device, fence, reservations }
    }

    /// Closes the gates of all namespaces; commands under way have ended.
    fn close_gates(&self, work: Work) {
        lock(&self.entries).iter().for_each(|it| it.portion.gate().work = Some(work));
    }

    /// Stores the state that must outlast the server.
    ///
    /// A mark that a write removed is stored as removed only when that write is durable: a crash
    /// would otherwise bring back what the sector held before it was marked.
    fn keep(&self) -> Result<(), OperationError> {
        let _turn = lock(&self.keeping);
        let entries = lock(&self.entries).clone();
        let mut changed = Vec::new();
        let mut namespaces = Vec::new();
        for it in &entries {
            let (unreadable, protection, changes) = it.portion.state_to_keep();
            changed.extend(it.portion.has_unstored(changes).then_some((&it.portion, changes)));
            namespaces.push(KeptNamespace {
                id: it.id,
                name: it.name.clone(),
                offset: it.portion.from(),
                size: it.portion.own_size(),
                block_bytes: it.block_bytes,
                unreadable,
                is_protected: protection == Protection::ByHost,
                is_private: it.is_private,
                reservations: lock(&it.reservations).clone(),
            });
        }
        let kept = lock(&self.background).kept(namespaces);
        let flushed = if changed.is_empty() { Ok(()) } else { self.base.flush() };
        let flushed = flushed.map_err(|error| error.to_string());
        flushed.and_then(|()| self.backing.keep(&kept)).map_err(|reason| {
            OperationError::Failed { attempted: "storing the state of namespaces", reason }
        })?;
        for (portion, changes) in changed {
            portion.note_stored(changes);
        }
        Ok(())
    }

    /// Offset of the first gap of at least `size` bytes; if there is none, the size of the largest.
    fn gap(&self, entries: &[Entry], size: u64) -> Result<u64, u64> {
        let mut taken: Vec<(u64, u64)> = entries
            .iter()
            .map(|it| (it.portion.from(), it.portion.from() + it.portion.bytes()))
            .collect();
        taken.sort_unstable();
        let (mut start, mut largest) = (0, 0);
        for (from, until) in taken.into_iter().chain([(self.base.size(), u64::MAX)]) {
            let free = from.saturating_sub(start);
            if free >= size {
                return Ok(start);
            }
            largest = largest.max(free);
            start = until;
        }
        Err(largest)
    }
}

impl Administration for Operator {
    fn identity(&self) -> Identity {
        self.shared.backing.identity()
    }

    fn health(&self) -> DriveHealth {
        self.shared.backing.health()
    }
}

impl Operations for Operator {
    fn namespaces(&self) -> Vec<ServedNamespace> {
        let entries = lock(&self.shared.entries);
        let served = entries.iter().map(|it| ServedNamespace {
            id: it.id,
            name: it.name.clone(),
            device: Arc::clone(&it.device),
            block_bytes: it.block_bytes,
            is_read_only: self.is_read_only,
            is_private: it.is_private,
            fence: Arc::clone(&it.fence),
        });
        served.collect()
    }

    fn namespaces_version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    fn operability(&self) -> Operability {
        if self.is_read_only { Operability::ReadOnly } else { Operability::Full }
    }

    fn space(&self) -> NamespaceSpace {
        let total_bytes = self.shared.base.size();
        let taken: u64 = lock(&self.shared.entries).iter().map(|it| it.portion.bytes()).sum();
        NamespaceSpace { total_bytes, unallocated_bytes: total_bytes.saturating_sub(taken) }
    }

    fn create_namespace(&self, request: &NamespaceRequest) -> Result<u32, OperationError> {
        let NamespaceRequest { size, block_bytes, is_private } = *request;
        self.check_may_change()?;
        let _held = self.hold_locking()?;
        check_size(size)?;
        check_block(block_bytes)?;
        let mut entries = lock(&self.shared.entries);
        let is_taken = |id: &u32| entries.iter().any(|it| it.id == *id);
        let id = (1..=NAMESPACES_MAX).find(|id| !is_taken(id));
        let id = id.ok_or(OperationError::TooMany(NAMESPACES_MAX))?;
        let gap = self.shared.gap(&entries, size);
        let offset = gap.map_err(|free| OperationError::NoSpace { asked: size, free })?;
        let names = (0..).map(|number| match number {
            0 => format!("ns{id}"),
            _ => format!("ns{id}-{number}"),
        });
        let name = names.into_iter().find(|name| entries.iter().all(|it| it.name != *name));
        let name = name.expect("there are more numbers than namespaces");
        let entry = self.shared.entry(KeptNamespace {
            id,
            name: name.clone(),
            offset,
            size: Some(size),
            block_bytes,
            unreadable: Sectors::default(),
            is_protected: false,
            is_private,
            reservations: PersistentReservations::default(),
        });
        // Data that a deleted namespace may have left there.
        entry.portion.forget_from(0).map_err(failed("emptying the namespace"))?;
        let at = entries.partition_point(|it| it.id < id);
        entries.insert(at, entry);
        drop(entries);
        // Work that began meanwhile has closed the gates of others.
        let made = self.check_may_change().and_then(|()| self.shared.keep());
        if let Err(error) = made {
            lock(&self.shared.entries).retain(|it| it.id != id);
            return Err(error);
        }
        self.shared.version.fetch_add(1, Ordering::AcqRel);
        let text = format!("Namespace {id}, `{name}`, of {size} bytes was created.");
        self.shared.backing.note(EventKind::Namespace, text);
        Ok(id)
    }

    fn delete_namespace(&self, id: Option<u32>) -> Result<(), OperationError> {
        self.check_may_change()?;
        let _held = self.hold_locking()?;
        let mut entries = lock(&self.shared.entries);
        let of = id.map(|id| find(&mut entries, id).map(|it| it.id)).transpose()?;
        let is_deleted = |it: &Entry| of.is_none_or(|id| it.id == id);
        let deleted: Vec<Entry> = entries.iter().filter(|it| is_deleted(it)).cloned().collect();
        check_open(&deleted)?;
        let (mut gone, mut done) = (Vec::new(), Ok(()));
        for entry in deleted {
            let mut gate = entry.portion.gate();
            done = entry.portion.forget_from(0).map_err(failed("forgetting what it stores"));
            if done.is_err() {
                // Those before it are gone all the same.
                break;
            }
            gate.is_gone = true;
            drop(gate);
            gone.push(entry);
        }
        entries.retain(|it| gone.iter().all(|gone| gone.id != it.id));
        drop(entries);
        self.shared.version.fetch_add(1, Ordering::AcqRel);
        let kept = self.shared.keep();
        for Entry { id, name, .. } in gone {
            let text = format!("Namespace {id}, `{name}`, was deleted.");
            self.shared.backing.note(EventKind::Namespace, text);
        }
        done.and(kept)
    }

    fn begin_format(&self, request: &FormatRequest) -> Result<FormatResult, OperationError> {
        check_block(request.block_bytes)?;
        let held = self.hold_unlocked()?;
        let entries = lock(&self.shared.entries).clone();
        let is_active = held.as_ref().is_some_and(|it| it.state().locking.is_some());
        if is_active && entries.iter().any(|it| it.block_bytes != request.block_bytes) {
            // Ranges are numbers of blocks.
            return Err(OperationError::Locked);
        }
        self.begin_formatting(request)
    }

    fn begin_sanitize(&self, request: SanitizeRequest) -> Result<(), OperationError> {
        let _held = self.hold_unlocked()?;
        self.begin_sanitizing(request)
    }

    fn exit_failure(&self) -> Result<(), OperationError> {
        self.leave_failure()
    }

    fn begin_self_test(
        &self,
        test: SelfTest,
        namespace: Option<u32>,
    ) -> Result<(), OperationError> {
        self.begin_testing(test, namespace)
    }

    fn abort_self_test(&self) {
        self.end_self_test(crate::SelfTestEnd::Aborted);
    }

    fn operation_status(&self) -> OperationStatus {
        let is_written = self.shared.is_written.load(Ordering::Acquire);
        lock(&self.shared.background).status(is_written)
    }

    fn mark_unreadable(&self, id: u32, sector: u64, sectors: u64) -> Result<(), OperationError> {
        self.check_may_change()?;
        let _held = self.hold_unlocked()?;
        let entry = find(&mut lock(&self.shared.entries), id)?.clone();
        check_open(std::slice::from_ref(&entry))?;
        entry.portion.gate().unreadable.add(sector, sector.saturating_add(sectors));
        self.shared.keep()
    }

    fn protect(&self, id: u32, is_protected: bool) -> Result<(), OperationError> {
        if self.is_read_only {
            // It outlasts the server.
            return Err(OperationError::ReadOnly);
        }
        let entry = find(&mut lock(&self.shared.entries), id)?.clone();
        {
            let mut gate = entry.portion.gate();
            if gate.protection != Protection::ByDrive {
                gate.protection = if is_protected { Protection::ByHost } else { Protection::Open };
            }
        }
        if is_protected {
            // What was written before is protected too.
            self.shared.base.flush().map_err(failed("flushing the namespace"))?;
        }
        self.shared.keep()?;
        let now = if is_protected { "protected from writes" } else { "open for writes" };
        let text = format!("Namespace {id}, `{}`, is {now}.", entry.name);
        self.shared.backing.note(EventKind::Other, text);
        Ok(())
    }

    fn protection(&self, id: u32) -> Protection {
        let mut entries = lock(&self.shared.entries);
        find(&mut entries, id).map_or(Protection::Open, |it| it.portion.look().protection)
    }

    fn keeps_reservations(&self) -> bool {
        !self.is_read_only && self.shared.backing.is_durable()
    }

    fn reservations(&self, id: u32) -> PersistentReservations {
        let mut entries = lock(&self.shared.entries);
        find(&mut entries, id).map(|it| lock(&it.reservations).clone()).unwrap_or_default()
    }

    fn keep_reservations(
        &self,
        id: u32,
        reservations: &PersistentReservations,
    ) -> Result<(), OperationError> {
        if !self.keeps_reservations() {
            return Err(OperationError::Unsupported("store reservations"));
        }
        let entry = find(&mut lock(&self.shared.entries), id)?.clone();
        let before = std::mem::replace(&mut *lock(&entry.reservations), reservations.clone());
        let kept = self.shared.keep();
        if kept.is_err() {
            *lock(&entry.reservations) = before;
        }
        kept
    }

    fn has_opal(&self) -> bool {
        self.shared.security.is_some() && !self.is_read_only
    }

    fn security_send(&self, channel: Channel, data: &[u8]) -> Result<(), SecurityRefusal> {
        self.send_security(channel, data)
    }

    fn security_end(&self, channel: u64) {
        self.end_security(channel);
    }

    fn security_receive(
        &self,
        channel: Channel,
        length: usize,
    ) -> Result<Vec<u8>, SecurityRefusal> {
        self.receive_security(channel, length)
    }

    fn erases_keys(&self) -> bool {
        self.shared.backing.erases_keys()
    }

    fn injects_errors(&self) -> bool {
        self.shared.backing.injects_errors()
    }

    fn inject_errors(&self, errors: &[InjectedError]) -> Result<(), OperationError> {
        let done = self.shared.backing.inject_errors(errors);
        done.map_err(|reason| OperationError::Failed { attempted: "injecting errors", reason })
    }

    fn injected_errors(&self) -> Vec<InjectedError> {
        self.shared.backing.injected_errors()
    }

    fn note(&self, kind: EventKind, text: String) {
        self.shared.backing.note(kind, text);
    }

    fn now_unix_ms(&self) -> u64 {
        self.shared.backing.now_unix_ms()
    }

    fn events(&self) -> Vec<DriveEvent> {
        self.shared.backing.events()
    }

    fn telemetry(&self) -> Vec<u8> {
        self.shared.backing.telemetry()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Operator").field("space", &self.space()).finish_non_exhaustive()
    }
}

/// Opal of a drive after power-on, if it has it.
fn open_security(
    backing: &dyn Backing,
    kept: &PersistentState,
) -> Result<Option<Security>, OperationError> {
    let failed = |reason| OperationError::Failed { attempted: "reading the Opal state", reason };
    let Some(drive) = backing.opal().map_err(failed)? else { return Ok(None) };
    if let Some(locking) = &drive.state.locking {
        let [only] = &*kept.namespaces else {
            let count = kept.namespaces.len();
            return Err(failed(format!("its ranges are of one namespace, and there are {count}")));
        };
        let (of_ranges, of_namespace) = (locking.block_bytes, only.block_bytes);
        if of_ranges != of_namespace {
            return Err(failed(format!(
                "its ranges count blocks of {of_ranges} bytes, and the namespace is served with \
                 {of_namespace}; serve it with {of_ranges}"
            )));
        }
    }
    Ok(Some(Security::power_on(drive)))
}

fn find(entries: &mut [Entry], id: u32) -> Result<&mut Entry, OperationError> {
    entries.iter_mut().find(|it| it.id == id).ok_or(OperationError::NoNamespace { id })
}

/// Checks that no host has protected any of these namespaces: only a host takes that back.
fn check_open(entries: &[Entry]) -> Result<(), OperationError> {
    let is_protected = |it: &&Entry| it.portion.look().protection == Protection::ByHost;
    entries
        .iter()
        .find(is_protected)
        .map_or(Ok(()), |it| Err(OperationError::Protected { id: it.id }))
}

fn check_size(size: u64) -> Result<(), OperationError> {
    if size > 0 && size.is_multiple_of(GRANULARITY_BYTES) {
        return Ok(());
    }
    let (what, limit) = ("the size of a namespace", "a multiple of 4096 bytes above zero");
    Err(OperationError::Value { what, value: size, limit })
}

fn check_block(block_bytes: u32) -> Result<(), OperationError> {
    if [512, 4096].contains(&block_bytes) {
        return Ok(());
    }
    let (what, value) = ("the size of a logical block", block_bytes.into());
    Err(OperationError::Value { what, value, limit: "512 or 4096 bytes" })
}

/// An error of the device, as the reason why something was not done.
fn failed(attempted: &'static str) -> impl Fn(DeviceError) -> OperationError {
    move |error| OperationError::Failed { attempted, reason: error.to_string() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
