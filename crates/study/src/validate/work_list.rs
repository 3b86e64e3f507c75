//! Simulations that a set of rows needs, found once; carried out as often as wanted.

use std::collections::{BTreeMap, BTreeSet};

use results::Run;
use results::published::{ANY, FigureRow, Part, Reading, compressible, figures_for};
use ssd::{DriveSpec, Surroundings};
use workload::PublishedPhase;

use lab::driver::model::Model;
use lab::expression::{express, host};
use lab::plan::{Plan, PlannedStep};
use lab::progress::Progress;
use lab::runner::{Assignment, NoStepStore, carry_out};
use lab::wanted::TargetSetup;
use lab::{Driver, Error, Kind};

/// Platform of data sheets.
const RATED: &str = "rated";
/// Metric of a rate of requests.
const IOPS: &str = "iops";

/// Setups of drives with the steps that rows need of them, and where each row is read from.
///
/// A step that several rows need is simulated once; steps that none needs are left out, apart from
/// what prepares the drive for those that are.
#[derive(Clone, Debug)]
pub struct WorkList {
    jobs: Vec<Simulation>,
    entries: Vec<Result<RowSource, String>>,
}

/// One setup through the steps of one plan.
#[derive(Clone, Debug)]
pub(crate) struct Simulation {
    pub(crate) setup: TargetSetup,
    pub(crate) plan: Plan,
}

/// Steps that are needed of setups and of plans, by their numbers; each once.
#[derive(Debug, Default)]
pub(crate) struct NeededSteps(BTreeMap<(TargetSetup, usize), BTreeSet<String>>);

impl NeededSteps {
    pub(crate) fn add(&mut self, of: &(TargetSetup, usize), ids: &[String]) {
        self.0.entry(of.clone()).or_default().extend(ids.iter().cloned());
    }

    /// Number of a simulation among all of them.
    ///
    /// # Panics
    /// Panics if no step of it is needed.
    pub(crate) fn simulation(&self, of: &(TargetSetup, usize)) -> usize {
        assert!(self.0.contains_key(of), "every need has its steps");
        self.0.range(..of).count()
    }

    /// The simulations, without steps that none needs.
    pub(crate) fn simulations(&self, drives: &[DriveSpec], plans: &[Plan]) -> Vec<Simulation> {
        let simulation = |((setup, plan), ids): (&(TargetSetup, usize), &BTreeSet<String>)| {
            let spec = drives.iter().find(|spec| spec.name == setup.target);
            let plan = plans[*plan].with_steps(ids).for_drive(spec.expect("a drive has its steps"));
            Simulation { setup: setup.clone(), plan }
        };
        self.0.iter().map(simulation).collect()
    }
}

/// Source of the value of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSource {
    /// The setup that it is about.
    pub setup: TargetSetup,
    /// Name of the protocol that expresses it.
    pub protocol: String,
    job: usize,
    reading: Reading,
    /// Rate that the row states, in requests a second; absent where it states something else.
    rate_iops: Option<f64>,
}

impl RowSource {
    /// Loads that it is read from.
    pub(crate) const fn loads(&self) -> usize {
        self.reading.steps.len()
    }
}

impl WorkList {
    /// Collects the simulations of `drives` that `rows` need, each expressed by the first of
    /// `plans` that can.
    pub fn new(rows: &[&FigureRow], drives: &[DriveSpec], plans: &[Plan]) -> Self {
        let mut needed = NeededSteps::default();
        let needs: Vec<Result<_, String>> = rows
            .iter()
            .map(|row| {
                let spec = subject(row, drives)?;
                let (plan, reading) =
                    express(row, plans).map_err(|miss| String::from(miss.reason()))?;
                let key = (setup(row, spec, &plans[plan])?, plan);
                needed.add(&key, &reading.steps);
                Ok((key, reading))
            })
            .collect();
        let entries = needs.into_iter().zip(rows).map(|(need, row)| {
            let (key, reading) = need?;
            let rate_iops = row.value_high.filter(|_| row.metric == IOPS);
            let job = needed.simulation(&key);
            let protocol = plans[key.1].protocol.clone();
            Ok(RowSource { setup: key.0, protocol, job, reading, rate_iops })
        });
        Self { entries: entries.collect(), jobs: needed.simulations(drives, plans) }
    }

    /// Source of the value of each row, or the reason why there is none; in the order of the rows.
    pub fn entries(&self) -> &[Result<RowSource, String>] {
        &self.entries
    }

    /// Simulates with `drives`, which may differ from those that it was made for in all but their
    /// names, formats and hosts. Returns the value of each row, in its unit; absent where there is
    /// none.
    ///
    /// # Errors
    /// Fails if a simulation failed or was stopped.
    pub fn values(
        &self,
        drives: &[DriveSpec],
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Option<f64>>, Error> {
        Ok(self.read(&carry_out_all(&self.jobs, drives, threads, progress)?))
    }

    /// The value of each row in `runs`, one of each job.
    pub(crate) fn read(&self, runs: &[Run]) -> Vec<Option<f64>> {
        let value = |entry: &RowSource| entry.reading.of(&runs[entry.job]);
        self.entries.iter().map(|entry| entry.as_ref().ok().and_then(value)).collect()
    }

    /// The setups and the steps that they go through.
    pub(crate) fn jobs(&self) -> &[Simulation] {
        &self.jobs
    }

    /// The steps of the job numbered `job` that some row is read from, and which part of them.
    pub(crate) fn needs(&self, job: usize) -> Vec<(&PlannedStep, Part)> {
        let mut needs = Vec::new();
        for entry in self.entries.iter().flatten().filter(|entry| entry.job == job) {
            let steps = self.jobs[job].plan.steps.iter();
            for step in steps.filter(|step| entry.reading.steps.contains(&step.id)) {
                if !needs.contains(&(step, entry.reading.part)) {
                    needs.push((step, entry.reading.part));
                }
            }
        }
        needs
    }

    /// Rate that a row states of the step `id` of the job numbered `job`; absent where none does.
    pub(crate) fn rate_iops(&self, job: usize, id: &str) -> Option<f64> {
        let is_it = |entry: &&RowSource| entry.job == job && entry.reading.steps == [id];
        self.entries.iter().flatten().filter(is_it).find_map(|entry| entry.rate_iops)
    }
}

/// Carries out simulations of `drives`, each with its own model. Returns a run of each.
///
/// # Errors
/// Fails if one failed or was stopped.
pub(crate) fn carry_out_all(
    jobs: &[Simulation],
    drives: &[DriveSpec],
    threads: usize,
    progress: &dyn Progress,
) -> Result<Vec<Run>, Error> {
    let labels: Vec<String> = jobs.iter().map(|job| job.setup.to_string()).collect();
    let drivers: Vec<_> = jobs.iter().map(|job| || model(drives, job)).collect();
    let assignments: Vec<Assignment<'_>> = jobs
        .iter()
        .zip(&labels)
        .zip(&drivers)
        .map(|((Simulation { plan, .. }, label), drivers)| Assignment {
            label,
            plan,
            drivers,
            step_store: &NoStepStore,
            finished: Vec::new(),
        })
        .collect();
    let outcomes = carry_out(&assignments, threads, progress)?;
    if outcomes.iter().any(|outcome| outcome.interrupted) {
        return Err(Error::new(Kind::Program, "stopped before all rows were compared"));
    }
    let named = jobs.iter().zip(labels).zip(outcomes);
    let runs =
        named.map(|((job, label), outcome)| outcome.into_run(&job.plan, label, String::new()));
    Ok(runs.collect())
}

/// The drive that `row` is about.
fn subject<'a>(row: &FigureRow, drives: &'a [DriveSpec]) -> Result<&'a DriveSpec, String> {
    if let Some(obstacle) = row.obstacle() {
        return Err(obstacle.into());
    }
    let spec = drives.iter().find(|spec| is_about(row, spec));
    spec.ok_or_else(|| "the drive is not modelled".into())
}

/// The setup of `spec` that `row` is about under `plan`, at the drive's own time lapse.
fn setup(row: &FigureRow, spec: &DriveSpec, plan: &Plan) -> Result<TargetSetup, String> {
    let system = host(row, plan, &spec.hosts());
    let host = match system {
        ANY => spec.hosts.first().map(|host| host.name.clone()),
        system => spec.host_of_figure(system, &row.document).map(|host| host.name),
    };
    Ok(TargetSetup {
        target: spec.name.clone(),
        format: format(row, spec)?,
        host: host.ok_or_else(|| format!("the model has no host `{system}`"))?,
        time_lapse: spec.time_lapse_default(),
        surroundings: Surroundings::default(),
        precision: None,
    })
}

/// True if `row` was published for the drive that `spec` models.
pub fn is_about(row: &FigureRow, spec: &DriveSpec) -> bool {
    spec.published_as().is_some_and(|(device, capacity_gb)| {
        figures_for(std::slice::from_ref(row), device, capacity_gb).next().is_some()
    })
}

/// The format that `row` is about: the first one where its mode says what the data is like.
pub(super) fn format(row: &FigureRow, spec: &DriveSpec) -> Result<String, String> {
    let mode = if compressible(&row.mode).is_some() { ANY } else { &row.mode };
    meant("format", mode, &spec.formats())
}

fn meant(what: &str, asked: &str, known: &[String]) -> Result<String, String> {
    let found = known.iter().find(|name| asked == ANY || asked == name.as_str());
    found.cloned().ok_or_else(|| format!("the model has no {what} `{asked}`"))
}

/// The model of one job.
fn model(drives: &[DriveSpec], job: &Simulation) -> Result<Box<dyn Driver>, Error> {
    let Simulation { setup, plan } = job;
    let spec = drives.iter().find(|spec| spec.name == setup.target).ok_or_else(|| {
        Error::new(Kind::Program, format!("no drive named {} to simulate", setup.target))
    })?;
    let phase = plan.published.as_ref().map(|published| published.phase);
    let spec = match phase {
        Some(PublishedPhase::Datasheet | PublishedPhase::DatasheetSustained) => as_rated(spec),
        _ => spec.clone(),
    };
    Ok(Box::new(Model::new(spec, setup.with_seed(plan.seed))?))
}

/// The drive as its maker rates it. Makers state no host, so it bounds no rate, unless the flash
/// management or the copying of data runs on it: then it is the drive's own, which never sleeps.
fn as_rated(spec: &DriveSpec) -> DriveSpec {
    let mut spec = spec.clone();
    let rated = ssd::catalogue::platform(RATED).expect("a test reads every platform");
    for host in &mut spec.hosts {
        host.wake_us = 0.0;
        if !spec.controller.on_host && !host.one_at_a_time {
            host.serial_us = 0.0;
            host.processors = rated.processors;
            (host.submit_us, host.complete_us) = (rated.submit_us, rated.complete_us);
            host.interrupt_us = rated.interrupt_us;
        }
    }
    spec
}

#[cfg(test)]
mod tests;
