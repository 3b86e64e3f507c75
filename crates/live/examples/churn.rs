//! Random writes of 4 KiB to a drive of 7+1 dies that has settled: `churn FOLDER MIB ROUNDS`.
//! Prints what a write takes, of the clock and of the processor, and how many pages relocation
//! moves for it.

#![expect(clippy::print_stdout, reason = "it tells what it measures")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use blockio::{Bytes, Rng};
use live::{Compression, CreateOptions, Device as _, Drive, Durability};

const PAGE: u64 = 4096;

/// Nanoseconds that this thread had a processor.
fn busy_ns() -> Result<u64, Box<dyn Error>> {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(all.split(' ').next().unwrap_or_default().parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mut numbers = words.map(|word| word.parse::<u64>());
    let pages = numbers.next().transpose()?.unwrap_or(1024) << 8;
    let rounds = numbers.next().transpose()?.unwrap_or(5);
    let folder = tempfile::tempdir_in(folder)?;
    let drive = Drive::create(&CreateOptions {
        volume: folder.path().join("volume"),
        dies: (0..8).map(|die| folder.path().join(format!("d{die}.img"))).collect(),
        size: Bytes(pages * PAGE),
        is_protected: true,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    })?;
    let mut rng = Rng::new(1);
    let page = [0x5a; 4096];
    for lpn in 0..pages {
        drive.write(lpn * PAGE, &page, Durability::Volatile)?;
    }
    // The first of them settles.
    for round in 0..=rounds {
        let before = (Instant::now(), busy_ns()?, drive.counters()?.pages_relocation);
        for _ in 0..pages {
            drive.write(rng.below(pages) * PAGE, &page, Durability::Volatile)?;
        }
        let moved = drive.counters()?.pages_relocation - before.2;
        let each = |nanos: u128| nanos as f64 / pages as f64 / 1000.0;
        let (wall, busy) = (before.0.elapsed().as_nanos(), u128::from(busy_ns()? - before.1));
        println!(
            "round {round}: {:.2} us a write, {:.2} us of the processor, {:.2} pages relocated",
            each(wall),
            each(busy),
            moved as f64 / pages as f64
        );
    }
    Ok(())
}
