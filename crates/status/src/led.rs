//! Activity LED of a drive: what the card in front of you would show, as an ioDrive's does.

use serde::{Deserialize, Serialize};

use crate::{State, Status};

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
    pub(crate) fn of(status: &Status) -> Self {
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

#[cfg(test)]
mod tests {
    use super::super::health::tests::{served, status};
    use super::*;

    #[test]
    fn the_led_shows_the_latest_traffic_of_an_open_drive() {
        let led = |reads: Option<u64>, writes: Option<u64>| {
            let mut status = served();
            let traffic = &mut status.server.as_mut().unwrap().traffic;
            (traffic.reads.idle_ns, traffic.writes.idle_ns) = (reads, writes);
            Led::of(&status)
        };
        assert_eq!(led(None, None), Led::Attached);
        assert_eq!(led(Some(0), None), Led::Read);
        assert_eq!(led(Some(0), Some(ACTIVITY_NS - 1)), Led::Write, "writes are shown first");
        assert_eq!(led(Some(0), Some(ACTIVITY_NS)), Led::Read, "a second is over");
        assert_eq!(led(Some(ACTIVITY_NS), None), Led::Attached);
    }

    #[test]
    fn a_drive_that_is_not_served_is_dark_and_a_failed_one_is_not() {
        let led = |state| Led::of(&Status { state, ..status() });
        assert_eq!(led(State::Closed), Led::Off);
        assert_eq!(led(State::Unclosed), Led::Off);
        assert_eq!(led(State::Open), Led::Attached, "open without a server");
        assert_eq!(led(State::Failed), Led::Failed);
    }

    #[test]
    fn the_locate_led_outshines_everything() {
        for state in [State::Closed, State::Unclosed, State::Open, State::Failed] {
            let located = Status { state, is_locate_led_on: true, ..served() };
            assert_eq!(Led::of(&located), Led::Locate);
        }
    }
}
