//! Reports that fio wrote, `--output-format=json+` or `json`, as runs.
//!
//! Jobs of one name and one group are one measurement, on however many hosts, their figures added.
//! Of each job there are totals and, in `json+`, histograms; nothing over time. What fio calls
//! `clat` is the latency where the report has no bins of `lat`: without `lat_percentiles=1` fio
//! keeps none. What was outstanding is what the report counted, not what its options ask for; what
//! it does not tell is not filled in.

mod document;
mod load;
mod merged;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use chrono::{DateTime, SecondsFormat};
use results::{Environment, PlatformRow, StepKind, Target, TargetKind};

use self::document::{Document, Report, ReportedJob};
use self::load::Load;
use self::merged::MergedJob;
use crate::plan::{Pace, Plan, PlannedStep};
use crate::runner::Outcome;
use crate::wanted::TargetSetup;
use crate::{Error, Gaps, Kind, Rate};

/// A run to be, from a report.
#[derive(Debug)]
pub struct ImportedRun {
    /// Plan that would have issued the report's jobs.
    pub plan: Plan,
    /// Target of the jobs.
    pub wanted: TargetSetup,
    /// Results of the jobs.
    pub outcome: Outcome,
    /// Time at which the jobs began, see [`results::Run::started_at`]; absent where the report does
    /// not tell.
    pub begun: Option<String>,
}

/// Reads the report at `path`; `title` heads it in a review.
///
/// # Errors
/// Fails if it cannot be read, is no report of fio 3, tells of a job that failed, or counts what no
/// run holds: trims alone, or reads and writes as one.
pub fn import(path: &Path, title: Option<&str>) -> Result<ImportedRun, Error> {
    let shown = path.display().to_string();
    let bytes = fs::read(path)
        .map_err(|source| Error::new(Kind::Input, format!("reading {shown}")).source(source))?;
    let document = document::read(&bytes).map_err(|refusal| refusal.about(&shown))?;
    let report = &document.report;
    if let Some(job) = report.jobs.iter().find(|job| job.error != 0) {
        let cause = std::io::Error::from_raw_os_error(job.error);
        let text = format!("{shown}: job {} failed", job.jobname);
        return Err(Error::new(Kind::Input, text).source(cause));
    }
    imported(&document, &shown, title)
}

fn imported(document: &Document, shown: &str, title: Option<&str>) -> Result<ImportedRun, Error> {
    let report = &document.report;
    let hosts = hosts(&report.jobs);
    let mut records = Vec::new();
    let mut steps: Vec<PlannedStep> = Vec::new();
    for jobs in groups(&report.jobs) {
        let refused = |(text, hint): (String, &str)| {
            let text = format!("{shown}: job {}: {text}", jobs[0].jobname);
            Error::new(Kind::Input, text).hint(hint.to_owned())
        };
        let merged = MergedJob::of(&jobs).map_err(refused)?;
        let load = Load::of(&report.global, &jobs, &merged, hosts.len());
        let mut step = planned(&load, &jobs[0].jobname, merged.span_s());
        let same = steps.iter().filter(|other| other.id.starts_with(&step.id)).count();
        if same > 0 {
            step.id = format!("{}-{}", step.id, same + 1);
        }
        let is_beside = |job: &ReportedJob| {
            job.groupid == jobs[0].groupid && job.jobname != jobs[0].jobname && !job.is_sum()
        };
        let has_others = report.jobs.iter().any(is_beside);
        records.push((records.len(), merged.record(&step, &load, has_others)));
        steps.push(step);
    }
    let Some((_, first)) = records.first_mut() else {
        return Err(Error::new(Kind::Input, format!("{shown} contains no job")));
    };
    first.warnings.extend(document.warnings());
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
    let target = target(report, &hosts, title);
    let name = title.unwrap_or(&target.name).to_owned();
    let wanted = TargetSetup::of_real(name, String::new());
    let environment = environment(report, shown);
    let outcome = Outcome { target, environment, records, interrupted: false, spared: 0 };
    Ok(ImportedRun { plan, wanted, outcome, begun: begun(report) })
}

/// Time at which the jobs of `report` began: it was written when they ended.
fn begun(report: &Report) -> Option<String> {
    let jobs = || report.jobs.iter();
    let started_ms = jobs().filter_map(|job| job.job_start).min();
    let begun_ms = started_ms.or_else(|| {
        let written_ms = report.timestamp_ms.or_else(|| Some(report.timestamp? * 1000))?;
        let elapsed_ms = jobs().map(|job| job.elapsed * 1000).max().filter(|it| *it > 0);
        let lasted_ms = elapsed_ms.or_else(|| jobs().map(|job| job.job_runtime).max());
        written_ms.checked_sub(lasted_ms.unwrap_or_default())
    })?;
    let begun = DateTime::from_timestamp_millis(i64::try_from(begun_ms).ok()?)?;
    Some(begun.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// Jobs that are one measurement: of one name and one group, on all hosts.
fn groups(jobs: &[ReportedJob]) -> Vec<Vec<&ReportedJob>> {
    let mut groups: Vec<Vec<&ReportedJob>> = Vec::new();
    for job in jobs.iter().filter(|job| !job.is_sum()) {
        let same = |group: &&mut Vec<&ReportedJob>| {
            (group[0].groupid, &group[0].jobname) == (job.groupid, &job.jobname)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(job),
            None => groups.push(vec![job]),
        }
    }
    groups
}

/// The hosts that carried jobs out; empty where that was the machine of the report.
fn hosts(jobs: &[ReportedJob]) -> BTreeSet<(&str, u32)> {
    let named = jobs.iter().filter(|job| !job.is_sum() && !job.hostname.is_empty());
    named.map(|job| (job.hostname.as_str(), job.port)).collect()
}

fn planned(load: &Load, name: &str, span_s: f64) -> PlannedStep {
    let Load { workload, threads, queue_per_thread, rate_iops, .. } = load;
    let known = workload.as_ref().map(|workload| workload.name.clone());
    let suite = known.clone().unwrap_or_else(|| crate::wanted::words(name));
    let blank = crate::plan::blank(&suite, name);
    let named = known.unwrap_or_else(|| "unknown-load".into());
    PlannedStep {
        id: format!("{suite}/{named}/T{threads}Q{queue_per_thread}"),
        kind: StepKind::Measure,
        workload: workload.clone(),
        threads: *threads,
        queue_per_thread: *queue_per_thread,
        duration_s: span_s,
        interval_s: span_s,
        pace: rate_iops.map(|iops| Pace::Fixed(Rate { iops, gaps: Gaps::Exponential })),
        ..blank
    }
}

/// Target that the report names. Its capacity is not in a report.
fn target(report: &Report, hosts: &BTreeSet<(&str, u32)>, title: Option<&str>) -> Target {
    let name = report.option("filename").or_else(|| report.option("uri"));
    let name = name.or_else(|| report.option("directory"));
    let name = name.unwrap_or("fio").to_owned();
    let kind = match () {
        () if !hosts.is_empty() => TargetKind::Remote,
        () if report.option("uri").is_some() => TargetKind::Nbd,
        () if name.starts_with("/dev/") => TargetKind::BlockDevice,
        () => TargetKind::File,
    };
    let devices = u32::try_from(hosts.len().max(1)).unwrap_or(u32::MAX);
    let title = title.unwrap_or(&name).to_owned();
    Target { title, name, devices, ..Target::of_kind(kind) }
}

fn environment(report: &Report, shown: &str) -> Environment {
    let disks: Vec<&str> = report.disk_util.iter().map(|disk| disk.name.as_str()).collect();
    let rows = [
        ("Imported from", shown.to_owned()),
        ("Load generator", report.version.clone()),
        ("Engine", report.option("ioengine").unwrap_or_default().to_owned()),
        ("Measured at", report.time.clone()),
        ("Disks", disks.join(", ")),
    ];
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    let sheet = rows.map(|(name, value)| PlatformRow { name: name.into(), value }).collect();
    Environment { sheet, imported_from: Some(report.version.clone()) }
}

#[cfg(test)]
mod tests;
