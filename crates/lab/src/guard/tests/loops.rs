//! The guard on real loop devices. They need root and `losetup`; each test says so where it cannot
//! run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::permit;

const MIB: usize = 1 << 20;

/// A 16 MiB disk with one partition of 12 MiB, on a loop device, detached when dropped.
struct LoopDisk {
    folder: TempDir,
    node: PathBuf,
    mounted: bool,
}

impl LoopDisk {
    fn new() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("disk.img"), disk_with_one_partition()).unwrap();
        let attach = ["--find", "--show", "--partscan"];
        let image = folder.path().join("disk.img");
        let attached = Command::new("losetup").args(attach).arg(image).output();
        let Some(output) = attached.ok().filter(|output| output.status.success()) else {
            say("skipped: losetup cannot attach a loop device here (it needs root)");
            return None;
        };
        let node = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let disk = Self { folder, node, mounted: false };
        if !disk.partition().exists() {
            say("skipped: this kernel makes no partitions on loop devices");
            return None;
        }
        Some(disk)
    }

    fn partition(&self) -> PathBuf {
        PathBuf::from(format!("{}p1", self.node.display()))
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("disk.img")
    }

    /// Mounts its partition; false where the machine cannot.
    fn mount(&mut self) -> bool {
        let point = self.folder.path().join("mounted");
        fs::create_dir(&point).unwrap();
        let partition = self.partition();
        self.mounted =
            run("mkfs.ext4", &[Path::new("-q"), &partition]) && run("mount", &[&partition, &point]);
        if !self.mounted {
            say("skipped: mkfs.ext4 or mount does not work here");
        }
        self.mounted
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        if self.mounted {
            run("umount", &[&self.folder.path().join("mounted")]);
        }
        run("losetup", &[Path::new("-d"), &self.node]);
    }
}

/// An image with an MBR: one Linux partition, sectors 2048 to 26623.
fn disk_with_one_partition() -> Vec<u8> {
    let mut image = vec![0; 16 * MIB];
    image[446 + 4] = 0x83;
    image[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    image[446 + 12..446 + 16].copy_from_slice(&24_576_u32.to_le_bytes());
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    image
}

fn run(program: &str, arguments: &[&Path]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn say(text: &str) {
    eprintln!("{text}");
}

#[test]
fn a_loop_disk_is_refused_while_its_partition_is_mounted() {
    let Some(mut disk) = LoopDisk::new() else { return };
    if !disk.mount() {
        return;
    }
    let error = permit(&disk.node, true).unwrap_err().to_string();
    assert!(error.contains(&format!("{} is mounted at", disk.partition().display())), "{error}");
    let error = permit(&disk.image(), true).unwrap_err().to_string();
    assert!(error.contains("it is the backing file of"), "{error}");
}

#[test]
fn an_idle_loop_disk_is_held_with_its_partitions() {
    let Some(disk) = LoopDisk::new() else { return };
    let permitted = permit(&disk.node, true).unwrap();
    let error = permit(&disk.partition(), true).unwrap_err().to_string();
    assert!(error.ends_with("it is open elsewhere exclusively"), "{error}");
    drop(permitted);
    permit(&disk.partition(), true).unwrap();
}

#[test]
fn a_disk_is_refused_while_a_partition_is_open_exclusively() {
    let Some(disk) = LoopDisk::new() else { return };
    let partition = permit(&disk.partition(), true).unwrap();
    let error = permit(&disk.node, true).unwrap_err().to_string();
    assert!(error.ends_with("it is open elsewhere exclusively"), "{error}");
    drop(partition);
}
