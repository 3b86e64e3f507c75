//! One suite: preconditioning, primary test, percentiles, media.

mod applications;
mod climate;
mod die_failures;
mod group;
mod heatmap;
mod load_curve;
mod media;
mod metric;
mod percentiles;
mod preconditioning;
mod primary;
mod rounds;
mod steps;
mod tier;

use std::fmt::Write as _;

use results::Step;

use crate::chart::Chart;
use crate::subject::{Part, Suite};
use crate::text::{Text, anchor};

/// The section of `suite`.
pub(crate) fn section(suite: &Suite<'_>) -> String {
    let id = anchor(suite.name);
    let mut html = format!("<section id=\"suite-{id}\"><h2>{}</h2>\n", Text(&suite.title));
    html.push_str(&preconditioning::section(suite, &id));
    html.push_str(&rounds::section(suite, &id));
    html.push_str(&primary::section(suite, &id));
    html.push_str(&load_curve::section(suite, &id));
    html.push_str(&climate::section(suite, &id));
    html.push_str(&tier::section(suite, &id));
    html.push_str(&applications::section(suite, &id));
    let _ = write!(html, "<p class=\"provenance\">{}</p>", Text(&sources(suite)));
    html + "</section>\n"
}

/// Throughput over the first preconditioning of all; absent where none has samples to draw.
pub(crate) fn first_preconditioning(suites: &[Suite<'_>]) -> Option<Chart> {
    let charts = suites.iter().filter_map(|suite| {
        let chart = preconditioning::charts(suite, "glance").into_iter().next()?;
        let taken = suite.preconditions();
        let (_, step) = taken.first()?;
        let title = format!(
            "{} while {} was preconditioned, T{}Q{}",
            chart.title, step.workload, step.threads, step.queue_per_thread
        );
        Some(Chart { title, ..chart })
    });
    charts.into_iter().find(|chart| !chart.is_empty())
}

/// Every chart of `suite`, in the order of the page.
pub(crate) fn charts(suite: &Suite<'_>) -> Vec<Chart> {
    let id = anchor(suite.name);
    let parts: [fn(&Suite<'_>, &str) -> Vec<Chart>; 10] = [
        preconditioning::charts,
        heatmap::charts,
        media::charts,
        climate::charts,
        rounds::charts,
        primary::charts,
        percentiles::charts,
        load_curve::charts,
        applications::charts,
        tier::charts,
    ];
    parts.into_iter().flat_map(|of| of(suite, &id)).collect()
}

/// Returns a note on the sources of the numbers of `suite`.
fn sources(suite: &Suite<'_>) -> String {
    let of = |part: &Part<'_>| {
        let steps: Vec<&Step> = part
            .subject
            .run
            .steps
            .iter()
            .filter(|step| step.suite == suite.name && step.interval_s > 0.0)
            .collect();
        part.subject.provenance(&steps)
    };
    let all: Vec<String> = suite.parts.iter().map(of).collect();
    format!("Numbers of this section: {}", all.join(" "))
}
