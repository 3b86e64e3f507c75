//! A database on models in real time, beside what replays of its recordings predict there.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use lab::results::SLOWDOWN_MAX;

use super::table::Spread;
use super::{APPLICATIONS, DRIVES, Options, Point, Stage};

/// Models of the catalogue beneath the database, as they are without time lapse, and the options
/// with which they are predicted. A model of NAND in time lapse has the same latencies, and is
/// filled in seconds; a disk has other seeks, and needs no filling.
const MODELS: [(&str, &[&str]); 4] = [
    ("ultrastar-7k4000-4000", &["--time-lapse", "1"]),
    ("savvio-15k1-73", &["--time-lapse", "1"]),
    ("iodrive-duo", &[]),
    ("px600-2600", &[]),
];
/// Heading of the section.
pub(super) const HEADING: &str = "\n## Models beneath a real database\n";

/// The database on a model, with a number of clients.
pub(super) struct RealTime {
    model: &'static str,
    threads: u32,
    measured: Vec<Point>,
    predicted: Vec<Point>,
}

impl RealTime {
    fn measured(&self) -> Option<Spread> {
        Spread::of(self.measured.iter().map(|it| it.tps))
    }

    fn predicted(&self) -> Option<Spread> {
        Spread::of(self.predicted.iter().map(|it| it.tps))
    }

    /// Time by which replies were late, as a share of their time in the model.
    fn late(&self) -> Option<Spread> {
        Spread::of(self.measured.iter().map(|it| it.slowdown))
    }

    /// Relative error of the median of the predictions; none where one is missing, or the drive
    /// was not as fast as the model.
    fn error(&self) -> Option<f64> {
        let (measured, predicted) = (self.measured()?, self.predicted()?);
        let is_in_time = self.late()?.median <= SLOWDOWN_MAX;
        is_in_time.then_some(predicted.median / measured.median - 1.0)
    }
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
        for (model, predicted_with) in MODELS {
            let stage = Stage { folder, application, repeat, options };
            let on = ["--model", model, "--time-lapse", "1"].map(Path::new);
            let measured = stage.measure_on(model, &on)?;
            let on = std::iter::once(&model).chain(predicted_with).map(Path::new);
            let on: Vec<&Path> = on.collect();
            for predicted in stage.predict_on(DRIVES[0].0, &on)? {
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
        "{HEADING}\nMariaDB under SysBench on a drive in memory with the timing of a model in \
         real time (`--timing model --time-lapse 1`), beside predictions for that model from the \
         recordings at 4 ms. The first two models are hard disks, the others cards that answer in \
         tens of microseconds. Figures are medians of {repeats}, with the range in brackets.\n\n\
         `late` is the delay of replies beyond the model, as a share of their time in the model. \
         Database, clients and drive share two processors; above {:.0} % the drive is too late to \
         stand for the model, and no error is stated.\n\n\
         | model | threads | measured TPS | late | predicted TPS | error | host |\n\
         |---|---|---|---|---|---|---|\n",
        SLOWDOWN_MAX * 100.0
    );
    let errors: Vec<f64> = rows.iter().filter_map(RealTime::error).map(f64::abs).collect();
    for row in rows {
        let percent = |of: Option<Spread>| {
            of.map_or_else(|| "-".to_owned(), |it| format!("{:.0} %", it.median * 100.0))
        };
        let error = row.error();
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.model,
            row.threads,
            Spread::shown(row.measured()),
            percent(row.late()),
            Spread::shown(row.predicted()),
            error.map_or_else(|| "-".to_owned(), |it| format!("{:+.1} %", it * 100.0)),
            percent(Spread::of(row.predicted.iter().map(|it| it.host_share))),
        )?;
    }
    let all = rows.len();
    match Spread::of(errors.iter().copied().map(Some)) {
        None => writeln!(text, "\nIn none of these {all} did the drive answer in time.")?,
        Some(Spread { median, high, .. }) => writeln!(
            text,
            "\nIn {} of these {all} the drive answered in time. There predictions are off by \
             {:.1} % in the median and by {:.1} % at most.",
            errors.len(),
            median * 100.0,
            high * 100.0,
        )?,
    }
    Ok(text)
}
