//! Counters of intervals.

use blockio::{Completion, Lba, Op, Status};

use super::*;

const MS: Nanos = Nanos(1_000_000);

/// A request of `sectors` that took `us` microseconds.
fn done(op: Op, sectors: u32, us: u64) -> Completion {
    Completion {
        tag: 0,
        thread: 0,
        op,
        status: Status::Ok,
        sectors,
        submitted_at: Nanos::from_micros(7),
        completed_at: Nanos::from_micros(7 + us),
        stalled: Nanos::ZERO,
    }
}

#[test]
fn reads_and_writes_are_counted_apart_and_nothing_else_is() {
    let drive = small();
    let mut meter = Meter::new(&drive, Nanos::ZERO);
    for completion in [
        done(Op::Read, 8, 100),
        done(Op::Read, 16, 300),
        done(Op::Write, 256, 50),
        done(Op::Trim, 1 << 20, 9000),
        done(Op::Flush, 0, 9000),
    ] {
        meter.count(&completion);
    }
    meter.count_media_error();
    let interval = meter.cut(&drive, MS, 64.0);
    assert_eq!((interval.read.count(), interval.read_bytes), (2, 24 * 512));
    assert_eq!((interval.write.count(), interval.write_bytes), (1, 256 * 512));
    assert_eq!((interval.read.sum_ns(), interval.write.sum_ns()), (400_000, 50_000));
    assert_eq!(interval.media_errors, 1);
    // The time of the protocol and that of the drive are two.
    assert!((interval.at_s - 64.0).abs() < 1e-12 && (interval.span_s - 0.001).abs() < 1e-12);
}

#[test]
fn an_interval_begins_where_the_last_one_ended_with_nothing_in_it() {
    let drive = small();
    let mut meter = Meter::new(&drive, MS);
    meter.count(&done(Op::Read, 8, 100));
    meter.count_media_error();
    assert!((meter.cut(&drive, MS * 3, 1.0).span_s - 0.002).abs() < 1e-12);
    let second = meter.cut(&drive, MS * 4, 2.0);
    assert_eq!((requests(&second), second.read_bytes, second.media_errors), (0, 0, 0));
    assert!((second.span_s - 0.001).abs() < 1e-12);
}

#[test]
fn what_the_flash_did_before_the_first_interval_is_in_none() {
    let mut drive = small();
    drive.age(Lba(0), 8 * 100);
    let mut meter = Meter::new(&drive, Nanos::ZERO);
    drive.age(Lba(0), 8 * 30);
    let first = meter.cut(&drive, MS, 1.0).nand.unwrap();
    drive.age(Lba(800), 8 * 20);
    let second = meter.cut(&drive, MS * 2, 2.0).nand.unwrap();
    assert_eq!((first.host_bytes, second.host_bytes), (30 * 4096, 20 * 4096));
    assert_eq!(meter.cut(&drive, MS * 3, 3.0).nand.unwrap().host_bytes, 0);
}

#[test]
fn an_interval_of_no_length_has_no_infinite_power() {
    let (spec, setup) = small_setup();
    assert!(spec.thermal.is_some(), "its heat is known");
    let drive = Drive::new(&spec, &setup).unwrap();
    let mut meter = Meter::new(&drive, MS);
    let climate = meter.cut(&drive, MS, 0.0).climate.unwrap();
    assert_eq!(climate.power_w, Some(0.0));
    assert_eq!(
        (climate.thermal_throttled_share, climate.power_throttled_share),
        (Some(0.0), Some(0.0))
    );
    assert!(climate.temperature_c.is_some_and(f64::is_finite), "{climate:?}");
}

#[test]
fn an_idle_drive_draws_what_it_idles_at() {
    let drive = small();
    let mut meter = Meter::new(&drive, Nanos::ZERO);
    let climate = meter.cut(&drive, Nanos::from_secs(10), 10.0).climate.unwrap();
    assert!((climate.power_w.unwrap() - 11.0).abs() < 0.1, "{climate:?}");
}

#[test]
fn a_drive_that_writes_in_place_has_no_pages_and_no_free_superblocks() {
    let drive = in_place("p5800x");
    let mut meter = Meter::new(&drive, Nanos::ZERO);
    let interval = meter.cut(&drive, MS, 1.0);
    assert_eq!(interval.superblocks_free_share, None);
    assert_eq!(interval.nand.unwrap().host_bytes, 0);
    assert!(interval.placement.is_empty());
}

#[test]
fn a_stall_of_one_request_costs_a_load_the_same_at_every_time_lapse() {
    let of = |time_lapse| {
        let mut model = stalling(time_lapse, (2.0, 100.0));
        let workload = workload("4k-rand-read");
        let load = Load { threads: 1, queue_per_thread: 1, ramp_s: 0.0, ..load(&workload) };
        let load = Load { duration_s: 20.0, interval_s: 20.0, ..load };
        results::Summary::of(&run(&mut model, &load))
    };
    let (full, lapsed) = (of(2), of(32));
    assert!((lapsed.iops / full.iops - 1.0).abs() < 0.005, "{} and {}", lapsed.iops, full.iops);
    let (full, lapsed) = (full.read, lapsed.read);
    for (full, lapsed) in [
        (full.latency_ns_avg, lapsed.latency_ns_avg),
        (full.latency_ns_stdev, lapsed.latency_ns_stdev),
        (full.latency_ns_max as f64, lapsed.latency_ns_max as f64),
    ] {
        assert!((lapsed / full - 1.0).abs() < 0.02, "{lapsed} in time lapse, {full}");
    }
    assert!(lapsed.latency_ns_max > 100_000_000 && lapsed.latency_ns_p9999 < Some(10_000_000));
}
