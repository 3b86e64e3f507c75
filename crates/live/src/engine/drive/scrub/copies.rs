//! The copies of what says where everything is: headers, the newest checkpoint, and the journal
//! since.
//!
//! Nothing reads a second copy while the first one is whole. So a scrub reads and verifies both,
//! and has whatever is damaged written again from memory: headers at once, checkpoint and journal
//! by two checkpoints, after which neither slot and no batch that is needed has a damaged copy.

use device::DeviceError;

use super::ScrubResult;
use crate::engine::dies::header_copies::header_copy;
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
        let headers_bad = self.with_header(|header| bad_headers(self.store(), header));
        if headers_bad > 0 {
            self.store().dies.check_responsive()?;
        }
        found.copies_bad += headers_bad;
        if headers_bad > 0 && repair {
            self.rewrite_header()?;
            let left = self.with_header(|header| bad_headers(self.store(), header));
            found.copies_restored += headers_bad.saturating_sub(left);
        }
        let copies_bad =
            self.with_checkpoint(|number, end| bad_copies(self.store(), number, end))?;
        if copies_bad > 0 {
            self.store().dies.check_responsive()?;
        }
        found.copies_bad += copies_bad;
        if copies_bad > 0 && repair {
            // One for each slot.
            self.checkpoint()?;
            self.checkpoint()?;
            let left = self.with_checkpoint(|number, end| bad_copies(self.store(), number, end))?;
            found.copies_restored += copies_bad.saturating_sub(left);
        }
        Ok(())
    }
}

/// Copies of the newest header on dies that hold all that they should, and are not what it says.
fn bad_headers(store: &Store, newest: &Header) -> u64 {
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
    let bad =
        dies.map(|die| copies(die).filter(|(at, oldest)| !is_right(die, *at, *oldest)).count());
    bad.sum::<usize>() as u64
}

/// Copies of the newest checkpoint, by its number, and of the batches between it and `end`, the
/// number of the next one, that are not whole.
fn bad_copies(store: &Store, number: u64, end: u64) -> u64 {
    let missing = store.dies.lost().count() as usize;
    let wanted = REPLICAS.saturating_sub(missing);
    let readers = checkpoint::find(store);
    let Some(newest) = readers.into_iter().find(|it| it.summary.number == number) else {
        return wanted as u64;
    };
    let whole = newest.replicas.iter().filter(|it| newest.has_whole(**it)).map(|it| it.die);
    let whole = if store.dies.has_several_complete() {
        // Two copies on one die, taken while it was alone, go with that die.
        whole.collect::<DieSet>().count() as usize
    } else {
        whole.count()
    };
    let checkpoints_bad = wanted.saturating_sub(whole) as u64;
    let from = newest.summary.journal;
    let replay = replay::read(Reading { store, from, is_thorough: true });
    let is_known = |number: u64| number < end;
    let thin = replay.thin.iter().filter(|it| is_known(it.number)).count() as u64;
    let alone = replay.on_one_die.iter().filter(|number| is_known(**number)).count() as u64;
    // Of those that no copy has whole both are damaged.
    let lost = end.saturating_sub(replay.end.number) * REPLICAS as u64;
    checkpoints_bad + thin + alone + lost
}
