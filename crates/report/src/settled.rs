//! The rates of runs in steady state, in a sentence.

use results::StepKind;
use results::compare::{Entry, compare};

use crate::number::{self, written_times};
use crate::subject::Subject;
use crate::summary::applications;
use crate::text::listed;

/// Returns a sentence on the steady-state rates under the first load that any run was
/// preconditioned with, and on the runs that did not reach steady state.
pub(crate) fn settles(subjects: &[Subject<'_>]) -> String {
    if applications::are_all(subjects) {
        return applications::sentence(subjects);
    }
    let runs: Vec<_> = subjects.iter().map(|subject| subject.run).collect();
    let comparisons = compare(&runs);
    let Some(first) = comparisons.iter().find(|it| it.kind == StepKind::Precondition) else {
        if let Some(program) = subjects.iter().find_map(|subject| subject.run.imported_from()) {
            return format!("Imported from {program}: whether this is steady state is unknown.");
        }
        return "Steady state not measured yet: no preconditioning is finished.".into();
    };
    let of = |state: Option<bool>| -> Vec<String> {
        let entries = subjects.iter().zip(&first.entries);
        let entries = entries.filter_map(|(subject, entry)| Some((subject, entry.as_ref()?)));
        let wanted = entries.filter(|(_, entry)| entry.settled == state);
        wanted.map(|(subject, entry)| rate(subject, entry, subjects.len() == 1)).collect()
    };
    let mut said = Vec::new();
    let states = [
        (Some(true), "steady state"),
        (Some(false), "steady state not reached"),
        (None, "steady state not judged"),
    ];
    for (state, heading) in states {
        let rates = of(state);
        if !rates.is_empty() {
            said.push(format!("{heading}: {}", listed(&rates)));
        }
    }
    let is_modelled = subjects.iter().all(|subject| subject.run.target.kind.is_model());
    let said = said.join("; ");
    let said = if is_modelled { format!("Modelled, {said}") } else { said.replacen('s', "S", 1) };
    format!(
        "{said}, under {}, average of the last five rounds of the preconditioning.",
        first.workload
    )
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
