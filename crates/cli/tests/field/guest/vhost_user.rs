//! Linux of an emulated machine writes to a served volume over vhost-user-blk, and never flushes;
//! the server is killed again and again, and started anew.

use std::fs;
use std::path::Path;
use std::process::Child;

use super::linux::{self, emulator_is_missing, listen, serve};
use super::{PATIENCE, Running, kernel, lines_of};
use crate::fio_is_missing;

/// Programs that the guest runs.
const PROGRAMS: [&str; 6] = ["sh", "mount", "cat", "sleep", "insmod", "fio"];
/// Modules of the kernel, each after those that it needs.
const MODULES: [&str; 6] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "virtio_blk",
];

/// An emulated machine with the drive of a vhost-user socket, to which it connects again.
fn machine(folder: &Path, kernel: &Path, socket: &Path) -> Child {
    let drive = format!("socket,id=drive,path={},reconnect=1", socket.display());
    let devices = [
        "-machine",
        "q35,memory-backend=mem",
        "-object",
        "memory-backend-memfd,id=mem,size=1G,share=on",
        "-chardev",
        &drive,
        "-device",
        "vhost-user-blk-pci,chardev=drive,num-queues=1",
    ];
    linux::machine(folder, kernel, (&devices, ""))
}

#[test]
fn linux_loses_nothing_over_vhost_user_however_often_the_server_is_killed() {
    if fio_is_missing() || emulator_is_missing() {
        return;
    }
    let Some(kernel) = kernel() else { return };
    let script = include_bytes!("vhost_user.sh");
    let Some(archive) = linux::first_files(&kernel, (&PROGRAMS, &MODULES), script) else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("initramfs"), archive.finished()).unwrap();
    let volume = linux::volume(folder.path(), &["--size", "64m"]);
    let socket = folder.path().join("blk.sock");
    let options = ["--vhost-user", socket.to_str().unwrap()];
    let (mut server, line) = serve(&volume, &options);
    assert!(line.starts_with("vhost-user-blk:"), "{line}");
    let mut guest = Running(machine(folder.path(), &kernel, &socket));
    let lines = lines_of(&mut guest.0);
    let mut kills = 0;
    let said = listen(&lines, PATIENCE, |word| {
        if word == "kill the server" {
            server.0.kill().unwrap();
            server.0.wait().unwrap();
            server = serve(&volume, &options).0;
            kills += 1;
        }
    });
    assert_eq!(kills, 4);
    let writing = said["kill the server"].matches("writing").count();
    assert_eq!(writing, 3, "the guest was at it: {said:#?}");
    assert_eq!(said["cache"], "write back\nguest: exit 0\n");
    assert_eq!(said["size"], format!("{}\nguest: exit 0\n", 64_000_000 / 512));
    for name in ["ended", "again"] {
        assert!(said[name].ends_with("guest: exit 0\n"), "{said:#?}");
    }
    for (name, text) in &said {
        assert!(!text.contains("I/O error"), "{name}: {text}");
    }
}
