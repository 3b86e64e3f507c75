//! Faults at once and in any order, over sockets: media that fail, controllers that are reset or
//! fail, commands that hosts give up, and hosts that vanish. What was acknowledged is right, what
//! was acknowledged as durable survives the end of the server, and no queue hangs.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use device::{Allocation, Device, DeviceError, DriveHealth, Durability, MemoryDevice};
use export::nvme::{ControllerFault, Subsystem};
use export::{Export, Exports, Limits, Server};
use proptest::prelude::*;

use crate::Told;
use crate::host::{self, Data, Digests, Host, Order, Pdu, dial};
use crate::served;

const PAGE: usize = 4096;
const PAGES: usize = 64;
const HOSTS: usize = 3;
/// Time after which a queue counts as hung; a socket waits for longer.
const HUNG: Duration = Duration::from_mins(1);
const WRITE_FAULT: u16 = 0x280;
const UNRECOVERED_READ: u16 = 0x281;
const ABORTED_BY_REQUEST: u16 = 0x07;

/// A device with a volatile cache, whose medium fails on demand.
#[derive(Debug)]
struct Failing {
    now: MemoryDevice,
    durable: Mutex<Vec<u8>>,
    /// Pages that cannot be read until they are written.
    lost: Mutex<BTreeSet<usize>>,
    fails_writes: AtomicBool,
    fails_flushes: AtomicBool,
}

impl Failing {
    fn check(flag: &AtomicBool) -> Result<(), DeviceError> {
        let source = io::ErrorKind::Other.into();
        let attempted = "a test".to_owned();
        let fails = flag.load(Ordering::SeqCst);
        if fails { Err(DeviceError::Medium { attempted, source }) } else { Ok(()) }
    }
}

impl Device for Failing {
    fn size(&self) -> u64 {
        self.now.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        if self.lost.lock().unwrap().contains(&(usize::try_from(offset).unwrap() / PAGE)) {
            return Err(DeviceError::Unreadable { lba: offset / 512, reason: "a test".to_owned() });
        }
        self.now.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        Self::check(&self.fails_writes)?;
        let mut lost = self.lost.lock().unwrap();
        self.now.write(offset, bytes, Durability::Volatile)?;
        lost.remove(&(usize::try_from(offset).unwrap() / PAGE));
        drop(lost);
        if durability == Durability::Durable { self.flush() } else { Ok(()) }
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Self::check(&self.fails_flushes)?;
        self.now.read(0, &mut self.durable.lock().unwrap())
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.now.trim(offset, length, durability)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.now.allocations(offset, length)
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// To a page, of this byte, and durable if so.
    Write(usize, u8, bool),
    Flush,
    /// Waits for all that the host has outstanding.
    Collect,
    Read(usize),
    /// Asks that the latest command be given up.
    Abort,
    /// Asks for an event, and gives it up.
    AbortEvent,
    Vanish,
    Lose(usize),
    FailWrites(bool),
    FailFlushes(bool),
    Reset,
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        16 => (0..PAGES, any::<u8>(), any::<bool>())
            .prop_map(|(page, byte, is_durable)| Step::Write(page, byte, is_durable)),
        3 => Just(Step::Flush),
        4 => Just(Step::Collect),
        6 => (0..PAGES).prop_map(Step::Read),
        2 => Just(Step::Abort),
        1 => Just(Step::AbortEvent),
        1 => Just(Step::Vanish),
        2 => (0..PAGES).prop_map(Step::Lose),
        2 => any::<bool>().prop_map(Step::FailWrites),
        1 => any::<bool>().prop_map(Step::FailFlushes),
        1 => Just(Step::Reset),
        1 => Just(Step::Fail),
    ]
}

/// Contents that a page may have.
#[derive(Clone, Debug)]
struct Known {
    /// Bytes that it may hold now, and after a crash.
    now: BTreeSet<u8>,
    durable: BTreeSet<u8>,
    /// True if it cannot be read; none if that is unknown.
    is_lost: Option<bool>,
    /// Writes that were sent.
    version: u64,
    /// True while a write is outstanding.
    is_busy: bool,
    /// True once it is unknown whether a write was, or will be, carried out: no other is sent.
    is_open: bool,
}

/// A command that is outstanding.
#[derive(Clone, Debug)]
enum Sent {
    Write(usize, u8, bool),
    /// With the versions of all pages then; none for a page with a write outstanding.
    Flush(Vec<Option<u64>>),
}

/// A host with a controller.
struct Attached {
    admin: Host<TcpStream>,
    queue: Host<TcpStream>,
    sent: HashMap<u16, Sent>,
    latest: u16,
}

struct Crossed {
    device: Arc<Failing>,
    subsystem: Arc<Subsystem>,
    port: u16,
    hosts: [Option<Attached>; HOSTS],
    pages: Vec<Known>,
}

impl Crossed {
    fn host(&mut self, index: usize) -> &mut Attached {
        let (port, nqn) = (self.port, self.subsystem.nqn());
        self.hosts[index].get_or_insert_with(|| {
            let mut admin = Host::open(dial(port), Digests::default(), 0);
            let controller = admin.begin(nqn);
            let mut queue = Host::open(dial(port), Digests::default(), 0);
            queue.begin_io((1, controller), nqn, true);
            Attached { admin, queue, sent: HashMap::new(), latest: 0 }
        })
    }

    fn take(&mut self, index: usize, step: Step) {
        match step {
            Step::Write(page, byte, is_durable) => self.write(index, page, byte, is_durable),
            Step::Flush => {
                let of = |it: &Known| (!it.is_busy).then_some(it.version);
                let versions = self.pages.iter().map(of).collect();
                let host = self.host(index);
                let id = host.queue.submit(&host::io(0x00, 1, 0, 1));
                host.sent.insert(id, Sent::Flush(versions));
            }
            Step::Collect => self.collect(index),
            Step::Read(page) => self.read(index, page),
            Step::Abort => {
                let host = self.host(index);
                let dword = 1 | u32::from(host.latest) << 16;
                let done = host.admin.run(&Order::new(0x08, 0, &[dword]));
                assert_eq!((done.status, done.value), (0, 1), "it is carried out all the same");
            }
            Step::AbortEvent => {
                let admin = &mut self.host(index).admin;
                let event = admin.submit(&Order::new(0x0C, 0, &[]));
                let abort = admin.submit(&Order::new(0x08, 0, &[u32::from(event) << 16]));
                let mut done = [(); 2].map(|()| {
                    let pdu = received(admin).expect("both are completed");
                    let done = host::done(&pdu, Vec::new());
                    (done.id, done.status, done.value)
                });
                done.sort_unstable();
                // A controller that lost a page has an event for it.
                let is_aborted = done[1] == (abort, 0, 0);
                let expected = if is_aborted { ABORTED_BY_REQUEST } else { 0 };
                assert_eq!((done[0].0, done[0].1, done[1].1), (event, expected, 0));
            }
            Step::Vanish => self.give_up(index, None),
            Step::Lose(page) => {
                let known = &mut self.pages[page];
                if !known.is_busy && !known.is_open {
                    known.is_lost = Some(true);
                    self.device.lost.lock().unwrap().insert(page);
                }
            }
            Step::FailWrites(fails) => self.device.fails_writes.store(fails, Ordering::SeqCst),
            Step::FailFlushes(fails) => self.device.fails_flushes.store(fails, Ordering::SeqCst),
            Step::Reset => {
                self.subsystem.fail_controllers(ControllerFault::Reset);
                (0..HOSTS).for_each(|index| self.give_up(index, Some(ControllerFault::Reset)));
            }
            Step::Fail => {
                self.subsystem.fail_controllers(ControllerFault::Fatal);
                (0..HOSTS).for_each(|index| self.give_up(index, Some(ControllerFault::Fatal)));
            }
        }
    }

    fn write(&mut self, index: usize, page: usize, byte: u8, is_durable: bool) {
        let known = &mut self.pages[page];
        if known.is_busy || known.is_open {
            return;
        }
        (known.is_busy, known.version) = (true, known.version + 1);
        let host = self.host(index);
        let mut order = host::io(0x01, 1, (page * 8) as u64, 8);
        order.dwords[2] |= u32::from(is_durable) << 30;
        let id = host.queue.submit(&order.with(Data::Capsule(&[byte; PAGE])));
        host.sent.insert(id, Sent::Write(page, byte, is_durable));
        host.latest = id;
    }

    fn read(&mut self, index: usize, page: usize) {
        self.collect(index);
        let known = self.pages[page].clone();
        if known.is_busy {
            return;
        }
        let order = host::io(0x02, 1, (page * 8) as u64, 8).with(Data::In(4096));
        let done = self.host(index).queue.run(&order);
        match known.is_lost {
            Some(true) => assert_eq!(done.status, UNRECOVERED_READ, "page {page}"),
            None if done.status == UNRECOVERED_READ => {}
            Some(false) | None => {
                assert_eq!(done.status, 0, "page {page}");
                assert!(known.now.contains(&done.data[0]), "page {page}: {known:?}");
                assert!(done.data.iter().all(|byte| *byte == done.data[0]), "page {page} is torn");
            }
        }
    }

    /// Waits for all that a host has outstanding.
    fn collect(&mut self, index: usize) {
        let Some(mut host) = self.hosts[index].take() else { return };
        while !host.sent.is_empty() {
            let pdu = received(&mut host.queue).expect("a sound queue goes on");
            self.complete(&mut host, &pdu);
        }
        self.hosts[index] = Some(host);
    }

    fn complete(&mut self, host: &mut Attached, pdu: &Pdu) {
        let done = host::done(pdu, Vec::new());
        match host.sent.remove(&done.id).expect("each command is completed once") {
            Sent::Write(page, byte, is_durable) => {
                let known = &mut self.pages[page];
                known.is_busy = false;
                known.durable.insert(byte);
                if done.status == 0 {
                    known.now = BTreeSet::from([byte]);
                    known.is_lost = Some(false);
                    if is_durable {
                        known.durable = BTreeSet::from([byte]);
                    }
                } else {
                    assert_eq!(done.status, WRITE_FAULT);
                    known.now.insert(byte);
                    known.is_lost = known.is_lost.filter(|is_lost| !is_lost);
                }
            }
            Sent::Flush(versions) => {
                let all = self.pages.iter_mut().zip(versions);
                let kept = all.filter(|(known, version)| Some(known.version) == *version);
                for (known, _) in kept.filter(|(known, _)| done.status == 0 && !known.is_open) {
                    known.durable.clone_from(&known.now);
                }
                assert!([0, WRITE_FAULT].contains(&done.status), "{done:?}");
            }
        }
    }

    /// Ends a host whose controller had a fault, or which vanishes of itself.
    fn give_up(&mut self, index: usize, fault: Option<ControllerFault>) {
        let Some(mut host) = self.hosts[index].take() else { return };
        if let Some(fault) = fault {
            // A queue of a controller that failed ends with its next command.
            let last = host.queue.submit(&host::io(0x00, 1, 0, 1));
            while let Some(pdu) = received(&mut host.queue).filter(|pdu| pdu.kind() == 5) {
                assert!(pdu.u16_at(20) != last, "it takes no command any more");
                self.complete(&mut host, &pdu);
            }
            if fault == ControllerFault::Fatal {
                assert_eq!(host.admin.property(0x1C, false) & 2, 2, "CSTS.CFS");
            }
        }
        for sent in host.sent.into_values() {
            if let Sent::Write(page, byte, _) = sent {
                let known = &mut self.pages[page];
                (known.is_busy, known.is_open) = (false, true);
                known.now.insert(byte);
                known.durable.insert(byte);
                known.is_lost = known.is_lost.filter(|is_lost| !is_lost);
            }
        }
    }
}

/// Receives a PDU; none at the end of the connection. A queue that hangs fails the test.
fn received(host: &mut Host<TcpStream>) -> Option<Pdu> {
    let begun = Instant::now();
    let pdu = host.receive();
    assert!(begun.elapsed() < HUNG, "the queue hangs");
    pdu
}

/// A server, to which no host has come yet.
fn serving() -> (Crossed, Server) {
    let bytes = PAGES * PAGE;
    let device = Arc::new(Failing {
        now: MemoryDevice::new(bytes as u64),
        durable: Mutex::new(vec![0; bytes]),
        lost: Mutex::default(),
        fails_writes: AtomicBool::new(false),
        fails_flushes: AtomicBool::new(false),
    });
    let export = Export {
        name: "failing".to_owned(),
        description: String::new(),
        device: Arc::<Failing>::clone(&device),
        is_read_only: false,
        pace: None,
    };
    let exports = Exports::new(vec![export]).unwrap();
    let told = Arc::new(Told(Mutex::new(DriveHealth::default())));
    let subsystem = Arc::new(Subsystem::new(&exports, told, 512).unwrap());
    let (server, port, _events) = served::start(&exports, &subsystem, Limits::default());
    let fresh = Known {
        now: BTreeSet::from([0]),
        durable: BTreeSet::from([0]),
        is_lost: Some(false),
        version: 0,
        is_busy: false,
        is_open: false,
    };
    let (hosts, pages) = (Default::default(), vec![fresh; PAGES]);
    (Crossed { device, subsystem, port, hosts, pages }, server)
}

fn crossed(steps: Vec<(usize, Step)>) {
    let (mut crossed, server) = serving();
    for (index, step) in steps {
        crossed.take(index, step);
    }
    (0..HOSTS).for_each(|index| crossed.collect(index));
    (0..PAGES).for_each(|page| crossed.read(0, page));
    crossed.hosts = Default::default();
    // What the end of the server flushes is no part of this.
    let durable = crossed.device.durable.lock().unwrap().clone();
    for (page, (known, held)) in crossed.pages.iter().zip(durable.chunks(PAGE)).enumerate() {
        assert!(known.durable.contains(&held[0]), "page {page}: {known:?}, {}", held[0]);
    }
    crossed.device.fails_flushes.store(false, Ordering::SeqCst);
    server.stop().unwrap();
}

#[test]
fn a_host_that_resets_its_controller_connects_its_queues_anew_and_the_old_ones_end() {
    let (crossed, server) = serving();
    let nqn = crossed.subsystem.nqn();
    let mut admin = Host::open(dial(crossed.port), Digests::default(), 0);
    let controller = admin.begin(nqn);
    let connect = || {
        let mut queue = Host::open(dial(crossed.port), Digests::default(), 0);
        queue.begin_io((1, controller), nqn, true);
        queue
    };
    let mut before = connect();
    assert_eq!(before.run(&host::io(0x00, 1, 0, 1)).status, 0, "it is served");
    admin.set_property(0x14, 0x0046_0000);
    assert!(received(&mut before).is_none(), "the connection ends without another command");
    admin.set_property(0x14, 0x0046_0001);
    let mut after = connect();
    drop(before);
    let write = host::io(0x01, 1, 0, 8).with(Data::Capsule(&[7; PAGE]));
    assert_eq!(after.run(&write).status, 0);
    let queues = &crossed.subsystem.controllers()[0].queues;
    assert_eq!(queues.iter().map(|it| it.queue).collect::<Vec<_>>(), [1]);
    server.stop().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn crossed_faults_lose_nothing_that_was_acknowledged_and_hang_no_queue(
        steps in prop::collection::vec((0..HOSTS, step()), 1..120),
    ) {
        crossed(steps);
    }
}
