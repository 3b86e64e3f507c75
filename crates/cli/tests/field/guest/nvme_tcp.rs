//! Linux and nvme-cli of an emulated machine as the host of a served volume over NVMe/TCP; the
//! server is killed in the middle, and started again.

use std::fs;
use std::path::Path;
use std::process::Child;

use serde_json::Value;

use super::emulator::emulator_is_missing;
use super::linux::{self, Said, listen, serve_any};
use super::nvme::{self, check_commands, check_operations, check_pages, field, status};
use super::{Archive, PATIENCE, Running, kernel, lines_of};
use crate::fio_is_missing;

/// Programs that the guest runs.
const PROGRAMS: [&str; 18] = [
    "floatgate",
    "sh",
    "mount",
    "umount",
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
pub(super) const MODULES: [&str; 10] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "nvme-fabrics",
    "nvme-tcp",
];

/// A server of a drive.
pub(super) struct Server {
    child: Running,
    /// The NQN of its subsystem, and its port.
    subsystem: String,
    port: String,
}

impl Server {
    fn start(volume: &Path, port: &str) -> Self {
        Self::start_with(&[volume.to_str().unwrap()], port)
    }

    /// Starts a server with these arguments.
    pub(super) fn start_with(arguments: &[&str], port: &str) -> Self {
        let (child, line) = serve_any(&[arguments, &["--nvme", &format!("tcp:{port}")]].concat());
        let place = line.strip_prefix("nvme+tcp://127.0.0.1:").expect("a URI").trim_end();
        let [port, subsystem, namespace] =
            place.splitn(3, '/').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(namespace, "1");
        let (subsystem, port) = (subsystem.to_owned(), port.to_owned());
        Self { child, subsystem, port }
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

/// An emulated machine that reaches the loopback of this one at 10.0.2.2.
pub(super) fn machine(folder: &Path, kernel: &Path, server: &Server) -> Child {
    let network = ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="];
    let devices = [&["-machine", "q35"], &network[..]].concat();
    let words = format!("subsystem={} port={}", server.subsystem, server.port);
    linux::machine(folder, kernel, (&devices, &words))
}

#[test]
fn linux_uses_a_volume_over_nvme_tcp_and_a_killed_server_loses_nothing() {
    if fio_is_missing() {
        return;
    }
    let Some(kernel) = kernel() else { return };
    if emulator_is_missing() {
        return;
    }
    let Some(archive) = first_files(&kernel) else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("initramfs"), archive).unwrap();
    let volume = linux::volume(
        folder.path(),
        &["--size", "192m", "--export", "data=128m", "--export", "logs=32m"],
    );
    let mut server = Server::start(&volume, "0");
    let mut guest = Running(machine(folder.path(), &kernel, &server));
    let lines = lines_of(&mut guest.0);
    let mut then = Value::Null;
    let said = listen(&lines, PATIENCE, |word| match word {
        "list" => then = status(&volume),
        "kill the server" => {
            server.child.0.kill().unwrap();
            server.child.0.wait().unwrap();
            server = Server::start(&volume, &server.port);
        }
        _ => {}
    });
    check_commands(&said, (&["kill the server"], 51));
    for (name, text) in &said {
        assert!(!text.contains("I/O error") && !text.contains("I/O Error"), "{name}: {text}");
    }
    check_pages(&said, &then);
    check_operations(&said);
    check_fabric(&said, &server.subsystem);
    let clients = &then["server"]["clients"];
    let host = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
    assert_eq!(clients.as_array().unwrap().len(), 1, "{clients}");
    assert_eq!(clients[0]["host"], host);
    assert!(status(&volume)["server"]["clients"].as_array().unwrap().is_empty());
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
