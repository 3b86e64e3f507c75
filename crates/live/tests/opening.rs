//! Opening a drive that was closed writes nothing but headers, and closing it again, too.

use blockio::Bytes;
use live::{Compression, CreateOptions, Device as _, Drive, Durability};

const SIZE: u64 = 64 << 20;
const DIES: u64 = 4;
const HEADER: u64 = 4096;

/// Bytes that dies have read and been written since the drive was opened.
fn traffic(drive: &Drive) -> (u64, u64) {
    let dies = drive.status().dies;
    let read = dies.iter().map(|die| die.read_bytes).sum();
    (read, dies.iter().map(|die| die.written_bytes).sum())
}

#[test]
fn a_drive_that_was_closed_is_opened_and_closed_by_its_headers() {
    let folder = tempfile::tempdir().unwrap();
    let options = CreateOptions {
        volume: folder.path().join("volume"),
        dies: (0..DIES).map(|die| folder.path().join(format!("d{die}.img"))).collect(),
        size: Bytes(SIZE),
        is_protected: true,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    let drive = Drive::create(&options).unwrap();
    let mega = vec![7; 1 << 20];
    for round in 0..150_u64 {
        drive.write((round * 37 % 64) << 20, &mega, Durability::Volatile).unwrap();
    }
    // Pages here and there, most of them in rows that are not complete.
    for page in 0..10 {
        drive.write(page * 999 * 4096, &[9; 4096], Durability::Volatile).unwrap();
    }
    drive.close().unwrap();
    for _ in 0..3 {
        let drive = Drive::open(&options.volume).unwrap();
        let (read, written) = traffic(&drive);
        // Both copies.
        assert_eq!(written, DIES * 2 * HEADER);
        // One copy of the map, headers of checkpoints, tables of rows where writing goes on.
        let map = SIZE / 4096 * 4;
        assert!(read < map + (1 << 20), "{read} bytes for a map of {map}");
        drive.close().unwrap();
    }
    let drive = Drive::open(&options.volume).unwrap();
    let mut found = vec![0; 4096];
    for page in 0..10 {
        drive.read(page * 999 * 4096, &mut found).unwrap();
        assert!(found.iter().all(|byte| *byte == 9));
    }
    // It goes on as any other, whatever superblocks wait to be released.
    for round in 0..150_u64 {
        drive.write((round * 37 % 64) << 20, &mega, Durability::Volatile).unwrap();
    }
    drive.flush().unwrap();
    // A crash.
    drop(drive);
    let drive = Drive::open(&options.volume).unwrap();
    let mut found = vec![0; 1 << 20];
    for at in 0..64 {
        drive.read(at << 20, &mut found).unwrap();
        assert!(found.iter().all(|byte| *byte == 7), "megabyte {at}");
    }
}
