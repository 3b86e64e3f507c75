//! Traces for fio: what it cannot replay, and the iologs of its jobs.

use std::io::{BufRead as _, BufReader};

use blockio::Nanos;
use lab::target::hosts::Hosts;
use lab::{Gaps, Rate};
use workload::trace::{self, Addresses, Trace};
use workload::{Workload, catalogue};

use super::*;

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

/// The first requests that each of `threads` jobs is given to replay `replay`.
fn given(replay: &Replay<'_>, threads: u16) -> Vec<Vec<IologRequest>> {
    let workload = reads();
    let load = Load { replay: Some(*replay), ..load(&workload, threads) };
    (0..threads).map(|job| requests(&load, replay, place(), job).take(6).collect()).collect()
}

/// Text and remedy with which a replay is refused.
fn refused(
    speed: Option<f64>,
    place: JobTarget<'_>,
    version: Version,
    engine: Engine,
) -> (String, String) {
    let trace = timed([0, 1000], 4096);
    let workload = reads();
    let load = Load { replay: Some(replay(&trace, speed)), ..load(&workload, 1) };
    let error = check(&load, place, version, engine).unwrap_err();
    assert_eq!(error.kind(), Kind::Input);
    (error.to_string(), error.remedy().to_owned())
}

#[test]
fn targets_on_which_fio_replays_no_trace_are_refused_with_what_to_do() {
    let hosts = Hosts::parse("a,b").unwrap();
    let fleet = JobTarget { hosts: Some(&hosts), ..place() };
    let (text, remedy) = refused(None, fleet, NEW, DIRECT);
    assert_eq!(text, "fio cannot replay a trace on a, b: iologs stay on this machine");
    assert_eq!(remedy, "replay it on each host by itself");

    let devices = ["/dev/nvme0n1".into(), "/dev/nvme1n1".into()];
    let (text, remedy) = refused(None, JobTarget { group: &devices, ..place() }, NEW, DIRECT);
    assert!(text.contains("on several devices at once"), "{text}");
    assert_eq!(remedy, "replay it on each device by itself");

    let (text, remedy) = refused(None, place(), NEW, Engine::NBD);
    assert!(text.contains("on an NBD server: iologs name files"), "{text}");
    assert_eq!(remedy, "take a file, a block device or a model");
}

#[test]
fn an_old_fio_is_refused_only_where_times_are_kept() {
    let old = Version { major: 3, minor: 30 };
    let (text, remedy) = refused(Some(1.0), place(), old, DIRECT);
    assert_eq!(text, "fio 3.30 cannot replay a trace at its times");
    assert_eq!(remedy, "install fio 3.31 or later, or replay it without a speed or a rate");
    let (trace, workload) = (timed([0, 1000], 4096), reads());
    let of = |speed| Load { replay: Some(replay(&trace, speed)), ..load(&workload, 1) };
    check(&of(None), place(), old, DIRECT).unwrap();
    check(&of(Some(2.0)), place(), TIMED, DIRECT).unwrap();
    let rated = Load { rate: Some(RATE), ..of(None) };
    check(&rated, place(), old, DIRECT).expect_err("a rate has times too");
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
    assert!(text.lines().any(|it| it == "read_iolog_chunked=1"), "it has no end: {text}");
    assert!(!text.contains("\nthread"), "threads disturb each other: {text}");
    assert!(!text.lines().any(|it| it.starts_with("rw=") || it.starts_with("bs=")), "{text}");
}

#[test]
fn jobs_share_a_trace_in_turn_and_repeat_it() {
    let trace = timed((0..5).map(|nth| nth * 1000), 4096);
    let all = given(&replay(&trace, Some(1.0)), 2);
    let lbas = |of: &[IologRequest]| of.iter().map(|it| it.2 / 8).collect::<Vec<_>>();
    assert_eq!(lbas(&all[0]), [0, 2, 4, 1, 3, 0]);
    assert_eq!(lbas(&all[1]), [1, 3, 0, 2, 4, 1]);
}

#[test]
fn a_speed_is_worked_into_the_time_stamps() {
    let trace = timed([0, 1000, 2000], 4096);
    let second = |speed| given(&replay(&trace, speed), 1)[0][1].0;
    assert_eq!(second(Some(1.0)), Nanos::from_micros(1000));
    assert_eq!(second(Some(4.0)), Nanos::from_micros(250));
    assert_eq!(second(Some(0.5)), Nanos::from_micros(2000));
    assert_eq!(second(None), Nanos::ZERO, "without a speed there are no pauses");
}

/// One request a second.
const RATE: Rate = Rate { iops: 1.0, gaps: Gaps::Constant };

#[test]
fn with_times_there_is_a_job_for_each_request_that_may_be_outstanding() {
    let (trace, workload) = (timed([0, 1000], 4096), reads());
    let of = |speed, rate| {
        let replay = Some(replay(&trace, speed));
        let load = Load { rate, replay, ..load(&workload, 3) };
        let (load, warning) = feasible(&load, place(), (NEW, DIRECT))?;
        assert_eq!(warning, None);
        Ok::<_, Error>((load.threads, load.queue_per_thread))
    };
    assert_eq!(of(None, None).unwrap(), (3, 4));
    assert_eq!(of(Some(1.0), None).unwrap(), (12, 1));
    assert_eq!(of(None, Some(RATE)).unwrap(), (12, 1));
    let drawn = Load { rate: Some(RATE), ..load(&workload, 3) };
    let (drawn, _) = feasible(&drawn, place(), (NEW, DIRECT)).unwrap();
    assert_eq!(drawn.threads, 3, "fio takes completions while it keeps rates of its own");

    let replay = Some(replay(&trace, Some(1.0)));
    let many = Load { replay, queue_per_thread: 256, ..load(&workload, 5) };
    let error = feasible(&many, place(), (NEW, DIRECT)).unwrap_err();
    assert!(error.to_string().contains("1280 outstanding requests, at most 1024"), "{error}");
    assert!(error.remedy().contains("lower the number of threads"), "{}", error.remedy());
}

#[test]
fn a_made_up_trace_is_drawn_instead_where_it_cannot_be_replayed_and_a_recorded_one_is_not() {
    let workload = catalogue::find_workload("mail-server").unwrap();
    let shape = workload.trace.clone().unwrap();
    let shape = workload::TraceShape { requests: 10, ..shape };
    let recorded = timed([0, 1000], 4096);
    let made_up = trace::synthesise(&workload, &shape, 1).unwrap();
    let devices = ["/dev/nvme0n1".into(), "/dev/nvme1n1".into()];
    let group = JobTarget { group: &devices, ..place() };
    let of = |trace, speed, place, engine| {
        let load = Load { replay: Some(replay(trace, speed)), ..load(&workload, 1) };
        feasible(&load, place, (NEW, engine))
            .map(|(load, warning)| (load.replay.is_some(), warning))
    };
    assert_eq!(of(&made_up, None, place(), DIRECT).unwrap(), (true, None));
    for (place, engine) in [(group, DIRECT), (place(), Engine::NBD)] {
        let (replays, warning) = of(&made_up, None, place, engine).unwrap();
        assert!(!replays);
        let text = warning.expect("it is told").text;
        assert!(
            text.contains("the requests of mail-server were generated independently from its mix"),
            "{text}"
        );
        of(&made_up, Some(1.0), place, engine).expect_err("its times would be lost");
        of(&recorded, None, place, engine).expect_err("it is the trace to measure");
    }
}

/// Starts to send the iologs of two jobs in `folder`, of which the first is read up to its fifth
/// line by `read`.
fn sent(folder: &Path, read: impl FnOnce(UnixStream) -> Vec<String>) -> Vec<String> {
    let (trace, workload) = (timed([0, 1000], 4096), reads());
    let replay = replay(&trace, Some(1.0));
    let load = Load { replay: Some(replay), ..load(&workload, 2) };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let at = (place(), "/d");
        let iologs = Iologs::begin(folder, (&load, &replay), at, (scope, &over)).unwrap();
        let lines = read(UnixStream::connect(&iologs.sockets[0]).unwrap());
        drop(iologs);
        lines
    })
}

#[test]
fn a_job_is_sent_its_iolog_until_it_hangs_up_and_no_thread_waits_for_one_that_never_came() {
    let folder = tempfile::tempdir().unwrap();
    // Longer than the path of a socket may be.
    let long = folder.path().join("x".repeat(120));
    fs::create_dir(&long).unwrap();
    let lines = sent(&long, |stream| {
        let lines = BufReader::new(stream).lines().take(6);
        lines.map(|line| line.unwrap()).collect()
    });
    // The threads have ended, or the scope would not have.
    let expected = [
        "fio version 3 iolog",
        "0 /d add",
        "0 /d open",
        "0 /d read 0 4096",
        "2000 /d read 0 4096",
        "4000 /d read 0 4096",
    ];
    assert_eq!(lines, expected);
    assert_eq!(fs::read_dir(&long).unwrap().count(), 0, "no socket is left behind");
}

#[test]
fn a_folder_that_takes_no_iolog_is_named() {
    let (trace, workload) = (timed([0, 1000], 4096), reads());
    let replay = replay(&trace, Some(1.0));
    let (load, folder) = (load(&workload, 1), Path::new("/nowhere/at/all"));
    let over = AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        let at = (place(), "/d");
        Iologs::begin(folder, (&load, &replay), at, (scope, &over)).unwrap_err()
    });
    assert_eq!(error.to_string(), "listening for fio in /nowhere/at/all");
    assert_eq!(error.kind(), Kind::Io);
}
