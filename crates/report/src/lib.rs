//! Reviews as pages: one self-contained HTML file each.
//!
//! [`review`] makes a page of one or more runs, side by side, [`sweep()`] one of a sweep,
//! [`validation()`] one of models beside published figures, [`atlas()`] one of all drives. A page
//! loads nothing, reads and prints without script, and becomes interactive with it.
//!
//! Invariants:
//! - Same runs and title, same bytes.
//! - Every chart names the runs that its numbers come from.
//! - No statistic is computed here: numbers come from [`results`].
//! - Every string of a run passes through `text::Text` or JSON before it reaches the page.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod atlas;
mod chance;
mod chart;
mod comparison;
mod conclusion;
mod conditions;
mod explain;
mod first_screen;
mod host_difference;
mod method;
mod number;
mod one_page;
mod order;
mod overview;
mod page;
mod platform;
mod provenance;
mod published;
mod settled;
mod subject;
mod suite;
mod summary;
mod sweep;
mod text;
mod validation;
mod verdict;

#[cfg(test)]
mod example;
#[cfg(test)]
mod tests;

use results::Run;
use results::points::Points;

pub use self::atlas::{Atlas, AtlasColumn, AtlasFact, AtlasModel, AtlasRun};
pub use self::one_page::ONE_PAGE_RUNS_MAX;
pub use self::validation::{Discussion, JudgedFigure, Tally, TallyLine, Validation};

/// The style sheet that pages begin with, those of a served drive too: colours, type, contents.
pub const GROUND_STYLE: &str = include_str!("../assets/base.css");

/// The style sheet of `uPlot`, which draws the charts of pages, those of a served drive too.
pub const CHART_STYLE: &str = include_str!("../assets/vendor/uPlot.min.css");

/// The script of `uPlot`, after its licence.
pub fn chart_script() -> String {
    page::vendored()
}

/// A page on `runs`: a review of one drive in its formats, or a comparison of any runs.
pub fn review(runs: &[Run], title: &str) -> String {
    page::page(runs, title, false)
}

/// A page as [`review`] makes it, a third as large: without the folded charts and tables of
/// preconditionings.
pub fn brief(runs: &[Run], title: &str) -> String {
    page::page(runs, title, true)
}

/// Verdict and sheet on one page of A4, beside [`review`].
pub fn one_page(runs: &[Run], title: &str) -> String {
    page::on_one_page(runs, title)
}

/// The data of every chart of [`review`], whole: what a page draws may be thinned out.
pub fn data(runs: &[Run]) -> Points {
    let subjects = subject::subjects(runs);
    let suites = subject::suites(&subjects);
    let mut points = Points::default();
    for chart in suites.iter().flat_map(suite::charts) {
        chart.add_to(&mut points);
    }
    points
}

/// A page on a sweep: each metric against each thing that was swept, and every number.
pub fn sweep(sweep: &results::sweep::Sweep) -> String {
    page::of_sweep(sweep)
}

/// A page of all drives, sorted, filtered and compared by its reader.
pub fn atlas(of: &Atlas<'_>) -> String {
    page::of_atlas(of)
}

/// A page on a validation: each published figure beside what its model does.
pub fn validation(of: &Validation) -> String {
    page::of_validation(of)
}
