//! A drive in files, created, closed and opened again.

use std::num::NonZeroUsize;
use std::sync::Arc;

use blockio::Bytes;
use live::inspect;
use live::{
    Contents, CreateOptions, Device, Drive, Durability, OpenError, Preallocation, Queue,
    Replacement, VolumeOptions, create,
};
use status::management::{Answer, Connection, Management};
use status::{Space, State, Writes};

use crate::volume_options;

fn options(folder: &std::path::Path, dies: usize, size_kib: u64) -> CreateOptions {
    volume_options(folder, dies, Bytes::from_kib(size_kib))
}

fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut word = seed;
    let mut next = || {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ 0x55;
        word.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn what_was_written_is_there_after_closing_and_opening() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 8, 64 << 10);
    let drive = Drive::create(&options).unwrap();
    let (first, second) = (pattern(1, 1 << 20), pattern(2, 10_000));
    drive.write(4096, &first, Durability::Volatile).unwrap();
    drive.write(5000, &second, Durability::Volatile).unwrap();
    drive.trim(1 << 19, 1 << 18, Durability::Volatile).unwrap();
    drive.close().unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    let mut expected = vec![0; 2 << 20];
    expected[4096..4096 + (1 << 20)].copy_from_slice(&first);
    expected[5000..15_000].copy_from_slice(&second);
    expected[1 << 19..(1 << 19) + (1 << 18)].fill(0);
    let mut found = vec![1; 2 << 20];
    drive.read(0, &mut found).unwrap();
    assert!(found == expected);
    let stored = drive.allocations(0, drive.size()).unwrap();
    assert_eq!(stored.iter().map(|run| run.length).sum::<u64>(), drive.size());
}

#[test]
fn what_a_queue_was_asked_is_kept_by_the_drive_below() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4, 8 << 10);
    let drive = Arc::new(Drive::create(&options).unwrap());
    let queue = Queue::new(&drive, NonZeroUsize::new(3).unwrap()).unwrap();
    let (first, second) = (pattern(1, 8192), pattern(2, 4096));
    let together = queue.atomic_write(vec![(0, first.clone()), (1 << 20, second.clone())]);
    let alone = queue.write(2 << 20, second.clone(), Durability::Durable);
    together.wait().unwrap();
    alone.wait().unwrap();
    drop((queue, drive));
    let drive = Drive::open(&options.volume).unwrap();
    for (offset, expected) in [(0, &first), (1 << 20, &second), (2 << 20, &second)] {
        let mut found = vec![0; expected.len()];
        drive.read(offset, &mut found).unwrap();
        assert!(found == *expected, "at {offset}");
    }
}

#[test]
fn what_was_flushed_is_there_after_the_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4, 8 << 10);
    let drive = Drive::create(&options).unwrap();
    for round in 0..30_u64 {
        let bytes = pattern(round, 64 << 10);
        drive.write(round * (64 << 10), &bytes, Durability::Volatile).unwrap();
    }
    drive.flush().unwrap();
    drop(drive);
    let drive = Drive::open(&options.volume).unwrap();
    let mut found = vec![0; 64 << 10];
    for round in 0..30_u64 {
        drive.read(round * (64 << 10), &mut found).unwrap();
        assert!(found == pattern(round, 64 << 10), "round {round}");
    }
}

#[test]
fn a_drive_that_is_written_over_and_over_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&options(folder.path(), 3, 4 << 10)).unwrap();
    let (mut at, block) = (1_u64, pattern(7, 4096));
    for _ in 0..20_000 {
        at = at * 7919 % 1021;
        drive.write(at * 4096, &block, Durability::Volatile).unwrap();
    }
    let counters = drive.counters().unwrap();
    assert!(counters.superblocks_erased > 10, "{counters:?}");
    let mut found = vec![0; 4096];
    drive.read(at * 4096, &mut found).unwrap();
    assert!(found == block);
}

#[test]
fn a_drive_of_large_units_goes_on_without_a_die_and_comes_back_from_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let unit = Some(Bytes::from_kib(128));
    let options = CreateOptions { unit, ..options(folder.path(), 3, 24 << 10) };
    let drive = Drive::create(&options).unwrap();
    let pages = drive.size() / 4096;
    let mut newest = std::collections::BTreeMap::new();
    let mut write = |drive: &Drive, from: u64| {
        for index in from..from + 2 * pages {
            let page = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % pages;
            newest.insert(page, index);
            drive.write(page * 4096, &pattern(index, 4096), Durability::Volatile).unwrap();
        }
    };
    write(&drive, 1);
    drive.fail_die(1).unwrap();
    write(&drive, 1 << 32);
    drive.flush().unwrap();
    drop(drive);
    let drive = Drive::open(&options.volume).unwrap();
    let mut found = [0; 4096];
    for (page, index) in newest {
        drive.read(page * 4096, &mut found).unwrap();
        assert!(found[..] == pattern(index, 4096), "page {page}");
    }
}

#[test]
fn a_drive_in_use_is_not_opened_twice() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 1, 1 << 10);
    let _drive = Drive::create(&options).unwrap();
    assert!(matches!(Drive::open(&options.volume), Err(OpenError::InUse { .. })));
    assert!(matches!(Drive::create(&options), Err(OpenError::Refused { .. })));
}

#[test]
fn a_drive_opens_without_a_missing_die() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 5, 4 << 10);
    let drive = Drive::create(&options).unwrap();
    let bytes = pattern(3, 1 << 20);
    drive.write(0, &bytes, Durability::Durable).unwrap();
    drive.close().unwrap();
    std::fs::remove_file(&options.dies[2]).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert_eq!(drive.lost_dies(), [2]);
    let mut found = vec![0; 1 << 20];
    drive.read(0, &mut found).unwrap();
    assert!(found == bytes);
}

#[test]
fn a_drive_that_was_closed_tells_how_it_fares_and_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4, 8 << 10);
    let drive = Drive::create(&options).unwrap();
    let block = pattern(5, 4096);
    for round in 0..6_u64 {
        for page in 0..1500_u64 {
            let offset = (page * 7919 + round) % 2048 * 4096;
            drive.write(offset, &block, Durability::Volatile).unwrap();
        }
    }
    let open = drive.status();
    drive.close().unwrap();
    let dies = || options.dies.iter().map(|die| std::fs::read(die).unwrap()).collect::<Vec<_>>();
    let before = dies();
    let closed = inspect(&options.volume).unwrap();
    assert!(dies() == before);
    assert_eq!((open.state, closed.state), (State::Open, State::Closed));
    assert_eq!((open.format, open.drive), (closed.format.clone(), closed.drive));
    let stored = |space: Option<Space>| space.unwrap().stored_bytes;
    assert_eq!(stored(closed.space.clone()), stored(open.space));
    assert_eq!(closed.wear, Drive::open(&options.volume).unwrap().status().wear);
    assert!(closed.wear.unwrap().erase_count_max > 0);
    let letters = closed.space.unwrap().superblocks;
    assert_eq!(letters.len(), closed.format.superblocks as usize);
}

#[test]
fn what_the_dies_were_written_has_a_cause_to_the_last_byte() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&options(folder.path(), 4, 4 << 10)).unwrap();
    let block = pattern(6, 4096);
    for round in 0..8000_u64 {
        let page = (round * round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        drive.write(page * 4096, &block, Durability::Volatile).unwrap();
    }
    drive.flush().unwrap();
    let status = drive.status();
    let writes = status.writes.unwrap();
    let pages = writes.host_bytes + writes.relocation_bytes + writes.parity_bytes;
    assert_eq!(writes.host_bytes, 8000 * 4096);
    assert!(writes.relocation_bytes > 0 && writes.parity_bytes > writes.host_bytes / 4);
    let written = status.smart.physical_media_units_written.unwrap();
    assert_eq!(written, pages + writes.wear_bytes + writes.metadata_bytes);
    assert_eq!(written, status.dies.iter().map(|die| die.written_bytes).sum::<u64>());
    let amplification = writes.write_amplification.unwrap();
    assert!((amplification - written as f64 / writes.host_bytes as f64).abs() < 1e-9);
    // Part of a page takes a page, and is no more than clients sent.
    drive.write(0, &[1; 512], Durability::Volatile).unwrap();
    let after = drive.status().writes.unwrap();
    let grown = |of: fn(&Writes) -> u64| of(&after) - of(&writes);
    assert_eq!((grown(|it| it.host_bytes), grown(|it| it.host_sent_bytes)), (4096, 512));
}

#[test]
fn a_crash_is_counted_and_a_lost_die_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 3, 4 << 10);
    drop(Drive::create(&options).unwrap());
    let crashed = inspect(&options.volume).unwrap();
    assert_eq!((crashed.state, crashed.space), (State::Unclosed, None));
    let drive = Drive::open(&options.volume).unwrap();
    let smart = drive.status().smart;
    assert_eq!((smart.power_cycles, smart.unsafe_shutdowns, smart.critical_warning), (2, 1, 0));
    drive.close().unwrap();
    std::fs::remove_file(&options.dies[1]).unwrap();
    let status = inspect(&options.volume).unwrap();
    assert_eq!((status.smart.critical_warning, status.smart.unsafe_shutdowns), (4, 1));
    assert!(status.dies[1].is_lost);
}

#[test]
fn a_drive_in_use_says_by_which_process() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 1, 1 << 10);
    let drive = Arc::new(Drive::create(&options).unwrap());
    let said = Drive::open(&options.volume).unwrap_err().to_string();
    assert!(said.ends_with("is in use by another process; stop that first"), "{said}");
    let asked = Arc::clone(&drive);
    let answer = move |_| Answer::Status { status: Box::new(asked.status()) };
    let _management = Management::start(&options.volume, answer).unwrap();
    let said = Drive::open(&options.volume).unwrap_err().to_string();
    let expected = format!("is in use by process {}; stop that first", std::process::id());
    assert!(said.ends_with(&expected), "{said}");
    let status = Connection::open(&options.volume).unwrap().unwrap().status().unwrap();
    assert_eq!((status.state, status.drive), (State::Open, drive.status().drive));
}

#[test]
fn a_replaced_die_takes_the_next_failure() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4, 4 << 10);
    let drive = Drive::create(&options).unwrap();
    let bytes = pattern(3, 2 << 20);
    drive.write(0, &bytes, Durability::Volatile).unwrap();
    drive.fail_die(1).unwrap();
    assert!(drive.fail_die(2).is_err(), "a second die cannot be removed");
    let later = pattern(4, 1 << 20);
    drive.write(1 << 20, &later, Durability::Durable).unwrap();
    drive.close().unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    let new = folder.path().join("new.img");
    let replacement =
        Replacement::prepare(&options.volume, &drive, 1, &new, Contents::Kept).unwrap();
    replacement.carry_out(&drive, |_, _| true).unwrap();
    drive.close().unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert!(drive.lost_dies().is_empty());
    assert_eq!(drive.scrub(false).unwrap().units_bad, 0);
    drive.fail_die(3).unwrap();
    let mut found = vec![0; 2 << 20];
    drive.read(0, &mut found).unwrap();
    assert!(found[..1 << 20] == bytes[..1 << 20] && found[1 << 20..] == later);
}

#[test]
fn a_scrub_writes_again_what_has_rotted() {
    use std::os::unix::fs::FileExt as _;
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4, 4 << 10);
    let drive = Drive::create(&options).unwrap();
    let bytes = pattern(5, 3 << 20);
    drive.write(0, &bytes, Durability::Durable).unwrap();
    let size = drive.die_bytes().0;
    let file = std::fs::OpenOptions::new().write(true).open(&options.dies[0]).unwrap();
    // Most of the die but its headers, journal and checkpoints.
    file.write_all_at(&vec![0xaa; 1 << 20], size - (2 << 20)).unwrap();
    let found = drive.scrub(true).unwrap();
    assert!(found.units_bad > 0 && found.units_bad == found.units_restored, "{found:?}");
    assert!(found.lost_lbas.is_empty());
    assert_eq!(drive.scrub(false).unwrap().units_bad, 0);
    let mut read = vec![0; 3 << 20];
    drive.read(0, &mut read).unwrap();
    assert!(read == bytes);
}

#[test]
fn a_drive_that_cannot_be_created_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(&folder.path().join("a/b"), 3, 4 << 10);
    let in_the_way = folder.path().join("in-the-way.img");
    std::fs::write(&in_the_way, b"somebody's").unwrap();
    options.dies[2].clone_from(&in_the_way);
    let entries = || std::fs::read_dir(folder.path()).unwrap().count();
    std::fs::create_dir(folder.path().join("a")).unwrap();
    let before = entries();
    let refused = Drive::create(&options).unwrap_err().to_string();
    assert!(refused.contains("in-the-way.img"), "{refused}");
    assert!(!folder.path().join("a/b").exists() && entries() == before);
    // A hot spare that is there already, after all else was made.
    options.dies[2] = folder.path().join("a/b/d2.img");
    let volume_options =
        VolumeOptions { hot_spares: vec![in_the_way.clone()], ..VolumeOptions::default() };
    assert!(create(&options, &volume_options).is_err());
    assert!(!folder.path().join("a/b").exists());
    assert_eq!(std::fs::read(&in_the_way).unwrap(), b"somebody's");
    create(&options, &VolumeOptions::default()).unwrap();
    assert!(Drive::open(&options.volume).is_ok());
}

#[test]
fn a_replacement_that_the_folder_cannot_name_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 3, 4 << 10);
    let drive = Drive::create(&options).unwrap();
    drive.fail_die(1).unwrap();
    let new = folder.path().join("new.img");
    let replace = || Replacement::prepare(&options.volume, &drive, 1, &new, Contents::Kept);
    // In the way of the file that is to take the place of the description.
    let in_the_way = options.volume.join("volume.toml.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let refused = replace().unwrap_err().to_string();
    assert!(refused.contains("volume.toml") && !new.exists(), "{refused}");
    std::fs::remove_dir(&in_the_way).unwrap();
    replace().unwrap();
    assert!(new.exists());
}

#[test]
fn a_die_is_not_failed_where_that_would_lose_data_and_the_next_step_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (is_protected, next) in [(false, "create one with parity"), (true, "replace-die")] {
        let options = options(&folder.path().join(next), 3, 4 << 10);
        std::fs::create_dir(folder.path().join(next)).unwrap();
        let drive = Drive::create(&CreateOptions { is_protected, ..options }).unwrap();
        if is_protected {
            drive.fail_die(0).unwrap();
        }
        let refused = drive.fail_die(1).unwrap_err().to_string();
        assert!(refused.contains("this would lose data") && refused.contains(next), "{refused}");
        assert!(!refused.contains("refused"), "{refused}");
    }
}

#[test]
fn the_space_that_files_take_is_known_before_and_asked_of_the_host() {
    use std::os::unix::fs::MetadataExt as _;
    for preallocation in [Preallocation::Full, Preallocation::Off] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), 3, 64 << 10);
        let hot_spares = vec![folder.path().join("spare.img")];
        let files: Vec<_> = options.dies.iter().chain(&hot_spares).cloned().collect();
        let wanted = VolumeOptions { preallocation, hot_spares, ..VolumeOptions::default() };
        let shape = options.shape().unwrap();
        let taken = live::SpaceTaken::of(&shape, files.iter(), wanted.preallocation);
        let [live::SpaceTaken { files: 4, at_once, most, .. }] = taken[..] else {
            panic!("one file system with all: {taken:?}");
        };
        create(&options, &wanted).unwrap();
        let found: Vec<_> = files.iter().map(|path| path.metadata().unwrap()).collect();
        assert_eq!(found.iter().map(std::fs::Metadata::len).sum::<u64>(), most.0);
        let allocated = found.iter().map(|it| it.blocks() * 512).sum::<u64>();
        // Blocks of the file system round up.
        assert!((at_once.0..at_once.0 + (1 << 20)).contains(&allocated), "{allocated} {at_once}");
        assert_eq!(at_once == most, preallocation == Preallocation::Full);
    }
    let folder = tempfile::tempdir().unwrap();
    let options = CreateOptions { size: Bytes(8 << 40), ..options(folder.path(), 3, 64 << 10) };
    let refused = create(&options, &VolumeOptions::default()).unwrap_err().to_string();
    let told = "the 3 files on the file system of ";
    assert!(refused.starts_with(told) && refused.contains("use --sparse"), "{refused}");
    assert!(!options.volume.exists(), "nothing was made");
}

#[test]
fn dies_are_their_owners_and_take_their_space_at_once_unless_they_are_sparse() {
    use std::os::unix::fs::MetadataExt as _;
    for preallocation in [Preallocation::Full, Preallocation::Off] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), 3, 16 << 10);
        let spare = folder.path().join("spare.img");
        let hot_spares = vec![spare.clone()];
        create(&options, &VolumeOptions { preallocation, hot_spares, ..VolumeOptions::default() })
            .unwrap();
        let has_space = |path: &std::path::Path| {
            let file = path.metadata().unwrap();
            assert_eq!(file.mode() & 0o777, 0o600);
            file.blocks() * 512 >= file.len()
        };
        let is_full = preallocation == Preallocation::Full;
        let drive = Drive::open(&options.volume).unwrap();
        drive.write(0, &pattern(1, 1 << 20), Durability::Durable).unwrap();
        // What is erased keeps its space, too.
        drive.purge().unwrap();
        drive.fail_die(1).unwrap();
        let new = folder.path().join("new.img");
        Replacement::prepare(&options.volume, &drive, 1, &new, Contents::Kept).unwrap();
        for path in options.dies.iter().chain([&spare, &new]) {
            assert_eq!(has_space(path), is_full, "{}", path.display());
        }
    }
}
