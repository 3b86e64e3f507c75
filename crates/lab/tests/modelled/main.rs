//! Plans on a modelled drive, from protocols and traces to the result.

mod applications;
mod curve;
mod replay;
mod rounds;

use lab::Error;
use lab::driver::model::drivers;
use lab::plan::Plan;
use lab::progress::SilentProgress;
use lab::results::Run;
use lab::runner::{Assignment, NoStepStore, carry_out};
use lab::subject::{Choice, Subject, find_drive};

/// The plan on an ioDrive Duo in time lapse.
fn carried_out(plan: &Plan) -> Result<Run, Error> {
    let subject = Subject::find("iodrive-duo")?;
    let choice = Choice { time_lapse: Some(64), ..Choice::default() };
    let wanted = subject.setups(&choice)?.remove(0);
    let spec = find_drive("iodrive-duo")?;
    let drivers = drivers(&spec, &wanted, plan.seed)?;
    let (drivers, finished) = (drivers.as_ref(), Vec::new());
    let assignment = Assignment { label: "", plan, drivers, step_store: &NoStepStore, finished };
    let outcome = carry_out(&[assignment], 2, &SilentProgress)?.remove(0);
    Ok(outcome.into_run(plan, "run".into(), String::new()))
}
