//! `cargo xtask applications`: how far predictions of applications are from what the same databases
//! reach on the drive that is predicted, into the documents.
//!
//! ```text
//! drive A, emulated ──► measured, recorded ──► replayed on the model of B ──► predicted
//! drive B, emulated ──► measured ────────────────────────────────────────────► compared
//! ```
//!
//! Both drives keep to the times of models, so that what is off is the method and not a model. They
//! are slow enough for the drive to decide, and their times differ by four.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::program::run;
use crate::root;

/// Applications, with the parameters that make them fit into memory.
const APPLICATIONS: [(&str, &[&str]); 3] = [
    ("sysbench-oltp", &["ROWS=50000", "POOL=24M"]),
    ("pgbench-tpcb", &["SCALE=10"]),
    ("nosql-ycsb-a", &["RECORDS=200000"]),
];
/// Names of the drives, and the time of a read or a write of their media, in microseconds.
const DRIVES: [(&str, u32); 2] = [("emulated-1-ms", 1000), ("emulated-4-ms", 4000)];
/// Size of a drive: memory, which takes what is written.
const SIZE: &str = "3g";
/// The document that is written.
const DOCUMENT: &str = "docs/internals/applications.md";

/// Settings of the comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// Numbers of clients, separated by commas.
    pub(crate) threads: &'a str,
    /// Length of each measurement in seconds.
    pub(crate) seconds: u32,
    /// Program to measure with, if not that of this workspace.
    pub(crate) floatgate: Option<&'a Path>,
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
}

/// An application on the drive `to`, measured there, and predicted from its recording on `from`.
struct Row {
    application: &'static str,
    from: &'static str,
    to: &'static str,
    measured: Point,
    predicted: Point,
}

impl Row {
    /// Relative error of the predicted rate; none where no rate was predicted.
    fn error(&self) -> Option<f64> {
        Some(self.predicted.tps? / self.measured.tps? - 1.0)
    }

    /// The same of the 99th percentile of the latency; none where transactions are not logged.
    fn error_p99(&self) -> Option<f64> {
        Some(self.predicted.latency_ms_p99? / self.measured.latency_ms_p99? - 1.0)
    }
}

/// Measures, predicts, and writes the document.
///
/// # Errors
/// Fails if a measurement fails.
pub(crate) fn run_all(options: Options<'_>) -> Result<()> {
    if options.floatgate.is_none() {
        run("cargo", &["build", "--release", "--quiet", "--package", "cli"], &[])?;
    }
    let folder =
        std::env::temp_dir().join(format!("floatgate-applications-{}", std::process::id()));
    fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
    let compared = compare(&folder, options);
    fs::remove_dir_all(&folder)?;
    let rows = compared?;
    let published = published(options)?;
    let path = root().join(DOCUMENT);
    fs::write(&path, document(&rows, &published, options)?)
        .with_context(|| format!("writing {}", path.display()))
}

fn compare(folder: &Path, options: Options<'_>) -> Result<Vec<Row>> {
    for (name, us) in DRIVES {
        fs::write(drive_file(folder, name), drive(name, us))?;
    }
    let mut rows = Vec::new();
    for (application, parameters) in APPLICATIONS {
        let stage = Stage { folder, application, parameters, options };
        let measured: Vec<Vec<Point>> =
            DRIVES.iter().map(|(name, _)| stage.measure(name)).collect::<Result<_>>()?;
        for (at, from) in [(1, DRIVES[0].0), (0, DRIVES[1].0)] {
            let to = DRIVES[at].0;
            let predicted = stage.predict(from, to)?;
            let pairs = measured[at].iter().cloned().zip(predicted);
            rows.extend(pairs.map(|(measured, predicted)| Row {
                application,
                from,
                to,
                measured,
                predicted,
            }));
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

/// An application on emulated drives.
struct Stage<'a> {
    folder: &'a Path,
    application: &'static str,
    parameters: &'a [&'a str],
    options: Options<'a>,
}

impl Stage<'_> {
    /// Measures and records it on a drive.
    fn measure(&self, drive: &str) -> Result<Vec<Point>> {
        let mut command = self.command();
        let seconds = format!("{}s", self.options.seconds);
        command.args(["--memory", SIZE, "--timing", "model", "--runtime", &seconds, "--model"]);
        command.arg(drive_file(self.folder, drive)).arg("--out").arg(self.recordings(drive));
        for parameter in self.parameters {
            command.args(["--set", parameter]);
        }
        points(&mut command)
    }

    /// Predicts it on the drive `to` from its recordings on `from`.
    fn predict(&self, from: &str, to: &str) -> Result<Vec<Point>> {
        let mut command = self.command();
        command.arg(drive_file(self.folder, to)).arg("--recordings").arg(self.recordings(from));
        // The drive that is predicted is measured through the same front end.
        command.arg("--keep-front-end");
        points(&mut command)
    }

    fn command(&self) -> Command {
        let mut command = program(self.options);
        command.args(["app", self.application, "--json", "--threads", self.options.threads]);
        command
    }

    fn recordings(&self, drive: &str) -> PathBuf {
        self.folder.join(format!("{}-{drive}", self.application))
    }
}

/// The program to measure with.
fn program(options: Options<'_>) -> Command {
    let built = root().join("target/release/floatgate");
    Command::new(options.floatgate.unwrap_or(&built))
}

fn points(command: &mut Command) -> Result<Vec<Point>> {
    let output = command.output().context("starting floatgate")?;
    if !output.status.success() {
        bail!("floatgate app: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The median and the 90th percentile of errors, whatever their sign.
fn spread(rows: &[Row], error: fn(&Row) -> Option<f64>) -> Option<(f64, f64)> {
    let mut errors: Vec<f64> = rows.iter().filter_map(error).map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let index = (share * (errors.len() as f64 - 1.0)).round() as usize;
        errors.get(index).copied()
    };
    at(0.5).zip(at(0.9))
}

fn document(
    rows: &[Row],
    published: &(f64, Vec<Published>),
    options: Options<'_>,
) -> Result<String> {
    let mut text = String::from(HEAD);
    let refused = rows.iter().filter(|row| row.error().is_none()).count();
    let told = rows.len() - refused;
    if let Some((median, p90)) = spread(rows, Row::error) {
        writeln!(
            text,
            "Of {} predictions {told} have a rate; {refused} were refused because the host \
             dominates. **Median error {:.1} %, 90th percentile {:.1} %.** Each measurement took \
             {} s.",
            rows.len(),
            median * 100.0,
            p90 * 100.0,
            options.seconds
        )?;
    }
    if let Some((median, p90)) = spread(rows, Row::error_p99) {
        writeln!(
            text,
            "The 99th percentile of the latency of a transaction is missed by {:.1} % in the \
             median and {:.1} % in the 90th percentile; `db_bench` logs no transactions, so that \
             it is not predicted there.",
            median * 100.0,
            p90 * 100.0
        )?;
    }
    text += "\n| application | threads | recorded on | predicted drive | measured TPS | predicted \
             TPS | error | measured p99, ms | predicted p99, ms | error | host \
             |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    for row in rows {
        let number = |it: Option<f64>| it.map_or_else(|| "-".to_owned(), |it| format!("{it:.1}"));
        let percent = |it: Option<f64>| {
            it.map_or_else(|| "-".to_owned(), |it| format!("{:+.1} %", it * 100.0))
        };
        let host = row.predicted.host_share.map_or(f64::NAN, |it| it * 100.0);
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {host:.0} % |",
            row.application,
            row.predicted.threads,
            row.from,
            row.to,
            number(row.measured.tps),
            number(row.predicted.tps),
            percent(row.error()),
            number(row.measured.latency_ms_p99),
            number(row.predicted.latency_ms_p99),
            percent(row.error_p99()),
        )?;
    }
    text += &published_text(published)?;
    Ok(text)
}

/// A published figure of `SysBench` on the PX600, and the one that is predicted.
struct Published {
    id: &'static str,
    what: &'static str,
    reviewed: f64,
    predicted: Option<f64>,
    is_fitted: bool,
}

/// The figures of the review of the PX600, with the share of reads that the memory of the host
/// answers fitted to the rate of two threads.
///
/// # Errors
/// Fails if a prediction does.
fn published(options: Options<'_>) -> Result<(f64, Vec<Published>)> {
    let predict = |percent: f64, threads: &str| -> Result<Point> {
        let mut command = program(options);
        command.args(["app", "sysbench-oltp", "px600-2600", "--json", "--threads", threads]);
        command.args(["--buffered", &percent.to_string()]);
        points(&mut command)?.pop().context("a prediction")
    };
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..10 {
        let middle = f64::midpoint(low, high);
        if predict(middle, "2")?.tps.is_some_and(|tps| tps < PUBLISHED_TPS_2) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (two, many) = (predict(low, "2")?, predict(low, "32")?);
    let row = |id, what, reviewed, predicted, is_fitted| Published {
        id,
        what,
        reviewed,
        predicted,
        is_fitted,
    };
    let rows = vec![
        row("B056", "TPS at 2 threads", PUBLISHED_TPS_2, two.tps, true),
        row("B058", "average latency at 2 threads, ms", 5.0, two.latency_ms_mean, true),
        row("B057", "TPS at 32 threads", 3250.0, many.tps, false),
        row("B059", "average latency at 32 threads, ms", 10.0, many.latency_ms_mean, false),
        row("B060", "p99 latency at 32 threads, ms", 18.0, many.latency_ms_p99, false),
    ];
    Ok((low, rows))
}

fn published_text((percent, rows): &(f64, Vec<Published>)) -> Result<String> {
    let mut text = format!(
        "\n## Published transactions\n\nThe review of the Fusion ioMemory PX600 has SysBench OLTP \
         on MySQL. How much of the data its server kept in memory, and which processors it had, \
         is not published. Here the recordings that are built in are replayed on `px600-2600`; \
         the share of reads that the memory of the host answers, {percent:.0} %, is fitted to the \
         rate at two threads (`--buffered`), and the rows of 32 threads are predictions. They \
         were recorded on two processors, which 32 clients share: the think times are longer than \
         on the server of the review, and the prediction is lower.\n\n\
         | row | figure | published | model | error | |\n|---|---|---|---|---|---|\n"
    );
    for Published { id, what, reviewed, predicted, is_fitted } in rows {
        let shown = predicted.map_or_else(|| "-".to_owned(), |it| format!("{it:.1}"));
        let error = predicted
            .map_or_else(String::new, |it| format!("{:+.1} %", (it / reviewed - 1.0) * 100.0));
        let how = if *is_fitted { "fitted" } else { "predicted" };
        writeln!(text, "| {id} | {what} | {reviewed} | {shown} | {error} | {how} |")?;
    }
    text += "\nRows B054 and B055 (a NoSQL database on four nodes) and B061 to B063 (a SQL server \
             with 30,000 users) are not expressed: neither their requests nor the sizes of data \
             and memory are published, and no recording here is of such a load.\n";
    Ok(text)
}

/// Rate at two threads in the review of the PX600, row B056 of `published/figures.csv`.
const PUBLISHED_TPS_2: f64 = 435.0;

/// The document above its table.
const HEAD: &str = "\
# Predictions of applications

Written by `cargo xtask applications`, which takes some minutes on a machine that does nothing \
else, and needs root, MariaDB, PostgreSQL, sysbench and RocksDB's tools.

Two drives in memory keep to the times of two models: one reads and writes in 1 ms, the other \
in 4 ms. Their media is written in place, so that they have no state and never stall. Each \
application is measured on both, and predicted on each from its recording on the other, by \
`floatgate app` with `--keep-front-end`, since both are served in the same way. Drive and model \
have the same times, so that the errors are those of the \
method: think times that depend on the load, requests whose parent is not the one that caused \
them, and what the emulated drive takes beyond the times of its model. The error of a model \
comes on top of it ([validation](validation.md)).

Measurements differ from run to run, too. In four runs pgbench with eight clients reached 362, \
453, 524 and 579 transactions a second on the drive of 4 ms, while sysbench and `db_bench` stayed \
within 10 %. Its predictions can be no nearer than that.

`host` is the share of think times in what the last request of the replay waited for. Above 80 \
% no rate is told.

";
