//! Status of background work on a drive: rebuild, restoring redundancy, scrub and purge.

use serde::{Deserialize, Serialize};

/// Scrubs that ended and whose results are kept: on a small drive several end between two looks.
const LATELY_MAX: usize = 4;

/// Work on what is stored, beside what clients ask for, since the drive was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MaintenanceStatus {
    /// The last die that took the place of one that had failed.
    pub rebuild: Option<Rebuild>,
    /// The last moving of pages to rows without the dies that have failed.
    pub redundancy: Option<Redundancy>,
    /// The last scrub.
    pub scrub: Option<Scrub>,
    /// All scrubs that have ended.
    pub scrubs: Scrubs,
    /// The last purge.
    pub purge: Option<Purge>,
    /// Hot spares that did not take the place of a failed die, with the last reason of each.
    pub spare_failures: Vec<SpareFailure>,
    /// Batches of the journal that a die lacked when the volume was opened, though they had been
    /// synced; 0 once a scrub has read everything since.
    pub batches_lacking: u64,
    /// Units that rebuilds could not give back; 0 once a scrub has read everything since.
    pub units_lost: u64,
    /// Units that were written again since a read had found damage in them.
    pub units_mended: u64,
    /// True if a purge or a format was begun and has not ended, in whatever session.
    pub is_purge_unfinished: bool,
    /// Media that may hold data which no purge has reached, in whatever session: of dies that were
    /// replaced or had failed when the last purge began, and of hot spares that were removed.
    #[serde(default)]
    pub unerased_media: Vec<NotErased>,
    /// Listed dies that were not used when the drive was opened, with why.
    pub absent_dies: Vec<AbsentDie>,
    /// The start from an earlier state that an operator has allowed, until everything was written
    /// anew, or erased.
    pub stale_start: Option<StaleStart>,
    /// Damage that was found, in whatever session, the last of it at the end; at most 100 places.
    pub damage: Vec<Damage>,
    /// Reason why the folder does not say what the dies hold now; none if it does.
    pub witness_failure: Option<String>,
    /// Places of dies that are not used again, at most 100.
    pub bad_places: Vec<BadPlace>,
}

/// A place of a die where its medium failed: its erase block of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadPlace {
    /// Index of the die.
    pub die: u32,
    /// Superblock.
    pub superblock: u32,
    /// Offset on the die.
    pub offset_bytes: u64,
    /// Length there.
    pub length_bytes: u64,
    /// Time from which on it counts as bad, in seconds since 1970.
    pub since_unix_s: u64,
    /// Way in which the medium failed.
    pub cause: BadPlaceCause,
    /// Findings so far.
    pub times: u64,
    /// State of its superblock; none where that is not known before the volume is opened.
    pub state: Option<BadPlaceState>,
}

/// Way in which the medium failed at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadPlaceCause {
    /// Reads failed, while the die responded.
    ReadError,
    /// A unit that had been written again since it had rotted did so once more.
    Rot,
}

/// State of a superblock with a bad place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadPlaceState {
    /// Nothing is written there; what it holds is moved.
    Draining,
    /// Not used again, and empty.
    Retired,
    /// Used as any other, since too few would be left without it.
    InUse,
}

/// Damage that was found, and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Time at which it was found, in seconds since 1970.
    pub at_unix_s: u64,
    /// Index of the die; none of a page, which nothing gives back.
    pub die: Option<u32>,
    /// Row of the drive; none of a page.
    pub row: Option<u32>,
    /// First sector of the page; none of a unit.
    pub lba: Option<u64>,
    /// Structure of which a copy was damaged; none of data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<CopiedStructure>,
    /// Operation that found it.
    pub found_by: FoundBy,
    /// Fate of the data.
    pub outcome: DamageOutcome,
}

/// Structure of which a drive keeps copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopiedStructure {
    /// The header of a die.
    Header,
    /// The newest checkpoint of the map.
    Checkpoint,
    /// A batch of the journal since.
    Journal,
}

/// Operation that finds damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundBy {
    /// A read of a client, or of relocation.
    Read,
    /// A scrub.
    Scrub,
}

/// Fate of damaged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DamageOutcome {
    /// The unit was written again from the rest of its row.
    Rewritten,
    /// The unit is as it was: the rest of its row does not give it back, or repair was not asked
    /// for.
    Left,
    /// The page is lost.
    Lost,
}

/// Start of a volume without what its last session had written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleStart {
    /// Time at which it was allowed, in seconds since 1970.
    pub at_unix_s: u64,
    /// Session, a count of openings, up to which something may be missing.
    pub session: u64,
    /// Pages that were not written since; unknown while nothing serves the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_older: Option<u64>,
}

/// A die that a folder lists and that was not used when the drive was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbsentDie {
    /// Index of the die.
    pub die: u32,
    /// Cause by its kind.
    pub cause: AbsenceCause,
    /// Description of the cause, to follow the name of the die: `is missing: nothing is at /d1`.
    pub reason: String,
}

/// Kind of cause why a die was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbsenceCause {
    /// Nothing is at its path.
    NotFound,
    /// A die of another volume is there.
    OtherVolume,
    /// The medium cannot be opened, or is nothing that a die can be.
    NotOpened,
    /// The medium holds an earlier state of the volume, or not all of one.
    Outdated,
    /// The rebuild of the die was cut off.
    RebuildInterrupted,
}

impl AbsentDie {
    /// The cause without the die, as part of a sentence.
    pub fn told(&self) -> String {
        self.reason.split_once(": ").map_or(&*self.reason, |(_, told)| told).to_owned()
    }

    /// True if the die itself may be whole: it was not looked at.
    pub fn may_be_whole(&self) -> bool {
        use AbsenceCause::{NotFound, NotOpened, OtherVolume};
        matches!(self.cause, NotFound | OtherVolume | NotOpened)
    }
}

/// A hot spare that did not take the place of a die that had failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpareFailure {
    /// Path of the file or block device.
    pub path: String,
    /// Index of the die.
    pub die: u32,
    /// Error of the attempt.
    pub reason: String,
    /// True if it is still a hot spare, and is tried again; false if it was given up.
    pub is_kept: bool,
}

/// Erasure of everything that was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purge {
    /// True while the purge runs.
    pub is_running: bool,
    /// Superblocks that were erased.
    pub superblocks_done: u64,
    /// Superblocks of the drive.
    pub superblocks: u64,
    /// Reason why it ended early; none if it did not.
    pub failure: Option<String>,
    /// Media of dies that had failed, or failed before the end, and so were not erased, and hot
    /// spares that could not be.
    #[serde(default)]
    pub not_erased: Vec<NotErased>,
}

/// A medium that a purge did not erase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotErased {
    /// Number of the die that it was; none of a hot spare.
    pub die: Option<u32>,
    /// Its path; empty if it had failed before the volume was opened, or has none.
    pub path: String,
    /// Reason why a hot spare, a bad place of the die, or a key in its headers was not erased; none
    /// of a die that had failed.
    #[serde(default)]
    pub reason: Option<String>,
}

impl NotErased {
    /// The medium at `path` of a die that failed.
    pub fn die(die: u32, path: String) -> Self {
        Self { die: Some(die), path, reason: None }
    }
}

/// Pages that are moved to rows without the dies that have failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redundancy {
    /// True while the work runs.
    pub is_running: bool,
    /// Pages that were gone through.
    pub pages_done: u64,
    /// Pages of the drive.
    pub pages: u64,
    /// Reason why redundancy was not restored; none if it was, or the work still runs.
    pub failure: Option<String>,
}

/// A die that is being filled with what belongs there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// Its index.
    pub die: u32,
    /// True while the rebuild runs.
    pub is_running: bool,
    /// Rows that were gone through.
    pub rows_done: u64,
    /// Rows of the drive.
    pub rows: u64,
    /// Units that the rest of their rows did not give back.
    #[serde(default)]
    pub units_lost: u64,
    /// Units that were there, since the die had been away, and were not written.
    #[serde(default)]
    pub units_held: u64,
    /// Reason why it ended early; none if it did not.
    pub failure: Option<String>,
}

/// A reading of everything that is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrub {
    /// True while the scrub runs.
    pub is_running: bool,
    /// Rows that were gone through.
    pub rows_done: u64,
    /// Rows of the drive.
    pub rows: u64,
    /// Corrupt units that were found.
    pub units_bad: u64,
    /// Bad units that were rewritten.
    pub units_restored: u64,
    /// Bad units that the rest of their row does not restore, and that hold no page that can be
    /// read any more.
    #[serde(default)]
    pub units_vacated: u64,
    /// Pages that were moved from rows with such units.
    #[serde(default)]
    pub pages_moved: u64,
    /// Copies of headers, checkpoint and journal that were not whole.
    #[serde(default)]
    pub copies_bad: u64,
    /// Bad copies that were written again.
    #[serde(default)]
    pub copies_restored: u64,
    /// Pages that cannot be read any more.
    #[serde(default)]
    pub pages_lost: u64,
    /// First sectors of those pages, at most 1000 of them.
    pub lost_lbas: Vec<u64>,
    /// Bytes of the dies that rows which hold data take.
    #[serde(default)]
    pub bytes_read: u64,
    /// Index of the die on which reads had found too much damage, so that the volume began the
    /// scrub by itself; none of another one.
    #[serde(default)]
    pub for_die: Option<u32>,
    /// Reason why it ended early; none if it did not.
    pub failure: Option<String>,
    /// True if the operator had it end, which is no failure of the drive.
    #[serde(default)]
    pub was_stopped: bool,
}

impl Scrub {
    /// Bad copies that are left as they were.
    pub fn copies_left(&self) -> u64 {
        self.copies_bad.saturating_sub(self.copies_restored)
    }
}

/// Totals of the scrubs that have ended since the drive was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scrubs {
    /// Scrubs that ended, whatever they found.
    pub ended: u64,
    /// Scrubs that went through everything.
    pub completed: u64,
    /// Scrubs that the volume began by itself, since reads had found too much damage on a die.
    pub for_damage: u64,
    /// Corrupt units that were found.
    pub units_bad: u64,
    /// Bad units that were rewritten.
    pub units_restored: u64,
    /// Copies of headers, checkpoint and journal that were not whole.
    pub copies_bad: u64,
    /// Bad copies that were written again.
    pub copies_restored: u64,
    /// Units that the last one to go through everything left as they were, since the rest of their
    /// rows did not give them back.
    pub units_left: u64,
    /// Copies of headers, checkpoint and journal that the last one to go through everything could
    /// not write again.
    pub copies_left: u64,
    /// Error of the last one that was not stopped; none if it went through everything.
    pub failure: Option<String>,
    /// Pages that the last one to go through everything found lost.
    pub pages_lost: u64,
    /// The last four to end, the newest last, whatever has begun since; for the process alone that
    /// has the drive open.
    #[serde(skip)]
    pub lately: Vec<Scrub>,
    /// First sectors of those pages, at most 1000 of them.
    #[serde(skip)]
    lost_lbas: Vec<u64>,
    /// Dies that had failed or did not respond when the last one failed.
    #[serde(skip)]
    pub away: Vec<usize>,
}

impl Scrubs {
    /// Forgets that the last scrub failed if a die was away then in whose place a rebuild put
    /// another one: it read every row.
    pub fn forgive(&mut self, rebuilt: usize) {
        if self.away.contains(&rebuilt) {
            (self.failure, self.away) = (None, Vec::new());
        }
    }
}

impl MaintenanceStatus {
    /// Takes note of the end of the scrub that is under way, and why it ended before its time.
    pub fn end_scrub(&mut self, failure: Option<String>, was_stopped: bool) {
        let Some(scrub) = &mut self.scrub else { return };
        let scrubs = &mut self.scrubs;
        scrub.is_running = false;
        scrubs.ended += 1;
        scrubs.completed += u64::from(failure.is_none());
        scrubs.units_bad += scrub.units_bad;
        scrubs.units_restored += scrub.units_restored;
        scrubs.copies_bad += scrub.copies_bad;
        scrubs.copies_restored += scrub.copies_restored;
        // One that ended before its time says nothing of what it did not come to.
        if failure.is_none() || scrub.pages_lost > scrubs.pages_lost {
            (scrubs.pages_lost, scrubs.lost_lbas) = (scrub.pages_lost, scrub.lost_lbas.clone());
        }
        // Units that hold nothing any more are left to be written anew.
        let left = scrub.units_bad.saturating_sub(scrub.units_restored + scrub.units_vacated);
        if failure.is_none() || left > scrubs.units_left {
            scrubs.units_left = left;
        }
        if failure.is_none() || scrub.copies_left() > scrubs.copies_left {
            scrubs.copies_left = scrub.copies_left();
        }
        if failure.is_none() {
            (self.batches_lacking, self.units_lost) = (0, 0);
        }
        if !was_stopped {
            scrubs.failure.clone_from(&failure);
        }
        (scrub.failure, scrub.was_stopped) = (failure, was_stopped);
        if scrubs.lately.len() == LATELY_MAX {
            scrubs.lately.remove(0);
        }
        scrubs.lately.push(scrub.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrub(pages_lost: u64, units_bad: u64) -> Scrub {
        let lost_lbas = (0..pages_lost).map(|page| page * 8).collect();
        Scrub { is_running: true, pages_lost, units_bad, lost_lbas, ..Scrub::default() }
    }

    #[test]
    fn copies_that_a_scrub_could_not_write_again_are_known_until_one_did() {
        let mut maintenance = MaintenanceStatus::default();
        let mut ended = |copies_bad, copies_restored| {
            maintenance.scrub = Some(Scrub { copies_bad, copies_restored, ..scrub(0, 0) });
            maintenance.end_scrub(None, false);
            maintenance.scrubs.copies_left
        };
        assert_eq!((ended(3, 1), ended(2, 2)), (2, 0));
    }

    #[test]
    fn what_a_scrub_found_lost_is_known_until_another_one_has_read_everything() {
        let mut maintenance =
            MaintenanceStatus { scrub: Some(scrub(22, 5)), ..MaintenanceStatus::default() };
        maintenance.end_scrub(None, false);
        let known = |maintenance: &MaintenanceStatus| {
            (maintenance.scrubs.pages_lost, maintenance.scrubs.units_left)
        };
        assert_eq!(known(&maintenance), (22, 5));
        maintenance.scrub = Some(scrub(0, 0));
        assert_eq!(known(&maintenance), (22, 5), "the next one has not come to them yet");
        let last = maintenance.scrubs.lately.last();
        assert_eq!(last.map(|last| (last.pages_lost, last.is_running)), Some((22, false)));
        maintenance.end_scrub(Some("it was stopped".to_owned()), true);
        assert_eq!(known(&maintenance), (22, 5));
        maintenance.scrub = Some(scrub(0, 0));
        maintenance.end_scrub(None, false);
        assert_eq!(known(&maintenance), (0, 0));
        assert_eq!(
            (maintenance.scrubs.ended, maintenance.scrubs.completed, maintenance.scrubs.units_left),
            (3, 2, 0)
        );
        let lately = |maintenance: &MaintenanceStatus| maintenance.scrubs.lately.len();
        assert_eq!(lately(&maintenance), 3);
        for _ in 0..3 {
            maintenance.scrub = Some(scrub(0, 0));
            maintenance.end_scrub(None, false);
        }
        assert_eq!(lately(&maintenance), LATELY_MAX, "no more are kept");
    }
}
