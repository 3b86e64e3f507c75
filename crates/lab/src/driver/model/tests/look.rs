//! Short looks at a drive, and the ageing before them.

use super::*;
use crate::driver::model::quick_measure::{Span, brief, fill, settle};

/// Requests of a look of `span` under `load` on a small drive, and their bytes.
fn looked(load: &Load<'_>, span: Span) -> (u64, u64) {
    let mut drive = small();
    fill(&mut drive).unwrap();
    let interval = brief(&mut drive, load, span, &|| false).unwrap();
    assert!(interval.span_s > 0.0 && interval.at_s == 0.0, "{interval:?}");
    (requests(&interval), interval.read_bytes + interval.write_bytes)
}

const SPAN: Span = Span { requests_min: 1000, requests_max: 5000, written_min: 0 };

#[test]
fn a_look_at_reads_is_as_short_as_it_may_be() {
    let workload = workload("4k-rand-read");
    assert_eq!(looked(&load(&workload), SPAN), (1000, 1000 * 4096));
    let span = Span { written_min: u64::MAX, ..SPAN };
    assert_eq!(looked(&load(&workload), span).0, 1000, "nothing is waited for that never comes");
}

#[test]
fn a_look_at_writes_goes_on_until_enough_was_written_but_not_for_ever() {
    let workload = workload("4k-rand-write");
    let written = |pages: u64| looked(&load(&workload), Span { written_min: pages * 4096, ..SPAN });
    assert_eq!(written(10).0, 1000);
    assert_eq!(written(3000), (3000, 3000 * 4096));
    assert_eq!(written(1 << 30).0, 5000);
}

#[test]
fn a_look_takes_as_much_outstanding_as_any_protocol_may_ask_for() {
    let workload = workload("4k-rand-read");
    let asked = Load { threads: 256, queue_per_thread: 256, ..load(&workload) };
    let mut drive = in_place("p5800x");
    let interval = brief(&mut drive, &asked, SPAN, &|| false).unwrap();
    assert_eq!(requests(&interval), 1000);
    // More than 65,535 wait for each of them.
    let summary = results::Summary::of(&[interval]);
    let outstanding = summary.iops * summary.latency.latency_ns_avg / 1e9;
    assert!(outstanding > 60_000.0, "{outstanding}");
}

#[test]
fn a_fill_in_no_time_writes_every_page_once() {
    let mut drive = small();
    fill(&mut drive).unwrap();
    let pages = drive.user_sectors().div_ceil(8);
    assert_eq!(drive.counters().pages_host, pages);
    assert_eq!(drive.counters().pages_relocation, 0, "nothing was overwritten");
}

#[test]
fn ageing_by_reads_changes_nothing() {
    let workload = workload("4k-rand-read");
    let mut drive = small();
    fill(&mut drive).unwrap();
    let before = drive.counters();
    settle(&mut drive, &load(&workload), &|| false).unwrap();
    assert_eq!(drive.counters().pages_host, before.pages_host);
}

#[test]
fn ageing_by_writes_goes_over_the_footprint_at_least_twice_and_is_repeatable() {
    let random = workload("4k-rand-write");
    let aged = |percent: f64| {
        let workload = Workload { footprint_percent: percent, ..random.clone() };
        let mut drive = small();
        settle(&mut drive, &load(&workload), &|| false).unwrap();
        let counters = drive.counters();
        let times = counters.pages_host as f64 * 8.0 / drive.user_sectors() as f64;
        (times, counters.pages_relocation)
    };
    let (times, relocated) = aged(100.0);
    assert!((2.0..=8.1).contains(&times), "{times}");
    assert!(relocated > 0, "random writes leave something to relocate");
    assert_eq!(aged(100.0), (times, relocated));
    let (times, _) = aged(10.0);
    assert!((0.2..=0.81).contains(&times), "{times}");
}

#[test]
fn a_drive_too_small_for_the_load_is_neither_aged_nor_looked_at() {
    let workload = Workload { footprint_percent: 1e-7, ..workload("4k-rand-write") };
    let mut drive = small();
    assert_eq!(settle(&mut drive, &load(&workload), &|| false).unwrap_err().kind(), Kind::Input);
    assert_eq!(
        brief(&mut drive, &load(&workload), SPAN, &|| false).unwrap_err().kind(),
        Kind::Input
    );
}
