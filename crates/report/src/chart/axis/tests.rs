//! Axes: units, captions, and the scales that data get.

use super::*;

#[test]
fn numbers_carry_the_symbol_of_their_unit() {
    let said = |unit: Unit, value| unit.say(value);
    assert_eq!(said(Unit::Iops, 42_644.0), "42.6K IOPS");
    assert_eq!(said(Unit::Millis, 0.0422), "0.0422 ms");
    assert_eq!(said(Unit::Share, 0.257), "25.7 %");
    assert_eq!(said(Unit::Times, 4.1), "4.1 ×");
    assert_eq!(said(Unit::Plain, 16.0), "16", "no blank where there is no symbol");
}

#[test]
fn percentiles_keep_their_nines() {
    let shown = [0.5, 0.99, 0.999, 0.99999].map(|share| Unit::Percentile.show(share));
    assert_eq!(shown, ["50", "99", "99.9", "99.999"]);
}

#[test]
fn a_span_is_told_in_the_unit_that_it_reads_best_in() {
    let unit = |secs| Unit::of_span(secs);
    assert_eq!(unit(299.0), (Unit::Seconds, 1.0));
    assert_eq!(unit(300.0), (Unit::Minutes, 60.0));
    assert_eq!(unit(7199.0), (Unit::Minutes, 60.0));
    assert_eq!(unit(7200.0), (Unit::Hours, 3600.0));
}

#[test]
fn a_load_is_named_as_the_reviews_do() {
    let slot = Slot { threads: 8, queue_per_thread: 32 };
    assert_eq!((slot.name().as_str(), slot.outstanding()), ("T8Q32", 256));
    // More than fits into sixteen bits.
    let most = Slot { threads: u16::MAX, queue_per_thread: u16::MAX };
    assert_eq!(most.outstanding(), 65_535 * 65_535);
}

#[test]
fn a_caption_says_what_would_mislead() {
    assert_eq!(Axis::linear("Latency", Unit::Millis).caption(), "ms");
    let log = Axis::log("Latency", Unit::Millis);
    assert_eq!(log.caption(), "ms, <span class=\"spacing\">log scale</span>");
    let cut = Axis { domain: Some((10.0, 20.0)), ..Axis::linear("Latency", Unit::Millis) };
    assert_eq!(cut.caption(), "ms, <span class=\"spacing\">not from zero</span>");
    let from_zero = Axis { domain: Some((0.0, 20.0)), ..Axis::linear("Latency", Unit::Millis) };
    assert_eq!(from_zero.caption(), "ms");
    assert_eq!(
        Axis { domain: Some((1.0, 2.0)), ..Axis::linear("x", Unit::Plain) }.caption(),
        "not from zero"
    );
}

#[test]
fn a_linear_axis_begins_at_zero_unless_it_says_otherwise() {
    let axis = Axis::linear("Throughput", Unit::Iops);
    let scale = axis.scale([90.0, 100.0].into_iter());
    assert!(scale.at(0.0).abs() < 1e-9 && scale.at(100.0) <= 1.0);
    assert!(scale.at(50.0) > 0.3, "the lower half is there");
    let cut = Axis { domain: Some((90.0, 100.0)), ..axis };
    let scale = cut.scale([90.0, 100.0].into_iter());
    assert!(scale.at(90.0).abs() < 1e-9 && (scale.at(95.0) - 0.5).abs() < 1e-9);
}

#[test]
fn what_no_axis_can_show_does_not_stretch_it() {
    let axis = Axis::log("Latency", Unit::Millis);
    let sound = axis.scale([1.0, 10.0].into_iter()).ticks();
    let values = [1.0, f64::NAN, f64::INFINITY, 0.0, -5.0, 10.0];
    assert_eq!(axis.scale(values.into_iter()).ticks(), sound);
    assert!(!axis.scale([].into_iter()).ticks().is_empty(), "nothing to show is still an axis");
    assert!(!axis.scale([f64::NAN].into_iter()).ticks().is_empty());
}

#[test]
fn an_axis_of_loads_has_half_a_place_on_both_sides() {
    let slots = vec![Slot { threads: 2, queue_per_thread: 2 }; 4];
    let scale = Axis::loads(slots).scale([0.0, 3.0].into_iter());
    let places = [0.0, 1.0, 2.0, 3.0].map(|at| format!("{:.3}", scale.at(at)));
    assert_eq!(places, ["0.125", "0.375", "0.625", "0.875"]);
}

#[test]
fn each_doubling_of_a_queue_is_as_far_as_the_next() {
    let scale = Axis::depths("Queue").scale([1.0, 64.0].into_iter());
    assert_eq!(scale.ticks(), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    let step = scale.at(2.0) - scale.at(1.0);
    assert!((scale.at(64.0) - scale.at(32.0) - step).abs() < 1e-9);
    let one = Axis::depths("Queue").scale([8.0].into_iter());
    assert_eq!(one.ticks(), [8.0, 16.0], "one depth is still an axis");
}

#[test]
fn each_nine_is_as_far_as_the_next() {
    let axis = Axis { domain: Some((0.0, 0.9999)), ..Axis::nines("share of requests") };
    let scale = axis.scale([].into_iter());
    let [one, two, three] = [0.9, 0.99, 0.999].map(|share| scale.at(share));
    assert!((two - one - (three - two)).abs() < 1e-9);
}

#[test]
fn time_begins_at_zero_and_ends_with_the_data() {
    let scale = Axis::linear("protocol time", Unit::Hours).scale([0.5, 5.9].into_iter());
    assert!(scale.at(0.0).abs() < 1e-9 && (scale.at(5.9) - 1.0).abs() < 1e-9);
}
