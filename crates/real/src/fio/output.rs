//! fio's report in JSON: totals of each job.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use results::{Interval, Latencies};
use serde::Deserialize;

use lab::driver::LatencyParts;
use lab::{Error, Kind};

/// Name of the job in which fio's client adds up the results of several hosts.
const ALL_CLIENTS: &str = "All clients";

/// The report.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct FioOutput {
    /// The jobs in the order of their numbers, of a host each.
    #[serde(alias = "client_stats")]
    pub(super) jobs: Vec<JobTotals>,
}

/// Totals of one job after its ramp.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct JobTotals {
    /// Name of the job.
    #[serde(default)]
    pub(super) jobname: String,
    /// The host that carried it out; empty for this machine.
    #[serde(default)]
    pub(super) hostname: String,
    /// Number of the error that ended it; 0 if none did.
    pub(super) error: i32,
    /// Reads.
    pub(super) read: DirectionTotals,
    /// Writes.
    pub(super) write: DirectionTotals,
    /// CPU time in user space, percent of the job's time.
    pub(super) usr_cpu: f64,
    /// CPU time in the kernel, percent of the job's time.
    pub(super) sys_cpu: f64,
    /// The job's time after the ramp, in milliseconds.
    #[serde(default)]
    pub(super) job_runtime: u64,
}

/// Totals of one direction.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct DirectionTotals {
    /// Bytes transferred.
    pub(super) io_bytes: u64,
    /// Requests completed.
    pub(super) total_ios: u64,
    /// Requests completed in each second.
    pub(super) iops: f64,
    /// Time from its first request to its last, in milliseconds.
    #[serde(default)]
    pub(super) runtime: f64,
    /// Latency from before the submission to the completion.
    pub(super) lat_ns: Latency,
    /// The part in which it was submitted.
    #[serde(default)]
    pub(super) slat_ns: Latency,
    /// The part from there to the completion.
    #[serde(default)]
    pub(super) clat_ns: Latency,
}

/// One kind of latency, in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Latency {
    /// Arithmetic mean.
    pub(super) mean: f64,
    /// Smallest.
    #[serde(default)]
    pub(super) min: u64,
    /// Largest.
    #[serde(default)]
    pub(super) max: u64,
    /// Requests by the middle of their bin; empty where fio was not asked for its percentiles.
    #[serde(default)]
    pub(super) bins: BTreeMap<u64, u64>,
}

impl Latency {
    /// All that it counted: bins 1.6 % wide, mean and extremes exact.
    fn latencies(&self) -> Latencies {
        let mut latencies = Latencies::default();
        for (middle_ns, count) in &self.bins {
            latencies.record_many((*middle_ns).clamp(self.min, self.max), *count);
        }
        if latencies.count() > 0 {
            latencies.widen(self.min, self.max);
            latencies.set_mean(self.mean);
        }
        latencies
    }
}

impl DirectionTotals {
    /// Mean transfer size in bytes; 0 where nothing was transferred.
    pub(super) fn mean_bytes(&self) -> f64 {
        if self.total_ios == 0 { 0.0 } else { self.io_bytes as f64 / self.total_ios as f64 }
    }

    /// Requests outstanding on average, by Little's law.
    fn outstanding(&self) -> f64 {
        self.iops * self.lat_ns.mean / 1e9
    }
}

/// Requests that `jobs` counted from the end of the ramp to the last completion, with total
/// latency; absent where the report lacks its histograms.
pub(super) fn counted(jobs: &[JobTotals]) -> Option<Interval> {
    let mut all = Interval::default();
    for job in jobs {
        for (of, latencies, bytes) in [
            (&job.read, &mut all.read, &mut all.read_bytes),
            (&job.write, &mut all.write, &mut all.write_bytes),
        ] {
            let counted = of.lat_ns.latencies();
            if counted.count() == 0 && of.total_ios > 0 {
                return None;
            }
            // A request on its way when the ramp ends is in the histogram and not in the requests.
            *bytes += rounded(counted.count() as f64 * of.mean_bytes());
            latencies.merge(&counted);
            all.span_s = all.span_s.max(of.runtime / 1e3);
        }
    }
    all.at_s = all.span_s;
    all.host_busy_ns = host_busy_ns(jobs);
    let is_any = all.read.count() + all.write.count() > 0;
    (is_any && all.span_s > 0.0).then_some(all)
}

/// Processor time that `jobs` took after the ramp, in user space and in the kernel, in nanoseconds;
/// absent where the report has not how long a job ran.
fn host_busy_ns(jobs: &[JobTotals]) -> Option<u64> {
    let of_job = |job: &JobTotals| {
        let share = (job.usr_cpu + job.sys_cpu) / 100.0;
        (job.job_runtime > 0).then_some(job.job_runtime as f64 * 1e6 * share)
    };
    jobs.iter().map(of_job).sum::<Option<f64>>().map(rounded)
}

/// The two parts of the latency of `jobs`; absent where the report does not tell them apart.
pub(super) fn parts(jobs: &[JobTotals]) -> Option<LatencyParts> {
    let mut parts = LatencyParts::default();
    for of in jobs.iter().flat_map(|job| [&job.read, &job.write]) {
        parts.submission.merge(&of.slat_ns.latencies());
        parts.completion.merge(&of.clat_ns.latencies());
    }
    (parts.submission.count() > 0 && parts.completion.count() > 0).then_some(parts)
}

impl JobTotals {
    /// Totals of jobs whose every transfer has `bytes`: of requests that are on their way when a
    /// ramp ends, fio counts the bytes and not the requests.
    pub(super) fn of_size(&self, bytes: u64) -> Self {
        let exact = |totals: &DirectionTotals| DirectionTotals {
            io_bytes: totals.total_ios * bytes,
            ..totals.clone()
        };
        Self { read: exact(&self.read), write: exact(&self.write), ..self.clone() }
    }
}

impl FioOutput {
    /// Reads the report at `path`.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let unreadable = || Error::new(Kind::Program, format!("reading {}", path.display()));
        let text = fs::read_to_string(path).map_err(|source| unreadable().source(source))?;
        let mut output = Self::parse(&text).map_err(|source| {
            unreadable().source(source).hint("fio did not finish its report: is the disk full?")
        })?;
        output.jobs.retain(|job| job.jobname != ALL_CLIENTS);
        match output.jobs.iter().find(|job| job.error != 0) {
            Some(job) => {
                let cause = std::io::Error::from_raw_os_error(job.error);
                let on = if job.hostname.is_empty() { "" } else { " on " };
                let text = format!("fio ended a job early{on}{}", job.hostname);
                Err(Error::new(Kind::Program, text).source(cause))
            }
            None => Ok(output),
        }
    }

    /// Reads a report that messages may precede.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let start = if text.starts_with('{') { 0 } else { text.find("\n{").unwrap_or(0) };
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Self>();
        values.next().unwrap_or_else(|| serde_json::from_str(""))
    }

    /// Requests outstanding on average over all jobs.
    pub(super) fn outstanding(&self) -> f64 {
        self.jobs.iter().map(|job| job.read.outstanding() + job.write.outstanding()).sum()
    }

    /// The jobs of `host`, in the order of their numbers; of this machine where it is empty.
    pub(super) fn of_host<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a JobTotals> {
        self.jobs.iter().filter(move |job| job.hostname == host)
    }

    /// Refuses a report in which some of the `jobs` that `host` was given are missing: what the
    /// others did is not what was asked for.
    pub(super) fn check_jobs(&self, host: &str, jobs: u16) -> Result<(), Error> {
        let reported = self.of_host(host).count();
        if reported >= usize::from(jobs) {
            return Ok(());
        }
        let of = if host.is_empty() { String::new() } else { format!(" of {host}") };
        let text = format!("fio's report has {reported} of the {jobs} jobs{of}");
        let remedy = if host.is_empty() {
            "something ended the others: see messages.txt beside the report, and dmesg"
        } else {
            "check that the host and its `fio --server` still run, then resume the run"
        };
        Err(Error::new(Kind::Program, text).hint(remedy))
    }

    /// Requests completed in each second by all jobs.
    pub(super) fn iops(&self) -> f64 {
        self.jobs.iter().map(|job| job.read.iops + job.write.iops).sum()
    }

    /// Requests that were not outstanding on average because a job was at work: while it prepares
    /// one or takes note of its answer, that one is not at the target. Total latency counts from
    /// before the submission, so that what the kernel takes is in it.
    pub(super) fn held_back(&self) -> f64 {
        self.jobs.iter().map(|job| (job.usr_cpu / 100.0).min(1.0)).sum()
    }

    /// CPU time of a job, percent of one core, on average over the jobs.
    pub(super) fn cpu_percent(&self) -> f64 {
        let sum: f64 = self.jobs.iter().map(|job| job.usr_cpu + job.sys_cpu).sum();
        sum / self.jobs.len().max(1) as f64
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes are finite")]
pub(super) fn rounded(bytes: f64) -> u64 {
    bytes.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = include_str!("tests/file-server/output.json");

    #[test]
    fn totals_of_a_recorded_report_are_read() {
        let output = FioOutput::parse(RECORDED).unwrap();
        assert_eq!(output.jobs.len(), 2);
        let read = &output.jobs[0].read;
        let outstanding = output.outstanding();
        assert!((7.8..=8.0).contains(&outstanding), "{outstanding} of T2Q4");
        assert_eq!((read.total_ios, read.io_bytes), (31_297, 350_258_176));
    }

    #[test]
    fn jobs_hold_back_what_they_are_at_work_on() {
        let held_back = FioOutput::parse(RECORDED).unwrap().held_back();
        assert!(
            (held_back - 0.040_778_43).abs() < 1e-9,
            "{held_back}: their shares of a processor, outside of the kernel"
        );
    }

    #[test]
    fn bytes_of_a_ramp_are_not_counted_where_the_size_is_known() {
        let job = FioOutput::parse(RECORDED).unwrap().jobs[0].of_size(4096);
        assert_eq!((job.read.total_ios, job.read.io_bytes), (31_297, 31_297 * 4096));
        assert!((job.read.mean_bytes() - 4096.0).abs() < f64::EPSILON);
    }

    #[test]
    fn all_that_a_report_counted_is_in_the_totals() {
        let output = FioOutput::parse(RECORDED).unwrap();
        let counted = counted(&output.jobs).unwrap();
        let read = counted.read.summary();
        assert_eq!(read.count, 31_299 + 29_615);
        assert_eq!(read.latency_ns_max, 28_328_375, "in the half second after the last interval");
        let mean = (31_299.0 * 197_770.751_11 + 29_615.0 * 208_915.800_608) / 60_914.0;
        assert!((read.latency_ns_avg / mean - 1.0).abs() < 1e-6, "{}", read.latency_ns_avg);
        assert!((counted.span_s - 2.504).abs() < 1e-9);
        let busy_ms = 2500.0 * 0.112 + 2503.0 * 0.103_475_83;
        let requests = counted.read.count() + counted.write.count();
        let told = results::Summary::of(&[counted]).host_processor_us.unwrap();
        assert!((told / (busy_ms * 1e3 / requests as f64) - 1.0).abs() < 1e-6, "{told}");
    }

    #[test]
    fn submission_and_completion_add_up_to_the_latency() {
        let output = FioOutput::parse(RECORDED).unwrap();
        let parts = parts(&output.jobs).unwrap();
        let counted = counted(&output.jobs).unwrap();
        let sum_ns = parts.submission.sum_ns() + parts.completion.sum_ns();
        let all_ns = counted.read.sum_ns() + counted.write.sum_ns();
        assert!((sum_ns as f64 / all_ns as f64 - 1.0).abs() < 1e-3, "{sum_ns} of {all_ns}");
    }

    #[test]
    fn a_report_without_histograms_has_no_totals_of_its_own() {
        let mut output = FioOutput::parse(RECORDED).unwrap();
        output.jobs[0].read.lat_ns.bins.clear();
        assert!(counted(&output.jobs).is_none());
    }

    #[test]
    fn a_report_without_a_job_of_a_host_is_refused() {
        let mut output = FioOutput::parse(RECORDED).unwrap();
        output.check_jobs("", 2).unwrap();
        output.jobs[1].hostname = "node-2".into();
        let error = output.check_jobs("node-2", 2).unwrap_err();
        assert_eq!(error.to_string(), "fio's report has 1 of the 2 jobs of node-2");
        assert!(output.check_jobs("node-3", 2).is_err());
    }

    #[test]
    fn messages_around_the_report_are_skipped() {
        let text = format!("fio: {{a message}}\n{RECORDED}\nbye");
        assert_eq!(FioOutput::parse(&text).unwrap().jobs.len(), 2);
    }

    #[test]
    fn half_a_report_is_an_error() {
        assert!(FioOutput::parse(&RECORDED[..RECORDED.len() / 2]).is_err());
        assert!(FioOutput::parse("").is_err());
        assert!(FioOutput::parse("killed").is_err());
    }
}
