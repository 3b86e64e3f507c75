//! Latency in depth: against throughput, and its percentiles on an axis of nines.

use results::{Bin, LatencySummary, Step};

use super::primary::curves;
use super::{
    Axis, Body, Chart, Point, Series, Subject, Suite, Taken, Unit, apart, cautions, group, line,
    millis, provenance, table,
};
use crate::chart::Look;
use crate::explain;
use crate::number;
use crate::text::anchor;

/// The median: what lies left of it is hardly of interest.
const SHARE_MIN: f64 = 0.5;
/// Four nines: what lies right of it are single requests.
const SHARE_MAX: f64 = 0.9999;

/// Curves over the sweeps of `suite`, and percentiles of every workload at its greatest load.
pub(super) fn section(suite: &Suite<'_>, id: &str) -> String {
    let mut all: Vec<Taken<'_>> = Vec::new();
    let mut charts = curves(suite, id);
    for workload in suite.workloads() {
        let taken: Vec<Taken<'_>> = suite
            .measures(workload)
            .into_iter()
            .filter_map(|(subject, steps)| Some((subject, greatest(&steps)?)))
            .collect();
        charts.push(chart(workload, &taken, id));
        all.extend(taken);
    }
    group("Latency in depth", "", &charts, &numbers(&all))
}

/// The step with most outstanding.
fn greatest<'a>(steps: &[&'a Step]) -> Option<&'a Step> {
    let outstanding = |step: &&Step| u32::from(step.threads) * u32::from(step.queue_per_thread);
    steps.iter().copied().max_by_key(outstanding)
}

fn chart(workload: &str, taken: &[Taken<'_>], id: &str) -> Chart {
    let load = taken.first().map_or(String::new(), |(_, step)| {
        format!(", T{}Q{}", step.threads, step.queue_per_thread)
    });
    Chart {
        id: format!("{id}-{}-percentiles", anchor(workload)),
        title: format!("{workload}{load}, percentiles"),
        explain: explain::PERCENTILES,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x: Axis::nines("percentile of requests"),
        y: Axis::log("Latency", Unit::Millis),
        body: Body::Lines(
            taken.iter().flat_map(|(subject, step)| lines(subject, step)).collect(),
            Vec::new(),
        ),
    }
}

/// One line, or one for reads and one for writes where both happened.
fn lines(subject: &Subject<'_>, step: &Step) -> Vec<Series> {
    let mixed = !step.read_bins.is_empty() && !step.write_bins.is_empty();
    [(false, &step.read_bins), (true, &step.write_bins)]
        .into_iter()
        .filter(|(_, bins)| !bins.is_empty())
        .map(|(writes, bins)| {
            let (name, look) = if mixed {
                apart(subject, writes)
            } else {
                (subject.label.clone(), Look::of_run(subject.index))
            };
            line(name, look, cumulated(bins))
        })
        .collect()
}

/// Latency in milliseconds against the share of requests within it.
fn cumulated(bins: &[Bin]) -> Vec<Point> {
    let count: u64 = bins.iter().map(|bin| bin.count).sum();
    let mut within = 0;
    let mut points: Vec<Point> = Vec::new();
    for bin in bins {
        let before = within as f64 / count.max(1) as f64;
        within += bin.count;
        let share = within as f64 / count.max(1) as f64;
        let latency = millis(bin.latency_ns as f64);
        if before < SHARE_MIN && share >= SHARE_MIN {
            points.push((SHARE_MIN, latency));
        }
        if share > SHARE_MIN && share < SHARE_MAX {
            points.push((share, latency));
        }
        if before < SHARE_MAX && share >= SHARE_MAX {
            points.push((SHARE_MAX, latency));
        }
    }
    points
}

fn numbers(taken: &[Taken<'_>]) -> String {
    let heads = [
        "Run",
        "Workload",
        "Requests",
        "Count",
        "p50, ms",
        "p90, ms",
        "p99, ms",
        "p99.9, ms",
        "p99.99, ms",
        "Maximum, ms",
    ];
    let rows = taken.iter().flat_map(|(subject, step)| {
        let summary = step.summary.iter();
        let kinds =
            summary.flat_map(|summary| [("reads", summary.read), ("writes", summary.write)]);
        let counted = kinds.filter(|(_, latency)| latency.count > 0);
        counted.map(|(kind, latency)| row(subject, step, kind, &latency)).collect::<Vec<_>>()
    });
    table(&heads.map(String::from), rows)
}

fn row(subject: &Subject<'_>, step: &Step, kind: &str, latency: &LatencySummary) -> Vec<String> {
    let show = |nanos: u64| number::plain(millis(nanos as f64));
    vec![
        subject.label.clone(),
        step.workload.clone(),
        kind.into(),
        number::whole(latency.count as f64),
        show(latency.latency_ns_p50),
        show(latency.latency_ns_p90),
        show(latency.latency_ns_p99),
        show(latency.latency_ns_p999),
        show(latency.latency_ns_p9999),
        show(latency.latency_ns_max),
    ]
}
