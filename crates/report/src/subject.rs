//! The runs under review: what each is called, and what it did suite by suite.

use std::fmt::Write as _;

use results::mark::marked;
use results::repeats::groups;
use results::{Run, Spread, Step, StepKind, WarningKind};

use crate::number;
use crate::text::Text;

/// One run under review.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'a> {
    /// The run.
    pub(crate) run: &'a Run,
    /// Name beside the others, made of the properties in which they differ, with the mark of an
    /// unvalidated model.
    pub(crate) label: String,
    /// Its place, from 0: the colour that it has in every chart.
    pub(crate) index: usize,
    /// The runs that repeat each other, itself among them.
    repeats: Vec<&'a Run>,
}

/// One workload family in every run that has it.
#[derive(Clone, Debug)]
pub(crate) struct Suite<'a> {
    /// Name, such as `8k-70-30`.
    pub(crate) name: &'a str,
    /// Heading, with the workload where another suite has the same.
    pub(crate) title: String,
    /// Steps of each run that has it.
    pub(crate) parts: Vec<Part<'a>>,
    /// True if the page leaves out what a reader has to unfold.
    pub(crate) is_brief: bool,
}

/// Steps of one run in a suite.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    /// The run.
    pub(crate) subject: &'a Subject<'a>,
    /// Its preconditioning, where it got there.
    pub(crate) precondition: Option<&'a Step>,
    /// Its measurements while nothing held the load back.
    pub(crate) measures: Vec<&'a Step>,
    /// Its measurements at rates.
    pub(crate) rated: Vec<&'a Step>,
    /// Its rounds.
    pub(crate) rounds: Vec<&'a Step>,
    /// Its replays of recorded applications.
    pub(crate) applications: Vec<&'a Step>,
}

/// Names `runs` by what tells them apart: drive, format, host, protocol, time lapse, seed, folder.
pub(crate) fn subjects(runs: &[Run]) -> Vec<Subject<'_>> {
    let traits: [fn(&Run) -> String; 7] = [
        |run| run.target.title.clone(),
        |run| run.target.format.clone(),
        |run| run.target.host.clone(),
        |run| run.protocol_title.clone(),
        |run| format!("time lapse {}", run.target.time_lapse),
        |run| seed(run).map_or_else(String::new, |seed| format!("seed {seed}")),
        |run| run.id.clone(),
    ];
    let mut labels = vec![String::new(); runs.len()];
    for of in traits {
        let unique = (1..labels.len()).all(|index| !labels[..index].contains(&labels[index]));
        let differs = runs.iter().any(|run| of(run) != of(&runs[0]));
        if differs && (!unique || labels[0].is_empty()) {
            for (label, run) in labels.iter_mut().zip(runs) {
                let part = of(run);
                if !label.is_empty() && !part.is_empty() {
                    label.push_str(", ");
                }
                label.push_str(&part);
            }
        }
    }
    let groups = groups(runs);
    runs.iter()
        .zip(labels)
        .enumerate()
        .map(|(index, (run, label))| {
            let label = marked(&named(run, label, index), run.target.unvalidated);
            let group = groups.iter().find(|group| group.contains(&index)).into_iter().flatten();
            Subject { run, label, index, repeats: group.map(|other| &runs[*other]).collect() }
        })
        .collect()
}

fn named(run: &Run, label: String, index: usize) -> String {
    match (label.is_empty(), run.target.format.is_empty()) {
        (false, _) => label,
        (true, false) => run.target.format.clone(),
        (true, true) if run.target.title.is_empty() => format!("run {}", index + 1),
        (true, true) => run.target.title.clone(),
    }
}

/// The seed of the requests of `run`; absent of imported figures, whose requests are unknown.
pub(crate) fn seed(run: &Run) -> Option<u64> {
    run.imported_from().is_none().then_some(run.seed)
}

/// Line that names the runs of unvalidated models, below figures that name no run; empty without
/// any.
pub(crate) fn unvalidated(subjects: &[Subject<'_>]) -> String {
    let marked = subjects.iter().filter(|subject| subject.run.target.unvalidated);
    let labels: Vec<&str> = marked.map(|subject| subject.label.as_str()).collect();
    if labels.is_empty() {
        return String::new();
    }
    format!("<p class=\"provenance\">Figures of {}.</p>", Text(&labels.join("; ")))
}

/// The suites of all runs, in order of appearance.
pub(crate) fn suites<'a>(subjects: &'a [Subject<'a>]) -> Vec<Suite<'a>> {
    let mut suites: Vec<Suite<'a>> = Vec::new();
    for step in subjects.iter().flat_map(|subject| &subject.run.steps) {
        if !suites.iter().any(|suite| suite.name == step.suite) {
            let parts = subjects.iter().filter_map(|subject| part(subject, &step.suite)).collect();
            let (name, title) = (&step.suite, titled(step, subjects));
            suites.push(Suite { name, title, parts, is_brief: false });
        }
    }
    suites
}

/// The heading of the suite of `step`, its first.
fn titled(step: &Step, subjects: &[Subject<'_>]) -> String {
    let mut all = subjects.iter().flat_map(|subject| &subject.run.steps);
    let title = &step.suite_title;
    if all.any(|other| other.suite != step.suite && other.suite_title == *title) {
        format!("{title}, {}", step.workload)
    } else {
        title.clone()
    }
}

fn part<'a>(subject: &'a Subject<'a>, suite: &str) -> Option<Part<'a>> {
    let steps = || subject.run.steps.iter().filter(|step| step.suite == suite);
    steps().next()?;
    Some(Part {
        subject,
        precondition: steps().find(|step| step.kind == StepKind::Precondition),
        measures: steps().filter(|step| step.is_primary()).collect(),
        rated: steps().filter(|step| step.rate.is_some()).collect(),
        rounds: steps().filter(|step| step.round.is_some()).collect(),
        applications: steps().filter(|step| step.kind == StepKind::Application).collect(),
    })
}

/// Values that subjects have, each once, with the names of those who have it.
pub(crate) fn shared<'a, T: PartialEq>(
    subjects: &'a [Subject<'a>],
    of: fn(&'a Subject<'a>) -> &'a T,
) -> Vec<(String, &'a T)> {
    let mut groups: Vec<(String, &T)> = Vec::new();
    for subject in subjects {
        match groups.iter_mut().find(|(_, value)| *value == of(subject)) {
            Some((names, _)) => {
                let _ = write!(names, ", {}", subject.label);
            }
            None => groups.push((subject.label.clone(), of(subject))),
        }
    }
    groups
}

impl Subject<'_> {
    /// The intervals of what `step` measured: from repeats of the run where the page has any.
    pub(crate) fn spread(&self, step: &Step) -> Spread {
        self.run.spread(step, &self.repeats).unwrap_or_default()
    }

    /// Returns the sources of the numbers of `steps`: run, seed, interval.
    pub(crate) fn provenance(&self, steps: &[&Step]) -> String {
        let intervals = steps.iter().map(|step| step.interval_s).filter(|it| *it > 0.0);
        let mut intervals: Vec<f64> = intervals.collect();
        intervals.dedup();
        let intervals: Vec<String> = intervals.into_iter().map(number::span).collect();
        let (label, run) = (&self.label, self.run);
        let seed = seed(run).map_or("–".into(), |seed| seed.to_string());
        let of_run = format!("{label}: run {}, seed {seed}", run.id);
        match intervals.as_slice() {
            [] => format!("{of_run}."),
            [only] => format!("{of_run}, interval {only}."),
            several => format!("{of_run}, intervals of {}.", several.join(" and of ")),
        }
    }

    /// Warnings about any of `steps`, with their remedies; without those that the verdict on a
    /// preconditioning repeats.
    pub(crate) fn cautions(&self, steps: &[&Step]) -> Vec<String> {
        let is_said = |step: &Step, kind: WarningKind| {
            let of_verdict = [WarningKind::NotSteady, WarningKind::NotPreconditioned];
            step.kind == StepKind::Precondition && of_verdict.contains(&kind)
        };
        let warnings = self.run.warnings.iter();
        warnings
            .filter(|warning| {
                let mut of = steps.iter().filter(|step| step.id == warning.step);
                of.any(|step| !is_said(step, warning.kind))
            })
            .map(|warning| format!("{}: {}. Remedy: {}.", self.label, warning.text, warning.remedy))
            .chain(steps.iter().find_map(|step| {
                Some(format!("{}, {}: {}.", self.label, step.id, step.sampling_note()?))
            }))
            .collect()
    }
}

impl<'a> Suite<'a> {
    /// The preconditionings, each with its run.
    pub(crate) fn preconditions(&self) -> Vec<(&'a Subject<'a>, &'a Step)> {
        let parts = self.parts.iter();
        parts.filter_map(|part| Some((part.subject, part.precondition?))).collect()
    }

    /// The measurements of `workload`, each with its run.
    pub(crate) fn measures(&self, workload: &str) -> Vec<(&'a Subject<'a>, Vec<&'a Step>)> {
        let of = |part: &Part<'a>| {
            let steps = part.measures.iter().copied().filter(|step| step.workload == workload);
            (part.subject, steps.filter(|step| step.summary.is_some()).collect::<Vec<_>>())
        };
        self.parts.iter().map(of).filter(|(_, steps)| !steps.is_empty()).collect()
    }

    /// Workloads that were measured, in order of appearance.
    pub(crate) fn workloads(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        for step in self.parts.iter().flat_map(|part| &part.measures) {
            if step.summary.is_some() && !names.contains(&step.workload.as_str()) {
                names.push(step.workload.as_str());
            }
        }
        names
    }
}

/// `workload` of `suite`, with the suite's heading where others of `run` measured it too.
pub(crate) fn workload_of(run: &Run, suite: &str, workload: &str) -> String {
    let measured = || run.steps.iter().filter(|step| step.workload == workload);
    let is_elsewhere = measured().any(|step| step.suite != suite && step.summary.is_some());
    let here = measured().find(|step| step.suite == suite).filter(|_| is_elsewhere);
    here.map_or_else(|| workload.to_owned(), |step| format!("{workload}, {}", step.suite_title))
}

#[cfg(test)]
mod tests;
