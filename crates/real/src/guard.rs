//! Permission to write to a target, and an exclusive hold on it.
//!
//! ```text
//! path ─► resolved ─► in use? ────► refused, whatever was asked
//!                        │ no
//!                     has data? ──► refused unless named with `--destroy`
//!                        │          (of a file: a byte other than zero; holes are none)
//!                        │ no, or named
//!                     held exclusively (the whole disk; a file: locked) ─► Permit
//! ```
//!
//! A device is in use when it, a partition of it or the disk around it is mounted, in use as swap
//! or held by LVM, MD or dm, also through another node of the same drive (by its world-wide name),
//! or when it belongs to the disk of the root file system. What sysfs does not show (btrfs, ZFS, a
//! mount in another container) holds the device exclusively, so that the exclusive open is refused.
//! fio itself checks no more than the node that it is given: it writes to a disk below a mounted
//! partition.
//!
//! The exclusive open of a disk keeps its partitions from being mounted or opened exclusively, and
//! fails while one of them is. So it is the only hold: a second one, of a partition, would be
//! refused by the kernel as well.
//!
//! A test that only reads opens its target for reading, shares it, and needs no leave.
//!
//! An NBD server holds its export itself: only the server knows which other clients are connected.
//! An export is refused unless named with `--destroy`, whatever is on it. So is a target on other
//! hosts, of which nothing can be seen from here: neither mounts nor partitions.

use std::fs::{self, Metadata};
use std::os::fd::OwnedFd;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use lab::target::hosts::Hosts;
use lab::target::nbd::{Export, Uri};
use lab::target::system::{Block, DeviceNumber, System};
use lab::{Error, Kind};

mod content;
mod group;
mod occupancy;
mod reading;

pub(crate) use self::group::check_group;
pub(crate) use self::reading::permit_reading;

/// The right to write to one target, which is held exclusively until this is dropped.
#[derive(Debug)]
pub struct Permit {
    path: PathBuf,
    /// Open descriptor, which is the hold.
    target: OwnedFd,
    is_file: bool,
}

impl Permit {
    /// The target with every symbolic link resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if the target is a file; else it is a block device.
    pub const fn is_file(&self) -> bool {
        self.is_file
    }

    /// A permit that stands for one to `path`, and opens nothing but the null device.
    #[cfg(test)]
    pub(crate) fn of_null(path: impl Into<PathBuf>) -> Self {
        let target = fs::File::open("/dev/null").expect("every machine has it").into();
        Self { path: path.into(), target, is_file: false }
    }

    /// The target, open for writing, or for reading where no more was asked for.
    pub(crate) const fn target(&self) -> &OwnedFd {
        &self.target
    }
}

/// Permits writing to `path`, which exists; with `destroy` even over data.
///
/// # Errors
/// [`Kind::Refused`] says what holds the target, or what would be lost; [`Kind::Input`] that it is
/// neither file nor block device.
pub fn permit(path: &Path, destroy: bool) -> Result<Permit, Error> {
    let shown = path.display();
    let failed = |source| {
        Error::new(Kind::Input, format!("opening the target {shown}"))
            .hint("name an existing block device, or a file")
            .source(source)
    };
    let path = fs::canonicalize(path).map_err(failed)?;
    let metadata = fs::metadata(&path).map_err(failed)?;
    let system = System::this_machine();
    match DeviceNumber::of_node(&metadata) {
        Some(device) => permit_device(&system, path, device, destroy),
        None if metadata.is_file() => permit_file(&system, path, &metadata, destroy),
        None => Err(no_target(&path, &metadata)),
    }
}

/// Refuses the block device at `path` as a part of a volume while something uses it; other paths
/// pass.
///
/// # Errors
/// [`Kind::Refused`] says what uses it, and how that ends.
pub fn check_unused(path: &Path) -> Result<(), Error> {
    let Ok(path) = fs::canonicalize(path) else { return Ok(()) };
    let device = fs::metadata(&path).ok().and_then(|metadata| DeviceNumber::of_node(&metadata));
    let system = System::this_machine();
    match device.and_then(|device| system.block(device)) {
        Some(block) => check_unused_device(&system, &path, &block),
        None => Ok(()),
    }
}

fn check_unused_device(system: &System, path: &Path, block: &Block) -> Result<(), Error> {
    let used = occupancy::use_of(system, block);
    // With the remedy of the disk that the system runs from, where it is that.
    match used.and_then(|_| occupancy::of_device(system, block)) {
        Some(used) => Err(refused(path, used.text).hint(used.remedy)),
        None => Ok(()),
    }
}

/// Permits writing to the export at `uri`, which only its server can hold; with `destroy` alone.
///
/// # Errors
/// [`Kind::Refused`] says what would be lost, or that the server takes no writes.
pub(crate) fn permit_export(uri: &Uri, export: Export, destroy: bool) -> Result<(), Error> {
    let refused = |why: String| {
        Error::new(Kind::Refused, format!("refusing to write to the NBD server {uri}: {why}"))
    };
    if export.read_only {
        return Err(refused("it is read-only".into()).hint("name an export that can be written"));
    }
    if !destroy {
        let size = Bytes(export.capacity_bytes);
        return Err(refused(format!("everything on it ({size}) would be lost"))
            .hint("add --destroy if nothing on it is needed, and no client has it mounted"));
    }
    Ok(())
}

/// Permits writing to `path` on `hosts`, where this machine cannot look; with `destroy` alone.
///
/// # Errors
/// [`Kind::Refused`] says that nothing is known of what would be lost.
pub(crate) fn permit_elsewhere(path: &Path, hosts: &Hosts, destroy: bool) -> Result<(), Error> {
    if destroy {
        return Ok(());
    }
    let why = format!("who uses it on {hosts}, and what is on it, cannot be seen from here");
    Err(refused(path, why)
        .hint("check each host; add --destroy if nothing on the device is needed"))
}

fn no_target(path: &Path, metadata: &Metadata) -> Error {
    let kind = metadata.file_type();
    let what = match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_char_device() => "a character device",
        () => "neither file nor block device",
    };
    let hint = match () {
        () if kind.is_dir() => format!("name a file in it: {}/disk.img", path.display()),
        () if kind.is_char_device() => "an NVMe drive is /dev/nvme0n1, not /dev/nvme0".to_owned(),
        () => "name a file or a block device".to_owned(),
    };
    Error::new(Kind::Input, format!("{} is {what}", path.display())).hint(hint)
}

fn permit_device(
    system: &System,
    path: PathBuf,
    device: DeviceNumber,
    destroy: bool,
) -> Result<Permit, Error> {
    let block = system.block(device).ok_or_else(|| {
        refused(&path, format!("sysfs does not know it ({}:{})", device.major, device.minor))
            .hint("without /sys nothing can be said about who uses it: mount /sys")
    })?;
    check_device(system, &path, &block, destroy)?;
    let target = open_exclusively(&path, &block)?;
    Ok(Permit { path, target, is_file: false })
}

/// Refuses a device that is read-only or in use, and any device without `destroy`.
fn check_device(system: &System, path: &Path, block: &Block, destroy: bool) -> Result<(), Error> {
    if system.mounts().is_empty() {
        return Err(refused(path, "what is mounted cannot be read")
            .hint("/proc/self/mountinfo is needed: mount /proc"));
    }
    if block.read_only() {
        return Err(refused(path, "it is read-only").hint("name a device that can be written"));
    }
    if let Some(use_) = occupancy::of_device(system, block) {
        return Err(refused(path, use_.text).hint(use_.remedy));
    }
    if !destroy {
        let what = described(block);
        return Err(refused(path, format!("everything on it ({what}) would be lost"))
            .hint("add --destroy if nothing on it is needed"));
    }
    Ok(())
}

/// Model, serial and size, as far as known: what a person recognises the drive by.
fn described(block: &Block) -> String {
    let mut parts = Vec::new();
    let disk = block.disk();
    for attribute in ["device/model", "device/serial", "serial"] {
        parts.extend(disk.attribute(attribute));
    }
    parts.push(Bytes(block.capacity_bytes()).to_string());
    parts.join(", ")
}

fn open_exclusively(path: &Path, block: &Block) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    let open = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::BUSY => refused(path, "it is open elsewhere exclusively").hint(
            "a file system (btrfs, ZFS), a container or another program holds it: release it",
        ),
        Errno::ACCESS | Errno::PERM => {
            refused(path, "this user may not write to it").hint("run as root")
        }
        errno => refused(path, "it cannot be opened for writing").source(errno),
    })?;
    let opened = rustix::fs::fstat(&open).map_err(|errno| refused(path, "fstat").source(errno))?;
    let number = block.device();
    let same = rustix::fs::major(opened.st_rdev) == number.major
        && rustix::fs::minor(opened.st_rdev) == number.minor;
    if !same {
        return Err(refused(path, format!("it is no longer {}", block.node()))
            .hint("the device changed while it was checked: try again"));
    }
    Ok(open)
}

fn permit_file(
    system: &System,
    path: PathBuf,
    metadata: &Metadata,
    destroy: bool,
) -> Result<Permit, Error> {
    if let Some(use_) = occupancy::of_file(system, &path) {
        return Err(refused(&path, use_.text).hint(use_.remedy));
    }
    if let Some(process) = system.locker(DeviceNumber::below_file(metadata), metadata.st_ino()) {
        return Err(refused(&path, format!("process {process} has it locked"))
            .hint("another run, or a virtual machine, uses it: wait for it or name another file"));
    }
    let open = rustix::fs::open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| refused(&path, "it cannot be opened for writing").source(errno))?;
    rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
        refused(&path, "it cannot be locked: another program has it")
            .hint("two runs cannot share a file: wait for the other or name another file")
            .source(errno)
    })?;
    // Once it is held: no other process that asks for the lock writes to it from here on.
    if !destroy && content::holds_any(&open, metadata.len()) {
        let size = Bytes(metadata.len());
        return Err(refused(&path, format!("its content ({size}) would be lost"))
            .hint("name a file that does not exist, or add --destroy if it is not needed"));
    }
    Ok(Permit { path, target: open, is_file: true })
}

fn refused(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::Refused, format!("refusing to write to {}: {why}", path.display()))
}

#[cfg(test)]
mod tests;
