//! Programs that people lock drives with, on a served volume as the NVMe drive on PCI Express of an
//! emulated machine: sedutil, nvme-cli by the kernel's requests, and cryptsetup, each of a newer
//! Debian. `cargo xtask test` unpacks them below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::emulator::emulator_is_missing;
use super::linux::{self, Said, listen, serve};
use super::{Archive, PATIENCE, Running, kernel, lines_of, vfio_user};
use crate::skip;

/// Programs of this machine that the guest runs.
const PROGRAMS: [&str; 11] =
    ["sh", "mount", "cat", "sleep", "dd", "cmp", "dmesg", "insmod", "blkdiscard", "mkdir", "ls"];
/// Programs of the newer Debian.
const HOSTS: [&str; 3] = ["sedutil-cli", "nvme", "cryptsetup"];
/// The kernel's mapper of devices, with which cryptsetup opens a volume.
const MODULES: [&str; 1] = ["dm-mod"];
/// Commands that have to fail: those on a locked range, and those with a password that is none.
const REFUSED: [&str; 9] = [
    "wrong",
    "locked: read",
    "locked: write",
    "locked: discard",
    "read only: write",
    "old password",
    "erased: locked",
    "kernel: locked",
    "LUKS: locked",
];

/// The folder of the unpacked programs.
fn hosts() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guest-opal");
    if folder.join("usr/sbin/sedutil-cli").exists() {
        return Some(folder);
    }
    skip("there are no programs for Opal: `cargo xtask test` unpacks them");
    None
}

/// The archive that the guest starts from; none if something is missing.
fn first_files(kernel: &Path, hosts: &Path, psid: &str) -> Option<Vec<u8>> {
    let script = include_bytes!("opal.sh");
    let mut archive: Archive = linux::first_files(kernel, (&PROGRAMS, &MODULES), script)?;
    for name in HOSTS {
        assert!(archive.program_of(hosts, name), "{name} is unpacked");
    }
    archive.file(Path::new("etc/psid"), format!("{psid}\n").as_bytes());
    Some(archive.finished())
}

/// A volume with Opal, and its PSID.
fn volume(folder: &Path) -> (PathBuf, String) {
    let volume = folder.join("volume");
    let dies = ["a", "b", "c"].map(|name| folder.join(name).display().to_string());
    let created = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(["volume", "create"])
        .arg(&volume)
        .args(["--dies", &dies.join(","), "--size", "64m", "--opal"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&created.stderr).into_owned();
    let (_, psid) = said.trim_end().rsplit_once("the PSID is ").expect("it is told");
    (volume, psid.to_owned())
}

#[test]
fn a_volume_is_locked_by_sedutil_the_kernel_and_cryptsetup() {
    let Some(hosts) = hosts() else { return };
    let Some(kernel) = kernel() else { return };
    if emulator_is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (volume, psid) = volume(folder.path());
    let Some(archive) = first_files(&kernel, &hosts, &psid) else { return };
    fs::write(folder.path().join("initramfs"), archive).unwrap();
    let socket = folder.path().join("drive.sock");
    let (_server, line) = serve(&volume, &["--vfio-user", socket.to_str().unwrap()]);
    assert!(line.starts_with("vfio-user:"), "{line}");
    let mut guest = Running(vfio_user::machine(folder.path(), &kernel, (&[&socket], 1)));
    let lines = lines_of(&mut guest.0);
    let said: Said = listen(&lines, PATIENCE, |_| {});
    for (name, text) in said.iter().filter(|(name, _)| *name != "boot") {
        let is_done = text.ends_with("guest: exit 0\n");
        assert_eq!(is_done, !REFUSED.contains(&&**name), "{name}: {text}\n{said:#?}");
    }
}
