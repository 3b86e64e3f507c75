//! Drives with one load each, as the nodes of a database have them.

use serde::{Deserialize, Serialize};

use crate::error::Fault;

/// Drives that carry a load each, of the application of their suite, interval by interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Drives, from 1 to 64.
    pub count: u16,
    /// Clients of each, of which a recording is built in.
    pub clients: u16,
    /// Intervals that are told apart, from 1 to 1000.
    pub intervals: u16,
    /// Length of an interval in seconds, above 0 and up to 3600.
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

    /// Length of the load of each, in seconds.
    pub fn duration_s(&self) -> f64 {
        f64::from(self.intervals) * self.interval_s
    }
}
