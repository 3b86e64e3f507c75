//! Options for the thermal conditions and the slot power of a modelled drive, and failing dies.

use clap::Args;
use lab::ssd::{DieFailure, SlotPower, Surroundings};

use crate::quantity;

/// Surroundings of a modelled drive: temperature and flow of its air, and power of its slot.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Thermal and power")]
pub(crate) struct SurroundingsArgs {
    /// Inlet air temperature of a model in degrees Celsius [default: the drive's own]
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    #[arg(value_parser = quantity::within(-60..=125_i16))]
    pub(crate) ambient: Option<i16>,
    /// Airflow in linear feet per minute [default: as much as the drive needs]
    #[arg(long, value_name = "LFM", value_parser = quantity::within(0..=10_000_u16))]
    pub(crate) airflow: Option<u16>,
    /// Power limit of a model in watts, such as 25, or `external` for none [default: the drive's
    /// own]
    #[arg(long, value_name = "W", value_parser = slot_power)]
    pub(crate) slot_power: Option<SlotPower>,
}

/// Conditions of a modelled drive: its surroundings, and dies that fail.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlaceArgs {
    #[command(flatten)]
    pub(crate) around: SurroundingsArgs,
    /// Die of a model that fails, and when, such as 3@2h: protocol time since the first load after
    /// the purge. May be given several times
    #[arg(long, value_name = "DIE@TIME", value_parser = die_failure, help_heading = "Model")]
    pub(crate) fail_die: Vec<DieFailure>,
}

impl SurroundingsArgs {
    /// The surroundings, in which these dies fail.
    pub(crate) fn with(&self, die_failures: Vec<DieFailure>) -> Surroundings {
        let Self { ambient, airflow, slot_power } = self;
        Surroundings { ambient_c: *ambient, airflow_lfm: *airflow, slot: *slot_power, die_failures }
    }
}

/// `3@2h`.
fn die_failure(text: &str) -> Result<DieFailure, String> {
    let wrong = || format!("`{text}` is not a die and a time, such as 3@2h");
    let (die, after) = text.split_once('@').ok_or_else(wrong)?;
    let die = die.trim().parse().map_err(|_| wrong())?;
    Ok(DieFailure { die, after_s: quantity::span(after)?.as_secs() })
}

/// `25`, or `external`.
fn slot_power(text: &str) -> Result<SlotPower, String> {
    if text == "external" {
        return Ok(SlotPower::External);
    }
    let watts = text.strip_suffix('w').or_else(|| text.strip_suffix('W')).unwrap_or(text);
    match watts.trim().parse() {
        Ok(watts) if watts > 0 => Ok(SlotPower::Watts(watts)),
        _ => Err(format!("`{text}` is neither a number of watts, such as 25, nor `external`")),
    }
}
