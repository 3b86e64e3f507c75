//! The top of the page: what was reviewed, the verdict, how it was measured, warnings.

use std::fmt::Write as _;

use results::mark::UNVALIDATED_REASON;
use results::{Run, StepKind, TargetKind, Warning, WarningKind};

use crate::chart::Look;
use crate::subject::{Subject, seed};
use crate::text::{Code, Text};
use crate::{explain, verdict};

/// Title, verdict, and what was measured how in one line a run.
pub(crate) fn header(subjects: &[Subject<'_>], title: &str) -> String {
    let mut html = format!("<header id=\"top\"><h1>{}</h1>\n<p class=\"verdict\">", Text(title));
    let sentences = verdict::sentences(subjects);
    let _ = write!(html, "{}</p>\n<ul class=\"facts\">", Text(&sentences.join(" ")));
    let all: Vec<Vec<String>> = subjects.iter().map(|it| facts(it.run)).collect();
    let is_common = |fact: &&String| all.iter().all(|facts| facts.contains(fact));
    if let [first, ..] = all.as_slice() {
        let common: Vec<&String> = first.iter().filter(is_common).collect();
        let _ = write!(html, "<li>{}</li>", line(&common));
    }
    for (subject, facts) in subjects.iter().zip(&all) {
        let own: Vec<&String> = facts.iter().filter(|fact| !is_common(fact)).collect();
        if !own.is_empty() {
            let _ = write!(
                html,
                "<li class=\"t{}\"><i class=\"key\"></i><b>{}</b> {}</li>",
                Look::of_run(subject.index).tone,
                Text(&subject.label),
                line(&own),
            );
        }
    }
    html.push_str("</ul>");
    if subjects.iter().any(|it| it.run.target.unvalidated) {
        let _ = write!(html, "<p class=\"small\">{UNVALIDATED_REASON}</p>");
    }
    html + "</header>\n"
}

fn line(facts: &[&String]) -> String {
    let facts: Vec<String> = facts.iter().map(|fact| Text(fact).to_string()).collect();
    facts.join(" · ")
}

/// Returns the facts of a run, such as kind of target and protocol, in a few words each.
fn facts(run: &Run) -> Vec<String> {
    let target = &run.target;
    let kind = match target.kind {
        TargetKind::Model => "Modelled drive",
        TargetKind::BlockDevice => "Real block device",
        TargetKind::File => "Real file",
        TargetKind::Nbd => "NBD server",
        TargetKind::Remote => "Real, on other hosts",
    };
    let mut facts = vec![kind.to_owned(), run.protocol_title.clone()];
    if target.time_lapse > 1 {
        facts.push(format!("simulated at 1/{} of its capacity", target.time_lapse));
    } else if target.kind.is_model() {
        facts.push("full scale".into());
    }
    if !target.host.is_empty() {
        facts.push(format!("host {}", target.host));
    }
    facts.extend(seed(run).map(|seed| format!("seed {seed}")));
    facts.push(match run.model_version {
        Some(version) => format!("Floatgate {}, model version {version}", run.floatgate_version),
        None => format!("Floatgate {}", run.floatgate_version),
    });
    facts.push(run.begun().to_owned());
    facts
}

/// Every warning, grouped by its heading, and what is missing of a run that was stopped.
pub(crate) fn warnings(subjects: &[Subject<'_>]) -> String {
    let mut items: String = subjects.iter().filter_map(unfinished).collect();
    let all = || {
        subjects.iter().flat_map(|subject| subject.run.warnings.iter().map(move |it| (subject, it)))
    };
    let mut headings: Vec<(WarningKind, &str)> =
        all().map(|(subject, warning)| (warning.kind, heading(subject, warning))).collect();
    headings.sort_unstable();
    headings.dedup();
    for (_, name) in headings {
        let of_name: Vec<_> = all().filter(|(of, warning)| heading(of, warning) == name).collect();
        items.push_str(&grouped(name, &of_name));
    }
    if items.is_empty() {
        return items;
    }
    format!(
        "<aside id=\"warnings\" class=\"warnings\" aria-label=\"Warnings\"><p>\
         <b>Before you trust a number</b></p><ul>{items}</ul></aside>\n"
    )
}

/// The heading of `warning`: that of its kind, which tells a preconditioning that wrote too little
/// from none at all.
fn heading(subject: &Subject<'_>, warning: &Warning) -> &'static str {
    let is_precondition = || {
        let step = subject.run.steps.iter().find(|step| step.id == warning.step);
        step.is_some_and(|step| step.kind == StepKind::Precondition)
    };
    match warning.kind {
        WarningKind::NotPreconditioned if is_precondition() => explain::TOO_LITTLE_WRITTEN,
        kind => explain::warning(kind),
    }
}

/// The warnings of one kind: one sentence, and of several texts a table on asking.
fn grouped(name: &str, all: &[(&Subject<'_>, &Warning)]) -> String {
    let mut said: Vec<(&Warning, Vec<String>)> = Vec::new();
    for (subject, warning) in all {
        let step = if warning.step.is_empty() { "whole run" } else { &warning.step };
        let place = format!("{}, {step}", subject.label);
        match said.iter_mut().find(|(known, _)| known.text == warning.text) {
            Some((_, places)) => places.push(place),
            None => said.push((*warning, vec![place])),
        }
    }
    let mut remedies: Vec<&str> = all.iter().map(|(_, warning)| warning.remedy.as_str()).collect();
    remedies.sort_unstable();
    remedies.dedup();
    let sentence = match remedies.as_slice() {
        [only] => format!("<span class=\"remedy\">Remedy: {}.</span>", Code(only)),
        _ => String::new(),
    };
    if let [(warning, places)] = said.as_slice() {
        let places = Text(&places.join("; ")).to_string();
        return format!("<li><b>{name}.</b> {places}: {}. {sentence}</li>", Text(&warning.text));
    }
    let has_remedies = sentence.is_empty();
    let mut html = format!(
        "<li><b>{name}, {} warnings.</b> {sentence}<details><summary>Where and why</summary><div \
         class=\"scroll\"><table><thead><tr><th scope=\"col\">Step</th><th scope=\"col\">Warning\
         </th>{}</tr></thead><tbody>",
        all.len(),
        if has_remedies { "<th scope=\"col\">Remedy</th>" } else { "" },
    );
    for (warning, places) in said {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"prose\">{}</td>",
            Text(&places.join("; ")),
            Text(&warning.text),
        );
        if has_remedies {
            let _ = write!(html, "<td class=\"prose\">{}</td>", Code(&warning.remedy));
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div></details></li>"
}

fn unfinished(subject: &Subject<'_>) -> Option<String> {
    let (done, planned) = (subject.run.steps.len(), subject.run.steps_planned);
    let short = u32::try_from(done).is_ok_and(|done| done < planned);
    short.then(|| {
        format!(
            "<li><b>{}:</b> {done} of {planned} steps were done; the others are missing here. \
             <span class=\"remedy\">Continue with <code>--resume</code>.</span></li>",
            Text(&subject.label),
        )
    })
}
