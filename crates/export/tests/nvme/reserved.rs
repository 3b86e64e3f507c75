//! Reservations: hosts that contend for a namespace over NVMe/TCP, and what is left of them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use device::{
    Allocation, Device, DeviceError, Durability, MemoryDevice, Operations as _, ReadPart,
};

use export::{Address, Event, Export, Exports, Limits, Listener, Protocol, Server};

use crate::Rig;
use crate::host::{Data, Host, Inner, Order, dial, io, u16_at, u32_at, u64_at};
use crate::operated::{Operated, SIZE, controllers, creation};

/// Longest wait for what does not wait itself.
const PATIENCE: Duration = Duration::from_mins(2);
const CONFLICT: u16 = 0x83;
const FIELD: u16 = 0x02;
/// Change Persist Through Power Loss State: off and on.
const VOLATILE: u32 = 2 << 30;
const PERSISTENT: u32 = 3 << 30;

/// A host by one of its controllers.
struct Contender {
    admin: Host<Inner>,
    queue: Host<Inner>,
}

impl Contender {
    fn new(rig: &Operated, identifier: u8) -> Self {
        let (admin, queue) = Host::queues(&rig.subsystem, [identifier; 16]);
        Self { admin, queue }
    }

    /// Runs a reservation command on namespace 1 with two keys.
    fn reserve(&mut self, opcode: u8, dword: u32, keys: (u64, u64)) -> u16 {
        let data = [keys.0.to_le_bytes(), keys.1.to_le_bytes()].concat();
        let data = if opcode == 0x15 { &data[..8] } else { &data };
        self.queue.run(&Order::new(opcode, 1, &[dword]).with(Data::Capsule(data))).status
    }

    fn register(&mut self, key: u64) {
        assert_eq!(self.reserve(0x0D, 0, (0, key)), 0);
    }

    fn acquire(&mut self, kind: u32, key: u64) -> u16 {
        self.reserve(0x11, kind << 8, (key, 0))
    }

    /// Clears everything, as a registrant.
    fn clear(&mut self, key: u64) {
        assert_eq!(self.reserve(0x15, 1, (key, 0)), 0);
    }

    /// Generation, type, PTPLS, and of each registrant whether it holds, its key and identifier.
    fn report(&mut self) -> (u32, u8, u8, Vec<(u8, u64, u8)>) {
        let order = Order::new(0x0E, 1, &[255, 1]).with(Data::In(1024));
        let done = self.queue.run(&order);
        assert_eq!((done.status, done.data.len()), (0, 1024));
        let (header, entries) = done.data.split_at(64);
        let entries = entries.chunks(64).take(usize::from(u16_at(header, 5)));
        let entry = |it: &[u8]| {
            assert_eq!(u16_at(it, 0), 0xFFFF, "controllers come and go");
            (it[2], u64_at(it, 8), it[16])
        };
        (u32_at(header, 0), header[4], header[9], entries.map(entry).collect())
    }

    /// Statuses of the commands that read, and of those that write.
    fn tried(&mut self) -> (u16, u16) {
        let bytes = [7; 512];
        let range = [&[0; 4], &1_u32.to_le_bytes()[..], &8_u64.to_le_bytes()].concat();
        let mut source = [0; 32];
        source[8] = 9;
        let blocks = |opcode| io(opcode, 1, 0, 1);
        let reads = [
            blocks(0x02).with(Data::In(512)),
            blocks(0x05).with(Data::Capsule(&bytes)),
            blocks(0x0C),
        ];
        let writes = [
            blocks(0x01).with(Data::Capsule(&bytes)),
            blocks(0x01).with(Data::Transfer(&bytes)),
            blocks(0x08),
            blocks(0x04),
            Order::new(0x09, 1, &[0, 4]).with(Data::Capsule(&range)),
            // Hints alone.
            Order::new(0x09, 1, &[0, 0]).with(Data::Capsule(&range)),
            Order::new(0x19, 1, &[2, 0, 0]).with(Data::Capsule(&source)),
            Order::new(0x00, 1, &[]),
            Order::new(0x00, u32::MAX, &[]),
            blocks(0x01).with(Data::Capsule(&bytes)),
        ];
        let mut all = |orders: &[Order<'_>]| {
            let found: Vec<u16> = orders.iter().map(|it| self.queue.run(it).status).collect();
            let is_conflict = found[0] == CONFLICT;
            let agree = found.iter().all(|it| (*it == CONFLICT) == is_conflict);
            assert!(agree, "{found:x?}");
            found[0]
        };
        // Writes first, so that a comparison finds what it expects.
        let written = all(&writes);
        (all(&reads), written)
    }

    /// Type of the oldest notice, how many follow, and its namespace.
    fn notice(&mut self) -> (u8, u8, u32) {
        let page = self.admin.log(0x80, 64).data;
        (page[8], page[9], u32_at(&page, 12))
    }
}

#[test]
fn two_hosts_are_admitted_as_the_table_has_it() {
    let rig = Operated::new();
    let (mut a, mut b) = (Contender::new(&rig, 1), Contender::new(&rig, 2));
    let mut again = Contender::new(&rig, 1);
    a.register(0xA);
    for kind in 1..=6 {
        let is_open = kind % 2 == 1;
        let reads = if is_open { 0 } else { CONFLICT };
        assert_eq!(a.acquire(kind, 0xA), 0);
        assert_eq!((a.tried(), again.tried()), ((0, 0), (0, 0)), "{kind}: one host");
        assert_eq!(b.tried(), (reads, CONFLICT), "{kind}: a stranger");
        assert_eq!(again.acquire(kind, 0xA), 0, "it is held already");
        assert_eq!(again.acquire(7 - kind, 0xA), CONFLICT);
        assert_eq!(b.acquire(kind, 0xB), CONFLICT, "not registered");
        b.register(0xB);
        let registered = if kind > 2 { (0, 0) } else { (reads, CONFLICT) };
        assert_eq!(b.tried(), registered, "{kind}: a registrant");
        let holders = u8::from(kind > 4);
        let expected = vec![(1, 0xA, 1), (holders, 0xB, 2)];
        assert_eq!((b.report().1, b.report().3), (u8::try_from(kind).unwrap(), expected));
        assert_eq!(b.acquire(kind, 0xB), if kind > 4 { 0 } else { CONFLICT });
        assert_eq!(b.reserve(0x0D, 1, (0xB, 0)), 0, "unregister");
        assert_eq!(b.reserve(0x0D, 1, (0xB, 0)), CONFLICT);
        assert_eq!(a.reserve(0x15, (7 - kind) << 8, (0xA, 0)), FIELD, "another type");
        assert_eq!(a.reserve(0x15, kind << 8, (0xA, 0)), 0);
        assert_eq!((b.tried(), a.report().1), ((0, 0), 0));
    }
    // Six registrations of B, and six that were taken back; one of A.
    assert_eq!(a.report().0, 13);
}

#[test]
fn commands_that_change_the_drive_conflict_too() {
    let rig = Operated::new();
    let (mut a, mut b) = (Contender::new(&rig, 1), Contender::new(&rig, 2));
    a.register(0xA);
    assert_eq!(a.acquire(1, 0xA), 0);
    let list = controllers(&[1]);
    let refused = [
        Order::new(0x80, 1, &[0]),
        Order::new(0x80, u32::MAX, &[0]),
        Order::new(0x84, 0, &[2]),
        Order::new(0x0D, 1, &[1]),
        Order::new(0x0D, u32::MAX, &[1]),
        Order::new(0x15, 1, &[1]).with(Data::Capsule(&list)),
    ];
    for order in refused {
        assert_eq!(b.admin.run(&order).status, CONFLICT, "{order:?}");
    }
    let data = creation(8, 0);
    let created = b.admin.run(&Order::new(0x0D, 0, &[0]).with(Data::Capsule(&data)));
    assert_eq!(created.status, 0x115, "there is no room, but no conflict");
    assert_eq!(b.admin.run(&Order::new(0x14, 1, &[0xF])).status, 0, "a self-test");
    assert_eq!(a.admin.run(&Order::new(0x0D, 1, &[1])).status, 0, "the holder may");
    let data = creation(SIZE / 512, 0);
    let created = b.admin.run(&Order::new(0x0D, 0, &[0]).with(Data::Capsule(&data)));
    assert_eq!(created.value, 1);
    let list = controllers(&[2]);
    assert_eq!(b.admin.run(&Order::new(0x15, 1, &[0]).with(Data::Capsule(&list))).status, 0);
    assert_eq!(b.tried(), (0, 0), "another namespace of that number is not reserved");
    assert_eq!(b.report(), (0, 0, 0, vec![]));
}

#[test]
fn a_preempted_host_is_told_and_kept_out() {
    let rig = Operated::new();
    let (mut a, mut b) = (Contender::new(&rig, 1), Contender::new(&rig, 2));
    a.register(0xA);
    b.register(0xB);
    assert_eq!(b.acquire(2, 0xB), 0);
    let event = b.admin.submit(&Order::new(0x0C, 0, &[]));
    assert_eq!(a.reserve(0x11, 1 | 1 << 8, (0xA, 0xC)), CONFLICT, "no such key");
    assert_eq!(a.reserve(0x11, 1 | 1 << 8, (0xA, 0)), FIELD);
    assert_eq!(a.reserve(0x11, 2 | 1 << 8, (0xA, 0xB)), 0, "preempt and abort");
    assert_eq!((a.tried(), b.tried()), ((0, 0), (0, CONFLICT)));
    assert_eq!(a.report().3, [(1, 0xA, 1)]);
    assert!(b.admin.wire.advance(1));
    assert_eq!(b.admin.finish(event, &[]).unwrap().value, 0x80_00_06);
    assert_eq!((b.notice(), b.notice()), ((1, 0, 1), (0, 0, 0)));
    assert_eq!(a.notice(), (0, 0, 0), "not the host of the command");
    // All registrants hold it; one clears everything.
    b.register(0xB);
    assert_eq!(a.reserve(0x15, 1 << 8, (0xA, 0)), 0);
    assert_eq!(b.acquire(6, 0xB), 0);
    assert_eq!(b.reserve(0x15, 6 << 8, (0xB, 0)), 0);
    b.clear(0xB);
    assert_eq!((a.notice(), a.notice(), a.notice()), ((2, 1, 1), (3, 0, 1), (0, 0, 0)));
    // Masked notices are not told.
    let mask =
        |it: &mut Contender, value| it.admin.run(&Order::new(0x09, 1, &[0x82, value])).status;
    assert_eq!((mask(&mut a, 1), mask(&mut a, 1 << 3)), (FIELD, 0));
    assert_eq!(b.admin.run(&Order::new(0x0A, 1, &[0x82])).value, 8, "of the namespace");
    a.register(0xA);
    b.register(0xB);
    b.clear(0xB);
    assert_eq!(a.notice(), (0, 0, 0));
}

#[test]
fn the_status_shows_reservations() {
    let rig = Operated::new();
    let (mut a, mut b) = (Contender::new(&rig, 1), Contender::new(&rig, 0));
    let shown = || rig.subsystem.reservations(1).unwrap();
    assert_eq!(shown(), status::Reservations::default());
    assert_eq!(a.reserve(0x0D, PERSISTENT, (0, 0xA)), 0);
    b.register(u64::MAX);
    assert_eq!((shown().kind, shown().is_persistent), (None, true));
    assert_eq!(a.acquire(3, 0xA), 0);
    let told = shown();
    assert_eq!(told.kind.as_deref(), Some("write-exclusive-registrants-only"));
    let [own, other] = told.registrants.as_slice() else { panic!("{told:?}") };
    assert_eq!(own.host_id.as_deref(), Some("01010101-0101-0101-0101-010101010101"));
    assert_eq!((own.key.as_str(), own.is_holder), ("0xa", true));
    assert_eq!((&other.host_id, other.is_holder), (&None, false));
    assert!(other.controller.is_some() && other.key == "0xffffffffffffffff");
    // What is stored alone, as where no hosts are served.
    let stored = export::nvme::stored_reservations(rig.operator.as_ref(), 1);
    assert_eq!((stored.registrants.as_slice(), &stored.kind), (&told.registrants[..1], &told.kind));
    assert_eq!(rig.subsystem.reservations(9), None);
    a.clear(0xA);
    assert_eq!(shown(), status::Reservations { is_persistent: true, ..Default::default() });
}

#[test]
fn reserved_values_and_unfit_reports_are_refused() {
    let rig = Operated::new();
    let mut a = Contender::new(&rig, 1);
    a.register(0xA);
    for (opcode, dword) in [
        (0x0D, 3),
        (0x0D, 1 << 30),
        (0x11, 0),
        (0x11, 7 << 8),
        (0x11, 3 | 1 << 8),
        (0x11, 1 << 3 | 1 << 8),
        (0x15, 0),
        (0x15, 2 | 1 << 8),
        (0x15, 1 << 3 | 1),
    ] {
        assert_eq!(a.reserve(opcode, dword, (0xA, 0xA)), FIELD, "{opcode:x}h {dword:x}");
    }
    assert_eq!(a.reserve(0x0D, 2, (0xB, 0xC)), CONFLICT, "another key");
    assert_eq!(a.reserve(0x0D, 2 | 1 << 3, (0xB, 0xC)), 0, "whichever key it has");
    let report = |dwords: &[u32], length| Order::new(0x0E, 1, dwords).with(Data::In(length));
    assert_eq!(a.queue.run(&report(&[5, 0], 24)).status, 0x18, "Host Identifier Inconsistent");
    assert_eq!(a.queue.run(&report(&[(128 << 10) - 1, 1], 512 << 10)).status, 0);
    assert_eq!(a.queue.run(&report(&[128 << 10, 1], 512 << 10)).status, FIELD);
    assert_eq!(a.queue.run(&Order::new(0x0E, 9, &[5, 1]).with(Data::In(24))).status, 0x0B);
    let part = a.queue.run(&report(&[0, 1], 4));
    assert_eq!((part.status, part.data), (0, vec![2, 0, 0, 0]), "the generation");
}

#[test]
fn what_is_to_persist_is_there_after_the_power_went_and_the_rest_is_not() {
    let rig = Operated::new();
    let mut a = Contender::new(&rig, 1);
    assert_eq!(a.admin.identify(0, 1).data[31], 0xFF, "RESCAP");
    assert_eq!(a.reserve(0x0D, PERSISTENT, (0, 0xA)), 0);
    assert_eq!(a.acquire(1, 0xA), 0);
    assert_eq!((a.report().2, a.admin.run(&Order::new(0x0A, 1, &[0x83])).value), (1, 1));
    let rig = rig.restarted(false);
    // Without NVMe, too.
    let fenced = rig.operator.namespaces()[0].fenced_device();
    assert!(matches!(fenced.write(0, &[1], Durability::Volatile), Err(DeviceError::Reserved)));
    let (mut a, mut b) = (Contender::new(&rig, 1), Contender::new(&rig, 2));
    assert_eq!((a.tried(), b.tried()), ((0, 0), (0, CONFLICT)));
    assert_eq!(a.report(), (0, 1, 1, vec![(1, 0xA, 1)]));
    // One that is served for reading only holds, but changes nothing for the next.
    let reading = rig.restarted(true);
    let (mut again, mut other) = (Contender::new(&reading, 1), Contender::new(&reading, 2));
    assert_eq!(
        (again.report(), again.admin.identify(0, 1).data[31]),
        ((0, 1, 0, vec![(1, 0xA, 1)]), 0xFE)
    );
    assert_eq!(other.reserve(0x0D, PERSISTENT, (0, 0xB)), FIELD);
    assert_eq!(other.admin.run(&Order::new(0x09, 1, &[0x83, 1])).status, FIELD);
    again.clear(0xA);
    assert_eq!(again.report().1, 0);
    let rig = rig.restarted(false);
    let mut a = Contender::new(&rig, 1);
    assert_eq!(a.report(), (0, 1, 1, vec![(1, 0xA, 1)]));
    // Off by the feature, on, and off by a registration.
    let set = |a: &mut Contender, value| a.admin.run(&Order::new(0x09, 1, &[0x83, value])).status;
    assert_eq!(set(&mut a, 0), 0);
    assert_eq!(Contender::new(&rig.restarted(false), 1).report(), (0, 0, 0, vec![]));
    assert_eq!(set(&mut a, 1), 0);
    assert_eq!(Contender::new(&rig.restarted(false), 1).report().1, 1);
    assert_eq!(a.reserve(0x0D, VOLATILE | 2, (0xA, 0xD)), 0);
    assert_eq!(Contender::new(&rig.restarted(false), 1).report(), (0, 0, 0, vec![]));
    assert_eq!(a.report().3, [(1, 0xD, 1)], "it is still there now");
}

#[test]
fn a_drive_that_cannot_store_reservations_says_so() {
    let rig = Rig::new(512);
    let (mut admin, mut queue) = rig.queues(crate::host::Digests::default(), true);
    assert_eq!(admin.identify(0, 1).data[31], 0xFE);
    let mut register = |dword| {
        let order = Order::new(0x0D, 1, &[dword]);
        queue.run(&order.with(Data::Capsule(&[0; 16]))).status
    };
    assert_eq!((register(PERSISTENT), register(VOLATILE), register(0)), (FIELD, 0, 0));
}

#[test]
fn clients_that_are_no_hosts_are_held_off_as_strangers_are() {
    let rig = Operated::new();
    let mut a = Contender::new(&rig, 1);
    let client = rig.operator.namespaces()[0].fenced_device();
    let tried = || {
        let read = client.read(0, &mut [0; 512]).is_ok();
        (read, client.write(0, &[1; 512], Durability::Volatile).is_ok())
    };
    a.register(0xA);
    assert_eq!((tried(), client.is_write_protected()), ((true, true), false));
    for kind in 1..=6 {
        assert_eq!(a.acquire(kind, 0xA), 0);
        assert_eq!((tried(), client.is_write_protected()), ((kind % 2 == 1, false), true));
        assert!(client.flush().is_ok());
        assert_eq!(a.reserve(0x15, kind << 8, (0xA, 0)), 0);
        assert_eq!(tried(), (true, true));
    }
}

#[test]
fn a_write_that_waits_for_its_data_is_aborted_if_its_host_is_preempted_so() {
    for (action, status) in [(1, 0), (2, 0x1B)] {
        let rig = Operated::new();
        let (mut a, mut b) = (Contender::new(&rig, 1), Contender::new(&rig, 2));
        a.register(0xA);
        b.register(0xB);
        let bytes = [3; 512];
        let id = b.queue.submit(&io(0x01, 1, 0, 1).with(Data::Transfer(&bytes)));
        // No reservation keeps it out afterwards.
        assert_eq!(a.reserve(0x11, action | 1 << 8, (0xA, 0xB)), 0);
        let done = b.queue.finish(id, &bytes).unwrap();
        assert_eq!((done.status, done.is_final), (status, false), "{action}");
        let read = a.queue.run(&io(0x02, 1, 0, 1).with(Data::In(512)));
        assert_eq!(read.data == bytes, status == 0);
        assert_eq!(b.tried(), (0, 0), "it may again");
    }
}

/// A client that asked for the only export by `NBD_OPT_EXPORT_NAME`, and the flags that it was
/// told.
fn nbd_client(port: u16) -> (TcpStream, u16) {
    let mut client = dial(port);
    let mut greeting = [0; 18];
    client.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting[..16], *b"NBDMAGICIHAVEOPT");
    // Fixed newstyle, no zeroes.
    client.write_all(&3_u32.to_be_bytes()).unwrap();
    client.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    let mut told = [0; 10];
    client.read_exact(&mut told).unwrap();
    assert_eq!(told[..8], SIZE.to_be_bytes());
    (client, u16::from_be_bytes([told[8], told[9]]))
}

/// Error number of a request for the first 512 bytes; a read is 0, a write 1.
fn nbd_request(client: &mut TcpStream, kind: u8) -> u32 {
    let mut request = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, kind];
    request.extend([0; 16]);
    request.extend(512_u32.to_be_bytes());
    let data = [5; 512];
    request.extend(&data[..usize::from(kind) * 512]);
    client.write_all(&request).unwrap();
    let mut reply = [0; 16];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..4], [0x67, 0x44, 0x66, 0x98]);
    let error = u32::from_be_bytes([reply[4], reply[5], reply[6], reply[7]]);
    if kind == 0 && error == 0 {
        client.read_exact(&mut [0; 512]).unwrap();
    }
    error
}

#[test]
fn an_nbd_client_and_a_host_contend_over_sockets() {
    const READ_ONLY: u16 = 2;
    const NOT_PERMITTED: u32 = 1;
    let rig = Operated::new();
    let namespace = rig.operator.namespaces().remove(0);
    let export = Export {
        name: "all".to_owned(),
        description: String::new(),
        device: namespace.fenced_device(),
        is_read_only: false,
        pace: None,
    };
    let exports = Exports::new(vec![export]).unwrap();
    let listener = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let Address::Tcp { port, .. } = *listener.address() else { unreachable!("it is of TCP") };
    let listeners = vec![(listener, Protocol::Nbd)];
    let observer = |_: &Event| {};
    let server = Server::start_each(exports, listeners, Limits::default(), observer).unwrap();
    let mut a = Contender::new(&rig, 1);
    let (mut client, flags) = nbd_client(port);
    assert_eq!(flags & READ_ONLY, 0);
    let mut tried = || (nbd_request(&mut client, 0), nbd_request(&mut client, 1));
    a.register(0xA);
    assert_eq!(tried(), (0, 0));
    assert_eq!(a.acquire(1, 0xA), 0);
    assert_eq!(tried(), (0, NOT_PERMITTED));
    assert_eq!(nbd_client(port).1 & READ_ONLY, READ_ONLY);
    assert_eq!(a.reserve(0x11, 1 | 2 << 8, (0xA, 0xA)), 0, "it preempts itself");
    assert_eq!(tried(), (NOT_PERMITTED, NOT_PERMITTED));
    a.clear(0xA);
    assert_eq!(tried(), (0, 0));
    assert_eq!(a.queue.run(&io(0x02, 1, 0, 1).with(Data::In(512))).data, [5; 512]);
    drop(client);
    server.stop().unwrap();
}

/// A device whose writes and trims wait while they are held.
#[derive(Debug)]
struct HeldDevice {
    device: MemoryDevice,
    is_held: AtomicBool,
    /// Notes of what happened, in order.
    order: Mutex<Vec<&'static str>>,
}

impl HeldDevice {
    fn new() -> Arc<Self> {
        let (device, is_held) = (MemoryDevice::new(SIZE), AtomicBool::new(true));
        Arc::new(Self { device, is_held, order: Mutex::default() })
    }

    /// Notes that something begins, and waits while it is held.
    fn begin(&self, what: &'static str) {
        self.note(what);
        while self.is_held.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }

    fn release(&self) {
        self.is_held.store(false, Ordering::SeqCst);
    }

    fn order(&self) -> Vec<&'static str> {
        self.order.lock().unwrap().clone()
    }

    fn note(&self, what: &'static str) {
        self.order.lock().unwrap().push(what);
    }

    fn await_note(&self, what: &str) {
        while !self.order().contains(&what) {
            thread::yield_now();
        }
    }

    /// Waits as long as something is likely to come that must not.
    fn await_mistake() {
        for _ in 0..10_000 {
            thread::yield_now();
        }
    }
}

impl Device for HeldDevice {
    fn size(&self) -> u64 {
        self.device.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(offset, buffer)
    }

    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        self.device.read_many(reads)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        self.begin("writing");
        let written = self.device.write(offset, bytes, durability);
        self.note("written");
        written
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.device.flush()
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.begin("trimming");
        let trimmed = self.device.trim(offset, length, durability);
        self.note("trimmed");
        trimmed
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.device.allocations(offset, length)
    }
}

/// By a host, and by a client that is none.
#[test]
fn no_write_that_was_under_way_comes_after_a_preempt_and_abort() {
    for is_host in [true, false] {
        let held = HeldDevice::new();
        let rig = Operated::on(Arc::<HeldDevice>::clone(&held), false);
        let (mut a, mut b) = (Contender::new(&rig, 1), Contender::new(&rig, 2));
        a.register(0xA);
        b.register(0xB);
        let client = rig.operator.namespaces()[0].fenced_device();
        thread::scope(|scope| {
            let late = scope.spawn(|| {
                if is_host {
                    let write = io(0x01, 1, 0, 1);
                    return b.queue.run(&write.with(Data::Capsule(&[9; 512]))).status == 0;
                }
                client.write(0, &[9; 512], Durability::Volatile).is_ok()
            });
            held.await_note("writing");
            let preempting = scope.spawn(|| {
                held.note("preempting");
                assert_eq!(a.acquire(2, 0xA), 0);
                held.note("acquired");
                assert_eq!(a.reserve(0x11, 2 | 2 << 8, (0xA, 0xA)), 0);
            });
            held.await_note("preempting");
            // Were the acquisition not to wait, it would be done by now.
            HeldDevice::await_mistake();
            held.release();
            assert!(late.join().unwrap(), "it was admitted before");
            preempting.join().unwrap();
        });
        assert_eq!(held.order(), ["writing", "preempting", "written", "acquired"], "{is_host}");
        let write = io(0x01, 1, 0, 1);
        let refused = b.queue.run(&write.with(Data::Capsule(&[9; 512]))).status;
        assert_eq!(refused, CONFLICT);
        assert!(client.write(0, &[9; 512], Durability::Volatile).is_err());
    }
}

#[test]
fn no_reservation_comes_between_the_check_of_an_admin_command_and_its_beginning() {
    let held = HeldDevice::new();
    let rig = Operated::on(Arc::<HeldDevice>::clone(&held), false);
    let (mut a, mut b) = (Contender::new(&rig, 1), Contender::new(&rig, 2));
    b.register(0xB);
    thread::scope(|scope| {
        let deleting = scope.spawn(|| a.admin.run(&Order::new(0x0D, 1, &[1])).status);
        held.await_note("trimming");
        scope.spawn(|| {
            held.note("acquiring");
            b.acquire(1, 0xB);
            held.note("acquired");
        });
        held.await_note("acquiring");
        HeldDevice::await_mistake();
        held.release();
        assert_eq!(deleting.join().unwrap(), 0, "it was admitted before");
    });
    assert_eq!(held.order(), ["trimming", "acquiring", "trimmed", "acquired"]);
}

#[test]
fn a_host_that_registered_nothing_leaves_while_another_writes() {
    let held = HeldDevice::new();
    let rig = Operated::on(Arc::<HeldDevice>::clone(&held), false);
    let (mut b, mut anonymous) = (Contender::new(&rig, 2), Contender::new(&rig, 0));
    thread::scope(|scope| {
        scope.spawn(|| b.queue.run(&io(0x01, 1, 0, 1).with(Data::Capsule(&[9; 512]))));
        held.await_note("writing");
        scope.spawn(|| {
            anonymous.admin.set_property(0x14, 0x0046_0000);
            held.note("reset");
        });
        let begun = Instant::now();
        while !held.order().contains(&"reset") && begun.elapsed() < PATIENCE {
            thread::yield_now();
        }
        held.release();
    });
    assert_eq!(held.order(), ["writing", "reset", "written"]);
}
