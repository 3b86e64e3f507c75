//! Outcome of one plan, and the result that it makes.

use results::{
    Environment, Run, Spread, Steady, SteadyEvidence, Step, StepKind, Summary, Target, Warning,
    WarningKind,
};

use super::record::Record;
use crate::plan::Plan;

/// Share by which the rate of a measurement may differ from that of the preconditioning before it,
/// under the same load.
const SETTLED_OFF_MAX: f64 = 0.2;

/// Outcome of one plan.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Target of the measurement.
    pub target: Target,
    /// Platform of the measurement.
    pub environment: Environment,
    /// Records of finished steps, by index in the plan, ascending.
    pub records: Vec<(usize, Record)>,
    /// True if it was stopped before the plan was done.
    pub interrupted: bool,
    /// Steps that need not be carried out, since the rounds before them were steady.
    pub spared: usize,
}

impl Outcome {
    /// The first of several repeats, whose measurements get the spread over all that were not cut
    /// short.
    ///
    /// # Panics
    /// Panics if there are none.
    pub fn first_with_spread(outcomes: Vec<Self>) -> Self {
        let mut outcomes = outcomes.into_iter();
        let mut first = outcomes.next().expect("a run has at least one plan");
        let others: Vec<Self> = outcomes.filter(|it| !it.interrupted).collect();
        for (index, record) in &mut first.records {
            let step = &mut record.step;
            if step.kind != StepKind::Measure {
                continue;
            }
            let same = others.iter().flat_map(|it| &it.records).filter(|(other, _)| other == index);
            let all =
                step.summary.iter().chain(same.filter_map(|(_, it)| it.step.summary.as_ref()));
            step.spread = Spread::over(&all.collect::<Vec<&Summary>>(), step.spread);
        }
        first
    }

    /// The result of carrying out `plan`, named `id`, begun at `started_at`.
    pub fn into_run(self, plan: &Plan, id: String, started_at: String) -> Run {
        let Self { target, environment, records, interrupted, spared } = self;
        let planned = plan.steps.len() - spared;
        let mut warnings = Vec::new();
        if interrupted {
            warnings.push(cut_short(records.len(), planned));
        }
        let mut steps = Vec::with_capacity(records.len());
        for (_, record) in records {
            warnings.extend(record.warnings);
            steps.push(record.step);
        }
        warnings.extend(unsettled(&steps, &target));
        warnings.extend(by_fills_alone(&steps, &target));
        match &environment.imported_from {
            Some(program) => warnings.push(unknown_preparation(program)),
            None if !target.kind.is_model() => warnings.extend(unprepared(&steps)),
            None => {}
        }
        let mut run = Run {
            schema: Run::SCHEMA,
            id,
            started_at,
            floatgate_version: env!("CARGO_PKG_VERSION").into(),
            model_version: target.kind.is_model().then_some(ssd::MODEL_VERSION),
            seed: plan.seed,
            protocol: plan.protocol.clone(),
            protocol_title: plan.protocol_title.clone(),
            target,
            environment,
            steps,
            steps_planned: u32::try_from(planned).unwrap_or(u32::MAX),
            warnings,
            published: Vec::new(),
            published_elsewhere: Vec::new(),
        };
        let scale = time_lapse(&run);
        let short = too_short(&run);
        run.warnings.splice(..0, scale);
        run.warnings.extend(short);
        run
    }
}

/// Figures of a settled drive are those of full scale. How long it takes to settle is not: caches
/// and buffers keep their size, and the work that a drive puts off takes k times the share of the
/// time.
fn time_lapse(run: &Run) -> Option<Warning> {
    let k = run.target.time_lapse;
    let begins = format!("simulated at 1/{k} scale (time lapse {k}): ");
    let tails = format!(
        "high percentiles and maxima come from 1/{k} of the requests, and a pause of the drive \
         takes a larger share of an interval{}",
        growing(run)
    );
    let loads = || {
        let kinds = [StepKind::Precondition, StepKind::Measure];
        run.steps.iter().filter(move |step| kinds.contains(&step.kind) && writes(step))
    };
    let unsettled = loads().filter(|step| run.is_settled(step) != Some(true)).count();
    let (text, remedy) = if unsettled == 0 {
        let figures = "IOPS, write amplification and mean latency are those of full scale";
        let figures = if loads().any(|step| step.kind == StepKind::Precondition) {
            format!(
                "in the last five rounds of a preconditioning, {figures}; a measurement after it \
                 lasts 1/{k} of its time and can differ"
            )
        } else {
            figures.to_owned()
        };
        (
            format!("{begins}{figures}; {tails}"),
            "--full-scale simulates the whole drive for the \
         whole time",
        )
    } else {
        let all = loads().count();
        let text = format!(
            "{begins}{unsettled} of {all} write loads were measured before steady state. Their \
             IOPS, write amplification and latency depend on the scale, because caches, buffers \
             and deferred work do not shrink with the drive and take a larger share of the time; \
             {tails}"
        );
        (
            text,
            "use a longer load, preconditioning or a smaller --time-lapse; --full-scale simulates \
             the whole drive for the whole time",
        )
    };
    let (kind, step) = (WarningKind::Scale, String::new());
    (k > 1).then(|| Warning { kind, step, text, remedy: remedy.into() })
}

/// Measurements under the load of their preconditioning whose rate is not that of its last five
/// rounds: in time lapse they end before the drive relocates as it did then.
fn too_short(run: &Run) -> Vec<Warning> {
    let warning = |step: &Step| {
        let is_before = |it: &&Step| {
            let of = |it: &Step| (it.threads, it.queue_per_thread);
            it.kind == StepKind::Precondition
                && (&it.suite, &it.workload, of(it)) == (&step.suite, &step.workload, of(step))
        };
        let settled = run.steps.iter().find(is_before)?.settled.as_ref()?.iops;
        let iops = step.summary.as_ref()?.iops;
        let is_off = (iops - settled).abs() > SETTLED_OFF_MAX * settled;
        (is_off && run.is_settled(step) == Some(true)).then(|| Warning {
            kind: WarningKind::Environment,
            step: step.id.clone(),
            text: format!(
                "{iops:.0} IOPS, but {settled:.0} in the last five rounds of its preconditioning \
                 under the same load: the measurement was too short on the drive's own clock to \
                 show its relocation"
            ),
            remedy: "use a smaller --time-lapse".into(),
        })
    };
    let measures = run.steps.iter().filter(|it| run.target.time_lapse > 1 && it.is_primary());
    measures.filter_map(warning).collect()
}

/// Effect of time lapse on requests that were due at a rate beyond that which the drive reached:
/// they wait for longer and longer, as long as the load lasts. Empty without such a load.
fn growing(run: &Run) -> String {
    let is_beyond = |step: &Step| step.rate.as_ref().is_some_and(|rate| rate.limit.is_some());
    if !run.steps.iter().any(is_beyond) {
        return String::new();
    }
    let k = run.target.time_lapse;
    format!(
        "; response times at rates that were not reached grow for as long as the load lasts, and \
         are about 1/{k} of those at full scale"
    )
}

/// Rounds of a suite that did not reach steady state.
fn unsettled(steps: &[Step], target: &Target) -> Vec<Warning> {
    let suites = steps.chunk_by(|a, b| a.suite == b.suite);
    let warning = |suite: &[Step]| {
        let mut in_rounds = suite.iter().filter(|step| step.round.is_some());
        let steady = Steady::of_rounds(in_rounds.clone(), target)?;
        let text = match steady.evidence {
            Some(SteadyEvidence::TooLittleWritten) => format!(
                "the five rounds up to round {} met the limits of the steady-state rule, but too \
                 little had been written by then: a burst, not steady state",
                steady.rounds
            ),
            _ => format!("steady state not achieved in {} rounds", steady.rounds),
        };
        (!steady.achieved).then(|| Warning {
            kind: WarningKind::NotSteady,
            step: in_rounds.next_back().map_or_else(String::new, |step| step.id.clone()),
            text,
            remedy: "use more or longer rounds; five rounds are reported anyway".into(),
        })
    };
    suites.filter_map(warning).collect()
}

/// Rounds of random writes that reached steady state on less than they address, after two fills: so
/// the specification judges them, and over-provisioning that the fills left unused keeps a rate
/// high, and steady, for a while.
fn by_fills_alone(steps: &[Step], target: &Target) -> Vec<Warning> {
    let suites = steps.chunk_by(|a, b| a.suite == b.suite);
    let warning = |suite: &[Step]| {
        let in_rounds: Vec<&Step> = suite.iter().filter(|step| step.round.is_some()).collect();
        let steady = Steady::of_rounds(in_rounds.iter().copied(), target)?;
        let share = results::rounds::written_share(&in_rounds, steady.rounds)?;
        let is_told = steady.evidence == Some(SteadyEvidence::Written) && share < 1.0;
        (steady.achieved && is_told).then(|| Warning {
            kind: WarningKind::NotPreconditioned,
            step: in_rounds.last().map_or_else(String::new, |step| step.id.clone()),
            text: format!(
                "the rounds were in steady state as the specification judges it, after the drive \
                 was written twice over in order; they themselves wrote {:.1} % of what they \
                 address, and the rate may still fall once unused over-provisioning is gone",
                share * 100.0
            ),
            remedy: "for the rate under lasting random writes use the protocol enterprise".into(),
        })
    };
    suites.filter_map(warning).collect()
}

/// Suites of a real drive that measured writes without a preconditioning. Of a model its protocol
/// asks for such figures; those of a real drive are taken for what the drive sustains.
fn unprepared(steps: &[Step]) -> Vec<Warning> {
    let suites = steps.chunk_by(|a, b| a.suite == b.suite);
    let warning = |suite: &[Step]| {
        let first = suite.iter().find(|step| step.is_primary() && writes(step))?;
        if suite.iter().any(|step| step.round.is_some()) {
            return None;
        }
        if suite.iter().any(|step| step.kind == StepKind::Precondition) {
            return None;
        }
        let text = "writes were measured without a preconditioning: burst rates, not steady state";
        Some(Warning {
            kind: WarningKind::NotPreconditioned,
            step: first.id.clone(),
            text: text.into(),
            remedy: "precondition until steady state, as the protocol enterprise does".into(),
        })
    };
    suites.filter_map(warning).collect()
}

/// Warning about the figures of another program, which tell nothing of the time before.
fn unknown_preparation(program: &str) -> Warning {
    Warning {
        kind: WarningKind::NotPreconditioned,
        step: String::new(),
        text: format!(
            "imported from {program}, whose report does not say how the drive was prepared: \
             whether what was read had been written, and whether writes had reached steady state, \
             is unknown"
        ),
        remedy: "measure with `floatgate review` for figures whose preparation is known".into(),
    }
}

fn writes(step: &Step) -> bool {
    let writes = |it: &Summary| it.write.count > 0 || it.iops_write > 0.0;
    step.summary.as_ref().is_some_and(writes)
}

fn cut_short(done: usize, planned: usize) -> Warning {
    Warning {
        kind: WarningKind::Interrupted,
        step: String::new(),
        text: format!("stopped after {done} of {planned} steps"),
        remedy: "`floatgate review --resume` continues the run".into(),
    }
}

#[cfg(test)]
mod tests;
