//! The rates at which runs settled, in a sentence.

use results::StepKind;
use results::compare::{Entry, compare};

use crate::number::{self, written_times};
use crate::subject::Subject;
use crate::summary::applications;
use crate::text::listed;

/// Returns a sentence on the settled rates under the first load that any run was preconditioned
/// with, and on the runs that did not settle.
pub(crate) fn settles(subjects: &[Subject<'_>]) -> String {
    if applications::are_all(subjects) {
        return applications::sentence(subjects);
    }
    let runs: Vec<_> = subjects.iter().map(|subject| subject.run).collect();
    let comparisons = compare(&runs);
    let Some(first) = comparisons.iter().find(|it| it.kind == StepKind::Precondition) else {
        return "Nothing has settled yet: no preconditioning is finished.".into();
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
