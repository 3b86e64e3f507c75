//! Sampling of a load: how much of it was simulated in detail, and how precise its rate is.
//!
//! Requests between windows change the state of a drive and have no latency. What a step states of
//! rates and latencies comes from windows, weighted by the requests that each stands for; what it
//! states of NAND writes is counted over all requests.

use serde::{Deserialize, Serialize};

use crate::ConfidenceInterval;

/// Part of a load that was simulated in detail, and the precision that was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Precision that was asked for: half of the interval of the rate ÷ the rate.
    pub precision: f64,
    /// Reason for which the load, or all of it from `detailed_from_s` on, was simulated in detail;
    /// absent where it was sampled to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed: Option<String>,
    /// Protocol time from which it was simulated in detail, in seconds; absent where that was not
    /// so, or from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_from_s: Option<f64>,
    /// Windows that were measured; 0 where all was simulated in detail.
    pub windows: u64,
    /// Requests that the windows measured.
    pub requests_measured: u64,
    /// Requests that were simulated in detail, measured or not.
    pub requests_detailed: u64,
    /// Requests of the load, its ramp included.
    pub requests: u64,
    /// Whole intervals that no window lies in: their figures are those of the nearest window.
    #[serde(default)]
    pub intervals_unmeasured: u64,
    /// Interval of the rate of the whole load, from the differences of neighbouring windows; absent
    /// where they are too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<ConfidenceInterval>,
    /// Half of the interval of the rate ÷ the rate, of that quarter of the load in which it is
    /// widest; absent where windows are too few to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_reached: Option<f64>,
}

impl Sampling {
    /// A load that is simulated in detail, for that `reason`, though `precision` was asked for.
    pub fn in_detail(precision: f64, reason: impl Into<String>) -> Self {
        Self { precision, detailed: Some(reason.into()), ..Self::default() }
    }

    /// True if a part of the load was not simulated in detail.
    pub const fn is_sampled(&self) -> bool {
        self.windows > 0
    }

    /// Precision that was asked for, in percent.
    pub fn percent(&self) -> f64 {
        percent(self.precision)
    }

    /// Share of its requests that windows measured, 0 to 1; 1 where all was simulated in detail.
    pub fn measured_share(&self) -> f64 {
        if !self.is_sampled() {
            return 1.0;
        }
        (self.requests_measured as f64 / self.requests.max(1) as f64).min(1.0)
    }

    /// Few words beside a maximum, which windows alone saw; absent where all was simulated in
    /// detail.
    pub fn note(&self) -> Option<String> {
        let (percent, windows) = (self.percent(), self.windows);
        self.is_sampled()
            .then(|| format!("sampled to ±{percent} %, maximum of {windows} windows alone"))
    }

    /// The sampling in a sentence.
    pub fn text(&self) -> String {
        let reason = self.detailed.as_ref();
        if !self.is_sampled() {
            let reason = reason.map_or("", |reason| reason);
            return format!("not sampled, simulated in detail: {reason}");
        }
        let share = self.requests_detailed as f64 / (self.requests as f64).max(1.0) * 100.0;
        let reached = self.precision_reached.map_or_else(
            || "too few windows for an interval".to_owned(),
            |it| format!("the rate of each quarter is known to ±{:.2} %", it * 100.0),
        );
        let mut text = format!(
            "sampled: {} windows, {share:.1} % of the requests in detail, {reached} (95 %), \
             ±{} % was asked for",
            self.windows,
            self.percent()
        );
        if let (Some(reason), Some(from_s)) = (reason, self.detailed_from_s) {
            text = format!("{text}; in detail from {from_s:.0} s on: {reason}");
        }
        text
    }
}

/// A precision in percent, without what binary fractions add to it.
pub(crate) fn percent(precision: f64) -> f64 {
    (precision * 1e4).round() / 1e2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bin, example};

    #[test]
    fn what_few_measured_requests_stand_for_has_no_five_nines() {
        let mut run = example::run();
        let bins = [Bin { latency_ns: 1_000_000, count: 4_000_000 }];
        let mut five_nines = |measured: u64| {
            let step = &mut run.steps[2];
            step.sampling = Some(Sampling {
                windows: 40,
                requests_measured: measured,
                requests: 8_000_000,
                ..Sampling::default()
            });
            step.latencies(&bins).five_nines_ns()
        };
        assert_eq!(five_nines(163_840), None, "82 thousand of the writes were measured");
        assert!(five_nines(2_000_000).is_some(), "a million of them");
        run.steps[2].sampling = Some(Sampling::in_detail(0.01, "it is short"));
        assert!(run.steps[2].latencies(&bins).five_nines_ns().is_some());
        let note = run.steps[2].sampling_note();
        assert_eq!(note, None, "its longest request was seen");
    }

    #[test]
    fn a_precision_in_percent_is_as_it_was_asked_for() {
        let sampling = Sampling { precision: 0.07, windows: 41, ..Sampling::default() };
        let note = sampling.note().unwrap();
        assert_eq!(note, "sampled to ±7 %, maximum of 41 windows alone");
    }
}
