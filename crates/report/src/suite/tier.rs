//! Classes of drives that are made of two: hits over time, and what moved in each step.

use results::{ClassWrites, Step, Summary, TierWork};

use super::group::{Group, table};
use super::metric::RunStep;
use super::preconditioning::{points, time_axis};
use super::steps::{cautions, line, provenance};
use crate::chart::{Axis, Body, Chart, Ends, Look, Unit};
use crate::explain;
use crate::number;
use crate::subject::Suite;

/// A share that is charted of the work of a tier.
struct TierMetric {
    id: &'static str,
    title: &'static str,
    explain: &'static str,
    of: fn(&TierWork) -> Option<f64>,
}

const METRICS: [TierMetric; 2] = [
    TierMetric {
        id: "hits",
        title: "Hit rate",
        explain: explain::HIT_RATE,
        of: TierWork::hit_rate,
    },
    TierMetric {
        id: "written",
        title: "Written data on the fast class",
        explain: explain::WRITTEN_SHARE,
        of: |work| work.written_share,
    },
];

/// Charts of the preconditioning and a table of all steps; empty where no drive is made of two.
pub(super) fn section(suite: &Suite<'_>, id: &str) -> String {
    let numbers = numbers(suite);
    if numbers.is_empty() {
        return String::new();
    }
    let charts = charts(suite, id);
    let shown = Group { title: "Classes", charts: &charts, numbers: &numbers, ..Group::default() };
    let html = shown.html();
    // Without a preconditioning the table stands alone.
    if html.is_empty() {
        format!("<div class=\"group\"><h3>Classes</h3>{numbers}</div>")
    } else {
        html
    }
}

/// Shares over the preconditioning; empty where no drive tells them.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let has_tier = |step: &Step| step.samples.iter().any(|it| it.summary.tier.is_some());
    let taken: Vec<RunStep<'_>> =
        suite.preconditions().into_iter().filter(|(_, step)| has_tier(step)).collect();
    if taken.is_empty() {
        return Vec::new();
    }
    let charts = METRICS.iter().map(|metric| over_time(&taken, metric, id));
    charts.filter(|chart| !chart.is_empty()).collect()
}

fn over_time(taken: &[RunStep<'_>], metric: &TierMetric, id: &str) -> Chart {
    let (x, secs) = time_axis(taken);
    let series = taken.iter().map(|(subject, step)| {
        let share = points(step, secs, |sample| (metric.of)(sample.summary.tier.as_ref()?));
        line(subject.label.clone(), Look::of_run(subject.index), share)
    });
    Chart {
        id: format!("{id}-tier-{}", metric.id),
        title: metric.title.into(),
        explain: metric.explain,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x,
        y: Axis { switchable: true, ..Axis::linear(metric.title, Unit::Share) },
        ends: Ends::Last,
        is_wide: false,
        body: Body::Lines(series.collect(), Vec::new()),
    }
}

/// Table of what moved in each step, and of the wear of each class; empty where nothing did.
fn numbers(suite: &Suite<'_>) -> String {
    let steps = suite.parts.iter().flat_map(|part| {
        let steps = part.subject.run.steps.iter().filter(|step| step.suite == suite.name);
        steps.map(|step| (part.subject, step))
    });
    let rows: Vec<Vec<String>> = steps
        .filter_map(|(subject, step)| {
            let summary = step.summary.as_ref()?;
            let work = summary.tier.as_ref()?;
            let mut row = vec![format!("{}, {}", subject.label, step.id)];
            row.extend(cells(summary, work));
            Some(row)
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = [
        "Step",
        "hit rate, %",
        "read from the fast class, %",
        "destaged, % of written",
        "overwritten before, % of written",
        "fast class, drive writes a day",
        "write amplification",
        "slow class, drive writes a day",
        "write amplification",
    ];
    table(&heads.map(String::from), rows.into_iter())
}

fn cells(summary: &Summary, work: &TierWork) -> Vec<String> {
    let percent = |share: Option<f64>| share.map_or("–".into(), |it| number::plain(it * 100.0));
    let of_written =
        |bytes: u64| (work.written_bytes > 0).then(|| bytes as f64 / work.written_bytes as f64);
    let class = |writes: &ClassWrites| {
        let amplification = writes.write_amplification().map_or("–".into(), number::plain);
        [number::plain(writes.drive_writes_per_day(summary.span_s)), amplification]
    };
    let shares = [
        work.hit_rate(),
        work.read_fast_share(),
        of_written(work.destaged_bytes),
        of_written(work.absorbed_bytes),
    ];
    shares.map(percent).into_iter().chain(class(&work.fast)).chain(class(&work.slow)).collect()
}
