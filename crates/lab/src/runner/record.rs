//! Record of one step: its figures, its verdict, its warnings.

use std::fmt::Write as _;

use results::steady::WriteRequirement;
use results::{
    ApplicationFigures, AskedRate, Cell, DeviceFigures, Interval, Latencies, RateLimit,
    RecordedApplication, Sample, Sampling, Spread, Steady, Step, StepKind, Summary, TransactionMix,
    Warning, WrittenAmount,
};

use blockio::Op;

use workload::recording::Recording;

use super::warning::Outstanding;
use super::{warning, write_requirement};
use crate::LoadResult;
use crate::plan::{Pace, PlannedStep};

/// One finished step and what was noticed in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The step as it goes into the run.
    pub step: Step,
    /// Warnings about its figures.
    pub warnings: Vec<Warning>,
}

impl Record {
    /// A purge or a fill, and `how` it was done.
    pub fn unmeasured(step: &PlannedStep, how: String, written: WrittenAmount) -> Self {
        Self { step: Step { written: Some(written), ..bare(step, how) }, warnings: Vec::new() }
    }

    /// A load on each of `devices` devices and what it measured.
    pub(crate) fn of_load(
        step: &PlannedStep,
        devices: u32,
        required: &WriteRequirement,
        asked_iops: Option<f64>,
        loaded: LoadResult,
    ) -> Self {
        let LoadResult {
            intervals, counted, parts, generator_limited, uncounted, unfinished, ..
        } = loaded;
        // Intervals of a sampled load are made of windows that they share: they have no spread.
        let is_sampled = loaded.sampling.as_ref().is_some_and(Sampling::is_sampled);
        let (mut how, responses, mut warnings) = (loaded.how, loaded.responses, loaded.warnings);
        let lateness = loaded.lateness.map(|counts| counts.figures());
        warnings.extend(lateness.as_ref().and_then(|lateness| warning::late(step, lateness)));
        let figures = loaded.devices.into_iter().map(|device| DeviceFigures {
            name: device.name,
            summary: Summary::of(&device.counted),
        });
        let counted = if counted.is_empty() { &intervals } else { &counted };
        let samples: Vec<Sample> = intervals.iter().map(Sample::of).collect();
        let summary = (!counted.is_empty()).then(|| Summary::of(counted));
        let counted_s = beyond(&intervals, counted, required.time_lapse);
        if let Some(counted_s) = counted_s {
            let shown_s = intervals.last().map_or(0.0, |interval| interval.at_s);
            let _ = write!(how, "; totals count {counted_s:.1} s, samples the first {shown_s} s");
        }
        let judged = step.kind == StepKind::Precondition && !intervals.is_empty();
        let steady = judged.then(|| Steady::judge_written(&samples, step.round_s, required));
        let written = write_requirement::written(required, step, summary.as_ref());
        if let Some(summary) = &summary {
            let asked = f64::from(step.outstanding() * devices);
            let requests = Outstanding { asked, uncounted, unfinished };
            let verdict = steady.as_ref().map(|steady| (steady, required));
            warnings.extend(warning::of_load(step, requests, summary, verdict));
        }
        let settled =
            judged.then(|| results::steady::last_window(&intervals, step.round_s)).flatten();
        warnings.extend(warning::unwritten(step, summary.as_ref(), settled.as_ref()));
        let record = Step {
            duration_s: intervals.last().map_or(0.0, |interval| interval.at_s),
            rate: asked_iops
                .map(|iops| asked_rate(step, iops, summary.as_ref(), generator_limited)),
            written: Some(written),
            counted_s,
            submission: parts.as_ref().map(|parts| parts.submission.summary()),
            completion: parts.as_ref().map(|parts| parts.completion.summary()),
            lateness,
            devices: figures.collect(),
            die_failures: loaded.die_failures,
            response: responses.map(|latencies| latencies.summary()),
            settled,
            spread: if is_sampled {
                loaded.spread.filter(|_| step.kind == StepKind::Measure)
            } else {
                loaded.spread.or_else(|| spread_of(step, &intervals))
            },
            sampling: loaded.sampling,
            summary,
            steady,
            samples,
            read_bins: merged(counted, |interval| &interval.read).bins(),
            write_bins: merged(counted, |interval| &interval.write).bins(),
            ..bare(step, how)
        };
        Self { step: record, warnings }
    }

    /// The recording of an application, and what its replay predicts.
    pub(crate) fn of_application(
        step: &PlannedStep,
        required: &WriteRequirement,
        application: &workload::Application,
        recording: &Recording,
        replayed: crate::driver::ReplayedApplication,
    ) -> Self {
        let crate::driver::ReplayedApplication { replayed, intervals, transactions } = replayed;
        let summary = (!intervals.is_empty()).then(|| Summary::of(&intervals));
        let head = &recording.head;
        let benchmark = recording.tail.as_ref().and_then(|tail| tail.benchmark.as_ref());
        let figures = ApplicationFigures {
            application: application.name.clone(),
            title: application.title.clone(),
            tps: replayed.prediction.map(|it| it.tps),
            latency_ms_mean: replayed.prediction.and_then(|it| it.latency_ms_mean),
            latency_ms_p99: replayed.prediction.and_then(|it| it.latency_ms_p99),
            host_share: replayed.host_share,
            node: step.node.map(|node| node.number),
            intervals: transactions,
            mix: mix(recording),
            recorded: RecordedApplication {
                device: head.device.clone(),
                model: head.model.clone(),
                machine: head.machine.clone(),
                requests: replayed.requests,
                span_s: replayed.recorded_s,
                tps: benchmark.map(|it| it.tps),
                host_share: replayed.recorded_host_share,
                // Copies are of the recording of a single client.
                pause_share: replayed
                    .long_pause()
                    .filter(|_| step.threads > 1 && !application.copies),
            },
        };
        let how = format!(
            "replayed {} requests of {} at {} clients, recorded in {:.1} s on {}: each was issued \
             once its parent had completed and its think time was over",
            replayed.requests, application.title, step.threads, replayed.recorded_s, head.device
        );
        let lasted_s = intervals.last().map_or(0.0, |interval| interval.at_s);
        let record = Step {
            duration_s: lasted_s,
            written: Some(write_requirement::written(required, step, summary.as_ref())),
            summary,
            read_bins: merged(&intervals, |interval| &interval.read).bins(),
            write_bins: merged(&intervals, |interval| &interval.write).bins(),
            application: Some(figures),
            ..bare(step, how)
        };
        Self { step: record, warnings: Vec::new() }
    }

    /// True if fewer whole intervals were measured than `planned`.
    pub(super) fn is_partial(&self, planned: &PlannedStep) -> bool {
        self.step.duration_s + planned.interval_s <= planned.duration_s
            && matches!(planned.kind, StepKind::Precondition | StepKind::Measure)
    }
}

/// Requests of a transaction; none where the benchmark counted none.
fn mix(recording: &Recording) -> Option<TransactionMix> {
    let benchmark = recording.tail.as_ref()?.benchmark.as_ref()?;
    let each = 1.0 / (benchmark.transactions.max(1) as f64);
    let mut mix =
        TransactionMix { reads: 0.0, writes: 0.0, flushes: 0.0, read_bytes: 0.0, write_bytes: 0.0 };
    for request in recording.measured() {
        let bytes = f64::from(request.sectors) * (blockio::SECTOR_BYTES as f64);
        match request.op {
            Op::Read => {
                mix.reads += each;
                mix.read_bytes += bytes * each;
            }
            Op::Write => {
                mix.writes += each;
                mix.write_bytes += bytes * each;
                mix.flushes += if request.fua { each } else { 0.0 };
            }
            Op::Flush => mix.flushes += each,
            Op::Trim => {}
        }
    }
    Some(mix)
}

fn bare(step: &PlannedStep, how: String) -> Step {
    let footprint = step.workload.as_ref().map(|workload| workload.footprint_percent);
    Step {
        id: step.id.clone(),
        kind: step.kind,
        suite: step.suite.clone(),
        suite_title: step.suite_title.clone(),
        workload: step.workload_name().to_owned(),
        compressible_percent: step.compressible_percent(),
        footprint_percent: footprint.filter(|percent| *percent < 100.0),
        threads: step.threads,
        queue_per_thread: step.queue_per_thread,
        rate: None,
        round: step.round,
        tracked: step.tracked,
        cell: cell(step),
        duration_s: 0.0,
        interval_s: step.interval_s,
        written: None,
        counted_s: None,
        submission: None,
        lateness: None,
        completion: None,
        how,
        summary: None,
        spread: None,
        application: None,
        response: None,
        devices: Vec::new(),
        die_failures: None,
        sampling: None,
        settled: None,
        steady: None,
        samples: Vec::new(),
        read_bins: Vec::new(),
        write_bins: Vec::new(),
    }
}

/// The spread of a measurement; a preconditioning changes the drive, and its parts with it.
fn spread_of(step: &PlannedStep, intervals: &[Interval]) -> Option<Spread> {
    (step.kind == StepKind::Measure).then(|| Spread::of_intervals(intervals)).flatten()
}

/// The cell of a matrix that `step` measures in a round.
fn cell(step: &PlannedStep) -> Option<Cell> {
    let workload = step.workload.as_ref().filter(|_| step.round.is_some())?;
    let [size] = workload.sizes.as_slice() else { return None };
    Some(Cell { bytes: size.bytes, read_percent: workload.read_percent })
}

/// Shortfall of a rate, as a share of it, that is not chance: beside four standard deviations of
/// the number of requests that come at random.
const RATE_MISSED_MAX: f64 = 0.02;

/// Compares the rate of `iops` requests a second that `step` asked for with the one reached. That
/// of a trace is an average: it tells nothing of the part that was measured.
fn asked_rate(
    step: &PlannedStep,
    iops: f64,
    summary: Option<&Summary>,
    generator_limited: bool,
) -> AskedRate {
    let missed = summary.is_some_and(|summary| {
        let chance = 4.0 / (iops * summary.span_s).max(1.0).sqrt();
        summary.iops < iops * (1.0 - RATE_MISSED_MAX - chance)
    });
    let limit = if generator_limited { RateLimit::Generator } else { RateLimit::Drive };
    let percent = match step.pace {
        Some(Pace::Share { percent, .. }) => Some(percent),
        Some(Pace::Fixed(_) | Pace::Trace { .. }) | None => None,
    };
    let is_average = matches!(step.pace, Some(Pace::Trace { .. }));
    let limit = (missed && (!is_average || generator_limited)).then_some(limit);
    AskedRate { iops, percent, limit }
}

/// Shortest span beyond the samples that is told of, in seconds.
const BEYOND_S_MIN: f64 = 0.01;

/// Protocol time that `counted` covers, where it is longer than that of `intervals`.
fn beyond(intervals: &[Interval], counted: &[Interval], time_lapse: f64) -> Option<f64> {
    let span_s = |of: &[Interval]| of.iter().map(|it| it.span_s).sum::<f64>() * time_lapse;
    let counted_s = span_s(counted);
    (counted_s - span_s(intervals) > BEYOND_S_MIN).then_some(counted_s)
}

fn merged(intervals: &[Interval], of: fn(&Interval) -> &Latencies) -> Latencies {
    let mut all = Latencies::default();
    for interval in intervals {
        all.merge(of(interval));
    }
    all
}

#[cfg(test)]
mod tests;
