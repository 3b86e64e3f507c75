//! Lengths of preconditionings, of their samples, and of the rounds that are judged.

use results::StepKind;
use ssd::DriveSpec;

use super::work::{RELOCATED, written_over_s};
use super::{Plan, PlannedStep};
use crate::{Error, Kind};

/// Longest preconditioning of a model that is too large to be written over in the time of the
/// protocol: ten days, in seconds.
const LARGE_MODEL_MAX_S: f64 = 240.0 * 3600.0;

impl Plan {
    /// This plan with preconditionings of `span_s` seconds each, however long the protocol, the
    /// drive or the steady state would have them.
    ///
    /// # Errors
    /// Fails if it preconditions nothing.
    pub fn with_precondition(mut self, span_s: f64) -> Result<Self, Error> {
        if let Some(published) = &mut self.published {
            published.precondition_by_drive = false;
        }
        let steps = self.steps.iter_mut();
        let mut steps = steps.filter(|step| step.kind == StepKind::Precondition).peekable();
        if steps.peek().is_none() {
            let text = format!("protocol {} has no preconditioning", self.protocol);
            return Err(Error::new(Kind::Input, text).hint("leave out --precondition"));
        }
        for step in steps {
            (step.duration_s, step.real) = (span_s, None);
            (step.interval_s, step.round_s) = (interval_s(span_s), round_s(span_s));
        }
        Ok(self)
    }
}

/// `step` on the model of `spec`: as long as the protocol has it, unless it is a preconditioning
/// that goes on until steady state on real drives and in which the drive, purged before, cannot
/// write what it addresses once.
///
/// Such a drive takes so many times as long as it takes to write that over while it relocates, with
/// intervals and rounds that are longer by as much: over a window of hours the rate of a drive of
/// 61 TB hardly moves, though it falls to half in the days to come.
pub(super) fn of_model(spec: &DriveSpec, step: PlannedStep) -> PlannedStep {
    let Some(real) = step.real else { return step };
    let step = PlannedStep { real: None, ..step };
    let protocol_s = step.duration_s.max(real.duration_s_min as f64);
    if !spec.is_nand() || written_over_s(spec, &step, 0.0) <= protocol_s {
        return step;
    }
    let times_max = (LARGE_MODEL_MAX_S / step.duration_s).floor().max(1.0);
    let times = (written_over_s(spec, &step, RELOCATED) / step.duration_s).ceil();
    let times = times.clamp(1.0, times_max);
    PlannedStep {
        duration_s: step.duration_s * times,
        interval_s: step.interval_s * times,
        round_s: step.round_s * times,
        large_model_max_s: Some(LARGE_MODEL_MAX_S),
        ..step
    }
}

/// Samples of at least a second, a few hundred at most; shorter loads are one sample.
pub(super) fn interval_s(duration_s: f64) -> f64 {
    (duration_s / 300.0).ceil().max(1.0).min(duration_s)
}

/// Rounds of a minute, or of a twelfth of a longer load: whole intervals, and at least five of them
/// where that is possible.
///
/// The window of five is then two fifths of the load, as that of six hours with rounds of half an
/// hour. Over the five minutes that end an hour the rate of a large drive hardly moves, though it
/// falls to a third in the hours to come.
pub(super) fn round_s(duration_s: f64) -> f64 {
    let interval_s = interval_s(duration_s);
    let round_s = (duration_s / 12.0).max(60.0).min(duration_s / 5.0);
    (round_s / interval_s).floor().max(1.0) * interval_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    #[test]
    fn a_model_too_large_for_the_time_is_filled_and_preconditioned_until_steady() {
        let spec = ssd::catalogue::find("solidigm-d5-p5336-61440").unwrap();
        let large = plan("enterprise").for_drive(&spec);
        for range in large.suites() {
            let suite = &large.steps[range];
            let kinds: Vec<StepKind> = suite.iter().take(3).map(|step| step.kind).collect();
            assert_eq!(kinds, [StepKind::Purge, StepKind::Fill, StepKind::Precondition]);
            let times = suite[2].duration_s / 21_600.0;
            assert!(times > 1.0 && times.fract() == 0.0, "{times}");
            assert!((suite[2].round_s - times * 1800.0).abs() < 1e-9);
            assert_eq!(suite[2].large_model_max_s, Some(864_000.0));
        }
        assert_eq!(large.clone().for_drive(&spec), large, "once is enough");
    }

    #[test]
    fn only_drives_too_large_for_the_time_are_not_written_over_by_preconditioning() {
        let is_large = |protocol: &str, spec: &DriveSpec| {
            let steps = plan(protocol).for_drive(spec).steps;
            steps.iter().any(|step| step.large_model_max_s.is_some())
        };
        let large = |protocol: &str| -> Vec<String> {
            let drives = ssd::catalogue::drives().into_iter();
            drives.filter(|spec| is_large(protocol, spec)).map(|spec| spec.name).collect()
        };
        let [larger, large_one] = ["solidigm-d5-p5336-122880", "solidigm-d5-p5336-61440"];
        assert_eq!(large("enterprise"), ["generic-qlc-gen4", larger, large_one]);
        assert_eq!(large("enterprise-2021"), [larger], "it addresses a fifth");
        assert_eq!(large("quick"), [""; 0], "a first look stays one");
    }

    #[test]
    fn what_is_asked_for_goes_before_the_time_of_a_reviewer_and_of_a_real_drive() {
        let of = |plan: &Plan| -> Vec<(f64, f64, bool)> {
            let steps = plan.steps.iter().filter(|step| step.kind == StepKind::Precondition);
            let is_open =
                |step: &PlannedStep| step.real.is_some() || step.large_model_max_s.is_some();
            steps.map(|step| (step.duration_s, step.round_s, is_open(step))).collect()
        };
        let asked = plan("enterprise").with_precondition(7200.0).unwrap();
        for drive in ["flashmax-ii", "solidigm-d5-p5336-61440"] {
            let spec = ssd::catalogue::find(drive).unwrap();
            assert_eq!(of(&asked.clone().for_drive(&spec)), [(7200.0, 600.0, false); 4]);
        }
        assert_eq!(of(&asked.for_real(false)), [(7200.0, 600.0, false); 4]);
        let refused = plan("iometer").with_precondition(7200.0).unwrap_err().to_string();
        assert_eq!(refused, "protocol iometer has no preconditioning");
    }
}
