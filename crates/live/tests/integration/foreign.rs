//! Media that are not what they should be: of another drive, or an earlier image of a die.

use std::fs;
use std::path::Path;

use blockio::Bytes;
use live::{
    Contents, CreateOptions, Device as _, Drive, Durability, OpenError, Replacement, inspect,
};

use crate::volume_options;

const DIES: usize = 4;
const SIZE: u64 = 8 << 20;

fn create(folder: &Path) -> CreateOptions {
    fs::create_dir_all(folder).expect("a temporary folder");
    let options = volume_options(folder, DIES, Bytes(SIZE));
    drop(Drive::create(&options).expect("there is space"));
    options
}

fn write(options: &CreateOptions, byte: u8) {
    let drive = Drive::open(&options.volume).expect("all dies are there");
    for offset in (0..SIZE).step_by(1 << 20) {
        drive.write(offset, &vec![byte; 1 << 20], Durability::Volatile).expect("it fits");
    }
    drive.close().expect("it is sound");
}

fn holds(drive: &Drive, byte: u8) -> bool {
    let mut found = vec![0; usize::try_from(SIZE).expect("8 MiB")];
    drive.read(0, &mut found).expect("nothing is lost");
    found.iter().all(|it| *it == byte)
}

#[test]
fn a_die_of_another_drive_is_left_aside_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let own = create(&folder.path().join("own"));
    let other = create(&folder.path().join("other"));
    write(&own, 7);
    fs::copy(&other.dies[1], &own.dies[1]).unwrap();
    let foreign = fs::read(&own.dies[1]).unwrap();
    let [id, other_id] = [&own, &other].map(|it| inspect(&it.volume).unwrap().drive);
    let expected = format!("{} is die 1 of volume {other_id}, not of {id}", own.dies[1].display());
    let report = live::check::check(&own.volume, |_, _| ()).unwrap();
    assert_eq!(report.findings[0].text, format!("die 1 is missing: {expected}"));
    let drive = Drive::open(&own.volume).unwrap();
    assert!(holds(&drive, 7) && !drive.is_redundant());
    let unused: Vec<&str> = drive.unused_media().collect();
    assert_eq!(unused, [&expected]);
    let health = live::describe_status(drive.status(), &own.volume).health;
    let [problem] = health.problems.as_slice() else { panic!("{health:?}") };
    assert!(problem.text.starts_with(&format!("Die 1 is missing: {expected}; ")), "{problem:?}");
    let refused = Replacement::prepare(&own.volume, &drive, 1, &own.dies[1], Contents::Kept);
    assert!(refused.unwrap_err().to_string().contains("--destroy"));
    drive.close().unwrap();
    assert!(fs::read(&own.dies[1]).unwrap() == foreign, "not a byte of it was changed");
}

#[test]
fn paths_that_all_lead_to_another_volume_are_refused_with_both_ids() {
    let folder = tempfile::tempdir().unwrap();
    let own = create(&folder.path().join("own"));
    let other = create(&folder.path().join("other"));
    write(&own, 1);
    write(&other, 1);
    let [id, other_id] = [&own, &other].map(|it| inspect(&it.volume).unwrap().drive);
    fs::rename(folder.path().join("own"), folder.path().join("away")).unwrap();
    fs::create_dir(folder.path().join("own")).unwrap();
    fs::rename(folder.path().join("away/volume"), &own.volume).unwrap();
    for (own, other) in own.dies.iter().zip(&other.dies) {
        fs::rename(other, own).unwrap();
    }
    let before = fs::read(&own.dies[0]).unwrap();
    let refusals = [
        Drive::open(&own.volume).map(drop).unwrap_err(),
        inspect(&own.volume).map(drop).unwrap_err(),
        live::RecoveredVolume::open(&own.volume, None, None).map(drop).unwrap_err(),
    ];
    for refused in refusals {
        let text = refused.to_string();
        assert!(text.contains(&id) && text.contains(&other_id), "{text}");
        assert!(refused.remedy(&own.volume).starts_with("correct `dies` in"), "{refused}");
    }
    assert!(fs::read(&own.dies[0]).unwrap() == before);
}

#[test]
fn a_folder_that_does_not_say_its_volume_id_says_it_once_it_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    let file = options.volume.join("volume.toml");
    let line = format!("id = \"{}\"\n", inspect(&options.volume).unwrap().drive);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(&line, "")).unwrap();
    assert!(text.contains(&line) && !fs::read_to_string(&file).unwrap().contains("id ="));
    write(&options, 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_list_with_a_die_too_many_is_refused_and_the_path_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    let file = options.volume.join("volume.toml");
    let text = fs::read_to_string(&file).unwrap();
    let surplus = folder.path().join("surplus.img");
    let listed = text.replace("dies = [", &format!("dies = [\"{}\", ", surplus.display()));
    fs::write(&file, listed).unwrap();
    fs::write(&surplus, vec![0; 1 << 20]).unwrap();
    for there in [true, false] {
        if !there {
            fs::remove_file(&surplus).unwrap();
        }
        let refused = Drive::open(&options.volume).unwrap_err().to_string();
        let expected =
            format!("it lists 5 dies, and the volume has 4: {} is none of them", surplus.display());
        assert!(refused.contains(&expected), "{refused}");
        assert_eq!(inspect(&options.volume).unwrap_err().to_string(), refused);
    }
}

#[test]
fn an_interrupted_rebuild_is_named_with_the_command_that_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    write(&options, 3);
    let drive = Drive::open(&options.volume).unwrap();
    drive.fail_die(2).unwrap();
    let new = folder.path().join("new.img");
    let prepare = |drive: &Drive| {
        Replacement::prepare(&options.volume, drive, 2, &new, Contents::Kept).unwrap()
    };
    prepare(&drive).carry_out(&drive, |done, _| done < 2).unwrap_err();
    // As where the power goes.
    drop(drive);
    let assert_named = |status: status::Status| {
        let problems = status.health.problems;
        let die = problems.iter().find(|it| it.die == Some(2)).expect("it is one");
        let (text, shown) = (&die.text, new.display());
        assert!(text.contains(&format!("the rebuild onto {shown} was interrupted")), "{text}");
        assert!(die.remedy.contains(&format!(" 2 --with {shown}`")), "{}", die.remedy);
    };
    assert_named(inspect(&options.volume).unwrap());
    let drive = Drive::open(&options.volume).unwrap();
    assert_named(live::describe_status(drive.status(), &options.volume));
    prepare(&drive).carry_out(&drive, |_, _| true).unwrap();
    assert!(holds(&drive, 3));
    let health = live::describe_status(drive.status(), &options.volume).health;
    assert_eq!(health.problems, []);
    let text = fs::read_to_string(options.volume.join("volume.toml")).unwrap();
    assert!(!text.contains("rebuilding"), "{text}");
}

/// A path that is wrong is corrected before anything else.
#[test]
fn a_die_that_is_not_found_is_first_to_be_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    write(&options, 3);
    fs::rename(&options.dies[1], folder.path().join("aside")).unwrap();
    let closed = inspect(&options.volume).unwrap();
    let problem = &closed.health.problems[0];
    let expected = format!("Die 1 is missing: nothing is at {}; ", options.dies[1].display());
    assert!(problem.text.starts_with(&expected), "{}", problem.text);
    assert!(problem.remedy.starts_with("Correct its path in "), "{}", problem.remedy);
    assert!(problem.remedy.contains("or mount its file system, before serving"));
    let report = live::check::check(&options.volume, |_, _| ()).unwrap();
    assert!(report.findings[0].text.contains("or mount its file system"), "{report:?}");
    let drive = Drive::open(&options.volume).unwrap();
    let unused: Vec<&str> = drive.unused_media().collect();
    assert_eq!(unused, [format!("nothing is at {}", options.dies[1].display())]);
    drive.close().unwrap();
    // The volume went on without it.
    fs::rename(folder.path().join("aside"), &options.dies[1]).unwrap();
    let problem = &inspect(&options.volume).unwrap().health.problems[0];
    assert!(problem.text.contains("holds an earlier state"), "{}", problem.text);
    assert!(problem.remedy.starts_with("Rebuild it: "), "{}", problem.remedy);
}

#[test]
fn one_die_rolled_back_is_left_aside_and_two_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    write(&options, 1);
    let earlier = [0, 1].map(|die: usize| fs::read(&options.dies[die]).unwrap());
    write(&options, 2);
    fs::write(&options.dies[0], &earlier[0]).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert!(holds(&drive, 2));
    let unused: Vec<&str> = drive.unused_media().collect();
    let [unused] = unused[..] else { panic!("{unused:?}") };
    assert!(unused.contains("d0.img") && unused.contains("holds an earlier state"), "{unused}");
    drop(drive);
    fs::write(&options.dies[1], &earlier[1]).unwrap();
    let refused = Drive::open(&options.volume).unwrap_err();
    assert!(matches!(refused, OpenError::DiesMissing { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("d1.img") && text.contains("earlier state"), "{text}");
}

#[test]
fn dies_that_are_not_found_are_named_where_too_many_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    write(&options, 1);
    options.dies[1..3].iter().for_each(|die| fs::remove_file(die).unwrap());
    let text = Drive::open(&options.volume).unwrap_err().to_string();
    let named =
        |die: usize| text.contains(&format!("nothing is at {}", options.dies[die].display()));
    assert_eq!([0, 1, 2, 3].map(named), [false, true, true, false], "{text}");
}

#[test]
fn dies_in_another_order_and_a_copy_of_one_are_sorted_out() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    write(&options, 5);
    let swapped = folder.path().join("swapped.img");
    fs::rename(&options.dies[0], &swapped).unwrap();
    fs::rename(&options.dies[2], &options.dies[0]).unwrap();
    fs::rename(&swapped, &options.dies[2]).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert!(holds(&drive, 5) && drive.is_redundant());
    drive.close().unwrap();
    fs::copy(&options.dies[1], &options.dies[3]).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert!(holds(&drive, 5));
    let unused: Vec<&str> = drive.unused_media().collect();
    let [unused] = unused[..] else { panic!("{unused:?}") };
    assert!(unused.contains("is another copy of die 1"), "{unused}");
}

/// Two files changed places, and everything names dies by their place in the list: above all what
/// replaces one.
#[test]
fn a_die_that_changed_places_is_named_and_replaced_where_it_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    write(&options, 5);
    let aside = folder.path().join("aside.img");
    fs::rename(&options.dies[0], &aside).unwrap();
    fs::rename(&options.dies[2], &options.dies[0]).unwrap();
    fs::rename(&aside, &options.dies[2]).unwrap();
    // What is called d0 is die 2, and it is gone at the next opening.
    fs::rename(&options.dies[0], &aside).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert_eq!(drive.lost_dies(), [2]);
    let status = live::describe_status(drive.status(), &options.volume);
    let paths: Vec<String> = status.dies.iter().map(|die| die.path.clone().unwrap()).collect();
    let names: Vec<&str> = paths.iter().map(|it| it.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["d2.img", "d1.img", "d0.img", "d3.img"]);
    let new = folder.path().join("new.img");
    let replacement =
        Replacement::prepare(&options.volume, &drive, 2, &new, Contents::Kept).unwrap();
    replacement.carry_out(&drive, |_, _| true).unwrap();
    for offset in (0..SIZE).step_by(1 << 20) {
        drive.write(offset, &vec![6; 1 << 20], Durability::Volatile).unwrap();
    }
    drive.close().unwrap();
    // The old one is back, and the new one is gone: what was written since is on the other three.
    fs::rename(&aside, &options.dies[0]).unwrap();
    fs::remove_file(&new).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert_eq!(drive.lost_dies(), [2]);
    assert!(holds(&drive, 6));
}

/// A die that is there and cannot be written is as good as missing, whatever the reason.
#[test]
fn a_volume_opens_without_the_one_die_that_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(&folder.path().join("own"));
    write(&options, 5);
    let aside = folder.path().join("aside.img");
    fs::rename(&options.dies[1], &aside).unwrap();
    let refusals: [fn(&Path); 3] = [
        |path| fs::create_dir(path).unwrap(),
        |path| std::os::unix::fs::symlink(path, path).unwrap(),
        |path| {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let (folder, fifo) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
            rustix::fs::mknodat(folder, path, fifo, mode, 0).unwrap();
        },
    ];
    for refusal in refusals {
        refusal(&options.dies[1]);
        let drive = Drive::open(&options.volume).unwrap();
        assert_eq!(drive.lost_dies(), [1]);
        assert!(holds(&drive, 5));
        drop(drive);
        inspect(&options.volume).unwrap();
        if options.dies[1].symlink_metadata().unwrap().is_dir() {
            fs::remove_dir(&options.dies[1]).unwrap();
        } else {
            fs::remove_file(&options.dies[1]).unwrap();
        }
    }
    // Too many of them are told by the first one's reason.
    for die in [1, 2] {
        let _ = fs::remove_file(&options.dies[die]);
        fs::create_dir(&options.dies[die]).unwrap();
    }
    let refused = Drive::open(&options.volume).unwrap_err().to_string();
    assert!(refused.contains("d1.img") && refused.contains("neither a file"), "{refused}");
}

#[test]
fn a_path_that_is_not_utf_8_is_refused_and_leaves_nothing() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let dies = vec![folder.path().join(std::ffi::OsStr::from_bytes(b"d\xff"))];
    let options = CreateOptions { dies, ..volume_options(folder.path(), 1, Bytes(SIZE)) };
    let refused = Drive::create(&options).unwrap_err().to_string();
    assert!(refused.contains("UTF-8"), "{refused}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
