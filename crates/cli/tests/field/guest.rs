//! A whole machine, emulated, with an NVMe drive of two namespaces: the command, fio and nvme-cli
//! of this machine run there on a kernel of their own.
//!
//! ```text
//! first life:   refusals ─► too hot a run ─► review: purge, precondition, measurement ─► reset
//! second life:  the same review goes on
//! ```
//!
//! No hypervisor of the processor is used, so that it works inside a virtual machine too: a minute
//! of one core. The guest's clock counts instructions (`icount`), so that it sees no difference
//! between an idle host and a busy one. The kernel is the one that `cargo xtask test` unpacks below
//! `target/`.

mod archive;
mod emulator;
mod linux;
mod nvme;
mod nvme_cli;
mod nvme_tcp;
mod opal;
mod review;
mod ublk;
mod ublk_speed;
mod vfio_user;
mod vhost_user;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use self::archive::Archive;
use self::emulator::{emulator, emulator_is_missing};
use crate::{Measured, brief, fio_is_missing, skip};

const MIB: u64 = 1 << 20;
/// Environment variable with the path of the program that guests run instead of the one that was
/// built for the tests: measurements are of the release build.
const PROGRAM_VARIABLE: &str = "FLOATGATE_GUEST_PROGRAM";
/// Byte offset of the only partition of the home drive.
const PARTITION_BYTES: u64 = MIB;
/// Time limit for the guest, generous for a machine under load.
const PATIENCE: Duration = Duration::from_mins(6);
/// Programs that the guest runs.
const PROGRAMS: [&str; 13] = [
    "floatgate",
    "sh",
    "mount",
    "umount",
    "cat",
    "ln",
    "mkdir",
    "sleep",
    "sync",
    "fio",
    "nvme",
    "blkdiscard",
    "setpriv",
];

const MEASURED: [Measured; 1] =
    [Measured { workload: "4k-rand-read", threads: &[1], queues: &[1, 4], seconds: 3 }];

/// Folder of drive images and initial files of the machine, deleted when dropped, and its kernel.
struct Machine {
    folder: TempDir,
    kernel: PathBuf,
}

impl Machine {
    /// Makes the drives and the first file system; nothing where something is missing.
    fn new() -> Option<Self> {
        let kernel = kernel()?;
        if emulator_is_missing() {
            return None;
        }
        for program in ["debugfs", "mkfs.ext4"] {
            if Command::new(program).arg("-V").output().is_err() {
                skip(&format!("{program} is not installed"));
                return None;
            }
        }
        let machine = Self { folder: tempfile::tempdir().unwrap(), kernel };
        fs::write(machine.path("initramfs"), first_files()?).unwrap();
        let files = machine.path("files");
        fs::create_dir(&files).unwrap();
        fs::write(files.join("brief.toml"), brief(1, &MEASURED)).unwrap();
        fs::write(machine.path("home"), disk_with_one_partition()).unwrap();
        let made = Command::new("mkfs.ext4")
            .args(["-q", "-F", "-E", &format!("offset={PARTITION_BYTES}"), "-d"])
            .args([&files, &machine.path("home")])
            .arg("64M")
            .status();
        assert!(made.is_ok_and(|status| status.success()), "mkfs.ext4 makes the home");
        File::create(machine.path("tested")).unwrap().set_len(24 * MIB).unwrap();
        let neighbour: Vec<u8> =
            (0..=250_u8).cycle().take(usize::try_from(4 * MIB).unwrap()).collect();
        fs::write(machine.path("neighbour"), neighbour).unwrap();
        Some(machine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = emulator("qemu-system-x86_64");
        command
            .args(["-nodefaults", "-no-user-config", "-nographic", "-serial", "stdio"])
            .args(["-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "1G", "-machine", "q35"])
            .args(["-icount", "shift=2"])
            .args(["-append", "console=ttyS0 quiet panic=1 mitigations=off"])
            .args(["-trace", "pci_nvme_format_set"])
            .args([Path::new("-kernel"), &self.kernel])
            .args([Path::new("-initrd"), &self.path("initramfs")]);
        for name in ["home", "tested", "neighbour"] {
            let file = self.path(name).display().to_string();
            command.args([
                "-drive",
                &format!("if=none,format=raw,cache=unsafe,id={name},file={file}"),
            ]);
        }
        command
            .args(["-device", "nvme,serial=home,drive=home"])
            .args(["-device", "nvme,serial=tested,id=controller"])
            .args(["-device", "nvme-ns,bus=controller,nsid=1,drive=tested"])
            .args(["-device", "nvme-ns,bus=controller,nsid=2,drive=neighbour"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(self.path("qemu")).unwrap());
        command
    }

    /// Lets the guest live until it says that it is done.
    fn live(&self) {
        let mut running = Running(self.command().spawn().unwrap());
        let lines = lines_of(&mut running.0);
        let began = Instant::now();
        let mut said = String::new();
        while !said.contains("guest: done") {
            let left = PATIENCE.checked_sub(began.elapsed()).unwrap_or_default();
            match lines.recv_timeout(left) {
                Ok(line) => {
                    said.push_str(&line);
                    said.push('\n');
                }
                Err(ended) => panic!("{ended}:\n{said}{}", self.read("qemu")),
            }
        }
        assert_eq!(said.matches("guest: second life").count(), 1, "{said}");
    }

    /// All files of the home, below this folder.
    fn home(&self) -> PathBuf {
        let to = self.path("kept");
        fs::create_dir(&to).unwrap();
        let request = format!("rdump / {}", to.display());
        let read = Command::new("debugfs")
            .args(["-R", &request])
            .arg(format!("{}?offset={PARTITION_BYTES}", self.path("home").display()))
            .output();
        assert!(read.is_ok_and(|output| output.status.success()));
        to
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

/// A machine that does not outlive this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the output of the guest, line by line.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in output.split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// 65 MiB with an MBR: one Linux partition, all but the first MiB.
fn disk_with_one_partition() -> Vec<u8> {
    let mut image = vec![0; usize::try_from(65 * MIB).unwrap()];
    image[446 + 4] = 0x83;
    image[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    image[446 + 12..446 + 16].copy_from_slice(&131_072_u32.to_le_bytes());
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    image
}

/// The kernel that `cargo xtask test` unpacked.
fn kernel() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guest-kernel").join("boot");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut kernels = entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
    });
    let kernel = kernels.next();
    if kernel.is_none() {
        skip("there is no kernel for a guest: `cargo xtask test` unpacks one");
    }
    kernel
}

/// The archive that the guest starts from.
fn first_files() -> Option<Vec<u8>> {
    let mut archive = archive_of(&PROGRAMS)?;
    archive.file(Path::new("init"), include_bytes!("guest/init.sh"));
    Some(archive.finished())
}

/// An archive with programs of this machine and the command itself, which is large; none if one is
/// missing.
fn archive_of(programs: &[&str]) -> Option<Archive> {
    let mut archive = Archive::new();
    for name in programs {
        if *name == "floatgate" {
            let other = std::env::var_os(PROGRAM_VARIABLE);
            let own = || env!("CARGO_BIN_EXE_floatgate").into();
            let built = PathBuf::from(other.unwrap_or_else(own));
            let folder = tempfile::tempdir().unwrap();
            let stripped = folder.path().join(name);
            // More than half of it is for debuggers, which the guest would unpack at every start.
            let mut strip = Command::new("strip");
            strip.arg("-g").arg(&built).arg("-o").arg(&stripped);
            let is_stripped = strip.output().is_ok_and(|output| output.status.success());
            let program = if is_stripped { &stripped } else { &built };
            assert!(archive.program(program), "it is built");
            continue;
        }
        let folders = ["/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"];
        if !folders.iter().any(|folder| archive.program(&Path::new(folder).join(name))) {
            skip(&format!("{name} is not installed"));
            return None;
        }
    }
    Some(archive)
}

/// The value in the row `name` of a sheet.
fn row<'a>(sheet: &'a Value, name: &str) -> &'a str {
    let rows = sheet.as_array().unwrap();
    let found =
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {sheet}"));
    found["value"].as_str().unwrap()
}

#[test]
fn an_nvme_drive_is_formatted_measured_and_goes_on_after_a_reset() {
    if fio_is_missing() {
        return;
    }
    let Some(machine) = Machine::new() else { return };
    let neighbour = fs::read(machine.path("neighbour")).unwrap();
    machine.live();
    let home = machine.home();
    let said = |name: &str| fs::read_to_string(home.join(name)).unwrap();

    let refused = said("refused");
    assert!(
        refused.contains("everything on it (QEMU NVMe Ctrl, tested, 24 MiB) would be lost"),
        "{refused}"
    );
    let mounted = said("mounted");
    assert!(mounted.contains("n1p1 is mounted at /home"), "{mounted}");
    let sanitize = said("sanitize");
    let neighbour_name = said("neighbour");
    let spared =
        format!("purging by sanitize: a sanitize would erase {} too", neighbour_name.trim());
    assert!(sanitize.contains(&spared), "{sanitize}");
    let heat = said("heat");
    let hot = "the drive is 50 °C hot, the load ended: 45 °C is the limit";
    assert!(heat.contains(hot) && heat.ends_with("exit 1\n"), "{heat}");
    let resumed = said("resumed");
    assert!(resumed.ends_with("exit 0\n") || resumed.ends_with("exit 3\n"), "{resumed}");

    let runs = fs::read_dir(home.join("runs")).unwrap().flatten();
    let mut results = runs.map(|entry| entry.path().join("run.json"));
    let run = fs::read_to_string(results.find(|path| path.exists()).unwrap()).unwrap();
    let run: Value = serde_json::from_str(&run).unwrap();
    let how = "NVMe format with secure erase of user data (nvme format --ses=1)";
    assert_eq!(run["steps"][0]["how"], how);
    assert_eq!(row(&run["target"]["sheet"], "Model"), "QEMU NVMe Ctrl");
    assert_eq!(row(&run["target"]["sheet"], "Serial number"), "tested");
    let before = row(&run["environment"]["sheet"], "Drive before");
    assert!(before.starts_with("50 °C, 0 % of rated life used"), "{before}");
    let cost = row(&run["environment"]["sheet"], "Wear caused by the test");
    assert!(cost.contains(" MB written"), "{cost}");
    let warned = run["warnings"].to_string();
    assert!(warned.contains("the disk is virtual (QEMU NVMe Ctrl)"), "{warned}");
    assert!(warned.contains("purge and preconditioning were repeated"), "{warned}");

    let formats = machine.read("qemu").matches("pci_nvme_format_set").count();
    assert_eq!(
        formats, 3,
        "the drive itself counts one a life, and that of the run that heat ended"
    );
    assert!(
        fs::read(machine.path("neighbour")).unwrap() == neighbour,
        "the other namespace changed"
    );
}
