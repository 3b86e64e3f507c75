//! Things in the way when dies are made, and creations and purges that are interrupted.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use live::{
    Contents, CreateOptions, Device as _, Drive, Durability, UserCapacity, VolumeOptions,
    add_spare, check, create, create_while, inspect, purge_volume, reformat_volume,
};
use status::{HealthState, ProblemKind};

use crate::volume_options;

fn options(folder: &Path, dies: &[PathBuf]) -> CreateOptions {
    CreateOptions {
        dies: dies.to_vec(),
        over_provisioning: 0.5,
        ..volume_options(folder, dies.len(), Bytes(4 << 20))
    }
}

fn refusal(folder: &Path, dies: &[PathBuf]) -> String {
    let entries = || fs::read_dir(folder).expect("a temporary folder").count();
    let before = entries();
    let refused = create(&options(folder, dies), &VolumeOptions::default());
    assert_eq!(entries(), before, "nothing is left behind");
    refused.expect_err("something is in the way").to_string()
}

#[test]
fn a_file_that_is_given_for_two_dies_is_named_whatever_the_paths() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    for (one, other) in [("d.img", "d.img"), ("d.img", "sub/../d.img")] {
        let refused = refusal(folder.path(), &[at(one), at(other)]);
        let expected = format!("{} and {} are one", at(one).display(), at(other).display());
        assert!(refused.starts_with(&expected), "{refused}");
    }
}

#[test]
fn whatever_is_in_the_way_of_a_die_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (sub, file) = (folder.path().join("sub"), folder.path().join("file"));
    fs::create_dir(&sub).unwrap();
    fs::write(&file, "somebody's").unwrap();
    let made = tempfile::tempdir().unwrap();
    let die = made.path().join("d.img");
    let holding = options(made.path(), std::slice::from_ref(&die));
    create(&holding, &VolumeOptions::default()).unwrap();
    for (path, expected) in [
        (sub, "sub is a folder: give a new file or a block device"),
        (PathBuf::from("/dev/null"), "/dev/null is neither a file nor a block device"),
        (file, "file exists already: give the path of a new file; if it was left over by a"),
        (die, "d.img exists already and is die 0 of volume "),
    ] {
        let refused = refusal(folder.path(), &[path]);
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn a_creation_that_is_interrupted_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dies: Vec<_> = (0..3).map(|die| folder.path().join(format!("d{die}.img"))).collect();
    let hot_spares = vec![folder.path().join("s.img")];
    let options = options(&folder.path().join("deep/er"), &dies);
    let volume_options = VolumeOptions { hot_spares, ..VolumeOptions::default() };
    let asked = Cell::new(0);
    for least in 0.. {
        asked.set(0);
        let go_on = || asked.replace(asked.get() + 1) < least;
        let Err(stopped) = create_while(&options, &volume_options, &go_on) else { break };
        assert!(stopped.to_string().contains("interrupted"), "{stopped}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "stopped at {least}");
    }
    assert!(asked.get() > 5, "before each die and spare, and at the end");
    Drive::open(&options.volume).unwrap().close().unwrap();
}

#[test]
fn a_purge_or_format_that_was_interrupted_is_told_until_one_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let dies: Vec<_> = (0..3).map(|die| folder.path().join(format!("d{die}.img"))).collect();
    let options = options(folder.path(), &dies);
    let volume = &options.volume;
    let drive = Drive::create(&options).unwrap();
    add_spare(volume, &drive, &folder.path().join("s.img"), Contents::Kept).unwrap();
    let problem = || {
        let health = inspect(volume).unwrap().health;
        let kind = ProblemKind::PurgeUnfinished;
        health.problems.into_iter().find(|problem| problem.kind == kind)
    };
    let findings = || check::check(volume, |_, _| ()).unwrap().findings;
    drive.write(0, &vec![7; 1 << 20], Durability::Durable).unwrap();
    drive.close().unwrap();
    assert!(problem().is_none());
    for is_format in [false, true] {
        let drive = Drive::open(volume).unwrap();
        let erase = |drive: &Drive, goes_on: bool| -> bool {
            if is_format {
                reformat_volume(volume, drive, UserCapacity::Stock, |_, _| goes_on).is_ok()
            } else {
                purge_volume(volume, drive, |_, _| goes_on).is_ok()
            }
        };
        // Work that the caller stopped is no error.
        let _ = erase(&drive, false);
        let health = live::describe_status(drive.status(), volume).health;
        assert_eq!(health.state, HealthState::Critical, "also while it is served");
        drive.close().unwrap();
        let told = problem().expect("it has not ended");
        let id = inspect(volume).unwrap().drive;
        assert!(told.remedy.ends_with(&format!("--destroy {id}`.")), "{told:?}");
        let found = findings();
        assert!(found.iter().any(|it| it.remedy == check::Remedy::Purge), "{found:?}");
        let drive = Drive::open(volume).unwrap();
        assert!(erase(&drive, true));
        drive.close().unwrap();
        assert!(problem().is_none() && findings().is_empty());
    }
}
