//! Text of a report: its encoding, its JSON among messages, and files that are none.
//!
//! `--status-interval` makes fio write a report every so often, each of all that was done until
//! then: the last one counts.

use std::collections::BTreeMap;

use results::{LatencySummary, Warning, WarningKind};
use serde::Deserialize;
use serde_json::Value;

use crate::{Error, Kind};

/// Name of the job in which fio's client adds up the results of several hosts.
const ALL_CLIENTS: &str = "All clients";
/// Oldest fio whose reports are read: before it latencies were microseconds and bytes KiB.
const MAJOR_MIN: u32 = 3;
/// Remedy for files that are no report in JSON.
const AS_JSON: &str = "run fio with --output-format=json+ --output=FILE";

/// A report, and what else its file had.
#[derive(Debug)]
pub(super) struct Document {
    /// The last whole report of the file.
    pub(super) report: Report,
    /// Whole reports before it.
    earlier: usize,
    /// True if the file ends within a report.
    is_cut: bool,
}

/// The report.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    #[serde(rename = "fio version")]
    pub(super) version: String,
    /// Time at which it was written, in words.
    #[serde(default)]
    pub(super) time: String,
    /// Time at which it was written, in seconds since 1970.
    pub(super) timestamp: Option<u64>,
    pub(super) timestamp_ms: Option<u64>,
    #[serde(rename = "global options", default)]
    pub(super) global: BTreeMap<String, String>,
    #[serde(alias = "client_stats")]
    pub(super) jobs: Vec<ReportedJob>,
    #[serde(default)]
    pub(super) disk_util: Vec<Disk>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Disk {
    pub(super) name: String,
}

/// Totals of one job, or of those of a group that are reported as one.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ReportedJob {
    pub(super) jobname: String,
    #[serde(default)]
    pub(super) groupid: u64,
    #[serde(default)]
    pub(super) error: i32,
    /// The host that carried it out, and the port of its server; empty for this machine.
    #[serde(default)]
    pub(super) hostname: String,
    #[serde(default)]
    pub(super) port: u32,
    /// Absent where the report does not tell.
    #[serde(rename = "job options")]
    pub(super) options: Option<BTreeMap<String, String>>,
    /// CPU time in user space and in the kernel, percent of `job_runtime`.
    #[serde(default)]
    pub(super) usr_cpu: f64,
    #[serde(default)]
    pub(super) sys_cpu: f64,
    /// Milliseconds, of all jobs that are reported as one.
    #[serde(default)]
    pub(super) job_runtime: u64,
    /// Milliseconds since 1970 at which it began.
    pub(super) job_start: Option<u64>,
    /// Seconds from its begin to the report.
    #[serde(default)]
    pub(super) elapsed: u64,
    /// Percent of the requests that met so many outstanding, by the least of them.
    #[serde(default)]
    pub(super) iodepth_level: BTreeMap<String, f64>,
    pub(super) read: Option<ReportedDirection>,
    pub(super) write: Option<ReportedDirection>,
    pub(super) trim: Option<ReportedDirection>,
}

/// Totals of reads or writes.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ReportedDirection {
    pub(super) io_bytes: u64,
    pub(super) total_ios: u64,
    pub(super) iops: f64,
    /// Milliseconds.
    pub(super) runtime: u64,
    pub(super) lat_ns: Spread,
    pub(super) clat_ns: Spread,
}

/// One kind of latency; all zero where fio did not measure it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Spread {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) mean: f64,
    pub(super) stddev: f64,
    #[serde(default)]
    pub(super) bins: BTreeMap<u64, u64>,
    #[serde(default)]
    pub(super) percentile: BTreeMap<String, u64>,
}

impl Report {
    /// Value of the option `key`, of all jobs or of the first that has it.
    pub(super) fn option(&self, key: &str) -> Option<&str> {
        let of_jobs = self.jobs.iter().filter_map(|job| job.options.as_ref());
        let mut all = std::iter::once(&self.global).chain(of_jobs);
        all.find_map(|options| options.get(key)).map(String::as_str)
    }
}

impl ReportedJob {
    /// True if it adds up those of all hosts.
    pub(super) fn is_sum(&self) -> bool {
        self.jobname == ALL_CLIENTS
    }
}

impl Spread {
    /// True if fio measured it.
    pub(super) fn is_measured(&self) -> bool {
        self.max > 0 || self.mean > 0.0
    }
}

impl Document {
    /// Warnings about the file as a whole.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let warning = |text: String, remedy: &str| Warning {
            kind: WarningKind::Environment,
            step: String::new(),
            text,
            remedy: remedy.to_owned(),
        };
        let earlier = (self.earlier > 0).then(|| {
            let text = format!(
                "the file has {} reports, as fio writes with --status-interval: the last one is \
                 imported",
                self.earlier + 1
            );
            warning(text, "import the reports of different runs from files of their own")
        });
        let cut = self.is_cut.then(|| {
            let text = "the file ends within a report: the last whole one is imported, and what \
                        was measured after it is missing";
            warning(text.into(), "let fio end by itself")
        });
        earlier.into_iter().chain(cut).collect()
    }
}

/// Reason why a file is not imported.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Name of what the file is, to follow its path.
    text: String,
    source: Option<serde_json::Error>,
    hint: &'static str,
}

impl Refusal {
    fn new(text: impl Into<String>, hint: &'static str) -> Self {
        Self { text: text.into(), source: None, hint }
    }

    /// The error about the file `shown`.
    pub(super) fn about(self, shown: &str) -> Error {
        let error = Error::new(Kind::Input, format!("{shown} {}", self.text)).hint(self.hint);
        match self.source {
            Some(source) => error.source(source),
            None => error,
        }
    }
}

/// Reads the last report in the bytes of a file.
pub(super) fn read(bytes: &[u8]) -> Result<Document, Refusal> {
    let text = decoded(bytes)?;
    let (mut found, mut fault) = (None, None);
    let (mut count, mut is_cut, mut from) = (0, false, 0);
    while let Some(start) = line_with_brace(&text, from).filter(|_| !is_cut) {
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        from = start + 1;
        match values.next() {
            Some(Ok(value)) if value.get("fio version").is_some() => {
                (found, count) = (Some(value), count + 1);
                from = start + values.byte_offset();
            }
            Some(Err(error)) => {
                is_cut = error.is_eof();
                fault = Some(error);
            }
            _ => {}
        }
    }
    let value = found.ok_or_else(|| no_report(&text, fault))?;
    check_version(&value)?;
    let report: Report = serde_json::from_value(value).map_err(|source| Refusal {
        text: "is not a fio report in JSON that is known here".into(),
        source: Some(source),
        hint: AS_JSON,
    })?;
    if report.jobs.is_empty() {
        return Err(Refusal::new("contains no job", AS_JSON));
    }
    Ok(Document { report, earlier: count - 1, is_cut })
}

/// The text of `bytes`, whatever its byte-order mark says; UTF-8 without one.
fn decoded(bytes: &[u8]) -> Result<String, Refusal> {
    let wide = |bytes: &[u8], of: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
        char::decode_utf16(units).collect::<Result<String, _>>().ok()
    };
    let text = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [first, 0, ..] if *first > 0 => wide(bytes, u16::from_le_bytes),
        [0, second, ..] if *second > 0 => wide(bytes, u16::from_be_bytes),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    };
    text.ok_or_else(|| Refusal::new("is no text in UTF-8 or UTF-16", AS_JSON))
}

/// Offset of the next line of `text`, from the offset `from` on, that begins with a brace.
fn line_with_brace(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let blank = rest.len() - rest.trim_start().len();
    if (from == 0 || blank > 0) && rest[blank..].starts_with('{') {
        return Some(from + blank);
    }
    rest.find("\n{").map(|at| from + at + 1)
}

fn check_version(report: &Value) -> Result<(), Refusal> {
    let version = report["fio version"].as_str().unwrap_or_default();
    let number = version.trim_start_matches("fio-");
    let major = number.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < MAJOR_MIN) {
        let text = format!("is a report of fio {number}: {MAJOR_MIN}.0 and later are read");
        return Err(Refusal::new(text, "measure again with fio 3"));
    }
    Ok(())
}

/// Name of what `text` is, if it is another output of fio, or else what is wrong with it.
fn no_report(text: &str, fault: Option<serde_json::Error>) -> Refusal {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let has = |what: &str| text.lines().any(|line| line.contains(what));
    if first.split(';').nth(1).is_some_and(|second| second.starts_with("fio-")) {
        return Refusal::new("is fio's terse output, which is not read", AS_JSON);
    }
    if first.starts_with("fio version") && first.ends_with("iolog") {
        let hint = "`floatgate run --trace FILE` replays it";
        return Refusal::new("is an iolog of fio, not a report", hint);
    }
    let fields: Vec<&str> = first.split(',').map(str::trim).collect();
    if fields.len() >= 4 && fields.iter().all(|field| field.parse::<i64>().is_ok()) {
        let hint = "import the report of the same job; `floatgate trace import` reads an iolog \
                    with its latency log";
        return Refusal::new("is a log of fio, such as of latency, not a report", hint);
    }
    if has(": (groupid=") || (has(": (g=") && has("ioengine=")) {
        return Refusal::new("is fio's normal output, which is not read", AS_JSON);
    }
    if has("fio: server listening") || (has("hostname=") && has("bit, OS:")) {
        return Refusal::new("is what fio's server or client logs, not a report", AS_JSON);
    }
    Refusal { text: "is not a fio report in JSON".into(), source: fault, hint: AS_JSON }
}

impl ReportedDirection {
    /// Total latency where the report has it in full, or has no other; else what fio calls clat.
    pub(super) fn latency(&self) -> &Spread {
        let has = |it: &Spread| !it.bins.is_empty() || !it.percentile.is_empty();
        let is_full = has(&self.lat_ns) || !self.clat_ns.is_measured();
        if is_full { &self.lat_ns } else { &self.clat_ns }
    }
}

impl Spread {
    /// The latencies of `count` requests; nothing where they were not measured.
    pub(super) fn summary(&self, count: u64) -> LatencySummary {
        if !self.is_measured() {
            return LatencySummary::default();
        }
        let percentile = |share: f64| {
            let same =
                |text: &String| text.parse::<f64>().is_ok_and(|it| (it - share).abs() < 1e-6);
            let found = self.percentile.iter().find(|(text, _)| same(text));
            found.map(|(_, latency_ns)| *latency_ns)
        };
        LatencySummary {
            count,
            latency_ns_avg: self.mean,
            latency_ns_stdev: self.stddev,
            latency_ns_min: self.min,
            latency_ns_max: self.max,
            latency_ns_p50: percentile(50.0),
            latency_ns_p90: percentile(90.0),
            latency_ns_p99: percentile(99.0),
            latency_ns_p999: percentile(99.9),
            latency_ns_p9999: percentile(99.99),
        }
    }
}
