//! Linux and nvme-cli of an emulated machine as the host of a served volume over NVMe/TCP, while
//! the emulator is its client over NBD; the server is killed and updated under file systems on
//! both.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use std::{env, fs};

use serde_json::Value;

use super::emulator::emulator_is_missing;
use super::linux::{self, Said, listen, serve_any};
use super::nvme::{self, check_commands, check_operations, check_pages, field, status};
use super::{Archive, PATIENCE, Running, kernel, lines_of};
use crate::fio_is_missing;

/// Programs that the guest runs.
const PROGRAMS: [&str; 20] = [
    "floatgate",
    "sh",
    "mount",
    "umount",
    "mkdir",
    "seq",
    "cat",
    "sleep",
    "dd",
    "cmp",
    "cut",
    "grep",
    "ip",
    "insmod",
    "nvme",
    "fio",
    "blkdiscard",
    "mkfs.ext4",
    "fsck.ext4",
    "sync",
];
/// Modules of the kernel, each after those that it needs; one that is built in is left out.
pub(super) const MODULES: [&str; 11] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "virtio_blk",
    "nvme-fabrics",
    "nvme-tcp",
];

/// Environment variable with the number of times that the server is killed; it is updated half as
/// often.
const KILLS_VARIABLE: &str = "FLOATGATE_CRASHES";
const KILLS: u32 = 2;
/// Time limit for each of them, generous for a machine under load.
const PATIENCE_EACH: Duration = Duration::from_secs(20);

/// A server of a drive.
pub(super) struct Server {
    child: Running,
    /// The NQN of its subsystem, and its port.
    subsystem: String,
    port: String,
}

impl Server {
    /// Starts a server with these arguments.
    pub(super) fn start_with(arguments: &[&str], port: &str) -> Self {
        let nvme = format!("tcp:{port}");
        let (child, line) = serve_any(&[arguments, &["--json", "--nvme", &nvme]].concat());
        let exports: Value = serde_json::from_str(&line).unwrap();
        let mut uris = exports[0]["uris"].as_array().unwrap().iter().filter_map(Value::as_str);
        let place = uris.find_map(|uri| uri.strip_prefix("nvme+tcp://127.0.0.1:"));
        let place = place.unwrap_or_else(|| panic!("{line}"));
        let [port, subsystem, namespace] =
            place.splitn(3, '/').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(namespace, "1");
        let (subsystem, port) = (subsystem.to_owned(), port.to_owned());
        Self { child, subsystem, port }
    }

    /// Ends it by a signal, and starts the next one at the same port.
    fn succeed(&mut self, signal: &str, arguments: &[&str]) {
        let process = self.child.0.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &process]).status();
        assert!(sent.unwrap().success());
        let ended = self.child.0.wait().unwrap();
        assert_eq!(ended.success(), signal == "TERM", "{ended}");
        *self = Self::start_with(arguments, &self.port);
    }
}

/// The archive that the guest starts from; none if something is missing.
fn first_files(kernel: &Path) -> Option<Vec<u8>> {
    let script = [nvme::STEPS, include_bytes!("nvme_tcp.sh")].concat();
    let mut archive = linux::first_files(kernel, (&PROGRAMS, &MODULES), &script)?;
    name_host(&mut archive);
    Some(archive.finished())
}

/// Adds the name by which nvme-cli connects.
pub(super) fn name_host(archive: &mut Archive) {
    let id = "11111111-2222-3333-4444-555555555555";
    archive.file(Path::new("etc/nvme/hostid"), id.as_bytes());
    let host = format!("nqn.2014-08.org.nvmexpress:uuid:{id}\n");
    archive.file(Path::new("etc/nvme/hostnqn"), host.as_bytes());
}

/// An emulated machine that reaches the loopback of this one at 10.0.2.2, with further devices of
/// QEMU and words for the kernel.
pub(super) fn machine(
    folder: &Path,
    kernel: &Path,
    (server, devices, words): (&Server, &[&str], &str),
) -> Child {
    let network = ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="];
    let devices = [&["-machine", "q35"], &network[..], devices].concat();
    let words = format!("subsystem={} port={} {words}", server.subsystem, server.port);
    linux::machine(folder, kernel, (&devices, &words))
}

#[test]
fn linux_loses_nothing_over_nvme_tcp_and_nbd_however_often_the_server_is_killed_or_updated() {
    if fio_is_missing() {
        return;
    }
    let Some(kernel) = kernel() else { return };
    if emulator_is_missing() {
        return;
    }
    let Some(archive) = first_files(&kernel) else { return };
    let kills = env::var(KILLS_VARIABLE).map_or(KILLS, |kills| kills.parse().unwrap());
    let rounds = kills + kills / 2;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("initramfs"), archive).unwrap();
    let sizes = ["data=128m", "logs=32m", "disk=24m"].map(|export| ["--export", export]).concat();
    let volume = linux::volume(folder.path(), &[&["--size", "192m"], &sizes[..]].concat());
    let socket = folder.path().join("nbd").display().to_string();
    let nbd = format!("unix:{socket}");
    let arguments = [volume.to_str().unwrap(), "--nbd", &nbd];
    let mut server = Server::start_with(&arguments, "0");
    let client = format!("server.type=unix,server.path={socket},export=disk,reconnect-delay=600");
    let client = format!("driver=nbd,node-name=disk,{client}");
    let disk = ["-blockdev", &client, "-device", "virtio-blk-pci,drive=disk"];
    let words = format!("rounds={rounds}");
    let mut guest = Running(machine(folder.path(), &kernel, (&server, &disk, &words)));
    let lines = lines_of(&mut guest.0);
    let (mut then, mut ends) = (Value::Null, [0, 0]);
    let said = listen(&lines, PATIENCE + PATIENCE_EACH * rounds, |word| match word {
        "list" => then = status(&volume),
        "kill the server" => {
            server.succeed("KILL", &arguments);
            ends[0] += 1;
        }
        "update the server" => {
            server.succeed("TERM", &arguments);
            ends[1] += 1;
        }
        _ => {}
    });
    assert_eq!(ends, [kills, kills / 2], "kills and updates");
    for name in ["written", "written over NBD"] {
        assert!(said[name].ends_with("guest: exit 0\n"), "{name}: {} {said:#?}", said["passes"]);
    }
    check_commands(&said, &["kill the server", "update the server"], 59);
    for (name, text) in &said {
        for error in ["I/O error", "I/O Error", "EXT4-fs error", "JBD2"] {
            assert!(!text.contains(error), "{name}: {text}");
        }
    }
    check_pages(&said, &then);
    check_operations(&said);
    check_fabric(&said, &server.subsystem);
    assert_eq!(
        hosts(&then),
        ["nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"]
    );
    assert!(hosts(&status(&volume)).is_empty());
}

/// The NVMe hosts among the clients of a served volume.
fn hosts(status: &Value) -> Vec<&str> {
    let clients = status["server"]["clients"].as_array().unwrap();
    let hosts = clients.iter().filter_map(|client| client["host"].as_str());
    hosts.filter(|host| !host.is_empty()).collect()
}

/// Checks what only hosts over a network see.
fn check_fabric(said: &Said, subsystem: &str) {
    assert!(said["discover"].contains(subsystem), "{}", said["discover"]);
    assert_eq!(field(said, "id-ctrl", "subnqn"), subsystem);
    assert!(said["property"].contains("Ready"), "{}", said["property"]);
    assert!(said["subsystems"].contains("live"), "{}", said["subsystems"]);
    // The numbers of devices need not be those of namespaces.
    let device = |name: &str| said[name].lines().next().unwrap().to_owned();
    for name in ["attached", "attached another"] {
        assert!(device(name).starts_with("/dev/nvme0n"), "{said:?}");
    }
    assert_eq!(said["namespace of another"], "2\nguest: exit 0\n");
    assert_eq!(said["gone"], "guest: exit 0\n");
}
