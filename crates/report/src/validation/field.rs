//! The field of ratios: a lane for each drive, a dot for each figure.
//!
//! ```text
//!              1/4      1/2       1        2        4      modelled over published, logarithmic
//! drive a       ·        ·      ▒:▒:▒      ·        ·
//! drive b       ·        ·      ▒▒:▒▒▒  .  ·        ·      ▒ in tolerance
//! ```

use std::fmt::Write as _;

use super::{JudgedFigure, Validation};
use crate::text::Text;

/// Width of the drawing, and where its lanes begin and end.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 980.0;
/// Room above the lanes.
const TOP: f64 = 26.0;
/// Room above and below the dots of a lane.
const MARGIN: f64 = 9.0;
/// Radius of a dot; dots that would touch are drawn above and below each other.
const RADIUS: f64 = 4.2;
const APART: f64 = 2.0 * RADIUS + 0.8;

/// Figures of one kind.
struct FigureKind {
    title: &'static str,
    is_typical: bool,
    /// Ratios at the ends of the axis, each the other's inverse; what is beyond lies at the end.
    end: f64,
    ticks: &'static [(f64, &'static str)],
    /// Bounds of the tolerance that most figures of the kind have.
    tolerance: (f64, f64),
    explain: &'static str,
}

const KINDS: [FigureKind; 2] = [
    FigureKind {
        title: "Rates and average latencies",
        is_typical: true,
        end: 4.0,
        ticks: &[
            (0.25, "1/4"),
            (0.5, "1/2"),
            (0.8, "0.8"),
            (1.0, "1"),
            (1.25, "1.25"),
            (2.0, "2"),
            (4.0, "4"),
        ],
        tolerance: (0.85, 1.15),
        explain: "The band is that of rates, 15 %; an average latency is in tolerance within 20 %.",
    },
    FigureKind {
        title: "Standard deviations, maxima and percentiles",
        is_typical: false,
        end: 16.0,
        ticks: &[
            (1.0 / 16.0, "1/16"),
            (0.25, "1/4"),
            (0.5, "1/2"),
            (1.0, "1"),
            (2.0, "2"),
            (4.0, "4"),
            (16.0, "16"),
        ],
        tolerance: (0.5, 2.0),
        explain: "Half to double; a maximum is one request among millions.",
    },
];

/// A field for each kind of figure that there is.
pub(super) fn figures(of: &Validation) -> String {
    let mut html = String::new();
    for kind in &KINDS {
        let is_shown = |it: &&JudgedFigure| it.is_typical == kind.is_typical && it.is_measured;
        let shown: Vec<&JudgedFigure> = of.figures.iter().filter(is_shown).collect();
        if !shown.is_empty() {
            html.push_str(&figure(kind, &shown));
        }
    }
    html
}

fn figure(kind: &FigureKind, figures: &[&JudgedFigure]) -> String {
    let mut drives: Vec<&str> = figures.iter().map(|figure| figure.drive.as_str()).collect();
    drives.sort_unstable();
    drives.dedup();
    let mut lanes = String::new();
    let mut y = TOP;
    for drive in drives {
        let of_drive = figures.iter().filter(|figure| figure.drive == drive);
        let dots = placed(kind, of_drive.copied().collect());
        let reach = dots.iter().map(|dot| dot.offset.abs()).fold(0.0, f64::max);
        let height = 2.0 * (reach + RADIUS + MARGIN);
        lanes.push_str(&lane(drive, &dots, (y, height)));
        y += height;
    }
    format!(
        "<figure class=\"field\"><header><h4>{}</h4><span class=\"unit\">modelled over published\
         </span></header><div class=\"plot\"><svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
         aria-label=\"{}\">{}{lanes}</svg></div><figcaption><p>{}</p></figcaption></figure>",
        Text(kind.title),
        y + 4.0,
        Text(kind.title),
        frame(kind, y),
        Text(kind.explain),
    )
}

/// The band of the tolerance, and a line at each tick.
fn frame(kind: &FigureKind, bottom: f64) -> String {
    let (low, high) = (x(kind, kind.tolerance.0), x(kind, kind.tolerance.1));
    let mut svg = format!(
        "<rect class=\"tolerance\" x=\"{low:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        high - low,
        bottom - TOP,
    );
    for (ratio, label) in kind.ticks {
        let at = x(kind, *ratio);
        let class = if label == &"1" { "notch" } else { "grid" };
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" \
             y2=\"{bottom:.1}\"/><text class=\"axis\" x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{label}</text>",
            TOP - 9.0,
        );
    }
    svg
}

fn lane(drive: &str, dots: &[Dot<'_>], (y, height): (f64, f64)) -> String {
    let middle = y + height / 2.0;
    let mut svg = format!(
        "<line class=\"grid\" x1=\"0\" x2=\"{RIGHT}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
         <text class=\"group\" x=\"0\" y=\"{1:.1}\">{2}</text>",
        y + height,
        middle + 4.0,
        Text(drive),
    );
    for Dot { figure, at, offset } in dots {
        let class = if figure.within { "mark" } else { "mark missed" };
        let _ = write!(
            svg,
            "<circle class=\"{class}\" cx=\"{at:.1}\" cy=\"{:.1}\" r=\"{RADIUS}\"><title>{}, {}, \
             {}, {}: {} published, ratio {:.2}</title></circle>",
            middle + offset,
            Text(&figure.id),
            Text(&figure.model),
            Text(&figure.load),
            Text(&figure.metric),
            Text(&figure.published),
            figure.ratio,
        );
    }
    svg
}

/// A figure in its lane.
struct Dot<'a> {
    figure: &'a JudgedFigure,
    at: f64,
    /// Distance from the middle of the lane, downwards.
    offset: f64,
}

/// Dots from left to right, each as near to the middle of its lane as those before it leave room.
fn placed<'a>(kind: &FigureKind, mut figures: Vec<&'a JudgedFigure>) -> Vec<Dot<'a>> {
    figures.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let mut dots: Vec<Dot<'_>> = Vec::new();
    for figure in figures {
        let at = x(kind, figure.ratio);
        let is_free =
            |offset: &f64| dots.iter().all(|dot| (dot.at - at).hypot(dot.offset - offset) >= APART);
        let offsets = (0..).map(|step| {
            let distance = f64::from((step + 1) / 2) * APART / 2.0;
            if step % 2 == 0 { distance } else { -distance }
        });
        let offset = offsets.into_iter().find(is_free).expect("a lane has no end");
        dots.push(Dot { figure, at, offset });
    }
    dots
}

/// Returns the x coordinate of a ratio on a logarithmic axis, with 1 in the middle.
fn x(kind: &FigureKind, ratio: f64) -> f64 {
    let share = ratio.max(f64::MIN_POSITIVE).ln() / kind.end.ln();
    f64::midpoint(LEFT, RIGHT) + share.clamp(-1.0, 1.0) * (RIGHT - LEFT) / 2.0
}
