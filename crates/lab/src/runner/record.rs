//! What one step left: its figures, its verdict, its warnings.

use results::{
    Interval, Latencies, LatencySummary, Sample, Steady, Step, StepKind, Summary, Warning,
};

use super::warning;
use crate::Loaded;
use crate::plan::PlannedStep;

/// One finished step and what was noticed in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The step as it goes into the run.
    pub step: Step,
    /// Latency from the time at which each request was due; absent where there was no rate.
    pub response: Option<LatencySummary>,
    /// What a reader must know about it.
    pub warnings: Vec<Warning>,
}

impl Record {
    /// A purge or a fill, and `how` it was done.
    pub(crate) fn unmeasured(step: &PlannedStep, how: String) -> Self {
        Self { step: bare(step, how), response: None, warnings: Vec::new() }
    }

    /// A load on each of `devices` devices and what it measured.
    pub(super) fn of_load(step: &PlannedStep, devices: u32, loaded: Loaded) -> Self {
        let Loaded { intervals, how, responses, mut warnings } = loaded;
        let samples: Vec<Sample> = intervals.iter().map(Sample::of).collect();
        let summary = (!intervals.is_empty()).then(|| Summary::of(&intervals));
        let judged = step.kind == StepKind::Precondition && !intervals.is_empty();
        let steady = judged.then(|| Steady::judge(&samples, step.round_s));
        if let Some(summary) = &summary {
            let asked = step.outstanding() * devices;
            warnings.extend(warning::of_load(step, asked, summary, steady.as_ref()));
        }
        let record = Step {
            duration_s: intervals.last().map_or(0.0, |interval| interval.at_s),
            settled: judged.then(|| Summary::of_last_window(&intervals, step.round_s)).flatten(),
            summary,
            steady,
            samples,
            read_bins: merged(&intervals, |interval| &interval.read).bins(),
            write_bins: merged(&intervals, |interval| &interval.write).bins(),
            ..bare(step, how)
        };
        let response = responses.map(|latencies| latencies.summary());
        Self { step: record, response, warnings }
    }

    /// Whether less was measured than `planned`: fewer whole intervals.
    pub(super) fn is_partial(&self, planned: &PlannedStep) -> bool {
        self.step.duration_s + planned.interval_s <= planned.duration_s
            && !matches!(planned.kind, StepKind::Purge | StepKind::Fill)
    }
}

fn bare(step: &PlannedStep, how: String) -> Step {
    Step {
        id: step.id.clone(),
        kind: step.kind,
        suite: step.suite.clone(),
        suite_title: step.suite_title.clone(),
        workload: step.workload_name().to_owned(),
        compressible_percent: step.compressible_percent(),
        threads: step.threads,
        queue_per_thread: step.queue_per_thread,
        duration_s: 0.0,
        interval_s: step.interval_s,
        how,
        summary: None,
        settled: None,
        steady: None,
        samples: Vec::new(),
        read_bins: Vec::new(),
        write_bins: Vec::new(),
    }
}

fn merged(intervals: &[Interval], of: fn(&Interval) -> &Latencies) -> Latencies {
    let mut all = Latencies::default();
    for interval in intervals {
        all.merge(of(interval));
    }
    all
}
