//! One suite: preconditioning, primary test, percentiles, media.

mod applications;
mod climate;
mod heatmap;
mod load_curve;
mod media;
mod percentiles;
mod preconditioning;
mod primary;
mod rounds;

use std::fmt::Write as _;

use results::{Step, Summary};

use crate::chart::{Axis, Body, Chart, Ends, Look, Point, Series, Unit, Window, widened};
use crate::number::millis;
use crate::subject::{Part, Subject, Suite};
use crate::text::{Cell, Text, anchor};

/// A step with the run it belongs to.
pub(crate) type RunStep<'a> = (&'a Subject<'a>, &'a Step);

/// A number that is charted of a summary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// Name in identifiers.
    pub(crate) id: &'static str,
    /// Heading.
    pub(crate) title: &'static str,
    /// Its unit.
    pub(crate) unit: Unit,
    /// True if its values span decades, so that its axis is logarithmic.
    pub(crate) log: bool,
    /// The number itself; absent where it was not measured.
    pub(crate) of: fn(&Summary) -> Option<f64>,
}

/// Requests a second.
pub(crate) const RATE: Metric = Metric {
    id: "iops",
    title: "Throughput",
    unit: Unit::Iops,
    log: false,
    of: |it| Some(it.iops),
};
/// Bytes a second, where transfers are large.
pub(crate) const BANDWIDTH: Metric = Metric {
    id: "gb-s",
    title: "Throughput",
    unit: Unit::GigabytesPerSecond,
    log: false,
    of: |it| Some(it.throughput_mb_s() / 1e3),
};
/// Requests a second for each watt, where the power is known.
const EFFICIENCY: Metric = Metric {
    id: "iops-w",
    title: "IOPS per watt",
    unit: Unit::IopsPerWatt,
    log: false,
    of: Summary::iops_per_watt,
};

/// Latency metrics that reviews chart, in their order.
pub(crate) const LATENCIES: [Metric; 3] = [
    Metric {
        id: "avg",
        title: "Average latency",
        unit: Unit::Millis,
        log: false,
        of: |it| it.latency.mean_ns().map(millis),
    },
    Metric {
        id: "max",
        title: "Maximum latency",
        unit: Unit::Millis,
        log: true,
        of: |it| Some(millis(it.latency.max_ns()? as f64)),
    },
    Metric {
        id: "stdev",
        title: "Standard deviation of latency",
        unit: Unit::Millis,
        log: true,
        of: |it| it.latency.stdev_ns().map(millis),
    },
];

/// Throughput as it is read for `taken`: in GB/s where every transfer is large.
pub(crate) fn throughput(taken: &[RunStep<'_>]) -> Metric {
    let mut summaries = taken.iter().filter_map(|(_, step)| step.summary.as_ref()).peekable();
    let is_large = summaries.peek().is_some() && summaries.all(Summary::has_large_transfers);
    if is_large { BANDWIDTH } else { RATE }
}

/// Throughput and latencies of `taken`.
fn metrics(taken: &[RunStep<'_>]) -> [Metric; 4] {
    let [average, maximum, deviation] = LATENCIES;
    [throughput(taken), average, maximum, deviation]
}

/// True if the model of one of them lists stalls of its host: maxima come from the list.
fn has_listed_stalls(taken: &[RunStep<'_>]) -> bool {
    taken.iter().any(|(subject, _)| subject.run.target.host_stall_ms_max.is_some())
}

/// True if a stall that the file of the model lists makes this latency.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency")]
fn is_listed(subject: &Subject<'_>, (_, latency_ms): &Point) -> bool {
    subject.run.target.is_listed_stall((latency_ms * 1e6) as u64)
}

impl Metric {
    /// Returns the number for the end of its line over time: never the mean, which would include
    /// the burst.
    fn ends(self) -> Ends {
        if self.id == "max" { Ends::Maximum } else { Ends::Last }
    }

    /// The vertical axis of the metric.
    pub(crate) fn axis(self) -> Axis {
        if self.log {
            Axis::log(self.title, self.unit)
        } else {
            Axis { switchable: self.unit == Unit::Millis, ..Axis::linear(self.title, self.unit) }
        }
    }
}

/// The section of `suite`.
pub(crate) fn section(suite: &Suite<'_>) -> String {
    let id = anchor(suite.name);
    let mut html = format!("<section id=\"suite-{id}\"><h2>{}</h2>\n", Text(suite.title));
    html.push_str(&preconditioning::section(suite, &id));
    html.push_str(&rounds::section(suite, &id));
    html.push_str(&primary::section(suite, &id));
    html.push_str(&load_curve::section(suite, &id));
    html.push_str(&climate::section(suite, &id));
    html.push_str(&applications::section(suite, &id));
    let _ = write!(html, "<p class=\"provenance\">{}</p>", Text(&sources(suite)));
    html + "</section>\n"
}

/// Throughput over the first preconditioning of all; absent where none has samples to draw.
pub(crate) fn first_preconditioning(suites: &[Suite<'_>]) -> Option<Chart> {
    let charts = suites.iter().filter_map(|suite| {
        let chart = preconditioning::charts(suite, "glance").into_iter().next()?;
        let taken = suite.preconditions();
        let (_, step) = taken.first()?;
        let title = format!(
            "{} while {} was preconditioned, T{}Q{}",
            chart.title, step.workload, step.threads, step.queue_per_thread
        );
        Some(Chart { title, ..chart })
    });
    charts.into_iter().find(|chart| !chart.is_empty())
}

/// Every chart of `suite`, in the order of the page.
pub(crate) fn charts(suite: &Suite<'_>) -> Vec<Chart> {
    let id = anchor(suite.name);
    let parts: [fn(&Suite<'_>, &str) -> Vec<Chart>; 9] = [
        preconditioning::charts,
        heatmap::charts,
        media::charts,
        climate::charts,
        rounds::charts,
        primary::charts,
        percentiles::charts,
        load_curve::charts,
        applications::charts,
    ];
    parts.into_iter().flat_map(|of| of(suite, &id)).collect()
}

/// Returns a note on the sources of the numbers of `suite`.
fn sources(suite: &Suite<'_>) -> String {
    let of = |part: &Part<'_>| {
        let steps: Vec<&Step> = part
            .subject
            .run
            .steps
            .iter()
            .filter(|step| step.suite == suite.name && step.interval_s > 0.0)
            .collect();
        part.subject.provenance(&steps)
    };
    let all: Vec<String> = suite.parts.iter().map(of).collect();
    format!("Numbers of this section: {}", all.join(" "))
}

/// Charts that belong together.
#[derive(Clone, Copy, Debug, Default)]
struct Group<'a> {
    /// Its heading.
    title: &'a str,
    /// HTML above the charts.
    lead: &'a str,
    /// Charts that are always shown.
    charts: &'a [Chart],
    /// Further charts, folded until opened.
    more: &'a [Chart],
    /// Tables behind the charts, shown on asking.
    numbers: &'a str,
}

impl Group<'_> {
    /// The heading, the lead, the charts in a grid, and what is shown on asking; empty without
    /// charts.
    fn html(&self) -> String {
        let shown: Vec<&Chart> = self.charts.iter().filter(|chart| !chart.is_empty()).collect();
        let more: Vec<&Chart> = self.more.iter().filter(|chart| !chart.is_empty()).collect();
        if shown.is_empty() && more.is_empty() {
            return String::new();
        }
        let mut html = format!(
            "<div class=\"group\"><h3>{}</h3>\n{}{}",
            Text(self.title),
            self.lead,
            self.cautions()
        );
        let is_common = has_common_legend(&shown);
        if is_common {
            html.push_str(&shown.first().map_or(String::new(), |chart| chart.legend()));
        }
        let figures: String = shown.iter().map(|chart| chart.figure(is_common)).collect();
        if !figures.is_empty() {
            let _ = write!(html, "<div class=\"charts\">{figures}</div>");
        }
        html.push_str(&folded(&more));
        if !self.numbers.is_empty() {
            let _ =
                write!(html, "<details><summary>The numbers</summary>{}</details>", self.numbers);
        }
        html + "</div>"
    }

    /// Returns the cautions of all its charts, each once.
    fn cautions(&self) -> String {
        let mut all: Vec<&String> =
            self.charts.iter().chain(self.more).flat_map(|chart| &chart.cautions).collect();
        all.sort();
        all.dedup();
        let mut html = String::new();
        for text in all {
            let _ = write!(html, "<p class=\"caution\">{}</p>", Text(text));
        }
        html
    }
}

/// True if `charts` all show the same series, so that one legend is enough.
fn has_common_legend(charts: &[&Chart]) -> bool {
    let [first, others @ ..] = charts else { return false };
    let names = |chart: &Chart| -> Vec<(String, usize)> {
        chart.names().into_iter().map(|(name, look)| (name.to_owned(), look.tone)).collect()
    };
    !others.is_empty() && others.iter().all(|chart| names(chart) == names(first))
}

/// Charts behind a line that names them; empty without any.
fn folded(charts: &[&Chart]) -> String {
    if charts.is_empty() {
        return String::new();
    }
    let mut names: Vec<String> = Vec::new();
    for chart in charts {
        let name = chart.title.split(',').next().unwrap_or_default();
        // `IOPS` stays as it is.
        let name = if name.starts_with("IOPS") { name.into() } else { name.to_lowercase() };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let figures: String = charts.iter().map(|chart| chart.figure(false)).collect();
    format!(
        "<details class=\"more\"><summary>{} more chart{}: {}</summary>\
         <div class=\"charts\">{figures}</div></details>",
        charts.len(),
        if charts.len() == 1 { "" } else { "s" },
        Text(&names.join(", ")),
    )
}

/// Provenance of every run in `taken`, one line each.
fn provenance(taken: &[RunStep<'_>]) -> Vec<String> {
    by_subject(taken).iter().map(|(subject, steps)| subject.provenance(steps)).collect()
}

/// Warnings about any step in `taken`.
fn cautions(taken: &[RunStep<'_>]) -> Vec<String> {
    by_subject(taken).iter().flat_map(|(subject, steps)| subject.cautions(steps)).collect()
}

fn by_subject<'a>(taken: &[RunStep<'a>]) -> Vec<(&'a Subject<'a>, Vec<&'a Step>)> {
    let mut groups: Vec<(&Subject<'_>, Vec<&Step>)> = Vec::new();
    for (subject, step) in taken {
        match groups.iter_mut().find(|(other, _)| other.index == subject.index) {
            Some((_, steps)) => steps.push(step),
            None => groups.push((subject, vec![step])),
        }
    }
    groups
}

/// A table of numbers: heads, then rows of cells of which the first is a name.
fn table(heads: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
    for head in heads {
        let _ = write!(html, "<th scope=\"col\">{}</th>", Text(head));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let _ = match index {
                0 => write!(html, "<th scope=\"row\">{}</th>", Text(cell)),
                _ => write!(html, "<td>{}</td>", Cell(cell)),
            };
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}

/// True if a suite mixes reads and writes, so that charts of each are informative.
fn is_mixed(summary: &Summary) -> bool {
    summary.read.count > 0 && summary.write.count > 0
}

/// Reads solid, writes dashed, in the colour of the run.
fn apart(subject: &Subject<'_>, writes: bool) -> (String, Look) {
    let name = format!("{}, {}", subject.label, if writes { "writes" } else { "reads" });
    (name, Look { dash: usize::from(writes), ..Look::of_run(subject.index) })
}

/// A line for `name`, without labels.
fn line(name: String, look: Look, points: Vec<Point>) -> Series {
    Series { name, look, points, errors: Vec::new(), labels: Vec::new() }
}
