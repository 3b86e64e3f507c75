//! Plans on a modelled drive, from protocols and traces to the result.

mod applications;
mod curve;
mod replay;
mod rounds;
mod tiers;

use lab::Error;
use lab::driver::model::drivers;
use lab::plan::Plan;
use lab::progress::SilentProgress;
use lab::results::Run;
use lab::runner::{Assignment, NoStepStore, carry_out};
use lab::subject::{Choice, Subject, find_drive};

/// The plan on an ioDrive Duo in time lapse.
fn carried_out(plan: &Plan) -> Result<Run, Error> {
    carried_out_on("iodrive-duo", plan, 64)
}

/// The plan on a drive of the catalogue, or one of a file, in time lapse.
fn carried_out_on(drive: &str, plan: &Plan, time_lapse: u32) -> Result<Run, Error> {
    let subject = Subject::find(drive)?;
    let choice = Choice { time_lapse: Some(time_lapse), ..Choice::default() };
    let wanted = subject.setups(&choice)?.remove(0);
    let spec = find_drive(drive)?;
    let drivers = drivers(&spec, &wanted, plan.seed)?;
    let (drivers, finished) = (drivers.as_ref(), Vec::new());
    let assignment = Assignment { label: "", plan, drivers, step_store: &NoStepStore, finished };
    let outcome = carry_out(&[assignment], 2, &SilentProgress)?.remove(0);
    Ok(outcome.into_run(plan, "run".into(), String::new()))
}
