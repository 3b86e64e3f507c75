//! One workload on one drive, and run folders.

use std::iter;
use std::path::PathBuf;

use lab::import;
use lab::order::RunOrder;
use lab::plan::Plan;
use lab::progress::Progress;
use lab::results::{self, Run};
use lab::runner::{Assignment, NoStepStore, Outcome, carry_out};
use lab::runs::Runs;
use lab::target::access::Access;
use lab::{Error, Kind, repeats};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use real::drivers::drivers;
use serde::Deserialize;

use crate::drive::DriveOrder;
use crate::failure::{exception, order};
use crate::table::ArrowTable;
use crate::work::detached;

/// A run that is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunRequest {
    drive: DriveOrder,
    run: RunOrder,
    /// Seeds to run it with, for the spread of its figures; absent: as many as are affordable.
    repeat: Option<u32>,
}

impl RunRequest {
    fn carry_out(&self, progress: &dyn Progress) -> Result<RunData, Error> {
        let subject = self.drive.subject()?;
        let wanted = subject.setup(&self.drive.choice())?;
        let (order, trace) = (&self.run, self.run.trace()?);
        let threads = order.threads.unwrap_or(RunOrder::THREADS);
        let plan = order.plan(threads, trace.as_ref(), self.drive.seed)?;
        let plan = subject.plan(plan, &wanted);
        let affordable = || repeats::affordable(&subject, iter::once((&wanted, &plan)));
        let plans = plan.repeats(self.repeat.unwrap_or_else(affordable));
        let drivers: Vec<_> = plans
            .iter()
            .map(|plan| drivers(&subject, &wanted, plan.seed, &Access::default()))
            .collect::<Result<_, _>>()?;
        let assignment = |(plan, drivers)| Assignment {
            label: &wanted.format,
            plan,
            drivers: Box::as_ref(drivers),
            step_store: &NoStepStore,
            finished: Vec::new(),
        };
        let assignments: Vec<_> = plans.iter().zip(&drivers).map(assignment).collect();
        let outcomes = carry_out(&assignments, plans.len(), progress)?;
        let plan = &plans[0];
        let outcome = Outcome::first_with_spread(outcomes);
        let run = outcome.into_run(plan, String::new(), String::new());
        Ok(RunData::new(run, Some(plan.clone())))
    }
}

/// A result: the contents of `run.json` and of its Parquet files.
#[pyclass(frozen, module = "floatgate._core")]
pub(crate) struct RunData {
    run: Run,
    /// The plan that it followed; absent if its folder does not have it.
    plan: Option<Plan>,
}

impl RunData {
    pub(crate) const fn new(run: Run, plan: Option<Plan>) -> Self {
        Self { run, plan }
    }

    /// The result.
    pub(crate) const fn run(&self) -> &Run {
        &self.run
    }

    /// The plan that it followed.
    ///
    /// # Errors
    /// Fails if it was not stored.
    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        self.plan.clone().ok_or_else(|| {
            let text = format!("the plan of run {} was not stored", self.run.id);
            Error::new(Kind::Input, text).hint("measure it again")
        })
    }

    /// The parts from which another process can restore it.
    fn parts(&self) -> Result<Parts, results::Error> {
        let (mut samples, mut latencies, mut histograms) = (Vec::new(), Vec::new(), Vec::new());
        self.run.samples_to_parquet(&mut samples)?;
        self.run.latencies_to_parquet(&mut latencies)?;
        self.run.histograms_to_parquet(&mut histograms)?;
        let plan = self.plan.as_ref().map(serde_json::to_string).transpose();
        let plan = plan.map_err(results::Error::Json)?;
        Ok((self.run.to_json()?, plan, samples, latencies, histograms))
    }

    fn of_parts(parts: Parts) -> Result<Self, results::Error> {
        let (text, plan, samples, latencies, histograms) = parts;
        let mut run = Run::from_json(&text)?;
        run.samples_from_parquet(samples)?;
        run.latencies_from_parquet(latencies)?;
        run.histograms_from_parquet(histograms)?;
        let plan = plan.map(|text| serde_json::from_str(&text)).transpose();
        Ok(Self { run, plan: plan.map_err(results::Error::Json)? })
    }
}

/// Parts as Python has them.
type PyParts<'py> =
    (String, Option<String>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// A run as its files: `run.json`, the plan, samples, latencies and histograms.
type Parts = (String, Option<String>, Vec<u8>, Vec<u8>, Vec<u8>);

fn unpicklable(source: results::Error) -> PyErr {
    exception(&Error::new(Kind::Io, "pickling a run").source(source))
}

#[pymethods]
impl RunData {
    /// The run that was pickled as these parts.
    #[staticmethod]
    #[pyo3(name = "of_parts")]
    fn of_pickle(parts: Parts) -> PyResult<Self> {
        Self::of_parts(parts).map_err(unpicklable)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (PyParts<'py>,))> {
        let make = py.get_type::<Self>().getattr("of_parts")?;
        let (text, plan, samples, latencies, histograms) = self.parts().map_err(unpicklable)?;
        let bytes = |it: Vec<u8>| PyBytes::new(py, &it);
        Ok((make, ((text, plan, bytes(samples), bytes(latencies), bytes(histograms)),)))
    }

    /// The text of `run.json`.
    fn json(&self) -> PyResult<String> {
        let failed = |source| exception(&Error::new(Kind::Io, "writing a result").source(source));
        self.run.to_json().map_err(failed)
    }

    /// Samples of all steps, one row each.
    fn samples(&self) -> PyResult<ArrowTable> {
        ArrowTable::new(self.run.samples_table()).map_err(|error| exception(&error))
    }

    /// Latency histograms of all steps, one row for each bin.
    fn latencies(&self) -> PyResult<ArrowTable> {
        ArrowTable::new(self.run.latencies_table()).map_err(|error| exception(&error))
    }

    /// Report of this run only, as one HTML file.
    fn html(&self, py: Python<'_>) -> String {
        let runs = std::slice::from_ref(&self.run);
        py.detach(|| report::review(runs, &self.run.target.heading()))
    }
}

/// Runs one workload on one drive.
#[pyfunction]
#[pyo3(signature = (order_json, progress=None))]
pub(crate) fn run(
    py: Python<'_>,
    order_json: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RunData> {
    let asked: RunRequest = order(order_json)?;
    detached(py, progress, |progress| asked.carry_out(progress))
}

/// Reads the run in the folder `path`.
#[pyfunction]
pub(crate) fn open_run(py: Python<'_>, path: &str) -> PyResult<RunData> {
    let loaded = py.detach(|| {
        let runs = Runs::new("runs");
        Ok(RunData::new(runs.load(path)?, runs.plan(path).ok()))
    });
    loaded.map_err(|error: Error| exception(&error))
}

/// Imports a fio report or a flat file of vdbench into the folder `root`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts values, not references")]
#[pyo3(signature = (path, title, root))]
pub(crate) fn import_run(
    py: Python<'_>,
    path: PathBuf,
    title: Option<&str>,
    root: PathBuf,
) -> PyResult<RunData> {
    let imported = py.detach(|| import::import_run(&Runs::new(root), &path, title));
    imported.map(|run| RunData::new(run, None)).map_err(|error| exception(&error))
}
