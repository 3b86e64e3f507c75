//! Parameter files of vdbench, as far as protocols can say the same [vdbench-manual].
//!
//! ```text
//! sd=sd1,lun=/dev/x,threads=8     ─► requests outstanding
//! wd=wd1,sd=sd1,xfersize=4k,…     ─► workloads
//! rd=run1,wd=wd1,iorate=max,…     ─► measurements, in the order of the file
//! ```
//!
//! A thread of vdbench has one request outstanding, so it is a job with a queue of one. Each
//! parameter is carried out, or noted as without effect on what a drive is asked, or refused with
//! its line. Of the totals vdbench leaves out the first interval, where no `warmup` is given.
//!
//! Invariant: what is returned passes the checks of those who read it from a file.

mod definition;
mod run;

use std::path::Path;

use self::definition::definitions;
use self::run::Settings;
use crate::fio::{ImportedProtocol, free, slug};
use crate::{Curve, Gaps, Measure, Protocol, SpecError, Suite, Workload, catalogue};

/// Line number, and the reason why that line is refused.
type Refusal = (u32, String);

/// True if `text` is a parameter file of vdbench: a line defines a run.
pub fn is_parameter_file(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().to_lowercase().starts_with("rd="))
}

/// Reads a parameter file; `file` names it in errors, and its stem names what it becomes.
///
/// # Errors
/// Says file, line, and what is not supported.
pub fn import(text: &str, file: &str) -> Result<ImportedProtocol, SpecError> {
    imported(text, file).map_err(|(line, text)| SpecError {
        file: file.to_owned(),
        line,
        column: 0,
        text,
    })
}

fn imported(text: &str, file: &str) -> Result<ImportedProtocol, Refusal> {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let protocols = catalogue::protocols();
    let taken = |name: &str| protocols.iter().any(|it| it.name == name);
    let name = free(&slug(&stem, "vdbench"), "vdbench-", taken);
    let mut notes = Vec::new();
    let settings = Settings::of(&definitions(text)?, &mut notes)?;
    let (mut workloads, mut measures) = (Vec::new(), Vec::new());
    let mut curve: Option<Option<Vec<f64>>> = None;
    for run in settings.runs(&mut notes)? {
        if curve.as_ref().is_some_and(|curve| *curve != run.curve) {
            let text = "some runs have a curve and others have not, or another: import each from \
                        a file of its own";
            return Err((run.line, text.into()));
        }
        curve = Some(run.curve.clone());
        let workload = run.workload(&name, file, &workloads);
        let measure = run.measure(&workload.name);
        let checked = workload.check().and_then(|()| measure.check());
        checked.map_err(|fault| (run.line, fault.text))?;
        workloads.push(workload);
        measures.push(measure);
    }
    if measures.is_empty() {
        return Err((0, "there is no run in it: a run begins with rd=".into()));
    }
    notes.push(
        "the target is purged before the first run, then filled once in order where a run reads, \
         and not preconditioned: add a [suites.precondition] to measure steady state"
            .into(),
    );
    notes.dedup();
    let curve = curve.flatten().map(|percents| curve_of(percents, &measures[0]));
    let protocol = protocol(name, &stem, (workloads, measures, curve));
    let checked = protocol.check_values();
    checked.map_err(|fault| (0, format!("{}: {}", fault.place, fault.text)))?;
    Ok(ImportedProtocol { protocol, notes })
}

/// The curve of runs that are measured as `measure` is.
fn curve_of(percents: Vec<f64>, measure: &Measure) -> Curve {
    Curve {
        percents,
        gaps: Gaps::Exponential,
        duration_s: measure.duration_s,
        ramp_s: measure.ramp_s,
        interval_s: measure.interval_s,
    }
}

fn protocol(
    name: String,
    title: &str,
    (workloads, measure, curve): (Vec<Workload>, Vec<Measure>, Option<Curve>),
) -> Protocol {
    let suite = Suite {
        name: name.clone(),
        title: title.to_owned(),
        compressible_percent: None,
        footprint_percent: None,
        fill: None,
        fill_passes: 1,
        fill_random_passes: 0,
        rounds: None,
        precondition: None,
        curve,
        application: None,
        nodes: None,
        measure,
    };
    Protocol {
        schema: Protocol::SCHEMA,
        title: title.to_owned(),
        description: format!("The runs of {title}, a parameter file of vdbench, in their order."),
        source: format!("imported from {title}, a parameter file of vdbench"),
        published: None,
        time_lapse_max: None,
        start_purged: false,
        workloads,
        suites: vec![suite],
        name,
    }
}

#[cfg(test)]
mod tests;
