//! The copies of what says where everything is: headers, the newest checkpoint, and the journal
//! since.
//!
//! Nothing reads a second copy while the first one is whole. So a scrub reads and verifies both,
//! and has whatever is damaged written again from memory: headers at once, checkpoint and journal
//! by two checkpoints, after which neither slot and no batch that is needed has a damaged copy.

use device::DeviceError;
use status::{CopiedStructure, Damage, DamageOutcome, FoundBy};

use super::ScrubResult;
use crate::engine::dies::header_copies::header_copy;
use crate::engine::dies::{die_number, now_unix_s};
use crate::engine::drive::Drive;
use crate::engine::log::checkpoint;
use crate::engine::log::replay::{self, Reading};
use crate::engine::store::Store;
use crate::format::die_set::DieSet;
use crate::format::header::Header;
use crate::format::layout::{HEADER_BYTES, REPLICAS};
use crate::mutants::{self, Mutant};

impl Drive {
    /// Verifies every copy of the headers, of the newest checkpoint and of the batches since, and
    /// has those that are not whole written again where `repair` is set.
    pub(super) fn scrub_copies(
        &self,
        repair: bool,
        found: &mut ScrubResult,
    ) -> Result<(), DeviceError> {
        if mutants::is(Mutant::CopiesUnscrubbed) {
            return Ok(());
        }
        // A header that a die that failed just now lacks is no damage.
        self.keep_header()?;
        let headers = || self.with_header(|header| bad_headers(self.store(), header));
        self.mend_copies((headers(), repair), found, || {
            self.rewrite_header()?;
            Ok(headers())
        })?;
        let saved = || self.with_checkpoint(|number, end| bad_copies(self.store(), number, end));
        self.mend_copies((saved()?, repair), found, || {
            // One for each slot.
            self.checkpoint()?;
            self.checkpoint()?;
            saved()
        })
    }

    /// Notes copies that were found damaged, and has `write` write them again where that is asked
    /// for, which returns those that are damaged still.
    fn mend_copies(
        &self,
        (bad, repair): (Vec<BadCopy>, bool),
        found: &mut ScrubResult,
        write: impl FnOnce() -> Result<Vec<BadCopy>, DeviceError>,
    ) -> Result<(), DeviceError> {
        if bad.is_empty() {
            return Ok(());
        }
        self.store().dies.check_responsive()?;
        let left = if repair { write()? } else { bad.clone() };
        found.copies_bad += bad.len() as u64;
        found.copies_restored += bad.len().saturating_sub(left.len()) as u64;
        let mut left = left;
        for BadCopy { copy_of, die } in bad {
            let place = left.iter().position(|it| *it == BadCopy { copy_of, die });
            let still = place.map(|place| left.swap_remove(place));
            let outcome = still.map_or(DamageOutcome::Rewritten, |_| DamageOutcome::Left);
            let (at_unix_s, found_by) = (now_unix_s(), FoundBy::Scrub);
            let (die, copy_of) = (die.map(die_number), Some(copy_of));
            let (row, lba) = (None, None);
            found.note(Damage { at_unix_s, die, row, lba, copy_of, found_by, outcome });
        }
        Ok(())
    }
}

/// A copy that is not whole, and the die that should have it, where one is to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BadCopy {
    copy_of: CopiedStructure,
    die: Option<usize>,
}

/// Copies of the newest header on dies that hold all that they should, and are not what it says.
fn bad_headers(store: &Store, newest: &Header) -> Vec<BadCopy> {
    let incomplete = store.dies.incomplete();
    let is_right = |die: usize, at: u64, oldest: u64| {
        let read = |bytes: &mut [u8]| store.dies.read(die, at, bytes);
        let header = header_copy(read).ok().flatten();
        header.is_some_and(|it| {
            let is_newest = (oldest..=newest.version).contains(&it.version);
            (it.drive, it.die as usize) == (store.drive, die) && is_newest
        })
    };
    let end = store.layout.end_header_from();
    let copies = |die: usize| {
        let front = [0, HEADER_BYTES].map(|at| (at, newest.version - 1));
        let has_end = newest.has_end_copy() && store.has_end(die);
        front.into_iter().chain(has_end.then_some((end, newest.version)))
    };
    let dies = (0..store.dies.count()).filter(|die| !incomplete.has(*die));
    let bad = dies.flat_map(|die| {
        let bad = copies(die).filter(move |(at, oldest)| !is_right(die, *at, *oldest));
        bad.map(move |_| BadCopy { copy_of: CopiedStructure::Header, die: Some(die) })
    });
    bad.collect()
}

/// Copies of the newest checkpoint, by its number, and of the batches between it and `end`, the
/// number of the next one, that are not whole.
fn bad_copies(store: &Store, number: u64, end: u64) -> Vec<BadCopy> {
    let missing = store.dies.lost().count() as usize;
    let wanted = REPLICAS.saturating_sub(missing);
    let copies = |copy_of, count: usize| vec![BadCopy { copy_of, die: None }; count];
    let readers = checkpoint::find(store);
    let Some(newest) = readers.into_iter().find(|it| it.summary.number == number) else {
        return copies(CopiedStructure::Checkpoint, wanted);
    };
    let whole = newest.replicas.iter().filter(|it| newest.has_whole(**it)).map(|it| it.die);
    let whole: Vec<usize> = whole.collect();
    let count = if store.dies.has_several_complete() {
        // Two copies on one die, taken while it was alone, go with that die.
        whole.iter().copied().collect::<DieSet>().count() as usize
    } else {
        whole.len()
    };
    let mut bad = copies(CopiedStructure::Checkpoint, wanted.saturating_sub(count));
    let lacking = store.checkpoint_replicas(number).into_iter().map(|it| it.die);
    let lacking = lacking.filter(|die| !whole.contains(die));
    bad.iter_mut().zip(lacking).for_each(|(bad, die)| bad.die = Some(die));
    let from = newest.summary.journal;
    let replay = replay::read(Reading { store, from, is_thorough: true });
    let is_known = |number: u64| number < end;
    let thin = replay.thin.iter().filter(|it| is_known(it.number));
    bad.extend(thin.map(|it| BadCopy { copy_of: CopiedStructure::Journal, die: Some(it.die) }));
    let alone = replay.on_one_die.iter().filter(|number| is_known(**number)).count();
    // Of those that no copy has whole both are damaged.
    let lost = usize::try_from(end.saturating_sub(replay.end.number)).expect("batches in memory");
    bad.extend(copies(CopiedStructure::Journal, alone + lost * REPLICAS));
    bad
}
