//! A drive in time lapse settles where the whole drive does.

use crate::closed_loop::{Load, Loop, Seen};
use blockio::{Lba, Nanos, Op, Request, Rng};
use ssd::{Drive, Setup, catalogue};

/// Protocol seconds of random writes on a full drive, well past the cliff, and then measured.
const SETTLING_S: u64 = 900;
const MEASURED_S: u64 = 240;
/// Seconds on the drive's own clock, after it was aged in no time and has to find its pace only.
const PACING_S: u64 = 1;
const PACED_S: u64 = 5;
/// Passes of ageing over a drive, enough that no space is left that was never written.
const TIMES: u64 = 2;

/// Random 4 KiB writes, 256 outstanding.
const WRITES: Load = Load { read_share: 0.0, sectors: 8, outstanding: 256, seed: 1 };

fn drive(name: &str, format: &str, time_lapse: u32) -> Drive {
    let spec = catalogue::find(name).expect("in the catalogue");
    let host = spec.hosts()[0].clone();
    let setup = Setup { format: format.into(), host, time_lapse, seed: 1 };
    Drive::new(&spec, &setup).expect("a drive at that scale")
}

/// Settles as a review does it: filled in order, then written at random.
fn settled(name: &str, format: &str, time_lapse: u32) -> Seen {
    let mut drive = drive(name, format, time_lapse);
    let filled_at = fill(&mut drive);
    let spans = [SETTLING_S, MEASURED_S].map(|s| Nanos::from_secs(s) / u64::from(time_lapse));
    measured(&mut drive, filled_at, spans)
}

/// Settles a drive that a review writes for hours: in no time, then long enough to find its pace.
fn aged(name: &str, format: &str, time_lapse: u32) -> Seen {
    let mut drive = drive(name, format, time_lapse);
    let (mut rng, pages) = (Rng::new(3), drive.user_sectors() / 8);
    fill_in_no_time(&mut drive);
    for _ in 0..TIMES * pages {
        drive.age(Lba(rng.below(pages) * 8), 8);
    }
    measured(&mut drive, Nanos::ZERO, [PACING_S, PACED_S].map(Nanos::from_secs))
}

fn measured(drive: &mut Drive, from: Nanos, [before, span]: [Nanos; 2]) -> Seen {
    let mut writing = Loop::start(drive, WRITES, from);
    writing.run(before, false);
    writing.run(span, true)
}

/// Writes every sector once, in order; returns when that is done.
fn fill(drive: &mut Drive) -> Nanos {
    const SECTORS: u32 = 2048;
    let mut now = Nanos::ZERO;
    for lba in (0..drive.user_sectors()).step_by(SECTORS as usize) {
        let sectors = u64::from(SECTORS).min(drive.user_sectors() - lba);
        let sectors = u32::try_from(sectors).expect("at most SECTORS");
        drive.submit(
            now,
            Request { tag: 0, thread: 0, op: Op::Write, handle: 0, lba: Lba(lba), sectors },
        );
        now = drive.next_completion(Nanos::MAX).expect("submitted").completed_at;
    }
    now
}

fn fill_in_no_time(drive: &mut Drive) {
    for lba in (0..drive.user_sectors()).step_by(8) {
        drive.age(Lba(lba), 8);
    }
}

/// Compares `name` in the time lapse that it states with the whole drive.
fn check(name: &str, format: &str, settle: fn(&str, &str, u32) -> Seen) {
    let spec = catalogue::find(name).expect("in the catalogue");
    let time_lapse = spec.time_lapse_default();
    let (whole, lapsed) = (settle(name, format, 1), settle(name, format, time_lapse));
    let mut pairs = vec![
        ("iops", whole.iops(), lapsed.iops()),
        ("latency_ns_avg", whole.latency_ns_avg(), lapsed.latency_ns_avg()),
    ];
    if spec.in_place.is_none() {
        let amplification = (whole.write_amplification(), lapsed.write_amplification());
        pairs.push(("write amplification", amplification.0, amplification.1));
    }
    for (figure, whole, lapsed) in pairs {
        let deviation = lapsed / whole - 1.0;
        assert!(
            deviation.abs() < 0.03,
            "{name} {format} at 1/{time_lapse}: {figure} is {lapsed:.3}, full scale {whole:.3}"
        );
    }
}

#[test]
fn the_stock_duo_settles_within_three_percent_of_full_scale() {
    check("iodrive-duo", "stock", settled);
}

#[test]
fn the_high_performance_duo_settles_within_three_percent_of_full_scale() {
    check("iodrive-duo", "high-performance", settled);
}

#[test]
fn the_warpdrive_settles_within_three_percent_of_full_scale() {
    check("warpdrive-slp-300", "stock", aged);
}

#[test]
fn media_written_in_place_answers_as_it_does_at_full_scale() {
    check("p5800x-pair", "stock", measured_as_it_is);
}

/// Media that is written in place has no state to settle.
fn measured_as_it_is(name: &str, format: &str, time_lapse: u32) -> Seen {
    let mut drive = drive(name, format, time_lapse);
    measured(&mut drive, Nanos::ZERO, [Nanos::from_secs(1) / 10; 2])
}
