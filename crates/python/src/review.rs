//! A whole protocol on a drive: its plan, and the review that carries it out.

use std::path::PathBuf;

use lab::driver::Drivers;
use lab::order::ReviewOrder;
use lab::plan::Plan;
use lab::progress::Progress;
use lab::results::Run;
use lab::runs::{Folder, Runs};
use lab::subject::Subject;
use lab::target::access::Access;
use lab::{Error, Kind, repeats};
use pyo3::prelude::*;
use real::review::{ReviewRun, measure};
use serde::Deserialize;
use serde_json::json;

use crate::drive::DriveOrder;
use crate::failure::{exception, order};
use crate::run::RunData;
use crate::work::detached;

/// A plan that is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanRequest {
    drive: DriveOrder,
    review: ReviewOrder,
}

/// Plans a protocol on a drive. Returns the plan of the protocol, the plan as this drive carries it
/// out, and the setups that it would be carried out in, as JSON.
#[pyfunction]
pub(crate) fn plan(order_json: &str) -> PyResult<String> {
    let asked: PlanRequest = order(order_json)?;
    let planned = || -> Result<serde_json::Value, Error> {
        let plan = asked.review.plan()?;
        let subject = asked.drive.subject()?;
        let setups = subject.setups(&asked.drive.choice().for_plan(&plan))?;
        let carried = setups.first().map_or(plan.clone(), |it| subject.plan(plan.clone(), it));
        Ok(json!({
            "plan": plan,
            "carried_out": carried,
            "targets": setups,
            "duration_s": carried.duration_s(),
        }))
    };
    crate::failure::json(&planned().map_err(|error| exception(&error))?)
}

/// A review that is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewRequest {
    work: Work,
    /// Folder of runs that the review goes into.
    out: PathBuf,
    /// Number of simulations that run in parallel.
    jobs: usize,
}

/// Runs of a review.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Work {
    /// Every setup of a drive, with consecutive seeds; no number: as many as are affordable, for
    /// the spread.
    Begin { drive: Box<DriveOrder>, plan: Plan, repeat: Option<u32> },
    /// Interrupted runs, by their names.
    Resume(Vec<String>),
}

impl Work {
    /// Folders of the runs, and the drive of each.
    fn folders(&self, runs: &Runs) -> Result<Vec<(Folder, Subject)>, Error> {
        match self {
            Self::Begin { drive, plan, repeat } => {
                let subject = drive.subject()?;
                let setups = subject.setups(&drive.choice().for_plan(plan))?;
                let plans = plan.repeats(repeat.unwrap_or(1));
                let every = plans.iter().flat_map(|plan| setups.iter().map(move |it| (plan, it)));
                every
                    .map(|(plan, setup)| {
                        let plan = subject.plan(plan.clone(), setup);
                        Ok((runs.create(plan, setup.clone())?, subject.clone()))
                    })
                    .collect()
            }
            Self::Resume(names) => names.iter().map(|name| resumed(runs, name)).collect(),
        }
    }
}

/// The folder of an interrupted run, and its drive.
fn resumed(runs: &Runs, name: &str) -> Result<(Folder, Subject), Error> {
    let folder = runs.open(name)?;
    let subject = Subject::find(&folder.order().wanted.target)?;
    if matches!(subject, Subject::Real { .. }) {
        let text = format!("{name} is a run of a real drive");
        let hint = "`floatgate review --resume` goes on with it: only the command writes to drives";
        return Err(Error::new(Kind::Refused, text).hint(hint));
    }
    Ok((folder, subject))
}

impl ReviewRequest {
    fn carry_out(&self, progress: &dyn Progress) -> Result<(PathBuf, Vec<RunData>), Error> {
        let runs = Runs::new(&self.out);
        let folders = self.work.folders(&runs)?;
        let measured = self.measured(&folders, progress).inspect_err(|_| {
            for (folder, _) in &folders {
                folder.give_up();
            }
        })?;
        let first = measured.first();
        let first = first.ok_or_else(|| Error::new(Kind::Program, "nothing was measured"))?;
        let page = report::review(&measured, &first.target.heading());
        let path = runs.publish(&measured, &page)?;
        let data = |(run, (folder, _)): (_, &(Folder, _))| {
            RunData::new(run, Some(folder.order().plan.clone()))
        };
        Ok((path, measured.into_iter().zip(&folders).map(data).collect()))
    }

    fn measured<'a>(
        &self,
        folders: &'a [(Folder, Subject)],
        progress: &dyn Progress,
    ) -> Result<Vec<Run>, Error> {
        let is_begun = matches!(self.work, Work::Begin { repeat: None, .. });
        let seeds = match folders.first() {
            Some((_, subject)) if is_begun => {
                let orders = folders.iter().map(|(folder, _)| folder.order());
                repeats::affordable(subject, orders.map(|it| (&it.wanted, &it.plan)))
            }
            // A resumed run has the seeds that are left to it.
            _ => 1,
        };
        let run = |(folder, subject): &'a (Folder, Subject)| ReviewRun {
            folder,
            subject,
            label: &folder.order().wanted.format,
        };
        let runs: Vec<ReviewRun<'_>> = folders.iter().map(run).collect();
        let access = |_: &Folder| Access::default();
        let quiet = |_: &ReviewRun<'_>, _: &Drivers<'_>| Ok::<_, Error>(());
        let outcomes = measure(&runs, (seeds, self.jobs), access, quiet, progress)?;
        folders.iter().zip(outcomes).map(|((folder, _), outcome)| folder.finish(outcome)).collect()
    }
}

/// Runs a protocol on a drive. Returns the path of the page, and the runs.
#[pyfunction]
#[pyo3(signature = (order_json, progress=None))]
pub(crate) fn review(
    py: Python<'_>,
    order_json: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<RunData>)> {
    let asked: ReviewRequest = order(order_json)?;
    let (path, runs) = detached(py, progress, |progress| asked.carry_out(progress))?;
    Ok((path.display().to_string(), runs))
}
