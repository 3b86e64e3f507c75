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
    assert_eq!(at(100_000.0), "For work that mostly reads: it reads 2 times as fast as it writes.");
    assert_eq!(at(99_000.0), "For mixed work: settled writes of it reach 50.5 % of the reads.");
}

#[test]
fn a_drive_that_keeps_its_burst_is_for_lasting_writes() {
    let at = |burst_iops| is_for(&Suitability { burst_iops: Some(burst_iops), ..settled() }, "it");
    let said = "For lasting writes: it keeps 90.9 % of its burst once settled.";
    assert_eq!(at(55_000.0), said);
    assert!(at(56_000.0).starts_with("For mixed work"), "{}", at(56_000.0));
}

#[test]
fn its_place_among_the_catalogue_is_told_with_what_it_is_for() {
    let it = Suitability { write_place: Some((3, 41)), ..settled() };
    let said = "For mixed work: settled writes of it reach 55.6 % of the reads, number 3 of 41 \
                modelled drives by settled 4K writes.";
    assert_eq!(is_for(&it, "it"), said);
}

#[test]
fn a_drive_with_one_kind_of_load_is_for_loads_up_to_its_rate() {
    let writes = Suitability { read_iops: None, ..settled() };
    assert_eq!(is_for(&writes, "it"), "For loads up to 50K IOPS with it.");
    let mixed = Suitability { write_iops: None, mixed_iops: Some(7000.0), ..writes };
    assert_eq!(is_for(&mixed, "it"), "For loads up to 7K IOPS with it.");
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
        "Settled 4K writes of stock and their 99.9th percentile show no weakness."
    );
    let fall = "stock is not for lasting 4K writes above 50K IOPS, which is 66.7 % of the 75K \
                before it settles";
    assert_eq!(at(75_000.0, 2.9), format!("{fall}."));
    // 99.9 % of the writes do take at most 3 ms: it is a shorter limit that they do not meet.
    let tail = "for work that needs 99.9 % of writes faster than 3 ms, which is 3 times the \
                average.";
    assert_eq!(at(74_000.0, 3.0), format!("stock is not {tail}"));
    assert_eq!(at(75_000.0, 3.0), format!("{fall}, nor {tail}"));
}

#[test]
fn rates_are_listed_as_far_as_they_were_measured() {
    let tail = Suitability { write_latency_ns_p999: Some(12.5e6), ..settled() };
    let said = "50K random writes of 4K and 90K random reads of 4K a second; 99.9 % of the writes \
                are answered within 12.5 ms";
    assert_eq!(does(&tail), said);
    let reads = Suitability { write_iops: None, ..settled() };
    assert_eq!(does(&reads), "90K random reads of 4K a second");
    let none = Suitability { write_latency_ns_p999: Some(0.0), ..settled() };
    assert!(!does(&none).contains("99.9"), "a tail of nothing is none");
}

#[test]
fn a_drive_that_had_not_settled_gets_no_praise_and_its_reads_stand_apart() {
    let it = Suitability { is_settled: false, ..settled() };
    let said = of_one(&it);
    let first = "Not settled: 50K random writes of 4K a second. It does 90K random reads of 4K a \
                 second.";
    assert_eq!(said[0], first);
    assert_eq!(said.len(), 3);
    assert!(said[2].starts_with("Not for a decision"), "{}", said[2]);
    let only_reads = Suitability { write_iops: None, ..it };
    assert_eq!(of_one(&only_reads)[0], "It does 90K random reads of 4K a second.");
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
