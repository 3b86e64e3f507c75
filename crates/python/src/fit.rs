//! Fits of drives to published or measured figures.

use lab::results::published;
use lab::ssd::DriveSpec;
use lab::{Error, Kind};
use pyo3::prelude::*;
use serde::Deserialize;
use study::drive_file::DriveFile;
use study::fit::{self, Evidence, Fit, Free, Question};

use crate::failure::{json, order};
use crate::figures::Figures;
use crate::run::RunData;
use crate::work::{Observer, detached_partly};

/// Order of a fit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FitOrder {
    /// Name of the drive's file in messages.
    name: String,
    /// Text of the drive's file.
    text: String,
    /// Figures; absent: the project's own, or those of a run.
    figures: Option<Figures>,
    free: Vec<FreeOrder>,
    /// The only format whose figures are used; absent: all formats.
    format: Option<String>,
    /// Number of drives that the global search evaluates.
    search: usize,
    seed: u64,
}

/// A number that is open besides those of the drive's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FreeOrder {
    path: String,
    bounds: Option<(f64, f64)>,
}

impl FitOrder {
    fn evidence(&self, spec: &DriveSpec, run: Option<&RunData>) -> Result<Evidence, Error> {
        if let Some(run) = run {
            return Ok(Evidence::of_run(spec, run.run(), run.plan()?));
        }
        let (name, text, table) = match &self.figures {
            Some(figures) => (figures.name.clone(), figures.text.clone(), figures.rows()?),
            None => (published::FILE.to_owned(), String::new(), published::figures().to_vec()),
        };
        Evidence::of_table(name, text, table)
    }

    fn carry_out(
        &self,
        jobs: usize,
        run: Option<&RunData>,
        observer: &Observer,
    ) -> Result<Fit, Error> {
        let file = DriveFile::parse(&self.text, &self.name)?;
        let spec = file.spec();
        let spec =
            spec.map_err(|source| Error::new(Kind::Input, "reading the drive").source(source))?;
        let evidence = self.evidence(&spec, run)?;
        let (_, rows) = evidence.about(spec, self.format.as_deref())?;
        let free: Vec<Free> =
            self.free.iter().map(|it| Free { path: it.path.clone(), bounds: it.bounds }).collect();
        let question = Question {
            free: &free,
            rows: &rows,
            evidence: &evidence.name,
            assumed: evidence.assumed.as_deref(),
            format: self.format.as_deref(),
            plans: &evidence.plans,
            published: evidence.published.as_ref(),
            swarm: self.search,
            seed: self.seed,
            threads: jobs,
        };
        fit::fit(&file, question, observer)
    }
}

/// Fits the free parameters of a drive to figures or a run, with `jobs` simulations
/// at once. Returns the fit as JSON; the best that was found if Ctrl-C interrupts it.
#[pyfunction]
#[pyo3(signature = (order_json, jobs, run=None, progress=None))]
pub(crate) fn fit_drive(
    py: Python<'_>,
    order_json: &str,
    jobs: usize,
    run: Option<&RunData>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let asked: FitOrder = order(order_json)?;
    json(&detached_partly(py, progress, |observer| asked.carry_out(jobs, run, observer))?)
}
