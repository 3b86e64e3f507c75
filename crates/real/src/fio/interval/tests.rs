//! Merging logs, recorded and made up.

use std::path::Path;

use super::*;
use crate::fio::log;
use crate::fio::output::FioOutput;

const LOGGING: Logging = Logging { interval_ms: 1000, rows: 3, coarseness: 0 };

fn row(at_ms: u64, direction: DataDirection, counts: &[(u32, u64)]) -> HistogramRow {
    HistogramRow { at_ms, direction, counts: counts.to_vec() }
}

fn reads(times_ms: &[u64]) -> JobLog {
    let rows =
        times_ms.iter().map(|at_ms| row(*at_ms, DataDirection::Read, &[(200, 10)])).collect();
    JobLog { rows, largest: Vec::new() }
}

/// Totals of jobs that moved 4096 bytes a request.
fn totals(jobs: usize) -> Vec<output::JobTotals> {
    let direction = || output::DirectionTotals {
        io_bytes: 4096,
        total_ios: 1,
        iops: 1.0,
        runtime: 1000.0,
        lat_ns: output::Latency { mean: 1.0, ..output::Latency::default() },
        slat_ns: output::Latency::default(),
        clat_ns: output::Latency::default(),
    };
    let job = || output::JobTotals {
        jobname: String::new(),
        hostname: String::new(),
        error: 0,
        read: direction(),
        write: direction(),
        usr_cpu: 0.0,
        sys_cpu: 0.0,
        job_runtime: 0,
    };
    (0..jobs).map(|_| job()).collect()
}

fn counts(logs: &[JobLog]) -> Vec<u64> {
    let merged = merged(LOGGING, logs, &totals(logs.len()));
    merged.iter().map(|interval| interval.read.count()).collect()
}

#[test]
fn recorded_logs_of_two_jobs_give_the_intervals_of_both() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fio/tests/file-server");
    let output = FioOutput::read(&folder.join("output.json")).unwrap();
    let log = |job| JobLog {
        rows: log::rows(&folder, "", job).unwrap(),
        largest: log::largest(&folder, "", job).unwrap(),
    };
    let logging = Logging { interval_ms: 1000, rows: 2, coarseness: 2 };
    let intervals = merged(logging, &[log(1), log(2)], &output.jobs);
    assert_eq!(intervals.len(), 2, "the partial third one is dropped");
    assert_eq!(intervals[0].read.count(), 10_647 + 9_760);
    assert_eq!(intervals[1].write.count(), 3525 + 3552);
    let most_ns = intervals[0].write.summary().latency_ns_max;
    assert_eq!(most_ns, 27_818_824, "exactly what the log of maxima says");
    let mean_bytes = intervals[0].read_bytes as f64 / intervals[0].read.count() as f64;
    assert!((mean_bytes / 11_349.0 - 1.0).abs() < 0.03, "{mean_bytes} of the mix's 11349");
}

#[test]
fn an_interval_that_one_job_did_not_finish_is_dropped() {
    assert_eq!(counts(&[reads(&[1001, 2001, 3001]), reads(&[1000, 2000])]), [20, 20]);
}

#[test]
fn more_intervals_than_wanted_are_dropped() {
    assert_eq!(counts(&[reads(&[1000, 2000, 3000, 4000])]), [10, 10, 10]);
}

#[test]
fn a_stall_over_several_intervals_shifts_none() {
    // Everything stood still from 1.2 s to 3.5 s: fio writes the two rows that are due then.
    assert_eq!(counts(&[reads(&[1001, 3500, 3501])]), [10, 10, 10]);
}

#[test]
fn a_direction_that_begins_late_is_counted_when_it_happened() {
    let mut log = reads(&[1000, 2000, 3000]);
    log.rows.push(row(2950, DataDirection::Write, &[(7, 1)]));
    let merged = merged(LOGGING, &[log], &totals(1));
    let writes: Vec<u64> = merged.iter().map(|interval| interval.write.count()).collect();
    assert_eq!(writes, [0, 0, 1]);
}

#[test]
fn a_job_that_logged_nothing_leaves_no_interval() {
    assert!(counts(&[reads(&[1000]), JobLog::default()]).is_empty());
    assert!(counts(&[]).is_empty());
}

#[test]
fn times_spans_and_bytes_follow_the_rows() {
    let merged = merged(LOGGING, &[reads(&[1000, 2000])], &totals(1));
    assert!((merged[1].at_s - 2.0).abs() < 1e-9 && (merged[1].span_s - 1.0).abs() < 1e-9);
    assert_eq!((merged[1].read_bytes, merged[1].write_bytes), (40_960, 0));
}

#[test]
fn a_maximum_from_a_window_with_other_borders_is_not_taken() {
    // Bin 200 holds 288 to 291 ns: its middle is 289.
    let with_largest = |latency_ns| {
        let largest = vec![Largest { at_ms: 1000, direction: DataDirection::Read, latency_ns }];
        let log = JobLog { largest, ..reads(&[1001]) };
        merged(LOGGING, &[log], &totals(1))[0].read.summary().latency_ns_max
    };
    assert_eq!(with_largest(291), 291);
    assert_eq!(with_largest(288), 288, "nothing is counted above the exact maximum");
    assert_eq!(with_largest(9000), 289);
}
