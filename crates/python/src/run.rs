//! One workload on one drive, and run folders.

use lab::library::Library;
use lab::plan::{OneLoad, Pace, Plan};
use lab::real::access::Access;
use lab::results::Run;
use lab::runner::{Assignment, NoJournal, carry_out};
use lab::runs::Runs;
use lab::workload::{SizeShare, Workload};
use lab::{Error, Gaps, Kind, Rate};
use pyo3::prelude::*;
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
}

impl RunOrder {
    fn workload(&self) -> Result<Workload, Error> {
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
        let load = OneLoad {
            threads: self.threads,
            queue_per_thread: self.queue_per_thread,
            precondition_s: self.precondition_s,
            duration_s: self.duration_s,
            pace,
            replay: None,
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
}

impl RunData {
    pub(crate) const fn new(run: Run) -> Self {
        Self { run }
    }
}

#[pymethods]
impl RunData {
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
        let drivers = subject.drivers(&wanted, plan.seed, &Access::default())?;
        let assignment = Assignment {
            label: wanted.format(),
            plan: &plan,
            drivers: drivers.as_ref(),
            journal: &NoJournal,
            finished: Vec::new(),
        };
        let outcome = carry_out(&[assignment], 1, progress)?.remove(0);
        Ok(outcome.into_run(&plan, String::new(), String::new()))
    })?;
    Ok(RunData::new(run))
}

/// Reads the run in the folder `path`.
#[pyfunction]
pub(crate) fn open_run(py: Python<'_>, path: &str) -> PyResult<RunData> {
    let run = py.detach(|| Runs::new("runs").load(path));
    run.map(RunData::new).map_err(|error| exception(&error))
}
