//! Carries plans out.
//!
//! Each suite begins with a purge and so gets a driver of its own; suites of models run in
//! parallel, and what comes back is in the order of the plan, so that the bytes of a result do not
//! depend on how many threads there were.
//!
//! ```text
//! assignments ──► suites ──► pool ──► steps, each into its store as soon as it is done
//!                                       └──► outcome of each assignment, in plan order
//! ```

mod extension;
mod outcome;
mod record;
mod suite;
mod warning;
mod write_requirement;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use results::Environment;

use crate::Error;
pub use crate::driver::Drivers;
use crate::plan::Plan;
use crate::pool::in_parallel;
use crate::progress::{Event, Progress, TimeTally};

pub use self::outcome::Outcome;
pub use self::record::Record;

/// Store of finished steps: each goes there at once, so that an interruption loses none.
pub trait StepStore: Sync {
    /// Keeps the record of the step numbered `index` in its plan.
    ///
    /// # Errors
    /// Fails if it could not be kept; the run ends.
    fn keep(&self, index: usize, record: &Record) -> Result<(), Error>;

    /// Takes the progress of a step, for processes that look on.
    fn follow(&self, _: &Event<'_>) {}
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStepStore;

impl StepStore for NoStepStore {
    fn keep(&self, _: usize, _: &Record) -> Result<(), Error> {
        Ok(())
    }
}

/// One plan to carry out.
#[expect(missing_debug_implementations, reason = "holds a closure")]
pub struct Assignment<'a> {
    /// Name of the run in progress reports, such as its format.
    pub label: &'a str,
    /// Plan to carry out.
    pub plan: &'a Plan,
    /// Factory of the drivers that carry it out.
    pub drivers: &'a Drivers<'a>,
    /// Store of finished steps.
    pub step_store: &'a dyn StepStore,
    /// Records that an earlier session finished, by index in the plan.
    pub finished: Vec<(usize, Record)>,
}

/// Carries out `assignments` on at most `threads` threads; real targets one suite at a time.
///
/// # Errors
/// The first failure in plan order; everything else ends as if it had been stopped. What was
/// finished is in the stores.
pub fn carry_out(
    assignments: &[Assignment<'_>],
    threads: usize,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>, Error> {
    let total_s = assignments.iter().map(|assignment| assignment.plan.duration_s()).sum();
    let total_work = assignments.iter().map(|assignment| assignment.plan.work()).sum();
    let suites: Vec<(usize, Range<usize>)> = assignments
        .iter()
        .enumerate()
        .flat_map(|(index, assignment)| {
            assignment.plan.suites().into_iter().map(move |steps| (index, steps))
        })
        .collect();
    let tally = TimeTally::new((total_s, total_work), threads.min(suites.len()));
    let state = RunnerState { progress, tally, failed: AtomicBool::new(false) };
    let order = order(assignments, &suites);
    let done = in_parallel(threads, &order, |suite| {
        let (index, steps) = &suites[*suite];
        let result = suite::carry_out(&assignments[*index], steps.clone(), &state);
        if result.is_err() {
            state.failed.store(true, Ordering::Relaxed);
        }
        result
    });
    let mut done: Vec<_> = order.into_iter().zip(done).collect();
    done.sort_by_key(|(suite, _)| *suite);
    let mut outcomes: Vec<Option<Outcome>> = assignments.iter().map(|_| None).collect();
    for ((index, _), (_, result)) in suites.iter().zip(done) {
        let suite = result?;
        let outcome = outcomes[*index].get_or_insert_with(|| Outcome {
            target: suite.target,
            environment: Environment::default(),
            records: Vec::new(),
            interrupted: false,
            spared: 0,
        });
        // The last one knows what the whole run did to the drive.
        outcome.environment = suite.environment;
        outcome.records.extend(suite.records);
        outcome.interrupted |= suite.interrupted;
        outcome.spared += suite.spared;
    }
    Ok(outcomes.into_iter().flatten().collect())
}

/// Order in which `suites` are begun: those of models the longest first, so that no processor works
/// on a long one alone at the end; others as they are planned.
fn order(assignments: &[Assignment<'_>], suites: &[(usize, Range<usize>)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..suites.len()).collect();
    if assignments.iter().all(|assignment| assignment.plan.is_of_model()) {
        let work = |suite: &usize| {
            let (index, steps) = &suites[*suite];
            steps.clone().map(|step| assignments[*index].plan.work_of(step)).sum::<f64>()
        };
        order.sort_by(|one, other| work(other).total_cmp(&work(one)));
    }
    order
}

/// State that all suites of one call share.
pub(crate) struct RunnerState<'a> {
    progress: &'a dyn Progress,
    tally: TimeTally,
    failed: AtomicBool,
}

impl RunnerState<'_> {
    /// True if work is to end: by wish, or because something else failed.
    fn stop(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.progress.stop()
    }
}
