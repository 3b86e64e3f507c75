//! A server with clients that come, vanish, stall and lie.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};

use blockio::{Nanos, Op};

use super::super::client::{kind, request, shortest_handshake, write};
use super::*;
use crate::export::{Address, Export};
use crate::{Asked, Device as _, Lane, MemoryDevice, Pace};

const PATIENCE: Duration = Duration::from_secs(20);
const HANDSHAKE_BYTES: usize = 28;

struct Rig {
    server: Server,
    device: Arc<MemoryDevice>,
    socket: PathBuf,
    events: Receiver<Event>,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        Self::paced(None)
    }

    fn paced(pace: Option<Arc<Pace>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let device = Arc::new(MemoryDevice::new(1 << 20));
        let export = Export {
            name: "memory".into(),
            description: String::new(),
            device: Arc::<MemoryDevice>::clone(&device),
            is_read_only: false,
            pace,
        };
        let exports = Exports::new(vec![export]).unwrap();
        let listener = Listener::bind(&Address::Unix(socket.clone())).unwrap();
        let (sender, events) = mpsc::channel();
        let observer = move |event: &Event| {
            // Nobody listens any more once a test is over.
            let _ = sender.send(event.clone());
        };
        let server = Server::start(exports, vec![listener], observer).unwrap();
        Self { server, device, socket, events, _folder: folder }
    }

    /// A client that has shaken hands.
    fn client(&self) -> UnixStream {
        let mut client = UnixStream::connect(&self.socket).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(&shortest_handshake()).unwrap();
        client.read_exact(&mut [0; HANDSHAKE_BYTES]).unwrap();
        client
    }

    fn event(&self) -> Event {
        self.events.recv_timeout(PATIENCE).unwrap()
    }

    /// Whether a new client is served.
    fn serves(&self) -> bool {
        let mut client = self.client();
        client.write_all(&request(kind::READ, 0, (0, 512))).unwrap();
        client.read_exact(&mut [0; 16 + 512]).is_ok()
    }
}

#[test]
fn clients_that_vanish_with_requests_in_flight_do_no_harm() {
    let rig = Rig::new();
    let reads = request(kind::READ, 0, (0, 65_536)).repeat(16);
    let writes = write(0, 4096, &[5; 4096]).repeat(16);
    for round in 0..3000_usize {
        let mut client = rig.client();
        let mut input = if round % 2 == 0 { reads.clone() } else { writes.clone() };
        // Some go in the middle of a request, too.
        input.truncate(input.len() - round % 7);
        client.write_all(&input).unwrap();
        if round % 3 == 0 {
            client.read_exact(&mut [0; 16]).unwrap();
        }
    }
    assert!(rig.serves());
    rig.server.stop().unwrap();
}

#[test]
fn a_client_that_lies_is_dropped_and_the_others_stay() {
    let rig = Rig::new();
    let mut honest = rig.client();
    let mut liar = rig.client();
    liar.write_all(&[0xA5; 4096]).unwrap();
    assert_eq!(liar.read(&mut [0; 16]).unwrap_or(0), 0, "the end");
    let dropped = (0..3).map(|_| rig.event()).find_map(|event| match event {
        Event::Dropped { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(dropped.unwrap(), "a request begins with 0xa5a5a5a5, not with 0x25609513");
    honest.write_all(&request(kind::FLUSH, 0, (0, 0))).unwrap();
    honest.read_exact(&mut [0; 16]).unwrap();
}

#[test]
fn stopping_answers_what_was_received_and_removes_the_socket() {
    let rig = Rig::new();
    let mut client = rig.client();
    client.write_all(&write(0, 0, b"kept").repeat(3)).unwrap();
    client.read_exact(&mut [0; 3 * 16]).unwrap();
    rig.server.stop().unwrap();
    assert!(!rig.socket.exists());
    assert_eq!(client.read(&mut [0; 16]).unwrap_or(0), 0, "the end");
    let mut back = [0; 4];
    rig.device.read(0, &mut back).unwrap();
    assert_eq!(&back, b"kept");
}

#[test]
fn stopping_does_not_wait_for_a_client_that_takes_no_replies() {
    let rig = Rig::new();
    let mut client = rig.client();
    // Far more replies than the system buffers.
    client.write_all(&request(kind::READ, 0, (0, 1 << 20)).repeat(64)).unwrap();
    let begun = Instant::now();
    rig.server.stop().unwrap();
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn a_client_of_the_loopback_is_served_too() {
    let device = Arc::new(MemoryDevice::new(1 << 20));
    let export = Export {
        name: String::new(),
        description: String::new(),
        device,
        is_read_only: false,
        pace: None,
    };
    let listener = Listener::bind(&"tcp:0".parse().unwrap()).unwrap();
    assert!(!listener.is_reachable_from_outside());
    let Address::Tcp { host, port } = listener.address().clone() else { panic!() };
    let exports = Exports::new(vec![export]).unwrap();
    let server = Server::start(exports, vec![listener], |_: &Event| {}).unwrap();
    let mut client = TcpStream::connect((host, port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(&shortest_handshake()).unwrap();
    client.read_exact(&mut [0; HANDSHAKE_BYTES]).unwrap();
    server.stop().unwrap();
}

fn model() -> Arc<Pace> {
    let spec = ssd::catalogue::find("iodrive-duo").unwrap();
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    let setup = ssd::Setup { format, host, time_lapse: 64, seed: 1 };
    Arc::new(Pace::new(ssd::Drive::new(&spec, &setup).unwrap()))
}

/// When the model alone is done with `count` writes of 64 KiB that are submitted at once.
fn modelled(count: u64) -> Duration {
    let lane = Lane::new(&model()).unwrap();
    let submit = |number| Asked { op: Op::Write, offset: (number % 16) << 16, length: 1 << 16 };
    for number in 0..count {
        lane.submit(Nanos::ZERO, submit(number));
    }
    let (mut now, mut due) = (Nanos::ZERO, Vec::new());
    while let Some(next) = lane.due(now, &mut due) {
        now = next;
    }
    Duration::from_nanos(now.0)
}

#[test]
fn a_paced_drive_takes_as_long_as_its_model() {
    const WRITES: u64 = 2000;
    let expected = modelled(WRITES);
    assert!(expected > Duration::from_millis(50), "{expected:?} tells nothing");
    let rig = Rig::paced(Some(model()));
    let mut client = rig.client();
    let begun = Instant::now();
    thread::scope(|scope| {
        let mut input = client.try_clone().unwrap();
        scope.spawn(move || {
            let payload = vec![7; 1 << 16];
            (0..WRITES).for_each(|number| {
                input.write_all(&write(0, (number % 16) << 16, &payload)).unwrap();
            });
        });
        client.read_exact(&mut vec![0; 16 * usize::try_from(WRITES).unwrap()]).unwrap();
    });
    let took = begun.elapsed();
    // Never sooner than the model; later as far as this machine has other things to do.
    assert!(took >= expected, "{took:?} instead of {expected:?}");
    assert!(took < expected * 2 + Duration::from_secs(5), "{took:?} instead of {expected:?}");
    rig.server.stop().unwrap();
}

#[test]
fn stopping_a_paced_drive_answers_what_is_held_back() {
    let rig = Rig::paced(Some(model()));
    let mut client = rig.client();
    client.write_all(&write(0, 0, b"kept").repeat(100)).unwrap();
    client.read_exact(&mut [0; 16]).unwrap();
    rig.server.stop().unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len() % 16, 0, "no half answer");
}
