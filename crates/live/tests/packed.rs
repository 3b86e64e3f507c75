//! Drives that compress: what was written comes back, and takes less.

use blockio::{Bytes, Rng};
use live::{Compression, CreateOptions, Device as _, Drive, Durability};

const PAGE_BYTES: usize = 4096;

fn options(folder: &std::path::Path, compression: Compression) -> CreateOptions {
    CreateOptions {
        vault: folder.join("vault"),
        dies: (0..4).map(|die| folder.join(format!("d{die}.img"))).collect(),
        size: Bytes::from_kib(16 << 10),
        is_protected: true,
        over_provisioning: 0.15,
        compression,
        physical: None,
    }
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
        let drive = Drive::open(&options.vault).unwrap();
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
    for seed in 1..20_000 {
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
