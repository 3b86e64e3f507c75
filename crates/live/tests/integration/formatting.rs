//! Drives that are purged, resized and formatted anew.

use std::fs;
use std::path::Path;

use blockio::Bytes;
use live::{
    Beyond, Capacity, Compression, Contents, CreateOptions, Device as _, Drive, Durability,
    UserCapacity,
};

use crate::volume_options;

const PAGE: u64 = 4096;
const SIZE: u64 = 8 << 20;

fn create(folder: &Path) -> CreateOptions {
    let options =
        CreateOptions { over_provisioning: 0.5, ..volume_options(folder, 3, Bytes(SIZE)) };
    Drive::create(&options).expect("there is room").close().expect("nothing fails");
    options
}

fn capacity(bytes: u64) -> Capacity {
    Capacity { size: Bytes(bytes), physical: None }
}

/// True if every byte of a range is `byte`.
fn holds(drive: &Drive, range: std::ops::Range<u64>, byte: u8) -> bool {
    let mut found = vec![!byte; usize::try_from(range.end - range.start).expect("a small range")];
    drive.read(range.start, &mut found).expect("it is there");
    found.iter().all(|found| *found == byte)
}

#[test]
fn what_is_purged_is_on_no_die_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path());
    let secret = b"what nobody else is to read, ever".repeat(124);
    let drive = Drive::open(&options.volume).unwrap();
    for page in 0..2000 {
        drive.write(page * PAGE, &secret[..4092], Durability::Volatile).unwrap();
        if page % 100 == 0 {
            drive.flush().unwrap();
        }
    }
    drive.flush().unwrap();
    let is_found = || {
        options.dies.iter().any(|die| {
            let bytes = fs::read(die).unwrap();
            bytes.windows(32).step_by(1).any(|window| window == &secret[..32])
        })
    };
    assert!(is_found());
    drive.purge().unwrap();
    assert!(holds(&drive, 0..SIZE, 0));
    assert_eq!(drive.status().space.unwrap().logical_bytes, 0);
    drive.write(0, &[1; 4096], Durability::Durable).unwrap();
    drive.close().unwrap();
    assert!(!is_found());
    let drive = Drive::open(&options.volume).unwrap();
    assert!(holds(&drive, 0..PAGE, 1) && holds(&drive, PAGE..SIZE, 0));
}

#[test]
fn what_is_stored_stays_when_a_drive_becomes_larger_or_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path());
    let drive = Drive::open(&options.volume).unwrap();
    drive.write(0, &vec![1; 1 << 20], Durability::Volatile).unwrap();
    drive.resize(&capacity(SIZE + (2 << 20)), Beyond::Kept).unwrap();
    drive.write(SIZE, &vec![2; 1 << 20], Durability::Durable).unwrap();
    assert_eq!(drive.status().format.capacity_bytes, SIZE + (2 << 20));
    // A crash.
    drop(drive);
    let drive = Drive::open(&options.volume).unwrap();
    assert_eq!(drive.size(), SIZE + (2 << 20));
    assert!(holds(&drive, 0..1 << 20, 1) && holds(&drive, SIZE..SIZE + (1 << 20), 2));
    let refused = drive.resize(&capacity(SIZE), Beyond::Kept).unwrap_err().to_string();
    let told = format!(
        "1 MiB of data is stored beyond the new end, from sector 16384 on; trim it while the \
         volume is served, or allow it to be lost with --destroy {}",
        drive.status().drive
    );
    assert_eq!(refused, told);
    drive.resize(&capacity(SIZE / 2), Beyond::Lost).unwrap();
    assert!(drive.write(SIZE / 2, &[3; 4096], Durability::Volatile).is_err());
    drive.close().unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert_eq!(drive.size(), SIZE / 2);
    drive.resize(&capacity(SIZE), Beyond::Kept).unwrap();
    assert!(holds(&drive, 0..1 << 20, 1) && holds(&drive, SIZE / 2..SIZE, 0));
    drive.close().unwrap();
    let report = live::check::check(&options.volume, |_, _| ()).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn a_thin_drive_keeps_its_physical_space_when_it_becomes_larger_or_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let options = CreateOptions {
        over_provisioning: 0.5,
        compression: Compression::Lz4,
        physical: Some(Bytes(SIZE)),
        ..volume_options(folder.path(), 1, Bytes(4 * SIZE))
    };
    Drive::create(&options).unwrap().close().unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    let resize = |size: u64| {
        drive.resize(&drive.capacity_of(UserCapacity::Bytes(size)), Beyond::Kept)?;
        let format = drive.status().format;
        Ok::<_, live::OpenError>((format.capacity_bytes, format.physical_bytes))
    };
    for size in [2 * SIZE, 4 * SIZE, SIZE + PAGE] {
        assert_eq!(resize(size).unwrap(), (size, SIZE));
    }
    let refused = resize(100 * SIZE).unwrap_err().to_string();
    assert!(refused.contains("the map, whose room was fixed"), "{refused}");
    let refused = drive.check_capacity(UserCapacity::Bytes(4 * SIZE)).unwrap_err().to_string();
    assert!(refused.contains("too large for a volume that is no longer thin"), "{refused}");
    assert_eq!(resize(SIZE / 2).unwrap(), (SIZE / 2, SIZE / 2), "as much as clients address");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path());
    let drive = Drive::open(&options.volume).unwrap();
    drive.write(0, &[1; 4096], Durability::Volatile).unwrap();
    for bytes in [SIZE + 1, 0, SIZE * 10, SIZE + (7 << 20)] {
        assert!(drive.resize(&capacity(bytes), Beyond::Lost).is_err(), "{bytes}");
        assert!(drive.reformat_while(UserCapacity::Bytes(bytes), |_, _| true).is_err(), "{bytes}");
    }
    assert!(drive.size() == SIZE && holds(&drive, 0..PAGE, 1));
}

#[test]
fn a_format_leaves_nothing_but_room() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path());
    let drive = Drive::open(&options.volume).unwrap();
    drive.write(0, &vec![1; 6 << 20], Durability::Volatile).unwrap();
    let stock = drive.capacity_of(UserCapacity::Stock).size;
    let high = drive.capacity_of(UserCapacity::HighPerformance).size;
    assert!(stock.0 > SIZE && high.0 > stock.0 / 4 * 3 && high.0 < stock.0, "{stock} {high}");
    for (wanted, size) in [(UserCapacity::HighPerformance, high), (UserCapacity::Stock, stock)] {
        drive.reformat_while(wanted, |_, _| true).unwrap();
        assert!(drive.size() == size.0 && holds(&drive, 0..size.0, 0));
        for _ in 0..3 {
            drive
                .write(0, &vec![2; usize::try_from(size.0).unwrap()], Durability::Volatile)
                .unwrap();
        }
        assert!(holds(&drive, 0..size.0, 2));
    }
}

/// A spare that was a die, or was filled in part, and one whose folder is away.
#[test]
fn a_purge_erases_hot_spares_too_and_names_those_that_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path());
    let drive = Drive::open(&options.volume).unwrap();
    let [used, away] = ["used.img", "away.img"].map(|name| folder.path().join(name));
    live::add_spare(&options.volume, &drive, &used, Contents::Kept).unwrap();
    live::add_spare(&options.volume, &drive, &away, Contents::Kept).unwrap();
    let secret = b"what was on a die once";
    let mut bytes = fs::read(&used).unwrap();
    let middle = bytes.len() / 2;
    for at in [0, middle, bytes.len() - secret.len()] {
        bytes[at..at + secret.len()].copy_from_slice(secret);
    }
    fs::write(&used, bytes).unwrap();
    fs::rename(&away, folder.path().join("aside.img")).unwrap();
    let mut steps = 0;
    let purged = live::purge_volume(&options.volume, &drive, |_, _| {
        steps += 1;
        true
    });
    purged.unwrap();
    assert!(steps > 0 && fs::read(&used).unwrap().iter().all(|byte| *byte == 0));
    let said = drive.status().not_erased().unwrap();
    assert!(said.starts_with("The hot spare ") && said.contains("away.img ("), "{said}");
    assert!(!said.contains("used.img"), "{said}");
    fs::rename(folder.path().join("aside.img"), &away).unwrap();
    live::purge_volume(&options.volume, &drive, |_, _| true).unwrap();
    assert_eq!(drive.status().not_erased(), None);
}
