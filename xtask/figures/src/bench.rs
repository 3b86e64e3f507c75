//! `cargo xtask bench`: how fast and how large the model is, through the lab's own driver.
//!
//! Other cases measure the speed of replays, the overhead of the lab over fio, and the cost of
//! recordings and of viewers to served drives.
//!
//! Every case runs in a process of its own, so that its peak memory is its own. Within it the drive
//! is prepared once and then loaded several times; the median of those counts.

mod case;
mod fleet;
pub(crate) mod nbd;
mod overhead;
mod recording;
mod replay;
mod viewers;

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use xtask::root;

/// Benchmark case of the model.
struct Case {
    name: &'static str,
    /// Description for the table: drive, its state, and load.
    about: &'static str,
    /// Rate of MQSim of October 2022 [tavakkol-2018] in the same case, in simulated host I/Os a
    /// second of wall time: the median of five runs on one core of an AMD EPYC with two virtual
    /// processors.
    mqsim_ios_per_s: Option<f64>,
}

const CASES: [Case; 5] = [
    Case {
        name: "4k-rand-write",
        about: "ioDrive Duo 640 GB at full scale, settled, T16Q16",
        mqsim_ios_per_s: None,
    },
    Case {
        name: "4k-rand-read",
        about: "ioDrive Duo 640 GB at full scale, written at random before, T16Q16",
        mqsim_ios_per_s: None,
    },
    Case {
        name: "mqsim-read",
        about: "16 GiB, 70 % mapped, T1Q256",
        mqsim_ios_per_s: Some(208_203.0),
    },
    Case {
        name: "mqsim-write",
        about: "16 GiB, 70 % mapped, garbage collection, no device cache, T1Q256",
        mqsim_ios_per_s: Some(116_604.0),
    },
    Case {
        name: "mqsim-write-cached",
        about: "the same with a write buffer of 256 MiB",
        mqsim_ios_per_s: Some(28_080.0),
    },
];

/// Cases that measure something else than a model.
const OTHERS: [&str; 5] =
    [replay::NAME, overhead::NAME, recording::NAME, viewers::NAME, fleet::NAME];

/// Measurements of one case.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CaseMeasurement {
    /// Name of the case.
    case: String,
    /// Simulated host I/Os a second of wall time, of each load.
    ios_per_s: Vec<f64>,
    /// Simulated I/Os a second of virtual time, over all loads.
    iops: f64,
    /// NAND writes over host writes; absent for reads.
    write_amplification: Option<f64>,
    /// Wall time that the preparation took, in seconds.
    prepare_s: f64,
    /// Most memory that the process had, in bytes.
    memory_bytes_max: u64,
    /// Memory divided by the pages of 4 KiB of raw capacity.
    memory_bytes_per_page: f64,
}

impl CaseMeasurement {
    fn ios_per_s_median(&self) -> f64 {
        let mut sorted = self.ios_per_s.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// Runs the cases whose names begin with `prefix`; prints a table, or a line of JSON for each.
///
/// # Errors
/// Fails if no case is meant, or one failed.
pub(crate) fn run_all(prefix: &str, json: bool) -> Result<()> {
    let cases: Vec<&Case> = CASES.iter().filter(|case| case.name.starts_with(prefix)).collect();
    let others: Vec<&str> = OTHERS.into_iter().filter(|it| it.starts_with(prefix)).collect();
    if cases.is_empty() && others.is_empty() {
        let names = CASES.iter().map(|case| case.name).chain(OTHERS);
        let names: Vec<&str> = names.collect();
        bail!("no case begins with {prefix:?} (there are: {})", names.join(", "));
    }
    if !json && !cases.is_empty() {
        println!(
            "{:<20} {:>12} {:>7} {:>9} {:>8} {:>5}",
            "case", "I/Os per s", "x MQSim", "memory", "B/page", "WA"
        );
    }
    for case in cases {
        let line = in_release(case.name, true)?;
        let measured: CaseMeasurement = serde_json::from_str(&line)
            .with_context(|| format!("reading what case {} measured", case.name))?;
        if json {
            println!("{}", line.trim());
        } else {
            show(case, &measured);
        }
    }
    for name in others {
        print!("{}", in_release(name, json)?);
    }
    Ok(())
}

/// Measures the case `name` in this process and prints it.
///
/// # Errors
/// Fails if there is no such case, or it could not be measured.
pub(crate) fn run_case(name: &str, json: bool) -> Result<()> {
    let (line, table) = match name {
        replay::NAME => {
            let measured = replay::measure()?;
            (serde_json::to_string(&measured)?, measured.shown())
        }
        recording::NAME => {
            let measured = recording::measure()?;
            (serde_json::to_string(&measured)?, measured.shown())
        }
        overhead::NAME => {
            let measured = overhead::measure()?;
            (serde_json::to_string(&measured)?, measured.shown())
        }
        viewers::NAME => {
            let measured = viewers::measure()?;
            (serde_json::to_string(&measured)?, measured.shown())
        }
        fleet::NAME => {
            let measured = fleet::measure()?;
            (serde_json::to_string(&measured)?, measured.shown())
        }
        _ => return case::run(name),
    };
    println!("{}", if json { line } else { table });
    Ok(())
}

/// Runs one case in release and returns its line, of JSON or of a table.
fn in_release(name: &str, json: bool) -> Result<String> {
    let args = ["run", "--quiet", "--release", "--package", "figures", "--", "bench-case", name];
    let output = Command::new("cargo")
        .args(args)
        .args(json.then_some("--json"))
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("starting case {name}"))?;
    if !output.status.success() {
        bail!("case {name} failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("reading the output of case {name}"))
}

fn show(case: &Case, measured: &CaseMeasurement) {
    let median = measured.ios_per_s_median();
    let ratio = case.mqsim_ios_per_s.map(|mqsim| format!("{:.0}", median / mqsim));
    println!(
        "{:<20} {:>11.2}M {:>7} {:>5} MiB {:>8.2} {:>5}   {}",
        case.name,
        median / 1e6,
        ratio.unwrap_or_default(),
        measured.memory_bytes_max >> 20,
        measured.memory_bytes_per_page,
        measured.write_amplification.map_or_else(String::new, |wa| format!("{wa:.2}")),
        case.about,
    );
}
