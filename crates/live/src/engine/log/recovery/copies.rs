//! Copies of the newest checkpoint and of the last batch of the journal, of which a crash may have
//! left a single one: the power may go again, and take the die that has it along.

use super::{AccountedDrive, load_tables};
use crate::OpenError;
use crate::engine::log::checkpoint;
use crate::engine::log::replay::LastBatch;
use crate::engine::store::{Replica, Store};
use crate::format::layout::{FRAME_BYTES, HEADER_BYTES, REPLICAS};

/// Has a checkpoint in both copies. One that the power cut off may be in a single one; the one
/// before it is written over soon, and then no die is to be the only one that knows.
pub(super) fn spread_checkpoint(
    store: &Store,
    accounted: &AccountedDrive,
) -> Result<(), OpenError> {
    let (dies, layout, summary) = (&store.dies, &store.layout, &accounted.summary);
    let mut lacking = store.checkpoint_replicas(summary.number);
    lacking.retain(|it| !accounted.holders.contains(it));
    let mut whole = whole_copies(store, summary.number)?.into_iter();
    let Some(from) = whole.next().filter(|_| !lacking.is_empty()) else { return Ok(()) };
    let slot = |it: Replica| layout.checkpoint_from(it.region, summary.number % 2);
    let failed = |source| OpenError::medium("copying a checkpoint", source);
    let mut piece = vec![0; FRAME_BYTES];
    for at in (HEADER_BYTES..layout.slot_bytes).step_by(FRAME_BYTES) {
        let length = usize::try_from(layout.slot_bytes - at).unwrap_or(FRAME_BYTES);
        let piece = &mut piece[..length.min(FRAME_BYTES)];
        if dies.read(from.die, slot(from) + at, piece).is_err() {
            // Its frames can be read; what lies between them need not be, unless that is an outage.
            dies.check_responsive().map_err(OpenError::Device)?;
            store.read_readable(from.die, slot(from) + at, piece);
            dies.check_responsive().map_err(OpenError::Device)?;
        }
        for to in lacking.iter().filter(|it| !dies.lost().has(it.die)) {
            dies.write_or_lose(to.die, slot(*to) + at, piece).map_err(failed)?;
        }
    }
    checkpoint::complete(store, &lacking, summary).map_err(|(_, error)| failed(error))
}

/// Has the last batch of the journal in both copies. One that the power cut off may be in a single
/// one; what it supersedes is written over soon, and batches follow it.
pub(super) fn spread_last_batch(
    store: &Store,
    accounted: &AccountedDrive,
) -> Result<(), OpenError> {
    let Some(LastBatch { at, bytes }) = &accounted.last else { return Ok(()) };
    let (dies, layout) = (&store.dies, &store.layout);
    let place = at % layout.shape.journal_bytes;
    let from = |it: &Replica| layout.journal_from(it.region) + place;
    let has_it = |it: &Replica| {
        let mut found = vec![0; bytes.len()];
        dies.read(it.die, from(it), &mut found).is_ok() && found == *bytes
    };
    let holders: Vec<Replica> = store.replicas_all().filter(has_it).collect();
    let mut lacking = store.journal_replicas(*at);
    lacking.retain(|it| !holders.contains(it));
    lacking.truncate(REPLICAS.saturating_sub(holders.len()));
    let writes: Vec<(usize, u64)> = lacking.iter().map(|it| (it.die, from(it))).collect();
    if writes.is_empty() {
        return Ok(());
    }
    let written = dies.write_durably(&writes, bytes);
    written.map_err(|(_, source)| OpenError::medium("copying a batch of the journal", source))
}

/// The copies that have a checkpoint whole, by its number.
pub(crate) fn whole_copies(store: &Store, number: u64) -> Result<Vec<Replica>, OpenError> {
    let mut whole = Vec::new();
    for reader in checkpoint::find(store).iter().filter(|it| it.summary.number == number) {
        for replica in &reader.replicas {
            if load_tables(&store.layout, &mut reader.of_one(*replica))?.is_some() {
                whole.push(*replica);
            }
        }
    }
    Ok(whole)
}
