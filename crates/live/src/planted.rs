//! Bugs that tests plant, to see that the simulation finds them.
//!
//! Outside of tests none is ever planted, and asking costs nothing.

/// A mistake that somebody could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A flush syncs nothing.
    FlushDropped,
    /// Extents are taken for right without looking at their checksums.
    ChecksumSkipped,
    /// The journal says that rows are durable before they are.
    JournalBeforeRows,
    /// Erased superblocks are written over before what superseded them is durable.
    ReleasedEarly,
    /// Trims are not journaled.
    TrimForgotten,
    /// What happened is replayed in the order in which it is found.
    OrderIgnored,
    /// The journal does not say how a payload was compressed.
    CodecForgotten,
    /// Recovery takes every extent for a short one.
    SizeForgotten,
    /// Superblocks that a closed drive's checkpoint counts are written over unreleased.
    NotHeldBack,
    /// A die is done without before what lies on rows that lack it has been moved.
    DoneWithoutEarly,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Whether a bug is planted in this thread.
#[cfg(test)]
pub(crate) fn is(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether a bug is planted: never.
#[cfg(not(test))]
#[inline]
pub(crate) const fn is(_: Bug) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::simulate;

    /// Seeds of 2000 operations within which the simulation finds each bug.
    const SEEDS: u64 = 40;

    fn is_found(bug: Bug) -> bool {
        PLANTED.set(Some(bug));
        let found = (0..SEEDS).any(|seed| {
            // A broken promise, or an invariant that stops the drive.
            std::panic::catch_unwind(|| simulate(seed, 2000).is_err()).unwrap_or(true)
        });
        PLANTED.set(None);
        found
    }

    #[test]
    fn a_flush_that_syncs_nothing_is_found() {
        assert!(is_found(Bug::FlushDropped));
    }

    #[test]
    fn checksums_that_nobody_looks_at_are_found() {
        assert!(is_found(Bug::ChecksumSkipped));
    }

    #[test]
    fn a_journal_ahead_of_its_rows_is_found() {
        assert!(is_found(Bug::JournalBeforeRows));
    }

    #[test]
    fn superblocks_released_early_are_found() {
        assert!(is_found(Bug::ReleasedEarly));
    }

    #[test]
    fn a_forgotten_trim_is_found() {
        assert!(is_found(Bug::TrimForgotten));
    }

    #[test]
    fn events_out_of_order_are_found() {
        assert!(is_found(Bug::OrderIgnored));
    }

    #[test]
    fn a_forgotten_codec_is_found() {
        assert!(is_found(Bug::CodecForgotten));
    }

    #[test]
    fn a_forgotten_size_is_found() {
        assert!(is_found(Bug::SizeForgotten));
    }

    #[test]
    fn superblocks_not_held_back_are_found() {
        assert!(is_found(Bug::NotHeldBack));
    }

    #[test]
    fn a_die_done_without_too_early_is_found() {
        assert!(is_found(Bug::DoneWithoutEarly));
    }
}
