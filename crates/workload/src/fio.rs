//! Job files of fio, as far as protocols can say the same.
//!
//! ```text
//! [global]  ─► options of every job after it
//! [job]     ─► one workload, and one measurement of it: threads, queue, length, rate
//! file      ─► a protocol with one suite: purge, then the jobs in their order
//! ```
//!
//! What has no effect on what a drive is asked (engine, logs, the file's name) is passed over; what
//! has one and is not supported here is refused with its line, never left out silently. What comes
//! out differently all the same is in [`Imported::notes`].
//!
//! Source: fio's HOWTO, version 3.42.

mod job;
mod value;

use std::path::Path;

use self::job::FioJob;
use crate::{Measure, Protocol, SpecError, Suite, Workload, catalogue};

/// Seconds that a job is measured which does not say how long.
const RUNTIME_DEFAULT_S: u64 = 60;
/// Length of one sample, in seconds.
const INTERVAL_S: u64 = 1;

/// Protocol that a fio job file was converted to.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
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
pub fn import(text: &str, file: &str) -> Result<Imported, SpecError> {
    imported(text, file).map_err(|(line, text)| SpecError {
        file: file.to_owned(),
        line,
        column: 0,
        text,
    })
}

/// A job as fio's report tells its options: what can be said of it, the rest left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Workload of its requests: a built-in one where the options match it exactly.
    pub workload: Workload,
    /// Jobs.
    pub threads: u16,
    /// Requests that each job keeps outstanding.
    pub queue_per_thread: u16,
    /// Requests that were to come in each second; absent where nothing held the jobs back.
    pub rate_iops: Option<f64>,
}

/// Load that the options of the job `name` ask for, applied in their order: the later ones win.
pub fn told<'a>(name: &str, options: impl Iterator<Item = (&'a str, &'a str)>) -> Told {
    let mut job = FioJob::default();
    for (key, value) in options {
        // It was carried out as it is, whether or not it can be said here.
        let _ = job.take(key, value, &mut Vec::new());
    }
    let own = job.workload(&slug(name, "job"), "fio's report");
    let is_it = |known: &Workload| {
        known.read_percent.total_cmp(&own.read_percent).is_eq()
            && (known.access, &known.sizes) == (own.access, &own.sizes)
            && known.alignment_bytes() == own.alignment_bytes()
            && known.footprint_percent.total_cmp(&own.footprint_percent).is_eq()
            && known.compressible_percent.total_cmp(&own.compressible_percent).is_eq()
    };
    let measure = job.measure("");
    Told {
        workload: catalogue::workloads().into_iter().find(is_it).unwrap_or(own),
        threads: measure.threads[0].max(1),
        queue_per_thread: measure.queue_per_thread[0].max(1),
        rate_iops: measure.rate_iops,
    }
}

fn imported(text: &str, file: &str) -> Result<Imported, Refusal> {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let protocols = catalogue::protocols();
    let name = free(&slug(&stem, "job"), "fio-", |name| protocols.iter().any(|it| it.name == name));
    let sections = sections(text)?;
    if sections.is_empty() {
        return Err((0, "there is no job in it: a job begins with [its name]".into()));
    }
    let mut notes = Vec::new();
    let (mut workloads, mut measures) = (Vec::new(), Vec::new());
    for (index, section) in sections.iter().enumerate() {
        let job = FioJob::read(section, &mut notes)?;
        if index > 0 && !job.waits {
            let (one, other) = (&sections[index - 1].name, &section.name);
            let text = format!(
                "[{one}] and [{other}] run at the same time, and a protocol has one load at a \
                 time: add `stonewall` to [{other}], or import each from its own file"
            );
            return Err((section.line, text));
        }
        let workload = job.workload(&own_name(section, &name, &workloads), file);
        measures.push(job.measure(&workload.name));
        workloads.push(workload);
    }
    notes.push(
        "the target is purged before the first job, then filled once in order where a job reads, \
         and not preconditioned: add a [suites.precondition] to measure steady state"
            .into(),
    );
    notes.dedup();
    Ok(Imported { protocol: protocol(name, &stem, workloads, measures), notes })
}

fn protocol(
    name: String,
    title: &str,
    workloads: Vec<Workload>,
    measure: Vec<Measure>,
) -> Protocol {
    Protocol {
        schema: Protocol::SCHEMA,
        title: title.to_owned(),
        description: format!("The jobs of {title}, a job file of fio, one after the other."),
        source: format!("imported from {title}, a job file of fio"),
        published: None,
        time_lapse_max: None,
        start_purged: false,
        workloads,
        suites: vec![Suite {
            name: name.clone(),
            title: title.to_owned(),
            compressible_percent: None,
            footprint_percent: None,
            fill: None,
            fill_passes: 1,
            fill_random_passes: 0,
            rounds: None,
            precondition: None,
            curve: None,
            application: None,
            nodes: None,
            measure,
        }],
        name,
    }
}

/// The name of the workload of `section`: like no other, and like none that is built in.
fn own_name(section: &Section, protocol: &str, earlier: &[Workload]) -> String {
    let known = catalogue::workloads();
    let taken = |name: &str| known.iter().chain(earlier).any(|it| it.name == name);
    let name = free(&slug(&section.name, "job"), &format!("{protocol}-"), taken);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !taken(name)).expect("some number is free")
}

/// `name`, or with `prefix` before it where it is taken.
fn free(name: &str, prefix: &str, taken: impl Fn(&str) -> bool) -> String {
    if taken(name) { format!("{prefix}{name}") } else { name.to_owned() }
}

/// Letters and digits of `text` in lower case, everything else one hyphen; `other` where none is
/// left.
fn slug(text: &str, other: &str) -> String {
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
        let written = written.trim();
        if written.is_empty() || written.starts_with([';', '#']) {
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
