//! Read retries grow with wear and with the time that data has lain there, and with nothing else.

use blockio::{Lba, Nanos, Op, Request, Rng};
use ssd::{Drive, DriveSpec, Setup, catalogue};

use crate::closed_loop::{Load, Loop};

fn drive(change: impl FnOnce(&mut DriveSpec)) -> Drive {
    let mut spec = catalogue::find("intel-660p-1024").expect("in the catalogue");
    spec.slc_cache = None;
    change(&mut spec);
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 8, seed: 1 };
    Drive::new(&spec, &setup).expect("a drive at that scale")
}

/// Mean latency of reads in microseconds, one at a time, of what was written before the load.
fn read_us(drive: &mut Drive, at: Nanos) -> f64 {
    let (mut rng, mut now, mut sum, count) = (Rng::new(1), at, 0.0, 2_000);
    for _ in 0..count {
        let lba = Lba(rng.below(8_192) * 8);
        drive.submit(now, Request { tag: 0, thread: 0, op: Op::Read, handle: 0, lba, sectors: 8 });
        let done = drive.next_completion(Nanos::MAX).expect("submitted");
        (now, sum) = (done.completed_at, sum + done.latency().as_micros_f64());
    }
    sum / f64::from(count)
}

fn aged(worn_cycles: f64, rested_days: f64) -> f64 {
    let mut drive = drive(|spec| {
        let retry = spec.read_retry.as_mut().expect("it has retries");
        (retry.worn_cycles, retry.rested_days) = (worn_cycles, rested_days);
    });
    drive.age(Lba(0), 1 << 17);
    drive.begin_loads(Nanos::ZERO);
    read_us(&mut drive, Nanos::from_millis(1))
}

#[test]
fn reads_take_as_many_further_reads_as_were_published() {
    let fresh = aged(0.0, 0.0);
    let mut without = drive(|spec| spec.read_retry = None);
    without.age(Lba(0), 1 << 17);
    assert!((fresh - read_us(&mut without, Nanos::from_millis(1))).abs() < 1e-9);
    for (cycles, days, steps) in
        [(0.0, 90.0, 3.0), (2000.0, 365.0, 19.9), (1000.0, 0.0, 1.0), (500.0, 45.0, 3.0)]
    {
        let further = (aged(cycles, days) - fresh) / 120.0;
        assert!((further - steps).abs() < 0.05, "{cycles} cycles, {days} days: {further}");
    }
}

#[test]
fn what_is_written_anew_has_not_rested() {
    let mut drive = drive(|spec| {
        spec.read_retry.as_mut().expect("it has retries").rested_days = 365.0;
    });
    // A superblock, so that what follows begins another.
    drive.age(Lba(0), 1 << 20);
    drive.begin_loads(Nanos::ZERO);
    let old = read_us(&mut drive, Nanos::from_millis(1));
    let mut now = Nanos::from_secs(10);
    for slot in 0..512 {
        let lba = Lba(slot * 256);
        drive.submit(
            now,
            Request { tag: 0, thread: 0, op: Op::Write, handle: 0, lba, sectors: 256 },
        );
        now = drive.next_completion(Nanos::MAX).expect("submitted").completed_at;
    }
    let new = read_us(&mut drive, now + Nanos::from_secs(10));
    assert!(old > new + 5.0 * 120.0, "{old} {new}");
    // Days of protocol time later it has rested by itself: an eighth of them on the drive's clock.
    let later = read_us(&mut drive, now + Nanos::from_secs(90 * 86_400 / 8));
    assert!((later - new - 3.0 * 120.0).abs() < 10.0, "{later} {new}");
}

#[test]
fn relocation_reads_worn_data_as_often_as_the_host_does() {
    // Programs are quick and memory is short, so that what relocation reads is what it waits for.
    let settled = |worn_cycles| {
        let mut drive = drive(|spec| {
            spec.nand.t_program_us = vec![100.0];
            spec.nand.t_erase_us = 100.0;
            spec.relocation.buffer_kib = Some(2048);
            let retry = spec.read_retry.as_mut().expect("it has retries");
            (retry.steps, retry.worn_cycles) =
                (vec![vec![0.0; 3], vec![20.0; 3], vec![20.0; 3]], worn_cycles);
        });
        let sectors = u32::try_from(drive.user_sectors()).expect("in time lapse");
        assert!(drive.age(Lba(0), sectors));
        drive.begin_loads(Nanos::ZERO);
        let load = Load { read_share: 0.0, sectors: 8, outstanding: 64, seed: 3 };
        let mut closed = Loop::start(&mut drive, load, Nanos::ZERO);
        closed.run(Nanos::from_secs(60), false);
        let seen = closed.run(Nanos::from_secs(10), true);
        closed.drain();
        assert!(seen.write_amplification() > 2.0, "{}", seen.write_amplification());
        seen.iops()
    };
    let (fresh, worn) = (settled(0.0), settled(1000.0));
    assert!(worn < 0.7 * fresh, "{worn} IOPS of worn flash, {fresh} of fresh");
}
