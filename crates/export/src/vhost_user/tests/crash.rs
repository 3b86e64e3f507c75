//! A device that loses in a crash what was not flushed, and drivers that go on with the next
//! server.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use device::{Allocation, DeviceError};

use super::*;

/// Sectors of the device, in regions that one request each changes.
const SECTORS: u64 = 256;
const REGION: u64 = 16;
const SIZE: u64 = SECTORS * 512;

/// A device with a volatile cache.
#[derive(Debug)]
struct Cached {
    now: MemoryDevice,
    /// Bytes that a crash leaves.
    durable: Mutex<Vec<u8>>,
    flushes: AtomicUsize,
}

impl Cached {
    fn holding(bytes: Vec<u8>) -> Arc<Self> {
        let now = MemoryDevice::new(SIZE);
        now.write(0, &bytes, Durability::Volatile).unwrap();
        Arc::new(Self { now, durable: Mutex::new(bytes), flushes: AtomicUsize::new(0) })
    }

    fn durable(&self) -> Vec<u8> {
        self.durable.lock().unwrap().clone()
    }

    fn settle(&self, durability: Durability) -> Result<(), DeviceError> {
        if durability == Durability::Durable { self.flush() } else { Ok(()) }
    }
}

impl Device for Cached {
    fn size(&self) -> u64 {
        SIZE
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.now.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        self.now.write(offset, bytes, durability)?;
        self.settle(durability)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.now.read(0, &mut self.durable.lock().unwrap())
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.now.trim(offset, length, durability)?;
        self.settle(durability)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.now.allocations(offset, length)
    }
}

fn rig(device: &Arc<Cached>, kept: Durability) -> Rig {
    let export = Export {
        name: "cached".to_owned(),
        description: String::new(),
        device: Arc::<Cached>::clone(device),
        is_read_only: false,
        pace: None,
    };
    Rig::serving(export, kept)
}

#[test]
fn writes_that_come_together_share_a_flush_before_their_answers() {
    let device = Cached::holding(vec![0; 1 << 17]);
    let rig = rig(&device, Durability::Durable);
    let mut driver = Driver::connect(&rig.path, FEATURES);
    driver.keep_inflight();
    for region in 0..8 {
        driver.submit(&write(region * REGION, vec![7; 4096]));
    }
    // All of them are there before the server looks.
    driver.start();
    for _ in 0..8 {
        assert_eq!(driver.wait().1, 0);
    }
    assert_eq!(device.flushes.load(Ordering::Relaxed), 1);
    let durable = device.durable();
    assert!((0..8).all(|region| durable[region * 8192..][..4096] == [7; 4096]));
}

#[test]
fn writes_wait_for_a_flush_if_the_client_cannot_reconnect_or_the_user_chose_so() {
    for (kept, reconnects) in [(Durability::Durable, false), (Durability::Volatile, true)] {
        let device = Cached::holding(vec![0; 1 << 17]);
        let rig = rig(&device, kept);
        let mut driver = Driver::connect(&rig.path, FEATURES);
        if reconnects {
            driver.keep_inflight();
        }
        driver.start();
        assert_eq!(driver.run(&write(0, vec![7; 4096])).0, 0);
        assert_eq!(device.flushes.load(Ordering::Relaxed), 0);
        assert_eq!(driver.run(&Request { kind: FLUSH, ..read(0, 0) }).0, 0);
        assert_eq!(device.durable()[..4096], [7; 4096]);
    }
}

#[test]
fn a_driver_is_notified_of_what_a_killed_server_had_no_time_to_notify_it_of() {
    for features in [EVENT_INDEX, PACKED | EVENT_INDEX] {
        let device = Cached::holding(vec![0; 1 << 17]);
        let first = rig(&device, Durability::Durable);
        let mut driver = Driver::connect(&first.path, FEATURES | features);
        driver.keep_inflight();
        driver.start();
        assert!(driver.is_called(), "{features:#x}: at the start");
        // The driver looks at its ring no more until it is notified, and that is lost.
        driver.submit(&write(0, vec![7; 4096]));
        driver.ring_bell();
        assert!(driver.is_called(), "{features:#x}: of a request");
        drop(first);
        let second = rig(&device, Durability::Durable);
        driver.reconnect(&second.path);
        assert!(driver.is_called(), "{features:#x}: by the next server");
        driver.change_call();
        assert!(driver.is_called(), "{features:#x}: at an event that came later");
        assert_eq!(driver.wait().1, 0);
    }
}

#[test]
fn more_slots_in_flight_than_the_ring_has_are_refused() {
    const SIZE: u16 = 1024;
    for pace in [None, Some(Arc::new(Pace::new(drive())))] {
        let rig = Rig::of(false, pace);
        let mut driver = Driver::connect(&rig.path, FEATURES | PACKED);
        let bytes = inflight::bytes_of_ring(SIZE);
        let file = memory_file("inflight", bytes).unwrap();
        // A server took 65 reads of the first sector, each of as many slots as the ring has.
        let record = |order: u64| {
            let header = [MEMORY + 0x2_0000, 16 | 1 << 32];
            let data = [MEMORY + 0x10_0000, 0x201 | 2 << 32];
            let shape = u64::from(SIZE) << 16 | 2 << 32;
            words(&[&[order, shape][..], &header, &data].concat())
        };
        let head = words(&[0x3130_6c66_6e69_6766, 1, 65 << 16, 0, 0, 0, 0, 0]);
        rustix::io::pwrite(&file, &head, 0).unwrap();
        for id in 0..65 {
            rustix::io::pwrite(&file, &record(id + 1), 64 + id * (16 + 16 * 1024)).unwrap();
        }
        let mut body = words(&[bytes, 0]);
        body.extend([1_u16, SIZE].map(u16::to_le_bytes).concat());
        driver.send(code::SET_INFLIGHT_FD, &body, Some(&file));
        driver.start_of(SIZE, 0x8000_8000);
        let said = rig.dropped();
        assert!(said.contains("66560 slots in flight, the ring has 1024"), "{said}");
    }
}

/// A device larger than its memory, which takes hours to fill, or no time.
#[derive(Debug)]
struct Vast {
    memory: MemoryDevice,
    is_slow: bool,
}

impl Vast {
    const MEMORY_BYTES: u64 = 1 << 18;

    fn export(is_slow: bool) -> Export {
        Export {
            name: "vast".to_owned(),
            description: String::new(),
            device: Arc::new(Self { memory: MemoryDevice::new(Self::MEMORY_BYTES), is_slow }),
            is_read_only: false,
            pace: None,
        }
    }
}

impl Device for Vast {
    fn size(&self) -> u64 {
        4 << 40
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.memory.read(offset % Self::MEMORY_BYTES, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        if !self.is_slow {
            return Ok(());
        }
        self.memory.write(offset % Self::MEMORY_BYTES, bytes, durability)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.memory.flush()
    }

    fn trim(&self, _: u64, _: u64, _: Durability) -> Result<(), DeviceError> {
        Ok(())
    }

    fn allocations(&self, _: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        Ok(vec![Allocation { length, is_stored: true }])
    }
}

#[test]
fn what_takes_too_long_is_left_to_the_next_server() {
    let first = Rig::serving(Vast::export(true), Durability::Volatile);
    let mut driver = Driver::connect(&first.path, FEATURES | PACKED);
    driver.keep_inflight();
    driver.start();
    let zeroes = driver.submit(&ranges(WRITE_ZEROES, &[(0, 8 << 20, 0); 256]));
    let behind = driver.submit(&write(0, vec![7; 512]));
    driver.ring_bell();
    let begun = Instant::now();
    drop(first);
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    let second = Rig::serving(Vast::export(false), Durability::Volatile);
    driver.reconnect(&second.path);
    let mut back = [driver.wait(), driver.wait()].map(|(id, status, _)| (id, status));
    back.sort_unstable();
    assert_eq!(back, [(zeroes, 0), (behind, 0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_client_that_reconnects_finds_all_that_was_answered(
        lives in prop::collection::vec(
            prop::collection::vec(
                prop::collection::btree_map(0_u64..16, (any::<u8>(), 0..4_u32), 1..8), 1..8,
            ),
            1..4,
        ),
        is_packed: bool,
    ) {
        let mut device = Cached::holding(vec![0; 1 << 17]);
        let mut server = rig(&device, Durability::Durable);
        let mut driver =
            Driver::connect(&server.path, FEATURES | (u64::from(is_packed) * PACKED));
        driver.keep_inflight();
        driver.start();
        let mut expected = vec![0; 1 << 17];
        for rounds in lives {
            for round in rounds {
                let mut asked = Vec::new();
                for (region, (byte, kind)) in round {
                    let (sector, sectors) = (region * REGION, 1 + u32::from(byte % 16));
                    let length = sectors as usize * 512;
                    let (request, value) = match kind {
                        0 => (ranges(DISCARD, &[(sector, sectors, 0)]), 0),
                        1 => (ranges(WRITE_ZEROES, &[(sector, sectors, u32::from(byte % 2))]), 0),
                        _ => (write(sector, vec![byte; length]), byte),
                    };
                    let from = usize::try_from(sector).unwrap() * 512;
                    asked.push((driver.submit(&request), from..from + length, value));
                    driver.ring_bell();
                }
                while !asked.is_empty() {
                    let (id, status, _) = driver.wait();
                    prop_assert_eq!(status, 0);
                    let index = asked.iter().position(|it| it.0 == id).expect("it was asked for");
                    let (_, place, value) = asked.swap_remove(index);
                    expected[place.clone()].fill(value);
                    // A server that is killed now loses nothing of it.
                    prop_assert_eq!(&device.durable()[place.clone()], &expected[place]);
                }
            }
            device = Cached::holding(device.durable());
            server = rig(&device, Durability::Durable);
            driver.reconnect(&server.path);
            for region in 0..SECTORS / REGION {
                let from = usize::try_from(region * REGION * 512).unwrap();
                let (status, data) = driver.run(&read(region * REGION, 8192));
                prop_assert_eq!((status, &data[..]), (0, &expected[from..][..8192]));
            }
        }
        drop(server);
    }
}
