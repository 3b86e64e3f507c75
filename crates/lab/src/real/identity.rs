//! Identity of the drives behind a target: by it a run that is resumed tells whether a name still
//! stands for the drive that it was begun on.
//!
//! ```text
//! /dev/nvme1n1 ──► wwid when the run began ──► order.json ──► wwid when it is resumed
//! ```
//!
//! The kernel numbers drives, and namespaces of one drive, in the order in which it finds them,
//! which changes from one boot to the next.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::address::Address;
use super::system::{Block, DeviceNumber, System};
use crate::{Error, Kind};

/// Attributes that identify a disk, the first that it has: those of NVMe, SCSI, device mapper and
/// virtio.
const ATTRIBUTES: [&str; 5] = ["wwid", "device/wwid", "dm/uuid", "device/serial", "serial"];

/// Block device as a run knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceIdentity {
    /// Path that was given.
    path: PathBuf,
    /// Identifier of the disk, with the number of the partition if it is one.
    identity: String,
}

/// Returns the identities of the block devices of this machine that `target` names; of files, of
/// what is on other hosts, and of disks without an identifier there are none.
pub(crate) fn identities(target: &str, hosts: &str) -> Vec<DeviceIdentity> {
    let paths = match Address::parse(target, hosts) {
        Ok(Address::Local(path)) => vec![path],
        Ok(Address::Group { paths, .. }) => paths,
        Ok(Address::Export(_) | Address::Fleet { .. }) | Err(_) => Vec::new(),
    };
    let system = System::this_machine();
    let known = |path: PathBuf| {
        let identity = identity(&block_of(&system, &path)?)?;
        Some(DeviceIdentity { path, identity })
    };
    paths.into_iter().filter_map(known).collect()
}

/// Checks that every path still leads to the same device.
///
/// # Errors
/// [`Kind::Refused`] says which one leads elsewhere, and where that device is now.
pub(crate) fn check(devices: &[DeviceIdentity]) -> Result<(), Error> {
    let system = System::this_machine();
    check_on(&system, devices, |path| block_of(&system, path))
}

fn check_on(
    system: &System,
    devices: &[DeviceIdentity],
    block_of: impl Fn(&Path) -> Option<Block>,
) -> Result<(), Error> {
    for DeviceIdentity { path, identity: then } in devices {
        let now = block_of(path).as_ref().and_then(identity);
        if now.as_ref() == Some(then) {
            continue;
        }
        let (shown, now) = (path.display(), now.as_deref().unwrap_or("no drive"));
        let text = format!("{shown} is another drive than when the run began: {now}, not {then}");
        let names = system.names("sys/class/block").into_iter();
        let blocks = names.filter_map(|name| system.block_at(Path::new(&name)));
        let hint = match blocks.into_iter().find(|it| identity(it).as_ref() == Some(then)) {
            Some(found) => format!(
                "that drive is {} now, since the kernel numbers drives anew at each boot; start \
                 runs with a name in /dev/disk/by-id, which stays with the drive",
                found.node()
            ),
            None => "attach that drive again, or begin a new run".to_owned(),
        };
        return Err(Error::new(Kind::Refused, text).hint(hint));
    }
    Ok(())
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
        let device = DeviceIdentity { path: path.into(), identity: identity.to_owned() };
        check_on(&system, &[device], |path| system.block_at(path))
    }

    #[test]
    fn a_name_that_stands_for_another_namespace_after_a_boot_is_refused() {
        let before = machine("eui.01", "eui.02");
        assert!(checked(&before, "/dev/nvme0n1", "eui.01").is_ok());
        let after = machine("eui.02", "eui.01");
        let error = checked(&after, "/dev/nvme0n1", "eui.01").unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        let text = "/dev/nvme0n1 is another drive than when the run began: eui.02, not eui.01";
        assert_eq!(error.to_string(), text);
        assert!(error.remedy().starts_with("that drive is /dev/nvme0n2 now"), "{error:?}");
    }

    #[test]
    fn a_drive_that_is_gone_is_refused() {
        let error = checked(&machine("eui.01", "eui.02"), "/dev/nvme7n1", "eui.07").unwrap_err();
        assert!(error.to_string().ends_with("no drive, not eui.07"), "{error}");
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
    fn a_file_has_no_identity() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(identities(file.path().to_str().unwrap(), ""), []);
        assert_eq!(identities("nbd://localhost", ""), []);
    }
}
