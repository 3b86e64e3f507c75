//! The data of a chart as JSON in the page, for the interactive chart and for CSV.

use results::heat::{Heat, HeatColumn};
use serde_json::{Value, json};

use super::area::averaged;
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
        Body::Curve(series) => ("curve", lines(series, whole), [].as_slice()),
        // Layers need the same x throughout, which averages keep and extremes do not.
        Body::Area(series) => ("area", lines(series, averaged), [].as_slice()),
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
        "x": axis(&chart.x),
        "y": axis(&chart.y),
        "slots": slots,
        "series": series,
        "windows": windows,
    })
}

fn axis(axis: &super::Axis) -> Value {
    let spacing = match axis.spacing {
        Spacing::Linear => "linear",
        Spacing::Log => "log",
        Spacing::Nines => "nines",
    };
    json!({
        "label": axis.label,
        "unit": axis.unit.symbol(),
        "spacing": spacing,
        "switchable": axis.switchable,
        "domain": axis.domain.map(|(low, high)| [digits(low, 4), digits(high, 4)]),
    })
}

/// All points: a curve has few, and x need not ascend.
fn whole(points: &[Point], _limit: usize) -> Vec<Point> {
    points.to_vec()
}

fn lines(series: &[Series], fewer: fn(&[Point], usize) -> Vec<Point>) -> Vec<Value> {
    let limit = (POINTS_MAX / series.len().max(1)).clamp(4, SERIES_POINTS_MAX);
    let mut first: Vec<Value> = Vec::new();
    series
        .iter()
        .map(|series| {
            let points = fewer(&series.points, limit);
            let column = |of: fn(&Point) -> f64, places: i32| -> Vec<Value> {
                points.iter().map(|point| digits(of(point), places)).collect()
            };
            let x = column(|point| point.0, 6);
            let mut value = json!({
                "name": series.name,
                "tone": series.look.tone,
                "dash": series.look.dash,
                "y": column(|point| point.1, 4),
                "labels": series.labels,
            });
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
/// row and the shares from there on, in hundred-thousandths.
fn cells(chart: &Chart, heat: &Heat) -> Value {
    let seconds = seconds_of(chart.x.unit);
    let column = |column: &HeatColumn| -> Vec<Value> {
        let filled = |share: &f64| *share >= SHADES[0].0;
        let first = column.shares.iter().position(filled).unwrap_or(0);
        let last = column.shares.iter().rposition(filled).map_or(first, |last| last + 1);
        let shares = column.shares[first..last].iter().map(|share| digits(*share * 1e5, 2));
        std::iter::once(json!(first)).chain(shares).collect()
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

/// Bars as one series a name, over the labels of the groups.
fn bars(chart: &Chart) -> Vec<Value> {
    let Body::Bars(groups) = &chart.body else { return Vec::new() };
    let of = |name: &str| {
        let named = |group: &super::Group| {
            let bar = group.bars.iter().find(|bar| bar.name == name)?;
            Some((group.label.clone(), digits(bar.value, 4)))
        };
        let (labels, values): (Vec<_>, Vec<_>) = groups.iter().filter_map(named).unzip();
        json!({ "name": name, "labels": labels, "y": values })
    };
    chart.names().into_iter().map(|(name, _)| of(name)).collect()
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
