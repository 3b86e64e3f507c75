//! Plan of a run, step by step: a protocol made concrete.
//!
//! ```text
//! protocol ──► Plan ──► runner ──► Run
//!               └─► printed by `plan`, kept beside the run so that it can be resumed
//! ```

mod length;
mod reading;
mod suite;
mod work;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use blockio::Rng;
use results::{StepKind, TrackedMetric};
use serde::{Deserialize, Serialize};
use ssd::DriveSpec;
use workload::{Access, Application, Gaps, Protocol, PublishedMapping, RealLength, Workload};

use self::length::{interval_s, of_model, round_s};
use crate::replay::{PlannedReplay, Source};
use crate::{Error, Kind, Rate};

/// Every step of one run, in order; each suite is a contiguous range that begins with a purge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the protocol.
    pub protocol: String,
    /// Heading of the protocol.
    pub protocol_title: String,
    /// Published figures that the plan expresses; absent where it stands for none.
    #[serde(default)]
    pub published: Option<PublishedMapping>,
    /// Largest time lapse of a model for which the caller chose none; absent: the drive's own.
    #[serde(default)]
    pub time_lapse_max: Option<u32>,
    /// True if a model is measured as the purge left it, though suites read.
    #[serde(default)]
    pub start_purged: bool,
    /// Seed of every random stream.
    pub seed: u64,
    /// Steps, in order.
    pub steps: Vec<PlannedStep>,
    /// Work of each step on its model; empty if the plan is not for a model.
    #[serde(skip)]
    pub(crate) work: Vec<f64>,
}

/// One load, and how long the drive is preconditioned with it.
#[derive(Clone, Debug, PartialEq)]
pub struct OneLoad {
    /// Jobs.
    pub threads: u16,
    /// Requests that each job keeps outstanding.
    pub queue_per_thread: u16,
    /// Preconditioning in protocol seconds; 0 for none.
    pub precondition_s: f64,
    /// Measurement in protocol seconds.
    pub duration_s: f64,
    /// Times of requests; absent for a closed loop, where each completion is answered by the next
    /// request.
    pub pace: Option<Pace>,
    /// The trace that is replayed.
    pub replay: Option<PlannedReplay>,
}

/// One step to come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Name, unique in the plan: `4k/precondition`, `8k-70-30/8k-70-30/T4Q8`.
    pub id: String,
    /// Kind of the step.
    pub kind: StepKind,
    /// Name of its suite.
    pub suite: String,
    /// Heading of its suite.
    pub suite_title: String,
    /// Sizes, directions and addresses of the requests; absent for a purge.
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
    /// Shortest and longest preconditioning of a real drive, which goes on until steady state;
    /// absent: as long as `duration_s` in any case.
    #[serde(default)]
    pub real: Option<RealLength>,
    /// Longest preconditioning of a model too large for the time of the protocol, in protocol
    /// seconds: from `duration_s` on it goes on until steady state; absent for other models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large_model_max_s: Option<f64>,
    /// The trace that is replayed; absent where requests are generated independently.
    #[serde(default)]
    pub replay: Option<PlannedReplay>,
    /// The round that it belongs to, from 1; absent outside of rounds.
    #[serde(default)]
    pub round: Option<u32>,
    /// Metric that decides whether the rounds are in steady state.
    #[serde(default)]
    pub tracked: Option<TrackedMetric>,
    /// Times that a fill writes everything, or, at random, as much as everything.
    #[serde(default)]
    pub fill_passes: u32,
    /// Times of requests; absent for a closed loop, where each completion is answered by the next
    /// request.
    #[serde(default)]
    pub pace: Option<Pace>,
    /// The application of which a recording is replayed; absent in steps of other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// Drive that the step is for, if the suite has several with one load each; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<PlannedNode>,
}

/// One of several drives with one load each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedNode {
    /// Number of the drive, from 1.
    pub number: u16,
    /// Number of drives.
    pub count: u16,
}

/// Times at which the requests of a step come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Fixed rate.
    Fixed(Rate),
    /// Share of the rate that an earlier step of the suite reached.
    Share {
        /// Name of that step.
        of: String,
        /// The share in percent, above 0.
        percent: f64,
        /// Spans between requests.
        gaps: Gaps,
    },
    /// Times of the trace that is replayed.
    Trace {
        /// So many times as fast, above 0.
        speed: f64,
    },
}

/// A step of `suite` that does nothing yet.
pub(crate) fn blank(suite: &str, suite_title: &str) -> PlannedStep {
    suite::purge(suite, suite_title)
}

/// Passes in which a real target is filled, at least: a device gets two, as the SNIA specification
/// preconditions it [snia-pts-2020], so that its over-provisioning is used up, too.
pub const fn fill_passes(is_file: bool) -> u32 {
    if is_file { 1 } else { 2 }
}

impl Plan {
    /// The steps of `protocol`, whose workloads are looked up among `workloads`.
    ///
    /// # Errors
    /// Names the workload that is not there.
    pub fn new(protocol: &Protocol, workloads: &[Workload], seed: u64) -> Result<Self, Error> {
        let mut steps = Vec::new();
        for suite in &protocol.suites {
            steps.extend(suite::steps(suite, workloads)?);
        }
        Ok(Self {
            protocol: protocol.name.clone(),
            protocol_title: protocol.title.clone(),
            published: protocol.published.clone(),
            time_lapse_max: protocol.time_lapse_max,
            start_purged: protocol.start_purged,
            seed,
            steps,
            work: Vec::new(),
        })
    }

    /// One workload at one load: purge, preconditioning with the same load where asked for (with
    /// writes where it only reads), measurement.
    pub fn of_one(workload: &Workload, asked: &OneLoad, seed: u64) -> Self {
        let blank = suite::purge("run", &workload.title);
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
            workload: Some(workload.preconditioning()),
            round_s: round_s(asked.precondition_s),
            ..load("run/precondition", StepKind::Precondition, asked.precondition_s)
        });
        let measure = PlannedStep {
            pace: asked.pace.clone(),
            replay: asked.replay.clone(),
            ..load("run/measure", StepKind::Measure, asked.duration_s)
        };
        Self {
            protocol: "run".into(),
            protocol_title: "One workload".into(),
            published: None,
            time_lapse_max: None,
            start_purged: false,
            seed,
            steps: std::iter::once(blank.clone()).chain(precondition).chain([measure]).collect(),
            work: Vec::new(),
        }
    }

    /// This plan with so many consecutive seeds, its own first; at least one.
    pub fn repeats(&self, count: u32) -> Vec<Self> {
        let seeds = (0..u64::from(count.max(1))).map(|by| self.seed.wrapping_add(by));
        seeds.map(|seed| Self { seed, ..self.clone() }).collect()
    }

    /// This plan with data that compresses by `percent`, 0 to 100, everywhere.
    #[must_use]
    pub fn with_compressible(mut self, percent: f64) -> Self {
        for workload in self.steps.iter_mut().filter_map(|step| step.workload.as_mut()) {
            workload.compressible_percent = percent;
        }
        self
    }

    /// This plan on the model `spec`: filled before anything is read, unless it starts purged, and
    /// preconditioned as long as the drive's reviewer did it, where the protocol leaves that to the
    /// drive.
    ///
    /// A drive too large to be written over by a preconditioning that goes on until steady state on
    /// real drives is measured as they are: filled before anything is read, however the protocol
    /// starts, and preconditioned until steady state, for ten days at most.
    #[must_use]
    pub fn for_drive(mut self, spec: &DriveSpec) -> Self {
        let is_by_drive = self.published.as_ref().is_some_and(|it| it.precondition_by_drive);
        if let Some(hours) = spec.precondition_hours().filter(|_| is_by_drive) {
            let steps = self.steps.iter_mut();
            for step in steps.filter(|step| step.kind == StepKind::Precondition) {
                step.duration_s = hours * 3600.0;
            }
        }
        self.steps = self.steps.into_iter().map(|step| of_model(spec, step)).collect();
        let start_purged = self.start_purged;
        let fills = |suite: &[PlannedStep]| {
            let is_large = suite.iter().any(|step| step.large_model_max_s.is_some());
            u32::from((is_large || !start_purged) && suite.iter().any(PlannedStep::reads))
        };
        let mut plan = self.with_fills(fills);
        plan.work = plan.steps.iter().map(|step| work::pages(spec, step)).collect();
        plan
    }

    /// This plan on a real target, a file or a device, which is filled before the first load of
    /// each suite: a read of space that was never written measures the mapping table, or the file
    /// system. A suite that only writes begins on the purged device. Preconditionings last as long
    /// as the protocol has it on real drives.
    #[must_use]
    pub fn for_real(mut self, is_file: bool) -> Self {
        let passes = fill_passes(is_file);
        for step in self.steps.iter_mut().filter(|step| step.is_fill_in_order()) {
            step.fill_passes = step.fill_passes.max(passes);
        }
        for step in &mut self.steps {
            if let Some(real) = step.real {
                step.duration_s = real.duration_s_min as f64;
            }
        }
        self.with_fills(|suite| {
            let is_filled = is_file || suite.iter().any(PlannedStep::reads);
            if is_filled { passes } else { 0 }
        })
    }

    /// This plan with a fill after the purge of every suite that has no fill, or before its first
    /// load where it has no purge, of as many passes as `passes` says of its steps; 0 for no fill.
    fn with_fills(mut self, passes: impl Fn(&[PlannedStep]) -> u32) -> Self {
        for range in self.suites().into_iter().rev() {
            let suite = &self.steps[range.clone()];
            let passes = passes(suite);
            if passes == 0 || suite.iter().any(|step| step.kind == StepKind::Fill) {
                continue;
            }
            let purge = suite.iter().position(|step| step.kind == StepKind::Purge);
            let Some(fill) = suite::fill_before(suite, passes) else { continue };
            self.steps.insert(range.start + purge.map_or(0, |at| at + 1), fill);
        }
        self
    }

    /// This plan with everything written once in order before each step, which is then a suite of
    /// its own.
    #[must_use]
    pub fn filled_before_each_load(mut self) -> Self {
        for step in &mut self.steps {
            step.suite.clone_from(&step.id);
        }
        self.with_fills(|_| 1)
    }

    /// This plan with the trace in the file at `path` wherever it replays one; `workload` is what
    /// its requests look like.
    ///
    /// # Errors
    /// Fails if it replays none.
    pub fn with_trace(mut self, path: &Path, workload: &Workload) -> Result<Self, Error> {
        let mut replays = self.steps.iter_mut().filter(|step| step.replay.is_some()).peekable();
        if replays.peek().is_none() {
            let text = format!("protocol {} replays no trace", self.protocol);
            return Err(Error::new(Kind::Input, text).hint("`--protocol mail-server` does"));
        }
        for step in replays {
            let adapted = step.workload.take().map(|made_up| Workload {
                compressible_percent: made_up.compressible_percent,
                footprint_percent: made_up.footprint_percent,
                ..workload.clone()
            });
            (step.workload, step.published_as) = (adapted, vec![String::new()]);
            step.replay.as_mut().expect("filtered").source = Source::File(path.to_owned());
        }
        Ok(self)
    }

    /// This plan on a drive of that many bytes: ranges of its workloads become shares.
    ///
    /// # Errors
    /// Names the workload whose range the drive does not have.
    pub fn placed(&self, capacity_bytes: u64) -> Result<Self, Error> {
        let mut plan = self.clone();
        for workload in plan.steps.iter_mut().filter_map(|step| step.workload.as_mut()) {
            *workload = workload.placed(capacity_bytes).map_err(|source| {
                let error = Error::new(Kind::Input, "placing a load").source(source);
                error.hint("take a larger target, or give the load another size or offset")
            })?;
        }
        Ok(plan)
    }

    /// This plan with the steps named in `ids` only, and what prepares the drive for them.
    #[must_use]
    pub fn with_steps(&self, ids: &BTreeSet<String>) -> Self {
        let mut ids = ids.clone();
        let asked = self.steps.iter().filter(|step| ids.contains(&step.id));
        let measured_for: Vec<String> =
            asked.filter_map(|step| step.pace.as_ref()?.depends_on()).map(str::to_owned).collect();
        ids.extend(measured_for);
        let wanted = self.steps.iter().filter(|step| ids.contains(&step.id));
        let suites: BTreeSet<&str> = wanted.map(|step| step.suite.as_str()).collect();
        let needed = |step: &&PlannedStep| {
            let measures = matches!(step.kind, StepKind::Measure | StepKind::Application);
            let prepares = !measures && suites.contains(step.suite.as_str());
            prepares || ids.contains(&step.id)
        };
        let steps = self.steps.iter().filter(needed).cloned().collect();
        Self { steps, work: Vec::new(), ..self.clone() }
    }

    /// True if figures of `document` were measured as this plan measures.
    pub fn expresses_document(&self, document: &str) -> bool {
        self.published.as_ref().is_some_and(|PublishedMapping { documents, .. }| {
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

    /// Estimated work of the step numbered `index`: pages that a model moves, or protocol time in
    /// seconds for other targets.
    pub fn work_of(&self, index: usize) -> f64 {
        self.work.get(index).copied().unwrap_or_else(|| self.steps[index].length_s())
    }

    /// Work of the whole plan, see [`Plan::work_of`].
    pub fn work(&self) -> f64 {
        (0..self.steps.len()).map(|index| self.work_of(index)).sum()
    }

    /// True if the plan is for a model.
    pub(crate) fn is_of_model(&self) -> bool {
        !self.work.is_empty()
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

    /// Name of its workload or application; empty for a purge.
    pub fn workload_name(&self) -> &str {
        let workload = self.workload.as_ref().map(|workload| workload.name.as_str());
        let application = self.application.as_ref().map(|application| application.name.as_str());
        workload.or(application).unwrap_or_default()
    }

    /// Compressibility of its data in percent; 0 for a purge.
    pub fn compressible_percent(&self) -> f64 {
        self.workload.as_ref().map_or(0.0, |workload| workload.compressible_percent)
    }

    /// True if it is a fill that writes everything in order.
    pub fn is_fill_in_order(&self) -> bool {
        let workload = self.workload.as_ref();
        self.kind == StepKind::Fill && workload.is_some_and(|it| it.access == Access::Sequential)
    }

    /// True if its load reads anything.
    pub fn reads(&self) -> bool {
        let loads = self.workload.as_ref().is_some_and(|workload| !workload.only_writes());
        loads || self.application.is_some()
    }

    /// Requests outstanding in all.
    pub fn outstanding(&self) -> u32 {
        u32::from(self.threads) * u32::from(self.queue_per_thread)
    }

    /// Its load, as the field writes it: `T16Q16`, with the share of its rate where it has one;
    /// empty for a purge or a fill.
    pub fn load_name(&self) -> String {
        let (threads, queue) = (self.threads, self.queue_per_thread);
        match (self.kind, &self.pace) {
            (StepKind::Purge | StepKind::Fill, _) => String::new(),
            (StepKind::Application, _) => format!("{threads} clients"),
            (_, Some(Pace::Share { percent, .. })) => format!("T{threads}Q{queue} at {percent} %"),
            (_, Some(Pace::Fixed(_) | Pace::Trace { .. }) | None) => format!("T{threads}Q{queue}"),
        }
    }

    /// The rate of the step; `reached` says what an earlier one did, in requests a second.
    ///
    /// # Errors
    /// Fails if it is a share of what was not measured.
    pub fn rate(&self, reached: impl Fn(&str) -> Option<f64>) -> Result<Option<Rate>, Error> {
        match &self.pace {
            None | Some(Pace::Trace { .. }) => Ok(None),
            Some(Pace::Fixed(rate)) => Ok(Some(*rate)),
            Some(Pace::Share { of, percent, gaps }) => {
                let iops = reached(of).filter(|iops| *iops > 0.0).ok_or_else(|| {
                    let text = format!(
                        "step {}: the rate is a share of {of}, which completed no request",
                        self.id
                    );
                    Error::new(Kind::Program, text).hint("measure for longer")
                })?;
                Ok(Some(Rate { iops: iops * percent / 100.0, gaps: *gaps }))
            }
        }
    }
}

impl Pace {
    /// Name of the step that has to be measured before.
    pub fn depends_on(&self) -> Option<&str> {
        match self {
            Self::Fixed(_) | Self::Trace { .. } => None,
            Self::Share { of, .. } => Some(of),
        }
    }

    /// Times as fast as its trace; absent where it has none, or not the times of one.
    pub fn speed(&self) -> Option<f64> {
        match self {
            Self::Fixed(_) | Self::Share { .. } => None,
            Self::Trace { speed } => Some(*speed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use workload::{ByteRange, catalogue};

    use super::*;

    pub(super) fn plan(protocol: &str) -> Plan {
        let protocol = catalogue::find_protocol(protocol).unwrap();
        Plan::new(&protocol, &catalogue::workloads(), 1).unwrap()
    }

    #[test]
    fn drives_with_one_load_each_are_steps_of_one_suite() {
        let plan = plan("applications");
        let nodes: Vec<&PlannedStep> = plan.steps.iter().filter(|it| it.node.is_some()).collect();
        let numbers: Vec<u16> = nodes.iter().filter_map(|it| Some(it.node?.number)).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        for step in nodes {
            assert_eq!((step.suite.as_str(), step.threads), ("nosql-four-nodes", 8));
            assert!((step.duration_s - 24.0 * step.interval_s).abs() < 1e-9);
            assert_eq!(step.node.map(|it| it.count), Some(4));
        }
        // Guests that share nothing are predicted from the recording of one.
        let guests = plan.steps.iter().filter(|it| it.workload_name() == "vdi");
        assert_eq!(guests.map(|it| it.threads).collect::<Vec<_>>(), [1, 8, 32, 64]);
    }

    #[test]
    fn ranges_of_loads_become_shares_of_the_drive_or_are_refused() {
        let mut plan = plan("quick");
        let range = Some(ByteRange { offset_bytes: 0, size_bytes: Some(10 << 30) });
        for workload in plan.steps.iter_mut().filter_map(|step| step.workload.as_mut()) {
            workload.range = range;
        }
        let placed = plan.placed(40 << 30).unwrap();
        for workload in placed.steps.iter().filter_map(|step| step.workload.as_ref()) {
            assert_eq!(workload.range, None);
            assert!((workload.footprint_percent - 25.0).abs() < 1e-6);
        }
        let refused = plan.placed(8 << 30).unwrap_err();
        assert_eq!((refused.kind(), refused.to_string().as_str()), (Kind::Input, "placing a load"));
    }

    #[test]
    fn a_drive_is_preconditioned_as_long_as_its_reviewer_did_where_the_protocol_says_so() {
        let length = |protocol: &str, drive: &str| {
            let spec = ssd::catalogue::find(drive).unwrap();
            let plan = plan(protocol).for_drive(&spec);
            let mut steps = plan.steps.iter();
            let precondition = steps.find(|step| step.kind == StepKind::Precondition);
            Duration::from_secs_f64(precondition.unwrap().duration_s)
        };
        assert_eq!(length("enterprise", "flashmax-ii"), Duration::from_hours(12));
        assert_eq!(length("enterprise", "iodrive-duo"), Duration::from_hours(6));
        assert_eq!(length("snia-pts", "flashmax-ii"), Duration::from_hours(6));
    }

    #[test]
    fn a_model_is_filled_before_anything_is_read_unless_the_protocol_starts_purged() {
        use StepKind::{Fill, Measure, Precondition, Purge};
        let spec = ssd::catalogue::find("flashmax-ii").unwrap();
        let fills = |plan: Plan| -> Vec<String> {
            let steps = plan.steps.into_iter();
            steps.filter(|step| step.kind == Fill).map(|step| step.id).collect()
        };
        assert_eq!(fills(plan("quick").for_drive(&spec)), ["4k/fill", "8k-70-30/fill"]);
        assert_eq!(fills(plan("enterprise").for_drive(&spec)), [""; 0]);
        let one = |name: &str, precondition_s| {
            let asked = OneLoad {
                threads: 16,
                queue_per_thread: 16,
                precondition_s,
                duration_s: 10.0,
                pace: None,
                replay: None,
            };
            let workload = catalogue::find_workload(name).unwrap();
            Plan::of_one(&workload, &asked, 1).for_drive(&spec)
        };
        assert_eq!(fills(one("4k-rand-read", 0.0)), ["run/fill"]);
        assert_eq!(fills(one("4k-rand-write", 0.0)), [""; 0]);
        let conditioned = one("4k-rand-read", 60.0).steps;
        let kinds: Vec<StepKind> = conditioned.iter().map(|step| step.kind).collect();
        assert_eq!(kinds, [Purge, Fill, Precondition, Measure]);
        let workload = conditioned[2].workload.as_ref().unwrap();
        assert!(workload.only_writes(), "reads do not precondition: {}", workload.name);
    }

    #[test]
    fn a_real_target_is_written_all_over_before_every_suite() {
        let plan = plan("quick").for_real(false);
        for range in plan.suites() {
            assert_eq!(plan.steps[range.start].kind, StepKind::Purge);
            let fill = &plan.steps[range.start + 1];
            assert_eq!((fill.kind, fill.fill_passes), (StepKind::Fill, 2));
        }
        assert_eq!(plan.clone().for_real(false), plan, "once is enough");
    }

    #[test]
    fn a_suite_that_only_writes_begins_on_the_purged_device() {
        let filled = |plan: &Plan| plan.steps.iter().any(|step| step.id == "wsat/fill");
        let plan = plan("snia-pts");
        assert!(!filled(&plan.clone().for_real(false)));
        assert!(filled(&plan.for_real(true)), "a file is not allocated before it is written");
    }

    #[test]
    fn a_real_drive_is_preconditioned_for_six_to_twelve_hours_where_the_protocol_says_so() {
        let bounds = |plan: &Plan| -> Vec<(f64, Option<u64>)> {
            let steps = plan.steps.iter().filter(|step| step.kind == StepKind::Precondition);
            steps.map(|it| (it.duration_s, it.real.map(|real| real.duration_s_max))).collect()
        };
        for protocol in ["enterprise", "enterprise-2021"] {
            let real = plan(protocol).for_real(false);
            assert_eq!(bounds(&real), [(21_600.0, Some(43_200)); 4], "{protocol}");
        }
        assert_eq!(
            bounds(&plan("quick").for_real(false)),
            [(90.0, None); 2],
            "a first look stays one"
        );
        let spec = ssd::catalogue::find("p5510-eight").unwrap();
        let model = plan("enterprise-2021").for_drive(&spec);
        let (random, in_order) = ((21_600.0, None), (1_800.0, None));
        let expected = [random, random, in_order, in_order];
        assert_eq!(bounds(&model), expected, "models keep to the protocol");
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
        let round = |duration_s| Duration::from_secs_f64(round_s(duration_s));
        let minutes = [600.0, 3600.0, 21_600.0].map(round);
        assert_eq!(minutes, [1, 5, 30].map(Duration::from_mins));
    }

    #[test]
    fn a_curve_follows_the_load_whose_rate_it_takes_shares_of() {
        let plan = plan("vdbench");
        let suite: Vec<&PlannedStep> =
            plan.steps.iter().filter(|step| step.workload_name() == "sql").collect();
        let loads: Vec<String> = suite[..13].iter().map(|step| step.load_name()).collect();
        assert_eq!(loads[..3], ["T32Q1", "T32Q1 at 10 %", "T32Q1 at 20 %"]);
        assert_eq!(loads[12], "T32Q1 at 120 %");
        let reached = |id: &str| (id == suite[0].id).then_some(50_000.0);
        let rate = suite[12].rate(reached).unwrap().unwrap();
        assert!((rate.iops - 60_000.0).abs() < 1e-6, "{rate:?}");
        assert_eq!(rate.gaps, Gaps::Exponential);
        assert_eq!(suite[0].rate(reached).unwrap(), None);
        let error = suite[12].rate(|_| None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "step uncompressed/sql/T32Q1-120percent: the rate is a share of \
             uncompressed/sql/T32Q1, which completed no request"
        );
    }

    #[test]
    fn a_point_of_a_curve_alone_keeps_the_load_that_it_depends_on() {
        let wanted = BTreeSet::from(["uncompressed/sql/T32Q1-50percent".to_owned()]);
        let plan = plan("vdbench").with_steps(&wanted);
        let ids: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "uncompressed/purge",
                "uncompressed/fill",
                "uncompressed/precondition",
                "uncompressed/sql/T32Q1",
                "uncompressed/sql/T32Q1-50percent",
            ]
        );
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
