//! Order of runs as reviews walk through it: each workload at low, middle and full load, by each
//! metric alone.
//!
//! ```text
//! comparisons ──► loads that several measured ──► low, middle, full ──► ranks by rate, mean, ...
//! ```
//!
//! **Invariants**: a subject is one run, or runs that repeat each other, which do not compete. It
//! is ahead of another where its figure is at least [`MEANINGFUL_MIN`] better and no interval says
//! that this may be chance. A figure in doubt, or of a measurement that lacks requests, takes its
//! own cell out, and nothing else.

use serde::Serialize;

use crate::compare::{Comparison, Entry, MEANINGFUL_MIN};
use crate::confidence::{ConfidenceInterval, IntervalKind};
use crate::{Spread, StepKind, Summary};

/// Metric by which runs are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderMetric {
    /// Requests completed in each second; the only one of which more is better.
    Iops,
    /// Average latency.
    LatencyAvg,
    /// 99.9th percentile of the latency.
    LatencyP999,
    /// Longest latency.
    LatencyMax,
    /// Standard deviation of the latency.
    LatencyStdev,
}

impl OrderMetric {
    /// Every metric, in the order in which reviews state them.
    pub const ALL: [Self; 5] =
        [Self::Iops, Self::LatencyAvg, Self::LatencyP999, Self::LatencyMax, Self::LatencyStdev];

    /// Figure of `summary`, requests a second or nanoseconds; absent where it is unknown.
    pub fn of(self, summary: &Summary) -> Option<f64> {
        let latency = &summary.latency;
        match self {
            Self::Iops => Some(summary.iops),
            Self::LatencyAvg => latency.mean_ns(),
            Self::LatencyP999 => latency.p999_ns().map(|it| it as f64),
            Self::LatencyMax => latency.max_ns().map(|it| it as f64),
            Self::LatencyStdev => latency.stdev_ns(),
        }
    }

    fn interval(self, spread: &Spread) -> Option<ConfidenceInterval> {
        match self {
            Self::Iops => spread.iops,
            Self::LatencyAvg => spread.latency.latency_ns_avg,
            Self::LatencyP999 => spread.latency.latency_ns_p999,
            Self::LatencyMax | Self::LatencyStdev => None,
        }
    }

    /// By how much `figure` is better than `other`, as a factor: above 1 where it is.
    fn factor(self, figure: f64, other: f64) -> f64 {
        let (above, below) = if self == Self::Iops { (figure, other) } else { (other, figure) };
        // Two that are nothing are alike.
        if above.max(below) > 0.0 { above / below } else { 1.0 }
    }
}

/// Place of a load among those of its workload, by what it keeps outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadLevel {
    /// The least.
    Low,
    /// The one in the middle, where there are three or more.
    Middle,
    /// The greatest, or the only one.
    Full,
}

/// Order of the subjects under one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadOrder {
    /// Name of the suite.
    pub suite: String,
    /// Name of the workload.
    pub workload: String,
    /// Jobs.
    pub threads: u16,
    /// Requests that each job kept outstanding.
    pub queue_per_thread: u16,
    /// Place of the load among those of its workload.
    pub level: LoadLevel,
    /// The order by each of [`OrderMetric::ALL`].
    pub metrics: Vec<MetricOrder>,
}

/// Order of the subjects by one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricOrder {
    /// The metric.
    pub metric: OrderMetric,
    /// Subjects with a figure, the best first.
    pub standings: Vec<Standing>,
    /// First runs of the subjects whose figure is in doubt or lacks requests.
    pub withheld: Vec<usize>,
}

/// Standing of a subject by one metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Index of the first of its runs.
    pub run: usize,
    /// Its figure: the geometric mean of its repeats, of the longest latency the longest.
    pub figure: f64,
    /// Its rank, from 1: subjects that the first of a rank is not ahead of share it.
    pub rank: u32,
    /// Interval of the figure, or range of its repeats; absent where neither is known.
    pub interval: Option<ConfidenceInterval>,
}

/// Figure of a subject beside that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Index of the first run of the subject.
    pub run: usize,
    /// Index of the first run of the other.
    pub than: usize,
    /// Its figure.
    pub figure: f64,
    /// By how much it is better, as a factor: below 1 where it is worse, infinite beside nothing.
    pub factor: f64,
}

impl MetricOrder {
    /// The subject that is ahead of all others, beside the second; absent where several share the
    /// first rank, or there is one.
    pub fn leader(&self) -> Option<Margin> {
        let [first, second, ..] = self.standings.as_slice() else { return None };
        (second.rank > 1).then(|| self.margin(first, second))
    }

    /// The subject that is last by itself, beside the first; absent where several share the last
    /// rank.
    pub fn last(&self) -> Option<Margin> {
        let (first, last) = (self.standings.first()?, self.standings.last()?);
        let sharing = self.standings.iter().filter(|it| it.rank == last.rank).count();
        (last.rank > 1 && sharing == 1).then(|| self.margin(last, first))
    }

    fn margin(&self, of: &Standing, than: &Standing) -> Margin {
        let factor = self.metric.factor(of.figure, than.figure);
        Margin { run: of.run, than: than.run, figure: of.figure, factor }
    }
}

/// Puts subjects in order under the low, the middle and the full load of each workload that at
/// least two of them measured. The runs of each of `groups` are one subject.
pub fn orders(comparisons: &[Comparison], groups: &[Vec<usize>]) -> Vec<LoadOrder> {
    let is_common = |load: &&Comparison| {
        let has = |group: &&Vec<usize>| group.iter().any(|run| load.entries[*run].is_some());
        load.kind == StepKind::Measure && groups.iter().filter(has).count() > 1
    };
    let loads: Vec<&Comparison> = comparisons.iter().filter(is_common).collect();
    let mut workloads: Vec<(&str, &str)> = Vec::new();
    for load in &loads {
        let name = (load.suite.as_str(), load.workload.as_str());
        if !workloads.contains(&name) {
            workloads.push(name);
        }
    }
    let of_workload = |(suite, workload): (&str, &str)| {
        let is_of = |load: &&&Comparison| load.suite == suite && load.workload == workload;
        let own: Vec<&Comparison> = loads.iter().filter(is_of).copied().collect();
        levels(own).into_iter().map(|(level, load)| order(level, load, groups))
    };
    workloads.into_iter().flat_map(of_workload).collect()
}

/// The loads of one workload that stand for low, middle and full load.
fn levels(mut loads: Vec<&Comparison>) -> Vec<(LoadLevel, &Comparison)> {
    let outstanding = |load: &Comparison| {
        (u32::from(load.threads) * u32::from(load.queue_per_thread), load.threads)
    };
    loads.sort_by_key(|load| outstanding(load));
    let middle = loads.len() / 2;
    match loads.as_slice() {
        [] => Vec::new(),
        [only] => vec![(LoadLevel::Full, *only)],
        [low, full] => vec![(LoadLevel::Low, *low), (LoadLevel::Full, *full)],
        [low, .., full] => vec![
            (LoadLevel::Low, *low),
            (LoadLevel::Middle, loads[middle]),
            (LoadLevel::Full, *full),
        ],
    }
}

fn order(level: LoadLevel, load: &Comparison, groups: &[Vec<usize>]) -> LoadOrder {
    LoadOrder {
        suite: load.suite.clone(),
        workload: load.workload.clone(),
        threads: load.threads,
        queue_per_thread: load.queue_per_thread,
        level,
        metrics: OrderMetric::ALL.map(|metric| by_metric(metric, load, groups)).to_vec(),
    }
}

fn by_metric(metric: OrderMetric, load: &Comparison, groups: &[Vec<usize>]) -> MetricOrder {
    let mut order = MetricOrder { metric, standings: Vec::new(), withheld: Vec::new() };
    for group in groups {
        let entries: Vec<&Entry> =
            group.iter().filter_map(|run| load.entries[*run].as_ref()).collect();
        let is_sound = |entry: &&Entry| entry.is_whole() && entry.doubt.is_none();
        let sound: Vec<&Entry> = entries.iter().copied().filter(is_sound).collect();
        match standing(metric, &sound) {
            Some((figure, interval)) => {
                order.standings.push(Standing { run: group[0], figure, rank: 1, interval });
            }
            None if sound.len() < entries.len() => order.withheld.push(group[0]),
            None => {}
        }
    }
    let better = |a: &Standing, b: &Standing| metric.factor(b.figure, a.figure).total_cmp(&1.0);
    order.standings.sort_by(better);
    share_ranks(metric, &mut order.standings);
    order
}

/// Figure of the repeats of one subject, and its interval; absent where one of them is unknown.
fn standing(metric: OrderMetric, repeats: &[&Entry]) -> Option<(f64, Option<ConfidenceInterval>)> {
    let figures: Option<Vec<f64>> = repeats.iter().map(|it| metric.of(&it.summary)).collect();
    let figures = figures.filter(|it| !it.is_empty())?;
    let (low, high) = figures
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(*it), high.max(*it)));
    if let [one] = repeats {
        return Some((figures[0], one.spread.as_ref().and_then(|it| metric.interval(it))));
    }
    let mean = (figures.iter().map(|it| it.ln()).sum::<f64>() / figures.len() as f64).exp();
    let figure = if metric == OrderMetric::LatencyMax { high } else { mean };
    Some((figure, Some(ConfidenceInterval::new(IntervalKind::Repeats, low, high))))
}

/// Gives `standings`, the best first, their ranks.
fn share_ranks(metric: OrderMetric, standings: &mut [Standing]) {
    let mut leader: Option<Standing> = None;
    for (rank, standing) in (1..).zip(standings) {
        match leader {
            Some(leader) if !is_ahead(metric, &leader, standing) => standing.rank = leader.rank,
            _ => {
                standing.rank = rank;
                leader = Some(*standing);
            }
        }
    }
}

fn is_ahead(metric: OrderMetric, first: &Standing, second: &Standing) -> bool {
    // A figure without an interval is one point of it.
    let ends = |it: &Standing| it.interval.map_or((it.figure, it.figure), |it| (it.low, it.high));
    let ((low, high), (other_low, other_high)) = (ends(first), ends(second));
    let may_be_chance = low <= other_high && other_low <= high;
    metric.factor(first.figure, second.figure) >= 1.0 + MEANINGFUL_MIN && !may_be_chance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::{Run, example};

    fn of<'a>(orders: &'a [LoadOrder], workload: &str, level: LoadLevel) -> &'a LoadOrder {
        let is_it = |it: &&LoadOrder| it.workload == workload && it.level == level;
        orders.iter().find(is_it).unwrap_or_else(|| panic!("no {workload} {level:?}: {orders:?}"))
    }

    #[test]
    fn each_load_has_an_order_of_its_own_by_each_metric() {
        // 13K at the lower load of the mix and 52K at the higher one, against 26K at both.
        let runs = [example::run(), example::at_rate(26_000)];
        let orders = orders(&compare(&runs), &[vec![0], vec![1]]);
        let low = of(&orders, "8k-70-30", LoadLevel::Low);
        let full = of(&orders, "8k-70-30", LoadLevel::Full);
        let leaders = |order: &LoadOrder| {
            let of = |it: &MetricOrder| it.leader().map(|it| it.run);
            order.metrics.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(leaders(low)[..2], [Some(1), Some(1)], "twice the rate, half the latency");
        assert_eq!(leaders(full)[..2], [Some(0), Some(0)]);
        let lead = low.metrics[1].leader().unwrap().factor - 1.0;
        assert!((lead - 1.0).abs() < 0.01, "twice as good: {lead}");
        let last = low.metrics[1].last().unwrap();
        assert_eq!((last.run, last.than), (0, 1));
        assert!((last.factor - 0.5).abs() < 0.01, "half as good: {last:?}");
        assert_eq!(low.metrics.len(), OrderMetric::ALL.len());
    }

    #[test]
    fn a_load_in_doubt_takes_out_its_own_cell() {
        let mut runs = [example::run(), example::at_rate(85_200), example::at_rate(10_000)];
        let load = runs[1].steps[2].id.clone();
        runs[1].warnings.push(crate::Warning {
            kind: crate::WarningKind::Unfinished,
            step: load.clone(),
            text: String::new(),
            remedy: String::new(),
        });
        let comparisons = compare(&runs);
        let all = orders(&comparisons, &[vec![0], vec![1], vec![2]]);
        let is_it = |it: &&LoadOrder| it.metrics.iter().any(|it| !it.withheld.is_empty());
        let doubted: Vec<&LoadOrder> = all.iter().filter(is_it).collect();
        assert_eq!(doubted.len(), 1, "one load: {doubted:?}");
        let iops = &doubted[0].metrics[0];
        assert_eq!((iops.withheld.as_slice(), iops.standings.len()), (&[1][..], 2));
        assert_eq!(iops.leader().map(|it| it.run), Some(0), "among those without a doubt");
    }

    #[test]
    fn repeats_are_one_subject_and_what_they_overlap_in_is_even() {
        let order_of = |groups: &[Vec<usize>], runs: &[Run]| {
            let orders = orders(&compare(runs), groups);
            of(&orders, "4k-rand-write", LoadLevel::Full).metrics[0].clone()
        };
        let runs = [example::at_rate(40_000), example::at_rate(10_000), example::at_rate(15_000)];
        let apart = order_of(&[vec![0], vec![1], vec![2]], &runs);
        assert_eq!(apart.standings.iter().map(|it| it.rank).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(apart.last().map(|it| it.run), Some(1));
        let order = order_of(&[vec![0, 1], vec![2]], &runs);
        // The mean of 40K and 10K is 20K, and 15K lies between them.
        let figures: Vec<f64> = order.standings.iter().map(|it| it.figure.round()).collect();
        assert_eq!(figures, [20_000.0, 15_000.0]);
        assert_eq!((order.standings[1].rank, order.leader(), order.last()), (1, None, None));
    }

    #[test]
    fn a_lead_within_the_intervals_of_single_runs_is_none() {
        let leads = |second: u64, half: f64| {
            let mut runs = [example::at_rate(40_000), example::at_rate(second)];
            for step in runs.iter_mut().flat_map(|run| &mut run.steps) {
                let Some(iops) = step.summary.as_ref().map(|it| it.iops) else { continue };
                let (low, high) = (iops * (1.0 - half), iops * (1.0 + half));
                let iops = Some(ConfidenceInterval::new(IntervalKind::Batches, low, high));
                step.spread = Some(Spread { iops, ..Spread::default() });
            }
            let orders = orders(&compare(&runs), &[vec![0], vec![1]]);
            let full = of(&orders, "4k-rand-write", LoadLevel::Full);
            full.metrics[0].leader().map(|it| it.run)
        };
        assert_eq!((leads(44_000, 0.02), leads(44_000, 0.06)), (Some(1), None), "10 % apart");
        assert_eq!(leads(41_000, 0.001), None, "no reader decides by 2.5 %");
    }
}
