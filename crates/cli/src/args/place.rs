//! Options for the surroundings of a modelled drive: air, airflow and slot power.

use clap::Args;
use lab::ssd::SlotPower;

/// Surroundings of a modelled drive: temperature and flow of its air, and power of its slot.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Surroundings")]
pub(crate) struct PlaceArgs {
    /// Temperature of the air before a model, in degrees Celsius [default: the drive's own]
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(i16).range(-60..=125))]
    pub(crate) ambient: Option<i16>,
    /// Flow of that air in linear feet a minute [default: what the drive needs]
    #[arg(long, value_name = "LFM", value_parser = clap::value_parser!(u16).range(0..=10_000))]
    pub(crate) airflow: Option<u16>,
    /// Watts that a model may draw, such as 25, or external: what it needs [default: the drive's
    /// own]
    #[arg(long, value_name = "W", value_parser = slot_power)]
    pub(crate) slot_power: Option<SlotPower>,
}

/// `25`, or `external`.
fn slot_power(text: &str) -> Result<SlotPower, String> {
    if text == "external" {
        return Ok(SlotPower::External);
    }
    let watts = text.strip_suffix('w').or_else(|| text.strip_suffix('W')).unwrap_or(text);
    match watts.trim().parse() {
        Ok(watts) if watts > 0 => Ok(SlotPower::Watts(watts)),
        _ => Err(format!("`{text}` is no number of watts, such as 25, nor `external`")),
    }
}
