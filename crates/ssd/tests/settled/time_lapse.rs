//! A drive in time lapse settles where the whole drive does.

use crate::closed_loop::{Load, Loop, Seen};
use blockio::Nanos;
use ssd::{Drive, Setup, catalogue};

/// Protocol seconds past the cliff, and that are then measured.
const SETTLING_S: u64 = 4_200;
const MEASURED_S: u64 = 600;

fn settled(format: &str, time_lapse: u32) -> Seen {
    let spec = catalogue::find("iodrive-duo").expect("in the catalogue");
    let setup = Setup { format: format.into(), host: "linux".into(), time_lapse, seed: 1 };
    let mut drive = Drive::new(&spec, &setup).expect("a drive at that scale");
    let load = Load { read_share: 0.0, sectors: 8, outstanding: 256, seed: 1 };
    let mut writing = Loop::start(&mut drive, load, Nanos::ZERO);
    writing.run(Nanos::from_secs(SETTLING_S) / u64::from(time_lapse), false);
    writing.run(Nanos::from_secs(MEASURED_S) / u64::from(time_lapse), true)
}

fn check(format: &str) {
    let spec = catalogue::find("iodrive-duo").expect("in the catalogue");
    let time_lapse = spec.time_lapse_default();
    let (whole, lapsed) = (settled(format, 1), settled(format, time_lapse));
    let pairs = [
        ("iops", whole.iops(), lapsed.iops()),
        ("write amplification", whole.write_amplification(), lapsed.write_amplification()),
        ("latency_ns_avg", whole.latency_ns_avg(), lapsed.latency_ns_avg()),
        ("latency_ns_p50", whole.latency_ns(0.5), lapsed.latency_ns(0.5)),
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
