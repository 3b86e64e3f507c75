//! Drives that go on with full redundancy without the dies that have failed.

use blockio::Bytes;
use live::{Contents, CreateOptions, Device as _, Drive, Durability};

use crate::volume_options;

const SIZE_KIB: u64 = 8 << 10;

fn options(folder: &std::path::Path, over_provisioning: f64) -> CreateOptions {
    CreateOptions { over_provisioning, ..volume_options(folder, 5, Bytes::from_kib(SIZE_KIB)) }
}

fn contents(seed: u64) -> Vec<u8> {
    (0..SIZE_KIB << 10).map(|at| (at / 4096 * 31 + at % 251 + seed).to_le_bytes()[0]).collect()
}

fn is_there(drive: &Drive, expected: &[u8]) -> bool {
    let mut found = vec![0; expected.len()];
    drive.read(0, &mut found).expect("nothing is lost");
    found == expected
}

#[test]
fn one_die_after_the_other_fails_as_long_as_there_is_space() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 2.5);
    let drive = Drive::create(&options).unwrap();
    drive.write(0, &contents(1), Durability::Volatile).unwrap();
    let usable = drive.status().format.data_bytes;
    for (die, left) in [(1, 4), (4, 3)] {
        drive.fail_die(die).unwrap();
        assert!(!drive.is_redundant() && drive.fail_die(0).is_err());
        assert_ne!(drive.status().smart.critical_warning, 0);
        assert!(drive.restore_redundancy().unwrap(), "{left} dies have room");
        let status = drive.status();
        assert_eq!(status.smart.critical_warning, 0);
        // Of four data units of a row one is parity's with each die that is gone.
        assert_eq!(status.format.data_bytes, usable / 4 * (left - 1));
        assert!(is_there(&drive, &contents(1)));
    }
    let format = drive.status().format;
    drive.close().unwrap();
    assert_eq!(live::inspect(&options.volume).unwrap().format, format, "closed, too");
    let drive = Drive::open(&options.volume).unwrap();
    assert!(drive.is_redundant());
    drive.write(0, &contents(2), Durability::Volatile).unwrap();
    drive.fail_die(2).unwrap();
    assert!(is_there(&drive, &contents(2)));
    drop(drive);
    assert!(live::check::check(&options.volume, |_, _| ()).unwrap().repairable() == 0);
}

#[test]
fn a_drive_without_spare_space_for_it_stays_without_redundancy_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&options(folder.path(), 0.05)).unwrap();
    drive.write(0, &contents(1), Durability::Volatile).unwrap();
    drive.fail_die(3).unwrap();
    assert!(!drive.restore_redundancy().unwrap());
    assert!(
        drive
            .status()
            .maintenance
            .redundancy
            .unwrap()
            .failure
            .unwrap()
            .contains("too little space")
    );
    assert!(drive.fail_die(0).is_err());
    drive.write(0, &contents(2), Durability::Durable).unwrap();
    assert!(is_there(&drive, &contents(2)));
}

#[test]
fn redundancy_is_given_up_for_what_is_written_later_and_space_never_runs_out() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&options(folder.path(), 0.05)).unwrap();
    let all = contents(1);
    drive.write(0, &all[..2 << 20], Durability::Volatile).unwrap();
    drive.fail_die(3).unwrap();
    assert!(drive.restore_redundancy().unwrap(), "a quarter has room");
    drive.write(0, &all, Durability::Durable).unwrap();
    assert!(!drive.is_redundant());
    assert!(is_there(&drive, &all));
    for round in 2..6 {
        drive.write(0, &contents(round), Durability::Volatile).unwrap();
        assert!(is_there(&drive, &contents(round)));
    }
}

#[test]
fn the_host_goes_on_while_redundancy_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::create(&options(folder.path(), 1.0)).unwrap();
    let mut stored = contents(1);
    drive.write(0, &stored, Durability::Volatile).unwrap();
    drive.fail_die(1).unwrap();
    let pages = (SIZE_KIB / 4) as usize;
    let (is_restored, written) = std::thread::scope(|scope| {
        let restoring = scope.spawn(|| drive.restore_redundancy().unwrap());
        let mut written = Vec::new();
        for round in 0_usize.. {
            let (page, byte) = (round * 7919 % pages, round.to_le_bytes()[0]);
            drive.write(page as u64 * 4096, &[byte; 4096], Durability::Volatile).unwrap();
            written.push((page, byte));
            if restoring.is_finished() && round > 500 {
                break;
            }
        }
        (restoring.join().unwrap(), written)
    });
    for (page, byte) in written {
        stored[page * 4096..(page + 1) * 4096].fill(byte);
    }
    assert!(is_restored && drive.is_redundant());
    drive.fail_die(3).unwrap();
    assert!(is_there(&drive, &stored));
}

#[test]
fn a_die_that_is_replaced_takes_part_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 1.0);
    let drive = Drive::create(&options).unwrap();
    drive.write(0, &contents(1), Durability::Volatile).unwrap();
    drive.fail_die(0).unwrap();
    assert!(drive.restore_redundancy().unwrap());
    let new = folder.path().join("new.img");
    let replacement =
        live::Replacement::prepare(&options.volume, &drive, 0, &new, Contents::Kept).unwrap();
    replacement.carry_out(&drive, |_, _| true).unwrap();
    assert!(drive.is_redundant() && drive.lost_dies().is_empty());
    drive.write(0, &contents(2), Durability::Volatile).unwrap();
    drive.close().unwrap();
    let report = live::check::check(&options.volume, |_, _| ()).unwrap();
    assert_eq!(report.findings, []);
    let drive = Drive::open(&options.volume).unwrap();
    drive.fail_die(2).unwrap();
    assert!(is_there(&drive, &contents(2)));
}

/// Changes a byte in each page of the file of a die, header and journal apart.
fn spoil(die: &std::path::Path) {
    let mut bytes = std::fs::read(die).expect("the die is a file");
    for page in bytes.chunks_mut(4096).skip(512).filter(|page| page.iter().any(|it| *it != 0)) {
        page[100] ^= 0x55;
    }
    std::fs::write(die, bytes).expect("the die takes bytes");
}

#[test]
fn what_a_scrub_has_repaired_survives_the_loss_of_another_die_in_rows_that_are_begun_as_well() {
    for pages in (200..700).step_by(60) {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), 0.3);
        let drive = Drive::create(&options).unwrap();
        let written = &contents(1)[..pages * 4096];
        drive.write(0, written, Durability::Durable).unwrap();
        spoil(&options.dies[1]);
        let scrubbed = drive.scrub(true).unwrap();
        assert!(scrubbed.units_bad > 0 && scrubbed.units_bad == scrubbed.units_restored);
        assert!(scrubbed.lost_lbas.is_empty());
        drive.fail_die(0).unwrap();
        assert!(is_there(&drive, written), "{pages} pages");
    }
}
