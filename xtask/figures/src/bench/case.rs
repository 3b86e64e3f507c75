//! One benchmark case, run in the process that measures it.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use lab::driver::model::Model;
use lab::progress::Glimpse;
use lab::results::{Interval, NandWrites};
use lab::ssd::{DriveSpec, Setup, catalogue};
use lab::workload::Workload;
use lab::{Driver, Load, Watch};

use super::CaseMeasurement;

/// Loads that are measured, of which the median counts.
const LOADS: usize = 5;
const PAGE_BYTES: u64 = 4096;
const SEED: u64 = 1;

/// Steps of one case: a drive is prepared by some workloads in turn, then measured under one.
struct Plan {
    drive: DriveSpec,
    threads: u16,
    queue_per_thread: u16,
    prepare: Vec<Step>,
    measure: Step,
}

/// A workload, and how long in seconds of virtual time.
type Step = (Workload, f64);

/// Watch that shows no progress and never stops the run.
pub(super) struct Alone;

impl Watch for Alone {
    fn progress(&mut self, _done: f64, _text: &str) {}

    fn saw(&mut self, _glimpse: Glimpse) {}

    fn stop(&self) -> bool {
        false
    }
}

/// Measures the case named `name` and prints a line of JSON.
///
/// # Errors
/// Fails if there is no such case, or the model refused it.
pub(crate) fn run(name: &str) -> Result<()> {
    let plan = plan(name)?;
    let setup = Setup {
        format: plan.drive.formats()[0].clone(),
        host: plan.drive.hosts()[0].clone(),
        time_lapse: 1,
        seed: SEED,
    };
    let raw_pages = plan.drive.raw_capacity().0 / PAGE_BYTES;
    let mut model = Model::new(plan.drive.clone(), setup)?;
    let (prepare_s, ()) = timed(|| {
        for (step, seed) in plan.prepare.iter().zip(SEED..) {
            load(&mut model, &plan, step, seed)?;
        }
        Ok(())
    })?;
    let mut ios_per_s = Vec::new();
    let mut intervals = Vec::new();
    // Each load has addresses of its own: the same ones again would be warmer than the rest.
    for seed in (SEED + 100..).take(LOADS) {
        let (wall_s, loaded) = timed(|| load(&mut model, &plan, &plan.measure, seed))?;
        ios_per_s.push(ios(&loaded) as f64 / wall_s);
        intervals.extend(loaded);
    }
    let memory_bytes_max = memory_bytes_max()?;
    let measured = CaseMeasurement {
        case: name.to_owned(),
        ios_per_s,
        iops: ios(&intervals) as f64 / intervals.iter().map(|it| it.span_s).sum::<f64>(),
        write_amplification: nand_writes(&intervals).write_amplification(),
        prepare_s,
        memory_bytes_max,
        memory_bytes_per_page: memory_bytes_max as f64 / raw_pages as f64,
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

fn plan(name: &str) -> Result<Plan> {
    let (write, read) = (workload("4k-rand-write")?, workload("4k-rand-read")?);
    let fill = workload("128k-seq-write")?;
    if name.starts_with("mqsim-") {
        let part = |workload| Workload { footprint_percent: 70.0, ..workload };
        let mut drive = parse_drive()?;
        let measure = match name {
            "mqsim-read" => (part(read), 10.0),
            "mqsim-write" => (part(write), 60.0),
            "mqsim-write-cached" => {
                drive.buffer.kib = 256 * 1024;
                (part(write), 60.0)
            }
            _ => bail!("no case named {name:?}"),
        };
        let prepare = vec![(part(fill), 40.0), (part(workload("4k-rand-write")?), 500.0)];
        return Ok(Plan { drive, threads: 1, queue_per_thread: 256, prepare, measure });
    }
    let drive = catalogue::find("iodrive-duo").context("finding the drive")?;
    // Filled once, then settled: two hours are 1.5 drive writes.
    let (settled_s, measure) = match name {
        "4k-rand-write" => (7200.0, (write.clone(), 240.0)),
        "4k-rand-read" => (600.0, (read, 60.0)),
        _ => bail!("no case named {name:?}"),
    };
    let prepare = vec![(fill, 900.0), (write, settled_s)];
    Ok(Plan { drive, threads: 16, queue_per_thread: 16, prepare, measure })
}

pub(super) fn workload(name: &str) -> Result<Workload> {
    lab::workload::catalogue::find_workload(name).with_context(|| format!("finding {name}"))
}

fn parse_drive() -> Result<DriveSpec> {
    let text = include_str!("../../bench/mqsim-16gib.toml");
    Ok(DriveSpec::parse(text, "xtask/figures/bench/mqsim-16gib.toml")?)
}

/// Loads the drive as one step says.
fn load(model: &mut Model, plan: &Plan, step: &Step, seed: u64) -> Result<Vec<Interval>> {
    let (workload, span_s) = step;
    let load = Load {
        step: "bench",
        workload,
        threads: plan.threads,
        queue_per_thread: plan.queue_per_thread,
        ramp_s: 0.0,
        duration_s: *span_s,
        interval_s: 1.0,
        rate: None,
        replay: None,
        seed,
    };
    Ok(model.load(&load, &mut Alone)?.intervals)
}

/// Wall time that `work` took, in seconds, and what came of it.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let begun = Instant::now();
    let done = work()?;
    Ok((begun.elapsed().as_secs_f64(), done))
}

fn ios(intervals: &[Interval]) -> u64 {
    intervals.iter().map(|interval| interval.read.count() + interval.write.count()).sum()
}

fn nand_writes(intervals: &[Interval]) -> NandWrites {
    let writes = intervals.iter().filter_map(|interval| interval.nand);
    writes.fold(NandWrites::default(), |sum, nand| sum + nand)
}

/// Most memory that this process had, in bytes.
fn memory_bytes_max() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kib: u64 = kib.context("finding VmHWM in /proc/self/status")?.trim().parse()?;
    Ok(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_plan_that_the_model_accepts() {
        for case in super::super::CASES {
            let plan = plan(case.name).unwrap();
            for format in &plan.drive.formats {
                plan.drive.ftl_config(format, 1).unwrap();
            }
        }
        assert!(plan("4k").is_err());
    }

    #[test]
    fn memory_is_read_from_the_kernel() {
        assert!(memory_bytes_max().unwrap() > 100_000);
    }
}
