//! Conditions under which loads were measured, and runs that differ in none: only these are drawn
//! side by side and ranked.

use crate::baseline::{QUEUE_PER_THREAD, THREADS};
use crate::compare::{Comparison, compare};
use crate::sampling::percent;
use crate::{Run, Step, StepKind};

/// Names of formats in which drives are delivered: they are one condition for all drives.
const DELIVERED: [&str; 3] = ["stock", "native", ""];

/// Conditions of a measurement besides its load, by name: only measurements that have all of them
/// in common are drawn side by side and ranked.
pub fn load_conditions(run: &Run, step: &Step) -> [(&'static str, String); 5] {
    [
        ("format", format(run).to_owned()),
        ("host", run.target.host.clone()),
        ("compressible data", format!("{} %", step.compressible_percent)),
        ("preconditioning", preconditioning(run, &step.suite)),
        ("sampling", sampling(run, Some(&step.suite))),
    ]
}

/// The sampling of the loads of `suite`, or of all, in words: `to ±1 %`; `none` where all was
/// simulated in detail, or is real.
pub(crate) fn sampling(run: &Run, suite: Option<&str>) -> String {
    let precision = run.precision(suite);
    precision.map_or_else(|| "none".to_owned(), |it| format!("to ±{} %", percent(it)))
}

/// The format of the drive of `run`; empty for that in which it was delivered.
pub(crate) fn format(run: &Run) -> &str {
    let format = run.target.format.as_str();
    if DELIVERED.contains(&format) { "" } else { format }
}

/// The preconditioning of `suite` in words: `4k-rand-write T16Q16 for 6 h`; `none` without one.
pub(crate) fn preconditioning(run: &Run, suite: &str) -> String {
    let is_of = |step: &&Step| step.suite == suite && step.kind == StepKind::Precondition;
    run.steps.iter().find(is_of).map_or_else(
        || "none".to_owned(),
        |step| {
            let minutes = step.duration_s / 60.0;
            let (threads, queue) = (step.threads, step.queue_per_thread);
            format!("{} T{threads}Q{queue} for {minutes:.0} min", step.workload)
        },
    )
}

/// Divides `runs` into those that measured their common loads under the same conditions, in order
/// of appearance.
pub fn alike(runs: &[&Run]) -> Vec<Vec<usize>> {
    let loads = compare(runs);
    let conditions = |load: &Comparison, index: usize| {
        let step = runs[index].step(&load.entries[index].as_ref()?.step)?;
        Some(load_conditions(runs[index], step))
    };
    let are_alike = |a: usize, b: usize| {
        let both = loads.iter().filter_map(|it| conditions(it, a).zip(conditions(it, b)));
        both.into_iter().all(|(of_a, of_b)| of_a == of_b)
    };
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for index in 0..runs.len() {
        match classes.iter_mut().find(|class| class.iter().all(|other| are_alike(*other, index))) {
            Some(class) => class.push(index),
            None => classes.push(vec![index]),
        }
    }
    classes
}

/// Of loads of one workload the one that stands for it wherever one is named: that of the baseline
/// table, else that with most outstanding; of equals the first with the least compressible data.
pub fn representative<'a>(steps: impl DoubleEndedIterator<Item = &'a Step>) -> Option<&'a Step> {
    // Of equals the last one is taken, so the first one comes last.
    steps.rev().max_by(|a, b| {
        let compressible = b.compressible_percent.total_cmp(&a.compressible_percent);
        let weight = |step: &Step| weight(step.threads, step.queue_per_thread);
        weight(a).cmp(&weight(b)).then(compressible)
    })
}

/// Order of loads in which the greatest is the [`representative`].
pub fn weight(threads: u16, queue_per_thread: u16) -> (bool, u32) {
    let outstanding = u32::from(threads) * u32::from(queue_per_thread);
    ((threads, queue_per_thread) == (THREADS, QUEUE_PER_THREAD), outstanding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn runs_are_alike_that_differ_in_the_drive_alone() {
        let mut other = example::run();
        other.target.name = "another".into();
        let first = example::run();
        assert_eq!(alike(&[&first, &other]), [vec![0, 1]]);
        let changes: [fn(&mut Run); 5] = [
            example::sample,
            |run| run.target.format = "high-performance".into(),
            |run| run.target.host = "windows".into(),
            |run| run.steps.iter_mut().for_each(|step| step.compressible_percent = 50.0),
            |run| run.steps.iter_mut().for_each(|step| step.duration_s *= 2.0),
        ];
        for change in changes {
            let mut unlike = other.clone();
            change(&mut unlike);
            assert_eq!(alike(&[&first, &unlike, &other]), [vec![0, 2], vec![1]]);
        }
        other.target.format = "native".into();
        assert_eq!(alike(&[&first, &other]), [vec![0, 1]], "both as they were delivered");
    }

    #[test]
    fn the_load_of_the_baseline_table_stands_for_a_workload_else_the_greatest() {
        let step = example::run().steps.into_iter().find(Step::is_primary).unwrap();
        let of = |threads, queue_per_thread| Step { threads, queue_per_thread, ..step.clone() };
        let steps = [of(2, 2), of(16, 16), of(32, 32), of(8, 8)];
        let load = |steps: &[Step]| representative(steps.iter()).map(Step::outstanding);
        assert_eq!(load(&steps), Some(256));
        assert_eq!(load(&[of(2, 2), of(32, 32), of(8, 8)]), Some(1024));
        assert_eq!(load(&[]), None);
    }
}
