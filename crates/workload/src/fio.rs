//! Job files of fio, as far as protocols can say the same.
//!
//! ```text
//! [global]  ─► options of every job after it
//! [job]     ─► one workload, and one measurement of it: threads, queue, length, rate
//! file      ─► a protocol with one suite: purge, then the jobs in their order
//! ```
//!
//! Each option is carried out, or noted as without effect on what a drive is asked, or refused with
//! its line; what comes out differently from fio all the same is in [`ImportedProtocol::notes`]. A
//! first job that writes everything in order and has no runtime is the fill of the suite.
//!
//! Invariant: what is returned passes the checks of those who read it from a file.
//!
//! Source: fio's HOWTO, version 3.42, and `strip_blank_end` in its `parse.c` for comments.

mod engine;
mod job;
mod option;
mod value;

use std::path::Path;

use self::job::{FioJob, faulty};
use crate::{Measure, Protocol, SpecError, Suite, Workload, catalogue};

/// Seconds that a job without a runtime is measured, which fio ends after a pass over its size.
const RUNTIME_DEFAULT_S: u64 = 60;
/// Length of one sample, in seconds.
const INTERVAL_S: u64 = 1;
/// Passes of a fill at most.
const FILL_PASSES_MAX: u32 = 4;

/// Protocol that a fio job file was converted to.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedProtocol {
    /// The jobs, with their workloads.
    pub protocol: Protocol,
    /// Differences from what fio would do, a sentence each.
    pub notes: Vec<String>,
}

/// One `key=value`.
#[derive(Clone, Debug)]
struct Setting {
    key: String,
    value: String,
    line: u32,
}

/// One `[section]`, with what applies to it.
#[derive(Clone, Debug)]
struct Section {
    name: String,
    line: u32,
    settings: Vec<Setting>,
}

/// Line number, and the reason why that line is refused.
type Refusal = (u32, String);

/// Reads a job file; `file` names it in errors, and its stem names what it becomes.
///
/// # Errors
/// Says file, line, and what is not supported.
pub fn import(text: &str, file: &str) -> Result<ImportedProtocol, SpecError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    imported(text, file).map_err(|(line, text)| SpecError {
        file: file.to_owned(),
        line,
        column: 0,
        text,
    })
}

/// Load of a job of fio's report.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedLoad {
    /// Workload of its requests, with the name of a built-in one where it is that; absent where its
    /// options are not reported, or ask for what a workload cannot say.
    pub workload: Option<Workload>,
    /// Options that a workload cannot say, such as `fsync`.
    pub unsaid: Vec<String>,
    /// Jobs.
    pub threads: u16,
    /// Requests that each job was to keep outstanding: 1 of synchronous engines.
    pub queue_per_thread: u16,
    /// Requests that were to come in each second; absent where nothing held the jobs back.
    pub rate_iops: Option<f64>,
    /// True if requests went through the page cache of the host.
    pub is_cached: bool,
}

/// Options that say how long a job lasts and what happens around it, and nothing of its requests.
const AROUND: [&str; 11] = [
    "io_size",
    "number_ios",
    "filesize",
    "exec_prerun",
    "exec_postrun",
    "startdelay",
    "steadystate",
    "fill_device",
    "max_latency",
    "rate_min",
    "rate_iops_min",
];

/// Load that the options of the job `name` ask for, applied in their order: the later ones win.
pub fn reported<'a>(name: &str, options: impl Iterator<Item = (&'a str, &'a str)>) -> ReportedLoad {
    let mut job = FioJob::default();
    let mut unsaid = Vec::new();
    for (key, value) in options.filter(|(key, _)| !AROUND.contains(key)) {
        if job.take(key, value).is_err() {
            unsaid.push(key.to_owned());
        }
    }
    let is_cached = job.is_cached();
    unsaid.extend(job.bypassing_cache().check().err().map(|(key, _)| key.to_owned()));
    let own = job.on_its_target().workload(&slug(name, "job"), "fio's report");
    let measure = job.measure(&own.name);
    let is_sayable = unsaid.is_empty() && own.check().is_ok();
    ReportedLoad {
        workload: is_sayable.then(|| recognised(own)),
        unsaid,
        threads: measure.threads[0].max(1),
        queue_per_thread: measure.queue_per_thread[0].max(1),
        rate_iops: measure.rate_iops,
        is_cached,
    }
}

/// `own`, with what a built-in workload is called where its requests are the same.
fn recognised(own: Workload) -> Workload {
    let is_it = |known: &Workload| {
        known.read_percent.total_cmp(&own.read_percent).is_eq()
            && (known.access, &known.sizes) == (own.access, &own.sizes)
            && known.alignment_bytes() == own.alignment_bytes()
            && known.footprint_percent.total_cmp(&own.footprint_percent).is_eq()
            && (known.offset_percent, known.range) == (own.offset_percent, own.range)
            && known.compressible_percent.total_cmp(&own.compressible_percent).is_eq()
    };
    let (random_map, shared_start) = (own.random_map, own.shared_start);
    let found = catalogue::workloads().into_iter().find(is_it).unwrap_or(own);
    Workload { random_map, shared_start, ..found }
}

/// One job of a file.
struct Job {
    section: Section,
    workload: Workload,
    measure: Measure,
    /// Passes over the target, where it is one that only fills it.
    fill_passes: Option<u32>,
}

fn imported(text: &str, file: &str) -> Result<ImportedProtocol, Refusal> {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let protocols = catalogue::protocols();
    let name = free(&slug(&stem, "job"), "fio-", |name| protocols.iter().any(|it| it.name == name));
    let sections = sections(text)?;
    if sections.is_empty() {
        return Err((0, "there is no job in it: a job begins with [its name]".into()));
    }
    let mut notes = Vec::new();
    let mut jobs: Vec<Job> = Vec::new();
    for section in sections {
        let job = FioJob::read(&section, &mut notes)?;
        if let Some(before) = jobs.last()
            && !(job.waits || job.waits_for.as_ref() == Some(&before.section.name))
        {
            return Err((section.line, at_the_same_time(&before.section, &section)));
        }
        let workload = job.workload(&own_name(&section, &name, &jobs), file);
        let measure = job.measure(&workload.name);
        let checked = workload.check().and_then(|()| measure.check());
        checked.map_err(|fault| faulty(&section, &fault))?;
        jobs.push(Job { section, workload, measure, fill_passes: job.fill_passes() });
    }
    let fill = take_fill(&mut jobs, &mut notes);
    let filled = match &fill {
        Some(_) => "filled as that job says",
        None => "filled once in order where a job reads",
    };
    notes.push(format!(
        "the target is purged before the first job, then {filled}, and not preconditioned: add a \
         [suites.precondition] to measure steady state"
    ));
    notes.dedup();
    let protocol = protocol(name, &stem, (fill, jobs));
    let checked = protocol.check_values();
    checked.map_err(|fault| (0, format!("{}: {}", fault.place, fault.text)))?;
    Ok(ImportedProtocol { protocol, notes })
}

fn at_the_same_time(one: &Section, other: &Section) -> String {
    let (one, other) = (&one.name, &other.name);
    format!(
        "[{one}] and [{other}] run at the same time, and a protocol has one load at a time: add \
         `stonewall` to [{other}], or import each from its own file"
    )
}

/// Takes the job that fills the target from the front of `jobs`, where others follow.
fn take_fill(jobs: &mut Vec<Job>, notes: &mut Vec<String>) -> Option<Job> {
    let passes = jobs.first()?.fill_passes;
    let is_fill = jobs.len() > 1 && passes.is_some_and(|passes| passes <= FILL_PASSES_MAX);
    let fill = is_fill.then(|| jobs.remove(0));
    if let Some(Job { section, .. }) = &fill {
        notes.push(format!(
            "[{}] has no runtime and writes all of the target: it fills it and is not measured",
            section.name
        ));
    }
    for job in jobs.iter().filter(|job| job.fill_passes.is_some()) {
        notes.push(format!(
            "[{}] has no runtime: fio ends it once all is written, here it is measured for \
             {RUNTIME_DEFAULT_S} s",
            job.section.name
        ));
    }
    fill
}

fn protocol(name: String, title: &str, (fill, jobs): (Option<Job>, Vec<Job>)) -> Protocol {
    let fill_passes = fill.as_ref().and_then(|fill| fill.fill_passes).unwrap_or(1);
    // One job fills, whatever their number.
    let fill = fill.map(|fill| Workload { shared_start: false, ..fill.workload });
    let suite = Suite {
        name: name.clone(),
        title: title.to_owned(),
        compressible_percent: None,
        footprint_percent: None,
        fill: fill.as_ref().map(|fill| fill.name.clone()),
        fill_passes,
        fill_random_passes: 0,
        rounds: None,
        precondition: None,
        curve: None,
        application: None,
        nodes: None,
        measure: jobs.iter().map(|job| job.measure.clone()).collect(),
    };
    Protocol {
        schema: Protocol::SCHEMA,
        title: title.to_owned(),
        description: format!("The jobs of {title}, a job file of fio, one after the other."),
        source: format!("imported from {title}, a job file of fio"),
        published: None,
        time_lapse_max: None,
        start_purged: false,
        workloads: fill.into_iter().chain(jobs.into_iter().map(|job| job.workload)).collect(),
        suites: vec![suite],
        name,
    }
}

/// The name of the workload of `section`: like no other, and like none that is built in.
fn own_name(section: &Section, protocol: &str, earlier: &[Job]) -> String {
    let known = catalogue::workloads();
    let earlier = || earlier.iter().map(|job| &job.workload);
    let taken = |name: &str| known.iter().chain(earlier()).any(|it| it.name == name);
    let name = free(&slug(&section.name, "job"), &format!("{protocol}-"), taken);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !taken(name)).expect("some number is free")
}

/// `name`, or with `prefix` before it where it is taken.
pub(crate) fn free(name: &str, prefix: &str, taken: impl Fn(&str) -> bool) -> String {
    if taken(name) { format!("{prefix}{name}") } else { name.to_owned() }
}

/// Letters and digits of `text` in lower case, everything else one hyphen; `other` where none is
/// left.
pub(crate) fn slug(text: &str, other: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    if slug.is_empty() { other.to_owned() } else { slug }
}

/// The jobs of a file, each with the settings of the `[global]` sections before it.
fn sections(text: &str) -> Result<Vec<Section>, Refusal> {
    let (mut global, mut jobs): (Vec<Setting>, Vec<Section>) = (Vec::new(), Vec::new());
    let mut is_global = false;
    for (written, line) in text.lines().zip(1_u32..) {
        let written = written.split([';', '#']).next().unwrap_or_default().trim();
        if written.is_empty() {
            continue;
        }
        if let Some(name) = written.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default().trim();
            is_global = name.eq_ignore_ascii_case("global");
            if !is_global {
                jobs.push(Section { name: name.to_owned(), line, settings: global.clone() });
            }
            continue;
        }
        if written.starts_with("include ") || written.contains("${") {
            let text = format!("`{written}`: other files and variables are not read; write it out");
            return Err((line, text));
        }
        let (key, value) = written.split_once('=').unwrap_or((written, ""));
        let (key, value) = (key.trim().to_lowercase(), value.trim().to_owned());
        let setting = Setting { key, value, line };
        match jobs.last_mut() {
            _ if is_global => global.push(setting),
            Some(job) => job.settings.push(setting),
            None => return Err((line, format!("`{written}` stands before any [job]"))),
        }
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests;
