//! The contract of a model that sets when the commands of a served device complete.

use crate::{Completion, Lba, Nanos, Request};

/// Model of a drive in virtual time. It reads no clock: its owner passes times, which never go
/// back.
pub trait Pacer: Send {
    /// Sectors that the host sees.
    fn user_sectors(&self) -> u64;

    /// Fills a range as if it had been written long ago; before the first request.
    fn age(&mut self, lba: Lba, sectors: u32);

    /// Takes a request that the host submits at `at`.
    fn submit(&mut self, at: Nanos, request: Request);

    /// The next completion, if it can be decided by `until`; time passes to it, or else to `until`.
    fn next_completion(&mut self, until: Nanos) -> Option<Completion>;

    /// Time of the next event; none if nothing is pending.
    fn next_event(&self) -> Option<Nanos>;

    /// Power and heat at `at`; none where nothing is known of them.
    fn climate(&self, at: Nanos) -> Option<ClimateReading>;
}

/// Power and heat of a drive at a time, of each device of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClimateReading {
    /// Temperature at the end of the last whole window, in degrees Celsius.
    pub temperature_c: f64,
    /// Energy drawn since the drive was made, in joules.
    pub energy_j: f64,
    /// Time in which it throttled its writes because of its temperature, on its own clock.
    pub thermal_throttled: Nanos,
    /// Time in which it throttled them to stay within its power.
    pub power_throttled: Nanos,
}
