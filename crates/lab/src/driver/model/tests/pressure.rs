//! The rest of a load at its end, and failures that end it before.

use blockio::{Completion, Op, Status};
use results::Climate;

use super::*;
use crate::driver::model::pressure::OutstandingRequests;

/// A request that was sent at `from` and answered at `to`, in microseconds.
fn done((from, to): (u64, u64), status: Status) -> Completion {
    Completion {
        tag: 0,
        thread: 0,
        op: Op::Write,
        status,
        sectors: 8,
        submitted_at: Nanos::from_micros(from),
        completed_at: Nanos::from_micros(to),
        stalled: Nanos::ZERO,
    }
}

fn rest(spans: &[(u64, u64)], end_us: u64) -> OutstandingRequests {
    let completions = spans.iter().map(|span| done(*span, Status::Ok));
    OutstandingRequests::of(completions, Nanos::from_micros(end_us))
}

fn span(span_s: f64) -> Interval {
    Interval { span_s, ..Interval::default() }
}

#[test]
fn the_rest_of_a_load_ends_with_its_last_request_and_waited_since_each_was_sent() {
    let rest = rest(&[(10, 400), (40, 300), (120, 350)], 100);
    assert_eq!(rest.completed_at, Nanos::from_micros(400));
    assert_eq!(rest.waited, Nanos::from_micros(90 + 60), "the third was sent after the end");
}

#[test]
fn a_load_without_a_rest_lacks_nothing() {
    let nothing = rest(&[], 100);
    assert_eq!((nothing.completed_at, nothing.waited), (Nanos::ZERO, Nanos::ZERO));
    assert!(nothing.unfinished(&[span(1.0)]).abs() < 1e-12);
}

#[test]
fn requests_that_no_interval_counts_are_a_mean_over_all_of_them() {
    let rest = rest(&[(0, 2_000_000), (500_000, 3_000_000)], 1_000_000);
    assert!((rest.unfinished(&[span(0.5), span(0.5)]) - 1.5).abs() < 1e-9);
    assert!((rest.unfinished(&[span(3.0)]) - 0.5).abs() < 1e-9);
    assert!(rest.unfinished(&[]).abs() < 1e-12, "without an interval there is no mean");
}

#[test]
fn in_a_closed_loop_every_moment_of_every_request_is_counted_or_waited() {
    let workload = workload("8k-70-30");
    let load = load(&workload);
    let mut drive = small();
    let feeds = Feed::of_all(&load, &drive).unwrap();
    let end = Nanos::from_millis(50);
    let mut meter = Meter::new(&drive, Nanos::ZERO);
    let mut closed = ClosedLoop::start(&mut drive, feeds, &load, Nanos::ZERO);
    assert!(closed.run(end, &mut meter, &mut StopAfter(usize::MAX)).unwrap());
    let interval = meter.cut(closed.drive(), end, 1.0);
    let rest = closed.drain(end);
    let counted_ns = interval.read.sum_ns() + interval.write.sum_ns();
    let all_ns = u128::from(end.0) * 8;
    // What the host notices after the end was done by then: some microseconds each.
    let found_ns = counted_ns + u128::from(rest.waited.0);
    assert!(found_ns >= all_ns && found_ns - all_ns < all_ns / 500, "{found_ns} of {all_ns}");
    assert_eq!(drive.next_completion(Nanos::MAX), None, "nothing is left");
}

#[test]
fn a_request_that_fails_ends_the_load_with_what_the_user_can_do() {
    let failed = |status| failed(&done((0, 750_000), status), 2);
    let out = failed(Status::OutOfSpace);
    assert!(out.to_string().starts_with("after 1.50 s the drive was out of physical space"));
    assert!(out.remedy().contains("--compressible"), "{}", out.remedy());
    let off = failed(Status::PoweredOff);
    assert!(off.to_string().starts_with("after 1.50 s the drive was too hot"), "{off}");
    assert!(off.remedy().contains("--airflow"), "{}", off.remedy());
    let beyond = failed(Status::OutOfRange);
    assert_eq!(beyond.to_string(), "after 1.50 s a write of the model ended with outofrange");
    assert_eq!((beyond.kind(), beyond.remedy()), (Kind::Program, ""));
}

/// Warnings of a Duo that throttled its writes for these shares of the time.
fn throttled(heat: Option<f64>, power: Option<f64>) -> Vec<String> {
    warned(4096, (heat, power))
}

/// Warnings of a Duo that throttled its writes so and wrote so many bytes.
fn warned(write_bytes: u64, (heat, power): (Option<f64>, Option<f64>)) -> Vec<String> {
    let spec = ssd::catalogue::find("iodrive-duo").unwrap();
    let climate = Climate {
        power_w: Some(24.96),
        temperature_c: Some(78.04),
        thermal_throttled_share: heat,
        power_throttled_share: power,
    };
    let interval = Interval { climate: Some(climate), write_bytes, ..span(1.0) };
    let warnings = climate::warnings(&spec, "4k/precondition", &[interval]);
    assert!(warnings.iter().all(|it| it.kind == WarningKind::Throttled));
    assert!(warnings.iter().all(|it| it.step == "4k/precondition" && !it.remedy.is_empty()));
    warnings.into_iter().map(|warning| warning.text).collect()
}

#[test]
fn heat_and_power_that_throttle_writes_are_warned_of_each_with_its_limit() {
    let hot = "the drive throttled its writes for 12.5 % of the time: it slows down at 78 °C and \
               reached 78.0 °C";
    assert_eq!(throttled(Some(0.125), Some(0.0)), [hot]);
    let both = throttled(Some(0.125), Some(1.0));
    assert_eq!(both.len(), 2);
    assert_eq!(both[0], hot);
    assert!(both[1].contains("100.0 % of the time: it may draw "), "{both:?}");
    assert!(both[1].ends_with("and drew 25.0 W"), "{both:?}");
    assert_eq!(throttled(Some(0.0), Some(0.0)), [""; 0]);
    assert_eq!(throttled(None, None), [""; 0]);
    let reads = "the drive was at its throttle temperature of 78 °C for 12.5 % of the time, and \
                 reached 78.0 °C; it only read, and reads are not throttled";
    assert_eq!(warned(0, (Some(0.125), Some(1.0))), [reads]);
}

#[test]
fn requests_that_go_on_long_after_a_measurement_heat_it_too_much() {
    let mut spec = ssd::catalogue::find("iodrive-duo").unwrap();
    let (began, ended) = (Nanos::from_millis(1000), Nanos::from_millis(2000));
    let told = |spec: &DriveSpec, completed_ms| {
        climate::booked_beyond(spec, "s", (began, ended), Nanos::from_millis(completed_ms))
    };
    assert_eq!(told(&spec, 2100), None);
    let warning = told(&spec, 18_000).unwrap();
    assert!(warning.text.contains("16.0 s after a measurement of 1.00 s"), "{}", warning.text);
    spec.thermal = None;
    assert_eq!(told(&spec, 18_000), None, "nothing is known of its heat");
}

#[test]
fn a_drive_of_whose_heat_nothing_is_known_has_no_limits_and_no_warnings() {
    let mut spec = ssd::catalogue::find("iodrive-duo").unwrap();
    assert_eq!(climate::limits(&spec).unwrap().shutdown_c, Some(85.0));
    spec.thermal = None;
    assert_eq!(climate::limits(&spec), None);
    let climate = Climate { thermal_throttled_share: Some(1.0), ..Climate::default() };
    let interval = Interval { climate: Some(climate), ..span(1.0) };
    assert_eq!(climate::warnings(&spec, "s", &[interval]), []);
}
