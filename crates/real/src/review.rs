//! Runs of a review, carried out with one seed or with several.

use lab::Error;
use lab::driver::Drivers;
use lab::plan::Plan;
use lab::progress::Progress;
use lab::runner::{Assignment, NoStepStore, Outcome, StepStore, carry_out};
use lab::runs::Folder;
use lab::subject::Subject;
use lab::target::access::Access;

use crate::drivers::drivers;

/// A plan with its drivers.
type DrivenPlan<'a> = (Box<Drivers<'a>>, Plan);

/// A run of a review.
#[derive(Clone, Copy, Debug)]
pub struct ReviewRun<'a> {
    /// Folder that keeps its steps and has its order.
    pub folder: &'a Folder,
    /// Drive of the order.
    pub subject: &'a Subject,
    /// Name in the progress.
    pub label: &'a str,
}

impl<'a> ReviewRun<'a> {
    /// A plan for each of so many consecutive seeds, with its drivers.
    fn driven(&self, seeds: u32, access: &Access) -> Result<Vec<DrivenPlan<'a>>, Error> {
        let order = self.folder.order();
        let of_seed =
            |plan: Plan| Ok((drivers(self.subject, &order.wanted, plan.seed, access)?, plan));
        order.plan.repeats(seeds).into_iter().map(of_seed).collect()
    }

    fn assignment<'b>(
        &'b self,
        seed: usize,
        (drivers, plan): &'b DrivenPlan<'_>,
    ) -> Result<Assignment<'b>, Error> {
        // The first seed is what is kept.
        let is_kept = seed == 0;
        let step_store: &dyn StepStore = if is_kept { self.folder } else { &NoStepStore };
        let finished = if is_kept { self.folder.finished()? } else { Vec::new() };
        let drivers = drivers.as_ref();
        Ok(Assignment { label: self.label, plan, drivers, step_store, finished })
    }
}

/// Measures each run with so many consecutive `seeds`, of which all but the first are for its
/// spread, on `jobs` threads. `announce` is called with each run before any of them begins.
///
/// # Errors
/// Fails as [`drivers`], [`carry_out`] and `announce` do.
///
/// # Panics
/// Panics without a seed.
pub fn measure<E: From<Error>>(
    runs: &[ReviewRun<'_>],
    (seeds, jobs): (u32, usize),
    access: impl Fn(&Folder) -> Access,
    mut announce: impl FnMut(&ReviewRun<'_>, &Drivers<'_>) -> Result<(), E>,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>, E> {
    assert!(seeds > 0, "a run has a seed");
    let driven = runs.iter().map(|run| run.driven(seeds, &access(run.folder)));
    let driven = driven.collect::<Result<Vec<_>, _>>()?;
    for (run, seeds) in runs.iter().zip(&driven) {
        announce(run, seeds[0].0.as_ref())?;
    }
    let mut assignments = Vec::new();
    for seed in 0..seeds as usize {
        for (run, seeds) in runs.iter().zip(&driven) {
            assignments.push(run.assignment(seed, &seeds[seed])?);
        }
    }
    let outcomes = carry_out(&assignments, jobs, progress)?;
    assert_eq!(outcomes.len(), assignments.len(), "every assignment has its outcome");
    let of_run = |index: usize| outcomes.iter().skip(index).step_by(runs.len()).cloned();
    Ok((0..runs.len()).map(|index| Outcome::first_with_spread(of_run(index).collect())).collect())
}
