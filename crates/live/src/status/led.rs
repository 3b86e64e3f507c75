//! The light of a drive: what the card in front of you would show, as an ioDrive's does.

use serde::{Deserialize, Serialize};

use super::{State, Status};

/// How long after a command its light is on, in nanoseconds.
const ACTIVITY_NS: u64 = 1_000_000_000;

/// What the light of a drive shows; of several reasons the one that comes last here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Led {
    /// Nobody has the drive open.
    #[default]
    Off,
    /// It is open, and nobody asks for anything.
    Attached,
    /// It was read within the last second.
    Read,
    /// It was written within the last second.
    Write,
    /// It takes no more writes.
    Failed,
    /// Somebody looks for it.
    Locate,
}

impl Led {
    /// What the light of a drive shows whose status is all there.
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
