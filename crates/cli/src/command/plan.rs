//! `floatgate plan`: what a review would do.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};

use anyhow::Result;
use blockio::{Bytes, Nanos};
use lab::plan::Plan;
use lab::repeats::MODEL_PAGES_PER_S;
use lab::subject::Subject;
use lab::wanted::TargetSetup;
use serde_json::json;

use crate::args;
use crate::{Ending, output, setup, steps};

/// Rate in bytes a second at which fills of a real drive are taken to be written.
const FILL_BYTES_PER_S: f64 = 1e9;

/// Prints every step of a review, how long its loads last in protocol time, and what its fills
/// write.
pub(crate) fn plan(args: &args::Plan) -> Result<Ending> {
    let subject = Subject::find(&args.target)?;
    let data = (&args.trace, &args.data);
    let order = setup::review_order(&args.protocol, args.model.seed, data, args.precondition);
    let plan = order.plan()?;
    let choice = setup::choice(Some(&args.format), &args.model);
    let wanted = subject.setups(&setup::on_clients(choice, &args.clients).for_plan(&plan))?;
    let plan = wanted.first().map_or(plan.clone(), |wanted| subject.plan(plan, wanted));
    if args.json {
        let wall_time_s = wall_time_s(&plan, &subject, capacity(&subject, &wanted));
        let plan = json!({ "targets": wanted, "plan": plan, "wall_time_s": wall_time_s });
        output::json(&plan)?;
    } else {
        output::data(&shown(&plan, &subject, &wanted, capacity(&subject, &wanted)))?;
    }
    Ok(Ending::Done)
}

fn shown(
    plan: &Plan,
    subject: &Subject,
    wanted: &[TargetSetup],
    capacity: Option<Bytes>,
) -> String {
    let each = match devices(subject) {
        1 => String::new(),
        count => format!(", each load on each of {count} devices"),
    };
    let targets: Vec<String> =
        wanted.iter().map(|wanted| format!("{}{each}", target(wanted))).collect();
    format!(
        "{}\n{}\n\n{}\n\n{} steps, {} of load{} for each target, seed {}\n{}",
        plan.protocol_title,
        targets.join("\n"),
        steps::listed(plan),
        plan.steps.len(),
        Nanos::from_secs_f64(plan.duration_s()),
        fills(plan, capacity),
        plan.seed,
        wall_time(plan, subject, capacity)
    )
}

/// Bytes that the fills of `plan` write to a target of `capacity`.
fn fill_bytes(plan: &Plan, capacity: Option<Bytes>) -> u64 {
    let passes: u32 = plan.steps.iter().map(|step| step.fill_passes).sum();
    capacity.map_or(0, |it| it.0.saturating_mul(passes.into()))
}

/// Wall time in seconds that each target is expected to take: of a model on one processor, of a
/// real drive with fills at [`FILL_BYTES_PER_S`].
fn wall_time_s(plan: &Plan, subject: &Subject, capacity: Option<Bytes>) -> f64 {
    match subject {
        Subject::Model { .. } => plan.work() / MODEL_PAGES_PER_S,
        Subject::Real { .. } => {
            plan.duration_s() + fill_bytes(plan, capacity) as f64 / FILL_BYTES_PER_S
        }
    }
}

/// The expected wall time in words, and what it rests on.
fn wall_time(plan: &Plan, subject: &Subject, capacity: Option<Bytes>) -> String {
    let expected = Nanos::from_secs_f64(wall_time_s(plan, subject, capacity));
    let basis = match subject {
        Subject::Model { .. } => " for each target on one processor; suites run in parallel",
        Subject::Real { .. } if fill_bytes(plan, capacity) > 0 => ", with fills at 1 GB/s",
        Subject::Real { .. } => ", and the time of the fills",
    };
    format!("expected wall time: about {expected}{basis}")
}

/// The fills of `plan` on a target of `capacity`, whose time depends on the target.
fn fills(plan: &Plan, capacity: Option<Bytes>) -> String {
    let passes: u32 = plan.steps.iter().map(|step| step.fill_passes).sum();
    let fills = if passes == 1 { "fill" } else { "fills" };
    match capacity {
        _ if passes == 0 => String::new(),
        None => format!(", plus {passes} {fills} of the whole drive,"),
        Some(capacity) => {
            let written = Bytes(capacity.0.saturating_mul(passes.into()));
            format!(", plus {passes} {fills} of {capacity} ({written} written),")
        }
    }
}

/// Devices of a modelled group, which a load is carried out on at once; 1 of any other drive.
fn devices(subject: &Subject) -> u32 {
    match subject {
        Subject::Model { spec, .. } => spec.device_count(),
        Subject::Real { .. } => 1,
    }
}

/// Capacity of each of the targets, of all devices of a modelled group; absent where it differs, or
/// is not known without a connection.
fn capacity(subject: &Subject, wanted: &[TargetSetup]) -> Option<Bytes> {
    let of = |wanted: &TargetSetup| match subject {
        Subject::Model { spec, .. } => {
            let format = spec.formats.iter().find(|format| format.name == wanted.format)?;
            Some(decimal(format.user_gb * f64::from(devices(subject))))
        }
        Subject::Real { path } if wanted.host.is_empty() => {
            // A block device has no length in its metadata.
            Some(Bytes(File::open(path).ok()?.seek(SeekFrom::End(0)).ok()?))
        }
        Subject::Real { .. } => None,
    };
    let first = of(wanted.first()?)?;
    wanted.iter().all(|it| of(it) == Some(first)).then_some(first)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn decimal(gb: f64) -> Bytes {
    Bytes((gb * 1e9).round() as u64)
}

fn target(wanted: &TargetSetup) -> String {
    let TargetSetup { target, format, host, .. } = wanted;
    match wanted.time_lapse {
        _ if host.is_empty() => format!("target {target}"),
        1 => format!("target {target}, format {format}, host {host}, at full scale"),
        k => format!("target {target}, format {format}, host {host}, time lapse {k}"),
    }
}
