//! Recovery of drives that cannot be opened: `floatgate volume recover` serves them read-only to
//! clients.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::served::{Served, assert_done, client, floatgate, is_there, said};

const PAGE_BYTES: usize = 4096;
/// Pages that each version fills.
const PAGES: usize = 16;
/// Versions that are flushed, one after the other.
const VERSIONS: u8 = 8;

/// A served drive of one die to whose first pages these versions were flushed, one after the other.
fn written(versions: u8) -> Served {
    let folder = tempfile::tempdir().expect("a folder is made");
    let made = ["create", "volume", "--dies", "d0.img", "--size", "8MiB", "--protect", "none"];
    assert_done(&floatgate(folder.path(), &made));
    let volume = folder.path().join("volume").display().to_string();
    let served = Served::start_in(folder, &[&volume]);
    let there = served.path("there.img");
    for version in 1..=versions {
        fs::write(&there, vec![version; PAGES * PAGE_BYTES]).expect("the folder takes files");
        client("nbdcopy", &["--flush", path(&there), &served.uri]);
    }
    served
}

/// A drive that opening refuses: its server was killed, and one bit is damaged in both copies of a
/// batch of its journal that later ones follow.
fn refused_drive() -> TempDir {
    let folder = written(VERSIONS).kill();
    damage_batch(&folder.path().join("d0.img"));
    folder
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a folder of a test")
}

/// Flips a bit in both copies of the batch three before the newest one.
fn damage_batch(die: &Path) {
    let mut bytes = fs::read(die).expect("a die is there");
    let number = |at: usize| u64::from_le_bytes(bytes[at + 24..at + 32].try_into().expect("8"));
    let sectors = (0..bytes.len()).step_by(512);
    let batches: Vec<_> = sectors
        .filter(|at| bytes[*at..].starts_with(b"FLGTjrnl"))
        .map(|at| (at, number(at)))
        .collect();
    let newest = batches.iter().map(|(_, number)| *number).max().expect("a journal is there");
    let copies: Vec<usize> =
        batches.iter().filter(|(_, number)| *number + 3 == newest).map(|(at, _)| *at).collect();
    assert_eq!(copies.len(), 2, "a batch has two copies: {batches:?}");
    for at in copies {
        bytes[at + 100] ^= 1;
    }
    fs::write(die, bytes).expect("it takes bytes");
}

/// `floatgate volume recover` of the drive in a folder, at a socket there.
fn recover(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    let address = format!("unix:{}", folder.join("s").display());
    command.args(["recover", path(&folder.join("volume")), "--nbd", &address]);
    command.stdin(Stdio::null());
    command
}

/// Runs `floatgate volume serve` on the drive, and returns its output once it ends.
fn serve(folder: &Path) -> Output {
    let address = format!("unix:{}", folder.join("s").display());
    floatgate(folder, &["serve", "volume", "--nbd", &address])
}

fn recover_by_force(folder: TempDir) -> Served {
    let mut command = recover(folder.path());
    command.arg("--force");
    Served::start_as(folder, command)
}

#[test]
fn a_drive_that_opening_refuses_is_served_for_reading_where_doubts_are_accepted() {
    if !is_there("nbdcopy") || !is_there("nbdinfo") {
        return;
    }
    let folder = refused_drive();
    let die = fs::read(folder.path().join("d0.img")).unwrap();
    let refused = serve(folder.path());
    assert!(!refused.status.success());
    assert!(said(&refused).contains("is lost, though a later one was written"), "{refused:?}");
    // The hint is the command as it is to be typed.
    assert!(said(&refused).contains("`floatgate volume recover volume`"), "{refused:?}");
    let doubtful = recover(folder.path()).output().unwrap();
    assert_eq!(doubtful.status.code(), Some(1));
    for part in ["inconsistency: batch ", "any page may be older", "--force serves the data"] {
        assert!(said(&doubtful).contains(part), "no {part} in\n{}", said(&doubtful));
    }
    let mut served = recover_by_force(folder);
    let back = served.path("back.img");
    client("nbdinfo", &["--is", "read-only", &served.uri]);
    client("nbdcopy", &[&served.uri, path(&back)]);
    let back = fs::read(back).unwrap();
    assert_eq!(back.len(), 8 << 20);
    let (stored, rest) = back.split_at(PAGES * PAGE_BYTES);
    for page in stored.chunks(PAGE_BYTES) {
        // The batch that is damaged is of one of the last versions; what was flushed before is
        // there at least.
        let is_whole = page.iter().all(|byte| *byte == page[0]);
        assert!(is_whole && (VERSIONS - 4..=VERSIONS).contains(&page[0]), "{}", page[0]);
    }
    assert!(rest.iter().all(|byte| *byte == 0), "never written");
    assert!(served.stop().success());
    assert!(fs::read(served.path("d0.img")).unwrap() == die, "a die was written");
}

#[test]
fn writes_to_what_is_served_for_reading_are_refused() {
    if !is_there("qemu-io") || !is_there("nbdcopy") {
        return;
    }
    let mut served = recover_by_force(refused_drive());
    for command in ["write 0 4096", "discard 0 4096", "write -z 0 4096"] {
        let written = Command::new("qemu-io")
            .args(["-f", "raw", "-c", command, &served.uri])
            .output()
            .unwrap();
        let said = said(&written).to_lowercase();
        assert!(!written.status.success(), "{command}: {said}");
        assert!(said.contains("read-only") || said.contains("permi"), "{command}: {said}");
    }
    assert!(served.stop().success());
}

/// Flips a bit of the first page of the first unit that was programmed.
fn damage_page(die: &Path) {
    let mut bytes = fs::read(die).expect("a die is there");
    let is_unit = |at: &usize| bytes[*at..].starts_with(b"FLGT\x01\0\0\0");
    let unit = (0..bytes.len()).step_by(512).find(is_unit).expect("a unit was programmed");
    let is_page = |at: &usize| bytes[*at] != 0 && bytes[*at..][..1000] == [bytes[*at]; 1000];
    let page = (unit..bytes.len() - 1000).find(is_page).expect("it holds a page");
    bytes[page] ^= 1;
    fs::write(die, bytes).expect("it takes bytes");
}

#[test]
fn a_page_that_is_lost_is_an_error_to_clients_and_the_others_are_copied() {
    if !is_there("qemu-img") || !is_there("nbdcopy") {
        return;
    }
    let mut closed = written(1);
    assert!(closed.stop().success());
    let folder = closed.kill();
    damage_page(&folder.path().join("d0.img"));
    // Nothing is doubtful: one page is lost.
    let command = recover(folder.path());
    let mut served = Served::start_as(folder, command);
    let back = served.path("back.img");
    let convert = |more: &[&str]| {
        let args = [&["convert", "-f", "raw", "-O", "raw"], more, &[&served.uri, path(&back)]];
        Command::new("qemu-img").args(args.concat()).output().unwrap()
    };
    let failed = said(&convert(&[]));
    assert!(failed.to_lowercase().contains("input/output error"), "{failed}");
    assert_done(&convert(&["--salvage"]));
    let back = fs::read(&back).unwrap();
    let lost = back[..PAGES * PAGE_BYTES].chunks(PAGE_BYTES).filter(|page| page[0] == 0).count();
    assert_eq!(lost, 1, "qemu-img writes zeroes where it is told EIO");
    assert!(served.stop().success());
}
