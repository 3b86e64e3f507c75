//! Runs side by side: the same load in each, ratios, and what else differs between them.

use std::borrow::Borrow;

use serde::Serialize;

use crate::conditions::{format, preconditioning, sampling};
use crate::mark::is_unset;
use crate::{
    ConfidenceInterval, PlatformRow, Run, Spread, Step, StepKind, Summary, Target, TargetKind,
    WrittenAmount,
};

/// Smallest difference of two rates or latencies that is called one, as a share: repeats of a run
/// on a quiet machine lie about as far apart, and no reader decides by less.
pub const MEANINGFUL_MIN: f64 = 0.05;

/// Comparison of all runs under one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// A preconditioning, compared by its settled window, or a measurement.
    pub kind: StepKind,
    /// Name of the suite.
    pub suite: String,
    /// Name of the workload.
    pub workload: String,
    /// Jobs.
    pub threads: u16,
    /// Requests that each job kept outstanding.
    pub queue_per_thread: u16,
    /// One entry a run, in the order of the runs; absent where a run has no such load.
    pub entries: Vec<Option<Entry>>,
}

/// Measurement of one run under a load, compared with the other runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Name of the step in its run.
    pub step: String,
    /// Summary that is compared: the settled window of a preconditioning, all of a measurement.
    pub summary: Summary,
    /// IOPS over those of the first run that has this load; absent where those are 0.
    pub iops_ratio: Option<f64>,
    /// True if it was measured in steady state; absent if that was not judged.
    pub settled: Option<bool>,
    /// Amount written to the drive by then; absent in earlier results.
    pub written: Option<WrittenAmount>,
    /// Average latency over that of the first run that has this load; absent where that is 0.
    pub latency_ratio: Option<f64>,
    /// Place by IOPS among the runs that have this load, from 1; equals share a place.
    pub rank: u32,
    /// Intervals of the figures of a measurement; absent where its parts were not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// True if requests are missing from its figures: no comparison rests on them.
    #[serde(skip_serializing_if = "is_unset")]
    pub lacks_requests: bool,
    /// Text of a warning that the figures of this step may not be the drive's own: no drive wins by
    /// them. Absent where there is none; warnings about a whole run are not repeated here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// Puts `runs` side by side: every load that any of them measured, in order of appearance.
pub fn compare<R: Borrow<Run>>(runs: &[R]) -> Vec<Comparison> {
    let runs: Vec<&Run> = runs.iter().map(Borrow::borrow).collect();
    let mut loads: Vec<&Step> = Vec::new();
    for step in runs.iter().flat_map(|run| &run.steps) {
        if measured(step).is_some() && !loads.iter().any(|load| same_load(load, step)) {
            loads.push(step);
        }
    }
    loads.into_iter().map(|load| comparison(load, &runs)).collect()
}

/// Returns the summary that a step is compared by; absent for a purge, a fill, a load at a rate,
/// and for a step that measured nothing.
pub fn measured(step: &Step) -> Option<&Summary> {
    match step.kind {
        StepKind::Precondition => step.settled.as_ref(),
        StepKind::Measure if step.is_primary() => step.summary.as_ref(),
        StepKind::Purge | StepKind::Fill | StepKind::Measure | StepKind::Application => None,
    }
}

fn same_load(a: &Step, b: &Step) -> bool {
    (a.kind, &a.suite, &a.workload, a.threads, a.queue_per_thread)
        == (b.kind, &b.suite, &b.workload, b.threads, b.queue_per_thread)
}

fn comparison(load: &Step, runs: &[&Run]) -> Comparison {
    let found: Vec<Option<(&Run, &Step, &Summary)>> = runs
        .iter()
        .map(|run| {
            let mut steps = run.steps.iter().filter(|step| same_load(load, step));
            steps.find_map(|step| Some((*run, step, measured(step)?)))
        })
        .collect();
    let summaries: Vec<&Summary> = found.iter().flatten().map(|(_, _, summary)| *summary).collect();
    let first = summaries.first().copied();
    let entry = |(run, step, summary): (&Run, &Step, &Summary)| {
        let ahead = summaries.iter().filter(|other| other.iops > summary.iops).count();
        let over_first = |of: fn(&Summary) -> Option<f64>| ratio(of(summary)?, of(first?)?);
        Entry {
            step: step.id.clone(),
            summary: summary.clone(),
            settled: run.is_settled(step),
            written: step.written,
            iops_ratio: over_first(|summary| Some(summary.iops)),
            latency_ratio: over_first(|summary| summary.latency.mean_ns()),
            rank: u32::try_from(ahead + 1).unwrap_or(u32::MAX),
            spread: step.spread.filter(|_| step.kind == StepKind::Measure),
            lacks_requests: run.lacks_requests(&step.id),
            doubt: run.doubt_of_step(&step.id).map(str::to_owned),
        }
    };
    Comparison {
        kind: load.kind,
        suite: load.suite.clone(),
        workload: load.workload.clone(),
        threads: load.threads,
        queue_per_thread: load.queue_per_thread,
        entries: found.into_iter().map(|found| found.map(entry)).collect(),
    }
}

/// `a / b`; absent where that is no number.
pub(crate) fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

impl Entry {
    /// True if the figures are all of what the drive did.
    pub const fn is_whole(&self) -> bool {
        !self.lacks_requests
    }
}

/// Geometric means over all `loads` of the ends of the intervals that `of` reads from a run: wider
/// than the interval of the mean, because not all loads err to one side. Absent where one has none.
pub(crate) fn interval_mean(
    loads: &[&Comparison],
    run: usize,
    of: fn(&Spread) -> Option<ConfidenceInterval>,
) -> Option<(f64, f64)> {
    let (mut low, mut high) = (0.0, 0.0);
    for load in loads {
        let interval = of(load.entries.get(run)?.as_ref()?.spread.as_ref()?)?;
        low += interval.low.ln();
        high += interval.high.ln();
    }
    let count = loads.len() as f64;
    Some(((low / count).exp(), (high / count).exp()))
}

/// Something besides the drive that differs between runs, which a comparison must say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Name of the property, such as `model version` or `Kernel`.
    pub what: String,
    /// Its value in each run.
    pub values: Vec<String>,
}

/// Condition of a run besides its drive and its loads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunCondition {
    /// Name of the property, such as `model version` or `Kernel`.
    pub what: String,
    /// Its value.
    pub value: String,
}

/// Name of the condition that differs by suite.
const PRECONDITIONING: &str = "preconditioning";

/// Name of the format in which drives are delivered, whatever each of them calls it.
const AS_DELIVERED: &str = "as delivered";

/// Conditions of `run`, in the order in which differences are listed: the preconditioning of each
/// suite by itself, and of a real drive the platform.
pub fn run_conditions(run: &Run) -> Vec<RunCondition> {
    let [mut of_format, host, others @ ..] = common_conditions(run);
    if format(run).is_empty() {
        AS_DELIVERED.clone_into(&mut of_format.value);
    }
    let of_suite = |suite| RunCondition {
        what: format!("{PRECONDITIONING} of {suite}"),
        value: preconditioning(run, suite),
    };
    let platform = run.environment.sheet.iter().filter(|row| !is_outcome(&row.name));
    let platform = platform.filter(|_| !run.target.kind.is_model());
    let of_row =
        |row: &PlatformRow| RunCondition { what: row.name.clone(), value: row.value.clone() };
    [of_format, host]
        .into_iter()
        .chain(suites(run).into_iter().map(of_suite))
        .chain(others)
        .chain(platform.map(of_row))
        .collect()
}

/// Conditions that every run has, its format and its host first.
fn common_conditions(run: &Run) -> [RunCondition; 9] {
    let kind = if run.target.kind.is_model() { "model" } else { "real drive" };
    [
        ("format", run.target.format.clone()),
        ("host", run.target.host.clone()),
        ("protocol", run.protocol.clone()),
        ("kind of target", kind.to_owned()),
        ("model version", run.model_version.map_or("none".to_owned(), |it| it.to_string())),
        ("program version", run.floatgate_version.clone()),
        ("time lapse", run.target.time_lapse.to_string()),
        ("compressible data", compressible(run)),
        ("sampling", sampling(run, None)),
    ]
    .map(|(what, value)| RunCondition { what: what.to_owned(), value })
}

fn suites(run: &Run) -> Vec<&str> {
    let mut suites: Vec<&str> = run.steps.iter().map(|step| step.suite.as_str()).collect();
    suites.dedup();
    suites
}

/// The preconditionings of `suites` in `run`, each once.
fn preconditionings(run: &Run, suites: &[&str]) -> String {
    let mut told: Vec<String> = suites.iter().map(|suite| preconditioning(run, suite)).collect();
    told.dedup();
    told.join(", ")
}

/// Lists differences between `runs` other than the measurements: results of different model
/// versions, for one, are never compared without saying so.
pub fn differences<R: Borrow<Run>>(runs: &[R]) -> Vec<Difference> {
    let has = |run: &Run, suite: &str| run.steps.iter().any(|step| step.suite == suite);
    let preconditioned = |run: &Run| {
        let mut common = suites(run);
        common.retain(|suite| runs.iter().all(|run| has(run.borrow(), suite)));
        let what = PRECONDITIONING.to_owned();
        RunCondition { what, value: preconditionings(run, &common) }
    };
    let conditions = |run: &Run| {
        let [format, host, others @ ..] = common_conditions(run);
        let first = [format, host, preconditioned(run)];
        first.into_iter().chain(others).collect::<Vec<_>>()
    };
    let all: Vec<Vec<RunCondition>> = runs.iter().map(|run| conditions(run.borrow())).collect();
    let difference = |(index, first): (usize, &RunCondition)| Difference {
        what: first.what.clone(),
        values: all.iter().map(|conditions| conditions[index].value.clone()).collect(),
    };
    let first = all.first().into_iter().flatten().enumerate();
    let mut differences: Vec<Difference> = first.map(difference).collect();
    differences.extend(platforms(runs));
    differences.extend(models(runs));
    differences.retain(|it| it.values.iter().any(|value| *value != it.values[0]));
    if runs.windows(2).all(|pair| format(pair[0].borrow()) == format(pair[1].borrow())) {
        differences.retain(|it| it.what != "format");
    }
    differences
}

/// The share by which the data of the loads of `run` can be compressed: `0 %`, or each value in
/// order.
fn compressible(run: &Run) -> String {
    let mut percents: Vec<f64> = run.steps.iter().map(|step| step.compressible_percent).collect();
    percents.sort_by(f64::total_cmp);
    percents.dedup();
    let told: Vec<String> = percents.iter().map(|percent| format!("{percent} %")).collect();
    told.join(" and ")
}

/// Numbers of drive files in which models of one title and format differ, such as those of a
/// changed copy; none where the drives have other names already.
fn models<R: Borrow<Run>>(runs: &[R]) -> Vec<Difference> {
    let targets: Vec<&Target> = runs.iter().map(|run| &run.borrow().target).collect();
    let named = |target: &&Target| (target.kind, target.title.clone(), target.format.clone());
    let is_one = targets.windows(2).all(|pair| named(&pair[0]) == named(&pair[1]));
    let Some(first) = targets.first().filter(|first| is_one && first.kind == TargetKind::Model)
    else {
        return Vec::new();
    };
    let value = |target: &Target, name: &str| {
        let row = target.sheet.iter().find(|row| row.name == name);
        row.map_or_else(|| "none".to_owned(), |row| row.value.clone())
    };
    let rows = first.sheet.iter().map(|row| Difference {
        what: row.name.clone(),
        values: targets.iter().map(|target| value(target, &row.name)).collect(),
    });
    rows.collect()
}

/// Rows of the test platform that tell what a run did, not what it was done on; of several devices
/// followed by the name of one.
const OUTCOMES: [&str; 5] = [
    "Drive before",
    "Drive after",
    "Wear caused by the test",
    // Its name in earlier results.
    "Cost of the test",
    "Temperature under load",
];

/// True if the row `name` of a test platform tells what a run did.
pub(crate) fn is_outcome(name: &str) -> bool {
    OUTCOMES.iter().any(|outcome| name.starts_with(outcome))
}

/// Rows of the test platforms that several real runs have.
fn platforms<R: Borrow<Run>>(runs: &[R]) -> Vec<Difference> {
    let real = |run: &&Run| run.target.kind != TargetKind::Model;
    let reals: Vec<&Run> = runs.iter().map(Borrow::borrow).filter(real).collect();
    let value = |run: &Run, name: &str| {
        let mut rows = run.environment.sheet.iter();
        rows.find(|row| row.name == name).map(|row| row.value.clone())
    };
    let mut names: Vec<&str> = Vec::new();
    for row in reals.iter().flat_map(|run| &run.environment.sheet) {
        let name = row.name.as_str();
        let several = reals.iter().filter(|run| value(run, name).is_some()).count() > 1;
        if several && !names.contains(&name) && !is_outcome(name) {
            names.push(name);
        }
    }
    let differs = |name: &&str| {
        let mut told = reals.iter().filter_map(|run| value(run, name));
        told.next().is_some_and(|first| told.any(|other| other != first))
    };
    let shown = |name: &str| Difference {
        what: name.to_owned(),
        values: runs
            .iter()
            .map(|run| value(run.borrow(), name).unwrap_or_else(|| "not told".into()))
            .collect(),
    };
    names.into_iter().filter(differs).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn every_load_is_put_beside_itself() {
        let runs = [example::run(), example::at_rate(85_200)];
        let comparisons = compare(&runs);
        assert_eq!(comparisons.len(), 6, "two preconditionings and four measurements");
        let write = comparisons
            .iter()
            .find(|it| it.kind == StepKind::Measure && it.workload == "4k-rand-write")
            .unwrap();
        let [first, second] = write.entries.as_slice() else { panic!("two runs") };
        let (first, second) = (first.as_ref().unwrap(), second.as_ref().unwrap());
        assert_eq!((first.rank, second.rank), (2, 1));
        assert!((second.iops_ratio.unwrap() - 2.0).abs() < 1e-9);
        assert!((second.latency_ratio.unwrap() - 0.5).abs() < 1e-4);
        assert_eq!(first.iops_ratio, Some(1.0));
    }

    #[test]
    fn a_preconditioning_is_compared_by_its_settled_window() {
        let comparisons = compare(&[example::run()]);
        let entry = comparisons[0].entries[0].as_ref().unwrap();
        assert_eq!(entry.step, "4k/precondition");
        assert!((entry.summary.iops - 42_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_load_that_a_run_lacks_is_absent_there() {
        let mut shorter = example::run();
        shorter.steps.retain(|step| step.suite == "4k");
        let comparisons = compare(&[shorter, example::run()]);
        let mixed = comparisons.iter().find(|it| it.workload == "8k-70-30").unwrap();
        assert!(mixed.entries[0].is_none());
        let present = mixed.entries[1].as_ref().unwrap();
        assert_eq!((present.rank, present.iops_ratio), (1, Some(1.0)));
    }

    #[test]
    fn platforms_of_real_runs_that_differ_are_told() {
        let real = |kernel: &str, cost: &str| {
            let mut run = example::run();
            run.target.kind = TargetKind::BlockDevice;
            let row = |(name, value): (&str, &str)| PlatformRow {
                name: name.into(),
                value: value.into(),
            };
            run.environment.sheet =
                [("Kernel", kernel), ("fio", "3.42"), ("Cost of the test", cost)].map(row).into();
            run
        };
        let told = differences(&[real("6.1", "1 TB written"), real("6.18", "2 TB written")]);
        let values = vec!["6.1".into(), "6.18".into()];
        assert_eq!(told, [Difference { what: "Kernel".into(), values }]);
    }

    #[test]
    fn numbers_in_which_models_of_one_name_differ_are_told() {
        let mut changed = example::run();
        changed.target.sheet[0].value = "60 us".into();
        let row = example::run().target.sheet[0].clone();
        let expected = Difference { what: row.name, values: vec![row.value, "60 us".into()] };
        assert_eq!(differences(&[example::run(), changed.clone()]), [expected]);
        changed.target.title = "Another drive".into();
        assert_eq!(differences(&[example::run(), changed]), []);
    }

    #[test]
    fn a_sampled_run_differs_from_one_in_detail() {
        let mut sampled = example::run();
        example::sample(&mut sampled);
        let values = vec!["none".into(), "to ±1 %".into()];
        let expected = Difference { what: "sampling".into(), values };
        assert_eq!(differences(&[example::run(), sampled]), [expected]);
    }

    #[test]
    fn what_differs_besides_the_drive_is_told() {
        let newer = Run { model_version: Some(2), ..example::run() };
        assert_eq!(
            differences(&[example::run(), newer]),
            [Difference { what: "model version".into(), values: vec!["1".into(), "2".into()] }]
        );
        assert_eq!(differences(&[example::run(), example::run()]), []);
    }
}
