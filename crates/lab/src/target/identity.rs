//! Identity of the drives behind a target: by it a run that is resumed tells whether a name still
//! stands for the drive that it was begun on.
//!
//! ```text
//! /dev/nvme1n1 ──► wwid and size when the run began ──► order.json ──► those when it is resumed
//! ```
//!
//! The kernel numbers drives, and namespaces of one drive, in the order in which it finds them,
//! which changes from one boot to the next. A device without an identifier, such as a loop device,
//! is told by its size and sector size only; a run that was resumed on one says so.

use std::fs;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use serde::{Deserialize, Serialize};

use super::address::Address;
use super::system::{Block, DeviceNumber, System};
use crate::{Error, Kind};

/// Attributes that identify a disk, the first that it has: those of NVMe, SCSI, device mapper, MD
/// and virtio.
const ATTRIBUTES: [&str; 6] =
    ["wwid", "device/wwid", "dm/uuid", "md/uuid", "device/serial", "serial"];

/// Block device as a run knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIdentity {
    /// Path that was given.
    path: PathBuf,
    /// Identifier of the disk, with the number of the partition if it is one; empty where it has
    /// none.
    identity: String,
    /// Size in bytes; 0 in orders from before it was kept.
    #[serde(default)]
    size_bytes: u64,
    /// Size of a sector in bytes; 0 where it is unknown.
    #[serde(default)]
    sector_bytes: u64,
}

impl DeviceIdentity {
    /// The device `block` at `path`.
    fn of(path: PathBuf, block: &Block) -> Self {
        let sector_bytes = block.disk().number("queue/logical_block_size").unwrap_or_default();
        let size_bytes = block.capacity_bytes();
        Self { path, identity: identity(block).unwrap_or_default(), size_bytes, sector_bytes }
    }

    /// The path that was given, if nothing but its size tells the device from others.
    pub fn unidentified(&self) -> Option<&Path> {
        self.identity.is_empty().then_some(self.path.as_path())
    }

    /// True if `self` has the size that `then` had.
    fn has_size_of(&self, then: &Self) -> bool {
        let now = (self.size_bytes, self.sector_bytes);
        then.size_bytes == 0 || now == (then.size_bytes, then.sector_bytes)
    }

    fn size(&self) -> String {
        format!("{} in sectors of {} bytes", Bytes(self.size_bytes), self.sector_bytes)
    }
}

/// Returns the identities of the block devices of this machine that `target` names; of files and of
/// what is on other hosts there are none.
pub fn identities(target: &str, hosts: &str) -> Vec<DeviceIdentity> {
    let paths = match Address::parse(target, hosts) {
        Ok(Address::Local(path)) => vec![path],
        Ok(Address::Group { paths, .. }) => paths,
        Ok(Address::Export(_) | Address::Fleet { .. }) | Err(_) => Vec::new(),
    };
    let system = System::this_machine();
    let known = |path: PathBuf| {
        let block = block_of(&system, &path)?;
        Some(DeviceIdentity::of(path, &block))
    };
    paths.into_iter().filter_map(known).collect()
}

/// Checks that every path still leads to the same device.
///
/// # Errors
/// [`Kind::Refused`] says which one leads elsewhere, and where that device is now.
pub fn check(devices: &[DeviceIdentity]) -> Result<(), Error> {
    let system = System::this_machine();
    check_on(&system, devices, |path| block_of(&system, path))
}

fn check_on(
    system: &System,
    devices: &[DeviceIdentity],
    block_of: impl Fn(&Path) -> Option<Block>,
) -> Result<(), Error> {
    for then in devices {
        let now = block_of(&then.path).map(|block| DeviceIdentity::of(then.path.clone(), &block));
        match now {
            Some(now) if now.identity == then.identity && now.has_size_of(then) => {}
            Some(now) if now.identity == then.identity => return Err(resized(then, &now)),
            now => return Err(other_drive(system, then, now.as_ref())),
        }
    }
    Ok(())
}

/// The path leads to a device of another size, whatever else identifies it.
fn resized(then: &DeviceIdentity, now: &DeviceIdentity) -> Error {
    let (shown, size, before) = (then.path.display(), now.size(), then.size());
    let text = format!("{shown} is not as it was when the run began: {size}, not {before}");
    Error::new(Kind::Refused, text)
        .hint("attach that device again, give it back its size, or begin a new run")
}

/// The path leads to `now`, or to nothing, instead of the device `then`.
fn other_drive(system: &System, then: &DeviceIdentity, now: Option<&DeviceIdentity>) -> Error {
    let unknown =
        |name: &str| if name.is_empty() { "one without an identifier" } else { name }.to_owned();
    let now =
        now.map_or_else(|| "nothing is at this path".to_owned(), |now| unknown(&now.identity));
    let (shown, before) = (then.path.display(), unknown(&then.identity));
    let text = format!("{shown} is not the drive that the run began on: {now}, not {before}");
    let names = system.names("sys/class/block").into_iter();
    let mut blocks = names.filter_map(|name| system.block_at(Path::new(&name)));
    let found = blocks.find(|it| identity(it).as_ref() == Some(&then.identity));
    let hint = match found {
        Some(found) => format!(
            "that drive is {} now, since the kernel numbers drives anew at each boot; start \
             runs with a name in /dev/disk/by-id, which stays with the drive",
            found.node()
        ),
        None => "attach that drive again, or begin a new run".to_owned(),
    };
    Error::new(Kind::Refused, text).hint(hint)
}

/// The block device at `path`; none for anything else.
fn block_of(system: &System, path: &Path) -> Option<Block> {
    system.block(DeviceNumber::of_node(&fs::metadata(path).ok()?)?)
}

fn identity(block: &Block) -> Option<String> {
    let disk = block.disk();
    let of_disk = ATTRIBUTES.iter().find_map(|name| disk.attribute(name))?;
    Some(match block.attribute("partition") {
        Some(number) => format!("{of_disk}, partition {number}"),
        None => of_disk,
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::fixture::Machine;
    use super::*;

    /// A machine with a drive of two namespaces, of which the kernel found `first` first.
    fn machine(first: &str, second: &str) -> Machine {
        let machine = Machine::with_disk();
        for (name, number, wwid) in [("nvme0n1", "259:0", first), ("nvme0n2", "259:1", second)] {
            machine.block(name, name, number);
            machine.write(&format!("sys/devices/block/{name}/wwid"), wwid);
        }
        machine
    }

    fn checked(machine: &Machine, path: &str, identity: &str) -> Result<(), Error> {
        let system = machine.system();
        let (path, identity) = (path.into(), identity.to_owned());
        let device = DeviceIdentity { path, identity, size_bytes: 0, sector_bytes: 0 };
        check_on(&system, &[device], |path| system.block_at(path))
    }

    #[test]
    fn a_name_that_stands_for_another_namespace_after_a_boot_is_refused() {
        let before = machine("eui.01", "eui.02");
        assert!(checked(&before, "/dev/nvme0n1", "eui.01").is_ok());
        let after = machine("eui.02", "eui.01");
        let error = checked(&after, "/dev/nvme0n1", "eui.01").unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        let text = "/dev/nvme0n1 is not the drive that the run began on: eui.02, not eui.01";
        assert_eq!(error.to_string(), text);
        assert!(error.remedy().starts_with("that drive is /dev/nvme0n2 now"), "{error:?}");
    }

    #[test]
    fn a_drive_that_is_gone_is_refused() {
        let error = checked(&machine("eui.01", "eui.02"), "/dev/nvme7n1", "eui.07").unwrap_err();
        assert!(error.to_string().ends_with("nothing is at this path, not eui.07"), "{error}");
        assert_eq!(error.remedy(), "attach that drive again, or begin a new run");
    }

    #[test]
    fn partitions_of_one_disk_are_told_apart() {
        let machine = Machine::with_disk();
        machine.write("sys/devices/block/sda/device/wwid", "naa.5");
        assert!(checked(&machine, "/dev/sda", "naa.5").is_ok());
        assert!(checked(&machine, "/dev/sda2", "naa.5, partition 2").is_ok());
        assert!(checked(&machine, "/dev/sda1", "naa.5, partition 2").is_err());
    }

    #[test]
    fn a_device_without_an_identifier_is_told_by_its_size() {
        let machine = Machine::with_disk();
        machine.write("sys/devices/block/sda/queue/logical_block_size", "512");
        let system = machine.system();
        let block = system.block_at(Path::new("/dev/sda")).unwrap();
        let then = DeviceIdentity::of("/dev/sda".into(), &block);
        assert_eq!(then.unidentified(), Some(Path::new("/dev/sda")));
        let then = [then];
        let check = || check_on(&system, &then, |path| system.block_at(path));
        check().unwrap();
        machine.write("sys/devices/block/sda/size", "4194304");
        let error = check().unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        let text = "/dev/sda is not as it was when the run began: 2.15 GB in sectors of 512 bytes, \
                    not 1.07 GB in sectors of 512 bytes";
        assert_eq!(error.to_string(), text);
        machine.write("sys/devices/block/sda/size", "2097152");
        machine.write("sys/devices/block/sda/queue/logical_block_size", "4096");
        assert!(check().unwrap_err().to_string().contains("sectors of 4096 bytes, not"));
        machine.write("sys/devices/block/sda/serial", "S1");
        let error = check().unwrap_err();
        assert!(error.to_string().ends_with("S1, not one without an identifier"), "{error}");
    }

    #[test]
    fn an_array_is_identified_by_its_uuid() {
        let machine = Machine::with_disk();
        machine.block("md0", "md0", "9:0");
        machine.write("sys/devices/block/md0/md/uuid", "0d1d5c5e");
        assert!(checked(&machine, "/dev/md0", "0d1d5c5e").is_ok());
        assert!(checked(&machine, "/dev/md0", "77").is_err());
    }

    #[test]
    fn a_file_has_no_identity() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(identities(file.path().to_str().unwrap(), ""), []);
        assert_eq!(identities("nbd://localhost", ""), []);
    }
}
