//! The frame that the charts share: size, gridlines, tick labels, title and description.

use std::fmt::Write as _;

use super::scale::Scale;
use super::{Axis, Chart};
use crate::text::Text;

/// Width of every chart, in units of its own.
pub(super) const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 270.0;
/// Width and height of a strip.
const STRIP: (f64, f64) = (1120.0, 190.0);
const LEFT: f64 = 46.0;
/// Room for the numbers at the ends of lines.
const MARGIN: f64 = 56.0;
const TOP: f64 = 16.0;

/// Plot area of a chart: its edges in the SVG, and the scales of x and y.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Places of x.
    pub(super) x: Scale,
    /// Places of y, upwards.
    pub(super) y: Scale,
    /// Left edge of the plot.
    pub(super) left: f64,
    /// Right edge of the plot.
    pub(super) right: f64,
    /// Top edge of the plot.
    pub(super) top: f64,
    /// Bottom edge of the plot.
    pub(super) bottom: f64,
}

impl Frame {
    /// A frame for `chart` with these scales.
    pub(super) fn new(chart: &Chart, x: Scale, y: Scale) -> Self {
        let (width, height) = size(chart);
        let bottom = height - if chart.x.slots.is_empty() { 36.0 } else { 52.0 };
        let right = width - MARGIN;
        let (x, y) = (x.onto(LEFT, right), y.onto(bottom, TOP));
        Self { x, y, left: LEFT, right, top: TOP, bottom }
    }

    /// Gridlines and tick labels of both axes.
    pub(super) fn axes(&self, chart: &Chart) -> String {
        let mut svg = String::new();
        for tick in self.y.ticks() {
            let y = place(self.y.at(tick));
            let (left, right) = (self.left, self.right);
            let _ = write!(svg, "<path class=\"grid\" d=\"M{left} {y}H{right}\"/>");
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{}\" y=\"{y}\" dy=\".32em\" \
                 text-anchor=\"end\">{}</text>",
                left - 7.0,
                chart.y.unit.show(tick),
            );
        }
        svg.push_str(&if chart.x.slots.is_empty() {
            self.x_ticks(&chart.x)
        } else {
            self.x_slots(&chart.x)
        });
        svg
    }

    /// Returns the SVG text that names the numbers at the ends of the lines: last, mean or max;
    /// empty where they have no name.
    pub(super) fn name_of_ends(&self, chart: &Chart) -> String {
        if chart.name_of_ends().is_empty() {
            return String::new();
        }
        format!(
            "<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text>",
            self.right + 6.0,
            self.top - 4.0,
            chart.name_of_ends(),
        )
    }

    fn x_ticks(&self, axis: &Axis) -> String {
        let mut svg = String::new();
        for tick in self.x.ticks() {
            let x = place(self.x.at(tick));
            let _ = write!(
                svg,
                "<path class=\"notch\" d=\"M{x} {}v4\"/>\
                 <text class=\"tick\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                self.bottom,
                self.bottom + 16.0,
                axis.unit.show(tick),
            );
        }
        let unit = axis.unit.symbol();
        let title = if unit.is_empty() {
            axis.label.to_string()
        } else {
            format!("{}, {unit}", axis.label)
        };
        let title = Text(&title);
        let _ = write!(
            svg,
            "<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{title}</text>",
            f64::midpoint(self.left, self.right),
            self.bottom + 32.0,
        );
        svg
    }

    /// Three rows under every load: threads, queue of each, outstanding in all.
    fn x_slots(&self, axis: &Axis) -> String {
        let mut svg = String::new();
        let rows = [15.0, 29.0, 45.0];
        let _ = write!(
            svg,
            "<text class=\"axis slot\" x=\"{}\" y=\"{}\" text-anchor=\"end\">T×Q</text>",
            self.left - 7.0,
            self.bottom + rows[2],
        );
        for (index, slot) in axis.slots.iter().enumerate() {
            let x = place(self.x.at(index as f64));
            let texts = [
                format!("T{}", slot.threads),
                format!("Q{}", slot.queue_per_thread),
                slot.outstanding().to_string(),
            ];
            let _ = write!(
                svg,
                "<g><title>{}: {} threads × queue depth {}</title>",
                slot.name(),
                slot.threads,
                slot.queue_per_thread,
            );
            for (offset, text) in rows.into_iter().zip(texts) {
                let _ = write!(
                    svg,
                    "<text class=\"slot\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
                    self.bottom + offset,
                );
            }
            svg.push_str("</g>");
        }
        svg
    }
}

/// The element around what is drawn: its name and description for those who do not see it.
pub(super) fn wrap(chart: &Chart, height: f64, inner: &str) -> String {
    let (width, _) = size(chart);
    let id = &chart.id;
    let names: Vec<&str> = chart.names().into_iter().map(|(name, _)| name).collect();
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}, one for each of: {}.</desc>\
         {inner}</svg>",
        Text(&chart.title),
        Text(&chart.y.label),
        Text(&names.join(", ")),
    )
}

/// Width and height of a chart that has the frame.
const fn size(chart: &Chart) -> (f64, f64) {
    if chart.is_wide { STRIP } else { (WIDTH, HEIGHT) }
}

/// Height of a chart that has the frame.
pub(super) const fn height(chart: &Chart) -> f64 {
    size(chart).1
}

/// A place to a tenth of a unit, in as few digits as it takes.
pub(super) fn place(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
