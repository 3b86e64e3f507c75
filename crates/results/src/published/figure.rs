//! A published figure beside what a run measured for it.

use serde::{Deserialize, Serialize};

use super::compressible;
use super::reading::{ANY, tolerance};
use crate::{Step, Target};

/// One published figure: a row of `figures.csv` that concerns the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Row name, such as `A084`.
    pub id: String,
    /// Document that it was published in.
    pub document: String,
    /// Format, or `any`.
    pub mode: String,
    /// Host, or `any`.
    pub host: String,
    /// Workload.
    pub workload: String,
    /// Threads as published: empty, `16`, or a range `2-16`.
    pub threads: String,
    /// Outstanding a thread as published.
    pub queue_per_thread: String,
    /// `burst`, `precondition-end`, `steady`, `primary`, `datasheet` or `datasheet-sustained`.
    pub phase: String,
    /// Metric with its unit, such as `iops` or `avg_latency_ms`.
    pub metric: String,
    /// Published value, lower end.
    pub value_low: f64,
    /// Published value, upper end.
    pub value_high: f64,
    /// Value that this run measured for it; absent where the run has no such step.
    pub measured: Option<f64>,
    /// The source's own remark.
    pub note: String,
}

impl Figure {
    /// True if it was published for the format and host of `target`.
    pub fn is_about(&self, target: &Target) -> bool {
        let format = if target.format.is_empty() { "stock" } else { &target.format };
        let mode = self.mode == ANY || self.mode == format || compressible(&self.mode).is_some();
        mode && (self.host == ANY || self.host == target.host)
    }

    /// Ratio of the measured to the published value: 1 within the published range, else the ratio
    /// to its nearest end. Absent where nothing was measured.
    pub fn ratio(&self) -> Option<f64> {
        let measured = self.measured?;
        let nearest = measured.clamp(self.value_low, self.value_high);
        (nearest > 0.0).then(|| measured / nearest)
    }

    /// True if the ratio is within the [`tolerance`] of its metric; absent as the ratio is.
    pub fn is_in_tolerance(&self) -> Option<bool> {
        let (least, most) = tolerance(&self.metric);
        self.ratio().map(|ratio| (least..=most).contains(&ratio))
    }

    /// In what it was measured otherwise than `step`, besides the protocol, in a few words each:
    /// `128 outstanding`, `2:1 compressible`.
    pub fn apart_from(&self, step: &Step) -> Vec<String> {
        let is_stated = |text: &str| !text.is_empty();
        let (threads, queue) = (self.threads.as_str(), self.queue_per_thread.as_str());
        let load = match (is_stated(threads), is_stated(queue)) {
            (false, false) => None,
            (true, true) => {
                let own = (step.threads.to_string(), step.queue_per_thread.to_string());
                let is_own = (threads, queue) == (own.0.as_str(), own.1.as_str());
                (!is_own).then(|| format!("T{threads}Q{queue}"))
            }
            (true, false) => Some(format!("{threads} threads")),
            (false, true) => Some(format!("{queue} outstanding")),
        };
        let percent = compressible(&self.mode).unwrap_or(0.0);
        let data = ((percent - step.compressible_percent).abs() > 0.05).then(|| {
            let ratio = self.mode.strip_prefix("compressed-");
            ratio.map_or_else(|| "not compressible".to_owned(), |it| format!("{it} compressible"))
        });
        load.into_iter().chain(data).collect()
    }
}
