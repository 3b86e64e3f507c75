//! Tests of the model driver that hold for any drive model.

use workload::{Workload, catalogue};

use super::*;

/// Watches nothing, and stops after so many reports of progress.
struct StopAfter(usize);

impl Watch for StopAfter {
    fn progress(&mut self, _: f64, _: &str) {
        self.0 -= 1;
    }

    fn stop(&self) -> bool {
        self.0 == 0
    }
}

fn model(time_lapse: u32) -> Model {
    let spec = ssd::catalogue::find("iodrive-duo").unwrap();
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    Model::new(spec, Setup { format, host, time_lapse, seed: 1 }).unwrap()
}

fn workload(name: &str) -> Workload {
    catalogue::find_workload(name).unwrap()
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
fn the_last_partial_interval_is_dropped() {
    let intervals = run(&mut model(64), &load(&workload("4k-rand-read")));
    let ends: Vec<f64> = intervals.iter().map(|interval| interval.at_s).collect();
    assert_eq!(ends, [2.0, 4.0, 6.0]);
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
