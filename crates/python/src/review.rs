//! A whole protocol on a drive, and the review of it.

use std::path::PathBuf;

use lab::library::Library;
use lab::progress::Progress;
use lab::real::access::Access;
use lab::results::Run;
use lab::runner::{Assignment, Drivers, carry_out};
use lab::runs::{Folder, Runs};
use lab::subject::{Choice, Subject};
use lab::workload::Protocol;
use lab::{Error, Kind};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::drive::DriveOrder;
use crate::failure::order;
use crate::run::RunData;
use crate::work::detached;

/// Order of a review.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewOrder {
    drive: DriveOrder,
    /// Name of a protocol, or path of its file.
    protocol: String,
    /// Folder in which the run folders and the review are created.
    out: PathBuf,
    /// Number of simulations that run in parallel.
    jobs: usize,
}

impl ReviewOrder {
    fn folders(&self, subject: &Subject, runs: &Runs) -> Result<Vec<Folder>, Error> {
        let library = Library::of_user();
        let protocol = library.find::<Protocol>(&self.protocol)?.value;
        let plan = library.plan(&protocol, self.drive.seed)?;
        let time_lapse_max = plan.time_lapse_max;
        let choice = Choice { time_lapse_max, ..self.drive.choice() };
        let wanted = subject.setups(&choice)?.into_iter();
        wanted.map(|it| runs.create(subject.plan(plan.clone(), &it), it)).collect()
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
            .map(|it| subject.drivers(&it.order().wanted, it.order().plan.seed, &access))
            .collect::<Result<_, _>>()?;
        let assignments: Vec<Assignment<'_>> = folders
            .iter()
            .zip(&drivers)
            .map(|(folder, drivers)| Assignment {
                label: folder.order().wanted.format(),
                plan: &folder.order().plan,
                drivers: drivers.as_ref(),
                journal: folder,
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
    Ok((path.display().to_string(), runs.into_iter().map(RunData::new).collect()))
}
