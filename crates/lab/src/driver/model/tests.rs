//! Tests of the model driver that hold for any drive model.

use results::WarningKind;
use ssd::StallDuring;
use workload::{Workload, catalogue};

use super::*;

mod feed;
mod fill;
mod look;
mod meter;
mod pressure;
mod sampled;
mod schedule;

/// Watches nothing, and stops after so many reports of progress.
struct StopAfter(usize);

impl Watch for StopAfter {
    fn progress(&mut self, _: f64, _: &str) {
        self.0 -= 1;
    }

    fn saw(&mut self, _: Glimpse) {}

    fn stop(&self) -> bool {
        self.0 == 0
    }
}

/// ioDrive Duo without the stalls of its host drivers and the time that idle processors take to
/// wake up, which no law of queues knows.
fn model(time_lapse: u32) -> Model {
    let mut spec = ssd::catalogue::find("iodrive-duo").unwrap();
    for host in &mut spec.hosts {
        host.stalls.clear();
        host.wake_us = 0.0;
    }
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    Model::new(spec, Setup { format, host, time_lapse, seed: 1 }).unwrap()
}

/// A drive so small that it is written over in a moment.
fn small() -> Drive {
    let (spec, setup) = small_setup();
    Drive::new(&spec, &setup).unwrap()
}

fn small_setup() -> (DriveSpec, Setup) {
    let spec = DriveSpec::parse(&crate::driver::mock::tiny_drive_text(), "tiny.toml").unwrap();
    (spec, Setup { format: "stock".into(), host: "linux".into(), time_lapse: 1, seed: 1 })
}

/// A drive of the catalogue, at full scale, which is written in place.
fn in_place(name: &str) -> Drive {
    let spec = ssd::catalogue::find(name).unwrap();
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    Drive::new(&spec, &Setup { format, host, time_lapse: 1, seed: 1 }).unwrap()
}

fn workload(name: &str) -> Workload {
    catalogue::find_workload(name).unwrap()
}

/// ioDrive Duo whose host stalls one request for so many milliseconds every so many seconds.
fn stalling(time_lapse: u32, (every_s, span_ms): (f64, f64)) -> Model {
    let mut spec = ssd::catalogue::find("iodrive-duo").unwrap();
    for stall in spec.hosts.iter_mut().flat_map(|host| &mut host.stalls) {
        (stall.every_s, stall.span_ms) = (every_s, span_ms);
        stall.during = StallDuring::Always;
    }
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    Model::new(spec, Setup { format, host, time_lapse, seed: 1 }).unwrap()
}

fn load(workload: &Workload) -> Load<'_> {
    Load {
        step: "test/load",
        workload,
        threads: 2,
        queue_per_thread: 4,
        ramp_s: 1.0,
        duration_s: 7.0,
        interval_s: 2.0,
        rate: None,
        replay: None,
        seed: 1,
    }
}

fn run(model: &mut Model, load: &Load<'_>) -> Vec<Interval> {
    model.load(load, &mut StopAfter(usize::MAX)).unwrap().intervals
}

fn requests(interval: &Interval) -> u64 {
    interval.read.count() + interval.write.count()
}

#[test]
fn a_target_says_that_its_model_is_unvalidated_and_is_silent_on_any_other() {
    let target = |name: &str| {
        let spec = ssd::catalogue::find(name).unwrap();
        let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
        Model::new(spec, Setup { format, host, time_lapse: 64, seed: 1 }).unwrap().target()
    };
    let (known, guessed) = (target("iodrive-duo"), target("nytro-wlp4-200"));
    assert!(!known.unvalidated && guessed.unvalidated);
    assert_eq!(guessed.heading(), format!("{}, unvalidated model", guessed.title));
    let key = |target: &Target| serde_json::to_string(target).unwrap().contains("unvalidated");
    assert!(key(&guessed) && !key(&known), "files of validated drives are as they were");
}

#[test]
fn the_last_partial_interval_is_dropped() {
    let intervals = run(&mut model(64), &load(&workload("4k-rand-read")));
    let ends: Vec<f64> = intervals.iter().map(|interval| interval.at_s).collect();
    assert_eq!(ends, [2.0, 4.0, 6.0]);
}

/// Kinds of warnings, and power and heat, of a minute of large writes in `surroundings`.
fn written_in(surroundings: &ssd::Surroundings) -> (Vec<WarningKind>, results::Climate) {
    let spec = ssd::catalogue::find("iodrive-duo").unwrap();
    let spec = spec.surrounded_by(surroundings).unwrap();
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    let mut model = Model::new(spec, Setup { format, host, time_lapse: 64, seed: 1 }).unwrap();
    let workload = workload("128k-seq-write");
    let load = Load { duration_s: 60.0, interval_s: 10.0, queue_per_thread: 16, ..load(&workload) };
    let loaded = model.load(&load, &mut StopAfter(usize::MAX)).unwrap();
    let climate = results::Summary::of(&loaded.intervals).climate.unwrap();
    (loaded.warnings.iter().map(|warning| warning.kind).collect(), climate)
}

#[test]
fn a_drive_that_throttled_its_writes_is_warned_of() {
    let (warned, climate) = written_in(&ssd::Surroundings::default());
    assert_eq!(warned, []);
    assert_eq!(
        (climate.thermal_throttled_share, climate.power_throttled_share),
        (Some(0.0), Some(0.0))
    );
    let slot = Some(ssd::SlotPower::Watts(20));
    let (warned, climate) = written_in(&ssd::Surroundings { slot, ..Default::default() });
    assert_eq!(warned, [WarningKind::Throttled]);
    assert!((19.0..21.0).contains(&climate.power_w.unwrap()), "{climate:?}");
}

#[test]
fn a_drive_that_switched_itself_off_ends_the_load_and_says_why() {
    let oven =
        ssd::Surroundings { ambient_c: Some(70), airflow_lfm: Some(0), ..Default::default() };
    let spec = ssd::catalogue::find("iodrive-duo").unwrap().surrounded_by(&oven).unwrap();
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    let mut model = Model::new(spec, Setup { format, host, time_lapse: 64, seed: 1 }).unwrap();
    let workload = workload("4k-rand-read");
    let ended = model.load(&load(&workload), &mut StopAfter(usize::MAX)).unwrap_err();
    let said = std::error::Error::source(&ended).expect("it has a cause").to_string();
    assert!(said.contains("the drive was too hot and had switched itself off"), "{said}");
}

#[test]
fn time_lapse_shortens_the_drives_own_time_and_no_protocol_time() {
    let intervals = run(&mut model(64), &load(&workload("4k-rand-read")));
    assert!(intervals.iter().all(|interval| (interval.span_s - 2.0 / 64.0).abs() < 1e-9));
}

#[test]
fn a_time_lapse_that_divides_nothing_adds_up_to_no_drift() {
    let workload = workload("4k-rand-read");
    let timetable = Timetable::new(&load(&workload), Nanos(5), 7);
    assert_eq!(timetable.interval_end(6) - timetable.counted_from, Nanos::from_secs(2));
}

#[test]
fn iops_times_mean_latency_is_what_was_outstanding() {
    let workload = workload("8k-70-30");
    let intervals = run(&mut model(64), &load(&workload));
    let deviation = results::Summary::of(&intervals).littles_law_deviation(8.0).unwrap();
    assert!(deviation.abs() < 0.01, "{deviation}");
}

#[test]
fn a_request_that_stands_still_at_the_end_is_known_not_to_be_counted() {
    // From 4 s of the protocol on, and for longer than it lasts.
    let mut model = stalling(64, (8.0, 6400.0));
    let workload = workload("4k-rand-read");
    let load = Load { threads: 1, queue_per_thread: 1, ramp_s: 0.0, ..load(&workload) };
    let loaded = model.load(&load, &mut StopAfter(usize::MAX)).unwrap();
    let deviation = results::Summary::of(&loaded.intervals).littles_law_deviation(1.0).unwrap();
    assert!(deviation < -0.3, "a third of the span has no request that completed: {deviation}");
    assert!((deviation + loaded.unfinished).abs() < 0.01, "{deviation}, {}", loaded.unfinished);
}

#[test]
fn after_a_fill_every_read_comes_from_the_flash() {
    let mut model = model(64);
    let (reads, writes) = (workload("4k-rand-read"), workload("128k-seq-write"));
    let fastest_ns = |model: &mut Model| {
        let summary = results::Summary::of(&run(model, &load(&reads)));
        summary.read.latency_ns_min
    };
    let t_read_ns = 50_000;
    assert!(fastest_ns(&mut model) < t_read_ns);
    model
        .fill(&Fill { step: "test/fill", workload: &writes, passes: 1 }, &mut StopAfter(usize::MAX))
        .unwrap();
    assert!(fastest_ns(&mut model) > t_read_ns);
    let bytes = model.drive.user_sectors() * blockio::SECTOR_BYTES;
    assert_eq!(model.drive.counters().host_sent_bytes, bytes / 131_072 * 131_072);
}

#[test]
fn the_same_seed_gives_the_same_figures_and_another_seed_others() {
    let workload = workload("file-server");
    let bytes = |seed| {
        let load = Load { seed, ..load(&workload) };
        let intervals = run(&mut model(64), &load);
        intervals.iter().map(|it| (it.read_bytes, it.write_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn bytes_follow_the_sizes_and_the_mix_of_the_workload() {
    let intervals = run(&mut model(64), &load(&workload("8k-70-30")));
    let reads: u64 = intervals.iter().map(|interval| interval.read.count()).sum();
    let all: u64 = intervals.iter().map(requests).sum();
    let read_bytes: u64 = intervals.iter().map(|interval| interval.read_bytes).sum();
    assert_eq!(read_bytes, reads * 8192);
    assert!((reads as f64 / all as f64 - 0.7).abs() < 0.03, "{reads} of {all}");
}

#[test]
fn a_stop_keeps_the_intervals_that_were_measured() {
    let workload = workload("4k-rand-read");
    let loaded = model(64).load(&load(&workload), &mut StopAfter(2)).unwrap();
    assert_eq!(loaded.intervals.len(), 2);
}

#[test]
fn a_second_load_begins_when_the_first_has_drained() {
    let mut model = model(64);
    let workload = workload("4k-rand-write");
    let first = run(&mut model, &load(&workload));
    let drained_at = model.now;
    assert!(drained_at >= Nanos::from_secs_f64(8.0 / 64.0));
    let second = run(&mut model, &load(&workload));
    assert!(model.now > drained_at);
    assert_eq!(first.len(), second.len());
}

#[test]
fn a_drive_too_small_for_the_load_is_refused_with_a_remedy() {
    let workload = Workload { footprint_percent: 1e-7, ..workload("4k-rand-read") };
    let refused = model(64).load(&load(&workload), &mut StopAfter(9)).unwrap_err();
    assert_eq!(refused.kind(), Kind::Input);
    assert!(!refused.remedy().is_empty());
}

/// A load of single requests that come at `iops` for a while.
fn single(workload: &Workload, rate: Rate) -> Load<'_> {
    Load {
        threads: 1,
        queue_per_thread: 1,
        duration_s: 640.0,
        interval_s: 64.0,
        rate: Some(rate),
        ..load(workload)
    }
}

#[test]
fn responses_at_random_follow_pollaczek_and_khinchine() {
    // One server, arrivals at random: the mean wait is iops * E[S²] / (2 * (1 - load)).
    let workload = workload("4k-rand-read");
    let rate = Rate { iops: 30_000.0, gaps: Gaps::Exponential };
    let loaded = model(64).load(&single(&workload, rate), &mut StopAfter(usize::MAX)).unwrap();
    let service = results::Summary::of(&loaded.intervals).latency;
    let (mean_s, stdev_s) = (service.latency_ns_avg / 1e9, service.latency_ns_stdev / 1e9);
    let utilisation = rate.iops * mean_s;
    assert!((0.2..0.9).contains(&utilisation), "{utilisation}");
    let wait_s = rate.iops * (mean_s * mean_s + stdev_s * stdev_s) / (2.0 * (1.0 - utilisation));
    let response_s = loaded.responses.unwrap().summary().latency_ns_avg / 1e9;
    let found_s = response_s - mean_s;
    assert!((found_s / wait_s - 1.0).abs() < 0.05, "waited {found_s} s, not {wait_s} s");
}

#[test]
fn even_requests_below_saturation_never_wait_and_come_at_their_rate() {
    let workload = workload("4k-rand-read");
    let rate = Rate { iops: 2_000.0, gaps: Gaps::Constant };
    let loaded = model(64).load(&single(&workload, rate), &mut StopAfter(usize::MAX)).unwrap();
    let summary = results::Summary::of(&loaded.intervals);
    assert!((summary.iops / rate.iops - 1.0).abs() < 0.001, "{}", summary.iops);
    let responses = loaded.responses.unwrap().summary();
    assert!((responses.latency_ns_avg / summary.latency.latency_ns_avg - 1.0).abs() < 1e-6);
}

#[test]
fn requests_at_a_rate_go_to_threads_in_turn_however_deep_their_queues_are() {
    let workload = workload("4k-rand-read");
    let rate = Rate { iops: 60_000.0, gaps: Gaps::Constant };
    let of = |queue_per_thread| {
        let load = Load { threads: 8, queue_per_thread, ..single(&workload, rate) };
        let loaded = model(64).load(&load, &mut StopAfter(usize::MAX)).unwrap();
        results::Summary::of(&loaded.intervals).latency.latency_ns_avg
    };
    let (one, deep) = (of(1), of(32));
    assert!((deep / one - 1.0).abs() < 0.01, "{deep} ns with deep queues, {one} ns without");
}

#[test]
fn more_than_a_drive_can_do_waits_at_the_host() {
    let workload = workload("4k-rand-read");
    let rate = Rate { iops: 1e6, gaps: Gaps::Constant };
    let mut closed = single(&workload, rate);
    closed.rate = None;
    let most = results::Summary::of(&run(&mut model(64), &closed)).iops;
    let loaded = model(64).load(&single(&workload, rate), &mut StopAfter(usize::MAX)).unwrap();
    let summary = results::Summary::of(&loaded.intervals);
    assert!((summary.iops / most - 1.0).abs() < 0.01, "{} of {most}", summary.iops);
    assert!(loaded.responses.unwrap().summary().latency_ns_avg > 1e9);
}
