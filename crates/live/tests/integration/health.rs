//! Health: what a status makes of dies that fail, pages that are lost, space that runs out, and a
//! drive that was left open.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use blockio::{Bytes, Rng};
use live::inspect;
use live::simulation::Disks;
use live::{Compression, CreateOptions, Device as _, Drive, Durability, Shape, name_drive};
use status::{HealthState, ProblemKind, Status};

use crate::volume_options;

const SIZE_KIB: u64 = 8 << 10;

fn options(folder: &Path, dies: usize) -> CreateOptions {
    volume_options(folder, dies, Bytes::from_kib(SIZE_KIB))
}

fn content() -> Vec<u8> {
    (0..SIZE_KIB << 10).map(|at| (at / 4096 * 31 + at % 251).to_le_bytes()[0]).collect()
}

/// The kinds of its problems, and the status of the drive as clients are told it.
fn judged(drive: &Drive, volume: &Path) -> (Vec<ProblemKind>, Status) {
    let status = live::describe_status(drive.status(), volume);
    (status.health.problems.iter().map(|it| it.kind).collect(), status)
}

#[test]
fn a_failed_die_degrades_a_drive_until_it_is_replaced_and_is_named_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4);
    let drive = Drive::create(&options).unwrap();
    name_drive(&options.volume, "Mail store").unwrap();
    // As little as fits on one die less.
    drive.write(0, &content()[..2 << 20], Durability::Durable).unwrap();
    let (kinds, status) = judged(&drive, &options.volume);
    assert_eq!(
        (kinds, status.health.state, status.name.as_str()),
        (vec![], HealthState::Ok, "Mail store")
    );

    drive.fail_die(2).unwrap();
    let (kinds, status) = judged(&drive, &options.volume);
    assert_eq!((kinds, status.health.state), (vec![ProblemKind::DieFailed], HealthState::Degraded));
    let problem = &status.health.problems[0];
    let path = options.dies[2].display();
    assert!(problem.text.starts_with(&format!("Die 2 ({path}) ")), "{}", problem.text);
    assert!(problem.text.ends_with("another failure loses data."), "{}", problem.text);
    assert!(problem.remedy.contains(" 2 --with PATH`"), "{}", problem.remedy);
    assert_eq!(status.smart.critical_warning, 4, "reliability");

    // What lacked a unit is moved, and redundancy is restored, with one die less.
    assert!(drive.restore_redundancy().unwrap());
    let (kinds, status) = judged(&drive, &options.volume);
    assert_eq!((kinds, status.smart.critical_warning), (vec![ProblemKind::DieFailed], 0));
    let text = &status.health.problems[0].text;
    assert!(text.ends_with("the volume tolerates 1 more failure."), "{text}");
    drive.close().unwrap();
    fs::remove_file(&options.dies[2]).unwrap();
    let closed = inspect(&options.volume).unwrap();
    assert_eq!(closed.health.state, HealthState::Degraded, "{:?}", closed.health);
    let text = &closed.health.problems[0].text;
    assert!(text.starts_with(&format!("Die 2 is missing: nothing is at {path}; ")), "{text}");
}

#[test]
fn pages_that_a_scrub_finds_lost_make_a_drive_critical() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 1);
    let drive = Drive::create(&options).unwrap();
    drive.write(0, &content(), Durability::Durable).unwrap();
    drive.close().unwrap();
    let mut bytes = fs::read(&options.dies[0]).unwrap();
    let page = &content()[4096 * 100..4096 * 100 + 64];
    let at = bytes.windows(64).position(|part| part == page).expect("it is stored as it is");
    bytes[at + 9] ^= 1;
    fs::write(&options.dies[0], bytes).unwrap();

    let drive = Drive::open(&options.volume).unwrap();
    drive.scrub(true).unwrap();
    let (kinds, status) = judged(&drive, &options.volume);
    assert_eq!((kinds[0], status.health.state), (ProblemKind::PagesLost, HealthState::Critical));
    assert_eq!((status.pages_lost, status.smart.media_errors), (Some(1), Some(1)));
    let text = &status.health.problems[0].text;
    assert!(text.starts_with("1 page of 4 KiB cannot be read back"), "{text}");
    let lba = status.lost_lbas[0];
    assert!(text.contains(&format!("sector {lba})")), "{text}");
    assert_eq!(status.smart.critical_warning & 4, 4);
    drive.read(lba * 512, &mut [0; 4096]).unwrap_err();
}

#[test]
fn a_thin_drive_without_physical_space_is_critical_and_an_empty_one_is_ok() {
    let folder = tempfile::tempdir().unwrap();
    let physical = Some(Bytes::from_kib(2 << 10));
    let options = CreateOptions { physical, ..options(folder.path(), 1) };
    let drive = Drive::create(&options).unwrap();
    assert_eq!(judged(&drive, &options.volume).1.health.state, HealthState::Ok);
    let full = content();
    let most = full.chunks(4096).enumerate().take_while(|(page, chunk)| {
        drive.write(*page as u64 * 4096, chunk, Durability::Volatile).is_ok()
    });
    assert!(most.count() > 400);
    let (kinds, status) = judged(&drive, &options.volume);
    assert_eq!((kinds, status.health.state), (vec![ProblemKind::Space], HealthState::Critical));
}

#[test]
fn a_drive_that_was_not_closed_is_not_told_to_be_well() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4);
    drop(Drive::create(&options).unwrap());
    let status = inspect(&options.volume).unwrap();
    assert_eq!(status.health.state, HealthState::Degraded);
    assert_eq!(status.health.problems[0].kind, ProblemKind::NotClosed);
}

/// A drive over disks of a simulation, with pages on each of them.
fn over_disks(dies: u32, is_protected: bool) -> (Disks, Drive) {
    let shape = Shape {
        pages_logical: 100,
        pages_stored_max: 100,
        pages_mappable: 100,
        dies,
        is_protected,
        unit_pages: 4,
        rows: 4,
        superblocks: 24,
        extents_per_page: 1,
        compression: Compression::None,
        journal_bytes: 1 << 20,
    };
    let bytes = shape.die_bytes().0.try_into().expect("a small drive");
    let disks = Disks::new(dies as usize, bytes, Rng::new(0));
    live::format(disks.media(), &shape, 1).expect("they are large enough");
    let drive = Drive::open_media(disks.media()).expect("it opens");
    for page in 0..100 {
        drive.write(page * 4096, &[7; 4096], Durability::Volatile).expect("there is room");
    }
    drive.flush().expect("nothing fails");
    (disks, drive)
}

fn failed_reads(drive: &Drive) -> usize {
    (0..100).filter(|page| drive.read(page * 4096, &mut [0; 4096]).is_err()).count()
}

#[test]
fn reads_that_fail_make_a_drive_critical_until_they_succeed_again() {
    for (dies, is_protected) in [(1, false), (3, false), (3, true)] {
        let (disks, drive) = over_disks(dies, is_protected);
        if is_protected {
            drive.fail_die(2).unwrap();
        }
        disks.fail_reads(1);
        assert!(failed_reads(&drive) > 0);
        let status = drive.status();
        let problem = &status.health.problems[0];
        let found = (problem.kind, problem.die, status.health.state);
        assert_eq!(found, (ProblemKind::ReadsFail, Some(0), HealthState::Critical));
        assert_eq!(status.smart.critical_warning & 4, 4, "reliability");
        assert_eq!(status.pages_lost, Some(0), "nothing counts as lost in an outage");
        // Nothing that needs parity which is not there.
        assert!(!problem.remedy.contains("replace-die"), "{}", problem.remedy);
        assert!(!problem.remedy.contains("scrub"), "{}", problem.remedy);
        drive.attend().unwrap();
        assert_eq!(drive.status().health.state, HealthState::Critical, "it is not over");
        disks.fail_reads(0);
        drive.attend().unwrap();
        assert!(drive.status().health.state < HealthState::Critical);
        assert_eq!(failed_reads(&drive), 0);
    }
}

#[test]
fn a_scrub_that_failed_for_a_die_is_no_problem_once_that_die_was_replaced() {
    let (disks, drive) = over_disks(3, true);
    disks.fail_reads(0b11);
    assert!(drive.scrub(true).is_err());
    disks.fail_reads(0);
    drive.attend().unwrap();
    let kinds = |drive: &Drive| -> Vec<ProblemKind> {
        drive.status().health.problems.iter().map(|it| it.kind).collect()
    };
    assert!(kinds(&drive).contains(&ProblemKind::Scrub), "{:?}", drive.status().health);
    drive.fail_die(1).unwrap();
    drive.replace_die(1, disks.replace(1)).unwrap();
    assert!(!kinds(&drive).contains(&ProblemKind::Scrub), "{:?}", drive.status().health);
}

/// Its reads fail, and then it is gone: what it answers no more keeps no client from reading.
#[test]
fn a_die_that_took_the_place_of_one_that_did_not_respond_is_not_taken_for_that() {
    let (disks, drive) = over_disks(3, true);
    disks.fail_reads(0b11);
    assert!(failed_reads(&drive) > 0);
    assert_eq!(drive.status().health.state, HealthState::Critical);
    disks.fail_reads(0b01);
    drive.fail_die(0).unwrap();
    disks.fail_reads(0);
    drive.replace_die(0, disks.replace(0)).unwrap();
    let health = drive.status().health;
    assert!(health.state < HealthState::Critical, "{health:?}");
}

#[test]
fn a_die_that_failed_reads_and_cannot_be_replaced_is_not_told_to_be() {
    let (disks, drive) = over_disks(1, false);
    disks.fail_some_reads(1, 1);
    failed_reads(&drive);
    let problem = &drive.status().health.problems[0];
    assert_eq!(problem.kind, ProblemKind::DieErrors);
    assert!(problem.remedy.contains("without parity no die can be replaced"), "{}", problem.remedy);
}

#[test]
fn a_die_with_more_damage_in_an_hour_than_allowed_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4);
    let drive = Drive::create(&options).unwrap();
    let pages: Vec<u8> = content();
    drive.write(0, &pages, Durability::Durable).unwrap();
    drive.close().unwrap();
    let mut bytes = fs::read(&options.dies[1]).unwrap();
    let mut hit = BTreeSet::new();
    for page in pages.chunks(4096).take(200) {
        // The last place: a copy in the journal lies before it.
        let at = bytes.windows(64).rposition(|found| found == &page[..64]);
        hit.extend(at.filter(|_| hit.len() < 5));
    }
    for at in &hit {
        bytes[*at + 9] ^= 1;
    }
    fs::write(&options.dies[1], bytes).unwrap();

    let drive = Drive::open(&options.volume).unwrap();
    let mut found = vec![0; pages.len()];
    drive.read(0, &mut found).unwrap();
    assert!(found == pages, "parity gives everything back");
    let (kinds, status) = judged(&drive, &options.volume);
    assert_eq!((kinds, status.health.state), (vec![ProblemKind::DieErrors], HealthState::Degraded));
    let places = status.dies[1].damaged_places;
    assert!(places > 1 && status.dies[1].reconstructed_reads == places, "{places}");
    assert_eq!(status.smart.xor_recovery_count, Some(places));
    drive.attend().unwrap();
    let (kinds, status) = judged(&drive, &options.volume);
    assert_eq!(kinds, [], "it was written again: {:?}", status.health);
    assert!(status.maintenance.units_mended > 0 && status.dies[1].damaged_places == places);
    drive.limit_damage(places - 1);
    let (kinds, status) = judged(&drive, &options.volume);
    assert_eq!(kinds, [ProblemKind::DieErrors], "{:?}", status.health);
    let told = format!("{places} damaged places in the last hour");
    assert!(status.health.problems[0].text.contains(&told), "{:?}", status.health);
    // Nothing of what was damaged is missing without another die.
    drive.close().unwrap();
    fs::remove_file(&options.dies[2]).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    drive.read(0, &mut found).unwrap();
    assert!(found == pages);
}
