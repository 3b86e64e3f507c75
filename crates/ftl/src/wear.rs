//! Wear levelling.
//!
//! *Dynamic*: a stream that opens a superblock takes the least worn free one (`Ftl::take_free`).
//! *Static*: data that never changes would hold its little-worn superblock for ever; when erase
//! counts have drifted apart by more than `wear_spread_max`, the least worn closed superblock is
//! reclaimed out of turn. Its pages go to a stream of their own, into the most worn superblock that
//! is free, where they stay longest.

use crate::superblock::Superblocks;
use crate::{SuperblockId, SuperblockState};

/// The superblock that static wear levelling wants reclaimed now, if any.
pub(crate) fn overdue(superblocks: &Superblocks, wear_spread_max: u32) -> Option<SuperblockId> {
    if wear_spread_max == 0 {
        return None;
    }
    let in_use = |id: &SuperblockId| superblocks.state(*id) != SuperblockState::Bad;
    let erase_count = |id: &SuperblockId| superblocks.erase_count(*id);
    let most = superblocks.ids().filter(in_use).map(|id| erase_count(&id)).max()?;
    superblocks
        .ids()
        .filter(|id| superblocks.state(*id) == SuperblockState::Closed)
        .min_by_key(erase_count)
        .filter(|id| most - erase_count(id) > wear_spread_max)
}
