//! The top of the page: what was reviewed, the verdict in one line, badges, warnings.

use std::fmt::Write as _;

use results::compare::compare;
use results::{StepKind, TargetKind, Warning};

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
    let settled: Vec<String> = subjects
        .iter()
        .zip(&first.entries)
        .filter_map(|(subject, entry)| {
            let iops = number::short(entry.as_ref()?.summary.iops);
            Some(match subjects.len() {
                1 => format!("{iops} IOPS"),
                _ => format!("{iops} IOPS ({})", subject.label),
            })
        })
        .collect();
    format!("Settles at {} under {}.", listed(&settled), first.workload)
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
