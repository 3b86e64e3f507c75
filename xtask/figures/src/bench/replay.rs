//! Speed of replays: requests of a recorded database a second of processor time, on models.

use std::fs;

use anyhow::{Context, Result};
use lab::application::{ReplayHost, built_in};
use lab::driver::RecordedLoad;
use lab::driver::model::Model;
use lab::ssd::{Setup, catalogue};
use lab::{Driver as _, Fill};
use serde::Serialize;

use super::case::{Alone, workload};
use super::overhead::median;

/// Name of the case.
pub(super) const NAME: &str = "replay";
/// Application whose built-in recording is replayed, and its clients.
const RECORDED: (&str, u32) = ("sysbench-oltp", 32);
/// Drives on which it is.
const DRIVES: [&str; 2] = ["px600-2600", "p5800x"];
/// Time lapse of the drives: their state is far larger than the processor's caches all the same.
const TIME_LAPSE: u32 = 16;
/// Replays of each, of which the median counts.
const REPLAYS: usize = 15;
/// The rate that must be reached.
const RATE_MIN: f64 = 1e6;

/// Results of the benchmark.
#[derive(Debug, Serialize)]
pub(super) struct Replaying {
    case: &'static str,
    /// Requests of the recording.
    requests: u64,
    /// Results of each drive.
    drives: Vec<OnDrive>,
}

/// Results of one drive.
#[derive(Debug, Serialize)]
struct OnDrive {
    drive: &'static str,
    /// Requests a second of processor time, of each replay.
    requests_per_s: Vec<f64>,
}

impl Replaying {
    /// The lines of a table.
    pub(super) fn shown(&self) -> String {
        let line = |it: &OnDrive| {
            let rate = median(it.requests_per_s.clone());
            let verdict = if rate >= RATE_MIN { "at least" } else { "less than" };
            format!(
                "{NAME:<20} {:>11.2}M requests a second of processor time on {}, {verdict} a \
                 million (median of {REPLAYS} replays of {} requests of {} at {} clients)",
                rate / 1e6,
                it.drive,
                self.requests,
                RECORDED.0,
                RECORDED.1
            )
        };
        self.drives.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Measures the drives.
///
/// # Errors
/// Fails if a model refuses the recording.
pub(super) fn measure() -> Result<Replaying> {
    let (application, threads) = RECORDED;
    let recording = built_in(application, threads).context("finding the recording")?;
    let host = ReplayHost::default();
    let load = RecordedLoad { step: NAME, recording: &recording, host: &host, looped: None };
    let fill = workload("128k-seq-write")?;
    let mut requests = 0;
    let mut drives = Vec::new();
    for drive in DRIVES {
        let spec = catalogue::find(drive).context("finding the drive")?;
        let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
        let mut model = Model::new(spec, Setup { format, host, time_lapse: TIME_LAPSE, seed: 1 })?;
        model.fill(&Fill { step: NAME, workload: &fill, passes: 1 }, &mut Alone)?;
        let mut requests_per_s = Vec::new();
        for _ in 0..REPLAYS {
            let before_ns = processor_ns()?;
            requests = model.replay(&load, &mut Alone)?.replayed.requests;
            requests_per_s.push(requests as f64 * 1e9 / (processor_ns()? - before_ns) as f64);
        }
        drives.push(OnDrive { drive, requests_per_s });
    }
    Ok(Replaying { case: NAME, requests, drives })
}

/// Processor time that this thread has used, in nanoseconds.
fn processor_ns() -> Result<u64> {
    const PATH: &str = "/proc/thread-self/schedstat";
    let text = fs::read_to_string(PATH).with_context(|| format!("reading {PATH}"))?;
    let used = text.split_whitespace().next().context("a field")?;
    used.parse().with_context(|| format!("reading {PATH}"))
}
