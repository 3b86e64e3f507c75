//! Sampled runs beside detailed ones: errors of the figures, and the ratio of the times.
//!
//! ```sh
//! cargo run --release -p lab --example sampling          # the table of the documentation
//! cargo run --release -p lab --example sampling -- duo   # cases whose names begin so
//! ```

#![expect(clippy::print_stdout, reason = "a table is what it makes")]

use std::time::Instant;

use lab::driver::SilentWatch;
use lab::driver::model::Model;
use lab::results::{Interval, Sampling, Summary};
use lab::ssd::{Setup, catalogue};
use lab::wanted::Precision;
use lab::{Driver, Load, LoadResult};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// One drive under one load, from its purge on.
struct Case {
    name: &'static str,
    drive: &'static str,
    format: usize,
    workload: &'static str,
    /// Jobs, and requests that each keeps outstanding.
    outstanding: (u16, u16),
    time_lapse: u32,
    hours: f64,
}

const fn case(
    name: &'static str,
    drive: &'static str,
    workload: &'static str,
    time_lapse: u32,
    hours: f64,
) -> Case {
    Case { name, drive, format: 0, workload, outstanding: (16, 16), time_lapse, hours }
}

const CASES: [Case; 12] = [
    case("duo-write", "iodrive-duo", "4k-rand-write", 16, 6.0),
    Case { format: 1, ..case("duo-hp-write", "iodrive-duo", "4k-rand-write", 16, 6.0) },
    case("duo-mixed", "iodrive-duo", "8k-70-30", 16, 6.0),
    Case { outstanding: (2, 2), ..case("duo-t2q2", "iodrive-duo", "8k-70-30", 16, 6.0) },
    case("px600-write", "px600-2600", "4k-rand-write", 16, 6.0),
    case("p320h-write", "p320h-700", "4k-rand-write", 32, 6.0),
    case("p5510-write", "p5510", "4k-rand-write", 64, 6.0),
    case("flashmax-write", "flashmax-ii", "4k-rand-write", 32, 6.0),
    case("es3000-mixed", "es3000-2400", "8k-70-30", 32, 6.0),
    case("tlc-gen4-write", "generic-tlc-gen4", "4k-rand-write", 64, 3.0),
    case("qlc-write", "generic-qlc-gen4", "4k-rand-write", 64, 6.0),
    case("p5800x-mixed", "p5800x", "8k-70-30", 64, 0.5),
];

struct Run {
    whole: Summary,
    last: Summary,
    intervals: Vec<Interval>,
    sampling: Option<Sampling>,
    wall_s: f64,
}

fn main() -> Outcome<()> {
    let prefix = std::env::args().nth(1).unwrap_or_default();
    let precision = std::env::args().nth(2).map_or(Ok(0.01), |it| it.parse())?;
    println!(
        "{:<16} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7} | {:>6} {:>6} {:>5}",
        "case",
        "IOPS",
        "rate %",
        "±%",
        "mean %",
        "p99 %",
        "p99.9 %",
        "WA %",
        "rate %",
        "WA %",
        "seed %",
        "detail",
        "wins",
        "times"
    );
    for case in CASES.iter().filter(|case| case.name.starts_with(&prefix)) {
        let detailed = run(case, None, 1)?;
        let other = run(case, None, 2)?;
        let sampled = run(case, Some(Precision::of_share(precision)?), 1)?;
        show(case, &detailed, &sampled, &other);
        if std::env::var("CURVE").is_ok() {
            curve(&detailed, &sampled);
        }
    }
    Ok(())
}

fn run(case: &Case, precision: Option<Precision>, seed: u64) -> Outcome<Run> {
    let spec = catalogue::find(case.drive).ok_or("no such drive")?;
    let setup = Setup {
        format: spec.formats()[case.format].clone(),
        host: spec.hosts()[0].clone(),
        time_lapse: case.time_lapse,
        seed,
    };
    let workload = workload::catalogue::find_workload(case.workload).ok_or("no such workload")?;
    let load = Load {
        step: "sampling",
        workload: &workload,
        threads: case.outstanding.0,
        queue_per_thread: case.outstanding.1,
        ramp_s: 0.0,
        duration_s: case.hours * 3600.0,
        interval_s: 60.0,
        rate: None,
        replay: None,
        seed,
    };
    let mut model = Model::new(spec, setup)?.sampled(precision);
    let begun = Instant::now();
    let LoadResult { intervals, sampling, .. } = model.load(&load, &mut SilentWatch)?;
    let wall_s = begun.elapsed().as_secs_f64();
    let last = intervals.len() * 7 / 12;
    Ok(Run {
        whole: Summary::of(&intervals),
        last: Summary::of(&intervals[last..]),
        intervals,
        sampling,
        wall_s,
    })
}

/// Deviation of a figure in percent; absent where either is withheld.
fn off(found: Option<f64>, reference: Option<f64>) -> String {
    match (found, reference) {
        (Some(found), Some(reference)) if reference > 0.0 => {
            format!("{:+.2}", (found / reference - 1.0) * 100.0)
        }
        _ => "-".to_owned(),
    }
}

fn show(case: &Case, detailed: &Run, sampled: &Run, other: &Run) {
    let rate = |it: &Summary| Some(it.iops);
    let mean = |it: &Summary| it.latency.mean_ns();
    let p99 = |it: &Summary| it.latency.latency_ns_p99.map(|ns| ns as f64);
    let p999 = |it: &Summary| it.latency.latency_ns_p999.map(|ns| ns as f64);
    let wa = |it: &Summary| it.nand.and_then(|nand| nand.write_amplification());
    let last = |of: &dyn Fn(&Summary) -> Option<f64>| off(of(&sampled.last), of(&detailed.last));
    let whole = |of: &dyn Fn(&Summary) -> Option<f64>| off(of(&sampled.whole), of(&detailed.whole));
    let sampling = sampled.sampling.clone().unwrap_or_default();
    let share = sampling.requests_detailed as f64 / sampling.requests.max(1) as f64 * 100.0;
    println!(
        "{:<16} {:>9.0} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7} | {:>5.1}% {:>6} \
         {:>5.2}",
        case.name,
        detailed.last.iops,
        last(&rate),
        sampling.precision_reached.map_or("-".into(), |it| format!("{:.2}", it * 100.0)),
        last(&mean),
        last(&p99),
        last(&p999),
        last(&wa),
        whole(&rate),
        whole(&wa),
        off(Some(other.last.iops), Some(detailed.last.iops)),
        share,
        sampling.windows,
        detailed.wall_s / sampled.wall_s,
    );
    if let Some(reason) = sampling.detailed {
        println!("{:<16} in detail: {reason}", "");
    }
}

/// Rates of both over time.
fn curve(detailed: &Run, sampled: &Run) {
    for (one, other) in detailed.intervals.iter().zip(&sampled.intervals) {
        let rate = |it: &Interval| (it.read.count() + it.write.count()) as f64 / it.span_s;
        println!("{:>7.0} s {:>9.0} {:>9.0}", one.at_s, rate(one), rate(other));
    }
}
