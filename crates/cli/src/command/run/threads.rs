//! Threads of the host that carry out a load.

use anyhow::Result;
use lab::order::RunOrder;
use lab::plan::Plan;
use lab::results::{HostLimit, StepKind};
use lab::runner::Outcome;
use lab::subject::Subject;

use super::{RunRequest, host_limit, measured, record_of};

/// Threads that are tried for a trace, at most.
const MAX: u16 = 256;

/// Threads of the load that was asked for. A trace that a model replays with its timing gets as
/// many as keep up, in powers of two, where no number was given: too few of them would be measured
/// in place of the drive.
pub(super) fn number(asked: &RunRequest<'_>, plan_of: &dyn Fn(u16) -> Result<Plan>) -> Result<u16> {
    let is_model = matches!(asked.subject, Subject::Model { .. });
    let is_timed = asked.trace.is_some() && asked.args.speed.is_some();
    let mut threads = asked.args.threads.unwrap_or(RunOrder::THREADS);
    if asked.args.threads.is_some() || !is_model || !is_timed {
        return Ok(threads);
    }
    while threads < MAX {
        let outcomes = measured(asked, &[plan_of(threads)?], None)?;
        if !outcomes.iter().any(lacks_threads) {
            break;
        }
        threads *= 2;
    }
    Ok(threads)
}

/// True if more threads would have carried more requests.
fn lacks_threads(outcome: &Outcome) -> bool {
    let limit = record_of(outcome, StepKind::Measure)
        .and_then(|record| host_limit(outcome, record, record.step.summary.as_ref()?));
    matches!(limit, Some(HostLimit::Threads(_))) && !outcome.interrupted
}
