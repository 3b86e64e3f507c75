//! Activity LED of a drive: what the card in front of you would show, as an ioDrive's does.

use serde::{Deserialize, Serialize};

use super::{State, Status};

/// Time for which the activity LED stays on after a command, in nanoseconds.
const ACTIVITY_NS: u64 = 1_000_000_000;

/// State of a drive's activity LED; of several that apply, the last one here is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Led {
    /// No process has the drive open.
    #[default]
    Off,
    /// The drive is open and idle.
    Attached,
    /// The drive was read within the last second.
    Read,
    /// The drive was written within the last second.
    Write,
    /// The drive takes no more writes.
    Failed,
    /// The locate LED is on.
    Locate,
}

impl Led {
    /// Returns the state of the LED for a status that is complete otherwise.
    pub(super) fn of(status: &Status) -> Self {
        let traffic = status.server.as_ref().map(|server| &server.traffic);
        let is_recent = |idle_ns: Option<u64>| idle_ns.is_some_and(|idle| idle < ACTIVITY_NS);
        if status.is_locate_led_on {
            return Self::Locate;
        }
        match (status.state, traffic) {
            (State::Closed | State::Unclosed, _) => Self::Off,
            (State::Failed, _) => Self::Failed,
            (State::Open, Some(traffic)) if is_recent(traffic.writes.idle_ns) => Self::Write,
            (State::Open, Some(traffic)) if is_recent(traffic.reads.idle_ns) => Self::Read,
            (State::Open, _) => Self::Attached,
        }
    }
}
