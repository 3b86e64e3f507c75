//! A host without space beneath the dies: no die is at fault.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use blockio::Bytes;
use live::{Compression, Device as _, DeviceError, Drive, Durability, Medium, Plan, format};

const PAGE: usize = 4096;

/// Dies in memory on a host that can be full.
#[derive(Clone, Debug)]
struct Host {
    dies: Vec<Arc<Mutex<Vec<u8>>>>,
    is_full: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Die {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_full: Arc<AtomicBool>,
}

impl Host {
    fn media(&self) -> Vec<Box<dyn Medium>> {
        let die =
            |bytes: &Arc<_>| Die { bytes: Arc::clone(bytes), is_full: Arc::clone(&self.is_full) };
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
    let host = Host { dies, is_full: Arc::default() };
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
