//! Steps of a suite by run: their series, where they come from, and what to mind.

use results::{Step, Summary};

use super::metric::RunStep;
use crate::chart::{Look, Point, Series};
use crate::subject::Subject;

/// True if the model of one of them lists stalls of its host: maxima come from the list.
pub(super) fn has_listed_stalls(taken: &[RunStep<'_>]) -> bool {
    taken.iter().any(|(subject, _)| subject.run.target.host_stall_ms_max.is_some())
}

/// True if a stall that the file of the model lists makes this latency.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency")]
pub(super) fn is_listed(subject: &Subject<'_>, (_, latency_ms): &Point) -> bool {
    subject.run.target.is_listed_stall((latency_ms * 1e6) as u64)
}

/// Provenance of every run in `taken`, one line each.
pub(super) fn provenance(taken: &[RunStep<'_>]) -> Vec<String> {
    by_subject(taken).iter().map(|(subject, steps)| subject.provenance(steps)).collect()
}

/// Warnings about any step in `taken`.
pub(super) fn cautions(taken: &[RunStep<'_>]) -> Vec<String> {
    by_subject(taken).iter().flat_map(|(subject, steps)| subject.cautions(steps)).collect()
}

pub(super) fn by_subject<'a>(taken: &[RunStep<'a>]) -> Vec<(&'a Subject<'a>, Vec<&'a Step>)> {
    let mut groups: Vec<(&Subject<'_>, Vec<&Step>)> = Vec::new();
    for (subject, step) in taken {
        match groups.iter_mut().find(|(other, _)| other.index == subject.index) {
            Some((_, steps)) => steps.push(step),
            None => groups.push((subject, vec![step])),
        }
    }
    groups
}

/// True if a suite mixes reads and writes, so that charts of each are informative.
pub(super) fn is_mixed(summary: &Summary) -> bool {
    summary.read.count > 0 && summary.write.count > 0
}

/// Reads solid, writes dashed, in the colour of the run.
pub(super) fn apart(subject: &Subject<'_>, writes: bool) -> (String, Look) {
    let name = format!("{}, {}", subject.label, if writes { "writes" } else { "reads" });
    (name, Look { dash: usize::from(writes), ..Look::of_run(subject.index) })
}

/// A line for `name`, without labels.
pub(super) fn line(name: String, look: Look, points: Vec<Point>) -> Series {
    Series { name, look, points, errors: Vec::new(), labels: Vec::new() }
}
