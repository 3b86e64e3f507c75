//! An application on a modelled drive, from recordings of it on another drive.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use lab::application;
use lab::subject::{Subject, find_drive};
use lab::wanted::Wanted;
use lab::workload::Application;
use lab::{Error, Kind};

use super::{Origin, Point};
use crate::args::App;
use crate::setup;

/// Predicts the application on the model named `drive`, for each number of threads.
///
/// # Errors
/// When a recording is missing or does not fit the drive.
pub(super) fn predict(application: &Application, drive: &str, args: &App) -> Result<Vec<Point>> {
    let Some(folder) = &args.recordings else {
        let text = format!("{drive} is a model, and there is nothing to replay on it");
        let hint = format!(
            "record it once, on any machine: floatgate app {} --memory 4g --timing model --model \
             iodrive-duo --out recordings; then give --recordings recordings",
            application.name
        );
        return Err(Error::new(Kind::Input, text).hint(hint).into());
    };
    let spec = find_drive(drive)?;
    let choice = setup::choice(args.timing.format.as_deref(), &args.timing.setup);
    let Wanted::Model(wanted) = Subject::find(drive)?.setup(&choice)? else {
        bail!("{drive} is no model: `floatgate drives` lists those there are");
    };
    let setup = wanted.with_seed(args.timing.setup.seed);
    let compressible = args.data.compressible.unwrap_or_default();
    let point = |threads: &u32| -> Result<Point> {
        let recording = application::read(&recording(folder, application, *threads))?;
        let replayed = application::replay(&recording, &spec, &setup, compressible)?;
        Ok(Point {
            drive: spec.name.clone(),
            origin: Origin::Predicted,
            unvalidated: Some(!spec.is_validated()),
            threads: *threads,
            tps: replayed.prediction.map(|it| it.tps),
            latency_ms_mean: replayed.prediction.and_then(|it| it.latency_ms_mean),
            latency_ms_p99: None,
            host_share: Some(replayed.host_share),
        })
    };
    application.threads.iter().map(point).collect()
}

/// Path of the recording of an application with so many threads.
pub(super) fn recording(folder: &Path, application: &Application, threads: u32) -> PathBuf {
    folder.join(format!("{}-t{threads}.rec", application.name))
}
