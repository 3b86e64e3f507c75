//! Health: what a status makes of dies that fail, pages that are lost, space that runs out, and a
//! drive that was left open.

use std::fs;
use std::path::Path;

use blockio::Bytes;
use live::inspect;
use live::status::{HealthState, ProblemKind, Status};
use live::{Compression, CreateOptions, Device as _, Drive, Durability, name_drive};

const SIZE_KIB: u64 = 8 << 10;

fn options(folder: &Path, dies: usize) -> CreateOptions {
    CreateOptions {
        volume: folder.join("volume"),
        dies: (0..dies).map(|die| folder.join(format!("d{die}.img"))).collect(),
        size: Bytes::from_kib(SIZE_KIB),
        is_protected: dies > 1,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    }
}

fn content() -> Vec<u8> {
    (0..SIZE_KIB << 10).map(|at| (at / 4096 * 31 + at % 251).to_le_bytes()[0]).collect()
}

/// The kinds of its problems, and the status of the drive as whoever asks is told it.
fn judged(drive: &Drive, volume: &Path) -> (Vec<ProblemKind>, Status) {
    let status = drive.status().described(volume);
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
fn a_drive_that_nobody_closed_is_not_told_to_be_well() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 4);
    drop(Drive::create(&options).unwrap());
    let status = inspect(&options.volume).unwrap();
    assert_eq!(status.health.state, HealthState::Degraded);
    assert_eq!(status.health.problems[0].kind, ProblemKind::NotClosed);
}
