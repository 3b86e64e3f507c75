//! What looking after a drive adds to its status: a die that is being restored, a scrub.

use serde::{Deserialize, Serialize};

/// Work on what is stored, beside what clients ask for, since the drive was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Upkeep {
    /// The last die that took the place of one that had failed.
    pub rebuild: Option<Rebuild>,
    /// The last moving of pages to rows without the dies that have failed.
    pub redundancy: Option<Redundancy>,
    /// The last scrub.
    pub scrub: Option<Scrub>,
    /// The last purge.
    pub purge: Option<Purge>,
}

/// Everything that was stored, being erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purge {
    /// Whether it is still under way.
    pub is_running: bool,
    /// Superblocks that were erased.
    pub superblocks_done: u64,
    /// Superblocks of the drive.
    pub superblocks: u64,
    /// Why it ended before its time.
    pub failure: Option<String>,
}

/// Pages that are moved to rows without the dies that have failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redundancy {
    /// Whether it is still under way.
    pub is_running: bool,
    /// Pages that were gone through.
    pub pages_done: u64,
    /// Pages of the drive.
    pub pages: u64,
    /// Why a further die may not fail.
    pub failure: Option<String>,
}

/// A die that is being filled with what belongs there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// Its index.
    pub die: u32,
    /// Whether it is still under way.
    pub is_running: bool,
    /// Rows that were gone through.
    pub rows_done: u64,
    /// Rows of the drive.
    pub rows: u64,
    /// Units that the rest of their rows did not give back.
    #[serde(default)]
    pub units_lost: u64,
    /// Why it ended before its time.
    pub failure: Option<String>,
}

/// A reading of everything that is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrub {
    /// Whether it is still under way.
    pub is_running: bool,
    /// Rows that were gone through.
    pub rows_done: u64,
    /// Rows of the drive.
    pub rows: u64,
    /// Units that were not as they had been programmed.
    pub units_bad: u64,
    /// How many of them were written again.
    pub units_restored: u64,
    /// How many of them the rest of their row does not give back, and hold no page any more that
    /// can be read.
    #[serde(default)]
    pub units_vacated: u64,
    /// Pages that were moved from rows with such units.
    #[serde(default)]
    pub pages_moved: u64,
    /// Pages that cannot be read any more.
    #[serde(default)]
    pub pages_lost: u64,
    /// First sectors of those pages, at most 1000 of them.
    pub lost_lbas: Vec<u64>,
    /// Why it ended before its time.
    pub failure: Option<String>,
}
