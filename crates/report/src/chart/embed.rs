//! The data of a chart as JSON in the page, for the interactive chart and for CSV.

use results::heat::{Heat, HeatColumn};
use serde_json::{Value, json};

use super::area::{COLUMNS_MAX, averaged};
use super::bands;
use super::decimate::{Point, decimate};
use super::heat::{SHADES, seconds_of};
use super::{Body, Chart, Series, Spacing};
use crate::number;

/// Points of a chart in all: a run alone at the greatest resolution, more runs at less.
const POINTS_MAX: usize = 2400;
/// Points of one series at most.
const SERIES_POINTS_MAX: usize = 1200;

/// The element that carries the data.
pub(super) fn script(chart: &Chart) -> String {
    // Only strings hold a `<`, and only there could it end the element or begin a comment.
    let text = value(chart).to_string().replace('<', "\\u003c");
    format!("<script type=\"application/json\">{text}</script>")
}

fn value(chart: &Chart) -> Value {
    let slots: Vec<Value> =
        chart.x.slots.iter().map(|slot| json!([slot.threads, slot.queue_per_thread])).collect();
    let (kind, series, windows) = match &chart.body {
        Body::Lines(series, windows) => ("lines", lines(series, decimate), windows.as_slice()),
        Body::Bands(series, windows) => ("bands", lines(series, highest), windows.as_slice()),
        Body::Curve(series) => ("curve", lines(series, whole), [].as_slice()),
        // Layers need the same x throughout, which averages keep and extremes do not.
        Body::Area(series) => ("area", lines(series, layers), [].as_slice()),
        Body::Bars(_) => ("bars", bars(chart), [].as_slice()),
        Body::Heat(heat) => ("heat", vec![cells(chart, heat)], [].as_slice()),
    };
    let windows: Vec<Value> = windows
        .iter()
        .map(|it| json!([it.tone, digits(it.from, 6), digits(it.to, 6), it.achieved]))
        .collect();
    json!({
        "kind": kind,
        "title": chart.title,
        "source": source(chart),
        "ends": chart.name_of_ends(),
        "x": axis(&chart.x),
        "y": axis(&chart.y),
        "slots": slots,
        "series": series,
        "windows": windows,
    })
}

/// The runs that the chart is of; the intervals stand once in the section.
fn source(chart: &Chart) -> String {
    let runs = chart.provenance.iter();
    let runs: Vec<&str> =
        runs.map(|line| line.split(", interval").next().unwrap_or_default()).collect();
    runs.join("; ")
}

fn axis(axis: &super::Axis) -> Value {
    let spacing = match axis.spacing {
        Spacing::Linear => "linear",
        Spacing::Log => "log",
        Spacing::Doublings => "doublings",
        Spacing::Nines => "nines",
    };
    let mut value = json!({
        "label": axis.label,
        "unit": axis.unit.symbol(),
        "spacing": spacing,
    });
    if axis.switchable {
        value["switchable"] = true.into();
    }
    if let Some((low, high)) = axis.domain {
        value["domain"] = json!([digits(low, 4), digits(high, 4)]);
    }
    value
}

/// All points: a curve has few, and x need not ascend.
fn whole(points: &[Point], _limit: usize) -> Vec<Point> {
    points.to_vec()
}

/// As many as the static chart has, each the highest of its neighbours.
fn highest(points: &[Point], limit: usize) -> Vec<Point> {
    bands::highest(points, limit.min(bands::POINTS_MAX))
}

/// As many as the static chart has: a layer is an average anyhow.
fn layers(points: &[Point], limit: usize) -> Vec<Point> {
    averaged(points, limit.min(COLUMNS_MAX))
}

fn lines(series: &[Series], fewer: fn(&[Point], usize) -> Vec<Point>) -> Vec<Value> {
    let limit = (POINTS_MAX / series.len().max(1)).clamp(4, SERIES_POINTS_MAX);
    let mut first: Vec<Value> = Vec::new();
    series
        .iter()
        .map(|series| {
            let points = fewer(&series.points, limit);
            let x: Vec<Value> = points.iter().map(|point| digits(point.0, 6)).collect();
            let y = points.iter().map(|point| digits(shortened(point.1), 4));
            let mut value = json!({
                "name": series.name,
                "tone": series.look.tone,
                "dash": series.look.dash,
                "y": y.collect::<Vec<_>>(),
            });
            if !series.labels.is_empty() {
                value["labels"] = Value::from(series.labels.clone());
            }
            // Samples of all runs are mostly at the same times: those are written once.
            if first.is_empty() || x != first {
                value["x"] = Value::from(x.clone());
            }
            if first.is_empty() {
                first = x;
            }
            value
        })
        .collect()
}

/// A heat map: ends of its columns, upper edges of its rows, and for each column its first filled
/// row and the shares from there on, in hundred-thousandths; a negative number says how often the
/// share before it comes again.
fn cells(chart: &Chart, heat: &Heat) -> Value {
    let seconds = seconds_of(chart.x.unit);
    let column = |column: &HeatColumn| -> Vec<Value> {
        let filled = |share: &f64| *share >= SHADES[0].0;
        let first = column.shares.iter().position(filled).unwrap_or(0);
        let last = column.shares.iter().rposition(filled).map_or(first, |last| last + 1);
        let shares = column.shares[first..last].iter().map(|share| digits(*share * 1e5, 2));
        std::iter::once(json!(first)).chain(packed(shares)).collect()
    };
    let ends = heat.columns.iter().map(|column| digits(column.to_s / seconds, 5));
    let edges = heat.edges_ns.iter().skip(1).map(|edge| digits(edge / 1e6, 3));
    json!({
        "name": "share of requests",
        "x": ends.collect::<Vec<_>>(),
        "y": edges.collect::<Vec<_>>(),
        "cells": heat.columns.iter().map(column).collect::<Vec<_>>(),
    })
}

/// `values`, none of which is negative, with the number of repeats in place of each but the first
/// of equal neighbours.
fn packed(values: impl Iterator<Item = Value>) -> Vec<Value> {
    let values: Vec<Value> = values.collect();
    let runs = values.chunk_by(|a, b| a == b);
    runs.flat_map(|run| {
        let repeats = i64::try_from(run.len() - 1).unwrap_or(i64::MAX);
        std::iter::once(run[0].clone()).chain((repeats > 0).then(|| Value::from(-repeats)))
    })
    .collect()
}

/// Bars as one series a name, over the labels of the groups.
fn bars(chart: &Chart) -> Vec<Value> {
    let Body::Bars(groups) = &chart.body else { return Vec::new() };
    let of = |name: &str| {
        let named = |group: &super::Bars| {
            let bar = group.bars.iter().find(|bar| bar.name == name)?;
            Some((group.label.clone(), digits(bar.value, 4)))
        };
        let (labels, values): (Vec<_>, Vec<_>) = groups.iter().filter_map(named).unzip();
        json!({ "name": name, "labels": labels, "y": values })
    };
    chart.names().into_iter().map(|(name, _)| of(name)).collect()
}

/// Four digits of `value` that round to the three that the static chart shows: 1.234 for 1.2349,
/// which would be 1.235, and then 1.24.
fn shortened(value: f64) -> f64 {
    let rounded = number::round(value, 4);
    let is_same = number::round(rounded, 3).total_cmp(&number::round(value, 3)).is_eq();
    if is_same { rounded } else { rounded - 10_f64.powi(number::order(value) - 3) }
}

/// `value` to that many significant digits; whole numbers are written without a point.
#[expect(clippy::cast_possible_truncation, reason = "within 2⁵³, checked")]
fn digits(value: f64, places: i32) -> Value {
    let rounded = number::round(value, places);
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 {
        Value::from(rounded as i64)
    } else {
        Value::from(rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_the_static_chart_shows() {
        let of = |value: f64| digits(shortened(value), 4);
        assert_eq!([42_644.37, 9.0, 1.0].map(of), [42_640, 9, 1].map(Value::from));
        assert_eq!(of(1.234_46), Value::from(1.234));
        assert_eq!([1.234_96, 123.496].map(of), [1.234, 123.4].map(Value::from), "not 1.24");
        assert_eq!(of(1.235), Value::from(1.235));
    }

    #[test]
    fn equal_neighbours_are_written_once_with_their_repeats() {
        let values = [7, 0, 0, 0, 5, 5, 0].map(Value::from);
        assert_eq!(packed(values.into_iter()), [7, 0, -2, 5, -1, 0].map(Value::from));
        assert_eq!(packed([].into_iter()), Vec::<Value>::new());
    }
}
