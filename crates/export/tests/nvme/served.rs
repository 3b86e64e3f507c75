//! A server on the loopback: real sockets, several hosts, hosts that vanish, limits and the end.

use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use blockio::{Lba, Nanos, Op, Request};
use device::Operations as _;
use export::nvme::Subsystem;
use export::{
    Address, Event, Exports, Limits, Listener, Pace, Protocol, RecordedCommand, Recorder, Server,
};

use crate::Rig;
use crate::host::{
    DISCOVERY_NQN, Data, Digests, HOST_NQN, Host, Order, Wire as _, dial, io, u16_at, u32_at,
    u64_at,
};
use crate::operated::Operated;

const PATIENCE: Duration = Duration::from_mins(2);

/// A server of a rig, with what it tells.
struct Running {
    rig: Rig,
    server: Server,
    port: u16,
    events: Receiver<Event>,
    nqn: String,
}

/// Starts a server on the loopback. Returns its port, and what it tells, too.
pub(crate) fn start(
    exports: &Exports,
    subsystem: &Arc<Subsystem>,
    limits: Limits,
) -> (Server, u16, Receiver<Event>) {
    let listener = Listener::bind(&"tcp:0".parse().unwrap()).unwrap();
    let Address::Tcp { port, .. } = *listener.address() else { panic!("it is TCP") };
    let (sender, events) = mpsc::channel();
    let observer = move |event: &Event| drop(sender.send(event.clone()));
    let protocol = Protocol::Nvme(Arc::clone(subsystem));
    let server = Server::start_each(exports.clone(), vec![(listener, protocol)], limits, observer);
    (server.unwrap(), port, events)
}

impl Running {
    fn new(limits: Limits) -> Self {
        Self::of(Rig::new(512), limits)
    }

    fn of(rig: Rig, limits: Limits) -> Self {
        let (server, port, events) = start(&rig.exports, &rig.subsystem, limits);
        let nqn = rig.subsystem.nqn().to_owned();
        Self { rig, server, port, events, nqn }
    }

    fn open(&self, digests: Digests) -> Host<TcpStream> {
        Host::open(dial(self.port), digests, 0)
    }

    fn queues(&self, digests: Digests) -> (Host<TcpStream>, Host<TcpStream>) {
        let mut admin = self.open(digests);
        let controller = admin.begin(&self.nqn);
        let mut queue = self.open(digests);
        queue.begin_io((1, controller), &self.nqn, true);
        (admin, queue)
    }

    fn event(&self) -> Event {
        self.events.recv_timeout(PATIENCE).unwrap()
    }
}

/// True if the server ended the connection.
fn is_ended(host: &mut Host<TcpStream>) -> bool {
    host.wire.receive(1).is_none()
}

#[test]
fn hosts_read_what_others_wrote_and_are_known_by_their_names() {
    let running = Running::new(Limits::default());
    let (_admin, mut first) = running.queues(Digests { header: true, data: true });
    let (second_admin, mut second) = running.queues(Digests::default());
    let bytes: Vec<u8> = (0..=255).cycle().take(300 << 10).collect();
    assert_eq!(first.run(&io(0x01, 1, 3, 600).with(Data::Transfer(&bytes))).status, 0);
    let back = second.run(&io(0x02, 1, 3, 600).with(Data::In(300 << 10)));
    assert!(back.data == bytes);
    let came = |event| match event {
        Event::HostConnected { host, controller, .. } => (host, controller),
        other => panic!("{other:?}"),
    };
    assert_eq!(came(running.event()), (HOST_NQN.to_owned(), 1));
    assert_eq!(came(running.event()).1, 2);
    drop(second_admin);
    assert!(matches!(running.event(), Event::Disconnected { .. }));
    assert!(is_ended(&mut second), "the queue of a controller that is gone");
    assert_eq!(first.run(&io(0x00, 1, 0, 1)).status, 0, "those of others stay");
    running.server.stop().unwrap();
}

#[test]
fn hosts_that_vanish_at_any_moment_do_no_harm() {
    let running = Running::new(Limits::default());
    let (_admin, mut honest) = running.queues(Digests::default());
    let bytes = vec![3; 65_536];
    for round in 0..300_usize {
        let mut admin = running.open(Digests::default());
        if round % 5 == 0 {
            continue;
        }
        let controller = admin.begin(&running.nqn);
        let mut queue = running.open(Digests { header: round % 2 == 0, data: true });
        queue.begin_io((1, controller), &running.nqn, round % 3 == 0);
        let write = io(0x01, 1, 64, 128).with(Data::Transfer(&bytes));
        let mut input = queue.pdu(4, 0, &write.entry(5), &[]).repeat(3);
        input.extend(queue.pdu(4, 0, &io(0x02, 1, 0, 128).with(Data::In(65_536)).entry(6), &[]));
        input.truncate(input.len() - round % 70);
        queue.wire.send(&input);
        match round % 4 {
            0 => drop(admin),
            1 => queue.wire.shutdown(Shutdown::Both).unwrap(),
            2 => drop(queue.receive()),
            _ => {}
        }
    }
    assert_eq!(honest.run(&io(0x01, 1, 0, 1).with(Data::Capsule(&[1; 512]))).status, 0);
    assert_eq!(honest.run(&io(0x02, 1, 0, 1).with(Data::In(512))).data, [1; 512]);
    running.server.stop().unwrap();
}

#[test]
fn discovery_over_a_socket_names_the_address_that_was_dialled() {
    let running = Running::new(Limits::default());
    let mut host = running.open(Digests::default());
    host.begin(DISCOVERY_NQN);
    let log = host.log(0x70, 3072).data;
    let port = String::from_utf8(log[2048 + 32..2048 + 64].to_vec()).unwrap();
    assert_eq!(port.trim_end(), running.port.to_string());
    assert_eq!(host.run(&Order::new(0x18, 0, &[])).status, 0, "Keep Alive");
    running.server.stop().unwrap();
}

#[test]
fn more_queues_than_the_limit_are_rejected() {
    let running = Running::new(Limits { connections: 2, ..Limits::default() });
    let (_admin, mut queue) = running.queues(Digests::default());
    // A queue takes its place after its Connect was answered.
    assert_eq!(queue.run(&io(0x00, 1, 0, 1)).status, 0);
    let mut late = dial(running.port);
    late.send(&[0; 8]);
    assert!(late.receive(1).is_none());
    assert!(matches!(running.event(), Event::HostConnected { .. }));
    assert!(matches!(running.event(), Event::Rejected { clients: 1, .. }));
    assert_eq!(queue.run(&io(0x00, 1, 0, 1)).status, 0);
    running.server.stop().unwrap();
}

#[test]
fn a_host_that_breaks_the_rules_is_dropped_with_a_reason_and_others_stay() {
    let running = Running::new(Limits::default());
    let (_admin, mut honest) = running.queues(Digests::default());
    let (mut liar, mut its_queue) = running.queues(Digests::default());
    liar.wire.send(&[0xA5; 100]);
    let termination = liar.receive().unwrap();
    assert_eq!((termination.kind(), termination.u16_at(8)), (3, 1));
    assert!(is_ended(&mut liar) && is_ended(&mut its_queue));
    let dropped = (0..4).map(|_| running.event()).find_map(|event| match event {
        Event::Dropped { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(dropped.unwrap(), "the PDU field at byte 0 has an invalid value");
    assert_eq!(honest.run(&io(0x00, 1, 0, 1)).status, 0);
    running.server.stop().unwrap();
}

#[test]
fn a_disconnected_queue_ends_and_may_be_connected_again() {
    let running = Running::new(Limits::default());
    let mut admin = running.open(Digests::default());
    let controller = admin.begin(&running.nqn);
    for _ in 0..3 {
        let mut queue = running.open(Digests::default());
        queue.begin_io((1, controller), &running.nqn, false);
        assert_eq!(queue.run(&Order::new(0x7F, 8, &[0])).status, 0);
        assert!(is_ended(&mut queue));
    }
    assert_eq!(admin.run(&Order::new(0x18, 0, &[])).status, 0, "the controller stays");
    running.server.stop().unwrap();
}

#[derive(Debug, Default)]
struct CommandLog(Mutex<Vec<(u64, Op, u64, u64)>>);

impl Recorder for CommandLog {
    fn keep(&self, client: u64, served: &[RecordedCommand]) {
        let kept = served.iter().map(|it| {
            assert!(it.issued_at <= it.completed_at);
            (client, it.asked.op, it.asked.offset, it.asked.length)
        });
        self.0.lock().unwrap().extend(kept);
    }
}

#[test]
fn a_recording_has_each_command_that_was_carried_out() {
    let kept = Arc::<CommandLog>::default();
    let mut rig = Rig::new(512);
    rig.exports = rig.exports.recorded(Arc::<CommandLog>::clone(&kept));
    let running = Running::of(rig, Limits::default());
    let (_admin, mut queue) = running.queues(Digests::default());
    queue.run(&io(0x01, 1, 8, 8).with(Data::Transfer(&[1; 4096])));
    queue.run(&io(0x02, 1, 8, 8).with(Data::In(4096)));
    queue.run(&io(0x02, 1, u64::MAX, 8).with(Data::In(4096)));
    let mut range = [0; 16];
    (range[4], range[8]) = (8, 16);
    let mut deallocate = io(0x09, 1, 0, 1);
    deallocate.dwords = [0, 4, 0, 0, 0, 0];
    queue.run(&deallocate.with(Data::Capsule(&range)));
    queue.run(&io(0x00, 1, 0, 1));
    running.server.stop().unwrap();
    let expected = [
        (2, Op::Write, 4096, 4096),
        (2, Op::Read, 4096, 4096),
        (2, Op::Trim, 8192, 4096),
        (2, Op::Flush, 0, 0),
    ];
    assert_eq!(*kept.0.lock().unwrap(), expected);
}

#[test]
fn stopping_answers_what_was_received_and_flushes() {
    let running = Running::new(Limits::default());
    let (_admin, mut queue) = running.queues(Digests::default());
    assert_eq!(queue.run(&io(0x01, 1, 0, 1).with(Data::Capsule(&[7; 512]))).status, 0);
    let devices = running.rig.devices.clone();
    running.server.stop().unwrap();
    assert!(is_ended(&mut queue));
    assert_eq!(devices[0].flushes.load(std::sync::atomic::Ordering::SeqCst), 1);
}

fn model() -> Arc<Pace> {
    Arc::new(Pace::new(drive()))
}

fn drive() -> ssd::Drive {
    let spec = ssd::catalogue::find("iodrive-duo").unwrap();
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    let setup = ssd::Setup { format, host, time_lapse: 64, seed: 1 };
    ssd::Drive::new(&spec, &setup).unwrap()
}

#[test]
fn a_paced_queue_is_answered_when_the_model_completes_and_the_admin_queue_at_once() {
    const WRITES: u64 = 120;
    let (mut drive, mut modelled) = (drive(), Nanos::ZERO);
    for number in 0..u32::try_from(WRITES).unwrap() {
        let lba = Lba(u64::from(number % 16) << 6);
        let request =
            Request { tag: number, thread: 0, op: Op::Write, handle: 0, lba, sectors: 64 };
        drive.submit(Nanos::ZERO, request);
    }
    while let Some(done) = drive.next_completion(Nanos::MAX) {
        modelled = modelled.max(done.completed_at);
    }
    let expected = Duration::from_nanos(modelled.0);
    assert!(expected > Duration::from_micros(500), "{expected:?} tells nothing");
    let running = Running::of(Rig::paced(512, Some(&model())), Limits::default());
    let (mut admin, mut queue) = running.queues(Digests::default());
    let bytes = vec![7; 1 << 15];
    let begun = Instant::now();
    // Half of them come in capsules, half are transferred.
    let write = |number: u64| io(0x01, 1, (number % 16) * 64, 64);
    for number in 0..WRITES / 2 {
        queue.submit(&write(number).with(Data::Capsule(&bytes)));
    }
    for number in WRITES / 2..WRITES {
        queue.submit(&write(number).with(Data::Transfer(&bytes)));
    }
    assert_eq!(admin.run(&Order::new(0x18, 0, &[])).status, 0);
    let mut done = 0;
    while done < WRITES {
        let pdu = queue.receive().unwrap();
        match pdu.kind() {
            9 => queue.send_data((pdu.u16_at(8), pdu.u16_at(10)), &bytes),
            _ => done += 1,
        }
    }
    let took = begun.elapsed();
    assert!(took >= expected, "{took:?} instead of {expected:?}");
    assert!(took < expected * 2 + Duration::from_mins(1), "{took:?} instead of {expected:?}");
    let back = queue.run(&io(0x02, 1, 0, 64).with(Data::In(1 << 15)));
    assert!(back.data == bytes);
    running.server.stop().unwrap();
}

#[test]
fn a_paced_drive_has_a_log_of_lateness_and_another_has_none() {
    let running = Running::of(Rig::paced(512, Some(&model())), Limits::default());
    let (mut admin, mut queue) = running.queues(Digests::default());
    assert_eq!(u32_at(&admin.log(0, 1024).data, 4 * 0xD1), 1);
    let before = admin.log(0xD1, 512).data;
    assert!(before[..494].iter().all(|byte| *byte == 0), "nothing was asked for");
    assert_eq!((u16_at(&before, 494), &before[506..]), (1, &b"FLTGAT"[..]));
    for block in 0..20 {
        let read = io(0x02, 1, block * 8, 8).with(Data::In(4096));
        assert_eq!(queue.run(&read).status, 0);
    }
    // A completion is counted once it has been sent.
    let counted = || Some(admin.log(0xD1, 512).data).filter(|page| u64_at(page, 0) == 20);
    let page = std::iter::repeat_with(counted).flatten().next().expect("it goes on");
    let [late, modelled, late_by, late_by_max] = [8, 16, 24, 32].map(|at| u64_at(&page, at));
    assert!(late <= 20 && modelled > 20 * 15_000, "{late} {modelled}");
    let peaks = usize::from(u16_at(&page, 40));
    assert_eq!(peaks > 0, late > 0);
    if late > 0 {
        assert!(late_by >= late_by_max && (1..=20).contains(&u64_at(&page, 48)));
        assert_eq!(u64_at(&page, 56), late_by_max, "the first peak is the largest of all");
    }
    let plain = Running::new(Limits::default());
    let (mut admin, _queue) = plain.queues(Digests::default());
    assert_eq!(admin.log(0xD1, 512).status, 0x109);
    assert_eq!(u32_at(&admin.log(0, 1024).data, 4 * 0xD1), 0);
}

/// A host need not send anything else for a command to be completed that takes its time, nor for an
/// event to reach it.
#[test]
fn a_format_and_an_event_come_by_themselves() {
    let rig = Operated::new();
    let exports = Rig::new(512).exports;
    let (server, port, _events) = start(&exports, &rig.subsystem, Limits::default());
    let mut host = Host::open(dial(port), Digests::default(), 0);
    host.wire.set_read_timeout(Some(PATIENCE)).unwrap();
    host.begin(rig.subsystem.nqn());
    assert_eq!(host.run(&Order::new(0x80, 1, &[0])).status, 0, "a format");
    let event = host.submit(&Order::new(0x0C, 0, &[]));
    rig.operator.delete_namespace(Some(1)).unwrap();
    let came = host.finish(event, &[]).unwrap();
    assert_eq!((came.status, came.value), (0, 0x04_00_02), "the namespaces have changed");
    server.stop().unwrap();
}
