//! What will happen, step by step: a protocol made concrete.
//!
//! ```text
//! protocol ──► Plan ──► runner ──► Run
//!               └─► printed by `plan`, kept beside the run so that it can be resumed
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

use blockio::{Rng, nearest};
use results::StepKind;
use serde::{Deserialize, Serialize};
use workload::{Access, Measure, Protocol, Published, Suite, Workload};

use crate::{Error, Kind, Rate};

/// Every step of one run, in order; each suite is a contiguous range that begins with a purge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the protocol.
    pub protocol: String,
    /// Heading of the protocol.
    pub protocol_title: String,
    /// Which published figures it expresses; absent where it stands for none.
    #[serde(default)]
    pub published: Option<Published>,
    /// Seed of every random stream.
    pub seed: u64,
    /// What is done, in order.
    pub steps: Vec<PlannedStep>,
}

/// One load, and how long the drive is preconditioned with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneLoad {
    /// Jobs.
    pub threads: u16,
    /// Requests that each job keeps outstanding.
    pub queue_per_thread: u16,
    /// Preconditioning in protocol seconds; 0 for none.
    pub precondition_s: f64,
    /// Measurement in protocol seconds.
    pub duration_s: f64,
    /// Rate of the measurement; absent where each completion is answered by the next request.
    pub rate: Option<Rate>,
}

/// One step to come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Name, unique in the plan: `4k/precondition`, `8k-70-30/8k-70-30/T4Q8`.
    pub id: String,
    /// What it does.
    pub kind: StepKind,
    /// Name of its suite.
    pub suite: String,
    /// Heading of its suite.
    pub suite_title: String,
    /// What each request looks like; absent for a purge.
    pub workload: Option<Workload>,
    /// Names by which published figures know the workload here; none: its own name.
    #[serde(default)]
    pub published_as: Vec<String>,
    /// Jobs; 0 for a purge or a fill.
    pub threads: u16,
    /// Requests that each job keeps outstanding; 0 for a purge or a fill.
    pub queue_per_thread: u16,
    /// Load before the measurement that is not counted, in protocol seconds.
    pub ramp_s: f64,
    /// Length of the measurement, in protocol seconds.
    pub duration_s: f64,
    /// Length of one sample, in protocol seconds.
    pub interval_s: f64,
    /// Length of one round of the steady-state rule, in protocol seconds; 0 where it is not
    /// applied.
    pub round_s: f64,
    /// Rate at which requests come; absent where each completion is answered by the next request.
    pub rate: Option<Rate>,
}

impl Plan {
    /// The steps of `protocol`, whose workloads are looked up among `workloads`.
    ///
    /// # Errors
    /// Names the workload that is not there.
    pub fn new(protocol: &Protocol, workloads: &[Workload], seed: u64) -> Result<Self, Error> {
        let mut steps = Vec::new();
        for suite in &protocol.suites {
            steps.push(purge(&suite.name, &suite.title));
            steps.extend(fill(suite, workloads)?);
            steps.extend(precondition(suite, workloads)?);
            for measure in &suite.measure {
                let workload = suite.adapted(find(workloads, &measure.workload, suite)?);
                steps.extend(measure.points().map(|at| measured(suite, measure, &workload, at)));
            }
        }
        Ok(Self {
            protocol: protocol.name.clone(),
            protocol_title: protocol.title.clone(),
            published: protocol.published.clone(),
            seed,
            steps,
        })
    }

    /// One workload at one load: purge, preconditioning with the same load where asked for,
    /// measurement.
    pub fn of_one(workload: &Workload, asked: &OneLoad, seed: u64) -> Self {
        let blank = purge("run", &workload.title);
        let load = |id: &str, kind, duration_s: f64| PlannedStep {
            id: id.into(),
            kind,
            workload: Some(workload.clone()),
            threads: asked.threads,
            queue_per_thread: asked.queue_per_thread,
            duration_s,
            interval_s: interval_s(duration_s),
            ..blank.clone()
        };
        let precondition = (asked.precondition_s > 0.0).then(|| PlannedStep {
            round_s: round_s(asked.precondition_s),
            ..load("run/precondition", StepKind::Precondition, asked.precondition_s)
        });
        let measure = PlannedStep {
            rate: asked.rate,
            ..load("run/measure", StepKind::Measure, asked.duration_s)
        };
        Self {
            protocol: "run".into(),
            protocol_title: "One workload".into(),
            published: None,
            seed,
            steps: std::iter::once(blank.clone()).chain(precondition).chain([measure]).collect(),
        }
    }

    /// This plan with data that compresses by `percent`, 0 to 100, everywhere.
    #[must_use]
    pub fn with_compressible(mut self, percent: f64) -> Self {
        for workload in self.steps.iter_mut().filter_map(|step| step.workload.as_mut()) {
            workload.compressible_percent = percent;
        }
        self
    }

    /// This plan with the steps named in `ids` only, and what prepares the drive for them.
    #[must_use]
    pub fn with_steps(&self, ids: &BTreeSet<String>) -> Self {
        let wanted = self.steps.iter().filter(|step| ids.contains(&step.id));
        let suites: BTreeSet<&str> = wanted.map(|step| step.suite.as_str()).collect();
        let needed = |step: &&PlannedStep| {
            let prepares = step.kind != StepKind::Measure && suites.contains(step.suite.as_str());
            prepares || ids.contains(&step.id)
        };
        Self { steps: self.steps.iter().filter(needed).cloned().collect(), ..self.clone() }
    }

    /// Whether figures of `document` were measured as this plan measures.
    pub fn expresses_document(&self, document: &str) -> bool {
        self.published.as_ref().is_some_and(|Published { documents, .. }| {
            documents.is_empty() || documents.iter().any(|name| name == document)
        })
    }

    /// The ranges of `steps` that make one suite each.
    pub fn suites(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            match ranges.last_mut() {
                Some(range) if self.steps[range.start].suite == step.suite => range.end = index + 1,
                _ => ranges.push(index..index + 1),
            }
        }
        ranges
    }

    /// Protocol time of the whole plan, in seconds.
    pub fn duration_s(&self) -> f64 {
        self.steps.iter().map(PlannedStep::length_s).sum()
    }

    /// Seed of one step: depends on its name alone, so that no other step shifts it.
    pub fn seed_of(&self, step: &PlannedStep) -> u64 {
        Rng::new(self.seed).split(&step.id).next_u64()
    }
}

impl PlannedStep {
    /// Protocol time of the step with its ramp, in seconds.
    pub fn length_s(&self) -> f64 {
        self.ramp_s + self.duration_s
    }

    /// Name of its workload; empty for a purge.
    pub fn workload_name(&self) -> &str {
        self.workload.as_ref().map_or("", |workload| workload.name.as_str())
    }

    /// Compressibility of its data in percent; 0 for a purge.
    pub fn compressible_percent(&self) -> f64 {
        self.workload.as_ref().map_or(0.0, |workload| workload.compressible_percent)
    }

    /// Requests outstanding in all.
    pub fn outstanding(&self) -> u32 {
        u32::from(self.threads) * u32::from(self.queue_per_thread)
    }

    /// Its load, as the field writes it: `T16Q16`; empty for a purge or a fill.
    pub fn load_name(&self) -> String {
        match self.kind {
            StepKind::Purge | StepKind::Fill => String::new(),
            StepKind::Precondition | StepKind::Measure => {
                format!("T{}Q{}", self.threads, self.queue_per_thread)
            }
        }
    }
}

/// Samples of at least a second, a few hundred at most; shorter loads are one sample.
fn interval_s(duration_s: f64) -> f64 {
    (duration_s / 300.0).ceil().max(1.0).min(duration_s)
}

/// Rounds of about a minute, whole intervals, and at least five of them where that is possible.
fn round_s(duration_s: f64) -> f64 {
    let interval_s = interval_s(duration_s);
    let intervals = (60.0_f64.min(duration_s / 5.0) / interval_s).floor().max(1.0);
    intervals * interval_s
}

fn purge(suite: &str, suite_title: &str) -> PlannedStep {
    PlannedStep {
        id: format!("{suite}/purge"),
        kind: StepKind::Purge,
        suite: suite.to_owned(),
        suite_title: suite_title.to_owned(),
        workload: None,
        published_as: Vec::new(),
        threads: 0,
        queue_per_thread: 0,
        ramp_s: 0.0,
        duration_s: 0.0,
        interval_s: 0.0,
        round_s: 0.0,
        rate: None,
    }
}

fn fill(suite: &Suite, workloads: &[Workload]) -> Result<Option<PlannedStep>, Error> {
    let Some(name) = &suite.fill else { return Ok(None) };
    let workload = find(workloads, name, suite)?;
    if !workload.only_writes() || workload.access != Access::Sequential {
        let text = format!("suite {}: a fill with `{name}` leaves space unwritten", suite.name);
        let hint = "take a sequential workload that only writes, such as `128k-seq-write`";
        return Err(Error::new(Kind::Input, text).hint(hint));
    }
    Ok(Some(PlannedStep {
        id: format!("{}/fill", suite.name),
        kind: StepKind::Fill,
        workload: Some(Workload {
            footprint_percent: workload.footprint_percent,
            ..suite.adapted(workload)
        }),
        ..purge(&suite.name, &suite.title)
    }))
}

fn precondition(suite: &Suite, workloads: &[Workload]) -> Result<Option<PlannedStep>, Error> {
    let Some(asked) = &suite.precondition else { return Ok(None) };
    Ok(Some(PlannedStep {
        id: format!("{}/precondition", suite.name),
        kind: StepKind::Precondition,
        workload: Some(suite.adapted(find(workloads, &asked.workload, suite)?)),
        threads: asked.threads,
        queue_per_thread: asked.queue_per_thread,
        duration_s: asked.duration_s as f64,
        interval_s: asked.interval_s as f64,
        round_s: asked.round_s as f64,
        ..purge(&suite.name, &suite.title)
    }))
}

fn measured(
    suite: &Suite,
    measure: &Measure,
    workload: &Workload,
    (threads, queue_per_thread): (u16, u16),
) -> PlannedStep {
    PlannedStep {
        id: format!("{}/{}/T{threads}Q{queue_per_thread}", suite.name, workload.name),
        kind: StepKind::Measure,
        workload: Some(workload.clone()),
        published_as: measure.published_as.clone(),
        threads,
        queue_per_thread,
        ramp_s: measure.ramp_s as f64,
        duration_s: measure.duration_s as f64,
        interval_s: measure.interval_s as f64,
        ..purge(&suite.name, &suite.title)
    }
}

fn find<'a>(workloads: &'a [Workload], name: &str, suite: &Suite) -> Result<&'a Workload, Error> {
    workloads.iter().find(|workload| workload.name == name).ok_or_else(|| {
        let suite = &suite.name;
        let error = Error::new(Kind::Input, format!("suite {suite}: no workload named `{name}`"));
        match nearest(name, workloads.iter().map(|workload| workload.name.as_str())) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`floatgate workloads` lists them"),
        }
    })
}

#[cfg(test)]
mod tests {
    use workload::catalogue;

    use super::*;

    fn plan(protocol: &str) -> Plan {
        let protocol = catalogue::find_protocol(protocol).unwrap();
        Plan::new(&protocol, &catalogue::workloads(), 1).unwrap()
    }

    #[test]
    fn every_suite_is_purge_then_precondition_then_measures() {
        let plan = plan("enterprise");
        for suite in plan.suites() {
            let kinds: Vec<StepKind> = plan.steps[suite].iter().map(|step| step.kind).collect();
            assert_eq!(kinds[..2], [StepKind::Purge, StepKind::Precondition]);
            assert!(kinds[2..].iter().all(|kind| *kind == StepKind::Measure));
        }
    }

    #[test]
    fn the_grid_runs_queue_within_threads() {
        let plan = plan("enterprise");
        let loads: Vec<String> = plan
            .steps
            .iter()
            .filter(|step| step.suite == "8k-70-30" && step.kind == StepKind::Measure)
            .map(PlannedStep::load_name)
            .collect();
        assert_eq!(loads.len(), 16);
        assert_eq!(loads[..5], ["T2Q2", "T2Q4", "T2Q8", "T2Q16", "T4Q2"]);
    }

    #[test]
    fn every_step_has_a_name_and_a_seed_of_its_own() {
        let plan = plan("enterprise");
        let mut named: Vec<(&str, u64)> =
            plan.steps.iter().map(|step| (step.id.as_str(), plan.seed_of(step))).collect();
        named.sort_unstable();
        assert!(named.windows(2).all(|pair| pair[0].0 != pair[1].0 && pair[0].1 != pair[1].1));
    }

    #[test]
    fn one_load_leaves_five_rounds_of_whole_intervals_for_the_rule() {
        for duration_s in [5.0, 60.0, 299.0, 3600.0, 21_600.0] {
            let (interval_s, round_s) = (interval_s(duration_s), round_s(duration_s));
            assert!(round_s * 5.0 <= duration_s, "{duration_s}");
            assert!((round_s / interval_s).fract().abs() < 1e-9, "{duration_s}");
        }
    }

    #[test]
    fn a_fill_that_leaves_space_unwritten_is_refused() {
        let mut protocol = catalogue::find_protocol("quick").unwrap();
        protocol.suites[0].fill = Some("4k-rand-write".into());
        let error = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap_err();
        let expected = "suite 4k: a fill with `4k-rand-write` leaves space unwritten";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_footprint_of_a_suite_holds_for_all_its_loads_but_the_fill() {
        let mut protocol = catalogue::find_protocol("quick").unwrap();
        protocol.suites[0].footprint_percent = Some(20.0);
        protocol.suites[0].fill = Some("128k-seq-write".into());
        let plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
        let loads = plan.steps.iter().filter_map(|step| Some((step, step.workload.as_ref()?)));
        for (step, workload) in loads {
            let narrowed = step.suite == protocol.suites[0].name && step.kind != StepKind::Fill;
            let expected = if narrowed { 20.0 } else { 100.0 };
            assert!((workload.footprint_percent - expected).abs() < 1e-9, "{}", step.id);
        }
    }

    #[test]
    fn a_suite_decides_what_the_data_of_all_its_steps_is_like() {
        let mut protocol = catalogue::find_protocol("quick").unwrap();
        protocol.suites[0].compressible_percent = Some(50.0);
        protocol.suites[0].fill = Some("128k-seq-write".into());
        let plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
        let percents = |plan: &Plan, suite: &str| -> Vec<f64> {
            let loads = plan.steps.iter().filter(|step| step.workload.is_some());
            let of_suite = loads.filter(|step| step.suite == suite);
            of_suite.map(PlannedStep::compressible_percent).collect()
        };
        assert!(percents(&plan, "4k").iter().all(|percent| percent.total_cmp(&50.0).is_eq()));
        assert!(percents(&plan, "8k-70-30").iter().all(|percent| percent.total_cmp(&0.0).is_eq()));
        let plan = plan.with_compressible(20.0);
        assert!(percents(&plan, "4k").iter().all(|percent| percent.total_cmp(&20.0).is_eq()));
    }

    #[test]
    fn an_unknown_workload_is_refused_with_the_nearest_one() {
        let mut protocol = catalogue::find_protocol("quick").unwrap();
        protocol.suites[0].precondition.as_mut().unwrap().workload = "4k-rand-wirte".into();
        let error = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap_err();
        assert_eq!(error.remedy(), "did you mean `4k-rand-write`?");
    }
}
