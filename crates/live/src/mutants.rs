//! Mutants: mistakes that tests switch on, to see that the simulation finds each of them.
//!
//! Outside of tests none is ever on, and asking costs nothing.

/// A mistake that somebody could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A flush syncs nothing.
    FlushDropped,
    /// Extents are taken for right without looking at their checksums.
    ChecksumSkipped,
    /// The journal says that rows are durable before they are.
    JournalBeforeRows,
    /// Erased superblocks are written over before what superseded them is durable.
    ReleasedEarly,
    /// The same where the journal lists completed rows, but not those that are open.
    ReleasedUnfinished,
    /// Trims are not journaled.
    TrimForgotten,
    /// Events are replayed in the order in which they are found.
    OrderIgnored,
    /// The journal does not say how a payload was compressed.
    CodecForgotten,
    /// Recovery takes every extent for a short one.
    SizeForgotten,
    /// Only one copy of a die's header is changed.
    OneHeaderCopy,
    /// Batches do not list the rows that they make durable.
    RowsUnlisted,
    /// The end of the journal is where a batch is not whole, whatever follows.
    LaterBatchesIgnored,
    /// An older checkpoint is taken, though the journal does not reach from it to the newest.
    OlderCheckpoint,
    /// Dies that were told less than others count as they are.
    StaleDiesTaken,
    /// A die is removed before what lies on rows that have a unit on it has been moved.
    RemovedEarly,
    /// Changes that are handed over to the system are not written.
    HandOverDropped,
    /// The next half of the window begins with what came since, not with all that it voids.
    HalfWithoutRest,
    /// A synced batch is written over those that it has not replaced yet.
    UnsyncedOverwritten,
    /// Recovery writes over superblocks that came back free, and no batch releases them.
    ReclaimedUnreleased,
    /// Of several batches at one position that were not synced, the first that is whole counts.
    EarlierCopyTaken,
}

#[cfg(test)]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// True if a mutant is on in this thread.
#[cfg(test)]
pub(crate) fn is(bug: Mutant) -> bool {
    ACTIVE.get() == Some(bug)
}

/// False: outside of tests no mutant is ever on.
#[cfg(not(test))]
#[inline]
pub(crate) const fn is(_: Mutant) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{
        PROTECTED, SINGLE, ScriptStep, WIDE, exhaust_kills, exhaust_kills_after,
        exhaust_stale_journals, simulate, simulate_damage,
    };
    use ScriptStep::{Flush, HandOver, Kill, Write};

    /// Seeds of 2000 operations within which the simulation finds each bug.
    const SEEDS: u64 = 40;
    /// The same where it takes damage of a certain kind.
    const SEEDS_DAMAGED: u64 = 160;

    fn is_found(bug: Mutant) -> bool {
        is_found_by(bug, SEEDS, |seed| simulate(seed, 2000).is_err())
    }

    /// True if it is found where dies are damaged whenever the power is off.
    fn is_found_by_damage(bug: Mutant) -> bool {
        is_found_by(bug, SEEDS_DAMAGED, |seed| simulate_damage(seed, 2000, 30).is_err())
    }

    fn is_found_by(bug: Mutant, seeds: u64, fails: fn(u64) -> bool) -> bool {
        ACTIVE.set(Some(bug));
        let found = (0..seeds).any(|seed| {
            // A broken promise counts, an assertion does not: what clients see is looked at apart
            // from what the engine asserts of itself. But where sizes are forgotten, more is placed
            // in a unit than fits, and its bounds stop the drive without any assertion.
            let is_stopped = bug == Mutant::SizeForgotten;
            std::panic::catch_unwind(|| fails(seed)).unwrap_or(is_stopped)
        });
        ACTIVE.set(None);
        found
    }

    #[test]
    fn a_flush_that_syncs_nothing_is_found() {
        assert!(is_found(Mutant::FlushDropped));
    }

    #[test]
    fn checksums_that_nobody_looks_at_are_found() {
        assert!(is_found(Mutant::ChecksumSkipped));
    }

    #[test]
    fn a_journal_ahead_of_its_rows_is_found() {
        assert!(is_found(Mutant::JournalBeforeRows));
    }

    #[test]
    fn superblocks_released_early_are_found() {
        assert!(is_found(Mutant::ReleasedEarly));
        assert!(is_found(Mutant::ReleasedUnfinished));
    }

    #[test]
    fn a_forgotten_trim_is_found() {
        assert!(is_found(Mutant::TrimForgotten));
    }

    #[test]
    fn events_out_of_order_are_found() {
        assert!(is_found(Mutant::OrderIgnored));
    }

    #[test]
    fn a_forgotten_codec_is_found() {
        assert!(is_found(Mutant::CodecForgotten));
    }

    #[test]
    fn a_forgotten_size_is_found() {
        assert!(is_found(Mutant::SizeForgotten));
    }

    #[test]
    fn a_single_copy_of_a_header_that_says_open_is_found() {
        assert!(is_found_by_damage(Mutant::OneHeaderCopy));
    }

    #[test]
    fn durable_rows_that_no_batch_lists_are_found() {
        assert!(is_found_by_damage(Mutant::RowsUnlisted));
    }

    #[test]
    fn batches_after_a_damaged_one_that_are_ignored_are_found() {
        assert!(is_found_by_damage(Mutant::LaterBatchesIgnored));
    }

    #[test]
    fn an_older_checkpoint_that_is_taken_in_silence_is_found() {
        assert!(is_found_by_damage(Mutant::OlderCheckpoint));
    }

    #[test]
    fn dies_rolled_back_that_count_as_they_are_are_found() {
        assert!(is_found_by_damage(Mutant::StaleDiesTaken));
    }

    #[test]
    fn changes_that_the_system_was_not_given_are_found() {
        assert!(is_found(Mutant::HandOverDropped));
    }

    /// True if it is found where a process that hands over each page is killed at every moment.
    fn is_found_by_kills(bug: Mutant) -> bool {
        let write = |page: u32| [Write(page % 6), HandOver];
        // A flush while the first half is in use, and one after the other half was begun.
        let mut script: Vec<ScriptStep> = (0..4).flat_map(write).collect();
        script.push(Flush);
        script.extend((0..12).flat_map(write));
        script.push(Flush);
        assert!(exhaust_kills(&WIDE, &script).is_ok(), "nothing is found without it");
        ACTIVE.set(Some(bug));
        let found = exhaust_kills(&WIDE, &script).is_err();
        ACTIVE.set(None);
        found
    }

    #[test]
    fn a_half_that_voids_more_than_it_repeats_is_found() {
        assert!(is_found_by_kills(Mutant::HalfWithoutRest));
    }

    #[test]
    fn a_batch_written_over_those_that_a_killed_server_needs_is_found() {
        assert!(is_found_by_kills(Mutant::UnsyncedOverwritten));
    }

    /// True if `look` finds a bug, and nothing without it.
    fn is_found_only_with(bug: Mutant, look: impl Fn() -> Result<u64, String>) -> bool {
        ACTIVE.set(Some(bug));
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&look));
        ACTIVE.set(None);
        // As above, an assertion does not count.
        let is_found = found.is_ok_and(|found| found.is_err());
        if is_found {
            let sound = look();
            assert!(sound.is_ok(), "found without it: {sound:?}");
        }
        is_found
    }

    /// Rows of a superblock are complete, and no batch lists them; others supersede all of them. A
    /// kill: recovery finds the superblock free, its first batch lists those rows, and the host
    /// fills it anew without a flush. After the next kill the old list must not hide the new rows.
    #[test]
    fn a_superblock_that_recovery_frees_and_does_not_release_is_found() {
        let fill = |pages: std::ops::Range<u32>| pages.flat_map(|page| [Write(page % 6), HandOver]);
        let script: Vec<ScriptStep> =
            fill(0..3).chain(fill(0..3)).chain([Kill]).chain(fill(0..12)).collect();
        assert!(is_found_only_with(Mutant::ReclaimedUnreleased, || exhaust_kills(
            &SINGLE, &script
        )));
    }

    /// The ring ends within the window: the first batch of a half lies before its end, and the one
    /// that begins the half anew is longer, and lies at its beginning.
    #[test]
    fn an_earlier_batch_before_the_end_of_the_ring_that_counts_is_found() {
        let script: Vec<ScriptStep> =
            (0..24).flat_map(|page| [Write(page % 6), HandOver]).collect();
        let is_found = (120..171).step_by(3).any(|flushes| {
            let before: Vec<ScriptStep> =
                (0..flushes).flat_map(|page| [Write(page % 6), Flush]).collect();
            is_found_only_with(Mutant::EarlierCopyTaken, || {
                exhaust_kills_after(&WIDE, &before, &script)
            })
        });
        assert!(is_found);
    }

    /// A die that lost the write of a later batch has an earlier one where that should be; the row
    /// is open at the end, so that nothing else has what the later one holds.
    #[test]
    fn an_earlier_copy_that_counts_beside_a_later_one_is_found() {
        let shape = crate::Shape { unit_pages: 4, journal_bytes: 1 << 20, ..PROTECTED };
        let script: Vec<ScriptStep> =
            (0..45).flat_map(|page| [Write(page % 6), HandOver]).collect();
        assert!(is_found_only_with(Mutant::EarlierCopyTaken, || exhaust_stale_journals(
            &shape, &script
        )));
    }

    #[test]
    fn a_die_removed_too_early_is_found() {
        assert!(is_found(Mutant::RemovedEarly));
    }
}
