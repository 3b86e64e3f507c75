//! Preconditioning: every metric against time, the steady-state window marked.

use std::fmt::Write as _;

use results::steady::{RANGE_MAX, SLOPE_MAX};
use results::{LatencySummary, Sample, Step, Summary};

use super::group::{Group, table};
use super::metric::{Metric, RunStep, metrics};
use super::steps::{apart, cautions, has_listed_stalls, is_listed, is_mixed, line, provenance};
use super::{climate, die_failures, heatmap, media};
use crate::chart::{Axis, Body, Chart, Ends, Look, Point, Series, Unit, Window};
use crate::explain;
use crate::number::millis;
use crate::number::{self, percent, span};
use crate::subject::{Subject, Suite};
use crate::text::Text;

const EXPLAIN: [&str; 4] =
    [explain::THROUGHPUT, explain::AVERAGE, explain::MAXIMUM, explain::DEVIATION];
/// Charts that a decision needs: throughput, and how latency spreads.
const SHOWN: usize = 2;
/// A percentile of a summary of latencies, and its name.
type Percentile = (&'static str, fn(&LatencySummary) -> Option<u64>);
/// The lines of the bands.
const SPREAD: [Percentile; 3] =
    [("median", |it| it.p50_ns()), ("p99", |it| it.p99_ns()), ("p99.9", |it| it.p999_ns())];
/// Points of each line of a brief page: two for each six pixels of a chart.
const BRIEF_POINTS_MAX: usize = 120;
/// Rows of the table of numbers at most.
const ROWS_MAX: usize = 24;

/// Runs of which each has bands of its own in one chart; of more, bands would lie upon each other.
const BANDED_MAX: usize = 2;

/// The preconditioning of `suite`; `id` begins the names of its charts.
pub(super) fn section(suite: &Suite<'_>, id: &str) -> String {
    let taken = suite.preconditions();
    let Some((_, first)) = taken.first() else { return String::new() };
    let mut charts = charts(suite, id);
    let mut more = charts.split_off(charts.len().min(SHOWN));
    more.extend(media::charts(suite, id));
    more.extend(climate::charts(suite, id));
    more.extend(heatmap::charts(suite, id));
    let (title, lead) = (title(first), verdicts(&taken) + &die_failures::tables(&taken));
    let mut numbers = numbers(&taken) + &media::numbers(suite);
    if suite.is_brief {
        charts = charts.into_iter().map(|chart| chart.thinned(BRIEF_POINTS_MAX)).collect();
        more.clear();
        numbers.clear();
    }
    let (charts, more) = (charts.as_slice(), more.as_slice());
    Group { title: &title, lead: &lead, charts, more, numbers: &numbers }.html()
}

/// Throughput and the spread of latency against time, then every other metric, and reads and writes
/// apart where both happened.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let taken = suite.preconditions();
    let [throughput, others @ ..] = metrics(&taken);
    // Bands take three lines a run, and as much of a page as all other charts of the suite.
    let is_banded = taken.len() <= BANDED_MAX && !suite.is_brief;
    let spread = if is_banded { bands(&taken, id) } else { tails(&taken, id) };
    let mut charts = vec![over_time(&taken, throughput, EXPLAIN[0], id), spread];
    let others = others.into_iter().zip(&EXPLAIN[1..]);
    charts.extend(others.map(|(metric, explain)| match *explain {
        explain::MAXIMUM if has_listed_stalls(&taken) => {
            over_time(&taken, metric, explain::MAXIMUM_LISTED, id)
        }
        explain => over_time(&taken, metric, explain, id),
    }));
    if taken.iter().any(|(_, step)| step.summary.as_ref().is_some_and(is_mixed)) {
        charts.push(reads_and_writes(&taken, id));
    }
    charts
}

/// Median, 99th and 99.9th percentile of every interval, with the space between them filled.
fn bands(taken: &[RunStep<'_>], id: &str) -> Chart {
    let (x, secs) = time_axis(taken);
    let series = taken.iter().flat_map(|(subject, step)| {
        SPREAD.map(|(name, of)| {
            let points = points(step, secs, |sample| some_millis(of(&sample.summary.latency)));
            let name = format!("{}, {name}", subject.label);
            line(name, Look { dash: 0, ..Look::of_run(subject.index) }, points)
        })
    });
    let body = Body::Bands(series.collect(), windows(taken, secs));
    let title = "Latency, median to p99.9";
    Chart { title: title.into(), ..spread(taken, id, x, body) }
}

/// The 99.9th percentile of every interval, a line a run.
fn tails(taken: &[RunStep<'_>], id: &str) -> Chart {
    let (x, secs) = time_axis(taken);
    let of = |sample: &Sample| some_millis(sample.summary.latency.p999_ns());
    let series = taken.iter().map(|(subject, step)| {
        line(subject.label.clone(), Look::of_run(subject.index), points(step, secs, of))
    });
    let body = Body::Lines(series.collect(), windows(taken, secs));
    Chart { explain: explain::TAILS, ..spread(taken, id, x, body) }
}

fn some_millis(latency_ns: Option<u64>) -> Option<f64> {
    latency_ns.filter(|it| *it > 0).map(|it| millis(it as f64))
}

/// Returns a chart of latency percentiles over time that draws `body`.
fn spread(taken: &[RunStep<'_>], id: &str, x: Axis, body: Body) -> Chart {
    Chart {
        id: format!("{id}-time-spread"),
        title: "Latency, p99.9".into(),
        explain: explain::BANDS,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x,
        y: Axis::log("Latency", Unit::Millis),
        ends: Ends::Last,
        is_wide: false,
        body,
    }
}

fn title(step: &Step) -> String {
    let (threads, queue) = (step.threads, step.queue_per_thread);
    format!("Preconditioning with {}, T{threads}Q{queue}", step.workload)
}

/// The axis of protocol time that suits all of `taken`, and the seconds in its unit.
pub(super) fn time_axis(taken: &[RunStep<'_>]) -> (Axis, f64) {
    let ends = taken.iter().filter_map(|(_, step)| Some(step.samples.last()?.at_s));
    let (unit, secs) = Unit::of_span(ends.fold(0.0, f64::max));
    (Axis::linear("protocol time", unit), secs)
}

/// A number of every sample of `step` against time.
pub(super) fn points(step: &Step, secs: f64, of: impl Fn(&Sample) -> Option<f64>) -> Vec<Point> {
    step.samples.iter().filter_map(|sample| Some((sample.at_s / secs, of(sample)?))).collect()
}

fn over_time(taken: &[RunStep<'_>], metric: Metric, explain: &'static str, id: &str) -> Chart {
    let (x, secs) = time_axis(taken);
    let series = taken
        .iter()
        .flat_map(|(subject, step)| {
            let points = points(step, secs, |sample| (metric.of)(&sample.summary));
            let (listed, others): (Vec<Point>, Vec<Point>) =
                points.iter().partition(|it| metric.id == "max" && is_listed(subject, it));
            let look = Look::of_run(subject.index);
            let own = line(subject.label.clone(), look, others);
            let marks = Look { dash: Look::MARKS, ..look };
            let marks = line(format!("{}, listed stalls", subject.label), marks, listed);
            let failures = match metric.id {
                "max" => Vec::new(),
                _ => die_failures::marks((subject, step), secs, |it| (metric.of)(&it.summary)),
            };
            std::iter::once(own).chain((!marks.points.is_empty()).then_some(marks)).chain(failures)
        })
        .collect();
    Chart {
        id: format!("{id}-time-{}", metric.id),
        title: metric.title.into(),
        explain,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x,
        y: metric.axis(),
        ends: metric.ends(),
        is_wide: false,
        body: Body::Lines(series, windows(taken, secs)),
    }
}

fn reads_and_writes(taken: &[RunStep<'_>], id: &str) -> Chart {
    let (x, secs) = time_axis(taken);
    let one = |subject: &Subject<'_>, step: &Step, writes: bool| {
        let (name, look) = apart(subject, writes);
        let of = |sample: &Sample| {
            let Summary { read, write, .. } = &sample.summary;
            let latency = if writes { write } else { read };
            (latency.count > 0).then(|| millis(latency.latency_ns_avg))
        };
        line(name, look, points(step, secs, of))
    };
    let series: Vec<Series> = taken
        .iter()
        .flat_map(|(subject, step)| [false, true].map(|writes| one(subject, step, writes)))
        .collect();
    Chart {
        id: format!("{id}-time-apart"),
        title: "Average latency, reads and writes separately".into(),
        explain: explain::APART,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x,
        y: Axis::log("Average latency", Unit::Millis),
        ends: Ends::Last,
        is_wide: false,
        body: Body::Lines(series, Vec::new()),
    }
}

fn windows(taken: &[RunStep<'_>], secs: f64) -> Vec<Window> {
    let of = |(subject, step): &RunStep<'_>| {
        let steady = step.steady.as_ref()?;
        let rounds = steady.variables.first()?.rounds.len();
        Some(Window {
            tone: Look::of_run(subject.index).tone,
            from: (steady.at_s - steady.round_s * rounds as f64).max(0.0) / secs,
            to: steady.at_s / secs,
            achieved: steady.achieved,
        })
    };
    taken.iter().filter_map(of).collect()
}

/// One sentence a run: whether and when it reached steady state, and by how much it passed or
/// failed.
fn verdicts(taken: &[RunStep<'_>]) -> String {
    let mut html = String::from("<ul class=\"verdicts\">");
    for (subject, step) in taken {
        let _ = write!(
            html,
            "<li class=\"t{}\"><b>{}</b> {}</li>",
            Look::of_run(subject.index).tone,
            Text(&subject.label),
            Text(&verdict(step)),
        );
    }
    html + "</ul><p class=\"small\">The bars on top of the charts mark the judged window in the \
            colour of its run.</p>"
}

fn verdict(step: &Step) -> String {
    let Some(steady) = &step.steady else {
        return "was not judged: too few samples.".into();
    };
    let judged: Vec<String> = steady
        .variables
        .iter()
        .map(|variable| {
            let name = if variable.name == "iops" { "IOPS" } else { "average latency" };
            format!(
                "{name} range {} (limit {}), slope {} (limit {})",
                percent(variable.range),
                percent(RANGE_MAX),
                percent(variable.slope),
                percent(SLOPE_MAX),
            )
        })
        .collect();
    let judged = judged.join("; ");
    let (rounds, round, at) = (steady.rounds, span(steady.round_s), span(steady.at_s));
    if steady.achieved {
        format!("reached steady state after {at}, in round {rounds} of {round} each: {judged}.")
    } else if steady.evidence.is_some() {
        let written = step.written.map_or_else(String::new, |written| {
            format!(" ({} of what it addresses)", percent(written.addressed_share))
        });
        format!(
            "met the limits, but had written too little{written} for steady state: a burst. Last \
             window: {judged}."
        )
    } else {
        format!(
            "did not reach steady state in {rounds} rounds of {round} each; last window: {judged}."
        )
    }
}

fn numbers(taken: &[RunStep<'_>]) -> String {
    let mut html = String::new();
    for (subject, step) in taken.iter().filter(|(_, step)| !step.samples.is_empty()) {
        let stride = step.samples.len().div_ceil(ROWS_MAX);
        let _ = write!(
            html,
            "<h4>{}</h4><p class=\"small\">{} of {} intervals of {}.</p>",
            Text(&subject.label),
            if stride == 1 { "All".into() } else { format!("Every {stride}th") },
            step.samples.len(),
            span(step.interval_s),
        );
        let metrics = metrics(taken);
        let throughput = metrics[0].unit.symbol();
        let heads =
            ["Time", throughput, "Average, ms", "Maximum, ms", "Std. dev., ms", "p99.9, ms"];
        let rows = step.samples.iter().skip(stride - 1).step_by(stride).map(|sample| {
            let numbers = metrics.map(|metric| (metric.of)(&sample.summary));
            vec![
                span(sample.at_s),
                number::known(numbers[0]),
                number::known(numbers[1]),
                number::known(numbers[2]),
                number::known(numbers[3]),
                number::plain_millis(sample.summary.latency.p999_ns()),
            ]
        });
        html.push_str(&table(&heads.map(String::from), rows));
    }
    html
}
