//! Records of steps: rates that were missed, spans beyond the samples, transactions.

use blockio::Nanos;
use results::WarningKind;
use workload::recording::{Benchmark, Head, RecordedRequest, Tail};
use workload::{Gaps, SizeShare, catalogue};

use super::*;
use crate::Rate;
use crate::driver::{DeviceIntervals, LatencyParts};

/// A minute of 4 KiB writes at T2Q4.
fn planned() -> PlannedStep {
    PlannedStep {
        id: "4k/measure".into(),
        kind: StepKind::Measure,
        workload: catalogue::find_workload("4k-rand-write"),
        threads: 2,
        queue_per_thread: 4,
        duration_s: 60.0,
        interval_s: 10.0,
        round_s: 10.0,
        ..crate::plan::blank("4k", "4K")
    }
}

fn write_requirement() -> WriteRequirement {
    WriteRequirement {
        before_bytes: 0.0,
        addressed_bytes: 1e6,
        user_bytes: 1e6,
        raw_bytes: None,
        time_lapse: 4.0,
    }
}

/// The interval that ends at `at_s`, with `writes` a second that take so long that eight are
/// outstanding.
fn interval(at_s: f64, writes: u64) -> Interval {
    let mut interval = Interval { at_s, span_s: 2.5, ..Interval::default() };
    let count = writes * 5 / 2;
    interval.write.record_many(8_000_000_000 / writes, count);
    interval.write_bytes = count * 4096;
    interval
}

fn minute(writes: u64) -> Vec<Interval> {
    (1..=6).map(|tens| interval(f64::from(tens) * 10.0, writes)).collect()
}

fn record(step: &PlannedStep, asked: Option<f64>, loaded: LoadResult) -> Record {
    Record::of_load(step, 1, &write_requirement(), asked, loaded)
}

/// The limit that a load at `pace` met which asked for `asked` a second and got `reached`.
fn limit(pace: Option<Pace>, asked: f64, reached: u64, by_generator: bool) -> Option<RateLimit> {
    let step = PlannedStep { pace, ..planned() };
    let loaded = LoadResult {
        intervals: minute(reached),
        generator_limited: by_generator,
        ..LoadResult::default()
    };
    record(&step, Some(asked), loaded).step.rate.unwrap().limit
}

#[test]
fn a_load_without_a_whole_interval_has_no_figures_and_no_verdict() {
    let step = PlannedStep { kind: StepKind::Precondition, ..planned() };
    let loaded = LoadResult { how: "stopped at once".into(), ..LoadResult::default() };
    let record = record(&step, Some(100.0), loaded);
    let step = record.step;
    assert_eq!((step.summary.is_none(), step.steady.is_none(), step.settled.is_none()), {
        (true, true, true)
    });
    assert_eq!((step.duration_s, step.how.as_str()), (0.0, "stopped at once"));
    assert_eq!(step.rate.unwrap().limit, None, "nothing shows that it was missed");
    assert!(record.warnings.is_empty() && step.samples.is_empty() && step.write_bins.is_empty());
}

#[test]
fn only_a_preconditioning_is_judged() {
    let loaded = || LoadResult { intervals: minute(1000), ..LoadResult::default() };
    let measured = record(&planned(), None, loaded()).step;
    assert!(measured.steady.is_none() && measured.settled.is_none());
    let step = PlannedStep { kind: StepKind::Precondition, ..planned() };
    let judged = record(&step, None, loaded()).step;
    assert!(judged.steady.unwrap().achieved && judged.settled.is_some());
    assert_eq!((judged.samples.len(), judged.duration_s), (6, 60.0));
}

#[test]
fn what_was_written_counts_in_the_drives_own_time_and_includes_the_ramp() {
    let step = PlannedStep { ramp_s: 30.0, ..planned() };
    let record =
        record(&step, None, LoadResult { intervals: minute(1000), ..LoadResult::default() });
    // 15 s at 1000 a second, at a quarter of the scale, and half as much again for the ramp.
    let written = record.step.written.unwrap();
    assert_eq!(written.since_purge_bytes, 15_000 * 4096 * 4 * 3 / 2);
}

#[test]
fn a_rate_is_missed_beyond_two_percent_and_chance() {
    let fixed = |reached| {
        let pace = Pace::Fixed(Rate { iops: 10_000.0, gaps: Gaps::Exponential });
        limit(Some(pace), 10_000.0, reached, false)
    };
    assert_eq!(fixed(10_000), None);
    // 150,000 requests vary by 1 % within four standard deviations.
    assert_eq!(fixed(9_800), None);
    assert_eq!(fixed(9_600), Some(RateLimit::Drive));
    // Of 150 requests a third may be missing by chance.
    assert_eq!(limit(None, 10.0, 8, false), None);
    assert_eq!(limit(None, 10.0, 5, false), Some(RateLimit::Drive));
}

#[test]
fn the_rate_of_a_trace_is_an_average_and_is_missed_by_the_generator_alone() {
    let trace = || Some(Pace::Trace { speed: 1.0 });
    assert_eq!(limit(trace(), 10_000.0, 5000, false), None);
    assert_eq!(limit(trace(), 10_000.0, 5000, true), Some(RateLimit::Generator));
    assert_eq!(limit(None, 10_000.0, 5000, true), Some(RateLimit::Generator));
    assert_eq!(limit(None, 10_000.0, 10_000, true), None, "it came all the same");
}

#[test]
fn a_share_of_a_rate_is_kept_beside_its_number() {
    let of = "4k/T1Q1".into();
    let pace = Some(Pace::Share { of, percent: 80.0, gaps: Gaps::Constant });
    let step = PlannedStep { pace, ..planned() };
    let loaded = LoadResult { intervals: minute(1000), ..LoadResult::default() };
    let rate = record(&step, Some(1000.0), loaded.clone()).step.rate.unwrap();
    assert_eq!((rate.iops, rate.percent), (1000.0, Some(80.0)));
    assert_eq!(record(&planned(), Some(1000.0), loaded.clone()).step.rate.unwrap().percent, None);
    assert_eq!(record(&planned(), None, loaded).step.rate, None);
}

#[test]
fn totals_that_count_more_than_the_samples_say_so() {
    let intervals = minute(1000);
    let rest = Interval { at_s: 63.0, span_s: 0.75, ..interval(63.0, 1000) };
    let counted = intervals.iter().cloned().chain([rest]).collect();
    let loaded =
        LoadResult { intervals, counted, how: "4k at T2Q4".into(), ..LoadResult::default() };
    let step = record(&planned(), None, loaded).step;
    assert_eq!(step.how, "4k at T2Q4; totals count 63.0 s, samples the first 60 s");
    assert_eq!((step.counted_s, step.duration_s), (Some(63.0), 60.0));
    assert_eq!(step.summary.unwrap().write.count, 7 * 2500);
    let same =
        LoadResult { intervals: minute(1000), counted: minute(1000), ..LoadResult::default() };
    assert_eq!(record(&planned(), None, same).step.counted_s, None);
}

#[test]
fn parts_responses_and_devices_are_summed_up_each_by_itself() {
    let mut parts = LatencyParts::default();
    parts.submission.record(1000);
    parts.completion.record(9000);
    let mut responses = Latencies::default();
    responses.record(50_000);
    let device = |name: &str, writes| DeviceIntervals {
        name: name.into(),
        counted: vec![interval(10.0, writes)],
    };
    let loaded = LoadResult {
        intervals: minute(1000),
        parts: Some(parts),
        responses: Some(responses),
        devices: vec![device("/dev/sda", 100), device("/dev/sdb", 300)],
        ..LoadResult::default()
    };
    let step = record(&planned(), None, loaded).step;
    assert_eq!(step.submission.unwrap().latency_ns_max, 1000);
    assert_eq!((step.completion.unwrap().count, step.response.unwrap().count), (1, 1));
    let devices: Vec<(&str, f64)> =
        step.devices.iter().map(|it| (it.name.as_str(), it.summary.iops)).collect();
    assert_eq!(devices, [("/dev/sda", 100.0), ("/dev/sdb", 300.0)]);
}

#[test]
fn a_queue_that_stayed_empty_is_warned_of_for_all_devices_together() {
    let loaded = LoadResult { intervals: minute(1000), ..LoadResult::default() };
    assert!(record(&planned(), None, loaded.clone()).warnings.is_empty());
    let of_four = Record::of_load(&planned(), 4, &write_requirement(), None, loaded);
    let kinds: Vec<WarningKind> = of_four.warnings.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [WarningKind::QueueNotFilled], "eight of thirty-two");
}

#[test]
fn a_cell_is_of_a_round_and_of_one_size() {
    let round = PlannedStep { round: Some(2), ..planned() };
    let expected = Cell { bytes: 4096, read_percent: 0.0 };
    assert_eq!(cell(&round), Some(expected));
    assert_eq!(cell(&planned()), None, "it is of no round");
    let mut mixed = round.clone();
    let half = |bytes| SizeShare { bytes, percent: 50.0 };
    mixed.workload.as_mut().unwrap().sizes = vec![half(4096), half(8192)];
    assert_eq!(cell(&mixed), None);
    assert_eq!(cell(&PlannedStep { workload: None, ..round }), None, "a purge");
}

#[test]
fn a_step_is_partial_if_a_whole_interval_of_it_is_missing() {
    let partial = |duration_s: f64, kind: StepKind| {
        let step = PlannedStep { kind, ..planned() };
        let mut record = Record::unmeasured(&step, String::new(), WrittenAmount::default());
        record.step.duration_s = duration_s;
        record.is_partial(&step)
    };
    assert!(partial(50.0, StepKind::Measure) && partial(0.0, StepKind::Precondition));
    assert!(!partial(60.0, StepKind::Measure));
    assert!(!partial(55.0, StepKind::Measure), "the last interval is whole or dropped");
    assert!(!partial(0.0, StepKind::Purge) && !partial(0.0, StepKind::Fill), "they are repeated");
}

/// A request of `sectors` in a recording, with force unit access or without.
fn request(op: Op, sectors: u32, fua: bool) -> RecordedRequest {
    let (issued_at, completed_at) = (Nanos::from_micros(1), Nanos::from_micros(2));
    RecordedRequest { issued_at, completed_at, op, fua, lba: 0, sectors, client: 0 }
}

/// A recording of `requests` that made up so many `transactions`.
fn recording(requests: Vec<RecordedRequest>, transactions: Option<u64>) -> Recording {
    let benchmark = transactions.map(|transactions| Benchmark {
        tool: "sysbench".into(),
        transactions,
        tps: 1.0,
        latency_ms_mean: None,
        latency_ms_p99: None,
    });
    let measured_to = Nanos::from_secs(1);
    let tail = Tail { measured_to, benchmark, ..Tail::default() };
    let head = Head {
        schema: Head::SCHEMA,
        device: "a volume".into(),
        size_bytes: 1 << 30,
        model: None,
        machine: "1 x a processor".into(),
        began_unix_ns: 0,
        front_end_ns: None,
        emulation_slowdown: None,
    };
    Recording { head, tail: Some(tail), requests, lost: 0, transactions: Vec::new() }
}

#[test]
fn requests_of_a_transaction_are_a_mean_and_forced_writes_are_flushes_too() {
    let requests = vec![
        request(Op::Read, 8, false),
        request(Op::Read, 24, false),
        request(Op::Write, 16, false),
        request(Op::Write, 8, true),
        request(Op::Flush, 0, false),
        request(Op::Trim, 1 << 11, false),
    ];
    let mix = mix(&recording(requests, Some(2))).unwrap();
    assert_eq!((mix.reads, mix.writes, mix.flushes), (1.0, 1.0, 1.0));
    assert_eq!((mix.read_bytes, mix.write_bytes), (8192.0, 6144.0));
}

#[test]
fn a_recording_without_a_count_of_transactions_has_no_mix() {
    let requests = || vec![request(Op::Read, 8, false)];
    assert_eq!(mix(&recording(requests(), None)), None);
    let mut truncated = recording(requests(), Some(1));
    truncated.tail = None;
    assert_eq!(mix(&truncated), None);
    let none = mix(&recording(requests(), Some(0))).unwrap();
    assert!((none.reads - 1.0).abs() < 1e-12, "no division by zero: {none:?}");
}

#[test]
fn intervals_of_a_sampled_load_make_no_spread() {
    let sampled = |windows| Some(Sampling { windows, ..Sampling::default() });
    let spread = |sampling| {
        let loaded = LoadResult { intervals: minute(1000), sampling, ..LoadResult::default() };
        record(&planned(), None, loaded).step.spread
    };
    assert!(spread(None).is_some() && spread(sampled(0)).is_some(), "all was in detail");
    assert_eq!(spread(sampled(40)), None, "its windows told none");
}
