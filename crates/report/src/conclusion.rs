//! Pros, cons and bottom line: what `results::findings` found, said in prose, nothing added.

mod against;

use std::fmt::Write as _;

use results::findings::{Finding, FindingKind, Verdict, Withheld, between, of_run, withheld};
use results::{Run, SteadyEvidence, Step};

use self::against::RankedRuns;
use crate::explain;
use crate::host_difference;
use crate::number;
use crate::published;
use crate::subject::{Subject, unvalidated, workload_of};
use crate::text::Text;
use crate::text::listed;

/// Cases that one sentence lists at most, the farthest from its limit first.
const CASES_MAX: usize = 3;

/// A finding, and where it was found.
struct Case {
    finding: Finding,
    place: String,
    /// Amount that a preconditioning wrote if it was too little; empty for all other cases.
    lacking: String,
}

/// The section; `runs` are those of `subjects`.
pub(crate) fn section(subjects: &[Subject<'_>], runs: &[Run]) -> String {
    let cases = cases(subjects, runs);
    let mut html = String::from("<section id=\"conclusion\"><h2>Conclusion</h2>\n");
    html.push_str("<div class=\"verdict-lists\">");
    html.push_str(&list("Pros", "pros", &cases, Verdict::Strength));
    html.push_str(&list("Cons", "cons", &cases, Verdict::Weakness));
    html.push_str("</div>");
    let ranked = RankedRuns::all(subjects);
    html.extend(ranked.iter().map(RankedRuns::points));
    let whom: String = ranked.iter().map(RankedRuns::bottom_line).collect();
    html.push_str(&concluded(&(whom + &bottom_line(subjects, &cases))));
    html.push_str(&unvalidated(subjects));
    html.push_str(&not_told(subjects));
    html + "<p class=\"small\">Every sentence follows from figures of this page and the limit that \
            is shown with it; nothing is added by hand.</p></section>\n"
}

/// The bottom line on `subjects` alone: for whom each drive is; empty where none are alike.
pub(crate) fn of_whom(subjects: &[Subject<'_>]) -> String {
    let whom: String = RankedRuns::all(subjects).iter().map(RankedRuns::bottom_line).collect();
    concluded(&whom)
}

fn concluded(bottom_line: &str) -> String {
    match bottom_line.trim_start() {
        "" => String::new(),
        text => format!("<h3>Bottom line</h3><p class=\"bottom-line\">{}</p>", Text(text)),
    }
}

/// Returns the loads whose ratios are withheld, by reason; empty without any.
fn not_told(subjects: &[Subject<'_>]) -> String {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for subject in subjects {
        let warnings = &subject.run.warnings;
        for Withheld { finding, reason } in withheld(subject.run) {
            // The list of warnings has the numbers.
            let warning = warnings.iter().find(|it| it.text == reason);
            let reason = warning.map_or(reason, |it| explain::warning(it.kind).to_owned());
            let place = match subjects {
                [_] => finding.workload,
                _ => format!("{} ({})", finding.workload, subject.label),
            };
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, places)) if places.contains(&place) => {}
                Some((_, places)) => places.push(place),
                None => reasons.push((reason, vec![place])),
            }
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h3>Not judged</h3><ul class=\"withheld\">");
    for (reason, places) in reasons {
        let _ = write!(html, "<li>{}: {}.</li>", Text(&listed(&places)), Text(&reason));
    }
    html + "</ul>"
}

fn cases(subjects: &[Subject<'_>], runs: &[Run]) -> Vec<Case> {
    let mut cases = Vec::new();
    for subject in subjects {
        for finding in of_run(subject.run) {
            let step = finding.steps.first();
            let step = subject.run.steps.iter().find(|it| Some(&it.id) == step);
            let suite = step.map_or("", |step| &step.suite);
            let mut place = workload_of(subject.run, suite, &finding.workload);
            if subjects.len() > 1 {
                place = format!("{place} on {}", subject.label);
            }
            let lacking = step.filter(|_| finding.kind == FindingKind::Unsteady).and_then(lacking);
            cases.push(Case { finding, place, lacking: lacking.unwrap_or_default() });
        }
    }
    for finding in between(runs) {
        let mut between = finding.between.clone();
        if finding.kind == FindingKind::HostDifference {
            between.reverse();
        }
        let place = format!("{}, {}", finding.workload, between.join(" against "));
        cases.push(Case { finding, place, lacking: String::new() });
    }
    cases
}

/// Amount that a preconditioning wrote which met the limits of the rule in a burst; absent for
/// others.
fn lacking(step: &Step) -> Option<String> {
    if step.steady.as_ref()?.evidence != Some(SteadyEvidence::TooLittleWritten) {
        return None;
    }
    let written = step.written.map(|written| match written.addressed_share {
        share if share < 1.0 => format!(", {} of the addressed space", number::percent(share)),
        _ => format!(", {}", number::written_times(&written)),
    });
    Some(format!("too little was written{}", written.unwrap_or_default()))
}

fn list(title: &str, class: &str, cases: &[Case], verdict: Verdict) -> String {
    let mut kinds: Vec<FindingKind> = cases.iter().map(|case| case.finding.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let items: String = kinds.iter().map(|kind| item(*kind, cases, verdict)).collect();
    let items = if items.is_empty() {
        "<li class=\"none\">No figure met a criterion.</li>".to_owned()
    } else {
        items
    };
    format!("<div class=\"{class}\"><h3>{title}</h3><ul>{items}</ul></div>")
}

/// One sentence for all cases of `kind` with that verdict; empty without any.
fn item(kind: FindingKind, cases: &[Case], verdict: Verdict) -> String {
    let mut cases: Vec<&Case> = cases
        .iter()
        .filter(|case| case.finding.kind == kind && case.finding.verdict == verdict)
        .collect();
    if cases.is_empty() {
        return String::new();
    }
    let limits = kind.limits();
    let (strength, weakness) = explain::sentences(kind);
    let (sentence, limit) = match verdict {
        Verdict::Weakness => (weakness, limits.1),
        Verdict::Strength | Verdict::Neither => (strength, limits.0),
    };
    // A value that is good when low is at its farthest when lowest for a strength.
    let ascending = (limits.0 < limits.1) == (verdict == Verdict::Strength);
    cases.sort_by(|a, b| {
        let order = a.finding.value.total_cmp(&b.finding.value);
        if ascending { order } else { order.reverse() }
    });
    let more = cases.len().saturating_sub(CASES_MAX);
    let mut named: Vec<String> =
        cases.iter().take(CASES_MAX).map(|case| said(kind, case)).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let sign = if ascending { "≤" } else { "≥" };
    let rule = match kind {
        FindingKind::Unsteady => {
            format!("Steady state needs {}, and enough data written before", explain::ratio(kind))
        }
        _ => format!("{} {sign} {}", explain::ratio(kind), number::trimmed(limit)),
    };
    format!(
        "<li title=\"{1}\"><b>{0}:</b> {2}{3}. <span class=\"rule\">{1}.</span></li>",
        sentence,
        Text(&rule),
        explain::before_cases(kind),
        Text(&listed(&named)),
    )
}

/// One case as a part of the sentence on its kind.
fn said(kind: FindingKind, case: &Case) -> String {
    let Case { finding, place, lacking } = case;
    let times = number::trimmed(finding.value);
    match kind {
        FindingKind::BurstOverSettled => {
            format!("{} of them under {place}", number::percent(1.0 / finding.value))
        }
        FindingKind::Unsteady if lacking.is_empty() => format!("under {place}"),
        FindingKind::Unsteady => format!("under {place} ({lacking})"),
        FindingKind::Deviation => format!("{times} times the average under {place}"),
        FindingKind::Peak => format!("{times} times as long under {place}"),
        FindingKind::ReadOverWrite | FindingKind::Scaling => {
            format!("{times} times the IOPS under {place}")
        }
        FindingKind::FormatGain => format!("{times} times as much under {place}"),
        FindingKind::WriteAmplification => format!("{times} bytes under {place}"),
        FindingKind::HostDifference => {
            format!("{} under {place}", number::percent(finding.value))
        }
    }
}

/// Sentences that follow from the ratios: the rates are in the verdict.
fn bottom_line(subjects: &[Subject<'_>], cases: &[Case]) -> String {
    let mut said = String::new();
    let gains = cases.iter().filter(|case| case.finding.kind == FindingKind::FormatGain);
    for gain in gains {
        if let [best, worst] = gain.finding.between.as_slice() {
            let _ = write!(
                said,
                " Formatted as {best} instead of {worst}, the same drive reaches {} times the \
                 steady-state IOPS under {}.",
                number::trimmed(gain.finding.value),
                gain.finding.workload,
            );
        }
    }
    said.push_str(&host_difference::bottom_line(subjects));
    let judged = cases.iter().filter(|case| case.finding.kind == FindingKind::Unsteady);
    let reached = judged.clone().filter(|case| case.finding.value < 0.5).count();
    let all = judged.count();
    match (reached, all) {
        (_, 0) => {}
        (0, 1) => said.push_str(" Steady state was not reached."),
        (1, 1) => said.push_str(" Steady state was reached."),
        _ => {
            let _ =
                write!(said, " Steady state was reached in {reached} of {all} preconditionings.");
        }
    }
    if subjects.iter().any(|subject| !subject.run.published.is_empty()) {
        let _ = write!(said, " {}{}", published::tally(subjects), published::fitted(subjects));
    }
    said
}
