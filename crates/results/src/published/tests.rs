//! Tests of the table and of what a run is compared with.

use super::*;
use crate::{Figure, StepKind, example};

const HEAD: &str = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,\
                    phase,metric,value_low,value_high,confidence,note\n";
const ROW: &str = "A1,d,x,640,stock,linux,4k-rand-write,16,16,primary,iops,42000,,exact,\n";

fn told(row: &str) -> String {
    parse(&format!("{HEAD}{row}"), "f.csv").unwrap_err().to_string()
}

/// Value that the example run measured in `part` of `steps`.
fn read(metric: &str, part: Part, steps: &[&str]) -> Option<f64> {
    let metric = Metric::named(metric).unwrap();
    let steps = steps.iter().map(|id| (*id).to_owned()).collect();
    let reading = Reading { metric, steps, part, over: Over::Range, mb_bytes: 1_000_000 };
    reading.of(&example::run())
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
             primary, datasheet, datasheet-sustained",
        ),
        (
            ROW.replace("exact", "sure"),
            "f.csv:2: column confidence: `sure` is not one of exact, corrected, garbled",
        ),
        (ROW.replace("stock", ""), "f.csv:2: column mode: is empty"),
        (ROW.replace("A1,", ""), "f.csv:2: 14 columns instead of 15"),
        (format!("\n\n{}", ROW.replace("stock", "")), "f.csv:4: column mode: is empty"),
        (format!("{ROW}\r\n\r\nA2,d\r\n"), "f.csv:5: 2 columns instead of 15"),
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
fn each_part_of_a_step_has_its_value() {
    use Part::{Burst, Settled, Whole};
    let (write, read_, mixed) = ("4k/measure/write", "4k/measure/read", "8k-70-30");
    let precondition = "4k/precondition";
    let mixed = format!("{mixed}/precondition");
    let cases = [
        ("iops", Burst, precondition, 257_000.0),
        ("iops", Settled, precondition, 42_000.0),
        ("iops", Whole, write, 42_600.0),
        ("iops", Whole, read_, 140_000.0),
        ("mb_s", Whole, read_, 140_000.0 * 4096.0 / 1e6),
        ("avg_latency_ms", Whole, write, 256.0 / 42.6),
        ("stdev_latency_ms", Whole, write, 128.0 / 42.6),
        ("max_latency_ms", Whole, write, 384.0 / 42.6),
        ("avg_latency_ms", Burst, &mixed, 256.0 / 120.0),
        ("max_latency_ms", Burst, &mixed, 384.0 / 110.0),
    ];
    for (metric, part, step, expect) in cases {
        let found = read(metric, part, &[step]).unwrap();
        assert!((found / expect - 1.0).abs() < 1e-4, "{metric} of {step}: {found}, not {expect}");
    }
}

#[test]
fn a_tool_may_divide_by_another_megabyte() {
    let metric = Metric::Throughput;
    let steps = vec!["4k/measure/read".to_owned()];
    let of = |mb_bytes| {
        let (part, over) = (Part::Whole, Over::Range);
        let reading = Reading { metric, steps: steps.clone(), part, over, mb_bytes };
        reading.of(&example::run()).unwrap()
    };
    assert!((of(1_000_000) / of(1 << 20) - 1.048_576).abs() < 1e-9);
}

#[test]
fn of_several_loads_a_maximum_is_the_largest_and_a_data_sheet_takes_the_best() {
    let steps = ["4k/measure/write", "4k/measure/read"];
    let over = |metric, over| {
        let steps = steps.iter().map(|id| (*id).to_owned()).collect();
        let reading = Reading { metric, steps, part: Part::Whole, over, mb_bytes: 1_000_000 };
        reading.of(&example::run()).unwrap()
    };
    let close = |found: f64, expect: f64| assert!((found / expect - 1.0).abs() < 1e-4, "{found}");
    close(over(Metric::MaxLatency, Over::Range), 384.0 / 42.6);
    close(over(Metric::MaxLatency, Over::Best), 384.0 / 140.0);
    close(over(Metric::Iops, Over::Best), 140_000.0);
}

#[test]
fn what_a_run_does_not_have_is_not_measured() {
    assert_eq!(read("iops", Part::Whole, &["4k/measure/none"]), None);
    assert_eq!(read("iops", Part::Settled, &["4k/measure/write"]), None);
    assert_eq!(read("iops", Part::Whole, &["4k/purge"]), None);
}

#[test]
fn loads_are_numbers_ranges_or_left_out() {
    let loads = |threads, queue| Loads::parse(threads, queue);
    let Some(Loads::Grid(threads, queue)) = loads("2-16", "64+") else { panic!() };
    assert!(threads.holds(2) && threads.holds(16) && !threads.holds(17));
    assert!(queue.holds(64) && queue.holds(512) && !queue.holds(63));
    assert!(matches!(loads("", "8"), Some(Loads::Outstanding(of)) if of.holds(8) && !of.holds(9)));
    assert_eq!(loads("", ""), Some(Loads::Unstated));
    assert_eq!(loads("many", "1"), None);
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
    assert!(is_of("compressed-2:1", 50.0, 0.0) && !is_of("compressed-2:1", 0.0, 0.0));
    assert!(is_of("uncompressed", 0.0, 50.0) && !is_of("uncompressed", 50.0, 50.0));
    assert!(is_of("stock", 0.0, 0.0) && !is_of("stock", 50.0, 0.0));
    assert!(is_of("stock", 90.0, 90.0));
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
fn every_row_that_no_run_has_says_why() {
    let obstacle = |id| figures().iter().find(|row| row.id == id).unwrap().obstacle();
    assert_eq!(obstacle("A084"), None);
    assert_eq!(obstacle("A011"), None);
    assert_eq!(obstacle("B077"), Some("the value is garbled in its source"));
    assert_eq!(obstacle("A113"), Some("not a metric that a run has"));
}

#[test]
fn the_ratio_is_to_the_nearest_end_of_the_range() {
    let rows = parse(&format!("{HEAD}{}", ROW.replace("42000,", "40000,50000")), "f.csv").unwrap();
    let ratio = |measured| {
        let figure = Figure { measured: Some(measured), ..rows[0].figure().unwrap() };
        (figure.ratio().unwrap(), figure.is_in_tolerance().unwrap())
    };
    assert_eq!(ratio(45_000.0), (1.0, true));
    assert_eq!(ratio(36_000.0), (0.9, true));
    assert_eq!(ratio(60_000.0), (1.2, false));
    assert_eq!(rows[0].figure().unwrap().ratio(), None);
}

#[test]
fn each_metric_is_judged_by_its_own_tolerance() {
    let row = &parse(&format!("{HEAD}{}", ROW.replace("42000,", "100,100")), "f.csv").unwrap()[0];
    let judged = |metric: &str, measured| {
        let metric = metric.into();
        let figure = Figure { metric, measured: Some(measured), ..row.figure().unwrap() };
        figure.is_in_tolerance().unwrap()
    };
    for (metric, measured, expect) in [
        ("iops", 115.0, true),
        ("iops", 116.0, false),
        ("mb_s", 84.0, false),
        ("avg_latency_ms", 120.0, true),
        ("avg_latency_ms", 79.0, false),
        ("max_latency_ms", 200.0, true),
        ("stdev_latency_ms", 49.0, false),
    ] {
        assert_eq!(judged(metric, measured), expect, "{metric} {measured}");
    }
}
