//! Linux of an emulated machine with a served volume as its virtio-blk device, over vhost-user; the
//! server is killed in the middle of writes, and started again.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::nvme_tcp::{first_files, listen};
use super::{Running, kernel, lines_of, one_processor};
use crate::{fio_is_missing, skip};

/// Programs that the guest runs.
const PROGRAMS: [&str; 11] = [
    "sh",
    "mount",
    "umount",
    "cat",
    "sleep",
    "insmod",
    "fio",
    "blkdiscard",
    "mkfs.ext4",
    "fsck.ext4",
    "sync",
];
/// Modules of the kernel, each after those that it needs.
const MODULES: [&str; 6] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "virtio_blk",
];

/// A server of a volume at a socket; it listens once this returns.
fn serve(volume: &Path, socket: &Path) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .arg("serve")
        .arg(volume)
        .arg("--vhost-user")
        .arg(socket)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("vhost-user-blk:"), "{line}");
    Running(child)
}

fn machine(folder: &Path, kernel: &Path, socket: &Path) -> Child {
    let socket = format!("socket,id=drive,path={},reconnect=1", socket.display());
    Command::new("taskset")
        .args(["--cpu-list", &one_processor(), "qemu-system-x86_64"])
        .args(["-nodefaults", "-no-user-config", "-nographic", "-serial", "stdio"])
        .args(["-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "512M"])
        .args(["-object", "memory-backend-memfd,id=memory,size=512M,share=on"])
        .args(["-machine", "q35,memory-backend=memory"])
        .args(["-chardev", &socket, "-device", "vhost-user-blk-pci,chardev=drive,num-queues=2"])
        .args(["-append", "console=ttyS0 quiet panic=1 mitigations=off"])
        .args([Path::new("-kernel"), kernel])
        .args([Path::new("-initrd"), &folder.join("initramfs")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(folder.join("qemu")).unwrap())
        .spawn()
        .unwrap()
}

fn created(folder: &Path) -> PathBuf {
    let volume = folder.join("volume");
    let dies = ["a", "b", "c"].map(|name| folder.join(name).display().to_string());
    let created = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .arg("create")
        .arg(&volume)
        .args(["--dies", &dies.join(","), "--size", "64m"])
        .output()
        .unwrap();
    assert!(created.status.success(), "{created:?}");
    volume
}

#[test]
fn linux_uses_a_volume_over_vhost_user_and_a_killed_server_loses_no_request() {
    if fio_is_missing() {
        return;
    }
    let Some(kernel) = kernel() else { return };
    for program in ["qemu-system-x86_64", "taskset"] {
        if Command::new(program).arg("-V").output().is_err() {
            skip(&format!("{program} is not installed"));
            return;
        }
    }
    let script = include_bytes!("vhost_user.sh");
    let Some(archive) = first_files(&kernel, (&PROGRAMS, &MODULES), script) else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("initramfs"), archive).unwrap();
    let (volume, socket) = (created(folder.path()), folder.path().join("socket"));
    let mut server = serve(&volume, &socket);
    let mut guest = Running(machine(folder.path(), &kernel, &socket));
    let lines = lines_of(&mut guest.0);
    let said = listen(&lines, |word| {
        if word == "kill the server" {
            server.0.kill().unwrap();
            server.0.wait().unwrap();
            server = serve(&volume, &socket);
        }
    });
    for (name, text) in said.iter().filter(|(name, _)| *name != "boot" && *name != "fio") {
        assert!(!text.contains("I/O error"), "{name}: {text}");
        // What fio says comes after the word at which the server is killed.
        assert!(text.ends_with("guest: exit 0\n"), "{name}: {text}");
    }
    assert!(said["size"].starts_with("125000\n"), "{}", said["size"]);
    assert!(said["cache"].starts_with("write back\n"), "{}", said["cache"]);
    let names = ["kill the server", "filesystem", "copy", "fsck"];
    assert!(names.iter().all(|name| said.contains_key(*name)), "{:?}", said.keys());
}
