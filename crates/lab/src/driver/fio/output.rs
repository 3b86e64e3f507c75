//! fio's report in JSON: totals of each job.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::{Error, Kind};

/// Under which fio's client adds up what several hosts did.
const ALL_CLIENTS: &str = "All clients";

/// The report.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Output {
    /// The jobs in the order of their numbers, of a host each.
    #[serde(alias = "client_stats")]
    pub(super) jobs: Vec<Job>,
}

/// Totals of one job after its ramp.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Job {
    /// Name of the job.
    #[serde(default)]
    pub(super) jobname: String,
    /// The host that carried it out; empty for this machine.
    #[serde(default)]
    pub(super) hostname: String,
    /// Number of the error that ended it; 0 if none did.
    pub(super) error: i32,
    /// Reads.
    pub(super) read: Totals,
    /// Writes.
    pub(super) write: Totals,
    /// CPU time in user space, percent of the job's time.
    pub(super) usr_cpu: f64,
    /// CPU time in the kernel, percent of the job's time.
    pub(super) sys_cpu: f64,
}

/// Totals of one direction.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Totals {
    /// Bytes transferred.
    pub(super) io_bytes: u64,
    /// Requests completed.
    pub(super) total_ios: u64,
    /// Requests completed in each second.
    pub(super) iops: f64,
    /// Latency from before the submission to the completion.
    pub(super) lat_ns: Latency,
}

/// One kind of latency.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Latency {
    /// Arithmetic mean, in nanoseconds.
    pub(super) mean: f64,
}

impl Totals {
    /// Mean transfer size in bytes; 0 where nothing was transferred.
    pub(super) fn mean_bytes(&self) -> f64 {
        if self.total_ios == 0 { 0.0 } else { self.io_bytes as f64 / self.total_ios as f64 }
    }

    /// Requests outstanding on average, by Little's law.
    fn outstanding(&self) -> f64 {
        self.iops * self.lat_ns.mean / 1e9
    }
}

impl Job {
    /// The same where every transfer has `bytes`: of requests that are on their way when a ramp
    /// ends, fio counts the bytes and not the requests.
    pub(super) fn of_size(&self, bytes: u64) -> Self {
        let exact =
            |totals: &Totals| Totals { io_bytes: totals.total_ios * bytes, ..totals.clone() };
        Self { read: exact(&self.read), write: exact(&self.write), ..self.clone() }
    }
}

impl Output {
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
    fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let start = if text.starts_with('{') { 0 } else { text.find("\n{").unwrap_or(0) };
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Self>();
        values.next().unwrap_or_else(|| serde_json::from_str(""))
    }

    /// Requests outstanding on average over all jobs.
    pub(super) fn outstanding(&self) -> f64 {
        self.jobs.iter().map(|job| job.read.outstanding() + job.write.outstanding()).sum()
    }

    /// The jobs of `host`, in the order of their numbers; of this machine where it is empty.
    pub(super) fn of_host<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Job> {
        self.jobs.iter().filter(move |job| job.hostname == host)
    }

    /// Requests completed in each second by all jobs.
    pub(super) fn iops(&self) -> f64 {
        self.jobs.iter().map(|job| job.read.iops + job.write.iops).sum()
    }

    /// Requests that were not outstanding on average because a job was at work: while it prepares
    /// one or takes note of its answer, that one is not at the target.
    pub(super) fn held_back(&self) -> f64 {
        self.jobs.iter().map(|job| ((job.usr_cpu + job.sys_cpu) / 100.0).min(1.0)).sum()
    }

    /// CPU time of a job, percent of one core, on average over the jobs.
    pub(super) fn cpu_percent(&self) -> f64 {
        let sum: f64 = self.jobs.iter().map(|job| job.usr_cpu + job.sys_cpu).sum();
        sum / self.jobs.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = include_str!("tests/file-server/output.json");

    #[test]
    fn totals_of_a_recorded_report_are_read() {
        let output = Output::parse(RECORDED).unwrap();
        assert_eq!(output.jobs.len(), 2);
        let read = &output.jobs[0].read;
        let outstanding = output.outstanding();
        assert!((7.8..=8.0).contains(&outstanding), "{outstanding} of T2Q4");
        assert_eq!((read.total_ios, read.io_bytes), (41_181, 478_518_784));
    }

    #[test]
    fn jobs_hold_back_what_they_are_at_work_on() {
        let held_back = Output::parse(RECORDED).unwrap().held_back();
        assert!((held_back - 0.3528).abs() < 1e-9, "{held_back}: their shares of a processor");
    }

    #[test]
    fn bytes_of_a_ramp_are_not_counted_where_the_size_is_known() {
        let job = Output::parse(RECORDED).unwrap().jobs[0].of_size(4096);
        assert_eq!((job.read.total_ios, job.read.io_bytes), (41_181, 41_181 * 4096));
        assert!((job.read.mean_bytes() - 4096.0).abs() < f64::EPSILON);
    }

    #[test]
    fn messages_around_the_report_are_skipped() {
        let text = format!("fio: {{a message}}\n{RECORDED}\nbye");
        assert_eq!(Output::parse(&text).unwrap().jobs.len(), 2);
    }

    #[test]
    fn half_a_report_is_an_error() {
        assert!(Output::parse(&RECORDED[..RECORDED.len() / 2]).is_err());
        assert!(Output::parse("").is_err());
        assert!(Output::parse("killed").is_err());
    }
}
