//! A server, and machines whose drivers read, write, lie and vanish.

mod driver;
#[expect(dead_code, reason = "the tests of the controller use the rest of it")]
#[path = "../../tests/nvme/host.rs"]
mod host;
#[path = "../../tests/nvme/laws.rs"]
mod laws;

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use device::operator::{Backing, Operator, PersistentState};
use device::{
    Administration, Device as _, DriveEvent, DriveHealth, EventKind, Identity, MemoryDevice,
};
use proptest::prelude::*;

use self::driver::{DATA, Driver, ENTRIES, MEMORY, MEMORY_BYTES, command, place, words};
use self::host::{Data, Host, Inner, Order, io, u16_at};
use self::laws::{AdminRequest, Answer, Subject, check};
use super::message::code;
use super::*;
use crate::nvme::ControllerFault;
use crate::pace::tests::{Standstill, drive};
use crate::{Address, Event, Export, Pace};

const PATIENCE: Duration = Duration::from_mins(2);
const READ: u8 = 2;
const WRITE: u8 = 1;
const BYTES: u64 = 4 << 20;

#[derive(Debug, Default)]
struct Drive {
    critical_warning: u8,
    notes: Mutex<Vec<String>>,
}

impl Administration for Drive {
    fn identity(&self) -> Identity {
        Identity { number: 7, model: "Floatgate test".into(), firmware: "1".into() }
    }

    fn health(&self) -> DriveHealth {
        let (critical_warning, composite_temperature_k) = (self.critical_warning, Some(300));
        DriveHealth { critical_warning, composite_temperature_k, ..DriveHealth::default() }
    }
}

impl Backing for Drive {
    fn erase(&self, _: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), String> {
        Ok(())
    }

    fn keep(&self, _: &PersistentState) -> Result<(), String> {
        Ok(())
    }

    fn note(&self, _: EventKind, text: String) {
        self.notes.lock().unwrap().push(text);
    }

    fn now_unix_ms(&self) -> u64 {
        0
    }

    fn events(&self) -> Vec<DriveEvent> {
        Vec::new()
    }

    fn telemetry(&self) -> Vec<u8> {
        Vec::new()
    }
}

struct Rig {
    _server: VfioUser,
    subsystem: Arc<Subsystem>,
    device: Arc<MemoryDevice>,
    path: PathBuf,
    events: Receiver<Event>,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn new(pace: Option<Arc<Pace>>) -> Self {
        Self::of(Drive::default(), pace)
    }

    fn of(drive: Drive, pace: Option<Arc<Pace>>) -> Self {
        let device = Arc::new(MemoryDevice::new(BYTES));
        Self::serve(device, pace, |exports| Subsystem::new(exports, Arc::new(drive), 512).unwrap())
    }

    /// A drive that hosts operate.
    fn operated(drive: Arc<Drive>, is_read_only: bool) -> Self {
        let device = Arc::new(MemoryDevice::new(BYTES));
        let (base, kept) = (Arc::<MemoryDevice>::clone(&device), PersistentState::whole(512));
        let operator = Operator::open(base, drive, kept, is_read_only).unwrap();
        Self::serve(device, None, |_| Subsystem::operated(Arc::new(operator)))
    }

    fn serve(
        device: Arc<MemoryDevice>,
        pace: Option<Arc<Pace>>,
        subsystem: impl FnOnce(&Exports) -> Subsystem,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let (name, description, is_read_only) = (String::new(), String::new(), false);
        let own = Arc::<MemoryDevice>::clone(&device);
        let export = Export { name, description, device: own, is_read_only, pace };
        let exports = Exports::new(vec![export]).unwrap();
        let subsystem = Arc::new(subsystem(&exports));
        let listener = Listener::bind(&Address::Unix(path.clone())).unwrap();
        let (sender, events) = mpsc::channel();
        let observer = move |event: &Event| {
            // The receiver is gone once a test is over.
            let _ = sender.send(event.clone());
        };
        let own = Arc::clone(&subsystem);
        let server = VfioUser::start(&exports, own, listener, Arc::new(observer)).unwrap();
        Self { _server: server, subsystem, device, path, events, _folder: folder }
    }

    fn driver(&self) -> Driver {
        let mut driver = Driver::connect(&self.path);
        driver.enable();
        driver.create(1);
        driver
    }
}

impl Subject for Driver {
    const IS_FABRICS: bool = false;

    fn admin(&mut self, asked: &AdminRequest<'_>) -> Option<Answer> {
        let [first, second] = asked.dwords;
        let mut entry = command(asked.opcode, asked.namespace, &[(10, first), (11, second)]);
        let length = asked.sent.len().max(asked.wanted as usize);
        if length > 0 {
            self.memory.write(DATA, asked.sent).unwrap();
            self.with_pages(&mut entry, (DATA, length as u64), 0);
        }
        self.submit(0, entry);
        self.ring(0);
        // It was carried out before the doorbell was answered.
        if !self.has_completed(0) {
            return None;
        }
        let (_, status, value) = self.wait(0);
        let mut data = vec![0; asked.wanted as usize];
        self.memory.read(DATA, &mut data).unwrap();
        Some(Answer { status: status & 0x7FF, value, data })
    }

    fn io(&mut self, opcode: u8) -> u16 {
        self.run(self.moves(opcode, 0, 1, 0)) & 0x7FF
    }
}

#[test]
fn what_is_claimed_is_carried_out_and_nothing_else() {
    let operated = |is_read_only| Rig::operated(Arc::default(), is_read_only);
    for rig in [Rig::new(None), operated(false), operated(true)] {
        check(&mut rig.driver());
    }
}

/// Runs a reservation command of a machine with two keys.
fn reserve(driver: &mut Driver, opcode: u8, dword: u32, keys: [u64; 2]) -> u16 {
    let mut entry = command(opcode, 1, &[(10, dword)]);
    driver.memory.write(DATA, &keys.map(u64::to_le_bytes).concat()).unwrap();
    driver.with_pages(&mut entry, (DATA, 16), 0);
    driver.run(entry) & 0x7FF
}

#[test]
fn a_machine_and_two_hosts_over_tcp_contend_for_a_namespace() {
    const CONFLICT: u16 = 0x83;
    let rig = Rig::operated(Arc::default(), false);
    let mut machine = rig.driver();
    let identify = command(0x09, 0, &[(10, 0x81), (11, 1)]);
    let mut with_data = identify;
    machine.memory.write(DATA, &[3; 16]).unwrap();
    machine.with_pages(&mut with_data, (DATA, 16), 0);
    assert_eq!(machine.admin(&with_data).0, 0);
    let ((mut admin, mut first), (_admin, mut second)) =
        (Host::queues(&rig.subsystem, [1; 16]), Host::queues(&rig.subsystem, [2; 16]));
    let run = |queue: &mut Host<Inner>, opcode, dword: u32, keys: [u64; 2]| {
        let data = keys.map(u64::to_le_bytes).concat();
        queue.run(&Order::new(opcode, 1, &[dword]).with(Data::Capsule(&data))).status
    };
    let write = |queue: &mut Host<Inner>| {
        queue.run(&io(WRITE, 1, 0, 1).with(Data::Capsule(&[1; 512]))).status
    };
    let moves = |machine: &mut Driver| {
        [READ, WRITE].map(|opcode| machine.run(machine.moves(opcode, 0, 1, 0)) & 0x7FF)
    };
    assert_eq!(run(&mut first, 0x0D, 0, [0, 0xA]), 0);
    assert_eq!(run(&mut second, 0x0D, 0, [0, 0xB]), 0);
    // Exclusive access of the first, registrants only.
    assert_eq!(run(&mut first, 0x11, 4 << 8, [0xA, 0]), 0);
    assert_eq!((moves(&mut machine), write(&mut second)), ([CONFLICT; 2], 0));
    assert_eq!(reserve(&mut machine, 0x0D, 0, [0, 0xC]), 0);
    assert_eq!(moves(&mut machine), [0, 0]);
    // The machine takes over with write exclusive.
    assert_eq!(reserve(&mut machine, 0x11, 2 | 1 << 8, [0xC, 0xA]), 0);
    assert_eq!((moves(&mut machine), write(&mut first), write(&mut second)), ([0, 0], 0x83, 0x83));
    assert_eq!(admin.log(0x80, 64).data[8], 1, "its registration was preempted");
    let read = second.run(&io(READ, 1, 0, 1).with(Data::In(512)));
    assert_eq!(read.status, 0);
    // A report of 64 bytes and two registrants of 64, into the memory of the machine.
    let mut entry = command(0x0E, 1, &[(10, 47), (11, 1)]);
    machine.with_pages(&mut entry, (DATA, 192), 0);
    assert_eq!(machine.run(entry), 0);
    let mut report = [0; 192];
    machine.memory.read(DATA, &mut report).unwrap();
    assert_eq!((report[4], u16_at(&report, 5)), (1, 2));
    assert_eq!((report[64 + 2], report[64 + 16], report[128 + 2], report[128 + 16]), (0, 2, 1, 3));
    assert_eq!(machine.run(command(0x0E, 1, &[(10, 47), (11, 0)])) & 0x7FF, 0x18);
    // It is registered by its identifier, also after it is gone.
    drop(machine);
    assert_eq!(write(&mut second), CONFLICT);
}

#[test]
fn a_machine_without_an_identifier_is_another_host_after_a_reset() {
    let rig = Rig::operated(Arc::default(), false);
    let mut machine = rig.driver();
    let (_admin, mut host) = Host::queues(&rig.subsystem, [1; 16]);
    let read = |host: &mut Host<Inner>| host.run(&io(READ, 1, 0, 1).with(Data::In(512))).status;
    assert_eq!(reserve(&mut machine, 0x0D, 0, [0, 0xC]), 0);
    assert_eq!(reserve(&mut machine, 0x11, 2 << 8, [0xC, 0]), 0);
    assert_eq!(read(&mut host), 0x83);
    let mut report = command(0x0E, 1, &[(10, 11), (11, 0)]);
    machine.with_pages(&mut report, (DATA, 48), 0);
    assert_eq!(machine.run(report), 0, "the form for 64 bits");
    machine.write_region(0, 0x14, &words(&[0]));
    assert_eq!(read(&mut host), 0);
    drop(machine);
    // As with the end of its connection.
    let mut machine = rig.driver();
    assert_eq!(reserve(&mut machine, 0x0D, 0, [0, 0xC]), 0);
    assert_eq!(reserve(&mut machine, 0x11, 2 << 8, [0xC, 0]), 0);
    assert_eq!(read(&mut host), 0x83);
    drop(machine);
    let deadline = Instant::now() + PATIENCE;
    while read(&mut host) != 0 {
        assert!(Instant::now() < deadline, "the reservation stays");
        std::thread::yield_now();
    }
}

#[test]
fn a_doorbell_that_rings_for_nothing_is_an_event() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    let bell =
        |number: u64, is_completion: bool| 0x1000 + 8 * number + 4 * u64::from(is_completion);
    for (offset, value, information) in [
        (bell(3, false), 1, 0),
        (bell(2, true), 0, 0),
        (bell(1, false), ENTRIES, 1),
        (bell(1, true), ENTRIES, 1),
        (bell(0, false), ENTRIES, 1),
    ] {
        driver.submit(0, command(0x0C, 0, &[]));
        driver.ring(0);
        assert!(!driver.has_completed(0));
        driver.write_region(0, offset, &words(&[value]));
        assert!(driver.has_completed(0), "{offset:#x}");
        assert_eq!(driver.wait(0).2, 0x01_00_00 | information << 8, "{offset:#x}");
        // Reading the log lets the next event come.
        let read = AdminRequest {
            opcode: 2,
            dwords: [1 | 15 << 16, 0],
            wanted: 64,
            ..AdminRequest::default()
        };
        assert_eq!(Subject::admin(&mut driver, &read).unwrap().status, 0);
    }
    assert_eq!(driver.run(driver.moves(READ, 0, 1, 0)), 0, "its queue goes on");
}

#[test]
fn a_queue_needs_a_completion_queue_that_may_be_there() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    for (completion, status) in [(0, 0x101), (999, 0x101), (3, 0x100)] {
        let mut entry = command(1, 0, &[(10, 2 | 15 << 16), (11, completion << 16 | 1)]);
        entry[24..32].copy_from_slice(&DATA.to_le_bytes());
        assert_eq!(driver.admin(&entry).0 & 0x7FF, status, "{completion}");
    }
}

#[test]
fn a_machine_has_a_host_identifier_of_either_size() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    let mut identifier = |opcode, extended: u32, sent: &[u8], wanted| {
        let asked = AdminRequest { opcode, dwords: [0x81, extended], sent, wanted, namespace: 0 };
        let done = Subject::admin(&mut driver, &asked).unwrap();
        assert_eq!(done.status, 0);
        done.data
    };
    assert_eq!(identifier(0x0A, 0, &[], 8), [0; 8]);
    identifier(0x09, 1, &[5; 16], 0);
    assert_eq!(
        (identifier(0x0A, 0, &[], 8), identifier(0x0A, 1, &[], 16)),
        (vec![5; 8], vec![5; 16])
    );
}

#[test]
fn a_machine_has_no_name_in_the_history_and_its_controller_is_named() {
    let drive = Arc::<Drive>::default();
    let rig = Rig::operated(Arc::clone(&drive), false);
    let mut driver = rig.driver();
    assert_eq!(driver.admin(&command(0x14, 1, &[(10, 0xF)])).0, 0);
    let notes = drive.notes.lock().unwrap().clone();
    assert_eq!(notes, ["The host of controller 1 asked to abort the self-test of namespace 1."]);
}

#[test]
fn a_function_level_reset_ends_queues_and_brings_registers_back() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    driver.write_region(7, 0x04, &[6, 0]);
    let mut at = driver.read_region(7, 0x34, 1)[0];
    while driver.read_region(7, at.into(), 1) != [0x10] {
        at = driver.read_region(7, u64::from(at) + 1, 1)[0];
        assert!(at != 0, "there is no capability of PCI Express");
    }
    driver.write_region(7, u64::from(at) + 8, &[0, 0x80]);
    assert_eq!((driver.status(), driver.read_region(7, 0x04, 2)), (0, vec![0, 0]));
    assert_eq!(driver.read_region(0, 0x28, 8), [0; 8], "ASQ");
    drop(driver);
    let mut driver = rig.driver();
    assert_eq!(driver.run(driver.moves(READ, 0, 1, 0)), 0);
}

/// Its queues are gone, or the data alone, with and without doorbells in its memory.
#[test]
fn a_machine_that_truncates_its_memory_is_dropped_and_another_stays() {
    let rig = Rig::new(None);
    let mut honest = rig.driver();
    honest.memory.write(place(0), &[1; 512]).unwrap();
    assert_eq!(honest.run(honest.moves(WRITE, 0, 1, 0)), 0);
    for (has_buffer, left_bytes) in [(false, 0), (true, 0), (false, DATA - MEMORY)] {
        let mut driver = rig.driver();
        if has_buffer {
            driver.use_buffer();
        }
        driver.memory.write(place(0), &[7; 512]).unwrap();
        driver.submit(1, driver.moves(WRITE, 0, 1, 0));
        rustix::fs::ftruncate(&driver.file, left_bytes).unwrap();
        // A doorbell without a reply, which may not come.
        driver.ring_blindly(1);
        let deadline = Instant::now() + PATIENCE;
        let reason = loop {
            let event = rig.events.recv_timeout(deadline - Instant::now()).expect("it is dropped");
            if let Event::Dropped { reason, .. } = event {
                break reason;
            }
        };
        assert_eq!(reason, "the client truncated the file of its memory");
        assert_eq!(honest.run(honest.moves(READ, 0, 1, 1)), 0);
        let mut back = [0; 512];
        honest.memory.read(place(1), &mut back).unwrap();
        assert_eq!(back, [1; 512], "{left_bytes}");
    }
}

#[test]
fn a_driver_finds_an_nvme_drive_and_what_it_wrote_on_it() {
    let rig = Rig::new(None);
    let mut driver = Driver::connect(&rig.path);
    assert_eq!(driver.ask(code::DEVICE_GET_INFO, &words(&[16, 0, 0, 0]), &[]).unwrap()[4], 3);
    assert_eq!(driver.read_region(7, 8, 4), [0, 2, 8, 1], "a drive with NVM Express");
    let interrupts = driver.ask(code::DEVICE_GET_IRQ_INFO, &words(&[16, 0, 2, 0]), &[]).unwrap();
    assert_eq!(interrupts[12..], 129_u32.to_le_bytes());
    driver.enable();
    let mut identify = command(6, 0, &[(10, 1)]);
    driver.with_pages(&mut identify, (DATA, 4096), 0);
    assert_eq!(driver.admin(&identify).0, 0);
    assert!(driver.was_interrupted(0));
    let mut back = [0; 4096];
    driver.memory.read(DATA, &mut back).unwrap();
    assert_eq!(&back[24..38], b"Floatgate test");
    assert_eq!(back[257], 1, "a doorbell buffer");
    assert_eq!(back[..2], driver.read_region(7, 0, 2), "one vendor");
    assert_eq!(back[536..540], [0; 4], "no SGLs");
    driver.create(1);
    let bytes: Vec<u8> = (0..=255).cycle().take(100 * 512).collect();
    driver.memory.write(place(0), &bytes).unwrap();
    assert_eq!(driver.run(driver.moves(WRITE, 3, 100, 0)), 0);
    assert_eq!(driver.run(driver.moves(READ, 3, 100, 1)), 0);
    assert!(driver.was_interrupted(1));
    let mut back = vec![0; bytes.len()];
    driver.memory.read(place(1), &mut back).unwrap();
    assert_eq!(back, bytes);
    // A flush, a block beyond the end, an unknown command.
    assert_eq!(driver.run(command(0, 1, &[])), 0);
    assert_eq!(driver.run(driver.moves(READ, BYTES / 512, 1, 0)) & 0x7FF, 0x80);
    assert_eq!(driver.run(command(0x7B, 1, &[])) & 0x7FF, 1);
}

#[test]
fn connections_that_never_negotiate_keep_no_machine_out() {
    let rig = Rig::new(None);
    let silent: Vec<_> = (0..200).map(|_| UnixStream::connect(&rig.path).unwrap()).collect();
    let mut driver = rig.driver();
    assert_eq!(driver.run(driver.moves(READ, 0, 1, 0)), 0);
    let known = rig.events.try_iter().filter(|it| matches!(it, Event::Connected { .. })).count();
    assert_eq!(known, 1, "a silent one is no client");
    drop(silent);
}

#[test]
fn a_client_of_an_older_protocol_is_answered_with_its_own_version() {
    let rig = Rig::new(None);
    let mut driver = Driver::connect(&rig.path);
    for (asked, agreed) in [([0_u8, 0, 0, 0], 0), ([0, 0, 1, 0], 1), ([0, 0, 9, 0], 1)] {
        let version = driver.ask(code::VERSION, &asked, &[]).unwrap();
        assert_eq!(version[..4], [0, 0, agreed, 0]);
        let capabilities = std::str::from_utf8(&version[4..]).unwrap();
        // QEMU takes no larger number of descriptors.
        assert!(capabilities.contains("\"max_msg_fds\":16,"), "{capabilities}");
    }
    assert!(driver.ask(code::VERSION, &[1, 0, 0, 0], &[]).is_err(), "another major version");
}

#[test]
fn queues_are_created_and_deleted_by_the_rules() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    let status = |driver: &mut Driver, entry: [u8; 64]| driver.admin(&entry).0 & 0x7FF;
    let shape = |number: u32, entries: u32| (10, number | (entries - 1) << 16);
    let create = |opcode, number, rest| command(opcode, 0, &[shape(number, ENTRIES), (11, rest)]);
    assert_eq!(status(&mut driver, create(5, 1, 3)), 0x101, "there is one of that number");
    assert_eq!(status(&mut driver, create(5, 0, 3)), 0x101, "that is the admin queue");
    assert_eq!(status(&mut driver, create(5, 2, 500 << 16 | 3)), 0x108, "no such vector");
    assert_eq!(status(&mut driver, create(1, 2, 9 << 16 | 1)), 0x100, "no such queue");
    assert_eq!(status(&mut driver, command(5, 0, &[shape(2, 1), (11, 1)])), 0x102, "one entry");
    assert_eq!(status(&mut driver, command(4, 0, &[(10, 1)])), 0x10C, "it is in use");
    assert_eq!(status(&mut driver, command(0, 0, &[(10, 1)])), 0);
    assert_eq!(status(&mut driver, command(0, 0, &[(10, 1)])), 0x101, "it is gone");
    assert_eq!(status(&mut driver, command(4, 0, &[(10, 1)])), 0);
}

#[test]
fn a_drive_with_interrupts_has_their_features() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    let get = |feature, selected| command(0x0A, 0, &[(10, feature), (11, selected)]);
    let set = |feature, value| command(0x09, 0, &[(10, feature), (11, value)]);
    assert_eq!(driver.admin(&get(8, 0)), (0, 0));
    assert_eq!(driver.admin(&set(8, 0x0A03)).0, 0);
    assert_eq!(driver.admin(&get(8, 0)), (0, 0x0A03));
    let uncoalesced = 1 << 16;
    assert_eq!(driver.admin(&get(9, 1)), (0, 1));
    assert_eq!(driver.admin(&set(9, uncoalesced | 1)).0, 0);
    assert_eq!(driver.admin(&get(9, 1)), (0, uncoalesced | 1));
    assert_eq!(driver.admin(&get(9, 2)), (0, 2), "another vector");
    assert_eq!(driver.admin(&set(9, 1)).0, 0);
    assert_eq!(driver.admin(&get(9, 1)), (0, 1));
    assert_eq!(driver.admin(&get(9, 128)).0, 0, "the last one");
    assert_eq!(driver.admin(&get(9, 129)).0 & 0x7FF, 2, "no such vector");
}

#[test]
fn a_reset_controller_begins_anew() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    driver.memory.write(place(0), &[9; 512]).unwrap();
    assert_eq!(driver.run(driver.moves(WRITE, 0, 1, 0)), 0);
    driver.write_region(0, 0x14, &words(&[0]));
    assert_eq!(driver.status(), 0);
    driver.ask(code::DEVICE_RESET, &[], &[]).unwrap();
    drop(driver);
    let mut driver = rig.driver();
    assert_eq!(driver.run(driver.moves(READ, 0, 1, 1)), 0);
    let mut back = [0; 512];
    driver.memory.read(place(1), &mut back).unwrap();
    assert_eq!(back, [9; 512]);
}

#[test]
fn a_failed_controller_takes_no_command_until_it_is_reset() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    rig.subsystem.fail_controllers(ControllerFault::Fatal);
    assert_eq!(driver.status(), 2);
    driver.memory.write(place(0), &[9; 512]).unwrap();
    let entry = driver.moves(WRITE, 0, 1, 0);
    driver.submit(1, entry);
    driver.ring(1);
    for _ in 0..100 {
        assert_eq!(driver.status(), 2);
    }
    driver.ask(code::DEVICE_RESET, &[], &[]).unwrap();
    drop(driver);
    let mut driver = rig.driver();
    assert_eq!(driver.run(driver.moves(READ, 0, 1, 1)), 0);
    let mut back = [1; 512];
    driver.memory.read(place(1), &mut back).unwrap();
    assert_eq!(back, [0; 512]);
}

#[test]
fn events_are_reported_to_a_host_that_never_pauses() {
    let rig = Rig::of(Drive { critical_warning: 1, ..Drive::default() }, None);
    let mut driver = Driver::connect(&rig.path);
    driver.enable();
    driver.submit(0, command(0x0C, 0, &[]));
    driver.ring(0);
    let deadline = Instant::now() + PATIENCE;
    while !driver.has_completed(0) {
        assert_eq!(driver.status(), 1);
        assert!(Instant::now() < deadline, "no event is reported");
    }
    assert_eq!(driver.wait(0).1, 0);
}

#[test]
fn with_a_doorbell_buffer_a_busy_queue_is_not_rung_for() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    driver.use_buffer();
    let before = driver.rung;
    for round in 0..200 {
        for slot in 0..8 {
            let entry = driver.moves(READ, slot * 8, 8, slot);
            driver.submit(1, entry);
            driver.ring(1);
        }
        for _ in 0..8 {
            assert_eq!(driver.wait(1).1, 0, "round {round}");
        }
    }
    let rung = driver.rung - before;
    // A queue may fall asleep between two rounds on a busy machine; without the buffer there would
    // be 3200.
    assert!(rung < 1600, "{rung} doorbells for 1600 commands");
}

#[test]
fn completions_that_have_no_room_wait_for_it() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    // One more round than the queue holds, in pieces that fill it.
    for _ in 0..5 {
        for slot in 0..u64::from(ENTRIES) - 1 {
            let entry = driver.moves(READ, slot, 1, slot);
            driver.submit(1, entry);
        }
        driver.ring(1);
        for _ in 0..ENTRIES - 1 {
            assert_eq!(driver.wait(1).1, 0);
        }
    }
}

#[test]
fn a_full_completion_queue_goes_on_once_the_host_makes_room() {
    for has_buffer in [false, true] {
        let rig = Rig::new(None);
        let mut driver = rig.driver();
        if has_buffer {
            driver.use_buffer();
        }
        for round in 0..20 {
            for count in [ENTRIES - 1, 8] {
                for slot in 0..u64::from(count) {
                    let entry = driver.moves(READ, slot, 1, slot);
                    driver.submit(1, entry);
                }
                driver.ring(1);
                if count == 8 {
                    std::thread::sleep(Duration::from_millis(1));
                    assert!(!driver.has_completed(1), "round {round}: there is no room");
                    driver.make_room(1);
                }
                for _ in 0..count {
                    assert_eq!(driver.take(1).1, 0, "round {round}");
                }
            }
            driver.make_room(1);
        }
    }
}

#[test]
fn admin_commands_are_taken_only_while_there_is_room_for_their_completions() {
    let rig = Rig::new(None);
    let mut driver = Driver::connect(&rig.path);
    driver.enable();
    let page = |number: u32| DATA + u64::from(number) * 4096;
    let is_filled = |driver: &Driver, number| {
        let mut bytes = [0; 4096];
        driver.memory.read(page(number), &mut bytes).unwrap();
        bytes != [0; 4096]
    };
    for round in 0..3 {
        for number in 0..ENTRIES - 1 {
            driver.memory.write(page(number), &[0; 4096]).unwrap();
            let mut identify = command(6, 0, &[(10, 1)]);
            driver.with_pages(&mut identify, (page(number), 4096), 0);
            driver.submit(0, identify);
        }
        driver.ring(0);
        // The first round fills the completion queue; of another, one waits for room.
        let taken = (0..ENTRIES - 1).filter(|number| is_filled(&driver, *number)).count();
        assert_eq!(taken, if round == 0 { 15 } else { 1 }, "round {round}");
        if round > 0 {
            driver.make_room(0);
        }
        for _ in 0..ENTRIES - 1 {
            assert_eq!(driver.take(0).1, 0, "round {round}");
        }
        assert!((0..ENTRIES - 1).all(|number| is_filled(&driver, number)), "round {round}");
    }
}

#[test]
fn no_more_commands_wait_for_the_model_than_their_queue_has_entries() {
    let pace = Arc::new(Pace::new(drive()));
    let rig = Rig::new(Some(Arc::clone(&pace)));
    let mut driver = rig.driver();
    let standstill = Standstill::of(&pace);
    let is_written = |lba: u32| {
        let mut bytes = [0; 512];
        rig.device.read(u64::from(lba) * 512, &mut bytes).unwrap();
        bytes == [9; 512]
    };
    driver.memory.write(place(0), &[9; 512]).unwrap();
    // One at a time: each is carried out at once, and completed by the model.
    for lba in 0..=ENTRIES {
        driver.force(1, driver.moves(WRITE, lba.into(), 1, 0));
        driver.ring(1);
        let deadline = Instant::now() + PATIENCE;
        while lba < ENTRIES && !is_written(lba) {
            assert!(Instant::now() < deadline, "command {lba} is never carried out");
            std::thread::yield_now();
        }
    }
    for _ in 0..100 {
        assert_eq!(driver.status(), 1);
    }
    assert!(!is_written(ENTRIES), "more commands are under way than the queue has entries");
    drop(standstill);
    for _ in 0..=ENTRIES {
        assert_eq!(driver.wait(1).1, 0);
    }
    assert!(is_written(ENTRIES));
}

#[test]
fn replies_keep_to_the_times_of_a_model() {
    let pace = Arc::new(Pace::new(drive()));
    let rig = Rig::new(Some(Arc::clone(&pace)));
    let mut driver = rig.driver();
    assert_eq!(driver.run(driver.moves(WRITE, 0, 8, 0)), 0);
    let begun = Instant::now();
    for _ in 0..10 {
        assert_eq!(driver.run(driver.moves(READ, 0, 8, 0)), 0);
    }
    assert!(begun.elapsed() > Duration::from_micros(150), "{:?}", begun.elapsed());
    let counted = std::iter::repeat_with(|| pace.lateness().replies).find(|it| *it == 11);
    assert!(counted.is_some());
}

#[test]
fn addresses_outside_of_the_memory_are_refused_and_queues_there_are_fatal() {
    let rig = Rig::new(None);
    let mut driver = rig.driver();
    for (first, second, blocks) in [
        (0, 0, 1),
        (MEMORY + MEMORY_BYTES - 256, 0, 1),
        (u64::MAX - 3, 0, 1),
        (DATA, u64::MAX - 4095, 16),
        (DATA, MEMORY + MEMORY_BYTES, 64),
    ] {
        for opcode in [READ, WRITE] {
            let mut entry = driver.moves(opcode, 0, blocks, 0);
            entry[24..32].copy_from_slice(&u64::to_le_bytes(first));
            entry[32..40].copy_from_slice(&u64::to_le_bytes(second));
            let status = driver.run(entry) & 0x7FF;
            assert!(matches!(status, 4 | 0x13), "{first:#x}, {second:#x}: {status:#x}");
        }
    }
    let mut entry = command(5, 0, &[(10, 2 | 15 << 16), (11, 2 << 16 | 3)]);
    entry[24..32].copy_from_slice(&(1_u64 << 50).to_le_bytes());
    assert_eq!(driver.admin(&entry).0, 0, "where it is matters once it is used");
    let mut entry = command(1, 0, &[(10, 2 | 15 << 16), (11, 2 << 16 | 1)]);
    entry[24..32].copy_from_slice(&(1_u64 << 50).to_le_bytes());
    assert_eq!(driver.admin(&entry).0, 0);
    driver.write_region(0, 0x1000 + 16, &words(&[1]));
    while driver.status() & 2 == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn what_is_no_command_ends_the_connection_and_others_stay() {
    let rig = Rig::new(None);
    let mut honest = rig.driver();
    let mut liar = Driver::connect(&rig.path);
    for (code, body) in [
        (code::REGION_READ, vec![0xFF; 16]),
        (code::REGION_WRITE, vec![0; 3]),
        (code::DMA_MAP, vec![]),
        (code::DMA_UNMAP, vec![1; 4]),
        (code::DEVICE_SET_IRQS, words(&[20, 4, 2, 100, u32::MAX])),
        (code::DEVICE_GET_REGION_INFO, words(&[32, 0, 99])),
        (code::REGION_WRITE_MULTI, u64::MAX.to_le_bytes().to_vec()),
        (99, vec![0; 64]),
    ] {
        // Errors, or nothing done, and it goes on.
        let _ = liar.ask(code, &body, &[]);
    }
    liar.socket.send(&[0xFF; 64], &[]).unwrap();
    let dropped = std::iter::from_fn(|| rig.events.recv_timeout(PATIENCE).ok());
    let mut reasons = dropped.filter_map(|event| match event {
        Event::Dropped { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(reasons.next().unwrap(), "an invalid command header");
    assert_eq!(honest.run(honest.moves(READ, 0, 1, 0)), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_was_written_is_read_through_several_queues(
        steps in prop::collection::vec(
            (1_u32..=3, 0_u64..256, 1_u32..200, any::<u8>(), 0..4), 1..60,
        ),
        has_buffer: bool,
    ) {
        let rig = Rig::new(None);
        let mut driver = rig.driver();
        if has_buffer {
            driver.use_buffer();
        }
        driver.create(2);
        driver.create(3);
        let mut expected = vec![0_u8; 512 * 512];
        for (queue, lba, blocks, byte, kind) in steps {
            let from = usize::try_from(lba).unwrap() * 512;
            let length = blocks as usize * 512;
            driver.memory.write(place(0), &vec![byte; length]).unwrap();
            let entry = match kind {
                0 => driver.moves(WRITE, lba, blocks, 0),
                // Write Zeroes, which may deallocate.
                1 => {
                    let low = u32::try_from(lba).unwrap();
                    command(8, 1, &[(10, low), (12, (blocks - 1) | (1 << 25))])
                }
                _ => driver.moves(READ, lba, blocks, 0),
            };
            driver.submit(queue, entry);
            driver.ring(queue);
            prop_assert_eq!(driver.wait(queue).1, 0);
            match kind {
                0 => expected[from..][..length].fill(byte),
                1 => expected[from..][..length].fill(0),
                _ => {
                    let mut back = vec![0; length];
                    driver.memory.read(place(0), &mut back).unwrap();
                    prop_assert_eq!(&back, &expected[from..][..length]);
                }
            }
        }
    }

    #[test]
    fn commands_of_any_bytes_are_each_completed(
        entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 64), 1..30),
    ) {
        let rig = Rig::new(None);
        let mut driver = rig.driver();
        for bytes in entries {
            let mut entry = [0; 64];
            entry.copy_from_slice(&bytes);
            driver.submit(1, entry);
            driver.ring(1);
            driver.wait(1);
        }
    }
}
