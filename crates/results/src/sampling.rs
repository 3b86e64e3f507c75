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
            self.precision * 100.0
        );
        if let (Some(reason), Some(from_s)) = (reason, self.detailed_from_s) {
            text = format!("{text}; in detail from {from_s:.0} s on: {reason}");
        }
        text
    }
}
