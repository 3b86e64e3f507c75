//! Files of a mount, through the system's own calls.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use device::{Allocation, MemoryDevice};

use super::*;
use crate::pace::tests::drive;
use crate::{Pace, RecordedCommand};

/// A recorder that keeps everything.
#[derive(Debug, Default)]
struct All(Mutex<Vec<RecordedCommand>>);

impl Recorder for All {
    fn keep(&self, client: u64, served: &[RecordedCommand]) {
        assert_eq!(client, CLIENT);
        self.0.lock().unwrap().extend_from_slice(served);
    }
}

/// A device that counts durable writes, and whose size changes.
#[derive(Debug)]
struct Watched {
    inner: MemoryDevice,
    size: AtomicU64,
    durable_writes: AtomicU64,
}

impl Watched {
    fn new() -> Arc<Self> {
        let inner = MemoryDevice::new(1 << 20);
        Arc::new(Self { inner, size: AtomicU64::new(1 << 20), durable_writes: AtomicU64::new(0) })
    }

    fn export(self: &Arc<Self>) -> Export {
        Export { device: Arc::<Self>::clone(self), ..export("", false, None) }
    }
}

impl Device for Watched {
    fn size(&self) -> u64 {
        self.size.load(Ordering::SeqCst)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        let is_durable = durability == Durability::Durable;
        self.durable_writes.fetch_add(u64::from(is_durable), Ordering::SeqCst);
        self.inner.write(offset, bytes, durability)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.inner.trim(offset, length, durability)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.inner.allocations(offset, length)
    }
}

fn export(name: &str, is_read_only: bool, pace: Option<Arc<Pace>>) -> Export {
    Export {
        name: name.into(),
        description: String::new(),
        device: Arc::new(MemoryDevice::new(1 << 20)),
        is_read_only,
        pace,
    }
}

/// A mount of these on a folder of its own; none where this machine or user has no FUSE.
#[expect(clippy::print_stderr, reason = "the reader of a test run is told that it was skipped")]
fn mounted(exports: Vec<Export>) -> Option<(Mount, Arc<All>, tempfile::TempDir)> {
    let recorder = Arc::<All>::default();
    let exports = Exports::new(exports).unwrap();
    let exports = exports.recorded(Arc::<All>::clone(&recorder));
    let folder = tempfile::tempdir().unwrap();
    match Mount::new(&exports, folder.path()) {
        Ok(mount) => Some((mount, recorder, folder)),
        Err(error) => {
            eprintln!("no FUSE on this machine: {error}");
            None
        }
    }
}

#[test]
fn files_of_exports_are_read_written_and_trimmed_like_block_devices() {
    let exports = vec![export("", false, None), export("a/b", true, None)];
    let Some((mount, recorder, folder)) = mounted(exports) else { return };
    let names = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<PathBuf> = names.map(|it| it.unwrap().file_name().into()).collect();
    names.sort();
    assert_eq!(names, [PathBuf::from("a%2Fb"), PathBuf::from("drive")]);

    let path = folder.path().join("drive");
    let file = OpenOptions::new().read(true).write(true).truncate(true).open(&path).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1 << 20, "truncation changes nothing");
    file.write_all_at(&[7; 8192], 4096).unwrap();
    file.sync_all().unwrap();
    let mut bytes = [0; 4096];
    file.read_exact_at(&mut bytes, 8192).unwrap();
    assert_eq!(bytes, [7; 4096]);
    let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, hole, 8192, 4096).unwrap();
    file.read_exact_at(&mut bytes, 8192).unwrap();
    assert_eq!(bytes, [0; 4096]);
    let grown = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 4096);
    assert_eq!(grown, Err(rustix::io::Errno::OPNOTSUPP));
    // Nothing is beyond the end.
    assert_eq!(file.read_at(&mut bytes, 1 << 20).unwrap(), 0);
    assert_eq!(file.read_at(&mut bytes, (1 << 20) - 1000).unwrap(), 1000);
    let beyond = file.write_at(&[1; 4096], 1 << 20).unwrap_err();
    assert_eq!(beyond.kind(), io::ErrorKind::StorageFull);
    drop(file);

    let other = folder.path().join("a%2Fb");
    let refused = OpenOptions::new().write(true).open(&other).unwrap_err();
    let refused = refused.kind();
    assert!(
        matches!(refused, io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied),
        "{refused}"
    );
    assert_eq!(std::fs::read(&other).unwrap().len(), 1 << 20);
    mount.unmount().unwrap();
    assert!(!path.exists());

    // Two threads may tell of two requests in any order.
    let mut kept = recorder.0.lock().unwrap().clone();
    kept.sort_by_key(|it| it.issued_at);
    let kept: Vec<_> = kept.iter().map(|it| (it.asked.op, it.asked.offset)).take(5).collect();
    let expected =
        [(Op::Write, 4096), (Op::Flush, 0), (Op::Read, 8192), (Op::Trim, 8192), (Op::Read, 8192)];
    assert_eq!(kept, expected);
}

#[test]
fn a_write_that_must_be_durable_is_durable_when_it_is_acknowledged() {
    let device = Watched::new();
    let Some((mount, recorder, folder)) = mounted(vec![device.export()]) else { return };
    let path = folder.path().join("drive");
    let durable_writes = || device.durable_writes.load(Ordering::SeqCst);
    let plain = OpenOptions::new().write(true).open(&path).unwrap();
    plain.write_all_at(&[1; 4096], 0).unwrap();
    assert_eq!(durable_writes(), 0);
    let flags = rustix::io::ReadWriteFlags::DSYNC;
    rustix::io::pwritev2(&plain, &[io::IoSlice::new(&[2; 4096])], 4096, flags).unwrap();
    assert_eq!(durable_writes(), 1, "RWF_DSYNC");
    let synced = OpenOptions::new().write(true).custom_flags(O_DSYNC).open(&path).unwrap();
    synced.write_all_at(&[3; 4096], 8192).unwrap();
    assert_eq!(durable_writes(), 2, "O_DSYNC");
    drop((plain, synced));
    mount.unmount().unwrap();
    let mut kept = recorder.0.lock().unwrap().clone();
    kept.sort_by_key(|it| it.issued_at);
    let fuas: Vec<_> = kept.iter().map(|it| it.asked.fua).collect();
    assert_eq!(fuas, [false, true, true]);
}

#[test]
fn a_file_has_the_size_of_a_drive_that_was_resized() {
    let device = Watched::new();
    let Some((mount, _, folder)) = mounted(vec![device.export()]) else { return };
    let path = folder.path().join("drive");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 20);
    device.size.store(1 << 19, Ordering::SeqCst);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 19);
    mount.unmount().unwrap();
}

#[test]
fn replies_keep_to_the_times_of_a_model() {
    let pace = Arc::new(Pace::new(drive()));
    let Some((mount, recorder, folder)) = mounted(vec![export("", false, Some(pace))]) else {
        return;
    };
    let file = OpenOptions::new().read(true).write(true).open(folder.path().join("drive")).unwrap();
    file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let file = &file;
            scope.spawn(move || {
                let mut bytes = [0; 4096];
                for page in 0..32 {
                    file.read_exact_at(&mut bytes, (page * 4 + thread) << 12).unwrap();
                    assert_eq!(bytes, [1; 4096]);
                }
            });
        }
    });
    file.sync_all().unwrap();
    drop(file);
    mount.unmount().unwrap();
    let kept = recorder.0.lock().unwrap();
    let reads = kept.iter().filter(|it| it.asked.op == Op::Read);
    let latencies: Vec<Duration> = reads.map(|it| it.completed_at - it.issued_at).collect();
    assert_eq!(latencies.len(), 128);
    // The card's flash takes longer; a slow machine can only add to it.
    assert!(latencies.iter().all(|it| *it >= Duration::from_micros(20)), "{latencies:?}");
}

#[test]
fn every_name_of_an_export_makes_a_name_of_a_file() {
    assert_eq!(file_name(""), "drive");
    assert_eq!(file_name("data"), "data");
    assert_eq!(file_name(".."), "%2E%2E");
    assert_eq!(file_name("a/b%\n"), "a%2Fb%25%0A");
    let long = Exports::new(vec![export(&"n".repeat(256), false, None)]).unwrap();
    let refused = Mount::new(&long, Path::new("/nonexistent")).unwrap_err().to_string();
    assert!(refused.contains("256 bytes, the limit is 255"), "{refused}");
    let same = vec![export("", false, None), export("drive", false, None)];
    let refused = Mount::new(&Exports::new(same).unwrap(), Path::new("/nonexistent")).unwrap_err();
    assert_eq!(refused.to_string(), "two exports make a file named `drive`");
}

#[test]
fn a_folder_that_others_unmounted_is_let_go_and_one_in_use_is_not() {
    let Some((mount, _, folder)) = mounted(vec![export("", false, None)]) else { return };
    rustix::mount::unmount(folder.path(), UnmountFlags::empty()).unwrap();
    mount.unmount().unwrap();
    let Some((mount, _, folder)) = mounted(vec![export("", false, None)]) else { return };
    let file = std::fs::File::open(folder.path().join("drive")).unwrap();
    let refused = mount.unmount().unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy, "{refused}");
    drop(file);
    rustix::mount::unmount(folder.path(), UnmountFlags::empty()).unwrap();
}
