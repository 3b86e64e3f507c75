//! Sampled loads beside the same loads in detail.

use blockio::Bytes;
use results::{Summary, WarningKind};
use ssd::StallHolds;

use super::*;

/// A small drive with the change; its host does not stall.
fn changed(change: impl FnOnce(&mut DriveSpec)) -> (DriveSpec, Setup) {
    let (mut spec, setup) = small_setup();
    spec.hosts[0].stalls.clear();
    change(&mut spec);
    (spec, setup)
}

fn sampling_of(spec: &DriveSpec, setup: &Setup, load: &Load<'_>, share: f64) -> LoadResult {
    let precision = (share > 0.0).then(|| Precision::of_share(share).unwrap());
    let mut model = Model::new(spec.clone(), setup.clone()).unwrap().sampled(precision);
    let loaded = model.load(load, &mut StopAfter(usize::MAX)).unwrap();
    model.drive.check_invariants();
    loaded
}

/// The second half of a load: the first writes the drive over.
fn settled(loaded: &LoadResult) -> Summary {
    Summary::of(&loaded.intervals[loaded.intervals.len() / 2..])
}

fn off(found: f64, reference: f64) -> f64 {
    (found / reference - 1.0).abs()
}

fn long(workload: &Workload) -> Load<'_> {
    Load { ramp_s: 0.0, duration_s: 40.0, interval_s: 1.0, ..load(workload) }
}

fn amplification(summary: &Summary) -> f64 {
    summary.nand.and_then(|nand| nand.write_amplification()).unwrap()
}

#[test]
fn a_sampled_load_has_the_rate_the_latency_and_the_write_amplification_of_one_in_detail() {
    let (spec, setup) = changed(|_| {});
    for name in ["4k-rand-write", "8k-70-30"] {
        let workload = workload(name);
        let load = long(&workload);
        let detailed = settled(&sampling_of(&spec, &setup, &load, 0.0));
        let loaded = sampling_of(&spec, &setup, &load, 0.01);
        let sampling = loaded.sampling.as_ref().unwrap();
        assert!(sampling.is_sampled() && sampling.windows >= 30, "{name}: {sampling:?}");
        assert!(sampling.requests_detailed * 2 < sampling.requests, "{name}: {sampling:?}");
        let sampled = settled(&loaded);
        assert_eq!(loaded.intervals.len(), 40);
        let rate = off(sampled.iops, detailed.iops);
        assert!(rate < 0.015, "{name}: {} of {}", sampled.iops, detailed.iops);
        let mean = off(sampled.latency.latency_ns_avg, detailed.latency.latency_ns_avg);
        assert!(mean < 0.03, "{name}: mean latency is off by {mean}");
        let (found, reference) = (amplification(&sampled), amplification(&detailed));
        assert!(off(found, reference) < 0.02, "{name}: {found} of {reference}");
    }
}

#[test]
fn the_same_seed_gives_the_same_sampled_figures() {
    let (spec, setup) = changed(|_| {});
    let workload = workload("4k-rand-write");
    let load = Load { duration_s: 20.0, ..long(&workload) };
    let once = || {
        let loaded = sampling_of(&spec, &setup, &load, 0.02);
        format!("{:?} {:?}", loaded.intervals, loaded.sampling)
    };
    assert_eq!(once(), once());
}

#[test]
fn a_load_that_cannot_be_sampled_is_simulated_in_detail_and_says_why() {
    let (spec, setup) = changed(|_| {});
    let workload = workload("4k-rand-write");
    let rate = Some(Rate { iops: 10_000.0, gaps: Gaps::Exponential });
    let load = Load { rate, ..load(&workload) };
    let detailed = sampling_of(&spec, &setup, &load, 0.0);
    let asked = sampling_of(&spec, &setup, &load, 0.01);
    assert_eq!(format!("{:?}", asked.intervals), format!("{:?}", detailed.intervals));
    assert_eq!(detailed.sampling, None);
    let reason = asked.sampling.unwrap().detailed.unwrap();
    assert!(reason.contains("at a rate"), "{reason}");
    let unwarmable = |name: &str| {
        let spec = ssd::catalogue::find(name).unwrap();
        let (format, host) = (spec.formats().remove(0), spec.hosts().remove(0));
        let time_lapse = spec.time_lapse_default();
        Drive::new(&spec, &Setup { format, host, time_lapse, seed: 1 }).unwrap().unwarmable()
    };
    assert!(unwarmable("savvio-15k1-73").unwrap().contains("hard disk"));
    assert!(unwarmable("intel-660p-1024").unwrap().contains("age of the data"));
    assert!(unwarmable("samsung-990-pro-2000").unwrap().contains("SLC cache"));
    assert_eq!((unwarmable("iodrive-duo"), unwarmable("p5510")), (None, None));
}

/// Relocation that is put off until it has to be: bursts of writes, then none, in step with the
/// superblocks. Windows meet the one or the other; where they lie is drawn, so that no period is
/// missed, and what relocation all of a stratum did says what a window was short of.
#[test]
fn a_sawtooth_of_relocation_does_not_fool_windows() {
    for burst in [0.3, 4.0] {
        let (spec, setup) = changed(|spec| {
            spec.relocation.price_max = 0.1;
            spec.relocation.burst = burst;
        });
        let workload = workload("4k-rand-write");
        let load = long(&workload);
        let detailed = settled(&sampling_of(&spec, &setup, &load, 0.0));
        let loaded = sampling_of(&spec, &setup, &load, 0.01);
        let sampling = loaded.sampling.clone().unwrap();
        assert!(sampling.is_sampled(), "{sampling:?}");
        let sampled = settled(&loaded);
        // Unknown where changes leave too few neighbours: then that is told.
        let reached = sampling.precision_reached;
        let allowed = reached.map_or(0.03, |it| it.max(0.01));
        let rate = off(sampled.iops, detailed.iops);
        assert!(rate < allowed, "burst {burst}: off by {rate}, {sampling:?}");
        let is_told = loaded.warnings.iter().any(|it| it.kind == WarningKind::Scale);
        assert_eq!(is_told, reached.is_none_or(|it| it > 0.01), "{:?}", loaded.warnings);
    }
}

/// A stall of one request that comes less often than windows: it is met in proportion, shortened,
/// and counts with its length.
#[test]
fn a_stall_that_is_rarer_than_windows_is_met_and_counts_as_often_as_in_detail() {
    let (spec, setup) = changed(|spec| {
        let duo = ssd::catalogue::find("iodrive-duo").unwrap();
        let mut stall = duo.hosts[0].stalls[0].clone();
        (stall.every_s, stall.span_ms) = (4.0, 500.0);
        (stall.during, stall.holds) = (StallDuring::Always, StallHolds::Request);
        spec.hosts[0].stalls = vec![stall];
    });
    let workload = workload("4k-rand-write");
    let load = long(&workload);
    let detailed = Summary::of(&sampling_of(&spec, &setup, &load, 0.0).intervals);
    let loaded = sampling_of(&spec, &setup, &load, 0.01);
    let sampling = loaded.sampling.unwrap();
    assert!(sampling.is_sampled() && sampling.requests_detailed * 2 < sampling.requests);
    let sampled = Summary::of(&loaded.intervals);
    let [found, reference] = [&sampled, &detailed].map(|it| it.latency.latency_ns_max as f64 / 1e6);
    assert!(reference > 499.0 && off(found, reference) < 0.1, "{found} of {reference} ms");
    let [found, reference] = [&sampled, &detailed].map(|it| it.latency.latency_ns_stdev);
    assert!(off(found, reference) < 0.5, "deviation of {found}, {reference} in detail");
}

#[test]
fn what_few_requests_of_windows_tell_is_withheld() {
    let (spec, setup) = changed(|_| {});
    let workload = workload("4k-rand-write");
    let loaded = sampling_of(&spec, &setup, &long(&workload), 0.01);
    let interval = Summary::of(&loaded.intervals[20..21]);
    assert!(interval.latency.count > 10_000, "{} are counted", interval.latency.count);
    assert_eq!(interval.latency.latency_ns_p9999, None, "of some thousand that were measured");
    assert!(interval.latency.latency_ns_p50.is_some());
    let whole = Bytes(loaded.intervals.iter().map(|it| it.write_bytes).sum::<u64>());
    let sent = loaded.intervals.iter().filter_map(|it| it.nand).map(|it| it.host_sent_bytes);
    assert!(off(sent.sum::<u64>() as f64, whole.0 as f64) < 1e-4, "every write is counted");
}

/// Stalls of threads come on the drive's own clock, on which nothing but windows and the detail
/// before them passes: as often as a window, they would always or never be in one.
#[test]
fn stalls_that_come_as_often_as_windows_are_met_as_often_as_in_detail() {
    let workload = workload("4k-rand-write");
    let load = Load { duration_s: 20.0, interval_s: 0.5, ..long(&workload) };
    let quiet = changed(|_| {});
    let rate = settled(&sampling_of(&quiet.0, &quiet.1, &load, 0.0)).iops;
    // A window and the detail before it have 4,096 requests each; a fifth of that is a stall.
    for every_s in [8192.0 / rate, 8192.0 * 1.2 / rate] {
        let (spec, setup) = changed(|spec| {
            let duo = ssd::catalogue::find("iodrive-duo").unwrap();
            let mut stall = duo.hosts[0].stalls[0].clone();
            (stall.every_s, stall.span_ms) = (every_s, every_s * 200.0);
            (stall.during, stall.holds) = (StallDuring::Always, StallHolds::Thread);
            spec.hosts[0].stalls = vec![stall];
        });
        let detailed = settled(&sampling_of(&spec, &setup, &load, 0.0));
        let loaded = sampling_of(&spec, &setup, &load, 0.01);
        let sampling = loaded.sampling.as_ref().unwrap();
        assert!(sampling.is_sampled(), "{sampling:?}");
        let rate = off(settled(&loaded).iops, detailed.iops);
        let allowed = sampling.precision_reached.map_or(0.03, |it| it.max(0.01));
        assert!(rate < allowed, "every {every_s} s: off by {rate}, {sampling:?}");
    }
}

/// Windows would hold a second or two of the drive's own clock: a stall of each thread every eight
/// would be in none of them, or in one.
#[test]
fn stalls_of_threads_that_windows_would_miss_are_simulated_in_detail() {
    let (spec, setup) = changed(|spec| {
        let duo = ssd::catalogue::find("iodrive-duo").unwrap();
        let mut stall = duo.hosts[0].stalls[0].clone();
        (stall.every_s, stall.span_ms) = (8.0, 400.0);
        (stall.during, stall.holds) = (StallDuring::Always, StallHolds::Thread);
        spec.hosts[0].stalls = vec![stall];
    });
    let workload = workload("4k-rand-write");
    let load = long(&workload);
    let detailed = Summary::of(&sampling_of(&spec, &setup, &load, 0.0).intervals);
    let loaded = sampling_of(&spec, &setup, &load, 0.01);
    let sampled = Summary::of(&loaded.intervals);
    let rate = off(sampled.iops, detailed.iops);
    assert!(rate < 0.01, "off by {rate}, {:?}", loaded.sampling);
    assert_eq!(sampled.latency.latency_ns_max / 10_000_000, 40, "the stall is seen");
}

/// The burst of a purged drive, and the cliff at which it ends.
#[test]
fn a_burst_ends_when_it_does_in_detail() {
    let (spec, setup) = changed(|_| {});
    let workload = workload("4k-rand-write");
    let load = Load { duration_s: 20.0, interval_s: 0.25, ..long(&workload) };
    let cliff = |loaded: &LoadResult| {
        let rates: Vec<f64> = loaded.intervals.iter().map(|it| requests(it) as f64).collect();
        let burst = rates[1];
        rates.iter().position(|rate| *rate < burst * 0.8).expect("there is a cliff")
    };
    let detailed = cliff(&sampling_of(&spec, &setup, &load, 0.0));
    let loaded = sampling_of(&spec, &setup, &load, 0.01);
    assert!(loaded.sampling.as_ref().unwrap().is_sampled(), "{:?}", loaded.sampling);
    let sampled = cliff(&loaded);
    assert!(detailed.abs_diff(sampled) <= 1, "interval {sampled}, {detailed} in detail");
    assert!(detailed > 1, "interval {detailed}");
}

/// A drive that warms up over much of the load, in thousands of windows.
#[test]
fn heat_that_is_slower_than_windows_is_that_of_a_load_in_detail() {
    let heated = |capacity_j_k: f64| {
        changed(|spec| {
            let thermal = spec.thermal.as_mut().expect("its heat is known");
            thermal.capacity_j_k = capacity_j_k;
            if let Some(power) = &mut spec.power {
                power.limit_w = None;
            }
        })
    };
    let (spec, setup) = heated(4.0);
    let workload = workload("4k-rand-write");
    let load = long(&workload);
    let temperature = |loaded: &LoadResult, index: usize| {
        loaded.intervals[index].climate.and_then(|it| it.temperature_c).unwrap()
    };
    let detailed = sampling_of(&spec, &setup, &load, 0.0);
    let loaded = sampling_of(&spec, &setup, &load, 0.01);
    assert!(loaded.sampling.as_ref().unwrap().is_sampled(), "{:?}", loaded.sampling);
    // Early in the load the temperature of a stratum is that of its end.
    for index in [15, 39] {
        let [found, reference] = [&loaded, &detailed].map(|it| temperature(it, index));
        let off_k = (found - reference).abs();
        assert!(off_k < 2.0, "{index}: {found} °C, {reference} °C in detail");
    }
    let warming = temperature(&detailed, 39) - temperature(&detailed, 0);
    assert!(warming > 5.0, "it warms by {warming} K");
}

#[test]
fn how_precise_a_rate_is_and_that_it_is_not_known_are_said_in_words() {
    let sampling = |reached| Sampling {
        precision: 0.01,
        precision_reached: reached,
        windows: 6,
        ..Sampling::default()
    };
    let text = |reached| {
        crate::driver::model::sampled::imprecise("4k", &sampling(reached)).map(|it| it.text)
    };
    assert_eq!(text(Some(0.009)), None);
    let known = "sampled: the rate of the least certain quarter of the load is known to ±2.5 % \
                 (95 %), ±1 % was asked for";
    assert_eq!(text(Some(0.025)).as_deref(), Some(known));
    let unknown =
        "sampled: too few windows tell how precise the rate is (95 %), ±1 % was asked for";
    assert_eq!(text(None).as_deref(), Some(unknown));
}

/// A buffer that holds more than a window writes: what is in it when warming ends was placed on
/// other dies than what follows, and only in detail they come into order again.
#[test]
fn windows_begin_when_a_large_buffer_has_been_written_over() {
    let (spec, setup) = changed(|spec| {
        spec.buffer.kib = 32 * 1024;
        spec.nand.t_program_us = vec![2000.0];
    });
    let workload = workload("4k-rand-write");
    let load = Load { threads: 4, queue_per_thread: 16, duration_s: 120.0, ..long(&workload) };
    let detailed = sampling_of(&spec, &setup, &load, 0.0);
    let loaded = sampling_of(&spec, &setup, &load, 0.02);
    let sampling = loaded.sampling.as_ref().unwrap();
    assert!(sampling.is_sampled(), "{sampling:?}");
    let buffer = 2 * 32 * 1024 / 4;
    let each = sampling.requests_measured / sampling.windows;
    assert!(each >= 2 * buffer, "{each} requests of a window, {buffer} pages of buffer");
    let rate = off(settled(&loaded).iops, settled(&detailed).iops);
    assert!(rate < 0.02, "off by {rate}, {sampling:?}");
}
