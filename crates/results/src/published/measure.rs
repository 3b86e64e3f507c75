//! What a run measured for a published figure.

use super::Phase;
use crate::{Figure, Run, Sample, Step, StepKind, Summary, Target};

/// Share of the preconditioning, from its start, in which a burst is looked for.
const BURST_PART: f64 = 0.1;
/// Intervals of that part that reach this share of its best one belong to the burst.
const BURST_SHARE: f64 = 0.8;

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

impl Figure {
    /// Whether it was published for this format and this host.
    pub fn is_about(&self, target: &Target) -> bool {
        let format = if target.format.is_empty() { "stock" } else { &target.format };
        (self.mode == ANY || self.mode == format) && (self.host == ANY || self.host == target.host)
    }

    /// What `run` measured for it; absent where the run has no such step, format or host.
    pub fn measure(&self, run: &Run) -> Option<f64> {
        if !self.is_about(&run.target) {
            return None;
        }
        let metric = Metric::named(&self.metric)?;
        let threads = Range::parse(&self.threads)?;
        let queue = Range::parse(&self.queue_per_thread)?;
        if metric != Metric::MaxLatency && !(threads.is_one() && queue.is_one()) {
            return None;
        }
        let steps: Vec<&Step> = run
            .steps
            .iter()
            .filter(|step| step.workload == self.workload)
            .filter(|step| threads.holds(step.threads) && queue.holds(step.queue_per_thread))
            .collect();
        let of = |kind| steps.iter().copied().filter(move |step| step.kind == kind);
        let settled = || largest(of(StepKind::Precondition).map(|step| &step.settled), metric);
        let measured = || largest(of(StepKind::Measure).map(|step| &step.summary), metric);
        match Phase::named(&self.phase)? {
            Phase::Burst => metric.of_burst(&burst(run, of(StepKind::Precondition).next()?)),
            Phase::PreconditionEnd => settled(),
            Phase::Steady => settled().or_else(measured),
            Phase::Primary => measured(),
            Phase::Datasheet => None,
        }
    }

    /// What was measured over what was published: 1 within the published range, else the ratio to
    /// its nearest end. Absent where nothing was measured.
    pub fn ratio(&self) -> Option<f64> {
        let measured = self.measured?;
        let nearest = measured.clamp(self.value_low, self.value_high);
        (nearest > 0.0).then(|| measured / nearest)
    }

    /// Whether the ratio is at most `tolerance` from 1, such as 0.15; absent as the ratio is.
    pub fn is_within(&self, tolerance: f64) -> Option<bool> {
        self.ratio().map(|ratio| (ratio - 1.0).abs() <= tolerance)
    }
}

/// A mode or host that stands for all of them.
const ANY: &str = "any";

/// The metric over steps: of one step its value, of a range of loads the largest.
fn largest<'a>(
    summaries: impl Iterator<Item = &'a Option<Summary>>,
    metric: Metric,
) -> Option<f64> {
    summaries.flatten().filter_map(|summary| metric.of(summary)).reduce(f64::max)
}

/// What a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    Iops,
    Throughput,
    AvgLatency,
    StdevLatency,
    MaxLatency,
}

impl Metric {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "iops" => Some(Self::Iops),
            "mb_s" => Some(Self::Throughput),
            "avg_latency_ms" => Some(Self::AvgLatency),
            "stdev_latency_ms" => Some(Self::StdevLatency),
            "max_latency_ms" => Some(Self::MaxLatency),
            _ => None,
        }
    }

    /// Its value in the unit of its name; absent where nothing was completed.
    fn of(self, summary: &Summary) -> Option<f64> {
        let latency = &summary.latency;
        (latency.count > 0).then(|| match self {
            Self::Iops => summary.iops,
            Self::Throughput => summary.throughput_mb_s(),
            Self::AvgLatency => latency.latency_ns_avg / 1e6,
            Self::StdevLatency => summary.latency_ns_stdev_reviewed() / 1e6,
            Self::MaxLatency => latency.latency_ns_max as f64 / 1e6,
        })
    }

    /// Its value over a burst: the median of the intervals, of the maximum latency the largest.
    fn of_burst(self, samples: &[&Sample]) -> Option<f64> {
        let mut values: Vec<f64> =
            samples.iter().filter_map(|sample| self.of(&sample.summary)).collect();
        values.sort_by(f64::total_cmp);
        match self {
            Self::MaxLatency => values.last().copied(),
            _ => values.get(values.len() / 2).copied(),
        }
    }
}

impl Summary {
    /// Deviation as the reviews chart it: the mean of that of reads and that of writes, in
    /// nanoseconds.
    pub fn latency_ns_stdev_reviewed(&self) -> f64 {
        match (self.read.count, self.write.count) {
            (0, _) => self.write.latency_ns_stdev,
            (_, 0) => self.read.latency_ns_stdev,
            _ => f64::midpoint(self.read.latency_ns_stdev, self.write.latency_ns_stdev),
        }
    }
}

/// Numbers from one to another, as `16` or `2-16`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    low: u16,
    high: u16,
}

impl Range {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        Some(Self { low: low.parse().ok()?, high: high.parse().ok()? })
    }

    pub(super) const fn is_one(self) -> bool {
        self.low == self.high
    }

    const fn holds(self, value: u16) -> bool {
        self.low <= value && value <= self.high
    }
}
