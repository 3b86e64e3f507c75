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
        let mode = self.mode == ANY || self.mode == format || compressible(&self.mode).is_some();
        mode && (self.host == ANY || self.host == target.host)
    }

    /// The loads that it is about; absent where they are not known.
    fn load(&self) -> Option<Loads> {
        Loads::parse(&self.mode, &self.threads, &self.queue_per_thread)
    }

    /// What `run` measured for it; absent where the run has no such step, format or host.
    pub fn measure(&self, run: &Run) -> Option<f64> {
        if !self.is_about(&run.target) {
            return None;
        }
        let metric = Metric::named(&self.metric)?;
        let load = self.load()?;
        if metric != Metric::MaxLatency && !load.is_one() {
            return None;
        }
        let steps: Vec<&Step> = run
            .steps
            .iter()
            .filter(|step| step.workload == self.workload)
            .filter(|step| load.holds(step.threads, step.queue_per_thread))
            .filter(|step| is_of(&self.mode, step.compressible_percent))
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

/// Compressibility in percent where a mode is a property of the data and not a format:
/// `uncompressed`, or a ratio as `compressed-2:1`.
pub fn compressible(mode: &str) -> Option<f64> {
    if mode == "uncompressed" {
        return Some(0.0);
    }
    let (before, after) = mode.strip_prefix("compressed-")?.split_once(':')?;
    let (before, after): (f64, f64) = (before.parse().ok()?, after.parse().ok()?);
    (after > 0.0 && before >= after).then(|| (1.0 - after / before) * 100.0)
}

/// Whether figures of `mode` are about data that compresses by `percent`: by as much as the mode
/// says, or not at all.
pub fn is_of(mode: &str, percent: f64) -> bool {
    (percent - compressible(mode).unwrap_or(0.0)).abs() < 0.05
}

/// Loads that a figure is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loads {
    threads: Range,
    queue: Range,
    /// Whether threads or queue are not stated, since the protocol has one load a workload.
    implied: bool,
}

impl Loads {
    /// As a row states them. Where its mode is a compressibility, what is not stated is the only
    /// load that the protocol has for the workload.
    pub(super) fn parse(mode: &str, threads: &str, queue: &str) -> Option<Self> {
        let implied = compressible(mode).is_some() && (threads.is_empty() || queue.is_empty());
        let range = |text: &str| match text {
            "" if implied => Some(Range { low: 1, high: u16::MAX }),
            text => Range::parse(text),
        };
        Some(Self { threads: range(threads)?, queue: range(queue)?, implied })
    }

    /// Whether they are one load and not a sweep.
    pub(super) const fn is_one(self) -> bool {
        self.implied || (self.threads.is_one() && self.queue.is_one())
    }

    const fn holds(self, threads: u16, queue: u16) -> bool {
        self.threads.holds(threads) && self.queue.holds(queue)
    }
}

/// Numbers from one to another, as `16` or `2-16`.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: u16,
    high: u16,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        Some(Self { low: low.parse().ok()?, high: high.parse().ok()? })
    }

    const fn is_one(self) -> bool {
        self.low == self.high
    }

    const fn holds(self, value: u16) -> bool {
        self.low <= value && value <= self.high
    }
}
