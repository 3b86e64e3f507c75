//! Operations on a drive in memory, with background work that is waited for.

use std::sync::Condvar;
use std::time::{Duration, Instant};

use super::*;
use crate::{DeviceError, Durability, Exit, MemoryDevice, SelfTestEnd};

const SIZE: u64 = 1 << 20;

/// A drive in memory whose erasure waits until it may go on.
#[derive(Debug, Default)]
struct Drive {
    kept: Mutex<Vec<PersistentState>>,
    notes: Mutex<Vec<String>>,
    /// True if an erasure waits.
    holds: Mutex<bool>,
    released: Condvar,
    fails: AtomicBool,
    /// True if nothing can be stored.
    is_full: AtomicBool,
}

impl Administration for Drive {
    fn identity(&self) -> Identity {
        Identity { number: 1, model: "test".to_owned(), firmware: String::new() }
    }

    fn health(&self) -> DriveHealth {
        DriveHealth { power_on_s: 7200, ..DriveHealth::default() }
    }
}

impl Backing for Drive {
    fn erase(&self, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), String> {
        let mut holds = lock(&self.holds);
        loop {
            // It may be told to stop before it has begun.
            if !go_on(1, 2) {
                return Ok(());
            }
            if !*holds {
                break;
            }
            let waited = self.released.wait_timeout(holds, Duration::from_millis(1));
            holds = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if self.fails.load(Ordering::SeqCst) { Err("a test".to_owned()) } else { Ok(()) }
    }

    fn keep(&self, kept: &PersistentState) -> Result<(), String> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err("no space".to_owned());
        }
        lock(&self.kept).push(kept.clone());
        Ok(())
    }

    fn note(&self, _: EventKind, text: String) {
        lock(&self.notes).push(text);
    }

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

/// A namespace that several controllers may have.
fn shared(size: u64, block_bytes: u32) -> NamespaceRequest {
    NamespaceRequest { size, block_bytes, is_private: false }
}

fn operator(kept: PersistentState) -> (Operator, Arc<Drive>, Arc<MemoryDevice>) {
    let (drive, device) = (Arc::<Drive>::default(), Arc::new(MemoryDevice::new(SIZE)));
    let backing = Arc::<Drive>::clone(&drive);
    let operator = Operator::open(Arc::<MemoryDevice>::clone(&device), backing, kept, false);
    (operator.unwrap(), drive, device)
}

fn device(operator: &Operator, id: u32) -> Arc<dyn Device> {
    operator.namespaces().into_iter().find(|it| it.id == id).unwrap().device
}

fn await_end(operator: &Operator) -> OperationStatus {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let status = operator.operation_status();
        let is_busy = status.is_formatting
            || status.self_test.is_some()
            || status.sanitize.state == SanitizeState::Running;
        if !is_busy {
            return status;
        }
        assert!(Instant::now() < deadline, "{status:?}");
        std::thread::yield_now();
    }
}

#[test]
fn namespaces_are_made_in_gaps_and_gone_ones_refuse_everything() {
    let (operator, drive, base) = operator(PersistentState::whole(512));
    assert_eq!(operator.space().unallocated_bytes, 0);
    let full = operator.create_namespace(&shared(4096, 512)).unwrap_err();
    assert_eq!(full, OperationError::NoSpace { asked: 4096, free: 0 });
    let old = device(&operator, 1);
    old.write(0, &[7; 4096], Durability::Volatile).unwrap();
    operator.delete_namespace(Some(1)).unwrap();
    assert!(matches!(old.read(0, &mut [0; 512]), Err(DeviceError::Gone)));
    assert_eq!(old.size(), 0);
    let ids = [1 << 18, 1 << 18, 1 << 19]
        .map(|size| operator.create_namespace(&shared(size, 4096)).unwrap());
    assert_eq!((ids, operator.space().unallocated_bytes), ([1, 2, 3], 0));
    let mut back = [1; 4096];
    device(&operator, 1).read(0, &mut back).unwrap();
    assert_eq!(back, [0; 4096], "what the other one stored is forgotten");
    device(&operator, 2).write(0, &[2; 512], Durability::Volatile).unwrap();
    base.read(1 << 18, &mut back).unwrap();
    assert_eq!(back[..512], [2; 512], "where the first ends");
    operator.delete_namespace(Some(2)).unwrap();
    assert_eq!(
        operator.create_namespace(&shared(1 << 19, 512)).unwrap_err().to_string(),
        "524288 bytes for a namespace, 262144 are free in one piece"
    );
    operator.resize_namespace(1, 1 << 19).unwrap();
    assert_eq!(device(&operator, 1).size(), 1 << 19);
    let kept = lock(&drive.kept).last().unwrap().clone();
    let names: Vec<&str> = kept.namespaces.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["ns1", "ns3"]);
    operator.delete_namespace(None).unwrap();
    assert!(operator.namespaces().is_empty());
    assert!(operator.delete_namespace(Some(1)).is_err());
}

#[test]
fn a_format_forgets_one_namespace_and_a_secure_one_all() {
    let (operator, _, _) = operator(PersistentState::whole(512));
    operator.delete_namespace(None).unwrap();
    for _ in 0..2 {
        operator.create_namespace(&shared(1 << 18, 512)).unwrap();
    }
    let holds = |id| {
        let mut back = [0; 8];
        device(&operator, id).read(0, &mut back).unwrap();
        back == [9; 8]
    };
    let write = |id| device(&operator, id).write(0, &[9; 8], Durability::Volatile).unwrap();
    write(1);
    write(2);
    let request = FormatRequest { namespace: Some(1), block_bytes: 4096, is_secure: false };
    let version = operator.namespaces_version();
    operator.begin_format(&request).unwrap();
    assert_eq!(await_end(&operator).format_failure, None);
    assert!(operator.namespaces_version() > version);
    assert!(!holds(1) && holds(2));
    let blocks: Vec<u32> = operator.namespaces().iter().map(|it| it.block_bytes).collect();
    assert_eq!(blocks, [4096, 512]);
    operator.begin_format(&FormatRequest { is_secure: true, ..request }).unwrap();
    await_end(&operator);
    assert!(!holds(2));
    let none = operator.begin_format(&FormatRequest { namespace: Some(9), ..request });
    assert_eq!(none.err(), Some(OperationError::NoNamespace { id: 9 }));
}

#[test]
fn each_format_has_a_result_of_its_own() {
    let (operator, drive, _) = operator(PersistentState::whole(512));
    let request = FormatRequest { namespace: Some(1), block_bytes: 512, is_secure: true };
    *lock(&drive.holds) = true;
    drive.fails.store(true, Ordering::SeqCst);
    let first = operator.begin_format(&request).unwrap();
    assert_eq!(first.get(), None, "it is under way");
    *lock(&drive.holds) = false;
    assert_eq!(await_end(&operator).format_failure, Some("a test".to_owned()));
    drive.fails.store(false, Ordering::SeqCst);
    let second = operator.begin_format(&request).unwrap();
    assert_eq!(await_end(&operator).format_failure, None);
    operator.stop();
    assert_eq!(second.get(), Some(&Ok(())));
    assert_eq!(first.get(), Some(&Err("a test".to_owned())));
}

#[test]
fn a_sanitize_shuts_everybody_out_and_goes_on_with_the_next_server() {
    let (operator, drive, base) = operator(PersistentState::whole(512));
    device(&operator, 1).write(0, &[9; 8], Durability::Volatile).unwrap();
    operator.mark_unreadable(1, 10, 2).unwrap();
    *lock(&drive.holds) = true;
    operator.begin_sanitize(Exit::Restricted.into()).unwrap();
    let shut = device(&operator, 1).write(0, &[1], Durability::Volatile);
    assert!(matches!(shut, Err(DeviceError::InProgress(Work::Sanitize))));
    assert_eq!(
        operator.create_namespace(&shared(4096, 512)),
        Err(OperationError::Busy(Work::Sanitize))
    );
    // The server ends in the middle, or is killed: what was kept says that it was begun.
    operator.stop();
    drop(operator);
    let kept = lock(&drive.kept).last().unwrap().clone();
    assert_eq!(kept.sanitize, SanitizeState::Running);
    let again = Operator::open(base, Arc::<Drive>::clone(&drive), kept, false).unwrap();
    assert!(matches!(device(&again, 1).flush(), Err(DeviceError::InProgress(Work::Sanitize))));
    *lock(&drive.holds) = false;
    drive.released.notify_all();
    let status = await_end(&again).sanitize;
    assert_eq!((status.state, status.ended, status.is_erased), (SanitizeState::Done, 1, true));
    device(&again, 1).read(5120, &mut [0; 512]).unwrap();
    device(&again, 1).write(0, &[1], Durability::Volatile).unwrap();
    assert!(!again.operation_status().sanitize.is_erased, "a client wrote");
}

#[test]
fn a_sanitize_that_failed_leaves_the_drive_shut_unless_the_exit_is_free() {
    for exit in [Exit::Restricted, Exit::Unrestricted] {
        let (operator, drive, base) = operator(PersistentState::whole(512));
        drive.fails.store(true, Ordering::SeqCst);
        operator.begin_sanitize(exit.into()).unwrap();
        assert_eq!(await_end(&operator).sanitize.state, SanitizeState::Failed);
        let kept = lock(&drive.kept).last().unwrap().clone();
        drop(operator);
        let operator = Operator::open(base, Arc::<Drive>::clone(&drive), kept, false).unwrap();
        let shut = device(&operator, 1).read(0, &mut [0]);
        assert!(matches!(shut, Err(DeviceError::InProgress(Work::SanitizeFailed))));
        if exit == Exit::Unrestricted {
            operator.exit_failure().unwrap();
        } else {
            assert_eq!(operator.exit_failure(), Err(OperationError::Busy(Work::SanitizeFailed)));
            drive.fails.store(false, Ordering::SeqCst);
            operator.begin_sanitize(exit.into()).unwrap();
            await_end(&operator);
        }
        device(&operator, 1).read(0, &mut [0]).unwrap();
    }
}

#[test]
fn marked_sectors_fail_until_they_are_written_and_are_kept_before_a_flush_ends() {
    let (operator, drive, base) = operator(PersistentState::whole(512));
    let it = device(&operator, 1);
    operator.mark_unreadable(1, 8, 8).unwrap();
    let lost = it.read(0, &mut [0; 8192]);
    assert!(matches!(lost, Err(DeviceError::Unreadable { lba: 8, .. })));
    it.read(0, &mut [0; 4096]).unwrap();
    it.write(4096, &[1; 1024], Durability::Volatile).unwrap();
    it.write(5120 + 100, &[1; 412], Durability::Volatile).unwrap();
    it.read(4096, &mut [0; 1024]).unwrap();
    assert!(it.read(5120, &mut [0; 512]).is_err(), "a part of a sector leaves its rest");
    let runs = |kept: &PersistentState| kept.namespaces[0].unreadable.runs().collect::<Vec<_>>();
    assert_eq!(runs(lock(&drive.kept).last().unwrap()), [(8, 16)]);
    it.flush().unwrap();
    let kept = lock(&drive.kept).last().unwrap().clone();
    assert_eq!(runs(&kept), [(10, 16)]);
    let again = Operator::open(base, Arc::<Drive>::clone(&drive), kept, false).unwrap();
    assert!(device(&again, 1).read(5120, &mut [0; 512]).is_err());
    device(&again, 1).trim(0, SIZE, Durability::Durable).unwrap();
    assert!(runs(lock(&drive.kept).last().unwrap()).is_empty());
}

#[test]
fn leaving_a_failed_sanitize_that_cannot_be_stored_can_be_tried_again() {
    let (operator, drive, _) = operator(PersistentState::whole(512));
    drive.fails.store(true, Ordering::SeqCst);
    operator.begin_sanitize(Exit::Unrestricted.into()).unwrap();
    await_end(&operator);
    drive.is_full.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let full = operator.exit_failure().unwrap_err();
        assert!(matches!(full, OperationError::Failed { .. }), "{full}");
        assert_eq!(operator.operation_status().sanitize.state, SanitizeState::Failed);
    }
    drive.is_full.store(false, Ordering::SeqCst);
    operator.exit_failure().unwrap();
    device(&operator, 1).read(0, &mut [0]).unwrap();
}

/// A device that loses a sector, and counts its flushes.
#[derive(Debug)]
struct Losing(MemoryDevice, AtomicU64);

impl Device for Losing {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        if (offset..offset + buffer.len() as u64).contains(&(77 * 512)) {
            return Err(DeviceError::Unreadable { lba: 77, reason: String::new() });
        }
        self.0.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        self.0.write(offset, bytes, durability)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.0.trim(offset, length, durability)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<crate::Allocation>, DeviceError> {
        self.0.allocations(offset, length)
    }
}

#[test]
fn a_self_test_reads_what_is_stored_and_names_what_is_lost() {
    let (operator, drive, _) = operator(PersistentState::whole(512));
    operator.begin_self_test(SelfTest::Extended, None).unwrap();
    let passed = await_end(&operator).self_tests;
    assert_eq!((passed[0].end, passed[0].power_on_hours), (SelfTestEnd::Passed, 2));
    drop(operator);
    let base = Arc::new(Losing(MemoryDevice::new(SIZE), AtomicU64::new(0)));
    base.write(0, &vec![1; 65_536], Durability::Volatile).unwrap();
    let kept = lock(&drive.kept).last().unwrap().clone();
    let operator = Operator::open(base, drive, kept, false).unwrap();
    operator.begin_self_test(SelfTest::Short, Some(1)).unwrap();
    let tests = await_end(&operator).self_tests;
    assert_eq!(tests[0].end, SelfTestEnd::Failed { namespace: 1, lba: 77 });
    assert_eq!(tests[1].end, SelfTestEnd::Passed);
    assert!(operator.begin_self_test(SelfTest::Short, Some(2)).is_err());
}

/// The removal of a mark by a write must not outlast a crash that the write does not: the sector
/// would come back with what it held before it was marked.
#[test]
fn a_removed_mark_is_stored_only_together_with_what_replaced_it() {
    let drive = Arc::<Drive>::default();
    let base = Arc::new(Losing(MemoryDevice::new(SIZE), AtomicU64::new(0)));
    let (device_below, backing) = (Arc::<Losing>::clone(&base), Arc::<Drive>::clone(&drive));
    let operator =
        Operator::open(device_below, backing, PersistentState::whole(512), false).unwrap();
    let flushes = || base.1.load(Ordering::SeqCst);
    operator.mark_unreadable(1, 0, 8).unwrap();
    assert_eq!(flushes(), 0, "nothing replaced anything yet");
    let it = device(&operator, 1);
    it.write(0, &[2; 4096], Durability::Volatile).unwrap();
    operator.mark_unreadable(1, 800, 1).unwrap();
    assert_eq!(flushes(), 1);
    operator.mark_unreadable(1, 900, 1).unwrap();
    assert_eq!(flushes(), 1, "it is durable since");
    // A durable write says nothing of one beside it that is not.
    operator.mark_unreadable(1, 0, 16).unwrap();
    it.write(0, &[2; 4096], Durability::Volatile).unwrap();
    it.write(4096, &[2; 4096], Durability::Durable).unwrap();
    assert_eq!(flushes(), 2);
    // What could not be stored is stored the next time.
    it.write(800 * 512, &[2; 512], Durability::Volatile).unwrap();
    drive.is_full.store(true, Ordering::SeqCst);
    operator.mark_unreadable(1, 0, 1).unwrap_err();
    drive.is_full.store(false, Ordering::SeqCst);
    it.flush().unwrap();
    let kept = lock(&drive.kept).last().unwrap().clone();
    assert_eq!(kept.namespaces[0].unreadable.runs().collect::<Vec<_>>(), [(0, 1), (900, 901)]);
}

#[test]
fn nothing_takes_away_a_namespace_that_a_host_protected() {
    let (operator, _, _) = operator(PersistentState::whole(512));
    operator.delete_namespace(None).unwrap();
    for _ in 0..2 {
        operator.create_namespace(&shared(1 << 18, 512)).unwrap();
    }
    operator.protect(2, true).unwrap();
    let refused = Err(OperationError::Protected { id: 2 });
    let request = FormatRequest { namespace: Some(1), block_bytes: 512, is_secure: false };
    for (namespace, is_secure) in [(Some(2), false), (None, false), (Some(1), true)] {
        let begun = operator.begin_format(&FormatRequest { namespace, is_secure, ..request });
        assert_eq!(begun.map(drop), refused);
    }
    assert_eq!(operator.begin_sanitize(Exit::Restricted.into()), refused);
    assert_eq!(operator.delete_namespace(Some(2)), refused);
    assert_eq!(operator.delete_namespace(None), refused);
    assert_eq!(operator.mark_unreadable(2, 0, 1), refused);
    operator.begin_format(&request).unwrap();
    assert_eq!(await_end(&operator).format_failure, None);
    operator.protect(2, false).unwrap();
    operator.delete_namespace(Some(2)).unwrap();
}

#[test]
fn a_drive_that_is_served_for_reading_takes_and_loses_no_protection() {
    let (backing, below) = (Arc::<Drive>::default(), Arc::new(MemoryDevice::new(SIZE)));
    let kept = Arc::<Drive>::clone(&backing);
    let operator = Operator::open(below, backing, PersistentState::whole(512), true).unwrap();
    for is_protected in [true, false] {
        assert_eq!(operator.protect(1, is_protected), Err(OperationError::ReadOnly));
    }
    assert!(lock(&kept.kept).is_empty() && operator.protection(1) == Protection::Open);
}

#[test]
fn a_protected_namespace_is_read_and_not_written() {
    let (operator, _, _) = operator(PersistentState::whole(512));
    let it = device(&operator, 1);
    assert!(!it.is_write_protected());
    operator.protect(1, true).unwrap();
    assert!(it.is_write_protected(), "clients that come now are told");
    assert!(matches!(it.write(0, &[1], Durability::Volatile), Err(DeviceError::ReadOnly)));
    assert!(matches!(it.trim(0, 512, Durability::Volatile), Err(DeviceError::ReadOnly)));
    it.read(0, &mut [0]).unwrap();
    operator.protect(1, false).unwrap();
    it.write(0, &[1], Durability::Volatile).unwrap();
}
