//! A chart as a value: what it shows, and the figure that is made of it.
//!
//! A figure is legible without script: static SVG, legend, caption, provenance. Beside the SVG lies
//! the same data as JSON, from which the page's script draws an interactive chart and CSV.

mod area;
mod axis;
mod bands;
mod bars;
mod decimate;
mod embed;
mod frame;
mod heat;
mod line;
mod scale;

use std::fmt::Write as _;

use results::heat::Heat;
use results::points::{ChartPoint, Points};

pub(crate) use axis::{Axis, Slot, Unit};
pub(crate) use decimate::Point;
pub(crate) use scale::{Spacing, widened};

use crate::text::Text;

/// A line of fewer points is no line: a table says as much.
const POINTS_MIN: usize = 3;
/// A heat map of fewer edges has one row, and one colour.
const HEAT_EDGES_MIN: usize = 3;

/// One metric against one quantity.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Name in the page, unique, made of letters, digits and hyphens.
    pub(crate) id: String,
    /// Title, such as `Throughput`.
    pub(crate) title: String,
    /// Hint on how to read it, one sentence; empty for a small chart that a neighbour explains.
    pub(crate) explain: &'static str,
    /// Sources of the numbers: run, seed, interval; one line a run.
    pub(crate) provenance: Vec<String>,
    /// Warnings that concern its numbers.
    pub(crate) cautions: Vec<String>,
    /// The horizontal axis.
    pub(crate) x: Axis,
    /// The vertical axis; for bars, the axis of their length.
    pub(crate) y: Axis,
    /// Kind of number at the end of each line.
    pub(crate) ends: Ends,
    /// True if it is a strip over the width of the page.
    pub(crate) is_wide: bool,
    /// Data that is drawn, by type of chart.
    pub(crate) body: Body,
}

/// The number at the end of a line, of what is in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The last value.
    Last,
    /// The arithmetic mean of the points.
    Mean,
    /// The greatest value.
    Maximum,
}

impl Ends {
    const fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Mean => "mean",
            Self::Maximum => "max",
        }
    }

    /// The number for `points`; absent without any.
    pub(crate) fn of(self, points: &[Point]) -> Option<f64> {
        let values = points.iter().map(|point| point.1);
        match self {
            Self::Last => points.last().map(|point| point.1),
            Self::Mean if points.is_empty() => None,
            Self::Mean => Some(values.sum::<f64>() / points.len() as f64),
            Self::Maximum => values.reduce(f64::max),
        }
    }
}

/// Data of a chart, by its type.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Lines, and windows of time marked in the colour of their series.
    Lines(Vec<Series>, Vec<Window>),
    /// Three lines a run, one after the other: the median, the 99th and the 99.9th percentile of
    /// each interval, with the space between them filled; and windows of time.
    Bands(Vec<Series>, Vec<Window>),
    /// Points of one load each, joined in order; x need not ascend.
    Curve(Vec<Series>),
    /// Series stacked upon each other, the first at the bottom; all have the same x.
    Area(Vec<Series>),
    /// Bars in groups.
    Bars(Vec<Bars>),
    /// Shares of requests over time and latency.
    Heat(Heat),
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Name in the legend.
    pub(crate) name: String,
    /// Colour and dash pattern.
    pub(crate) look: Look,
    /// Points in drawing order, as x and y.
    pub(crate) points: Vec<Point>,
    /// Ends of the intervals of the points, as x, the lower and the upper end.
    pub(crate) errors: Vec<(f64, f64, f64)>,
    /// Names of the points in tooltips, such as their loads; as long as `points` or empty.
    pub(crate) labels: Vec<String>,
}

/// Colour and dash pattern, by class in the style sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Colour: of a run (0 to 7), or of a cause (`AREA` and up).
    pub(crate) tone: usize,
    /// Dash pattern, 0 for solid, up to 3; [`Look::MARKS`] for points that no line joins.
    pub(crate) dash: usize,
}

impl Look {
    /// Dash pattern of points that no line joins.
    pub(crate) const MARKS: usize = 4;
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
    /// Start, in the unit of x.
    pub(crate) from: f64,
    /// End, in the unit of x.
    pub(crate) to: f64,
    /// True if steady state was reached in it.
    pub(crate) achieved: bool,
}

/// Bars that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    /// Name of the group, common to its bars.
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
    /// Length, in the unit of the axis.
    pub(crate) value: f64,
}

impl Chart {
    /// The figure; empty where there is nothing to draw. Without a legend of its own where
    /// `is_grouped`: the group around it has one.
    pub(crate) fn figure(&self, is_grouped: bool) -> String {
        if self.is_empty() {
            return String::new();
        }
        let sound = self.on_sound_axis();
        let chart = sound.as_ref().unwrap_or(self);
        let mut html = format!(
            "<figure id=\"{}\" class=\"chart{}\"><header><h4>{}</h4><span class=\"unit\">{}</span>\
             </header>",
            chart.id,
            if chart.is_wide { " wide" } else { "" },
            Text(&chart.title),
            chart.y.caption(),
        );
        if !is_grouped {
            html.push_str(&chart.legend());
        }
        let _ = write!(html, "<div class=\"plot\">{}</div>", chart.svg());
        if !chart.explain.is_empty() {
            let _ = write!(html, "<figcaption><p>{}</p></figcaption>", Text(chart.explain));
        }
        html.push_str(&embed::script(chart));
        html.push_str("</figure>\n");
        html
    }

    /// The chart with at most `limit` points a line, among them its extremes; of other bodies the
    /// same chart.
    pub(crate) fn thinned(mut self, limit: usize) -> Self {
        if let Body::Lines(all, _) = &mut self.body {
            for series in all {
                series.points = decimate::decimate(&series.points, limit);
            }
        }
        self
    }

    /// The chart on a linear axis, where it would be logarithmic and some value has no logarithm.
    fn on_sound_axis(&self) -> Option<Self> {
        let (Body::Lines(series, _) | Body::Bands(series, _) | Body::Curve(series)) = &self.body
        else {
            return None;
        };
        let has_zero = series.iter().flat_map(|it| &it.points).any(|point| point.1 <= 0.0);
        (self.y.spacing == Spacing::Log && has_zero).then(|| {
            let y = Axis { spacing: Spacing::Linear, switchable: false, ..self.y.clone() };
            Self { y, ..self.clone() }
        })
    }

    /// The chart as static SVG.
    pub(crate) fn svg(&self) -> String {
        match &self.body {
            Body::Lines(series, windows) => line::svg(self, series, windows),
            Body::Bands(series, windows) => bands::svg(self, series, windows),
            Body::Curve(series) => line::curve_svg(self, series),
            Body::Area(series) => area::svg(self, series),
            Body::Bars(groups) => bars::svg(self, groups),
            Body::Heat(heat) => heat::svg(self, heat),
        }
    }

    /// Adds everything that it draws to `points`.
    pub(crate) fn add_to(&self, points: &mut Points) {
        let point = |series: &str, x: Option<f64>, y: f64, label: String| ChartPoint {
            chart: self.id.clone(),
            title: self.title.clone(),
            series: series.to_owned(),
            x_name: named(&self.x),
            y_name: named(&self.y),
            label,
            x,
            y,
            share: None,
        };
        match &self.body {
            Body::Lines(all, _) | Body::Bands(all, _) | Body::Curve(all) | Body::Area(all) => {
                for series in all {
                    points.rows.extend(series.points.iter().enumerate().map(|(index, (x, y))| {
                        // Loads stand at positions that are no numbers.
                        let slot = line::slot_name(self, *x);
                        let at = slot.is_none().then_some(*x);
                        let label = || series.labels.get(index).cloned().unwrap_or_default();
                        point(&series.name, at, *y, slot.unwrap_or_else(label))
                    }));
                }
            }
            Body::Bars(groups) => {
                let bars =
                    groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)));
                points.rows.extend(
                    bars.map(|(group, bar)| point(&bar.name, None, bar.value, group.label.clone())),
                );
            }
            Body::Heat(heat) => {
                let cells = heat::cells(self, heat).into_iter();
                points.rows.extend(cells.map(|(x, y, share)| ChartPoint {
                    x_name: format!("{}, end of the cell", named(&self.x)),
                    y_name: format!("{}, upper end of the cell", named(&self.y)),
                    share: Some(share),
                    ..point("share of requests", Some(x), y, String::new())
                }));
            }
        }
    }

    /// Name above the numbers at the ends of lines; empty where the last is that of no time.
    fn name_of_ends(&self) -> &'static str {
        if self.ends == Ends::Last && !self.x.unit.is_time() { "" } else { self.ends.name() }
    }

    /// True if it is a small multiple, without an explanation of its own.
    const fn is_panel(&self) -> bool {
        self.explain.is_empty()
    }

    /// True if there is nothing to see: no points, a line of two points or of zeros alone, a heat
    /// map of one row.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.body {
            Body::Lines(series, _) | Body::Bands(series, _) | Body::Area(series) => {
                let longest = series.iter().map(|series| series.points.len()).max().unwrap_or(0);
                let values = || series.iter().flat_map(|it| &it.points).map(|point| point.1);
                longest < POINTS_MIN || !values().any(|value| value > 0.0)
            }
            Body::Curve(series) => series.iter().all(|series| series.points.is_empty()),
            Body::Bars(groups) => {
                let values = || groups.iter().flat_map(|group| &group.bars).map(|bar| bar.value);
                !values().any(|value| value > 0.0)
            }
            Body::Heat(heat) => heat.columns.is_empty() || heat.edges_ns.len() < HEAT_EDGES_MIN,
        }
    }

    /// Names and looks in order of appearance, each once.
    pub(crate) fn names(&self) -> Vec<(&str, Look)> {
        let named: Vec<(&str, Look)> = match &self.body {
            Body::Bands(series, _) => {
                let runs = series.iter().step_by(bands::LINES);
                runs.map(|it| (it.name.split(", median").next().unwrap_or_default(), it.look))
                    .collect()
            }
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
        // The first group of bars may lack a run: the order is that within every group.
        if matches!(self.body, Body::Bars(_)) {
            once.sort_by_key(|(_, look)| look.tone);
        }
        once
    }

    pub(crate) fn legend(&self) -> String {
        if matches!(self.body, Body::Heat(_)) {
            return shades();
        }
        let names = self.names();
        // Of several runs, a chart of one says which.
        let is_alone = self.provenance.len() < 2 && names.iter().all(|it| it.1.tone == 0);
        if names.is_empty() || (names.len() == 1 && is_alone) {
            return String::new();
        }
        let filled = matches!(self.body, Body::Bars(_) | Body::Area(_));
        let mut html = String::from("<ul class=\"legend\">");
        for (name, look) in names {
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

/// Returns the label of an axis with its unit: `protocol time, h`.
fn named(axis: &Axis) -> String {
    match axis.unit {
        // Shares are numbers from 0 to 1 here, whatever the page shows.
        Unit::Share => format!("{}, share", axis.label),
        unit if unit.symbol().is_empty() => axis.label.to_string(),
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
