//! Applications: transactions a second and their latency, over clients, as reviews draw them.

use results::{ApplicationFigures, ApplicationInterval, Step, TransactionMix};

use super::group::{Group, table};
use super::metric::RunStep;
use super::steps::{cautions, line, provenance};
use crate::chart::{Axis, Body, Chart, Ends, Look, Point, Series, Unit};
use crate::chart::{Bar, Bars};
use crate::explain;
use crate::number;
use crate::subject::{Subject, Suite};
use crate::text::{Text, anchor};

/// The replays of one application, by run.
type ReplaysByRun<'a> = Vec<(&'a Subject<'a>, Vec<(&'a Step, &'a ApplicationFigures)>)>;

/// The replays of `suite`.
pub(super) fn section(suite: &Suite<'_>, id: &str) -> String {
    let replayed = replayed(suite);
    let taken = taken(&replayed);
    let Some((_, figures)) = replayed.iter().find_map(|(_, steps)| steps.first()) else {
        return String::new();
    };
    let lead = lead(figures);
    let numbers = numbers(&replayed);
    let mut charts = charts(suite, id);
    // The first question to a comparison is the rate of each drive.
    let more = if taken.len() > 1 { charts.split_off(4.min(charts.len())) } else { Vec::new() };
    // Few rows, and the refusals are in them: they are shown and not folded.
    let group = Group {
        title: "Transactions",
        lead: &lead,
        charts: &charts,
        more: &more,
        ..Group::default()
    };
    let shown = group.html();
    if shown.is_empty() {
        // Too few clients for a line: the numbers stand alone.
        return format!("<div class=\"group\"><h3>Transactions</h3>\n{lead}{numbers}</div>");
    }
    format!("{shown}<div class=\"group\">{numbers}</div>")
}

/// Every chart of them.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let replayed = replayed(suite);
    if replayed.is_empty() {
        return Vec::new();
    }
    if replayed.iter().any(|(_, steps)| steps.iter().any(|(_, it)| it.node.is_some())) {
        return over_time(&replayed, id);
    }
    let rate: [Line; 1] = [("", 0, |it| it.tps)];
    let latency: [Line; 2] =
        [(", average", 0, |it| it.latency_ms_mean), (", p99", 2, |it| it.latency_ms_p99)];
    let host: [Line; 1] = [("", 0, |it| Some(it.host_share))];
    let titles = [
        ("tps", "Transactions per second", Unit::Plain),
        ("latency", "Latency", Unit::Millis),
        ("host", "Share of the host", Unit::Share),
    ];
    let explains = [explain::TRANSACTIONS, explain::TRANSACTION_LATENCY, explain::HOST_SHARE];
    let lines: [&[Line]; 3] = [&rate, &latency, &host];
    let mut charts: Vec<Chart> = titles
        .into_iter()
        .zip(explains)
        .zip(lines)
        .map(|((title, explain), lines)| over_clients(&replayed, (title, explain), lines, id))
        .collect();
    if replayed.len() > 1 {
        // Before the share of the host: a comparison asks for rates.
        charts.insert(2, bars(&replayed, id));
    }
    charts
}

/// Rate and mean latency of each of several drives with one load each, interval by interval.
fn over_time(replayed: &ReplaysByRun<'_>, id: &str) -> Vec<Chart> {
    let all = || replayed.iter().flat_map(|(_, steps)| steps).map(|(_, it)| *it);
    let end_s = all().filter_map(|it| it.intervals.last()).map(|it| it.at_s).fold(0.0, f64::max);
    let (span, each_s) = Unit::of_span(end_s);
    let taken = taken(replayed);
    let lines: [TimeLine; 2] = [
        ("latency-time", "Average latency over time", Unit::Millis, explain::NODE_LATENCY, |it| {
            it.latency_ms_mean
        }),
        ("tps-time", "Transactions per second over time", Unit::Plain, explain::NODE_RATE, |it| {
            Some(it.tps)
        }),
    ];
    let chart = |(name, title, unit, explain, of): TimeLine| {
        let mut series: Vec<Series> = Vec::new();
        for (subject, steps) in replayed {
            for (dash, (_, it)) in steps.iter().enumerate() {
                let point = |it: &ApplicationInterval| Some((it.at_s / each_s, of(it)?));
                let points: Vec<Point> = it.intervals.iter().filter_map(point).collect();
                if let (Some(node), false) = (it.node, points.is_empty()) {
                    let look = Look { dash: dash % DASHES, ..Look::of_run(subject.index) };
                    series.push(line(format!("{}, drive {node}", subject.label), look, points));
                }
            }
        }
        Chart {
            id: format!("{id}-{}", anchor(name)),
            title: title.into(),
            explain,
            provenance: provenance(&taken),
            cautions: cautions(&taken),
            x: Axis::linear("time", span),
            y: Axis { domain: Some((0.0, highest(&series))), ..Axis::linear(title, unit) },
            ends: Ends::Mean,
            is_wide: true,
            body: Body::Lines(series, Vec::new()),
        }
    };
    lines.map(chart).into_iter().filter(|chart| !chart.is_empty()).collect()
}

/// Name of a chart over time, its heading, unit and explanation, and the number that it shows.
type TimeLine =
    (&'static str, &'static str, Unit, &'static str, fn(&ApplicationInterval) -> Option<f64>);

/// Dash patterns that lines of one run may have.
const DASHES: usize = 4;

/// End of a line's name, its dash pattern, and the number that it shows.
type Line = (&'static str, usize, fn(&ApplicationFigures) -> Option<f64>);

fn over_clients(
    replayed: &ReplaysByRun<'_>,
    ((name, title, unit), explain): ((&str, &'static str, Unit), &'static str),
    lines: &[Line],
    id: &str,
) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    for (subject, steps) in replayed {
        for (suffix, dash, of) in lines {
            let point = |(step, it): &(&Step, &ApplicationFigures)| {
                Some((f64::from(step.threads), of(it)?))
            };
            let points: Vec<Point> = steps.iter().filter_map(point).collect();
            if !points.is_empty() {
                let look = Look { dash: *dash, ..Look::of_run(subject.index) };
                series.push(line(format!("{}{suffix}", subject.label), look, points));
            }
        }
    }
    let taken = taken(replayed);
    Chart {
        id: format!("{id}-{}", anchor(name)),
        title: title.into(),
        explain,
        provenance: provenance(&taken),
        cautions: cautions(&taken),
        x: Axis::depths("clients"),
        y: match unit {
            Unit::Millis => Axis::log(title, unit),
            Unit::Share => Axis { domain: Some((0.0, 1.0)), ..Axis::linear(title, unit) },
            _ => Axis { domain: Some((0.0, highest(&series))), ..Axis::linear(title, unit) },
        },
        ends: Ends::Last,
        is_wide: false,
        body: Body::Lines(series, Vec::new()),
    }
}

fn highest(series: &[Series]) -> f64 {
    let values = series.iter().flat_map(|it| &it.points).map(|(_, value)| *value);
    values.fold(0.0, f64::max)
}

/// Rates of the drives beside each other, for each number of clients.
fn bars(replayed: &ReplaysByRun<'_>, id: &str) -> Chart {
    let mut clients: Vec<u16> =
        replayed.iter().flat_map(|(_, steps)| steps).map(|(step, _)| step.threads).collect();
    clients.sort_unstable();
    clients.dedup();
    let group = |threads: u16| {
        let bar = |(subject, steps): &(&Subject<'_>, Vec<(&Step, &ApplicationFigures)>)| {
            let (_, figures) = steps.iter().find(|(step, _)| step.threads == threads)?;
            let tone = Look::of_run(subject.index).tone;
            Some(Bar { name: subject.label.clone(), tone, value: figures.tps? })
        };
        let bars: Vec<Bar> = replayed.iter().filter_map(bar).collect();
        (!bars.is_empty()).then(|| Bars { label: format!("{threads} clients"), bars })
    };
    let taken = taken(replayed);
    Chart {
        id: format!("{id}-tps-bars"),
        title: "Transactions per second, side by side".into(),
        explain: explain::BARS,
        provenance: provenance(&taken),
        cautions: cautions(&taken),
        x: Axis::loads(Vec::new()),
        y: Axis::linear("Transactions per second", Unit::Plain),
        ends: Ends::Last,
        is_wide: false,
        body: Body::Bars(clients.into_iter().filter_map(group).collect()),
    }
}

/// Replays of each run that has any.
fn replayed<'a>(suite: &Suite<'a>) -> ReplaysByRun<'a> {
    let of = |step: &&'a Step| Some((*step, step.application.as_ref()?));
    let parts = suite.parts.iter();
    let parts = parts.map(|part| (part.subject, part.applications.iter().filter_map(of).collect()));
    parts.filter(|(_, steps): &(_, Vec<_>)| !steps.is_empty()).collect()
}

fn taken<'a>(replayed: &ReplaysByRun<'a>) -> Vec<RunStep<'a>> {
    let each = replayed.iter();
    each.flat_map(|(subject, steps)| steps.iter().map(|(step, _)| (*subject, *step))).collect()
}

/// Origin of the recordings, and meaning of the marks in the numbers.
fn lead(figures: &ApplicationFigures) -> String {
    let recorded = &figures.recorded;
    let times = recorded.model.as_ref().map_or_else(String::new, |model| {
        // A drive file is named by its path.
        let name = model.rsplit('/').next().unwrap_or(model);
        let name = name.strip_suffix(".toml").unwrap_or(name);
        format!(", whose replies had the latencies of the model {name}")
    });
    let text = format!(
        "Predicted, not measured: {} was recorded on {}{times}, on a machine with {}. Its \
         requests are replayed on the model, each when its parent request has completed and its \
         think time has passed; think times share the processors of that machine. Host is the \
         share of think times in the critical path; above 80 %, the host is the limit and no rate \
         is predicted.",
        figures.title, recorded.device, recorded.machine
    );
    format!("<p>{}{}</p>", Text(&text), Text(&mix(figures)))
}

/// Requests of a transaction in words; empty if the benchmark counted no transactions.
fn mix(figures: &ApplicationFigures) -> String {
    let Some(TransactionMix { reads, writes, flushes, read_bytes, write_bytes }) = figures.mix
    else {
        return String::new();
    };
    let kib = |bytes: f64| number::plain(bytes / 1024.0);
    format!(
        " In the first of these recordings a transaction makes {} reads ({} KiB in total), {} \
         writes ({} KiB in total) and {} flushes, including writes with FUA.",
        number::plain(reads),
        kib(read_bytes),
        number::plain(writes),
        kib(write_bytes),
        number::plain(flushes)
    )
}

fn numbers(replayed: &ReplaysByRun<'_>) -> String {
    let is_of_nodes = replayed.iter().any(|(_, all)| all.iter().any(|(_, it)| it.node.is_some()));
    let heads = [
        "Run",
        if is_of_nodes { "Drive" } else { "Clients" },
        "Transactions/s",
        "Average, ms",
        "p99, ms",
        "Host",
        "Read average, ms",
        "Write average, ms",
        "Recorded transactions/s",
    ];
    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number::plain);
    let row = |(subject, (step, it)): (&Subject<'_>, &(&Step, &ApplicationFigures))| {
        let of = |latency: fn(&results::Summary) -> &results::LatencySummary| {
            let latency = latency(step.summary.as_ref()?);
            (latency.count > 0).then_some(latency.latency_ns_avg / 1e6)
        };
        vec![
            subject.label.clone(),
            it.node.unwrap_or(step.threads).to_string(),
            format!("{}{}", shown(it.tps), if has_pause(it) { " †" } else { "" }),
            shown(it.latency_ms_mean),
            shown(it.latency_ms_p99),
            format!("{:.0} %", it.host_share * 100.0),
            shown(of(|it| &it.read)),
            shown(of(|it| &it.write)),
            shown(it.recorded.tps),
        ]
    };
    let rows = replayed.iter().flat_map(|(subject, steps)| {
        steps.iter().map(move |step| row((subject, step))).collect::<Vec<_>>()
    });
    let all = replayed.iter().flat_map(|(_, steps)| steps).map(|(_, it)| *it);
    let shares = all.filter(|it| has_pause(it)).filter_map(|it| it.recorded.pause_share);
    let note = shares.reduce(f64::max).map_or_else(String::new, paused);
    table(&heads.map(String::from), rows) + &note
}

/// True if the rate of `figures` was predicted from a recording with a long pause.
fn has_pause(figures: &ApplicationFigures) -> bool {
    figures.tps.is_some() && figures.recorded.pause_share.is_some()
}

/// Note below a table with a rate that was predicted from a recording with a pause of this `share`.
fn paused(share: f64) -> String {
    format!(
        "<p class=\"small\">† In the recording all clients paused at once, with no request \
         outstanding, for {:.0} % of the time. The prediction includes this pause: the rate is \
         lower and the 99th percentile higher than without it. Record again to predict without \
         it.</p>",
        share * 100.0
    )
}
