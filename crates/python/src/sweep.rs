//! Sweeps: orders, single points, and folders.
//!
//! Orders and points are texts, so that a point can be measured in another process or on another
//! machine. A point depends only on the order and the point's index.

use std::path::Path;

use lab::library::Library;
use lab::results::sweep::{Dimension, Point, Sweep};
use lab::workload::Workload;
use lab::{Error, Kind, repeats, ssd};
use pyo3::prelude::*;
use serde::Deserialize;
use study::sweep::{Store, SweepOrder, dimension};

use crate::drive::DriveOrder;
use crate::failure::{exception, json, order};
use crate::work::detached;

/// Arguments of a sweep.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepArguments {
    drive: DriveOrder,
    workload: String,
    threads: u16,
    queue_per_thread: u16,
    repeat: Option<u32>,
    load_gb_per_day: Option<f64>,
    /// Lists of values, by key.
    dimensions: Vec<Dimension>,
    /// Ranges by key in the form of the command, such as `400..720/9`, instead of a list of values.
    ranges: Vec<(String, String)>,
}

impl SweepArguments {
    fn order(self) -> Result<SweepOrder, Error> {
        let setup = self.drive.model_setup()?;
        let mut dimensions = self.dimensions;
        for (key, text) in &self.ranges {
            let range = dimension::dimension(key, text, dimension::plain)?;
            match dimensions.iter_mut().find(|it| it.key == *key) {
                Some(place) => *place = range,
                None => dimensions.push(range),
            }
        }
        if dimensions.is_empty() {
            let error = Error::new(Kind::Input, "no parameter to sweep was given");
            return Err(error.hint("give values, such as {\"user_capacity_gb\": [400, 720]}"));
        }
        let order = SweepOrder {
            schema: SweepOrder::SCHEMA,
            model_version: ssd::MODEL_VERSION,
            id: String::new(),
            started_at: String::new(),
            drive: self.drive.text,
            format: setup.format,
            host: setup.host,
            time_lapse: self.drive.time_lapse,
            seed: self.drive.seed,
            workload: Library::of_user().find::<Workload>(&self.workload)?.value,
            threads: self.threads,
            queue_per_thread: self.queue_per_thread,
            repeat: 1,
            load_gb_per_day: self.load_gb_per_day,
            dimensions,
        };
        order.check()?;
        let repeat = match self.repeat {
            Some(repeat) => repeat,
            None => repeats::of_work(order.work()?),
        };
        Ok(SweepOrder { repeat, ..order })
    }
}

/// Returns the order of a sweep with these arguments, and the number of its points.
#[pyfunction]
pub(crate) fn sweep_order(arguments_json: &str) -> PyResult<(String, usize)> {
    let arguments: SweepArguments = order(arguments_json)?;
    let made = arguments.order().and_then(|it| Ok((dimension::grid(&it.dimensions)?.len(), it)));
    let (count, made) = made.map_err(|error| exception(&error))?;
    Ok((json(&made)?, count))
}

/// Measures the point at `index` of the grid of an order. Returns it as JSON.
#[pyfunction]
pub(crate) fn sweep_point(py: Python<'_>, order_json: &str, index: usize) -> PyResult<String> {
    let asked: SweepOrder = order(order_json)?;
    let point = detached(py, None, |progress| asked.measure(index, progress))?;
    let stopped = || exception(&Error::new(Kind::Program, "stopped before the point was done"));
    json(&point.ok_or_else(stopped)?)
}

/// Measures all points of an order, except for the `finished` ones, on `jobs` threads. Returns the
/// result as JSON. Each point is stored in `folder`, if there is one, as soon as it is measured.
#[pyfunction]
#[pyo3(signature = (order_json, jobs, folder=None, progress=None))]
pub(crate) fn sweep_all(
    py: Python<'_>,
    order_json: &str,
    jobs: usize,
    folder: Option<&SweepFolder>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let asked: SweepOrder = order(order_json)?;
    let store = folder.map(|folder| &folder.store);
    let sweep = detached(py, progress, |progress| {
        let keep = |index: usize, point: &Point| match store {
            Some(store) => store.keep(index, point),
            None => Ok(()),
        };
        let finished = store.map_or_else(|| Ok(Vec::new()), Store::finished)?;
        asked.carry_out(&finished, jobs, progress, &keep)
    })?;
    json(&sweep)
}

/// Returns the result of an order as JSON; `points` are in the order of the grid.
#[pyfunction]
pub(crate) fn sweep_result(order_json: &str, points: Vec<String>) -> PyResult<String> {
    let asked: SweepOrder = order(order_json)?;
    let points = points.into_iter().map(|text| order(&text)).collect::<PyResult<Vec<Point>>>()?;
    json(&asked.sweep(points).map_err(|error| exception(&error))?)
}

/// The page on a sweep, as one HTML file.
#[pyfunction]
pub(crate) fn sweep_html(sweep_json: &str) -> PyResult<String> {
    Ok(report::sweep(&order::<Sweep>(sweep_json)?))
}

/// The folder of a sweep that is under way.
#[pyclass(frozen, module = "floatgate._core")]
pub(crate) struct SweepFolder {
    store: Store,
}

#[pymethods]
impl SweepFolder {
    /// Creates the folder of a new sweep in `root`.
    #[staticmethod]
    fn create(root: &str, order_json: &str) -> PyResult<Self> {
        let made = Store::create(Path::new(root), order(order_json)?);
        made.map(|store| Self { store }).map_err(|error| exception(&error))
    }

    /// Opens the folder of a sweep, a path or a name in `root`, to resume the sweep.
    #[staticmethod]
    fn open(root: &str, asked: &str) -> PyResult<Self> {
        let opened = Store::open(Path::new(root), asked);
        opened.map(|store| Self { store }).map_err(|error| exception(&error))
    }

    /// Path of the folder.
    #[getter]
    fn path(&self) -> String {
        self.store.path().display().to_string()
    }

    /// The order, which includes the folder's name, as JSON.
    fn order(&self) -> PyResult<String> {
        json(self.store.order())
    }

    /// Number of points of the grid.
    fn count(&self) -> PyResult<usize> {
        let grid = dimension::grid(&self.store.order().dimensions);
        grid.map(|points| points.len()).map_err(|error| exception(&error))
    }

    /// Finished points by index in the grid, as JSON.
    fn finished(&self) -> PyResult<Vec<(usize, String)>> {
        let finished = self.store.finished().map_err(|error| exception(&error))?;
        finished.iter().map(|(index, point)| Ok((*index, json(point)?))).collect()
    }

    /// Stores the point with this index.
    fn keep(&self, index: usize, point_json: &str) -> PyResult<()> {
        let point: Point = order(point_json)?;
        self.store.keep(index, &point).map_err(|error| exception(&error))
    }

    /// Writes the result, its table and its report. Returns the path of the report.
    fn finish(&self, sweep_json: &str) -> PyResult<String> {
        let sweep: Sweep = order(sweep_json)?;
        let page = self.store.finish(&sweep, &report::sweep(&sweep));
        page.map(|path| path.display().to_string()).map_err(|error| exception(&error))
    }
}
