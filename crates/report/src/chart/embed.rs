//! The data of a chart as JSON in the page, for the interactive chart and for CSV.

use serde_json::{Value, json};

use super::area::averaged;
use super::decimate::{Point, decimate};
use super::{Body, Chart, Series, Spacing};
use crate::number;

/// Points of a chart in all: two runs at the greatest resolution, more runs at less.
const POINTS_MAX: usize = 3200;
/// Points of one series at most.
const SERIES_POINTS_MAX: usize = 1600;

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
    })
}

/// All points: a curve has few, and x need not ascend.
fn whole(points: &[Point], _limit: usize) -> Vec<Point> {
    points.to_vec()
}

fn lines(series: &[Series], fewer: fn(&[Point], usize) -> Vec<Point>) -> Vec<Value> {
    let limit = (POINTS_MAX / series.len().max(1)).clamp(4, SERIES_POINTS_MAX);
    series
        .iter()
        .map(|series| {
            let points = fewer(&series.points, limit);
            let column = |of: fn(&Point) -> f64, places: i32| -> Vec<Value> {
                points.iter().map(|point| digits(of(point), places)).collect()
            };
            json!({
                "name": series.name,
                "tone": series.look.tone,
                "dash": series.look.dash,
                "x": column(|point| point.0, 6),
                "y": column(|point| point.1, 4),
                "labels": series.labels,
            })
        })
        .collect()
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
