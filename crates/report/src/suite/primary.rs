//! The primary test: bars at one load, lines over a grid of loads, and latency over throughput.

use std::fmt::Write as _;

use results::Step;

use super::{
    Axis, Body, Chart, Look, METRICS, Metric, Series, Subject, Suite, Taken, Unit, cautions, group,
    line, millis, provenance, table,
};
use crate::chart::{Bar, Group, Slot};
use crate::explain;
use crate::number;
use crate::text::anchor;

const EXPLAIN: [&str; 4] = [
    explain::SWEEP_THROUGHPUT,
    explain::SWEEP_AVERAGE,
    explain::SWEEP_MAXIMUM,
    explain::SWEEP_DEVIATION,
];

/// The measurements of one workload, by run.
type Measured<'a> = Vec<(&'a Subject<'a>, Vec<&'a Step>)>;

/// The primary test of `suite`: workloads at one load share bars, each sweep has charts of its own.
pub(super) fn section(suite: &Suite<'_>, id: &str) -> String {
    let mut html = String::new();
    let mut single: Vec<(&str, Measured<'_>)> = Vec::new();
    for workload in suite.workloads() {
        let measured = suite.measures(workload);
        let loads = slots(&measured);
        if loads.len() > 1 {
            html.push_str(&sweep(workload, &measured, &loads, id));
        } else {
            single.push((workload, measured));
        }
    }
    bars_section(&single, id) + &html
}

/// Every load of `measured`, by threads and then by queue.
fn slots(measured: &Measured<'_>) -> Vec<Slot> {
    let steps = measured.iter().flat_map(|(_, steps)| steps);
    let mut slots: Vec<Slot> = steps.map(|step| slot(step)).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

fn slot(step: &Step) -> Slot {
    Slot { threads: step.threads, queue_per_thread: step.queue_per_thread }
}

fn taken<'a>(measured: &Measured<'a>) -> Vec<Taken<'a>> {
    let each = measured.iter();
    each.flat_map(|(subject, steps)| steps.iter().map(|step| (*subject, *step))).collect()
}

/// Every chart of the primary test.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let measured = suite.workloads().into_iter().map(|it| (it, suite.measures(it)));
    let (swept, single): (Vec<_>, Vec<_>) =
        measured.partition(|(_, measured)| slots(measured).len() > 1);
    let mut charts = bars_charts(&single, id);
    for (workload, measured) in &swept {
        let loads = slots(measured);
        charts.extend(sweep_charts(workload, measured, &loads, id));
        charts.extend(multiples(workload, measured, &loads, id));
    }
    charts
}

fn bars_section(single: &[(&str, Measured<'_>)], id: &str) -> String {
    group("Primary test", "", &bars_charts(single, id), &numbers(&all(single)))
}

fn all<'a>(single: &[(&str, Measured<'a>)]) -> Vec<Taken<'a>> {
    single.iter().flat_map(|(_, measured)| taken(measured)).collect()
}

fn bars_charts(single: &[(&str, Measured<'_>)], id: &str) -> Vec<Chart> {
    let taken = all(single);
    METRICS.iter().map(|metric| bars(single, &taken, *metric, id)).collect()
}

fn bars(single: &[(&str, Measured<'_>)], taken: &[Taken<'_>], metric: Metric, id: &str) -> Chart {
    let groups = single
        .iter()
        .map(|(workload, measured)| Group {
            label: measured
                .first()
                .and_then(|(_, steps)| steps.first())
                .map_or((*workload).into(), |step| format!("{workload}, {}", slot(step).name())),
            bars: measured
                .iter()
                .filter_map(|(subject, steps)| {
                    Some(Bar {
                        name: subject.label.clone(),
                        tone: Look::of_run(subject.index).tone,
                        value: (metric.of)(steps.first()?.summary.as_ref()?),
                    })
                })
                .collect(),
        })
        .collect();
    Chart {
        id: format!("{id}-bars-{}", metric.id),
        title: metric.title.into(),
        explain: explain::BARS,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x: Axis::loads(Vec::new()),
        y: Axis::linear(metric.title, metric.unit),
        body: Body::Bars(groups),
    }
}

fn sweep(workload: &str, measured: &Measured<'_>, loads: &[Slot], id: &str) -> String {
    let title = match loads {
        [first, .., last] => {
            format!("Primary test with {workload}, {} to {}", first.name(), last.name())
        }
        _ => format!("Primary test with {workload}"),
    };
    let charts = sweep_charts(workload, measured, loads, id);
    let mut html = group(&title, "", &charts, &numbers(&taken(measured)));
    let small = multiples(workload, measured, loads, id);
    if !small.is_empty() {
        let lead = "One panel for each number of requests that a thread keeps outstanding, all on \
                    one scale: throughput above, average latency below, against threads.";
        let _ = write!(html, "<h3>The same, by queue depth</h3><p class=\"small\">{lead}</p>");
        for of_metric in small.chunk_by(|a, b| a.y.label == b.y.label) {
            let panels: String = of_metric.iter().map(Chart::figure).collect();
            let _ = write!(html, "<div class=\"multiples\">{panels}</div>");
        }
    }
    html
}

/// Throughput and average latency over threads, a panel for each queue depth, on common scales;
/// none where the sweep has no grid.
fn multiples(workload: &str, measured: &Measured<'_>, loads: &[Slot], id: &str) -> Vec<Chart> {
    let mut queues: Vec<u16> = loads.iter().map(|load| load.queue_per_thread).collect();
    queues.sort_unstable();
    queues.dedup();
    if queues.len() < 2 || queues.len() * 2 > loads.len() {
        return Vec::new();
    }
    let each = METRICS[..2].iter();
    each.flat_map(|metric| {
        let highest = over_loads(measured, loads, *metric)
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.1))
            .fold(0.0, f64::max);
        queues.iter().map(move |queue| (*metric, *queue, highest)).collect::<Vec<_>>()
    })
    .map(|(metric, queue, highest)| panel((workload, measured, id), metric, queue, highest))
    .collect()
}

/// The panel of one queue depth, up to `highest`.
fn panel(
    (workload, measured, id): (&str, &Measured<'_>, &str),
    metric: Metric,
    queue: u16,
    highest: f64,
) -> Chart {
    let of = |(subject, steps): &(&Subject<'_>, Vec<&Step>)| {
        let mut steps: Vec<&Step> =
            steps.iter().copied().filter(|step| step.queue_per_thread == queue).collect();
        steps.sort_by_key(|step| step.threads);
        let points = steps.iter().filter_map(|step| {
            Some((f64::from(step.threads), (metric.of)(step.summary.as_ref()?)))
        });
        line(subject.label.clone(), Look::of_run(subject.index), points.collect())
    };
    let taken = taken(measured);
    Chart {
        id: format!("{id}-{}-q{queue}-{}", anchor(workload), metric.id),
        title: format!("{}, Q{queue}", metric.title),
        explain: "",
        provenance: provenance(&taken),
        cautions: Vec::new(),
        x: Axis::linear("threads", Unit::Plain),
        y: Axis { switchable: false, domain: Some((0.0, highest)), ..metric.axis() },
        body: Body::Lines(measured.iter().map(of).collect(), Vec::new()),
    }
}

fn sweep_charts(workload: &str, measured: &Measured<'_>, loads: &[Slot], id: &str) -> Vec<Chart> {
    let id = format!("{id}-{}", anchor(workload));
    let taken = taken(measured);
    METRICS
        .iter()
        .zip(EXPLAIN)
        .map(|(metric, explain)| Chart {
            id: format!("{id}-sweep-{}", metric.id),
            title: metric.title.into(),
            explain,
            provenance: provenance(&taken),
            cautions: cautions(&taken),
            x: Axis::loads(loads.to_vec()),
            y: metric.axis(),
            body: Body::Lines(over_loads(measured, loads, *metric), Vec::new()),
        })
        .collect()
}

fn over_loads(measured: &Measured<'_>, loads: &[Slot], metric: Metric) -> Vec<Series> {
    let of = |(subject, steps): &(&Subject<'_>, Vec<&Step>)| {
        let at = |(index, load): (usize, &Slot)| {
            let step = steps.iter().find(|step| slot(step) == *load)?;
            Some((index as f64, (metric.of)(step.summary.as_ref()?)))
        };
        let points = loads.iter().enumerate().filter_map(at).collect();
        line(subject.label.clone(), Look::of_run(subject.index), points)
    };
    measured.iter().map(of).collect()
}

/// Latency against throughput over the sweeps of `suite`, one chart each.
pub(super) fn curves(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let workloads = suite.workloads();
    let swept = workloads.iter().map(|workload| (*workload, suite.measures(workload)));
    swept
        .filter(|(_, measured)| slots(measured).len() > 1)
        .map(|(workload, measured)| curve(workload, &measured, id))
        .collect()
}

fn curve(workload: &str, measured: &Measured<'_>, id: &str) -> Chart {
    let taken = taken(measured);
    let of = |(subject, steps): &(&Subject<'_>, Vec<&Step>)| {
        let mut steps = steps.clone();
        steps.sort_by_key(|step| (slot(step).outstanding(), slot(step)));
        let (points, labels) = steps
            .iter()
            .filter_map(|step| {
                let summary = step.summary.as_ref()?;
                let place = (summary.iops, millis(summary.latency.latency_ns_avg));
                Some((place, slot(step).name()))
            })
            .unzip();
        Series { name: subject.label.clone(), look: Look::of_run(subject.index), points, labels }
    };
    Chart {
        id: format!("{id}-{}-curve", anchor(workload)),
        title: format!("{workload}, average latency against throughput"),
        explain: explain::CURVE,
        provenance: provenance(&taken),
        cautions: cautions(&taken),
        x: Axis::linear("throughput", Unit::Iops),
        y: Axis { switchable: false, ..Axis::log("Average latency", Unit::Millis) },
        body: Body::Curve(measured.iter().map(of).collect()),
    }
}

fn numbers(taken: &[Taken<'_>]) -> String {
    let heads = [
        "Run",
        "Workload",
        "Load",
        "Outstanding",
        "IOPS",
        "MB/s",
        "Average, ms",
        "p99, ms",
        "p99.9, ms",
        "p99.99, ms",
        "Maximum, ms",
        "Deviation, ms",
    ];
    let rows = taken.iter().filter_map(|(subject, step)| {
        let summary = step.summary.as_ref()?;
        let latency = &summary.latency;
        let show = |nanos: u64| number::plain(millis(nanos as f64));
        Some(vec![
            subject.label.clone(),
            step.workload.clone(),
            slot(step).name(),
            (slot(step).outstanding() * subject.run.target.devices).to_string(),
            number::whole(summary.iops),
            number::whole(summary.throughput_mb_s()),
            number::plain(millis(latency.latency_ns_avg)),
            show(latency.latency_ns_p99),
            show(latency.latency_ns_p999),
            show(latency.latency_ns_p9999),
            show(latency.latency_ns_max),
            number::plain(millis(summary.latency_ns_stdev_reviewed())),
        ])
    });
    table(&heads.map(String::from), rows)
}
