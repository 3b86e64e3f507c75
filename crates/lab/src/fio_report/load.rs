//! Load of a job of a report: what its options ask for, and what its figures say of that.
//!
//! Options may be missing, and may ask for what the engine does not do. The report counts how many
//! requests were outstanding when each was submitted (`iodepth_level`); by Little's law its rate
//! and total latency say how many there were on average.

use std::collections::BTreeMap;

use results::{Warning, WarningKind};
use workload::Workload;
use workload::fio::reported;

use super::document::ReportedJob;
use super::merged::MergedJob;

/// Share of the requests asked for that may be missing on average: fio submits and completes some
/// in batches.
const SHORT_MAX: f64 = 0.1;

/// Load of jobs that are one measurement.
#[derive(Debug)]
pub(super) struct Load {
    /// Workload of the requests; absent where the report does not tell it.
    pub(super) workload: Option<Workload>,
    /// Jobs on each host.
    pub(super) threads: u16,
    /// Requests that each job kept outstanding.
    pub(super) queue_per_thread: u16,
    /// Requests that were to come in each second; absent where nothing held the jobs back.
    pub(super) rate_iops: Option<f64>,
    /// Hosts that carry it out at the same time.
    pub(super) hosts: u32,
    /// Warnings about it: kind, text and remedy.
    notes: Vec<(WarningKind, String, &'static str)>,
}

impl Load {
    /// The load of `jobs`, whose figures are `merged`, on `hosts` hosts or this machine.
    pub(super) fn of(
        global: &BTreeMap<String, String>,
        jobs: &[&ReportedJob],
        merged: &MergedJob,
        hosts: usize,
    ) -> Self {
        let own = jobs[0].options.as_ref();
        let options = || global.iter().chain(own.into_iter().flatten());
        let asked = reported(
            &jobs[0].jobname,
            options().map(|(key, value)| (key.as_str(), value.as_str())),
        );
        let is_told = own.is_some();
        let hosts = u32::try_from(hosts.max(1)).unwrap_or(u32::MAX);
        // Without group_reporting each job is reported by itself.
        let reported_jobs = u32::try_from(jobs.len()).unwrap_or(u32::MAX).div_ceil(hosts);
        let threads = u32::from(asked.threads).max(reported_jobs);
        let threads = u16::try_from(threads).unwrap_or(u16::MAX);
        let mut load = Self {
            workload: asked.workload.filter(|_| is_told),
            threads,
            queue_per_thread: asked.queue_per_thread,
            rate_iops: asked.rate_iops.filter(|_| is_told).map(|iops| iops * f64::from(hosts)),
            hosts,
            notes: Vec::new(),
        };
        if !is_told {
            load.note(
                WarningKind::Environment,
                "the report does not tell the options of the job: its addresses, jobs and data \
                 are unknown",
                "let fio report in json+ without --client, or import the report of each host",
            );
        }
        if !asked.unsaid.is_empty() {
            let text = format!(
                "the job has options that no workload says ({}): its load is unknown here",
                asked.unsaid.join(", ")
            );
            load.note(WarningKind::Environment, text, "compare it with runs of the same job only");
        }
        if load.workload.as_ref().is_some_and(|it| it.range.is_some()) {
            load.note(
                WarningKind::Environment,
                "the job addressed a part of its device (size, offset), and the report does not \
                 tell how large that is",
                "compare it with runs of the same job only",
            );
        }
        if is_told && asked.is_cached {
            load.note(
                WarningKind::PageCache,
                "the job lacks direct=1: its figures are those of the page cache in part",
                "run fio with --direct=1",
            );
        }
        load.measure_depth(jobs, merged, is_told);
        load
    }

    fn note(&mut self, kind: WarningKind, text: impl Into<String>, remedy: &'static str) {
        self.notes.push((kind, text.into(), remedy));
    }

    /// Takes the queue depth that the report counted, where that differs from the one asked for.
    fn measure_depth(&mut self, jobs: &[&ReportedJob], merged: &MergedJob, is_told: bool) {
        let Some((low, high)) = counted_depth(jobs) else { return };
        let asked = self.queue_per_thread;
        let all_jobs = f64::from(self.threads) * f64::from(self.hosts);
        let found = merged.outstanding().map(|outstanding| outstanding / all_jobs);
        let is_held_back = self.rate_iops.is_some();
        let fits = (low..=high).contains(&asked) || (asked > high && is_held_back);
        if is_told && fits {
            let short = found
                .filter(|found| *found < f64::from(asked) * (1.0 - SHORT_MAX) && !is_held_back);
            if let Some(found) = short {
                let text = format!(
                    "{found:.1} requests were outstanding in each job on average, not {asked}"
                );
                let remedy = "give fio more jobs, or a longer runtime";
                self.note(WarningKind::QueueNotFilled, text, remedy);
            }
            return;
        }
        self.queue_per_thread = nearest_depth(found.unwrap_or_default(), (low, high));
        if is_told {
            let text = format!(
                "the job asks for a queue depth of {asked}, but fio counted {}: the depth is \
                 taken from its figures",
                spelt(low, high)
            );
            self.note(
                WarningKind::QueueNotFilled,
                text,
                "use an engine such as io_uring or libaio",
            );
        }
    }

    /// Warnings about it in the step `step`.
    pub(super) fn warnings(&self, step: &str) -> Vec<Warning> {
        let warning = |(kind, text, remedy): &(WarningKind, String, &str)| Warning {
            kind: *kind,
            step: step.to_owned(),
            text: text.clone(),
            remedy: (*remedy).to_owned(),
        };
        self.notes.iter().map(warning).collect()
    }
}

/// Requests outstanding when the deepest request was submitted, from and to; absent where the
/// report did not count them.
fn counted_depth(jobs: &[&ReportedJob]) -> Option<(u16, u16)> {
    let levels = jobs.iter().flat_map(|job| &job.iodepth_level);
    let counted = levels.filter(|(_, percent)| **percent > 0.0);
    let lows = counted.filter_map(|(level, _)| level.trim_start_matches(">=").parse::<u16>().ok());
    let low = lows.max()?;
    Some((low, if low >= 64 { u16::MAX } else { 2 * low - 1 }))
}

/// Whole number of requests from `low` to `high` that is nearest to `found`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between the ends")]
fn nearest_depth(found: f64, (low, high): (u16, u16)) -> u16 {
    found.round().clamp(f64::from(low), f64::from(high)) as u16
}

fn spelt(low: u16, high: u16) -> String {
    match (low, high) {
        (1, _) => "1 request outstanding".into(),
        (low, u16::MAX) => format!("{low} or more requests outstanding"),
        (low, high) => format!("at most {low} to {high} requests outstanding"),
    }
}
