//! Recordings of applications, replayed on modelled drives.

use std::num::NonZeroU32;

use lab::application::{self, ReplayHost};
use lab::driver::model::{ReplayModel, ReplayState};
use lab::workload::catalogue;
use lab::workload::recording::Recording;
use lab::{Error, Kind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use serde_json::json;

use crate::drive::DriveOrder;
use crate::failure::{exception, json, order};
use crate::work::detached;

/// Order of a replay.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayOrder {
    drive: DriveOrder,
    /// Speed of the host, as a multiple of the recording's host.
    host_speed: f64,
    /// Processors of the host; absent: those of the recording's host.
    #[serde(default)]
    host_processors: Option<NonZeroU32>,
    /// Copies of the recording that run at once.
    #[serde(default = "one")]
    copies: NonZeroU32,
    /// True if the other drive is served through the same front end.
    #[serde(default)]
    keep_front_end: bool,
    /// Share of the reads that the host's memory answers, in percent.
    buffered_percent: f64,
    /// Compressibility of the data, in percent.
    compressible_percent: f64,
    state: ReplayState,
}

const fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

impl ReplayOrder {
    fn carry_out(&self, recording: &Recording) -> Result<serde_json::Value, Error> {
        if !(0.0..=100.0).contains(&self.compressible_percent) {
            let text = format!("compressible is {} %, must be 0 to 100", self.compressible_percent);
            return Err(Error::new(Kind::Input, text));
        }
        let (speed, buffered_percent) = (self.host_speed, self.buffered_percent);
        let processors = self.host_processors;
        let (copies, keeps_front_end) = (self.copies, self.keep_front_end);
        let host = ReplayHost { speed, processors, buffered_percent, keeps_front_end, copies };
        let host = host.checked()?;
        let (spec, setup) = (self.drive.spec()?, self.drive.model_setup()?);
        let setup = setup.with_seed(self.drive.seed);
        let mut model = ReplayModel::new(&spec, &setup, self.compressible_percent)?;
        model.prepare(self.state, recording, &host)?;
        let replayed = model.replay(recording, &host)?;
        let figures = serde_json::to_value(&replayed)
            .map_err(|source| Error::new(Kind::Io, "writing a replay").source(source))?;
        Ok(json!({
            "drive": spec.name,
            "unvalidated": !spec.is_validated(),
            "factor": 1.0 / replayed.slowdown(),
            "replayed": figures,
        }))
    }
}

/// Replays a recording, the bytes of the file `name`, on a drive. Returns the result as JSON.
#[pyfunction]
pub(crate) fn replay(
    py: Python<'_>,
    name: &str,
    bytes: &[u8],
    order_json: &str,
) -> PyResult<String> {
    let asked: ReplayOrder = order(order_json)?;
    json(&detached(py, None, |_| asked.carry_out(&application::read_from(bytes, name)?))?)
}

/// The recording of the application `name` with `threads` clients that is built in, as bytes.
#[pyfunction]
pub(crate) fn recording<'py>(
    py: Python<'py>,
    name: &str,
    threads: u32,
) -> PyResult<Bound<'py, PyBytes>> {
    match catalogue::recording(name, threads) {
        Some(bytes) => Ok(PyBytes::new(py, bytes)),
        None => Err(exception(&application::no_recording(name, threads))),
    }
}
