//! Several drives with one load each, such as the nodes of a database.

use serde::{Deserialize, Serialize};

use crate::error::Fault;

/// Several drives, each with the application of the suite as its load, measured in intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Number of drives, from 1 to 64.
    pub count: u16,
    /// Clients of each drive. A recording with this number must be built in.
    pub clients: u16,
    /// Number of intervals, from 1 to 1000.
    pub intervals: u16,
    /// Length of an interval in seconds of the drive's own time, above 0 and up to 3600.
    pub interval_s: f64,
}

impl Nodes {
    pub(super) fn check(&self) -> Result<(), Fault> {
        for (name, value, most) in [
            ("count", self.count, 64),
            ("clients", self.clients, 4096),
            ("intervals", self.intervals, 1000),
        ] {
            let text = format!("{name} is {value}, not from 1 to {most}");
            Fault::unless((1..=most).contains(&value), name, text)?;
        }
        Fault::unless(
            self.interval_s > 0.0 && self.interval_s <= 3600.0,
            "interval_s",
            format!("interval_s is {}, not above 0 and up to 3600", self.interval_s),
        )
    }

    /// Length of the load of each drive, in seconds.
    pub fn duration_s(&self) -> f64 {
        f64::from(self.intervals) * self.interval_s
    }
}
