//! Verdicts at the limits of their rules, and of drives that lack a figure.

use super::*;
use crate::example::{FAST, STOCK, run};
use crate::subject::subjects;

fn settled() -> Suitability {
    Suitability {
        write_iops: Some(50_000.0),
        read_iops: Some(90_000.0),
        is_settled: true,
        ..Suitability::default()
    }
}

#[test]
fn a_drive_reads_more_than_it_writes_from_twice_on() {
    let at = |read_iops| is_for(&Suitability { read_iops: Some(read_iops), ..settled() }, "it");
    let reads = "For work that mostly reads: 4K random reads reach 2 times the IOPS of \
                 steady-state 4K random writes.";
    assert_eq!(at(100_000.0), reads);
    let mixed = "For mixed work: steady-state 4K random writes reach 50.5 % of the IOPS of 4K \
                 random reads.";
    assert_eq!(at(99_000.0), mixed);
}

#[test]
fn a_drive_that_keeps_its_burst_is_for_sustained_writes() {
    let at = |burst_iops| is_for(&Suitability { burst_iops: Some(burst_iops), ..settled() }, "it");
    let said = "For sustained writes: it keeps 90.9 % of its burst IOPS in steady state.";
    assert_eq!(at(55_000.0), said);
    assert!(at(56_000.0).starts_with("For mixed work"), "{}", at(56_000.0));
}

#[test]
fn its_place_among_the_catalogue_is_told_with_what_it_is_for() {
    let it = Suitability { write_place: Some((3, 41)), ..settled() };
    let said = "For mixed work: steady-state 4K random writes reach 55.6 % of the IOPS of 4K \
                random reads; place 3 of 41 by 4K random writes, among this drive and those of \
                the baseline table.";
    assert_eq!(is_for(&it, "it"), said);
}

#[test]
fn a_drive_with_one_kind_of_load_is_for_loads_up_to_its_rate() {
    let writes = Suitability { read_iops: None, ..settled() };
    assert_eq!(is_for(&writes, "it"), "For 4K random writes up to 50K IOPS.");
    let mixed = Suitability { write_iops: None, mixed_iops: Some(7000.0), ..writes };
    let said = "For 8K requests, 70 % of them reads, up to 7K IOPS with stock.";
    assert_eq!(is_for(&mixed, "stock"), said);
}

#[test]
fn what_speaks_against_a_drive_begins_at_the_limits() {
    let at = |burst_iops, tail_ms: f64| {
        let it = Suitability {
            burst_iops: Some(burst_iops),
            write_latency_ns_p999: Some(tail_ms * 1e6),
            write_latency_ns_avg: Some(1e6),
            ..settled()
        };
        is_not_for(&it, "stock")
    };
    assert_eq!(
        at(74_000.0, 2.9),
        "Steady-state 4K random writes of stock and their p99.9 latency show no weakness."
    );
    let fall = "stock is not for sustained 4K random writes above 50K IOPS, which is 66.7 % of \
                the burst of 75K";
    assert_eq!(at(75_000.0, 2.9), format!("{fall}."));
    // 99.9 % of the writes do take at most 3 ms: it is a shorter limit that they do not meet.
    let tail = "for work that needs a p99.9 write latency below the measured 3 ms, which is 3 \
                times the average.";
    assert_eq!(at(74_000.0, 3.0), format!("stock is not {tail}"));
    assert_eq!(at(75_000.0, 3.0), format!("{fall}, nor {tail}"));
}

#[test]
fn rates_are_listed_as_far_as_they_were_measured() {
    let tail = Suitability { write_latency_ns_p999: Some(12.5e6), ..settled() };
    let rates = "50K IOPS 4K random write and 90K IOPS 4K random read";
    assert_eq!(does(&tail), format!("{rates}; measured p99.9 write latency 12.5 ms"));
    let modelled = Suitability { is_model: true, ..tail };
    assert_eq!(does(&modelled), format!("{rates}; modelled p99.9 write latency 12.5 ms"));
    let reads = Suitability { write_iops: None, ..settled() };
    assert_eq!(does(&reads), "90K IOPS 4K random read");
    let none = Suitability { write_latency_ns_p999: Some(0.0), ..settled() };
    assert!(!does(&none).contains("p99.9"), "a tail of nothing is none");
}

#[test]
fn a_drive_that_was_not_in_steady_state_gets_no_praise_and_its_reads_stand_apart() {
    let it = Suitability { is_settled: false, ..settled() };
    let said = of_one(&it);
    let first = "Steady state not reached: 50K IOPS 4K random write. Reads: 90K IOPS 4K random \
                 read.";
    assert_eq!(said[0], first);
    assert_eq!(said.len(), 3);
    assert!(said[2].starts_with("Precondition for longer"), "{}", said[2]);
    let only_reads = Suitability { write_iops: None, ..it };
    assert_eq!(of_one(&only_reads)[0], "Reads: 90K IOPS 4K random read.");
}

#[test]
fn of_two_formats_of_one_drive_no_winner_is_named() {
    let runs = [run(STOCK), run(FAST)];
    let said = sentences(&subjects(&runs)).join(" ");
    assert!(!said.contains("wins") && !said.contains("No winner"), "{said}");
}

#[test]
fn of_two_drives_the_faster_one_wins_and_by_how_much_is_told() {
    let mut runs = [run(STOCK), run(FAST)];
    runs[1].target.name = "another".into();
    runs[1].target.title = "Another".into();
    let said = sentences(&subjects(&runs)).join(" ");
    assert!(said.contains("Another") && said.contains("by 5 % or more, at most by"), "{said}");
    // Neither leads a drive that does the same.
    let mut level = [run(STOCK), run(STOCK)];
    level[1].target.name = "another".into();
    let said = sentences(&subjects(&level)).join(" ");
    assert!(said.contains("They are level: none leads by 5 %"), "{said}");
}

#[test]
fn without_a_load_in_common_there_is_no_winner() {
    let mut runs = [run(STOCK), run(FAST)];
    runs[1].target.name = "another".into();
    for step in &mut runs[1].steps {
        step.workload = format!("other-{}", step.workload);
    }
    let said = winners(&subjects(&runs));
    assert!(said.starts_with("No winner is named"), "{said}");
}
