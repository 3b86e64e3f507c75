//! A drive in files, created, closed and opened again.

use blockio::Bytes;
use live::{CreateOptions, Device, Drive, Durability, OpenError};

fn options(folder: &std::path::Path, dies: usize, size_kib: u64) -> CreateOptions {
    CreateOptions {
        vault: folder.join("vault"),
        dies: (0..dies).map(|die| folder.join(format!("d{die}.img"))).collect(),
        size: Bytes::from_kib(size_kib),
        is_protected: dies > 1,
        over_provisioning: 0.15,
    }
}

fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut word = seed;
    let mut next = || {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ 0x55;
        word.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn what_was_written_is_there_after_closing_and_opening() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 8, 64 << 10);
    let drive = Drive::create(&options).unwrap();
    let (first, second) = (pattern(1, 1 << 20), pattern(2, 10_000));
    drive.write(4096, &first, Durability::Volatile).unwrap();
    drive.write(5000, &second, Durability::Volatile).unwrap();
    drive.trim(1 << 19, 1 << 18, Durability::Volatile).unwrap();
    drive.close().unwrap();
    let drive = Drive::open(&options.vault).unwrap();
    let mut expected = vec![0; 2 << 20];
    expected[4096..4096 + (1 << 20)].copy_from_slice(&first);
    expected[5000..15_000].copy_from_slice(&second);
    expected[1 << 19..(1 << 19) + (1 << 18)].fill(0);
    let mut found = vec![1; 2 << 20];
    drive.read(0, &mut found).unwrap();
    assert!(found == expected);
    let stored = drive.allocations(0, drive.size()).unwrap();
    assert_eq!(stored.iter().map(|run| run.length).sum::<u64>(), drive.size());
}

#[test]
fn what_was_flushed_is_there_after_the_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4, 8 << 10);
    let drive = Drive::create(&options).unwrap();
    for round in 0..30_u64 {
        let bytes = pattern(round, 64 << 10);
        drive.write(round * (64 << 10), &bytes, Durability::Volatile).unwrap();
    }
    drive.flush().unwrap();
    drop(drive);
    let drive = Drive::open(&options.vault).unwrap();
    let mut found = vec![0; 64 << 10];
    for round in 0..30_u64 {
        drive.read(round * (64 << 10), &mut found).unwrap();
        assert!(found == pattern(round, 64 << 10), "round {round}");
    }
}

#[test]
fn a_drive_that_is_written_over_and_over_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&options(folder.path(), 3, 4 << 10)).unwrap();
    let (mut at, block) = (1_u64, pattern(7, 4096));
    for _ in 0..20_000 {
        at = at * 7919 % 1021;
        drive.write(at * 4096, &block, Durability::Volatile).unwrap();
    }
    let counters = drive.counters().unwrap();
    assert!(counters.superblocks_erased > 10, "{counters:?}");
    let mut found = vec![0; 4096];
    drive.read(at * 4096, &mut found).unwrap();
    assert!(found == block);
}

#[test]
fn a_drive_in_use_is_not_opened_twice() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 1, 1 << 10);
    let _drive = Drive::create(&options).unwrap();
    assert!(matches!(Drive::open(&options.vault), Err(OpenError::System { .. })));
    assert!(matches!(Drive::create(&options), Err(OpenError::Refused { .. })));
}

#[test]
fn a_missing_die_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 5, 4 << 10);
    let drive = Drive::create(&options).unwrap();
    let bytes = pattern(3, 1 << 20);
    drive.write(0, &bytes, Durability::Durable).unwrap();
    drive.close().unwrap();
    std::fs::remove_file(&options.dies[2]).unwrap();
    let drive = Drive::open(&options.vault).unwrap();
    assert_eq!(drive.lost_dies(), [2]);
    let mut found = vec![0; 1 << 20];
    drive.read(0, &mut found).unwrap();
    assert!(found == bytes);
}
