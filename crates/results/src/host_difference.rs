//! Differences between hosts: by how much rates and latencies of one drive, in one format, differ
//! under several hosts.
//!
//! Two hosts are *apart* by (greatest − least) ÷ greatest of a figure under one load: 0 where they
//! are equal, 0.5 where one reaches half of the other. Less than [`MEANINGFUL_MIN`] is equal.
//! Repeats of one host count with the mean of their figures. A load that some host did not measure
//! tells nothing of hosts. Neither does one that writes on a drive that had not settled under some
//! host: there the state of the drive differs, not the host.

use serde::Serialize;

use crate::compare::{Comparison, Entry, MEANINGFUL_MIN, compare};
use crate::{Run, StepKind, Summary};

/// Figure by which hosts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostDifferenceFigure {
    /// Requests completed in each second.
    Iops,
    /// Average latency.
    Average,
    /// Latency that 99.9 % of the requests keep.
    P999,
    /// Largest latency.
    Maximum,
}

impl HostDifferenceFigure {
    /// Every figure, in the order in which reports show them.
    pub const ALL: [Self; 4] = [Self::Iops, Self::Average, Self::P999, Self::Maximum];

    /// Absent where it was not measured, and where too few requests lie beyond a percentile.
    fn of(self, summary: &Summary) -> Option<f64> {
        let latency = &summary.latency;
        match self {
            Self::Iops => Some(summary.iops),
            Self::Average => latency.mean_ns(),
            Self::P999 => latency.p999_ns().map(|it| it as f64),
            Self::Maximum => latency.max_ns().map(|it| it as f64),
        }
    }

    /// True if the host with the smaller one is the better.
    const fn is_better_small(self) -> bool {
        match self {
            Self::Iops => false,
            Self::Average | Self::P999 | Self::Maximum => true,
        }
    }
}

/// Hosts of one drive in one format, compared under every load that all of them measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostDifference {
    /// Indices of the runs that it is about, one at least for each host.
    pub runs: Vec<usize>,
    /// Names of the hosts, in order of appearance; two at least.
    pub hosts: Vec<String>,
    /// One row for each workload of each suite, preconditionings apart.
    pub rows: Vec<HostDifferenceRow>,
    /// Every load together, one entry for each of [`HostDifferenceFigure::ALL`]; absent without a
    /// load.
    pub overall: Option<[Option<Spread>; 4]>,
    /// Loads that every host measured and that are left out: they write, and the drive had not
    /// settled under some host.
    pub left_out: u32,
}

/// Hosts under the loads of one workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostDifferenceRow {
    /// A preconditioning, compared by its settled window, or measurements.
    pub kind: StepKind,
    /// Name of the suite.
    pub suite: String,
    /// Name of the workload.
    pub workload: String,
    /// Geometric mean over the loads of the IOPS of each host, in their order.
    pub iops: Vec<f64>,
    /// One entry for each of [`HostDifferenceFigure::ALL`]; absent where no load has the figure
    /// under every host.
    pub spreads: [Option<Spread>; 4],
}

/// Distances of hosts in one figure over several loads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The figure.
    pub figure: HostDifferenceFigure,
    /// Loads that were compared, at least 1.
    pub loads: u32,
    /// Loads of them under which the hosts are equal.
    pub equal: u32,
    /// Median of the distances, 0 to 1.
    pub median: f64,
    /// Load under which the hosts are farthest apart.
    pub widest: Distance,
}

/// Distance of hosts in one figure under one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distance {
    /// (greatest − least) ÷ greatest, 0 to 1.
    pub apart: f64,
    /// Workload of the load.
    pub workload: String,
    /// Jobs.
    pub threads: u16,
    /// Requests that each job kept outstanding.
    pub queue_per_thread: u16,
    /// Index of the host that does best.
    pub best: usize,
    /// Index of the host that does worst.
    pub worst: usize,
}

/// The difference of the hosts of each drive and format of `runs` that has several; in order of
/// appearance.
pub fn host_differences(runs: &[&Run]) -> Vec<HostDifference> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let is_alike = |group: &&mut Vec<usize>| {
            let (first, other) = (&runs[group[0]].target, &run.target);
            (&first.name, &first.format) == (&other.name, &other.format)
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups.into_iter().filter_map(|group| difference(runs, group)).collect()
}

/// The difference of the hosts of the runs with the indices `group`; absent where there is one
/// host, or no load that all of them measured.
fn difference(runs: &[&Run], group: Vec<usize>) -> Option<HostDifference> {
    let mut hosts: Vec<String> = Vec::new();
    for index in &group {
        let host = &runs[*index].target.host;
        if !hosts.contains(host) {
            hosts.push(host.clone());
        }
    }
    if hosts.len() < 2 {
        return None;
    }
    let of_group: Vec<&Run> = group.iter().map(|index| runs[*index]).collect();
    let comparisons = compare(&of_group);
    let all: Vec<Load<'_>> =
        comparisons.iter().filter_map(|it| Load::of(it, &of_group, &hosts)).collect();
    let (loads, left_out): (Vec<Load<'_>>, Vec<Load<'_>>) =
        all.into_iter().partition(|it| is_of_host(it.load));
    let left_out = u32::try_from(left_out.len()).unwrap_or(u32::MAX);
    let rows = loads
        .chunk_by(|a, b| a.row() == b.row())
        .filter_map(|chunk| {
            let load = chunk.first()?.load;
            Some(HostDifferenceRow {
                kind: load.kind,
                suite: load.suite.clone(),
                workload: load.workload.clone(),
                iops: (0..hosts.len()).map(|host| mean_iops(chunk, host)).collect(),
                spreads: spreads(chunk)?,
            })
        })
        .collect();
    let overall = spreads(&loads);
    (overall.is_some() || left_out > 0).then_some(HostDifference {
        runs: group,
        hosts,
        rows,
        overall,
        left_out,
    })
}

/// True if what differs under a load is the host: it reads only, or each run that measured it had
/// settled, as far as anything judged that.
pub(crate) fn is_of_host(load: &Comparison) -> bool {
    let is_burst = |it: &Entry| it.settled == Some(false) && it.summary.write.count > 0;
    !load.entries.iter().flatten().any(is_burst)
}

/// Figures of every host under one load.
struct Load<'a> {
    load: &'a Comparison,
    /// For each host the values of [`HostDifferenceFigure::ALL`]; rates and average latencies are
    /// there.
    hosts: Vec<[Option<f64>; 4]>,
}

impl<'a> Load<'a> {
    /// Absent where some host did not measure it, or some run lacks requests.
    fn of(load: &'a Comparison, runs: &[&Run], hosts: &[String]) -> Option<Self> {
        let figures = |host: &String| {
            let of_host =
                runs.iter().zip(&load.entries).filter(|(run, _)| run.target.host == *host);
            let entries: Vec<&Entry> = of_host.filter_map(|(_, entry)| entry.as_ref()).collect();
            if entries.iter().any(|entry| !entry.is_whole()) {
                return None;
            }
            let values = HostDifferenceFigure::ALL.map(|figure| {
                let of = entries.iter().map(|entry| figure.of(&entry.summary));
                let sum: f64 = of.sum::<Option<f64>>()?;
                let mean = sum / entries.len() as f64;
                (mean.is_finite() && mean > 0.0).then_some(mean)
            });
            let [iops, average, ..] = values;
            (iops.is_some() && average.is_some()).then_some(values)
        };
        let hosts = hosts.iter().map(figures).collect::<Option<Vec<_>>>()?;
        Some(Self { load, hosts })
    }

    /// Row of a table that it belongs to.
    const fn row(&self) -> (StepKind, &'a String, &'a String) {
        (self.load.kind, &self.load.suite, &self.load.workload)
    }

    /// Distance of the hosts in the figure with the index `at`; absent where one lacks it.
    fn distance(&self, at: usize) -> Option<Distance> {
        let all: Vec<f64> = self.hosts.iter().map(|host| host[at]).collect::<Option<_>>()?;
        let values = || all.iter().copied().enumerate();
        let least = values().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
        let most = values().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
        let is_small = HostDifferenceFigure::ALL[at].is_better_small();
        let (best, worst) = if is_small { (least, most) } else { (most, least) };
        Some(Distance {
            apart: (most.1 - least.1) / most.1,
            workload: self.load.workload.clone(),
            threads: self.load.threads,
            queue_per_thread: self.load.queue_per_thread,
            best: best.0,
            worst: worst.0,
        })
    }
}

/// Geometric mean over `loads` of the IOPS of a host.
fn mean_iops(loads: &[Load<'_>], host: usize) -> f64 {
    let sum: f64 = loads.iter().filter_map(|load| load.hosts[host][0]).map(f64::ln).sum();
    (sum / loads.len() as f64).exp()
}

/// Distances over `loads`, figure by figure; absent without any load.
fn spreads(loads: &[Load<'_>]) -> Option<[Option<Spread>; 4]> {
    let spread = |at: usize| {
        let mut distances: Vec<Distance> =
            loads.iter().filter_map(|load| load.distance(at)).collect();
        // The first of equals stays the last of them, so that the widest is the first that was met.
        distances.reverse();
        distances.sort_by(|a, b| a.apart.total_cmp(&b.apart));
        let middle = |at: usize| distances.get(at).map(|it| it.apart);
        let count = distances.len();
        let median = f64::midpoint(middle(count.saturating_sub(1) / 2)?, middle(count / 2)?);
        let equal = distances.iter().filter(|it| it.apart < MEANINGFUL_MIN).count();
        Some(Spread {
            figure: HostDifferenceFigure::ALL[at],
            loads: u32::try_from(count).unwrap_or(u32::MAX),
            equal: u32::try_from(equal).unwrap_or(u32::MAX),
            median,
            widest: distances.pop()?,
        })
    };
    (!loads.is_empty()).then(|| [0, 1, 2, 3].map(spread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    /// The example on `host`, its measurements at `percent` of the rate.
    fn on(host: &str, percent: u64) -> Run {
        let mut run = example::run();
        run.target.host = host.into();
        for step in run.steps.iter_mut().filter(|step| step.kind == StepKind::Measure) {
            // Steps of a minute.
            let iops = step.summary.as_ref().map_or(0, |summary| summary.latency.count / 60);
            let read_percent = if step.workload.contains("read") { 100 } else { 70 };
            let minutes = example::minutes(&[iops * percent / 100], read_percent);
            let load = (step.threads, step.queue_per_thread);
            *step = example::step(&step.id, &step.workload, load, &minutes);
        }
        run
    }

    #[test]
    fn hosts_are_apart_by_the_share_that_the_lesser_lacks() {
        let (first, second) = (on("linux", 100), on("windows", 80));
        let host_differences = host_differences(&[&first, &second]);
        let [difference] = host_differences.as_slice() else {
            panic!("one drive: {host_differences:?}")
        };
        assert_eq!(difference.hosts, ["linux", "windows"]);
        let [Some(iops), Some(average), ..] = difference.overall.as_ref().unwrap() else {
            panic!("rates and averages are there")
        };
        assert!((iops.widest.apart - 0.2).abs() < 1e-3, "{iops:?}");
        assert!((average.widest.apart - 0.2).abs() < 1e-3, "the slower host takes 1.25 times");
        assert_eq!((iops.widest.best, iops.widest.worst), (0, 1));
        assert_eq!((average.widest.best, average.widest.worst), (0, 1), "the smaller is better");
        assert_eq!((iops.loads, iops.equal), (6, 2), "the preconditionings are those of one run");
        let row = difference.rows.iter().find(|row| row.kind == StepKind::Measure).unwrap();
        assert!((row.iops[1] / row.iops[0] - 0.8).abs() < 1e-3, "{row:?}");
    }

    #[test]
    fn a_percentile_that_is_chance_under_one_host_is_not_compared() {
        let (first, mut second) = (on("linux", 100), on("windows", 80));
        for summary in second.steps.iter_mut().filter_map(|step| step.summary.as_mut()) {
            summary.latency.count = 6_600;
        }
        let difference = &host_differences(&[&first, &second])[0];
        let measured = difference.rows.iter().find(|row| row.kind == StepKind::Measure).unwrap();
        assert!(measured.spreads[1].is_some(), "averages are");
        assert_eq!(measured.spreads[2], None, "six requests lie beyond p99.9");
    }

    #[test]
    fn repeats_of_one_host_and_other_formats_are_no_other_host() {
        let (first, again) = (on("linux", 100), on("linux", 90));
        assert_eq!(host_differences(&[&first, &again]), []);
        let mut other = on("windows", 90);
        other.target.format = "high-performance".into();
        assert_eq!(host_differences(&[&first, &other]), []);
        let windows = on("windows", 95);
        let difference = &host_differences(&[&first, &again, &windows])[0];
        let iops = difference.overall.as_ref().unwrap()[0].as_ref().unwrap();
        assert!(iops.widest.apart < 1e-3, "95 is the mean of 100 and 90: {iops:?}");
    }

    #[test]
    fn a_burst_under_one_host_is_not_compared_with_the_settled_rate_of_another() {
        let (first, mut second) = (on("linux", 100), on("windows", 100));
        for step in &mut second.steps {
            step.steady.iter_mut().for_each(|steady| steady.achieved = false);
        }
        let difference = &host_differences(&[&first, &second])[0];
        let rows: Vec<&str> = difference.rows.iter().map(|row| row.workload.as_str()).collect();
        assert_eq!(rows, ["4k-rand-read"], "reads have nothing to settle");
        assert_eq!(difference.left_out, 5);
    }
}
