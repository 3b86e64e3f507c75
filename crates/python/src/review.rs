//! A whole protocol on a drive: its plan, and the review that carries it out.

use std::path::PathBuf;

use lab::library::Library;
use lab::plan::Plan;
use lab::progress::Progress;
use lab::results::Run;
use lab::runner::{Assignment, Drivers, carry_out};
use lab::runs::{Folder, Runs};
use lab::subject::{Choice, Subject};
use lab::target::access::Access;
use lab::wanted::OrderedTarget;
use lab::workload::Protocol;
use lab::{Error, Kind};
use pyo3::prelude::*;
use real::drivers::drivers;
use serde::Deserialize;
use serde_json::json;

use crate::drive::DriveOrder;
use crate::failure::{exception, order};
use crate::run::RunData;
use crate::work::detached;

/// Plans `protocol`, a name or the path of a file, on a drive. Returns the plan of the protocol,
/// the plan as this drive carries it out, and the setups that it would be carried out in, as JSON.
#[pyfunction]
pub(crate) fn plan(order_json: &str, protocol: &str) -> PyResult<String> {
    let asked: DriveOrder = order(order_json)?;
    let planned = || -> Result<serde_json::Value, Error> {
        let library = Library::of_user();
        let protocol = library.find::<Protocol>(protocol)?.value;
        let plan = library.plan(&protocol, asked.seed)?;
        let subject = asked.subject()?;
        let setups = setups(&asked, &subject, &plan)?;
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

/// Setups of the drive that a plan is for.
fn setups(asked: &DriveOrder, subject: &Subject, plan: &Plan) -> Result<Vec<OrderedTarget>, Error> {
    subject.setups(&Choice { time_lapse_max: plan.time_lapse_max, ..asked.choice() })
}

/// Order of a review.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewOrder {
    drive: DriveOrder,
    /// Plan of the protocol.
    plan: Plan,
    /// Folder of runs that the review goes into.
    out: PathBuf,
    /// Number of simulations that run in parallel.
    jobs: usize,
}

impl ReviewOrder {
    fn folders(&self, subject: &Subject, runs: &Runs) -> Result<Vec<Folder>, Error> {
        let setups = setups(&self.drive, subject, &self.plan)?.into_iter();
        setups.map(|it| runs.create(subject.plan(self.plan.clone(), &it), it)).collect()
    }

    fn carry_out(&self, progress: &dyn Progress) -> Result<(PathBuf, Vec<Run>), Error> {
        let runs = Runs::new(&self.out);
        let subject = self.drive.subject()?;
        let folders = self.folders(&subject, &runs)?;
        let measured = self.measured(&folders, &subject, progress).inspect_err(|_| {
            for folder in &folders {
                folder.give_up();
            }
        })?;
        Ok((publish(&runs, &measured)?, measured))
    }

    fn measured(
        &self,
        folders: &[Folder],
        subject: &Subject,
        progress: &dyn Progress,
    ) -> Result<Vec<Run>, Error> {
        let access = Access::default();
        let drivers: Vec<Box<Drivers<'_>>> = folders
            .iter()
            .map(|it| drivers(subject, &it.order().wanted, it.order().plan.seed, &access))
            .collect::<Result<_, _>>()?;
        let assignments: Vec<Assignment<'_>> = folders
            .iter()
            .zip(&drivers)
            .map(|(folder, drivers)| Assignment {
                label: folder.order().wanted.format(),
                plan: &folder.order().plan,
                drivers: drivers.as_ref(),
                step_store: folder,
                finished: Vec::new(),
            })
            .collect();
        let outcomes = carry_out(&assignments, self.jobs, progress)?;
        folders.iter().zip(outcomes).map(|(folder, outcome)| folder.finish(outcome)).collect()
    }
}

/// Writes the review of `runs` to the folder that contains them.
fn publish(runs: &Runs, measured: &[Run]) -> Result<PathBuf, Error> {
    let Some(first) = measured.first() else {
        return Err(Error::new(Kind::Program, "nothing was measured"));
    };
    let name = first.id.strip_suffix(&format!("-{}", first.target.format)).unwrap_or(&first.id);
    let page = format!("{name}.html");
    let path = runs.write_review(&page, &report::review(measured, &first.target.heading()))?;
    for run in measured {
        runs.note_page(&run.id, &page)?;
    }
    Ok(path)
}

/// Runs a protocol on a drive. Returns the path of the page, and the runs.
#[pyfunction]
#[pyo3(signature = (order_json, progress=None))]
pub(crate) fn review(
    py: Python<'_>,
    order_json: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<RunData>)> {
    let asked: ReviewOrder = order(order_json)?;
    let (path, runs) = detached(py, progress, |progress| asked.carry_out(progress))?;
    let plan = &asked.plan;
    let runs = runs.into_iter().map(|run| RunData::new(run, Some(plan.clone())));
    Ok((path.display().to_string(), runs.collect()))
}
