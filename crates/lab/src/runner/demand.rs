//! Bytes written to a drive before a step, and bytes that the step has to write.

use results::steady::Demand;
use results::{Summary, Target, Written};

use super::record::Record;
use crate::plan::PlannedStep;

/// Demand of `step`, the one at `index` of its plan: the writes it finds, and the capacity it has
/// to write before it can have settled the drive. `records` are those of its suite, in any order.
pub(super) fn of(
    (index, step): (usize, &PlannedStep),
    records: &[(usize, Record)],
    target: &Target,
) -> Demand {
    let before = records.iter().filter(|(at, _)| *at < index).max_by_key(|(at, _)| *at);
    let written = before.and_then(|(_, record)| record.step.written);
    let user_bytes = user_bytes(target);
    let footprint = step.workload.as_ref().map_or(100.0, |workload| workload.footprint_percent);
    Demand {
        before_bytes: written.map_or(0.0, |written| written.since_purge_bytes as f64),
        addressed_bytes: user_bytes * footprint / 100.0,
        user_bytes,
        raw_bytes: target.raw_capacity_bytes.map(|bytes| bytes as f64),
        time_lapse: f64::from(target.time_lapse),
    }
}

/// Capacity of all devices: that of a modelled group is one.
pub(super) fn user_bytes(target: &Target) -> f64 {
    let devices = if target.kind.has_capacity_of_each_device() { target.devices } else { 1 };
    target.user_capacity_bytes as f64 * f64::from(devices)
}

/// Bytes written to the drive after `step`, whose ramp is taken to have written as fast.
pub(super) fn written(demand: &Demand, step: &PlannedStep, summary: Option<&Summary>) -> Written {
    let bytes = summary.map_or(0.0, Summary::written_bytes) * demand.time_lapse;
    let ramp = if step.duration_s > 0.0 { step.ramp_s / step.duration_s } else { 0.0 };
    demand.written(bytes, bytes * ramp)
}

/// Bytes written to the drive after a fill.
pub(super) fn filled(demand: &Demand, step: &PlannedStep) -> Written {
    let passes = f64::from(step.fill_passes.max(1));
    demand.written(demand.user_bytes * passes, 0.0)
}
