//! Pages that nothing gives back, and those beside them.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use blockio::{Bytes, Rng};
use live::{CreateOptions, Device as _, Drive, Durability, Life};
use status::HealthState;

use crate::volume_options;

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

fn options(folder: &Path) -> CreateOptions {
    volume_options(folder, 1, Bytes((PAGES * PAGE_BYTES) as u64))
}

/// Flips a bit of the lost page where the die has it.
fn flip(die: &Path) {
    let bytes = fs::read(die).expect("it is there");
    let begin = content(LOST, 0);
    let at = bytes.windows(32).position(|part| part == &begin[..32]);
    let at = at.expect("its beginning is stored as it is") + 40;
    let file = OpenOptions::new().write(true).open(die).expect("it is there");
    file.write_all_at(&[bytes[at] ^ 1], at as u64).expect("nothing fails");
}

/// Writes other pages in any order, so that no superblock is free of what is kept by itself.
fn write_others(drive: &Drive) {
    let mut rng = Rng::new(5);
    for round in 1..3000 {
        let page = usize::try_from(rng.below(PAGES as u64)).expect("small");
        if !is_kept(page) {
            write(drive, page, round);
        }
    }
}

#[test]
fn a_page_that_is_lost_takes_no_other_with_it_when_it_is_moved() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let drive = Drive::create(&options).unwrap();
    (0..PAGES).for_each(|page| write(&drive, page, 0));
    drive.close().unwrap();
    flip(&options.dies[0]);

    let drive = Drive::open(&options.volume).unwrap();
    write_others(&drive);
    assert!(drive.status().smart.media_errors > Some(0), "it was moved");
    assert_eq!(unreadable(&drive), [LOST]);
    drive.close().unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert_eq!(unreadable(&drive), [LOST], "after opening");
}

#[test]
fn a_page_that_can_be_read_again_when_it_is_moved_is_lost_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let drive = Drive::create(&options).unwrap();
    (0..PAGES).for_each(|page| write(&drive, page, 0));
    drive.flush().unwrap();
    flip(&options.dies[0]);
    assert_eq!(unreadable(&drive), [LOST]);
    assert_eq!(drive.status().pages_lost, Some(1));
    flip(&options.dies[0]);
    write_others(&drive);
    assert_eq!((unreadable(&drive), drive.status().pages_lost), (Vec::new(), Some(0)));
    assert_eq!(drive.status().smart.media_errors, Some(1), "it was lost once");
}

#[test]
fn pages_that_were_found_lost_are_known_after_a_crash_without_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let drive = Drive::create(&options).unwrap();
    (0..PAGES).for_each(|page| write(&drive, page, 0));
    drive.close().unwrap();
    flip(&options.dies[0]);

    let drive = Drive::open(&options.volume).unwrap();
    let written = |drive: &Drive| drive.status().dies[0].written_bytes;
    let before = written(&drive);
    drive.attend().unwrap();
    assert_eq!(written(&drive), before, "nothing is written while nothing is lost");
    assert_eq!(unreadable(&drive), [LOST]);
    drive.attend().unwrap();
    let once = written(&drive);
    drive.attend().unwrap();
    assert!(before < once && written(&drive) == once, "it is written once");
    // A crash.
    drop(drive);
    let drive = Drive::open(&options.volume).unwrap();
    let status = drive.status();
    assert_eq!((status.pages_lost, status.health.state), (Some(1), HealthState::Critical));
    assert_eq!(status.life_after(Life::default()).media_errors, 1, "though nothing was kept of it");
}
