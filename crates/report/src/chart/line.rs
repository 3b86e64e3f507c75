//! Lines over time, over loads and over percentiles, and curves of one metric over another.

use std::fmt::Write as _;

use super::decimate::{Point, decimate};
use super::frame::{self, Frame, place};
use super::{Chart, Look, Series, Window};
use crate::text::Text;

/// Points that static SVG draws at most, of all lines together.
const POINTS_MAX: usize = 1400;
/// Points of one line: more than columns of pixels shown, and enough for the extremes of each
/// second one.
const LINE_POINTS: std::ops::RangeInclusive<usize> = 220..=700;
/// Lines with so few points show each as a dot.
const DOTS_MAX: usize = 24;
/// More bands than these lie upon each other.
const BANDS_MAX: usize = 2;
/// Distance between labels at the ends of lines, as high as the text is on a phone.
const LABEL_GAP: f64 = 17.0;
/// Distance between them in a small chart, whose text is larger for its size.
const LABEL_GAP_PANEL: f64 = 20.0;
/// Distance of the first of them from the top: the name of the numbers stands above it.
const LABEL_TOP: f64 = 9.0;
/// Distance of the last of them from the axis: its ticks stand below.
const LABEL_BOTTOM: f64 = 6.0;
/// Width of the bars at the ends of an interval.
const ERROR_WIDTH: f64 = 8.0;
/// Width of a label at the end of a curve, such as `120 %`.
const LABEL_WIDTH: f64 = 36.0;

/// Lines, the windows marked above them, and the last value of each at its end.
pub(super) fn svg(chart: &Chart, series: &[Series], windows: &[Window]) -> String {
    let frame = framed(chart, series);
    let mut inner = frame.axes(chart);
    inner.push_str(&self::windows(&frame, windows));
    let each = POINTS_MAX / series.len().max(1);
    let limit = each.clamp(*LINE_POINTS.start(), *LINE_POINTS.end());
    let drawn: Vec<(&Series, Vec<Point>)> = series
        .iter()
        .filter(|series| !series.points.is_empty())
        .map(|series| (series, decimate(&series.points, limit)))
        .collect();
    for (series, points) in &drawn {
        inner.push_str(&path(&frame, series, points, ""));
        inner.push_str(&errors(&frame, series));
        if points.len() <= DOTS_MAX || series.look.dash == Look::MARKS {
            inner.push_str(&dots(&frame, chart, series));
        }
    }
    inner.push_str(&end_labels(&frame, chart, &drawn));
    frame::wrap(chart, frame::height(chart), &inner)
}

/// The marks of `windows`: a bar on top for each, and a faint band where they are few.
pub(super) fn windows(frame: &Frame, windows: &[Window]) -> String {
    let mut svg = String::new();
    for (row, window) in windows.iter().enumerate() {
        svg.push_str(&bar(frame, row, window));
        if windows.len() <= BANDS_MAX {
            svg.push_str(&band(frame, window));
        }
    }
    svg
}

/// Points of one load each, joined in the order of their load; the ends say which load.
pub(super) fn curve_svg(chart: &Chart, series: &[Series]) -> String {
    let frame = framed(chart, series);
    let mut inner = frame.axes(chart);
    let mut labelled = Vec::new();
    for (index, series) in series.iter().enumerate() {
        inner.push_str(&path(&frame, series, &series.points, ""));
        inner.push_str(&dots(&frame, chart, series));
        inner.push_str(&curve_ends(&frame, series, index % 2 == 0, &mut labelled));
    }
    frame::wrap(chart, frame::height(chart), &inner)
}

/// The loads at the ends of a curve: the lightest above or below its dot, the heaviest beside it;
/// none where it would lie upon one of `labelled`, the places of those before.
fn curve_ends(frame: &Frame, series: &Series, above: bool, labelled: &mut Vec<Point>) -> String {
    let lightest_dy = if above { -8.0 } else { 17.0 };
    let ends = [series.points.first(), series.points.last()];
    let labels = [series.labels.first(), series.labels.last()];
    let mut svg = String::new();
    for (index, (point, label)) in ends.into_iter().zip(labels).enumerate() {
        let (Some(point), Some(label)) = (point, label) else { continue };
        let (dx, dy, anchor) = match index {
            // On the left the ticks have their labels.
            0 if frame.x.at(point.0) - LABEL_WIDTH / 2.0 < frame.left => {
                (8.0, lightest_dy, "start")
            }
            0 => (0.0, lightest_dy, "middle"),
            _ => (8.0, 4.0, "start"),
        };
        let (x, y) = (place(frame.x.at(point.0) + dx), place(frame.y.at(point.1) + dy));
        let is_near = |(other_x, other_y): &Point| {
            (other_x - x).abs() < LABEL_WIDTH && (other_y - y).abs() < LABEL_GAP
        };
        if labelled.iter().any(is_near) {
            continue;
        }
        labelled.push((x, y));
        let _ = write!(
            svg,
            "<text class=\"end {}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
            series.look.class(),
            Text(label),
        );
    }
    svg
}

fn framed(chart: &Chart, series: &[Series]) -> Frame {
    let points = series.iter().flat_map(|series| &series.points);
    let x = chart.x.scale(points.clone().map(|point| point.0));
    let ends = series.iter().flat_map(|series| &series.errors).flat_map(|it| [it.1, it.2]);
    let y = chart.y.scale(points.map(|point| point.1).chain(ends));
    Frame::new(chart, x, y)
}

/// The line through `points`, of a class besides its own: empty, or one that begins with a space.
pub(super) fn path(frame: &Frame, series: &Series, points: &[Point], class: &str) -> String {
    let mut d = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(d, "{command}{} {}", place(frame.x.at(*x)), place(frame.y.at(*y)));
    }
    format!("<path class=\"line {}{class}\" d=\"{d}\"/>", series.look.class())
}

/// The intervals of the points, as upright strokes with a bar at each end.
fn errors(frame: &Frame, series: &Series) -> String {
    let mut d = String::new();
    for (x, low, high) in &series.errors {
        let (x, low, high) = (place(frame.x.at(*x)), frame.y.at(*low), frame.y.at(*high));
        let (low, high) = (place(low), place(high));
        let left = x - ERROR_WIDTH / 2.0;
        let _ =
            write!(d, "M{x} {low}V{high}M{left} {low}h{ERROR_WIDTH}M{left} {high}h{ERROR_WIDTH}");
    }
    if d.is_empty() {
        d
    } else {
        format!("<path class=\"line error {}\" d=\"{d}\"/>", series.look.class())
    }
}

/// Every point as a dot that says its values on hovering.
fn dots(frame: &Frame, chart: &Chart, series: &Series) -> String {
    let mut svg = String::new();
    for (index, (x, y)) in series.points.iter().enumerate() {
        let at = match (series.labels.get(index), slot_name(chart, *x)) {
            (Some(label), _) => format!("{label}, {}", chart.x.unit.say(*x)),
            (None, Some(name)) => name,
            (None, None) => chart.x.unit.say(*x),
        };
        let _ = write!(
            svg,
            "<circle class=\"dot {}\" cx=\"{}\" cy=\"{}\" r=\"3\"><title>{}, {}: {}</title>\
             </circle>",
            series.look.class(),
            place(frame.x.at(*x)),
            place(frame.y.at(*y)),
            Text(&series.name),
            Text(&at),
            chart.y.unit.say(*y),
        );
    }
    svg
}

pub(super) fn slot_name(chart: &Chart, x: f64) -> Option<String> {
    let slots = chart.x.slots.iter().enumerate();
    slots
        .map(|(index, slot)| (index as f64, slot))
        .find(|(at, _)| (at - x).abs() < 0.5)
        .map(|(_, slot)| slot.name())
}

/// A bar on top of the plot over a window; windows lie one below the other.
fn bar(frame: &Frame, row: usize, window: &Window) -> String {
    let (from, to) = (frame.x.at(window.from), frame.x.at(window.to));
    format!(
        "<rect class=\"bar {} t{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"3\"/>",
        if window.achieved { "reached" } else { "missed" },
        window.tone,
        place(from),
        place(frame.top + row as f64 * 5.0),
        place(to - from),
    )
}

/// A faint band over the height of the plot, for a window that met its rule.
fn band(frame: &Frame, window: &Window) -> String {
    if !window.achieved {
        return String::new();
    }
    let (from, to) = (frame.x.at(window.from), frame.x.at(window.to));
    format!(
        "<rect class=\"band t{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
        window.tone,
        place(from),
        frame.top,
        place(to - from),
        place(frame.bottom - frame.top),
    )
}

/// The number of every line that the chart names, apart from each other, and above them what they
/// are.
pub(super) fn end_labels(frame: &Frame, chart: &Chart, drawn: &[(&Series, Vec<Point>)]) -> String {
    let mut labels: Vec<(f64, &Series, f64)> = drawn
        .iter()
        .filter_map(|(series, _)| {
            let value = chart.ends.of(&series.points)?;
            Some((frame.y.at(value), *series, value))
        })
        .collect();
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gap = if chart.is_panel() { LABEL_GAP_PANEL } else { LABEL_GAP };
    let mut free_from = frame.top + LABEL_TOP;
    for (y, ..) in &mut labels {
        *y = y.max(free_from);
        free_from = *y + gap;
    }
    let mut free_to = frame.bottom - LABEL_BOTTOM;
    for (y, ..) in labels.iter_mut().rev() {
        *y = y.min(free_to);
        free_to = *y - gap;
    }
    let mut svg = frame.name_of_ends(chart);
    for (y, series, value) in labels {
        let _ = write!(
            svg,
            "<text class=\"end {}\" x=\"{}\" y=\"{}\" dy=\".32em\">{}</text>",
            series.look.class(),
            frame.right + 6.0,
            place(y),
            chart.y.unit.show(value),
        );
    }
    svg
}

#[cfg(test)]
mod tests;
