//! Dies that were away for a session and come back: they keep what they have, and get what was
//! written meanwhile.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use live::{Contents, CreateOptions, Device as _, Drive, Durability, Replacement, allow_stale};
use status::Rebuild;

use crate::volume_options;

const PAGES: u64 = 1024;
/// Pages that are written while a die is away.
const FEW: u64 = 40;

/// A volume that is full of pages of content 1, closed.
fn full(folder: &Path, dies: usize) -> CreateOptions {
    let options = volume_options(folder, dies, Bytes(PAGES * 4096));
    Drive::create(&options).expect("it is made").close().expect("it closes");
    let drive = Drive::open(&options.volume).expect("it opens");
    write(&drive, PAGES, 1);
    drive.close().expect("it closes");
    options
}

fn write(drive: &Drive, pages: u64, content: u8) {
    for page in 0..pages {
        let written = drive.write(page * 4096, &[content; 4096], Durability::Volatile);
        written.expect("there is room");
    }
    drive.flush().expect("nothing fails");
}

/// Checks that the first pages have one content, and all others another one.
fn check(drive: &Drive, first: u8, others: u8) {
    for page in 0..PAGES {
        let mut found = [0; 4096];
        drive.read(page * 4096, &mut found).expect("all is there");
        let expected = if page < FEW { first } else { others };
        assert_eq!(found, [expected; 4096], "page {page}");
    }
}

fn aside(die: &Path) -> PathBuf {
    die.with_extension("aside")
}

/// A session without a die, in which few pages are written; then the die is back.
fn write_without(options: &CreateOptions, die: usize, content: u8) {
    let path = &options.dies[die];
    fs::rename(path, aside(path)).expect("it is there");
    let drive = Drive::open(&options.volume).expect("it opens degraded");
    write(&drive, FEW, content);
    drive.close().expect("it closes");
    fs::rename(aside(path), path).expect("it is there");
}

/// Has a die that is back take its place; returns how its rebuild went, and the bytes of units that
/// it wrote.
fn take_back(drive: &Drive, options: &CreateOptions, die: usize) -> (Rebuild, u64) {
    assert_eq!(drive.lost_dies(), [die]);
    let (volume, path) = (&options.volume, &options.dies[die]);
    let back = Replacement::prepare(volume, drive, die, path, Contents::Kept);
    back.expect("it may").carry_out(drive, |_, _| true).expect("it is rebuilt");
    let status = drive.status();
    let written = status.writes.expect("it is open").rebuild_bytes;
    (status.maintenance.rebuild.expect("there was one"), written)
}

/// Checks that a die that is back has every byte that it should: nothing of it is damaged, and
/// everything is read where another die goes.
fn check_without(drive: &Drive, other: usize, first: u8, others: u8) {
    let scrubbed = drive.scrub(true).expect("nothing fails");
    assert_eq!((scrubbed.units_bad, scrubbed.copies_bad), (0, 0), "{scrubbed:?}");
    drive.fail_die(other).expect("it is redundant");
    check(drive, first, others);
}

#[test]
fn a_die_that_was_away_for_a_session_gets_what_was_written_meanwhile_alone() {
    for (dies, die) in [(2, 0), (3, 1), (4, 3)] {
        for is_crash in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let options = full(folder.path(), dies);
            if is_crash {
                // What the last session wrote need not be durable where it went away.
                let drive = Drive::open(&options.volume).unwrap();
                write(&drive, FEW, 2);
            }
            write_without(&options, die, 3);
            let drive = Drive::open(&options.volume).unwrap();
            let (rebuild, written) = take_back(&drive, &options, die);
            assert!(rebuild.units_held > 40, "{dies} dies: {rebuild:?}");
            // Some rows, and what recovery and relocation moved, for more than a hundred.
            let most = drive.die_bytes().0 / 4;
            assert!(written > 0 && written < most, "{written} bytes, {most} at most");
            check_without(&drive, (die + 1) % dies, 3, 1);
        }
    }
}

/// Units that die 1 of three keeps which was damaged while it was away.
fn held_after(damage: fn(&fs::File, u64)) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = full(folder.path(), 3);
    write_without(&options, 1, 2);
    let file = fs::OpenOptions::new().write(true).open(&options.dies[1]).expect("it is back");
    damage(&file, file.metadata().expect("it has a size").len());
    drop(file);
    let drive = Drive::open(&options.volume).expect("it opens");
    let (rebuild, _) = take_back(&drive, &options, 1);
    // Of a unit whose header is right the rest is for a scrub to look at: where damage begins.
    let scrubbed = drive.scrub(true).expect("nothing fails");
    assert!(scrubbed.units_bad <= 1, "{scrubbed:?}");
    check_without(&drive, 0, 2, 1);
    rebuild.units_held
}

#[test]
fn units_that_a_die_lost_while_it_was_away_are_restored() {
    let as_it_was = held_after(|_, _| ());
    // What lies there says of itself which row it is of.
    let erased = held_after(|die, bytes| {
        let zeroes = vec![0; (bytes / 4).try_into().unwrap()];
        die.write_all_at(&zeroes, bytes / 2).unwrap();
    });
    assert!(0 < erased && erased < as_it_was, "{erased} of {as_it_was} units");
    // Its end says still that it is that die, and then nothing does.
    let headless = held_after(|die, _| die.write_all_at(&[0; 8192], 0).unwrap());
    assert_eq!(headless, as_it_was);
    let nameless = held_after(|die, bytes| {
        die.write_all_at(&[0; 8192], 0).unwrap();
        die.write_all_at(&[0; 4096], bytes - 4096).unwrap();
    });
    assert_eq!(nameless, 0);
}

#[test]
fn a_die_is_rebuilt_whole_where_nothing_proves_how_it_went_away() {
    let folder = tempfile::tempdir().unwrap();
    let options = full(folder.path(), 3);
    write_without(&options, 2, 2);
    fs::remove_file(options.volume.join("dies.witness")).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    let (rebuild, _) = take_back(&drive, &options, 2);
    assert_eq!(rebuild.units_held, 0);
    check_without(&drive, 0, 2, 1);
}

/// Each half of a mirror went on without the other, with the same commands: numbers of sessions,
/// rows and events are equal, and contents are not.
#[test]
fn nothing_is_kept_of_a_die_that_went_on_without_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let options = full(folder.path(), 2);
    write_without(&options, 0, 2);
    let newer = &options.dies[1];
    fs::rename(newer, aside(newer)).unwrap();
    assert!(allow_stale(&options.volume).unwrap());
    let drive = Drive::open(&options.volume).unwrap();
    write(&drive, FEW, 3);
    fs::rename(aside(newer), newer).unwrap();
    let (rebuild, _) = take_back(&drive, &options, 1);
    assert_eq!(rebuild.units_held, 0);
    check_without(&drive, 0, 3, 1);
}
