//! Targets that are refused before fio is asked anything.

use std::fs;

use lab::target::nbd::Export;
use lab::target::system::DeviceNumber;
use results::TargetKind;
use tempfile::TempDir;

use super::*;
use crate::machine_fixture::Machine;

fn sized(bytes: u64) -> Access {
    Access { size: Some(Bytes(bytes)), destroy: true, ..Access::default() }
}

/// Text and remedy with which `address` is refused.
fn refused(address: &Address, access: &Access) -> (String, String) {
    let error = open(address, access, false).unwrap_err();
    (error.to_string(), error.remedy().to_owned())
}

fn fleet(path: &str) -> Address {
    Address::Fleet { hosts: Hosts::parse("a,b").unwrap(), path: path.into() }
}

#[test]
fn a_size_is_given_to_files_alone() {
    let group = Address::Group {
        name: "/dev/sda,/dev/sdb".into(),
        paths: vec!["/dev/sda".into(), "/dev/sdb".into()],
    };
    let export = Address::Export("nbd://localhost/disk".into());
    for (address, said) in [
        (group, "/dev/sda,/dev/sdb: a group of devices has its own size"),
        (export, "nbd://localhost/disk: an NBD server has its own size"),
        (fleet("/dev/sdb"), "/dev/sdb: a target on other hosts has its own size"),
    ] {
        let (text, remedy) = refused(&address, &sized(1 << 30));
        assert_eq!((text.as_str(), remedy.as_str()), (said, "leave out --size"));
    }
    let permit = Permit::of_null("/dev/sda");
    let path = Path::new("/dev/sda");
    let error = resize(path, &sized(1 << 30), &permit, false).unwrap_err();
    assert_eq!(error.to_string(), "/dev/sda: a block device has its own size");
    resize(path, &Access::default(), &permit, false).unwrap();
}

#[test]
fn a_server_that_this_machine_reaches_is_not_looked_for_on_others() {
    let (text, remedy) = refused(&fleet("nbd://store/disk"), &Access::default());
    assert_eq!(text, "nbd://store/disk is measured from this machine, not from a, b");
    assert_eq!(remedy, "leave out --client");
}

#[test]
fn hosts_that_cannot_be_seen_from_here_need_leave_to_be_destroyed() {
    let (text, remedy) = refused(&fleet("/dev/sdb"), &Access::default());
    assert!(text.contains("who uses it on a, b"), "{text}");
    assert!(remedy.contains("--destroy"), "{remedy}");
}

#[test]
fn an_address_of_a_server_that_is_none_is_refused_before_it_is_called() {
    let (text, remedy) = refused(&Address::Export("nbds://host/disk".into()), &Access::default());
    assert!(text.ends_with("only nbd and nbd+unix can be measured"), "{text}");
    assert!(remedy.contains("nbd://localhost:10809/name"), "{remedy}");
}

#[test]
fn a_file_is_made_once_and_only_where_there_is_none() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("disk.img");
    let address = Address::Local(path.clone());
    assert_eq!(make_if_absent(&address, &sized(1 << 20)).unwrap(), Some(path.clone()));
    assert_eq!(fs::read(&path).unwrap(), [0; 0], "its size comes later");
    fs::write(&path, "kept").unwrap();
    assert_eq!(make_if_absent(&address, &sized(1 << 20)).unwrap(), None);
    assert_eq!(fs::read(&path).unwrap(), b"kept");
    let elsewhere = Address::Export("nbd://localhost/disk".into());
    assert_eq!(make_if_absent(&elsewhere, &sized(1 << 20)).unwrap(), None);
}

#[test]
fn a_file_in_a_folder_that_is_not_there_is_refused_with_what_to_name() {
    let address = Address::Local("/nowhere/disk.img".into());
    let error = make_if_absent(&address, &sized(1 << 20)).unwrap_err();
    assert_eq!(error.to_string(), "making the file /nowhere/disk.img");
    assert_eq!(error.remedy(), "name a file in a folder that exists and can be written to");
}

#[test]
fn a_file_without_room_is_refused_before_there_is_one() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("disk.img");
    let error = make_if_absent(&Address::Local(path.clone()), &sized(1 << 60)).unwrap_err();
    assert!(error.to_string().contains("its file system has"), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_file_is_given_the_size_that_was_asked_for_or_keeps_its_own() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("disk.img");
    fs::write(&path, vec![0; 4096]).unwrap();
    let length = || fs::metadata(&path).unwrap().len();
    let permit = guard::permit(&path, true).unwrap();
    resize(&path, &Access::default(), &permit, false).unwrap();
    assert_eq!(length(), 4096, "it was there before");
    resize(&path, &sized(1 << 20), &permit, false).unwrap();
    assert_eq!(length(), 1 << 20);
    let error = resize(&path, &sized(1 << 60), &permit, false).unwrap_err().to_string();
    assert!(error.contains("its file system has"), "{error}");
    assert_eq!(length(), 1 << 20, "nothing was done");
}

#[test]
fn a_target_with_nothing_on_it_is_told_where_to_look() {
    let machine = Machine::with_disk();
    let (number, node) = (DeviceNumber { major: 8, minor: 1 }, "/dev/sda1");
    let device = Site::of_device(machine.system(), node.into(), Permit::of_null(node), number);
    let said = |address: &Address, site: &Site| {
        let error = too_small(address, site);
        assert_eq!(error.kind(), Kind::Input);
        (error.to_string(), error.remedy().to_owned())
    };
    let (text, remedy) = said(&Address::Local(node.into()), &device);
    assert_eq!(text, "/dev/sda1 holds 0 B, too little to measure");
    assert!(remedy.starts_with("`lsblk` shows"), "{remedy}");

    let name = "nbd://localhost/empty";
    let export = Export {
        capacity_bytes: 4096,
        sector_bytes: 512,
        read_only: false,
        trims: true,
        many_connections: false,
    };
    let server = Site::of_export(name, Uri::parse(name).unwrap(), export);
    let (text, remedy) = said(&Address::Export(name.into()), &server);
    assert_eq!(text, "nbd://localhost/empty holds 4 KiB, too little to measure");
    assert!(remedy.starts_with("`nbdinfo --list`"), "{remedy}");

    let hosts = Hosts::parse("a,b").unwrap();
    let site = Site::of_fleet(Path::new("/dev/sdb"), &hosts, 0);
    assert_eq!(site.target().kind(), TargetKind::Remote);
    assert!(said(&fleet("/dev/sdb"), &site).1.starts_with("check on each host"));
}
