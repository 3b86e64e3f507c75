//! Values that a run measured for published figures.

use super::Metric;
use crate::{Run, Sample, Step, StepKind, Summary};

/// Share of the preconditioning, from its start, in which a burst is looked for.
const BURST_PART: f64 = 0.1;
/// Intervals of that part that reach this share of its best one belong to the burst.
const BURST_SHARE: f64 = 0.8;

/// Location in a run of the value of a figure: metric, steps and part.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Metric to read.
    pub metric: Metric,
    /// Names of the steps that it is read from, at least one.
    pub steps: Vec<String>,
    /// Part of the steps.
    pub part: Part,
    /// Reduction of the values of several loads.
    pub over: Over,
    /// Bytes of an `MB`.
    pub mb_bytes: u32,
}

/// A part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its beginning on a purged drive, see [`burst`]; of rates and average latencies the best
    /// interval of it. Reviews state the peak of the curve ("up to"), or where it starts, and a
    /// mixed load leaves the peak at once: its reads first find nothing written, then data.
    Burst,
    /// Its last steady-state window.
    Settled,
    /// All of it.
    Whole,
}

/// Reduction of the values of several loads to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The median; of a maximum the largest.
    Range,
    /// The highest rate, the lowest latency.
    Best,
}

/// True if `metric` is a rate or an average latency; else it is a standard deviation, a maximum or
/// a percentile.
pub fn is_typical(metric: &str) -> bool {
    matches!(metric, "iops" | "mb_s" | "avg_latency_ms")
}

/// True if the value `modelled` of `metric` comes from the stalls that a model's file lists for its
/// host, of which the longest lasts `stall_ms_max`: a maximum or a percentile, if a stall lasts at
/// least half as long; a standard deviation, if there is any stall. Rates and averages come from
/// none.
pub fn is_from_listed_stalls(metric: &str, modelled: f64, stall_ms_max: Option<f64>) -> bool {
    if is_typical(metric) {
        return false;
    }
    let is_deviation = metric.starts_with("stdev");
    stall_ms_max.is_some_and(|longest| is_deviation || longest >= modelled / 2.0)
}

/// The intervals in which a purged drive still wrote at full speed.
///
/// Those of the first tenth of the preconditioning that reach 80 % of the IOPS of the best one
/// there: before the cliff, wherever in that tenth it lies, and without a slow first interval.
/// Empty where the step does not follow a purge of its suite.
pub fn burst<'a>(run: &'a Run, step: &Step) -> Vec<&'a Sample> {
    let Some(index) = run.steps.iter().position(|other| other.id == step.id) else {
        return Vec::new();
    };
    let purged = run.steps[..index]
        .last()
        .is_some_and(|before| before.kind == StepKind::Purge && before.suite == step.suite);
    if !purged {
        return Vec::new();
    }
    let samples = &run.steps[index].samples;
    let part = &samples[..part_of(samples.len(), BURST_PART)];
    let best = part.iter().map(|sample| sample.summary.iops).fold(0.0, f64::max);
    part.iter().filter(|sample| sample.summary.iops >= best * BURST_SHARE).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `count`")]
fn part_of(count: usize, share: f64) -> usize {
    (count as f64 * share).ceil() as usize
}

impl Reading {
    /// Its value in `run`; absent where the run lacks one of the steps, or nothing was completed,
    /// and of a maximum where the load was sampled.
    pub fn of(&self, run: &Run) -> Option<f64> {
        let values: Option<Vec<f64>> =
            self.steps.iter().map(|id| self.of_step(run, run.step(id)?)).collect();
        let values = values?;
        match self.over {
            Over::Range => self.metric.over_range(values),
            Over::Best => self.metric.best(values),
        }
    }

    fn of_step(&self, run: &Run, step: &Step) -> Option<f64> {
        if self.metric == Metric::MaxLatency && step.sampling_note().is_some() {
            return None;
        }
        let of = |summary: &Summary| self.metric.of(summary, self.mb_bytes);
        match self.part {
            Part::Burst => {
                let samples = burst(run, step);
                let values = samples.into_iter().filter_map(|it| of(&it.summary)).collect();
                match self.metric {
                    Metric::Iops | Metric::Throughput | Metric::AvgLatency => {
                        self.metric.best(values)
                    }
                    _ => self.metric.over_range(values),
                }
            }
            Part::Settled => of(step.settled.as_ref()?),
            Part::Whole => of(step.summary.as_ref()?),
        }
    }
}

/// Ratios of measured to published that are in tolerance, from and to.
///
/// Rates within 15 %. Average latencies within 20 %: they are rates seen through Little's law, but
/// printed with two or three figures. Deviations, maxima and percentiles within a factor of two: a
/// maximum is one request among millions, and reviews printed no deviation's definition.
pub fn tolerance(metric: &str) -> (f64, f64) {
    match metric {
        "iops" | "mb_s" => (0.85, 1.15),
        "avg_latency_ms" => (0.8, 1.2),
        _ => (0.5, 2.0),
    }
}

/// Mode or host of a figure that is about all of them, or does not state one.
pub const ANY: &str = "any";
