//! One workload, two drivers, one truth: what a model and fio issue for the same definition agrees.
//!
//! fio runs its job file on a target that answers at once and logs what it issues; a model's
//! threads are asked for their requests. Seeds are fixed, so each comparison comes out the same
//! every time; only rates depend on the machine.

use std::thread;

use blockio::Op;
use lab::driver::model::{Model, issued};
use lab::driver::{Driver as _, Load, SilentWatch};
use lab::replay::Replay;
use lab::schedule::due;
use lab::{Gaps, Rate};
use ssd::{Drive, Setup};
use workload::trace::TraceRequest;
use workload::{Access, SizeShare, Workload, catalogue};

use crate::fio::conformance as fio;

/// Requests that are compared.
const REQUESTS: usize = 20_000;
/// Parts of the footprint in which addresses are counted.
const PARTS: usize = 50;
/// 99.9 % of samples of a distribution stay below this with 49 degrees of freedom.
const CHI_SQUARED_MAX: f64 = 85.4;

/// A request, whichever driver issued it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IssuedRequest {
    op: Op,
    lba: u64,
    sectors: u32,
}

fn drive() -> Drive {
    drive_named("iodrive-duo", 64)
}

fn drive_named(name: &str, time_lapse: u32) -> Drive {
    let spec = ssd::catalogue::find(name).expect("the catalogue has it");
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    Drive::new(&spec, &Setup { format, host, time_lapse, seed: 1 }).expect("it fits")
}

/// Capacity of `drive` in whole MiB, as fio is given it.
fn capacity_bytes(drive: &Drive) -> u64 {
    (drive.user_sectors() * 512) >> 20 << 20
}

fn load(workload: &Workload) -> Load<'_> {
    Load {
        step: "conformance",
        workload,
        threads: 1,
        queue_per_thread: 8,
        ramp_s: 0.0,
        duration_s: 60.0,
        interval_s: 60.0,
        rate: None,
        replay: None,
        seed: 7,
    }
}

fn by_model(workload: &Workload, drive: &Drive) -> Vec<IssuedRequest> {
    let requests = issued(&load(workload), drive, REQUESTS).expect("it fits").remove(0);
    let asked =
        |it: &blockio::Request| IssuedRequest { op: it.op, lba: it.lba.0, sectors: it.sectors };
    requests.iter().map(asked).collect()
}

fn by_fio(workload: &Workload, drive: &Drive) -> Vec<IssuedRequest> {
    let issued = fio::issued(&load(workload), capacity_bytes(drive), REQUESTS);
    let asked = |it: &TraceRequest| IssuedRequest { op: it.op, lba: it.lba, sectors: it.sectors };
    let all: Vec<IssuedRequest> = issued.iter().map(asked).collect();
    assert_eq!(all.len(), REQUESTS, "{}", workload.name);
    all
}

fn share(all: &[IssuedRequest], which: impl Fn(&IssuedRequest) -> bool) -> f64 {
    all.iter().filter(|asked| which(asked)).count() as f64 / all.len() as f64
}

/// Requests that begin in each part of the footprint.
fn counts(all: &[IssuedRequest], (first, footprint): (u64, u64)) -> Vec<f64> {
    let mut counts = vec![0.0; PARTS];
    for asked in all {
        let part = (asked.lba - first) * PARTS as u64 / footprint;
        counts[usize::try_from(part).expect("a small number").min(PARTS - 1)] += 1.0;
    }
    counts
}

/// Chi-squared of two samples of the same size against one distribution.
fn chi_squared(a: &[f64], b: &[f64]) -> f64 {
    let pairs = a.iter().zip(b).filter(|(a, b)| **a + **b > 0.0);
    pairs.map(|(a, b)| (a - b) * (a - b) / (a + b)).sum()
}

/// Mix, sizes and addresses of both drivers against the definition and against each other.
fn compare(workload: &Workload, drive: &Drive) {
    let (model, fio) = (by_model(workload, drive), by_fio(workload, drive));
    let name = &workload.name;
    let parts = (1..=100).find(|parts| (workload.footprint_percent / f64::from(*parts)) <= 1.0);
    let footprint = drive.user_sectors() * u64::from(parts.unwrap_or(100_u32)) / 100;
    let first = model.iter().chain(&fio).map(|asked| asked.lba).min().unwrap_or_default();
    let least = workload.offset_percent / 100.0 * capacity_bytes(drive) as f64 / 512.0;
    assert!(first as f64 + f64::from(workload.alignment_bytes() / 512) > least, "{name}: {first}");
    for (driver, all) in [("model", &model), ("fio", &fio)] {
        let reads = share(all, |asked| asked.op == Op::Read);
        assert!((reads - workload.read_percent / 100.0).abs() < 0.01, "{name}, {driver}: {reads}");
        for size in &workload.sizes {
            let found = share(all, |asked| asked.sectors * 512 == size.bytes);
            assert!((found - size.percent / 100.0).abs() < 0.01, "{name}, {driver}: {found}");
        }
        let align = u64::from(workload.alignment_bytes() / 512);
        for asked in all {
            assert!(asked.lba.is_multiple_of(align), "{name}, {driver}: {asked:?}");
            let end = asked.lba - first + u64::from(asked.sectors);
            assert!(end <= footprint, "{name}, {driver}");
        }
    }
    if workload.access == Access::Sequential {
        let differs = model.iter().zip(&fio).take(1000).position(|(a, b)| a.lba != b.lba);
        assert_eq!(differs, None, "{name}");
        return;
    }
    let (model, fio) = (counts(&model, (first, footprint)), counts(&fio, (first, footprint)));
    let between = chi_squared(&model, &fio);
    assert!(between < CHI_SQUARED_MAX, "{name}: {between}");
    if workload.access == Access::Random {
        let even = vec![REQUESTS as f64 / PARTS as f64; PARTS];
        for (driver, counts) in [("model", &model), ("fio", &fio)] {
            let found: f64 =
                counts.iter().zip(&even).map(|(n, even)| (n - even) * (n - even) / even).sum();
            assert!(found < CHI_SQUARED_MAX, "{name}, {driver}: {found}");
        }
    }
}

#[test]
fn every_workload_of_the_catalogue_is_issued_alike() {
    if fio::is_missing() {
        return;
    }
    let (drive, mut workloads) = (drive(), catalogue::workloads());
    // Streams are for models alone: fio is refused them.
    workloads.retain(|workload| workload.access != Access::Streams);
    // Starting and ending, fio mostly waits: several at once are done sooner.
    thread::scope(|scope| {
        for part in workloads.chunks(workloads.len().div_ceil(4)) {
            scope.spawn(|| part.iter().for_each(|workload| compare(workload, &drive)));
        }
    });
}

#[test]
fn hot_and_cold_regions_and_a_part_of_the_drive_are_issued_alike() {
    if fio::is_missing() {
        return;
    }
    let drive = drive();
    let base = catalogue::find_workload("8k-70-30").expect("the catalogue has it");
    let access = Access::HotCold { hot_request_percent: 80.0, hot_space_percent: 20.0 };
    compare(&Workload { name: "hot-cold".into(), access, ..base.clone() }, &drive);
    compare(
        &Workload { name: "a quarter".into(), footprint_percent: 25.0, ..base.clone() },
        &drive,
    );
    // Without a file, fio begins anew at address 0 where an order ends: on a file it does not.
    let later = Workload { offset_percent: 40.0, footprint_percent: 25.0, ..base };
    compare(&Workload { name: "a later quarter".into(), ..later }, &drive);
}

#[test]
fn a_zipf_law_is_as_skewed_in_both() {
    if fio::is_missing() {
        return;
    }
    let drive = drive();
    let workload = Workload {
        name: "zipf".into(),
        access: Access::Zipf { theta: 1.2 },
        sizes: vec![SizeShare { bytes: 4096, percent: 100.0 }],
        ..catalogue::find_workload("4k-rand-read").expect("the catalogue has it")
    };
    // Which pages are hot is drawn by each; how hot the hottest are is the law. fio approximates
    // it: of the ten hottest it makes three points more of all requests.
    let hottest = |all: &[IssuedRequest]| {
        let mut lbas: Vec<u64> = all.iter().map(|asked| asked.lba).collect();
        lbas.sort_unstable();
        let mut counts: Vec<usize> = lbas.chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        [1, 10, 100].map(|top| counts[..top].iter().sum::<usize>() as f64 / all.len() as f64)
    };
    let (model, fio) = (hottest(&by_model(&workload, &drive)), hottest(&by_fio(&workload, &drive)));
    let near = model.iter().zip(fio).all(|(model, fio)| (model - fio).abs() < 0.04);
    assert!(near, "{model:?} of all, {fio:?} by fio");
}

#[test]
fn each_thread_keeps_exactly_its_queue_outstanding() {
    if fio::is_missing() {
        return;
    }
    let workload = catalogue::find_workload("4k-rand-read").expect("the catalogue has it");
    let asked = Load { threads: 3, queue_per_thread: 4, duration_s: 1.0, ..load(&workload) };
    let asked = Load { interval_s: 1.0, ..asked };
    let jobs = fio::depths(&asked);
    assert_eq!(jobs.len(), 3);
    for depths in jobs {
        // The bucket of 4 to 7, which begins once the queue is full and never overflows.
        let full = depths.iter().find(|(depth, _)| *depth == 4).map_or(0.0, |(_, share)| *share);
        assert!(full > 95.0, "{depths:?}");
        assert!(depths.iter().all(|(depth, _)| *depth <= 4), "{depths:?}");
    }
    let spec = ssd::catalogue::find("iodrive-duo").expect("the catalogue has it");
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    let mut model = Model::new(spec, Setup { format, host, time_lapse: 64, seed: 1 }).unwrap();
    let asked = Load { duration_s: 64.0, interval_s: 64.0, ramp_s: 6.4, ..asked };
    let loaded = model.load(&asked, &mut SilentWatch).unwrap();
    let summary = results::Summary::of(&loaded.intervals);
    let deviation = summary.littles_law_deviation(12.0).unwrap();
    assert!(deviation.abs() < 0.002 + summary.littles_law_edge(), "{deviation}");
}

#[test]
fn a_trace_is_replayed_request_by_request_alike() {
    let workload = catalogue::find_workload("mail-server").expect("the catalogue has it");
    let shape =
        workload::TraceShape { requests: 5000, ..workload.trace.clone().expect("it has a shape") };
    let trace = workload::trace::synthesise(&workload, &shape, 3).expect("it fits");
    // At full scale, since in time lapse a trace shrinks with the drive; written in place, it needs
    // no map.
    let drive = drive_named("p5800x", 1);
    for addresses in [workload::trace::Addresses::Scaled, workload::trace::Addresses::Wrapped] {
        let replay = Replay { trace: &trace, addresses, speed: None };
        let asked = Load { threads: 3, replay: Some(replay), ..load(&workload) };
        // A model's drive ends where fio's does: in whole MiB.
        let sectors = capacity_bytes(&drive) / 512;
        assert_eq!(sectors, drive.user_sectors() >> 11 << 11);
        let given = fio::replayed(&asked, drive.user_sectors() * 512, 3000);
        let model = issued(&asked, &drive, 3000).expect("it fits");
        for (thread, (model, fio)) in model.iter().zip(&given).enumerate() {
            let model: Vec<_> = model.iter().map(|it| (it.op, it.lba.0, it.sectors)).collect();
            let fio: Vec<_> = fio.iter().map(|it| (it.1, it.2, it.3)).collect();
            assert_eq!(model, fio, "thread {thread}: more than once over");
        }
    }
}

#[test]
fn a_trace_at_a_rate_comes_in_its_order_at_the_same_times_in_both_and_within_the_section() {
    let workload = catalogue::find_workload("mail-server").expect("the catalogue has it");
    let workload = Workload { footprint_percent: 25.0, ..workload };
    let shape = workload.trace.clone().expect("it has a shape");
    let shape = workload::TraceShape { requests: 5000, ..shape };
    let trace = workload::trace::synthesise(&workload, &shape, 3).expect("it fits");
    let drive = drive_named("p5800x", 1);
    for gaps in [Gaps::Exponential, Gaps::Constant] {
        let addresses = workload::trace::Addresses::Regions;
        let replay = Replay { trace: &trace, addresses, speed: None };
        let rate = Some(Rate { iops: 20_000.0, gaps });
        let asked = Load { threads: 3, rate, replay: Some(replay), ..load(&workload) };
        let one_thread = Load { threads: 1, ..asked };
        let model = issued(&one_thread, &drive, 6000).expect("it fits").remove(0);
        let due = due(&asked, 6000);
        let expected = |thread: usize| {
            let of_thread = model.iter().zip(&due).skip(thread).step_by(3);
            of_thread.map(|(it, due)| (*due, it.op, it.lba.0, it.sectors)).collect::<Vec<_>>()
        };
        let given = fio::replayed(&asked, drive.user_sectors() * 512, 2000);
        for (thread, given) in given.iter().enumerate() {
            assert_eq!(*given, expected(thread), "thread {thread}: more than once over");
        }
        let quarter = drive.user_sectors() / 4;
        assert!(model.iter().all(|it| it.lba.0 + u64::from(it.sectors) <= quarter));
        assert!(model.iter().any(|it| it.lba.0 > quarter / 2), "the whole of its section");
    }
}

#[test]
fn even_rates_are_kept_within_two_percent() {
    if fio::is_missing() {
        return;
    }
    for name in ["4k-rand-read", "64k-seq-write"] {
        let workload = catalogue::find_workload(name).expect("the catalogue has it");
        let rate = Some(Rate { iops: 4000.0, gaps: Gaps::Constant });
        let asked = Load { threads: 2, rate, duration_s: 2.0, interval_s: 2.0, ..load(&workload) };
        let near = |iops: f64| (iops / 4000.0 - 1.0).abs() < 0.02;
        let spec = ssd::catalogue::find("iodrive-duo").expect("the catalogue has it");
        let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
        let mut model = Model::new(spec, Setup { format, host, time_lapse: 64, seed: 1 }).unwrap();
        let long = Load { duration_s: 128.0, interval_s: 128.0, ..asked };
        let loaded = model.load(&long, &mut SilentWatch).unwrap();
        let iops = results::Summary::of(&loaded.intervals).iops;
        assert!(near(iops), "{name}: {iops} of 4000");
        // A machine that is busy elsewhere may make fio late once.
        let mut fio = (0..5).map(|_| fio::iops(&asked));
        assert!(fio.any(near), "{name}");
    }
}

/// Requests that are compared where they come at random: 2 % of their rate are three standard
/// errors.
const ARRIVALS: usize = 25_000;

/// True if `gaps_s` are those of a Poisson process of `rate` a second: their mean, and the share of
/// those that are longer than two means, are within three standard errors.
fn are_poisson(gaps_s: &[f64], rate: f64) -> bool {
    let count = gaps_s.len() as f64;
    let mean_s = gaps_s.iter().sum::<f64>() / count;
    let long = gaps_s.iter().filter(|gap| **gap > 2.0 * mean_s).count() as f64 / count;
    let expected = (-2.0_f64).exp();
    let error = (expected * (1.0 - expected) / count).sqrt();
    (mean_s * rate - 1.0).abs() < 3.0 / count.sqrt() && (long - expected).abs() < 3.0 * error
}

/// True if fio issued the requests when it had drawn that they were due, at ten moments of the run:
/// within 2 % of its length.
///
/// fio computes each moment from the one before, however late it was, and makes up for delays. On a
/// busy machine it is late at some moment, and never early.
fn are_on_time(arrivals: &fio::Arrivals) -> bool {
    let told: Vec<f64> = arrivals.gaps_s.iter().copied().filter(|gap| *gap > 0.0).collect();
    let whole_s: f64 = told.iter().sum();
    (1..=10).all(|tenth| {
        let due_s: f64 = told[..told.len() * tenth / 10].iter().sum();
        let at_s = arrivals.at_s[arrivals.at_s.len() * tenth / 10 - 1];
        (at_s - due_s).abs() < 0.02 * whole_s
    })
}

#[test]
fn rates_at_random_are_kept_within_two_percent_and_are_a_poisson_process_in_both() {
    if fio::is_missing() {
        return;
    }
    let drive = drive();
    // One direction, two, and two with many sizes: fio draws the gaps of each direction by itself.
    for name in ["4k-rand-read", "8k-70-30", "file-server"] {
        let workload = catalogue::find_workload(name).expect("the catalogue has it");
        let rate = Some(Rate { iops: 10_000.0, gaps: Gaps::Exponential });
        let asked = Load { rate, ..load(&workload) };
        let due = due(&asked, ARRIVALS);
        let gaps_s: Vec<f64> = due.windows(2).map(|it| (it[1] - it[0]).as_secs_f64()).collect();
        assert!(are_poisson(&gaps_s, 10_000.0), "{name}, model");
        // What fio draws comes out the same every time; when it gets to it, a busy machine decides.
        let mut tries = (0..5).map(|_| fio::arrivals(&asked, capacity_bytes(&drive), ARRIVALS));
        let on_time = tries.find(|all| {
            for it in all {
                let reads = workload.read_percent / 100.0;
                let share = if it.op == Op::Read { reads } else { 1.0 - reads };
                assert!(are_poisson(&it.gaps_s, 10_000.0 * share), "{name}, fio: {:?}", it.op);
                let found = it.at_s.len() as f64 / ARRIVALS as f64;
                assert!((found - share).abs() < 0.01, "{name}, fio: {found} {:?}", it.op);
            }
            all.iter().all(are_on_time)
        });
        assert!(on_time.is_some(), "{name}, fio: five times late");
    }
}
