//! Linux and nvme-cli of an emulated machine as the host of a served volume over NVMe/TCP; the
//! server is killed in the middle, and started again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::Value;

use super::linux::{self, Said, emulator_is_missing, listen, serve_any};
use super::{Archive, PATIENCE, Running, kernel, lines_of};
use crate::fio_is_missing;

/// Programs that the guest runs.
const PROGRAMS: [&str; 17] = [
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
    let script = include_bytes!("nvme_tcp.sh");
    let mut archive = linux::first_files(kernel, (&PROGRAMS, &MODULES), script)?;
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

/// The value of a field that nvme-cli says as `name : value`.
fn field<'a>(said: &'a Said, page: &str, name: &str) -> &'a str {
    let text = &said[page];
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let found = fields.map(|(name, value)| (name.trim(), value.trim())).find(|it| it.0 == name);
    found.unwrap_or_else(|| panic!("{name}: {text}")).1
}

fn status(volume: &Path) -> Value {
    let said = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .arg("status")
        .arg(volume)
        .arg("--json")
        .output()
        .unwrap();
    serde_json::from_slice(&said.stdout).unwrap()
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
    check_commands(&said);
    check_pages(&said, &then, &server.subsystem);
    let clients = &then["server"]["clients"];
    let host = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
    assert_eq!(clients.as_array().unwrap().len(), 1, "{clients}");
    assert_eq!(clients[0]["host"], host);
    assert!(status(&volume)["server"]["clients"].as_array().unwrap().is_empty());
}

/// Each command ends as it is to.
fn check_commands(said: &Said) {
    let fails =
        BTreeMap::from([("differs", "Compare Failure"), ("unreadable", "Unrecovered Read Error")]);
    for (name, text) in
        said.iter().filter(|(name, _)| *name != "boot" && *name != "kill the server")
    {
        match fails.get(name.as_str()) {
            Some(reason) => {
                assert!(
                    text.contains(reason) && text.ends_with("guest: exit 1\n"),
                    "{name}: {text}"
                );
            }
            None => assert!(text.ends_with("guest: exit 0\n"), "{name}: {text}"),
        }
    }
    assert_eq!(said.len(), 52, "{:?}", said.keys());
    for (name, text) in said {
        assert!(!text.contains("I/O error") && !text.contains("I/O Error"), "{name}: {text}");
    }
}

/// Checks that nvme-cli reads what the drive is.
fn check_pages(said: &Said, status: &Value, subsystem: &str) {
    let number = status["drive"].as_str().unwrap();
    assert!(said["discover"].contains(subsystem), "{}", said["discover"]);
    assert_eq!(field(said, "id-ctrl", "sn"), number);
    assert_eq!(field(said, "id-ctrl", "mn"), "Floatgate live drive");
    assert_eq!(field(said, "id-ctrl", "subnqn"), subsystem);
    assert_eq!(field(said, "id-ns", "nsze"), format!("{:#x}", 128_000_000 / 512));
    assert_eq!(field(said, "id-ns", "nawupf"), "7");
    assert_eq!(field(said, "smart", "available_spare"), "100%");
    let power_cycles = status["smart"]["power_cycles"].to_string();
    assert_eq!(field(said, "smart", "power_cycles"), power_cycles);
    assert_eq!(field(said, "smart", "media_errors"), "0");
    assert!(field(said, "firmware", "frs1").contains(env!("CARGO_PKG_VERSION")));
    assert!(said["property"].contains("Ready"), "{}", said["property"]);
    assert!(said["pages"].contains("LID 0x5"), "{}", said["pages"]);
    assert!(said["list"].contains("/dev/nvme0n2"), "{}", said["list"]);
    assert_eq!(field(said, "formatted", "flbas"), "0x1");
    // Completed; data was written since, so that no longer all of it is erased.
    assert!(said["sanitized"].contains("(SSTAT) :  0x1\n"), "{}", said["sanitized"]);
    assert!(said["namespaces"].contains("0x2"), "{}", said["namespaces"]);
    assert!(said["events"].contains("Persistent Event Log"), "{}", said["events"]);
    assert!(said["subsystems"].contains("live"), "{}", said["subsystems"]);
    // The numbers of devices need not be those of namespaces.
    let device = |name: &str| said[name].lines().next().unwrap().to_owned();
    assert_eq!(device("attached"), "/dev/nvme0n1");
    assert!(device("attached another").starts_with("/dev/nvme0n"), "{said:?}");
    assert_eq!(said["namespace of another"], "2\nguest: exit 0\n");
    assert_eq!(said["gone"], "guest: exit 0\n");
}
