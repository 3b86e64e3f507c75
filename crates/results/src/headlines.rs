//! Headline figures of one run, and their ratios: what a verdict states of a drive.
//!
//! | ratio | of |
//! |---|---|
//! | reads over writes | 4K random reads ÷ 4K random writes under the same load |
//! | settled over burst | 4K random writes of the last window of the preconditioning ÷ its burst |
//! | tail over average | latency of 99.9 % of the 4K random writes ÷ their average |
//!
//! They are observations without limits: which work a drive is for depends on the rate that the
//! work needs, and not on one ratio. A drive that was not in steady state has none.

use crate::baseline::{Headline, conditions, is_comparable, place};
use crate::published::burst;
use crate::{Figure, Run, Step, StepKind, WrittenAmount};

/// Headline figures of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headlines {
    /// 4K random writes in each second.
    pub write_iops: Option<f64>,
    /// 4K random reads in each second.
    pub read_iops: Option<f64>,
    /// 8K random requests in each second, 70 % of them reads.
    pub mixed_iops: Option<f64>,
    /// 4K random writes in each second of the burst of the preconditioning.
    pub burst_iops: Option<f64>,
    /// 4K random writes in each second of the last window of the same preconditioning.
    pub window_iops: Option<f64>,
    /// Latency that 99.9 % of the 4K random writes do not exceed, in nanoseconds.
    pub write_latency_ns_p999: Option<f64>,
    /// Average latency of the 4K random writes, in nanoseconds.
    pub write_latency_ns_avg: Option<f64>,
    /// True of a model: its figures are simulated, not measured.
    pub is_model: bool,
    /// True if its figures come from the report of another program.
    pub is_imported: bool,
    /// True if the drive was in steady state under every suite that was read here.
    pub is_settled: bool,
    /// Amount written to the drive by the end of the writes, where that was kept.
    pub written: Option<WrittenAmount>,
    /// Ways in which a measurement differs from those of the baseline table, see [`conditions`],
    /// each once.
    pub conditions: Vec<String>,
    /// True if 4K random reads and writes were measured with the same threads and queue depth.
    pub is_one_load: bool,
    /// Reason why the figures of 4K random writes may not be the drive's own, see
    /// [`Run::distrusted`]: no ratio or place rests on them. Absent where there is none.
    pub write_doubt: Option<String>,
    /// Reason why the figures of 4K random reads may not be the drive's own, see `write_doubt`.
    pub read_doubt: Option<String>,
    /// Reason why the figures of the preconditioning may not be the drive's own, see `write_doubt`.
    pub burst_doubt: Option<String>,
    /// Reason why the figures of the 8K random requests may not be the drive's own, see
    /// `write_doubt`.
    pub mixed_doubt: Option<String>,
    /// Contradiction of a published figure of the same load to a headline, see [`contradiction`].
    pub contradictions: Vec<(Headline, String)>,
    /// Place by 4K random writes among this drive and the others of the baseline table, from 1, and
    /// how many these are together.
    pub write_place: Option<(usize, usize)>,
}

/// 4K random writes that `run` measured in each second of steady state; absent where it did not,
/// or a warning puts them in doubt.
pub fn settled_write_iops(run: &Run) -> Option<f64> {
    let step = Headline::Write.step(run)?;
    let is_sound = run.is_settled(step) == Some(true) && run.distrusted(step).is_none();
    Headline::Write.of_step(run, step).filter(|_| is_sound)
}

impl Headlines {
    /// Reads the numbers of `run`.
    pub fn of(run: &Run) -> Self {
        let step = |headline: Headline| headline.step(run);
        let value = |headline: Headline| headline.of_step(run, step(headline)?);
        let write = step(Headline::Write);
        let write_iops = value(Headline::Write);
        let precondition = write.and_then(|write| preconditioning(run, write));
        let load = |step: &Step| (step.threads, step.queue_per_thread);
        let steps = Headline::ALL.into_iter().filter_map(step);
        let settled: Vec<bool> = steps.map(|step| run.is_settled(step).unwrap_or(false)).collect();
        Self {
            write_iops,
            read_iops: value(Headline::Read),
            mixed_iops: value(Headline::Mixed),
            burst_iops: precondition.and_then(|step| burst_iops(run, step)),
            window_iops: precondition.and_then(|step| Some(step.settled.as_ref()?.iops)),
            write_latency_ns_p999: value(Headline::WriteTail),
            write_latency_ns_avg: write.and_then(|write| write.summary.as_ref()?.latency.mean_ns()),
            is_model: run.target.kind.is_model(),
            is_imported: run.imported_from().is_some(),
            is_settled: !settled.is_empty() && settled.into_iter().all(|settled| settled),
            written: write.and_then(|write| write.written),
            conditions: conditions_of(run),
            is_one_load: write.map(load) == step(Headline::Read).map(load),
            write_doubt: write.and_then(|step| run.distrusted(step)),
            read_doubt: step(Headline::Read).and_then(|step| run.distrusted(step)),
            mixed_doubt: step(Headline::Mixed).and_then(|step| run.distrusted(step)),
            burst_doubt: precondition.and_then(|step| run.distrusted(step)),
            contradictions: Headline::ALL
                .into_iter()
                .filter_map(|it| Some((it, contradiction(run, it)?)))
                .collect(),
            write_place: write
                .filter(|write| is_comparable(run, write) && run.distrusted(write).is_none())
                .and(write_iops)
                .map(|iops| place(Headline::Write, iops, &run.target.name)),
        }
    }

    /// 4K random reads over 4K random writes under the same load.
    pub fn reads_over_writes(&self) -> Option<f64> {
        let is_known = self.is_one_load && self.read_doubt.is_none() && self.write_doubt.is_none();
        self.ratio(self.read_iops, self.write_iops).filter(|_| is_known)
    }

    /// 4K random writes of the last window of the preconditioning over those of its burst.
    pub fn settled_over_burst(&self) -> Option<f64> {
        self.ratio(self.window_iops, self.burst_iops).filter(|_| self.burst_doubt.is_none())
    }

    /// The 99.9th percentile of the 4K random writes over their average.
    pub fn tail_over_average(&self) -> Option<f64> {
        let ratio = self.ratio(self.write_latency_ns_p999, self.write_latency_ns_avg);
        let is_contradicted = self.contradiction(Headline::WriteTail).is_some();
        ratio.filter(|_| self.write_doubt.is_none() && !is_contradicted)
    }

    /// Contradiction of a published figure to `headline`; absent without any.
    pub fn contradiction(&self, headline: Headline) -> Option<&str> {
        let mut all = self.contradictions.iter();
        all.find(|(of, _)| *of == headline).map(|(_, text)| text.as_str())
    }

    /// The first reason why a figure may not be the drive's own; absent where there is none.
    pub fn doubt(&self) -> Option<&str> {
        let doubts = [&self.write_doubt, &self.read_doubt, &self.mixed_doubt, &self.burst_doubt];
        doubts.into_iter().flatten().next().map(String::as_str)
    }

    /// `a` over `b` of a drive that had settled.
    fn ratio(&self, a: Option<f64>, b: Option<f64>) -> Option<f64> {
        if self.is_settled { crate::compare::ratio(a?, b?) } else { None }
    }
}

/// Words on the published figure of the same drive and load that contradicts a `headline` of
/// `run`: a rate out of tolerance, or a percentile above the published maximum. Absent without
/// one.
pub fn contradiction(run: &Run, headline: Headline) -> Option<String> {
    let step = headline.step(run)?;
    let value = headline.of_step(run, step)?;
    let load = (step.threads.to_string(), step.queue_per_thread.to_string());
    let is_same = |figure: &&Figure| {
        figure.workload == headline.workload()
            && (figure.threads.as_str(), figure.queue_per_thread.as_str()) == (&*load.0, &*load.1)
            && matches!(figure.phase.as_str(), "primary" | "steady")
    };
    run.published.iter().filter(is_same).find_map(|figure| {
        let most = figure.value_high;
        if headline == Headline::WriteTail {
            let is_beyond = figure.metric == "max_latency_ms" && value / 1e6 > most;
            // Whole milliseconds, but for a maximum that is none.
            let digits = if most < 10.0 { 3 } else { 0 };
            return is_beyond.then(|| format!("above the published maximum of {most:.digits$} ms"));
        }
        let judged = Figure { measured: Some(value), ..figure.clone() };
        let is_off = figure.metric == "iops" && judged.is_in_tolerance() == Some(false);
        is_off.then(|| format!("{most} were published"))
    })
}

/// The conditions of all measurements that the figures of `run` are read from, each once.
fn conditions_of(run: &Run) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for headline in Headline::ALL {
        for condition in headline.step(run).map(conditions).unwrap_or_default() {
            if !all.contains(&condition) {
                all.push(condition);
            }
        }
    }
    all
}

/// The preconditioning before `step` with the same workload; absent where it was another.
fn preconditioning<'a>(run: &'a Run, step: &Step) -> Option<&'a Step> {
    run.steps.iter().find(|other| {
        other.kind == StepKind::Precondition
            && other.suite == step.suite
            && other.workload == step.workload
    })
}

/// IOPS of the burst of `precondition`.
fn burst_iops(run: &Run, precondition: &Step) -> Option<f64> {
    let burst = burst(run, precondition);
    let sum: f64 = burst.iter().map(|sample| sample.summary.iops).sum();
    (!burst.is_empty()).then(|| sum / burst.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::findings::{Finding, FindingKind};

    #[test]
    fn a_headline_that_a_published_figure_of_its_load_contradicts_is_named() {
        let mut run = example::run();
        let step = Headline::Write.step(&run).unwrap().clone();
        let figure = |metric: &str, value: f64| Figure {
            id: "A1".into(),
            document: String::new(),
            mode: "any".into(),
            host: "any".into(),
            workload: Headline::Write.workload().into(),
            threads: step.threads.to_string(),
            queue_per_thread: step.queue_per_thread.to_string(),
            phase: "primary".into(),
            metric: metric.into(),
            value_low: value,
            value_high: value,
            measured: None,
            note: String::new(),
        };
        let iops = Headline::Write.of_step(&run, &step).unwrap();
        let tail_ms = Headline::WriteTail.of_step(&run, &step).unwrap() / 1e6;
        run.published = vec![figure("iops", iops * 1.1), figure("max_latency_ms", tail_ms * 1.1)];
        assert_eq!(Headlines::of(&run).contradictions, [], "both agree");
        run.published = vec![figure("iops", iops * 2.0), figure("max_latency_ms", tail_ms / 2.0)];
        let it = Headlines::of(&run);
        assert!(it.contradiction(Headline::Write).unwrap().ends_with(" were published"));
        let tail = it.contradiction(Headline::WriteTail).unwrap();
        assert!(tail.starts_with("above the published maximum of "), "{tail}");
        assert_eq!(it.tail_over_average(), None, "no ratio rests on it");
        run.published[1].queue_per_thread = "1".into();
        assert_eq!(contradiction(&run, Headline::WriteTail), None, "of another load");
    }

    #[test]
    fn a_tail_that_a_listed_stall_makes_is_no_headline() {
        let mut run = example::run();
        let tail_ms = Headlines::of(&run).write_latency_ns_p999.unwrap() / 1e6;
        let tail = |run: &Run| Headlines::of(run).write_latency_ns_p999;
        run.target.host_stall_ms_max = Some(tail_ms * 3.0);
        assert!(tail(&run).is_some(), "shorter than any stall");
        run.target.host_stall_ms_max = Some(tail_ms * 1.5);
        assert_eq!(tail(&run), None);
        assert_eq!(Headlines::of(&run).tail_over_average(), None);
        assert!(Headlines::of(&run).write_iops.is_some());
    }

    #[test]
    fn a_settled_drive_has_ratios_and_a_burst_has_none() {
        let it = Headlines {
            write_iops: Some(40_000.0),
            read_iops: Some(140_000.0),
            burst_iops: Some(250_000.0),
            window_iops: Some(40_000.0),
            is_one_load: true,
            write_latency_ns_p999: Some(20e6),
            write_latency_ns_avg: Some(6e6),
            is_settled: true,
            ..Headlines::default()
        };
        assert_eq!(it.reads_over_writes(), Some(3.5));
        assert_eq!(it.settled_over_burst(), Some(0.16));
        assert_eq!(it.tail_over_average(), Some(20.0 / 6.0));
        let burst = Headlines { is_settled: false, ..it.clone() };
        assert_eq!((burst.reads_over_writes(), burst.settled_over_burst()), (None, None));
        assert_eq!(burst.tail_over_average(), None);
        let apart = Headlines { is_one_load: false, ..it.clone() };
        assert_eq!(apart.reads_over_writes(), None, "a load that is larger reaches more");
        let limited = Headlines { read_doubt: Some("limited by the host".into()), ..it.clone() };
        assert_eq!(
            (limited.reads_over_writes(), limited.doubt()),
            (None, Some("limited by the host"))
        );
        assert_eq!(limited.settled_over_burst(), Some(0.16), "writes alone");
    }

    #[test]
    fn no_ratio_and_no_place_rests_on_figures_that_a_warning_puts_in_doubt() {
        let mut run = example::run();
        let before = Headlines::of(&run);
        assert!(before.reads_over_writes().is_some() && before.doubt().is_none());
        run.warnings.push(crate::Warning {
            kind: crate::WarningKind::PageCache,
            step: String::new(),
            text: "the page cache answered reads".into(),
            remedy: String::new(),
        });
        let it = Headlines::of(&run);
        assert_eq!((it.reads_over_writes(), it.settled_over_burst()), (None, None));
        assert_eq!((it.tail_over_average(), it.write_place), (None, None));
        assert_eq!(it.doubt(), Some("the page cache answered reads"));
        assert_eq!(it.write_iops, before.write_iops, "what was measured is told");
    }

    #[test]
    fn the_numbers_are_those_of_the_run() {
        let it = Headlines::of(&example::run());
        assert!(it.is_settled);
        assert!(it.write_iops.is_some() && it.read_iops.is_some() && it.mixed_iops.is_some());
        let findings = crate::findings::of_run(&example::run());
        let of_kind = |it: &&Finding| it.kind == FindingKind::BurstOverSettled;
        let finding = findings.iter().find(of_kind).unwrap();
        let ratio = it.settled_over_burst().unwrap() * finding.value;
        assert!((ratio - 1.0).abs() < 1e-9, "the verdict and the conclusion state one ratio");
    }
}
