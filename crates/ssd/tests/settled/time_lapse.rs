//! A drive in time lapse settles where the whole drive does.

use crate::closed_loop::{Load, Loop, Seen};
use blockio::{Lba, Nanos, Op, Request};
use ssd::{Drive, Setup, catalogue};

/// Protocol seconds of random writes on a full drive, well past the cliff, and then measured.
const SETTLING_S: u64 = 1_500;
const MEASURED_S: u64 = 240;

fn settled(format: &str, time_lapse: u32) -> Seen {
    let spec = catalogue::find("iodrive-duo").expect("in the catalogue");
    let setup = Setup { format: format.into(), host: "linux".into(), time_lapse, seed: 1 };
    let mut drive = Drive::new(&spec, &setup).expect("a drive at that scale");
    let filled_at = fill(&mut drive);
    let load = Load { read_share: 0.0, sectors: 8, outstanding: 256, seed: 1 };
    let mut writing = Loop::start(&mut drive, load, filled_at);
    writing.run(Nanos::from_secs(SETTLING_S) / u64::from(time_lapse), false);
    writing.run(Nanos::from_secs(MEASURED_S) / u64::from(time_lapse), true)
}

/// Writes every sector once, in order; returns when that is done.
fn fill(drive: &mut Drive) -> Nanos {
    const SECTORS: u32 = 2048;
    let mut now = Nanos::ZERO;
    for lba in (0..drive.user_sectors()).step_by(SECTORS as usize) {
        let sectors = u64::from(SECTORS).min(drive.user_sectors() - lba);
        let sectors = u32::try_from(sectors).expect("at most SECTORS");
        drive.submit(now, Request { tag: 0, thread: 0, op: Op::Write, lba: Lba(lba), sectors });
        now = drive.next_completion(Nanos::MAX).expect("submitted").completed_at;
    }
    now
}

fn check(format: &str) {
    let spec = catalogue::find("iodrive-duo").expect("in the catalogue");
    let time_lapse = spec.time_lapse_default();
    let (whole, lapsed) = (settled(format, 1), settled(format, time_lapse));
    let pairs = [
        ("iops", whole.iops(), lapsed.iops()),
        ("write amplification", whole.write_amplification(), lapsed.write_amplification()),
        ("latency_ns_avg", whole.latency_ns_avg(), lapsed.latency_ns_avg()),
    ];
    for (name, whole, lapsed) in pairs {
        let deviation = lapsed / whole - 1.0;
        assert!(
            deviation.abs() < 0.03,
            "{format} at 1/{time_lapse}: {name} is {lapsed:.3}, full scale {whole:.3}"
        );
    }
}

#[test]
fn the_stock_duo_settles_within_three_percent_of_full_scale() {
    check("stock");
}

#[test]
fn the_high_performance_duo_settles_within_three_percent_of_full_scale() {
    check("high-performance");
}
