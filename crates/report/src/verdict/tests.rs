//! Verdicts at the limits of their rules, and of drives that lack a figure.

use super::*;
use crate::example::{FAST, STOCK, as_drives, run};
use crate::subject::subjects;

fn settled() -> Headlines {
    Headlines {
        write_iops: Some(400_000.0),
        read_iops: Some(1_000_000.0),
        is_one_load: true,
        is_settled: true,
        ..Headlines::default()
    }
}

#[test]
fn reads_against_writes_are_told_as_observed_and_no_use_is_advised() {
    let said = ratios(&settled(), None);
    let ratio = "4K random reads reach 2.5 times the IOPS of steady-state 4K random writes.";
    assert_eq!(said, [ratio], "a drive that writes 400K is no drive for reading");
    let named = ratios(&settled(), Some("stock")).join(" ");
    assert!(named.starts_with("4K random reads of stock reach 2.5 times"), "{named}");
    let apart = Headlines { is_one_load: false, ..settled() };
    assert_eq!(ratios(&apart, None), [""; 0], "loads that differ have no ratio");
}

#[test]
fn its_place_among_the_baseline_table_follows_the_ratio_or_stands_alone() {
    let it = Headlines { write_place: Some((3, 41)), ..settled() };
    let place = "3 of 41 in 4K random writes, among this drive and those of the baseline \
                 table.";
    let said = ratios(&it, None).join(" ");
    assert!(said.ends_with(&format!("steady-state 4K random writes; rank {place}")), "{said}");
    let writes = Headlines { read_iops: None, ..it };
    assert_eq!(ratios(&writes, None), [format!("Rank: {place}")]);
}

#[test]
fn burst_and_tail_are_told_as_far_as_they_were_measured() {
    let tail = Headlines {
        write_iops: Some(50_000.0),
        read_iops: None,
        is_model: true,
        write_latency_ns_p999: Some(3e6),
        write_latency_ns_avg: Some(1e6),
        ..settled()
    };
    let alone = "The modelled p99.9 latency of 4K random writes of stock is 3 times their average.";
    assert_eq!(ratios(&tail, Some("stock")), [alone]);
    let both = Headlines { burst_iops: Some(75_000.0), window_iops: Some(50_000.0), ..tail };
    let said = "The IOPS of 4K random writes settle at 66.7 % of the burst of 75K; the modelled \
                p99.9 latency of these writes is 3 times their average.";
    assert_eq!(ratios(&both, None), [said]);
    let burst = Headlines { is_settled: false, ..both };
    assert_eq!(ratios(&burst, None), [""; 0], "before steady state there is no ratio");
}

#[test]
fn rates_are_listed_as_far_as_they_were_measured() {
    let tail = Headlines { write_latency_ns_p999: Some(12.5e6), ..settled() };
    let rates = "400K IOPS 4K random write and 1M IOPS 4K random read";
    assert_eq!(does(&tail), format!("{rates}; measured p99.9 write latency 12.5 ms"));
    let modelled = Headlines { is_model: true, ..tail };
    assert_eq!(does(&modelled), format!("{rates}; modelled p99.9 write latency 12.5 ms"));
    let reads = Headlines { write_iops: None, ..settled() };
    assert_eq!(does(&reads), "1M IOPS 4K random read");
    let none = Headlines { write_latency_ns_p999: Some(0.0), ..settled() };
    assert!(!does(&none).contains("p99.9"), "a tail of nothing is none");
}

#[test]
fn a_drive_that_was_not_in_steady_state_gets_no_praise_and_its_reads_stand_apart() {
    let it = Headlines { is_settled: false, ..settled() };
    let said = of_one(&it);
    let first = "Steady state not reached: 400K IOPS 4K random write; 1M IOPS 4K random read, for \
                 which no steady state is needed.";
    assert_eq!(said[0], first);
    assert_eq!(said.len(), 2);
    assert!(said[1].contains("precondition for longer"), "{}", said[1]);
    let only_reads = Headlines { write_iops: None, ..it };
    assert_eq!(of_one(&only_reads)[0], "Reads: 1M IOPS 4K random read.");
}

#[test]
fn of_two_formats_of_one_drive_no_winner_is_named() {
    let runs = [run(STOCK), run(FAST)];
    let said = sentences(&subjects(&runs)).join(" ");
    assert!(!said.contains("wins") && !said.contains("No winner"), "{said}");
}

#[test]
fn of_two_drives_the_faster_one_wins_and_by_how_much_is_told() {
    let runs = as_drives(vec![run(STOCK), run(FAST)]);
    let said = sentences(&subjects(&runs)).join(" ");
    assert!(
        said.contains("high-performance leads in IOPS under 7 of 11 loads by 5 % or more"),
        "{said}"
    );
    // Neither leads a drive that does the same.
    let mut level = [run(STOCK), run(STOCK)];
    level[1].target.name = "another".into();
    let said = sentences(&subjects(&level)).join(" ");
    assert!(said.contains("The runs are even: none leads by 5 %"), "{said}");
}

#[test]
fn a_winner_among_bursts_is_called_one_and_a_warning_names_none() {
    let mut runs = as_drives(vec![run(STOCK), run(FAST)]);
    let unsettle = |run: &mut Run| {
        run.steps.iter_mut().filter_map(|it| it.steady.as_mut()).for_each(|it| it.achieved = false);
    };
    runs.iter_mut().for_each(unsettle);
    let said = winners(&subjects(&runs));
    assert!(said.ends_with("; none of them was in steady state."), "{said}");
    let steps: Vec<String> = runs[0].steps.iter().map(|step| step.id.clone()).collect();
    runs[0].warnings.extend(steps.into_iter().map(|step| results::Warning {
        kind: results::WarningKind::Environment,
        step,
        text: "others used the device".into(),
        remedy: String::new(),
    }));
    let said = winners(&subjects(&runs));
    assert!(said.starts_with("No winner is named: warnings put every load"), "{said}");
    let said = rates(&subjects(&runs));
    assert!(said.starts_with("Modelled, steady state not reached: stock 39K IOPS (in doubt)"));
    assert!(!said.contains("high-performance 82.7K IOPS (in doubt)"), "{said}");
}

#[test]
fn of_imported_runs_the_steady_state_is_unknown() {
    let mut runs = as_drives(vec![run(STOCK), run(FAST)]);
    for run in &mut runs {
        run.target.kind = results::TargetKind::BlockDevice;
        run.environment.imported_from = Some("fio-3.42".into());
        run.steps.retain(|step| step.kind == StepKind::Measure);
    }
    let said = rates(&subjects(&runs));
    assert!(said.starts_with("Imported, steady state unknown: stock 39K IOPS"), "{said}");
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
