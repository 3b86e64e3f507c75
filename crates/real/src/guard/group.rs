//! Several devices as one target: what they must be to each other, before any of them is held.

use std::fs;
use std::path::{Path, PathBuf};

use blockio::Bytes;

use lab::target::system::{Block, DeviceNumber, System};
use lab::{Error, Kind};

/// A device or a file of a group, looked at and not opened.
#[derive(Clone, Debug)]
struct Member {
    /// Its path as it was given.
    name: PathBuf,
    place: Place,
    capacity_bytes: u64,
}

/// Place of a member on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A file, by the number of its file system and its inode.
    File(DeviceNumber, u64),
    /// A block device.
    Device(Block),
}

/// Refuses `paths` that cannot be one target: one device twice, a partition of another, devices
/// that share a disk, a file among devices, different sizes.
///
/// # Errors
/// Names the first two that do not go together, and what to name instead.
pub(crate) fn check_group(paths: &[PathBuf]) -> Result<(), Error> {
    let system = System::this_machine();
    let members = paths.iter().map(|path| Member::look(&system, path));
    check(&members.collect::<Result<Vec<_>, _>>()?)
}

impl Member {
    fn look(system: &System, path: &Path) -> Result<Self, Error> {
        use std::os::linux::fs::MetadataExt as _;
        let failed = |source| {
            Error::new(Kind::Input, format!("looking at {}", path.display()))
                .hint("several devices are named with commas; each, or a file of its size, exists")
                .source(source)
        };
        let metadata = fs::metadata(path).map_err(failed)?;
        let name = path.to_owned();
        if let Some(number) = DeviceNumber::of_node(&metadata) {
            let block = system.block(number).ok_or_else(|| {
                let text = format!("sysfs does not know {}", path.display());
                Error::new(Kind::Refused, text).hint("mount /sys")
            })?;
            let capacity_bytes = block.capacity_bytes();
            return Ok(Self { name, place: Place::Device(block), capacity_bytes });
        }
        if !metadata.is_file() {
            let text = format!("{} is neither file nor block device", path.display());
            return Err(Error::new(Kind::Input, text).hint("name block devices"));
        }
        let place = Place::File(DeviceNumber::below_file(&metadata), metadata.st_ino());
        Ok(Self { name, place, capacity_bytes: metadata.len() })
    }
}

fn check(members: &[Member]) -> Result<(), Error> {
    for (index, second) in members.iter().enumerate() {
        for first in &members[..index] {
            if let Some((why, hint)) = conflict(first, second) {
                let (a, b) = (first.name.display(), second.name.display());
                let text = format!("testing {a} and {b} as one target: {why}");
                return Err(Error::new(Kind::Input, text).hint(hint));
            }
        }
    }
    Ok(())
}

/// Reason why two members cannot be parts of one target, and what to do; absent where they can.
fn conflict(first: &Member, second: &Member) -> Option<(String, &'static str)> {
    if first.place == second.place {
        return Some(("they are the same one".into(), "name each device once"));
    }
    match (&first.place, &second.place) {
        (Place::Device(a), Place::Device(b)) => {
            if let Some(why) = shared(a, b) {
                return Some((why, "name whole devices that are separate drives"));
            }
        }
        (Place::File(..), Place::File(..)) => {}
        (Place::Device(_), Place::File(..)) | (Place::File(..), Place::Device(_)) => {
            let why = "one is a block device, the other a file";
            return Some((why.into(), "name block devices only"));
        }
    }
    (first.capacity_bytes != second.capacity_bytes).then(|| {
        let [a, b] = [first, second].map(|it| Bytes(it.capacity_bytes));
        let why = format!(
            "their sizes are {a} and {b}, so that loads would address different shares of them"
        );
        (why, "name devices of one size, or test each by itself")
    })
}

/// Reason why two devices are not apart: one is a part of the other, or both of one disk.
fn shared(a: &Block, b: &Block) -> Option<String> {
    let part_of = |part: &Block, whole: &Block| {
        (part.is_partition() && part.disk() == *whole)
            .then(|| format!("{} is a partition of {}", part.node(), whole.node()))
    };
    part_of(a, b).or_else(|| part_of(b, a)).or_else(|| {
        let below = b.disks_below();
        let is_below = |disk: &Block| below.iter().any(|other| other.is_same_drive(disk));
        let disk = a.disks_below().into_iter().find(is_below)?;
        Some(format!("both are stored on the disk {}", disk.node()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_fixture::Machine;

    /// A machine with `sda` and its partitions, and more disks `sdb` and `sdc` of these sectors.
    fn machine(sectors: [u64; 2]) -> Machine {
        let machine = Machine::with_disk();
        for (index, (name, sectors)) in ["sdb", "sdc"].into_iter().zip(sectors).enumerate() {
            machine.block(name, name, &format!("8:{}", (index + 1) * 16));
            machine.write(&format!("sys/devices/block/{name}/size"), &sectors.to_string());
        }
        machine
    }

    fn member(machine: &Machine, node: &str) -> Member {
        let block = machine.system().block_at(Path::new(node)).unwrap();
        let capacity_bytes = block.capacity_bytes();
        Member { name: node.into(), place: Place::Device(block), capacity_bytes }
    }

    fn refused(machine: &Machine, nodes: [&str; 2]) -> String {
        let error = check(&nodes.map(|node| member(machine, node))).unwrap_err();
        format!("{error}; {}", error.remedy())
    }

    #[test]
    fn two_disks_of_one_size_are_one_target() {
        let machine = machine([2_097_152, 2_097_152]);
        check(&["/dev/sda", "/dev/sdb", "/dev/sdc"].map(|node| member(&machine, node))).unwrap();
    }

    #[test]
    fn what_is_not_apart_is_refused_with_the_reason() {
        let machine = machine([2_097_152, 4_194_304]);
        assert_eq!(
            refused(&machine, ["/dev/sdb", "/dev/sdb"]),
            "testing /dev/sdb and /dev/sdb as one target: they are the same one; name each device \
             once"
        );
        let part = refused(&machine, ["/dev/sda", "/dev/sda2"]);
        assert!(part.contains(": /dev/sda2 is a partition of /dev/sda; name whole"), "{part}");
        let parts = refused(&machine, ["/dev/sda1", "/dev/sda2"]);
        assert!(parts.contains("both are stored on the disk /dev/sda"), "{parts}");
    }

    #[test]
    fn two_nodes_of_one_drive_are_refused() {
        let machine = machine([2_097_152, 2_097_152]);
        for name in ["sda", "sdb"] {
            machine.write(&format!("sys/devices/block/{name}/device/wwid"), "naa.5000c500a1b2c3d4");
        }
        let said = refused(&machine, ["/dev/sda", "/dev/sdb"]);
        assert!(said.contains("both are stored on the disk /dev/sda"), "{said}");
        check(&["/dev/sda", "/dev/sdc"].map(|node| member(&machine, node))).unwrap();
    }

    #[test]
    fn a_volume_and_a_disk_below_it_are_refused() {
        let machine = machine([2_097_152, 2_097_152]);
        machine.block("dm-0", "dm-0", "253:0");
        machine.hold("sdb", "dm-0");
        let said = refused(&machine, ["/dev/sdb", "/dev/dm-0"]);
        assert!(said.contains("both are stored on the disk /dev/sdb"), "{said}");
    }

    #[test]
    fn devices_of_different_sizes_are_refused() {
        let machine = machine([2_097_152, 4_194_304]);
        let said = refused(&machine, ["/dev/sda", "/dev/sdc"]);
        assert!(said.contains("their sizes are 1.07 GB and 2.15 GB"), "{said}");
        assert!(said.ends_with("name devices of one size, or test each by itself"), "{said}");
    }

    #[test]
    fn files_are_told_apart_by_what_they_are_not_by_their_names() {
        let folder = tempfile::TempDir::new().unwrap();
        let [a, b] = ["a.img", "b.img"].map(|name| folder.path().join(name));
        fs::write(&a, [0; 4096]).unwrap();
        fs::hard_link(&a, &b).unwrap();
        let error = check_group(&[a.clone(), b.clone()]).unwrap_err();
        assert!(error.to_string().ends_with("they are the same one"), "{error}");
        fs::remove_file(&b).unwrap();
        let error = check_group(&[a.clone(), b.clone()]).unwrap_err();
        assert!(error.to_string().starts_with("looking at "), "{error}");
        fs::write(&b, [0; 4096]).unwrap();
        check_group(&[a, b]).unwrap();
    }
}
