//! Findings of a check on a drive that no process has open, and their repair.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use blockio::Bytes;
use live::check::{Kind, Remedy, Report, check, repair};
use live::{CreateOptions, Device as _, Drive, Durability};
use status::State;

use crate::volume_options;

/// Bytes that were written to each drive here, from the beginning.
const STORED: usize = 3 << 20;

fn create(folder: &Path, dies: usize, is_protected: bool) -> CreateOptions {
    let options =
        CreateOptions { is_protected, ..volume_options(folder, dies, Bytes::from_kib(4 << 10)) };
    let drive = Drive::create(&options).expect("there is room");
    drive.write(0, &contents(), Durability::Volatile).expect("a new drive takes it");
    drive.close().expect("nothing fails");
    options
}

fn contents() -> Vec<u8> {
    (0..STORED).map(|at| (at / 4096 * 7 + at % 251).to_le_bytes()[0]).collect()
}

fn checked(options: &CreateOptions) -> Report {
    check(&options.volume, |_, _| ()).expect("it can be opened")
}

/// Spoils the part of a die where its units are: the latter half.
fn spoil(die: &Path) {
    let file = std::fs::OpenOptions::new().write(true).open(die).expect("a die is there");
    let size = file.metadata().expect("it is open").len();
    let half = usize::try_from(size / 2).expect("a small die");
    file.write_all_at(&vec![0xaa; half], size / 2).expect("it takes bytes");
}

fn read(options: &CreateOptions) -> Vec<u8> {
    let drive = Drive::open(&options.volume).expect("it is whole enough");
    let mut found = vec![0; STORED];
    drive.read(0, &mut found).expect("every page is there");
    drive.close().expect("nothing fails");
    found
}

#[test]
fn a_drive_that_was_closed_is_clean_and_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path(), 4, true);
    let dies = || options.dies.iter().map(|die| std::fs::read(die).unwrap()).collect::<Vec<_>>();
    let before = dies();
    let report = checked(&options);
    assert_eq!(report.findings, []);
    assert_eq!((report.state, report.pages), (State::Closed, STORED as u64 / 4096));
    assert_eq!(report.units, report.rows * 4);
    assert!(dies() == before);
}

#[test]
fn what_rots_on_one_die_is_found_and_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path(), 4, true);
    spoil(&options.dies[1]);
    let report = checked(&options);
    assert!(!report.is_clean() && report.repairable() == report.findings.len(), "{report:?}");
    assert!(report.findings.iter().all(|it| it.die == Some(1)));
    assert!(report.findings.iter().any(|it| it.row.is_some()));
    assert!(report.findings.is_sorted());
    repair(&options.volume, None, |_, _| ()).unwrap();
    assert_eq!(checked(&options).findings, []);
    assert!(read(&options) == contents());
}

#[test]
fn what_rots_without_parity_is_named_by_its_sectors() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path(), 2, false);
    spoil(&options.dies[0]);
    let report = checked(&options);
    let lost: Vec<u64> = report.findings.iter().filter_map(|finding| finding.lba).collect();
    assert!(!lost.is_empty(), "{report:?}");
    // What can be read in spoiled units is moved; nothing gives the rest back.
    repair(&options.volume, None, |_, _| ()).unwrap();
    let report = checked(&options);
    assert_eq!(report.repairable(), 0, "{report:?}");
    assert_eq!(report.findings.iter().filter_map(|it| it.lba).collect::<Vec<_>>(), lost);
    let drive = Drive::open(&options.volume).unwrap();
    for page in 0..STORED as u64 / 4096 {
        let is_lost = lost.contains(&(page * 8));
        assert_eq!(drive.read(page * 4096, &mut [0; 4096]).is_err(), is_lost, "page {page}");
    }
}

#[test]
fn headers_checkpoints_and_journals_are_checked_copy_by_copy() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path(), 3, true);
    let spoil = |die: usize, from: u64, length: usize| {
        let file = std::fs::OpenOptions::new().write(true).open(&options.dies[die]).unwrap();
        file.write_all_at(&vec![0xaa; length], from).unwrap();
    };
    spoil(2, 4096, 100);
    // The whole of the first die's journal, and both of its checkpoints.
    let size = std::fs::metadata(&options.dies[0]).unwrap().len();
    let units = checked(&options).rows;
    assert!(units > 0);
    spoil(0, 8192, (size / 8) as usize);
    let report = checked(&options);
    let kinds: Vec<Kind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&Kind::Header) && kinds.contains(&Kind::Journal), "{report:?}");
    assert!(report.findings.iter().all(|finding| finding.remedy == Remedy::Repair));
    repair(&options.volume, None, |_, _| ()).unwrap();
    assert_eq!(checked(&options).findings, []);
    assert!(read(&options) == contents());
}

#[test]
fn a_drive_that_was_not_closed_is_looked_at_as_opening_would_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path(), 4, true);
    let drive = Drive::open(&options.volume).unwrap();
    drive.write(STORED as u64, &[9; 4096], Durability::Durable).unwrap();
    drop(drive);
    let report = checked(&options);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.state, report.pages), (State::Unclosed, STORED as u64 / 4096 + 1));
}

#[test]
fn a_missing_die_has_to_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path(), 4, true);
    std::fs::remove_file(&options.dies[3]).unwrap();
    let report = checked(&options);
    let finding = &report.findings[0];
    assert_eq!((finding.kind, finding.die), (Kind::Die, Some(3)));
    assert_eq!((finding.remedy, report.findings.len()), (Remedy::Replace, 1));
}
