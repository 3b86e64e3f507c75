//! Figures of the jobs of a measurement as one.

use results::steady::WriteRequirement;
use results::{Bin, Latencies, LatencySummary, Summary, Warning, WarningKind};

use super::document::{ReportedDirection, ReportedJob, Spread};
use super::load::Load;
use crate::LoadResult;
use crate::plan::PlannedStep;
use crate::runner::Record;

/// Jobs as one.
#[derive(Debug)]
pub(super) struct MergedJob {
    span_s: f64,
    read: Totals,
    write: Totals,
    /// Trims and their rate, which are in no other figure.
    trims: (u64, f64),
    /// Processor time of the jobs, in microseconds; 0 where the report does not tell.
    busy_us: f64,
    has_bins: bool,
    is_clat: bool,
    is_measured: bool,
}

/// Reads or writes of several jobs.
#[derive(Debug, Default)]
struct Totals {
    requests: u64,
    bytes: u64,
    iops: f64,
    latency: LatencySummary,
    latencies: Latencies,
    bins: Vec<Bin>,
    /// Requests outstanding on average, by Little's law of the total latency.
    outstanding: f64,
}

/// Reason why jobs are refused, and a remedy.
type JobRefusal = (String, &'static str);

impl MergedJob {
    /// The figures of `jobs`.
    ///
    /// # Errors
    /// Fails where they count reads and writes as one, or trims alone.
    pub(super) fn of(jobs: &[&ReportedJob]) -> Result<Self, JobRefusal> {
        if jobs.iter().any(|job| job.read.is_none() || job.write.is_none()) {
            let text = "it counts reads and writes as one (unified_rw_reporting)";
            return Err((text.into(), "run fio without it, or with unified_rw_reporting=both"));
        }
        let of = |pick: fn(&ReportedJob) -> Option<&ReportedDirection>| {
            jobs.iter().filter_map(move |job| pick(job))
        };
        let (reads, writes) = (|| of(|job| job.read.as_ref()), || of(|job| job.write.as_ref()));
        let trims = || of(|job| job.trim.as_ref());
        let trimmed: u64 = trims().map(|it| it.total_ios).sum();
        let mut active = reads().chain(writes()).filter(|it| it.total_ios > 0).peekable();
        if trimmed > 0 && active.peek().is_none() {
            let text = format!("it made {trimmed} trims, and no reads or writes");
            return Err((text, "only reads and writes have figures in a run"));
        }
        let active: Vec<_> = active.collect();
        let span_ms = reads().chain(writes()).map(|it| it.runtime).max().unwrap_or(0);
        let busy_us =
            |job: &&ReportedJob| (job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime as f64 * 1e3;
        let has_none = |it: &Spread| it.bins.is_empty() && it.percentile.is_empty();
        Ok(Self {
            span_s: span_ms as f64 / 1e3,
            busy_us: jobs.iter().map(busy_us).sum(),
            read: Totals::of(reads()),
            write: Totals::of(writes()),
            trims: (trimmed, trims().map(|it| it.iops).sum()),
            has_bins: active.iter().all(|it| !it.latency().bins.is_empty()),
            is_clat: active.iter().any(|it| has_none(&it.lat_ns) && it.clat_ns.is_measured()),
            is_measured: active.iter().all(|it| it.latency().is_measured()),
        })
    }

    /// Length of the measurement, in seconds.
    pub(super) const fn span_s(&self) -> f64 {
        self.span_s
    }

    /// Requests outstanding on average; absent where total latency was not measured.
    pub(super) fn outstanding(&self) -> Option<f64> {
        let outstanding = self.read.outstanding + self.write.outstanding;
        (outstanding > 0.0).then_some(outstanding)
    }

    /// The record of `step`, whose load is `load`.
    pub(super) fn record(self, step: &PlannedStep, load: &Load, has_others: bool) -> Record {
        let mut warnings = self.warnings(&step.id, has_others);
        warnings.extend(load.warnings(&step.id));
        let how = format!("imported from fio's report, job {}", step.suite_title);
        let loaded = LoadResult { how, warnings, ..LoadResult::default() };
        let required = WriteRequirement {
            before_bytes: 0.0,
            addressed_bytes: 0.0,
            user_bytes: 0.0,
            raw_bytes: None,
            time_lapse: 1.0,
        };
        let mut record = Record::of_load(step, load.hosts, &required, load.rate_iops, loaded);
        // The report tells neither the capacity nor what was written before.
        record.step.written = None;
        record.step.duration_s = self.span_s;
        record.step.summary = (self.span_s > 0.0).then(|| self.summary());
        record.step.read_bins = self.read.bins;
        record.step.write_bins = self.write.bins;
        record
    }

    /// Figures of all jobs, whose time is above 0.
    fn summary(&self) -> Summary {
        let Self { span_s, read, write, .. } = self;
        let mb_s = |bytes: u64| bytes as f64 / span_s / 1e6;
        let mut latency = pooled(&read.latency, &write.latency);
        if self.has_bins {
            let mut both = read.latencies.clone();
            both.merge(&write.latencies);
            latency = with_percentiles(latency, &both.summary());
        }
        let requests = read.requests + write.requests;
        Summary {
            span_s: *span_s,
            iops: read.iops + write.iops,
            iops_read: read.iops,
            iops_write: write.iops,
            throughput_read_mb_s: mb_s(read.bytes),
            throughput_write_mb_s: mb_s(write.bytes),
            outstanding_avg: self.outstanding().unwrap_or_default(),
            latency,
            read: read.latency,
            write: write.latency,
            host_processor_us: (self.busy_us > 0.0 && requests > 0)
                .then(|| self.busy_us / requests as f64),
            ..Summary::default()
        }
    }

    fn warnings(&self, step: &str, has_others: bool) -> Vec<Warning> {
        let mut texts: Vec<(String, &str)> = Vec::new();
        if self.span_s <= 0.0 {
            let text = "the report states a runtime of 0: no rate was measured";
            texts.push((text.into(), "run fio for longer than a millisecond"));
        }
        if !self.is_measured {
            texts.push((
                "fio did not measure latency (gtod_reduce, disable_lat)".into(),
                "run fio without these options",
            ));
        }
        if self.is_clat {
            texts.push((
                "latency is fio's clat, which excludes the time of submission".into(),
                "run fio with --lat_percentiles=1 and --output-format=json+",
            ));
        }
        if self.is_measured && !self.has_bins {
            texts.push((
                "the report has no histograms: percentiles are those that fio printed, where it \
                 did; for several jobs, and for reads and writes together, the highest of them"
                    .into(),
                "run fio with --output-format=json+",
            ));
        }
        let (trims, rate) = self.trims;
        if trims > 0 {
            texts.push((
                format!("{trims} trims, {rate:.0} a second, ran beside: they are in no figure"),
                "measure reads and writes without trims",
            ));
        }
        if has_others {
            texts.push((
                "other jobs ran at the same time: these figures are a part of the drive's load"
                    .into(),
                "separate the jobs with `stonewall`",
            ));
        }
        let warning = |(text, remedy): (String, &str)| Warning {
            kind: WarningKind::Environment,
            step: step.to_owned(),
            text,
            remedy: remedy.to_owned(),
        };
        texts.into_iter().map(warning).collect()
    }
}

impl Totals {
    fn of<'a>(directions: impl Iterator<Item = &'a ReportedDirection>) -> Self {
        let mut totals = Self::default();
        for direction in directions.filter(|it| it.total_ios > 0) {
            let spread = direction.latency();
            totals.requests += direction.total_ios;
            totals.bytes += direction.io_bytes;
            totals.iops += direction.iops;
            totals.outstanding += direction.iops * direction.lat_ns.mean / 1e9;
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

/// Mean, deviation and range of two sets of requests together; percentiles are the higher ones,
/// where both have them.
fn pooled(a: &LatencySummary, b: &LatencySummary) -> LatencySummary {
    if a.count == 0 || b.count == 0 {
        return if a.count == 0 { *b } else { *a };
    }
    let (of_a, of_b) = (a.count as f64, b.count as f64);
    let mean = (a.latency_ns_avg * of_a + b.latency_ns_avg * of_b) / (of_a + of_b);
    let higher = |a: Option<u64>, b: Option<u64>| Some(a?.max(b?));
    let spread =
        |it: &LatencySummary| it.latency_ns_stdev.powi(2) + (it.latency_ns_avg - mean).powi(2);
    LatencySummary {
        count: a.count + b.count,
        latency_ns_avg: mean,
        latency_ns_stdev: ((spread(a) * of_a + spread(b) * of_b) / (of_a + of_b)).sqrt(),
        latency_ns_min: a.latency_ns_min.min(b.latency_ns_min),
        latency_ns_max: a.latency_ns_max.max(b.latency_ns_max),
        latency_ns_p50: higher(a.latency_ns_p50, b.latency_ns_p50),
        latency_ns_p90: higher(a.latency_ns_p90, b.latency_ns_p90),
        latency_ns_p99: higher(a.latency_ns_p99, b.latency_ns_p99),
        latency_ns_p999: higher(a.latency_ns_p999, b.latency_ns_p999),
        latency_ns_p9999: higher(a.latency_ns_p9999, b.latency_ns_p9999),
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
