//! Dies that failed in a preconditioning: what the load reached in each state of the drive, and
//! marks in the curves.

use std::fmt::Write as _;

use blockio::Bytes;
use results::{DieFailures, FailedDie, Sample, Step};

use super::group::table;
use super::metric::RunStep;
use super::steps::line;
use crate::chart::{Look, Point, Series};
use crate::number::{self, span};
use crate::subject::Subject;
use crate::text::Text;

/// A table for each run in which dies failed; empty if none did.
pub(super) fn tables(taken: &[RunStep<'_>]) -> String {
    let mut html = String::new();
    for (subject, step) in taken {
        let Some(failures) = &step.die_failures else { continue };
        let _ = write!(html, "<h4>{}: failed dies</h4>", Text(&subject.label));
        html.push_str(&dies(failures));
        html.push_str(&phases(failures));
        html.push_str(
            "<p class=\"small\">Marks in the curves: a die fails, its data is rebuilt, redundancy \
             is back. Spare space is flash beyond the user capacity.</p>",
        );
    }
    html
}

fn dies(failures: &DieFailures) -> String {
    let heads = ["Die", "Failed", "Rebuilt after", "Redundant after", "Lost", "Spare space left"];
    let rows = failures.failed.iter().map(|failed| {
        let after = |time: Option<f64>| match time {
            Some(time) => span(time - failed.failed_s),
            None if !failures.has_parity => "–".to_owned(),
            None if failed.is_read_only => "never: read-only".to_owned(),
            None => "not by the end".to_owned(),
        };
        vec![
            failed.die.to_string(),
            span(failed.failed_s),
            after(failed.rebuilt_s),
            after(failed.redundant_s),
            Bytes(failed.lost_bytes).to_string(),
            format!("{:.1} %", failed.spare_percent),
        ]
    });
    table(&heads.map(String::from), rows)
}

fn phases(failures: &DieFailures) -> String {
    let heads = ["State", "From", "To", "IOPS", "Average, ms", "p99.9, ms", "Errors"];
    let rows = failures.phases.iter().map(|phase| {
        let summary = &phase.summary;
        vec![
            phase.state.name().to_owned(),
            span(phase.from_s),
            span(phase.to_s),
            number::known(Some(summary.iops)),
            number::known(Some(number::millis(summary.latency.latency_ns_avg))),
            number::plain_millis(summary.latency.p999_ns()),
            summary.media_errors.to_string(),
        ]
    });
    table(&heads.map(String::from), rows)
}

/// Marks on the curve of a metric: where a die failed, was rebuilt, and redundancy was back. Absent
/// if none failed.
pub(super) fn marks(
    (subject, step): (&Subject<'_>, &Step),
    secs: f64,
    of: impl Fn(&Sample) -> Option<f64>,
) -> Vec<Series> {
    let Some(failures) = &step.die_failures else { return Vec::new() };
    let look = Look { dash: Look::MARKS, ..Look::of_run(subject.index) };
    let of_all = |time: fn(&FailedDie) -> Option<f64>| -> Vec<Point> {
        let times = failures.failed.iter().filter_map(time);
        times.filter_map(|at_s| Some((at_s / secs, of(sample_at(step, at_s)?)?))).collect()
    };
    let named = |what: &str, points| line(format!("{}, {what}", subject.label), look, points);
    let failed = named("a die fails, is rebuilt, redundancy is back", {
        let mut points = of_all(|it| Some(it.failed_s));
        points.extend(of_all(|it| it.rebuilt_s));
        points.extend(of_all(|it| it.redundant_s));
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    });
    if failed.points.is_empty() { Vec::new() } else { vec![failed] }
}

/// The sample that `at_s` lies in.
fn sample_at(step: &Step, at_s: f64) -> Option<&Sample> {
    step.samples.iter().find(|sample| sample.at_s >= at_s)
}

#[cfg(test)]
mod tests {
    use results::{FailurePhase, FailureState};

    use super::*;
    use crate::example;
    use crate::subject::subjects;

    #[test]
    fn a_failed_die_has_its_times_states_and_marks() {
        let runs = example::review_of_two();
        let subjects = subjects(&runs);
        let with_curve = runs[0].steps.iter().find(|step| step.samples.len() > 2);
        let mut step = with_curve.expect("a preconditioning").clone();
        let failed = FailedDie {
            die: 3,
            failed_s: 30.0,
            rebuilt_s: Some(90.0),
            redundant_s: None,
            lost_bytes: 0,
            is_read_only: false,
            spare_percent: 21.25,
        };
        let summary = step.samples[0].summary.clone();
        let state = FailureState::Rebuilding;
        let phases = vec![FailurePhase { state, from_s: 30.0, to_s: 90.0, summary }];
        step.die_failures = Some(DieFailures { failed: vec![failed], phases, has_parity: true });
        let taken = [(&subjects[0], &step)];
        let html = tables(&taken);
        for cell in ["30 s", "60 s", "not by the end", "21.2 %", "rebuilding"] {
            assert!(html.contains(cell), "{cell} in {html}");
        }
        let marks = marks(taken[0], 1.0, |sample| Some(sample.summary.iops));
        let at: Vec<f64> = marks.iter().flat_map(|it| &it.points).map(|point| point.0).collect();
        assert_eq!(at, [30.0, 90.0]);
    }
}
