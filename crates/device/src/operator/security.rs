//! Security Send and Receive: methods of TCG Opal, on a thread beside the queues of hosts.
//!
//! ```text
//!   Security Send ──► thread: method ──► erased ──► stored ──► locks in force ──► answer
//!   Security Receive ◄── not yet, or the answer
//! ```
//!
//! **Invariants**
//! - One message is worked on at a time.
//! - Locks in force are those that are stored.
//! - As long as the Locking SP is active there is one namespace, and it keeps its size.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use blockio::Nanos;
use opal::{
    Backing, ByteTable, Channel, Erasure, Failure, Geometry, OpalState, Place, SecurityError, Tper,
};

use super::{Entry, Operator, SharedState, check_open, lock};
use crate::locking::{LockTable, Locks, OpalDrive, OpalStore};
use crate::{
    Durability, EventKind, FormatRequest, OperationError, Protection, SecurityRefusal, Work,
};

/// Longest wait of a command for a message that is worked on.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of pages, which are trimmed as a whole.
const PAGE_BYTES: u64 = 4096;

/// Opal of a drive that is served.
#[derive(Debug)]
pub(super) struct Security {
    pub(super) tper: Mutex<Tper>,
    pub(super) locks: Arc<LockTable>,
    pub(super) store: Arc<dyn OpalStore>,
    work: Mutex<MessageWork>,
    /// Channels whose hosts are gone, and whose sessions are to end.
    gone: Mutex<Vec<u64>>,
    ended: Condvar,
    begun: Instant,
}

/// Message that is worked on.
#[derive(Debug, Default)]
struct MessageWork {
    is_running: bool,
    /// Messages so far.
    number: u64,
    /// Result of the last one that has ended, and its number.
    result: Option<(u64, Result<(), SecurityError>)>,
}

impl Security {
    /// The drive after power-on, its locks in force.
    pub(super) fn power_on(drive: OpalDrive) -> Self {
        let geometry =
            Geometry { block_bytes: 512, blocks: 0, granularity_blocks: 1, is_encrypted: false };
        let tper = Tper::power_on(drive.state, geometry);
        let locks = Arc::<LockTable>::default();
        locks.set(Locks::of(tper.state()));
        Self {
            tper: Mutex::new(tper),
            locks,
            store: drive.store,
            work: Mutex::default(),
            gone: Mutex::default(),
            ended: Condvar::new(),
            begun: Instant::now(),
        }
    }

    /// Waits until no message is worked on. Returns false if one still is.
    fn wait(&self, patience: Duration) -> (MutexGuard<'_, MessageWork>, bool) {
        let waited = self.ended.wait_timeout_while(lock(&self.work), patience, |it| it.is_running);
        let (work, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        (work, !timeout.timed_out())
    }

    /// Waits until no message is worked on, however long.
    pub(super) fn stop(&self) {
        let waited = self.ended.wait_while(lock(&self.work), |it| it.is_running);
        drop(waited);
    }

    /// The drive's side, unless a method is carried out, which may erase.
    fn tper(&self) -> Result<MutexGuard<'_, Tper>, OperationError> {
        match self.tper.try_lock() {
            Ok(tper) => Ok(tper),
            Err(TryLockError::Poisoned(tper)) => Ok(tper.into_inner()),
            Err(TryLockError::WouldBlock) => Err(OperationError::Busy(Work::Format)),
        }
    }

    /// The drive's side, without sessions of hosts that are gone.
    fn current(&self) -> MutexGuard<'_, Tper> {
        let mut tper = lock(&self.tper);
        lock(&self.gone).drain(..).for_each(|channel| tper.end_channel(channel));
        tper
    }

    fn end(&self, result: Option<Result<(), SecurityError>>) {
        let mut work = lock(&self.work);
        work.is_running = false;
        work.result = result.map(|it| (work.number, it));
        self.ended.notify_all();
    }

    /// Waits for the end of a message, for a while. Returns its result; none if it has not ended,
    /// or another one ended since.
    fn result_of(&self, number: u64) -> Option<Result<(), SecurityError>> {
        let is_running = |it: &mut MessageWork| it.is_running && it.number == number;
        let waited = self.ended.wait_timeout_while(lock(&self.work), PATIENCE, is_running);
        let (mut work, _) = waited.unwrap_or_else(PoisonError::into_inner);
        work.result.take_if(|(of, _)| *of == number).map(|(_, result)| result)
    }
}

/// Ends the work on a message in any case.
struct Turn(Arc<SharedState>, Option<Result<(), SecurityError>>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(security) = &self.0.security {
            security.end(self.1.take());
        }
    }
}

impl Operator {
    pub(super) fn send_security(
        &self,
        channel: Channel,
        data: &[u8],
    ) -> Result<(), SecurityRefusal> {
        let security = self.shared.security.as_ref().filter(|_| !self.is_read_only);
        let security = security.ok_or(SecurityRefusal::Unsupported)?;
        let number = {
            let (mut work, is_free) = security.wait(PATIENCE);
            if !is_free {
                return Err(SecurityRefusal::Busy);
            }
            // A result that its sender has not seen yet stays until this message has one.
            work.is_running = true;
            work.number += 1;
            work.number
        };
        let turn = Turn(Arc::clone(&self.shared), None);
        let data = data.to_vec();
        let spawned = thread::Builder::new().name("opal".to_owned()).spawn(move || {
            let mut turn = turn;
            let result = turn.0.carry_out(channel, &data);
            turn.1 = Some(result);
            drop(turn);
        });
        // Without a thread its end was told when it was dropped.
        spawned.map_err(|_| SecurityRefusal::Busy)?;
        match security.result_of(number) {
            Some(Err(SecurityError::Protocol)) => Err(SecurityRefusal::Unsupported),
            Some(Err(SecurityError::State)) => Err(SecurityRefusal::Sequence),
            Some(Ok(())) | None => Ok(()),
        }
    }

    pub(super) fn receive_security(
        &self,
        channel: Channel,
        length: usize,
    ) -> Result<Vec<u8>, SecurityRefusal> {
        let security = self.shared.security.as_ref().filter(|_| !self.is_read_only);
        let security = security.ok_or(SecurityRefusal::Unsupported)?;
        let (work, is_free) = security.wait(PATIENCE);
        drop(work);
        if !is_free {
            let answer = opal::not_yet(channel).ok_or(SecurityRefusal::Busy);
            return answer.map(|it| it.into_iter().take(length).collect());
        }
        let mut tper = security.current();
        tper.set_geometry(self.shared.geometry());
        tper.receive(channel, length).map_err(|_| SecurityRefusal::Unsupported)
    }

    /// Holds methods of Opal off while the drive begins to be erased, or is marked.
    ///
    /// # Errors
    /// Fails if something is locked.
    pub(super) fn hold_unlocked(&self) -> Result<Option<MutexGuard<'_, Tper>>, OperationError> {
        let Some(security) = &self.shared.security else { return Ok(None) };
        let tper = security.tper()?;
        let locking = tper.state().locking.as_ref();
        let is_locked = locking.is_some_and(|it| it.is_locked() || it.is_shadowed());
        if is_locked { Err(OperationError::Locked) } else { Ok(Some(tper)) }
    }

    /// Ends the session of a host that is gone, once no message is worked on.
    pub(super) fn end_security(&self, channel: u64) {
        if let Some(security) = &self.shared.security {
            lock(&security.gone).push(channel);
        }
    }

    /// Holds methods of Opal off while namespaces are arranged.
    ///
    /// # Errors
    /// Fails if the Locking SP is active.
    pub(super) fn hold_locking(&self) -> Result<Option<MutexGuard<'_, Tper>>, OperationError> {
        let Some(security) = &self.shared.security else { return Ok(None) };
        let tper = security.tper()?;
        match &tper.state().locking {
            Some(_) => Err(OperationError::Locked),
            None => Ok(Some(tper)),
        }
    }
}

impl SharedState {
    /// Place of the blocks of the one namespace; none of several, or while a format may change
    /// their size.
    fn geometry(&self) -> Geometry {
        let entries = lock(&self.entries).clone();
        let is_encrypted = self.backing.erases_keys();
        match &*entries {
            [only] if only.portion.gate().work != Some(Work::Format) => {
                let block_bytes = only.block_bytes;
                let granularity_blocks = (PAGE_BYTES / u64::from(block_bytes)).max(1);
                let blocks = only.portion.bytes() / u64::from(block_bytes);
                Geometry { block_bytes, blocks, granularity_blocks, is_encrypted }
            }
            _ => Geometry { block_bytes: 512, blocks: 0, granularity_blocks: 8, is_encrypted },
        }
    }

    fn carry_out(&self, channel: Channel, data: &[u8]) -> Result<(), SecurityError> {
        let security = self.security.as_ref().expect("it is worked on for a drive that has it");
        let mut tper = security.current();
        let geometry = self.geometry();
        tper.set_geometry(geometry);
        let now = || {
            let now = security.begun.elapsed().as_millis();
            Nanos::from_millis(u64::try_from(now).unwrap_or(u64::MAX))
        };
        let mut drive = ServedTper { shared: self, security, geometry };
        let done = tper.send(channel, data, now(), &mut drive);
        tper.touch(now());
        done
    }

    /// Erases everything as a format with an erasure of the media does, and waits for it.
    fn erase_all(&self) -> Result<(), String> {
        let closed = lock(&self.entries).clone();
        check_open(&closed).map_err(|error| error.to_string())?;
        {
            let mut background = lock(&self.background);
            background.begin(Work::Format).map_err(|error| error.to_string())?;
        }
        for entry in &closed {
            entry.portion.gate().work = Some(Work::Format);
        }
        let text = "An erasure of the whole drive began, by a method of TCG Opal.".to_owned();
        self.backing.note(EventKind::FormatBegan, text);
        let request = FormatRequest { namespace: None, block_bytes: 0, is_secure: true };
        // Blocks keep their size: no namespace is named.
        let done = self.format(&closed, &[], &request);
        self.end_format(&closed, done.clone());
        done
    }
}

/// A drive as its side of Opal uses it.
struct ServedTper<'a> {
    shared: &'a SharedState,
    security: &'a Security,
    geometry: Geometry,
}

impl ServedTper<'_> {
    /// Forgets blocks of the one namespace, durably.
    fn forget(&self, blocks: &[(u64, u64)]) -> Result<(), Failure> {
        let entries = lock(&self.shared.entries).clone();
        let [Entry { portion, bare, .. }] = &*entries else {
            return Err("ranges are of one namespace".to_owned());
        };
        if portion.look().protection != Protection::Open {
            return Err("the namespace is write-protected".to_owned());
        }
        let bytes = u64::from(self.geometry.block_bytes);
        for (start, length) in blocks {
            let trimmed = bare.trim(start * bytes, length * bytes, Durability::Durable);
            trimmed.map_err(|error| error.to_string())?;
        }
        // Marks that were removed with it are stored, too.
        bare.flush().map_err(|error| error.to_string())
    }
}

impl Backing for ServedTper<'_> {
    fn keep(&mut self, state: &OpalState) -> Result<(), Failure> {
        self.security.store.keep(&state.to_bytes())?;
        self.security.locks.set(Locks::of(state));
        Ok(())
    }

    fn erase(&mut self, erasure: &Erasure) -> Result<(), Failure> {
        match erasure {
            Erasure::Drive => self.shared.erase_all(),
            Erasure::Blocks(blocks) => self.forget(blocks),
        }
    }

    fn read(&mut self, place: Place, buffer: &mut [u8]) -> Result<(), Failure> {
        self.security.store.read(place, buffer)
    }

    fn write(&mut self, place: Place, bytes: &[u8]) -> Result<(), Failure> {
        self.security.store.write(place, bytes)
    }

    fn clear(&mut self, table: ByteTable) -> Result<(), Failure> {
        self.security.store.clear(table)
    }

    fn random(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        self.security.store.random(buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use opal::host::Host;
    use opal::{COM_ID, ObjectId, OpalState, PinCost};

    use super::*;
    use crate::ReadPart;
    use crate::operator::{Backing as _, PersistentState};
    use crate::{
        Administration, Device, DeviceError, DriveEvent, DriveHealth, Identity, MemoryDevice,
        NamespaceRequest, Operations as _, SanitizeRequest,
    };

    const SIZE: u64 = 1 << 20;
    const PIN: &[u8] = b"a pin";

    /// Memory of a drive, which outlasts its operator.
    #[derive(Debug, Default)]
    struct Memory {
        state: Mutex<Vec<u8>>,
        tables: Mutex<BTreeMap<(bool, u64), u8>>,
        erasures: AtomicU32,
        is_full: AtomicBool,
    }

    impl OpalStore for Memory {
        fn keep(&self, state: &[u8]) -> Result<(), String> {
            if self.is_full.load(Ordering::SeqCst) {
                return Err("no space".to_owned());
            }
            *lock(&self.state) = state.to_vec();
            Ok(())
        }

        fn read(&self, place: Place, buffer: &mut [u8]) -> Result<(), String> {
            let tables = lock(&self.tables);
            for (at, byte) in (place.offset..).zip(buffer) {
                *byte = tables.get(&(place.table == ByteTable::Mbr, at)).copied().unwrap_or(0);
            }
            Ok(())
        }

        fn write(&self, place: Place, bytes: &[u8]) -> Result<(), String> {
            let written = (place.offset..).zip(bytes);
            let of = place.table == ByteTable::Mbr;
            lock(&self.tables).extend(written.map(|(at, byte)| ((of, at), *byte)));
            Ok(())
        }

        fn clear(&self, table: ByteTable) -> Result<(), String> {
            lock(&self.tables).retain(|(is_mbr, _), _| *is_mbr != (table == ByteTable::Mbr));
            Ok(())
        }

        fn random(&self, buffer: &mut [u8]) -> Result<(), String> {
            buffer.fill(7);
            Ok(())
        }
    }

    /// A drive in memory that has Opal.
    #[derive(Debug)]
    struct Drive(Arc<Memory>, Arc<MemoryDevice>);

    impl Administration for Drive {
        fn identity(&self) -> Identity {
            Identity { number: 1, model: String::new(), firmware: String::new() }
        }

        fn health(&self) -> DriveHealth {
            DriveHealth::default()
        }
    }

    impl crate::operator::Backing for Drive {
        fn erase(&self, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), String> {
            go_on(0, 1);
            self.0.erasures.fetch_add(1, Ordering::SeqCst);
            self.1.trim(0, SIZE, Durability::Durable).map_err(|error| error.to_string())
        }

        fn keep(&self, _: &PersistentState) -> Result<(), String> {
            Ok(())
        }

        fn opal(&self) -> Result<Option<OpalDrive>, String> {
            let state = OpalState::from_bytes(&lock(&self.0.state))?;
            let store: Arc<dyn OpalStore> = Arc::<Memory>::clone(&self.0);
            Ok(Some(OpalDrive { state, store }))
        }

        fn note(&self, _: EventKind, _: String) {}

        fn now_unix_ms(&self) -> u64 {
            0
        }

        fn events(&self) -> Vec<DriveEvent> {
            Vec::new()
        }

        fn telemetry(&self) -> Vec<u8> {
            Vec::new()
        }
    }

    struct Bench {
        memory: Arc<Memory>,
        base: Arc<MemoryDevice>,
        operator: Arc<Operator>,
    }

    impl Bench {
        fn new() -> Self {
            let memory = Arc::<Memory>::default();
            let random = std::array::from_fn(|index| u8::try_from(index).unwrap());
            let state = OpalState::new(&random, PinCost { memory_kib: 8, passes: 1 });
            memory.keep(&state.to_bytes()).unwrap();
            Self::with(memory, Arc::new(MemoryDevice::new(SIZE)))
        }

        fn with(memory: Arc<Memory>, base: Arc<MemoryDevice>) -> Self {
            let drive = Arc::new(Drive(Arc::clone(&memory), Arc::clone(&base)));
            let kept = PersistentState::whole(512);
            let device: Arc<dyn Device> = Arc::<MemoryDevice>::clone(&base);
            let operator = Arc::new(Operator::open(device, drive, kept, false).unwrap());
            Self { memory, base, operator }
        }

        /// The drive after its server died.
        fn power_cycled(self) -> Self {
            Self::with(self.memory, self.base)
        }

        fn device(&self) -> Arc<dyn Device> {
            self.operator.namespaces().remove(0).fenced_device()
        }

        fn host(&self) -> Host<impl FnMut(Vec<u8>) -> Vec<u8> + use<>> {
            let operator = Arc::clone(&self.operator);
            let channel = Channel { id: 1, protocol: 1, specific: COM_ID };
            Host::new(move |message| {
                operator.security_send(channel, &message).unwrap();
                loop {
                    let answer = operator.security_receive(channel, 2048).unwrap();
                    // Outstanding, and nothing yet.
                    if answer[8..16] != [0, 0, 0, 1, 0, 0, 0, 0] {
                        return answer;
                    }
                }
            })
        }

        /// Locks blocks 64 to 127 as range 1, and reads and writes alike.
        fn lock_range_1(&self) {
            let mut host = self.host();
            assert!(host.take_ownership(PIN));
            let place = [(3, 64), (4, 64), (5, 1), (6, 1)];
            assert_eq!(host.set_range(PIN, 1, &place), 0);
            assert_eq!(host.set_range(PIN, 1, &[(7, 1), (8, 1)]), 0);
        }
    }

    fn is_locked<T: std::fmt::Debug>(done: Result<T, DeviceError>) -> bool {
        match done {
            Ok(_) => false,
            Err(DeviceError::Locked) => true,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_locked_range_is_closed_to_all_and_again_after_the_server_died() {
        let mut bench = Bench::new();
        bench.device().write(64 * 512, &[9; 512], Durability::Volatile).unwrap();
        bench.lock_range_1();
        for round in 0..2 {
            let device = bench.device();
            let mut bytes = [0; 1024];
            assert!(is_locked(device.read(64 * 512, &mut bytes)), "{round}");
            assert!(is_locked(device.read(63 * 512, &mut bytes)));
            assert!(!is_locked(device.read(62 * 512, &mut bytes)));
            assert!(is_locked(device.write(127 * 512, &[0; 512], Durability::Volatile)));
            assert!(is_locked(device.trim(0, SIZE, Durability::Volatile)));
            assert!(is_locked(device.write_zeroes(100 * 512, 512, &|| true)));
            assert!(!is_locked(device.write(128 * 512, &[1; 512], Durability::Volatile)));
            let mut parts: [[u8; 512]; 2] = [[0; 512]; 2];
            let [one, two] = &mut parts;
            let mut reads =
                [ReadPart { offset: 0, buffer: one }, ReadPart { offset: 64 * 512, buffer: two }];
            let done = device.read_many(&mut reads).into_iter().map(is_locked);
            assert_eq!(done.collect::<Vec<_>>(), [false, true]);
            let told = device.allocations(64 * 512, 64 * 512).unwrap();
            assert!(matches!(&told[..], [it] if it.is_stored), "{told:?}");
            device.flush().unwrap();
            let open = [(7, 0), (8, 0)];
            assert_eq!(bench.host().set_range(PIN, 1, &open), 0);
            device.read(64 * 512, &mut bytes).unwrap();
            assert_eq!(bytes[..512], [9; 512]);
            bench = bench.power_cycled();
        }
        assert!(is_locked(bench.device().read(64 * 512, &mut [0; 512])));
    }

    #[test]
    fn ranges_are_served_in_blocks_of_the_size_that_they_were_counted_in_alone() {
        let bench = Bench::new();
        bench.lock_range_1();
        let Bench { memory, base, operator } = bench;
        drop(operator);
        let open = |block_bytes| {
            let drive = Arc::new(Drive(Arc::clone(&memory), Arc::clone(&base)));
            let device: Arc<dyn Device> = Arc::<MemoryDevice>::clone(&base);
            Operator::open(device, drive, PersistentState::whole(block_bytes), false)
        };
        let told = open(4096).err().unwrap().to_string();
        assert!(told.contains("count blocks of 512 bytes"), "{told}");
        assert!(open(512).is_ok());
    }

    #[test]
    fn a_drive_whose_blocks_may_be_about_to_change_is_not_activated() {
        let bench = Bench::new();
        let entries = lock(&bench.operator.shared.entries).clone();
        entries[0].portion.gate().work = Some(Work::Format);
        assert!(!bench.host().take_ownership(PIN));
        entries[0].portion.gate().work = None;
    }

    #[test]
    fn each_message_has_its_own_result_and_a_host_that_is_gone_no_session() {
        let bench = Bench::new();
        bench.lock_range_1();
        let security = bench.operator.shared.security.as_ref().unwrap();
        let begin = |number| {
            *lock(&security.work) = MessageWork { is_running: true, number, result: None };
        };
        begin(7);
        security.end(Some(Err(SecurityError::State)));
        // Another host's message begins before the sender of the first one has looked.
        lock(&security.work).is_running = true;
        lock(&security.work).number = 8;
        assert_eq!(security.result_of(7), Some(Err(SecurityError::State)));
        security.end(Some(Ok(())));
        assert_eq!((security.result_of(7), security.result_of(8)), (None, Some(Ok(()))));
        let mut host = bench.host();
        assert_eq!(host.start(ObjectId::LOCKING_SP, Some((ObjectId::admin(1), PIN))), 0);
        assert_eq!(bench.host().start(ObjectId::ADMIN_SP, None), 7);
        bench.operator.security_end(1);
        assert_eq!(bench.host().start(ObjectId::ADMIN_SP, None), 0);
    }

    #[test]
    fn a_key_of_a_range_erases_that_range_alone() {
        let bench = Bench::new();
        let device = bench.device();
        device.write(0, &vec![5; 128 << 9], Durability::Volatile).unwrap();
        let mut host = bench.host();
        assert!(host.take_ownership(PIN));
        assert_eq!(host.set_range(PIN, 1, &[(3, 64), (4, 32)]), 0);
        assert_eq!(host.start(ObjectId::LOCKING_SP, Some((ObjectId::admin(1), PIN))), 0);
        assert_eq!(host.generate_key(1), 0);
        let mut bytes = vec![0; 128 << 9];
        device.read(0, &mut bytes).unwrap();
        let is_erased = |block: usize| bytes[block * 512..][..512] == [0; 512];
        assert!((0..128).all(|block| is_erased(block) == (64..96).contains(&block)));
        assert_eq!(host.generate_key(0), 0);
        device.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, vec![0; 128 << 9]);
        assert_eq!(bench.memory.erasures.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn the_shadow_stands_before_the_first_blocks_until_it_is_done() {
        let bench = Bench::new();
        bench.device().write(0, &[3; 4096], Durability::Volatile).unwrap();
        let mut host = bench.host();
        assert!(host.take_ownership(PIN));
        assert_eq!(host.start(ObjectId::LOCKING_SP, Some((ObjectId::admin(1), PIN))), 0);
        assert_eq!(host.write(ObjectId::MBR, 1000, &[8; 1500]), 0);
        assert_eq!(host.set(ObjectId::MBR_CONTROL, &[(2, 1.into()), (1, 1.into())]), 0);
        host.end();
        let mut bytes = [0; 4096];
        bench.device().read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [3; 4096]);
        let bench = bench.power_cycled();
        bench.device().read(0, &mut bytes).unwrap();
        assert_eq!((bytes[999], bytes[1000], bytes[2499], bytes[2500]), (0, 8, 8, 0));
        assert!(is_locked(bench.device().write(0, &[0; 512], Durability::Volatile)));
        assert!(matches!(bench.operator.begin_sanitize(SANITIZE), Err(OperationError::Locked)));
        let mut host = bench.host();
        assert_eq!(host.start(ObjectId::LOCKING_SP, Some((ObjectId::admin(1), PIN))), 0);
        assert_eq!(host.set(ObjectId::MBR_CONTROL, &[(2, 1.into())]), 0);
        bench.device().read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [3; 4096]);
    }

    const SANITIZE: SanitizeRequest =
        SanitizeRequest { exit: crate::Exit::Restricted, keeps_blocks: false, is_crypto: false };

    #[test]
    fn a_revert_erases_the_drive_and_opens_it() {
        let bench = Bench::new();
        bench.device().write(64 * 512, &[9; 512], Durability::Volatile).unwrap();
        bench.lock_range_1();
        let format = |block_bytes| FormatRequest { namespace: None, block_bytes, is_secure: false };
        let create = NamespaceRequest { size: 4096, block_bytes: 512, is_private: false };
        let locked = Some(OperationError::Locked);
        assert_eq!(bench.operator.begin_format(&format(512)).err(), locked);
        assert_eq!(bench.operator.begin_sanitize(SANITIZE).err(), locked);
        assert_eq!(bench.operator.mark_unreadable(1, 0, 1).err(), locked);
        assert_eq!(bench.operator.delete_namespace(None).err(), locked);
        assert_eq!(bench.operator.create_namespace(&create).err(), locked);
        assert_eq!(bench.operator.resize_namespace(1, 4096).err(), locked);
        assert_eq!(bench.host().set_range(PIN, 1, &[(7, 0), (8, 0)]), 0);
        assert_eq!(bench.operator.begin_format(&format(4096)).err(), locked);
        let mut host = bench.host();
        // One that cannot be stored erases, and leaves the locks.
        assert_eq!(host.start(ObjectId::ADMIN_SP, Some((ObjectId::SID, PIN))), 0);
        bench.memory.is_full.store(true, Ordering::SeqCst);
        assert_eq!(host.revert(), 0x0F);
        bench.memory.is_full.store(false, Ordering::SeqCst);
        let bench = bench.power_cycled();
        assert!(is_locked(bench.device().read(64 * 512, &mut [0; 512])));
        let psid = OpalState::from_bytes(&lock(&bench.memory.state)).unwrap().psid().to_owned();
        let mut host = bench.host();
        assert_eq!(host.start(ObjectId::ADMIN_SP, Some((ObjectId::PSID, psid.as_bytes()))), 0);
        assert_eq!(host.revert(), 0);
        let mut bytes = [1; 512];
        bench.device().read(64 * 512, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 512]);
        assert_eq!(bench.memory.erasures.load(Ordering::SeqCst), 2);
        bench.operator.delete_namespace(None).unwrap();
        // Without its one namespace the drive is not activated.
        assert!(!bench.host().take_ownership(PIN));
    }

    #[test]
    fn an_erasure_beside_other_work_is_refused() {
        let bench = Bench::new();
        bench.lock_range_1();
        lock(&bench.operator.shared.background).begin(Work::Sanitize).unwrap();
        let mut host = bench.host();
        assert_eq!(host.start(ObjectId::ADMIN_SP, Some((ObjectId::SID, PIN))), 0);
        assert_eq!(host.revert(), 0x3F);
        assert!(is_locked(bench.device().read(64 * 512, &mut [0; 512])));
    }

    #[test]
    fn a_state_that_cannot_be_read_keeps_the_drive_from_being_served() {
        let bench = Bench::new();
        lock(&bench.memory.state).truncate(9);
        let drive = Arc::new(Drive(Arc::clone(&bench.memory), Arc::clone(&bench.base)));
        assert!(drive.opal().is_err());
        let device: Arc<dyn Device> = Arc::<MemoryDevice>::clone(&bench.base);
        let opened = Operator::open(device, drive, PersistentState::whole(512), false);
        assert!(opened.is_err());
    }
}
