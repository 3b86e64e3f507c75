//! Linux of an emulated machine with two processors uses a volume that it serves to itself over
//! ublk; the server is killed again and again, and started anew.

use std::fs;

use serde_json::Value;

use super::emulator::emulator_is_missing;
use super::linux::{self, Said, listen};
use super::{PATIENCE, Running, kernel, lines_of};
use crate::fio_is_missing;

/// Programs that the guest runs.
const PROGRAMS: [&str; 16] = [
    "floatgate",
    "sh",
    "mount",
    "umount",
    "cat",
    "sleep",
    "dd",
    "cmp",
    "insmod",
    "rmmod",
    "fio",
    "blkdiscard",
    "mkfs.ext4",
    "fsck.ext4",
    "sync",
    "grep",
];

#[test]
fn linux_uses_a_device_of_ublk_and_a_killed_server_loses_nothing() {
    if fio_is_missing() || emulator_is_missing() {
        return;
    }
    let Some(kernel) = kernel() else { return };
    let script = include_bytes!("ublk.sh");
    let files = linux::first_files(&kernel, (&PROGRAMS, &["ublk_drv"]), script);
    let Some(archive) = files else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("initramfs"), archive.finished()).unwrap();
    let devices = ["-smp", "2", "-machine", "q35"];
    let mut guest = Running(linux::machine(folder.path(), &kernel, (&devices, "")));
    let mut kills = 0;
    let mut said = listen(&lines_of(&mut guest.0), PATIENCE, |word| {
        kills += u32::from(word == "killed while writing");
    });
    for text in said.values_mut() {
        // The shell says so of the server.
        *text = text.replace("Killed\n", "");
    }
    assert_eq!(kills, 2, "fio was at it: {said:#?}");
    check_refusals(&said);
    check_device(&said);
    check_recovery(&said);
    for (name, text) in &said {
        assert!(!text.contains("I/O error"), "{name}: {text}");
    }
}

/// Text of a command that succeeded.
fn text<'a>(said: &'a Said, name: &str) -> &'a str {
    let text = said.get(name).unwrap_or_else(|| panic!("no {name}: {said:#?}"));
    text.strip_suffix("guest: exit 0\n").unwrap_or_else(|| panic!("{name}: {text}"))
}

fn check_refusals(said: &Said) {
    let missing = &said["missing"];
    assert!(missing.contains("this kernel has no ublk driver"), "{missing}");
    assert!(missing.contains("modprobe ublk_drv"), "{missing}");
    assert!(missing.ends_with("guest: exit 2\n"), "{missing}");
    let in_use = &said["in use"];
    assert!(in_use.contains("ublkb0 is mounted on /home"), "{in_use}");
    assert!(in_use.ends_with("guest: exit 1\n"), "{in_use}");
}

fn check_device(said: &Said) {
    assert_eq!(text(said, "device"), "/dev/ublkb0\n");
    assert_eq!(text(said, "attached"), "/dev/ublkb0\n");
    let limits = "write_cache write back\n\
                  fua 1\n\
                  logical_block_size 512\n\
                  physical_block_size 4096\n\
                  max_hw_sectors_kb 512\n\
                  discard_granularity 4096\n\
                  discard_max_bytes 2147483648\n\
                  write_zeroes_max_bytes 2147483648\n";
    assert_eq!(text(said, "limits"), limits);
    let ran: Vec<(&str, u64)> = text(said, "threads")
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, ran)| (name, ran.parse().unwrap()))
        .collect();
    assert_eq!(ran.iter().map(|it| it.0).collect::<Vec<_>>(), ["ublk-0-0", "ublk-0-1"]);
    let sum: u64 = ran.iter().map(|it| it.1).sum();
    assert!(ran.iter().all(|it| it.1 > sum / 10), "both queues carry requests: {ran:?}");
    let status: Value = serde_json::from_str(text(said, "status")).unwrap();
    assert_eq!(status["server"]["clients"].as_array().unwrap().len(), 1, "{status}");
    for name in ["both", "zeroes", "discard", "discarded", "filesystem", "mount", "copy"] {
        text(said, name);
    }
    let timing: Value = serde_json::from_str(text(said, "timing")).unwrap();
    let latency = timing["jobs"][0]["read"]["lat_ns"]["mean"].as_f64().unwrap();
    assert!(latency > 3e6, "a disk positions for milliseconds: {latency} ns");
}

fn check_recovery(said: &Said) {
    assert_eq!(said["recovered"], "/dev/ublkb0\nguest: exit 0\n".repeat(2));
    assert_eq!(text(said, "protected"), "1\n");
    assert_eq!(text(said, "anew"), "/dev/ublkb0\n");
    let proofs =
        ["ended", "fsck", "mount again", "again", "same", "removed", "waits", "detached", "gone"];
    for name in proofs {
        text(said, name);
    }
}
