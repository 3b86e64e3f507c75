//! Match of published rows with the steps of a plan that measure them.
//!
//! A row names a workload, a phase and, mostly, a load. A step measures it when all these agree:
//!
//! - workload: one of the names by which the step's figures are published, or its own, with data
//!   as compressible as the row's mode says, or the least compressible of the protocol;
//! - phase: what the protocol calls its measurements, and for a protocol of settled drives the
//!   beginning and the end of its preconditioning;
//! - rate: the step answers each completion with the next request, as loads are published;
//! - load: threads and queue, or a range of them. A row with threads alone is about the steps with
//!   as many, one with a queue alone about those with as many requests outstanding in all. A row
//!   without a load is about the only one at which the protocol has the workload. A data sheet is
//!   about the best of all loads.

use results::StepKind;
use results::published::{ANY, FigureRow, Loads, Over, Part, Phase, Reading, is_of};
use workload::PublishedPhase;

use crate::plan::{Plan, PlannedStep};

/// Reason why a row is not comparable with a run of a plan. The later one is the nearer miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Miss {
    /// The plan is compared with no figures of the row's document.
    Document,
    /// The plan lacks the workload.
    Workload,
    /// The plan has the workload, but not in the row's phase.
    Phase,
    /// The plan has several loads, and the row states none.
    LoadUnstated,
    /// The plan lacks the load.
    Load,
}

impl Miss {
    /// The miss in words.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Document | Self::Workload => "no protocol has this workload",
            Self::Phase => "no protocol has this workload in this phase",
            Self::LoadUnstated => "the row states no load, and the protocol has several",
            Self::Load => "no protocol has this workload and load in this phase",
        }
    }
}

/// Finds the steps, the part of them and the metric in which a run of `plan` has the value of
/// `row`.
///
/// # Errors
/// Says what is missing. A row whose metric no run has is comparable with no plan.
pub fn reading(row: &FigureRow, plan: &Plan) -> Result<Reading, Miss> {
    let published = plan.published.as_ref().ok_or(Miss::Document)?;
    let metric = row.measured_metric().ok_or(Miss::Workload)?;
    let named = named(plan, row);
    if named.is_empty() {
        return Err(Miss::Workload);
    }
    let (part, candidates) = of_phase(row.phase, published.phase, &named);
    if candidates.is_empty() {
        return Err(Miss::Phase);
    }
    let steps = of_load(row, &candidates)?.iter().map(|step| step.id.clone()).collect();
    let over = if row.phase.is_stated() { Over::Best } else { Over::Range };
    Ok(Reading { metric, steps, part, over, mb_bytes: published.mb_bytes })
}

/// The host among `known`, those of a drive's file, that `row` is compared with under `plan`: its
/// own; if it states none, that of the plan's protocol; if the drive has not that one, any.
pub fn host<'a>(row: &'a FigureRow, plan: &'a Plan, known: &[String]) -> &'a str {
    let stated = plan.published.as_ref().map(|published| published.host.as_str());
    match stated.filter(|host| known.iter().any(|name| name == host)) {
        Some(host) if row.os == ANY => host,
        _ => &row.os,
    }
}

/// The steps that have the workload of `row`, with data as compressible as its mode says.
fn named<'a>(plan: &'a Plan, row: &FigureRow) -> Vec<&'a PlannedStep> {
    let is_named = |step: &&PlannedStep| match step.published_as.as_slice() {
        [] => step.workload_name() == row.workload,
        names => names.contains(&row.workload),
    };
    let mut named: Vec<_> =
        plan.steps.iter().filter(|step| step.pace.is_none()).filter(is_named).collect();
    let least = named.iter().map(|step| step.compressible_percent()).fold(100.0, f64::min);
    named.retain(|step| is_of(&row.mode, step.compressible_percent(), least));
    named
}

/// The steps among `named` that a protocol of `measured` offers for `phase`, and their part.
fn of_phase<'a>(
    phase: Phase,
    measured: PublishedPhase,
    named: &[&'a PlannedStep],
) -> (Part, Vec<&'a PlannedStep>) {
    let of = |kind| named.iter().copied().filter(|step| step.kind == kind).collect::<Vec<_>>();
    let (measures, preconditions) = (of(StepKind::Measure), of(StepKind::Precondition));
    match (phase, measured) {
        (Phase::Burst, PublishedPhase::Primary) => (Part::Burst, preconditions),
        (Phase::Steady, PublishedPhase::Primary) if preconditions.is_empty() => {
            (Part::Whole, measures)
        }
        (Phase::PreconditionEnd | Phase::Steady, PublishedPhase::Primary) => {
            (Part::Settled, preconditions)
        }
        (Phase::Primary, PublishedPhase::Primary)
        | (Phase::Burst, PublishedPhase::Burst)
        | (Phase::Datasheet, PublishedPhase::Datasheet)
        | (Phase::Sustained, PublishedPhase::DatasheetSustained) => (Part::Whole, measures),
        _ => (Part::Whole, Vec::new()),
    }
}

/// The steps among `candidates` at the loads of `row`.
fn of_load<'a>(
    row: &FigureRow,
    candidates: &[&'a PlannedStep],
) -> Result<Vec<&'a PlannedStep>, Miss> {
    let loads = row.loads().ok_or(Miss::Load)?;
    let load = |step: &PlannedStep| (step.threads, step.queue_per_thread);
    let one = candidates.windows(2).all(|pair| load(pair[0]) == load(pair[1]));
    let steps: Vec<&PlannedStep> = match loads {
        Loads::Unstated if one || row.phase.is_stated() => candidates.to_vec(),
        Loads::Unstated => return Err(Miss::LoadUnstated),
        Loads::Threads(range) => {
            candidates.iter().filter(|step| range.holds(step.threads.into())).copied().collect()
        }
        Loads::Outstanding(range) => {
            candidates.iter().filter(|step| range.holds(step.outstanding())).copied().collect()
        }
        Loads::Grid(threads, queue) => {
            let holds = |step: &&&PlannedStep| {
                threads.holds(step.threads.into()) && queue.holds(step.queue_per_thread.into())
            };
            candidates.iter().filter(holds).copied().collect()
        }
    };
    if steps.is_empty() { Err(Miss::Load) } else { Ok(steps) }
}

/// The first of `plans` that expresses `row`, by its index, and where the value stands.
///
/// Plans whose protocol names the row's document come first, with those that are about any
/// document; where none names it, all of them are asked. Among these the order is that of `plans`.
///
/// # Errors
/// The nearest miss.
pub fn express(row: &FigureRow, plans: &[Plan]) -> Result<(usize, Reading), Miss> {
    let names = |plan: &Plan| {
        let published = plan.published.as_ref();
        published.is_some_and(|published| published.documents.contains(&row.document))
    };
    let is_known = plans.iter().any(names);
    let mut nearest = Miss::Document;
    for (index, plan) in plans.iter().enumerate() {
        if is_known && !plan.expresses_document(&row.document) {
            continue;
        }
        match reading(row, plan) {
            Ok(reading) => return Ok((index, reading)),
            Err(miss) => nearest = nearest.max(miss),
        }
    }
    Err(nearest)
}

#[cfg(test)]
mod tests;
