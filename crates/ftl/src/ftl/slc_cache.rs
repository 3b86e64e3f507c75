//! SLC cache: superblocks that host writes fill with one bit per cell, and that are folded later:
//! their data moves to superblocks with all bits per cell.
//!
//! ```text
//!            opened for the host       closed            folded: a victim of relocation
//!   Free ──► one bit a cell ──────────► … ─────────────► Free
//!      └───► all bits: of the host past a cache that is used up, and whatever is relocated
//! ```
//!
//! A superblock in SLC mode uses one in `bits_per_cell` of its places: the first ones of each
//! program unit, whose cells are programmed as a whole. It takes the room of a whole superblock,
//! and folding, which is relocation, regains that room.
//!
//! Invariants:
//! - The host stream fills only superblocks in SLC mode, which stay in that mode until they are
//!   erased. Host writes past the cache have a stream of their own.
//! - A superblock is opened in SLC mode only if enough room for host writes remains.
//! - A cache that is used up stays so until folding in idle time has freed one of its superblocks.

use crate::ftl::lost_dies::Redundancy;
use crate::stream::Stream;
use crate::{Ftl, Media, SuperblockId, SuperblockState};

/// State of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlcState {
    /// True once no superblock could be opened in SLC mode, until folding frees one.
    is_used_up: bool,
}

impl Ftl {
    /// Superblocks that may be in SLC mode at present, by how full the drive is.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below a u32")]
    fn superblocks_slc_max(&self) -> u32 {
        let Some(cache) = self.config.slc_cache else { return 0 };
        let full = self.extents.stored() as f64 / self.extents.stored_max() as f64;
        let left = (1.0 - full / cache.full_at).max(0.0);
        cache.superblocks_static + (f64::from(cache.superblocks_dynamic) * left) as u32
    }

    /// True if the host's next page goes to the cache: to its open superblock, or to another one
    /// that may be opened.
    pub(crate) fn writes_to_slc(&mut self) -> bool {
        let host = &self.streams[Stream::HOST];
        if host.frontiers[host.bank as usize].is_some() {
            return true;
        }
        let Some(cache) = self.config.slc_cache else { return false };
        let used = self.superblocks.slc();
        // Static ones may take room until host writes would have to wait, the others only until
        // relocation would begin.
        let thresholds = &self.thresholds;
        let is_static = used < cache.superblocks_static;
        let least = if is_static { thresholds.stop } else { thresholds.pace };
        let has_room = self.room > least + u64::from(self.config.granules_per_superblock());
        if used >= self.superblocks_slc_max() || !has_room {
            self.slc.is_used_up = true;
        }
        !self.slc.is_used_up
    }

    /// True if folding would free superblocks of the cache: for an owner that is idle.
    pub fn wants_folding(&self) -> bool {
        let is_slc = |victim: SuperblockId| self.superblocks.is_slc(victim);
        let is_folding = || self.relocation.superblock().is_some_and(is_slc);
        let is_writable = self.redundancy() != Redundancy::Exhausted;
        let has_any = self.superblocks.slc() > 0 && is_writable;
        has_any && (is_folding() || self.oldest_slc().is_some())
    }

    /// Relocates about one program unit of the cache, from its oldest superblock, after the victim
    /// that is being relocated, if any.
    pub fn fold_unit(&mut self, media: &mut impl Media) {
        if self.redundancy() == Redundancy::Exhausted {
            return;
        }
        for _ in 0..self.config.geometry.pages_per_unit() {
            if !self.is_reclaiming() {
                let Some(oldest) = self.oldest_slc() else { return };
                self.reclaim(oldest);
            }
            let before = self.superblocks.slc();
            self.relocate_page(media);
            if self.superblocks.slc() < before {
                self.slc.is_used_up = false;
            }
        }
    }

    /// The superblock in SLC mode that was closed first.
    fn oldest_slc(&self) -> Option<SuperblockId> {
        let is_closed = |id: &SuperblockId| {
            self.superblocks.is_slc(*id) && self.superblocks.state(*id) == SuperblockState::Closed
        };
        let closed = self.superblocks.ids().filter(is_closed);
        closed.min_by_key(|id| self.superblocks.closed_at(*id))
    }
}

impl<C> Ftl<C> {
    /// Puts a superblock that was just opened for the host into SLC mode, if there is a cache.
    pub(crate) fn open_slc(&mut self, superblock: SuperblockId) {
        let Some(cache) = self.config.slc_cache else { return };
        let granules = self.config.granules_per_superblock();
        self.superblocks.set_slc(superblock);
        self.use_room(granules - granules / cache.bits_per_cell);
        assert!(!self.slc.is_used_up, "a cache that is used up takes nothing");
    }

    /// Granules of a program unit of `superblock` in its mode.
    #[inline]
    pub(crate) fn granules_per_unit_of(&self, superblock: SuperblockId) -> u32 {
        match self.config.slc_cache {
            Some(cache) if self.superblocks.is_slc(superblock) => {
                self.granules_per_unit / cache.bits_per_cell
            }
            _ => self.granules_per_unit,
        }
    }

    /// Logical pages of a parity unit of `superblock`, in its mode.
    #[inline]
    pub(crate) fn pages_of_parity(&self, superblock: SuperblockId) -> u64 {
        u64::from(self.granules_per_unit_of(superblock) / self.config.granules_per_page())
    }

    /// The cache is empty.
    pub(crate) fn forget_slc(&mut self) {
        self.slc = SlcState::default();
        assert_eq!(self.superblocks.slc(), 0, "a cache that is forgotten is empty");
    }
}
