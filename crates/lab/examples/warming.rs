//! Rate of functional warming beside that of the simulation in detail, on one core.

#![expect(clippy::print_stdout, reason = "a table is what it makes")]

use std::time::Instant;

use lab::driver::SilentWatch;
use lab::driver::model::Model;
use lab::driver::model::quick_measure::{fill, warm};
use lab::ssd::{Drive, Setup, catalogue};
use lab::{Driver, Load};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let drive = args.get(1).map_or("iodrive-duo", |it| it);
    let time_lapse: u32 = args.get(2).map_or(Ok(32), |it| it.parse())?;
    let spec = catalogue::find(drive).ok_or("no such drive")?;
    let setup = Setup {
        format: spec.formats()[0].clone(),
        host: spec.hosts()[0].clone(),
        time_lapse,
        seed: 1,
    };
    let workload = workload::catalogue::find_workload("4k-rand-write").ok_or("no workload")?;
    let load = |seed| Load {
        step: "bench",
        workload: &workload,
        threads: 16,
        queue_per_thread: 16,
        ramp_s: 0.0,
        duration_s: 60.0,
        interval_s: 60.0,
        rate: None,
        replay: None,
        seed,
    };
    let mut drive = Drive::new(&spec, &setup)?;
    fill(&mut drive)?;
    let pages = drive.user_sectors() / 8;
    let begun = Instant::now();
    warm(&mut drive, &load(1), 2 * pages)?;
    println!("settling: {:.2} M/s", 2.0 * pages as f64 / begun.elapsed().as_secs_f64() / 1e6);
    for seed in 2..5 {
        let count = 20_000_000;
        let before = drive.counters();
        let begun = Instant::now();
        warm(&mut drive, &load(seed), count)?;
        let rate = count as f64 / begun.elapsed().as_secs_f64() / 1e6;
        let moved = drive.counters().pages_relocation - before.pages_relocation;
        println!("warm {rate:.2} M/s, relocated {:.3}", moved as f64 / count as f64);
    }
    let mut model = Model::in_state(spec, setup, drive);
    for seed in 2..5 {
        let load = Load { duration_s: 60.0 * f64::from(time_lapse), ..load(seed) };
        let begun = Instant::now();
        let loaded = model.load(&load, &mut SilentWatch)?;
        let count: u64 = loaded.intervals.iter().map(|it| it.write.count()).sum();
        println!("detail {:.2} M/s", count as f64 / begun.elapsed().as_secs_f64() / 1e6);
    }
    Ok(())
}
