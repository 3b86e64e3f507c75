//! Media that are not what they should be: of another drive, or an earlier image of a die.

use std::fs;
use std::path::Path;

use blockio::Bytes;
use live::{Compression, CreateOptions, Device as _, Drive, Durability, OpenError};

const DIES: usize = 4;
const SIZE: u64 = 8 << 20;

fn create(folder: &Path) -> CreateOptions {
    fs::create_dir_all(folder).expect("a temporary folder");
    let options = CreateOptions {
        volume: folder.join("volume"),
        dies: (0..DIES).map(|die| folder.join(format!("d{die}.img"))).collect(),
        size: Bytes(SIZE),
        is_protected: true,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    drop(Drive::create(&options).expect("there is space"));
    options
}

fn write(options: &CreateOptions, byte: u8) {
    let drive = Drive::open(&options.volume).expect("all dies are there");
    for offset in (0..SIZE).step_by(1 << 20) {
        drive.write(offset, &vec![byte; 1 << 20], Durability::Volatile).expect("it fits");
    }
    drive.close().expect("it is sound");
}

fn holds(drive: &Drive, byte: u8) -> bool {
    let mut found = vec![0; usize::try_from(SIZE).expect("8 MiB")];
    drive.read(0, &mut found).expect("nothing is lost");
    found.iter().all(|it| *it == byte)
}

#[test]
fn a_die_of_another_drive_is_left_aside_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let own = create(&folder.path().join("own"));
    let other = create(&folder.path().join("other"));
    write(&own, 7);
    fs::copy(&other.dies[1], &own.dies[1]).unwrap();
    let drive = Drive::open(&own.volume).unwrap();
    assert!(holds(&drive, 7) && !drive.is_redundant());
    let unused: Vec<&str> = drive.unused_media().collect();
    let [unused] = unused[..] else { panic!("{unused:?}") };
    assert!(unused.contains("d1.img is a die of another volume"), "{unused}");
}

#[test]
fn one_die_rolled_back_is_left_aside_and_two_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    write(&options, 1);
    let earlier = [0, 1].map(|die: usize| fs::read(&options.dies[die]).unwrap());
    write(&options, 2);
    fs::write(&options.dies[0], &earlier[0]).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert!(holds(&drive, 2));
    let unused: Vec<&str> = drive.unused_media().collect();
    let [unused] = unused[..] else { panic!("{unused:?}") };
    assert!(unused.contains("d0.img") && unused.contains("holds an earlier state"), "{unused}");
    drop(drive);
    fs::write(&options.dies[1], &earlier[1]).unwrap();
    let refused = Drive::open(&options.volume).unwrap_err();
    assert!(matches!(refused, OpenError::DiesMissing { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("d1.img") && text.contains("earlier state"), "{text}");
}

#[test]
fn dies_in_another_order_and_a_copy_of_one_are_sorted_out() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    write(&options, 5);
    let swapped = folder.path().join("swapped.img");
    fs::rename(&options.dies[0], &swapped).unwrap();
    fs::rename(&options.dies[2], &options.dies[0]).unwrap();
    fs::rename(&swapped, &options.dies[2]).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert!(holds(&drive, 5) && drive.is_redundant());
    drive.close().unwrap();
    fs::copy(&options.dies[1], &options.dies[3]).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert!(holds(&drive, 5));
    let unused: Vec<&str> = drive.unused_media().collect();
    let [unused] = unused[..] else { panic!("{unused:?}") };
    assert!(unused.contains("is another copy of die 1"), "{unused}");
}
