//! Latency over the preconditioning as heat maps, one a run, on one scale.

use results::StepKind;
use results::heat::Heat;

use super::metric::RunStep;
use super::steps::{cautions, provenance};
use crate::chart::{Axis, Body, Chart, Ends, Unit};
use crate::explain;
use crate::subject::Suite;
use crate::suite::preconditioning::time_axis;
use crate::text::anchor;

/// Columns of a map at most: each is wide enough to be seen.
const COLUMNS_MAX: usize = 54;
/// Maps of a suite at most: of more runs, each would be a stamp.
const MAPS_MAX: usize = 6;

/// The maps of the preconditionings of `suite`.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let taken = suite.preconditions();
    let (x, _) = time_axis(&taken);
    let maps: Vec<(RunStep<'_>, Heat)> = taken
        .into_iter()
        .filter(|(_, step)| step.kind == StepKind::Precondition && step.samples.len() > 1)
        .map(|taken| (taken, Heat::of(&taken.1.samples, COLUMNS_MAX)))
        .take(MAPS_MAX)
        .collect();
    let edges = || maps.iter().flat_map(|(_, heat)| &heat.edges_ns).map(|edge| edge / 1e6);
    let domain = (edges().fold(f64::INFINITY, f64::min), edges().fold(0.0, f64::max));
    maps.iter()
        .map(|(taken, heat)| {
            let (subject, _) = taken;
            Chart {
                id: format!("{id}-heat-{}", anchor(&subject.label)),
                title: format!("Latency over time, {}", subject.label),
                explain: explain::HEAT,
                provenance: provenance(&[*taken]),
                cautions: cautions(&[*taken]),
                x: x.clone(),
                y: Axis {
                    switchable: false,
                    domain: Some(domain),
                    ..Axis::log("Latency", Unit::Millis)
                },
                ends: Ends::Last,
                is_wide: false,
                body: Body::Heat(heat.clone()),
            }
        })
        .collect()
}
