//! Rounds, as the tests of the SNIA have them: headlines, verdicts, tables of sizes by mixes.

use results::{Cell, Run, Step, StepKind, TrackedMetric, WrittenAmount};

use super::TITLE;
use super::markup::{bare, part, rows, section};
use crate::example::{STOCK, run};
use crate::review;

/// A cell of a round: workload, size, share of reads, what is tracked of it.
type MeasuredCell = (&'static str, u32, f64, Option<TrackedMetric>);

const IOPS: [MeasuredCell; 4] = [
    ("4k-rand-100-0", 4096, 100.0, None),
    ("4k-rand-65-35", 4096, 65.0, None),
    ("4k-rand-0-100", 4096, 0.0, Some(TrackedMetric::Iops)),
    ("64k-rand-0-100", 65_536, 0.0, None),
];

/// The run with a suite of `cells` in rounds, each of which has the rate of `rates` times its
/// first.
fn in_rounds(cells: &[MeasuredCell], rates: &[f64]) -> Run {
    let mut run = run(STOCK);
    let of = |read_percent: f64| if read_percent < 50.0 { "4k-rand-write" } else { "4k-rand-read" };
    let free: Vec<Step> = run.steps.iter().filter(|it| it.is_primary()).cloned().collect();
    run.steps.retain(|step| step.suite == "4k");
    for (round, rate) in (1..).zip(rates) {
        for (workload, bytes, read_percent, tracked) in cells.iter().copied() {
            let model = free.iter().find(|it| it.workload == of(read_percent)).expect("measured");
            let mut step = Step {
                id: format!("snia/round-{round:02}/{workload}/T4Q32"),
                suite: "snia".into(),
                suite_title: "SNIA test".into(),
                workload: workload.into(),
                round: Some(round),
                tracked,
                cell: Some(Cell { bytes, read_percent }),
                ..model.clone()
            };
            let summary = step.summary.as_mut().expect("it was measured");
            summary.iops *= rate;
            summary.latency.latency_ns_avg /= rate;
            run.steps.push(step);
        }
    }
    run
}

fn headline(run: Run) -> Vec<String> {
    let page = review(&[run], TITLE);
    let table = rows(section(&page, "summary"), "<h3>SNIA tests</h3>");
    table.into_iter().find(|row| row[0] == "SNIA test").expect("it has rounds")
}

#[test]
fn the_iops_test_is_told_by_reads_the_mix_and_writes_of_4_kib() {
    let row = headline(in_rounds(&IOPS, &[1.0; 5]));
    let parts: Vec<&str> = row[2].split("; ").collect();
    assert_eq!(parts.len(), 3, "{row:?}");
    for (part, mix) in parts.iter().zip(["4 KiB 100/0 ", "4 KiB 65/35 ", "4 KiB 0/100 "]) {
        assert!(part.starts_with(mix) && part.ends_with(" IOPS"), "{part}");
    }
    assert_eq!(row[3], "after 5 rounds");
}

#[test]
fn a_latency_test_is_told_by_average_five_nines_and_maximum() {
    let cells: [MeasuredCell; 2] = [
        ("4k-rand-100-0", 4096, 100.0, Some(TrackedMetric::LatencyNsAvg)),
        ("4k-rand-0-100", 4096, 0.0, Some(TrackedMetric::LatencyNsAvg)),
    ];
    let row = headline(in_rounds(&cells, &[1.0; 5]));
    let parts: Vec<&str> = row[2].split("; ").collect();
    assert_eq!(parts.len(), 2, "{row:?}");
    for part in parts {
        let numbers = part.split_once("100 ").or_else(|| part.split_once("/0 ")).unwrap().1;
        let (average, rest) = numbers.split_once(", ").unwrap_or_else(|| panic!("{part}"));
        let (nines, maximum) = rest.split_once(" and ").unwrap();
        let number = |text: &str| text.replace(',', "").parse::<f64>().unwrap();
        let maximum = number(maximum.trim_end_matches(" ms"));
        assert!(number(average) < number(nines) && number(nines) <= maximum, "{part}");
    }
}

#[test]
fn a_sequential_test_is_told_in_megabytes_a_second() {
    let cells: [MeasuredCell; 2] = [
        ("128k-seq-100-0", 131_072, 100.0, Some(TrackedMetric::Iops)),
        ("128k-seq-0-100", 131_072, 0.0, Some(TrackedMetric::Iops)),
    ];
    let row = headline(in_rounds(&cells, &[1.0; 5]));
    assert!(row[2].starts_with("128 KiB 100/0 ") && row[2].contains(" MB/s; 128 KiB 0/100 "));
}

#[test]
fn a_suite_without_rounds_is_told_from_its_first_interval_to_the_last_window() {
    let page = review(&[in_rounds(&IOPS, &[1.0; 5])], TITLE);
    let table = rows(section(&page, "summary"), "<h3>SNIA tests</h3>");
    let saturation = table.iter().find(|row| row[0] == "4K random").expect("it is there");
    assert!(saturation[2].starts_with("4k-rand-write: "), "{saturation:?}");
    assert!(saturation[2].contains(" IOPS at first, "), "{saturation:?}");
    assert!(saturation[2].contains(" in the last window ("), "{saturation:?}");
    assert!(saturation[3].starts_with("after "), "{saturation:?}");
}

#[test]
fn saturation_says_whether_it_reached_steady_state() {
    let of = |change: fn(&mut Step)| {
        let mut run = in_rounds(&IOPS, &[1.0; 5]);
        run.steps.iter_mut().filter(|it| it.kind == StepKind::Precondition).for_each(change);
        let page = review(&[run], TITLE);
        let table = rows(section(&page, "summary"), "<h3>SNIA tests</h3>");
        table.into_iter().find(|row| row[0] == "4K random").unwrap().swap_remove(3)
    };
    assert_eq!(of(|step| step.steady = None), "not judged");
    assert_eq!(of(|step| step.steady.as_mut().unwrap().achieved = false), "not reached");
}

#[test]
fn a_review_without_rounds_has_no_headlines_of_them() {
    assert!(!review(&[run(STOCK)], TITLE).contains("SNIA tests"));
}

#[test]
fn rounds_that_go_on_rising_are_not_called_steady() {
    let rising: Vec<f64> = (0..7).map(|round| 1.4_f64.powi(round)).collect();
    let row = headline(in_rounds(&IOPS, &rising));
    assert_eq!(row[3], "not in 7 rounds");
}

#[test]
fn steady_rounds_that_wrote_too_little_are_called_so() {
    let mut run = in_rounds(&IOPS, &[1.0; 5]);
    for step in run.steps.iter_mut().filter(|step| step.round.is_some()) {
        // Real drives tell no NAND writes, and the capacity was not written once.
        step.summary.iter_mut().for_each(|it| it.nand = None);
        step.samples.iter_mut().for_each(|it| it.summary.nand = None);
        step.written = Some(WrittenAmount {
            since_purge_bytes: 1_000_000,
            since_purge_share: 0.01,
            addressed_share: 0.01,
        });
    }
    let page = review(&[run.clone()], TITLE);
    let suite = section(&page, "suite-snia");
    assert!(suite.contains("Steady state not achieved: five rounds up to round 5 met the limits"));
    assert_eq!(headline(run)[3], "no: too little written");
}

#[test]
fn each_round_is_a_row_of_what_is_tracked() {
    let page = review(&[in_rounds(&IOPS, &[1.0, 1.01, 0.99, 1.0, 1.0])], TITLE);
    let suite = section(&page, "suite-snia");
    let table = rows(suite, "<th scope=\"col\">Round</th>");
    let rounds: Vec<&str> = table.iter().map(|row| &*row[0]).collect();
    assert_eq!(rounds, ["1", "2", "3", "4", "5"]);
    assert!(suite.contains("<th scope=\"col\">4k-rand-0-100, IOPS</th>"));
    let rate = |row: &[String]| row[1].replace(',', "").parse::<f64>().unwrap();
    assert!(rate(&table[1]) > rate(&table[0]) && rate(&table[2]) < rate(&table[0]));
}

#[test]
fn a_tracked_latency_is_told_in_milliseconds() {
    let cells: [MeasuredCell; 1] =
        [("4k-rand-0-100", 4096, 0.0, Some(TrackedMetric::LatencyNsAvg))];
    let page = review(&[in_rounds(&cells, &[1.0; 5])], TITLE);
    let suite = section(&page, "suite-snia");
    assert!(suite.contains("<th scope=\"col\">4k-rand-0-100, average, ms</th>"));
    assert!(bare(suite).contains(" ms, range 0 % of it (at most 20 %)"), "in the verdict, too");
}

#[test]
fn tables_of_sizes_by_mixes_leave_cells_empty_that_were_not_measured() {
    let page = review(&[in_rounds(&IOPS, &[1.0; 5])], TITLE);
    let suite = section(&page, "suite-snia");
    let tables = suite.split("<div class=\"matrices\">").nth(1).expect("there are tables");
    assert_eq!(tables.matches("<table class=\"matrix\">").count(), 5);
    let iops = rows(tables, "<h4>IOPS</h4>");
    let sizes: Vec<&str> = iops.iter().map(|row| &*row[0]).collect();
    assert_eq!(sizes, ["64", "4"], "the largest on top");
    assert_eq!(iops[0].len(), 4, "three mixes: {iops:?}");
    assert_eq!(iops[0][1..3], ["", ""], "64 KiB was written alone");
    assert!(!iops[0][3].is_empty() && iops[1][1..].iter().all(|it| !it.is_empty()));
}

#[test]
fn the_greatest_number_of_a_table_has_the_darkest_shade() {
    let page = review(&[in_rounds(&IOPS, &[1.0; 5])], TITLE);
    let suite = section(&page, "suite-snia");
    let iops = part(suite, "<h4>IOPS</h4>", "</table>");
    let cells: Vec<(usize, f64)> = iops
        .split("<td class=\"s")
        .skip(1)
        .map(|cell| {
            let (shade, rest) = cell.split_once("\">").unwrap();
            let number = rest.split('<').next().unwrap().replace(',', "");
            (shade.parse().unwrap(), number.parse().unwrap())
        })
        .collect();
    let by_value = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
    assert_eq!(cells.iter().max_by(by_value).unwrap().0, 7, "{cells:?}");
    assert_eq!(cells.iter().min_by(by_value).unwrap().0, 0, "{cells:?}");
}
