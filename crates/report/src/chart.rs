//! A chart as a value: what it shows, and the figure that is made of it.
//!
//! A figure is legible without script: static SVG, legend, caption, provenance. Beside the SVG lies
//! the same data as JSON, from which the page's script draws an interactive chart and CSV.

mod area;
mod axis;
mod bars;
mod decimate;
mod embed;
mod frame;
mod heat;
mod line;
mod scale;

use std::fmt::Write as _;

use results::heat::Heat;
use results::points::Points;

pub(crate) use axis::{Axis, Slot, Unit};
pub(crate) use decimate::Point;
pub(crate) use scale::{Spacing, widened};

use crate::text::Text;

/// One metric against one quantity.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Name in the page, unique, made of letters, digits and hyphens.
    pub(crate) id: String,
    /// What is shown.
    pub(crate) title: String,
    /// How to read it, in one sentence; empty where a neighbour says it.
    pub(crate) explain: &'static str,
    /// Where the numbers come from: run, seed, interval; one line a run.
    pub(crate) provenance: Vec<String>,
    /// Warnings that concern its numbers.
    pub(crate) cautions: Vec<String>,
    /// The horizontal axis.
    pub(crate) x: Axis,
    /// The vertical axis; for bars, the axis of their length.
    pub(crate) y: Axis,
    /// What is drawn.
    pub(crate) body: Body,
}

/// What a chart draws.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Lines, and windows of time marked in the colour of their series.
    Lines(Vec<Series>, Vec<Window>),
    /// Points of one load each, joined in order; x need not ascend.
    Curve(Vec<Series>),
    /// Series stacked upon each other, the first at the bottom; all have the same x.
    Area(Vec<Series>),
    /// Bars in groups.
    Bars(Vec<Group>),
    /// Shares of requests over time and latency.
    Heat(Heat),
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Name in the legend.
    pub(crate) name: String,
    /// How it looks.
    pub(crate) look: Look,
    /// Where it goes.
    pub(crate) points: Vec<Point>,
    /// What each point is, where that is not its place; as long as `points` or empty.
    pub(crate) labels: Vec<String>,
}

/// Colour and dash pattern, by class in the style sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Colour: of a run (0 to 7), or of a cause (`AREA` and up).
    pub(crate) tone: usize,
    /// Dash pattern, 0 for solid, up to 3.
    pub(crate) dash: usize,
}

impl Look {
    /// Tones from here on colour the causes of stacked areas.
    pub(crate) const AREA: usize = 8;

    /// The look of the run numbered `index`: patterns tell runs apart where colours cannot.
    pub(crate) fn of_run(index: usize) -> Self {
        Self { tone: index % Self::AREA, dash: index % 4 }
    }

    fn class(self) -> String {
        format!("t{} d{}", self.tone, self.dash)
    }
}

/// A span of x that is marked, in the colour of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Tone of the run.
    pub(crate) tone: usize,
    /// Where it begins.
    pub(crate) from: f64,
    /// Where it ends.
    pub(crate) to: f64,
    /// Whether what it marks was reached.
    pub(crate) achieved: bool,
}

/// Bars that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// What they have in common.
    pub(crate) label: String,
    /// One a run.
    pub(crate) bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    /// Name in the legend.
    pub(crate) name: String,
    /// Tone of the run.
    pub(crate) tone: usize,
    /// How long.
    pub(crate) value: f64,
}

impl Chart {
    /// The figure; empty where there is nothing to draw.
    pub(crate) fn figure(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut html = format!(
            "<figure id=\"{}\" class=\"chart\"><header><h4>{}</h4><span class=\"unit\">{}</span>\
             </header>",
            self.id,
            Text(&self.title),
            self.y.caption(),
        );
        html.push_str(&self.legend());
        let _ = write!(html, "<div class=\"plot\">{}</div><figcaption>", self.svg());
        for caution in &self.cautions {
            let _ = write!(html, "<p class=\"caution\">{}</p>", Text(caution));
        }
        if !self.explain.is_empty() {
            let _ = write!(html, "<p><b>How to read this.</b> {}</p>", Text(self.explain));
        }
        let provenance = self.provenance.join(" ");
        let _ = write!(html, "<p class=\"provenance\">{}</p>", Text(&provenance));
        html.push_str("</figcaption>");
        html.push_str(&embed::script(self));
        html.push_str("</figure>\n");
        html
    }

    /// The chart as static SVG.
    pub(crate) fn svg(&self) -> String {
        match &self.body {
            Body::Lines(series, windows) => line::svg(self, series, windows),
            Body::Curve(series) => line::curve_svg(self, series),
            Body::Area(series) => area::svg(self, series),
            Body::Bars(groups) => bars::svg(self, groups),
            Body::Heat(heat) => heat::svg(self, heat),
        }
    }

    /// Adds everything that it draws to `points`.
    pub(crate) fn add_to(&self, points: &mut Points) {
        let mut add = |series: &str, x: String, y: f64, label: String| {
            points.rows.push(results::points::Point {
                chart: self.id.clone(),
                title: self.title.clone(),
                series: series.to_owned(),
                x_name: named(&self.x),
                x,
                y_name: named(&self.y),
                y,
                label,
            });
        };
        match &self.body {
            Body::Lines(all, _) | Body::Curve(all) | Body::Area(all) => {
                for series in all {
                    for (index, (x, y)) in series.points.iter().enumerate() {
                        let slot = line::slot_name(self, *x);
                        let label = series.labels.get(index).cloned().unwrap_or_default();
                        add(&series.name, slot.unwrap_or_else(|| x.to_string()), *y, label);
                    }
                }
            }
            Body::Bars(groups) => {
                for (group, bar) in
                    groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)))
                {
                    add(&bar.name, group.label.clone(), bar.value, String::new());
                }
            }
            Body::Heat(heat) => {
                for (x, y, share) in heat::cells(self, heat) {
                    add("share of requests", x.to_string(), y, share.to_string());
                }
            }
        }
    }

    /// Whether it is one of many small ones, which a neighbour explains.
    const fn is_panel(&self) -> bool {
        self.explain.is_empty()
    }

    fn is_empty(&self) -> bool {
        match &self.body {
            Body::Lines(series, _) | Body::Curve(series) | Body::Area(series) => {
                series.iter().all(|series| series.points.is_empty())
            }
            Body::Bars(groups) => groups.iter().all(|group| group.bars.is_empty()),
            Body::Heat(heat) => heat.columns.is_empty(),
        }
    }

    /// Names and looks in order of appearance, each once.
    fn names(&self) -> Vec<(&str, Look)> {
        let named: Vec<(&str, Look)> = match &self.body {
            Body::Lines(series, _) | Body::Curve(series) | Body::Area(series) => {
                series.iter().map(|series| (series.name.as_str(), series.look)).collect()
            }
            Body::Bars(groups) => {
                let bars = groups.iter().flat_map(|group| &group.bars);
                bars.map(|bar| (bar.name.as_str(), Look { tone: bar.tone, dash: 0 })).collect()
            }
            Body::Heat(_) => vec![("share of requests", Look::of_run(0))],
        };
        let mut once: Vec<(&str, Look)> = Vec::new();
        for entry in named {
            if !once.contains(&entry) {
                once.push(entry);
            }
        }
        once
    }

    fn legend(&self) -> String {
        if matches!(self.body, Body::Heat(_)) {
            return shades();
        }
        let filled = matches!(self.body, Body::Bars(_) | Body::Area(_));
        let mut html = String::from("<ul class=\"legend\">");
        for (name, look) in self.names() {
            let swatch = if filled {
                "<rect class=\"fill\" width=\"22\" height=\"10\" rx=\"2\"/>"
            } else {
                "<path class=\"line\" d=\"M0 5H22\"/>"
            };
            let _ = write!(
                html,
                "<li class=\"{}\"><svg width=\"22\" height=\"10\" aria-hidden=\"true\">{swatch}\
                 </svg><span>{}</span></li>",
                look.class(),
                Text(name),
            );
        }
        html + "</ul>"
    }
}

/// What an axis measures, with its unit: `protocol time, h`.
fn named(axis: &Axis) -> String {
    match axis.unit {
        // Shares are numbers from 0 to 1 here, whatever the page shows.
        Unit::Share => format!("{}, share", axis.label),
        unit if unit.symbol().is_empty() => axis.label.into(),
        unit => format!("{}, {}", axis.label, unit.symbol()),
    }
}

/// The shades of a heat map and the shares from which they begin.
fn shades() -> String {
    let mut html = String::from("<ul class=\"legend shades\">");
    for (index, (_, from)) in heat::SHADES.iter().enumerate() {
        let _ = write!(
            html,
            "<li class=\"t0\"><svg width=\"14\" height=\"10\" aria-hidden=\"true\"><rect \
             class=\"heat h{}\" width=\"14\" height=\"10\"/></svg><span>{from}</span></li>",
            index + 1,
        );
    }
    html + "</ul>"
}

#[cfg(test)]
mod tests;
