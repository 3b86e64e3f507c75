//! Deaths of the server of a volume in files: what was acknowledged survives, since the write
//! buffer is a file beside them.

use std::path::{Path, PathBuf};

use blockio::{Bytes, Rng};
use live::check::check;
use live::simulation::Disks;
use live::{
    Beyond, Capacity, Compression, CreateOptions, Device as _, Drive, Durability, Opening, Plan,
    Preallocation, Promise, RecoveredVolume, VolumeOptions, create, format, inspect, keep_promise,
};
use status::LeftBuffer;

use crate::volume_options;

const PAGE_BYTES: usize = 4096;

struct Volume {
    folder: tempfile::TempDir,
}

impl Volume {
    fn new() -> Self {
        let volume = Self { folder: tempfile::tempdir().expect("the test makes it so") };
        volume.create("volume");
        volume
    }

    fn create(&self, name: &str) -> PathBuf {
        let volume = self.folder.path().join(name);
        let die = |die: u32| self.folder.path().join(format!("{name}-{die}.img"));
        let options = CreateOptions {
            volume: volume.clone(),
            dies: (0..3).map(die).collect(),
            over_provisioning: 0.2,
            ..volume_options(self.folder.path(), 3, Bytes(16 << 20))
        };
        let sparse =
            VolumeOptions { preallocation: Preallocation::Off, ..VolumeOptions::default() };
        create(&options, &sparse).expect("the test makes it so");
        volume
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("volume")
    }

    fn buffer(&self) -> PathBuf {
        self.path().join("write-buffer")
    }

    fn open(&self) -> Drive {
        Drive::open(&self.path()).expect("the test makes it so")
    }
}

fn fill(drive: &Drive, page: u64, content: u8) {
    let offset = page * PAGE_BYTES as u64;
    drive
        .write(offset, &[content; PAGE_BYTES], Durability::Volatile)
        .expect("the test makes it so");
}

fn content(drive: &Drive, page: u64) -> u8 {
    let mut bytes = [0; PAGE_BYTES];
    drive.read(page * PAGE_BYTES as u64, &mut bytes).expect("the test makes it so");
    assert_eq!(bytes, [bytes[0]; PAGE_BYTES]);
    bytes[0]
}

/// Sentences about the write buffer.
fn told(drive: &Drive) -> Vec<String> {
    drive.unused_media().map(str::to_owned).collect()
}

#[test]
fn acknowledged_writes_and_trims_survive_again_and_again() {
    let volume = Volume::new();
    let mut rng = Rng::new(1);
    let mut expected = [0_u8; 100];
    for round in 1..=20 {
        let drive = volume.open();
        assert_eq!(told(&drive), [""; 0]);
        for (page, expected) in (0..).zip(expected) {
            assert_eq!(content(&drive, page), expected, "page {page} in round {round}");
        }
        assert_eq!(drive.promise(), Promise::ServerDeath);
        for _ in 0..rng.below(200) {
            let page = rng.below(100);
            let index = usize::try_from(page).unwrap();
            if rng.below(4) == 0 {
                drive
                    .trim(page * PAGE_BYTES as u64, PAGE_BYTES as u64, Durability::Volatile)
                    .unwrap();
                expected[index] = 0;
            } else {
                fill(&drive, page, round);
                expected[index] = round;
            }
        }
        // Dropped, not closed.
        drop(drive);
        assert!(volume.buffer().exists());
    }
    volume.open().close().unwrap();
    assert!(!volume.buffer().exists(), "nothing is needed of it once the drive was closed");
    let drive = volume.open();
    for (page, expected) in (0..).zip(expected) {
        assert_eq!(content(&drive, page), expected, "page {page} after closing");
    }
}

#[test]
fn what_the_buffer_holds_is_recovered_for_reading_too() {
    let volume = Volume::new();
    let drive = volume.open();
    fill(&drive, 3, 7);
    drive.flush().unwrap();
    fill(&drive, 3, 8);
    drop(drive);
    let before = std::fs::read(volume.buffer()).unwrap();
    let recovered = RecoveredVolume::open(&volume.path(), None, None).unwrap();
    let mut page = [0; PAGE_BYTES];
    recovered.read(3, &mut page);
    assert_eq!(page, [8; PAGE_BYTES]);
    assert!(recovered.doubts().is_empty());
    drop(recovered);
    assert!(std::fs::read(volume.buffer()).unwrap() == before, "nothing was changed");
    assert_eq!(content(&volume.open(), 3), 8);
}

#[test]
fn a_volatile_volume_keeps_no_buffer_and_replays_what_one_left() {
    let volume = Volume::new();
    let drive = volume.open();
    fill(&drive, 0, 7);
    drop(drive);
    let volatile = Opening { promise: Some(Promise::Nothing), ..Opening::default() };
    let drive = Drive::open_as(&volume.path(), volatile).unwrap();
    assert_eq!((content(&drive, 0), drive.promise()), (7, Promise::Nothing));
    assert!(!volume.buffer().exists());
    fill(&drive, 0, 8);
    drop(drive);
    let drive = volume.open();
    assert_eq!(content(&drive, 0), 7, "it was not flushed");
    assert_eq!(told(&drive), [""; 0]);
}

#[test]
fn a_volume_says_itself_what_acknowledged_writes_survive() {
    let volume = Volume::new();
    keep_promise(&volume.path(), Promise::PowerLoss).unwrap();
    let drive = volume.open();
    assert_eq!(drive.promise(), Promise::PowerLoss);
    assert!(drive.is_write_through());
    assert_eq!(drive.status().acknowledged_survives, Some(Promise::PowerLoss));
    drop(drive);
    let wanted = Opening { promise: Some(Promise::ServerDeath), ..Opening::default() };
    let drive = Drive::open_as(&volume.path(), wanted).unwrap();
    assert!(!drive.is_write_through());
    drive.write_through(Some("a fault".to_owned()));
    assert!(drive.is_write_through());
    let status = drive.status();
    assert_eq!(status.write_through_reason.as_deref(), Some("a fault"));
}

/// Has `change` do something to a volume whose server died, and returns what is told then.
fn ignored(change: impl FnOnce(&Volume)) -> String {
    let volume = Volume::new();
    let drive = volume.open();
    fill(&drive, 0, 7);
    drive.flush().expect("the test makes it so");
    fill(&drive, 0, 8);
    drop(drive);
    change(&volume);
    let drive = volume.open();
    assert_eq!(content(&drive, 0), 7, "what the buffer held was not replayed");
    let told = told(&drive);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&volume.buffer().display().to_string()), "{told:?}");
    told[0].clone()
}

#[test]
fn a_copy_of_the_buffer_is_ignored_by_name() {
    let told = ignored(|volume| {
        let copy = volume.folder.path().join("copy");
        std::fs::copy(volume.buffer(), &copy).unwrap();
        std::fs::rename(copy, volume.buffer()).unwrap();
    });
    assert!(told.contains("is a copy"), "{told}");
}

#[test]
fn the_buffer_of_another_volume_is_ignored_by_name() {
    let told = ignored(|volume| {
        let other = volume.create("other");
        drop(Drive::open(&other).unwrap());
        std::fs::rename(other.join("write-buffer"), volume.buffer()).unwrap();
    });
    assert!(told.contains("is of another volume"), "{told}");
}

#[test]
fn a_buffer_is_ignored_by_name_once_the_volume_went_on_without_it() {
    let told = ignored(|volume| {
        let aside = volume.folder.path().join("aside");
        std::fs::rename(volume.buffer(), &aside).unwrap();
        let volatile = Opening { promise: Some(Promise::Nothing), ..Opening::default() };
        drop(Drive::open_as(&volume.path(), volatile).unwrap());
        std::fs::rename(&aside, volume.buffer()).unwrap();
    });
    assert!(told.contains("the dies hold another state"), "{told}");
}

#[test]
fn a_buffer_that_is_no_buffer_is_ignored_by_name() {
    let told = ignored(|volume| {
        let bytes = std::fs::read(volume.buffer()).unwrap();
        std::fs::write(volume.buffer(), vec![1; bytes.len()]).unwrap();
    });
    assert!(told.contains("cannot be read"), "{told}");
}

#[test]
fn trims_and_writes_that_the_buffer_has_no_room_for_are_in_the_journal() {
    let volume = Volume::new();
    let drive = volume.open();
    for page in 0..100 {
        fill(&drive, page, 7);
    }
    for _ in 0..200 {
        for page in 0..100 {
            drive.trim(page * PAGE_BYTES as u64, PAGE_BYTES as u64, Durability::Volatile).unwrap();
        }
    }
    for page in 0..50 {
        fill(&drive, page, 8);
    }
    for _ in 0..10_000 {
        drive.trim(99 * PAGE_BYTES as u64, PAGE_BYTES as u64, Durability::Volatile).unwrap();
    }
    drop(drive);
    let drive = volume.open();
    for page in 0..100 {
        assert_eq!(content(&drive, page), if page < 50 { 8 } else { 0 }, "page {page}");
    }
}

#[test]
fn status_and_check_tell_what_the_buffer_holds_and_change_nothing() {
    let volume = Volume::new();
    let drive = volume.open();
    for page in [3, 4, 3, 5] {
        fill(&drive, page, 7);
    }
    drive.trim(4 * PAGE_BYTES as u64, PAGE_BYTES as u64, Durability::Volatile).unwrap();
    drop(drive);
    let files = || {
        let dies = (0..3).map(|die| volume.folder.path().join(format!("volume-{die}.img")));
        dies.chain([volume.buffer()]).map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>()
    };
    let before = files();
    let left = LeftBuffer { pages: 3, trims: 1, ..LeftBuffer::default() };
    assert_eq!(inspect(&volume.path()).unwrap().write_buffer.as_ref(), Some(&left));
    let checked = || check(&volume.path(), |_, _| ()).unwrap();
    let report = checked();
    assert_eq!(report.write_buffer, Some(LeftBuffer { is_replayed: Some(true), ..left }));
    assert_eq!((report.pages, report.is_clean()), (2, true), "{:?}", report.findings);
    assert!(files() == before);

    let aside = volume.folder.path().join("aside");
    std::fs::rename(volume.buffer(), &aside).unwrap();
    let report = checked();
    assert_eq!((report.write_buffer, report.pages), (None, 0));
    std::fs::copy(&aside, volume.buffer()).unwrap();
    for left in [inspect(&volume.path()).unwrap().write_buffer, checked().write_buffer] {
        let left = left.unwrap();
        assert_eq!(left.is_replayed, Some(false));
        assert!(left.reason.unwrap().contains("is a copy"));
    }

    std::fs::remove_file(volume.buffer()).unwrap();
    let volatile = Opening { promise: Some(Promise::Nothing), ..Opening::default() };
    drop(Drive::open_as(&volume.path(), volatile).unwrap());
    std::fs::rename(&aside, volume.buffer()).unwrap();
    let left = checked().write_buffer.unwrap();
    assert_eq!(left.is_replayed, Some(false));
    assert!(left.reason.unwrap().contains("the dies hold another state"));
}

fn holds(path: &Path, text: &[u8]) -> bool {
    std::fs::read(path)
        .expect("the test makes it so")
        .windows(text.len())
        .any(|bytes| bytes == text)
}

#[test]
fn a_purge_erases_the_buffer_too() {
    let volume = Volume::new();
    let drive = volume.open();
    drive.write(0, &b"secret".repeat(100), Durability::Volatile).unwrap();
    assert!(holds(&volume.buffer(), b"secretsecret"));
    drive.purge().unwrap();
    assert!(!holds(&volume.buffer(), b"secretsecret"));
    drop(drive);
    assert_eq!(content(&volume.open(), 0), 0);
}

#[test]
fn a_buffer_of_before_the_machine_was_started_again_is_ignored_by_name() {
    let plan = Plan {
        size: Bytes(8 << 20),
        dies: 2,
        is_protected: true,
        over_provisioning: 0.2,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    let shape = plan.shape().unwrap();
    let disks = Disks::new(2, usize::try_from(shape.die_bytes().0).unwrap(), Rng::new(1));
    format(disks.media(), &shape, 1).unwrap();
    let open = || Drive::open_with_buffer(disks.media(), Some(disks.buffer())).unwrap();
    let drive = open();
    fill(&drive, 0, 7);
    drop(drive);
    disks.restore_server();
    let drive = open();
    assert_eq!(content(&drive, 0), 7);
    fill(&drive, 0, 8);
    drop(drive);
    disks.restore();
    let drive = open();
    assert_eq!(content(&drive, 0), 7);
    let told = told(&drive);
    assert!(told[0].contains("before the machine was started again"), "{told:?}");
}

#[test]
fn a_size_that_changed_is_what_counts_after_a_death() {
    let volume = Volume::new();
    let drive = volume.open();
    fill(&drive, 1000, 7);
    let resize = |pages: u64| {
        let size = Bytes(pages * PAGE_BYTES as u64);
        drive.resize(&Capacity { size, physical: None }, Beyond::Lost).unwrap();
    };
    resize(500);
    resize(2000);
    fill(&drive, 3, 5);
    drop(drive);
    let drive = volume.open();
    assert_eq!((content(&drive, 1000), content(&drive, 3)), (0, 5));
}
