//! Pages that nothing gives back, and those beside them.

use std::fs;

use blockio::{Bytes, Rng};
use live::{Compression, CreateOptions, Device as _, Drive, Durability};

const PAGE_BYTES: usize = 4096;
const PAGES: usize = 256;
const LOST: usize = 97;

/// True if a page is written once, among others that are rewritten, so that it has to be moved.
const fn is_kept(page: usize) -> bool {
    page % 16 < 3
}

fn content(page: usize, round: usize) -> Vec<u8> {
    (0..PAGE_BYTES).map(|at| (at * (page + 3) + at / 256 + round).to_le_bytes()[0]).collect()
}

fn write(drive: &Drive, page: usize, round: usize) {
    let offset = (page * PAGE_BYTES) as u64;
    drive.write(offset, &content(page, round), Durability::Volatile).expect("there is room");
}

/// Kept pages that cannot be read.
fn unreadable(drive: &Drive) -> Vec<usize> {
    let reads = |page: &usize| {
        let mut found = vec![0; PAGE_BYTES];
        let read = drive.read((page * PAGE_BYTES) as u64, &mut found);
        assert!(read.is_err() || found == content(*page, 0), "page {page}");
        read.is_ok()
    };
    (0..PAGES).filter(|page| is_kept(*page) && !reads(page)).collect()
}

#[test]
fn a_page_that_is_lost_takes_no_other_with_it_when_it_is_moved() {
    let folder = tempfile::tempdir().unwrap();
    let die = folder.path().join("d0.img");
    let options = CreateOptions {
        volume: folder.path().join("volume"),
        dies: vec![die.clone()],
        size: Bytes((PAGES * PAGE_BYTES) as u64),
        is_protected: false,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    let drive = Drive::create(&options).unwrap();
    (0..PAGES).for_each(|page| write(&drive, page, 0));
    drive.close().unwrap();
    let mut bytes = fs::read(&die).unwrap();
    let begin = content(LOST, 0);
    let at = bytes.windows(64).position(|part| part == &begin[..64]);
    bytes[at.expect("its beginning is stored as it is") + 40] ^= 1;
    fs::write(&die, bytes).unwrap();

    let drive = Drive::open(&options.volume).unwrap();
    // In any order, so that no superblock is free of what is kept by itself.
    let mut rng = Rng::new(5);
    for round in 1..3000 {
        let page = usize::try_from(rng.below(PAGES as u64)).unwrap();
        if !is_kept(page) {
            write(&drive, page, round);
        }
    }
    assert!(drive.status().smart.media_errors > Some(0), "it was moved");
    assert_eq!(unreadable(&drive), [LOST]);
    drive.close().unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert_eq!(unreadable(&drive), [LOST], "after opening");
}
