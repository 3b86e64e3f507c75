//! Remains of volumes: dies cut short or without headers at their beginning open; of a volume
//! that opening refuses, recovery reads all pages that its units name.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use live::check::{Finding, Kind, check};
use live::{
    Compression, CreateOptions, Device as _, Drive, Durability, RecoveredPage, RecoveredVolume,
};

use crate::volume_options;

const PAGES: u32 = 2048;
const CHECKPOINT: &[u8] = b"FLGTckpt";

fn options(folder: &Path, dies: usize, compression: Compression) -> CreateOptions {
    CreateOptions { compression, ..volume_options(folder, dies, Bytes(u64::from(PAGES) * 4096)) }
}

fn content(page: u32, round: u32) -> [u8; 4096] {
    let mut content = [0; 4096];
    for (at, word) in (0_u32..).zip(content.chunks_mut(4)) {
        word.copy_from_slice(&(page * 7919 + round * 31 + at % 19).to_le_bytes());
    }
    content
}

fn round_of(page: u32) -> u32 {
    u32::from(page.is_multiple_of(5))
}

/// Writes all pages, and every fifth once more; closes the volume, or has it crash.
fn fill(options: &CreateOptions, is_closed: bool) {
    let drive = Drive::create(options).expect("it is made");
    let write = |page: u32, round: u32| {
        let written =
            drive.write(u64::from(page) * 4096, &content(page, round), Durability::Volatile);
        written.expect("there is room");
    };
    (0..PAGES).for_each(|page| write(page, 0));
    (0..PAGES).filter(|page| round_of(*page) == 1).for_each(|page| write(page, 1));
    drive.flush().expect("nothing fails");
    if is_closed {
        drive.close().expect("it closes");
    }
}

fn put(die: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(die).expect("it is there");
    file.write_all_at(bytes, at).expect("nothing fails");
}

fn shorten(die: &Path, bytes: u64) {
    let file = OpenOptions::new().write(true).open(die).expect("it is there");
    let length = file.metadata().expect("it has a length").len();
    file.set_len(length - bytes).expect("it becomes shorter");
}

fn lose_headers(die: &Path) {
    put(die, 0, &[0; 8192]);
    let length = fs::metadata(die).expect("it has a length").len();
    put(die, length - 4096, &[0; 4096]);
}

/// Pages that are not as they were written last, each with what it is.
fn missing(volume: &Path) -> Vec<(u32, RecoveredPage)> {
    let recovered = RecoveredVolume::open(volume, None, None).expect("something is left");
    assert!(!recovered.doubts().is_empty(), "any page may be older than the last write");
    let read = |page: u32| {
        let mut found = [0; 4096];
        (recovered.read(page, &mut found), found)
    };
    let all = (0..PAGES).map(|page| (page, read(page)));
    let is_wrong = |(page, (_, found)): &(u32, (RecoveredPage, [u8; 4096]))| {
        *found != content(*page, round_of(*page))
    };
    all.filter(is_wrong).map(|(page, (read, _))| (page, read)).collect()
}

const JOURNAL_AND_HEADERS: &str = "the beginning of two dies";

/// Name of a harm, and what does it to dies whose erase blocks end at a byte.
type Harm = (&'static str, fn(&[PathBuf], u64));

/// Harms that one of the headers of each die outlives.
fn scratches() -> [Harm; 4] {
    [
        ("dies a byte short", |dies, _| dies.iter().for_each(|die| shorten(die, 1))),
        ("dies without their ends", |dies, _| dies.iter().for_each(|die| shorten(die, 4096))),
        ("the headers of two dies", |dies, _| {
            dies.iter().take(2).for_each(|die| put(die, 0, &[0; 8192]));
        }),
        ("the headers of all dies", |dies, _| {
            for die in dies {
                put(die, 0, &[0xA7; 8192]);
            }
        }),
    ]
}

#[test]
fn a_volume_whose_dies_are_short_or_lack_the_headers_at_their_beginning_opens_with_everything() {
    for dies in [1, 4] {
        for is_closed in [true, false] {
            for (harm, spoil) in scratches() {
                let case = format!("{dies} dies, closed {is_closed}, {harm}");
                let folder = tempfile::tempdir().unwrap();
                let options = options(folder.path(), dies, Compression::None);
                fill(&options, is_closed);
                let length = |die: &PathBuf| fs::metadata(die).unwrap().len();
                let whole = length(&options.dies[0]);
                spoil(&options.dies, options.shape().unwrap().die_bytes().0);
                let before: Vec<Vec<u8>> =
                    options.dies.iter().map(|die| fs::read(die).unwrap()).collect();
                let report = check(&options.volume, |_, _| ()).unwrap();
                let is_header = |it: &Finding| it.kind == Kind::Header;
                assert!(report.findings.iter().all(is_header), "{case}: {:?}", report.findings);
                let recovered = RecoveredVolume::open(&options.volume, None, None).unwrap();
                assert_eq!(recovered.doubts(), [] as [&str; 0], "{case}");
                drop(recovered);
                let is_same = options.dies.iter().zip(&before);
                assert!(is_same.into_iter().all(|(die, it)| fs::read(die).unwrap() == *it));
                let drive = Drive::open(&options.volume).unwrap();
                let read = |page: u32| {
                    let mut found = [0; 4096];
                    drive.read(u64::from(page) * 4096, &mut found).map(|()| found).unwrap()
                };
                let wrong = (0..PAGES).find(|page| read(*page) != content(*page, round_of(*page)));
                assert_eq!((wrong, drive.lost_dies()), (None, vec![]), "{case}");
                drive.close().unwrap();
                assert_eq!(length(&options.dies[0]), whole, "{case}: it has its end again");
                assert!(check(&options.volume, |_, _| ()).unwrap().findings.is_empty(), "{case}");
            }
        }
    }
}

/// Harms after which opening refuses.
fn harms() -> [Harm; 5] {
    [
        ("dies a byte shorter than their erase blocks", |dies, end| {
            dies.iter().take(2).for_each(|die| {
                let file = OpenOptions::new().write(true).open(die).expect("it is there");
                file.set_len(end - 1).expect("it becomes shorter");
            });
        }),
        ("all headers of two dies", |dies, _| {
            dies.iter().take(2).for_each(|die| lose_headers(die));
        }),
        ("all headers", |dies, _| dies.iter().for_each(|die| lose_headers(die))),
        (JOURNAL_AND_HEADERS, |dies, _| {
            for die in dies.iter().take(2) {
                lose_headers(die);
                put(die, 0, &vec![0xA7; 1 << 17]);
            }
        }),
        ("a sector of each header of a checkpoint", |dies, _| {
            for die in dies {
                let bytes = fs::read(die).expect("it is there");
                let slots = bytes.chunks(4096).enumerate();
                for (slot, _) in slots.filter(|(_, part)| part.starts_with(CHECKPOINT)) {
                    put(die, slot as u64 * 4096, &[0xA7; 512]);
                }
            }
        }),
    ]
}

#[test]
fn everything_that_units_name_is_read_though_headers_and_checkpoints_are_gone() {
    for (dies, compression) in
        [(1, Compression::None), (4, Compression::None), (4, Compression::Lz4)]
    {
        for is_closed in [true, false] {
            for (harm, spoil) in harms() {
                if harm == JOURNAL_AND_HEADERS && !is_closed {
                    // What only the journal held, in two copies, is gone with both.
                    continue;
                }
                let folder = tempfile::tempdir().unwrap();
                let options = options(folder.path(), dies, compression);
                fill(&options, is_closed);
                spoil(&options.dies, options.shape().unwrap().die_bytes().0);
                let refused = Drive::open(&options.volume);
                assert!(refused.is_err(), "{dies} dies, {harm}");
                let case = format!("{dies} dies, {compression:?}, closed {is_closed}, {harm}");
                let missing = missing(&options.volume);
                let first = missing.first();
                assert!(missing.is_empty(), "{case}: {} missing, {first:?}", missing.len());
            }
        }
    }
}

#[test]
fn the_size_of_a_die_that_is_too_short_is_told_in_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 1, Compression::None);
    fill(&options, true);
    let length = options.shape().unwrap().die_bytes().0;
    let file = OpenOptions::new().write(true).open(&options.dies[0]).unwrap();
    file.set_len(length - 1).unwrap();
    let refused = Drive::open(&options.volume).unwrap_err().to_string();
    let told = format!("has {} bytes, {length} are needed", length - 1);
    assert!(refused.contains(&told), "{refused}");
}
