//! Writes a second of each durability, over dies in files: `durability FOLDER [SECONDS]`.
//!
//! A client with so many writes of 4 KiB outstanding is answered as vhost-user answers: all of a
//! batch are placed, then the device sees to all of them at once.

#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::path::Path;
use std::time::{Duration, Instant};

use blockio::{Bytes, Rng};
use live::{
    Compression, CreateOptions, Device as _, Drive, Durability, Equipment, Preallocation, create,
};

const SIZE: u64 = 1 << 30;
const PAGE_BYTES: usize = 4096;
/// Rounds, in each of which every durability has its turn.
const ROUNDS: u32 = 5;

/// Writes a second with so many outstanding.
fn writes_per_s(
    drive: &Drive,
    (durability, outstanding): (Durability, u32),
    time: Duration,
    rng: &mut Rng,
) -> Result<f64, live::DeviceError> {
    let page = [0x5a; PAGE_BYTES];
    let (begun, mut writes) = (Instant::now(), 0);
    while begun.elapsed() < time {
        for _ in 0..outstanding {
            let offset = rng.below(SIZE / PAGE_BYTES as u64) * PAGE_BYTES as u64;
            drive.write(offset, &page, Durability::Volatile)?;
        }
        match durability {
            Durability::Volatile => {}
            Durability::Process => drive.hand_over()?,
            Durability::Durable => drive.flush()?,
        }
        writes += outstanding;
    }
    Ok(f64::from(writes) / begun.elapsed().as_secs_f64())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("durability FOLDER [SECONDS]")?;
    let seconds = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let volume = Path::new(&folder).join("volume");
    let dies = (0..3).map(|die| Path::new(&folder).join(format!("d{die}.img"))).collect();
    let options = CreateOptions {
        volume: volume.clone(),
        dies,
        size: Bytes(SIZE),
        is_protected: true,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    };
    create(&options, &Equipment { preallocation: Preallocation::Off, ..Equipment::default() })?;
    let drive = Drive::open(&volume)?;
    let mut rng = Rng::new(1);
    println!("outstanding  durability  writes/s");
    for outstanding in [1, 16, 64] {
        for _ in 0..ROUNDS {
            for durability in [Durability::Durable, Durability::Process, Durability::Volatile] {
                drive.flush()?;
                let of = (durability, outstanding);
                let rate = writes_per_s(&drive, of, Duration::from_secs(seconds), &mut rng)?;
                println!("{outstanding:>11}  {durability:?}  {rate:.0}");
            }
        }
    }
    drive.close()?;
    Ok(())
}
