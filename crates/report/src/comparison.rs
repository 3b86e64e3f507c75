//! Runs against each other: bars, winners by a stated rule, ratios to the first with their
//! confidence, places, and, where models and measurements meet, by how much the model misses.

use std::fmt::Write as _;

use results::compare::{Comparison, compare};
use results::deviation::{Deviation, deviations, median_size};
use results::mark::marked;
use results::repeats::{Against, Ratio, against_first, groups};
use results::{Run, StepKind, Summary};

use crate::chart::{Axis, Bar, Bars, Body, Chart, Ends, Look, Unit};
use crate::conditions;
use crate::explain;
use crate::host_difference;
use crate::number::{self, millis};
use crate::order;
use crate::subject::Subject;
use crate::summary::representative;
use crate::text::{Text, listed};

/// The section; empty where there is one run.
pub(crate) fn section(subjects: &[Subject<'_>]) -> String {
    if subjects.len() < 2 {
        return String::new();
    }
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let comparisons = compare(&runs);
    let groups = groups(&runs);
    let mut html = String::from("<section id=\"comparison\"><h2>Comparison</h2>\n");
    let drawn = conditions::side_by_side(subjects);
    for (at, group) in drawn.iter().enumerate() {
        html.push_str(&bars(group, at));
    }
    html.push_str(&not_drawn(subjects, &drawn));
    html.push_str(&host_difference::sections(subjects));
    html.push_str(&orders_of(subjects));
    html.push_str(&ratios(subjects, &comparisons, &groups));
    html.push_str(&errors(subjects, &deviations(&runs, &comparisons)));
    html + "</section>\n"
}

/// Numbers that runs are set side by side by: name, heading, unit, the number itself.
type Measure = (&'static str, &'static str, Unit, fn(&Summary) -> Option<f64>);

const MEASURES: [Measure; 2] = [
    ("iops", "Throughput", Unit::Iops, |it| Some(it.iops)),
    ("tail", "p99.9 latency", Unit::Millis, |it| Some(millis(it.latency.p999_ns()? as f64))),
];

/// Grouped bars of each workload at the load that stands for it, with the names of the runs once:
/// those of the runs that may stand side by side, the group numbered `at`.
fn bars(subjects: &[Subject<'_>], at: usize) -> String {
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let all = compare(&runs);
    let mut loads = representative(&all);
    loads.retain(|load| load.entries.iter().flatten().count() > 1);
    let of = |(id, title, unit, of): Measure| {
        let groups = loads.iter().map(|load| {
            let entries = subjects.iter().zip(&load.entries);
            let bars = entries.filter_map(|(subject, entry)| {
                let entry = entry.as_ref().filter(|entry| entry.is_whole())?;
                Some(Bar {
                    name: subject.label.clone(),
                    tone: Look::of_run(subject.index).tone,
                    value: of(&entry.summary)?,
                })
            });
            Bars {
                label: format!("{}, T{}Q{}", load.workload, load.threads, load.queue_per_thread),
                bars: bars.collect(),
            }
        });
        Chart {
            id: if at == 0 { format!("compare-{id}") } else { format!("compare-{id}-{at}") },
            title: title.into(),
            explain: explain::BARS,
            provenance: subjects.iter().map(|it| it.provenance(&[])).collect(),
            cautions: Vec::new(),
            x: Axis::loads(Vec::new()),
            y: Axis::linear(title, unit),
            ends: Ends::Last,
            is_wide: false,
            body: Body::Bars(groups.collect()),
        }
    };
    let charts = MEASURES.map(of);
    let legend = charts[0].legend();
    let figures: String = charts.iter().map(|chart| chart.figure(true)).collect();
    let withheld = withheld(subjects, &loads);
    format!("<div class=\"group\">{legend}<div class=\"charts\">{figures}</div>{withheld}</div>")
}

/// Returns a sentence on the runs without a bar in one of `loads`; empty without any.
fn withheld(subjects: &[Subject<'_>], loads: &[&Comparison]) -> String {
    let mut said = Vec::new();
    for load in loads {
        let entries = subjects.iter().zip(&load.entries);
        let lacking = entries.filter(|(_, it)| it.as_ref().is_some_and(|it| !it.is_whole()));
        let labels: Vec<String> = lacking.map(|(subject, _)| subject.label.clone()).collect();
        if !labels.is_empty() {
            said.push(format!("{} in {}", listed(&labels), load.workload));
        }
    }
    if said.is_empty() {
        return String::new();
    }
    let said = said.join("; ");
    format!(
        "<p class=\"small\">Without a bar: {}, whose figures a warning withholds.</p>",
        Text(&said),
    )
}

/// Returns a sentence on the runs in none of the `drawn` groups; empty without a group.
fn not_drawn(subjects: &[Subject<'_>], drawn: &[Vec<Subject<'_>>]) -> String {
    let is_drawn = |of: &&Subject<'_>| drawn.iter().flatten().any(|it| it.index == of.index);
    let others = subjects.iter().filter(|it| !is_drawn(it)).map(|it| it.label.clone());
    let others: Vec<String> = others.collect();
    if drawn.is_empty() || others.is_empty() {
        return String::new();
    }
    let (others, unlike) = (listed(&others), conditions::unlike(subjects));
    let unlike = if unlike.is_empty() { "the conditions of their loads" } else { &unlike };
    format!("<p>Not drawn beside them: {}, which differ in {}.</p>", Text(&others), Text(unlike))
}

/// Returns the name of a group of repeats: the label of a single run, or the target and the number
/// of runs.
pub(crate) fn named(subjects: &[Subject<'_>], group: &[usize]) -> String {
    let first = &subjects[group[0]];
    match group.len() {
        1 => first.label.clone(),
        count => {
            let run = first.run;
            let name = format!("{} {}", run.target.title, run.target.format);
            let name = marked(name.trim_end(), run.target.unvalidated);
            format!("{name}, {count} runs")
        }
    }
}

fn head(subjects: &[Subject<'_>], group: &[usize]) -> String {
    let tone = Look::of_run(subjects[group[0]].index).tone;
    let name = named(subjects, group);
    format!("<th scope=\"col\" class=\"t{tone}\"><i class=\"key\"></i>{}</th>", Text(&name))
}

fn ratios(subjects: &[Subject<'_>], all: &[Comparison], groups: &[Vec<usize>]) -> String {
    let [first, others @ ..] = groups else { return String::new() };
    if others.is_empty() {
        return spread(subjects, first, all);
    }
    let rows = against_first(all, groups);
    let has_ratio = |row: &Against| row.groups.iter().skip(1).any(Option::is_some);
    if !rows.iter().any(has_ratio) {
        return String::new();
    }
    let mut html = format!(
        "<h3>Against {}</h3><div class=\"scroll\"><table class=\"ratios\"><thead><tr>\
         <th scope=\"col\">Workload</th>",
        Text(&named(subjects, first)),
    );
    for group in others {
        html.push_str(&head(subjects, group));
        html.push_str("<th scope=\"col\">average latency</th>");
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", Text(&row.workload));
        for pair in row.groups.iter().skip(1) {
            let cell = |ratio: Option<Ratio>| ratio.map_or("<td>–</td>".into(), shown);
            html.push_str(&cell(pair.map(|pair| pair.iops)));
            html.push_str(&cell(pair.map(|pair| pair.latency)));
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div><p class=\"small\">IOPS and average latency as multiples of \
            those of the first, geometric means over the loads that both measured. In brackets is \
            the interval of 95 % confidence: from repeats where both sides have any \
            (<code>--repeat</code>), else from consecutive parts of each measurement; a ratio \
            without one does not account for chance. Even: less than 5 % apart, or within the \
            interval.</p>"
}

fn shown(ratio: Ratio) -> String {
    // Few repeats far apart give one that says nothing.
    let interval = ratio.interval.filter(|it| it.low > 0.0).map_or(String::new(), |it| {
        let (low, high) = (number::trimmed(it.low), number::trimmed(it.high));
        format!("<span class=\"interval\">({low} to {high})</span>")
    });
    let told = if ratio.is_meaningful() { "ratio" } else { "ratio even" };
    let even = if ratio.is_meaningful() { "" } else { " <span class=\"interval\">even</span>" };
    let mean = number::trimmed(ratio.mean);
    format!("<td><span class=\"{told}\">{mean}×</span>{even}{interval}</td>")
}

/// Repeats of one target alone: how far apart they lie.
fn spread(subjects: &[Subject<'_>], group: &[usize], all: &[Comparison]) -> String {
    let mut html = format!(
        "<h3>{}: spread of the repeats</h3><div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">Workload</th><th scope=\"col\">Load</th>\
         <th scope=\"col\">lowest IOPS</th><th scope=\"col\">highest IOPS</th>\
         <th scope=\"col\">range</th></tr></thead><tbody>",
        Text(&named(subjects, group)),
    );
    for load in all.iter().filter(|load| load.kind == StepKind::Measure) {
        let iops = || load.entries.iter().flatten().map(|entry| entry.summary.iops);
        let (low, high) = (iops().fold(f64::INFINITY, f64::min), iops().fold(0.0, f64::max));
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>T{}Q{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            Text(&load.workload),
            load.threads,
            load.queue_per_thread,
            number::whole(low),
            number::whole(high),
            number::percent((high - low) / low),
        );
    }
    html + "</tbody></table></div>"
}

/// The order of each group of runs that differ in no condition, and a sentence on the others.
fn orders_of(subjects: &[Subject<'_>]) -> String {
    let alike = conditions::alike(subjects);
    let mut html: String = alike.iter().map(|members| order::section(members)).collect();
    if alike.iter().all(|members| members.len() < subjects.len()) {
        let unlike = conditions::unlike(subjects);
        let _ = write!(
            html,
            "<p>Runs that differ in {} are not put in order.</p>",
            Text(if unlike.is_empty() { "the conditions of their loads" } else { &unlike }),
        );
    }
    html
}

fn errors(subjects: &[Subject<'_>], all: &[Deviation]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let median = |of: fn(&Deviation) -> f64| {
        median_size(all.iter().map(of)).map_or("–".into(), number::percent)
    };
    let mut html = format!(
        "<h3>Model against measurement</h3><p>Median error of the model: {} in IOPS, {} in \
         average latency.</p><div class=\"scroll\"><table><thead><tr><th \
         scope=\"col\">Load</th><th scope=\"col\">Model</th><th scope=\"col\">Measurement</th><th \
         scope=\"col\">IOPS off by</th><th scope=\"col\">average latency off \
         by</th></tr></thead><tbody>",
        median(|it| it.iops),
        median(|it| it.latency),
    );
    for it in all {
        let settled = if it.kind == StepKind::Precondition { ", last window" } else { "" };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{} T{}Q{}{settled}</th><td class=\"prose\">{}</td>\
             <td class=\"prose\">{}</td><td>{}</td><td>{}</td></tr>",
            Text(&it.workload),
            it.threads,
            it.queue_per_thread,
            Text(&subjects[it.model].label),
            Text(&subjects[it.real].label),
            signed(it.iops),
            signed(it.latency),
        );
    }
    html + "</tbody></table></div>"
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", number::percent(share.abs()))
}

#[cfg(test)]
mod tests {
    use results::{ConfidenceInterval, IntervalKind};

    use super::*;

    #[test]
    fn an_interval_of_a_ratio_that_reaches_zero_is_not_shown() {
        let of = |low: f64| {
            let interval = ConfidenceInterval::new(IntervalKind::Repeats, low, 3.0);
            shown(Ratio { mean: 1.2, interval: Some(interval) })
        };
        assert!(of(0.4).contains("(0.4 to 3)"), "{}", of(0.4));
        assert!(!of(-0.4).contains(" to ") && of(-0.4).contains("1.2×"), "{}", of(-0.4));
    }
}
