//! The summary: what every run reached at the end of each preconditioning, and at its greatest
//! load.

pub(crate) mod applications;
mod devices;
mod host_cost;
mod price;
mod snia;

use std::fmt::Write as _;

use results::baseline::Headline;
use results::compare::{Comparison, Entry, compare};
use results::conditions::weight;
use results::headlines::contradiction;
use results::{ConfidenceInterval, Doubt, Run, Step, StepKind};

use crate::chance::{beside_millis, origin};
use crate::chart::Look;
use crate::number;
use crate::number::drive_writes;
use crate::subject::{Subject, Suite, workload_of};
use crate::text::{Cell, Text};

const HEADS: [&str; 8] = ["Run", "IOPS", "MB/s", "Average", "p99.9", "Maximum", "Std. dev.", "WA"];
/// Headings of how a preconditioning ended: when it was in steady state, and what was written.
const STEADY_HEADS: [&str; 2] = ["Steady state after", "Drive writes"];
/// Heading of the processor time that a request takes of the host.
const HOST_HEAD: &str = "Host CPU";

/// The section: preconditionings, then primary tests.
pub(crate) fn section(subjects: &[Subject<'_>], suites: &[Suite<'_>]) -> String {
    let runs: Vec<_> = subjects.iter().map(|subject| subject.run).collect();
    let comparisons = compare(&runs);
    let settled: Vec<&Comparison> =
        comparisons.iter().filter(|it| it.kind == StepKind::Precondition).collect();
    let mut html = String::from("<section id=\"summary\"><h2>Summary</h2>\n");
    html.push_str(&table(subjects, "The last five rounds of each preconditioning", &settled, true));
    html.push_str(&primary_of(subjects, &comparisons));
    html.push_str(&applications::part(subjects));
    html.push_str(&devices::part(subjects));
    html.push_str(&host_cost::part(subjects, &representative(&comparisons)));
    html.push_str(&price::part(subjects));
    html.push_str(&snia::section(suites));
    html + "</section>\n"
}

/// The table of the primary test.
pub(crate) fn primary(subjects: &[Subject<'_>]) -> String {
    let runs: Vec<_> = subjects.iter().map(|subject| subject.run).collect();
    format!("<section id=\"summary\">{}</section>\n", primary_of(subjects, &compare(&runs)))
}

fn primary_of(subjects: &[Subject<'_>], comparisons: &[Comparison]) -> String {
    let title = "Primary test: each workload at T16Q16, else at its greatest load";
    table(subjects, title, &shown(comparisons), false)
}

/// Of every workload that was measured, the comparison of the most runs; of these the one at the
/// load that stands for the workload.
pub(crate) fn representative(comparisons: &[Comparison]) -> Vec<&Comparison> {
    let standing = |it: &Comparison| {
        (it.entries.iter().flatten().count(), weight(it.threads, it.queue_per_thread))
    };
    let mut chosen: Vec<&Comparison> = Vec::new();
    for it in measures(comparisons) {
        match chosen.iter_mut().find(|other| is_of_one_workload(other, it)) {
            Some(other) if standing(other) < standing(it) => *other = it,
            Some(_) => {}
            None => chosen.push(it),
        }
    }
    chosen
}

/// The [`representative`] loads, each followed by those of the runs that lack it.
fn shown(comparisons: &[Comparison]) -> Vec<&Comparison> {
    let mut shown: Vec<&Comparison> = Vec::new();
    for chosen in representative(comparisons) {
        shown.push(chosen);
        for run in 0..chosen.entries.len() {
            let has_run = |it: &&Comparison| it.entries[run].is_some();
            let is_shown = shown.iter().any(|it| is_of_one_workload(it, chosen) && has_run(it));
            let own = measures(comparisons).filter(|it| is_of_one_workload(it, chosen));
            let own = own.filter(has_run).max_by_key(|it| weight(it.threads, it.queue_per_thread));
            shown.extend(own.filter(|_| !is_shown));
        }
    }
    shown
}

fn measures(comparisons: &[Comparison]) -> impl Iterator<Item = &Comparison> {
    comparisons.iter().filter(|it| it.kind == StepKind::Measure)
}

fn is_of_one_workload(a: &Comparison, b: &Comparison) -> bool {
    (&a.suite, &a.workload) == (&b.suite, &b.workload)
}

fn table(subjects: &[Subject<'_>], title: &str, loads: &[&Comparison], steady: bool) -> String {
    if loads.is_empty() {
        return String::new();
    }
    let mut html =
        format!("<h3>{title}</h3><div class=\"scroll\"><table class=\"summary\"><thead><tr>");
    let entries = || loads.iter().flat_map(|load| load.entries.iter().flatten());
    let tails = loads.iter().flat_map(|load| subjects.iter().zip(&load.entries));
    let tails: Vec<ConfidenceInterval> =
        tails.filter_map(|(subject, entry)| tail_of(subject, entry.as_ref()?)).collect();
    let with_host = entries().any(|entry| entry.summary.host_processor_us.is_some());
    let heads = HEADS.iter().chain(with_host.then_some(&HOST_HEAD));
    let heads: Vec<&&str> =
        heads.chain(steady.then_some(&STEADY_HEADS).into_iter().flatten()).collect();
    for head in &heads {
        let _ = write!(html, "<th scope=\"col\">{head}</th>");
    }
    html.push_str("</tr></thead>");
    for load in loads {
        let columns = heads.len();
        let _ = write!(
            html,
            "<tbody><tr class=\"load\"><th scope=\"rowgroup\" colspan=\"{columns}\">{} \
             <span>T{}Q{}</span></th></tr>",
            Text(&named(subjects, load)),
            load.threads,
            load.queue_per_thread,
        );
        for (subject, entry) in subjects.iter().zip(&load.entries) {
            let Some(entry) = entry else { continue };
            html.push_str(&row(subject, entry));
            if with_host {
                let told = entry.summary.host_processor_us.map_or("–".into(), number::plain);
                let _ = write!(html, "<td>{told}</td>");
            }
            if steady {
                html.push_str(&verdict(subject, entry));
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody>");
    }
    let host =
        if with_host { " Host CPU is processor time of the host per request, in us." } else { "" };
    let steady = if steady {
        " Steady state was reached when five rounds first met the rule; the figures are those of \
         the last five rounds, and drive writes are the user capacities written between the purge \
         and the end of the preconditioning."
    } else {
        ""
    };
    html + "</table></div><p class=\"small\">Latencies in ms. Std. dev. is the \
            standard deviation of the latency of all requests. WA is NAND writes ÷ host writes."
        + host
        + steady
        + &origin(&tails)
        + "</p>"
}

/// The workload of `load`, with its suite where others have it too.
fn named(subjects: &[Subject<'_>], load: &Comparison) -> String {
    let mut entries = subjects.iter().zip(&load.entries);
    let run = entries.find_map(|(subject, entry)| entry.as_ref().map(|_| subject.run));
    run.map_or_else(|| load.workload.clone(), |run| workload_of(run, &load.suite, &load.workload))
}

fn row(subject: &Subject<'_>, entry: &Entry) -> String {
    let Entry { summary, .. } = entry;
    let latency = &summary.latency;
    let step = subject.run.step(&entry.step);
    let doubt = step.and_then(|step| Doubt::of(subject.run, step, summary));
    let has_percentiles = doubt.is_none_or(Doubt::has_percentiles);
    let p999 = latency.p999_ns().filter(|_| has_percentiles);
    let marks = step.map(|step| marks(subject.run, step)).unwrap_or_default();
    let sampled = step.and_then(Step::sampling_note);
    let notes = doubt.map(Doubt::note).into_iter().chain(latency.mean_note()).chain(marks);
    let notes = notes.chain(sampled);
    let notes: Vec<String> = notes.collect();
    let amplification = summary.nand.and_then(|nand| nand.write_amplification());
    let cells = [
        number::whole(summary.iops),
        number::whole(summary.throughput_mb_s()),
        number::plain_ns(latency.mean_ns()),
        beside_millis(number::plain_millis(p999), tail_of(subject, entry)),
        number::plain_millis(latency.max_ns()),
        number::plain_ns(latency.stdev_ns()),
        amplification.map_or("–".into(), number::plain),
    ];
    let mut html = format!(
        "<tr><th scope=\"row\" class=\"t{}\"><i class=\"key\"></i>{}{}</th>",
        Look::of_run(subject.index).tone,
        Text(&subject.label),
        noted(&notes),
    );
    for cell in cells {
        let _ = write!(html, "<td>{}</td>", Cell(&cell));
    }
    html
}

/// The interval of the p99.9 of a measurement.
fn tail_of(subject: &Subject<'_>, entry: &Entry) -> Option<ConfidenceInterval> {
    let step = subject.run.step(&entry.step).filter(|step| step.kind == StepKind::Measure)?;
    subject.spread(step).latency.latency_ns_p999
}

/// Words on each headline of `run` read from `step` that a published figure contradicts, and on a
/// tail that a listed stall makes.
fn marks(run: &Run, step: &Step) -> Vec<String> {
    let is_here = |it: &Headline| it.step(run).is_some_and(|of| of.id == step.id);
    let contradicted = Headline::ALL.into_iter().filter(is_here).filter_map(|it| {
        let text = contradiction(run, it)?;
        Some(if it == Headline::WriteTail { format!("p99.9 {text}") } else { text })
    });
    let tail = step.summary.as_ref().and_then(|it| it.latency.p999_ns());
    let is_stall =
        step.kind == StepKind::Measure && tail.is_some_and(|tail| run.target.is_listed_stall(tail));
    contradicted.chain(is_stall.then(|| "p99.9 is a listed stall".to_owned())).collect()
}

/// Notes behind the name of a run; empty without any.
fn noted(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    format!(" <span class=\"interval\">{}</span>", Text(&notes.join(", ")))
}

fn verdict(subject: &Subject<'_>, entry: &Entry) -> String {
    let step = subject.run.steps.iter().find(|it| it.id == entry.step);
    let (class, reached) = match step.and_then(|step| step.steady.as_ref()) {
        None => ("", "not judged".to_owned()),
        Some(steady) if steady.achieved => ("good", number::span(steady.at_s)),
        Some(steady) if steady.evidence.is_some() => ("bad", "burst".to_owned()),
        Some(_) => ("bad", "not reached".to_owned()),
    };
    let written = entry.written.map_or_else(|| "–".to_owned(), |it| drive_writes(&it));
    format!("<td class=\"{class}\">{reached}</td><td>{written}</td>")
}
