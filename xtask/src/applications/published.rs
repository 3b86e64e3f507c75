//! Published transactions beside those that are predicted from the recordings that are built in.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::{Options, Point, points, program};

/// A published figure of `SysBench` on the PX600, and the one that is predicted.
pub(super) struct Published {
    id: &'static str,
    what: &'static str,
    reviewed: f64,
    predicted: Option<f64>,
    is_fitted: bool,
}

/// Medians of some predictions; absent where one of them is.
struct Predicted {
    tps: Option<f64>,
    latency_ms_mean: Option<f64>,
    latency_ms_p99: Option<f64>,
}

impl Predicted {
    fn median(points: &[Point]) -> Self {
        let of = |value: fn(&Point) -> Option<f64>| {
            let mut values = points.iter().map(value).collect::<Option<Vec<f64>>>()?;
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        Self {
            tps: of(|it| it.tps),
            latency_ms_mean: of(|it| it.latency_ms_mean),
            latency_ms_p99: of(|it| it.latency_ms_p99),
        }
    }
}

/// The figures of the review of the PX600, with the share of reads that the memory of the host
/// answers fitted to the rate of two threads.
///
/// # Errors
/// Fails if a prediction does.
pub(super) fn published(options: Options<'_>) -> Result<(f64, Vec<Published>)> {
    let single = |percent: f64, threads: &str| -> Result<Point> {
        let mut command = program(options, false);
        command.args(["app", "sysbench-oltp", "px600-2600", "--json", "--threads", threads]);
        command.args(["--buffered", &percent.to_string()]);
        command.args(["--host-processors", &PROCESSORS.to_string()]);
        points(&mut command)?.pop().context("a prediction")
    };
    // Which reads memory answers moves a single replay by some percent.
    let predict = |percent: f64, threads: &str| -> Result<Predicted> {
        let beside = [percent - 1.0, percent, percent + 1.0].map(|it| it.clamp(0.0, 100.0));
        let points = beside.map(|percent| single(percent, threads));
        Ok(Predicted::median(&points.into_iter().collect::<Result<Vec<_>>>()?))
    };
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..7 {
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

pub(super) fn text((percent, rows): &(f64, Vec<Published>)) -> Result<String> {
    let mut text = format!(
        "\n## Published transactions\n\nThe review of the Fusion ioMemory PX600 has SysBench OLTP \
         on MySQL, on servers with two processors of six cores. How much of the data they kept in \
         memory is not published. Here the recordings that are built in are replayed on \
         `px600-2600` (`--host-processors {PROCESSORS}`); the share of reads that the memory of \
         the host answers, {percent:.0} %, is fitted to the rate at two threads (`--buffered`), \
         and the rows of 32 threads are predictions. The recordings were made on two processors, \
         which 32 clients share; the replay takes that out of the think times. Each figure is the \
         median of three replays with shares one percent apart.\n\n\
         | row | figure | published | model | error | |\n|---|---|---|---|---|---|\n"
    );
    for Published { id, what, reviewed, predicted, is_fitted } in rows {
        let shown = predicted.map_or_else(|| "-".to_owned(), |it| format!("{it:.1}"));
        let error = predicted
            .map_or_else(String::new, |it| format!("{:+.1} %", (it / reviewed - 1.0) * 100.0));
        let how = if *is_fitted { "fitted" } else { "predicted" };
        writeln!(text, "| {id} | {what} | {reviewed} | {shown} | {error} | {how} |")?;
    }
    text += UNEXPRESSED;
    Ok(text)
}

/// Cores of the review's server, a `ThinkServer` RD630 with two Xeon E5-2620.
const PROCESSORS: u32 = 12;
/// Rate at two threads in the review of the PX600, row B056 of `published/figures.csv`.
const PUBLISHED_TPS_2: f64 = 435.0;

/// Text beneath the published figures.
const UNEXPRESSED: &str = "
A database with more memory also writes fewer pages, since it evicts fewer. The built-in \
recording of 32 clients has 48 MB of memory for 324 MB of data: 26.6 reads of a page and 301 KiB \
in writes of a page or more for a transaction. One with 224 MB, on a drive of 4 ms, had 3.7 reads \
and 49 KiB: a seventh and a sixth. So `--buffered` holds back the writes of pages in the same \
share as it answers reads. When it left them all to the drive, the drive wrote 306 KiB for each \
predicted transaction, took 1.0 ms for a write in the mean, and the rate at 32 threads was 2,525.

Think times are more than half of the critical path at two threads, which decides the share that \
is fitted, and about a third at 32. Whether the processors of the review, of 2.0 GHz and made in \
2012, take longer than those of the recordings for a transaction is not known; `--host-speed` \
stays 1, since fitted to B057 it would predict nothing.

Rows B054 and B055 are of a NoSQL database on four nodes. Its form, four drives with one load each \
and 24 intervals, is the suite `nosql-four-nodes` of the protocol `applications`; its figures are \
not compared, since neither the requests of that database nor the sizes of its data and memory \
are published. Rows B061 to B063 are of a SQL server with 3,000 warehouses and 30,000 users, whose \
memory and think times are not published either: `tpcc-like` has the same mix at a scale that \
fits, and its rates are no figures to be compared with them.
";
