//! Linux of an emulated machine writes to a served volume over vhost-user-blk, and never flushes;
//! the server is killed again and again, and started anew.

use std::fs;
use std::path::Path;
use std::process::{Child, Output};

use super::emulator::{emulator, emulator_is_missing};
use super::linux::{self, listen, serve};
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
    let drive = format!("socket,id=drive,path={},reconnect-ms=1000", socket.display());
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

/// A program of QEMU with these arguments, and the socket as its drive, without a machine.
fn without_machine(program: &str, arguments: &[&str], socket: &Path) -> Output {
    let drive = format!("driver=virtio-blk-vhost-user,cache.direct=on,path={}", socket.display());
    // The place of the drive among them is the program's.
    let arguments: Vec<&str> =
        arguments.iter().map(|it| if *it == "DRIVE" { drive.as_str() } else { *it }).collect();
    emulator(program).args(arguments).output().unwrap()
}

#[test]
fn qemu_img_and_qemu_io_use_a_volume_over_vhost_user_without_a_machine() {
    if emulator_is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let volume = linux::volume(folder.path(), &["--size", "64m"]);
    let (socket, image) = (folder.path().join("blk.sock"), folder.path().join("image"));
    let (_server, _) = serve(&volume, &["--vhost-user", socket.to_str().unwrap()]);
    let image = image.to_str().unwrap();
    let bytes: Vec<u8> = (0..=250).cycle().take(64_000_000).collect();
    fs::write(image, bytes).unwrap();
    let succeeds = |program: &str, arguments: &[&str]| {
        let output = without_machine(program, arguments, &socket);
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    succeeds("qemu-img", &["convert", "-n", "--target-image-opts", image, "DRIVE"]);
    let file = format!("driver=raw,file.driver=file,file.filename={image}");
    let same = succeeds("qemu-img", &["compare", "--image-opts", &file, "DRIVE"]);
    assert_eq!(same, "Images are identical.\n");
    let patterns = [
        ["-c", "write -P 7 20M 64k"],
        ["-c", "write -z 20512k 8k"],
        ["-c", "discard 1M 1M"],
        ["-c", "flush"],
        ["-c", "read -P 7 20M 32k"],
        ["-c", "read -P 0 20512k 8k"],
        ["-c", "read -P 0 1M 1M"],
    ];
    succeeds("qemu-io", &[&["--image-opts", "DRIVE"], &patterns.concat()[..]].concat());
    let differs = ["--image-opts", "DRIVE", "-c", "read -P 8 20M 32k"];
    assert!(!without_machine("qemu-io", &differs, &socket).status.success(), "the pattern is 7");
    let many = ["bench", "-w", "-c", "2000", "-d", "16", "-s", "4k", "--flush-interval", "500"];
    let said = succeeds("qemu-img", &[&many[..], &["--image-opts", "DRIVE"]].concat());
    assert!(said.contains("Run completed"), "{said}");
}
