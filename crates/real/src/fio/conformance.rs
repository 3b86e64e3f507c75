//! Requests that fio issues, for the tests that compare it with a model.

use std::path::Path;

use blockio::Op;
use lab::driver::SilentWatch;
use lab::target::access::Access;
use lab::target::address::Address;
use lab::{Driver as _, Load};
use serde_json::Value;
use tempfile::TempDir;
use workload::trace::{self, IologRequest, TraceRequest};

use super::engine::{Engine, Version};
use super::job::{self, JobTarget, Logging, OUTPUT_FILE, write_job};
use super::output::FioOutput;
use super::{Fio, process, replay};

/// True if fio cannot be used here; then says that a test is skipped.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub(crate) fn is_missing() -> bool {
    let missing = Version::usable().is_err();
    if missing {
        eprintln!("skipped: fio is not installed, or too old");
    }
    missing
}

fn place(capacity_bytes: u64) -> JobTarget<'static> {
    JobTarget {
        hosts: None,
        group: &[],
        path: Path::new("/null"),
        capacity_bytes,
        sector_bytes: 512,
    }
}

/// The first `count` requests of `load`, which has one job, by its own job file, on a target that
/// answers at once.
pub(crate) fn issued(load: &Load<'_>, capacity_bytes: u64, count: usize) -> Vec<TraceRequest> {
    let folder = TempDir::new().expect("a temporary folder");
    run(&folder, &text_of(load, capacity_bytes, count));
    logged(&folder)
}

/// Random arrivals of one direction, as fio drew them and as it carried them out.
pub(crate) struct Arrivals {
    pub(crate) op: Op,
    /// Submission times, in seconds since the job began.
    pub(crate) at_s: Vec<f64>,
    /// The gaps that fio drew, in seconds, in their order but for those below a microsecond, which
    /// come last: fio does not tell them.
    pub(crate) gaps_s: Vec<f64>,
}

/// The first `count` arrivals of `load` in each direction that it has, see [`issued`].
pub(crate) fn arrivals(load: &Load<'_>, capacity_bytes: u64, count: usize) -> Vec<Arrivals> {
    let folder = TempDir::new().expect("a temporary folder");
    write_job(folder.path(), &text_of(load, capacity_bytes, count)).expect("the folder takes it");
    let ended = process::dying_with_us("fio")
        .args(["--debug=rate", "--output=said", job::JOB_FILE])
        .current_dir(folder.path())
        .output()
        .expect("fio starts");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let said = std::fs::read_to_string(folder.path().join("said")).expect("fio says what it draws");
    let issued = logged(&folder);
    let of = |op: Op, direction: &str| {
        let all = issued.iter().filter(|it| it.op == op);
        let at_s: Vec<f64> = all.map(|it| it.at.as_secs_f64()).collect();
        let mut gaps_s: Vec<f64> = said.lines().filter_map(|it| gap_s(it, direction)).collect();
        gaps_s.resize(at_s.len().max(gaps_s.len()), 0.0);
        Arrivals { op, at_s, gaps_s }
    };
    let all = [of(Op::Read, "ddir=0"), of(Op::Write, "ddir=1")];
    all.into_iter().filter(|it| !it.at_s.is_empty()).collect()
}

/// The gap that a line of fio's debugging output tells: `poisson rate iops=3003, ddir=0`, the
/// inverse of whole microseconds.
fn gap_s(line: &str, direction: &str) -> Option<f64> {
    let (_, told) = line.split_once("poisson rate iops=")?;
    let (iops, of) = told.split_once(", ")?;
    if of != direction {
        return None;
    }
    Some(1.0 / iops.parse::<f64>().ok()?)
}

/// The job file of the first `count` requests of `load`, which logs them.
///
/// One at a time: a request that finds fio's null engine busy is logged a second time.
fn text_of(load: &Load<'_>, capacity_bytes: u64, count: usize) -> String {
    let text = text(&Load { queue_per_thread: 1, ..*load }, capacity_bytes);
    let text = text.replace("time_based=1\n", "");
    let (global, jobs) = text.rsplit_once("\n[T").expect("a section of jobs");
    format!("{global}\nwrite_iolog=issued.iolog\nnumber_ios={count}\nio_size=1t\n[T{jobs}")
}

/// Reads the requests that the job in `folder` logged.
fn logged(folder: &TempDir) -> Vec<TraceRequest> {
    let log = std::fs::read(folder.path().join("issued.iolog")).expect("fio logs");
    let trace = trace::read(log.as_slice(), "issued.iolog").expect("it is an iolog");
    assert_eq!(trace.skipped().broken, 0, "{:?}", trace.skipped());
    trace.requests().to_vec()
}

/// Requests a second that came of `load`, on a target that answers at once.
pub(crate) fn iops(load: &Load<'_>) -> f64 {
    run(&TempDir::new().expect("a temporary folder"), &text(load, 1 << 30)).iops()
}

fn text(load: &Load<'_>, capacity_bytes: u64) -> String {
    let engine = Engine { name: "null", direct: true };
    let logging = Logging::of(load, 1).expect("the load has an interval");
    let text = job::of_load(load, place(capacity_bytes), engine, logging).expect("fio can do it");
    // With data in each write there would be too few of them.
    text.replace("refill_buffers=1", "zero_buffers=1")
}

fn run(folder: &TempDir, text: &str) -> FioOutput {
    write_job(folder.path(), text).expect("the folder takes it");
    process::run(folder.path(), None, &mut SilentWatch, |_, _| true).expect("fio runs");
    FioOutput::read(&folder.path().join(OUTPUT_FILE)).expect("fio reports")
}

/// The first `count` requests that each job of `load` is given to replay.
pub(crate) fn replayed(
    load: &Load<'_>,
    capacity_bytes: u64,
    count: usize,
) -> Vec<Vec<IologRequest>> {
    let replay = load.replay.as_ref().expect("the load replays a trace");
    let of_job =
        |job| replay::requests(load, replay, place(capacity_bytes), job).take(count).collect();
    (0..load.threads).map(of_job).collect()
}

/// Queue depths at which `load` submitted its requests on a file: for each job the shares in
/// percent, by the lower end of each bucket of fio's report.
pub(crate) fn depths(load: &Load<'_>) -> Vec<Vec<(u16, f64)>> {
    let folder = TempDir::new().expect("a temporary folder");
    let (path, raw) = (folder.path().join("disk.img"), folder.path().join("raw"));
    let size = Some(blockio::Bytes(16 << 20));
    let access = Access { size, raw: raw.clone(), ..Access::default() };
    Fio::open(&Address::Local(path), &access)
        .expect("a file")
        .load(load, &mut SilentWatch)
        .expect("fio runs");
    let text = std::fs::read_to_string(raw.join(load.step).join(OUTPUT_FILE)).expect("a report");
    let report: Value = serde_json::from_str(&text[text.find('{').unwrap_or(0)..]).expect("JSON");
    let of_job = |job: &Value| {
        let levels = job["iodepth_level"].as_object().expect("it has depths");
        let level = |(depth, percent): (&String, &Value)| {
            let depth = depth.trim_start_matches(">=").parse().ok()?;
            Some((depth, percent.as_f64().filter(|percent| *percent > 0.0)?))
        };
        levels.iter().filter_map(level).collect()
    };
    report["jobs"].as_array().expect("it has jobs").iter().map(of_job).collect()
}
