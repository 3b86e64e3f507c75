//! Replays against what can be reckoned by hand.

use std::num::NonZeroU32;

use workload::recording::{Benchmark, Head, Tail, Transaction};

use super::*;
use crate::application::{HOST_SHARE_MAX, ReplayHost};

const SIZE: u64 = 1 << 30;

fn recording(requests: Vec<RecordedRequest>, tps: f64) -> Recording {
    let end = requests.iter().map(|it| it.completed_at).max().unwrap_or_default();
    let benchmark = Benchmark {
        tool: "pgbench".into(),
        transactions: 10,
        tps,
        latency_ms_mean: Some(2.0),
        latency_ms_p99: None,
    };
    let tail = Tail { measured_to: end, benchmark: Some(benchmark), ..Tail::default() };
    let head = Head {
        schema: Head::SCHEMA,
        device: "a volume".into(),
        size_bytes: SIZE,
        model: None,
        machine: "Linux".into(),
        began_unix_ns: 0,
        front_end_ns: None,
        emulation_slowdown: None,
    };
    Recording { head, tail: Some(tail), requests, lost: 0, transactions: Vec::new() }
}

/// Reads one after another, each `think` after the one before, which took `latency`.
fn chain(count: u64, latency: Nanos, think: Nanos) -> Vec<RecordedRequest> {
    let each = latency + think;
    let read = |index: u64| RecordedRequest {
        issued_at: each * index,
        completed_at: each * index + latency,
        op: Op::Read,
        fua: false,
        lba: index * 7919 * 8 % (SIZE / 512),
        sectors: 8,
        client: 0,
    };
    (0..count).map(read).collect()
}

fn duo() -> (DriveSpec, Setup) {
    let spec = ssd::catalogue::find("iodrive-duo").expect("the catalogue has it");
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    (spec, Setup { format, host, time_lapse: 64, seed: 1 })
}

/// Replay on a model that was filled once.
fn replayed_on_filled(
    recording: &Recording,
    spec: &DriveSpec,
    setup: &Setup,
    host: &ReplayHost,
) -> Result<ReplayResult, Error> {
    let mut model = ReplayModel::new(spec, setup, 0.0)?;
    model.prepare(ReplayState::Filled, recording, host)?;
    model.replay(recording, host)
}

#[test]
fn writes_wait_for_the_relocation_of_a_drive_in_use() {
    let (spec, setup) = duo();
    let mut writes = chain(4_000, Nanos::from_millis(2), Nanos::ZERO);
    let size_sectors = SIZE / 512;
    for (write, index) in writes.iter_mut().zip(0_u64..) {
        (write.op, write.lba, write.sectors) = (Op::Write, index * 7919 * 256 % size_sectors, 256);
    }
    let recording = recording(writes, 100.0);
    let host = ReplayHost::default();
    let mean_ns = |state| {
        let mut model = ReplayModel::new(&spec, &setup, 0.0).unwrap();
        model.prepare(state, &recording, &host).unwrap();
        model.replay(&recording, &host).unwrap().write.unwrap().latency_ns_avg
    };
    let (filled, settled) = (mean_ns(ReplayState::Filled), mean_ns(ReplayState::Settled));
    assert!(settled > filled * 1.5, "{settled} ns after {filled} ns");
}

#[test]
fn a_chain_takes_its_think_times_and_the_latencies_of_the_model() {
    let (spec, setup) = duo();
    let think = Nanos::from_micros(300);
    let recording = recording(chain(500, Nanos::from_millis(2), think), 100.0);
    let replayed = replayed_on_filled(&recording, &spec, &setup, &ReplayHost::default()).unwrap();

    let mut alone = Drive::new(&spec, &setup).unwrap();
    quick_measure::fill(&mut alone).unwrap();
    let mut now = Nanos::ZERO;
    for (index, request) in (0..).zip(&recording.requests) {
        let (lba, sectors) = (Lba(request.lba), request.sectors);
        alone.submit(now, Request { tag: index, thread: 0, op: Op::Read, handle: 0, lba, sectors });
        now = alone.next_completion(Nanos::MAX).unwrap().completed_at + think;
    }
    let expected_s = (now - think).as_secs_f64();
    assert!((replayed.replayed_s - expected_s).abs() < 1e-12);
    assert!((replayed.recorded_s - (500.0 * 2.3e-3 - 3e-4)).abs() < 1e-9);
    let thought_s = 499.0 * think.as_secs_f64();
    assert!((replayed.host_share - thought_s / expected_s).abs() < 1e-9);
    assert!((replayed.recorded_host_share - thought_s / replayed.recorded_s).abs() < 1e-9);
    let prediction = replayed.prediction.unwrap();
    let slower = expected_s / replayed.recorded_s;
    assert!((prediction.tps - 100.0 / slower).abs() < 1e-9);
    assert!((prediction.latency_ms_mean.unwrap() - 2.0 * slower).abs() < 1e-9);
    assert_eq!(replayed.read.unwrap().count, 500);
    assert!(replayed.write.is_none() && replayed.flush.is_none());
}

#[test]
fn a_transaction_begins_and_ends_on_the_clock_of_the_replay() {
    let (spec, setup) = duo();
    let (latency, think) = (Nanos::from_millis(2), Nanos::from_micros(300));
    let mut recording = recording(chain(330, latency, think), 100.0);
    // Each is three requests with the think time after each, from 100 us after a completion on.
    let each = latency + think;
    let begin = |index: u64| each * (3 * index) + latency + Nanos::from_micros(100);
    recording.transactions =
        (0..109).map(|index| Transaction { from: begin(index), to: begin(index + 1) }).collect();
    let replayed = replayed_on_filled(&recording, &spec, &setup, &ReplayHost::default()).unwrap();
    let (p99, read) =
        (replayed.prediction.unwrap().latency_ms_p99.unwrap(), replayed.read.unwrap());
    let three_reads_ms = |latency_ns: f64| 3.0 * (latency_ns / 1e6 + 0.3);
    assert!(p99 >= three_reads_ms(0.0), "{p99}");
    assert!(p99 <= three_reads_ms(read.latency_ns_max as f64), "{p99}");
    let mean = three_reads_ms(read.latency_ns_avg);
    assert!(p99 >= mean && p99 < 2.0 * mean, "{p99} and {mean}");
}

#[test]
fn a_faster_host_with_more_memory_waits_less() {
    let (spec, setup) = duo();
    let think = Nanos::from_micros(300);
    let mut recording = recording(chain(400, Nanos::from_millis(2), think), 100.0);
    recording.head.front_end_ns = Some(100_000);
    let span_s = |host: ReplayHost| {
        let replayed = replayed_on_filled(&recording, &spec, &setup, &host).unwrap();
        (replayed.replayed_s, replayed.read.map_or(0, |read| read.count))
    };
    let kept = ReplayHost { keeps_front_end: true, ..ReplayHost::default() };
    let (as_recorded_s, _) = span_s(kept);
    let (direct_s, reads) = span_s(ReplayHost::default());
    assert!((as_recorded_s - direct_s - 399.0 * 100e-6).abs() < 1e-9, "100 us each");
    assert_eq!(reads, 400);
    let (fast_s, _) = span_s(ReplayHost { speed: 3.0, ..kept });
    assert!((as_recorded_s - fast_s - 399.0 * 200e-6).abs() < 1e-6);
    let (buffered_s, reads) = span_s(ReplayHost { buffered_percent: 75.0, ..kept });
    assert_eq!(reads, 100);
    let of_drive_s = as_recorded_s - 399.0 * think.as_secs_f64();
    let left_s = buffered_s - 399.0 * think.as_secs_f64();
    assert!((left_s / of_drive_s - 0.25).abs() < 0.05, "{left_s} of {of_drive_s}");
    let all = ReplayHost { buffered_percent: 100.0, ..kept };
    assert!((span_s(all).0 - 399.0 * think.as_secs_f64()).abs() < 1e-9, "the host alone");
}

#[test]
fn nothing_is_predicted_where_the_host_dominates() {
    let (spec, setup) = duo();
    let recording = recording(chain(50, Nanos::from_millis(2), Nanos::from_millis(5)), 100.0);
    let replayed = replayed_on_filled(&recording, &spec, &setup, &ReplayHost::default()).unwrap();
    assert!(replayed.host_share > HOST_SHARE_MAX && replayed.prediction.is_none());
}

#[test]
fn clients_that_think_at_once_share_the_processors_of_their_host() {
    let (spec, setup) = duo();
    let think = Nanos::from_micros(300);
    // Four chains, side by side.
    let one = chain(200, Nanos::from_millis(2), think);
    let four: Vec<RecordedRequest> = one.iter().flat_map(|request| [*request; 4]).collect();
    let on = |machine: &str, requests: &[RecordedRequest], count: Option<u32>| {
        let mut recording = recording(requests.to_vec(), 100.0);
        recording.head.machine = machine.into();
        let processors = count.and_then(NonZeroU32::new);
        let host = ReplayHost { processors, ..ReplayHost::default() };
        replayed_on_filled(&recording, &spec, &setup, &host).unwrap()
    };
    let two = "2 x AMD EPYC, Linux";
    let as_recorded = on(two, &four, None);
    assert_eq!(as_recorded.processors, NonZeroU32::new(2));
    // Four think for 300 us each in the recording, on two processors: for 150 us of a processor.
    let enough = on(two, &four, Some(8));
    assert_eq!(enough.processors, NonZeroU32::new(8));
    assert!(enough.thinking_mean < as_recorded.thinking_mean && enough.slowdown() < 1.0);
    let fewer = on(two, &four, Some(1));
    assert!(fewer.replayed_s > 1.5 * as_recorded.replayed_s, "{}", fewer.replayed_s);
    let alone = [None, Some(1), Some(8)].map(|count| on(two, &one, count).replayed_s);
    assert!(alone.iter().all(|it| (it - alone[0]).abs() < 1e-12), "one at a time: {alone:?}");
    // Of a machine with enough of them, or whose number of them is unknown, think times stay as
    // they were.
    let wide = on("8 x AMD EPYC, Linux", &four, None);
    let unknown = on("Linux", &four, None);
    assert_eq!(unknown.processors, None);
    assert!((wide.replayed_s - unknown.replayed_s).abs() < 1e-12);
}

#[test]
fn requests_that_were_outstanding_together_are_again() {
    let (spec, setup) = duo();
    let mut requests = chain(8, Nanos::from_millis(2), Nanos::ZERO);
    for request in &mut requests {
        request.issued_at = Nanos::ZERO;
        request.completed_at = Nanos::from_millis(2);
    }
    let alone = chain(1, Nanos::from_millis(2), Nanos::ZERO);
    let together =
        replayed_on_filled(&recording(requests, 1.0), &spec, &setup, &ReplayHost::default())
            .unwrap();
    let alone =
        replayed_on_filled(&recording(alone, 1.0), &spec, &setup, &ReplayHost::default()).unwrap();
    assert!(together.replayed_s < 3.0 * alone.replayed_s, "eight took as long as a chain of them");
    assert!(together.recorded_host_share < 1e-12);
}

#[test]
fn a_flush_and_a_trim_are_requests_of_their_own() {
    let (spec, setup) = duo();
    let mut requests = chain(4, Nanos::from_millis(1), Nanos::from_micros(10));
    requests[1].op = Op::Write;
    requests[2] = RecordedRequest { op: Op::Flush, lba: 0, sectors: 0, ..requests[2] };
    requests[3].op = Op::Trim;
    let replayed =
        replayed_on_filled(&recording(requests, 1.0), &spec, &setup, &ReplayHost::default())
            .unwrap();
    assert_eq!(replayed.flush.unwrap().count, 1);
    assert_eq!(replayed.write.unwrap().count, 1);
    assert_eq!(replayed.requests, 4);
}

#[test]
fn a_recording_of_a_larger_device_is_refused() {
    let (spec, setup) = duo();
    let mut large = recording(chain(1, Nanos(1), Nanos(1)), 1.0);
    large.head.size_bytes = 64 << 40;
    let error =
        replayed_on_filled(&large, &spec, &setup, &ReplayHost::default()).unwrap_err().to_string();
    assert!(error.contains("70.37 TB") && error.contains("iodrive-duo has 640.00 GB"), "{error}");
}

#[test]
fn addresses_shrink_with_a_drive_that_no_longer_holds_them_all() {
    let fit = AddressMap { from: 1600, to: 160 };
    let at = |lba, sectors| RecordedRequest { lba, sectors, ..chain(1, Nanos(1), Nanos(1))[0] };
    assert_eq!(fit.place(&at(800, 8)), (Lba(80), 8));
    assert_eq!(fit.place(&at(1592, 8)), (Lba(152), 8));
    assert_eq!(fit.place(&at(0, 1600)), (Lba(0), 160));
    let kept = AddressMap { from: 1600, to: 1600 };
    assert_eq!(kept.place(&at(801, 3)), (Lba(801), 3));
}

#[test]
fn copies_run_at_once_on_parts_of_the_drive_of_their_own() {
    let (spec, setup) = duo();
    let mut one = recording(chain(300, Nanos::from_millis(2), Nanos::from_micros(100)), 100.0);
    one.tail.as_mut().and_then(|tail| tail.benchmark.as_mut()).unwrap().transactions = 1;
    let replayed = |copies: u32| {
        let copies = NonZeroU32::new(copies).unwrap();
        let host = ReplayHost { copies, ..ReplayHost::default() };
        replayed_on_filled(&one, &spec, &setup, &host)
    };
    let (alone, eight) = (replayed(1).unwrap(), replayed(8).unwrap());
    assert_eq!((alone.requests, eight.requests), (300, 2400));
    let (alone_tps, eight_tps) = (alone.prediction.unwrap().tps, eight.prediction.unwrap().tps);
    assert!(eight_tps > 4.0 * alone_tps && eight_tps <= 8.0 * alone_tps, "{alone_tps} {eight_tps}");
    let eight = eight.prediction.unwrap();
    let mean = eight.latency_ms_mean.unwrap();
    assert!(mean >= alone.prediction.unwrap().latency_ms_mean.unwrap());
    // A copy is one transaction, and the slowest of eight is no percentile.
    assert_eq!(eight.latency_ms_p99, None);
    // Copies on one place would fit; those on places of their own do not.
    let error = replayed(700).unwrap_err().to_string();
    assert!(error.contains("700 copies of the recording need "), "{error}");
}

#[test]
fn an_emulated_processor_thinks_as_many_times_faster_in_a_replay() {
    let (spec, setup) = duo();
    let think = Nanos::from_millis(3);
    let mut emulated = recording(chain(100, Nanos::from_millis(2), think), 100.0);
    let span_s = |recording: &Recording| {
        let replayed =
            replayed_on_filled(recording, &spec, &setup, &ReplayHost::default()).unwrap();
        replayed.replayed_s
    };
    let as_recorded_s = span_s(&emulated);
    emulated.head.emulation_slowdown = Some(30.0);
    let left_s = as_recorded_s - span_s(&emulated);
    assert!((left_s - 99.0 * (3e-3 - 1e-4)).abs() < 1e-9, "{left_s}");
    // What no slowdown can be changes nothing.
    emulated.head.emulation_slowdown = Some(0.0);
    assert!((span_s(&emulated) - as_recorded_s).abs() < 1e-12);
}
