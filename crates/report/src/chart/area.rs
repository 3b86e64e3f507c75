//! Series stacked upon each other.

use std::fmt::Write as _;

use super::decimate::Point;
use super::frame::{self, Frame, place};
use super::{Chart, Series};

/// Columns of a stacked area at most; a column is the average of its points.
pub(super) const COLUMNS_MAX: usize = 240;

/// The series of `chart`, the first at the bottom.
pub(super) fn svg(chart: &Chart, series: &[Series]) -> String {
    let mut floor: Vec<Point> = Vec::new();
    let mut layers: Vec<(&Series, Vec<Point>, Vec<Point>)> = Vec::new();
    for series in series {
        let points = averaged(&series.points, COLUMNS_MAX);
        if floor.is_empty() {
            floor = points.iter().map(|point| (point.0, 0.0)).collect();
        }
        let top: Vec<Point> =
            floor.iter().zip(&points).map(|(below, point)| (point.0, below.1 + point.1)).collect();
        layers.push((series, floor, top.clone()));
        floor = top;
    }
    let x = chart.x.scale(floor.iter().map(|point| point.0));
    let y = chart.y.scale(floor.iter().map(|point| point.1));
    let frame = Frame::new(chart, x, y);
    let mut inner = String::new();
    for (series, below, above) in &layers {
        let mut d = String::new();
        for (index, (x, y)) in above.iter().chain(below.iter().rev()).enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(d, "{command}{} {}", place(frame.x.at(*x)), place(frame.y.at(*y)));
        }
        let _ = write!(inner, "<path class=\"fill {}\" d=\"{d}Z\"/>", series.look.class());
    }
    inner.push_str(&frame.axes(chart));
    if let Some(total) = chart.ends.of(&floor) {
        let _ = write!(
            inner,
            "{}<text class=\"end total\" x=\"{}\" y=\"{}\" dy=\".32em\">{}</text>",
            frame.name_of_ends(chart),
            frame.right + 6.0,
            place(frame.y.at(total)),
            chart.y.unit.show(total),
        );
    }
    frame::wrap(chart, frame::height(chart), &inner)
}

/// At most `limit` points, each the average of as many neighbours.
pub(super) fn averaged(points: &[Point], limit: usize) -> Vec<Point> {
    let width = points.len().div_ceil(limit).max(1);
    points
        .chunks(width)
        .map(|chunk| {
            let count = chunk.len() as f64;
            let last = chunk.last().map_or(0.0, |point| point.0);
            (last, chunk.iter().map(|point| point.1).sum::<f64>() / count)
        })
        .collect()
}
