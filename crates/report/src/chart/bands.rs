//! Percentiles of latency over time: the median as a line, and the space up to the 99th and the
//! 99.9th percentile filled, so that a thousand intervals are one shape.

use std::fmt::Write as _;

use super::decimate::Point;
use super::frame::{self, Frame, place};
use super::{Chart, Series, Window, line};

/// Points of one line at most; a point stands for the highest of as many neighbours.
pub(super) const POINTS_MAX: usize = 480;
/// Lines of a run: median, 99th and 99.9th percentile.
pub(super) const LINES: usize = 3;

/// The runs of `chart`, of which each has [`LINES`] series one after the other.
pub(super) fn svg(chart: &Chart, series: &[Series], windows: &[Window]) -> String {
    let points = series.iter().flat_map(|series| &series.points);
    let x = chart.x.scale(points.clone().map(|point| point.0));
    let y = chart.y.scale(points.map(|point| point.1));
    let frame = Frame::new(chart, x, y);
    let mut inner = frame.axes(chart);
    inner.push_str(&line::windows(&frame, windows));
    let drawn: Vec<(&Series, Vec<Point>)> =
        series.iter().map(|series| (series, highest(&series.points, POINTS_MAX))).collect();
    for run in drawn.chunks(LINES) {
        for (depth, pair) in run.windows(2).enumerate() {
            for stretch in stretches(run, &pair[1].1) {
                inner.push_str(&between(&frame, &pair[0].1, pair[1].0, stretch, depth));
            }
        }
    }
    for run in drawn.chunks(LINES) {
        for (index, (series, points)) in run.iter().enumerate() {
            let weight = if index == 0 { "" } else { " thin" };
            for stretch in stretches(run, points) {
                inner.push_str(&line::path(&frame, series, stretch, weight));
            }
        }
    }
    inner.push_str(&line::end_labels(&frame, chart, &to_the_end(&drawn)));
    frame::wrap(chart, frame::height(chart), &inner)
}

/// Parts of `points` without a gap: intervals of `run` with too few requests lack a percentile.
fn stretches<'a>(
    run: &[(&Series, Vec<Point>)],
    points: &'a [Point],
) -> impl Iterator<Item = &'a [Point]> {
    let median = run.first().map_or([].as_slice(), |it| it.1.as_slice());
    // The last interval may be a short one.
    let regular = &median[..median.len().saturating_sub(1)];
    let gaps = regular.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let step = gaps.fold(f64::INFINITY, f64::min);
    points.chunk_by(move |a, b| b.0 - a.0 < step * 1.5)
}

/// The lines that reach as far as the median of their run: others have no value at its end.
fn to_the_end<'a>(drawn: &[(&'a Series, Vec<Point>)]) -> Vec<(&'a Series, Vec<Point>)> {
    let end = |line: &(&Series, Vec<Point>)| line.1.last().map_or(0.0, |point| point.0);
    let runs = drawn.chunks(LINES);
    runs.flat_map(|run| run.iter().filter(|line| end(line) >= end(&run[0]))).cloned().collect()
}

/// The space from `below` up to a stretch of the line above; `depth` is 0 for that next to the
/// median.
fn between(
    frame: &Frame,
    below: &[Point],
    above: &Series,
    stretch: &[Point],
    depth: usize,
) -> String {
    let (from, to) = (stretch[0].0, stretch[stretch.len() - 1].0);
    let below = below.iter().filter(|point| (from..=to).contains(&point.0));
    let mut d = String::new();
    for (index, (x, y)) in stretch.iter().chain(below.rev()).enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(d, "{command}{} {}", place(frame.x.at(*x)), place(frame.y.at(*y)));
    }
    format!("<path class=\"space b{depth} t{}\" d=\"{d}Z\"/>", above.look.tone)
}

/// At most `limit` points, each the highest of as many neighbours: percentiles have no average.
pub(super) fn highest(points: &[Point], limit: usize) -> Vec<Point> {
    let width = points.len().div_ceil(limit).max(1);
    let of = |chunk: &[Point]| {
        let last = chunk.last().map_or(0.0, |point| point.0);
        (last, chunk.iter().map(|point| point.1).fold(0.0, f64::max))
    };
    points.chunks(width).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_neighbours_stands_for_them() {
        let points = [(1.0, 2.0), (2.0, 9.0), (3.0, 1.0), (4.0, 4.0), (5.0, 3.0)];
        assert_eq!(highest(&points, 3), [(2.0, 9.0), (4.0, 4.0), (5.0, 3.0)]);
        assert_eq!(highest(&points, 5), points);
    }
}
