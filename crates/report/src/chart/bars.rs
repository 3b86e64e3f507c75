//! Horizontal bars in groups, each with its value at its end.

use std::fmt::Write as _;

use super::frame::{self, WIDTH, place};
use super::scale::{Scale, Spacing};
use super::{Bars, Chart};
use crate::text::Text;

const LEFT: f64 = 4.0;
const RIGHT: f64 = WIDTH - 70.0;
const BAR: f64 = 16.0;
const PITCH: f64 = 20.0;
const HEADING: f64 = 22.0;
const BETWEEN: f64 = 12.0;

/// The groups of `chart`, top to bottom.
pub(super) fn svg(chart: &Chart, groups: &[Bars]) -> String {
    let values = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.value);
    // Lengths are compared, so all begin at zero.
    let largest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let scale = Scale::fitted(Spacing::Linear, 0.0, largest).onto(LEFT, RIGHT);
    let mut inner = String::new();
    let mut y = 0.0;
    for group in groups.iter().filter(|group| !group.bars.is_empty()) {
        let _ = write!(
            inner,
            "<text class=\"group\" x=\"{LEFT}\" y=\"{}\">{}</text>",
            y + 15.0,
            Text(&group.label),
        );
        y += HEADING;
        for bar in &group.bars {
            let end = place(scale.at(bar.value));
            let said = chart.y.unit.say(bar.value);
            let _ = write!(
                inner,
                "<g class=\"t{}\"><title>{}, {}: {said}</title><rect class=\"fill\" x=\"{LEFT}\" \
                 y=\"{y}\" width=\"{}\" height=\"{BAR}\" rx=\"1.5\"/><text class=\"value\" \
                 x=\"{}\" y=\"{}\" dy=\".35em\">{}</text></g>",
                bar.tone,
                Text(&bar.name),
                Text(&group.label),
                place((end - LEFT).max(1.0)),
                end + 6.0,
                y + BAR / 2.0,
                chart.y.unit.show(bar.value),
            );
            y += PITCH;
        }
        y += BETWEEN;
    }
    frame::wrap(chart, y.max(BAR), &inner)
}
