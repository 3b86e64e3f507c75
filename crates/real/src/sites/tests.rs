//! Several devices that are measured as one, on a machine made of plain files.

use lab::target::system::DeviceNumber;
use results::{TargetKind, WarningKind};

use super::*;
use crate::guard::Permit;
use crate::machine_fixture::Machine;

/// A machine with `sda` to `sdc`, of these models.
fn machine(models: [&str; 3]) -> Machine {
    let machine = Machine::with_disk();
    machine.block("sdb", "sdb", "8:16");
    machine.block("sdc", "sdc", "8:32");
    for (disk, model) in ["sda", "sdb", "sdc"].into_iter().zip(models) {
        machine.write(&format!("sys/devices/block/{disk}/size"), "2097152");
        machine.write(&format!("sys/devices/block/{disk}/device/model"), model);
    }
    machine
}

/// The three disks of `machine` as one target.
fn group(machine: &Machine) -> Sites {
    Sites::of_group("/dev/sd[a-c]", [0, 16, 32].map(|minor| site(machine, minor)).into())
}

fn site(machine: &Machine, minor: u32) -> Site {
    let number = DeviceNumber { major: 8, minor };
    let node = machine.system().block(number).unwrap().node();
    Site::of_device(machine.system(), node.clone(), Permit::of_null(node), number)
}

/// Writes what the sensor of `disk` says in `file`.
fn sense(machine: &Machine, disk: &str, file: &str, value: &str) {
    machine.write(&format!("sys/devices/block/{disk}/device/hwmon/hwmon0/{file}"), value);
}

fn title(models: [&str; 3]) -> String {
    group(&machine(models)).described().title
}

#[test]
fn one_target_is_no_group_and_keeps_its_name() {
    let machine = machine(["X1"; 3]);
    let alone = Sites::from(site(&machine, 0));
    assert_eq!((alone.count(), alone.group().len()), (1, 0));
    let target = alone.described();
    assert_eq!((target.name.as_str(), target.title.as_str()), ("/dev/sda", "X1"));
    assert_eq!(target.devices, 1);
    assert!(target.sheet.iter().all(|row| row.group == "Device"), "{:?}", target.sheet);
    assert_eq!(alone.beside(0), "", "there is nothing beside it");
}

#[test]
fn a_group_is_one_target_of_the_capacity_of_each() {
    let machine = machine(["X1"; 3]);
    let all = group(&machine);
    assert_eq!((all.count(), all.capacity_bytes()), (3, 1 << 30));
    let paths = ["/dev/sda", "/dev/sdb", "/dev/sdc"].map(PathBuf::from);
    assert_eq!(all.group(), paths);
    let names: Vec<String> = all.devices().iter().map(Block::node).collect();
    assert_eq!(names, ["/dev/sda", "/dev/sdb", "/dev/sdc"]);
    let target = all.described();
    assert_eq!((target.kind, target.devices), (TargetKind::BlockDevice, 3));
    assert_eq!((target.name.as_str(), target.user_capacity_bytes), ("/dev/sd[a-c]", 1 << 30));
    let groups: Vec<&str> = target.sheet.iter().map(|row| row.group.as_str()).collect();
    for name in ["Device /dev/sda", "Device /dev/sdb", "Device /dev/sdc"] {
        assert!(groups.contains(&name), "{groups:?}");
    }
    assert_eq!((all.beside(1).as_str(), all.beside(3).as_str()), (" (/dev/sdb)", ""));
}

#[test]
fn a_group_is_titled_by_its_models_each_named_once() {
    assert_eq!(title(["X1", "X1", "X1"]), "3 x X1");
    assert_eq!(title(["X1", "X1", "X2"]), "X1 and X2");
    assert_eq!(title(["X1", "X2", "X1"]), "X1 and X2", "in whatever order they stand");
    assert_eq!(title(["X1", "X2", "X3"]), "X1 and X2 and X3");
}

#[test]
fn the_hottest_device_counts_and_the_first_to_become_critical_ends_the_load() {
    let machine = machine(["X1"; 3]);
    let all = group(&machine);
    let none = all.temperature_limit(None).unwrap();
    assert_eq!((none.max_c, none.is_asked), (None, false));
    assert_eq!(all.sensed_under_load(none), SensorReadings::default());
    for (disk, celsius, critical) in [("sda", 41, 85), ("sdb", 52, 75)] {
        sense(&machine, disk, "temp1_input", &format!("{celsius}000"));
        sense(&machine, disk, "temp1_crit", &format!("{critical}000"));
    }
    let limit = all.temperature_limit(None).unwrap();
    assert_eq!(limit.max_c, Some(75));
    assert_eq!(all.sensed_under_load(limit).temperature_c, Some(52), "sdc tells nothing");
}

#[test]
fn the_power_of_a_group_is_the_mean_of_the_devices_that_tell_it() {
    let machine = machine(["X1"; 3]);
    let all = group(&machine);
    let power_w = || all.sensed_under_load(all.temperature_limit(None).unwrap()).power_w;
    assert_eq!(power_w(), None);
    sense(&machine, "sda", "power1_input", "6000000");
    sense(&machine, "sdc", "power1_input", "9000000");
    assert_eq!(power_w(), Some(7.5));
}

#[test]
fn a_warning_of_every_device_stands_once_and_one_of_some_with_their_names() {
    let machine = machine(["X1", "QEMU HARDDISK", "X1"]);
    let warned = |all: &Sites| {
        let warnings = all.warnings(true);
        let of = |it: &Warning| (it.kind, it.text.chars().take(27).collect::<String>());
        warnings.iter().map(of).collect::<Vec<_>>()
    };
    let own = warned(&group(&machine));
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(own[0].1.starts_with("/dev/sdb: the disk is virt"), "{own:?}");
    machine.write("proc/cpuinfo", "processor : 0\nmodel name : X\nflags : fpu hypervisor sse");
    let both = warned(&group(&machine));
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both.iter().all(|(kind, _)| *kind == WarningKind::Environment), "{both:?}");
    assert!(!both[0].1.starts_with("/dev/"), "the machine is that of all: {both:?}");
    assert_eq!(both[1], own[0]);
}

#[test]
fn a_device_that_shrank_is_named_among_the_others() {
    let machine = machine(["X1"; 3]);
    let all = group(&machine);
    all.check_still().unwrap();
    machine.write("sys/devices/block/sdb/size", "1048576");
    let error = all.check_still().unwrap_err().to_string();
    assert_eq!(error, "/dev/sdb shrank from 1.07 GB to 512 MiB");
    all.check_space().unwrap();
    assert!(!all.has_holes(1 << 30), "devices have none");
}

#[test]
#[should_panic(expected = "a group has several devices")]
fn one_device_is_no_group() {
    Sites::of_group("/dev/sda", vec![site(&machine(["X1"; 3]), 0)]);
}
