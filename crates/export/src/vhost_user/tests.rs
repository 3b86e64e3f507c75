//! A server, and drivers that read, write, lie and vanish.

mod crash;
mod driver;

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use device::{Device, Durability, MemoryDevice};
use proptest::prelude::*;

use self::driver::{
    DATA, Driver, EVENT_INDEX, FEATURES, MEMORY, MEMORY_BYTES, PACKED, Request, words,
};
use super::block::Workspace;
use super::inflight::{self, Inflight};
use super::message::code;
use super::ring::{Layout, PackedRing, Ring, SplitRing};
use super::*;
use crate::guest_memory::{GuestMemory, memory_file};
use crate::pace::tests::{Standstill, drive};
use crate::{Address, Event, Export, Pace};

const PATIENCE: Duration = Duration::from_mins(2);
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const DISCARD: u32 = 11;
const WRITE_ZEROES: u32 = 13;
const BYTES: u64 = 4 << 20;

struct Rig {
    _server: VhostUser,
    device: Arc<dyn Device>,
    path: PathBuf,
    events: Receiver<Event>,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        Self::of(false, None)
    }

    fn of(is_read_only: bool, pace: Option<Arc<Pace>>) -> Self {
        let device = Arc::new(MemoryDevice::new(BYTES));
        let (name, description) = ("memory".to_owned(), String::new());
        let export = Export { name, description, device, is_read_only, pace };
        Self::serving(export, Durability::Durable)
    }

    fn serving(export: Export, kept: Durability) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let device = Arc::clone(&export.device);
        let exports = Exports::new(vec![export]).unwrap();
        let listener = Listener::bind(&Address::Unix(path.clone())).unwrap();
        let (sender, events) = mpsc::channel();
        let observer = move |event: &Event| {
            // The receiver is gone once a test is over.
            let _ = sender.send(event.clone());
        };
        let (serial, observer) = ("0123456789abcdef", Arc::new(observer));
        let server = VhostUser::start(&exports, listener, serial, observer, kept);
        Self { _server: server.unwrap(), device, path, events, _folder: folder }
    }

    fn driver(&self, features: u64) -> Driver {
        let mut driver = Driver::connect(&self.path, FEATURES | features);
        driver.start();
        driver
    }

    fn dropped(&self) -> String {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(event) = self.events.recv_timeout(deadline - Instant::now()) {
            if let Event::Dropped { reason, .. } = event {
                return reason;
            }
        }
        panic!("no client was dropped");
    }
}

fn read(sector: u64, in_bytes: usize) -> Request {
    Request { kind: READ, sector, out: Vec::new(), in_bytes, is_indirect: false }
}

fn write(sector: u64, out: Vec<u8>) -> Request {
    Request { kind: WRITE, sector, out, in_bytes: 0, is_indirect: false }
}

/// A request about ranges of sectors.
fn ranges(kind: u32, ranges: &[(u64, u32, u32)]) -> Request {
    let bytes = ranges.iter().flat_map(|(sector, sectors, flags)| {
        let rest = u64::from(*sectors) | u64::from(*flags) << 32;
        words(&[*sector, rest])
    });
    Request { kind, sector: 0, out: bytes.collect(), in_bytes: 0, is_indirect: false }
}

#[test]
fn every_request_of_the_block_device_is_carried_out_or_refused() {
    let rig = Rig::new();
    for features in [0, PACKED, EVENT_INDEX, PACKED | EVENT_INDEX] {
        let mut driver = rig.driver(features);
        assert_eq!(driver.run(&write(8, vec![7; 4096])).0, 0);
        assert_eq!(driver.run(&read(8, 4096)), (0, vec![7; 4096]));
        let flush = Request { kind: FLUSH, ..read(0, 0) };
        assert_eq!(driver.run(&flush).0, 0);
        assert_eq!(driver.run(&ranges(DISCARD, &[(9, 1, 0), (11, 2, 0)])).0, 0);
        assert_eq!(driver.run(&ranges(WRITE_ZEROES, &[(8, 1, 0)])).0, 0);
        assert_eq!(driver.run(&ranges(WRITE_ZEROES, &[(14, 1, 1)])).0, 0);
        let (_, back) = driver.run(&read(8, 4096));
        let stored: Vec<usize> = (0..8).filter(|sector| back[sector * 512] == 7).collect();
        assert_eq!(stored, [2, 5, 7]);
        let (status, id) = driver.run(&Request { kind: 8, ..read(0, 20) });
        assert_eq!((status, &id[..17]), (0, &b"0123456789abcdef\0"[..]));
        // Beyond the end, not whole sectors, flags that are not known, an unknown request.
        assert_eq!(driver.run(&read(BYTES / 512, 512)).0, 1);
        assert_eq!(driver.run(&read(u64::MAX, 512)).0, 1);
        assert_eq!(driver.run(&read(0, 100)).0, 1);
        assert_eq!(driver.run(&write(0, vec![1; 100])).0, 1);
        assert_eq!(driver.run(&ranges(DISCARD, &[(0, 1, 1)])).0, 2);
        assert_eq!(driver.run(&Request { kind: 99, ..read(0, 512) }).0, 2);
        assert_eq!(driver.run(&read(8, 512)).0, 0, "and it goes on");
    }
}

#[test]
fn connections_that_never_negotiate_keep_no_machine_out() {
    let rig = Rig::new();
    let silent: Vec<_> = (0..200).map(|_| UnixStream::connect(&rig.path).unwrap()).collect();
    let mut driver = rig.driver(0);
    assert_eq!(driver.run(&read(0, 512)).0, 0);
    let known = rig.events.try_iter().filter(|it| matches!(it, Event::Connected { .. })).count();
    assert_eq!(known, 1, "a silent one is no client");
    drop(silent);
}

#[test]
fn a_read_only_export_takes_no_change() {
    let rig = Rig::of(true, None);
    // What would change it is not even offered.
    let mut driver = Driver::connect(&rig.path, 1 << 32 | 1 << 30 | 1 << 28);
    driver.start();
    assert_eq!(driver.run(&write(0, vec![7; 512])).0, 1);
    assert_eq!(driver.run(&ranges(DISCARD, &[(0, 1, 0)])).0, 1);
    assert_eq!(driver.run(&read(0, 512)), (0, vec![0; 512]));
}

#[test]
fn replies_keep_to_the_times_of_a_model() {
    let pace = Arc::new(Pace::new(drive()));
    let rig = Rig::of(false, Some(pace));
    let mut driver = rig.driver(0);
    assert_eq!(driver.run(&write(0, vec![7; 1 << 16])).0, 0);
    let begun = Instant::now();
    for _ in 0..10 {
        assert_eq!(driver.run(&read(0, 4096)), (0, vec![7; 4096]));
    }
    // The host and the controller of that card alone take as long; a slow machine adds to it.
    assert!(begun.elapsed() > Duration::from_micros(150), "{:?}", begun.elapsed());
}

#[test]
fn no_more_requests_wait_for_the_model_than_their_ring_has_entries() {
    let pace = Arc::new(Pace::new(drive()));
    let rig = Rig::of(false, Some(Arc::clone(&pace)));
    let mut driver = rig.driver(0);
    let standstill = Standstill::of(&pace);
    let is_written = |sector: u64| {
        let mut bytes = [0; 512];
        rig.device.read(sector * 512, &mut bytes).unwrap();
        bytes == [9; 512]
    };
    let await_written = |sector: u64| {
        let deadline = Instant::now() + PATIENCE;
        while !is_written(sector) {
            assert!(Instant::now() < deadline, "request {sector} is never carried out");
            thread::yield_now();
        }
    };
    let last = u64::from(driver::SIZE);
    // The same descriptors again and again: each request is carried out at once, and returned by
    // the model.
    for sector in 0..=last {
        driver.submit_as(0, &write(sector, vec![9; 512]));
        driver.ring_bell();
        if sector < last {
            await_written(sector);
        }
    }
    for _ in 0..100 {
        driver.ask(code::GET_FEATURES, &[]);
    }
    assert!(!is_written(last), "more requests are under way than the ring has entries");
    drop(standstill);
    await_written(last);
}

#[test]
fn the_configuration_tells_the_size_and_what_may_be_asked_for() {
    let rig = Rig::new();
    let mut driver = Driver::connect(&rig.path, FEATURES);
    let mut asked = words(&[60 << 32]);
    asked.extend([0; 4 + 60]);
    let config = driver.ask(code::GET_CONFIG, &asked)[12..].to_vec();
    assert_eq!(config[..8], (BYTES / 512).to_le_bytes());
    assert_eq!(config[20..24], 512_u32.to_le_bytes());
    assert_eq!((config[32], config[56]), (1, 1), "it caches writes, and may forget zeroes");
    assert_eq!(driver.ask(code::GET_QUEUE_NUM, &[]), words(&[64]));
    let offered = driver.ask(code::GET_FEATURES, &[]);
    let offered = u64::from_le_bytes(*offered.first_chunk().unwrap());
    assert_eq!(offered & (FEATURES | PACKED | EVENT_INDEX), FEATURES | PACKED | EVENT_INDEX);
}

#[test]
fn a_ring_that_is_stopped_tells_its_position_and_goes_on_from_there() {
    let rig = Rig::new();
    for features in [0, PACKED] {
        let mut driver = rig.driver(features);
        for sector in 0..40 {
            assert_eq!(driver.run(&write(sector, vec![9; 512])).0, 0);
        }
        let answer = driver.ask(code::GET_VRING_BASE, &words(&[0]));
        let base = u32::from_le_bytes(*answer[4..].first_chunk().unwrap());
        assert_eq!(base & 0x7FFF, if features == 0 { 40 } else { 40 * 4 % 64 });
        driver.start_at(base);
        assert_eq!(driver.run(&read(39, 512)), (0, vec![9; 512]));
    }
}

/// A client's message that breaks a rule of the protocol.
type Lie<'a> = &'a dyn Fn(&mut Driver);

#[test]
fn a_client_that_breaks_a_rule_is_dropped_and_another_stays() {
    let rig = Rig::new();
    let mut honest = rig.driver(0);
    let lies: [(Lie<'_>, &str); 6] = [
        (&|driver| driver.set_pair(code::SET_VRING_NUM, 0x8000), "a ring of more than 1024"),
        (&|driver| driver.send(99, &[0; 8], None), "message 99 is unknown"),
        (&|driver| driver.send(code::SET_MEM_TABLE, &words(&[1]), None), "too short"),
        (
            &|driver| driver.send(code::SET_VRING_ADDR, &words(&[0; 5]), None),
            "outside of the memory",
        ),
        (&|driver| driver.send(code::SET_FEATURES, &words(&[1 << 50]), None), "not offered"),
        (&|driver| driver.send(code::SET_VRING_KICK, &words(&[0]), None), "without its descriptor"),
    ];
    for (lie, reason) in lies {
        let mut liar = Driver::connect(&rig.path, FEATURES);
        lie(&mut liar);
        let said = rig.dropped();
        assert!(said.contains(reason), "{said}");
        assert_eq!(honest.run(&write(0, vec![1; 512])).0, 0);
    }
}

/// The ring is gone, or the data alone, before the server has looked at what is in flight.
#[test]
fn a_client_that_truncates_its_memory_is_dropped_and_another_stays() {
    let rig = Rig::new();
    let mut honest = rig.driver(0);
    assert_eq!(honest.run(&write(0, vec![1; 4096])).0, 0);
    for (features, left_bytes) in [(0, 0), (PACKED, 0), (0, DATA - MEMORY), (PACKED, 4096)] {
        let mut driver = rig.driver(features);
        assert_eq!(driver.run(&read(0, 4096)), (0, vec![1; 4096]));
        // The same again, since the server may take it before the file is shorter: empty memory in
        // the place of the data would be seen.
        driver.submit(&write(0, vec![1; 4096]));
        driver.submit(&read(0, 4096));
        rustix::fs::ftruncate(&driver.file, left_bytes).unwrap();
        driver.ring_bell();
        let said = rig.dropped();
        assert_eq!(said, "the client truncated the file of its memory");
        assert_eq!(honest.run(&read(0, 4096)), (0, vec![1; 4096]), "{left_bytes}");
    }
}

#[test]
fn a_client_that_truncates_the_memory_of_requests_in_flight_is_dropped() {
    let rig = Rig::new();
    let mut driver = Driver::connect(&rig.path, FEATURES);
    driver.keep_inflight();
    driver.start();
    assert_eq!(driver.run(&write(0, vec![1; 4096])).0, 0);
    let (file, _) = driver.inflight.as_ref().unwrap();
    rustix::fs::ftruncate(file, 0).unwrap();
    driver.submit(&read(0, 4096));
    driver.ring_bell();
    let said = rig.dropped();
    assert!(said.contains("requests in flight: the client truncated"), "{said}");
    assert_eq!(rig.driver(0).run(&read(0, 4096)), (0, vec![1; 4096]));
}

#[test]
fn a_driver_that_changes_its_memory_under_way_spoils_its_own_data_alone() {
    let rig = Rig::new();
    let mut driver = rig.driver(0);
    let mut other = rig.driver(0);
    assert_eq!(other.run(&write(4096, vec![3; 4096])).0, 0);
    let memory = driver.memory.clone();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let ended = &is_over;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = 0_u8;
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                byte = byte.wrapping_add(1);
                memory.write(MEMORY + 0x10_0000, &[byte; 4096]).unwrap();
            }
        });
        for _ in 0..200 {
            assert_eq!(driver.run(&write(0, vec![5; 4096])).0, 0);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(other.run(&read(4096, 4096)), (0, vec![3; 4096]));
}

/// Point at which a server is killed while it serves a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Killed {
    Taken,
    Recorded,
    Marking,
    Marked,
    Forgotten,
}

fn ring(is_packed: bool) -> Ring {
    let (descriptors, driver) = (MEMORY, MEMORY + 0x8000);
    let layout = Layout { size: driver::SIZE, descriptors, driver, device: MEMORY + 0x1_0000 };
    if is_packed {
        Ring::Packed(PackedRing::new(layout, false))
    } else {
        Ring::Split(SplitRing::new(layout, false))
    }
}

/// Takes one chain, and is killed at a point of it. Returns the chain that is carried out.
fn served_until(
    (ring, inflight): (&mut Ring, &mut Inflight),
    memory: &GuestMemory,
    killed: Killed,
    again: Option<ring::Chain>,
) -> Option<u16> {
    let chain = if let Some(chain) = again {
        chain
    } else {
        let mut own = Vec::new();
        let chain = ring.pop(memory, &mut own).unwrap()?;
        if killed == Killed::Taken {
            return None;
        }
        inflight.note_taken(&chain, &own, ring.base()).unwrap();
        chain
    };
    if matches!(killed, Killed::Taken | Killed::Recorded) {
        return None;
    }
    inflight.note_marking(chain.id, ring.base());
    if killed == Killed::Marking {
        return None;
    }
    ring.push(memory, (chain.id, chain.slots), 1).unwrap();
    ring.publish(memory).unwrap();
    if killed != Killed::Marked {
        inflight.note_used(chain.id, ring.base());
    }
    Some(chain.id)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_was_written_is_read_whatever_the_ring(
        steps in prop::collection::vec((0_u64..64, 1_usize..16, any::<u8>(), 0..5), 1..60),
        (is_packed, has_index) in any::<(bool, bool)>(),
    ) {
        let rig = Rig::new();
        let features = (u64::from(is_packed) * PACKED) | (u64::from(has_index) * EVENT_INDEX);
        let mut driver = rig.driver(features);
        let mut expected = vec![0_u8; 128 * 512];
        for (sector, sectors, byte, kind) in steps {
            let (from, length) = (usize::try_from(sector).unwrap() * 512, sectors * 512);
            let is_indirect = byte % 2 == 0;
            let count = u32::try_from(sectors).unwrap();
            let request = match kind {
                0 => write(sector, vec![byte; length]),
                1 => ranges(DISCARD, &[(sector, count, 0)]),
                2 => ranges(WRITE_ZEROES, &[(sector, count, u32::from(byte % 2))]),
                _ => read(sector, length),
            };
            let (status, data) = driver.run(&Request { is_indirect, ..request });
            prop_assert_eq!(status, 0);
            match kind {
                0 => expected[from..][..length].fill(byte),
                1 | 2 => expected[from..][..length].fill(0),
                _ => prop_assert_eq!(&data, &expected[from..][..length]),
            }
        }
        let mut stored = vec![0; expected.len()];
        rig.device.read(0, &mut stored).unwrap();
        prop_assert_eq!(stored, expected);
    }

    #[test]
    fn many_requests_at_once_are_each_returned_once(
        sectors in prop::collection::vec(0_u64..1000, 1..12), is_packed: bool,
    ) {
        let rig = Rig::new();
        for sector in 0..1000_u64 {
            let bytes = sector.to_le_bytes();
            rig.device.write(sector * 512, &bytes, Durability::Volatile).unwrap();
        }
        let mut driver = rig.driver(if is_packed { PACKED } else { 0 });
        let asked: Vec<u16> = sectors.iter().map(|it| driver.submit(&read(*it, 512))).collect();
        driver.ring_bell();
        for _ in &asked {
            let (id, status, data) = driver.wait();
            let index = asked.iter().position(|it| *it == id).expect("it was asked for");
            prop_assert_eq!(status, 0);
            prop_assert_eq!(&data[..8], &sectors[index].to_le_bytes());
        }
    }

    #[test]
    fn rings_full_of_anything_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 2048), is_packed: bool, seed: u64,
    ) {
        let mut memory = GuestMemory::default();
        let file = memory_file("guest", MEMORY_BYTES).unwrap();
        let place = crate::guest_memory::Place { address: MEMORY, size: MEMORY_BYTES, offset: 0 };
        memory.add(place, file).unwrap();
        memory.write(MEMORY, &bytes).unwrap();
        memory.write(MEMORY + 0x8000, &bytes[1000..1200]).unwrap();
        // Few chains at a time, so that some are looked at.
        memory.store_u16(MEMORY + 0x8002, u16::try_from(seed % 80).unwrap()).unwrap();
        let device = Arc::new(MemoryDevice::new(BYTES));
        let export = Export {
            name: String::new(),
            description: String::new(),
            device,
            is_read_only: false,
            pace: None,
        };
        let block = Block::new(Arc::new(export), "", Durability::Durable, Arc::default());
        let mut ring = ring(is_packed);
        let (mut own, mut workspace) = (Vec::new(), Workspace::default());
        for _ in 0..100 {
            let Ok(Some(chain)) = ring.pop(&memory, &mut own) else { break };
            let done = block.carry_out(&memory, std::slice::from_ref(&chain), &mut workspace);
            Block::answer(&memory, &chain, &done[0]);
            ring.push(&memory, (chain.id, chain.slots), 1).unwrap();
            ring.publish(&memory).unwrap();
        }
    }

    #[test]
    fn a_killed_server_loses_no_request_and_returns_none_twice(
        kills in prop::collection::vec(0_usize..5, 1..40), is_packed: bool,
    ) {
        let rig = Rig::new();
        let mut driver = Driver::connect(&rig.path, FEATURES | (u64::from(is_packed) * PACKED));
        let memory = driver.memory.clone();
        let bytes = inflight::bytes_of_ring(driver::SIZE);
        let file = memory_file("inflight", bytes).unwrap();
        let mapping = inflight::map(file, 0, bytes).unwrap();
        let mut is_first = true;
        for kill in kills {
            // Three at a time: one server is killed at the second, and the next serves the rest.
            let ids: Vec<u16> = (0..3).map(|sector| driver.submit(&read(sector, 512))).collect();
            let killed = [
                Killed::Taken, Killed::Recorded, Killed::Marking, Killed::Marked, Killed::Forgotten,
            ][kill];
            for point in [killed, Killed::Forgotten] {
                let mut own = ring(is_packed);
                if is_first && is_packed {
                    own.set_base(0x8000_8000);
                }
                is_first = false;
                let mut inflight = Inflight::of(&mapping, 0, driver::SIZE).unwrap();
                let mut again = inflight.begin(&mut own, &memory).unwrap().into_iter();
                let served = (&mut own, &mut inflight);
                if point == Killed::Forgotten && killed != Killed::Forgotten {
                    let (ring, inflight) = served;
                    loop {
                        let both = (&mut *ring, &mut *inflight);
                        if served_until(both, &memory, point, again.next()).is_none() {
                            break;
                        }
                    }
                } else {
                    let (ring, inflight) = served;
                    let last = Killed::Forgotten;
                    served_until((&mut *ring, &mut *inflight), &memory, last, again.next());
                    served_until((&mut *ring, &mut *inflight), &memory, point, again.next());
                    if point == Killed::Forgotten {
                        served_until((ring, inflight), &memory, last, again.next());
                    }
                }
            }
            let mut back: Vec<u16> = ids.iter().map(|_| driver.wait().0).collect();
            back.sort_unstable();
            prop_assert_eq!(back, ids);
        }
    }
}
