//! `cargo xtask applications`: how far predictions of applications are from what the same databases
//! reach on the drive that is predicted, into the documents.
//!
//! ```text
//! drive A, emulated ──► measured, recorded ──► replayed on the model of B ──► predicted
//! drive B, emulated ──► measured ────────────────────────────────────────────► compared
//! ```
//!
//! Both drives keep to the times of models, so that what is off is the method and not a model. They
//! are slow enough for the drive to decide, and their times differ by four. Every measurement is
//! repeated, since those of a database differ from run to run.

mod published;
mod real_time;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use xtask::program::run;
use xtask::root;

/// An application that is compared.
struct ComparedApplication {
    name: &'static str,
    /// Parameters that make it fit into memory.
    parameters: &'static [&'static str],
    /// Length of each measurement in seconds: longer where a transaction takes longer.
    seconds: u32,
}

const APPLICATIONS: [ComparedApplication; 3] = [
    ComparedApplication {
        name: "sysbench-oltp",
        parameters: &["ROWS=50000", "POOL=24M"],
        seconds: 40,
    },
    ComparedApplication { name: "pgbench-tpcb", parameters: &["SCALE=10"], seconds: 25 },
    ComparedApplication { name: "nosql-ycsb-a", parameters: &["RECORDS=200000"], seconds: 25 },
];
/// Names of the drives, and the time of a read or a write of their media, in microseconds.
const DRIVES: [(&str, u32); 2] = [("emulated-4-ms", 4000), ("emulated-16-ms", 16_000)];
/// Size of a drive: memory, which takes what is written.
const SIZE: &str = "3g";
/// The document that is written.
const DOCUMENT: &str = "docs/internals/applications.md";
/// Command prefix that gives what is measured real-time priority.
const REALTIME: [&str; 3] = ["chrt", "--rr", "10"];

/// Settings of the comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// Numbers of clients, separated by commas.
    pub(crate) threads: &'a str,
    /// Measurements of each application on each drive, from 1.
    pub(crate) repeats: u32,
    /// True if servers and clients run at real-time priority.
    pub(crate) is_realtime: bool,
    /// Program to measure with, if not that of this workspace.
    pub(crate) floatgate: Option<&'a Path>,
    /// Folder in which measurements are kept, and taken from where they are there already; absent:
    /// they are made anew and not kept.
    pub(crate) keep: Option<&'a Path>,
}

/// A measurement or prediction, as `floatgate app --json` prints it.
#[derive(Clone, Debug, Deserialize)]
struct Point {
    threads: u32,
    tps: Option<f64>,
    #[serde(default)]
    latency_ms_mean: Option<f64>,
    #[serde(default)]
    latency_ms_p99: Option<f64>,
    host_share: Option<f64>,
    /// Time by which replies of a drive with a model's timing were late, as a share of their time
    /// in the model.
    #[serde(default)]
    slowdown: Option<f64>,
}

/// An application on the drive `to`, measured there some times, and predicted from as many
/// recordings on `from`.
struct Row {
    application: &'static ComparedApplication,
    from: &'static str,
    to: &'static str,
    threads: u32,
    measured: Vec<Point>,
    predicted: Vec<Point>,
}

/// Measures, predicts, and writes the document.
///
/// # Errors
/// Fails if a measurement fails.
pub(crate) fn run_all(options: Options<'_>) -> Result<()> {
    let (rows, in_real_time) = in_folder(options, |folder| {
        let rows = compare(folder, options)?;
        Ok((rows, real_time::compare(folder, options)?))
    })?;
    let published = published::published(options)?;
    let text = [
        table::document(&rows, options)?,
        real_time::text(&in_real_time, options.repeats)?,
        published::text(&published)?,
    ]
    .concat();
    write(&text)
}

/// Measures the database on models in real time, and on the drive that it is predicted from there,
/// and makes that section anew.
///
/// # Errors
/// Fails if a measurement does, or the document has no such section.
pub(crate) fn renew_models(options: Options<'_>) -> Result<()> {
    let rows = in_folder(options, |folder| {
        let (name, us) = DRIVES[0];
        fs::write(drive_file(folder, name), drive(name, us))?;
        for repeat in 0..options.repeats {
            Stage { folder, application: &APPLICATIONS[0], repeat, options }.measure(name)?;
        }
        real_time::compare(folder, options)
    })?;
    let path = root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let parted = text.split_once(real_time::HEADING);
    let parted =
        parted.and_then(|(before, rest)| Some((before, rest.split_once(published::HEADING)?)));
    let (before, (_, after)) = parted
        .with_context(|| format!("{DOCUMENT} lacks a section on models or on transactions"))?;
    write(&[before, &real_time::text(&rows, options.repeats)?, published::HEADING, after].concat())
}

/// Does something with the folder for measurements, which it removes unless it is to be kept.
fn in_folder<T>(options: Options<'_>, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    ensure!(options.repeats > 0, "--repeats is 0, not at least 1");
    build(options)?;
    let own = std::env::temp_dir().join(format!("floatgate-applications-{}", std::process::id()));
    let folder = options.keep.unwrap_or(&own);
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let done = work(folder);
    if options.keep.is_none() {
        fs::remove_dir_all(folder)?;
    }
    done
}

/// Makes the document's last section anew, which needs no measurement.
///
/// # Errors
/// Fails if a prediction does, or the document has no such section.
pub(crate) fn renew_published(options: Options<'_>) -> Result<()> {
    build(options)?;
    let path = root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let (before, _) = text
        .split_once(published::HEADING)
        .with_context(|| format!("{DOCUMENT} has no {:?}", published::HEADING))?;
    write(&[before, &published::text(&published::published(options)?)?].concat())
}

/// Builds the program to measure with, unless one is given.
fn build(options: Options<'_>) -> Result<()> {
    if options.floatgate.is_none() {
        run("cargo", &["build", "--release", "--quiet", "--package", "cli"], &[])?;
    }
    Ok(())
}

fn write(text: &str) -> Result<()> {
    let path = root().join(DOCUMENT);
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

fn compare(folder: &Path, options: Options<'_>) -> Result<Vec<Row>> {
    for (name, us) in DRIVES {
        fs::write(drive_file(folder, name), drive(name, us))?;
    }
    let mut measured = Vec::new();
    // The drives in turn, so that a busy hour hurts both.
    for repeat in 0..options.repeats {
        for application in &APPLICATIONS {
            for (drive, _) in DRIVES {
                let stage = Stage { folder, application, repeat, options };
                measured.push((application.name, drive, stage.measure(drive)?));
            }
        }
    }
    let mut rows = Vec::new();
    for application in &APPLICATIONS {
        for [from, to] in [[0, 1], [1, 0]].map(|pair| pair.map(|at: usize| DRIVES[at].0)) {
            let predicted: Vec<Vec<Point>> = (0..options.repeats)
                .map(|repeat| {
                    let stage = Stage { folder, application, repeat, options };
                    stage.predict(from, to)
                })
                .collect::<Result<_>>()?;
            let of_to = measured.iter().filter(|it| (it.0, it.1) == (application.name, to));
            let of_to: Vec<Vec<Point>> = of_to.map(|it| it.2.clone()).collect();
            for point in &predicted[0] {
                let threads = point.threads;
                let at = |of: &[Vec<Point>]| {
                    of.iter().flatten().filter(|it| it.threads == threads).cloned().collect()
                };
                let (measured, predicted) = (at(&of_to), at(&predicted));
                rows.push(Row { application, from, to, threads, measured, predicted });
            }
        }
    }
    Ok(rows)
}

/// A drive that has no state and never stalls, so that every measurement of it finds the same one:
/// its media is written in place.
fn drive(name: &str, us: u32) -> String {
    format!(
        "schema = 1\nname = \"{name}\"\ntitle = \"{name}\"\nlike = \"p5800x\"\n\
         [in_place]\nread_us = {us}\nwrite_us = {us}\n\
         source = \"estimated: no maker's, for comparing predictions\"\n"
    )
}

fn drive_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.toml"))
}

/// An application on emulated drives, once.
struct Stage<'a> {
    folder: &'a Path,
    application: &'static ComparedApplication,
    /// Number of the measurement, from 0.
    repeat: u32,
    options: Options<'a>,
}

impl Stage<'_> {
    /// Measures and records it on an emulated drive.
    fn measure(&self, drive: &str) -> Result<Vec<Point>> {
        let file = drive_file(self.folder, drive);
        self.measure_on(drive, &[Path::new("--model"), &file])
    }

    /// Measures and records it on a model that the options `on` name, which is called `drive`.
    fn measure_on(&self, drive: &str, on: &[&Path]) -> Result<Vec<Point>> {
        let kept = self.recordings(drive).with_extension("json");
        if let Ok(text) = fs::read_to_string(&kept) {
            return serde_json::from_str(&text)
                .with_context(|| format!("reading {}", kept.display()));
        }
        let recordings = self.recordings(drive);
        if recordings.exists() {
            // What an interrupted comparison left.
            fs::remove_dir_all(&recordings)?;
        }
        let mut command = self.command(self.options.is_realtime);
        let seconds = format!("{}s", self.application.seconds);
        command.args(["--memory", SIZE, "--timing", "model", "--runtime", &seconds]);
        command.args(on).arg("--out").arg(recordings);
        for parameter in self.application.parameters {
            command.args(["--set", parameter]);
        }
        let output = output(&mut command)?;
        fs::write(&kept, &output).with_context(|| format!("writing {}", kept.display()))?;
        Ok(serde_json::from_slice(&output)?)
    }

    /// Predicts it on the drive `to` from its recordings on `from`.
    fn predict(&self, from: &str, to: &str) -> Result<Vec<Point>> {
        self.predict_on(from, &[&drive_file(self.folder, to)])
    }

    /// Predicts it on the model that the arguments `on` name from its recordings on `from`.
    fn predict_on(&self, from: &str, on: &[&Path]) -> Result<Vec<Point>> {
        let mut command = self.command(false);
        command.args(on).arg("--recordings").arg(self.recordings(from));
        // The drive that is predicted is measured through the same front end.
        command.arg("--keep-front-end");
        points(&mut command)
    }

    fn command(&self, is_realtime: bool) -> Command {
        let mut command = program(self.options, is_realtime);
        command.args(["app", self.application.name, "--json", "--threads", self.options.threads]);
        command
    }

    fn recordings(&self, drive: &str) -> PathBuf {
        self.folder.join(format!("{}-{drive}-{}", self.application.name, self.repeat))
    }
}

/// The program to measure with.
fn program(options: Options<'_>, is_realtime: bool) -> Command {
    let built = root().join("target/release/floatgate");
    let program = options.floatgate.unwrap_or(&built);
    if !is_realtime {
        return Command::new(program);
    }
    let mut command = Command::new(REALTIME[0]);
    command.args(&REALTIME[1..]).arg(program);
    command
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().context("starting floatgate")?;
    if !output.status.success() {
        bail!("floatgate app: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

fn points(command: &mut Command) -> Result<Vec<Point>> {
    Ok(serde_json::from_slice(&output(command)?)?)
}
