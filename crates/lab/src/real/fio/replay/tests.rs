//! Traces for fio: what it cannot replay, and the iologs of its jobs.

use blockio::Nanos;
use workload::trace::{self, Addresses, Trace};
use workload::{Workload, catalogue};

use super::*;
use crate::real::hosts::Hosts;

const DIRECT: Engine = Engine { name: "io_uring", direct: true };
const NEW: Version = Version { major: 3, minor: 42 };

/// A trace of reads of `bytes` each, one after the other, at these times in microseconds.
fn timed(at_us: impl IntoIterator<Item = u64>, bytes: u64) -> Trace {
    let line = |(us, nth): (u64, u64)| format!("{us} /d read {} {bytes}\n", nth * bytes);
    let lines: String = at_us.into_iter().zip(0..).map(line).collect();
    trace::read(format!("fio version 3 iolog\n0 /d add\n{lines}").as_bytes(), "mine").unwrap()
}

fn replay(trace: &Trace, speed: Option<f64>) -> Replay<'_> {
    Replay { trace, addresses: Addresses::Wrapped, speed }
}

fn place() -> JobTarget<'static> {
    JobTarget {
        hosts: None,
        group: &[],
        path: Path::new("/dev/nvme0n1"),
        capacity_bytes: 1 << 30,
        sector_bytes: 512,
    }
}

fn load(workload: &Workload, threads: u16) -> Load<'_> {
    Load {
        step: "trace/replay",
        workload,
        threads,
        queue_per_thread: 4,
        ramp_s: 1.0,
        duration_s: 8.0,
        interval_s: 1.0,
        rate: None,
        replay: None,
        seed: 1,
    }
}

fn reads() -> Workload {
    catalogue::find_workload("4k-rand-read").unwrap()
}

/// The iologs that each of `threads` jobs is given to replay `replay`.
fn iologs(replay: &Replay<'_>, threads: u16) -> Vec<Trace> {
    let (folder, workload) = (tempfile::tempdir().unwrap(), reads());
    write_iologs(folder.path(), &load(&workload, threads), replay, (place(), "/d")).unwrap();
    let read = |job| {
        let text = fs::read(folder.path().join(iolog_name(job))).unwrap();
        trace::read(text.as_slice(), "iolog").unwrap()
    };
    (1..=threads).map(read).collect()
}

/// Text and remedy with which a replay is refused.
fn refused(
    speed: Option<f64>,
    place: JobTarget<'_>,
    (version, engine): (Version, Engine),
) -> (String, String) {
    let trace = timed([0, 1000], 4096);
    let error = check(&replay(&trace, speed), place, version, engine).unwrap_err();
    assert_eq!(error.kind(), Kind::Input);
    (error.to_string(), error.remedy().to_owned())
}

#[test]
fn targets_on_which_fio_replays_no_trace_are_refused_with_what_to_do() {
    let hosts = Hosts::parse("a,b").unwrap();
    let fleet = JobTarget { hosts: Some(&hosts), ..place() };
    let (text, remedy) = refused(None, fleet, (NEW, DIRECT));
    assert_eq!(text, "fio cannot replay a trace on a, b: iologs stay on this machine");
    assert_eq!(remedy, "replay it on each host by itself");

    let devices = ["/dev/nvme0n1".into(), "/dev/nvme1n1".into()];
    let (text, remedy) = refused(None, JobTarget { group: &devices, ..place() }, (NEW, DIRECT));
    assert!(text.contains("on several devices at once"), "{text}");
    assert_eq!(remedy, "replay it on each device by itself");

    let (text, remedy) = refused(None, place(), (NEW, Engine::NBD));
    assert!(text.contains("on an NBD server: iologs name files"), "{text}");
    assert_eq!(remedy, "take a file, a block device or a model");
}

#[test]
fn an_old_fio_is_refused_only_where_times_are_kept() {
    let old = Version { major: 3, minor: 30 };
    let (text, remedy) = refused(Some(1.0), place(), (old, DIRECT));
    assert_eq!(text, "fio 3.30 cannot replay a trace at its times");
    assert_eq!(remedy, "install fio 3.31 or later, or replay it without --speed");
    let trace = timed([0, 1000], 4096);
    check(&replay(&trace, None), place(), old, DIRECT).unwrap();
    check(&replay(&trace, Some(2.0)), place(), TIMED, DIRECT).unwrap();
}

#[test]
fn a_request_that_a_drive_of_larger_sectors_cannot_take_is_named() {
    let (trace, workload) = (timed([0, 1000], 512), reads());
    let load = load(&workload, 1);
    let logging = Logging::of(&load, 1).unwrap();
    let text = |engine, sector_bytes| {
        let place = JobTarget { sector_bytes, ..place() };
        of_replay(&load, &replay(&trace, None), place, engine, logging)
    };
    let error = text(DIRECT, 4096).unwrap_err();
    assert_eq!(
        error.to_string(),
        "trace mine has a request of 512 bytes at byte 0, /dev/nvme0n1 takes multiples of 4096"
    );
    assert_eq!(error.remedy(), "format the drive to sectors of 512 bytes");
    text(DIRECT, 512).unwrap();
    text(Engine { direct: false, ..DIRECT }, 4096).expect("the page cache takes any size");
}

#[test]
fn a_job_file_names_the_iolog_of_each_job_and_asks_for_processes() {
    let (trace, workload) = (timed([0, 1000], 4096), reads());
    let load = load(&workload, 3);
    let logging = Logging::of(&load, 1).unwrap();
    let text = of_replay(&load, &replay(&trace, None), place(), DIRECT, logging).unwrap();
    let line = "read_iolog=trace.1.iolog:trace.2.iolog:trace.3.iolog";
    assert!(text.lines().any(|it| it == line), "{text}");
    assert!(text.lines().any(|it| it == "iodepth=4"), "{text}");
    assert!(!text.contains("\nthread"), "threads disturb each other: {text}");
    assert!(!text.lines().any(|it| it.starts_with("rw=") || it.starts_with("bs=")), "{text}");
}

#[test]
fn jobs_share_a_trace_in_turn_and_repeat_it() {
    let trace = timed((0..5).map(|nth| nth * 1000), 4096);
    let logs = iologs(&replay(&trace, Some(1.0)), 2);
    let lbas = |log: &Trace| log.requests().iter().map(|it| it.lba / 8).take(6).collect::<Vec<_>>();
    assert_eq!(lbas(&logs[0]), [0, 2, 4, 1, 3, 0]);
    assert_eq!(lbas(&logs[1]), [1, 3, 0, 2, 4, 1]);
}

#[test]
fn a_speed_is_worked_into_the_time_stamps() {
    let trace = timed([0, 1000, 2000], 4096);
    let gap = |speed| {
        let logs = iologs(&replay(&trace, Some(speed)), 1);
        logs[0].requests()[1].at
    };
    assert_eq!(gap(1.0), Nanos::from_micros(1000));
    assert_eq!(gap(4.0), Nanos::from_micros(250));
    assert_eq!(gap(0.5), Nanos::from_micros(2000));
    let untimed = iologs(&replay(&trace, None), 1);
    assert_eq!(untimed[0].span(), Nanos::ZERO, "without a speed there are no pauses");
}

/// Length of the load and of what follows it, in seconds.
const LENGTH_S: f64 = 1.0 + 8.0 + 0.5;

#[test]
fn every_job_has_requests_until_the_load_is_over_though_the_trace_is_a_burst() {
    // A thousand requests at once, then one a minute later: the mean of 17 a second is long past
    // when the burst is over.
    let trace = timed((0..1000).chain([60_000_000]), 4096);
    for threads in [1, 4] {
        for log in iologs(&replay(&trace, Some(1.0)), threads) {
            let last_s = log.span().as_secs_f64();
            assert!(last_s >= LENGTH_S, "{threads} jobs, one ends after {last_s} s");
            assert!(log.requests().len() <= 1001);
        }
    }
}

#[test]
fn a_slow_trace_still_has_a_request_for_each_job() {
    let trace = timed([0, 3_600_000_000], 4096);
    let logs = iologs(&replay(&trace, Some(1.0)), 8);
    assert!(logs.iter().all(|log| !log.requests().is_empty()));
}

#[test]
fn an_iolog_is_as_long_as_the_load_and_never_beyond_reason() {
    let (workload, trace) = (reads(), timed([0, 1000, 2000], 4096));
    let of = |load: &Load<'_>, speed| length(load, &replay(&trace, speed));
    let short = load(&workload, 1);
    // One request a millisecond for 9.5 s, and one of the job behind it.
    assert_eq!(of(&short, Some(1.0)), 9501);
    assert_eq!(of(&short, Some(2.0)), 19_001);
    assert_eq!(of(&short, None), 2_375_000, "250,000 a second");
    let long = Load { duration_s: 1e6, ..short };
    assert_eq!(of(&long, None), REQUESTS_MAX);
    assert_eq!(of(&long, Some(1e3)), REQUESTS_MAX);
}

#[test]
fn a_folder_that_takes_no_iolog_is_named() {
    let (trace, workload) = (timed([0, 1000], 4096), reads());
    let (load, folder) = (load(&workload, 1), Path::new("/nowhere/at/all"));
    let refused = write_iologs(folder, &load, &replay(&trace, Some(1.0)), (place(), "/d"));
    let error = refused.unwrap_err();
    assert_eq!(error.to_string(), "writing /nowhere/at/all/trace.1.iolog");
    assert_eq!(error.kind(), Kind::Io);
}
