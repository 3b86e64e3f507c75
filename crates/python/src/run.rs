//! One workload on one drive, and run folders.

use std::path::PathBuf;

use lab::library::Library;
use lab::plan::{OneLoad, Pace, Plan};
use lab::replay::{self, PlannedReplay, Source};
use lab::results::{self, Run};
use lab::runner::{Assignment, NoStepStore, carry_out};
use lab::runs::Runs;
use lab::target::access::Access;
use lab::workload::trace::Addresses;
use lab::workload::{SizeShare, Workload};
use lab::{Error, Gaps, Kind, Rate};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use real::drivers::drivers;
use serde::Deserialize;

use crate::drive::DriveOrder;
use crate::failure::{exception, order};
use crate::table::ArrowTable;
use crate::work::detached;

/// Largest transfer size, in bytes.
const TRANSFER_MAX: u32 = 1 << 30;

/// Order of one run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunOrder {
    drive: DriveOrder,
    /// Name of a workload, or path of its file.
    workload: String,
    /// Transfer size in bytes that replaces those of the workload.
    transfer_bytes: Option<u32>,
    threads: u16,
    queue_per_thread: u16,
    duration_s: f64,
    precondition_s: f64,
    /// Arrival rate in requests per second; absent: a closed loop.
    rate: Option<f64>,
    /// Compressibility of the data in percent; absent: the workload's own.
    compressible_percent: Option<f64>,
    /// Path of a trace, which is replayed instead of the workload.
    trace: Option<PathBuf>,
    /// Factor by which the trace is replayed faster than it was recorded; absent: a closed loop.
    speed: Option<f64>,
    /// True if addresses of the trace are wrapped around the drive, not scaled to it.
    wrap: bool,
}

impl RunOrder {
    fn workload(&self) -> Result<Workload, Error> {
        if let Some(path) = &self.trace {
            return Ok(replay::workload_of(&replay::read(path)?));
        }
        let workload = Library::of_user().find::<Workload>(&self.workload)?.value;
        let Some(bytes) = self.transfer_bytes else { return Ok(workload) };
        if bytes == 0 || bytes % 512 != 0 || bytes > TRANSFER_MAX {
            let text = format!("a transfer size of {bytes} bytes");
            return Err(Error::new(Kind::Input, text).hint("give a multiple of 512 up to 1 GiB"));
        }
        Ok(Workload {
            title: format!("{} at {}", workload.title, lab::Bytes(bytes.into())),
            sizes: vec![SizeShare { bytes, percent: 100.0 }],
            align_bytes: 0,
            ..workload
        })
    }

    fn plan(&self) -> Result<Plan, Error> {
        self.check()?;
        let pace = self.rate.map(|iops| Pace::Fixed(Rate { iops, gaps: Gaps::Exponential }));
        let addresses = if self.wrap { Addresses::Wrapped } else { Addresses::Scaled };
        let replay =
            self.trace.clone().map(|path| PlannedReplay { source: Source::File(path), addresses });
        let load = OneLoad {
            threads: self.threads,
            queue_per_thread: self.queue_per_thread,
            precondition_s: self.precondition_s,
            duration_s: self.duration_s,
            pace: pace.or(self.speed.map(|speed| Pace::Trace { speed })),
            replay,
        };
        let plan = Plan::of_one(&self.workload()?, &load, self.drive.seed);
        Ok(match self.compressible_percent {
            Some(percent) => plan.with_compressible(percent),
            None => plan,
        })
    }

    /// Refuses numbers outside the range of a load.
    fn check(&self) -> Result<(), Error> {
        let refused = |name: &str, value: f64, range: &str| {
            Err(Error::new(Kind::Input, format!("{name} is {value}, must be {range}")))
        };
        if !(1..=1024).contains(&self.threads) {
            return refused("threads", self.threads.into(), "from 1 to 1024");
        }
        if !(1..=4096).contains(&self.queue_per_thread) {
            return refused("queue", self.queue_per_thread.into(), "from 1 to 4096");
        }
        if !(self.duration_s > 0.0 && self.duration_s.is_finite()) {
            return refused("runtime", self.duration_s, "above 0 seconds");
        }
        if !(self.precondition_s >= 0.0 && self.precondition_s.is_finite()) {
            return refused("precondition", self.precondition_s, "0 seconds or more");
        }
        if let Some(rate) = self.rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
            return refused("rate", rate, "above 0 requests a second");
        }
        if let Some(speed) = self.speed.filter(|speed| !(*speed > 0.0 && speed.is_finite())) {
            return refused("speed", speed, "above 0");
        }
        match self.compressible_percent.filter(|it| !(0.0..=100.0).contains(it)) {
            Some(percent) => refused("compressible", percent, "from 0 to 100 percent"),
            None => Ok(()),
        }
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
    let asked: RunOrder = order(order_json)?;
    let run = detached(py, progress, |progress| {
        let subject = asked.drive.subject()?;
        let wanted = subject.setup(&asked.drive.choice())?;
        let plan = subject.plan(asked.plan()?, &wanted);
        let drivers = drivers(&subject, &wanted, plan.seed, &Access::default())?;
        let assignment = Assignment {
            label: wanted.format(),
            plan: &plan,
            drivers: drivers.as_ref(),
            step_store: &NoStepStore,
            finished: Vec::new(),
        };
        let outcome = carry_out(&[assignment], 1, progress)?.remove(0);
        let run = outcome.into_run(&plan, String::new(), String::new());
        Ok(RunData::new(run, Some(plan)))
    })?;
    Ok(run)
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
