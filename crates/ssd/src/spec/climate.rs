//! Power and heat of a drive, and where it is.

use serde::{Deserialize, Serialize};

use crate::die_failure::DieFailure;
use crate::spec::{DriveSpec, SpecError};

/// Energy of a device's operations.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnergySpec {
    /// Power while nothing is asked of it, in watts.
    pub idle_w: f64,
    /// A read of 4 KiB from the media, by the host or by relocation, in microjoules.
    pub read_uj: f64,
    /// A program of 4 KiB for any cause, parity included, in microjoules.
    pub program_uj: f64,
    /// An erase of one die's part of a superblock, in microjoules.
    pub erase_uj: f64,
    /// 4 KiB between host and media, in microjoules.
    pub transfer_uj: f64,
    /// Source.
    pub source: String,
}

/// Thermal model of a device as one lump: a resistance to the air around it, and a heat capacity.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThermalSpec {
    /// Kelvin above the air for each watt, at the air flow that `power` says it needs.
    pub resistance_k_w: f64,
    /// Joules that warm it by a kelvin.
    pub capacity_j_k: f64,
    /// Temperature of the air before it, in degrees Celsius.
    pub ambient_c: f64,
    /// Flow of that air in linear feet a minute; as much as it needs if absent.
    pub airflow_lfm: Option<f64>,
    /// Flow that air rises with by itself, in linear feet a minute: the least that there is.
    #[serde(default = "still_air_lfm")]
    pub still_air_lfm: f64,
    /// Source.
    pub source: String,
}

/// Half a kilometre an hour, as beside a warm upright plate.
const fn still_air_lfm() -> f64 {
    30.0
}

/// Air and power supply of a drive, as far as they differ from what its file says, and what befalls
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Surroundings {
    /// Temperature of the air before it, in degrees Celsius.
    pub ambient_c: Option<i16>,
    /// Flow of that air, in linear feet a minute.
    pub airflow_lfm: Option<u16>,
    /// Power supply; absent: as the file says.
    pub slot: Option<SlotPower>,
    /// Dies that fail under load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub die_failures: Vec<DieFailure>,
}

/// Power supply of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotPower {
    /// A cable, or a slot that gives whatever it needs.
    External,
    /// A slot alone, of so many watts.
    Watts(u16),
}

impl DriveSpec {
    /// This drive in `surroundings`.
    ///
    /// # Errors
    /// Fails if nothing is known of its heat, so that they would make no difference, or if it
    /// could not even idle.
    pub fn surrounded_by(mut self, surroundings: &Surroundings) -> Result<Self, SpecError> {
        self.die_failures.clone_from(&surroundings.die_failures);
        self.given = surroundings.clone();
        let of_air = Surroundings { die_failures: Vec::new(), ..surroundings.clone() };
        if of_air == Surroundings::default() {
            return Ok(self);
        }
        let fault = |text: String| SpecError { place: self.name.clone(), text };
        let (Some(thermal), Some(power), Some(energy)) =
            (&mut self.thermal, &mut self.power, &self.energy)
        else {
            let text = "has no [thermal] table: ambient temperature, airflow and slot power have \
                        no effect";
            return Err(fault(text.to_owned()));
        };
        if let Some(ambient_c) = surroundings.ambient_c {
            thermal.ambient_c = ambient_c.into();
        }
        if let Some(airflow_lfm) = surroundings.airflow_lfm {
            thermal.airflow_lfm = Some(airflow_lfm.into());
        }
        match surroundings.slot {
            None => {}
            Some(SlotPower::External) => power.limit_w = None,
            Some(SlotPower::Watts(watts)) if f64::from(watts) > energy.idle_w => {
                power.limit_w = Some(watts.into());
            }
            Some(SlotPower::Watts(watts)) => {
                let idle_w = energy.idle_w;
                let text = format!("a slot of {watts} W is not enough, it idles at {idle_w} W");
                return Err(fault(text));
            }
        }
        Ok(self)
    }
}
