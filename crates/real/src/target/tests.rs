//! Targets that shrink, vanish, have holes, or need more room than there is.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom as From, Write as _};

use tempfile::TempDir;

use super::*;
use crate::guard;

/// A file of `size_bytes` of data, and the target that it is.
fn file(folder: &TempDir, size_bytes: usize) -> (PathBuf, Target) {
    let path = folder.path().join("disk.img");
    fs::write(&path, vec![7; size_bytes]).unwrap();
    let permit = guard::permit(&path, true).unwrap();
    (path, Target::Local(LocalTarget { permit, mount: None, device: None }))
}

fn export(sector_bytes: u64, trims: bool) -> Target {
    // No server listens there.
    let text = "nbd+unix:///disk?socket=/nowhere/nbd.sock";
    let export = Export {
        capacity_bytes: 1 << 30,
        sector_bytes,
        read_only: false,
        trims,
        many_connections: false,
    };
    Target::Export { text: text.into(), uri: Uri::parse(text).unwrap(), export }
}

fn fleet() -> Target {
    Target::Fleet { hosts: Hosts::parse("a,b").unwrap(), path: "/dev/sdb".into() }
}

fn mount() -> Mount {
    Mount {
        device: lab::target::system::DeviceNumber { major: 8, minor: 2 },
        point: "/srv".into(),
        file_system: "xfs".into(),
        source: "/dev/sda2".into(),
    }
}

#[test]
fn a_file_that_grew_is_still_there_and_one_that_shrank_is_told_by_how_much() {
    let folder = TempDir::new().unwrap();
    let (path, target) = file(&folder, 8192);
    target.check_still(8192).unwrap();
    let resized = |bytes| File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    resized(16_384);
    target.check_still(8192).unwrap();
    resized(4096);
    let error = target.check_still(8192).unwrap_err();
    assert_eq!(error.to_string(), format!("{} shrank from 8 KiB to 4 KiB", path.display()));
    assert_eq!(error.kind(), Kind::Io);
    assert!(
        error.remedy().ends_with("see dmesg, then continue with --resume"),
        "{}",
        error.remedy()
    );
    resized(0);
    let error = target.check_still(8192).unwrap_err().to_string();
    assert!(error.ends_with("is gone: it does not answer any more"), "{error}");
}

#[test]
fn a_server_that_does_not_answer_is_gone_and_hosts_are_not_asked() {
    let error = export(512, true).check_still(1 << 30).unwrap_err().to_string();
    assert!(error.ends_with("is gone: it does not answer any more"), "{error}");
    fleet().check_still(1 << 30).unwrap();
}

#[test]
fn a_device_that_left_sysfs_is_gone() {
    let machine = crate::machine_fixture::Machine::with_disk();
    let device = machine.system().block_at(Path::new("/dev/sda"));
    let permit = Permit::of_null("/dev/sda");
    let target = Target::Local(LocalTarget { permit, mount: None, device });
    target.check_still(1 << 30).unwrap();
    // As after a namespace was formatted to half of it.
    machine.write("sys/devices/block/sda/size", "1048576");
    let error = target.check_still(1 << 30).unwrap_err().to_string();
    assert_eq!(error, "/dev/sda shrank from 1.07 GB to 512 MiB");
    drop(machine);
    let error = target.check_still(1 << 30).unwrap_err().to_string();
    assert_eq!(error, "/dev/sda is gone: it does not answer any more");
}

#[test]
fn a_file_has_holes_below_an_end_where_something_was_never_written() {
    let folder = TempDir::new().unwrap();
    let (path, target) = file(&folder, 1 << 20);
    assert!(!target.has_holes(1 << 20), "the end of a file is no hole within it");
    let mut open = File::options().write(true).open(&path).unwrap();
    open.seek(From::Start(4 << 20)).unwrap();
    open.write_all(&[7; 4096]).unwrap();
    assert!(target.has_holes(4 << 20));
    assert!(!target.has_holes(1 << 20), "not in the part that is addressed");
    assert!(!export(512, true).has_holes(1 << 30), "of an unknown server");
}

#[test]
fn a_file_that_its_file_system_cannot_hold_is_refused_with_a_size_that_fits() {
    let path = Path::new("/srv/disk.img");
    let refused = |missing, free| check_room(path, Bytes(missing), Bytes(free)).unwrap_err();
    check_room(path, Bytes(5), Bytes(5)).unwrap();
    check_room(path, Bytes(0), Bytes(0)).unwrap();
    let error = refused(2_000_000_000, 1_000_000_000);
    assert_eq!(error.to_string(), "/srv/disk.img needs 2 GB more, its file system has 1 GB free");
    // Nine tenths of it, in MiB.
    let hint = "name a file on a file system with more space, or a smaller size: --size 858MiB";
    assert_eq!((error.kind(), error.remedy()), (Kind::Io, hint));
    let error = refused(2_000_000_000, 1_000_000);
    assert_eq!(error.remedy(), "name a file on a file system with more space");
}

#[test]
fn room_is_needed_for_what_a_file_has_not_taken_yet() {
    let folder = TempDir::new().unwrap();
    let (_, target) = file(&folder, 1 << 20);
    target.check_space(1 << 20).unwrap();
    let error = target.check_space(1 << 60).unwrap_err().to_string();
    assert!(error.contains("needs 1152921.50 TB more"), "{error}");
    export(512, true).check_space(1 << 60).unwrap();
    fleet().check_space(1 << 60).unwrap();
}

#[test]
fn the_smallest_transfer_is_512_bytes_where_it_is_unknown() {
    let folder = TempDir::new().unwrap();
    let (_, file) = file(&folder, 4096);
    assert_eq!((file.sector_bytes(), fleet().sector_bytes()), (512, 512));
    assert_eq!(export(4096, true).sector_bytes(), 4096);
    assert!(!file.discards() && !fleet().discards());
    assert!(export(512, true).discards() && !export(512, false).discards());
}

#[test]
fn each_kind_of_target_is_told_apart_in_the_result() {
    let folder = TempDir::new().unwrap();
    let (path, bare) = file(&folder, 4096);
    assert_eq!(bare.kind(), TargetKind::BlockDevice, "nothing is mounted below it");
    assert!(bare.is_here() && bare.file().is_some() && bare.mount().is_none());
    assert_eq!(bare.path(), fs::canonicalize(&path).unwrap());
    let permit = Permit::of_null("/srv/disk.img");
    let within = Target::Local(LocalTarget { permit, mount: Some(mount()), device: None });
    assert_eq!(within.kind(), TargetKind::File);
    assert_eq!(within.mount(), Some(&mount()));
    for (target, kind, path) in [
        (export(512, true), TargetKind::Nbd, "nbd+unix:///disk?socket=/nowhere/nbd.sock"),
        (fleet(), TargetKind::Remote, "/dev/sdb"),
    ] {
        assert_eq!((target.kind(), target.path()), (kind, Path::new(path)));
        assert!(!target.is_here() && target.device().is_none() && target.file().is_none());
    }
    assert!(fleet().hosts().is_some() && fleet().export().is_none());
    assert!(export(512, true).export().is_some() && export(512, true).hosts().is_none());
}
