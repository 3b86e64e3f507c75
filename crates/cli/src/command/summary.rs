//! What came out of a review, for the terminal: the page has the rest.

use blockio::Nanos;
use lab::results::{Run, Step, StepKind, Summary};

use crate::table;

/// Each run: what its preconditionings ended at, then each workload at the load of its most IOPS.
pub(crate) fn shown(runs: &[Run]) -> String {
    runs.iter().map(of_run).collect::<Vec<_>>().join("\n\n")
}

fn of_run(run: &Run) -> String {
    let title = format!("{} {}", run.target.title, run.target.format);
    let head = ["WORKLOAD", "LOAD", "IOPS", "MB/S", "MEAN", "P99.9", ""].map(str::to_owned);
    let settled = run.steps.iter().filter(|step| step.kind == StepKind::Precondition);
    let settled = settled.filter_map(|step| {
        let verdict = match &step.steady {
            Some(steady) if steady.achieved => "steady state",
            _ => "not steady",
        };
        Some(row(step, step.settled.as_ref()?, verdict))
    });
    let best = best(&run.steps).into_iter();
    let what = |step: &Step| if step.rate.is_some() { "at its rate" } else { "most IOPS" };
    let best = best.filter_map(|step| Some(row(step, step.summary.as_ref()?, what(step))));
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(settled).chain(best).collect();
    let warnings = match run.warnings.len() {
        0 => String::new(),
        1 => "\n1 warning, see the review".to_owned(),
        count => format!("\n{count} warnings, see the review"),
    };
    format!("{}\n{}{warnings}", title.trim_end(), table::columns(&rows))
}

/// Of each workload of each suite the measurement with the most IOPS.
fn best(steps: &[Step]) -> Vec<&Step> {
    let iops = |step: &Step| step.summary.as_ref().map_or(0.0, |summary| summary.iops);
    let mut best: Vec<&Step> = Vec::new();
    for step in steps.iter().filter(|step| step.kind == StepKind::Measure) {
        let is_same =
            |other: &&mut &Step| (&other.suite, &other.workload) == (&step.suite, &step.workload);
        match best.iter_mut().find(is_same) {
            Some(other) if iops(other) < iops(step) => *other = step,
            Some(_) => {}
            None => best.push(step),
        }
    }
    best
}

fn row(step: &Step, summary: &Summary, what: &str) -> [String; 7] {
    let latency = &summary.latency;
    [
        step.workload.clone(),
        format!("T{}Q{}", step.threads, step.queue_per_thread),
        format!("{:.0}", summary.iops),
        format!("{:.1}", summary.throughput_mb_s()),
        Nanos::from_micros_f64(latency.latency_ns_avg / 1e3).to_string(),
        Nanos(latency.latency_ns_p999).to_string(),
        what.to_owned(),
    ]
}
