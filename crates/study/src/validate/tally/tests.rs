//! Tallies and texts of rows that were compared.

use super::super::{FigureComparison, Verdict, number_text};
use super::*;

/// A row of `metric` with this ratio; none: it cannot be compared.
fn row(metric: &str, ratio: Option<f64>) -> Row {
    let verdict = match ratio {
        None => Verdict::NotExpressible { reason: "no protocol has this workload".into() },
        Some(ratio) => Verdict::In(FigureComparison {
            drive: "duo".into(),
            model: "duo stock linux".into(),
            protocol: "enterprise".into(),
            modelled: ratio * 100.0,
            ratio,
            from_listed_stalls: false,
            model_version: ssd::MODEL_VERSION,
        }),
    };
    Row {
        id: format!("{metric} {ratio:?}"),
        device: "a drive".into(),
        mode: "stock".into(),
        host: "any".into(),
        workload: "4k-rand-write".into(),
        threads: "16".into(),
        queue_per_thread: "16".into(),
        phase: "primary".into(),
        metric: metric.into(),
        value_low: Some(100.0),
        value_high: Some(100.0),
        verdict,
    }
}

#[test]
fn a_tally_counts_by_the_tolerance_of_each_metric() {
    let near = |metric: &str, ratio: f64| {
        let tally = Tally::of(&[row(metric, Some(ratio))]);
        tally.typical.near + tally.spread.near == 1
    };
    for (metric, error) in [("iops", 0.15), ("mb_s", 0.15), ("avg_latency_ms", 0.2)] {
        let within = near(metric, 1.001 - error) && near(metric, 0.999 + error);
        assert!(within, "{metric}");
        assert!(!near(metric, 0.999 - error) && !near(metric, 1.001 + error), "{metric}");
        assert!(is_typical(metric));
    }
    for metric in ["stdev_latency_ms", "max_latency_ms", "p99_latency_ms"] {
        assert!(near(metric, 0.5) && near(metric, 2.0), "{metric}");
        assert!(!near(metric, 0.49) && !near(metric, 2.01), "{metric}");
        assert!(!is_typical(metric));
    }
}

#[test]
fn an_upper_bound_that_is_kept_is_in_tolerance_and_in_no_median() {
    let kept = Row { value_low: Some(0.0), ..row("avg_latency_ms", Some(1.0)) };
    assert_eq!(kept.published_text(), "at most 100");
    let tally = Tally::of(&[kept, row("avg_latency_ms", Some(1.1))]).typical;
    assert_eq!((tally.rows, tally.near), (2, 2));
    assert!((tally.error_median.unwrap() - 0.1).abs() < 1e-9);
}

#[test]
fn rows_that_cannot_be_compared_are_in_no_tally() {
    let rows = [row("iops", None), row("max_latency_ms", None)];
    let tally = Tally::of(&rows);
    assert_eq!(tally, Tally::default());
    assert_eq!(tally.typical.near_percent(), None);
    assert_eq!(tally.typical.error_median, None);
}

#[test]
fn the_median_error_does_not_know_too_much_from_too_little() {
    let rows = [0.9, 1.1, 1.3].map(|ratio| row("iops", Some(ratio)));
    let Tally { typical, spread, from_listed_stalls } = Tally::of(&rows);
    assert_eq!((typical.rows, typical.near, spread.rows, from_listed_stalls.rows), (3, 2, 0, 0));
    assert!((typical.error_median.unwrap() - 0.1).abs() < 1e-9);
    assert!((typical.near_percent().unwrap() - 200.0 / 3.0).abs() < 1e-9);
}

#[test]
fn the_worst_rows_are_at_most_as_many_as_are_asked_for() {
    let rows = [1.1, 4.0, 0.1].map(|ratio| row("iops", Some(ratio)));
    let ids =
        |count| -> Vec<String> { worst(&rows, count).iter().map(|row| row.id.clone()).collect() };
    assert_eq!(ids(2), ["iops Some(0.1)", "iops Some(4.0)"]);
    assert_eq!(ids(9).len(), 3);
    assert!(ids(0).is_empty());
}

#[test]
fn a_published_value_is_written_as_a_number_or_a_range() {
    let text = |low, high| {
        let row = Row { value_low: low, value_high: high, ..row("iops", None) };
        row.published_text()
    };
    assert_eq!(text(Some(41_000.0), Some(42_000.0)), "41000 to 42000");
    assert_eq!(text(Some(42_644.4), Some(42_644.4)), "42644");
    assert_eq!(text(Some(0.5), None), "0.5");
    assert_eq!(text(None, None), "");
}

#[test]
fn a_load_is_written_as_far_as_it_is_published() {
    let text = |threads: &str, queue: &str| {
        let (threads, queue_per_thread) = (threads.into(), queue.into());
        Row { threads, queue_per_thread, ..row("iops", None) }.load_text()
    };
    assert_eq!([text("8", "32"), text("8", ""), text("", "32")], ["T8Q32", "T8", "Q32"]);
    assert_eq!(text("", ""), "");
}

#[test]
fn numbers_for_tables_have_three_decimals_at_most() {
    let shown = [0.12345, 2.5, 99.9994, 100.4, 42_644.0, 0.0].map(number_text);
    assert_eq!(shown, ["0.123", "2.5", "99.999", "100", "42644", "0"]);
}

#[test]
fn a_row_that_a_data_sheet_states_was_not_measured() {
    assert!(row("iops", None).is_measured());
    let stated = Row { phase: "datasheet".into(), ..row("iops", Some(9.0)) };
    assert!(!stated.is_measured());
    assert!(worst(&[stated], 5).is_empty());
    let odd = Row { phase: "some day".into(), ..row("iops", None) };
    assert!(!odd.is_measured(), "an unknown phase");
}
