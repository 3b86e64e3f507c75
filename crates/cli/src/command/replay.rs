//! `floatgate trace replay`: predicts an application that was recorded on one drive on other
//! drives.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use blockio::Nanos;
use lab::Error;
use lab::application::{
    self, HOST_SHARE_MAX, HOST_SHARE_SHOWN, LATENCY_RATIO_MAX, ReplayHost, ReplayResult,
};
use lab::driver::model::{ReplayModel, ReplayState};
use lab::results::{LatencySummary, PREDICTION_ERROR};
use lab::ssd::DriveSpec;
use lab::subject::Subject;
use lab::workload::recording::{Benchmark, Recording};
use real::recorded::{self, RealReplay};
use serde::Serialize;

use super::app;
use crate::args::Replay;
use crate::{Ending, output, setup, table};

/// Columns of the table.
const HEADINGS: [&str; 10] =
    ["drive", "TPS", "mean ms", "factor", "read us", "p99", "write us", "p99", "flush us", "host"];

/// Note beneath a table with unvalidated models.
pub(super) const UNVALIDATED: &str =
    "\n\n* Unvalidated model: none of its rates was compared with a published one.";

/// Note beneath a table of an application whose clients were told apart.
const INDEPENDENT: &str = "\n\nClients that wait for timers of their own were found in the \
    recording: their requests follow their own ones, and not the last of any client.";

/// A replay on one drive, for JSON.
#[derive(Serialize)]
struct ReplayRow {
    drive: String,
    /// True for an unvalidated model.
    unvalidated: bool,
    /// State of the model before the replay; absent for real drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<ReplayState>,
    #[serde(flatten)]
    replayed: ReplayResult,
    /// Lateness of the requests on a real drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<LatencySummary>,
}

/// Replays a recording on each drive, and prints the predicted rates.
pub(crate) fn replay(args: &Replay) -> Result<Ending> {
    let subjects: Vec<Subject> =
        args.drives.iter().map(|name| Subject::find(name)).collect::<Result<_, _>>()?;
    refuse_options_without_effect(args, &subjects)?;
    let recording = application::read(&args.recording)?;
    let host = ReplayHost { copies: args.copies, ..args.host.host()? };
    let mut rows = Vec::new();
    for subject in &subjects {
        let spec = match subject {
            Subject::Model { spec, .. } => spec,
            Subject::Real { path } => {
                rows.push(on_real(&recording, path.clone(), args.destroy, &host)?);
                continue;
            }
        };
        let choice = setup::choice(args.format.as_deref(), &args.model);
        let wanted = subject.setup(&choice)?;
        setup::tell_no_compression(spec, &args.data);
        let compressible = args.data.compressible.unwrap_or_default();
        let setup = wanted.with_seed(args.model.seed);
        let mut model = ReplayModel::new(spec, &setup, compressible)?;
        let state = args.state.unwrap_or_default().into();
        model.prepare(state, &recording, &host)?;
        let replayed = model.replay(&recording, &host)?;
        let (drive, unvalidated) = (title(spec), !spec.is_validated());
        rows.push(ReplayRow { drive, unvalidated, state: Some(state), replayed, lateness: None });
    }
    if args.json {
        output::json(&rows)?;
    } else {
        output::talk(&about(&recording));
        output::data(&shown(&recording, &rows))?;
    }
    Ok(Ending::Done)
}

/// Refuses options of models where every drive is real.
fn refuse_options_without_effect(args: &Replay, subjects: &[Subject]) -> Result<(), Error> {
    if subjects.iter().any(|it| matches!(it, Subject::Model { .. })) {
        return Ok(());
    }
    let of_models = [
        ("--format", args.format.is_some()),
        ("--state", args.state.is_some()),
        ("--compressible", args.data.compressible.is_some()),
        ("--host", args.model.host.is_some()),
        ("--time-lapse", args.model.time_lapse.is_some()),
        ("--full-scale", args.model.full_scale),
    ];
    let hint = "name a modelled drive, or leave it out";
    setup::refuse_given(&of_models, "models, and every drive is real", hint)
}

/// Replays a recording on a file or a block device of this machine.
fn on_real(
    recording: &Recording,
    path: String,
    destroy: bool,
    host: &ReplayHost,
) -> Result<ReplayRow> {
    output::talk(&format!("{path}: filling, then replaying"));
    let RealReplay { replayed, lateness } =
        recorded::replay_recording(recording, Path::new(&path), destroy, host)?;
    Ok(ReplayRow { drive: path, unvalidated: false, state: None, replayed, lateness })
}

fn title(spec: &DriveSpec) -> String {
    spec.name.clone()
}

fn benchmark(recording: &Recording) -> Option<&Benchmark> {
    recording.tail.as_ref()?.benchmark.as_ref()
}

/// Lines on the origin of the recording, and on its faults.
fn about(recording: &Recording) -> String {
    let head = &recording.head;
    let measured = recording.measured().len();
    let mut lines =
        vec![format!("recorded: {measured} requests of {}, on {}", head.device, head.machine)];
    if let Some(model) = &head.model {
        lines.push(format!("replies had the timing of the model {model}"));
    }
    match (&recording.tail, benchmark(recording)) {
        (None, _) => {
            lines.push("the recording was cut short: its last requests are missing".to_owned());
        }
        (Some(_), None) => lines.push(
            "the recording has no benchmark result: factors are shown, but no TPS".to_owned(),
        ),
        (Some(tail), Some(_)) => lines.push(tail.command.clone()),
    }
    if recording.lost > 0 {
        lines.push(format!(
            "{} requests were lost during the recording: rates are too high",
            recording.lost
        ));
    }
    lines.join("\n") + "\n"
}

fn shown(recording: &Recording, rows: &[ReplayRow]) -> String {
    let mut cells = vec![HEADINGS.map(str::to_owned), of_recording(recording, rows)];
    cells.extend(rows.iter().map(|it| row(it, it.pause(recording))));
    let mut text = table::columns(&cells);
    if rows.iter().any(|row| row.replayed.host_share > HOST_SHARE_MAX) {
        text += &host_dominates();
    }
    for row in rows.iter().filter(|row| row.replayed.is_extrapolated()) {
        text += &extrapolated(row);
    }
    if rows.iter().any(|row| row.replayed.timer_share > 0.0) {
        text += INDEPENDENT;
    }
    if rows.iter().any(|row| row.unvalidated) {
        text += UNVALIDATED;
    }
    if rows.iter().any(|it| it.pause(recording).is_some()) {
        text += app::PAUSED;
    }
    if rows.iter().any(|row| row.lateness.is_none() && row.replayed.prediction.is_some()) {
        text += "\n\n";
        text += PREDICTION_ERROR;
    }
    if rows.iter().any(|row| row.state == Some(ReplayState::Filled)) {
        text += app::FILLED;
    }
    for row in rows {
        if let Some(late) = &row.lateness {
            let p99 = late.latency_ns_p99.map_or_else(dash, |it| us(it as f64));
            let mean = us(late.latency_ns_avg);
            let drive = &row.drive;
            let _ = write!(
                text,
                "\n\n{drive}: requests were issued {mean} us after they were due on average, \
                 99 % within {p99} us."
            );
        }
    }
    text
}

impl ReplayRow {
    /// Share of a long pause in the time of the recording, if a rate is predicted from it. A pause
    /// of a single client is a think time like others.
    fn pause(&self, recording: &Recording) -> Option<f64> {
        self.replayed.long_pause().filter(|_| !is_of_one_client(recording))
    }
}

/// True if one client made the transactions of the recording one after another: their rate times
/// their mean latency (Little's law) is the number of clients.
fn is_of_one_client(recording: &Recording) -> bool {
    let clients = benchmark(recording).and_then(|it| Some(it.tps * it.latency_ms_mean? / 1e3));
    clients.is_some_and(|clients| clients < 1.5)
}

/// Note below a table on a rate that the recording hardly shows.
fn extrapolated(row: &ReplayRow) -> String {
    let ReplayResult { latency_ratio, host_share, .. } = &row.replayed;
    let mut reasons = Vec::new();
    match latency_ratio {
        Some(ratio) if *ratio > LATENCY_RATIO_MAX => {
            reasons.push(format!("its requests take 1/{ratio:.0} of the time of the recording's"));
        }
        Some(ratio) if ratio * LATENCY_RATIO_MAX < 1.0 => {
            let times = 1.0 / ratio;
            reasons.push(format!("its requests take {times:.0} times as long as the recording's"));
        }
        _ => {}
    }
    if *host_share > HOST_SHARE_SHOWN {
        reasons.push(format!("the host has {} of its time", percent(*host_share)));
    }
    format!(
        "\n\n{}: extrapolated, since {}. Waits that hardly mattered in the recording, such as for \
         a lock, may limit the rate there: record on a drive more like it.",
        row.drive,
        reasons.join(", and ")
    )
}

/// Note below a table in which a rate is left out because the host dominates.
pub(super) fn host_dominates() -> String {
    format!(
        "\n\nNo TPS if more than {:.0} % of the time is the host's: what it does besides waiting \
         for the drive determines the rate.",
        HOST_SHARE_MAX * 100.0
    )
}

fn of_recording(recording: &Recording, rows: &[ReplayRow]) -> [String; 10] {
    let found = benchmark(recording);
    let of = |op| {
        let latencies = recording.measured().iter().filter(move |it| it.op == op);
        let (count, sum) = latencies
            .fold((0_u64, Nanos::ZERO), |(count, sum), it| (count + 1, sum + it.latency()));
        if count == 0 { "-".to_owned() } else { us(sum.0 as f64 / count as f64) }
    };
    let host = rows.first().map(|row| percent(row.replayed.recorded_host_share));
    [
        "(recorded)".to_owned(),
        found.map_or_else(dash, |it| format!("{:.1}", it.tps)),
        found.and_then(|it| it.latency_ms_mean).map_or_else(dash, |it| format!("{it:.2}")),
        "1.00".to_owned(),
        of(blockio::Op::Read),
        dash(),
        of(blockio::Op::Write),
        dash(),
        of(blockio::Op::Flush),
        host.unwrap_or_else(dash),
    ]
}

/// The cells of a drive, with the share of a long pause in its recording.
fn row(row: &ReplayRow, pause: Option<f64>) -> [String; 10] {
    let ReplayResult { prediction, read, write, flush, host_share, .. } = &row.replayed;
    let latency = prediction.and_then(|it| it.latency_ms_mean);
    let mark = app::pause_mark(pause);
    let mean = |of: &Option<LatencySummary>| {
        of.as_ref().and_then(LatencySummary::mean_ns).map_or_else(dash, us)
    };
    let p99 = |of: &Option<LatencySummary>| {
        of.as_ref().and_then(LatencySummary::p99_ns).map_or_else(dash, |it| us(it as f64))
    };
    [
        format!("{}{}", row.drive, if row.unvalidated { " *" } else { "" }),
        prediction.map_or_else(dash, |it| format!("{:.1}{mark}", it.tps)),
        latency.map_or_else(dash, |it| format!("{it:.2}")),
        format!("{:.2}", 1.0 / row.replayed.slowdown()),
        mean(read),
        p99(read),
        mean(write),
        p99(write),
        mean(flush),
        percent(*host_share),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

fn us(ns: f64) -> String {
    format!("{:.0}", ns / 1e3)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
