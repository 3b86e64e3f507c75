//! The machine as `/proc` and `/sys` describe it, below a root that tests replace by a tree of
//! their own.

use std::fs;
use std::io;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

mod block;

pub use block::{Block, DiskCounts};

/// File system root with the machine's `/proc`, `/sys` and `/dev`.
#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
}

/// Number of a device: what a mount or a node refers to, whatever its path is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// Major number: the driver.
    pub major: u32,
    /// Minor number: the device within it.
    pub minor: u32,
}

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device of the file system; major 0 where it has none of its own (tmpfs, btrfs).
    pub device: DeviceNumber,
    /// Mount point.
    pub point: PathBuf,
    /// Type, such as `ext4`.
    pub file_system: String,
    /// Mounted device or source, such as `/dev/sda2`.
    pub source: PathBuf,
}

impl System {
    /// The machine that this runs on.
    pub fn this_machine() -> Self {
        Self::below("/")
    }

    /// The machine whose `/proc` and `/sys` lie in `root`.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Content of the file at `path` (below the root) without the white space around it; nothing
    /// where it cannot be read or is empty.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.root.join(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Joins the root and `path`, which is relative to it.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// Gives the setting at `path` another value.
    ///
    /// # Errors
    /// Reports the kernel's refusal.
    pub fn set(&self, path: impl AsRef<Path>, value: &str) -> io::Result<()> {
        fs::write(self.path(path), format!("{value}\n"))
    }

    /// Names of what is in the folder at `path`, in order.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Every mounted file system, in the order of mounting.
    pub fn mounts(&self) -> Vec<Mount> {
        let table = self.text("proc/self/mountinfo").unwrap_or_default();
        table.lines().filter_map(Mount::parse).collect()
    }

    /// Every device and file in use as swap.
    pub fn swaps(&self) -> Vec<PathBuf> {
        let table = self.text("proc/swaps").unwrap_or_default();
        let names = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        names.map(unescape).collect()
    }

    /// Process that holds a lock on the file with this device and inode, if any does.
    pub fn locker(&self, device: DeviceNumber, inode: u64) -> Option<String> {
        let file = format!("{:02x}:{:02x}:{inode}", device.major, device.minor);
        let table = self.text("proc/locks")?;
        table.lines().find_map(|line| {
            let mut words =
                line.split_whitespace().skip_while(|word| *word != "WRITE" && *word != "READ");
            let (_, process, locked) = (words.next()?, words.next()?, words.next()?);
            (locked == file).then(|| process.to_owned())
        })
    }

    /// The block device with this number.
    pub fn block(&self, device: DeviceNumber) -> Option<Block> {
        let link = format!("sys/dev/block/{}:{}", device.major, device.minor);
        Block::read(&self.root.join(link))
    }

    /// The block device behind a node in `/dev`.
    pub fn block_at(&self, node: &Path) -> Option<Block> {
        let below_root = self.root.join(node.strip_prefix("/").unwrap_or(node));
        let resolved = fs::canonicalize(below_root).unwrap_or_else(|_| node.to_owned());
        Block::read(&self.root.join("sys/class/block").join(resolved.file_name()?))
    }

    /// Every whole block device, by name.
    pub fn disks(&self) -> Vec<Block> {
        let Ok(entries) = fs::read_dir(self.root.join("sys/block")) else { return Vec::new() };
        let mut disks: Vec<Block> =
            entries.flatten().filter_map(|entry| Block::read(&entry.path())).collect();
        disks.sort_by(|a, b| a.name().cmp(b.name()));
        disks
    }

    /// The mount that `path` lies in.
    pub fn mount_of(&self, path: &Path) -> Option<Mount> {
        let mounts = self.mounts().into_iter().enumerate();
        mounts
            .filter(|(_, mount)| path.starts_with(&mount.point))
            .max_by_key(|(order, mount)| (mount.point.components().count(), *order))
            .map(|(_, mount)| mount)
    }
}

impl DeviceNumber {
    /// The device that a block device node stands for; nothing for other files.
    pub fn of_node(metadata: &fs::Metadata) -> Option<Self> {
        metadata.file_type().is_block_device().then(|| Self::from_raw(metadata.st_rdev()))
    }

    /// The device that a file is stored on.
    pub fn below_file(metadata: &fs::Metadata) -> Self {
        Self::from_raw(metadata.st_dev())
    }

    fn from_raw(raw: u64) -> Self {
        Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }

    /// Reads `8:1`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl Mount {
    /// Reads one line of `/proc/self/mountinfo`, see proc(5):
    /// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`.
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let device = DeviceNumber::parse(mount.next()?)?;
        let point = unescape(mount.nth(1)?);
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?.to_owned();
        Some(Self { device, point, file_system: kind, source: unescape(file_system.next()?) })
    }
}

/// The chosen one of `none [mq-deadline] kyber`; all of a setting that lists no others.
pub fn chosen(names: &str) -> &str {
    let within = names.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    within.map_or(names, |(name, _)| name)
}

/// Turns the octal escapes of the kernel's tables (`\040` for a space) back into characters.
fn unescape(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(code) = part.get(..3).and_then(|code| u8::from_str_radix(code, 8).ok()) {
            plain.push(char::from(code));
            plain.push_str(&part[3..]);
        } else {
            plain.push('\\');
            plain.push_str(part);
        }
    }
    plain.into()
}

#[cfg(test)]
pub mod fixture;

#[cfg(test)]
mod tests;
