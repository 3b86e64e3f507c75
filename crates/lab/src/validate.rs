//! The models against published figures, row by row.
//!
//! ```text
//! rows ──► which drive, format, host, suite? ──► each simulated once ──► modelled / published
//!               └─ none: listed with the reason
//! ```
//!
//! A row that is about any format or any host is compared with the drive's first one. Tolerances
//! are those of [`tolerance`].

use std::collections::{BTreeMap, BTreeSet};

use results::published::{self, FigureRow, figures_for};
use results::{Figure, Run};
use serde::Serialize;
use ssd::DriveSpec;

use crate::driver::model::Model;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::runner::{Assignment, NoJournal, carry_out};
use crate::subject::Wanted;
use crate::{Driver, Error, Kind};

/// Word of a table of figures for all formats or all hosts.
const ANY: &str = "any";

/// One row of figures and what a model made of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the row.
    pub id: String,
    /// Name of the drive where it was published.
    pub device: String,
    /// Format as published.
    pub mode: String,
    /// Host as published.
    pub host: String,
    /// Workload as published.
    pub workload: String,
    /// Jobs as published.
    pub threads: String,
    /// Outstanding a job as published.
    pub queue_per_thread: String,
    /// When in a test.
    pub phase: String,
    /// What, with its unit.
    pub metric: String,
    /// Published value, lower end.
    pub value_low: Option<f64>,
    /// Published value, upper end.
    pub value_high: Option<f64>,
    /// What became of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Row {
    /// The published value for a table: `42644`, or `41000 to 42000`; empty where there is none.
    pub fn published_text(&self) -> String {
        match (self.value_low, self.value_high) {
            (Some(low), Some(high)) if low < high => {
                format!("{} to {}", number_text(low), number_text(high))
            }
            (Some(value), _) => number_text(value),
            (None, _) => String::new(),
        }
    }
}

/// A number for a table: whole from a hundred on, else three decimals at most.
pub fn number_text(value: f64) -> String {
    if value.abs() >= 100.0 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What became of one row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Within its tolerance.
    In(Compared),
    /// Beyond its tolerance.
    Out(Compared),
    /// Cannot be compared yet.
    NotExpressible {
        /// Why.
        reason: String,
    },
}

/// A published value beside the modelled one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Name of the model and the format: `iodrive-duo stock linux`.
    pub model: String,
    /// Modelled value, in the unit of the metric.
    pub modelled: f64,
    /// Modelled over published; over the nearest end where a range was published.
    pub ratio: f64,
}

/// Ratios of modelled to published that are in tolerance, from and to.
///
/// Rates within 15 %. Average latencies within 20 %: they are rates seen through Little's law, but
/// printed with two or three figures. Deviations and maxima within a factor of two: a maximum is
/// one request among millions, and reviews printed no deviation's definition.
pub fn tolerance(metric: &str) -> (f64, f64) {
    match metric {
        "stdev_latency_ms" | "max_latency_ms" => (0.5, 2.0),
        "avg_latency_ms" => (0.8, 1.2),
        _ => (0.85, 1.15),
    }
}

/// What rows are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// The models, at the time lapse that is their own.
    pub drives: &'a [DriveSpec],
    /// The plan whose steps stand for the published tests.
    pub plan: &'a Plan,
    /// Simulations at once.
    pub threads: usize,
}

/// Compares `rows` with the models; each suite that some row needs is simulated once, and no row is
/// left out.
///
/// # Errors
/// When a simulation failed or was stopped.
pub fn validate(
    rows: &[&FigureRow],
    bench: Bench<'_>,
    progress: &dyn Progress,
) -> Result<Vec<Row>, Error> {
    let needs: Vec<Result<Need<'_>, String>> = rows.iter().map(|row| need(row, bench)).collect();
    let mut suites: BTreeMap<&Wanted, BTreeSet<&str>> = BTreeMap::new();
    for need in needs.iter().flatten() {
        suites.entry(&need.wanted).or_default().extend(&need.suites);
    }
    let runs = simulate(&suites, bench, progress)?;
    let judged = rows.iter().zip(&needs).map(|(row, need)| match need {
        Err(reason) => described(row, Verdict::NotExpressible { reason: reason.clone() }),
        Ok(need) => described(row, judge(row, &need.wanted, &runs[&need.wanted])),
    });
    Ok(judged.collect())
}

/// What must be simulated for one row.
#[derive(Clone, Debug)]
struct Need<'a> {
    wanted: Wanted,
    suites: BTreeSet<&'a str>,
}

fn need<'a>(row: &FigureRow, bench: Bench<'a>) -> Result<Need<'a>, String> {
    if let Some(obstacle) = row.obstacle() {
        return Err(obstacle.into());
    }
    let spec = bench.drives.iter().find(|spec| is_about(row, spec));
    let spec = spec.ok_or("the drive is not modelled")?;
    let wanted = Wanted {
        target: spec.name.clone(),
        format: format(row, spec)?,
        host: meant("host", &row.os, &spec.hosts())?,
        time_lapse: spec.time_lapse_default(),
    };
    let steps = bench.plan.steps.iter().filter(|step| {
        step.workload_name() == row.workload
            && published::is_of(&row.mode, step.compressible_percent())
    });
    let suites: BTreeSet<&str> = steps.map(|step| step.suite.as_str()).collect();
    if suites.is_empty() {
        return Err(format!("protocol {} does not have the workload", bench.plan.protocol));
    }
    Ok(Need { wanted, suites })
}

/// Whether `row` was published for the drive that `spec` models.
pub fn is_about(row: &FigureRow, spec: &DriveSpec) -> bool {
    spec.published_as().is_some_and(|(device, capacity_gb)| {
        figures_for(std::slice::from_ref(row), device, capacity_gb).next().is_some()
    })
}

/// The format that `row` is about: the first one where its mode says what the data is like.
fn format(row: &FigureRow, spec: &DriveSpec) -> Result<String, String> {
    let mode = if published::compressible(&row.mode).is_some() { ANY } else { &row.mode };
    meant("format", mode, &spec.formats())
}

fn meant(what: &str, asked: &str, known: &[String]) -> Result<String, String> {
    let found = known.iter().find(|name| asked == ANY || asked == name.as_str());
    found.cloned().ok_or_else(|| format!("the model has no {what} `{asked}`"))
}

/// Runs every setup through the suites that it is needed for.
fn simulate(
    suites: &BTreeMap<&Wanted, BTreeSet<&str>>,
    bench: Bench<'_>,
    progress: &dyn Progress,
) -> Result<BTreeMap<Wanted, Run>, Error> {
    let plans: Vec<(&Wanted, Plan, String)> = suites
        .iter()
        .map(|(wanted, suites)| (*wanted, bench.plan.only(suites), wanted.to_string()))
        .collect();
    let drivers: Vec<_> = plans
        .iter()
        .map(|(wanted, plan, _)| move || model(bench.drives, wanted, plan.seed))
        .collect();
    let assignments: Vec<Assignment<'_>> = plans
        .iter()
        .zip(&drivers)
        .map(|((_, plan, label), drivers)| Assignment {
            label,
            plan,
            drivers,
            journal: &NoJournal,
            finished: Vec::new(),
        })
        .collect();
    let outcomes = carry_out(&assignments, bench.threads, progress)?;
    if outcomes.iter().any(|outcome| outcome.interrupted) {
        return Err(Error::new(Kind::Program, "stopped before all rows were compared"));
    }
    let named = plans.iter().zip(outcomes);
    Ok(named
        .map(|((wanted, plan, label), outcome)| {
            ((*wanted).clone(), outcome.into_run(plan, label.clone(), String::new()))
        })
        .collect())
}

fn model(drives: &[DriveSpec], wanted: &Wanted, seed: u64) -> Result<Box<dyn Driver>, Error> {
    let spec = drives.iter().find(|spec| spec.name == wanted.target);
    let spec = spec.expect("rows are matched with these drives only").clone();
    Ok(Box::new(Model::new(spec, wanted.setup(seed))?))
}

fn judge(row: &FigureRow, wanted: &Wanted, run: &Run) -> Verdict {
    let figure = row.figure().map(|figure| Figure { measured: figure.measure(run), ..figure });
    let found = figure.and_then(|figure| Some((figure.measured?, figure.ratio()?)));
    let Some((modelled, ratio)) = found else {
        let reason = format!("protocol {} does not have the load in this phase", run.protocol);
        return Verdict::NotExpressible { reason };
    };
    let compared = Compared { model: wanted.to_string(), modelled, ratio };
    let (low, high) = tolerance(&row.metric);
    if (low..=high).contains(&ratio) { Verdict::In(compared) } else { Verdict::Out(compared) }
}

fn described(row: &FigureRow, verdict: Verdict) -> Row {
    Row {
        id: row.id.clone(),
        device: row.device.clone(),
        mode: row.mode.clone(),
        host: row.os.clone(),
        workload: row.workload.clone(),
        threads: row.threads.clone(),
        queue_per_thread: row.queue_per_thread.clone(),
        phase: row.phase.name().into(),
        metric: row.metric.clone(),
        value_low: row.value_low,
        value_high: row.value_high,
        verdict,
    }
}

#[cfg(test)]
mod tests;
