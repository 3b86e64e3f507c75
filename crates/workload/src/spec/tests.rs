//! Tests of the workload format: what is read, and what a mistake is told.

use super::*;

const GOOD: &str = r#"schema = 1
name = "x"
title = "X"
description = """
Two
lines.
"""
source = "estimated: made up"
read_percent = 70
access = { kind = "zipf", theta = 1.1 }
sizes = [
    { bytes = 512, percent = 40 },
    { bytes = 4096, percent = 60 },
]
"#;

/// Error for the file with `from` replaced by `to`.
fn told(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from));
    Workload::parse(&GOOD.replace(from, to), "workloads/x.toml").unwrap_err().to_string()
}

#[test]
fn a_workload_is_read_with_its_defaults() {
    let workload = Workload::parse(GOOD, "workloads/x.toml").unwrap();
    assert_eq!(workload.description, "Two lines.");
    assert_eq!(workload.alignment_bytes(), 512);
    assert!((workload.footprint_percent - 100.0).abs() < f64::EPSILON);
    assert_eq!(workload.access, Access::Zipf { theta: 1.1 });
}

#[test]
fn a_sum_of_99_names_the_sum_and_the_line() {
    assert_eq!(
        told("percent = 60", "percent = 59"),
        "workloads/x.toml:11: sizes sum to 99 percent, not 100"
    );
    assert_eq!(
        told("percent = 40 },\n    { bytes = 4096, percent = 60", "percent = 33.3"),
        "workloads/x.toml:11: sizes sum to 33.3 percent, not 100"
    );
}

#[test]
fn a_size_that_is_no_multiple_of_a_sector_names_its_own_line() {
    assert_eq!(
        told("4096", "4000"),
        "workloads/x.toml:13: bytes is 4000, not a multiple of 512 (a whole sector) above 0"
    );
}

#[test]
fn values_out_of_range_are_told_the_range() {
    let cases = [
        ("schema = 1", "schema = 2", "1: schema is 2, this program reads 1"),
        ("= 70", "= 170", "9: read_percent is 170, not from 0 to 100"),
        ("= 70", "= nan", "9: read_percent is NaN, not from 0 to 100"),
        ("theta = 1.1", "theta = 10", "10: theta is 10, not above 0 and below 10"),
        ("percent = 60", "percent = 0", "13: percent is 0, not above 0 and up to 100"),
        ("bytes = 4096", "bytes = 512", "13: size of 512 bytes is given twice; add its shares up"),
        (
            "read_percent",
            "footprint_percent = 0\nread_percent",
            "9: footprint_percent is 0, not above 0 and up to 100",
        ),
        (
            "read_percent",
            "random_map = true\nread_percent",
            "9: random_map is true, which only random access of one transfer size can have",
        ),
        (
            "read_percent",
            "shared_start = true\nread_percent",
            "9: shared_start is true, which only sequential access can have",
        ),
        (
            "read_percent",
            "align_bytes = 100\nread_percent",
            "9: align_bytes is 100, not a multiple of 512 (a whole sector)",
        ),
        (
            "{ kind = \"zipf\", theta = 1.1 }",
            "{ kind = \"hot-cold\", hot_request_percent = 90, hot_space_percent = 100 }",
            "10: hot_space_percent is 100, not above 0 and below 100",
        ),
    ];
    for (from, to, expect) in cases {
        assert_eq!(told(from, to), format!("workloads/x.toml:{expect}"));
    }
}

#[test]
fn an_unknown_key_is_shown_with_its_line() {
    let text = told("read_percent", "reed_percent");
    assert!(text.starts_with("workloads/x.toml:9: unknown field `reed_percent`"), "{text}");
    assert!(text.contains("9 | reed_percent = 70"), "{text}");
}

#[test]
fn a_unit_in_a_number_is_shown_with_its_line() {
    let text = told("bytes = 4096", "bytes = \"4k\"");
    assert!(text.starts_with("workloads/x.toml:13: invalid type: string \"4k\""), "{text}");
    assert!(text.contains("^^^^"), "{text}");
}

#[test]
fn no_sizes_at_all_are_refused() {
    let start = GOOD.find("sizes").unwrap();
    let text = format!("{}sizes = []\n", &GOOD[..start]);
    let error = Workload::parse(&text, "x.toml").unwrap_err();
    assert_eq!(error.to_string(), "x.toml:11: sizes are empty: give at least one");
}
