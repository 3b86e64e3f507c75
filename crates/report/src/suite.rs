//! One suite: preconditioning, primary test, percentiles, media.

mod climate;
mod heat;
mod load_curve;
mod media;
mod percentiles;
mod preconditioning;
mod primary;
mod rounds;

use std::fmt::Write as _;

use results::{Step, Summary};

use crate::chart::{Axis, Body, Chart, Look, Point, Series, Unit, Window, widened};
use crate::number::millis;
use crate::subject::{Part, Subject, Suite};
use crate::text::{Text, anchor};

/// A step with the run it belongs to.
pub(crate) type Taken<'a> = (&'a Subject<'a>, &'a Step);

/// A number that is charted of a summary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// Name in identifiers.
    pub(crate) id: &'static str,
    /// Heading.
    pub(crate) title: &'static str,
    /// Its unit.
    pub(crate) unit: Unit,
    /// Whether its values spread over decades.
    pub(crate) log: bool,
    /// The number itself.
    pub(crate) of: fn(&Summary) -> f64,
}

/// What reviews chart, in their order.
pub(crate) const METRICS: [Metric; 4] = [
    Metric { id: "iops", title: "Throughput", unit: Unit::Iops, log: false, of: |it| it.iops },
    Metric {
        id: "avg",
        title: "Average latency",
        unit: Unit::Millis,
        log: false,
        of: |it| millis(it.latency.latency_ns_avg),
    },
    Metric {
        id: "max",
        title: "Maximum latency",
        unit: Unit::Millis,
        log: true,
        of: |it| millis(it.latency.latency_ns_max as f64),
    },
    Metric {
        id: "stdev",
        title: "Standard deviation of latency",
        unit: Unit::Millis,
        log: true,
        of: |it| millis(it.latency_ns_stdev_reviewed()),
    },
];

impl Metric {
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
    html.push_str(&group("Latency over time", "", &heat::charts(suite, &id), ""));
    html.push_str(&media::section(suite, &id));
    html.push_str(&group("Power and heat", "", &climate::charts(suite, &id), ""));
    html.push_str(&rounds::section(suite, &id));
    html.push_str(&primary::section(suite, &id));
    html.push_str(&load_curve::section(suite, &id));
    html.push_str(&percentiles::section(suite, &id));
    html + "</section>\n"
}

/// Every chart of `suite`, in the order of the page.
pub(crate) fn charts(suite: &Suite<'_>) -> Vec<Chart> {
    let id = anchor(suite.name);
    let parts: [fn(&Suite<'_>, &str) -> Vec<Chart>; 8] = [
        preconditioning::charts,
        heat::charts,
        media::charts,
        climate::charts,
        rounds::charts,
        primary::charts,
        load_curve::charts,
        percentiles::charts,
    ];
    parts.into_iter().flat_map(|of| of(suite, &id)).collect()
}

/// A heading, a lead, charts in a grid, and the numbers behind them; empty without charts.
fn group(title: &str, lead: &str, charts: &[Chart], numbers: &str) -> String {
    let figures: String = charts.iter().map(Chart::figure).collect();
    if figures.is_empty() {
        return String::new();
    }
    let mut html = format!("<h3>{}</h3>\n{lead}<div class=\"charts\">{figures}</div>", Text(title));
    if !numbers.is_empty() {
        let _ = write!(html, "<details><summary>The numbers</summary>{numbers}</details>");
    }
    html
}

/// Provenance of every run in `taken`, one line each.
fn provenance(taken: &[Taken<'_>]) -> Vec<String> {
    by_subject(taken).iter().map(|(subject, steps)| subject.provenance(steps)).collect()
}

/// Warnings about any step in `taken`.
fn cautions(taken: &[Taken<'_>]) -> Vec<String> {
    by_subject(taken).iter().flat_map(|(subject, steps)| subject.cautions(steps)).collect()
}

fn by_subject<'a>(taken: &[Taken<'a>]) -> Vec<(&'a Subject<'a>, Vec<&'a Step>)> {
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
                _ => write!(html, "<td>{}</td>", Text(cell)),
            };
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}

/// Whether a suite mixes reads and writes, so that telling them apart informs.
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
    Series { name, look, points, labels: Vec::new() }
}
