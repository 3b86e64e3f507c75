//! Replays by hand: which request is due when, and what follows from the times of completion.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use blockio::{Nanos, Op};
use proptest::prelude::*;
use workload::recording::{Benchmark, Head, RecordedRequest, Tail, Transaction};

use super::*;

/// A read from `issued` to `completed`, in microseconds.
fn read(issued: u64, completed: u64) -> RecordedRequest {
    RecordedRequest {
        issued_at: Nanos::from_micros(issued),
        completed_at: Nanos::from_micros(completed),
        op: Op::Read,
        fua: false,
        lba: 0,
        sectors: 8,
        client: 0,
    }
}

/// Reads from and to these microseconds, in order of issue.
pub(super) fn reads(spans: &[(u64, u64)]) -> Vec<RecordedRequest> {
    spans.iter().map(|(issued, completed)| read(*issued, *completed)).collect()
}

/// Reads that are each issued so many microseconds after the one before, and take as many.
pub(super) fn reads_apart(gaps_and_lengths: &[(u64, u64)]) -> Vec<RecordedRequest> {
    let mut issued = 0;
    let next = |(gap, length): &(u64, u64)| {
        issued += gap;
        read(issued, issued + length)
    };
    gaps_and_lengths.iter().map(next).collect()
}

/// A recording on a machine with two processors, with 100 transactions a second.
fn recorded(requests: Vec<RecordedRequest>) -> Recording {
    let measured_to = requests.iter().map(|it| it.completed_at).max().unwrap_or_default();
    let benchmark = Benchmark {
        tool: "pgbench".into(),
        transactions: 10,
        tps: 100.0,
        latency_ms_mean: Some(20.0),
        latency_ms_p99: None,
    };
    let tail = Tail { measured_to, benchmark: Some(benchmark), ..Tail::default() };
    let head = Head {
        schema: Head::SCHEMA,
        device: "a volume".into(),
        size_bytes: 1 << 30,
        model: None,
        machine: "2 x a processor, Linux".into(),
        began_unix_ns: 0,
        front_end_ns: None,
        emulation_slowdown: None,
    };
    Recording { head, tail: Some(tail), requests, lost: 0, transactions: Vec::new() }
}

/// The replay of `recording` when its requests complete at these microseconds.
fn replayed(recording: &Recording, completed: &[u64]) -> ReplayResult {
    let tree = RequestTree::new(recording, NonZeroU32::MIN);
    let completed: Vec<Nanos> = completed.iter().map(|at| Nanos::from_micros(*at)).collect();
    let think_times = tree.parents.iter().map(|it| it.think_time).collect();
    ReplayResult::new(
        recording,
        &tree,
        &Clock::new(&tree, completed, think_times),
        &ByOp::default(),
    )
}

/// Due times of everything, in microseconds, where each request takes `latency`.
fn issued(requests: &[RecordedRequest], host: &ReplayHost, latency: u64) -> Vec<(u64, u32, bool)> {
    let recording = recorded(requests.to_vec());
    let tree = RequestTree::new(&recording, NonZeroU32::MIN);
    let mut pending = Pending::new(&tree, host, Nanos::ZERO);
    let mut issued = Vec::new();
    let mut outstanding: VecDeque<(Nanos, u32)> = VecDeque::new();
    loop {
        let (due_at, done) = (pending.next_at(), outstanding.front().copied());
        if let Some((at, index)) = done.filter(|(at, _)| due_at.is_none_or(|due| *at <= due)) {
            outstanding.pop_front();
            pending.answer(index, at);
        } else if let Some((at, index, is_buffered)) = pending.take() {
            issued.push((at.0 / 1000, index, is_buffered));
            outstanding.push_back((at + Nanos::from_micros(latency), index));
        } else {
            break;
        }
    }
    assert!(pending.is_over(), "nothing is left behind");
    assert_eq!(pending.next_at(), None);
    issued
}

#[test]
fn a_request_is_due_once_its_parent_has_completed_and_its_think_time_is_over() {
    // The second waits for the first and thinks for 50 us; the third does so for the second.
    let requests = [read(0, 100), read(150, 250), read(260, 300)];
    let host = ReplayHost::default();
    let at = |latency| -> Vec<u64> {
        issued(&requests, &host, latency).into_iter().map(|it| it.0).collect()
    };
    assert_eq!(at(10), [0, 60, 80], "a faster drive gets them earlier");
    assert_eq!(at(1000), [0, 1050, 2060], "a slower one later");
}

#[test]
fn requests_without_a_parent_come_when_they_came_in_the_recording() {
    let requests = [read(0, 500), read(20, 600), read(40, 700)];
    let due = issued(&requests, &ReplayHost::default(), 1);
    assert_eq!(due, [(0, 0, false), (20, 1, false), (40, 2, false)]);
}

#[test]
fn children_of_one_parent_are_due_by_their_own_think_times() {
    let requests = [read(0, 100), read(110, 400), read(130, 400), read(101, 400)];
    let mut in_order = requests.to_vec();
    in_order.sort_by_key(|it| it.issued_at);
    let due = issued(&in_order, &ReplayHost::default(), 1000);
    let at: Vec<u64> = due.iter().map(|it| it.0).collect();
    assert_eq!(at, [0, 1001, 1010, 1030]);
}

#[test]
fn a_replay_that_begins_later_shifts_all_requests() {
    let recording = recorded(vec![read(0, 100), read(150, 250)]);
    let tree = RequestTree::new(&recording, NonZeroU32::MIN);
    let host = ReplayHost::default();
    let mut pending = Pending::new(&tree, &host, Nanos::from_millis(7));
    assert_eq!(pending.next_at(), Some(Nanos::from_millis(7)));
    let (at, index, _) = pending.take().unwrap();
    assert_eq!(pending.next_at(), None, "the other waits for it");
    pending.answer(index, at + Nanos::from_micros(5));
    assert_eq!(pending.next_at(), Some(Nanos::from_millis(7) + Nanos::from_micros(55)));
    assert!(!pending.is_over());
}

#[test]
fn the_time_of_the_front_end_passes_before_processors_are_shared() {
    // Four think times of 80 to 90 us at once, 10 us of each outside of the host's work.
    let woken = reads(&[(0, 100), (180, 900), (190, 900), (190, 900), (190, 900)]);
    let mut recording = recorded(woken);
    recording.head.front_end_ns = Some(10_000);
    let thinks = |keeps_front_end| -> Vec<u64> {
        let host = ReplayHost { keeps_front_end, ..ReplayHost::default() };
        host.tree(&recording).parents.iter().map(|it| it.think_time.0 / 1000).collect()
    };
    // Half of 70 us, then two thirds of 10 us.
    assert_eq!(thinks(false), [0, 35, 41, 41, 41]);
    assert_eq!(thinks(true), [0, 40, 46, 46, 46]);
}

#[test]
fn memory_answers_reads_and_holds_back_writes_of_pages() {
    let mut requests: Vec<RecordedRequest> = (0..10).map(|at| read(at, 1000 + at)).collect();
    // Every other one is a write, of a page or of a log in turn.
    for (write, sectors) in requests.iter_mut().skip(1).step_by(2).zip([8, 1].repeat(3)) {
        (write.op, write.sectors) = (Op::Write, sectors);
    }
    let host = ReplayHost { buffered_percent: 100.0, ..ReplayHost::default() };
    let due = issued(&requests, &host, 1);
    for (_, index, is_buffered) in due {
        assert_eq!(is_buffered, requests[index as usize].sectors == 8, "request {index}");
    }
}

#[test]
fn a_replay_as_long_as_the_recording_predicts_what_was_recorded() {
    let recording = recorded(vec![read(0, 400), read(450, 1000)]);
    let same = replayed(&recording, &[400, 1000]);
    let predicted = same.prediction.expect("the drive decides");
    assert!((predicted.tps - 100.0).abs() < 1e-9);
    assert_eq!(predicted.latency_ms_mean, Some(20.0));
    assert_eq!(predicted.latency_ms_p99, None, "no transaction was logged");
    assert!((same.slowdown() - 1.0).abs() < 1e-9);
    assert!(
        (same.host_share - 0.05).abs() < 1e-9 && (same.recorded_host_share - 0.05).abs() < 1e-9
    );
}

#[test]
fn twice_the_span_halves_the_rate_and_doubles_the_latency() {
    let recording = recorded(vec![read(0, 400), read(450, 1000)]);
    let slow = replayed(&recording, &[900, 2000]);
    let predicted = slow.prediction.expect("the drive decides");
    assert!((predicted.tps - 50.0).abs() < 1e-9);
    assert!((predicted.latency_ms_mean.unwrap() - 40.0).abs() < 1e-9);
    assert!((slow.slowdown() - 2.0).abs() < 1e-9);
}

#[test]
fn where_thinking_dominates_no_rate_is_predicted() {
    // 900 of the 1000 us of the last request are think time.
    let recording = recorded(vec![read(0, 50), read(950, 1000)]);
    let host = replayed(&recording, &[50, 1000]);
    assert!((host.host_share - 0.9).abs() < 1e-9 && host.host_share > HOST_SHARE_MAX);
    assert!(host.prediction.is_none());
    // On a drive that takes ten times as long the drive decides.
    let drive = replayed(&recording, &[2500, 5000]);
    assert!(drive.prediction.is_some(), "{}", drive.host_share);
}

#[test]
fn without_the_result_of_a_benchmark_there_is_a_factor_and_no_rate() {
    let mut recording = recorded(vec![read(0, 400), read(450, 1000)]);
    recording.tail = None;
    let replayed = replayed(&recording, &[200, 500]);
    assert!(replayed.prediction.is_none());
    assert!((replayed.slowdown() - 0.5).abs() < 1e-9);
    assert_eq!(replayed.requests, 2);
}

#[test]
fn the_tail_of_transactions_is_that_on_the_clock_of_the_replay() {
    let mut recording = recorded(vec![read(0, 100), read(150, 250), read(300, 400)]);
    let moment = Nanos::from_micros;
    let transaction = |from, to| Transaction { from: moment(from), to: moment(to) };
    // Committed 10 us after the first and after the last completion.
    let mut p99 = |each: usize| {
        let pairs = vec![[transaction(0, 110), transaction(120, 400)]; each];
        recording.transactions = pairs.into_iter().flatten().collect();
        let slower = replayed(&recording, &[1000, 2050, 3100]);
        slower.prediction.unwrap().latency_ms_p99
    };
    assert_eq!(p99(49), None, "of 98 transactions it would be the largest");
    let told = p99(50).unwrap();
    // From 20 us after the first completion (1.020 ms) to the last (3.100 ms).
    assert!((told - 2.08).abs() < 1e-9, "{told}");
}

#[test]
fn transactions_outside_of_the_measurement_are_not_in_the_tail() {
    let mut recording = recorded(vec![read(0, 100), read(150, 250)]);
    let beyond = Nanos::from_millis(5);
    recording.transactions = vec![Transaction { from: Nanos::ZERO, to: beyond }];
    let told = replayed(&recording, &[100, 250]).prediction.unwrap();
    assert_eq!(told.latency_ms_p99, None);
}

#[test]
fn latencies_are_told_of_operations_that_there_were() {
    let recording = recorded(vec![read(0, 400), read(450, 1000)]);
    let tree = RequestTree::new(&recording, NonZeroU32::MIN);
    let mut latencies = ByOp::default();
    latencies.read.record(1000);
    let completed_at = [400, 1000].map(Nanos::from_micros).to_vec();
    let clock = Clock::new(&tree, completed_at, vec![Nanos::ZERO; 2]);
    let replayed = ReplayResult::new(&recording, &tree, &clock, &latencies);
    assert_eq!(replayed.read.map(|it| it.count), Some(1));
    assert!(replayed.write.is_none() && replayed.flush.is_none());
}

#[test]
fn the_share_of_the_host_is_that_of_the_longest_chain_alone() {
    // A long chain without thought beside a short one that thinks.
    let recording = recorded(vec![read(0, 100), read(0, 1000), read(190, 200)]);
    let told = replayed(&recording, &[100, 1000, 200]);
    assert!(told.host_share.abs() < 1e-9, "the last request waited for no other");
    assert!(told.thinking_mean > 0.0);
}

#[test]
fn numbers_of_a_host_outside_of_their_ranges_are_refused_with_the_range() {
    let said = |host: ReplayHost| host.checked().unwrap_err().to_string();
    let slow = ReplayHost { speed: 0.0, ..ReplayHost::default() };
    assert_eq!(said(slow), "the speed of the host is 0, must be above 0");
    let odd = ReplayHost { speed: f64::NAN, ..ReplayHost::default() };
    assert!(said(odd).contains("must be above 0"));
    let much = ReplayHost { buffered_percent: 100.5, ..ReplayHost::default() };
    assert_eq!(said(much), "buffered reads are 100.5 %, must be 0 to 100");
    assert!(ReplayHost::default().checked().is_ok());
}

#[test]
fn a_file_that_is_no_recording_is_refused_with_what_makes_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.rec");
    let missing = super::read(&path).unwrap_err();
    assert!(missing.to_string().starts_with("opening "), "{missing}");
    std::fs::write(&path, "not a recording").unwrap();
    let other = super::read(&path).unwrap_err();
    assert!(other.to_string().starts_with("reading "), "{other}");
    assert!(other.remedy().contains("`floatgate trace record`"), "{}", other.remedy());
}

#[test]
fn recordings_that_are_built_in_are_known_by_application_and_clients() {
    for application in workload::catalogue::applications() {
        for threads in &application.threads {
            let found = copied(&application, *threads).map(|(found, _)| found);
            let found = found.unwrap_or_else(|| panic!("{} at {threads}", application.name));
            assert!(!found.measured().is_empty() && found.tail.is_some());
        }
    }
    assert!(built_in("sysbench-oltp", 3).is_none());
    let error = no_recording("sysbench-oltp", 3);
    assert_eq!(error.to_string(), "no recording of sysbench-oltp with 3 threads is built in");
    assert!(!error.remedy().is_empty());
}

#[test]
fn the_share_of_the_host_of_a_recording_without_requests_is_not_told() {
    let mut recording = recorded(vec![read(0, 400), read(450, 1000)]);
    assert!((host_share(&recording).unwrap() - 0.05).abs() < 1e-9);
    let later = Nanos::from_secs(9);
    recording.tail.as_mut().unwrap().measured_from = later;
    recording.tail.as_mut().unwrap().measured_to = later;
    assert_eq!(host_share(&recording), None);
    assert_eq!(parents(recording.measured()), []);
}

#[test]
fn copies_have_the_same_requests_on_other_addresses() {
    let recording = recorded(vec![read(0, 100), read(150, 250), read(260, 300)]);
    let tree = RequestTree::new(&recording, NonZeroU32::new(3).unwrap());
    assert_eq!((tree.requests.len(), tree.of_one()), (9, 3));
    for (copy, requests) in tree.by_copy(&tree.requests).enumerate() {
        let moved_by = copy as u64 * recording.space_sectors();
        assert!(requests.iter().all(|it| it.lba == moved_by));
        let parents = &tree.parents[3 * copy..3 * copy + 3];
        let expected: Vec<Option<u32>> = [None, Some(0), Some(1)]
            .map(|it| it.map(|it: u32| it + 3 * u32::try_from(copy).unwrap()))
            .to_vec();
        assert_eq!(parents.iter().map(|it| it.index).collect::<Vec<_>>(), expected);
    }
    assert_eq!(tree.recorded_end(), Nanos::from_micros(300));
}

#[test]
fn the_rest_of_a_recording_waits_for_nothing_before_it() {
    let recording = recorded(vec![read(0, 100), read(150, 250), read(260, 300)]);
    let whole = RequestTree::new(&recording, NonZeroU32::MIN);
    let rest = whole.after(1);
    assert_eq!(*rest.requests, recording.requests[1..]);
    let found: Vec<_> = rest.parents.iter().map(|it| (it.index, it.think_time.0)).collect();
    assert_eq!(found, [(None, 0), (Some(0), 10_000)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_comes_once_in_the_order_of_time_and_after_its_parent(
        spans in prop::collection::vec((0_u64..300, 1_u64..400), 1..40),
        latency in 1_u64..1000,
    ) {
        let requests = reads_apart(&spans);
        let issued = issued(&requests, &ReplayHost::default(), latency);
        prop_assert!(issued.is_sorted_by_key(|(at, ..)| *at), "{issued:?}");
        let mut at_us = vec![None; requests.len()];
        for (at, index, _) in &issued {
            prop_assert_eq!(at_us[*index as usize].replace(*at), None, "once each");
        }
        let recording = recorded(requests);
        for (index, parent) in parents(recording.measured()).iter().enumerate() {
            let think_us = parent.think_time.0 / 1000;
            let begun = parent.index.map_or(Some(0), |it| Some(at_us[it as usize]? + latency));
            prop_assert_eq!(at_us[index], begun.map(|begun| begun + think_us));
        }
    }
}
