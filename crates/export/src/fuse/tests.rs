//! Files of a mount, through the system's own calls.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

use device::MemoryDevice;

use super::*;
use crate::pace::tests::drive;
use crate::{Pace, Served};

/// A recorder that keeps everything.
#[derive(Debug, Default)]
struct All(Mutex<Vec<Served>>);

impl Recorder for All {
    fn keep(&self, client: u64, served: &[Served]) {
        assert_eq!(client, CLIENT);
        self.0.lock().unwrap().extend_from_slice(served);
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
