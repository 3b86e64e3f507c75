//! Reports that fio wrote, `--output-format=json+` or `json`, as runs.
//!
//! Jobs of one name and one group are one measurement, their figures added. Of each job there are
//! totals and, in `json+`, histograms; nothing over time. What fio calls `clat` is the latency
//! where the report has no bins of `lat`: without `lat_percentiles=1` fio keeps none.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use results::steady::WriteRequirement;
use results::{
    Bin, Environment, Latencies, LatencySummary, PlatformRow, StepKind, Summary, Target,
    TargetKind, Warning, WarningKind,
};
use serde::Deserialize;
use workload::fio::{Told, told};

use crate::plan::{Pace, Plan, PlannedStep};
use crate::runner::{Outcome, Record};
use crate::wanted::Wanted;
use crate::{Error, Gaps, Kind, Loaded, Rate};

/// A run to be, from a report.
#[derive(Debug)]
pub struct Imported {
    /// Plan that would have issued the report's jobs.
    pub plan: Plan,
    /// Target of the jobs.
    pub wanted: Wanted,
    /// Results of the jobs.
    pub outcome: Outcome,
}

#[derive(Debug, Deserialize)]
struct Report {
    #[serde(rename = "fio version")]
    version: String,
    #[serde(default)]
    time: String,
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, String>,
    #[serde(alias = "client_stats")]
    jobs: Vec<ReportedJob>,
    #[serde(default)]
    disk_util: Vec<Disk>,
}

#[derive(Debug, Deserialize)]
struct Disk {
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
struct ReportedJob {
    jobname: String,
    #[serde(default)]
    groupid: u64,
    #[serde(default)]
    error: i32,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    /// CPU time in user space and in the kernel, percent of `job_runtime`.
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
    /// Milliseconds, of all jobs that are reported as one.
    #[serde(default)]
    job_runtime: u64,
    read: ReportedDirection,
    write: ReportedDirection,
}

/// Totals of reads or writes.
#[derive(Clone, Debug, Deserialize)]
struct ReportedDirection {
    io_bytes: u64,
    total_ios: u64,
    iops: f64,
    /// Milliseconds.
    runtime: u64,
    lat_ns: Spread,
    clat_ns: Spread,
}

/// One kind of latency.
#[derive(Clone, Debug, Deserialize)]
struct Spread {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(default)]
    bins: BTreeMap<u64, u64>,
    #[serde(default)]
    percentile: BTreeMap<String, u64>,
}

/// Reads the report at `path`; `title` heads it in a review.
///
/// # Errors
/// Fails if it cannot be read, is no report of fio, or tells of a job that failed.
pub fn import(path: &Path, title: Option<&str>) -> Result<Imported, Error> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|source| Error::new(Kind::Input, format!("reading {shown}")).source(source))?;
    let report = parsed(&text).map_err(|source| {
        Error::new(Kind::Input, format!("{shown} is not a fio report in JSON"))
            .source(source)
            .hint("run fio with --output-format=json+ --output=FILE")
    })?;
    if let Some(job) = report.jobs.iter().find(|job| job.error != 0) {
        let cause = std::io::Error::from_raw_os_error(job.error);
        let text = format!("{shown}: job {} failed", job.jobname);
        return Err(Error::new(Kind::Input, text).source(cause));
    }
    imported(&report, &shown, title)
}

/// The report, which messages may precede.
fn parsed(text: &str) -> Result<Report, serde_json::Error> {
    let start = if text.starts_with('{') { 0 } else { text.find("\n{").unwrap_or(0) };
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter();
    values.next().unwrap_or_else(|| serde_json::from_str(""))
}

fn imported(report: &Report, shown: &str, title: Option<&str>) -> Result<Imported, Error> {
    let mut records = Vec::new();
    let mut steps: Vec<PlannedStep> = Vec::new();
    for jobs in groups(&report.jobs) {
        let merged = Merged::of(jobs);
        let beside = report.jobs.iter().filter(|job| job.groupid == jobs[0].groupid);
        let beside = beside.filter(|job| job.jobname != jobs[0].jobname).count();
        let told = told_of(report, jobs);
        let mut step = planned(&told, &jobs[0].jobname, merged.span_s);
        let same = steps.iter().filter(|other| other.id.starts_with(&step.id)).count();
        if same > 0 {
            step.id = format!("{}-{}", step.id, same + 1);
        }
        records.push((records.len(), merged.record(&step, &told, beside > 0)));
        steps.push(step);
    }
    if steps.is_empty() {
        return Err(Error::new(Kind::Input, format!("{shown} contains no job")));
    }
    let plan = Plan {
        protocol: "fio".into(),
        protocol_title: "Imported from fio".into(),
        published: None,
        time_lapse_max: None,
        start_purged: false,
        seed: 0,
        steps,
        work: Vec::new(),
    };
    let target = target(report, title);
    let wanted =
        Wanted::Real { target: title.unwrap_or(&target.name).to_owned(), hosts: String::new() };
    let environment = environment(report, shown);
    let outcome = Outcome { target, environment, records, interrupted: false, spared: 0 };
    Ok(Imported { plan, wanted, outcome })
}

/// Jobs that are one measurement: of one name and one group, next to each other.
fn groups(jobs: &[ReportedJob]) -> impl Iterator<Item = &[ReportedJob]> {
    let measured = jobs.iter().filter(|job| job.jobname != "All clients").count();
    jobs[..measured].chunk_by(|a, b| (a.groupid, &a.jobname) == (b.groupid, &b.jobname))
}

fn told_of(report: &Report, jobs: &[ReportedJob]) -> Told {
    let own = jobs.iter().take(1).flat_map(|job| &job.options);
    let options = report.global.iter().chain(own);
    let found = told(&jobs[0].jobname, options.map(|(key, value)| (key.as_str(), value.as_str())));
    // Without group_reporting each of them is told by itself.
    let counted = u16::try_from(jobs.len()).unwrap_or(u16::MAX);
    Told { threads: found.threads.max(counted), ..found }
}

fn planned(told: &Told, name: &str, span_s: f64) -> PlannedStep {
    let Told { workload, threads, queue_per_thread, rate_iops } = told;
    let blank = crate::plan::blank(&workload.name, name);
    PlannedStep {
        id: format!("{}/{}/T{threads}Q{queue_per_thread}", workload.name, workload.name),
        kind: StepKind::Measure,
        workload: Some(workload.clone()),
        threads: *threads,
        queue_per_thread: *queue_per_thread,
        duration_s: span_s,
        interval_s: span_s,
        pace: rate_iops.map(|iops| Pace::Fixed(Rate { iops, gaps: Gaps::Exponential })),
        ..blank
    }
}

/// Jobs as one.
struct Merged {
    span_s: f64,
    read: Totals,
    write: Totals,
    /// Processor time of the jobs, in microseconds; 0 where the report does not tell.
    busy_us: f64,
    has_bins: bool,
    is_clat: bool,
}

/// Reads or writes of several jobs.
#[derive(Default)]
struct Totals {
    bytes: u64,
    iops: f64,
    latency: LatencySummary,
    latencies: Latencies,
    bins: Vec<Bin>,
}

impl Merged {
    fn of(jobs: &[ReportedJob]) -> Self {
        let runtime = |job: &ReportedJob| job.read.runtime.max(job.write.runtime);
        let span_ms = jobs.iter().map(runtime).max().unwrap_or(0);
        let busy_us =
            |job: &ReportedJob| (job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime as f64 * 1e3;
        let directions = jobs.iter().flat_map(|job| [&job.read, &job.write]);
        let mut active = directions.filter(|it| it.total_ios > 0);
        let has_bins = active.clone().all(|it| !it.latency().bins.is_empty());
        let is_clat = active.any(|it| it.lat_ns.bins.is_empty() && it.lat_ns.percentile.is_empty());
        Self {
            span_s: span_ms as f64 / 1e3,
            busy_us: jobs.iter().map(busy_us).sum(),
            read: Totals::of(jobs.iter().map(|job| &job.read)),
            write: Totals::of(jobs.iter().map(|job| &job.write)),
            has_bins,
            is_clat,
        }
    }

    fn record(self, step: &PlannedStep, told: &Told, has_others: bool) -> Record {
        let warnings = self.warnings(&step.id, has_others);
        let how = format!("imported from fio's report, job {}", step.suite_title);
        let loaded = Loaded { how, warnings, ..Loaded::default() };
        let required = WriteRequirement {
            before_bytes: 0.0,
            addressed_bytes: 0.0,
            user_bytes: 0.0,
            raw_bytes: None,
            time_lapse: 1.0,
        };
        let mut record = Record::of_load(step, (1, &required), told.rate_iops, loaded);
        // The report tells neither the capacity nor what was written before.
        record.step.written = None;
        let summary = self.summary();
        record.step.duration_s = self.span_s;
        record.step.summary = Some(summary);
        record.step.read_bins = self.read.bins;
        record.step.write_bins = self.write.bins;
        record
    }

    fn summary(&self) -> Summary {
        let Self { span_s, read, write, .. } = self;
        let mb_s = |bytes: u64| if *span_s > 0.0 { bytes as f64 / span_s / 1e6 } else { 0.0 };
        let mut latency = pooled(&read.latency, &write.latency);
        if self.has_bins {
            let mut both = read.latencies.clone();
            both.merge(&write.latencies);
            latency = with_percentiles(latency, &both.summary());
        }
        Summary {
            span_s: *span_s,
            iops: read.iops + write.iops,
            iops_read: read.iops,
            iops_write: write.iops,
            throughput_read_mb_s: mb_s(read.bytes),
            throughput_write_mb_s: mb_s(write.bytes),
            outstanding_avg: (read.iops + write.iops) * latency.latency_ns_avg / 1e9,
            latency,
            read: read.latency,
            write: write.latency,
            host_processor_us: (self.busy_us > 0.0 && latency.count > 0)
                .then(|| self.busy_us / latency.count as f64),
            ..Summary::default()
        }
    }

    fn warnings(&self, step: &str, has_others: bool) -> Vec<Warning> {
        let mut texts = Vec::new();
        if self.is_clat {
            texts.push((
                "latency is fio's clat, which excludes the time of submission",
                "run fio with --lat_percentiles=1 and --output-format=json+",
            ));
        }
        if !self.has_bins {
            texts.push((
                "the report has no histograms: percentiles are those that fio printed; for \
                 several jobs, and for reads and writes together, the highest of them",
                "run fio with --output-format=json+",
            ));
        }
        if has_others {
            texts.push((
                "other jobs ran at the same time: these figures are a part of the drive's load",
                "separate the jobs with `stonewall`",
            ));
        }
        let warning = |(text, remedy): (&str, &str)| Warning {
            kind: WarningKind::Environment,
            step: step.to_owned(),
            text: text.to_owned(),
            remedy: remedy.to_owned(),
        };
        texts.into_iter().map(warning).collect()
    }
}

impl ReportedDirection {
    /// Total latency where the report has it in full, else what fio calls clat.
    fn latency(&self) -> &Spread {
        let has = |it: &Spread| !it.bins.is_empty() || !it.percentile.is_empty();
        if has(&self.lat_ns) { &self.lat_ns } else { &self.clat_ns }
    }
}

impl Totals {
    fn of<'a>(directions: impl Iterator<Item = &'a ReportedDirection>) -> Self {
        let mut totals = Self::default();
        for direction in directions.filter(|it| it.total_ios > 0) {
            let spread = direction.latency();
            totals.bytes += direction.io_bytes;
            totals.iops += direction.iops;
            totals.latency = pooled(&totals.latency, &spread.summary(direction.total_ios));
            for (latency_ns, count) in &spread.bins {
                totals.latencies.record_many((*latency_ns).min(spread.max), *count);
            }
        }
        if totals.latencies.count() > 0 {
            totals.latency = with_percentiles(totals.latency, &totals.latencies.summary());
        }
        totals.bins = totals.latencies.bins();
        totals
    }
}

impl Spread {
    fn summary(&self, count: u64) -> LatencySummary {
        let percentile = |share: f64| {
            let same =
                |text: &String| text.parse::<f64>().is_ok_and(|it| (it - share).abs() < 1e-6);
            let found = self.percentile.iter().find(|(text, _)| same(text));
            found.map_or(0, |(_, latency_ns)| *latency_ns)
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

/// Mean, deviation and range of two sets of requests together; percentiles are the higher ones.
fn pooled(a: &LatencySummary, b: &LatencySummary) -> LatencySummary {
    if a.count == 0 || b.count == 0 {
        return if a.count == 0 { *b } else { *a };
    }
    let (of_a, of_b) = (a.count as f64, b.count as f64);
    let mean = (a.latency_ns_avg * of_a + b.latency_ns_avg * of_b) / (of_a + of_b);
    let spread =
        |it: &LatencySummary| it.latency_ns_stdev.powi(2) + (it.latency_ns_avg - mean).powi(2);
    LatencySummary {
        count: a.count + b.count,
        latency_ns_avg: mean,
        latency_ns_stdev: ((spread(a) * of_a + spread(b) * of_b) / (of_a + of_b)).sqrt(),
        latency_ns_min: a.latency_ns_min.min(b.latency_ns_min),
        latency_ns_max: a.latency_ns_max.max(b.latency_ns_max),
        latency_ns_p50: a.latency_ns_p50.max(b.latency_ns_p50),
        latency_ns_p90: a.latency_ns_p90.max(b.latency_ns_p90),
        latency_ns_p99: a.latency_ns_p99.max(b.latency_ns_p99),
        latency_ns_p999: a.latency_ns_p999.max(b.latency_ns_p999),
        latency_ns_p9999: a.latency_ns_p9999.max(b.latency_ns_p9999),
    }
}

/// `of` with the percentiles of a histogram of the same requests.
const fn with_percentiles(of: LatencySummary, histogram: &LatencySummary) -> LatencySummary {
    LatencySummary {
        latency_ns_p50: histogram.latency_ns_p50,
        latency_ns_p90: histogram.latency_ns_p90,
        latency_ns_p99: histogram.latency_ns_p99,
        latency_ns_p999: histogram.latency_ns_p999,
        latency_ns_p9999: histogram.latency_ns_p9999,
        ..of
    }
}

/// Target that the report names. Its capacity is not in a report.
fn target(report: &Report, title: Option<&str>) -> Target {
    let options =
        || std::iter::once(&report.global).chain(report.jobs.iter().map(|it| &it.options));
    let found = |key: &str| options().find_map(|options| options.get(key));
    let name = found("filename").or_else(|| found("uri")).or_else(|| found("directory"));
    let name = name.map_or("fio", String::as_str).to_owned();
    let kind = match () {
        () if found("uri").is_some() => TargetKind::Nbd,
        () if name.starts_with("/dev/") => TargetKind::BlockDevice,
        () => TargetKind::File,
    };
    Target { title: title.unwrap_or(&name).to_owned(), name, ..Target::of_kind(kind) }
}

fn environment(report: &Report, shown: &str) -> Environment {
    let disks: Vec<&str> = report.disk_util.iter().map(|disk| disk.name.as_str()).collect();
    let engine = report.global.get("ioengine").or_else(|| report.jobs[0].options.get("ioengine"));
    let rows = [
        ("Imported from", shown.to_owned()),
        ("Load generator", report.version.clone()),
        ("Engine", engine.cloned().unwrap_or_default()),
        ("Measured at", report.time.clone()),
        ("Disks", disks.join(", ")),
    ];
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    let sheet = rows.map(|(name, value)| PlatformRow { name: name.into(), value }).collect();
    Environment { sheet }
}

#[cfg(test)]
mod tests;
