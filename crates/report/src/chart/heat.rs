//! A heat map: time from left to right, latency upwards, shade by share.
//!
//! Every shade is one path, so that a map of thousands of cells stays small and takes its colour
//! from the style sheet.

use std::fmt::Write as _;

use results::heat::{Heat, HeatColumn};

use super::frame::{self, Frame, place};
use super::scale::{Scale, Spacing};
use super::{Chart, Unit};

/// Shares from which the shades begin, ascending.
pub(super) const SHADES: [(f64, &str); 7] = [
    (1e-5, "below 0.1 %"),
    (1e-3, "0.1 %"),
    (1e-2, "1 %"),
    (0.05, "5 %"),
    (0.1, "10 %"),
    (0.25, "25 %"),
    (0.5, "50 % and more"),
];

/// The map of `chart`, whose axes are time and latency in milliseconds.
pub(super) fn svg(chart: &Chart, heat: &Heat) -> String {
    let frame = framed(chart, heat);
    let seconds = seconds_of(chart.x.unit);
    let mut inner = String::new();
    for shade in 1..=SHADES.len() {
        let mut d = String::new();
        for column in &heat.columns {
            let left = place(frame.x.at(column.from_s / seconds));
            let right = place(frame.x.at(column.to_s / seconds));
            for (from, to) in stretches(column, shade) {
                let at = |row: usize| place(frame.y.at(heat.edges_ns[row] / 1e6));
                let _ = write!(d, "M{left} {}H{right}V{}H{left}Z", at(from), at(to));
            }
        }
        if !d.is_empty() {
            let _ = write!(inner, "<path class=\"heat h{shade}\" d=\"{d}\"/>");
        }
    }
    inner.push_str(&frame.axes(chart));
    frame::wrap(chart, frame::height(chart), &inner)
}

/// Every cell that holds something: time in the unit of the axis, latency in milliseconds, share.
pub(super) fn cells(chart: &Chart, heat: &Heat) -> Vec<(f64, f64, f64)> {
    let seconds = seconds_of(chart.x.unit);
    let of = |column: &HeatColumn| {
        let rows = heat.edges_ns.iter().skip(1).zip(&column.shares);
        let filled = rows.filter(|(_, share)| **share >= SHADES[0].0);
        let at = column.to_s / seconds;
        filled.map(|(upper, share)| (at, upper / 1e6, *share)).collect::<Vec<_>>()
    };
    heat.columns.iter().flat_map(of).collect()
}

fn framed(chart: &Chart, heat: &Heat) -> Frame {
    let end = heat.columns.last().map_or(1.0, |column| column.to_s) / seconds_of(chart.x.unit);
    let low = heat.edges_ns.first().map_or(0.1, |edge| edge / 1e6);
    let high = heat.edges_ns.last().map_or(1.0, |edge| edge / 1e6);
    let (low, high) = chart.y.domain.unwrap_or((low, high));
    Frame::new(chart, Scale::exact(0.0, end), Scale::fitted(Spacing::Log, low, high))
}

/// Seconds of a unit of time.
pub(super) fn seconds_of(unit: Unit) -> f64 {
    match unit {
        Unit::Hours => 3600.0,
        Unit::Minutes => 60.0,
        _ => 1.0,
    }
}

/// The shade of `share`, from 1; 0 where there is nothing to see.
fn shade_of(share: f64) -> usize {
    SHADES.iter().take_while(|(from, _)| share >= *from).count()
}

/// Rows of `column` in that shade that lie upon each other: the first, and the one after the last.
fn stretches(column: &HeatColumn, shade: usize) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (row, share) in column.shares.iter().enumerate() {
        if shade_of(*share) != shade {
            continue;
        }
        match found.last_mut() {
            Some((_, end)) if *end == row => *end = row + 1,
            _ => found.push((row, row + 1)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_shade_are_one_stretch() {
        let shares = vec![0.0, 0.002, 0.003, 0.6, 0.004];
        let column = HeatColumn { from_s: 0.0, to_s: 1.0, shares };
        assert_eq!(stretches(&column, 2), [(1, 3), (4, 5)]);
        assert_eq!(stretches(&column, 7), [(3, 4)]);
        assert_eq!((shade_of(0.0), shade_of(1.0)), (0, SHADES.len()));
    }
}
