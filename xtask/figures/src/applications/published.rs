//! Published transactions beside those that are predicted from the recordings that are built in.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::{Options, Point, points, program};

/// Heading of the section, with the line break before it.
pub(super) const HEADING: &str = "\n## Published transactions";

/// A published figure of `SysBench` on the PX600, and the one that is predicted.
pub(super) struct PublishedRate {
    id: &'static str,
    what: &'static str,
    reviewed: f64,
    predicted: Option<f64>,
    is_fitted: bool,
}

/// Medians of some predictions; absent where one of them is.
struct PredictedMedians {
    tps: Option<f64>,
    latency_ms_mean: Option<f64>,
    latency_ms_p99: Option<f64>,
}

impl PredictedMedians {
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

/// A card that the same laboratory measured with 32 threads, and what is predicted of it.
pub(super) struct OtherCard {
    drive: &'static str,
    reviewed: ReviewedCard,
    predicted: PredictedMedians,
}

/// Published figures of a card with 32 threads: transactions a second, mean and 99th percentile of
/// their latency.
#[derive(Clone, Copy)]
struct ReviewedCard {
    tps: f64,
    latency_ms_mean: f64,
    latency_ms_p99: f64,
}

/// The figures of the review, those of other cards, and the speed of the host that was fitted.
pub(super) struct Comparison {
    host_speed: f64,
    rows: Vec<PublishedRate>,
    others: Vec<OtherCard>,
}

/// Replays the built-in recordings of `SysBench` with the memory and the processors of the
/// laboratory's server, whose speed is fitted to the rate of the PX600 at two threads.
///
/// # Errors
/// Fails if a prediction does.
pub(super) fn published(options: Options<'_>) -> Result<Comparison> {
    let single = |drive: &str, threads: &str, speed: f64, percent: f64| -> Result<Point> {
        let mut command = program(options, false);
        command.args(["app", "sysbench-oltp", drive, "--json", "--threads", threads]);
        command.args(["--buffered", &percent.to_string(), "--host-speed", &speed.to_string()]);
        command.args(["--host-processors", &PROCESSORS.to_string(), "--state", "filled"]);
        points(&mut command)?.pop().context("a prediction")
    };
    // Which reads memory answers moves a single replay by some percent.
    let predict = |drive: &str, threads: &str, speed: f64| -> Result<PredictedMedians> {
        let beside = [-1.0, 0.0, 1.0].map(|by| single(drive, threads, speed, BUFFERED + by));
        Ok(PredictedMedians::median(&beside.into_iter().collect::<Result<Vec<_>>>()?))
    };
    let (mut low, mut high): (f64, f64) = (0.25, 4.0);
    for _ in 0..8 {
        let middle = (low * high).sqrt();
        if predict(PX600, "2", middle)?.tps.is_some_and(|tps| tps > PUBLISHED_TPS_2) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let host_speed = (low * high).sqrt();
    let (two, many) = (predict(PX600, "2", host_speed)?, predict(PX600, "32", host_speed)?);
    let row = |id, what, reviewed, predicted, is_fitted| PublishedRate {
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
    let others = OTHERS.iter().map(|(drive, reviewed)| {
        let predicted = predict(drive, "32", host_speed)?;
        Ok(OtherCard { drive, reviewed: *reviewed, predicted })
    });
    let others = others.collect::<Result<_>>()?;
    Ok(Comparison { host_speed, rows, others })
}

pub(super) fn text(comparison: &Comparison) -> Result<String> {
    let mut text = format!(
        "{HEADING}\n\n\
         The review of the Fusion ioMemory PX600 has SysBench OLTP on MySQL, with two Xeon E5-2650 \
         of eight cores and 24 GB of memory for a database of 260 GB [storagereview-sysbench]. \
         SysBench chose three quarters of the rows from one hundredth of all [kopytov-2009]; \
         memory holds these and 8 % of the rest, so {:.0} % of the reads go to the drive. Of the \
         built-in recordings, which choose all rows alike, {:.0} % do. So they are replayed with \
         `--buffered {BUFFERED:.0} --host-processors {PROCESSORS} --state filled`. The speed of \
         the host, {:.2} times that of the recordings, is fitted to the rate at two threads \
         (`--host-speed`); the rows of 32 threads are predictions. The replay takes the sharing of \
         two processors by 32 clients out of the think times. Each figure is the median of three \
         replays with shares one percent apart.\n\n\
         | row | figure | published | model | error | |\n|---|---|---|---|---|---|\n",
        REVIEW_MISSES * 100.0,
        RECORDING_MISSES * 100.0,
        comparison.host_speed,
    );
    for PublishedRate { id, what, reviewed, predicted, is_fitted } in &comparison.rows {
        let how = if *is_fitted { "fitted" } else { "predicted" };
        let (shown, error) = (shown(*predicted), error(*predicted, *reviewed));
        writeln!(text, "| {id} | {what} | {reviewed} | {shown} | {error} | {how} |")?;
    }
    text += "\nThe same laboratory published the rates of other cards at 32 threads, most of them \
             in 2013, by the same test. Nothing was fitted to them, and most of these models are \
             unvalidated:\n\n\
             | card | TPS, published | model | ratio | mean latency in ms, published | model | \
             difference | p99, published | model |\n|---|---|---|---|---|---|---|---|---|\n";
    for OtherCard { drive, reviewed, predicted } in &comparison.others {
        let ratio = predicted.tps.map(|it| format!("{:.2}", it / reviewed.tps));
        let difference = predicted.latency_ms_mean.map(|it| it - reviewed.latency_ms_mean);
        writeln!(
            text,
            "| {drive} | {:.0} | {} | {} | {} | {} | {} | {} | {} |",
            reviewed.tps,
            shown(predicted.tps),
            ratio.unwrap_or_default(),
            reviewed.latency_ms_mean,
            shown(predicted.latency_ms_mean),
            shown(difference),
            reviewed.latency_ms_p99,
            shown(predicted.latency_ms_p99),
        )?;
    }
    text += UNEXPRESSED;
    Ok(text)
}

fn shown(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |it| format!("{it:.1}"))
}

fn error(predicted: Option<f64>, reviewed: f64) -> String {
    predicted.map_or_else(String::new, |it| format!("{:+.1} %", (it / reviewed - 1.0) * 100.0))
}

/// Cores of the laboratory's server, a `ThinkServer` RD630 with two Xeon E5-2650.
const PROCESSORS: u32 = 16;
/// Share of the reads of a database of 260 GB that go to the drive, with 24 GB of memory: three
/// quarters of them are of one hundredth of it, which stays in memory.
const REVIEW_MISSES: f64 = 0.25 * (1.0 - (24.0 - 2.6) / (260.0 - 2.6));
/// Share of the reads of the built-in recordings that go to the drive: 48 of 324 MB, all of which
/// is read alike.
const RECORDING_MISSES: f64 = 1.0 - 48.0 / 324.0;
/// Reads of the recordings that the memory of the laboratory's server would have answered, in
/// percent.
const BUFFERED: f64 = 100.0 * (1.0 - REVIEW_MISSES / RECORDING_MISSES);
const PX600: &str = "px600-2600";
/// Rate at two threads in the review of the PX600, row B056 of `published/figures.csv`.
const PUBLISHED_TPS_2: f64 = 435.0;
/// Cards of the catalogue in the laboratory's table.
const OTHERS: [(&str, ReviewedCard); 6] = [
    ("es3000-2400", reviewed(2734.69, 11.7, 19.84)),
    ("iodrive2-duo-mlc-2400", reviewed(2521.06, 12.69, 23.92)),
    ("p320h-700", reviewed(2443.56, 13.09, 22.45)),
    ("iodrive2-1200", reviewed(2354.06, 13.59, 29.35)),
    ("flashmax-ii", reviewed(2278.11, 14.04, 26.04)),
    ("nytro-warpdrive-800", reviewed(1977.67, 16.18, 39.94)),
];

const fn reviewed(tps: f64, latency_ms_mean: f64, latency_ms_p99: f64) -> ReviewedCard {
    ReviewedCard { tps, latency_ms_mean, latency_ms_p99 }
}

/// Text beneath the published figures.
const UNEXPRESSED: &str = "
At 32 threads all are predicted too fast: the mean latencies of the six by much the same time, \
that of the PX600, measured a year later, by half of it. So the error is the host's: the replay \
has the think times of MariaDB 10.11, not the contention of the laboratory's Percona Server 5.5.

Of the 21 pairs of cards 14 are in order, on settled models 17. There the rates are 0.4 to 1.8 of \
the published ones, since the whole drive was written at random before, and a database writes a \
tenth of it.

More memory also saves writes, so `--buffered` holds back page writes in the same share as reads. \
The built-in recording of 32 clients, with 48 MB of memory for 324 MB of data, has 26.6 reads of a \
page and 301 KiB in writes of a page or more a transaction; one with 224 MB, at 4 ms, 3.7 reads \
and 49 KiB.

Not compared are rows B054 and B055, a NoSQL database on four nodes (suite `nosql-four-nodes` of \
the protocol `applications`) whose requests, data and memory are not published, and B061 to B063, \
a SQL server with 3,000 warehouses and 30,000 users whose memory and think times are not.
";
