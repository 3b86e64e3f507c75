//! `floatgate app`: an application on a mounted folder, on a volume, or predicted from a
//! recording.

mod measured;
mod predicted;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use lab::application::HOST_SHARE_MAX;
use lab::driver::model::ReplayState;
use lab::library::Library;
use lab::results::{PREDICTION_ERROR, SLOWDOWN_MAX};
use lab::subject::find_drive;
use lab::workload::Application;
use lab::{Error, Kind};
use serde::Serialize;
use server::signals;

use super::replay;
use crate::args::{App, Timing};
use crate::{Ending, output, setup, table};

/// Columns of the table.
const HEADINGS: [&str; 7] = ["drive", "", "clients", "TPS", "mean ms", "p99 ms", "host"];
/// Note below a table with predicted latencies.
pub(super) const LATENCIES: &str = "\n\nThe predicted latencies are computed in two ways. mean ms: \
                                    the benchmark's mean, times replay time / recording time \
                                    (Little's law). p99 ms: from the logged transactions, begin to \
                                    commit in the replay. Do not compare one with the other.";
/// Note below a table with a rate of a model that its server could not serve in time.
const LATE: &str = "\n\n‡ The replies of the model were late by more than 5 % of their time in it: \
                    the figures are in part those of this machine. Measure with fewer threads, \
                    or on a machine with more processors.";
/// Hint for a target that is none.
const TARGETS: &str = "name a mounted folder, a volume or a modelled drive, or give --memory SIZE";
/// File that marks a folder as a volume.
const VOLUME_FILE: &str = "volume.toml";

/// Drive on which an application is measured or predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AppTarget {
    /// A folder of a mounted file system.
    Folder(PathBuf),
    /// The folder of a volume; none: a volume in memory.
    Live(Option<PathBuf>),
    /// A modelled drive, by name or file.
    Model(String),
}

/// Origin of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Origin {
    Measured,
    Predicted,
}

/// An application on a drive with a number of clients.
#[derive(Clone, Debug, Serialize)]
struct Point {
    drive: String,
    origin: Origin,
    /// True for an unvalidated model; absent for real drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    unvalidated: Option<bool>,
    /// State of the model before the replay; absent for real drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<ReplayState>,
    threads: u32,
    /// Transactions per second; absent if the host dominates, or the recording has none.
    tps: Option<f64>,
    latency_ms_mean: Option<f64>,
    /// Absent where the benchmark neither printed it nor logged transactions.
    latency_ms_p99: Option<f64>,
    /// Share of the host's think times in what the last request waited for; absent where nothing
    /// was recorded.
    host_share: Option<f64>,
    /// Time by which the drive's replies were late, all together, as a share of their time in the
    /// model that sets the timing; absent without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    slowdown: Option<f64>,
    /// Share of the recording in which all of several clients paused at once, if that is much.
    #[serde(skip_serializing_if = "Option::is_none")]
    recording_pause_share: Option<f64>,
}

impl Point {
    /// True if the figures are in part those of the server, and not of the model.
    fn is_late(&self) -> bool {
        self.slowdown.is_some_and(|slowdown| slowdown > SLOWDOWN_MAX)
    }
}

/// Measures or predicts the application on each target, and prints the results.
pub(crate) fn app(args: &App) -> Result<Ending> {
    let library = Library::of_user();
    let Some(name) = &args.application else {
        list(&library, args.json)?;
        return Ok(Ending::Done);
    };
    let application = application(&library, name, args)?;
    let targets = targets(args)?;
    if let (Some(out), Some(_)) = (&args.out, targets.iter().find(|it| !it.is_live())) {
        let text = format!("--out {} records volumes only", out.display());
        return Err(Error::new(Kind::Input, text)
            .hint("name volumes only, or leave out --out")
            .into());
    }
    refuse_options_without_effect(args, &targets)?;
    let signals = signals::received()?;
    let mut points = Vec::new();
    for target in &targets {
        points.extend(match target {
            AppTarget::Folder(folder) => measured::on_folder(&application, folder, &signals)?,
            AppTarget::Live(volume) => {
                measured::on_live(&application, volume.as_deref(), args, &signals)?
            }
            AppTarget::Model(name) => predicted::predict(&application, name, args)?,
        });
    }
    if args.json {
        output::json(&points)?;
    } else {
        output::data(&shown(&points))?;
    }
    Ok(Ending::Done)
}

/// The application with the parameters from the arguments.
fn application(library: &Library, name: &str, args: &App) -> Result<Application> {
    let mut application = library.find::<Application>(name)?.value;
    for (name, value) in &args.set {
        application.set(name, value).map_err(|text| Error::new(Kind::Input, text))?;
    }
    if !args.threads.is_empty() {
        application.threads.clone_from(&args.threads);
    }
    if let Some(runtime) = args.runtime {
        let seconds = u32::try_from(runtime.as_secs()).ok().filter(|it| *it > 0);
        application.seconds = seconds.context("--runtime is not a number of whole seconds")?;
    }
    Ok(application)
}

/// The targets that were named.
fn targets(args: &App) -> Result<Vec<AppTarget>> {
    let mut targets = Vec::new();
    for name in &args.targets {
        let path = Path::new(name);
        targets.push(if path.join(VOLUME_FILE).is_file() {
            AppTarget::Live(Some(path.to_owned()))
        } else if path.is_dir() {
            AppTarget::Folder(path.to_owned())
        } else {
            if name.contains('/') && !path.exists() {
                let text = format!("{name}: no such folder or drive");
                return Err(Error::new(Kind::Input, text).hint(TARGETS).into());
            }
            find_drive(name)?;
            AppTarget::Model(name.clone())
        });
    }
    if args.memory.is_some() {
        targets.push(AppTarget::Live(None));
    }
    if targets.is_empty() {
        return Err(Error::new(Kind::Input, "no drive to measure").hint(TARGETS).into());
    }
    Ok(targets)
}

/// Refuses options of predictions where all targets are measured, and the other way round.
fn refuse_options_without_effect(args: &App, targets: &[AppTarget]) -> Result<()> {
    let is_predicted = |it: &&AppTarget| matches!(it, AppTarget::Model(_));
    let predicted = targets.iter().filter(is_predicted).count();
    let of_measurements = [
        ("--set", !args.set.is_empty()),
        ("--runtime", args.runtime.is_some()),
        ("--mkfs", args.mkfs),
        ("--timing", args.timing.timing != Timing::Off),
    ];
    let of_predictions = [
        ("--recordings", args.recordings.is_some()),
        ("--host-speed", args.host.host_speed.to_bits() != 1_f64.to_bits()),
        ("--host-processors", args.host.host_processors.is_some()),
        ("--buffered", args.host.buffered.to_bits() != 0_f64.to_bits()),
        ("--keep-front-end", args.host.keep_front_end),
        ("--compressible", args.data.compressible.is_some()),
        ("--state", args.state.is_some()),
    ];
    if predicted == targets.len() {
        let hint = "measure and record it on a volume with --out, and predict with --recordings";
        let what = "measurements, and all drives are predicted";
        setup::refuse_given(&of_measurements, what, hint)?;
    } else if predicted == 0 {
        let hint = "name a modelled drive, or leave it out";
        let what = "predictions, and all drives are measured";
        setup::refuse_given(&of_predictions, what, hint)?;
    }
    Ok(())
}

impl AppTarget {
    const fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }
}

fn list(library: &Library, is_json: bool) -> Result<()> {
    let all = library.all::<Application>();
    if is_json {
        return output::json(&all);
    }
    let row = |entry: &lab::library::Entry<Application>| {
        let threads: Vec<String> = entry.value.threads.iter().map(u32::to_string).collect();
        let measured = format!("{} s at {} clients", entry.value.seconds, threads.join(", "));
        [entry.value.name.clone(), entry.value.title.clone(), measured, entry.origin.to_string()]
    };
    output::data(&table::columns(&all.iter().map(row).collect::<Vec<_>>()))?;
    super::listing::tell_faults::<Application>(library);
    Ok(())
}

fn shown(points: &[Point]) -> String {
    let number = |it: Option<f64>, digits: usize| {
        it.map_or_else(|| "-".to_owned(), |it| format!("{it:.digits$}"))
    };
    let row = |point: &Point| {
        let mark = if point.unvalidated == Some(true) { " *" } else { "" };
        let origin = match point.origin {
            Origin::Measured => "measured",
            Origin::Predicted => "predicted",
        };
        [
            format!("{}{mark}", point.drive),
            origin.to_owned(),
            point.threads.to_string(),
            rate(point),
            number(point.latency_ms_mean, 2),
            number(point.latency_ms_p99, 2),
            point.host_share.map_or_else(|| "-".to_owned(), |it| format!("{:.0} %", it * 100.0)),
        ]
    };
    let rows = std::iter::once(HEADINGS.map(str::to_owned)).chain(points.iter().map(row));
    let mut text = table::columns(&rows.collect::<Vec<_>>());
    let is_predicted = |point: &&Point| point.origin == Origin::Predicted;
    if points.iter().filter(is_predicted).any(|it| it.host_share > Some(HOST_SHARE_MAX)) {
        text += &replay::host_dominates();
    }
    if points.iter().any(Point::is_late) {
        text += LATE;
    }
    if points.iter().any(|it| it.recording_pause_share.is_some()) {
        text += PAUSED;
    }
    let has_both = |it: &Point| it.latency_ms_mean.is_some() && it.latency_ms_p99.is_some();
    if points.iter().filter(is_predicted).any(has_both) {
        text += LATENCIES;
    }
    if points.iter().any(|it| it.unvalidated == Some(true)) {
        text += replay::UNVALIDATED;
    }
    if points.iter().filter(is_predicted).any(|it| it.tps.is_some()) {
        text += "\n\n";
        text += PREDICTION_ERROR;
    }
    if points.iter().any(|it| it.state == Some(ReplayState::Filled)) {
        text += FILLED;
    }
    text
}

/// Note below a table with a prediction on a drive that was only filled.
pub(super) const FILLED: &str = "\n\nThe models were filled once in order, and not settled: so \
                                 published rates are predicted 1.3 to 2.1 times too high, as a \
                                 drive in use is slower.";
/// Note below a table with a rate that was predicted from a recording with a long pause.
pub(super) const PAUSED: &str = "\n\n† In the recording all clients paused at once, with no \
                                 request outstanding, for this share of the time. The prediction \
                                 includes this pause: the rate is lower and the 99th percentile \
                                 higher than without it. Record again to predict without it.";

/// Mark of a rate that was predicted from a recording with a pause of this share of its time; empty
/// without one.
pub(super) fn pause_mark(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!(" † {:.0} %", share * 100.0))
}

/// Transactions per second to the digit that a measurement of some seconds supports.
fn rate(point: &Point) -> String {
    let Some(tps) = point.tps else { return "-".to_owned() };
    let mark = match (point.recording_pause_share, point.is_late()) {
        (Some(share), _) => pause_mark(Some(share)),
        (None, true) => " ‡".to_owned(),
        (None, false) => String::new(),
    };
    let digits = usize::from(tps < 100.0);
    format!("{tps:.digits$}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_have_their_error_and_the_bases_of_latencies_below_the_table() {
        let point = |origin, tps| Point {
            drive: "px600-2600".into(),
            origin,
            unvalidated: None,
            state: None,
            threads: 16,
            tps,
            latency_ms_mean: None,
            latency_ms_p99: None,
            host_share: None,
            slowdown: None,
            recording_pause_share: None,
        };
        assert!(shown(&[point(Origin::Predicted, Some(900.0))]).ends_with(PREDICTION_ERROR));
        assert!(
            !shown(&[point(Origin::Predicted, None)]).contains(PREDICTION_ERROR),
            "there is no rate"
        );
        assert!(!shown(&[point(Origin::Measured, Some(900.0))]).contains(PREDICTION_ERROR));
        let with_latencies = |origin| Point {
            latency_ms_mean: Some(5.0),
            latency_ms_p99: Some(4.0),
            ..point(origin, Some(900.0))
        };
        assert!(shown(&[with_latencies(Origin::Predicted)]).contains(LATENCIES));
        assert!(!shown(&[with_latencies(Origin::Measured)]).contains(LATENCIES), "one basis");
        let paused =
            Point { recording_pause_share: Some(0.12), ..point(Origin::Predicted, Some(900.0)) };
        let text = shown(&[paused, point(Origin::Predicted, Some(900.0))]);
        assert!(text.contains("900 † 12 %") && text.contains(PAUSED), "{text}");
    }
}
