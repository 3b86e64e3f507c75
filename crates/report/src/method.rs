//! Section on the method: the steps of each protocol, their lengths, and the meaning of time lapse.

use std::fmt::Write as _;

use blockio::text::counted;
use results::{Step, StepKind};

use crate::number::{self, span};
use crate::subject::{Part, Subject, Suite, shared};
use crate::text::Text;

/// Workloads of one line that are all named.
const WORKLOADS_NAMED: usize = 4;

/// Largest deviation from Little's law that is still called equal.
const EQUAL_MAX: f64 = 0.05;

/// Sentence on the rule that preconditionings and rounds are judged by.
const STEADY_STATE_RULE: &str = " Steady state is judged by the rule of the SNIA performance test \
    specification over five rounds: the range of the rounds is at most 20 % of their average, and \
    a straight line through them rises or falls by at most 10 %.";

/// The section.
pub(crate) fn section(subjects: &[Subject<'_>], suites: &[Suite<'_>]) -> String {
    let mut html = String::from("<section id=\"method\"><h2>How it was tested</h2>\n");
    let mut protocols: Vec<&str> = Vec::new();
    for subject in subjects {
        if !protocols.contains(&subject.run.protocol_title.as_str()) {
            protocols.push(&subject.run.protocol_title);
        }
    }
    let _ = write!(
        html,
        "<p>Protocol: {}. {}{}</p>",
        Text(&protocols.join("; ")),
        preparation(subjects),
        if subjects.iter().all(is_imported) { "" } else { STEADY_STATE_RULE },
    );
    let lapses = shared(subjects, |subject| &subject.run.target.time_lapse);
    for (names, lapse) in lapses.into_iter().filter(|(_, lapse)| **lapse > 1) {
        let _ = write!(
            html,
            "<p><b>Time lapse, {}:</b> 1/{lapse} of the capacity for 1/{lapse} of the time. Times \
             shown are protocol times, latencies are not scaled.</p>",
            Text(&names),
        );
    }
    html.push_str(&groups(subjects));
    html.push_str(&steps(suites));
    html + "</section>\n"
}

fn is_imported(subject: &Subject<'_>) -> bool {
    subject.run.imported_from().is_some()
}

/// The sentence on how the drives were prepared: imported results do not say it, and a drive that
/// is only read is left as it was.
fn preparation(subjects: &[Subject<'_>]) -> &'static str {
    let mut steps = subjects.iter().flat_map(|subject| &subject.run.steps);
    if subjects.iter().all(is_imported) {
        "How the drive was prepared is unknown: the results were imported."
    } else if steps.any(|step| step.kind == StepKind::Purge) {
        "For each suite, the drive is purged, preconditioned at constant load if the table says \
         so, and then measured immediately, without another purge."
    } else {
        "The drive is measured as it was found: not purged, filled or preconditioned."
    }
}

/// Returns a note on the meaning of threads and queue for targets of several devices.
fn groups(subjects: &[Subject<'_>]) -> String {
    let groups = shared(subjects, |subject| &subject.run.target.devices);
    let of = |(names, devices): (String, &u32)| {
        format!(
            "<p><b>{devices} devices, {}:</b> threads and queue depth apply to each device, \
             which has its own jobs; rates are added. T16Q16 is {} requests outstanding in \
             all.</p>",
            Text(&names),
            256 * devices,
        )
    };
    groups.into_iter().filter(|(_, devices)| **devices > 1).map(of).collect()
}

fn steps(suites: &[Suite<'_>]) -> String {
    if suites.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<div class=\"scroll\"><table class=\"steps\"><thead><tr><th scope=\"col\">Suite</th><th \
         scope=\"col\">Run</th><th scope=\"col\">Precondition</th><th scope=\"col\">For</th><th \
         scope=\"col\">Measure</th><th scope=\"col\">Loads</th><th scope=\"col\">Each for</th>\
         </tr></thead><tbody>",
    );
    for suite in suites {
        for part in &suite.parts {
            let of_first = |step: &&Step| step.round == Some(1);
            let round: Vec<&Step> = part.rounds.iter().copied().filter(of_first).collect();
            if !round.is_empty() {
                html.push_str(&row(&suite.title, part, &round));
            }
            if !part.measures.is_empty() || round.is_empty() {
                html.push_str(&row(&suite.title, part, &part.measures));
            }
        }
    }
    html + "</tbody></table></div>" + &littles_law(suites) + &how(suites)
}

/// The line of steps that are measured one after the other, or as one round of many.
fn row(title: &str, part: &Part<'_>, steps: &[&Step]) -> String {
    let load =
        |step: &Step| format!("{}, T{}Q{}", step.workload, step.threads, step.queue_per_thread);
    let mut workloads: Vec<&str> = Vec::new();
    for step in steps {
        if !workloads.contains(&step.workload.as_str()) {
            workloads.push(&step.workload);
        }
    }
    let mut measured = match workloads.as_slice() {
        [first, .., last] if workloads.len() > WORKLOADS_NAMED => format!("{first} to {last}"),
        few => few.join(", "),
    };
    if steps.first().is_some_and(|step| step.round.is_some()) {
        measured += ", in rounds";
    }
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"prose\">{}</td>\
         <td class=\"prose\">{}</td><td>{}</td>\
         <td class=\"prose\">{}</td><td>{}</td><td>{}</td></tr>",
        Text(title),
        Text(&part.subject.label),
        Text(&part.precondition.map_or(String::new(), load)),
        part.precondition.map_or(String::new(), |step| span(step.duration_s)),
        Text(&measured),
        steps.len(),
        steps.first().map_or(String::new(), |step| span(step.duration_s)),
    )
}

/// Returns the deviation from Little's law (IOPS times average latency against the requests
/// outstanding), one paragraph for each run.
fn littles_law(suites: &[Suite<'_>]) -> String {
    let mut html = String::new();
    let mut subjects: Vec<&Subject<'_>> = Vec::new();
    for part in suites.iter().flat_map(|suite| &suite.parts) {
        if !subjects.iter().any(|subject| subject.index == part.subject.index) {
            subjects.push(part.subject);
        }
    }
    for subject in subjects {
        let devices = subject.run.target.devices;
        let deviations: Vec<f64> = subject
            .run
            .steps
            .iter()
            .filter(|step| step.rate.is_none() && !subject.run.lacks_requests(&step.id))
            .filter_map(|step| {
                let asked = f64::from(step.outstanding() * devices);
                step.summary.as_ref()?.littles_law_deviation(asked)
            })
            .collect();
        let lacking = subject.run.steps.iter().filter(|step| subject.run.lacks_requests(&step.id));
        let lacking = match lacking.count() {
            0 => String::new(),
            1 => " 1 load lacks requests that had not completed at its end.".into(),
            loads => format!(" {loads} loads lack requests that had not completed at their end."),
        };
        let widest = deviations.iter().fold(0.0, |widest: f64, it| widest.max(it.abs()));
        if !deviations.is_empty() {
            let _ = write!(
                html,
                "<p class=\"small\">{}: IOPS times average latency {} the outstanding requests \
                 (Little's law) in {}, within {}; deviations of more than 5 % beyond the \
                 effects of the load generator are warnings at the top.{lacking}</p>",
                Text(&subject.label),
                if widest <= EQUAL_MAX { "equals" } else { "deviates from" },
                counted(deviations.len() as u64, "load"),
                number::percent(widest),
            );
        }
    }
    html
}

/// Returns what was done in each step, as its driver reports it.
fn how(suites: &[Suite<'_>]) -> String {
    let mut items = String::new();
    let subjects = suites.iter().flat_map(|suite| &suite.parts).map(|part| part.subject);
    let mut seen: Vec<usize> = Vec::new();
    for subject in subjects {
        if seen.contains(&subject.index) {
            continue;
        }
        seen.push(subject.index);
        for step in subject.run.steps.iter().filter(|step| !step.how.is_empty()) {
            let kind = if step.kind == StepKind::Purge { "purge" } else { "load" };
            let _ = write!(
                items,
                "<li class=\"{kind}\"><b>{}, {}</b> <code>{}</code></li>",
                Text(&subject.label),
                Text(&step.id),
                Text(&step.how),
            );
        }
    }
    if items.is_empty() {
        return items;
    }
    format!(
        "<details><summary>Every step, as its driver describes it</summary>\
         <ul class=\"how\">{items}</ul></details>"
    )
}
