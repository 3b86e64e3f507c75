//! Traces as loads: where they come from, when their requests are due, and what is said of them.

use std::error::Error as StdError;

use blockio::Op;
use proptest::prelude::*;
use workload::catalogue;
use workload::trace::TraceShape;

use super::*;

/// A trace of 4 KiB reads, one after the other, at these times in microseconds.
fn timed(at_us: &[u64]) -> Trace {
    let line = |(nth, us): (usize, &u64)| format!("{us} /d read {} 4096\n", nth * 4096);
    let lines: String = at_us.iter().enumerate().map(line).collect();
    parsed(&format!("fio version 3 iolog\n0 /d add\n0 /d open\n{lines}"))
}

fn parsed(text: &str) -> Trace {
    trace::read(text.as_bytes(), "folder/mine.log").unwrap()
}

fn replay(trace: &Trace, speed: Option<f64>) -> Replay<'_> {
    Replay { trace, addresses: Addresses::Wrapped, speed }
}

/// Due times of the first `count` requests, in microseconds.
fn due_us(trace: &Trace, speed: f64, count: u64) -> Vec<f64> {
    let replay = replay(trace, Some(speed));
    (0..count).map(|index| replay.due(index).0 as f64 / 1e3).collect()
}

/// A workload whose trace of `requests` is made up in a space of `space_gb`.
fn shaped(space_gb: f64, requests: u64) -> Workload {
    let workload = catalogue::find_workload("mail-server").unwrap();
    let shape = TraceShape {
        requests,
        space_gb,
        sequential_percent: 0.0,
        iops: 1000.0,
        burstiness: 1.0,
        cycles: 1,
        phases: Vec::new(),
    };
    Workload { trace: Some(shape), ..workload }
}

fn made_up(workload: Option<&Workload>, seed: u64) -> Result<Trace, Error> {
    let planned = PlannedReplay { source: Source::Shape, addresses: Addresses::Scaled };
    planned.trace("mail/T1Q8", workload, seed)
}

#[test]
fn a_file_of_a_trace_that_is_not_there_is_named() {
    let planned = PlannedReplay {
        source: Source::File("/nowhere/trace.csv".into()),
        addresses: Addresses::Scaled,
    };
    // The shape of the workload does not stand in for the file that was asked for.
    let error = planned.trace("s", Some(&shaped(1.0, 10)), 1).unwrap_err();
    assert_eq!(error.to_string(), "opening /nowhere/trace.csv");
    assert_eq!(error.kind(), Kind::Input);
    assert!(StdError::source(&error).unwrap().to_string().contains("No such file"));
}

#[test]
fn a_step_whose_workload_has_no_shape_is_told_what_to_add() {
    let plain = catalogue::find_workload("4k-rand-read").unwrap();
    for workload in [None, Some(&plain)] {
        let error = made_up(workload, 1).unwrap_err();
        assert_eq!(error.to_string(), "step mail/T1Q8: its workload has no shape of a trace");
        assert_eq!(error.remedy(), "give it a [trace], or replay a file");
    }
}

#[test]
fn a_shape_in_a_space_below_its_requests_is_told_what_to_change() {
    let large = vec![SizeShare { bytes: 4 << 20, percent: 100.0 }];
    let workload = Workload { sizes: large, ..shaped(0.001, 10) };
    let error = made_up(Some(&workload), 1).unwrap_err();
    assert_eq!(error.to_string(), "step mail/T1Q8: making its trace");
    assert_eq!(error.remedy(), "increase its space_gb");
    assert!(StdError::source(&error).is_some(), "the cause is kept");
}

#[test]
fn a_trace_that_is_made_up_follows_from_the_seed_alone() {
    let workload = shaped(1.0, 500);
    let trace = |seed| made_up(Some(&workload), seed).unwrap();
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
    assert!(trace(7).is_synthetic());
    assert_eq!(trace(7).requests().len(), 500);
}

#[test]
fn times_that_the_trace_lacks_are_asked_for_in_vain() {
    let trace = parsed("fio version 2 iolog\n/d add\n/d read 0 4096\n/d read 4096 4096\n");
    replay(&trace, None).check().unwrap();
    let error = replay(&trace, Some(1.0)).check().unwrap_err();
    assert_eq!(error.to_string(), "trace folder/mine.log has no times to replay it at");
    assert_eq!(error.remedy(), "replay it without a speed");
}

#[test]
fn the_rate_of_a_replay_is_that_of_the_trace_times_its_speed() {
    let trace = timed(&[0, 500, 2000]);
    let rate = |speed| replay(&trace, speed).rate();
    assert_eq!(rate(None), None, "it comes as fast as it is answered");
    assert!((rate(Some(1.0)).unwrap() - 1500.0).abs() < 1e-6);
    assert!((rate(Some(4.0)).unwrap() - 6000.0).abs() < 1e-6);
}

#[test]
fn a_trace_begins_again_one_mean_span_after_its_last_request() {
    let trace = timed(&[0, 100, 400]);
    assert_eq!(due_us(&trace, 1.0, 7), [0.0, 100.0, 400.0, 600.0, 700.0, 1000.0, 1200.0]);
    assert_eq!(due_us(&trace, 2.0, 4), [0.0, 50.0, 200.0, 300.0]);
    assert_eq!(due_us(&trace, 0.5, 4), [0.0, 200.0, 800.0, 1200.0]);
}

#[test]
fn a_trace_of_one_request_has_no_times() {
    let trace = timed(&[700]);
    assert_eq!(due_us(&trace, 1.0, 3), [0.0, 0.0, 0.0], "its only time is its origin");
    replay(&trace, Some(1.0)).check().unwrap_err();
}

#[test]
fn a_replay_is_described_by_its_trace_its_pace_and_its_coverage() {
    let trace = timed(&[0, 100, 400]);
    let span = Span { sectors: 1 << 21 };
    assert_eq!(
        replay(&trace, Some(2.5)).how(span, None, 6),
        "trace folder/mine.log (3 requests over 1 MiB in 400 us), addresses kept: 1 MiB on \
         1.07 GB, at 2.5 times its speed, 2.00 times over while measuring"
    );
    let how = replay(&trace, None).how(Span { sectors: 1 << 10 }, None, 1);
    assert!(how.contains("addresses wrapped from 1 MiB to 512 KiB"), "{how}");
    assert!(
        how.contains("closed loop: each completion triggers the next request, 0.33 times over"),
        "{how}"
    );
    let rate = Some(Rate { iops: 10.0, gaps: crate::Gaps::Constant });
    let how = replay(&trace, None).how(Span { sectors: 1 << 10 }, rate, 1);
    assert!(how.contains("in its order at the rate of the load, 0.33 times over"), "{how}");
    let synthetic = made_up(Some(&shaped(1.0, 10)), 1).unwrap();
    let how = replay(&synthetic, None).how(span, None, 0);
    assert!(how.starts_with("synthetic trace mail-server (10 requests"), "{how}");
}

#[test]
fn what_was_left_out_of_a_file_is_said_of_its_replay() {
    let text = "fio version 3 iolog\n0 /d add\n5 /d read 0 4096\nnonsense\n7 /d trim 0 4096\n\
                8 /d sync 0 0\n9 /d read x 4096\n10 /d write 0 4096\n";
    let trace = parsed(text);
    let how = replay(&trace, None).how(Span { sectors: 1 << 21 }, None, 2);
    let expected = ", 2 broken lines left out (first: line 4), 2 requests that neither read nor \
                    write left out";
    assert!(how.ends_with(expected), "{how}");
    assert!(how.contains("(2 requests over"), "{how}");
}

#[test]
fn a_trace_as_a_workload_has_its_mix_and_its_sizes() {
    let text = "fio version 3 iolog\n0 /d add\n0 /d read 0 4096\n1 /d read 8192 4096\n\
                2 /d read 0 8192\n3 /d write 0 4096\n";
    let workload = workload_of(&parsed(text));
    assert_eq!((workload.name.as_str(), workload.title.as_str()), ("mine", "Trace mine"));
    assert!((workload.read_percent - 75.0).abs() < 1e-9);
    let mut sizes: Vec<(u32, f64)> =
        workload.sizes.iter().map(|size| (size.bytes, size.percent)).collect();
    sizes.sort_by_key(|(bytes, _)| *bytes);
    assert_eq!(sizes, [(4096, 75.0), (8192, 25.0)]);
    assert!(workload.description.starts_with("4 requests"), "{}", workload.description);
    assert!(workload.source.starts_with("folder/mine.log, "), "{}", workload.source);
    assert_eq!(workload.trace, None, "it is no shape to make others of");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn requests_are_due_in_their_order_and_every_lap_lasts_as_long(
        gaps in prop::collection::vec(0_u64..5_000, 1..20),
        speed in 0.1..10.0_f64,
        laps in 1_u64..5,
    ) {
        let mut at = vec![0];
        for gap in &gaps {
            at.push(at.last().unwrap() + gap);
        }
        prop_assume!(at.last() != Some(&0));
        let trace = timed(&at);
        let replay = replay(&trace, Some(speed));
        let count = at.len() as u64;
        let due: Vec<Nanos> = (0..count * (laps + 1)).map(|index| replay.due(index)).collect();
        prop_assert!(due.is_sorted());
        prop_assert_eq!(due[0], Nanos::ZERO);
        let lap_ns = |lap: usize| (due[at.len() * lap].0 - due[at.len() * (lap - 1)].0) as f64;
        let first_ns = lap_ns(1);
        for lap in 1..=usize::try_from(laps).unwrap() {
            prop_assert!((lap_ns(lap) - first_ns).abs() <= 2.0, "rounding alone");
        }
        // So the mean rate over whole laps is that of the gaps of the trace.
        let mean_ns = trace.span().0 as f64 / (count - 1) as f64 / speed;
        prop_assert!((first_ns / count as f64 - mean_ns).abs() <= 2.0 + 1.0 / speed);
        prop_assert!(trace.requests().iter().all(|it| it.op == Op::Read));
    }
}
