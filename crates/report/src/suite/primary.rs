//! The primary test: bars at one load, lines over a grid of loads, and latency over throughput.

use results::{Doubt, Step, Summary};

use super::group::{Group, table};
use super::metric::{EFFICIENCY, Metric, RunStep, metrics, throughput};
use super::percentiles;
use super::steps::{cautions, has_listed_stalls, line, provenance};
use crate::chart::{Axis, Body, Chart, Ends, Look, Point, Series, Unit};
use crate::chart::{Bar, Bars, Slot};
use crate::explain;
use crate::number;
use crate::number::millis;
use crate::subject::{Subject, Suite};
use crate::text::anchor;

const EXPLAIN: [&str; 5] = [
    explain::SWEEP_THROUGHPUT,
    explain::SWEEP_AVERAGE,
    explain::SWEEP_MAXIMUM,
    explain::SWEEP_DEVIATION,
    explain::SWEEP_EFFICIENCY,
];

/// Bars that a decision needs: throughput and average latency.
const BARS_SHOWN: usize = 2;
/// Runs whose tail is drawn beside their average.
const TAILED_MAX: usize = 2;

/// The measurements of one workload, by run.
type Measurements<'a> = Vec<(&'a Subject<'a>, Vec<&'a Step>)>;

/// The primary test of `suite`: workloads at one load share bars, each sweep has charts of its own.
pub(super) fn section(suite: &Suite<'_>, id: &str) -> String {
    let mut html = String::new();
    let mut single: Vec<(&str, Measurements<'_>)> = Vec::new();
    for workload in suite.workloads() {
        let measured = suite.measures(workload);
        let loads = slots(&measured);
        if loads.len() > 1 {
            html.push_str(&sweep(suite, workload, &measured, &loads, id));
        } else {
            single.push((workload, measured));
        }
    }
    bars_section(suite, &single, id) + &html
}

/// Every load of `measured`, by threads and then by queue.
fn slots(measured: &Measurements<'_>) -> Vec<Slot> {
    let steps = measured.iter().flat_map(|(_, steps)| steps);
    let mut slots: Vec<Slot> = steps.map(|step| slot(step)).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

fn slot(step: &Step) -> Slot {
    Slot { threads: step.threads, queue_per_thread: step.queue_per_thread }
}

fn taken<'a>(measured: &Measurements<'a>) -> Vec<RunStep<'a>> {
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
        charts.push(curve(workload, measured, id));
        charts.push(by_depth(workload, measured, id));
        charts.extend(sweep_charts(workload, measured, &loads, id));
    }
    charts
}

/// Bars of throughput and average latency with the percentiles of each workload, then the others.
fn bars_section(suite: &Suite<'_>, single: &[(&str, Measurements<'_>)], id: &str) -> String {
    let mut charts = bars_charts(single, id);
    let more = charts.split_off(charts.len().min(BARS_SHOWN));
    for (workload, _) in single {
        charts.push(percentiles::chart(suite, workload, id));
    }
    let taken = all(single);
    let numbers = numbers(&taken) + &percentiles::numbers(&taken);
    let (charts, more) = (charts.as_slice(), more.as_slice());
    Group { title: "Primary test", lead: "", charts, more, numbers: &numbers }.html()
}

fn all<'a>(single: &[(&str, Measurements<'a>)]) -> Vec<RunStep<'a>> {
    single.iter().flat_map(|(_, measured)| taken(measured)).collect()
}

fn bars_charts(single: &[(&str, Measurements<'_>)], id: &str) -> Vec<Chart> {
    let taken = all(single);
    let metrics = metrics(&taken).into_iter().chain(efficiency(&taken));
    metrics.map(|metric| bars(single, &taken, metric, id)).collect()
}

/// The metric of IOPS per watt; absent where a run has several devices, whose power is the mean of
/// one.
fn efficiency(taken: &[RunStep<'_>]) -> Option<Metric> {
    let is_single = |(subject, _): &RunStep<'_>| subject.run.target.devices == 1;
    taken.iter().all(is_single).then_some(EFFICIENCY)
}

fn bars(
    single: &[(&str, Measurements<'_>)],
    taken: &[RunStep<'_>],
    metric: Metric,
    id: &str,
) -> Chart {
    let groups = single
        .iter()
        .map(|(workload, measured)| Bars {
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
                        value: (metric.of)(steps.first()?.summary.as_ref()?)?,
                    })
                })
                .filter(|bar| bar.value.is_finite())
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
        ends: Ends::Last,
        is_wide: false,
        body: Body::Bars(groups),
    }
}

/// A sweep over loads: latency against throughput, throughput by queue depth, percentiles at the
/// greatest load; then every metric load by load, as reviews draw them.
fn sweep(
    suite: &Suite<'_>,
    workload: &str,
    measured: &Measurements<'_>,
    loads: &[Slot],
    id: &str,
) -> String {
    let title = match loads {
        [first, .., last] => {
            format!("Primary test with {workload}, {} to {}", first.name(), last.name())
        }
        _ => format!("Primary test with {workload}"),
    };
    let heaviest = percentiles::heaviest(suite, workload);
    let charts = [
        curve(workload, measured, id),
        by_depth(workload, measured, id),
        percentiles::chart(suite, workload, id),
    ];
    let more = sweep_charts(workload, measured, loads, id);
    let numbers = numbers(&taken(measured)) + &percentiles::numbers(&heaviest);
    Group { title: &title, lead: "", charts: &charts, more: &more, numbers: &numbers }.html()
}

/// Throughput against queue depth: of a run alone a line for each number of threads where its loads
/// are a grid, else against all that is outstanding.
fn by_depth(workload: &str, measured: &Measurements<'_>, id: &str) -> Chart {
    let taken = taken(measured);
    let metric = throughput(&taken);
    let loads = slots(measured);
    let threads = distinct(loads.iter().map(|load| load.threads));
    let is_grid = measured.len() == 1 && loads.len() > threads.len();
    let series = measured.iter().flat_map(|(subject, steps)| {
        let look = Look::of_run(subject.index);
        if is_grid {
            let of = |(dash, threads): (usize, &u16)| {
                let name = format!("{threads} threads");
                line(name, Look { dash: dash % 4, ..look }, of_threads(steps, *threads, metric))
            };
            return threads.iter().enumerate().map(of).collect::<Vec<_>>();
        }
        let points = frontier(steps).into_iter().filter_map(|step| {
            Some((f64::from(slot(step).outstanding()), (metric.of)(step.summary.as_ref()?)?))
        });
        vec![line(subject.label.clone(), look, points.collect())]
    });
    let is_group = measured.iter().any(|(subject, _)| subject.run.target.devices > 1);
    let label = match (is_grid, is_group) {
        (true, _) => "queue depth of each thread",
        (false, true) => "requests outstanding on each device",
        (false, false) => "requests outstanding",
    };
    Chart {
        id: format!("{id}-{}-depth", anchor(workload)),
        title: format!("{} by queue depth", metric.title),
        explain: explain::DEPTH,
        provenance: provenance(&taken),
        cautions: cautions(&taken),
        x: Axis::depths(label),
        y: metric.axis(),
        ends: Ends::Last,
        is_wide: false,
        body: Body::Lines(series.collect(), Vec::new()),
    }
}

/// `metric` against the queue depth of each of `threads`, ascending.
fn of_threads(steps: &[&Step], threads: u16, metric: Metric) -> Vec<Point> {
    let steps = steps.iter().filter(|step| step.threads == threads);
    let mut points: Vec<Point> = steps
        .filter_map(|step| {
            Some((f64::from(step.queue_per_thread), (metric.of)(step.summary.as_ref()?)?))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Every value once, ascending.
fn distinct(values: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut values: Vec<u16> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn sweep_charts(
    workload: &str,
    measured: &Measurements<'_>,
    loads: &[Slot],
    id: &str,
) -> Vec<Chart> {
    let id = format!("{id}-{}", anchor(workload));
    let taken = taken(measured);
    metrics(&taken)
        .into_iter()
        .chain(efficiency(&taken))
        .zip(EXPLAIN)
        .map(|(metric, explain)| Chart {
            id: format!("{id}-sweep-{}", metric.id),
            title: metric.title.into(),
            explain: match explain {
                explain::SWEEP_MAXIMUM if has_listed_stalls(&taken) => {
                    explain::SWEEP_MAXIMUM_LISTED
                }
                explain => explain,
            },
            provenance: provenance(&taken),
            cautions: cautions(&taken),
            x: Axis::loads(loads.to_vec()),
            y: metric.axis(),
            ends: Ends::Last,
            is_wide: false,
            body: Body::Lines(over_loads(measured, loads, metric), Vec::new()),
        })
        .collect()
}

fn over_loads(measured: &Measurements<'_>, loads: &[Slot], metric: Metric) -> Vec<Series> {
    let of = |(subject, steps): &(&Subject<'_>, Vec<&Step>)| {
        let at = |(index, load): (usize, &Slot)| {
            let step = steps.iter().find(|step| slot(step) == *load)?;
            let value = (metric.of)(step.summary.as_ref()?)?;
            value.is_finite().then_some((index as f64, value))
        };
        let points = loads.iter().enumerate().filter_map(at).collect();
        line(subject.label.clone(), Look::of_run(subject.index), points)
    };
    measured.iter().map(of).collect()
}

/// Latency against throughput: of loads with as much outstanding the one that reaches most.
fn curve(workload: &str, measured: &Measurements<'_>, id: &str) -> Chart {
    let taken = taken(measured);
    let metric = throughput(&taken);
    let curve = |steps: &[&Step], of: fn(&Summary) -> Option<f64>| -> (Vec<Point>, Vec<String>) {
        let points = frontier(steps).into_iter().filter_map(|step| {
            let summary = step.summary.as_ref()?;
            Some((((metric.of)(summary)?, of(summary)?), slot(step).name()))
        });
        points.unzip()
    };
    let mut series = Vec::new();
    for (subject, steps) in measured {
        let look = Look { dash: 0, ..Look::of_run(subject.index) };
        let (points, labels) = curve(steps, |it| it.latency.mean_ns().map(millis));
        series.push(Series {
            name: format!("{}, average", subject.label),
            look,
            points,
            errors: Vec::new(),
            labels,
        });
        if measured.len() <= TAILED_MAX {
            let mut steps = steps.clone();
            steps.retain(|step| !subject.run.lacks_requests(&step.id));
            let (points, _) = curve(&steps, |it| Some(millis(it.latency.p999_ns()? as f64)));
            let look = Look { dash: 2, ..look };
            series.push(line(format!("{}, p99.9", subject.label), look, points));
        }
    }
    Chart {
        id: format!("{id}-{}-curve", anchor(workload)),
        title: "Latency against throughput".into(),
        explain: explain::CURVE,
        provenance: provenance(&taken),
        cautions: cautions(&taken),
        x: Axis::linear("throughput", metric.unit),
        y: Axis { switchable: false, ..Axis::log("Latency", Unit::Millis) },
        ends: Ends::Last,
        is_wide: false,
        body: Body::Curve(series),
    }
}

/// Of `steps` with equally much outstanding the one with most throughput, the lightest load first.
fn frontier<'a>(steps: &[&'a Step]) -> Vec<&'a Step> {
    let iops = |step: &Step| step.summary.as_ref().map_or(0.0, |summary| summary.iops);
    let mut steps = steps.to_vec();
    steps.sort_by(|a, b| {
        let outstanding = |step: &Step| slot(step).outstanding();
        outstanding(a).cmp(&outstanding(b)).then(iops(b).total_cmp(&iops(a)))
    });
    steps.dedup_by_key(|step| slot(step).outstanding());
    steps
}

fn numbers(taken: &[RunStep<'_>]) -> String {
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
        "Std. dev., ms",
        "IOPS/W",
    ];
    let rows = taken.iter().filter_map(|(subject, step)| {
        let summary = step.summary.as_ref()?;
        let latency = &summary.latency;
        let doubt = Doubt::of(subject.run, step, summary);
        let has_percentiles = doubt.is_none_or(Doubt::has_percentiles);
        let percentile =
            |known: Option<u64>| number::plain_millis(known.filter(|_| has_percentiles));
        let notes = doubt.map(Doubt::note).into_iter().chain(latency.mean_note());
        let notes = notes.chain(step.sampling_note());
        let named: Vec<String> = std::iter::once(slot(step).name()).chain(notes).collect();
        Some(vec![
            subject.label.clone(),
            step.workload.clone(),
            named.join(", "),
            (slot(step).outstanding() * subject.run.target.devices).to_string(),
            number::whole(summary.iops),
            number::whole(summary.throughput_mb_s()),
            number::plain_ns(latency.mean_ns()),
            percentile(latency.p99_ns()),
            percentile(latency.p999_ns()),
            percentile(latency.p9999_ns()),
            number::plain_millis(latency.max_ns()),
            number::plain_ns(latency.stdev_ns()),
            match subject.run.target.devices {
                1 => summary.iops_per_watt().map_or("–".into(), number::plain),
                _ => "–".into(),
            },
        ])
    });
    table(&heads.map(String::from), rows)
}
