//! Runs that repeat each other, and how certain a ratio of two such groups is.
//!
//! A ratio of rates is judged on its logarithm: there, twice as fast and half as fast are equally
//! far from one. The interval is Welch's for two samples of unequal variance [welch-1947], at a
//! confidence of 95 %. Where nothing was repeated, the ends of the intervals of single runs are
//! divided by each other, which is wider.

use std::borrow::Borrow;

use serde::Serialize;

use crate::compare::{Comparison, Entry, MEANINGFUL_MIN, interval_mean, is_outcome};
use crate::confidence::{ConfidenceInterval, IntervalKind, student};
use crate::{Run, Spread, StepKind, Summary};

/// A ratio, and the interval in which it lies with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Ratio of the geometric means.
    pub mean: f64,
    /// Its interval; absent where a side was neither repeated nor has intervals of its own.
    pub interval: Option<ConfidenceInterval>,
}

impl Ratio {
    /// The ratio of `above` to `below`; absent where either is empty or holds what is not above 0.
    pub fn of(above: &[f64], below: &[f64]) -> Option<Self> {
        let (above, below) = (Moments::of(above)?, Moments::of(below)?);
        let log = above.mean - below.mean;
        let interval = above.error2().zip(below.error2()).map(|(a, b)| {
            let half = student(freedom((a, above.count), (b, below.count))) * (a + b).sqrt();
            let (low, high) = ((log - half).exp(), (log + half).exp());
            ConfidenceInterval::new(IntervalKind::Repeats, low, high)
        });
        Some(Self { mean: log.exp(), interval })
    }

    /// This ratio, whose interval reaches from the low end `above` over the high end `below` to the
    /// opposite if it has none.
    fn within(self, above: Option<(f64, f64)>, below: Option<(f64, f64)>) -> Self {
        let widest = above.zip(below).filter(|(_, below)| below.0 > 0.0).map(|(above, below)| {
            let (low, high) = (above.0 / below.1, above.1 / below.0);
            ConfidenceInterval::new(IntervalKind::Batches, low, high)
        });
        Self { interval: self.interval.or(widest), ..self }
    }

    /// True if the difference is worth a word: at least [`MEANINGFUL_MIN`] to either side, and told
    /// apart from chance where an interval is known.
    pub fn is_meaningful(&self) -> bool {
        self.mean.max(1.0 / self.mean) >= 1.0 + MEANINGFUL_MIN && self.is_certain().unwrap_or(true)
    }

    /// True if the interval does not include 1, so that the two sides are told apart; absent
    /// without an interval.
    pub fn is_certain(&self) -> Option<bool> {
        self.interval.map(|it| it.low > 1.0 || it.high < 1.0)
    }
}

/// Mean and variance of logarithms.
#[derive(Clone, Copy, Debug)]
struct Moments {
    count: f64,
    mean: f64,
    /// Variance of the sample.
    variance: f64,
}

impl Moments {
    fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite() || *value <= 0.0) {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
        let variance = if count > 1.0 { squares / (count - 1.0) } else { 0.0 };
        Some(Self { count, mean, variance })
    }

    /// Square of the standard error of the mean; absent for a single value.
    fn error2(&self) -> Option<f64> {
        (self.count > 1.0).then(|| self.variance / self.count)
    }
}

/// Degrees of freedom by Welch and Satterthwaite, of two squared errors and counts.
fn freedom((a, count_a): (f64, f64), (b, count_b): (f64, f64)) -> f64 {
    let each = a * a / (count_a - 1.0) + b * b / (count_b - 1.0);
    if each > 0.0 { (a + b) * (a + b) / each } else { f64::INFINITY }
}

/// Indices of runs that repeat each other, in order of appearance: the same target, format, host,
/// protocol, data, scale and version; a real drive under the same firmware, on the same machine,
/// kernel and driver, with the same settings; a model with the same numbers in its file. What
/// differs in any of these is another subject: the spread over it is no chance.
pub fn groups<R: Borrow<Run>>(runs: &[R]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let same = |group: &&mut Vec<usize>| repeats(runs[group[0]].borrow(), run.borrow());
        match groups.iter_mut().find(same) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Ratios of groups of runs to the first group, over all loads of one workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// Name of the workload.
    pub workload: String,
    /// One entry a group: the geometric mean over the loads that it and the first group measured,
    /// over that of the first group; absent where there is no such load.
    pub groups: Vec<Option<Pair>>,
}

/// Two ratios of one group to the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Ratio of IOPS: above 1 is better.
    pub iops: Ratio,
    /// Ratio of average latency: below 1 is better.
    pub latency: Ratio,
}

/// Sets every group beside the first one, workload by workload, by what was measured.
pub fn against_first(comparisons: &[Comparison], groups: &[Vec<usize>]) -> Vec<Against> {
    let measured = || comparisons.iter().filter(|it| it.kind == StepKind::Measure);
    let mut workloads: Vec<&str> = Vec::new();
    for comparison in measured() {
        if !workloads.contains(&comparison.workload.as_str()) {
            workloads.push(&comparison.workload);
        }
    }
    let of = |workload: &str| {
        let loads: Vec<&Comparison> = measured().filter(|it| it.workload == workload).collect();
        let first = groups.first().map_or(&[][..], Vec::as_slice);
        let groups = groups.iter().map(|group| pair(&loads, group, first)).collect();
        Against { workload: workload.to_owned(), groups }
    };
    workloads.into_iter().map(of).collect()
}

fn pair(loads: &[&Comparison], group: &[usize], first: &[usize]) -> Option<Pair> {
    let has = |load: &Comparison, run: &usize| {
        let entry = load.entries.get(*run).and_then(Option::as_ref);
        entry.is_some_and(Entry::is_whole)
    };
    let common: Vec<&Comparison> = loads
        .iter()
        .copied()
        .filter(|load| group.iter().chain(first).all(|run| has(load, run)))
        .collect();
    if common.is_empty() {
        return None;
    }
    let values = |runs: &[usize], of: fn(&Summary) -> f64| -> Vec<f64> {
        let mean = |run: &usize| {
            let each = common.iter().filter_map(|load| load.entries.get(*run)?.as_ref());
            let logs: f64 = each.map(|entry| of(&entry.summary).ln()).sum();
            (logs / common.len() as f64).exp()
        };
        runs.iter().map(mean).collect()
    };
    let ratio = |of: fn(&Summary) -> f64, interval: fn(&Spread) -> Option<ConfidenceInterval>| {
        let ends = |runs: &[usize]| interval_mean(&common, *runs.first()?, interval);
        let ratio = Ratio::of(&values(group, of), &values(first, of))?;
        Some(ratio.within(ends(group), ends(first)))
    };
    Some(Pair {
        iops: ratio(|summary| summary.iops, |spread| spread.iops)?,
        latency: ratio(
            |summary| summary.latency.latency_ns_avg,
            |spread| spread.latency.latency_ns_avg,
        )?,
    })
}

fn repeats(a: &Run, b: &Run) -> bool {
    let of = |run: &'_ Run| {
        let Run { protocol, model_version, floatgate_version, target, .. } = run.clone();
        let data: Vec<f64> = run.steps.iter().map(|step| step.compressible_percent).collect();
        (
            (protocol, model_version, floatgate_version),
            (target.kind, target.name, target.title, target.format, target.host),
            (target.user_capacity_bytes, target.time_lapse, data),
        )
    };
    a.id != b.id && of(a) == of(b) && platform(a) == platform(b)
}

/// Drive and machine that a run was measured on, row by row.
fn platform(run: &Run) -> Vec<(&str, &str)> {
    let drive = run.target.sheet.iter().map(|row| (row.name.as_str(), row.value.as_str()));
    let machine = run.environment.sheet.iter().map(|row| (row.name.as_str(), row.value.as_str()));
    drive.chain(machine).filter(|(name, _)| !is_outcome(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TargetKind;
    use crate::example;

    #[test]
    fn a_ratio_of_repeats_has_welchs_interval() {
        // Logarithms 0.0, 0.1, 0.2 and 1.0, 1.1, 1.2: variances 0.01, errors² 0.01 ÷ 3, four
        // degrees of freedom, half width 2.776 × √(0.02 ÷ 3) = 0.22666.
        let values = |base: f64| [0.0, 0.1, 0.2].map(|by| (base + by).exp());
        let ratio = Ratio::of(&values(1.0), &values(0.0)).unwrap();
        assert!((ratio.mean.ln() - 1.0).abs() < 1e-12);
        let ConfidenceInterval { low, high, .. } = ratio.interval.unwrap();
        assert!((low.ln() - 0.77334).abs() < 1e-3, "{low}");
        assert!((high.ln() - 1.22666).abs() < 1e-3, "{high}");
        assert_eq!(ratio.is_certain(), Some(true));
        assert_eq!(Ratio::of(&values(0.05), &values(0.0)).unwrap().is_certain(), Some(false));
    }

    #[test]
    fn a_single_run_has_a_ratio_without_an_interval() {
        let ratio = Ratio::of(&[200.0], &[100.0]).unwrap();
        assert!((ratio.mean - 2.0).abs() < 1e-12);
        assert_eq!((ratio.interval, ratio.is_certain()), (None, None));
        assert_eq!(Ratio::of(&[], &[1.0]), None);
        assert_eq!(Ratio::of(&[0.0], &[1.0]), None);
    }

    #[test]
    fn intervals_of_single_runs_bound_their_ratio() {
        let ratio = Ratio::of(&[110.0], &[100.0]).unwrap();
        let apart = ratio.within(Some((108.0, 112.0)), Some((96.0, 104.0)));
        let it = apart.interval.unwrap();
        assert!((it.low - 108.0 / 104.0).abs() < 1e-12 && (it.high - 112.0 / 96.0).abs() < 1e-12);
        assert_eq!((it.kind, apart.is_meaningful()), (IntervalKind::Batches, true));
        let near = ratio.within(Some((103.0, 117.0)), Some((96.0, 104.0)));
        assert!(!near.is_meaningful(), "within the intervals: {near:?}");
        assert_eq!(ratio.within(Some((103.0, 117.0)), None).interval, None);
    }

    #[test]
    fn repeats_that_agree_to_the_last_bit_are_certain() {
        let ratio = Ratio::of(&[2.0, 2.0, 2.0], &[1.0, 1.0, 1.0]).unwrap();
        assert_eq!(ratio.is_certain(), Some(true));
    }

    #[test]
    fn a_group_is_set_beside_the_first_over_the_loads_that_both_have() {
        let mut faster = example::run();
        faster.target.format = "high-performance".into();
        for step in faster.steps.iter_mut().filter(|step| step.kind == StepKind::Measure) {
            let summary = step.summary.as_mut().unwrap();
            summary.iops *= 2.0;
            summary.latency.latency_ns_avg /= 2.0;
        }
        faster.steps.retain(|step| step.workload != "4k-rand-read");
        let runs = [example::run(), faster];
        let table = against_first(&crate::compare::compare(&runs), &groups(&runs));
        let of = |workload: &str| table.iter().find(|it| it.workload == workload).unwrap();
        let pair = of("8k-70-30").groups[1].unwrap();
        assert!((pair.iops.mean - 2.0).abs() < 1e-9 && (pair.latency.mean - 0.5).abs() < 1e-9);
        assert_eq!(of("4k-rand-read").groups[1], None);
    }

    #[test]
    fn runs_of_one_target_under_one_protocol_are_repeats() {
        let run = |id: &str, seed| Run { id: id.into(), seed, ..example::run() };
        let mut other = run("d", 1);
        other.target.format = "high-performance".into();
        let runs = [run("a", 1), run("b", 2), other, run("c", 3)];
        assert_eq!(groups(&runs), [vec![0, 1, 3], vec![2]]);
    }

    #[test]
    fn a_model_with_other_numbers_or_other_data_is_another_subject() {
        let run = |id: &str| Run { id: id.into(), ..example::run() };
        let mut changed = run("b");
        changed.target.sheet[0].value += " and more";
        let mut compressible = run("c");
        compressible.steps.last_mut().unwrap().compressible_percent = 50.0;
        let runs = [run("a"), changed, compressible, run("d")];
        assert_eq!(groups(&runs), [vec![0, 3], vec![1], vec![2]]);
    }

    #[test]
    fn a_real_drive_under_another_kernel_or_firmware_is_another_subject() {
        let real = |id: &str, kernel: &str, firmware: &str, cost: &str| {
            let mut run = Run { id: id.into(), ..example::run() };
            run.target.kind = TargetKind::BlockDevice;
            run.target.sheet[0].name = "Firmware".into();
            run.target.sheet[0].value = firmware.into();
            let row = |(name, value): (&str, &str)| crate::PlatformRow {
                name: name.into(),
                value: value.into(),
            };
            run.environment.sheet =
                [("Kernel", kernel), ("Cost of the test", cost)].map(row).into();
            run
        };
        let runs = [
            real("a", "6.1", "V1", "1 TB written"),
            real("b", "6.18", "V1", "1 TB written"),
            real("c", "6.1", "V2", "1 TB written"),
            real("d", "6.1", "V1", "2 TB written"),
        ];
        assert_eq!(groups(&runs), [vec![0, 3], vec![1], vec![2]]);
    }

    #[test]
    fn a_difference_counts_if_it_is_certain_and_large_enough() {
        let ratio = |mean, ends: Option<(f64, f64)>| Ratio {
            mean,
            interval: ends
                .map(|(low, high)| ConfidenceInterval::new(IntervalKind::Repeats, low, high)),
        };
        assert!(ratio(1.2, Some((1.1, 1.3))).is_meaningful());
        assert!(!ratio(1.01, Some((1.005, 1.015))).is_meaningful(), "certain and small");
        assert!(!ratio(1.2, Some((0.9, 1.6))).is_meaningful(), "large and by chance");
        assert!(ratio(0.9, None).is_meaningful() && !ratio(0.97, None).is_meaningful());
    }
}
