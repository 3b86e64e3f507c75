//! Drives that compress: what was written comes back, and takes less.

use blockio::{Bytes, Rng};
use live::{Compression, CreateOptions, Device as _, DeviceError, Drive, Durability};
use status::Supply;

use crate::volume_options;

const PAGE_BYTES: usize = 4096;

fn options(folder: &std::path::Path, compression: Compression) -> CreateOptions {
    CreateOptions { compression, ..volume_options(folder, 4, Bytes::from_kib(16 << 10)) }
}

/// Pages of which `random` of 64 bytes each are random, and the rest is one byte.
fn pages(count: usize, random: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut bytes = vec![b'x'; count * PAGE_BYTES];
    for page in bytes.as_chunks_mut::<PAGE_BYTES>().0 {
        page[..random * PAGE_BYTES / 64].fill_with(|| rng.next_u64().to_le_bytes()[0]);
    }
    bytes
}

#[test]
fn pages_of_every_length_come_back_after_a_crash_and_without_a_die() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), compression);
        let drive = Drive::create(&options).unwrap();
        let mut expected = Vec::new();
        for random in 0..=64 {
            expected.extend(pages(7, random, random as u64));
        }
        for (index, part) in expected.chunks(50_000).enumerate() {
            let offset = index as u64 * 50_000;
            drive.write(offset, part, Durability::Volatile).unwrap();
        }
        drive.flush().unwrap();
        let mut found = vec![0; expected.len()];
        drive.read(0, &mut found).unwrap();
        assert!(found == expected, "{compression:?}: before");
        drop(drive);
        std::fs::remove_file(&options.dies[1]).unwrap();
        let drive = Drive::open(&options.volume).unwrap();
        found.fill(0);
        drive.read(0, &mut found).unwrap();
        assert!(found == expected, "{compression:?}: after");
    }
}

#[test]
fn relocation_keeps_what_is_packed() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&options(folder.path(), Compression::Lz4)).unwrap();
    let count = usize::try_from(drive.size()).unwrap() / PAGE_BYTES;
    let mut rng = Rng::new(3);
    let mut seeds = vec![0; count];
    for seed in 1..10_000 {
        let page = usize::try_from(rng.below(count as u64)).unwrap();
        seeds[page] = seed;
        let random = usize::try_from(20 + seed % 45).unwrap();
        let bytes = pages(1, random, seed);
        drive.write((page * PAGE_BYTES) as u64, &bytes, Durability::Volatile).unwrap();
    }
    let writes = drive.status().writes.unwrap();
    assert!(writes.relocation_bytes > 1 << 20, "{writes:?}");
    assert!(writes.compression_ratio.unwrap() > 1.4, "{writes:?}");
    let mut found = vec![0; PAGE_BYTES];
    for (page, seed) in seeds.iter().enumerate().filter(|(_, seed)| **seed != 0) {
        drive.read((page * PAGE_BYTES) as u64, &mut found).unwrap();
        let random = usize::try_from(20 + seed % 45).unwrap();
        assert!(found == pages(1, random, *seed), "page {page}");
    }
    assert_eq!(drive.scrub(false).unwrap().units_bad, 0);
}

#[test]
fn what_does_not_compress_costs_no_more_space_than_it_has_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&options(folder.path(), Compression::Zstd)).unwrap();
    let random = pages(1000, 64, 1);
    drive.write(0, &random, Durability::Volatile).unwrap();
    let space = drive.status().space.unwrap();
    assert_eq!(space.stored_bytes, random.len() as u64);
    drive.write(0, &pages(1000, 32, 2), Durability::Volatile).unwrap();
    let space = drive.status().space.unwrap();
    assert!(space.stored_bytes * 18 < 10 * random.len() as u64, "{space:?}");
}

/// A drive of 32 MiB for clients, over dies that hold `physical_kib` of data.
fn thin(folder: &std::path::Path, physical_kib: u64) -> CreateOptions {
    let size = Bytes::from_kib(32 << 10);
    let physical = Some(Bytes::from_kib(physical_kib));
    CreateOptions { size, physical, ..options(folder, Compression::Lz4) }
}

#[test]
fn data_of_two_to_one_fills_nearly_twice_what_fits() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&thin(folder.path(), 16 << 10)).unwrap();
    let mut written = 0;
    let refused = loop {
        let bytes = pages(16, 32, written);
        match drive.write(written, &bytes, Durability::Volatile) {
            Ok(()) => written += bytes.len() as u64,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, DeviceError::NoSpace { .. }), "{refused}");
    let ratio = written as f64 / f64::from(16 << 20);
    assert!(ratio > 1.8, "{ratio}");
    let space = drive.status().space.unwrap();
    assert_eq!(space.supply, Supply::Gone);
    assert!(space.compression_ratio.unwrap() > 1.8, "{space:?}");
}

#[test]
fn a_full_drive_reads_trims_and_takes_what_was_trimmed() {
    let folder = tempfile::tempdir().unwrap();
    let options = thin(folder.path(), 8 << 10);
    let drive = Drive::create(&options).unwrap();
    let full = 8 << 20;
    let random = pages(full / PAGE_BYTES, 64, 1);
    drive.write(0, &random, Durability::Volatile).unwrap();
    let more = pages(4, 64, 2);
    let write = |offset: usize| drive.write(offset as u64, &more, Durability::Volatile);
    let refused = write(full).unwrap_err();
    assert!(matches!(refused, DeviceError::NoSpace { offset, .. } if offset == full as u64));
    let group = drive.atomic_write(&[(0, &more), (full as u64, &more)]).unwrap_err();
    assert!(matches!(group, DeviceError::NoSpace { .. }), "{group}");
    // What takes no more than it replaces is written, over and over, relocation and all.
    for round in 0..1500 {
        write(round * 7919 % 2000 * PAGE_BYTES).unwrap();
    }
    let mut found = vec![0; more.len()];
    drive.read(1499 * 7919 % 2000 * PAGE_BYTES as u64, &mut found).unwrap();
    assert!(found == more);
    drive.trim(0, more.len() as u64, Durability::Volatile).unwrap();
    write(full).unwrap();
    assert!(write(full + more.len()).is_err());
    drive.close().unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    drive.read(full as u64, &mut found).unwrap();
    assert!(found == more);
}

#[test]
fn a_drive_that_promises_no_more_than_it_has_is_never_short() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&options(folder.path(), Compression::Lz4)).unwrap();
    let random = pages(4096, 64, 1);
    drive.write(0, &random, Durability::Volatile).unwrap();
    drive.write(0, &random, Durability::Volatile).unwrap();
    let space = drive.status().space.unwrap();
    assert_eq!((space.logical_bytes, space.supply), (16 << 20, Supply::Ample));
}
