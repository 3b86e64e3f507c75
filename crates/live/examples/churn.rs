//! Random writes of 4 KiB to a drive of 7+1 dies that has settled:
//! `churn FOLDER MIB ROUNDS THREADS`.
//!
//! Prints what a write takes, of the clock and of the processor, and how many pages relocation
//! moves for it.

#![expect(clippy::print_stdout, reason = "it tells what it measures")]

use std::error::Error;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use blockio::{Bytes, Rng};
use live::{Compression, CreateOptions, Device as _, Drive, Durability};

const PAGE: u64 = 4096;

/// Nanoseconds that this thread had a processor.
fn busy_ns() -> Result<u64, Failure> {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(all.split(' ').next().unwrap_or_default().parse()?)
}

/// An error of a thread.
type Failure = Box<dyn Error + Send + Sync>;

/// Writes so many pages at random; returns the time of the processor that took, in nanoseconds.
fn write(drive: &Drive, pages: u64, count: u64, seed: u64) -> Result<u64, Failure> {
    let (mut rng, page) = (Rng::new(seed), [0x5a; 4096]);
    let before = busy_ns()?;
    for _ in 0..count {
        drive.write(rng.below(pages) * PAGE, &page, Durability::Volatile)?;
    }
    Ok(busy_ns()? - before)
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mut numbers = words.map(|word| word.parse::<u64>());
    let pages = numbers.next().transpose()?.unwrap_or(1024) << 8;
    let rounds = numbers.next().transpose()?.unwrap_or(5);
    let threads = numbers.next().transpose()?.unwrap_or(1).max(1);
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
    for lpn in 0..pages {
        drive.write(lpn * PAGE, &[0x5a; 4096], Durability::Volatile)?;
    }
    // The first of them settles.
    for round in 0..=rounds {
        let before = (Instant::now(), drive.counters()?.pages_relocation);
        let busy: u64 = thread::scope(|scope| {
            let drive = &drive;
            let seed = |index| round * threads + index;
            let writers: Vec<_> = (0..threads)
                .map(|index| scope.spawn(move || write(drive, pages, pages / threads, seed(index))))
                .collect();
            let busy = |writer: thread::ScopedJoinHandle<'_, Result<u64, Failure>>| {
                writer.join().expect("a writer does not panic")
            };
            writers.into_iter().map(busy).sum::<Result<u64, Failure>>()
        })?;
        let moved = drive.counters()?.pages_relocation - before.1;
        let each = |nanos: u128| nanos as f64 / pages as f64 / 1000.0;
        let (wall, busy) = (before.0.elapsed().as_nanos(), u128::from(busy));
        println!(
            "round {round}: {:.2} us a write, {:.2} us of the processor, {:.2} pages relocated",
            each(wall),
            each(busy),
            moved as f64 / pages as f64
        );
    }
    Ok(())
}
