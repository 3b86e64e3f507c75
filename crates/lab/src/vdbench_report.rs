//! Flat files that vdbench wrote (`flatfile.html`), as runs [vdbench-manual].
//!
//! ```text
//! tod          Run  Interval  reqrate  rate    MB/sec  bytes/io  read%  resp  resp_max …
//! 22:15:06.000 rd1  1         max      1200.0  4.7     4096      100    6.66  …
//! 22:15:36.000 rd1  avg_2-6   max      1190.0  4.6     4096      100    6.72  …
//! ```
//!
//! Columns are found by their names. The row of an average is the measurement of its run, the rows
//! of intervals are its samples. Response times are milliseconds; there are no percentiles. Rates
//! count, throughput is rates times mean sizes: the columns of MB may be of 2^20 bytes. The time of
//! day has no date, which only a column `timestamp` tells, in the zone that it names.

use std::fs;
use std::path::Path;
use std::time::Duration;

use chrono::{NaiveDateTime, SecondsFormat, TimeDelta};
use results::steady::WriteRequirement;
use results::{
    Environment, LatencySummary, PlatformRow, Sample, StepKind, Summary, Target, TargetKind,
    Warning, WarningKind,
};

use crate::fio_report::ImportedRun;
use crate::plan::{Plan, PlannedStep};
use crate::runner::{Outcome, Record};
use crate::wanted::{TargetSetup, words};
use crate::{Error, Kind, LoadResult};

/// Name of the program in what is imported.
const PROGRAM: &str = "vdbench";
/// Columns that a flat file has.
const NEEDED: [&str; 7] = ["run", "interval", "rate", "bytes/io", "read%", "resp", "threads"];

/// True if `text` is a flat file: a line names its columns.
pub fn is_flat_file(text: &str) -> bool {
    text.lines().any(|line| Columns::of(line).is_some())
}

/// Reads the flat file at `path`; `title` heads it in a review.
///
/// # Errors
/// Fails if it cannot be read, or has no average of a run.
pub fn import(path: &Path, title: Option<&str>) -> Result<ImportedRun, Error> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|source| Error::new(Kind::Input, format!("reading {shown}")).source(source))?;
    let runs = runs(&text);
    if runs.is_empty() {
        let text = format!("{shown} has no row of an average, such as avg_2-6, of any run");
        return Err(Error::new(Kind::Input, text).hint("import the flatfile.html of a whole run"));
    }
    let mut steps: Vec<PlannedStep> = Vec::new();
    let mut records = Vec::new();
    for run in &runs {
        let mut step = planned(run);
        let same = steps.iter().filter(|other| other.id.starts_with(&step.id)).count();
        if same > 0 {
            step.id = format!("{}-{}", step.id, same + 1);
        }
        records.push((records.len(), run.record(&step)));
        steps.push(step);
    }
    let plan = Plan {
        protocol: PROGRAM.into(),
        protocol_title: "Imported from vdbench".into(),
        published: None,
        time_lapse_max: None,
        start_purged: false,
        seed: 0,
        steps,
        work: Vec::new(),
    };
    let name = title.unwrap_or(PROGRAM).to_owned();
    let target =
        Target { title: name.clone(), name: name.clone(), ..Target::of_kind(TargetKind::File) };
    let row = PlatformRow { name: "Imported from".into(), value: shown };
    let environment = Environment { sheet: vec![row], imported_from: Some(PROGRAM.into()) };
    let outcome = Outcome { target, environment, records, interrupted: false, spared: 0 };
    let wanted = TargetSetup::of_real(name, String::new());
    Ok(ImportedRun { plan, wanted, outcome, begun: begun(&runs) })
}

/// Time at which the first interval began: the row of each is written at its end. Absent where the
/// file does not tell a date.
fn begun(runs: &[FlatRun]) -> Option<String> {
    let first = runs.first()?;
    let (_, row) = first.intervals.first()?;
    let ended = row.timestamp.as_deref()?;
    let (time, zone) = NaiveDateTime::parse_and_remainder(ended, "%m/%d/%Y-%H:%M:%S").ok()?;
    let lasted = TimeDelta::from_std(Duration::try_from_secs_f64(first.interval_s).ok()?).ok()?;
    let time = time.checked_sub_signed(lasted)?;
    Some(match zone.trim_start_matches('-') {
        "UTC" | "GMT" => time.and_utc().to_rfc3339_opts(SecondsFormat::Secs, true),
        // Its abbreviation may stand for several zones.
        zone => format!("{time} {zone}").trim_end().to_owned(),
    })
}

/// Names of the columns of a flat file, in their order.
#[derive(Clone, Debug)]
struct Columns(Vec<String>);

impl Columns {
    /// The columns that `line` names; absent where it is another line.
    fn of(line: &str) -> Option<Self> {
        let names: Vec<String> = line.split_whitespace().map(str::to_lowercase).collect();
        let has = |name: &&str| names.iter().any(|it| it == name);
        NEEDED.iter().all(has).then_some(Self(names))
    }

    /// The cell of the column `name` in the row of `cells`.
    fn cell<'a>(&self, cells: &[&'a str], name: &str) -> Option<&'a str> {
        cells.get(self.0.iter().position(|it| it == name)?).copied()
    }

    /// The cell of the column `name` as a number; absent where there is none, such as `n/a`.
    fn number(&self, cells: &[&str], name: &str) -> Option<f64> {
        self.cell(cells, name)?.parse::<f64>().ok().filter(|it| it.is_finite())
    }
}

/// One row.
#[derive(Clone, Debug)]
struct Row {
    run: String,
    interval: String,
    /// End of the interval, with its date; absent in files that do not tell it.
    timestamp: Option<String>,
    threads: u16,
    iops: f64,
    bytes: f64,
    read_share: f64,
    /// All requests, reads, writes.
    spreads: [Spread; 3],
}

/// Response times in milliseconds, where they are known.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    mean: Option<f64>,
    max: Option<f64>,
    stdev: Option<f64>,
}

impl Row {
    fn of(columns: &Columns, line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split_whitespace().collect();
        if cells.len() < columns.0.len() {
            return None;
        }
        let number = |name: &str| columns.number(&cells, name);
        let spread = |mean: &str, max: &str, stdev: &str| Spread {
            mean: number(mean),
            max: number(max),
            stdev: number(stdev),
        };
        Some(Self {
            run: columns.cell(&cells, "run")?.to_owned(),
            interval: columns.cell(&cells, "interval")?.to_owned(),
            timestamp: columns.cell(&cells, "timestamp").map(str::to_owned),
            threads: columns.cell(&cells, "threads")?.parse().unwrap_or(1),
            iops: number("rate")?,
            bytes: number("bytes/io")?,
            read_share: number("read%")? / 100.0,
            spreads: [
                spread("resp", "resp_max", "resp_std"),
                spread("read_resp", "read_max", "read_std"),
                spread("write_resp", "write_max", "write_std"),
            ],
        })
    }

    fn summary(&self, span_s: f64) -> Summary {
        let share = self.read_share;
        let [all, read, write] = self.spreads;
        let latency = |iops: f64, spread: Spread| spread.summary(iops * span_s);
        // One direction alone has the response times of all requests.
        let (read, write) =
            (if share >= 1.0 { all } else { read }, if share <= 0.0 { all } else { write });
        let (iops_read, iops_write) = (self.iops * share, self.iops * (1.0 - share));
        Summary {
            span_s,
            iops: self.iops,
            iops_read,
            iops_write,
            throughput_read_mb_s: iops_read * self.bytes / 1e6,
            throughput_write_mb_s: iops_write * self.bytes / 1e6,
            outstanding_avg: self.iops * all.mean.unwrap_or_default() / 1e3,
            latency: latency(self.iops, all),
            read: latency(iops_read, read),
            write: latency(iops_write, write),
            ..Summary::default()
        }
    }
}

impl Spread {
    /// The latencies of `count` requests; nothing where they are not known.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    fn summary(self, count: f64) -> LatencySummary {
        let Some(mean) = self.mean.filter(|_| count >= 0.5) else {
            return LatencySummary::default();
        };
        LatencySummary {
            count: count.round() as u64,
            latency_ns_avg: mean * 1e6,
            latency_ns_stdev: self.stdev.unwrap_or_default() * 1e6,
            latency_ns_min: 0,
            latency_ns_max: (self.max.unwrap_or(mean) * 1e6).round() as u64,
            ..LatencySummary::default()
        }
    }
}

/// A run: its average, and its intervals.
#[derive(Clone, Debug)]
struct FlatRun {
    average: Row,
    /// Seconds of an interval.
    interval_s: f64,
    /// Intervals that the average is of, from and to.
    counted: (f64, f64),
    intervals: Vec<(f64, Row)>,
}

impl FlatRun {
    /// Seconds that the average is of.
    fn span_s(&self) -> f64 {
        (self.counted.1 - self.counted.0 + 1.0) * self.interval_s
    }

    fn record(&self, step: &PlannedStep) -> Record {
        let how = format!("imported from vdbench, run {}", step.suite_title);
        let text = "vdbench reports no percentiles, and the flat file does not tell addresses and \
                    data: they are unknown";
        let warning = Warning {
            kind: WarningKind::Environment,
            step: step.id.clone(),
            text: text.into(),
            remedy: "measure with `floatgate run` for percentiles".into(),
        };
        let loaded = LoadResult { how, warnings: vec![warning], ..LoadResult::default() };
        let required = WriteRequirement {
            before_bytes: 0.0,
            addressed_bytes: 0.0,
            user_bytes: 0.0,
            raw_bytes: None,
            time_lapse: 1.0,
        };
        let mut record = Record::of_load(step, 1, &required, None, loaded);
        record.step.written = None;
        record.step.duration_s = self.span_s();
        record.step.summary = Some(self.average.summary(self.span_s()));
        let (first, last) = self.counted;
        let counted = self.intervals.iter().filter(|(at, _)| (first..=last).contains(at));
        record.step.samples = counted
            .map(|(at, row)| Sample {
                at_s: (at - first + 1.0) * self.interval_s,
                summary: row.summary(self.interval_s),
                ..Sample::default()
            })
            .collect();
        record
    }
}

fn planned(run: &FlatRun) -> PlannedStep {
    let (name, threads) = (&run.average.run, run.average.threads);
    let suite = words(name);
    PlannedStep {
        id: format!("{suite}/unknown-load/T{threads}Q1"),
        kind: StepKind::Measure,
        threads,
        queue_per_thread: 1,
        duration_s: run.span_s(),
        interval_s: run.interval_s,
        ..crate::plan::blank(&suite, name)
    }
}

/// The runs of a flat file that have an average.
fn runs(text: &str) -> Vec<FlatRun> {
    let mut columns: Option<Columns> = None;
    let mut found = Vec::new();
    let mut intervals: Vec<(f64, Row)> = Vec::new();
    let mut times_s: Vec<f64> = Vec::new();
    for line in text.lines() {
        if let Some(named) = Columns::of(line) {
            columns = Some(named);
            continue;
        }
        let Some(row) = columns.as_ref().and_then(|columns| Row::of(columns, line)) else {
            continue;
        };
        if let Ok(number) = row.interval.parse::<f64>() {
            if number <= 1.0 {
                intervals.clear();
                times_s.clear();
            }
            times_s.extend(time_of_day_s(line));
            intervals.push((number, row));
        } else if let Some(counted) = averaged(&row.interval) {
            let interval_s = interval_s(&times_s);
            found.push(FlatRun {
                average: row,
                interval_s,
                counted,
                intervals: std::mem::take(&mut intervals),
            });
            times_s.clear();
        }
    }
    found
}

/// Intervals of an average such as `avg_2-6`.
fn averaged(text: &str) -> Option<(f64, f64)> {
    let (first, last) = text.strip_prefix("avg_")?.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// Seconds since midnight at the beginning of `line`, as `22:15:06.000`.
fn time_of_day_s(line: &str) -> Option<f64> {
    let time = line.split_whitespace().find(|cell| cell.matches(':').count() == 2)?;
    time.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
}

/// Seconds between two rows; 1 where there are fewer.
fn interval_s(times_s: &[f64]) -> f64 {
    let spans = times_s.windows(2).map(|pair| pair[1] - pair[0]).filter(|span| *span > 0.0);
    let (sum, count) = spans.fold((0.0, 0.0), |(sum, count), span| (sum + span, count + 1.0));
    if count > 0.0 { (sum / count).round().max(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAT: &str = "\
* vdbench flatfile.html
tod Run Interval reqrate rate MB/sec bytes/io read% resp read_resp write_resp resp_max resp_std \
xfersize threads rdpct
22:15:05.000 rd1 1 max 900.0 3.5 4096 70.0 9.0 8.0 11.0 80.0 3.0 4096 8 70
22:15:10.000 rd1 2 max 1200.0 4.7 4096 70.0 6.6 6.0 8.0 40.0 2.0 4096 8 70
22:15:15.000 rd1 3 max 1000.0 3.9 4096 70.0 8.0 7.0 10.3 50.0 2.5 4096 8 70
22:15:15.000 rd1 avg_2-3 max 1100.0 4.3 4096 70.0 7.27 6.5 9.07 50.0 2.3 4096 8 70
22:15:20.000 rd2 1 max 10.0 0.1 4096 100.0 1.0 1.0 n/a 2.0 0.1 4096 1 100
22:15:25.000 rd2 2 max 10.0 0.1 4096 100.0 1.0 1.0 n/a 2.0 0.1 4096 1 100
22:15:25.000 rd2 avg_2-2 max 10.0 0.1 4096 100.0 1.0 1.0 n/a 2.0 0.1 4096 1 100
";

    fn imported(text: &str) -> Result<ImportedRun, Error> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flatfile.html");
        fs::write(&path, text).unwrap();
        import(&path, None)
    }

    #[test]
    fn averages_are_measurements_and_intervals_their_samples() {
        assert!(is_flat_file(FLAT));
        assert!(!is_flat_file("{\"fio version\": \"fio-3.33\"}"));
        let ImportedRun { plan, outcome, .. } = imported(FLAT).unwrap();
        let run = outcome.into_run(&plan, "id".into(), String::new());
        assert_eq!(run.imported_from(), Some("vdbench"));
        let [first, second] = run.steps.as_slice() else { panic!("{run:?}") };
        assert_eq!((first.id.as_str(), first.samples.len()), ("rd1/unknown-load/T8Q1", 2));
        let summary = first.summary.as_ref().unwrap();
        assert!((summary.iops - 1100.0).abs() < 1e-9 && (summary.span_s - 10.0).abs() < 1e-9);
        assert!((summary.iops_read - 770.0).abs() < 1e-9);
        assert!((summary.throughput_mb_s() - 4.5056).abs() < 1e-9, "decimal megabytes");
        assert_eq!((summary.latency.count, summary.latency.max_ns()), (11_000, Some(50_000_000)));
        assert!((summary.latency.mean_ns().unwrap() - 7.27e6).abs() < 1e-3);
        assert_eq!(summary.latency.p999_ns(), None);
        let reads = second.summary.as_ref().unwrap();
        assert_eq!((reads.write.mean_ns(), reads.read.max_ns()), (None, Some(2_000_000)));
    }

    #[test]
    fn a_run_begins_when_its_first_interval_began_where_the_file_tells_a_date() {
        assert_eq!(imported(FLAT).unwrap().begun, None, "a time of day is no date");
        let dated = |zone: &str| {
            let stamped = |line: &str| match line.split_once(".000 ") {
                Some((time, rest)) => format!("{time} 12/22/2021-{time}-{zone} {rest}\n"),
                None => line.replace("tod Run", "tod timestamp Run") + "\n",
            };
            imported(&FLAT.lines().map(stamped).collect::<String>()).unwrap().begun
        };
        assert_eq!(dated("UTC").as_deref(), Some("2021-12-22T22:15:00Z"));
        assert_eq!(dated("CST").as_deref(), Some("2021-12-22 22:15:00 CST"));
    }

    #[test]
    fn a_flat_file_without_an_average_is_refused() {
        let text: String = FLAT.split_inclusive('\n').take(3).collect();
        let error = imported(&text).unwrap_err();
        assert!(error.to_string().contains("has no row of an average"), "{error}");
    }
}
