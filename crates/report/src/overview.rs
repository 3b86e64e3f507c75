//! The top of the page: what was reviewed, the verdict in one line, badges, warnings.

use std::fmt::Write as _;

use results::compare::{Entry, compare};
use results::{StepKind, TargetKind, Warning, Written};

use crate::chart::Look;
use crate::number;
use crate::subject::Subject;
use crate::text::Text;

/// Warnings that are shown at once; the others open on asking.
const WARNINGS_MAX: usize = 8;

/// Title, verdict, one card a run, and every warning.
pub(crate) fn header(subjects: &[Subject<'_>], title: &str) -> String {
    let mut html = format!("<header id=\"top\"><h1>{}</h1>\n", Text(title));
    let _ = writeln!(html, "<p class=\"verdict\">{}</p>", Text(&verdict(subjects)));
    html.push_str("<div class=\"runs\">");
    for subject in subjects {
        html.push_str(&card(subject));
    }
    html.push_str("</div>");
    html.push_str(&warnings(subjects));
    html + "</header>\n"
}

/// What the runs settle at, under the first load that any of them was preconditioned with.
pub(crate) fn verdict(subjects: &[Subject<'_>]) -> String {
    let runs: Vec<_> = subjects.iter().map(|subject| subject.run).collect();
    let comparisons = compare(&runs);
    let Some(first) = comparisons.iter().find(|it| it.kind == StepKind::Precondition) else {
        return "Nothing has settled yet: the runs hold no finished preconditioning.".into();
    };
    let of = |is_settled: bool| -> Vec<String> {
        let entries = subjects.iter().zip(&first.entries);
        let entries = entries.filter_map(|(subject, entry)| Some((subject, entry.as_ref()?)));
        let wanted = entries.filter(|(_, entry)| entry.settled.unwrap_or(true) == is_settled);
        wanted.map(|(subject, entry)| rate(subject, entry, subjects.len() == 1)).collect()
    };
    let (settled, burst) = (of(true), of(false));
    let mut said = Vec::new();
    if !settled.is_empty() {
        said.push(format!("Settles at {} under {}.", listed(&settled), first.workload));
    }
    if !burst.is_empty() {
        let (burst, workload) = (listed(&burst), &first.workload);
        said.push(format!("Not settled: {burst} under {workload} when the preconditioning ended."));
    }
    said.join(" ")
}

/// A rate, and how far the drive was written by then.
fn rate(subject: &Subject<'_>, entry: &Entry, is_alone: bool) -> String {
    let iops = number::short(entry.summary.iops);
    let amplification = entry.summary.nand.and_then(|nand| nand.write_amplification());
    let mut state: Vec<String> = if is_alone { Vec::new() } else { vec![subject.label.clone()] };
    state.extend(entry.written.map(|written| written_times(&written)));
    state.extend(amplification.map(|it| format!("write amplification {}", number::plain(it))));
    match state.as_slice() {
        [] => format!("{iops} IOPS"),
        state => format!("{iops} IOPS ({})", state.join(", ")),
    }
}

/// How far a drive was written: `2.4 drive writes`.
pub(crate) fn written_times(written: &Written) -> String {
    let share = written.since_purge_share;
    let times = if share < 0.1 { format!("{share:.2}") } else { format!("{share:.1}") };
    format!("{times} drive writes since the purge")
}

/// `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

fn card(subject: &Subject<'_>) -> String {
    let run = subject.run;
    let target = &run.target;
    let mut badges = vec![
        match target.kind {
            TargetKind::Model => "Model".into(),
            TargetKind::BlockDevice => "Real block device".into(),
            TargetKind::File => "Real file".into(),
            TargetKind::Nbd => "NBD server".into(),
            TargetKind::Remote => "Real, on other hosts".into(),
        },
        format!("Protocol {}", run.protocol),
        format!("Seed {}", run.seed),
        format!("Floatgate {}", run.floatgate_version),
    ];
    if target.time_lapse > 1 {
        badges.insert(2, format!("Time lapse 1/{}", target.time_lapse));
    } else if target.kind == TargetKind::Model {
        badges.insert(2, "Full scale".into());
    }
    if let Some(version) = run.model_version {
        badges.push(format!("Model version {version}"));
    }
    if !target.host.is_empty() {
        badges.push(format!("Host {}", target.host));
    }
    badges.push(run.started_at.clone());
    let mut html = format!(
        "<div class=\"run t{}\"><p class=\"label\">{}</p><p class=\"drive\">{}</p>\
         <ul class=\"badges\">",
        Look::of_run(subject.index).tone,
        Text(&subject.label),
        Text(&target.title),
    );
    for badge in &badges {
        let _ = write!(html, "<li>{}</li>", Text(badge));
    }
    let _ = write!(html, "</ul><p class=\"provenance\">{}</p></div>", Text(&run.id));
    html
}

fn warnings(subjects: &[Subject<'_>]) -> String {
    let mut all: Vec<(String, &Warning)> = Vec::new();
    for subject in subjects {
        for warning in &subject.run.warnings {
            match all.iter_mut().find(|(_, other)| *other == warning) {
                Some((names, _)) => {
                    let _ = write!(names, ", {}", subject.label);
                }
                None => all.push((subject.label.clone(), warning)),
            }
        }
    }
    let mut items: Vec<String> = subjects.iter().filter_map(unfinished).collect();
    items.extend(all.iter().map(|(names, warning)| said(names, warning)));
    let (shown, more) = items.split_at(items.len().min(WARNINGS_MAX));
    if shown.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<aside class=\"warnings\" aria-label=\"Warnings\"><p><b>Before you trust a number</b></p>\
         <ul>{}</ul>",
        shown.concat(),
    );
    if !more.is_empty() {
        let _ = write!(
            html,
            "<details><summary>{} more</summary><ul>{}</ul></details>",
            more.len(),
            more.concat(),
        );
    }
    html + "</aside>"
}

fn said(names: &str, warning: &Warning) -> String {
    let step = if warning.step.is_empty() { "whole run" } else { &warning.step };
    format!(
        "<li><b>{}, {}:</b> {}. <span class=\"remedy\">{}.</span></li>",
        Text(names),
        Text(step),
        Text(&warning.text),
        Text(&warning.remedy),
    )
}

fn unfinished(subject: &Subject<'_>) -> Option<String> {
    let (done, planned) = (subject.run.steps.len(), subject.run.steps_planned);
    let short = u32::try_from(done).is_ok_and(|done| done < planned);
    short.then(|| {
        format!(
            "<li><b>{}:</b> {done} of {planned} steps were done; what is missing is left out. \
             <span class=\"remedy\">Go on with <code>--resume</code>.</span></li>",
            Text(&subject.label),
        )
    })
}
