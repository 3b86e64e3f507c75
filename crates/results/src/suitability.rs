//! Suitability of a drive for kinds of work, as numbers judged by stated rules.
//!
//! | rule | number | limit |
//! |---|---|---|
//! | mostly reads | 4K random reads ÷ writes | ≥ 2 |
//! | falls | burst ÷ steady-state 4K random writes | ≥ 1.5 |
//! | keeps | burst ÷ steady-state 4K random writes | ≤ 1.1 |
//! | slow tail | latency of 99.9 % of the writes ÷ their average | ≥ 3 |
//!
//! The limits are this project's. Nothing is judged of a drive that was not in steady state.

use crate::baseline::{Headline, is_comparable, place};
use crate::published::burst;
use crate::{Run, Step, StepKind, Written};

/// Smallest ratio of reads to writes at which a drive is for work that mostly reads.
pub const READS_MIN: f64 = 2.0;
/// Smallest ratio of burst to settled writes at which a drive is said to fall.
pub const FALL_MIN: f64 = 1.5;
/// Largest ratio of burst to settled writes at which a drive keeps its rate.
pub const KEEP_MAX: f64 = 1.1;
/// Smallest ratio of the 99.9th percentile to the average at which the tail is said to be slow.
pub const TAIL_MIN: f64 = 3.0;

/// The numbers of one run that say what its drive is for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Suitability {
    /// 4K random writes in each second.
    pub write_iops: Option<f64>,
    /// 4K random reads in each second.
    pub read_iops: Option<f64>,
    /// 8K random requests in each second, 70 % of them reads.
    pub mixed_iops: Option<f64>,
    /// 4K random writes in each second of the purged drive, where these fell.
    pub burst_iops: Option<f64>,
    /// Latency that 99.9 % of the 4K random writes do not exceed, in nanoseconds.
    pub write_latency_ns_p999: Option<f64>,
    /// Average latency of the 4K random writes, in nanoseconds.
    pub write_latency_ns_avg: Option<f64>,
    /// True of a model: its figures are simulated, not measured.
    pub is_model: bool,
    /// True if the drive was in steady state under every suite that was read here.
    pub is_settled: bool,
    /// Amount written to the drive by the end of the writes, where that was kept.
    pub written: Option<Written>,
    /// Place by 4K random writes among this drive and the others of the baseline table, from 1, and
    /// how many these are together.
    pub write_place: Option<(usize, usize)>,
}

impl Suitability {
    /// Reads the numbers of `run`.
    pub fn of(run: &Run) -> Self {
        let step = |headline: Headline| headline.step(run);
        let value =
            |headline: Headline| Some(headline.of_summary(step(headline)?.summary.as_ref()?));
        let write = step(Headline::Write);
        let write_iops = value(Headline::Write);
        let steps = Headline::ALL.into_iter().filter_map(step);
        let settled: Vec<bool> = steps.map(|step| run.is_settled(step).unwrap_or(false)).collect();
        Self {
            write_iops,
            read_iops: value(Headline::Read),
            mixed_iops: value(Headline::Mixed),
            burst_iops: write.and_then(|write| burst_iops(run, write)),
            write_latency_ns_p999: value(Headline::WriteTail),
            write_latency_ns_avg: write
                .and_then(|write| Some(write.summary.as_ref()?.latency.latency_ns_avg)),
            is_model: run.target.kind.is_model(),
            is_settled: !settled.is_empty() && settled.into_iter().all(|settled| settled),
            written: write.and_then(|write| write.written),
            write_place: write
                .filter(|write| is_comparable(run, write))
                .and(write_iops)
                .map(|iops| place(Headline::Write, iops, &run.target.name)),
        }
    }

    /// Reads over writes, where that makes the drive one for reading.
    pub fn mostly_reads(&self) -> Option<f64> {
        self.ratio(self.read_iops, self.write_iops).filter(|ratio| *ratio >= READS_MIN)
    }

    /// Burst over settled writes, where the drive falls.
    pub fn falls(&self) -> Option<f64> {
        self.ratio(self.burst_iops, self.write_iops).filter(|ratio| *ratio >= FALL_MIN)
    }

    /// Burst over settled writes, where the drive keeps its rate.
    pub fn keeps(&self) -> Option<f64> {
        self.ratio(self.burst_iops, self.write_iops).filter(|ratio| *ratio <= KEEP_MAX)
    }

    /// The 99.9th percentile of the writes over their average, where the tail is slow.
    pub fn slow_tail(&self) -> Option<f64> {
        self.ratio(self.write_latency_ns_p999, self.write_latency_ns_avg)
            .filter(|ratio| *ratio >= TAIL_MIN)
    }

    /// `a` over `b` of a drive that had settled.
    fn ratio(&self, a: Option<f64>, b: Option<f64>) -> Option<f64> {
        if self.is_settled { crate::compare::ratio(a?, b?) } else { None }
    }
}

/// IOPS of the burst of the preconditioning before `step`; absent where it was another load.
fn burst_iops(run: &Run, step: &Step) -> Option<f64> {
    let precondition = run.steps.iter().find(|other| {
        other.kind == StepKind::Precondition
            && other.suite == step.suite
            && other.workload == step.workload
    })?;
    let burst = burst(run, precondition);
    let sum: f64 = burst.iter().map(|sample| sample.summary.iops).sum();
    (!burst.is_empty()).then(|| sum / burst.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_settled_drive_is_judged_by_its_ratios() {
        let it = Suitability {
            write_iops: Some(40_000.0),
            read_iops: Some(140_000.0),
            burst_iops: Some(257_000.0),
            write_latency_ns_p999: Some(20e6),
            write_latency_ns_avg: Some(6e6),
            is_settled: true,
            ..Suitability::default()
        };
        assert_eq!(it.mostly_reads(), Some(3.5));
        assert_eq!(it.falls(), Some(6.425));
        assert_eq!((it.keeps(), it.slow_tail()), (None, Some(20.0 / 6.0)));
        let burst = Suitability { is_settled: false, ..it };
        assert_eq!((burst.mostly_reads(), burst.falls(), burst.slow_tail()), (None, None, None));
    }

    #[test]
    fn the_numbers_are_those_of_the_run() {
        let it = Suitability::of(&example::run());
        assert!(it.is_settled);
        assert!(it.write_iops.is_some() && it.read_iops.is_some() && it.mixed_iops.is_some());
        assert!(it.falls().is_some_and(|ratio| ratio > 5.0), "{it:?}");
    }
}
