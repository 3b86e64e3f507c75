//! Reading a machine made of plain files.

use std::path::Path;

use super::fixture::Machine;
use super::{DeviceNumber, unescape};

#[test]
fn a_mount_point_with_a_space_is_read_whole() {
    let machine = Machine::with_disk();
    machine.mount("8:2", "/dev/sda2", "/mnt/my\\040disk");
    let mounts = machine.system().mounts();
    let mount = mounts.last().unwrap();
    assert_eq!(mount.point, Path::new("/mnt/my disk"));
    assert_eq!(mount.device, DeviceNumber { major: 8, minor: 2 });
    assert_eq!((mount.file_system.as_str(), mount.source.to_str().unwrap()), ("ext4", "/dev/sda2"));
}

#[test]
fn a_path_lies_in_the_deepest_and_latest_mount() {
    let machine = Machine::with_disk();
    machine.mount("8:1", "/dev/sda1", "/");
    machine.mount("8:2", "/dev/sda2", "/home");
    machine.mount("8:9", "/dev/sda9", "/home");
    let device = |path: &str| machine.system().mount_of(Path::new(path)).unwrap().device.minor;
    assert_eq!(device("/home/me/disk.img"), 9);
    assert_eq!(device("/homestead"), 1);
}

#[test]
fn disks_below_a_volume_are_found_through_its_partition() {
    let machine = Machine::with_disk();
    machine.block("dm-0", "dm-0", "252:0");
    machine.hold("sda/sda2", "dm-0");
    let volume = machine.system().block_at(Path::new("/dev/dm-0")).unwrap();
    let below: Vec<_> = volume.disks_below().iter().map(|disk| disk.name().to_owned()).collect();
    assert_eq!(below, ["sda"]);
}

#[test]
fn a_lone_backslash_stays_one() {
    assert_eq!(unescape("a\\b\\134c\\04"), Path::new("a\\b\\c\\04"));
}

#[test]
fn the_process_that_locks_a_file_is_found() {
    let machine = Machine::with_disk();
    machine.write("proc/locks", "1: OFDLCK ADVISORY  WRITE 731 08:02:4711 0 EOF");
    let device = DeviceNumber { major: 8, minor: 2 };
    assert_eq!(machine.system().locker(device, 4711).as_deref(), Some("731"));
    assert_eq!(machine.system().locker(device, 4712), None);
}
