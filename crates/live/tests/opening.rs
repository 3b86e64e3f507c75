//! Opening a drive that was closed writes nothing but headers, and closing it again, too.

use blockio::Bytes;
use live::{Compression, CreateOptions, Device as _, Drive, Durability, Replacement};

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

/// The file of a die is replaced by a copy of another die's, and a new one takes its place: the one
/// that is in use stays in the list, whichever of the two was opened.
#[test]
fn a_copy_of_another_die_is_replaced_and_the_die_itself_stays() {
    for (copied, over) in [(1, 0), (0, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let dies = [path("d0.img"), path("d1.img")];
        let options = CreateOptions {
            volume: path("volume"),
            dies: dies.to_vec(),
            size: Bytes(16 << 20),
            is_protected: true,
            over_provisioning: 0.15,
            compression: Compression::None,
            physical: None,
            unit: None,
        };
        let drive = Drive::create(&options).unwrap();
        drive.write(0, &[1; 4096], Durability::Durable).unwrap();
        drive.close().unwrap();
        std::fs::copy(&dies[copied], &dies[over]).unwrap();

        let drive = Drive::open(&options.volume).unwrap();
        assert_eq!(drive.lost_dies(), [over]);
        drive.write(0, &[2; 4096], Durability::Durable).unwrap();
        let new = path("new.img");
        drop(Replacement::prepare(&options.volume, &drive, over, &new).unwrap());
        let listed = std::fs::read_to_string(options.volume.join("volume.toml")).unwrap();
        assert!(
            listed.contains("new.img") && listed.contains(&format!("d{copied}.img")),
            "{listed}"
        );
        // A crash in the middle of the rebuild.
        drop(drive);
        let drive = Drive::open(&options.volume).unwrap();
        let mut found = [0; 4096];
        drive.read(0, &mut found).unwrap();
        assert_eq!(found[0], 2, "die {copied} was copied over die {over}");
    }
}
