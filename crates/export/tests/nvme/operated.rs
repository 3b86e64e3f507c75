//! A drive that hosts operate: its namespaces, formats, sanitizes, tests and logs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use device::operator::{Backing, Operator, PersistentState};
use device::{
    Administration, Device, DriveEvent, DriveHealth, EventKind, Identity, InjectedError,
    MemoryDevice, OpalDrive, Operations as _,
};
use export::nvme::{ControllerFault, Subsystem};

use crate::Fragile;
use crate::host::{Data, Digests, Done, Host, Inner, Order, Wire as _, io, u16_at, u32_at, u64_at};
use crate::locked::OpalMemory;

pub(crate) const SIZE: u64 = 8 << 20;
const PATIENCE: Duration = Duration::from_mins(1);

/// A drive in memory, whose erasures wait while they are held.
#[derive(Debug, Default)]
pub(crate) struct Backed {
    is_held: AtomicBool,
    fails: AtomicBool,
    is_encrypted: AtomicBool,
    events: Mutex<Vec<DriveEvent>>,
    kept: Mutex<PersistentState>,
    /// Errors that hosts injected; none where they may not.
    injected: Mutex<Option<Vec<InjectedError>>>,
    /// Opal; none of a drive without.
    opal: Option<Arc<OpalMemory>>,
    /// The subsystem, whose controllers the drive looks at when it is asked for its health.
    shown: OnceLock<Weak<Subsystem>>,
}

impl Administration for Backed {
    fn identity(&self) -> Identity {
        let (model, firmware) = ("Floatgate test drive".to_owned(), "0.1.0".to_owned());
        Identity { number: 0x0123_4567_89AB_CDEF, model, firmware }
    }

    fn health(&self) -> DriveHealth {
        let shown = self.shown.get().and_then(Weak::upgrade);
        assert!(shown.is_none_or(|subsystem| subsystem.controllers().len() < 100));
        DriveHealth {
            available_spare_percent: 100,
            host_written_bytes: 3_000_000_001,
            media_written_bytes: Some(5_000_000_000),
            erase_count_max: Some(12),
            power_on_s: 7200,
            ..DriveHealth::default()
        }
    }
}

impl Backing for Backed {
    fn erase(&self, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), String> {
        while self.is_held.load(Ordering::SeqCst) && go_on(1, 4) {
            std::thread::yield_now();
        }
        if self.fails.load(Ordering::SeqCst) { Err("a test".to_owned()) } else { Ok(()) }
    }

    fn keep(&self, kept: &PersistentState) -> Result<(), String> {
        self.kept.lock().unwrap().clone_from(kept);
        Ok(())
    }

    fn note(&self, kind: EventKind, text: String) {
        self.events.lock().unwrap().push(DriveEvent { at_unix_ms: 1_700_000_000_000, kind, text });
    }

    fn erases_keys(&self) -> bool {
        self.is_encrypted.load(Ordering::SeqCst)
    }

    fn opal(&self) -> Result<Option<OpalDrive>, String> {
        Ok(self.opal.as_ref().map(OpalMemory::drive))
    }

    fn injects_errors(&self) -> bool {
        self.injected.lock().unwrap().is_some()
    }

    fn inject_errors(&self, errors: &[InjectedError]) -> Result<(), String> {
        *self.injected.lock().unwrap() = Some(errors.to_vec());
        Ok(())
    }

    fn injected_errors(&self) -> Vec<InjectedError> {
        self.injected.lock().unwrap().clone().unwrap()
    }

    fn now_unix_ms(&self) -> u64 {
        1_700_000_000_500
    }

    fn events(&self) -> Vec<DriveEvent> {
        self.events.lock().unwrap().clone()
    }

    fn telemetry(&self) -> Vec<u8> {
        b"{\"counters\":1}".repeat(50)
    }
}

/// A subsystem of such a drive, whose only namespace is all of it.
pub(crate) struct Operated {
    pub(crate) subsystem: Arc<Subsystem>,
    pub(crate) operator: Arc<Operator>,
    drive: Arc<Backed>,
}

impl Operated {
    pub(crate) fn new() -> Self {
        Self::on(Arc::new(MemoryDevice::new(SIZE)), false)
    }

    /// One that shows errors on demand.
    pub(crate) fn injecting() -> Self {
        let rig = Self::new();
        *rig.drive.injected.lock().unwrap() = Some(Vec::new());
        rig
    }

    /// One that is served for reading only.
    pub(crate) fn for_reading() -> Self {
        Self::on(Arc::new(MemoryDevice::new(SIZE)), true)
    }

    /// One that another server left: its namespace is private.
    pub(crate) fn of_private() -> Self {
        let mut kept = PersistentState::whole(512);
        kept.namespaces[0].is_private = true;
        Self::open(Arc::new(MemoryDevice::new(SIZE)), kept, false)
    }

    /// The next server of its drive, after the power went.
    pub(crate) fn restarted(&self, is_read_only: bool) -> Self {
        let kept = self.drive.kept.lock().unwrap().clone();
        let kept = if kept.namespaces.is_empty() { PersistentState::whole(512) } else { kept };
        Self::open(Arc::new(MemoryDevice::new(SIZE)), kept, is_read_only)
    }

    pub(crate) fn on(base: Arc<dyn Device>, is_read_only: bool) -> Self {
        Self::open(base, PersistentState::whole(512), is_read_only)
    }

    /// One with Opal, which was stored there.
    pub(crate) fn with_opal(memory: &Arc<OpalMemory>) -> Self {
        let drive = Backed { opal: Some(Arc::clone(memory)), ..Backed::default() };
        let base = Arc::new(MemoryDevice::new(SIZE));
        Self::of(drive, base, PersistentState::whole(512), false)
    }

    /// As [`Self::with_opal`], served for reading only.
    pub(crate) fn with_opal_for_reading(memory: &Arc<OpalMemory>) -> Self {
        let drive = Backed { opal: Some(Arc::clone(memory)), ..Backed::default() };
        let base = Arc::new(MemoryDevice::new(SIZE));
        Self::of(drive, base, PersistentState::whole(512), true)
    }

    fn open(base: Arc<dyn Device>, kept: PersistentState, is_read_only: bool) -> Self {
        Self::of(Backed::default(), base, kept, is_read_only)
    }

    fn of(drive: Backed, base: Arc<dyn Device>, kept: PersistentState, is_read_only: bool) -> Self {
        let drive = Arc::new(drive);
        let backing = Arc::<Backed>::clone(&drive);
        let operator = Arc::new(Operator::open(base, backing, kept, is_read_only).unwrap());
        let operations = Arc::<Operator>::clone(&operator);
        let subsystem = Arc::new(Subsystem::operated(operations));
        drive.shown.set(Arc::downgrade(&subsystem)).unwrap();
        Self { subsystem, operator, drive }
    }

    pub(crate) fn admin(&self) -> (Host<Inner>, u16) {
        let mut host = Host::open(Inner::new(&self.subsystem), Digests::default(), 0);
        let controller = host.begin(self.subsystem.nqn());
        (host, controller)
    }

    pub(crate) fn queues(&self) -> (Host<Inner>, Host<Inner>) {
        let (admin, controller) = self.admin();
        let mut io = Host::open(Inner::new(&self.subsystem), Digests::default(), 0);
        io.begin_io((1, controller), self.subsystem.nqn(), true);
        (admin, io)
    }

    /// Waits until no work is under way.
    pub(crate) fn await_end(&self) {
        let begun = Instant::now();
        loop {
            let status = self.operator.operation_status();
            let is_sanitizing = status.sanitize.state == device::SanitizeState::Running;
            if !status.is_formatting && !is_sanitizing && status.self_test.is_none() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{status:?}");
            std::thread::yield_now();
        }
    }
}

/// Runs a format, and lets time pass until it is completed.
pub(crate) fn format(rig: &Operated, admin: &mut Host<Inner>, order: &Order<'_>) -> Done {
    let id = admin.submit(order);
    rig.await_end();
    for second in 1.. {
        assert!(admin.wire.advance(second));
        if let Some(done) = admin.finish(id, &[]) {
            return done;
        }
        assert!(second < 1000);
    }
    unreachable!("a thousand seconds")
}

fn write(host: &mut Host<Inner>, namespace: u32, lba: u64, byte: u8) -> u16 {
    host.run(&io(0x01, namespace, lba, 8).with(Data::Capsule(&[byte; 4096]))).status
}

fn read(host: &mut Host<Inner>, namespace: u32, lba: u64) -> Done {
    host.run(&io(0x02, namespace, lba, 8).with(Data::In(4096)))
}

#[test]
fn a_format_gives_other_blocks_and_forgets_everything() {
    let rig = Operated::new();
    let (mut admin, mut host) = rig.queues();
    let told = admin.identify(1, 0).data;
    assert_eq!((u16_at(&told, 256), told[524], u32_at(&told, 516)), (0x1A, 2, 64));
    assert_eq!(write(&mut host, 1, 0, 7), 0);
    let done = format(&rig, &mut admin, &Order::new(0x80, 1, &[1]));
    assert_eq!(done.status, 0);
    let told = admin.identify(0, 1).data;
    assert_eq!((u64_at(&told, 0), told[26]), (SIZE / 4096, 1));
    let back = host.run(&io(0x02, 1, 0, 1).with(Data::In(4096)));
    assert_eq!((back.status, back.data), (0, vec![0; 4096]));
    // Back, with an erasure, while which nothing is read.
    rig.drive.is_held.store(true, Ordering::SeqCst);
    let id = admin.submit(&Order::new(0x80, u32::MAX, &[1 << 9]));
    let busy = host.run(&io(0x02, 1, 0, 1).with(Data::In(4096)));
    assert_eq!((busy.status, busy.is_final), (0x84, false), "Format in Progress");
    assert_eq!(admin.run(&Order::new(0x80, 1, &[0])).status, 0x84);
    rig.drive.is_held.store(false, Ordering::SeqCst);
    rig.await_end();
    assert!(admin.wire.advance(1));
    assert_eq!(admin.finish(id, &[]).unwrap().status, 0);
    assert_eq!(admin.identify(0, 1).data[26], 0);
    for (dword, status) in [(2, 0x10A), (1 << 5, 0x10A), (2 << 9, 0x02), (1 << 4, 0x10A)] {
        assert_eq!(admin.run(&Order::new(0x80, 1, &[dword])).status, status, "{dword:#x}");
    }
    assert_eq!(admin.run(&Order::new(0x80, 9, &[0])).status, 0x0B);
    rig.drive.fails.store(true, Ordering::SeqCst);
    let failed = format(&rig, &mut admin, &Order::new(0x80, 1, &[1 << 9]));
    assert_eq!((failed.status, failed.is_final), (0x06, false));
}

/// A namespace that a host creates: blocks, and their format.
pub(crate) fn creation(blocks: u64, format: u8) -> Vec<u8> {
    let mut data = vec![0; 4096];
    data[..8].copy_from_slice(&blocks.to_le_bytes());
    data[8..16].copy_from_slice(&blocks.to_le_bytes());
    data[26] = format;
    data
}

pub(crate) fn controllers(ids: &[u16]) -> Vec<u8> {
    let mut data = vec![0; 4096];
    data[..2].copy_from_slice(&u16::try_from(ids.len()).unwrap().to_le_bytes());
    for (index, id) in ids.iter().enumerate() {
        data[2 + 2 * index..4 + 2 * index].copy_from_slice(&id.to_le_bytes());
    }
    data
}

#[test]
fn namespaces_are_deleted_created_attached_and_detached_while_the_drive_is_open() {
    let rig = Operated::new();
    let (mut admin, controller) = rig.admin();
    let mut host = Host::open(Inner::new(&rig.subsystem), Digests::default(), 0);
    host.begin_io((1, controller), rig.subsystem.nqn(), true);
    let create = |blocks, format| creation(blocks, format);
    let full = create(8, 0);
    let full = admin.run(&Order::new(0x0D, 0, &[0]).with(Data::Capsule(&full)));
    assert_eq!(full.status, 0x115, "Namespace Insufficient Capacity");
    let event = admin.submit(&Order::new(0x0C, 0, &[]));
    assert!(admin.wire.advance(1));
    assert_eq!(admin.run(&Order::new(0x0D, 1, &[1])).status, 0);
    assert_eq!(read(&mut host, 1, 0).status, 0x0B, "it is gone");
    assert_eq!(u64_at(&admin.identify(1, 0).data, 296), SIZE, "all of it is free");
    let (large, small) = (create(SIZE / 2 / 512, 0), create(64, 1));
    let made = admin.run(&Order::new(0x0D, 0, &[0]).with(Data::Capsule(&large)));
    assert_eq!((made.status, made.value), (0, 1));
    let made = admin.run(&Order::new(0x0D, 0, &[0]).with(Data::Capsule(&small)));
    assert_eq!((made.status, made.value), (0, 2));
    // It exists, and no controller has it.
    assert_eq!(u32_at(&admin.identify(2, 0).data, 0), 0);
    let allocated = admin.identify(0x10, 0).data;
    assert_eq!((u32_at(&allocated, 0), u32_at(&allocated, 4)), (1, 2));
    assert_eq!(admin.identify(0, 2).data, vec![0; 4096]);
    assert_eq!(u64_at(&admin.identify(0x11, 2).data, 0), 64);
    assert_eq!(read(&mut host, 2, 0).status, 0x02, "Invalid Field");
    let (own, none) = (controllers(&[controller]), controllers(&[controller + 1]));
    let attach = |admin: &mut Host<Inner>, id, select, list: &[u8]| {
        admin.run(&Order::new(0x15, id, &[select]).with(Data::Capsule(list))).status
    };
    assert_eq!(attach(&mut admin, 2, 0, &none), 0x11C, "Controller List Invalid");
    assert_eq!(attach(&mut admin, 9, 0, &own), 0x0B);
    assert_eq!(attach(&mut admin, 2, 1, &own), 0x11A, "not attached");
    assert_eq!(attach(&mut admin, 2, 0, &own), 0);
    assert_eq!(attach(&mut admin, 2, 0, &own), 0x118, "already attached");
    assert!(admin.wire.advance(3));
    assert_eq!(admin.finish(event, &[]).unwrap().value, 0x04_00_02, "an event");
    let changed = admin.log(4, 4096).data;
    assert_eq!((u32_at(&changed, 0), u32_at(&changed, 4)), (1, 2));
    assert_eq!(u16_at(&admin.identify(0x12, 2).data, 2), controller);
    assert_eq!(u16_at(&admin.identify(0x12, 1).data, 0), 0);
    let block = [6; 4096];
    assert_eq!(host.run(&io(0x01, 2, 63, 1).with(Data::Capsule(&block))).status, 0);
    assert_eq!(host.run(&io(0x02, 2, 63, 1).with(Data::In(4096))).data, block);
    assert_eq!(attach(&mut admin, 2, 1, &own), 0);
    assert_eq!(host.run(&io(0x02, 2, 63, 1).with(Data::In(4096))).status, 0x02);
    assert_eq!(admin.run(&Order::new(0x0D, u32::MAX, &[1])).status, 0);
    assert_eq!(u32_at(&admin.identify(0x10, 0).data, 0), 0);
    let events: Vec<String> = rig.drive.events().into_iter().map(|event| event.text).collect();
    assert!(events.iter().any(|text| text.ends_with("asked to attach namespace 2.")), "{events:?}");
}

#[test]
fn what_promises_durability_is_flushed_though_its_namespace_is_detached_before_that() {
    let device = Fragile::new();
    let rig = Operated::on(Arc::<Fragile>::clone(&device), false);
    let (mut admin, controller) = rig.admin();
    let mut host = Host::open(Inner::new(&rig.subsystem), Digests::default(), 0);
    host.begin_io((1, controller), rig.subsystem.nqn(), true);
    let own = controllers(&[controller]);
    let (forced, bytes) = (Order::new(0x01, 1, &[0, 0, 7 | 1 << 30]), [7; 4096]);
    let of_one = (Order::new(0x00, 1, &[]), &[][..]);
    let of_all = (Order::new(0x00, u32::MAX, &[]), &[][..]);
    for (order, data) in [(forced.with(Data::Capsule(&bytes)), &bytes[..]), of_one, of_all] {
        let what = (order.opcode, order.namespace);
        let before = device.flushes.load(Ordering::SeqCst);
        let first = host.pdu(4, 0, &order.entry(900), data);
        let second = host.pdu(4, 0, &io(0x02, 1, 0, 1).with(Data::In(512)).entry(901), &[]);
        let Inner { session, replies, .. } = &mut host.wire;
        session.take(&first, replies).unwrap();
        let detach = Order::new(0x15, 1, &[1]).with(Data::Capsule(&own));
        assert_eq!(admin.run(&detach).status, 0);
        // The next command of the batch finds the namespace gone.
        session.take(&second, replies).unwrap();
        assert_eq!(device.flushes.load(Ordering::SeqCst), before);
        host.wire.send(&[]);
        let done = [(); 2].map(|()| host.finish(0, &[]).unwrap());
        assert_eq!((done[0].id, done[0].status), (901, 0x02));
        assert_eq!((done[1].id, done[1].status), (900, 0), "{what:?}");
        assert_eq!(device.flushes.load(Ordering::SeqCst), before + 1, "{what:?}");
        let attach = Order::new(0x15, 1, &[0]).with(Data::Capsule(&own));
        assert_eq!(admin.run(&attach).status, 0);
    }
}

#[test]
fn a_sanitize_is_told_in_its_log_and_by_an_event_and_keeps_others_out() {
    let rig = Operated::new();
    let (mut admin, mut host) = rig.queues();
    assert_eq!(u32_at(&admin.identify(1, 0).data, 328), 0x6000_0002);
    assert_eq!(u16_at(&admin.log(0x81, 512).data, 2), 0, "never");
    let event = admin.submit(&Order::new(0x0C, 0, &[]));
    assert!(admin.wire.advance(1));
    write(&mut host, 1, 0, 7);
    rig.drive.is_held.store(true, Ordering::SeqCst);
    assert_eq!(admin.run(&Order::new(0x84, 0, &[3])).status, 0x02, "no overwrite");
    assert_eq!(admin.run(&Order::new(0x84, 0, &[2 | 1 << 9])).status, 0x02, "no blocks are kept");
    assert_eq!(admin.run(&Order::new(0x84, 0, &[2])).status, 0);
    let mut progress = 0;
    let begun = Instant::now();
    while progress == 0 && begun.elapsed() < PATIENCE {
        let log = admin.log(0x81, 512).data;
        assert_eq!((u16_at(&log, 2), u32_at(&log, 4)), (2, 2), "in progress, block erase");
        progress = u16_at(&log, 0);
    }
    assert_eq!(progress, 16383, "a quarter");
    for busy in [read(&mut host, 1, 0), host.run(&io(0x00, 1, 0, 1))] {
        assert_eq!((busy.status, busy.is_final), (0x1D, false), "Sanitize In Progress");
    }
    let data = creation(8, 0);
    assert_eq!(admin.run(&Order::new(0x0D, 0, &[0]).with(Data::Capsule(&data))).status, 0x1D);
    for opcode in [0x80, 0x84, 0x14] {
        assert_eq!(
            admin.run(&Order::new(opcode, 1, &[2 - u32::from(opcode == 0x80)])).status,
            0x1D
        );
    }
    rig.drive.is_held.store(false, Ordering::SeqCst);
    rig.await_end();
    assert!(admin.wire.advance(3));
    assert_eq!(admin.finish(event, &[]).unwrap().value, 0x81_01_06);
    let log = admin.log(0x81, 512).data;
    assert_eq!((u16_at(&log, 0), u16_at(&log, 2)), (0xFFFF, 0x101), "done, and nothing written");
    write(&mut host, 1, 0, 7);
    assert_eq!(u16_at(&admin.log(0x81, 512).data, 2), 1);
    rig.drive.fails.store(true, Ordering::SeqCst);
    assert_eq!(admin.run(&Order::new(0x84, 0, &[2 | 1 << 3])).status, 0);
    rig.await_end();
    assert_eq!(u16_at(&admin.log(0x81, 512).data, 2), 3);
    assert_eq!(read(&mut host, 1, 0).status, 0x1C, "Sanitize Failed");
    assert_eq!(admin.run(&Order::new(0x84, 0, &[1])).status, 0, "the exit is free");
    assert_eq!(read(&mut host, 1, 0).status, 0);
}

#[test]
fn keys_are_erased_where_there_are_some_and_nothing_else_is_claimed() {
    let rig = Operated::new();
    let (mut admin, mut host) = rig.queues();
    let sanitize = Order::new(0x84, 0, &[4]);
    let secure_format = Order::new(0x80, 1, &[2 << 9]);
    let told = admin.identify(1, 0).data;
    assert_eq!((told[328] & 1, told[524]), (0, 1 << 1));
    assert_eq!((admin.run(&sanitize).status, admin.run(&secure_format).status), (0x02, 0x02));
    rig.drive.is_encrypted.store(true, Ordering::SeqCst);
    let told = admin.identify(1, 0).data;
    assert_eq!((u32_at(&told, 328), told[524]), (0x6000_0003, 1 << 2 | 1 << 1));
    write(&mut host, 1, 0, 7);
    assert_eq!(admin.run(&sanitize).status, 0);
    rig.await_end();
    let log = admin.log(0x81, 512).data;
    assert_eq!((u16_at(&log, 2), u32_at(&log, 4)), (0x101, 4), "done, crypto erase");
    assert!(rig.drive.kept.lock().unwrap().is_crypto, "it is known after a restart");
    write(&mut host, 1, 0, 7);
    assert_eq!(format(&rig, &mut admin, &secure_format).status, 0);
    assert!(rig.drive.events.lock().unwrap().iter().any(|it| it.text.contains("erasure of the")));
}

#[test]
fn a_self_test_is_logged_and_a_format_ends_it() {
    let rig = Operated::new();
    let (mut admin, mut host) = rig.queues();
    write(&mut host, 1, 0, 7);
    let empty = admin.log(0x06, 564).data;
    assert_eq!((empty[0], empty[4], empty[32]), (0, 0xF, 0xF));
    for (code, namespace) in [(1, u32::MAX), (2, 1)] {
        assert_eq!(admin.run(&Order::new(0x14, namespace, &[code])).status, 0);
        rig.await_end();
    }
    host.run(&io(0x04, 1, 3, 1));
    let log = admin.log(0x06, 564).data;
    assert_eq!((log[0], log[4], log[32], log[60]), (0, 0x20, 0x10, 0xF));
    assert_eq!((u64_at(&log, 8), u32_at(&log, 16)), (2, 1), "hours, namespace");
    assert_eq!(admin.run(&Order::new(0x14, 5, &[1])).status, 0x0B);
    assert_eq!(admin.run(&Order::new(0x14, 1, &[3])).status, 0x02);
    assert_eq!(admin.run(&Order::new(0x14, 1, &[0xF])).status, 0, "there is none to abort");
}

#[test]
fn logs_say_what_the_drive_counts() {
    let rig = Operated::new();
    let (mut admin, _host) = rig.queues();
    let pages = admin.log(0, 1024).data;
    for page in [6, 7, 8, 9, 0xD, 0x81, 0xC0] {
        assert_eq!(u32_at(&pages, 4 * page) & 1, 1, "{page:#x}");
    }
    let ocp = admin.log(0xC0, 512).data;
    assert_eq!((u64_at(&ocp, 0), u32_at(&ocp, 88), u16_at(&ocp, 494)), (5_000_000_000, 12, 3));
    assert_eq!(ocp[496..500], [0xC5, 0xAF, 0x10, 0x28]);
    let healthy = (u16_at(&ocp, 38), u16_at(&ocp, 46), u16_at(&ocp, 128));
    assert_eq!(healthy, (100, 100, 0xFFFF), "no bad block, and no capacitor");
    let group = |group: u32| Order::new(0x02, 0, &[9 | 127 << 16, group << 16]).with(Data::In(512));
    let log = admin.run(&group(1)).data;
    assert_eq!((u64_at(&log, 64), u64_at(&log, 80), u64_at(&log, 160)), (4, 5, SIZE));
    assert_eq!(admin.run(&group(2)).status, 0x02);
    // Telemetry of the host, captured anew, in blocks.
    let read = |select: u32, offset: u32, length: u32| {
        let dwords = [7 | select << 8 | (length / 4 - 1) << 16, 0, offset];
        Order::new(0x02, 0, &dwords).with(Data::In(length))
    };
    let header = admin.run(&read(1, 0, 512)).data;
    assert_eq!((header[0], u16_at(&header, 8), u16_at(&header, 12), header[381]), (7, 2, 2, 1));
    let area = admin.run(&read(0, 512, 1024)).data;
    assert!(area.starts_with(b"{\"counters\":1}{"));
    assert_eq!(admin.run(&read(0, 4, 512)).status, 0x02);
    assert_eq!(admin.run(&read(0, 0, 508)).status, 0x02);
    assert_eq!(admin.log(8, 512).data[382], 0, "the controller captured nothing");
    let effects = admin.log(5, 4096).data;
    assert_eq!(u32_at(&effects, 4 * 0x80) & 0x7_0007, 0x1_0007, "Format NVM");
    assert_eq!(u32_at(&effects, 1024 + 4 * 0x19) & 3, 3, "Copy");
}

#[test]
fn persistent_events_are_the_history_of_the_drive() {
    let rig = Operated::new();
    let (mut admin, _host) = rig.queues();
    rig.drive.note(EventKind::Started, "The server started, process 7.".to_owned());
    assert_eq!(admin.run(&Order::new(0x84, 0, &[2])).status, 0);
    rig.await_end();
    let read = |action: u32, length: u32| {
        let dwords = [0xD | action << 8 | (length / 4 - 1) << 16];
        Order::new(0x02, u32::MAX, &dwords).with(Data::In(length))
    };
    assert_eq!(admin.run(&read(0, 512)).status, 0x0C, "nothing was begun");
    let header = admin.run(&read(1, 512)).data;
    let (events, bytes) = (u32_at(&header, 4), u64_at(&header, 8));
    assert_eq!((header[0], u16_at(&header, 18)), (0xD, 492));
    // What happens while it is read changes nothing of it.
    rig.drive.note(EventKind::Other, "later".to_owned());
    let length = u32::try_from(bytes.next_multiple_of(4)).unwrap();
    let log = admin.run(&read(0, length)).data;
    let (mut at, mut kinds, mut texts) = (512, Vec::new(), Vec::new());
    while at < usize::try_from(bytes).unwrap() {
        let (kind, data_bytes) = (log[at], usize::from(u16_at(&log, at + 22)));
        let data = &log[at + 24..at + 24 + data_bytes];
        kinds.push(kind);
        if kind == 0xDE {
            texts.push(String::from_utf8(data[6..].to_vec()).unwrap());
        }
        at += usize::from(log[at + 2]) + 3 + data_bytes;
    }
    assert_eq!(kinds.len(), events as usize);
    assert_eq!(kinds[0], 1, "SMART first");
    for kind in [4, 9, 0xA] {
        assert!(kinds.contains(&kind), "{kinds:?}");
        let (byte, bit) = (480 + usize::from(kind / 8), kind % 8);
        assert!(header[byte] >> bit & 1 == 1);
    }
    assert!(texts.iter().any(|text| text == "The server started, process 7."), "{texts:?}");
    assert!(!texts.iter().any(|text| text == "later"));
    assert_eq!(admin.run(&read(1, 512)).status, 0x0C, "one at a time");
    assert_eq!(admin.run(&read(2, 512)).status, 0);
    assert_eq!(u32_at(&admin.run(&read(1, 512)).data, 4), events + 1);
}

#[test]
fn blocks_that_were_made_uncorrectable_fail_until_they_are_written() {
    let rig = Operated::new();
    let (mut admin, mut host) = rig.queues();
    assert_eq!(u16_at(&admin.identify(1, 0).data, 520) & 1 << 1, 1 << 1);
    write(&mut host, 1, 0, 7);
    assert_eq!(host.run(&io(0x04, 1, 2, 3)).status, 0);
    let failed = read(&mut host, 1, 0);
    assert_eq!((failed.status, failed.has_more), (0x281, true));
    assert_eq!(u64_at(&admin.log(1, 64).data, 16), 2, "its block");
    assert_eq!(host.run(&io(0x02, 1, 0, 2).with(Data::In(1024))).data, [7; 1024]);
    assert_eq!(host.run(&io(0x04, 1, SIZE / 512 - 1, 2)).status, 0x80);
    write(&mut host, 1, 0, 8);
    assert_eq!(read(&mut host, 1, 0).data, [8; 4096]);
}

/// A Copy of ranges to an address of a namespace; returns its status.
pub(crate) fn copy(host: &mut Host<Inner>, namespace: u32, to: u64, ranges: &[(u64, u16)]) -> u16 {
    let mut data = Vec::new();
    for (lba, blocks) in ranges {
        let mut range = [0; 32];
        range[8..16].copy_from_slice(&lba.to_le_bytes());
        range[16..18].copy_from_slice(&(blocks - 1).to_le_bytes());
        data.extend(range);
    }
    let low = u32::try_from(to).unwrap();
    let count = u32::try_from(ranges.len()).unwrap() - 1;
    host.run(&Order::new(0x19, namespace, &[low, 0, count]).with(Data::Capsule(&data))).status
}

#[test]
fn copy_gathers_ranges_also_where_they_overlap_their_destination() {
    let rig = Operated::new();
    let (mut admin, mut host) = rig.queues();
    let told = admin.identify(0, 1).data;
    assert_eq!((u16_at(&told, 74), u32_at(&told, 76), told[80]), (1024, 1024, 127));
    for lba in 0..4 {
        write(&mut host, 1, lba * 8, u8::try_from(lba).unwrap() + 1);
    }
    assert_eq!(copy(&mut host, 1, 8, &[(16, 8), (0, 8), (8, 8)]), 0);
    let back: Vec<u8> = (0..4).map(|lba| read(&mut host, 1, lba * 8).data[9]).collect();
    assert_eq!(back, [1, 3, 1, 2]);
    let past_end = SIZE / 512;
    assert_eq!(copy(&mut host, 1, past_end - 4, &[(0, 8)]), 0x80);
    assert_eq!(copy(&mut host, 1, 0, &[(past_end - 1, 2)]), 0x80);
    assert_eq!(copy(&mut host, 1, 0, &[(0, 1024), (0, 1)]), 0x183, "Command Size Limit Exceeded");
    let many = [(0, 1); 129];
    assert_eq!(copy(&mut host, 1, 0, &many), 0x183);
    assert_eq!(read(&mut host, 1, 0).data, [1; 4096], "nothing was done");
}

#[test]
fn a_write_protected_namespace_refuses_writes_until_that_is_taken_back() {
    let rig = Operated::new();
    let (mut admin, mut host) = rig.queues();
    let set =
        |admin: &mut Host<Inner>, state| admin.run(&Order::new(0x09, 1, &[0x84, state])).status;
    assert_eq!(admin.identify(1, 0).data[531], 1);
    assert_eq!(set(&mut admin, 1), 0);
    assert_eq!((write(&mut host, 1, 0, 1), read(&mut host, 1, 0).status), (0x20, 0));
    assert_eq!(admin.run(&Order::new(0x0A, 1, &[0x84])).value, 1);
    assert_eq!((admin.identify(0, 1).data[99], set(&mut admin, 2)), (1, 0x02));
    assert!(rig.drive.kept.lock().unwrap().namespaces[0].is_protected, "it outlasts the server");
    assert_eq!((set(&mut admin, 0), write(&mut host, 1, 0, 1)), (0, 0));
}

#[test]
fn a_namespace_that_wears_out_is_told_of_and_still_read() {
    let rig = Operated::new();
    let (mut admin, mut host) = rig.queues();
    let event = admin.submit(&Order::new(0x0C, 0, &[]));
    assert!(admin.wire.advance(1));
    rig.operator.fail_writes(1).unwrap();
    assert!(admin.wire.advance(3));
    assert_eq!(admin.finish(event, &[]).unwrap().value, 0x04_00_02);
    assert_eq!(u32_at(&admin.log(4, 4096).data, 0), 1);
    assert_eq!((write(&mut host, 1, 0, 1), read(&mut host, 1, 0).status), (0x20, 0));
    assert_eq!(admin.run(&Order::new(0x09, 1, &[0x84, 0])).status, 0);
    assert_eq!(write(&mut host, 1, 0, 1), 0x20, "a host cannot mend it");
}

#[test]
fn controllers_fail_reset_and_vanish_as_hosts_see_it() {
    let rig = Operated::new();
    let (mut admin, mut host) = rig.queues();
    write(&mut host, 1, 0, 5);
    let told = rig.subsystem.controllers();
    assert_eq!((told.len(), &*told[0].state, &*told[0].transport), (1, "enabled", "tcp"));
    assert_eq!((told[0].queues[0].queue, told[0].queues[0].written_bytes), (1, 4096));
    rig.subsystem.fail_controllers(ControllerFault::Fatal);
    assert_eq!(admin.property(0x1C, false), 2, "CSTS.CFS");
    let id = host.submit(&io(0x00, 1, 0, 1));
    assert!(host.finish(id, &[]).is_none());
    admin.set_property(0x14, 0);
    assert_eq!(admin.property(0x1C, false), 0, "a reset mends it");
    rig.subsystem.fail_controllers(ControllerFault::Reset);
    let id = admin.submit(&Order::new(0x18, 0, &[]));
    assert!(admin.finish(id, &[]).is_none());
    let (_admin, mut host) = rig.queues();
    assert_eq!(read(&mut host, 1, 0).data, [5; 4096]);
    rig.subsystem.fail_controllers(ControllerFault::Removed { for_ms: 3_600_000 });
    let mut late = Inner::new(&rig.subsystem);
    crate::host::Wire::send(&mut late, &[0; 8]);
    assert!(late.is_over(), "no host gets in");
}
