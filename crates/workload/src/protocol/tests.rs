//! Tests of the protocol format: what is read, and what a mistake is told.

use super::*;

/// A protocol that is read, for tests to spoil.
pub(super) const GOOD: &str = r#"schema = 1
name = "x"
title = "X"
description = "d"
source = "s"

[[suites]]
name = "4k"
title = "4K"

[suites.precondition]
workload = "4k-rand-write"
threads = 16
queue_per_thread = 16
duration_s = 600
interval_s = 10
round_s = 60

[[suites.measure]]
workload = "4k-rand-read"
threads = [1, 2]
queue_per_thread = [4, 8, 16]
duration_s = 30
ramp_s = 5
interval_s = 10
"#;

/// Error for `good` with the first `from` replaced by `to`.
pub(super) fn told_of(good: &str, from: &str, to: &str) -> String {
    assert!(good.contains(from), "{from}");
    let spoilt = good.replacen(from, to, 1);
    Protocol::parse(&spoilt, "p.toml").expect_err("it is spoilt").to_string()
}

fn told(from: &str, to: &str) -> String {
    told_of(GOOD, from, to)
}

#[test]
fn points_run_over_threads_then_queues() {
    let protocol = Protocol::parse(GOOD, "p.toml").unwrap();
    let points: Vec<_> = protocol.suites[0].measure[0].points().collect();
    assert_eq!(points, [(1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (2, 16)]);
}

#[test]
fn the_duration_counts_every_point_with_its_ramp() {
    assert_eq!(Protocol::parse(GOOD, "p.toml").unwrap().duration_s(), 600 + 6 * 35);
}

#[test]
fn values_out_of_range_are_told_the_range() {
    let cases = [
        ("schema = 1", "schema = 0", "1: schema is 0, this program reads 1"),
        (
            "source = \"s\"",
            "source = \"s\"\ntime_lapse_max = 0",
            "6: time_lapse_max is 0, not at least 1, which is full scale",
        ),
        ("threads = 16", "threads = 257", "13: threads is 257, not from 1 to 256"),
        ("thread = 16", "thread = 0", "14: queue_per_thread is 0, not from 1 to 1024"),
        ("round_s = 60", "round_s = 65", "17: round_s is 65, not a multiple of interval_s, 10"),
        ("interval_s = 10", "interval_s = 0", "16: interval_s is 0, not from 1 to 31536000"),
        ("[1, 2]", "[]", "21: threads is empty: give at least one number from 1 to 256"),
        ("[4, 8, 16]", "[4, 2000]", "22: queue_per_thread.1 is 2000, not from 1 to 1024"),
        ("[4, 8, 16]", "[4, 4]", "19: `4k-rand-read` is measured twice at T1Q4"),
        (
            "duration_s = 30",
            "duration_s = 9",
            "23: duration_s is 9, not from 10 (one interval) to 31536000",
        ),
        (
            "duration_s = 600",
            "duration_s = 240",
            "15: duration_s is 240, not from 300 (5 rounds, the window of the steady-state rule) \
             to 31536000",
        ),
    ];
    for (from, to, expect) in cases {
        assert_eq!(told(from, to), format!("p.toml:{expect}"));
    }
}

#[test]
fn an_application_has_a_suite_of_its_own() {
    let error =
        told("[suites.precondition]", "application = \"pgbench-tpcb\"\n[suites.precondition]");
    let said = "p.toml:11: an application beside measure or rounds: give it a suite of its own";
    assert_eq!(error, said);
    let measured = GOOD.find("[[suites.measure]]").unwrap();
    let alone = GOOD[..measured]
        .replace("title = \"4K\"", "title = \"4K\"\napplication = \"pgbench-tpcb\"");
    let protocol = Protocol::parse(&alone, "p.toml").unwrap();
    assert_eq!(protocol.suites[0].application.as_deref(), Some("pgbench-tpcb"));
}

#[test]
fn a_suite_may_be_filled_and_measured_at_once() {
    let from = GOOD.find("[suites.precondition]").unwrap();
    let to = GOOD.find("[[suites.measure]]").unwrap();
    let text = GOOD.replacen(&GOOD[from..to], "fill = \"128k-seq-write\"\n", 1);
    let protocol = Protocol::parse(&text, "p.toml").unwrap();
    assert_eq!(protocol.suites[0].precondition, None);
    assert_eq!(protocol.duration_s(), 6 * 35);
    assert_eq!(protocol.check(&crate::catalogue::workloads()), Ok(()));
}

#[test]
fn published_figures_count_in_one_of_two_megabytes() {
    let with = |published: &str| {
        Protocol::parse(&GOOD.replacen("[[suites]]", &format!("{published}\n[[suites]]"), 1), "p")
    };
    let published = with("[published]\nphase = \"burst\"").unwrap().published.unwrap();
    assert_eq!((published.phase, published.mb_bytes), (PublishedPhase::Burst, 1_000_000));
    let error = with("[published]\nmb_bytes = 1024").unwrap_err();
    assert_eq!(error.text, "mb_bytes is 1024, neither 1000000 nor 1048576");
}

#[test]
fn two_suites_of_one_name_are_refused() {
    let (head, suite) = GOOD.split_once("[[suites]]").unwrap();
    let text = format!("{head}[[suites]]{suite}[[suites]]{suite}");
    let error = Protocol::parse(&text, "p.toml").unwrap_err();
    assert_eq!(error.to_string(), "p.toml:27: two suites are named `4k`");
}

#[test]
fn no_suites_are_refused() {
    let head = &GOOD[..GOOD.find("[[suites]]").unwrap()];
    let error = Protocol::parse(&format!("{head}suites = []\n"), "p.toml").unwrap_err();
    assert_eq!(error.to_string(), "p.toml:7: suites are empty: nothing to do");
}

const CURVE: &str = "[suites.curve]
percents = [50, 100, 120]
duration_s = 20
ramp_s = 5
interval_s = 10

[[suites.measure]]";

#[test]
fn a_curve_is_measured_after_every_load_with_gaps_at_random() {
    let text = GOOD.replacen("[[suites.measure]]", CURVE, 1);
    let protocol = Protocol::parse(&text, "p.toml").unwrap();
    let curve = protocol.suites[0].curve.as_ref().unwrap();
    assert_eq!(curve.gaps, Gaps::Exponential);
    assert_eq!(protocol.duration_s(), 600 + 6 * (35 + 3 * 25));
}

#[test]
fn a_curve_that_contradicts_itself_is_told_where() {
    let with = GOOD.replacen("[[suites.measure]]", CURVE, 1);
    let cases = [
        ("[50, 100, 120]", "[]", "20: percents are empty: nothing to do"),
        ("[50, 100", "[0, 100", "20: percents.0 is 0, not above 0 and up to 1000"),
        ("[50, 100", "[50, 50", "20: percents.1 is 50, not above the 50 before it"),
        ("duration_s = 20", "duration_s = 5", "21: duration_s is 5, not from 10 (one interval) to"),
    ];
    for (from, to, expect) in cases {
        let told = told_of(&with, from, to);
        assert!(told.starts_with(&format!("p.toml:{expect}")), "{told}");
    }
    let head = &with[..with.find("[[suites.measure]]").unwrap()];
    let text = head.replacen("title = \"4K\"", "title = \"4K\"\nmeasure = []", 1);
    let error = Protocol::parse(&text, "p.toml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "p.toml:20: a curve without anything in measure: there is no rate to take shares of"
    );
}

#[test]
fn a_replay_takes_the_rates_of_a_curve_and_has_no_speed_of_its_own_then() {
    let with = GOOD.replacen("[[suites.measure]]", CURVE, 1);
    let replaying = with.replacen(CURVE, &format!("{CURVE}\nreplay = {{}}"), 1);
    let protocol = Protocol::parse(&replaying, "p.toml").unwrap();
    assert!(protocol.suites[0].measure[0].replay.is_some());
    let error = Protocol::parse(&replaying.replace("{}", "{ speed = 2 }"), "p.toml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "p.toml:26: a speed in a suite with a curve: the curve has rates of its own, leave one out"
    );
    let error = Protocol::parse(&replaying.replace("{}", "{}\nrate_iops = 5"), "p.toml");
    assert!(error.unwrap_err().text.starts_with("a rate beside a replay"));
}

#[test]
fn an_unknown_workload_suggests_the_nearest() {
    let workloads = crate::catalogue::workloads();
    let mut protocol = Protocol::parse(GOOD, "p.toml").unwrap();
    assert_eq!(protocol.check(&workloads), Ok(()));
    protocol.suites[0].measure[0].workload = "4k-rand-raed".into();
    assert_eq!(
        protocol.check(&workloads).unwrap_err().to_string(),
        "protocol `x`: suite `4k`: there is no workload `4k-rand-raed`; did you mean \
         `4k-rand-read`?"
    );
}

#[test]
fn a_preconditioning_has_six_to_twelve_hours_on_a_real_drive_or_what_its_file_says() {
    let with = |real: &str| GOOD.replacen("round_s = 60", &format!("round_s = 60\n{real}"), 1);
    let bounds = |real: &str| {
        let protocol = Protocol::parse(&with(real), "p.toml").unwrap();
        let real = protocol.suites[0].precondition.as_ref().unwrap().real;
        real.map(|real| (real.duration_s_min, real.duration_s_max))
    };
    assert_eq!(bounds(""), None, "as long as duration_s");
    assert_eq!(bounds("real = {}"), Some((21_600, 43_200)));
    assert_eq!(bounds("real = { duration_s_min = 600 }"), Some((600, 43_200)));
    let told = |real: &str| Protocol::parse(&with(real), "p.toml").unwrap_err().to_string();
    let short = told("real = { duration_s_min = 60 }");
    assert!(short.contains("duration_s_min is 60, not whole rounds of 60 from 300 to"), "{short}");
    let odd = told("real = { duration_s_max = 43_230 }");
    assert!(odd.contains("duration_s_max is 43230, not whole rounds of 60"), "{odd}");
    let less = told("real = { duration_s_max = 600 }");
    assert!(less.contains("duration_s_max is 600, below duration_s_min, 21600"), "{less}");
}

#[test]
fn drives_with_one_load_each_are_of_an_application_and_within_their_ranges() {
    const NODES: &str = "\
schema = 1
name = \"x\"
title = \"X\"
description = \"d\"
source = \"s\"
[[suites]]
name = \"n\"
title = \"N\"
application = \"nosql-ycsb-a\"
nodes = { count = 4, clients = 8, intervals = 24, interval_s = 10 }
";
    let nodes = Protocol::parse(NODES, "p.toml").unwrap().suites[0].nodes.unwrap();
    assert!((nodes.duration_s() - 240.0).abs() < 1e-9);
    for (from, to, said) in [
        ("count = 4", "count = 0", "count is 0, not from 1 to 64"),
        ("clients = 8", "clients = 5000", "clients is 5000, not from 1 to 4096"),
        ("intervals = 24", "intervals = 1001", "intervals is 1001, not from 1 to 1000"),
        ("interval_s = 10", "interval_s = 0", "interval_s is 0, not above 0 and up to 3600"),
    ] {
        let error = told_of(NODES, from, to);
        assert!(error.contains(said), "{error}");
    }
    let alone = told(
        "title = \"4K\"",
        "title = \"4K\"\nnodes = { count = 4, clients = 8, intervals = 24, interval_s = 10 }",
    );
    assert!(alone.contains("nodes without an application"), "{alone}");
}
