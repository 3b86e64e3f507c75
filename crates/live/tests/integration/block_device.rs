//! Dies on block devices. They need root and `losetup`, and say so where they cannot run.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use blockio::Bytes;
use live::{
    Compression, Contents, CreateOptions, Device as _, Drive, Durability, OpenError, Preallocation,
    Replacement, UnlockingKey, VolumeOptions, add_spare, create,
};

/// The flag by which mounts, swap, RAID and LVM claim a block device.
const O_EXCL: i32 = 0o200;

/// A block device of a file, detached when dropped.
struct Loop(PathBuf, #[expect(dead_code, reason = "held for its effect")] MutexGuard<'static, ()>);

impl Loop {
    fn new(image: &Path) -> Option<Self> {
        // A test that starts a program beside another one hands it the claims of the other's
        // devices for the moment between fork and exec.
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let file = File::create(image).expect("the folder is there");
        file.set_len(64 << 20).expect("the host has space");
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(image).output();
        let Some(output) = attached.ok().filter(|output| output.status.success()) else {
            let text = "skipped: losetup cannot attach a loop device here (it needs root)";
            let _ = writeln!(std::io::stderr(), "{text}");
            return None;
        };
        let node = String::from_utf8(output.stdout).expect("a path");
        Some(Self(PathBuf::from(node.trim()), alone))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

fn options(volume: PathBuf, dies: Vec<PathBuf>) -> CreateOptions {
    CreateOptions {
        volume,
        is_protected: dies.len() > 1,
        dies,
        size: Bytes::from_kib(16 << 10),
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    }
}

#[test]
fn a_block_device_that_something_holds_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let Some(device) = Loop::new(&folder.path().join("image")) else { return };
    let options = options(folder.path().join("volume"), vec![device.0.clone()]);
    // As a mounted file system holds it.
    let mut claim = OpenOptions::new();
    let claim = claim.read(true).write(true).custom_flags(O_EXCL).open(&device.0).unwrap();
    let error = create(&options, &VolumeOptions::default()).unwrap_err();
    let causes: Vec<String> =
        std::iter::successors(Some(&error as &dyn std::error::Error), |it| it.source())
            .map(ToString::to_string)
            .collect();
    assert!(causes.join(": ").contains("it is mounted, or swap, RAID, LVM"), "{causes:?}");
    let image = std::fs::read(folder.path().join("image")).unwrap();
    assert!(image.iter().all(|byte| *byte == 0), "nothing was written");
    assert!(!options.volume.exists(), "nothing is left behind");
    drop(claim);

    create(&options, &VolumeOptions::default()).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    drive.write(0, &[7; 4096], Durability::Durable).unwrap();
    let other = CreateOptions { volume: folder.path().join("other"), ..options.clone() };
    let refused = create(&other, &VolumeOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("is in use by a volume that is open: stop its server"), "{refused}");
    let second = Drive::open(&options.volume).unwrap_err();
    assert!(matches!(second, OpenError::InUse { .. }), "{second}");
    let mut claim = OpenOptions::new();
    assert!(claim.read(true).custom_flags(O_EXCL).open(&device.0).is_err(), "it is claimed");
    drive.close().unwrap();
    Drive::open(&options.volume).unwrap().close().unwrap();
}

#[test]
fn a_die_of_another_volume_may_replace_one_and_the_power_may_go_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let Some(device) = Loop::new(&folder.path().join("image")) else { return };
    let other = options(folder.path().join("other"), vec![device.0.clone()]);
    create(&other, &VolumeOptions::default()).unwrap();

    let dies = (0..3).map(|die| folder.path().join(format!("d{die}.img"))).collect();
    let options = options(folder.path().join("volume"), dies);
    let drive = Drive::create(&options).unwrap();
    drive.write(0, &[7; 4096], Durability::Durable).unwrap();
    drive.fail_die(1).unwrap();
    let kept = Replacement::prepare(&options.volume, &drive, 1, &device.0, Contents::Kept);
    let refused = kept.unwrap_err().to_string();
    assert!(refused.contains(" is die 0 of volume ") && refused.contains("--destroy"), "{refused}");
    Drive::open(&other.volume).unwrap().close().unwrap();
    drop(Replacement::prepare(&options.volume, &drive, 1, &device.0, Contents::Lost).unwrap());
    // Without closing it, as where the power goes.
    drop(drive);
    let drive = Drive::open(&options.volume).unwrap();
    let mut page = [0; 4096];
    drive.read(0, &mut page).unwrap();
    assert_eq!(page, [7; 4096]);
    let replacement =
        Replacement::prepare(&options.volume, &drive, 1, &device.0, Contents::Kept).unwrap();
    replacement.carry_out(&drive, |_, _| true).unwrap();
    assert!(drive.is_redundant());
    drive.close().unwrap();
}

#[test]
fn a_block_device_that_holds_something_is_overwritten_only_where_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let Some(device) = Loop::new(&image) else { return };
    // The magic number of ext4, and its feature of extents.
    let file = OpenOptions::new().write(true).open(&device.0).unwrap();
    for (at, byte) in [(1080, 0x53), (1081, 0xef), (1120, 0x40)] {
        file.write_all_at(&[byte], at).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    let before = std::fs::read(&image).unwrap();
    let expected = format!("{} holds an ext4 file system, which would be lost", device.0.display());
    let whole = options(folder.path().join("whole"), vec![device.0.clone()]);
    let refused = create(&whole, &VolumeOptions::default()).unwrap_err().to_string();
    assert!(refused.contains(&expected), "{refused}");
    let dies = (0..3).map(|die| folder.path().join(format!("d{die}.img"))).collect();
    let own = options(folder.path().join("volume"), dies);
    let drive = Drive::create(&own).unwrap();
    let refused = add_spare(&own.volume, &drive, &device.0, Contents::Kept).unwrap_err();
    assert!(refused.to_string().contains(&expected), "{refused}");
    drive.fail_die(1).unwrap();
    let refused = Replacement::prepare(&own.volume, &drive, 1, &device.0, Contents::Kept);
    assert!(refused.unwrap_err().to_string().contains(&expected));
    assert!(std::fs::read(&image).unwrap() == before, "nothing was written");
    // A spare is blank once it was added.
    add_spare(&own.volume, &drive, &device.0, Contents::Lost).unwrap();
    let replaced = Replacement::prepare(&own.volume, &drive, 1, &device.0, Contents::Kept);
    replaced.unwrap().carry_out(&drive, |_, _| true).unwrap();
    assert!(drive.is_redundant());
}

#[test]
fn nothing_that_devices_held_is_left_once_an_encrypted_volume_takes_them() {
    const MARK: [u8; 16] = *b"once in the open";
    let folder = tempfile::tempdir().unwrap();
    let Some(device) = Loop::new(&folder.path().join("image")) else { return };
    let options = options(folder.path().join("volume"), vec![device.0.clone()]);
    let fill = || {
        let image = File::options().write(true).open(&device.0).unwrap();
        image.write_all_at(&MARK.repeat((64 << 20) / MARK.len()), 0).unwrap();
        image.sync_all().unwrap();
    };
    let marks = || {
        let image = std::fs::read(&device.0).unwrap();
        image.as_chunks::<16>().0.iter().filter(|it| **it == MARK).count()
    };
    for preallocation in [Preallocation::Off, Preallocation::Full] {
        fill();
        let key = Some(UnlockingKey::of_bytes(&[0xff; 32]).unwrap());
        let contents = Contents::Lost;
        let encrypted = VolumeOptions { key, contents, preallocation, ..VolumeOptions::default() };
        create(&options, &encrypted).unwrap();
        assert_eq!(marks(), 0);
        std::fs::remove_dir_all(&options.volume).unwrap();
    }
    fill();
    let contents = Contents::Lost;
    create(&options, &VolumeOptions { contents, ..VolumeOptions::default() }).unwrap();
    assert!(marks() > 0, "what is not encrypted is erased by a purge");
    std::fs::remove_dir_all(&options.volume).unwrap();
    fill();
    let before = std::fs::read(&device.0).unwrap();
    let key = Some(UnlockingKey::of_bytes(&[0xff; 31]).unwrap());
    let unfit = VolumeOptions { key, contents, ..VolumeOptions::default() };
    let refused = create(&options, &unfit).unwrap_err().to_string();
    assert!(refused.contains("neither text in UTF-8"), "{refused}");
    assert!(std::fs::read(&device.0).unwrap() == before, "a key that is refused erases nothing");
}
