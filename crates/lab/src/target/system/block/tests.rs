//! Block devices of a machine made of plain files.

use super::super::System;
use super::super::fixture::Machine;
use super::*;

/// The device of `machine` with the node `name` below `/dev`.
fn block(machine: &Machine, name: &str) -> Block {
    find(&machine.system(), name).unwrap()
}

fn find(system: &System, name: &str) -> Option<Block> {
    system.block_at(Path::new(&format!("/dev/{name}")))
}

fn names(blocks: &[Block]) -> Vec<&str> {
    blocks.iter().map(Block::name).collect()
}

/// Name of `dm-0` for a person, where its mapper says `name` and `uuid`.
fn mapped(name: &str, uuid: &str) -> String {
    let machine = Machine::with_disk();
    machine.block("dm-0", "dm-0", "252:0");
    machine.write("sys/devices/block/dm-0/dm/name", name);
    machine.write("sys/devices/block/dm-0/dm/uuid", uuid);
    block(&machine, "dm-0").described()
}

#[test]
fn capacity_counts_sectors_of_512_bytes_whatever_the_drive_is_formatted_to() {
    let machine = Machine::with_disk();
    machine.write("sys/devices/block/sda/queue/logical_block_size", "4096");
    assert_eq!(block(&machine, "sda").capacity_bytes(), 1 << 30);
    assert_eq!(block(&machine, "sda1").capacity_bytes(), 0, "sysfs does not say");
}

#[test]
fn an_empty_attribute_is_none_and_one_of_words_is_no_number() {
    let machine = Machine::with_disk();
    machine.write("sys/devices/block/sda/device/model", "  ");
    machine.write("sys/devices/block/sda/queue/scheduler", "[none] mq-deadline");
    let disk = block(&machine, "sda");
    assert_eq!(disk.attribute("device/model"), None);
    assert_eq!(disk.attribute("queue/scheduler").as_deref(), Some("[none] mq-deadline"));
    assert_eq!(disk.number("queue/scheduler"), None);
    assert_eq!(disk.number("queue/absent"), None);
}

#[test]
fn a_slash_in_the_name_of_a_node_is_an_exclamation_mark_in_sysfs() {
    let machine = Machine::with_disk();
    machine.block("cciss!c0d0", "cciss!c0d0", "104:0");
    let disk = machine.system().block(DeviceNumber { major: 104, minor: 0 }).unwrap();
    assert_eq!((disk.name(), disk.node().as_str()), ("cciss!c0d0", "/dev/cciss/c0d0"));
}

#[test]
fn a_device_that_sysfs_numbers_strangely_is_not_known() {
    let machine = Machine::with_disk();
    machine.block("odd", "odd", "eight:0");
    assert_eq!(find(&machine.system(), "odd"), None);
    assert_eq!(find(&machine.system(), "sdz"), None, "nor one that is not there");
}

#[test]
fn partitions_stand_by_number_and_know_their_disk() {
    let machine = Machine::with_disk();
    // In the order of names it would come before the second.
    machine.block("sda/sda10", "sda10", "8:10");
    machine.write("sys/devices/block/sda/sda10/partition", "10");
    machine.write("sys/devices/block/sda/queue/rotational", "0");
    let disk = block(&machine, "sda");
    assert_eq!(names(&disk.partitions()), ["sda1", "sda2", "sda10"]);
    let last = block(&machine, "sda10");
    assert!(last.is_partition() && !disk.is_partition());
    assert_eq!((last.disk().name(), disk.disk().name()), ("sda", "sda"));
    assert_eq!(names(&last.partitions()), [""; 0]);
}

#[test]
fn a_volume_over_an_array_is_stored_on_the_disks_of_the_array() {
    let machine = Machine::with_disk();
    for (disk, number) in [("sdb", "8:16"), ("md0", "9:0"), ("dm-0", "252:0")] {
        machine.block(disk, disk, number);
    }
    machine.hold("sda/sda1", "md0");
    machine.hold("sdb", "md0");
    machine.hold("md0", "dm-0");
    assert_eq!(names(&block(&machine, "dm-0").disks_below()), ["sda", "sdb"]);
    assert_eq!(names(&block(&machine, "sdb").disks_below()), ["sdb"]);
    assert_eq!(names(&block(&machine, "sdb").holders()), ["md0"]);
}

#[test]
fn a_composed_device_is_described_by_its_kind() {
    assert_eq!(mapped("vg0-home", "LVM-Zy1"), "dm-0 (LVM volume vg0-home)");
    assert_eq!(mapped("secret", "CRYPT-LUKS2-1"), "dm-0 (encrypted volume secret)");
    assert_eq!(mapped("mpatha", "mpath-3600"), "dm-0 (multipath device mpatha)");
    assert_eq!(mapped("linear", ""), "dm-0 (device mapper, linear)");
    let machine = Machine::with_disk();
    machine.write("sys/devices/block/sda/md/level", "raid10");
    assert_eq!(block(&machine, "sda").described(), "sda (MD array, raid10)");
    assert_eq!(block(&machine, "sda1").described(), "sda1", "nothing is to be said of it");
}

#[test]
fn namespaces_beside_are_those_of_the_same_controller_and_no_partitions() {
    let machine = Machine::with_disk();
    let others = ["nvme0n1", "nvme0n2", "nvme0n11", "nvme1n1", "nvme10n1", "nvme0c0n1"];
    for (name, minor) in others.into_iter().zip(0..) {
        machine.block(name, name, &format!("259:{minor}"));
    }
    machine.block("nvme0n1/nvme0n1p1", "nvme0n1p1", "259:20");
    assert_eq!(block(&machine, "nvme0n1").namespaces_beside(), ["nvme0n11", "nvme0n2"]);
    assert_eq!(block(&machine, "nvme1n1").namespaces_beside(), [""; 0]);
    assert_eq!(block(&machine, "sda").namespaces_beside(), [""; 0]);
}

#[test]
fn a_drive_is_told_to_be_nvme_ata_or_behind_usb() {
    let machine = Machine::with_disk();
    machine.block("nvme0n1", "nvme0n1", "259:0");
    machine.write("sys/devices/block/sda/device/vendor", "ATA     ");
    machine.block("usb2/2-1/host6/sdb", "sdb", "8:16");
    machine.write("sys/devices/block/usb2/2-1/host6/sdb/device/vendor", "SanDisk");
    let kinds = |name: &str| {
        let block = block(&machine, name);
        (block.is_nvme(), block.is_ata(), block.is_on_usb())
    };
    assert_eq!(kinds("nvme0n1"), (true, false, false));
    assert_eq!(kinds("sda"), (false, true, false));
    assert_eq!(kinds("sda1"), (false, true, false), "a partition is of its disk's kind");
    assert_eq!(kinds("sdb"), (false, false, true));
}

#[test]
fn counters_are_read_from_old_kernels_and_new_ones() {
    let machine = Machine::with_disk();
    let stat = "sys/devices/block/sda/stat";
    let counts = || block(&machine, "sda").counts();
    assert_eq!(counts(), None, "sysfs has no counters");
    // Linux 4.18 added discards behind the first eleven numbers, 5.5 flushes behind those.
    let old = "  10  1  800  7  20  2  1600  30  0  37  44";
    machine.write(stat, old);
    let found = counts().unwrap();
    let expected = DiskCounts {
        reads: 10,
        writes: 20,
        sectors_read: 800,
        sectors_written: 1600,
        spent_ms: 37,
    };
    assert_eq!(found, expected);
    assert_eq!((found.requests(), found.bytes()), (30, 2400 * 512));
    machine.write(stat, &format!("{old} 5 0 4096 1 2 3"));
    assert_eq!(counts(), Some(expected));
    machine.write(stat, "10 1 800 7 20 2 1600");
    assert_eq!(counts(), None, "it ends before the time of the writes");
}

#[test]
fn a_link_speed_is_that_of_the_nearest_ancestor_that_has_one() {
    let machine = Machine::with_disk();
    let bridge = "sys/devices/block/0000:00:1c.0";
    machine.block("0000:00:1c.0/0000:01:00.0/nvme/nvme0/nvme0n1", "nvme0n1", "259:0");
    machine.write(&format!("{bridge}/current_link_speed"), "2.5 GT/s PCIe");
    let drive = block(&machine, "nvme0n1");
    assert_eq!(drive.inherited("current_link_speed").as_deref(), Some("2.5 GT/s PCIe"));
    machine.write(&format!("{bridge}/0000:01:00.0/current_link_speed"), "16.0 GT/s PCIe");
    assert_eq!(drive.inherited("current_link_speed").as_deref(), Some("16.0 GT/s PCIe"));
    machine.write(&format!("{bridge}/0000:01:00.0/current_link_speed"), "");
    assert_eq!(drive.inherited("current_link_speed").as_deref(), Some("2.5 GT/s PCIe"));
    assert_eq!(drive.inherited("max_link_width"), None);
}

#[test]
fn a_namespace_of_several_controllers_inherits_from_the_first_that_tells() {
    let machine = Machine::with_disk();
    let subsystem = "sys/devices/block/nvme-subsystem/nvme-subsys0";
    machine.block("nvme-subsystem/nvme-subsys0/nvme0n1", "nvme0n1", "259:0");
    for controller in ["nvme0", "nvme1"] {
        let folder = format!("sys/devices/pci0000:00/{controller}");
        machine.write(&format!("{folder}/state"), "live");
        machine.link_to(&folder, &format!("{subsystem}/{controller}"));
    }
    let drive = block(&machine, "nvme0n1");
    assert_eq!(drive.inherited("current_link_width"), None);
    machine.write("sys/devices/pci0000:00/nvme1/current_link_width", "4");
    assert_eq!(drive.inherited("current_link_width").as_deref(), Some("4"));
    machine.write("sys/devices/pci0000:00/nvme1/hwmon3/temp1_input", "46850");
    assert_eq!(drive.temperature_c(), Some(46), "its sensor hangs on a controller too");
}

#[test]
fn a_sensor_that_says_no_number_tells_nothing() {
    let machine = Machine::with_disk();
    let sensor = "sys/devices/block/sda/device/hwmon/hwmon0";
    machine.write(&format!("{sensor}/temp1_input"), "N/A");
    let disk = block(&machine, "sda");
    assert_eq!((disk.temperature_c(), disk.power_w()), (None, None));
    machine.write(&format!("{sensor}/temp1_input"), "-1000");
    assert_eq!(disk.temperature_c(), Some(-1), "a drive may be colder than ice");
    machine.write(&format!("{sensor}/temp1_crit"), "84850");
    assert_eq!(disk.temperature_critical_c(), Some(84));
    assert_eq!(disk.temperature_warning_c(), None);
}
