//! Writes of several ranges, all or none, beside other writers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use blockio::Bytes;
use live::{CreateOptions, Device as _, DeviceError, Drive, Durability};

use crate::volume_options;

const PAGE: u64 = 4096;

/// Small units of one die: others that write large ranges fill many at once, and the journal with
/// what an atomic write holds back.
#[test]
fn atomic_writes_find_the_room_that_they_looked_for_beside_large_writes() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&CreateOptions {
        over_provisioning: 0.3,
        unit: Some(Bytes::from_kib(16)),
        ..volume_options(folder.path(), 1, Bytes::from_kib(16 << 10))
    })
    .unwrap();
    let is_over = AtomicBool::new(false);
    let largest = drive.atomic_bytes_max() / 2 / PAGE * PAGE;
    thread::scope(|scope| {
        for writer in 0..9_u8 {
            let (drive, is_over) = (&drive, &is_over);
            scope.spawn(move || {
                let large = vec![writer + 1; 256 << 10];
                let from = (4 + u64::from(writer)) << 20;
                while !is_over.load(Ordering::Relaxed) {
                    for part in 0..16 {
                        let offset = from + (part << 18) % (1 << 20);
                        drive.write(offset, &large, Durability::Volatile).unwrap();
                    }
                }
            });
        }
        for round in 0..600_u32 {
            let half = vec![round.to_le_bytes()[0]; usize::try_from(largest).unwrap()];
            let ranges = [(0, half.as_slice()), (2 << 20, half.as_slice())];
            drive.atomic_write(&ranges).unwrap();
            let mut found = vec![0; half.len()];
            for (offset, _) in ranges {
                drive.read(offset, &mut found).unwrap();
                assert!(found == half, "round {round}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    drive.close().unwrap();
}

/// The journal of a drive whose units are larger than usual may be short of room for an atomic
/// write beside its reserve, however empty it is: the error says how much fits, and that much does.
#[test]
fn an_atomic_write_that_the_journal_has_no_room_for_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&CreateOptions {
        unit: Some(Bytes::from_kib(256)),
        ..volume_options(folder.path(), 1, Bytes::from_kib(32 << 10))
    })
    .unwrap();
    drive.write(0, &[1; 4096], Durability::Volatile).unwrap();
    let largest = usize::try_from(drive.atomic_bytes_max() / PAGE * PAGE).unwrap();
    let refused = drive.atomic_write(&[(0, &vec![2; largest])]).unwrap_err();
    let DeviceError::OutOfRange { size, .. } = refused else { panic!("{refused}") };
    let fitting = usize::try_from(size / PAGE / 2 * PAGE).unwrap();
    assert!((1..largest).contains(&fitting), "{fitting} of {largest} bytes");
    let written = vec![2; fitting];
    drive.atomic_write(&[(0, &written)]).unwrap();
    let mut found = vec![0; fitting];
    drive.read(0, &mut found).unwrap();
    assert!(found == written);
    drive.close().unwrap();
}
