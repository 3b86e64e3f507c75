//! Random writes to a medium that is slow to find a place, in time that is counted, not waited for.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use blockio::{Bytes, Rng};
use live::{Compression, Device as _, Drive, Durability, Medium, Plan, Shape, format};

/// Going anywhere but on, half a turn included.
const SEEK_NS: u64 = 8_000_000;
/// Bytes of 150 MB/s in 20 ns.
const BYTES_IN_20_NS: u64 = 3;

/// Time of a rotating disk.
#[derive(Debug, Default)]
struct Clock {
    nanos: AtomicU64,
    /// Position of the head: the end of the last transfer, in bytes.
    head: AtomicU64,
}

impl Clock {
    fn count(&self, offset: u64, bytes: usize) {
        let end = offset + bytes as u64;
        let seek = if self.head.swap(end, Ordering::Relaxed) == offset { 0 } else { SEEK_NS };
        self.nanos.fetch_add(seek + bytes as u64 * 20 / BYTES_IN_20_NS, Ordering::Relaxed);
    }

    fn seconds(&self) -> f64 {
        self.nanos.load(Ordering::Relaxed) as f64 / 1e9
    }
}

/// A rotating disk without a cache: each request takes what its mechanics take.
#[derive(Clone, Debug)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    clock: Arc<Clock>,
}

impl Medium for Disk {
    fn size(&self) -> u64 {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.clock.count(offset, buffer.len());
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.clock.count(offset, bytes.len());
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let mut all = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        all[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        // The write that it waits for is on its way.
        self.clock.nanos.fetch_add(SEEK_NS, Ordering::Relaxed);
        Ok(())
    }
}

/// 112 MiB for clients and a third more, in units of 64 pages on one disk.
fn shape(compression: Compression) -> Shape {
    Shape {
        pages_logical: 28_000,
        pages_stored_max: 28_000,
        pages_mappable: 28_000,
        dies: 1,
        is_protected: false,
        unit_pages: 64,
        rows: 8,
        superblocks: 82,
        extents_per_page: if compression == Compression::None { 1 } else { 4 },
        compression,
        journal_bytes: 16 << 20,
    }
}

/// 112 MiB for clients and the usual spare space, on one disk.
fn shape_usual(compression: Compression, unit: Option<Bytes>) -> Shape {
    let plan = Plan {
        size: Bytes(28_000 * 4096),
        dies: 1,
        is_protected: false,
        over_provisioning: 0.15,
        compression,
        physical: None,
        unit,
    };
    plan.shape().expect("it is large enough")
}

/// Seconds that the disk takes for a page of data that becomes half as long.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// One after the other, on a new drive.
    sequential: f64,
    /// At random, on a full drive that has settled.
    random: f64,
}

fn measure(shape: Shape) -> Measured {
    let clock = Arc::new(Clock::default());
    let size = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let disk = Disk { bytes: Arc::new(Mutex::new(vec![0; size])), clock: Arc::clone(&clock) };
    format(vec![Box::new(disk.clone())], &shape, 1).expect("it fits");
    let drive = Drive::open_media(vec![Box::new(disk)]).expect("just made");
    let mut rng = Rng::new(1);
    let mut page = [0; 4096];
    page[..2000].fill_with(|| rng.next_u64().to_le_bytes()[0]);
    let mut seconds_a_page = |count: u32, mut lpn: Box<dyn FnMut(u32) -> u64>| {
        let before = clock.seconds();
        for index in 0..count {
            page[..4].copy_from_slice(&index.to_le_bytes());
            drive.write(lpn(index) * 4096, &page, Durability::Volatile).expect("there is space");
        }
        (clock.seconds() - before) / f64::from(count)
    };
    let pages = shape.pages_logical;
    let sequential = seconds_a_page(pages, Box::new(u64::from));
    let mut random = |count: u32| {
        let mut rng = rng.split_index(count.into());
        seconds_a_page(count, Box::new(move |_| rng.below(pages.into())))
    };
    random(2 * pages);
    Measured { sequential, random: random(pages / 2) }
}

/// Returns the speedup of random page writes over those of the disk by itself.
fn gain(measured: Measured) -> f64 {
    let by_itself = Clock::default();
    by_itself.count(1, 4096);
    by_itself.seconds() / measured.random
}

const COMPRESSIONS: [Compression; 2] = [Compression::None, Compression::Lz4];

#[test]
fn random_writes_are_ten_times_as_fast_as_the_medium_and_faster_where_they_compress() {
    let [plain, packed] = COMPRESSIONS.map(|it| measure(shape(it)));
    let gains = [plain, packed].map(gain);
    assert!(gains[0] > 10.0 && gains[1] > gains[0], "{gains:?}");
    assert!(packed.sequential < plain.sequential, "{plain:?} {packed:?}");
}

#[test]
fn units_of_a_mebibyte_make_them_so_with_the_usual_spare_space() {
    let unit = Some(Bytes::from_kib(1024));
    let [plain, packed] = COMPRESSIONS.map(|it| measure(shape_usual(it, unit)));
    let gains = [plain, packed].map(gain);
    assert!(gains[0] > 10.0 && gains[1] > 2.0 * gains[0], "{gains:?}");
    // Nine tenths of 150 MB/s.
    let fast = 4096.0 / 135e6;
    assert!(
        plain.sequential < fast && packed.sequential < plain.sequential,
        "{plain:?} {packed:?}"
    );
    let usual = gain(measure(shape_usual(Compression::None, None)));
    assert!(usual < gains[0] / 4.0, "{usual} and {gains:?}");
}
