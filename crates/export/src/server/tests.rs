//! A server with clients that come, vanish, stall and lie.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};

use blockio::{Lba, Nanos, Op, Request};

use super::*;
use crate::limits::STALL;
use crate::nbd::client::{kind, request, shortest_handshake, write};
use crate::pace::tests::drive;
use crate::seats::HANDSHAKES_MAX;
use crate::{Address, Export};
use crate::{Pace, PacedCommand, RecordedCommand, Recorder};
use device::{Device as _, MemoryDevice};

const PATIENCE: Duration = Duration::from_mins(2);
const HANDSHAKE_BYTES: usize = 28;
/// Latest end of a handshake that does not finish.
const HANDSHAKES_END: Duration = Duration::from_secs(10);

/// Reason why a client is dropped that keeps memory from others.
const STALLED: &str =
    "stalled transfer: less than 256 KiB in 3 s while other clients waited for buffer memory";

/// Few clients, and shared memory for one of the largest requests at a time.
fn small() -> Limits {
    Limits { connections: 8, connections_per_peer: 8, memory_bytes: 51 << 20 }
}

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
        Self::limited(pace, Limits::default())
    }

    fn limited(pace: Option<Arc<Pace>>, limits: Limits) -> Self {
        Self::recorded(pace, limits, None)
    }

    fn recorded(
        pace: Option<Arc<Pace>>,
        limits: Limits,
        recorder: Option<Arc<dyn Recorder>>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let device = Arc::new(MemoryDevice::new(64 << 20));
        let export = Export {
            name: "memory".into(),
            description: String::new(),
            device: Arc::<MemoryDevice>::clone(&device),
            is_read_only: false,
            pace,
        };
        let exports = Exports::new(vec![export]).unwrap();
        let exports = match recorder {
            Some(recorder) => exports.recorded(recorder),
            None => exports,
        };
        let listener = Listener::bind(&Address::Unix(socket.clone())).unwrap();
        let (sender, events) = mpsc::channel();
        let observer = move |event: &Event| {
            // The receiver is gone once a test is over.
            let _ = sender.send(event.clone());
        };
        let server = Server::start(exports, vec![listener], limits, observer).unwrap();
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

    /// True if a new client is served.
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
    assert_eq!(dropped.unwrap(), "invalid request magic 0xa5a5a5a5, expected 0x25609513");
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
fn stopping_leaves_undone_what_would_take_minutes() {
    let rig = Rig::new();
    let mut client = rig.client();
    // Thousands of requests in few bytes, and no reply to any until all of them are done.
    let no_hole = 1 << 1;
    let zeroes = request(kind::WRITE_ZEROES, no_hole, (0, 64 << 20));
    client.write_all(&zeroes.repeat(8000)).unwrap();
    let begun = Instant::now();
    rig.server.stop().unwrap();
    assert!(begun.elapsed() < PATIENCE);
    // The last client's thread may have its final instructions to go.
    while Arc::strong_count(&rig.device) > 1 {
        assert!(begun.elapsed() < PATIENCE, "a client's thread still uses it");
        thread::yield_now();
    }
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
    let server = Server::start(exports, vec![listener], Limits::default(), |_: &Event| {}).unwrap();
    let mut client = TcpStream::connect((host, port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(&shortest_handshake()).unwrap();
    client.read_exact(&mut [0; HANDSHAKE_BYTES]).unwrap();
    server.stop().unwrap();
}

fn model() -> Arc<Pace> {
    Arc::new(Pace::new(drive()))
}

/// Returns the time that the model alone takes for `count` writes of 64 KiB submitted at once.
fn modelled(count: u64) -> Duration {
    let (mut drive, mut took) = (drive(), Nanos::ZERO);
    for number in 0..u32::try_from(count).unwrap() {
        let lba = Lba(u64::from(number % 16) << 7);
        let request =
            Request { tag: number, thread: 0, op: Op::Write, handle: 0, lba, sectors: 128 };
        drive.submit(Nanos::ZERO, request);
    }
    while let Some(done) = drive.next_completion(Nanos::MAX) {
        took = took.max(done.completed_at);
    }
    Duration::from_nanos(took.0)
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
    assert!(took < expected * 2 + Duration::from_mins(1), "{took:?} instead of {expected:?}");
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

#[test]
fn a_thousand_clients_that_say_nothing_shut_no_other_out() {
    let rig = Rig::new();
    let mut first = rig.client();
    let silent: Vec<_> = (0..1000).map(|_| UnixStream::connect(&rig.socket).unwrap()).collect();
    let begun = Instant::now();
    assert!(rig.serves());
    assert!(begun.elapsed() < HANDSHAKES_END, "it waited for those that say nothing");
    first.write_all(&request(kind::FLUSH, 0, (0, 0))).unwrap();
    first.read_exact(&mut [0; 16]).unwrap();
    // The last ones are there until their time is over; the others are not any more.
    assert!(rig.server.shared.lock().seats.handshakes() <= HANDSHAKES_MAX);
    let mut oldest = &silent[0];
    oldest.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(oldest.read_to_end(&mut Vec::new()).is_ok(), "it is let go");
    let away = std::iter::repeat_with(|| rig.event()).find_map(|event| match event {
        Event::Rejected { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(away.unwrap(), "too many handshakes at once: newer ones displaced this one");
}

#[test]
fn connections_without_a_handshake_are_no_news_of_clients() {
    let rig = Rig::new();
    for number in 0..100 {
        let mut silent = UnixStream::connect(&rig.socket).unwrap();
        if number % 2 == 0 {
            // It cannot be understood.
            silent.set_read_timeout(Some(PATIENCE)).unwrap();
            silent.write_all(&[0xFF; 64]).unwrap();
            silent.read_to_end(&mut Vec::new()).unwrap_or_default();
        }
    }
    // A client that comes after them is let in after them.
    assert!(rig.serves());
    assert!(rig.server.shared.is_empty_within(PATIENCE));
    rig.server.stop().unwrap();
    let told: Vec<Event> = rig.events.iter().collect();
    let is_of_last = |event: &Event| match event {
        Event::Connected { client, .. } | Event::Disconnected { client } => *client == 101,
        _ => false,
    };
    let told: Vec<Event> = told.into_iter().filter(|event| !is_of_last(event)).collect();
    assert!(matches!(told[..], [Event::Rejected { .. }]), "{told:?}");
}

#[test]
fn a_client_beyond_the_limit_is_rejected_until_another_one_goes() {
    let rig = Rig::limited(None, Limits { connections: 2, ..Limits::default() });
    let served = [rig.client(), rig.client()];
    let came = std::iter::repeat_with(|| rig.event());
    assert_eq!(came.filter(|event| matches!(event, Event::Connected { .. })).take(2).count(), 2);
    let mut third = UnixStream::connect(&rig.socket).unwrap();
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(third.read_to_end(&mut Vec::new()).unwrap_or_default(), 0, "not even a greeting");
    let away = std::iter::repeat_with(|| rig.event()).find_map(|event| match event {
        Event::Rejected { clients, reason } => Some((clients, reason)),
        _ => None,
    });
    let reason = "the limit of 2 clients is reached (--max-connections)";
    assert_eq!(away.unwrap(), (1, reason.to_owned()));
    drop(served);
    let left = std::iter::repeat_with(|| rig.event());
    assert_eq!(left.filter(|event| matches!(event, Event::Disconnected { .. })).take(2).count(), 2);
    // A client's place is free a moment after its departure was reported.
    assert!(rig.server.shared.is_empty_within(PATIENCE));
    assert!(rig.serves());
}

#[test]
fn a_program_has_no_more_clients_than_leave_some_for_others() {
    let rig = Rig::limited(None, Limits { connections_per_peer: 2, ..small() });
    let served = [rig.client(), rig.client()];
    let came = std::iter::repeat_with(|| rig.event());
    assert_eq!(came.filter(|event| matches!(event, Event::Connected { .. })).take(2).count(), 2);
    let mut third = UnixStream::connect(&rig.socket).unwrap();
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(third.read_to_end(&mut Vec::new()).unwrap_or_default(), 0, "not even a greeting");
    let Event::Rejected { reason, .. } = rig.event() else { panic!("it was let in") };
    let limit = "the limit of 2 clients of one program or machine is reached \
                 (--max-connections-per-peer)";
    assert_eq!(reason, limit);
    drop(served);
}

#[test]
fn clients_that_take_nothing_of_large_replies_hold_up_no_small_and_in_the_end_no_large_request() {
    let limits = small().checked().unwrap();
    let rig = Rig::limited(None, limits);
    let hostile: Vec<_> = (0..4)
        .map(|_| {
            let mut client = rig.client();
            client.write_all(&request(kind::READ, 0, (0, 32 << 20)).repeat(4)).unwrap();
            client
        })
        .collect();
    assert!(rig.serves(), "small requests have memory of their own");
    let mut honest = rig.client();
    honest.write_all(&request(kind::READ, 0, (0, 32 << 20))).unwrap();
    honest.read_exact(&mut vec![0; 16 + (32 << 20)]).unwrap();
    honest.write_all(&write(0, 0, &vec![3; 8 << 20])).unwrap();
    honest.read_exact(&mut [0; 16]).unwrap();
    let stalled = std::iter::repeat_with(|| rig.event()).find_map(|event| match event {
        Event::Dropped { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(stalled.unwrap(), STALLED);
    drop(hostile);
    rig.server.stop().unwrap();
}

#[test]
fn a_client_that_sends_a_byte_now_and_then_does_not_keep_the_memory_of_others() {
    let limits = small().checked().unwrap();
    let rig = Rig::limited(None, limits);
    let mut trickler = rig.client();
    let whole = write(0, 0, &vec![3; 32 << 20]);
    let (first, rest) = whole.split_at(2 << 20);
    trickler.write_all(first).unwrap();
    let mut honest = rig.client();
    let (ended, end) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for byte in rest.chunks(1) {
                let has_gone = trickler.write_all(byte).is_err();
                if has_gone || end.recv_timeout(Duration::from_millis(100)).is_ok() {
                    break;
                }
            }
        });
        let begun = Instant::now();
        honest.write_all(&request(kind::READ, 0, (0, 32 << 20))).unwrap();
        let answer = honest.read_exact(&mut vec![0; 16 + (32 << 20)]);
        let took = begun.elapsed();
        let _ = ended.send(());
        assert!(answer.is_ok() && took < 3 * STALL, "{answer:?} after {took:?}");
    });
    let stalled = std::iter::repeat_with(|| rig.event()).find_map(|event| match event {
        Event::Dropped { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(stalled.unwrap(), STALLED);
    rig.server.stop().unwrap();
}

#[test]
fn large_requests_of_many_clients_at_once_all_come_through() {
    let limits = small().checked().unwrap();
    for pace in [None, Some(model())] {
        let rig = Rig::limited(pace, limits);
        thread::scope(|scope| {
            for number in 0..8_u8 {
                let mut client = rig.client();
                scope.spawn(move || {
                    let (at, payload) = (u64::from(number) << 22, vec![number; 4 << 20]);
                    // Small and large ones behind each other, in both directions.
                    let mut input = write(0, at, &payload);
                    input.extend(request(kind::READ, 0, (at, 512)));
                    input.extend(request(kind::READ, 0, (at, 4 << 20)));
                    let mut sender = client.try_clone().unwrap();
                    let sent = thread::spawn(move || sender.write_all(&input.repeat(2)));
                    let mut answers = vec![0; 2 * (16 + (16 + 512) + (16 + (4 << 20)))];
                    client.read_exact(&mut answers).unwrap();
                    sent.join().unwrap().unwrap();
                    assert_eq!(answers.last(), Some(&number));
                });
            }
        });
        rig.server.stop().unwrap();
    }
}

/// A recorder that keeps all in memory.
#[derive(Debug, Default)]
struct CommandLog(Mutex<Vec<(u64, RecordedCommand)>>);

impl Recorder for CommandLog {
    fn keep(&self, client: u64, served: &[RecordedCommand]) {
        self.0.lock().unwrap().extend(served.iter().map(|it| (client, *it)));
    }
}

#[test]
fn every_command_is_recorded_once_with_its_times() {
    const FUA: u16 = 1;
    for pace in [None, Some(model())] {
        let (is_paced, kept) = (pace.is_some(), Arc::new(CommandLog::default()));
        let recorder = Arc::<CommandLog>::clone(&kept);
        let rig = Rig::recorded(pace, Limits::default(), Some(recorder));
        let mut client = rig.client();
        let begun = Instant::now();
        let commands: [(Vec<u8>, usize); 6] = [
            (write(0, 4096, &[1; 4096]), 0),
            (write(FUA, 8192, &[2; 4096]), 0),
            (request(kind::READ, 0, (4096, 8192)), 8192),
            (request(kind::FLUSH, 0, (0, 0)), 0),
            (request(kind::TRIM, 0, (0, 4096)), 0),
            // Beyond the end: refused, so that no drive had to do with it.
            (request(kind::READ, 0, (64 << 20, 512)), 0),
        ];
        for (bytes, data_bytes) in commands {
            client.write_all(&bytes).unwrap();
            client.read_exact(&mut vec![0; 16 + data_bytes]).unwrap();
        }
        drop(client);
        rig.server.stop().unwrap();
        let kept = kept.0.lock().unwrap();
        let asked: Vec<_> = kept
            .iter()
            .map(|(client, it)| {
                let PacedCommand { op, offset, length, fua } = it.asked;
                (*client, op, offset, length, fua)
            })
            .collect();
        let expected = [
            (1, Op::Write, 4096, 4096, false),
            (1, Op::Write, 8192, 4096, true),
            (1, Op::Read, 4096, 8192, false),
            (1, Op::Flush, 0, 0, false),
            (1, Op::Trim, 0, 4096, false),
        ];
        assert_eq!(asked, expected, "paced: {is_paced}");
        let mut last = begun;
        for (_, RecordedCommand { issued_at, completed_at, .. }) in kept.iter() {
            assert!(last <= *issued_at && issued_at <= completed_at, "one after the other");
            last = *completed_at;
        }
        assert!(last <= Instant::now());
        if is_paced {
            let RecordedCommand { issued_at, completed_at, .. } = kept[2].1;
            // Two pages that were written a moment ago, from the buffer or the flash of the Duo.
            assert!(completed_at - issued_at > Duration::from_micros(20), "the model's latency");
        }
    }
}
