//! Tests of the table and of what a run is compared with.

use super::*;
use crate::{StepKind, example};

const HEAD: &str = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,\
                    phase,metric,value_low,value_high,confidence,note\n";
const ROW: &str = "A1,d,x,640,stock,linux,4k-rand-write,16,16,primary,iops,42000,,exact,\n";

fn told(row: &str) -> String {
    parse(&format!("{HEAD}{row}"), "f.csv").unwrap_err().to_string()
}

/// What the example run measured for a row that ends like a row of the table.
fn measured(row: &str) -> Option<f64> {
    let rows = parse(&format!("{HEAD}X1,d,x,640,{row},1,1,exact,\n"), "f.csv").unwrap();
    rows[0].figure().unwrap().measure(&example::run())
}

#[test]
fn the_embedded_table_is_read_whole() {
    assert_eq!(figures().len(), TEXT.lines().count() - 1);
    let row = figures().iter().find(|row| row.id == "A084").unwrap();
    assert_eq!((row.device.as_str(), row.value_low), ("Fusion-io ioDrive Duo MLC", Some(42_644.0)));
    assert_eq!(row.value_high, row.value_low);
}

#[test]
fn figures_of_one_capacity_are_told_from_those_of_another() {
    let count = |gb| figures_for(figures(), "Fusion-io ioDrive Duo MLC", gb).count();
    assert!(count(640.0) > 50);
    assert_eq!(count(1280.0), 5);
    assert_eq!(count(100.0), 0);
}

#[test]
fn mistakes_name_line_and_column() {
    let cases = [
        (ROW.replace("42000", "42k"), "f.csv:2: column value_low: `42k` is not a number"),
        (ROW.replace("42000,", "42000,41000"), "f.csv:2: column value_high: is below value_low"),
        (
            ROW.replace("42000", ""),
            "f.csv:2: column value_low: is empty; only a garbled row may lack it",
        ),
        (
            ROW.replace("primary", "first"),
            "f.csv:2: column phase: `first` is not one of burst, precondition-end, steady, \
             primary, datasheet",
        ),
        (
            ROW.replace("exact", "sure"),
            "f.csv:2: column confidence: `sure` is not one of exact, corrected, garbled",
        ),
        (ROW.replace("stock", ""), "f.csv:2: column mode: is empty"),
        (ROW.replace("A1,", ""), "f.csv:2: 14 columns instead of 15"),
        (ROW.repeat(2), "f.csv:3: column id: `A1` is the id of an earlier row"),
    ];
    for (row, expect) in cases {
        assert_eq!(told(&row), expect);
    }
}

#[test]
fn other_columns_are_refused() {
    let error = parse(&HEAD.replace("phase", "when"), "f.csv").unwrap_err();
    assert!(error.to_string().starts_with("f.csv:1: the columns are not id,document,"));
}

#[test]
fn each_phase_is_compared_with_its_part_of_the_run() {
    let cases = [
        ("stock,any,4k-rand-write,16,16,burst,iops", 257_000.0),
        ("stock,linux,4k-rand-write,16,16,precondition-end,iops", 42_000.0),
        ("any,any,4k-rand-write,16,16,steady,iops", 42_000.0),
        ("stock,linux,4k-rand-write,16,16,primary,iops", 42_600.0),
        ("stock,linux,4k-rand-read,16,16,primary,iops", 140_000.0),
        ("stock,linux,4k-rand-read,16,16,steady,iops", 140_000.0),
        ("stock,linux,4k-rand-read,16,16,primary,mb_s", 140_000.0 * 4096.0 / 1e6),
        ("stock,linux,4k-rand-write,16,16,primary,avg_latency_ms", 256.0 / 42.6),
        ("stock,linux,4k-rand-write,16,16,primary,stdev_latency_ms", 128.0 / 42.6),
        ("stock,linux,4k-rand-write,16,16,primary,max_latency_ms", 384.0 / 42.6),
        ("stock,linux,8k-70-30,2-16,2-16,primary,max_latency_ms", 384.0 / 13.0),
        ("stock,linux,8k-70-30,16,16,burst,avg_latency_ms", 256.0 / 120.0),
    ];
    for (row, expect) in cases {
        let found = measured(row).unwrap();
        assert!((found / expect - 1.0).abs() < 1e-4, "{row}: {found}, not {expect}");
    }
}

#[test]
fn what_a_run_does_not_have_is_not_measured() {
    for row in [
        "high-performance,linux,4k-rand-write,16,16,primary,iops",
        "stock,windows,4k-rand-write,16,16,primary,iops",
        "stock,linux,4k-rand-write,8,16,primary,iops",
        "stock,linux,4k-rand-write,,,primary,iops",
        "stock,linux,file-server,16,16,primary,iops",
        "stock,linux,8k-70-30,2-16,2-16,primary,iops",
        "stock,linux,4k-rand-write,16,16,datasheet,iops",
        "stock,linux,4k-rand-write,16,16,primary,ratio_vs_comparables",
    ] {
        assert_eq!(measured(row), None, "{row}");
    }
}

#[test]
fn a_mode_may_say_what_the_data_is_like() {
    let cases = [
        ("uncompressed", Some(0.0)),
        ("compressed-2:1", Some(50.0)),
        ("compressed-4:1", Some(75.0)),
        ("compressed-1:2", None),
        ("compressed", None),
        ("stock", None),
    ];
    for (mode, expect) in cases {
        assert_eq!(compressible(mode), expect, "{mode}");
    }
}

#[test]
fn figures_of_compressible_data_are_compared_with_such_data() {
    let of = |mode: &str, percent: f64| {
        let row = format!("{HEAD}X1,d,x,640,{mode},linux,4k-rand-read,,,primary,iops,1,1,exact,\n");
        let mut run = example::run();
        run.steps.iter_mut().for_each(|step| step.compressible_percent = percent);
        parse(&row, "f.csv").unwrap()[0].figure().unwrap().measure(&run)
    };
    assert_eq!(of("compressed-2:1", 50.0), Some(140_000.0));
    assert_eq!(of("compressed-2:1", 0.0), None);
    assert_eq!(of("uncompressed", 0.0), Some(140_000.0));
    assert_eq!(of("uncompressed", 50.0), None);
    assert_eq!(of("stock", 0.0), None, "a format's row must state its load");
}

#[test]
fn a_burst_needs_a_purge_before_it() {
    let mut run = example::run();
    run.steps.retain(|step| step.kind != StepKind::Purge);
    let step = run.step("4k/precondition").unwrap();
    assert_eq!(burst(&run, step), Vec::<&crate::Sample>::new());
}

#[test]
fn a_burst_shorter_than_its_tenth_ends_at_the_cliff() {
    let run = example::run();
    // A tenth of the mixed preconditioning is four minutes, of which the last is beyond the cliff.
    assert_eq!(burst(&run, run.step("8k-70-30/precondition").unwrap()).len(), 3);
}

#[test]
fn every_row_that_cannot_be_compared_says_why() {
    let obstacle = |id| figures().iter().find(|row| row.id == id).unwrap().obstacle();
    assert_eq!(obstacle("A084"), None);
    assert_eq!(obstacle("A104"), None);
    assert_eq!(obstacle("B077"), Some("the value is garbled in its source"));
    assert_eq!(obstacle("A011"), Some("a data sheet states no load"));
    assert_eq!(obstacle("A113"), Some("not a metric that a run has"));
    assert_eq!(obstacle("A067"), Some("a range of loads has only a maximum latency"));
    assert_eq!(obstacle("D027"), Some("threads and queue are not stated"));
}

#[test]
fn the_figures_of_a_run_are_those_of_its_format_and_host() {
    let run = example::run();
    let rows = figures_for(figures(), "Fusion-io ioDrive Duo MLC", 640.0);
    let figures = compared(rows, &run);
    let find = |id: &str| figures.iter().find(|figure| figure.id == id);
    assert_eq!(find("A084").unwrap().measured.map(f64::round), Some(42_600.0));
    assert!(find("A123").is_none(), "of the other format");
    assert!(find("A096").is_none(), "of the other host");
    assert!(find("A011").is_none(), "of a data sheet");
    assert_eq!(find("A107").unwrap().measured, None, "of a workload that was not run");
}

#[test]
fn the_ratio_is_to_the_nearest_end_of_the_range() {
    let rows = parse(&format!("{HEAD}{}", ROW.replace("42000,", "40000,50000")), "f.csv").unwrap();
    let ratio = |measured| {
        let figure = Figure { measured: Some(measured), ..rows[0].figure().unwrap() };
        (figure.ratio().unwrap(), figure.is_within(0.15).unwrap())
    };
    assert_eq!(ratio(45_000.0), (1.0, true));
    assert_eq!(ratio(36_000.0), (0.9, true));
    assert_eq!(ratio(60_000.0), (1.2, false));
    assert_eq!(rows[0].figure().unwrap().ratio(), None);
}
