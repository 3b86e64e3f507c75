//! A die of a drive: what it is on the host, so that the right one is pulled, and how it fares.

use serde::{Deserialize, Serialize};

/// A die.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Die {
    /// True if it serves.
    #[serde(default)]
    pub state: DieState,
    /// True if it has failed or is missing.
    pub is_lost: bool,
    /// True if rows lack the unit that belongs on it, so that a further die that fails loses data.
    #[serde(default)]
    pub has_degraded_rows: bool,
    /// True if reads fail, since it does not respond and no other die gives back what it has.
    #[serde(default)]
    pub is_silent: bool,
    /// Path of the file or block device; none where the drive has no folder.
    #[serde(default)]
    pub path: Option<String>,
    /// True if nothing is at that path.
    #[serde(default)]
    pub is_missing: bool,
    /// Model of the block device; none of a file, or where the system names none.
    #[serde(default)]
    pub model: Option<String>,
    /// Serial number of the block device; none as there.
    #[serde(default)]
    pub serial: Option<String>,
    /// Temperature in degrees Celsius of the disk below it, by its own sensor; none without one.
    #[serde(default)]
    pub temperature_c: Option<i64>,
    /// Temperature from which on that disk warns of heat; none where it says none.
    #[serde(default)]
    pub temperature_warning_c: Option<i64>,
    /// Power in watts of that disk, by its own sensor; none without one.
    #[serde(default)]
    pub power_w: Option<f64>,
    /// Bytes read from it since the drive was opened.
    pub read_bytes: u64,
    /// Bytes written to it since.
    pub written_bytes: u64,
    /// Requests that it failed since, those not counted that found it failed already.
    pub failures: u64,
    /// Error of the last of these, and the kind of request.
    #[serde(default)]
    pub failure: Option<String>,
    /// Reads since that the rest of the row had to answer, since it did not.
    #[serde(default)]
    pub reconstructed_reads: u64,
    /// Places, of an extent each, that could be read then and were not what had been written.
    #[serde(default)]
    pub damaged_places: u64,
    /// Places that such reads found in the last hour.
    #[serde(default)]
    pub damaged_places_hour: u64,
    /// Most of them in an hour that are no problem.
    #[serde(default)]
    pub damaged_places_limit: u64,
    /// Rows with such places that have not been written again yet.
    #[serde(default)]
    pub rows_suspect: u64,
    /// Places of it where its medium failed, which are not used again.
    #[serde(default)]
    pub bad_places: u64,
    /// Of these, those that are used all the same, since too few superblocks would be left.
    #[serde(default)]
    pub bad_places_in_use: u64,
    /// Its part in the volume, as a member of an array; none of servers of earlier versions.
    #[serde(default)]
    pub member: Option<Member>,
}

/// Part of a die in its volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// Session, a count of openings, that it last took part in; 0: not known.
    pub session: u64,
    /// Changes of the header that it has, which an array calls its count of events; 0: not known.
    pub events: u64,
    /// Time of the last write to it, in seconds since 1970; none where that is not known.
    pub last_written_unix_s: Option<u64>,
    /// True if it has what was written last; false if it is stale.
    pub is_current: bool,
}

/// State of a die; of two the worse is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DieState {
    /// The die holds all that it should.
    #[default]
    Good,
    /// The die is being filled with what belongs there.
    Rebuilding,
    /// The die has failed or is missing.
    Failed,
}

impl DieState {
    /// The word, as JSON has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Rebuilding => "rebuilding",
            Self::Failed => "failed",
        }
    }
}

impl Die {
    /// True if it has failed, and no other medium is being put in its place.
    pub(crate) fn has_failed(&self) -> bool {
        self.is_lost && self.state != DieState::Rebuilding
    }

    /// The die of an index as sentences begin with it: `Die 2 (/dev/sdc, model X, serial Y)`.
    pub fn named(&self, index: usize) -> String {
        match self.place() {
            Some(place) => format!("Die {index} ({place})"),
            None => format!("Die {index}"),
        }
    }

    /// Location of the die on the host: its path, and of a block device model and serial number.
    pub fn place(&self) -> Option<String> {
        let path = self.path.clone()?;
        let named = [("model", &self.model), ("serial", &self.serial)];
        let known = named.iter().filter_map(|(name, it)| Some(format!("{name} {}", it.as_ref()?)));
        Some([path].into_iter().chain(known).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_die_is_named_by_all_that_is_known_of_its_place() {
        let mut die = Die::default();
        assert_eq!((die.named(3), die.place()), ("Die 3".into(), None));
        die.path = Some("/dev/sdc".into());
        assert_eq!(die.named(3), "Die 3 (/dev/sdc)");
        die.serial = Some("S1".into());
        assert_eq!(die.named(3), "Die 3 (/dev/sdc, serial S1)");
        die.model = Some("X".into());
        assert_eq!(die.place().unwrap(), "/dev/sdc, model X, serial S1");
    }

    #[test]
    fn of_two_states_the_worse_is_the_greater() {
        assert!(DieState::Good < DieState::Rebuilding && DieState::Rebuilding < DieState::Failed);
    }

    #[test]
    fn words_are_those_of_json() {
        for state in [DieState::Good, DieState::Rebuilding, DieState::Failed] {
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(json, format!("\"{}\"", state.word()));
        }
    }

    #[test]
    fn a_die_of_an_earlier_server_is_read_with_what_it_told() {
        let text = r#"{"is_lost":true,"read_bytes":1,"written_bytes":2,"failures":0}"#;
        let die: Die = serde_json::from_str(text).unwrap();
        assert!(die.is_lost && die.path.is_none() && !die.has_degraded_rows);
        assert_eq!(die.state, DieState::Good, "the status as a whole says otherwise");
    }
}
