//! A database on models in real time, beside what replays of its recordings predict there.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::table::Spread;
use super::{APPLICATIONS, DRIVES, Options, Point, Stage};

/// Models of the catalogue beneath the database, as they are without time lapse.
const MODELS: [&str; 2] = ["iodrive-duo", "px600-2600"];
/// Heading of the section.
pub(super) const HEADING: &str = "\n## Models beneath a real database\n";

/// The database on a model, with a number of clients.
pub(super) struct RealTime {
    model: &'static str,
    threads: u32,
    measured: Vec<Point>,
    predicted: Vec<Point>,
}

/// Measures `SysBench` on each model, and predicts it from the recordings on the first emulated
/// drive.
///
/// # Errors
/// Fails if a measurement fails.
pub(super) fn compare(folder: &Path, options: Options<'_>) -> Result<Vec<RealTime>> {
    let application = &APPLICATIONS[0];
    let mut rows: Vec<RealTime> = Vec::new();
    // The models in turn, so that a busy hour hurts both.
    for repeat in 0..options.repeats {
        for model in MODELS {
            let stage = Stage { folder, application, repeat, options };
            let on = ["--model", model, "--time-lapse", "1"].map(Path::new);
            let measured = stage.measure_on(model, &on)?;
            // A model in time lapse has the same latencies, and is filled in seconds.
            for predicted in stage.predict_on(DRIVES[0].0, &[Path::new(model)])? {
                let threads = predicted.threads;
                let measured = measured.iter().find(|it| it.threads == threads);
                let measured = measured.context("as many clients were measured")?.clone();
                let known = rows.iter_mut().find(|it| (it.model, it.threads) == (model, threads));
                match known {
                    Some(row) => {
                        row.measured.push(measured);
                        row.predicted.push(predicted);
                    }
                    None => rows.push(RealTime {
                        model,
                        threads,
                        measured: vec![measured],
                        predicted: vec![predicted],
                    }),
                }
            }
        }
    }
    Ok(rows)
}

/// The section of the document.
pub(super) fn text(rows: &[RealTime], repeats: u32) -> Result<String> {
    let mut text = format!(
        "{HEADING}\nMariaDB under SysBench on a drive in memory whose \
         replies have the latencies of a model of the catalogue in real time (`--timing model \
         --time-lapse 1`), beside what replays of the recordings on the drive of 4 ms predict for \
         the same model. These models answer in tens of microseconds: most of a transaction is the \
         host's, which has two processors for the database, its clients and the drive. The replay \
         lets think times share them. The larger `host` is, the less certain is a prediction. \
         Each figure is the median of {repeats} measurements or predictions, and in brackets are \
         the lowest and the highest.\n\n\
         | model | threads | measured TPS | predicted TPS | error | host |\n\
         |---|---|---|---|---|---|\n",
    );
    for row in rows {
        let tps = |points: &[Point]| Spread::of(points.iter().map(|it| it.tps));
        let (measured, predicted) = (tps(&row.measured), tps(&row.predicted));
        let error = predicted.zip(measured).map_or_else(
            || "-".to_owned(),
            |(predicted, measured)| {
                format!("{:+.1} %", (predicted.median / measured.median - 1.0) * 100.0)
            },
        );
        let host = Spread::of(row.predicted.iter().map(|it| it.host_share));
        writeln!(
            text,
            "| {} | {} | {} | {} | {error} | {} |",
            row.model,
            row.threads,
            Spread::shown(measured),
            Spread::shown(predicted),
            host.map_or_else(|| "-".to_owned(), |it| format!("{:.0} %", it.median * 100.0)),
        )?;
    }
    Ok(text)
}
