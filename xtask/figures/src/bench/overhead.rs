//! Overhead of the lab on a fast target: the IOPS of `floatgate run` beside those of the same fio
//! job run by hand, and beside those of that job without the logs that the lab asks fio for.
//!
//! All three of a round see the same machine; which one is first changes with each round.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use lab::results::Summary;
use lab::target::access::Access;
use lab::target::address::Address;
use lab::{Driver as _, Load};
use real::fio::Fio;
use serde::Serialize;

use super::case::{Alone, workload};

/// Name of the case.
pub(super) const NAME: &str = "fio-overhead";
/// Rounds that are measured, of which the median counts.
const ROUNDS: usize = 7;
/// Length of each load, in seconds.
const LOAD_S: f64 = 5.0;
/// Folders for the target, the first that exists: memory is faster than any drive.
pub(super) const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];
const SIZE_BYTES: u64 = 256 << 20;
/// The ratio that the lab must reach.
const RATIO_MIN: f64 = 0.98;

/// Results of the benchmark.
#[derive(Debug, Serialize)]
pub(super) struct Overhead {
    case: &'static str,
    /// Folder that held the target.
    folder: &'static str,
    /// IOPS through the lab, of each round.
    through_lab: Vec<f64>,
    /// IOPS of the same job by hand.
    by_hand: Vec<f64>,
    /// IOPS of the same job by hand, but without logs.
    unlogged: Vec<f64>,
    /// Median over the rounds of the IOPS through the lab over those by hand.
    ratio: f64,
    /// Median over the rounds of the IOPS through the lab over those of the job without logs.
    ratio_unlogged: f64,
}

impl Overhead {
    /// The line of a table.
    pub(super) fn shown(&self) -> String {
        let verdict = if self.ratio >= RATIO_MIN { "within" } else { "not within" };
        format!(
            "{NAME:<20} {:.1} % of the IOPS by hand, {verdict} 2 %; {:.1} % of those without logs \
             (medians of {ROUNDS} rounds, T2Q8 4k-rand-read in {}, by hand {:.0} IOPS)",
            self.ratio * 100.0,
            self.ratio_unlogged * 100.0,
            self.folder,
            median(self.by_hand.clone()),
        )
    }
}

/// Measures the rounds.
///
/// # Errors
/// Fails if fio is missing or failed.
pub(super) fn measure() -> Result<Overhead> {
    let folder = FOLDERS.into_iter().find(|folder| Path::new(folder).is_dir());
    let folder = folder.context("no folder for the target")?;
    let place = PathBuf::from(folder).join(format!("floatgate-{}", std::process::id()));
    fs::create_dir_all(&place)?;
    let measured = rounds(folder, &place);
    fs::remove_dir_all(&place)?;
    measured
}

fn rounds(folder: &'static str, place: &Path) -> Result<Overhead> {
    let address = Address::Local(place.join("disk.img"));
    let (size, raw) = (Some(lab::Bytes(SIZE_BYTES)), place.join("raw"));
    let access = Access { size, raw, destroy: true, ..Access::default() };
    let mut fio = Fio::open(&address, &access)?;
    through_lab(&mut fio)?;
    // Through the lab, by hand, and by hand without logs.
    let mut iops = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        for turn in 0..iops.len() {
            let which = (round + turn) % iops.len();
            iops[which].push(match which {
                0 => through_lab(&mut fio)?,
                1 => by_hand(&access.raw, true)?,
                _ => by_hand(&access.raw, false)?,
            });
        }
    }
    let [through_lab, by_hand, unlogged] = iops;
    let reached = |of: &[f64]| {
        median(through_lab.iter().zip(of).map(|(ours, theirs)| ours / theirs).collect())
    };
    let (ratio, ratio_unlogged) = (reached(&by_hand), reached(&unlogged));
    Ok(Overhead { case: NAME, folder, through_lab, by_hand, unlogged, ratio, ratio_unlogged })
}

fn through_lab(fio: &mut Fio) -> Result<f64> {
    let load = Load {
        step: "step",
        workload: &workload("4k-rand-read")?,
        threads: 2,
        queue_per_thread: 8,
        ramp_s: 0.5,
        duration_s: LOAD_S,
        interval_s: 1.0,
        rate: None,
        replay: None,
        seed: 1,
    };
    Ok(Summary::of(&fio.load(&load, &mut Alone)?.intervals).iops)
}

/// Runs the job by hand, with or without its logs.
fn by_hand(raw: &Path, is_logged: bool) -> Result<f64> {
    let folder = raw.join("step");
    let job = fs::read_to_string(folder.join("job.fio")).context("reading the job file")?;
    let logs = ["write_", "log_", "disable_slat"];
    let is_kept = |line: &str| is_logged || !logs.iter().any(|log| line.starts_with(log));
    let plain: Vec<&str> = job.lines().filter(|line| is_kept(line)).collect();
    fs::write(folder.join("plain.fio"), plain.join("\n"))?;
    let arguments = ["--output-format=json", "--output=plain.json", "plain.fio"];
    let status = Command::new("fio").args(arguments).current_dir(&folder).status()?;
    if !status.success() {
        bail!("fio by hand failed: {status}");
    }
    let text = fs::read_to_string(folder.join("plain.json"))?;
    let output: serde_json::Value = serde_json::from_str(&text)?;
    let jobs = output["jobs"].as_array().context("a report without jobs")?;
    let iops = |job: &serde_json::Value| job["read"]["iops"].as_f64();
    jobs.iter().map(iops).sum::<Option<f64>>().context("a job without IOPS")
}

/// The middle one.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }
}
