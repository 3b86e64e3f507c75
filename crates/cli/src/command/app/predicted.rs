//! An application on a modelled drive, from recordings of it on another drive: those that are built
//! in, or a user's own.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Result;
use lab::application::{self, ReplayHost};
use lab::driver::model::ReplayModel;
use lab::subject::{Subject, find_drive};
use lab::workload::recording::Recording;
use lab::workload::{Application, catalogue};
use lab::{Error, Kind};

use super::{Origin, Point};
use crate::args::App;
use crate::setup;

/// Predicts the application on the model named `drive`, for each number of threads.
///
/// # Errors
/// Fails if a recording is missing or does not fit the drive.
pub(super) fn predict(application: &Application, drive: &str, args: &App) -> Result<Vec<Point>> {
    let spec = find_drive(drive)?;
    let choice = setup::choice(args.timing.format.as_deref(), &args.timing.setup);
    let wanted = Subject::find(drive)?.setup(&choice)?;
    setup::tell_no_compression(&spec, &args.data);
    let setup = wanted.with_seed(args.timing.setup.seed);
    let host = args.host.host()?;
    let compressible = args.data.compressible.unwrap_or_default();
    let mut model = ReplayModel::new(&spec, &setup, compressible)?;
    let state = args.state.unwrap_or_default().into();
    let mut points = Vec::new();
    for threads in &application.threads {
        let (recording, copies) = read(application, *threads, args)?;
        let host = ReplayHost { copies, ..host };
        if points.is_empty() {
            model.prepare(state, &recording, &host)?;
        }
        let replayed = model.clone().replay(&recording, &host)?;
        points.push(Point {
            drive: spec.name.clone(),
            origin: Origin::Predicted,
            unvalidated: Some(!spec.is_validated()),
            state: Some(state),
            threads: *threads,
            tps: replayed.prediction.map(|it| it.tps),
            latency_ms_mean: replayed.prediction.and_then(|it| it.latency_ms_mean),
            latency_ms_p99: replayed.prediction.and_then(|it| it.latency_ms_p99),
            host_share: Some(replayed.host_share),
            slowdown: None,
            // A pause of a single client is a think time like others, however many replay it.
            recording_pause_share: replayed.long_pause().filter(|_| *threads > copies.get()),
        });
    }
    Ok(points)
}

/// The recording of an application in the folder that was named, or else the one that is built in,
/// and its copies.
fn read(application: &Application, threads: u32, args: &App) -> Result<(Recording, NonZeroU32)> {
    if let Some(folder) = &args.recordings {
        let copies = NonZeroU32::new(threads).filter(|_| application.copies);
        let recorded = if copies.is_some() { 1 } else { threads };
        let path = recording(folder, application, recorded);
        let read = application::read(&path)?;
        if read.tail.is_none() {
            let text =
                format!("{} was cut short, so it has no count of transactions", path.display());
            let hint = "measure it again; `floatgate trace replay` shows factors for the requests \
                        that it has";
            return Err(Error::new(Kind::Input, text).hint(hint).into());
        }
        return Ok((read, copies.unwrap_or(NonZeroU32::MIN)));
    }
    // Those that are built in are of the application with its own scripts and parameters.
    let is_same = |it: &Application| {
        (&it.name, &it.steps, &it.parameters)
            == (&application.name, &application.steps, &application.parameters)
    };
    let is_built_in = catalogue::applications().iter().any(is_same);
    let recording = application::copied(application, threads).filter(|_| is_built_in);
    Ok(recording.ok_or_else(|| application::no_recording(&application.name, threads))?)
}

/// Path of the recording of an application with so many threads.
pub(super) fn recording(folder: &Path, application: &Application, threads: u32) -> PathBuf {
    folder.join(format!("{}-t{threads}.rec", application.name))
}
