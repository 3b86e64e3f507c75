//! `floatgate plan`: what a review would do.

use anyhow::Result;
use blockio::Nanos;
use lab::plan::Plan;
use lab::subject::Choice;
use lab::wanted::Wanted;
use serde_json::json;

use crate::args;
use crate::{Ending, output, setup, steps};

/// Prints every step of a review, and how long it lasts in protocol time.
pub(crate) fn plan(args: &args::Plan) -> Result<Ending> {
    let subject = lab::subject::Subject::find(&args.target)?;
    let plan = setup::with_trace(setup::plan(&args.protocol, args.model.seed)?, &args.trace)?;
    let choice = setup::choice(Some(&args.format), &args.model);
    let choice = setup::on_clients(choice, &args.clients);
    let wanted = subject.setups(&Choice { time_lapse_max: plan.time_lapse_max, ..choice })?;
    let plan = setup::with_data(plan, &args.data);
    let plan = wanted.first().map_or(plan.clone(), |wanted| subject.plan(plan, wanted));
    if args.json {
        output::json(&json!({ "targets": wanted, "plan": plan }))?;
    } else {
        output::data(&shown(&plan, &wanted))?;
    }
    Ok(Ending::Done)
}

fn shown(plan: &Plan, wanted: &[Wanted]) -> String {
    let targets: Vec<String> = wanted.iter().map(target).collect();
    format!(
        "{}\n{}\n\n{}\n\n{} steps, {} of protocol time for each target, seed {}",
        plan.protocol_title,
        targets.join("\n"),
        steps::listed(plan),
        plan.steps.len(),
        Nanos::from_secs_f64(plan.duration_s()),
        plan.seed
    )
}

fn target(wanted: &Wanted) -> String {
    let (target, format, host) = (wanted.target(), wanted.format(), wanted.host());
    match wanted.time_lapse() {
        _ if host.is_empty() => format!("target {target}"),
        1 => format!("target {target}, format {format}, host {host}, at full scale"),
        k => format!("target {target}, format {format}, host {host}, time lapse {k}"),
    }
}
