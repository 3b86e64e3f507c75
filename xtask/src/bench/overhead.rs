//! What the lab costs on a fast target: the IOPS of `floatgate run` beside those of the same fio
//! job run by hand, in pairs.
//!
//! Both halves of a pair see the same machine; which one is first changes with each pair. By hand
//! means without the logs that the lab asks fio for: they are part of what it costs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use lab::driver::fio::{Fio, Request};
use lab::results::Summary;
use lab::{Driver as _, Load};
use serde::Serialize;

use super::case::{Alone, workload};

/// Name of the case.
pub(super) const NAME: &str = "fio-overhead";
/// Pairs that are measured, of which the median counts.
const PAIRS: usize = 7;
/// Length of each half, in seconds.
const LOAD_S: f64 = 5.0;
/// What is read from: memory, where it is, is faster than any drive.
pub(super) const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];
const SIZE_BYTES: u64 = 256 << 20;
/// The ratio that the lab must reach.
const RATIO_MIN: f64 = 0.98;

/// What the pairs came to.
#[derive(Debug, Serialize)]
pub(super) struct Overhead {
    case: &'static str,
    /// Where the target lay.
    folder: &'static str,
    /// IOPS by hand, of each pair.
    by_hand: Vec<f64>,
    /// IOPS through the lab, of each pair.
    through_lab: Vec<f64>,
    /// Median of the ratios of the pairs.
    ratio: f64,
}

impl Overhead {
    /// The line of a table.
    pub(super) fn shown(&self) -> String {
        let verdict = if self.ratio >= RATIO_MIN { "within" } else { "not within" };
        format!(
            "{NAME:<20} {:.1} % of the IOPS by hand, {verdict} 2 % (median of {PAIRS} pairs, {} in \
             {}, by hand {:.0} IOPS)",
            self.ratio * 100.0,
            "T2Q8 4k-rand-read",
            self.folder,
            median(self.by_hand.clone()),
        )
    }
}

/// Measures the pairs.
///
/// # Errors
/// When fio is missing or failed.
pub(super) fn measure() -> Result<Overhead> {
    let folder = FOLDERS.into_iter().find(|folder| Path::new(folder).is_dir());
    let folder = folder.context("no folder for the target")?;
    let place = PathBuf::from(folder).join(format!("floatgate-{}", std::process::id()));
    fs::create_dir_all(&place)?;
    let measured = pairs(folder, &place);
    fs::remove_dir_all(&place)?;
    measured
}

fn pairs(folder: &'static str, place: &Path) -> Result<Overhead> {
    let request = Request {
        size: Some(lab::Bytes(SIZE_BYTES)),
        destroy: true,
        ..Request::new(place.join("disk.img"), place.join("raw"))
    };
    let mut fio = Fio::open(&request)?;
    through_lab(&mut fio)?;
    let (mut by_hand, mut through) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        if pair % 2 == 0 {
            by_hand.push(alone(&request.raw)?);
            through.push(through_lab(&mut fio)?);
        } else {
            through.push(through_lab(&mut fio)?);
            by_hand.push(alone(&request.raw)?);
        }
    }
    let ratios = through.iter().zip(&by_hand).map(|(ours, theirs)| ours / theirs);
    let ratio = median(ratios.collect());
    Ok(Overhead { case: NAME, folder, by_hand, through_lab: through, ratio })
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

/// The same job by hand, without logs.
fn alone(raw: &Path) -> Result<f64> {
    let folder = raw.join("step");
    let job = fs::read_to_string(folder.join("job.fio")).context("reading the job file")?;
    let logs = ["write_", "log_", "disable_slat"];
    let plain: Vec<&str> =
        job.lines().filter(|line| !logs.iter().any(|log| line.starts_with(log))).collect();
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
    fn the_median_of_pairs_is_the_middle_one() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }
}
