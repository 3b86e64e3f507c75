//! Killed servers: what a client was answered survives them, and what clients are told of it.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use blockio::Rng;
use serde_json::Value;

use crate::nvme_host::Queue;
use crate::served::{Served, activated, create_small_drive, said};

const PAGE_BYTES: usize = 4096;
const WRITE: u16 = 1;
const TRIM: u16 = 4;
/// Transmission flags of an export: flushes, and force unit access.
const WRITE_CACHE: u16 = 1 << 2 | 1 << 3;

/// A client of NBD that waits for each answer.
struct Client {
    socket: UnixStream,
    /// Transmission flags of the export.
    flags: u16,
}

impl Client {
    fn connect(path: &Path) -> Self {
        Self::greeted(UnixStream::connect(path).expect("the server listens"))
    }

    /// Waits for a server to greet the client of a connection.
    fn greeted(mut socket: UnixStream) -> Self {
        let mut greeting = [0; 18];
        socket.read_exact(&mut greeting).expect("it greets");
        // Fixed newstyle without zeroes; then EXPORT_NAME of the first export.
        socket.write_all(&3_u32.to_be_bytes()).expect("it listens");
        socket.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").expect("it listens");
        let mut export = [0; 10];
        socket.read_exact(&mut export).expect("it has one");
        Self { socket, flags: u16::from_be_bytes([export[8], export[9]]) }
    }

    fn ask(&mut self, kind: u16, page: u64, length: usize, payload: &[u8]) {
        let mut request = vec![0x25, 0x60, 0x95, 0x13, 0, 0];
        request.extend(kind.to_be_bytes());
        request.extend([7; 8]);
        request.extend((page * PAGE_BYTES as u64).to_be_bytes());
        request.extend(u32::try_from(length).expect("short").to_be_bytes());
        request.extend(payload);
        self.socket.write_all(&request).expect("the server takes it");
        let mut reply = [0; 16];
        self.socket.read_exact(&mut reply).expect("the server answers");
        assert_eq!(reply[4..8], [0; 4], "it was carried out");
    }

    fn read(&mut self, page: u64) -> [u8; PAGE_BYTES] {
        self.ask(0, page, PAGE_BYTES, &[]);
        let mut content = [0; PAGE_BYTES];
        self.socket.read_exact(&mut content).expect("the data comes");
        content
    }
}

/// Has a client write and trim pages of a volume that is served with `args`, kills the server as
/// soon as the last answer has come, and returns how many pages the next server has otherwise.
fn lost_pages(args: &[&str]) -> usize {
    let folder = tempfile::tempdir().expect("the test makes it so");
    create_small_drive(folder.path());
    let volume = folder.path().join("volume").display().to_string();
    let args = [&[volume.as_str()], args].concat();
    let mut served = Served::start_in(folder, &args);
    let mut rng = Rng::new(1);
    let mut expected = vec![0_u8; 500];
    let mut lost = 0;
    for round in 1..=3 {
        let mut client = Client::connect(&served.path("s"));
        for _ in 0..2000 {
            let page = rng.below(500);
            let content = &mut expected[usize::try_from(page).expect("the test makes it so")];
            if rng.below(8) == 0 {
                *content = 0;
                client.ask(TRIM, page, PAGE_BYTES, &[]);
            } else {
                *content = round;
                client.ask(WRITE, page, PAGE_BYTES, &[round; PAGE_BYTES]);
            }
        }
        served = Served::start_in(served.kill(), &args);
        let mut client = Client::connect(&served.path("s"));
        for (page, expected) in (0..).zip(&mut expected) {
            let found = client.read(page);
            assert_eq!(found, [found[0]; PAGE_BYTES], "page {page} is torn");
            lost += usize::from(found[0] != *expected);
            *expected = found[0];
        }
    }
    assert!(served.stop().success());
    lost
}

#[test]
fn a_killed_server_loses_nothing_that_it_had_answered() {
    assert_eq!(lost_pages(&[]), 0);
    assert_eq!(lost_pages(&["--durable"]), 0);
    assert!(lost_pages(&["--volatile"]) > 0, "pages that no client flushed are kept nowhere");
}

#[test]
fn a_client_that_comes_during_an_update_waits_at_the_socket_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let path = folder.path().join("passed");
    let socket = OwnedFd::from(UnixListener::bind(&path).unwrap());
    let command = activated(folder.path(), "fd:3", &socket);
    let mut served = Served::start_as(folder, command);
    Client::connect(&path).ask(WRITE, 3, PAGE_BYTES, &[7; PAGE_BYTES]);
    assert!(served.stop().success());
    let waiting = UnixStream::connect(&path).unwrap();
    let folder = served.kill();
    let command = activated(folder.path(), "fd:3", &socket);
    let mut served = Served::start_as(folder, command);
    assert_eq!(Client::greeted(waiting).read(3), [7; PAGE_BYTES]);
    assert!(served.stop().success());
}

/// The place and the subsystem of the first namespace of a served volume.
fn nvme_of(served: &Served, volume: &str) -> (String, String) {
    let status = served.beside(&["status", volume, "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("the test makes it so");
    let uris = status["server"]["exports"][0]["uris"].as_array().expect("the test makes it so");
    let uri = uris
        .iter()
        .find_map(|uri| uri.as_str()?.strip_prefix("nvme+tcp://"))
        .expect("the test makes it so");
    let mut parts = uri.split('/');
    let mut next = || parts.next().expect("the test makes it so").to_owned();
    (next(), next())
}

#[test]
fn a_killed_server_loses_nothing_that_an_nvme_host_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let volume = folder.path().join("volume").display().to_string();
    let args = [volume.as_str(), "--nvme", "tcp:0"];
    let mut served = Served::start_in(folder, &args);
    let mut rng = Rng::new(2);
    let mut expected = vec![0_u8; 500];
    for round in 1..=4 {
        let (place, subsystem) = nvme_of(&served, &volume);
        let [_admin, mut io] = Queue::connect(&place, &subsystem);
        for (page, expected) in (0..).zip(&expected) {
            assert!(io.read(page * 8, PAGE_BYTES) == [*expected; PAGE_BYTES], "page {page}");
        }
        for _ in 0..2000 {
            let page = rng.below(500);
            let content = &mut expected[usize::try_from(page).unwrap()];
            if rng.below(8) == 0 {
                *content = 0;
                io.deallocate(page * 8, 8);
            } else {
                *content = round;
                io.write(page * 8, &[round; PAGE_BYTES]);
            }
        }
        served = Served::start_in(served.kill(), &args);
    }
    assert!(served.stop().success());
}

#[test]
fn clients_see_a_write_cache_unless_every_write_is_durable() {
    for (switch, survives, has_cache) in [
        ("", "server-death", true),
        ("--volatile", "nothing", true),
        ("--durable", "power-loss", false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        create_small_drive(folder.path());
        let volume = folder.path().join("volume").display().to_string();
        let args = [volume.as_str(), switch];
        let served = Served::start_in(folder, &args[..if switch.is_empty() { 1 } else { 2 }]);
        let client = Client::connect(&served.path("s"));
        assert_eq!(client.flags & WRITE_CACHE != 0, has_cache, "{switch}");
        let status = served.beside(&["status", &volume, "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        assert_eq!(status["acknowledged_survives"], survives);
    }
}

#[test]
fn a_volume_without_power_loss_protection_writes_through_with_a_critical_warning() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let volume = folder.path().join("volume").display().to_string();
    let mut served = Served::start_in(folder, &[&volume, "--fault-injection"]);
    let injected = served.beside(&["inject", &volume, "fail-plp"]);
    assert!(injected.status.success(), "{}", said(&injected));
    let status = served.beside(&["status", &volume, "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["acknowledged_survives"], "power-loss");
    assert_eq!(status["smart"]["critical_warning"], 1 << 4);
    assert_eq!(status["health"]["problems"][0]["kind"], "write-through");
    assert_eq!(Client::connect(&served.path("s")).flags & WRITE_CACHE, 0);
    assert!(served.stop().success());
}
