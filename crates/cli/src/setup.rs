//! What several commands make of their arguments in the same way.

use std::thread;

use anyhow::Result;
use lab::plan::Plan;
use lab::replay;
use lab::ssd::Surroundings;
use lab::subject::{Choice, find_protocol};

use crate::args::{DataArgs, ModelArgs, PlaceArgs, TraceArgs};

/// Which setups of a target the arguments mean.
pub(crate) fn choice(format: Option<&str>, model: &ModelArgs) -> Choice {
    Choice {
        time_lapse_max: None,
        format: format.map(str::to_owned),
        host: model.host.clone(),
        time_lapse: if model.full_scale { Some(1) } else { model.time_lapse },
        surroundings: Surroundings::default(),
    }
}

/// `choice` where the arguments put it.
pub(crate) fn placed(choice: Choice, place: &PlaceArgs) -> Choice {
    let PlaceArgs { ambient, airflow, slot_power } = *place;
    let surroundings = Surroundings { ambient_c: ambient, airflow_lfm: airflow, slot: slot_power };
    Choice { surroundings, ..choice }
}

/// The plan of the protocol named `protocol`.
pub(crate) fn plan(protocol: &str, seed: u64) -> Result<Plan> {
    let workloads = lab::workload::catalogue::workloads();
    Ok(Plan::new(&find_protocol(protocol)?, &workloads, seed)?)
}

/// `plan` with the trace that was asked for.
pub(crate) fn with_trace(plan: Plan, args: &TraceArgs) -> Result<Plan> {
    let Some(path) = &args.trace else { return Ok(plan) };
    // Read here once, so that a broken one is told before anything is purged.
    let workload = replay::workload_of(&replay::read(path)?);
    let path = path.canonicalize().unwrap_or_else(|_| path.clone());
    Ok(plan.with_trace(&path, &workload)?)
}

/// `plan` with the data that was asked for.
pub(crate) fn with_data(plan: Plan, data: &DataArgs) -> Plan {
    match data.compressible {
        Some(percent) => plan.with_compressible(percent),
        None => plan,
    }
}

/// Simulations at once: as many as were asked for, or as there are processors.
pub(crate) fn jobs(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}
