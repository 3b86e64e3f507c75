//! Opening a drive that was closed writes nothing but headers, and closing it again, too.

use std::fs;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use live::{
    Contents, CreateOptions, Device as _, Drive, Durability, OpenError, RecoveredVolume,
    Replacement,
};

use crate::volume_options;

const SIZE: u64 = 64 << 20;
const DIES: usize = 4;
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
    let options = volume_options(folder.path(), DIES, Bytes(SIZE));
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
        // All copies.
        assert_eq!(written, DIES as u64 * 3 * HEADER);
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
        let options = options(folder.path(), 2, true);
        let dies = &options.dies;
        let drive = Drive::create(&options).unwrap();
        drive.write(0, &[1; 4096], Durability::Durable).unwrap();
        drive.close().unwrap();
        fs::copy(&dies[copied], &dies[over]).unwrap();

        let drive = Drive::open(&options.volume).unwrap();
        assert_eq!(drive.lost_dies(), [over]);
        drive.write(0, &[2; 4096], Durability::Durable).unwrap();
        let new = folder.path().join("new.img");
        drop(Replacement::prepare(&options.volume, &drive, over, &new, Contents::Kept).unwrap());
        let listed = fs::read_to_string(options.volume.join("volume.toml")).unwrap();
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

/// A protected or plain volume of so many dies in `folder`.
fn options(folder: &Path, dies: usize, is_protected: bool) -> CreateOptions {
    CreateOptions { is_protected, ..volume_options(folder, dies, Bytes(16 << 20)) }
}

/// Opens a volume whose folder proves nothing, so that the dies are taken for what they say.
fn open_unproven(volume: &Path) -> Result<Drive, OpenError> {
    let _ = fs::remove_file(volume.join("dies.witness"));
    Drive::open(volume)
}

/// Writes `content` to some pages, durably, and closes the volume.
fn fill(volume: &Path, content: u8) {
    let drive = open_unproven(volume).expect("it opens");
    for page in 0..50 {
        let written = drive.write(page * 4096, &[content; 4096], Durability::Durable);
        written.expect("there is room");
    }
    drive.close().expect("it closes");
}

fn aside(die: &Path) -> PathBuf {
    die.with_extension("aside")
}

#[test]
fn two_dies_that_were_each_written_without_the_other_are_refused_together() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 2, true);
    Drive::create(&options).unwrap().close().unwrap();
    for (gone, content) in [(1, 1), (0, 2)] {
        fs::rename(&options.dies[gone], aside(&options.dies[gone])).unwrap();
        fill(&options.volume, content);
        fs::rename(aside(&options.dies[gone]), &options.dies[gone]).unwrap();
    }
    let refused = Drive::open(&options.volume).unwrap_err().to_string();
    assert!(refused.contains("were each written without the other"), "{refused}");
    let recovered = RecoveredVolume::open(&options.volume, None, None).unwrap();
    assert!(!recovered.doubts().is_empty());
    drop(recovered);
    // One of them is given up.
    fs::rename(&options.dies[1], aside(&options.dies[1])).unwrap();
    let drive = open_unproven(&options.volume).unwrap();
    let mut found = [0; 4096];
    drive.read(0, &mut found).unwrap();
    assert_eq!(found[0], 1);
}

/// All dies but one go back to a backup and go on without it; then it returns, with as new a header
/// as theirs or an older or newer one.
#[test]
fn a_die_of_an_abandoned_state_is_not_used_beside_dies_that_went_on_without_it() {
    for opened_more in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), 4, true);
        Drive::create(&options).unwrap().close().unwrap();
        fill(&options.volume, 1);
        for die in &options.dies[1..] {
            fs::copy(die, die.with_extension("backup")).unwrap();
        }
        fill(&options.volume, 2);
        for die in &options.dies[1..] {
            fs::rename(die.with_extension("backup"), die).unwrap();
        }
        fs::rename(&options.dies[0], aside(&options.dies[0])).unwrap();
        for _ in 0..=opened_more {
            fill(&options.volume, 3);
        }
        fs::rename(aside(&options.dies[0]), &options.dies[0]).unwrap();
        let Ok(drive) = open_unproven(&options.volume) else { continue };
        for page in 0..50 {
            let mut found = [0; 4096];
            drive.read(page * 4096, &mut found).unwrap();
            assert_eq!(found[0], 3, "page {page}, opened {opened_more} times more");
        }
    }
}

/// Each half of a mirror is written alone, one of them for longer. That one is given up, and its
/// medium takes its own place again: nothing of what it had may be taken for what was written to
/// the other, neither after a close nor after a crash.
#[test]
fn a_die_that_was_given_up_brings_nothing_back_when_its_medium_is_the_replacement() {
    for is_crash in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), 2, true);
        let (volume, dies) = (&options.volume, &options.dies);
        Drive::create(&options).unwrap().close().unwrap();
        fill(volume, 1);
        fs::rename(&dies[0], aside(&dies[0])).unwrap();
        for _ in 0..6 {
            fill(volume, 2);
        }
        fs::rename(&dies[1], aside(&dies[1])).unwrap();
        fs::rename(aside(&dies[0]), &dies[0]).unwrap();
        fill(volume, 3);
        let drive = Drive::open(volume).unwrap();
        assert_eq!(drive.lost_dies(), [1]);
        fs::rename(aside(&dies[1]), &dies[1]).unwrap();
        let replacement =
            Replacement::prepare(volume, &drive, 1, &dies[1], Contents::Kept).unwrap();
        let mut is_read = false;
        let filled = replacement.carry_out(&drive, |done, rows| {
            // Before the first row, in the middle of it, and later.
            if done == 0 || done == rows / 2 {
                drive.scrub(true).unwrap();
                is_read = true;
                for page in 0..50 {
                    let mut found = [0; 4096];
                    drive.read(page * 4096, &mut found).unwrap();
                    assert_eq!(found, [3; 4096], "page {page} while the die is filled");
                }
            }
            true
        });
        filled.unwrap();
        assert!(is_read);
        if is_crash {
            drop(drive);
        } else {
            drive.close().unwrap();
        }
        let drive = Drive::open(volume).unwrap();
        assert_eq!(drive.lost_dies(), [0; 0]);
        for page in 0..50 {
            let mut found = [0; 4096];
            drive.read(page * 4096, &mut found).unwrap();
            assert_eq!(found, [3; 4096], "page {page}, crash: {is_crash}");
        }
    }
}

/// Of three dies one is given up for good, so that two are left, each of which opens alone.
#[test]
fn two_dies_that_are_left_of_three_are_refused_after_each_was_written_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = CreateOptions { over_provisioning: 1.5, ..options(folder.path(), 3, true) };
    let (volume, dies) = (&options.volume, &options.dies);
    let drive = Drive::create(&options).unwrap();
    drive.fail_die(2).unwrap();
    assert!(drive.restore_redundancy().unwrap());
    drive.close().unwrap();
    for (gone, content, times) in [(1, 1, 1), (0, 2, 2)] {
        fs::rename(&dies[gone], aside(&dies[gone])).unwrap();
        for _ in 0..times {
            fill(volume, content);
        }
        fs::rename(aside(&dies[gone]), &dies[gone]).unwrap();
    }
    let refused = Drive::open(volume).unwrap_err().to_string();
    assert!(refused.contains("were each written without the other"), "{refused}");
    // The one that is given up comes back as a replacement.
    fs::rename(&dies[0], aside(&dies[0])).unwrap();
    let drive = Drive::open(volume).unwrap();
    let mut found = [0; 4096];
    drive.read(0, &mut found).unwrap();
    assert_eq!(found, [2; 4096]);
    let new = folder.path().join("new.img");
    let replacement = Replacement::prepare(volume, &drive, 0, &new, Contents::Kept).unwrap();
    replacement.carry_out(&drive, |_, _| true).unwrap();
    drive.close().unwrap();
    Drive::open(volume).unwrap();
}

/// Of four dies two have failed, and redundancy was restored without them.
fn reduced_to_two(folder: &Path, failed: [usize; 2]) -> CreateOptions {
    let options = CreateOptions { over_provisioning: 2.5, ..options(folder, 4, true) };
    let drive = Drive::create(&options).expect("it is created");
    drive.write(0, &[1; 4096], Durability::Durable).expect("it is written");
    for die in failed {
        drive.fail_die(die).expect("one is enough");
        assert!(drive.restore_redundancy().expect("dies answer"));
    }
    drive.close().expect("it closes");
    for die in failed {
        fs::remove_file(&options.dies[die]).expect("it is there");
    }
    options
}

#[test]
fn a_replacement_does_not_take_the_path_of_another_die() {
    let folder = tempfile::tempdir().unwrap();
    let options = reduced_to_two(folder.path(), [2, 3]);
    let (volume, dies) = (&options.volume, &options.dies);
    let drive = Drive::open(volume).unwrap();
    let refused =
        Replacement::prepare(volume, &drive, 3, &dies[2], Contents::Kept).unwrap_err().to_string();
    assert!(refused.contains("is listed as die 2 of this volume: replace die 2"), "{refused}");
    let link = folder.path().join("link.img");
    std::os::unix::fs::symlink(&dies[0], &link).unwrap();
    let refused =
        Replacement::prepare(volume, &drive, 3, &link, Contents::Kept).unwrap_err().to_string();
    assert!(refused.ends_with("is listed as die 0 of this volume: give another path"), "{refused}");
    let replacement = Replacement::prepare(volume, &drive, 2, &dies[2], Contents::Kept).unwrap();
    replacement.carry_out(&drive, |_, _| true).unwrap();
    drive.close().unwrap();
    Drive::open(volume).unwrap();
}

#[test]
fn dies_that_changed_their_paths_are_listed_anew_without_those_that_were_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let options = reduced_to_two(folder.path(), [1, 2]);
    let dies = &options.dies;
    fs::rename(&dies[0], aside(&dies[0])).unwrap();
    fs::rename(&dies[3], &dies[0]).unwrap();
    fs::rename(aside(&dies[0]), &dies[3]).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert_eq!(drive.lost_dies(), [1, 2]);
    let status = live::describe_status(drive.status(), &options.volume);
    let path = |die: usize| status.dies[die].path.clone().unwrap();
    assert_eq!(path(0), dies[3].display().to_string(), "its file has this name now");
    assert_eq!(path(3), dies[0].display().to_string());
}

#[test]
fn what_is_recovered_without_two_dies_may_be_older_than_what_was_written_last() {
    for is_protected in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), 4, is_protected);
        Drive::create(&options).unwrap().close().unwrap();
        fill(&options.volume, 1);
        let drive = Drive::open(&options.volume).unwrap();
        drive.write(0, &[2; 4096], Durability::Durable).unwrap();
        // A crash.
        drop(drive);
        for die in &options.dies[1..3] {
            fs::rename(die, aside(die)).unwrap();
        }
        let recovered = RecoveredVolume::open(&options.volume, None, None).unwrap();
        let doubts = recovered.doubts().join("; ");
        assert!(doubts.contains("2 of 4 dies are missing"), "{doubts}");
    }
}

#[test]
fn a_description_that_cannot_be_used_says_so_and_does_not_advise_to_create_the_volume() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 2, true);
    Drive::create(&options).unwrap().close().unwrap();
    let path = options.volume.join("volume.toml");
    let [first, second] = [&options.dies[0], &options.dies[1]].map(|die| die.display().to_string());
    let cases = [
        (String::new(), "missing field"),
        ("schema = 2\ndies = []".to_owned(), "schema is 2, must be 1"),
        (format!("schema = 1\ndies = ['{first}', '{first}']"), "is listed twice"),
        (format!("schema = 1\ndies = ['{first}.gone', '{second}.gone']"), "none of the dies"),
    ];
    for (text, expected) in cases {
        fs::write(&path, text).unwrap();
        let error = Drive::open(&options.volume).unwrap_err();
        let remedy = error.remedy(&options.volume);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(
            remedy.contains("volume.toml") && !remedy.contains("floatgate volume create"),
            "{remedy}"
        );
    }
    fs::write(&path, format!("schema = 1\ndies = ['{second}', '{first}']")).unwrap();
    Drive::open(&options.volume).unwrap();
}
