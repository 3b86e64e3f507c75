//! Lengths of preconditionings, of their samples, and of the rounds that are judged.

use results::StepKind;
use workload::RealLength;

use super::{Plan, PlannedStep};

/// Longest preconditioning of a model that is too large to be written over in the time of the
/// protocol: ten days, in seconds.
const LARGE_DRIVE_MAX_S: u64 = 240 * 3600;

impl Plan {
    /// This plan with preconditionings of `span_s` seconds each, however long the protocol, the
    /// drive or the steady state would have them.
    #[must_use]
    pub fn with_precondition(mut self, span_s: f64) -> Self {
        if let Some(published) = &mut self.published {
            published.precondition_by_drive = false;
        }
        for step in self.steps.iter_mut().filter(|step| step.kind == StepKind::Precondition) {
            (step.duration_s, step.real) = (span_s, None);
            let (interval_s, round_s) = (interval_s(span_s), round_s(span_s));
            if step.round_s * 5.0 > span_s {
                (step.interval_s, step.round_s) = (interval_s, round_s);
            }
        }
        self
    }
}

/// Length of the preconditioning `step` of a model that is too large for it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of a protocol"
)]
pub(super) fn until_steady(step: &PlannedStep) -> RealLength {
    let shortest_s = step.duration_s as u64;
    RealLength { duration_s_min: shortest_s, duration_s_max: shortest_s.max(LARGE_DRIVE_MAX_S) }
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
    use workload::catalogue;

    use super::*;

    fn plan(protocol: &str) -> Plan {
        let protocol = catalogue::find_protocol(protocol).unwrap();
        Plan::new(&protocol, &catalogue::workloads(), 1).unwrap()
    }

    #[test]
    fn a_model_too_large_for_the_time_is_filled_and_preconditioned_until_steady() {
        let spec = ssd::catalogue::find("solidigm-d5-p5336-61440").unwrap();
        let large = plan("enterprise").for_drive(&spec);
        for range in large.suites() {
            let suite = &large.steps[range];
            let kinds: Vec<StepKind> = suite.iter().take(3).map(|step| step.kind).collect();
            assert_eq!(kinds, [StepKind::Purge, StepKind::Fill, StepKind::Precondition]);
            let real = suite[2].real.unwrap();
            assert_eq!((real.duration_s_min, real.duration_s_max), (21_600, 864_000));
        }
        let asked = plan("enterprise").with_precondition(3600.0).for_drive(&spec);
        let fixed = asked.steps.iter().filter(|step| step.kind == StepKind::Precondition);
        let bounds: Vec<_> = fixed.map(|step| (step.duration_s, step.round_s, step.real)).collect();
        assert_eq!(bounds, [(3600.0, 300.0, None); 4]);
        assert!(asked.steps.iter().any(|step| step.kind == StepKind::Fill), "it is as large");
    }

    #[test]
    fn what_is_asked_for_goes_before_the_time_of_a_reviewer() {
        let spec = ssd::catalogue::find("flashmax-ii").unwrap();
        let asked = plan("enterprise").with_precondition(7200.0).for_drive(&spec);
        let mut lengths = asked.steps.iter().filter(|step| step.kind == StepKind::Precondition);
        assert!(lengths.all(|step| (step.duration_s - 7200.0).abs() < 1e-9));
        let real = plan("enterprise").with_precondition(7200.0).for_real(false);
        let mut lengths = real.steps.iter().filter(|step| step.kind == StepKind::Precondition);
        assert!(lengths.all(|step| (step.duration_s - 7200.0).abs() < 1e-9 && step.real.is_none()));
    }
}
