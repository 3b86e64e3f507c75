//! Drives with hot spares, which take the place of dies that fail by themselves.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use blockio::Bytes;
use live::{
    Contents, CreateOptions, Device as _, Drive, Durability, Maintenance, add_spare, hot_spares,
};

use crate::volume_options;

const SIZE_KIB: u64 = 8 << 10;
/// Time limit for filling a hot spare.
const PATIENCE: Duration = Duration::from_mins(1);

fn create(folder: &Path, dies: usize) -> (CreateOptions, Drive) {
    let options = volume_options(folder, dies, Bytes::from_kib(SIZE_KIB));
    let drive = Drive::create(&options).expect("there is room");
    (options, drive)
}

fn contents() -> Vec<u8> {
    (0..SIZE_KIB << 10).map(|at| (at / 4096 * 31 + at % 251).to_le_bytes()[0]).collect()
}

fn assert_all_there(drive: &Drive) {
    let mut found = vec![0; contents().len()];
    drive.read(0, &mut found).expect("nothing is lost");
    assert!(found == contents());
}

/// Waits until something about a drive is so.
fn wait_until(drive: &Drive, is_so: impl Fn(&Drive) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so(drive) {
        assert!(Instant::now() < deadline, "never; {:?}", drive.status().maintenance);
        thread::sleep(Duration::from_millis(5));
    }
}

fn is_whole(drive: &Drive) -> bool {
    let is_filling = drive.status().maintenance.rebuild.is_some_and(|it| it.is_running);
    drive.lost_dies().is_empty() && !is_filling
}

#[test]
fn a_spare_takes_the_place_of_a_die_that_fails_every_read_though_no_client_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (options, drive) = create(folder.path(), 4);
    add_spare(&options.volume, &drive, &folder.path().join("s0.img"), Contents::Kept).unwrap();
    drive.write(0, &contents(), Durability::Durable).unwrap();
    let drive = Arc::new(drive);
    let maintenance = Maintenance::new(&options.volume, Arc::clone(&drive));
    maintenance.keep_redundant().unwrap();
    let emptied = std::fs::OpenOptions::new().write(true).open(&options.dies[1]).unwrap();
    emptied.set_len(0).unwrap();
    assert_all_there(&drive);
    assert!(drive.lost_dies().is_empty(), "it may answer again");
    wait_until(&drive, |drive| {
        assert_all_there(drive);
        hot_spares(&options.volume).is_empty() && is_whole(drive)
    });
    assert_all_there(&drive);
    assert_eq!(drive.status().health.state, status::HealthState::Ok, "{:?}", drive.status().health);
}

#[test]
fn hot_spares_take_the_places_of_two_that_fail_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let (options, drive) = create(folder.path(), 4);
    for name in ["s0.img", "s1.img"] {
        add_spare(&options.volume, &drive, &folder.path().join(name), Contents::Kept).unwrap();
    }
    assert_eq!(hot_spares(&options.volume).len(), 2);
    drive.write(0, &contents(), Durability::Durable).unwrap();
    let drive = Arc::new(drive);
    let maintenance = Maintenance::new(&options.volume, Arc::clone(&drive));
    maintenance.keep_redundant().unwrap();
    for (die, left) in [(1, 1), (3, 0)] {
        drive.fail_die(die).unwrap();
        wait_until(&drive, is_whole);
        wait_until(&drive, |_| hot_spares(&options.volume).len() == left);
        assert_all_there(&drive);
    }
    drop(maintenance);
    Arc::into_inner(drive).expect("no other thread has it").close().unwrap();
    for die in [1, 3] {
        std::fs::remove_file(&options.dies[die]).unwrap();
    }
    let drive = Drive::open(&options.volume).unwrap();
    assert!(drive.lost_dies().is_empty(), "the spare ones are the dies now");
    assert_eq!(drive.scrub(false).unwrap().units_bad, 0);
    assert_all_there(&drive);
}

#[test]
fn a_spare_die_whose_filling_was_cut_off_goes_on_when_the_drive_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (options, drive) = create(folder.path(), 4);
    let spare = folder.path().join("s.img");
    add_spare(&options.volume, &drive, &spare, Contents::Kept).unwrap();
    drive.write(0, &contents(), Durability::Durable).unwrap();
    drive.fail_die(2).unwrap();
    let replacement =
        live::Replacement::prepare(&options.volume, &drive, 2, &spare, Contents::Kept).unwrap();
    replacement.carry_out(&drive, |done, _| done < 2).unwrap_err();
    drop(drive);
    assert!(hot_spares(&options.volume).is_empty(), "it stands in a place already");
    let drive = Arc::new(Drive::open(&options.volume).unwrap());
    assert_eq!(drive.lost_dies(), [2]);
    let maintenance = Maintenance::new(&options.volume, Arc::clone(&drive));
    maintenance.keep_redundant().unwrap();
    wait_until(&drive, is_whole);
    assert_eq!(drive.scrub(false).unwrap().units_bad, 0);
    assert_all_there(&drive);
}

/// Names of devices may be exchanged when the system is started again.
#[test]
fn a_die_that_has_the_name_of_a_spare_is_a_die_and_is_not_erased() {
    let folder = tempfile::tempdir().unwrap();
    let (options, drive) = create(folder.path(), 3);
    let (die, spare) = (options.dies[2].clone(), folder.path().join("s0.img"));
    add_spare(&options.volume, &drive, &spare, Contents::Kept).unwrap();
    drive.write(0, &contents(), Durability::Durable).unwrap();
    drive.close().unwrap();
    let held = std::fs::read(&die).unwrap();
    let between = folder.path().join("between");
    for (from, to) in [(&die, &between), (&spare, &die), (&between, &spare)] {
        std::fs::rename(from, to).unwrap();
    }
    let drive = Arc::new(Drive::open(&options.volume).unwrap());
    assert!(drive.lost_dies().is_empty());
    assert_eq!(hot_spares(&options.volume), std::slice::from_ref(&die));
    let maintenance = Maintenance::new(&options.volume, Arc::clone(&drive));
    maintenance.keep_redundant().unwrap();
    assert_eq!(drive.scrub(false).unwrap().units_bad, 0);
    // But for the headers at both ends.
    let kept = 8192..held.len() - 4096;
    assert!(std::fs::read(&spare).unwrap()[kept.clone()] == held[kept], "it was not erased");
    // Whatever fails now, the spare is the one that is erased.
    drive.fail_die(0).unwrap();
    wait_until(&drive, is_whole);
    wait_until(&drive, |_| hot_spares(&options.volume).is_empty());
    assert_all_there(&drive);
}

#[test]
fn a_spare_die_that_is_gone_stays_one_while_the_next_one_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (options, drive) = create(folder.path(), 4);
    let (gone, good) = (folder.path().join("gone.img"), folder.path().join("good.img"));
    for spare in [&gone, &good] {
        add_spare(&options.volume, &drive, spare, Contents::Kept).unwrap();
    }
    // What takes its name is no file that a die could be.
    std::fs::remove_file(&gone).unwrap();
    std::fs::create_dir(&gone).unwrap();
    drive.write(0, &contents(), Durability::Durable).unwrap();
    let drive = Arc::new(drive);
    let maintenance = Maintenance::new(&options.volume, Arc::clone(&drive));
    maintenance.keep_redundant().unwrap();
    drive.fail_die(0).unwrap();
    wait_until(&drive, is_whole);
    wait_until(&drive, |_| hot_spares(&options.volume) == [gone.clone()]);
    assert_all_there(&drive);
    let failures = drive.status().maintenance.spare_failures;
    let [failure] = failures.as_slice() else { panic!("{failures:?}") };
    assert_eq!((failure.path.as_str(), failure.die), (&*gone.display().to_string(), 0));
    assert!(failure.is_kept && failure.reason.contains("neither a file"), "{failure:?}");
}

#[test]
fn redundancy_is_restored_in_the_space_left_while_no_spare_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let (options, drive) = create(folder.path(), 4);
    let gone = folder.path().join("gone.img");
    add_spare(&options.volume, &drive, &gone, Contents::Kept).unwrap();
    std::fs::remove_file(&gone).unwrap();
    std::fs::create_dir(&gone).unwrap();
    drive.write(0, &contents()[..1 << 20], Durability::Durable).unwrap();
    let drive = Arc::new(drive);
    let maintenance = Maintenance::new(&options.volume, Arc::clone(&drive));
    maintenance.keep_redundant().unwrap();
    drive.fail_die(0).unwrap();
    wait_until(&drive, Drive::is_redundant);
    assert_eq!(drive.lost_dies(), [0]);
    assert_eq!(hot_spares(&options.volume), std::slice::from_ref(&gone));
    assert_eq!(drive.status().maintenance.spare_failures.len(), 1);
    maintenance.remove_spare(&gone).unwrap();
    assert!(drive.status().maintenance.spare_failures.is_empty(), "it concerns no spare now");
}

#[test]
fn what_can_be_no_spare_die_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (options, drive) = create(folder.path(), 4);
    let spare = folder.path().join("s.img");
    add_spare(&options.volume, &drive, &spare, Contents::Kept).unwrap();
    for taken in [&spare, &options.dies[1]] {
        let refused =
            add_spare(&options.volume, &drive, taken, Contents::Kept).unwrap_err().to_string();
        assert!(refused.ends_with("is already a die or a hot spare of the volume"), "{refused}");
    }
    let file = folder.path().join("notes");
    std::fs::write(&file, "not to be lost").unwrap();
    assert!(add_spare(&options.volume, &drive, &file, Contents::Kept).is_err());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "not to be lost");
    assert_eq!(hot_spares(&options.volume), [spare]);
    let other = tempfile::tempdir().unwrap();
    let (options, drive) = create(other.path(), 1);
    let spare = other.path().join("s.img");
    let refused =
        add_spare(&options.volume, &drive, &spare, Contents::Kept).unwrap_err().to_string();
    assert!(refused.starts_with("a hot spare needs parity"), "{refused}");
    assert!(!spare.exists());
}

#[test]
fn a_spare_that_is_removed_stays_as_it_is_and_replaces_no_die() {
    let folder = tempfile::tempdir().unwrap();
    let (options, drive) = create(folder.path(), 4);
    let volume = &options.volume;
    let spare = folder.path().join("s.img");
    let refused = |path: &Path| live::remove_spare(volume, path).unwrap_err().to_string();
    assert!(refused(&spare).ends_with("s.img is no hot spare: the volume has none"));
    add_spare(volume, &drive, &spare, Contents::Kept).unwrap();
    let other = folder.path().join("t.img");
    let told = refused(&other);
    assert!(told.ends_with(&format!("its hot spares are {}", spare.display())), "{told}");
    let told = refused(&options.dies[1]);
    assert!(told.ends_with("is a die of the volume, and no hot spare"), "{told}");
    live::remove_spare(volume, &spare).unwrap();
    assert!(spare.exists() && hot_spares(volume).is_empty());
    // Another program may use it by now.
    std::fs::write(&spare, "not to be lost").unwrap();
    let drive = Arc::new(drive);
    let maintenance = Maintenance::new(volume, Arc::clone(&drive));
    maintenance.keep_redundant().unwrap();
    drive.fail_die(0).unwrap();
    wait_until(&drive, Drive::is_redundant);
    assert_eq!(drive.lost_dies(), [0]);
    assert_eq!(std::fs::read_to_string(&spare).unwrap(), "not to be lost");
}
