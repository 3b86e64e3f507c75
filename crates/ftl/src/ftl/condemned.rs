//! Superblocks that are not used again, since their media failed in places: of an owner that keeps
//! a list of those.
//!
//! ```text
//!              free ──────────────────────────► bad ───► free, once the owner reinstates it
//!  condemned:  open ─► closed ─► erased ─► released ─┘
//! ```
//!
//! Invariants:
//! - A superblock is opened no more once it was condemned.
//! - Of the superblocks that data and relocation do not need, half are neither condemned nor bad.

use crate::ftl::degraded_rows::DegradedRows;
use crate::stream::Frontier;
use crate::{Debt, Ftl, Media, SuperblockId, SuperblockState};

/// Superblocks that are listed as free after one of them was retired, at least: for relocation, and
/// for what is written meanwhile.
const FREE_MIN: usize = 2;

impl Ftl<Debt> {
    /// Superblocks that may be condemned or bad, together: half of those that data and relocation
    /// do not need, since with none of them each write would cost too many others.
    fn superblocks_condemned_max(&self) -> u32 {
        let config = &self.config;
        let stored_max = u64::from(config.pages_stored_max) * u64::from(config.granules_per_page());
        let filled = stored_max.div_ceil(config.granules_reliable());
        let needed = filled + 1 + u64::from(config.superblocks_reserved());
        let spare = u64::from(config.geometry.superblocks()).saturating_sub(needed);
        u32::try_from(spare / 2).expect("no more than there are")
    }

    /// Superblocks that are condemned and not retired yet.
    pub fn condemned(&self) -> impl Iterator<Item = SuperblockId> {
        self.condemned.iter().copied()
    }

    /// Has a superblock not be opened again, if there are enough without it; says whether that is
    /// so. One that is free is retired at once; one that holds data is once that was moved and it
    /// was erased ([`Ftl::erase_emptied`]) and released. One whose row is begun is left as it is
    /// for now.
    pub fn condemn(&mut self, superblock: SuperblockId) -> bool {
        if self.is_condemned(superblock) {
            return true;
        }
        let is_retired = match self.superblocks.state(superblock) {
            _ if !self.may_condemn() => return false,
            SuperblockState::Free if !self.held_erased().contains(&superblock) => {
                if !self.unlist(superblock) {
                    return false;
                }
                true
            }
            SuperblockState::Open if !self.close_early(superblock) => return false,
            _ => false,
        };
        if is_retired {
            self.superblocks.retire(superblock);
        } else {
            self.condemned.insert(superblock);
        }
        self.see_shortened();
        assert!(self.is_condemned(superblock), "what is condemned is known to be");
        true
    }

    /// True if one superblock more may be condemned.
    pub fn may_condemn(&self) -> bool {
        let (good, units) = (self.superblocks_good(), self.shortened.units);
        self.config.geometry.superblocks() - good < self.superblocks_condemned_max()
            && (units == 0 || self.extents.stored() <= self.granules_leaving_out(units, good - 1))
    }

    /// Takes a superblock off the list of free ones, if enough are left.
    fn unlist(&mut self, superblock: SuperblockId) -> bool {
        if self.superblocks_listed() <= FREE_MIN {
            return false;
        }
        let bank = self.bank_of(superblock) as usize;
        let free = &mut self.free_by_bank[bank];
        let at =
            free.iter().position(|id| *id == superblock).expect("a free one is listed or held");
        free.remove(at);
        self.use_room(self.config.granules_per_superblock());
        true
    }

    fn superblocks_listed(&self) -> usize {
        self.free_by_bank.iter().map(Vec::len).sum()
    }

    /// Closes an open superblock between two of its rows, if others are free.
    fn close_early(&mut self, superblock: SuperblockId) -> bool {
        let (granules, units_per_row) = (self.granules_per_unit_of(superblock), self.units_per_row);
        let listed = self.superblocks_listed();
        let units = self.units_per_superblock;
        let is_between =
            |it: &Frontier| it.unit.is_multiple_of(units_per_row) && it.granules_left == granules;
        let is_it = |open: &mut Frontier| {
            open.superblock == superblock && listed >= FREE_MIN && is_between(open)
        };
        let mut frontiers = Vec::new();
        for state in self.streams.iter_mut() {
            frontiers.extend(state.frontiers.iter_mut().filter_map(|it| it.take_if(is_it)));
        }
        let Some(frontier) = frontiers.pop() else { return false };
        assert!(frontiers.is_empty(), "an open superblock is filled by one stream");
        self.superblocks.close(superblock);
        self.use_room((units - frontier.unit) * granules);
        true
    }

    /// Erases a condemned superblock that holds nothing any more; says whether it did.
    pub fn erase_emptied(&mut self, superblock: SuperblockId, media: &mut impl Media) -> bool {
        let is_empty = self.superblocks.granules_valid(superblock) == 0;
        if !is_empty || !self.condemned.contains(&superblock) {
            return false;
        }
        match self.superblocks.state(superblock) {
            SuperblockState::Closed => {
                self.superblocks.choose(superblock);
                self.erase(superblock, media);
            }
            // It is what relocation reclaims, and nothing of it is left to be moved.
            SuperblockState::Victim => {
                self.relocate_page(media);
            }
            _ => return false,
        }
        let state = self.superblocks.state(superblock);
        assert_eq!(state, SuperblockState::Free, "what held nothing is erased");
        true
    }

    /// Has a superblock be used as any other again.
    pub fn reinstate(&mut self, superblock: SuperblockId) {
        self.condemned.remove(&superblock);
        if self.superblocks.state(superblock) == SuperblockState::Bad {
            self.superblocks.reinstate(superblock);
            self.gain(superblock);
        }
        self.see_shortened();
        assert!(!self.is_condemned(superblock), "it is as any other");
    }

    /// Limits what may be stored while rows are shortened to what the good superblocks hold then.
    fn see_shortened(&mut self) {
        let units = self.shortened.units;
        if units > 0 {
            let granules_max = self.granules_leaving_out(units, self.superblocks_good());
            self.shortened = DegradedRows { units, granules_max };
        }
    }
}

impl<C> Ftl<C> {
    #[inline]
    pub(crate) fn is_condemned(&self, superblock: SuperblockId) -> bool {
        self.condemned.contains(&superblock)
            || self.superblocks.state(superblock) == SuperblockState::Bad
    }

    /// A superblock that was erased may be opened from now on, unless it was condemned: then it is
    /// retired.
    pub(crate) fn release(&mut self, superblock: SuperblockId) {
        if self.condemned.remove(&superblock) {
            self.superblocks.retire(superblock);
        } else {
            self.gain(superblock);
        }
    }
}
