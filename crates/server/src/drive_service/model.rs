//! The modelled drive that sets the timing of a served one, for the status.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use export::Pace;
use lab::ssd::{Drive, DriveSpec, PowerSpec, Setup};
use live::{Device, DriveHealth};
use status::{Climate, Die, Lateness, Model};

use crate::temperature;

/// Modelled drive that sets the timing of a served drive.
#[derive(Debug)]
pub struct PacingModel {
    name: String,
    /// Timing of the model, which replies to clients keep to.
    pub pace: Arc<Pace>,
    limits: Option<PowerSpec>,
}

impl PacingModel {
    /// The drive of `spec`, empty, whose time begins now.
    ///
    /// # Errors
    /// Fails if the drive has no such setup.
    pub fn new(spec: &DriveSpec, setup: &Setup) -> Result<Self> {
        let drive = Drive::new(spec, setup).context("setting up the model")?;
        let (name, limits) = (spec.name.clone(), spec.power.clone());
        Ok(Self { name, pace: Arc::new(Pace::new(drive)), limits })
    }

    /// Fills the model with the data that `device` stores; before the first client comes.
    ///
    /// # Errors
    /// Fails if the device does not report what it stores.
    pub fn hold(&self, device: &dyn Device) -> Result<()> {
        self.pace.hold(device).context("loading the stored data into the model")
    }

    /// Returns the status of the model.
    pub(crate) fn status(&self) -> Model {
        let known = self.pace.climate().zip(self.limits.as_ref());
        let climate = known.map(|(reading, limits)| Climate {
            temperature_c: reading.temperature_c,
            throttle_c: limits.throttle_c,
            shutdown_c: limits.shutdown_c,
            energy_j: reading.energy_j,
            power_limit_w: limits.limit_w,
            throttled_s: reading.thermal_throttled.max(reading.power_throttled).as_secs_f64(),
        });
        let lateness = self.pace.lateness();
        let lateness = Lateness {
            replies: lateness.replies,
            late: lateness.late,
            late_by_ns_mean: lateness.late_by_mean().0,
            late_by_ns_max: lateness.late_by_max.0,
        };
        Model { name: self.name.clone(), climate, lateness }
    }
}

/// Model number of a drive: its own kind, or the modelled drive that sets its timing.
pub(crate) fn model_name(model: Option<&PacingModel>, kind: &str) -> String {
    match model {
        Some(model) => format!("Floatgate as {}", model.name),
        None => format!("Floatgate {kind} drive"),
    }
}

/// Temperatures of a modelled drive; without a model, those of the disks below its dies, or that
/// of this machine.
pub(crate) fn warmth(climate: Option<&Climate>, dies: &[Die]) -> DriveHealth {
    let Some(climate) = climate else {
        return DriveHealth {
            composite_temperature_k: temperature::of_disks(dies).or_else(temperature::of_machine),
            warning_temperature_k: temperature::warning_of_disks(dies),
            ..DriveHealth::default()
        };
    };
    let kelvin = |temperature_c| Climate { temperature_c, ..*climate }.composite_temperature();
    DriveHealth {
        composite_temperature_k: Some(climate.composite_temperature()),
        warning_temperature_k: Some(kelvin(climate.throttle_c)),
        critical_temperature_k: Some(kelvin(climate.shutdown_c)),
        ..DriveHealth::default()
    }
}
