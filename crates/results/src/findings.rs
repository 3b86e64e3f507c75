//! Strengths and weaknesses of a run, or between runs: plain numbers judged by stated rules.
//!
//! A report's pros, cons and bottom line say these in prose and add nothing. Each finding is one
//! ratio; at or beyond one limit it is a strength, at or beyond the other a weakness, between them
//! neither. The limits are this project's, set so that the drives of the published reviews fall on
//! the side on which their reviewers put them.
//!
//! | finding | ratio | strength | weakness |
//! |---|---|---|---|
//! | burst over settled | IOPS of the burst / IOPS of the settled window | ≤ 1.25 | ≥ 4 |
//! | unsteady | 1 where steady state was not reached, else 0 | | 1 |
//! | deviation | standard deviation / average of the latency, greatest load | ≤ 0.5 | ≥ 2 |
//! | peak | longest request at any load / average of the latency, greatest load | ≤ 10 | ≥ 100 |
//! | read over write | IOPS of reads / IOPS of writes, 4K random, same load | ≤ 1.25 | ≥ 5 |
//! | scaling | IOPS at the greatest load / IOPS at the least | ≥ 8 | ≤ 1.5 |
//! | write amplification | NAND writes / host writes, settled window | ≤ 1.5 | ≥ 5 |
//! | difference between hosts | least / greatest IOPS over hosts, worst load | ≥ 0.95 | ≤ 0.8 |
//! | format gain | settled IOPS of the best format / of the worst | ≥ 1.5 | |
//!
//! A finding is withheld, with the reason, where one of its steps was measured under a warning that
//! says the figure may not be the drive's own: a busy machine, a cache, requests that were missing,
//! replies that a server sent late, reads of unwritten space; and where the processors of the host
//! were the limit, but for write amplification, steady state and hosts themselves. A strength of
//! the peak is withheld where the workload was watched for less than ten minutes, the last window
//! of a preconditioning included: stalls come once in minutes, and whether one falls into a short
//! measurement is chance; and where it was sampled. A weakness of the peak is withheld where the
//! longest request may be a stall that the file of a model lists. What speaks of a settled drive
//! (burst over settled, write amplification, reads over writes, formats, loads that write on
//! several hosts, scaling of loads that write) needs steady state.

use serde::Serialize;

use crate::compare::{Comparison, Entry, compare, ratio};
use crate::host_difference::is_of_host;
use crate::published::{burst, is_from_listed_stalls};
use crate::run::doubt::{host_limited, is_doubt};
use crate::{ConfidenceInterval, Doubt, Run, Step, StepKind, Summary, Target};

/// Ratio that may be a strength or a weakness.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Kind of ratio.
    pub kind: FindingKind,
    /// The ratio itself; always finite.
    pub value: f64,
    /// Verdict by the rule of its kind.
    pub verdict: Verdict,
    /// Workload that it was found with.
    pub workload: String,
    /// Hosts or formats that it compares, the better first; empty within one run.
    pub between: Vec<String>,
    /// Names of the steps that it comes from.
    pub steps: Vec<String>,
}

/// A finding that is not to be told, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Withheld {
    /// Finding that the figures would give.
    pub finding: Finding,
    /// Reason why it is not trusted: the text of a warning, or what was missing.
    pub reason: String,
}

/// Kind of finding; the rules are in the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// IOPS of the burst on a purged drive over those of the settled window.
    BurstOverSettled,
    /// The steady-state rule was never met.
    Unsteady,
    /// Standard deviation over average of the latency.
    Deviation,
    /// Largest latency at any load over the average at the greatest load.
    Peak,
    /// IOPS of reads over those of writes.
    ReadOverWrite,
    /// IOPS at the greatest load over those at the least.
    Scaling,
    /// NAND writes over host writes.
    WriteAmplification,
    /// Least over greatest IOPS among hosts.
    #[serde(rename = "host-parity")]
    HostDifference,
    /// Settled IOPS of the best format over those of the worst.
    FormatGain,
}

/// Verdict on a finding, by the limits of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At or beyond the limit of a strength.
    Strength,
    /// Between the limits.
    Neither,
    /// At or beyond the limit of a weakness.
    Weakness,
}

impl FindingKind {
    /// Limit of a strength and limit of a weakness; the better side is that of the strength.
    pub const fn limits(self) -> (f64, f64) {
        match self {
            Self::BurstOverSettled => (1.25, 4.0),
            Self::Unsteady => (f64::NEG_INFINITY, 1.0),
            Self::Deviation => (0.5, 2.0),
            Self::Peak => (10.0, 100.0),
            Self::ReadOverWrite => (1.25, 5.0),
            Self::Scaling => (8.0, 1.5),
            Self::WriteAmplification => (1.5, 5.0),
            Self::HostDifference => (0.95, 0.8),
            Self::FormatGain => (1.5, f64::NEG_INFINITY),
        }
    }

    /// Judges `value` by the limits of this kind.
    pub fn judge(self, value: f64) -> Verdict {
        let (strength, weakness) = self.limits();
        let sign = if strength < weakness { 1.0 } else { -1.0 };
        if sign * value <= sign * strength {
            Verdict::Strength
        } else if sign * value >= sign * weakness {
            Verdict::Weakness
        } else {
            Verdict::Neither
        }
    }
}

/// Findings of one run, by suite, without those withheld.
pub fn of_run(run: &Run) -> Vec<Finding> {
    let mut findings = all_of(run);
    findings.retain(|finding| reason(run, finding).is_none());
    findings
}

/// Strengths and weaknesses of one run that are withheld, with the reasons.
pub fn withheld(run: &Run) -> Vec<Withheld> {
    let judged = all_of(run).into_iter().filter(|finding| finding.verdict != Verdict::Neither);
    judged
        .filter_map(|finding| Some(Withheld { reason: reason(run, &finding)?, finding }))
        .collect()
}

/// Shortest time that a workload is watched before its longest request is called short, in seconds
/// of the drive's own clock.
const PEAK_WATCHED_S_MIN: f64 = 600.0;

/// Reason why `finding` is withheld; absent where it is not.
fn reason(run: &Run, finding: &Finding) -> Option<String> {
    let warned = run.warnings.iter().find(|warning| {
        is_doubt(warning.kind)
            && finding.kind != FindingKind::Unsteady
            && (warning.step.is_empty() || finding.steps.contains(&warning.step))
    });
    if let Some(warning) = warned {
        return Some(warning.text.clone());
    }
    if let Some(doubt) = limit_of(run, finding) {
        return Some(doubt.reason());
    }
    let steps = || finding.steps.iter().filter_map(|id| run.step(id));
    match (finding.kind, finding.verdict) {
        (FindingKind::Peak, Verdict::Strength) => {
            if let Some(note) = steps().find_map(Step::sampling_note) {
                return Some(format!("{note}: longer requests may lie between them"));
            }
            let watched_s: f64 = steps().filter_map(|step| Some(counted(step)?.span_s)).sum();
            (watched_s < PEAK_WATCHED_S_MIN).then(|| {
                let places = usize::from(watched_s < 10.0);
                format!(
                    "watched for {watched_s:.places$} s in all, on the drive's own clock: rarer \
                     events may be missing"
                )
            })
        }
        (FindingKind::Peak, Verdict::Weakness) => listed_stall(run, &steps().collect::<Vec<_>>()),
        (FindingKind::Scaling, _) => {
            let is_burst = |step: &Step| {
                let writes = step.summary.as_ref().is_some_and(|it| it.write.count > 0);
                writes && run.is_settled(step) == Some(false)
            };
            steps().any(is_burst).then(|| {
                "not in steady state, so loads were measured in different states".to_owned()
            })
        }
        _ => None,
    }
}

/// Reason why the longest request of `steps` says nothing of the drive: it may be one of the stalls
/// of the host that the model's file lists, whose lengths were chosen, see
/// [`is_from_listed_stalls`].
fn listed_stall(run: &Run, steps: &[&Step]) -> Option<String> {
    let longest_ns = steps.iter().filter_map(|step| longest_ns(step)).max()?;
    let (longest_ms, stall_ms) = (longest_ns as f64 / 1e6, run.target.host_stall_ms_max);
    is_from_listed_stalls("max_latency_ms", longest_ms, stall_ms).then(|| {
        let stall_ms = stall_ms.unwrap_or_default();
        format!(
            "the maximum follows from the stalls of the host that the model's file lists, of up to \
             {stall_ms:.0} ms"
        )
    })
}

/// Longest request of what counts of `step`: the settled window of a preconditioning, else all.
fn longest_ns(step: &Step) -> Option<u64> {
    counted(step)?.latency.max_ns()
}

/// Part of `step` that counts in a peak: a settled window of a preconditioning, or a primary test.
fn counted(step: &Step) -> Option<&Summary> {
    match step.kind {
        StepKind::Precondition => step.settled.as_ref(),
        StepKind::Measure if step.is_primary() => step.summary.as_ref(),
        StepKind::Purge | StepKind::Fill | StepKind::Measure | StepKind::Application => None,
    }
}

/// The host as the limit of a step that `finding` rests on; of a peak, of its greatest load.
fn limit_of(run: &Run, finding: &Finding) -> Option<Doubt> {
    let count = match finding.kind {
        FindingKind::Unsteady | FindingKind::WriteAmplification | FindingKind::HostDifference => 0,
        FindingKind::Peak => 1,
        FindingKind::BurstOverSettled
        | FindingKind::Deviation
        | FindingKind::ReadOverWrite
        | FindingKind::Scaling
        | FindingKind::FormatGain => finding.steps.len(),
    };
    let mut steps = finding.steps.iter().take(count).filter_map(|id| run.step(id));
    steps.find_map(|step| host_limited(run, step))
}

fn all_of(run: &Run) -> Vec<Finding> {
    let mut findings = Vec::new();
    for step in &run.steps {
        match step.kind {
            StepKind::Precondition => findings.extend(of_precondition(run, step)),
            StepKind::Measure if step.is_primary() => findings.extend(of_measure(run, step)),
            StepKind::Purge | StepKind::Fill | StepKind::Measure | StepKind::Application => {}
        }
    }
    findings.extend(read_over_write(run));
    findings
}

/// Findings between runs of one drive, all in detail or sampled to one precision: its hosts and its
/// formats.
pub fn between(runs: &[Run]) -> Vec<Finding> {
    let is_one =
        |a: &Run, b: &Run| a.target.name == b.target.name && a.precision(None) == b.precision(None);
    let hosts = groups(runs, &|a, b| is_one(a, b) && a.target.format == b.target.format);
    let formats = groups(runs, &|a, b| is_one(a, b) && a.target.host == b.target.host);
    let differences = hosts.iter().filter_map(|runs| host_difference(runs));
    differences.chain(formats.iter().flat_map(|runs| format_gains(runs))).collect()
}

/// The runs that are `alike`, group by group, in order of appearance.
fn groups<'a>(runs: &'a [Run], alike: &dyn Fn(&Run, &Run) -> bool) -> Vec<Vec<&'a Run>> {
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| alike(group[0], run)) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

fn finding(kind: FindingKind, value: Option<f64>, steps: &[&Step]) -> Option<Finding> {
    let value = value.filter(|value| value.is_finite())?;
    Some(Finding {
        kind,
        value,
        verdict: kind.judge(value),
        workload: steps.first()?.workload.clone(),
        between: Vec::new(),
        steps: steps.iter().map(|step| step.id.clone()).collect(),
    })
}

fn of_precondition(run: &Run, step: &Step) -> Vec<Finding> {
    let Some(settled) = &step.settled else { return Vec::new() };
    let unsteady = step.steady.as_ref().map(|steady| f64::from(u8::from(!steady.achieved)));
    if unsteady == Some(1.0) {
        // There is no settled figure to set beside the burst.
        return finding(FindingKind::Unsteady, unsteady, &[step]).into_iter().collect();
    }
    let burst = burst(run, step);
    let burst_iops =
        burst.iter().map(|sample| sample.summary.iops).sum::<f64>() / burst.len() as f64;
    let fallen = ratio(burst_iops, settled.iops);
    let amplification = settled.nand.and_then(|nand| nand.write_amplification());
    [
        finding(FindingKind::BurstOverSettled, fallen, &[step]),
        finding(FindingKind::Unsteady, unsteady, &[step]),
        finding(FindingKind::WriteAmplification, amplification, &[step]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Findings of the greatest load of a workload; nothing for the other loads.
fn of_measure(run: &Run, step: &Step) -> Vec<Finding> {
    let loads = || {
        run.steps.iter().filter(|other| {
            let same = other.suite == step.suite && other.workload == step.workload;
            same && other.is_primary() && other.summary.is_some()
        })
    };
    let greatest = loads().max_by_key(|load| load.outstanding());
    let (Some(summary), true) = (&step.summary, greatest.is_some_and(|it| it.id == step.id)) else {
        return Vec::new();
    };
    let average = summary.latency.latency_ns_avg;
    let deviation = ratio(summary.latency.latency_ns_stdev, average);
    let watched = watched(run, step);
    let longest = watched.iter().map(|(_, summary)| summary.latency.latency_ns_max).max();
    let peak = ratio(longest.unwrap_or_default() as f64, average);
    let watched: Vec<&Step> = watched.into_iter().map(|(step, _)| step).collect();
    let least = loads().min_by_key(|load| load.outstanding());
    let scaling =
        least.filter(|least| least.outstanding() < step.outstanding()).and_then(|least| {
            let gained = ratio(summary.iops, least.summary.as_ref()?.iops);
            finding(FindingKind::Scaling, gained, &[step, least])
        });
    [
        finding(FindingKind::Deviation, deviation, &[step]),
        finding(FindingKind::Peak, peak, &watched),
        scaling,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Steps of its suite that ran the workload of `step`, with their summaries: `step`, its other
/// loads and the settled window of its preconditioning. A stall that comes once in minutes falls
/// into some of them.
fn watched<'a>(run: &'a Run, step: &'a Step) -> Vec<(&'a Step, &'a Summary)> {
    let alike = run.steps.iter().filter(|other| {
        other.suite == step.suite && other.workload == step.workload && other.id != step.id
    });
    let all = std::iter::once(step).chain(alike);
    all.filter_map(|step| Some((step, counted(step)?))).collect()
}

/// Pure reads over pure writes, of the greatest load that a suite measured both at.
fn read_over_write(run: &Run) -> Option<Finding> {
    let measured = |workload: &'static str| {
        let steps = run.steps.iter();
        steps.filter(move |step| step.is_primary() && step.workload == workload)
    };
    let (read, write) = measured("4k-rand-read")
        .filter_map(|read| {
            let load = (read.threads, read.queue_per_thread);
            let write = measured("4k-rand-write")
                .find(|write| (write.threads, write.queue_per_thread) == load)?;
            Some((read, write))
        })
        .max_by_key(|(read, _)| read.outstanding())?;
    if run.is_settled(write) != Some(true) || may_be_equal(rate_of(read), rate_of(write)) {
        return None;
    }
    let value = ratio(read.summary.as_ref()?.iops, write.summary.as_ref()?.iops);
    finding(FindingKind::ReadOverWrite, value, &[read, write])
}

/// The interval of the rate of a measurement.
fn rate_of(step: &Step) -> Option<ConfidenceInterval> {
    step.spread?.iops
}

/// True if the intervals of two figures overlap, so that chance may have told them apart.
fn may_be_equal(a: Option<ConfidenceInterval>, b: Option<ConfidenceInterval>) -> bool {
    a.zip(b).is_some_and(|(a, b)| a.overlaps(&b))
}

/// The load at which the hosts of one drive in one format differ most.
fn host_difference(runs: &[&Run]) -> Option<Finding> {
    // Repeats on one host differ by chance.
    if runs.iter().all(|run| run.target.host == runs[0].target.host) {
        return None;
    }
    let loads = compare(runs);
    let worst = loads
        .iter()
        .filter(|load| is_of_host(load))
        .filter_map(|load| Extremes::of(load, runs, |target| &target.host))
        .max_by(|a, b| a.gain().total_cmp(&b.gain()))?;
    Some(worst.finding(FindingKind::HostDifference, 1.0 / worst.gain()))
}

/// The preconditionings at which the formats of one drive differ by a strength, those of 4K writes
/// first, then the widest; where none do, the one at which they differ most.
fn format_gains(runs: &[&Run]) -> Vec<Finding> {
    let loads = compare(runs);
    let mut gains: Vec<Finding> = loads
        .iter()
        .filter(|load| load.kind == StepKind::Precondition)
        .filter(|load| load.entries.iter().flatten().all(|it| it.settled != Some(false)))
        .filter_map(|load| Extremes::of(load, runs, |target| &target.format))
        .map(|extremes| extremes.finding(FindingKind::FormatGain, extremes.gain()))
        .collect();
    gains.sort_by(|a, b| b.value.total_cmp(&a.value));
    if gains.iter().any(|gain| gain.verdict == Verdict::Strength) {
        gains.retain(|gain| gain.verdict == Verdict::Strength);
        gains.sort_by_key(|gain| gain.workload != "4k-rand-write");
    } else {
        gains.truncate(1);
    }
    gains
}

/// The best and the worst host or format of a load, by the mean IOPS of its runs.
struct Extremes<'a> {
    workload: &'a str,
    best: RunGroup<'a>,
    worst: RunGroup<'a>,
}

/// The runs of one host or format under a load.
struct RunGroup<'a> {
    name: &'a str,
    /// The first of them.
    entry: &'a Entry,
    /// The interval of its rate.
    rate: Option<ConfidenceInterval>,
    iops: Vec<f64>,
}

impl RunGroup<'_> {
    fn iops_mean(&self) -> f64 {
        self.iops.iter().sum::<f64>() / self.iops.len() as f64
    }
}

impl<'a> Extremes<'a> {
    /// Absent where runs of fewer than two names completed something under the load: repeats of one
    /// differ by chance.
    fn of(load: &'a Comparison, runs: &[&'a Run], name: fn(&Target) -> &String) -> Option<Self> {
        let entries = runs
            .iter()
            .zip(&load.entries)
            .filter_map(|(run, entry)| Some((run, entry.as_ref()?)))
            .filter(|(_, entry)| entry.is_whole() && entry.summary.iops > 0.0);
        let mut named: Vec<RunGroup<'a>> = Vec::new();
        for (run, entry) in entries {
            let name = name(&run.target).as_str();
            let rate = run.step(&entry.step).and_then(rate_of);
            match named.iter_mut().find(|it| it.name == name) {
                Some(it) => it.iops.push(entry.summary.iops),
                None => named.push(RunGroup { name, entry, rate, iops: vec![entry.summary.iops] }),
            }
        }
        if named.len() < 2 {
            return None;
        }
        named.sort_by(|a, b| b.iops_mean().total_cmp(&a.iops_mean()));
        let worst = named.pop()?;
        let best = named.into_iter().next()?;
        let is_chance = may_be_equal(best.rate, worst.rate);
        (!is_chance).then_some(Self { workload: &load.workload, best, worst })
    }

    /// IOPS of the best over those of the worst, at least 1.
    fn gain(&self) -> f64 {
        self.best.iops_mean() / self.worst.iops_mean()
    }

    fn finding(&self, kind: FindingKind, value: f64) -> Finding {
        Finding {
            kind,
            value,
            verdict: kind.judge(value),
            workload: self.workload.to_owned(),
            between: vec![self.best.name.to_owned(), self.worst.name.to_owned()],
            steps: vec![self.best.entry.step.clone(), self.worst.entry.step.clone()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WarningKind, example};

    fn of_kind(findings: &[Finding], kind: FindingKind, workload: &str) -> Finding {
        let mut found =
            findings.iter().filter(|it| it.kind == kind && it.workload == workload).cloned();
        let only = found.next().unwrap();
        assert_eq!(found.next(), None, "one finding of a kind for a workload");
        only
    }

    #[test]
    fn limits_judge_to_the_better_side() {
        use FindingKind::{FormatGain, HostDifference, Peak, Unsteady};
        use Verdict::{Neither, Strength, Weakness};
        let cases = [
            (Peak, 10.0, Strength),
            (Peak, 26.0, Neither),
            (Peak, 663.0, Weakness),
            (HostDifference, 0.96, Strength),
            (HostDifference, 0.9, Neither),
            (HostDifference, 0.5, Weakness),
            (Unsteady, 0.0, Neither),
            (Unsteady, 1.0, Weakness),
            (FormatGain, 1.1, Neither),
            (FormatGain, 2.1, Strength),
        ];
        for (kind, value, expect) in cases {
            assert_eq!(kind.judge(value), expect, "{kind:?} {value}");
        }
    }

    #[test]
    fn the_ratios_of_a_run_are_those_of_its_steps() {
        let findings = of_run(&example::run());
        let cases = [
            (FindingKind::BurstOverSettled, "4k-rand-write", 257.0 / 42.0),
            (FindingKind::Unsteady, "4k-rand-write", 0.0),
            (FindingKind::WriteAmplification, "4k-rand-write", 3.0),
            (FindingKind::Deviation, "4k-rand-write", 0.5),
            // The longest request was one of those at T2Q2, which take four times as long here.
            (FindingKind::Peak, "8k-70-30", 6.0),
            (FindingKind::Scaling, "8k-70-30", 4.0),
            (FindingKind::ReadOverWrite, "4k-rand-read", 140.0 / 42.6),
        ];
        for (kind, workload, expect) in cases {
            let found = of_kind(&findings, kind, workload).value;
            assert!((found - expect).abs() <= expect * 1e-6, "{kind:?}: {found}");
        }
    }

    #[test]
    fn only_the_greatest_load_of_a_sweep_is_judged() {
        let findings = of_run(&example::run());
        let peak = of_kind(&findings, FindingKind::Peak, "8k-70-30");
        let watched = ["8k-70-30/measure/T16Q16", "8k-70-30/precondition", "8k-70-30/measure/T2Q2"];
        assert_eq!(peak.steps, watched);
        let scaling = of_kind(&findings, FindingKind::Scaling, "8k-70-30");
        assert_eq!(scaling.steps, ["8k-70-30/measure/T16Q16", "8k-70-30/measure/T2Q2"]);
    }

    #[test]
    fn what_a_warning_puts_in_doubt_is_withheld_and_said_why() {
        let mut run = example::run();
        let deviation = |run: &Run| {
            let found = of_run(run).into_iter();
            found.filter(|it| it.kind == FindingKind::Deviation).map(|it| it.workload).collect()
        };
        let before: Vec<String> = deviation(&run);
        assert!(before.contains(&"4k-rand-write".to_owned()));
        run.warnings.push(crate::Warning {
            kind: WarningKind::Environment,
            step: "4k/measure/write".into(),
            text: "others moved 58 % of what the device moved".into(),
            remedy: String::new(),
        });
        let after: Vec<String> = deviation(&run);
        assert!(!after.contains(&"4k-rand-write".to_owned()), "{after:?}");
        let withheld = withheld(&run);
        let of = withheld.iter().find(|it| it.finding.kind == FindingKind::Deviation).unwrap();
        assert_eq!(of.reason, "others moved 58 % of what the device moved");
    }

    #[test]
    fn figures_that_the_host_limits_are_no_findings_of_the_drive() {
        let mut run = example::run();
        let step = run.steps.iter_mut().find(|it| it.id == "8k-70-30/measure/T16Q16").unwrap();
        let summary = step.summary.as_mut().unwrap();
        // Sixteen threads at 52K: all of their time, but for a hundredth.
        summary.host_processor_us = Some(16e6 / 52_000.0 * 0.99);
        let of = |kind: FindingKind| {
            let found = of_run(&run).into_iter();
            found.filter(|it| it.kind == kind && it.workload == "8k-70-30").count()
        };
        assert_eq!((of(FindingKind::Scaling), of(FindingKind::Deviation)), (0, 0));
        assert_eq!(of(FindingKind::WriteAmplification), 1, "no matter of the host");
        let withheld = withheld(&run);
        let reason = withheld.iter().find(|it| it.finding.kind == FindingKind::Deviation);
        let expected = "limited by the host (16 threads): the figures are those of the host";
        assert_eq!(reason.map(|it| it.reason.as_str()), Some(expected));
    }

    #[test]
    fn a_short_look_does_not_say_that_no_request_stands_out() {
        let mut run = example::run();
        let is_of_reads =
            |it: &Finding| it.kind == FindingKind::Peak && it.workload == "4k-rand-read";
        assert!(!of_run(&run).iter().any(is_of_reads), "five minutes");
        let said = |run: &Run| -> String {
            let mut withheld = withheld(run).into_iter();
            withheld.find(|it| is_of_reads(&it.finding)).unwrap().reason
        };
        assert!(said(&run).contains("for 300 s in all, on the drive's own clock: rarer"));
        let reads = run.steps.iter_mut().filter(|it| it.workload == "4k-rand-read");
        reads.filter_map(|it| it.summary.as_mut()).for_each(|it| it.span_s /= 128.0);
        assert!(said(&run).contains("for 2.3 s in all"), "{}", said(&run));
    }

    #[test]
    fn windows_alone_do_not_say_that_no_request_stands_out() {
        let mut run = example::run();
        for summary in run.steps.iter_mut().filter_map(|step| step.summary.as_mut()) {
            summary.span_s = 3600.0;
        }
        let is_of_reads =
            |it: &Finding| it.kind == FindingKind::Peak && it.workload == "4k-rand-read";
        assert!(of_run(&run).iter().any(is_of_reads));
        example::sample(&mut run);
        assert!(!of_run(&run).iter().any(is_of_reads));
        let withheld = withheld(&run).into_iter().find(|it| is_of_reads(&it.finding)).unwrap();
        let expected = "sampled to ±1 %, maximum of 40 windows alone: longer requests may lie";
        assert!(withheld.reason.starts_with(expected), "{}", withheld.reason);
    }

    #[test]
    fn a_sampled_run_makes_no_finding_beside_one_in_detail() {
        let hosts = ["linux", "windows"].map(|host| {
            let mut run = example::run();
            run.target.host = host.into();
            run
        });
        let is_of_hosts = |it: &Finding| it.kind == FindingKind::HostDifference;
        assert!(between(&hosts).iter().any(is_of_hosts));
        let [one, mut other] = hosts;
        example::sample(&mut other);
        assert!(!between(&[one, other]).iter().any(is_of_hosts));
    }

    #[test]
    fn a_listed_stall_is_no_weakness_of_the_drive() {
        let mut run = example::run();
        let step = run.steps.iter_mut().find(|it| it.is_primary()).unwrap();
        let workload = step.workload.clone();
        step.summary.as_mut().unwrap().latency.latency_ns_max = 1_000_000_000_000;
        let peaks = |run: &Run| -> Vec<Finding> {
            let found = of_run(run).into_iter();
            let of = |it: &Finding| it.kind == FindingKind::Peak && it.workload == workload;
            found.filter(of).collect()
        };
        assert_eq!(peaks(&run)[0].verdict, Verdict::Weakness);
        run.target.host_stall_ms_max = Some(400.0);
        assert_eq!(peaks(&run)[0].verdict, Verdict::Weakness, "no stall is as long");
        run.target.host_stall_ms_max = Some(600_000.0);
        assert_eq!(peaks(&run), []);
        let withheld = withheld(&run);
        let reason = &withheld.iter().find(|it| it.finding.workload == workload).unwrap().reason;
        assert!(reason.ends_with("that the model's file lists, of up to 600000 ms"), "{reason}");
    }

    #[test]
    fn loads_of_an_unsettled_drive_are_measured_in_different_states() {
        let mut run = example::run();
        let scaling = |all: Vec<Finding>| {
            all.into_iter().any(|it| it.kind == FindingKind::Scaling && it.workload == "8k-70-30")
        };
        assert!(scaling(of_run(&run)));
        for steady in run.steps.iter_mut().filter_map(|step| step.steady.as_mut()) {
            steady.achieved = false;
        }
        assert!(!scaling(of_run(&run)));
    }

    #[test]
    fn a_burst_has_no_settled_figure_to_be_compared_with() {
        let mut run = example::run();
        let steady = run.steps[1].steady.as_mut().unwrap();
        (steady.achieved, steady.evidence) = (false, Some(crate::SteadyEvidence::TooLittleWritten));
        let findings = of_run(&run);
        let of_4k: Vec<FindingKind> = findings
            .iter()
            .filter(|it| it.steps.iter().any(|id| id == "4k/precondition"))
            .map(|it| it.kind)
            .collect();
        assert!(of_4k.contains(&FindingKind::Unsteady), "{of_4k:?}");
        assert!(!of_4k.contains(&FindingKind::BurstOverSettled), "{of_4k:?}");
        assert!(!findings.iter().any(|it| it.kind == FindingKind::ReadOverWrite));
    }

    #[test]
    fn a_run_that_measured_nothing_has_no_findings() {
        let mut run = example::run();
        for step in &mut run.steps {
            *step = example::step(&step.id, &step.workload, (1, 1), &[]);
        }
        run.steps.retain(|step| step.kind != StepKind::Precondition);
        assert_eq!(of_run(&run), []);
    }

    #[test]
    fn hosts_and_formats_are_compared_within_one_drive() {
        let slower = |format: &str, host: &str, percent: u64| {
            let mut run = example::run();
            (run.target.format, run.target.host) = (format.into(), host.into());
            for step in run.steps.iter_mut().filter(|step| step.summary.is_some()) {
                let summaries = step.summary.iter_mut().chain(&mut step.settled);
                summaries.for_each(|summary| summary.iops *= percent as f64 / 100.0);
            }
            run
        };
        let mut other = slower("stock", "linux", 10);
        other.target.name = "another drive".into();
        let runs = [
            slower("stock", "linux", 100),
            slower("stock", "windows", 90),
            slower("high-performance", "linux", 210),
            other,
        ];
        let findings = between(&runs);
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert_eq!(findings[0].kind, FindingKind::HostDifference);
        assert_eq!(findings[0].between, ["linux", "windows"]);
        assert!((findings[0].value - 0.9).abs() < 1e-9);
        assert_eq!(findings[1].kind, FindingKind::FormatGain);
        assert_eq!(findings[1].between, ["high-performance", "stock"]);
        assert!((findings[1].value - 2.1).abs() < 1e-9);
        assert_eq!(findings[1].verdict, Verdict::Strength);
        let gains = findings[1..].iter().map(|it| it.workload.as_str());
        assert_eq!(gains.collect::<Vec<_>>(), ["4k-rand-write", "8k-70-30"], "all that pass");
        let repeats = [slower("stock", "linux", 100), slower("stock", "linux", 60)];
        assert_eq!(between(&repeats), [], "repeats differ by chance");
        let three = [&repeats[..], &[slower("stock", "windows", 80)]].concat();
        let difference = &between(&three)[0];
        assert!(
            (difference.value - 1.0).abs() < 1e-9,
            "80 is the mean of 100 and 60: {difference:?}"
        );
    }

    #[test]
    fn reads_over_writes_need_a_steady_state_that_was_judged() {
        let mut run = example::run();
        let is_found = |run: &Run| read_over_write(run).is_some();
        assert!(is_found(&run));
        for step in &mut run.steps {
            step.steady = None;
        }
        assert!(!is_found(&run), "it was not judged whether the drive had settled");
    }

    #[test]
    fn consistency_is_judged_by_the_deviation_of_all_requests() {
        let mut run = example::run();
        for step in run.steps.iter_mut().filter(|step| step.workload == "8k-70-30") {
            let Some(summary) = &mut step.summary else { continue };
            // Reads and writes that hardly vary, far from each other.
            summary.latency.latency_ns_stdev = summary.latency.latency_ns_avg * 1.3;
            (summary.read.latency_ns_stdev, summary.write.latency_ns_stdev) = (1.0, 1.0);
        }
        let found = of_kind(&of_run(&run), FindingKind::Deviation, "8k-70-30");
        assert!((found.value - 1.3).abs() < 1e-9, "{found:?}");
    }
}
