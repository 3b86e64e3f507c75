//! Sites on machines made of plain files.

use super::*;
use crate::machine_fixture::Machine;

fn warned(site: &Site, direct: bool) -> Vec<(WarningKind, String)> {
    site.warnings(direct).into_iter().map(|warning| (warning.kind, warning.text)).collect()
}

fn disk_of(machine: &Machine) -> Site {
    let number = DeviceNumber { major: 8, minor: 0 };
    Site::of_device(machine.system(), "/dev/sda".into(), Permit::of_null("/dev/sda"), number)
}

fn file_on(machine: &Machine, path: &str) -> Site {
    let below = DeviceNumber { major: 8, minor: 2 };
    Site::of_file(machine.system(), path.into(), Permit::of_null(path), (below, 1 << 30))
}

#[test]
fn a_device_is_described_by_what_sysfs_tells() {
    let machine = Machine::with_disk();
    for (name, text) in [
        ("device/model", "EXAMPLE X1"),
        ("device/serial", "S1"),
        ("queue/logical_block_size", "4096"),
        ("queue/scheduler", "none [mq-deadline] kyber"),
        ("queue/discard_max_bytes", "1073741824"),
    ] {
        machine.write(&format!("sys/devices/block/sda/{name}"), text);
    }
    let site = disk_of(&machine);
    assert_eq!((site.target().sector_bytes(), site.target().discards()), (4096, true));
    let target = site.described();
    assert_eq!((target.kind, target.title.as_str()), (TargetKind::BlockDevice, "EXAMPLE X1"));
    assert_eq!(target.user_capacity_bytes, 1 << 30);
    let value =
        |name: &str| target.sheet.iter().find(|row| row.name == name).map(|row| row.value.as_str());
    assert_eq!(value("Serial number"), Some("S1"));
    assert_eq!(value("Scheduler"), Some("mq-deadline"));
    assert_eq!(value("PCIe link"), None, "what is not told is not listed");
}

#[test]
fn a_file_is_described_by_its_file_system_and_the_device_below() {
    let machine = Machine::with_disk();
    machine.mount("8:2", "/dev/sda2", "/srv");
    let site = file_on(&machine, "/srv/disk.img");
    assert_eq!(site.described().title, "/srv/disk.img on ext4");
    assert_eq!(site.target().device().unwrap().name(), "sda2");
    assert_eq!(warned(&site, true), []);
}

#[test]
fn a_refused_direct_open_is_a_warning_of_the_page_cache() {
    let machine = Machine::with_disk();
    machine.mount("8:2", "/dev/sda2", "/srv");
    let warnings = warned(&file_on(&machine, "/srv/disk.img"), false);
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].0, WarningKind::PageCache);
}

#[test]
fn a_file_in_memory_is_said_to_be_no_drive() {
    let machine = Machine::with_disk();
    machine.write("proc/self/mountinfo", "25 1 0:23 / /shm rw - tmpfs tmpfs rw");
    let warnings = warned(&file_on(&machine, "/shm/disk.img"), true);
    assert!(warnings[0].1.contains("is in memory"), "{warnings:?}");
}

#[test]
fn a_virtual_machine_and_a_saving_governor_are_warned_of() {
    let machine = Machine::with_disk();
    machine.write("proc/cpuinfo", "processor : 0\nmodel name : X\nflags : fpu hypervisor sse");
    let governor = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    machine.write(governor, "powersave");
    let warnings = warned(&disk_of(&machine), true);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    machine.write(governor, "performance");
    assert_eq!(warned(&disk_of(&machine), true).len(), 1);
}

#[test]
fn a_disk_made_of_software_is_warned_of() {
    let machine = Machine::with_disk();
    machine.write("sys/devices/block/sda/device/model", "QEMU NVMe Ctrl");
    let warnings = warned(&disk_of(&machine), true);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].1.starts_with("the disk is virtual (QEMU NVMe Ctrl)"), "{warnings:?}");
}

#[test]
fn a_link_that_carries_less_than_the_drive_could_is_warned_of() {
    let machine = Machine::with_disk();
    machine.block("nvme0n1", "nvme0n1", "259:0");
    // As a drive with two ports is shown: below its subsystem, beside links to its controllers.
    machine.write("sys/devices/pci/0000:01:00.0/nvme/nvme0/hwmon1/temp1_input", "41000");
    machine.link_to("sys/devices/pci/0000:01:00.0/nvme/nvme0", "sys/devices/block/nvme0");
    let site = || {
        let number = DeviceNumber { major: 259, minor: 0 };
        Site::of_device(
            machine.system(),
            "/dev/nvme0n1".into(),
            Permit::of_null("/dev/nvme0n1"),
            number,
        )
    };
    let links = |current: [&str; 2]| {
        let max = ["16.0 GT/s PCIe", "4"];
        for (which, [speed, width]) in [("current", current), ("max", max)] {
            let folder = "sys/devices/pci/0000:01:00.0";
            machine.write(&format!("{folder}/{which}_link_speed"), speed);
            machine.write(&format!("{folder}/{which}_link_width"), width);
        }
        warned(&site(), true).into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    assert_eq!(
        links(["8.0 GT/s PCIe", "4"]),
        ["the PCIe link runs at 8.0 GT/s PCIe, x4: the drive could use 16.0 GT/s PCIe, x4"]
    );
    assert_eq!(links(["16.0 GT/s PCIe", "2"]).len(), 1);
    assert_eq!(links(["16.0 GT/s PCIe", "4"]), [""; 0]);
    assert_eq!(links(["Unknown", "0"]), [""; 0], "behind some bridges nothing is told");
    let limit = site().temperature_limit(None).unwrap();
    assert_eq!(site().temperature_under_load_c(limit), Some(41));
}

#[test]
fn hosts_that_were_not_examined_are_said_to_be_unknown() {
    let hosts = Hosts::parse("a,b").unwrap();
    let site = Site::of_fleet("/dev/nvme0n1".as_ref(), &hosts, 1 << 30);
    let target = site.described();
    assert_eq!(
        (target.kind, target.devices, target.host.as_str()),
        (TargetKind::Remote, 2, "a, b")
    );
    assert!(warned(&site, true)[0].1.starts_with("only fio runs on a, b"));
    let sheet = site.environment("3.33").sheet;
    let names: Vec<&str> = sheet.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["Hosts", "fio"], "this machine does none of the work");
}

#[test]
fn a_device_that_others_use_is_busy() {
    let counts = |reads| {
        let (sectors_read, sectors_written, spent_ms) = (0, 0, 0);
        Some(DiskCounts { reads, writes: 7, sectors_read, sectors_written, spent_ms })
    };
    assert!(foreign_iops(counts(100), counts(130)) > IDLE_IOPS_MAX);
    assert!(foreign_iops(counts(100), counts(101)) < IDLE_IOPS_MAX);
    let machine = Machine::with_disk();
    let site = Site { foreign_iops: 100.0, ..disk_of(&machine) };
    assert!(warned(&site, true)[0].1.contains("100 requests a second"));
}

#[test]
fn the_machine_is_listed_as_far_as_it_is_known() {
    let machine = Machine::with_disk();
    machine.write("proc/cpuinfo", "processor : 0\nmodel name : X 9000\nprocessor : 1\nflags : fpu");
    machine.write("proc/meminfo", "MemTotal: 4194304 kB");
    machine.write("etc/os-release", "NAME=D\nPRETTY_NAME=\"Example Linux 12\"");
    let sheet = disk_of(&machine).environment("3.33, io_uring, direct").sheet;
    let rows: Vec<_> = sheet.iter().map(|row| (row.name.as_str(), row.value.as_str())).collect();
    assert_eq!(
        rows,
        [
            ("CPU", "X 9000, 2 logical processors"),
            ("Memory", "4.29 GB"),
            ("Distribution", "Example Linux 12"),
            ("fio", "3.33, io_uring, direct"),
        ]
    );
}

#[test]
fn no_load_goes_on_above_the_critical_temperature_or_the_one_that_was_asked_for() {
    let machine = Machine::with_disk();
    let sensor = "sys/devices/block/sda/device/hwmon/hwmon0";
    assert_eq!(disk_of(&machine).temperature_limit(None).unwrap().max_c, None);
    machine.write(&format!("{sensor}/temp1_input"), "41000");
    machine.write(&format!("{sensor}/temp1_crit"), "84850");
    let limit = |asked| disk_of(&machine).temperature_limit(asked).unwrap().max_c;
    assert_eq!((limit(None), limit(Some(70))), (Some(84), Some(70)));
}

#[test]
fn temperature_power_and_limits_are_what_the_sensors_of_the_drive_itself_tell() {
    let machine = Machine::with_disk();
    let sensed = |site: &Site| site.sensed_under_load(site.temperature_limit(None).unwrap());
    assert_eq!(sensed(&disk_of(&machine)), SensorReadings::default());
    assert_eq!(disk_of(&machine).described().limits, None);
    // What the processor draws is no power of the drive.
    machine.write("sys/class/powercap/intel-rapl:0/energy_uj", "123456789");
    machine.write("sys/class/hwmon/hwmon0/power1_input", "65000000");
    let sensor = "sys/devices/block/sda/device/hwmon/hwmon1";
    machine.write(&format!("{sensor}/temp1_input"), "41850");
    machine.write(&format!("{sensor}/temp1_max"), "69850");
    machine.write(&format!("{sensor}/temp1_crit"), "84850");
    let told = sensed(&disk_of(&machine));
    assert_eq!(told, SensorReadings { temperature_c: Some(41), power_w: None });
    let limits = disk_of(&machine).described().limits.unwrap();
    assert_eq!((limits.warning_c, limits.critical_c), (Some(69.0), Some(84.0)));
    assert_eq!((limits.throttle_c, limits.power_w), (None, None), "no sensor told them");
    machine.write(&format!("{sensor}/power1_input"), "7250000");
    assert_eq!(sensed(&disk_of(&machine)).power_w, Some(7.25));
}

#[test]
fn of_several_disks_the_hottest_counts_and_the_lowest_limit() {
    let machine = Machine::with_disk();
    machine.block("sdb", "sdb", "8:16");
    machine.block("dm-0", "dm-0", "253:0");
    for (disk, celsius, max) in [("sda", "40000", "70000"), ("sdb", "52000", "65000")] {
        machine.hold(disk, "dm-0");
        let sensor = format!("sys/devices/block/{disk}/device/hwmon/hwmon0");
        machine.write(&format!("{sensor}/temp1_input"), celsius);
        machine.write(&format!("{sensor}/temp1_max"), max);
    }
    machine.write("sys/devices/block/sda/device/hwmon/hwmon0/power1_input", "5000000");
    let number = DeviceNumber { major: 253, minor: 0 };
    let site =
        Site::of_device(machine.system(), "/dev/dm-0".into(), Permit::of_null("/dev/dm-0"), number);
    let told = site.sensed_under_load(site.temperature_limit(None).unwrap());
    assert_eq!(
        told,
        SensorReadings { temperature_c: Some(52), power_w: None },
        "sdb tells no power"
    );
    assert_eq!(site.described().limits.unwrap().warning_c, Some(65.0));
}

#[test]
fn a_limit_that_no_sensor_can_watch_is_refused() {
    let machine = Machine::with_disk();
    // No machine has it, so that no program of this one tells anything of it either.
    machine.block("absent", "absent", "8:99");
    let number = DeviceNumber { major: 8, minor: 99 };
    let site = Site::of_device(
        machine.system(),
        "/dev/absent".into(),
        Permit::of_null("/dev/absent"),
        number,
    );
    let refused = site.temperature_limit(Some(70)).unwrap_err();
    assert_eq!(refused.to_string(), "no sensor reports the temperature of /dev/absent");
}
