//! Checks that nothing is missing between the checkpoint and the end of the journal.

use super::{Doubts, SavedCheckpoint, ScanResult};
use crate::OpenError;
use crate::engine::dies::witness::Witness;
use crate::engine::log::replay::Replay;
use crate::engine::store::Store;
use crate::format::checkpoint_header::CheckpointHeader;
use crate::format::header::Header;
use crate::format::position::Position;
use crate::mutants::{self, Mutant};

/// The number below which batches of the journal were durable, as is known without the dies.
///
/// The folder proves it after rest and checkpoints. The write buffer of the session that died
/// proves it of every batch: it is there only where the machine went on, and then none was torn.
pub(super) fn proven_batches(store: &Store, header: &Header) -> u64 {
    let proof = store.dies.witness().and_then(Witness::proof);
    let proven = proof.filter(|it| it.header.drive == store.drive).map_or(0, |it| it.batches);
    let buffered = store.buffered.as_ref().filter(|it| it.session == header.session);
    proven.max(buffered.map_or(0, |it| it.journal_end.number))
}

/// Checks that no unit was programmed after a batch of the journal that is not there.
pub(super) fn check_units(
    scanned: &ScanResult,
    end: Position,
    doubts: &mut Doubts,
) -> Result<(), OpenError> {
    if scanned.batches > end.number && !mutants::is(Mutant::StaleDiesTaken) {
        let (found, end) = (scanned.batches, end.number);
        doubts.raise(format!(
            "a unit was programmed after batch {} of the journal, but all copies of the journal \
             end before batch {end}",
            found - 1
        ))?;
    }
    Ok(())
}

/// Checks that the journal tells all that happened since the checkpoint. Batches with a lower
/// number than `proven` were durable, as is known without the dies.
pub(super) fn check_journal(
    saved: &SavedCheckpoint,
    header: &Header,
    proven: u64,
    replay: &Replay,
    doubts: &mut Doubts,
) -> Result<(), OpenError> {
    let number = saved.summary.number;
    let before = |what: String| match saved.damaged.first() {
        Some(CheckpointHeader { number: newer, .. }) => {
            format!("checkpoint {newer} cannot be read, and since checkpoint {number} {what}")
        }
        None => what,
    };
    if mutants::is(Mutant::OlderCheckpoint) && !saved.damaged.is_empty() {
        return Ok(());
    }
    if let Some(gap) = replay.gap {
        doubts.raise(before(gap.to_string()))?;
    }
    let known = saved.damaged.iter().map(|it| it.journal.number).max().unwrap_or(0);
    let closed_at = if header.is_open { 0 } else { header.closing.journal.number };
    let expected = known.max(closed_at).max(proven);
    let end = replay.end.number;
    if mutants::is(Mutant::StaleDiesTaken) {
        return Ok(());
    }
    if replay.gap.is_none() && end < expected {
        let last = expected - 1;
        doubts.raise(before(format!("batch {end} of the journal is lost; the last was {last}")))?;
    }
    Ok(())
}
