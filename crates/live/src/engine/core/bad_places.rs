//! Places of dies where the medium proved bad: erase blocks, of which the folder keeps a list, so
//! that nothing is written there again.
//!
//! ```text
//!   a read fails twice, and the die responds ──────────────────────┐
//!   a unit rots ─► written again, and watched ─► it rots once more ─┴─► bad place
//! ```
//!
//! A die that failed, or does not respond, has no bad places by that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ftl::{Debt, Ftl, SuperblockId};
use serde::{Deserialize, Serialize};
use status::{BadPlaceCause, BadPlaceState};

use crate::format::layout::{Layout, Shape};
use crate::format::row::RowEpoch;
use crate::lock::lock;

/// Units that are watched at most; rot of more of them is written again and not remembered.
const WATCHED_MAX: usize = 1000;

/// An erase block of a die that is bad, or that is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BadPlace {
    pub(crate) die: u32,
    /// Superblock whose rows have units there.
    pub(crate) superblock: u32,
    /// Time at which it was found first, in seconds since 1970.
    pub(crate) since_unix_s: u64,
    pub(crate) cause: BadPlaceCause,
    /// Findings so far.
    pub(crate) times: u64,
    /// Number by which it became bad, ascending, whatever the clock says; 0: in a list that lacks
    /// it, or not bad yet.
    #[serde(default)]
    pub(crate) number: u64,
    /// Rows whose units were written again since they had rotted; empty once the place is bad.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rotten_rows: Vec<u32>,
}

impl BadPlace {
    const fn is_bad(&self) -> bool {
        self.rotten_rows.is_empty()
    }
}

/// Fault of a unit that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Reads of it failed, and the die responds.
    ReadError,
    /// Other bytes were there than had been written; those were written again, or not.
    Rot { is_rewritten: bool },
}

/// Bad places of a drive, by die and superblock.
#[derive(Debug, Default)]
pub(crate) struct BadPlaces {
    places: Mutex<BTreeMap<(u32, u32), BadPlace>>,
    /// True if the folder lacks the last change.
    is_untold: AtomicBool,
    /// Rows, by their lives, of which something cannot be moved.
    stuck: Mutex<BTreeSet<(u32, u64)>>,
}

impl BadPlaces {
    /// Listed places, as far as a drive of this shape can have them.
    pub(crate) fn of(listed: &[BadPlace], shape: &Shape) -> Self {
        let can_be = |it: &&BadPlace| it.die < shape.dies && it.superblock < shape.superblocks;
        let places = listed.iter().filter(can_be);
        let places = places.map(|it| ((it.die, it.superblock), it.clone())).collect();
        Self { places: Mutex::new(places), ..Self::default() }
    }

    /// Notes what was found of the unit of a row on a die, at a time in seconds since 1970.
    pub(crate) fn note(&self, die: u32, (superblock, row): (u32, u32), found: Finding, now: u64) {
        let mut places = lock(&self.places);
        let watched: usize = places.values().map(|it| it.rotten_rows.len()).sum();
        let known = places.get(&(die, superblock));
        let is_again = known.is_some_and(|it| it.is_bad() || it.rotten_rows.contains(&row));
        let cause = match found {
            Finding::ReadError => BadPlaceCause::ReadError,
            Finding::Rot { is_rewritten } if is_again || is_rewritten && watched < WATCHED_MAX => {
                BadPlaceCause::Rot
            }
            Finding::Rot { .. } => return,
        };
        let next = places.values().map(|it| it.number).max().unwrap_or(0) + 1;
        let (times, number, rotten_rows) = (0, 0, Vec::new());
        let new =
            BadPlace { die, superblock, since_unix_s: now, cause, times, number, rotten_rows };
        let place = places.entry((die, superblock)).or_insert(new);
        place.times += 1;
        if is_again || cause == BadPlaceCause::ReadError {
            if place.times == 1 || !place.is_bad() {
                (place.cause, place.since_unix_s, place.number) = (cause, now, next);
            }
            place.rotten_rows.clear();
        } else {
            place.rotten_rows.push(row);
        }
        self.is_untold.store(true, Ordering::Release);
    }

    /// True if the medium of a die failed in its erase block of a superblock.
    pub(crate) fn is_bad(&self, die: u32, superblock: u32) -> bool {
        let places = lock(&self.places);
        places.get(&(die, superblock)).is_some_and(BadPlace::is_bad)
    }

    /// True if there is nothing to be done about any place.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.places).is_empty() && !self.is_untold.load(Ordering::Acquire)
    }

    /// Superblocks with bad places, those that were found first at the beginning: where not all can
    /// be done without, it is always the same ones.
    pub(crate) fn superblocks(&self) -> Vec<SuperblockId> {
        let places = lock(&self.places);
        let mut bad: Vec<&BadPlace> = places.values().filter(|it| it.is_bad()).collect();
        bad.sort_by_key(|it| (it.number, it.since_unix_s, it.superblock));
        let mut once = BTreeSet::new();
        let superblocks = bad.iter().map(|it| SuperblockId(it.superblock));
        superblocks.filter(|it| once.insert(*it)).collect()
    }

    /// Forgets the places of a die that gets another medium; returns the superblocks that have none
    /// any more.
    pub(crate) fn forget_die(&self, die: u32) -> Vec<SuperblockId> {
        let mut places = lock(&self.places);
        let had: BTreeSet<u32> =
            places.values().filter(|it| it.die == die).map(|it| it.superblock).collect();
        if !had.is_empty() {
            places.retain(|_, it| it.die != die);
            self.is_untold.store(true, Ordering::Release);
        }
        let is_left = |id: &u32| places.values().any(|it| it.superblock == *id && it.is_bad());
        had.into_iter().filter(|id| !is_left(id)).map(SuperblockId).collect()
    }

    /// The whole list, if the folder lacks the last change.
    pub(crate) fn take_untold(&self) -> Option<Vec<BadPlace>> {
        let places = lock(&self.places);
        let is_untold = self.is_untold.swap(false, Ordering::AcqRel);
        is_untold.then(|| places.values().cloned().collect())
    }

    /// Remembers that something of a row cannot be moved, so that it is not tried again and again.
    pub(crate) fn note_stuck(&self, row: u32, life: RowEpoch) {
        lock(&self.stuck).insert((row, life.seq));
    }

    pub(crate) fn is_stuck(&self, row: u32, life: RowEpoch) -> bool {
        lock(&self.stuck).contains(&(row, life.seq))
    }

    /// The bad places as the status has them.
    pub(crate) fn describe(
        &self,
        layout: &Layout,
        ftl: Option<&Ftl<Debt>>,
    ) -> Vec<status::BadPlace> {
        let state = |id: SuperblockId, ftl: &Ftl<Debt>| match ftl.superblock(id).state {
            ftl::SuperblockState::Bad => BadPlaceState::Retired,
            _ if ftl.superblock(id).is_condemned => BadPlaceState::Draining,
            _ => BadPlaceState::InUse,
        };
        let describe = |it: &BadPlace| {
            let rows = layout.rows_of(it.superblock);
            let offset_bytes = layout.unit_from(rows.start);
            status::BadPlace {
                die: it.die,
                superblock: it.superblock,
                offset_bytes,
                length_bytes: layout.unit_from(rows.end) - offset_bytes,
                since_unix_s: it.since_unix_s,
                cause: it.cause,
                times: it.times,
                state: ftl.map(|ftl| state(SuperblockId(it.superblock), ftl)),
            }
        };
        lock(&self.places).values().filter(|it| it.is_bad()).map(describe).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REWRITTEN: Finding = Finding::Rot { is_rewritten: true };

    #[test]
    fn rot_is_bad_once_a_unit_rots_that_had_been_written_again() {
        let places = BadPlaces::default();
        places.note(1, (3, 12), Finding::Rot { is_rewritten: false }, 7);
        assert!(places.is_empty(), "it may be the same rot again and again");
        places.note(1, (3, 12), REWRITTEN, 7);
        places.note(1, (3, 13), REWRITTEN, 8);
        places.note(2, (3, 12), REWRITTEN, 9);
        assert!(!places.is_bad(1, 3) && places.superblocks().is_empty(), "once each");
        assert_eq!(places.take_untold().unwrap().len(), 2);
        places.note(1, (3, 12), Finding::Rot { is_rewritten: false }, 10);
        assert!(places.is_bad(1, 3) && !places.is_bad(2, 3));
        let told = places.take_untold().unwrap();
        assert_eq!((told[0].times, told[0].since_unix_s), (3, 10));
        assert_eq!(places.take_untold(), None);
        assert_eq!(places.forget_die(2), [], "die 1 has it still");
        assert_eq!(places.forget_die(1), [SuperblockId(3)]);
        assert_eq!(places.take_untold().unwrap(), []);
    }

    #[test]
    fn a_read_error_is_enough_and_the_oldest_place_comes_first() {
        let places = BadPlaces::default();
        places.note(0, (9, 40), Finding::ReadError, 5);
        places.note(0, (2, 8), REWRITTEN, 4);
        places.note(0, (2, 9), Finding::ReadError, 6);
        places.note(1, (2, 9), Finding::ReadError, 7);
        // The clock was set back.
        places.note(0, (1, 4), Finding::ReadError, 3);
        assert_eq!(places.superblocks(), [9, 2, 1].map(SuperblockId));
        let again =
            BadPlaces::of(&places.take_untold().unwrap(), &crate::engine::drive::SMALL_SHAPE);
        assert_eq!(again.superblocks(), [9, 2, 1].map(SuperblockId));
    }

    #[test]
    fn no_more_units_are_watched_than_the_folder_can_keep() {
        let places = BadPlaces::default();
        (0..2000).for_each(|row| places.note(0, (row / 4, row), REWRITTEN, 5));
        let watched = places.take_untold().unwrap();
        assert_eq!(watched.iter().map(|it| it.rotten_rows.len()).sum::<usize>(), WATCHED_MAX);
    }
}
