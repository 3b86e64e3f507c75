//! A host without space beneath the dies: no die is at fault.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use blockio::Bytes;
use live::{
    Compression, Device as _, DeviceError, Drive, Durability, HostSpace, Medium, Plan, format,
};

const PAGE: usize = 4096;

/// Bytes that each die may still take: more than it ever does.
const LACKING: u64 = 1 << 40;

/// Dies in memory on a host that can be full.
#[derive(Clone, Debug)]
struct Host {
    dies: Vec<Arc<Mutex<Vec<u8>>>>,
    is_full: Arc<AtomicBool>,
    /// Bytes that it says are free; below zero: it says nothing.
    free: Arc<AtomicI64>,
}

#[derive(Debug)]
struct Die {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_full: Arc<AtomicBool>,
    free: Arc<AtomicI64>,
}

impl Host {
    fn media(&self) -> Vec<Box<dyn Medium>> {
        let die = |bytes: &Arc<_>| Die {
            bytes: Arc::clone(bytes),
            is_full: Arc::clone(&self.is_full),
            free: Arc::clone(&self.free),
        };
        self.dies.iter().map(|bytes| Box::new(die(bytes)) as Box<dyn Medium>).collect()
    }

    fn fill(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::Relaxed);
    }
}

fn range(offset: u64, length: usize) -> std::ops::Range<usize> {
    let from = usize::try_from(offset).expect("a small die");
    from..from + length
}

impl Medium for Die {
    fn size(&self) -> u64 {
        self.bytes.lock().expect("no test panics with it").len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.copy_from_slice(
            &self.bytes.lock().expect("no test panics with it")[range(offset, buffer.len())],
        );
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut held = self.bytes.lock().expect("no test panics with it");
        let place = &mut held[range(offset, bytes.len())];
        // What was written before has its space.
        if self.is_full.load(Ordering::Relaxed) && place.iter().all(|byte| *byte == 0) {
            return Err(io::Error::from_raw_os_error(28));
        }
        place.copy_from_slice(bytes);
        Ok(())
    }

    fn host_space(&self) -> Option<HostSpace> {
        let free = u64::try_from(self.free.load(Ordering::Relaxed)).ok()?;
        Some(HostSpace { system: 1, lacking: LACKING, free })
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn host(dies: u32) -> Host {
    let plan = Plan {
        size: Bytes::from_kib(8 << 10),
        dies,
        is_protected: dies > 1,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    let shape = plan.shape().expect("it can be");
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let dies = (0..dies).map(|_| Arc::new(Mutex::new(vec![0; bytes]))).collect();
    let free = Arc::new(AtomicI64::new(-1));
    let host = Host { dies, is_full: Arc::default(), free };
    format(host.media(), &shape, 5).expect("there is room");
    host
}

fn page(number: usize) -> Vec<u8> {
    (0..PAGE).map(|at| (at + number * 3 + 1).to_le_bytes()[0]).collect()
}

#[test]
fn a_host_without_space_costs_no_die_and_no_page() {
    for dies in [1, 4] {
        let host = host(dies);
        let drive = Drive::open_media(host.media()).unwrap();
        let write = |drive: &Drive, number: usize| {
            drive.write((number * PAGE) as u64, &page(number), Durability::Volatile)
        };
        (0..100).for_each(|number| write(&drive, number).unwrap());
        drive.flush().unwrap();
        host.fill(true);
        let refused = (100..2000).find_map(|number| write(&drive, number).err()).unwrap();
        let is_space = match &refused {
            DeviceError::NoSpace { .. } => true,
            DeviceError::Medium { source, .. } => source.kind() == io::ErrorKind::StorageFull,
            _ => false,
        };
        assert!(is_space, "{refused}");
        let status = drive.status();
        assert!(drive.lost_dies().is_empty(), "{dies} dies: {refused}");
        assert!(status.dies.iter().all(|die| die.failures == 0));
        let read = |drive: &Drive| {
            for number in 0..100 {
                let mut found = vec![0; PAGE];
                drive.read((number * PAGE) as u64, &mut found).unwrap();
                assert!(found == page(number), "page {number}");
            }
        };
        read(&drive);
        host.fill(false);
        drop(drive);
        let drive = Drive::open_media(host.media()).unwrap();
        read(&drive);
        (100..1000).for_each(|number| write(&drive, number).unwrap());
        drive.close().unwrap();
    }
}

#[test]
fn a_host_that_becomes_full_refuses_writes_until_it_has_space_and_nothing_else() {
    for dies in [1, 4] {
        let host = host(dies);
        host.free.store(1 << 30, Ordering::Relaxed);
        let drive = Drive::open_media(host.media()).unwrap();
        let write = |number: usize| {
            drive.write((number * PAGE) as u64, &page(number), Durability::Volatile)
        };
        (0..500).for_each(|number| write(number).unwrap());
        for free in [0, 1 << 10] {
            host.free.store(free, Ordering::Relaxed);
            // What was found free before may be used up first.
            let refused = (0..1000).find_map(|_| write(499).err()).unwrap();
            let is_told = matches!(
                refused,
                DeviceError::HostFull { free: told, .. } if i64::try_from(told) == Ok(free)
            );
            assert!(is_told, "{refused}");
            let told = drive.host_shortage().map(|it| i64::try_from(it.free_bytes));
            assert_eq!(told, Some(Ok(free)));
            let atomic = drive.atomic_write(&[(0, &page(0))]);
            assert!(matches!(atomic, Err(DeviceError::HostFull { .. })));
            drive.flush().unwrap();
            drive.trim(498 * PAGE as u64, PAGE as u64, Durability::Durable).unwrap();
            for number in 0..498 {
                let mut found = vec![0; PAGE];
                drive.read((number * PAGE) as u64, &mut found).unwrap();
                assert!(found == page(number), "page {number}");
            }
            host.free.store(1 << 30, Ordering::Relaxed);
            assert_eq!(drive.host_shortage(), None, "there is space again");
            (0..500).for_each(|number| write(number).unwrap());
        }
        assert!(drive.lost_dies().is_empty());
        drive.close().unwrap();
    }
}

#[test]
fn a_write_that_is_larger_than_what_is_free_is_refused_before_it_begins() {
    for dies in [1, 4] {
        let host = host(dies);
        let drive = Drive::open_media(host.media()).unwrap();
        let large = vec![7; 6 << 20];
        // Enough for some rows, not for this.
        host.free.store(5 << 20, Ordering::Relaxed);
        let refused = drive.write(0, &large, Durability::Volatile).unwrap_err();
        assert!(matches!(refused, DeviceError::HostFull { .. }), "{dies} dies: {refused}");
        let told = drive.host_shortage().map(|it| it.free_bytes);
        assert_eq!(told, Some(5 << 20), "{dies} dies: large writes are refused");
        drive.write(0, &page(0), Durability::Volatile).unwrap();
        assert!(drive.host_shortage().is_some(), "small writes go on, large ones do not");
        drive.trim(0, PAGE as u64, Durability::Durable).unwrap();
        let runs = drive.allocations(0, large.len() as u64).unwrap();
        assert!(runs.iter().all(|run| !run.is_stored), "nothing was written");
        host.free.store(1 << 30, Ordering::Relaxed);
        assert_eq!(drive.host_shortage(), None, "there is space again");
        drive.write(0, &large, Durability::Volatile).unwrap();
        host.free.store(5 << 20, Ordering::Relaxed);
        assert_eq!(drive.host_shortage(), None, "enough for a page, and nothing was refused since");
        drive.close().unwrap();
    }
}

#[test]
fn a_purge_gives_space_back_and_the_host_is_asked_again() {
    let host = host(4);
    // It says nothing: the dies have all of their space.
    let drive = Drive::open_media(host.media()).unwrap();
    drive.write(0, &page(0), Durability::Volatile).unwrap();
    drive.purge().unwrap();
    host.free.store(0, Ordering::Relaxed);
    let refused = drive.write(0, &page(0), Durability::Volatile).unwrap_err();
    assert!(matches!(refused, DeviceError::HostFull { .. }), "{refused}");
    host.free.store(1 << 30, Ordering::Relaxed);
    drive.write(0, &page(0), Durability::Volatile).unwrap();
    drive.close().unwrap();
}
