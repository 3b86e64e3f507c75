//! A machine made of plain files, for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::System;

#[path = "fixture/loops.rs"]
mod loops;

pub use loops::LoopDisk;

/// A folder with `proc`, `sys` and `dev`, deleted with it.
#[derive(Debug)]
pub struct Machine {
    folder: TempDir,
}

impl Machine {
    /// A machine with one disk `sda` (8:0) of two partitions, nothing in use.
    pub fn with_disk() -> Self {
        let machine = Self { folder: TempDir::new().unwrap() };
        machine.write("proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw");
        machine.write("proc/swaps", "Filename Type Size Used Priority");
        machine.block("sda", "sda", "8:0");
        machine.write("sys/devices/block/sda/size", "2097152");
        machine.block("sda/sda1", "sda1", "8:1");
        machine.block("sda/sda2", "sda2", "8:2");
        machine.write("sys/devices/block/sda/sda1/partition", "1");
        machine.write("sys/devices/block/sda/sda2/partition", "2");
        machine
    }

    /// Adds a block device at `path` below `sys/devices/block`.
    pub fn block(&self, path: &str, name: &str, number: &str) {
        self.write(&format!("sys/devices/block/{path}/dev"), number);
        let folder = self.path(&format!("sys/devices/block/{path}"));
        let mut links = vec![format!("sys/dev/block/{number}"), format!("sys/class/block/{name}")];
        if !path.contains('/') {
            links.push(format!("sys/block/{name}"));
        }
        for link in links {
            self.link(&folder, &link);
        }
        self.write(&format!("dev/{name}"), "");
    }

    /// Says that `holder` (both below `sys/devices/block`) is built on `held`.
    pub fn hold(&self, held: &str, holder: &str) {
        let (from, to) = (Path::new(held), Path::new(holder));
        let last = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let folder = |path: &str| self.path(&format!("sys/devices/block/{path}"));
        self.link(&folder(holder), &format!("sys/devices/block/{held}/holders/{}", last(to)));
        self.link(&folder(held), &format!("sys/devices/block/{holder}/slaves/{}", last(from)));
    }

    /// Adds a mount of `source` with the number `device`.
    pub fn mount(&self, device: &str, source: &str, point: &str) {
        let table = self.path("proc/self/mountinfo");
        let line = format!("\n30 1 {device} / {point} rw,relatime shared:1 - ext4 {source} rw");
        fs::write(&table, fs::read_to_string(&table).unwrap() + &line).unwrap();
    }

    /// Writes a file below the root.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// Reader of the machine's files.
    pub fn system(&self) -> System {
        System::below(self.folder.path())
    }

    /// Makes `link` lead to `target`, both below the root.
    pub fn link_to(&self, target: &str, link: &str) {
        self.link(&self.path(target), link);
    }

    fn link(&self, target: &Path, link: &str) {
        let link = self.path(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }
}
