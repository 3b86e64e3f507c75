//! Tests of the guard, on machines made of plain files and, as root, on loop devices.

use std::fs;
use std::path::Path;

use lab::Kind;
use tempfile::TempDir;

use super::{check_device, check_unused, check_unused_device, occupancy, permit};
use crate::machine_fixture::Machine;

mod loops;

/// Error text for `node` on `machine` with `--destroy`; empty where it is permitted.
fn refusal(machine: &Machine, node: &str) -> String {
    let block = machine.system().block_at(Path::new(node)).unwrap();
    let refused = check_device(&machine.system(), Path::new(node), &block, true);
    refused.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_idle_disk_is_permitted_only_when_named_for_destruction() {
    let machine = Machine::with_disk();
    machine.write("sys/devices/block/sda/device/model", "EXAMPLE X1");
    let system = machine.system();
    let block = system.block_at(Path::new("/dev/sda")).unwrap();
    check_device(&system, Path::new("/dev/sda"), &block, true).unwrap();
    let error = check_device(&system, Path::new("/dev/sda"), &block, false).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert_eq!(
        error.to_string(),
        "refusing to write to /dev/sda: everything on it (EXAMPLE X1, 1.07 GB) would be lost"
    );
    assert!(error.remedy().contains("--destroy"));
}

#[test]
fn a_disk_with_a_mounted_partition_is_refused() {
    let machine = Machine::with_disk();
    machine.mount("8:2", "/dev/sda2", "/srv/data");
    let text = "refusing to write to /dev/sda: /dev/sda2 is mounted at /srv/data";
    assert_eq!(refusal(&machine, "/dev/sda"), text);
}

#[test]
fn a_partition_of_a_mounted_disk_is_refused() {
    let machine = Machine::with_disk();
    machine.mount("8:0", "/dev/sda", "/srv");
    assert!(refusal(&machine, "/dev/sda1").ends_with("/dev/sda is mounted at /srv"));
}

#[test]
fn a_volume_is_not_made_of_what_is_in_use_but_of_another_part_of_its_disk() {
    let machine = Machine::with_disk();
    machine.mount("8:2", "/dev/sda2", "/srv/data");
    let check = |node: &str| {
        let block = machine.system().block_at(Path::new(node)).unwrap();
        check_unused_device(&machine.system(), Path::new(node), &block)
    };
    let error = check("/dev/sda").unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    let text = "refusing to write to /dev/sda: /dev/sda2 is mounted at /srv/data";
    assert_eq!(error.to_string(), text);
    assert_eq!(error.remedy(), "if it is the right drive: umount /srv/data");
    check("/dev/sda1").unwrap();
    machine.mount("8:1", "/dev/sda1", "/");
    let error = check("/dev/sda1").unwrap_err();
    assert!(error.to_string().ends_with("/dev/sda1 is mounted at /"), "{error}");
    assert!(!error.remedy().contains("umount"), "{}", error.remedy());
    check_unused(Path::new("/nonexistent/new.img")).unwrap();
}

#[test]
fn a_partition_beside_a_mounted_one_is_permitted() {
    let machine = Machine::with_disk();
    machine.mount("8:2", "/dev/sda2", "/srv");
    assert_eq!(refusal(&machine, "/dev/sda1"), "");
}

#[test]
fn a_btrfs_mount_is_recognised_by_its_source() {
    let machine = Machine::with_disk();
    machine.mount("0:40", "/dev/sda1", "/pool");
    assert!(refusal(&machine, "/dev/sda").ends_with("/dev/sda1 is mounted at /pool"));
}

#[test]
fn a_disk_with_a_swap_partition_is_refused() {
    let machine = Machine::with_disk();
    machine.write("proc/swaps", "Filename Type Size Used Priority\n/dev/sda1 partition 1 0 -2");
    assert!(refusal(&machine, "/dev/sda").ends_with("/dev/sda1 is in use as swap"));
}

#[test]
fn a_disk_below_lvm_is_refused_and_the_volume_named() {
    let machine = Machine::with_disk();
    machine.block("dm-0", "dm-0", "252:0");
    machine.write("sys/devices/block/dm-0/dm/name", "vg0-home");
    machine.write("sys/devices/block/dm-0/dm/uuid", "LVM-x");
    machine.hold("sda/sda2", "dm-0");
    assert!(
        refusal(&machine, "/dev/sda").ends_with("/dev/sda2 is held by dm-0 (LVM volume vg0-home)")
    );
}

#[test]
fn a_disk_below_an_md_array_is_refused_and_the_array_named() {
    let machine = Machine::with_disk();
    machine.block("md0", "md0", "9:0");
    machine.write("sys/devices/block/md0/md/level", "raid1");
    machine.hold("sda", "md0");
    let text = "/dev/sda is held by md0 (MD array, raid1)";
    assert!(refusal(&machine, "/dev/sda").ends_with(text));
    assert!(refusal(&machine, "/dev/sda1").ends_with(text), "also through its partition");
}

#[test]
fn a_free_partition_on_the_disk_of_the_root_file_system_is_refused() {
    let machine = Machine::with_disk();
    machine.mount("8:2", "/dev/sda2", "/");
    let text = "/dev/sda is the disk of the root file system";
    assert!(refusal(&machine, "/dev/sda1").ends_with(text));
}

#[test]
fn the_disk_of_the_root_file_system_is_found_below_lvm() {
    let machine = Machine::with_disk();
    machine.block("dm-0", "dm-0", "252:0");
    machine.block("dm-1", "dm-1", "252:1");
    machine.hold("sda/sda2", "dm-0");
    machine.hold("sda/sda2", "dm-1");
    machine.mount("252:0", "/dev/mapper/root", "/");
    let text = "/dev/sda is the disk of the root file system";
    assert!(refusal(&machine, "/dev/dm-1").ends_with(text));
}

/// A machine on which `sdb` and its partitions are a second path to `sda`.
fn with_two_paths() -> Machine {
    let machine = Machine::with_disk();
    machine.block("sdb", "sdb", "8:16");
    machine.block("sdb/sdb1", "sdb1", "8:17");
    machine.block("sdb/sdb2", "sdb2", "8:18");
    machine.write("sys/devices/block/sdb/sdb1/partition", "1");
    machine.write("sys/devices/block/sdb/sdb2/partition", "2");
    for name in ["sda", "sdb"] {
        machine.write(&format!("sys/devices/block/{name}/device/wwid"), "naa.5000c500a1b2c3d4");
    }
    machine
}

#[test]
fn a_drive_in_use_through_another_node_is_refused() {
    let machine = with_two_paths();
    assert_eq!(refusal(&machine, "/dev/sda"), "");
    machine.mount("8:18", "/dev/sdb2", "/srv");
    let text = "/dev/sdb2 is mounted at /srv, and /dev/sdb is the same drive";
    assert!(refusal(&machine, "/dev/sda").ends_with(text));
    assert!(refusal(&machine, "/dev/sda2").ends_with(text));
    assert_eq!(refusal(&machine, "/dev/sda1"), "", "a partition beside it");
    let machine = with_two_paths();
    machine.block("dm-0", "dm-0", "252:0");
    machine.hold("sdb", "dm-0");
    let text = "/dev/sdb is held by dm-0, and /dev/sdb is the same drive";
    assert!(refusal(&machine, "/dev/sda1").ends_with(text));
}

#[test]
fn the_disk_of_the_root_file_system_is_found_through_another_node() {
    let machine = with_two_paths();
    machine.mount("8:18", "/dev/sdb2", "/");
    let text = "/dev/sdb is the disk of the root file system";
    assert!(refusal(&machine, "/dev/sda1").ends_with(text), "{}", refusal(&machine, "/dev/sda1"));
}

#[test]
fn a_device_is_refused_where_the_mounts_cannot_be_read() {
    let machine = Machine::with_disk();
    machine.write("proc/self/mountinfo", "");
    assert!(refusal(&machine, "/dev/sda").ends_with("what is mounted cannot be read"));
}

#[test]
fn a_read_only_device_is_refused() {
    let machine = Machine::with_disk();
    machine.write("sys/devices/block/sda/ro", "1");
    assert!(refusal(&machine, "/dev/sda").ends_with("it is read-only"));
}

#[test]
fn the_backing_file_of_a_mounted_loop_device_is_refused() {
    let machine = Machine::with_disk();
    machine.block("loop3", "loop3", "7:3");
    machine.write("sys/devices/block/loop3/loop/backing_file", "/srv/disk.img");
    machine.mount("7:3", "/dev/loop3", "/mnt");
    let found = occupancy::of_file(&machine.system(), Path::new("/srv/disk.img")).unwrap();
    let text = "it is the backing file of /dev/loop3, and /dev/loop3 is mounted at /mnt";
    assert_eq!(found.text, text);
    assert_eq!(occupancy::of_file(&machine.system(), Path::new("/srv/other.img")), None);
}

#[test]
fn a_swap_file_is_refused() {
    let machine = Machine::with_disk();
    machine.write("proc/swaps", "Filename Type Size Used Priority\n/swap\\040file file 1 0 -2");
    let found = occupancy::of_file(&machine.system(), Path::new("/swap file")).unwrap();
    assert_eq!(found.text, "it is in use as swap");
}

#[test]
fn a_file_with_data_is_permitted_only_when_named_for_destruction() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("disk.img");
    fs::write(&file, [1; 4096]).unwrap();
    let error = permit(&file, false).unwrap_err();
    assert!(error.to_string().ends_with("its content (4 KiB) would be lost"), "{error}");
    assert_eq!(permit(&file, true).unwrap().path(), fs::canonicalize(&file).unwrap());
}

#[test]
fn an_empty_file_is_permitted() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("disk.img");
    fs::write(&file, []).unwrap();
    permit(&file, false).unwrap();
}

#[test]
fn a_file_of_holes_or_zeroes_has_no_content() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("disk.img");
    let made = fs::File::create(&file).unwrap();
    made.set_len(4 << 30).unwrap();
    permit(&file, false).unwrap();
    fs::write(&file, vec![0; 3 << 20]).unwrap();
    permit(&file, false).unwrap();
}

#[test]
fn one_byte_far_behind_holes_and_zeroes_is_content() {
    use std::os::unix::fs::FileExt as _;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("disk.img");
    let made = fs::File::create(&file).unwrap();
    made.set_len(4 << 30).unwrap();
    made.write_all_at(&[0; 4096], 1 << 20).unwrap();
    made.write_all_at(&[7], (4 << 30) - 1).unwrap();
    let error = permit(&file, false).unwrap_err();
    assert!(error.to_string().ends_with("its content (4.29 GB) would be lost"), "{error}");
}

#[test]
fn no_remedy_is_to_unmount_what_the_system_runs_from() {
    let remedy = "name a drive that the system does not run from";
    let machine = Machine::with_disk();
    machine.mount("8:2", "/dev/sda2", "/");
    machine.mount("8:1", "/dev/sda1", "/boot");
    let disk = |node: &str| {
        let system = machine.system();
        let block = system.block_at(Path::new(node)).unwrap();
        occupancy::of_device(&system, &block).unwrap()
    };
    for node in ["/dev/sda", "/dev/sda1", "/dev/sda2"] {
        assert_eq!(disk(node).remedy, remedy, "{node}: {}", disk(node).text);
    }
}

#[test]
fn a_file_is_permitted_to_one_run_at_a_time() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("disk.img");
    fs::write(&file, []).unwrap();
    let first = permit(&file, false).unwrap();
    assert_eq!(permit(&file, false).unwrap_err().kind(), Kind::Refused);
    drop(first);
    permit(&file, false).unwrap();
}

#[test]
fn a_link_is_judged_by_what_it_points_to() {
    let folder = TempDir::new().unwrap();
    let (file, link) = (folder.path().join("disk.img"), folder.path().join("link"));
    fs::write(&file, [1]).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert_eq!(permit(&link, false).unwrap_err().kind(), Kind::Refused);
    assert_eq!(permit(&link, true).unwrap().path(), fs::canonicalize(&file).unwrap());
}

#[test]
fn what_is_neither_file_nor_block_device_is_refused() {
    let folder = TempDir::new().unwrap();
    let text = |path: &Path| permit(path, true).unwrap_err().to_string();
    assert!(text(folder.path()).ends_with("is a folder"));
    assert_eq!(text(Path::new("/dev/null")), "/dev/null is a character device");
    assert!(text(&folder.path().join("absent")).starts_with("opening the target"));
}
