//! Linux and nvme-cli of an emulated machine with a served volume as its NVMe drive on PCI Express,
//! over vfio-user.
//!
//! ```text
//! first life:   pages ─► commands ─► operations ─► reset ─► ext4 ─► the server is killed: no drive
//! second life:  what was synced is there ─► another drive is resized, and shut down
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;

use super::emulator::emulator_is_missing;
use super::linux::{self, Said, listen, serve};
use super::nvme::{self, check_commands, check_operations, check_pages, field, status};
use super::{PATIENCE, Running, kernel, lines_of};
use crate::fio_is_missing;

/// Programs that the guest runs.
const PROGRAMS: [&str; 18] = [
    "sh",
    "mount",
    "umount",
    "cat",
    "sleep",
    "dd",
    "cmp",
    "cut",
    "grep",
    "tee",
    "dmesg",
    "insmod",
    "nvme",
    "smartctl",
    "fio",
    "blkdiscard",
    "mkfs.ext4",
    "fsck.ext4",
];
/// The driver, where it is not built in.
const MODULES: [&str; 0] = [];
/// Words for the kernel: a queue without interrupts, and seconds that a lost drive has to answer.
const WORDS: &str = "nvme.poll_queues=1 nvme_core.io_timeout=3";

/// An emulated machine of two processors, with the drives of vfio-user sockets.
pub(super) fn machine(folder: &Path, kernel: &Path, (sockets, life): (&[&Path], u32)) -> Child {
    let drives = sockets.iter().map(|socket| {
        let (kind, path) = ("vfio-user-pci", socket.display());
        format!(r#"{{"driver":"{kind}","socket":{{"type":"unix","path":"{path}"}}}}"#)
    });
    let drives: Vec<String> = drives.flat_map(|drive| ["-device".to_owned(), drive]).collect();
    let mut devices = vec![
        "-smp",
        "2",
        "-machine",
        "q35,memory-backend=mem",
        "-object",
        "memory-backend-memfd,id=mem,size=1G,share=on",
        "-trace",
        "vfio_region_write",
    ];
    devices.extend(drives.iter().map(String::as_str));
    linux::machine(folder, kernel, (&devices, &format!("{WORDS} life={life}")))
}

/// Doorbells of completion queues for I/O that the machine rang so far.
fn rung(folder: &Path) -> usize {
    let traced = fs::read_to_string(folder.join("qemu")).unwrap();
    // Such as `vfio_region_write  (vfio-user:/run/s.sock:region0+0x100c, 0x5, 4)`.
    let offsets = traced.lines().filter_map(|line| {
        let (_, place) = line.split_once(":region0+0x").filter(|_| line.contains("_write"))?;
        u64::from_str_radix(place.split(',').next()?, 16).ok()
    });
    offsets.filter(|offset| *offset > 0x1008 && *offset % 8 == 4).count()
}

struct Rig {
    folder: tempfile::TempDir,
    kernel: PathBuf,
    volume: PathBuf,
}

impl Rig {
    /// None if something is missing.
    fn new() -> Option<Self> {
        if fio_is_missing() || emulator_is_missing() {
            return None;
        }
        let kernel = kernel()?;
        let script = [nvme::STEPS, include_bytes!("vfio_user.sh")].concat();
        let archive = linux::first_files(&kernel, (&PROGRAMS, &MODULES), &script)?;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("initramfs"), archive.finished()).unwrap();
        let exports = ["--size", "192m", "--export", "data=128m", "--export", "logs=32m"];
        let volume = linux::volume(folder.path(), &exports);
        Some(Self { folder, kernel, volume })
    }

    /// Serves a volume. Returns the socket, too.
    fn serve(volume: &Path) -> (Running, PathBuf) {
        let socket = volume.with_extension("sock");
        let (server, line) = serve(volume, &["--vfio-user", socket.to_str().unwrap()]);
        assert!(line.starts_with("vfio-user:"), "{line}");
        (server, socket)
    }

    /// Boots the machine, and returns what it says.
    fn live(&self, sockets: &[&Path], life: u32, mut at_word: impl FnMut(&str)) -> Said {
        let mut guest = Running(machine(self.folder.path(), &self.kernel, (sockets, life)));
        let lines = lines_of(&mut guest.0);
        listen(&lines, PATIENCE, &mut at_word)
    }
}

#[test]
fn linux_uses_a_volume_over_vfio_user_and_a_killed_server_is_a_drive_that_was_pulled() {
    let Some(rig) = Rig::new() else { return };
    let (mut server, socket) = Rig::serve(&rig.volume);
    let (mut then, mut rings) = (Value::Null, Vec::new());
    let said = rig.live(&[&socket], 1, |word| match word {
        "list" => then = status(&rig.volume),
        "many commands" | "few doorbells" => rings.push(rung(rig.folder.path())),
        "kill the server" => {
            server.0.kill().unwrap();
            server.0.wait().unwrap();
        }
        _ => {}
    });
    let words = ["many commands", "few doorbells", "kill the server"];
    check_commands(&said, &words, 50);
    check_pages(&said, &then);
    check_operations(&said);
    check_machine(&said);
    // 2048 commands at least; without a doorbell buffer the driver would ring for most of them.
    let rung = rings[1] - rings[0];
    assert!(rung < 64, "{rung} doorbells of completion queues");
    check_second_life(&rig, &said);
}

/// Boots the machine again with the drive that it lost, and one of a volume of one export.
fn check_second_life(rig: &Rig, first: &Said) {
    let folder = rig.folder.path().join("other");
    fs::create_dir(&folder).unwrap();
    let other = linux::volume(&folder, &["--size", "64m"]);
    let (_server, socket) = Rig::serve(&rig.volume);
    let (_of_other, of_other) = Rig::serve(&other);
    let resize = |word: &str| {
        if word == "resize the other" {
            let resized = Command::new(env!("CARGO_BIN_EXE_floatgate"))
                .args(["resize", "--while-served", "--size", "72m"])
                .arg(&other)
                .output()
                .unwrap();
            assert!(resized.status.success(), "{resized:?}");
        }
    };
    let said = rig.live(&[&socket, &of_other], 2, resize);
    let unsafe_shutdowns =
        |said, page| field(said, page, "unsafe_shutdowns").parse::<u64>().unwrap();
    assert_eq!(unsafe_shutdowns(&said, "smart again"), unsafe_shutdowns(first, "smart") + 1);
    for name in ["smart again", "before", "unbind"] {
        assert!(said[name].ends_with("guest: exit 0\n"), "{name}: {said:#?}");
    }
    // Whole pages of 4 KiB.
    assert_eq!(said["size"], format!("{}\nguest: exit 0\n", 72_000_000 / 4096 * 8));
    // 1: mistakes were corrected, such as the blocks of the file that was being written.
    let fsck = &said["fsck"];
    assert!(fsck.ends_with("guest: exit 0\n") || fsck.ends_with("guest: exit 1\n"), "{fsck}");
}

/// Checks what only hosts on PCI Express see.
fn check_machine(said: &Said) {
    assert!(said["queues"].contains("2/0/1 default/read/poll queues"), "{}", said["queues"]);
    assert!(said["interrupts"].contains("nvme0q2"), "{}", said["interrupts"]);
    let health = "SMART overall-health self-assessment test result: PASSED";
    assert!(said["smartctl"].contains(health), "{}", said["smartctl"]);
    assert!(said["smartctl"].contains("Drbl_Bf_Cfg"), "{}", said["smartctl"]);
    assert!(said["ways to reset"].contains("flr"), "{}", said["ways to reset"]);
    for (name, value) in [("blocks of 4096", 4096), ("blocks of 512", 512)] {
        assert_eq!(said[name], format!("{value}\nguest: exit 0\n"), "{name}");
    }
}
