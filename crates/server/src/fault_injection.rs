//! Faults that are injected into a served drive, by command or by a schedule.

use std::fs;
use std::io;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use live::fault_injection::{FaultInjector, Schedule, scenario};
use tracing::{error, warn};

use crate::config::{Config, FaultInjection, Storage};
use crate::failure::Input;

/// Exit status of a server whose power was cut, as that of a process that was killed.
const POWER_CUT: i32 = 137;

/// The injector of faults that were asked for, by command or by a schedule.
///
/// # Errors
/// Fails if the schedule cannot be read, or names a die that the volume does not have.
pub(crate) fn injector(config: &Config) -> Result<Option<Arc<FaultInjector>>> {
    let schedule = match &config.faults {
        FaultInjection::Refused => return Ok(None),
        FaultInjection::Allowed => Schedule::default(),
        FaultInjection::Scheduled(file) => {
            let reading = || Input::reading(file);
            let built_in = file.to_str().and_then(scenario).filter(|_| !file.exists());
            let text = match built_in {
                Some(text) => text.to_owned(),
                None => fs::read_to_string(file).with_context(reading)?,
            };
            let schedule = Schedule::parse(&text).with_context(reading)?;
            // A drive in memory has no dies, and takes no notice of their faults.
            if let Storage::Volume(volume) = &config.storage {
                schedule.check_dies(live::die_count(volume)?).with_context(reading)?;
            }
            schedule
        }
    };
    let injector = FaultInjector::new(schedule, end_without_power, |fault, error| {
        warn!("injecting the scheduled fault {fault:?}: {error}");
    });
    injector.keep_time().context("starting the clock of the schedule")?;
    Ok(Some(injector))
}

/// Ends the process as a power cut does. If the cut was incomplete the process stays, so that the
/// client that asked for it gets the error; all commands to the dies fail.
#[expect(clippy::exit, reason = "nothing of a process outlives the power")]
fn end_without_power(cut: &io::Result<()>) {
    match cut {
        Ok(()) => std::process::exit(POWER_CUT),
        Err(error) => error!("{error}; stop the server, and do not use the data on the dies"),
    }
}
