//! The steps of a plan as a list: what `plan` prints is what `review` and `run` carry out.

use blockio::{Bytes, Nanos};
use lab::plan::{Plan, PlannedStep};
use lab::results::{StepKind, Target};
use lab::workload::Workload;

use crate::{output, table};

/// Every step: its name, what it does, its load and its length in protocol time.
pub(crate) fn listed(plan: &Plan) -> String {
    let rows: Vec<[String; 4]> = plan.steps.iter().map(row).collect();
    table::columns(&rows)
}

/// Capacity of all devices of a real target.
pub(crate) fn capacity(target: &Target) -> Bytes {
    Bytes(target.user_capacity_bytes.saturating_mul(target.devices.into()))
}

/// Describes what will be done to a real target, of `capacity` if that is known.
pub(crate) fn announce(target: &str, capacity: Bytes, plan: &Plan) {
    let fills: u32 = plan.steps.iter().map(|step| step.fill_passes).sum();
    let length = Nanos::from_secs_f64(plan.duration_s());
    let filled = match fills {
        0 => String::new(),
        _ => format!(" and {} of fills", Bytes(capacity.0.saturating_mul(fills.into()))),
    };
    let reads = |step: &PlannedStep| {
        step.kind == StepKind::Measure && step.workload.as_ref().is_some_and(Workload::only_reads)
    };
    let fate = if plan.steps.iter().all(reads) {
        "read, and nothing is written to it"
    } else {
        "overwritten"
    };
    output::talk(&format!(
        "{target} ({capacity}) is about to be {fate}; {length} of load{filled}:\n{}",
        listed(plan)
    ));
}

fn row(step: &PlannedStep) -> [String; 4] {
    let times = match step.fill_passes {
        0 | 1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    };
    let what = match step.kind {
        StepKind::Purge => "purge".into(),
        StepKind::Fill if step.is_fill_in_order() => {
            format!("write everything {times} with {}", step.workload_name())
        }
        StepKind::Fill => {
            format!("write as much as the capacity {times} with {}", step.workload_name())
        }
        StepKind::Precondition => format!("precondition with {}", step.workload_name()),
        StepKind::Measure => format!("measure {}", step.workload_name()),
        StepKind::Application => format!("replay {}", step.workload_name()),
    };
    let length = match step.kind {
        StepKind::Purge | StepKind::Fill => String::new(),
        _ => Nanos::from_secs_f64(step.length_s()).to_string(),
    };
    let real_max_s = step.real.map(|real| real.duration_s_max as f64);
    let length = match real_max_s.or(step.large_model_max_s) {
        None => length,
        Some(longest_s) => {
            let longest = Nanos::from_secs_f64(longest_s);
            format!("{length}, {longest} at most, until steady")
        }
    };
    [step.id.clone(), what, step.load_name(), length]
}
