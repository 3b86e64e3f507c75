//! Bytes written to a drive before a step, and bytes that the step has to write.

use results::steady::WriteRequirement;
use results::{Summary, Target, WrittenAmount};

use super::record::Record;
use crate::plan::PlannedStep;

/// Writes required of `step`, the one at `index` of its plan: the writes it finds, and the capacity
/// it has to write before it can have settled the drive. `records` are those of its suite, in any
/// order.
pub(super) fn of(
    (index, step): (usize, &PlannedStep),
    records: &[(usize, Record)],
    target: &Target,
) -> WriteRequirement {
    let before = records.iter().filter(|(at, _)| *at < index).max_by_key(|(at, _)| *at);
    let written = before.and_then(|(_, record)| record.step.written);
    let user_bytes = target.user_capacity_all_bytes() as f64;
    let footprint = step.workload.as_ref().map_or(100.0, |workload| workload.footprint_percent);
    WriteRequirement {
        before_bytes: written.map_or(0.0, |written| written.since_purge_bytes as f64),
        addressed_bytes: user_bytes * footprint / 100.0,
        user_bytes,
        raw_bytes: target.raw_capacity_bytes.map(|bytes| bytes as f64),
        time_lapse: f64::from(target.time_lapse),
    }
}

/// Bytes written to the drive after `step`, whose ramp is taken to have written as fast.
pub(super) fn written(
    required: &WriteRequirement,
    step: &PlannedStep,
    summary: Option<&Summary>,
) -> WrittenAmount {
    let bytes = summary.map_or(0.0, Summary::written_bytes) * required.time_lapse;
    let ramp = if step.duration_s > 0.0 { step.ramp_s / step.duration_s } else { 0.0 };
    required.written(bytes, bytes * ramp)
}

/// Bytes written to the drive after a fill.
pub(super) fn filled(required: &WriteRequirement, step: &PlannedStep) -> WrittenAmount {
    let passes = f64::from(step.fill_passes.max(1));
    required.written(required.user_bytes * passes, 0.0)
}

#[cfg(test)]
mod tests {
    use results::TargetKind;

    use super::*;
    use crate::plan::Plan;

    fn target(kind: TargetKind, devices: u32) -> Target {
        Target {
            user_capacity_bytes: 1_000_000,
            raw_capacity_bytes: Some(1_250_000),
            time_lapse: 4,
            devices,
            ..Target::of_kind(kind)
        }
    }

    fn steps() -> Vec<PlannedStep> {
        let protocol = workload::catalogue::find_protocol("enterprise").unwrap();
        Plan::new(&protocol, &workload::catalogue::workloads(), 1).unwrap().steps
    }

    #[test]
    fn capacity_is_that_of_all_devices_of_a_real_group() {
        assert!(target(TargetKind::BlockDevice, 8).user_capacity_all_bytes() == 8_000_000);
        assert!(target(TargetKind::Model, 8).user_capacity_all_bytes() == 1_000_000, "one drive");
    }

    #[test]
    fn a_load_addresses_its_footprint() {
        let target = target(TargetKind::Model, 1);
        let mut step = steps().into_iter().find(|it| it.workload.is_some()).unwrap();
        step.workload.as_mut().unwrap().footprint_percent = 25.0;
        let required = of((1, &step), &[], &target);
        assert!((required.addressed_bytes - 250_000.0).abs() < 1e-9);
        assert!((required.user_bytes - 1e6).abs() < 1e-9);
        assert_eq!(required.raw_bytes, Some(1_250_000.0));
        assert!(required.before_bytes.abs() < 1e-9, "nothing came before");
    }

    #[test]
    fn the_latest_step_before_says_what_was_written() {
        let (target, steps) = (target(TargetKind::Model, 1), steps());
        let record = |index: usize, bytes: u64| {
            let written = WrittenAmount {
                since_purge_bytes: bytes,
                since_purge_share: 0.0,
                addressed_share: 0.0,
            };
            (index, Record::unmeasured(&steps[index], String::new(), written))
        };
        let records = [record(2, 700), record(0, 0), record(1, 500)];
        let before = |index: usize| of((index, &steps[3]), &records, &target).before_bytes;
        assert!((before(3) - 700.0).abs() < 1e-9);
        assert!((before(2) - 500.0).abs() < 1e-9, "not the step itself, nor one after it");
        assert!(before(0).abs() < 1e-9);
    }

    #[test]
    fn the_ramp_is_taken_to_have_written_as_fast_and_time_lapse_is_made_whole() {
        let target = target(TargetKind::Model, 1);
        let mut step = steps().into_iter().find(|it| it.workload.is_some()).unwrap();
        (step.ramp_s, step.duration_s) = (10.0, 40.0);
        let required = of((0, &step), &[], &target);
        let summary = Summary { span_s: 40.0, throughput_write_mb_s: 0.0025, ..Summary::default() };
        let written = written(&required, &step, Some(&summary));
        assert_eq!(written.since_purge_bytes, 500_000, "four times 100,000, and a quarter");
        assert!((written.since_purge_share - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_load_without_figures_wrote_nothing() {
        let target = target(TargetKind::Model, 1);
        let step = steps().into_iter().find(|it| it.workload.is_some()).unwrap();
        let required = of((0, &step), &[], &target);
        assert_eq!(written(&required, &step, None).since_purge_bytes, 0);
    }

    #[test]
    fn a_fill_writes_everything_as_often_as_it_passes() {
        let target = target(TargetKind::BlockDevice, 2);
        let mut step = steps().remove(0);
        let required = of((0, &step), &[], &target);
        assert!((filled(&required, &step).since_purge_share - 1.0).abs() < 1e-9, "once at least");
        step.fill_passes = 2;
        assert_eq!(filled(&required, &step).since_purge_bytes, 4_000_000);
    }
}
