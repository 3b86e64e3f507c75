//! What became of one plan, and the result that it makes.

use results::{Environment, Run, Target, TargetKind, Warning, WarningKind};

use super::Record;
use crate::plan::Plan;

/// What became of one plan.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was measured.
    pub target: Target,
    /// What it was measured on.
    pub environment: Environment,
    /// What was finished, by index in the plan, ascending.
    pub records: Vec<(usize, Record)>,
    /// Whether it was stopped before the plan was done.
    pub interrupted: bool,
}

impl Outcome {
    /// The result of carrying out `plan`, named `id`, begun at `started_at`.
    pub fn into_run(self, plan: &Plan, id: String, started_at: String) -> Run {
        let Self { target, environment, records, interrupted } = self;
        let mut warnings: Vec<Warning> = time_lapse(&target).into_iter().collect();
        if interrupted {
            warnings.push(cut_short(records.len(), plan.steps.len()));
        }
        let mut steps = Vec::with_capacity(records.len());
        for (_, record) in records {
            warnings.extend(record.warnings);
            steps.push(record.step);
        }
        Run {
            schema: Run::SCHEMA,
            id,
            started_at,
            floatgate_version: env!("CARGO_PKG_VERSION").into(),
            model_version: (target.kind == TargetKind::Model).then_some(ssd::MODEL_VERSION),
            seed: plan.seed,
            protocol: plan.protocol.clone(),
            protocol_title: plan.protocol_title.clone(),
            target,
            environment,
            steps,
            steps_planned: u32::try_from(plan.steps.len()).unwrap_or(u32::MAX),
            warnings,
            published: Vec::new(),
        }
    }
}

fn time_lapse(target: &Target) -> Option<Warning> {
    let k = target.time_lapse;
    (k > 1).then(|| Warning {
        kind: WarningKind::Scale,
        step: String::new(),
        text: format!(
            "simulated in time lapse: 1/{k} of the capacity for 1/{k} of the time; rates, write \
             amplification and latencies are those of the whole drive"
        ),
        remedy: "--full-scale simulates all of it".into(),
    })
}

fn cut_short(done: usize, planned: usize) -> Warning {
    Warning {
        kind: WarningKind::Interrupted,
        step: String::new(),
        text: format!("stopped after {done} of {planned} steps"),
        remedy: "`floatgate review --resume` goes on".into(),
    }
}
