//! A die of a drive: what it is on the host, so that the right one is pulled, and how it fares.

use serde::{Deserialize, Serialize};

use super::{NotErased, Status};

/// A die.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    fn has_failed(&self) -> bool {
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

impl Status {
    /// Sentence about the dies that an erasure of the drive does not reach, since they have failed,
    /// and about media that failed before the last purge ended and have been replaced since; none
    /// if it reaches all of them.
    pub fn not_erased(&self) -> Option<String> {
        let purge = self.maintenance.purge.as_ref();
        let unreached: &[NotErased] = purge.map_or(&[], |purge| &purge.not_erased);
        // The last medium of a die that has failed is the one that is there now.
        let is_former = |(at, it): &(usize, &NotErased)| {
            let is_last = unreached[at + 1..].iter().all(|later| later.die != it.die);
            let die = it.die.and_then(|die| self.dies.get(die as usize));
            !(is_last && die.is_some_and(Die::has_failed))
        };
        let former = unreached.iter().enumerate().filter(is_former);
        let replaced = former.map(|(_, NotErased { die, path, reason })| {
            let Some(die) = die else {
                let why = reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
                return format!("The hot spare {path}{why} was not erased");
            };
            let place = if path.is_empty() { String::new() } else { format!(" ({path})") };
            format!(
                "The former medium of die {die}{place}, which was replaced during the erasure, \
                 failed and was not erased"
            )
        });
        let failed = self.dies.iter().enumerate().filter(|(_, die)| die.has_failed());
        let named = failed.map(|(index, die)| {
            let why = if die.is_missing { "is missing" } else { "has failed" };
            format!("{} {why} and was not erased", die.named(index))
        });
        let named: Vec<String> = named.chain(replaced).collect();
        let rest = "destroy it, or erase it by other means";
        (!named.is_empty()).then(|| format!("{}: {rest}", named.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Purge;

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
    fn dies_that_an_erasure_does_not_reach_are_named() {
        let mut status = super::super::health::tests::status();
        assert_eq!(status.not_erased(), None);
        status.dies[1].is_lost = true;
        let rest = "destroy it, or erase it by other means";
        let one = format!("Die 1 (/dev/d1) has failed and was not erased: {rest}");
        assert_eq!(status.not_erased().unwrap(), one);
        (status.dies[3].is_lost, status.dies[3].is_missing) = (true, true);
        let both = status.not_erased().unwrap();
        assert!(both.contains("; Die 3 (/dev/d3) is missing and was not erased: "), "{both}");
    }

    #[test]
    fn a_medium_that_failed_and_was_replaced_during_an_erasure_is_named() {
        let mut status = super::super::health::tests::status();
        let lost = |die: u32, path: &str| NotErased::die(die, path.into());
        let not_erased = vec![lost(1, "/dev/d1"), lost(2, ""), lost(3, ""), lost(3, "/dev/d3")];
        let spare = NotErased { path: "/dev/s".into(), ..NotErased::default() };
        let not_erased = [not_erased, vec![spare]].concat();
        status.maintenance.purge = Some(Purge { not_erased, ..Purge::default() });
        status.dies[1].path = Some("/dev/spare".into());
        status.dies[3].is_lost = true;
        let said = status.not_erased().unwrap();
        assert!(said.starts_with("Die 3 (/dev/d3) has failed and was not erased; "), "{said}");
        assert!(said.contains("The former medium of die 3, which"), "the one before it: {said}");
        assert!(said.contains("The former medium of die 1 (/dev/d1), which"), "{said}");
        assert!(said.contains("The former medium of die 2, which"), "{said}");
        assert!(said.contains("The hot spare /dev/s was not erased"), "{said}");
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
