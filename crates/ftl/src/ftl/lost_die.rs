//! Loss of a die: superblocks go on without it, and what it held is rebuilt from parity.
//!
//! In each row that is written from then on the stripe of the lost die has one data unit less: the
//! lost one, or, where that was to hold parity, the last one, whose die takes the parity.
//!
//! ```text
//!             die 0   die 1   die 2 lost   die 3
//!  row 0       u0      u1      -            P
//!  row 1       P       u2      -            u3
//!  row 2       u4      P       -            u5
//!  row 3       u6      -  ◄ P  (was P)      u7     shown turned back to the order of the stripe
//! ```
//!
//! Rebuilding moves each valid page of the lost die to a relocation stream; until then a reader has
//! to read the other units of the stripe. Without parity those pages are lost: they are forgotten,
//! and remembered as lost until the host writes them anew.
//!
//! Invariants:
//! - No page is placed in a unit that is left out.
//! - What a row leaves out counts as used room until its superblock is erased.

use crate::stream::Stream;
use crate::{Cause, ConfigError, DieId, Ftl, Lpn, Media, MediaOp, Ppn, SuperblockId, Unit};

/// A die that is out of service.
#[derive(Clone, Debug)]
pub(crate) struct LostDie {
    bank: u32,
    /// Number within its bank.
    die: u16,
    /// The next superblock to be rebuilt, and its next unit; absent once all are.
    rebuilding: Option<(u32, u32)>,
    /// Pages whose data is lost, one bit each by LPN; empty with parity.
    pages: Vec<u64>,
}

impl LostDie {
    /// A page was written anew.
    #[inline]
    pub(crate) fn written(&mut self, lpn: Lpn) {
        if let Some(word) = self.pages.get_mut(lpn.0 as usize / 64) {
            *word &= !(1 << (lpn.0 % 64));
        }
    }
}

impl Ftl {
    /// Takes a die out of service. With parity its data is rebuilt by [`Ftl::relocate_unit`];
    /// without, it is lost, and the pages of 4 KiB that were are counted.
    ///
    /// # Errors
    /// Fails if there is no such die, one is lost already, or too little would be left for the user
    /// capacity; then nothing has changed, and the owner makes the drive read-only.
    pub fn lose_die(&mut self, die: DieId, media: &mut impl Media) -> Result<u64, ConfigError> {
        self.config.check_without(die)?;
        if self.lost.is_some() {
            let (value, limit) = (2.to_string(), "at most 1".to_owned());
            return Err(ConfigError::OutOfRange { name: "dies lost", value, limit });
        }
        let dies = self.config.geometry.dies_per_bank;
        let within = u16::try_from(die.0 % dies).expect("Config::check limits dies");
        let has_parity = self.config.geometry.stripe_dies > 0;
        self.lost = Some(Box::new(LostDie {
            bank: die.0 / dies,
            die: within,
            rebuilding: has_parity.then_some((0, 0)),
            pages: Vec::new(),
        }));
        self.leave_units(media);
        if has_parity { Ok(0) } else { Ok(self.forget_lost()) }
    }

    /// True if the data of a page was lost with a die, and not written since.
    #[inline]
    pub fn is_page_lost(&self, lpn: Lpn) -> bool {
        self.lost.as_ref().is_some_and(|lost| {
            let word = lost.pages.get(lpn.0 as usize / 64);
            word.is_some_and(|word| word & (1 << (lpn.0 % 64)) != 0)
        })
    }

    /// True if a lost die holds pages that are to be rebuilt.
    pub fn is_rebuilding(&self) -> bool {
        self.lost.as_ref().is_some_and(|lost| lost.rebuilding.is_some())
    }

    /// Moves the valid pages of the next unit of the lost die that has any; nothing once all are
    /// moved.
    pub(crate) fn rebuild_unit(&mut self, media: &mut impl Media) {
        while let Some(unit) = self.next_to_rebuild() {
            let pages = self.pages_of(unit);
            if pages.is_empty() {
                continue;
            }
            for lpn in pages {
                self.move_page(lpn, media);
            }
            return;
        }
    }

    /// The next unit on the lost die, of any superblock of its bank.
    fn next_to_rebuild(&mut self) -> Option<Unit> {
        let superblocks = self.config.geometry.superblocks();
        let units = self.units_per_superblock;
        let lost = self.lost.as_mut()?;
        let (mut superblock, mut unit) = lost.rebuilding?;
        superblock = superblock.max(lost.bank);
        while superblock < superblocks {
            while unit < units {
                unit += 1;
                if self.layout.unit(unit - 1).die == lost.die {
                    lost.rebuilding = Some((superblock, unit));
                    return Some(Unit { superblock: SuperblockId(superblock), index: unit - 1 });
                }
            }
            (superblock, unit) = (superblock + self.config.geometry.banks, 0);
        }
        lost.rebuilding = None;
        None
    }

    /// Valid pages of a unit.
    fn pages_of(&self, Unit { superblock, index }: Unit) -> Vec<Lpn> {
        let (pages, places) = (self.pages_per_unit.divisor(), self.config.places_per_superblock());
        let layer = self.pages_per_superblock.divisor();
        let first = superblock.0 * places + index * pages;
        let layers = (0..places / layer).map(|number| first + number * layer);
        let all = layers.flat_map(|first| first..first + pages).map(Ppn);
        let lpn = |ppn: Ppn| match self.mapping.lpn(ppn) {
            Some(lpn) => Some(lpn),
            None => self.mapping.pages_in(ppn.0..ppn.0 + 1).next().map(|(lpn, _)| lpn),
        };
        all.filter(|ppn| self.mapping.is_valid(*ppn)).filter_map(lpn).collect()
    }

    /// Forgets what lies on the lost die; returns its pages of 4 KiB.
    fn forget_lost(&mut self) -> u64 {
        let pages = self.config.pages_logical.div_ceil(64) as usize;
        let mut bits = vec![0_u64; pages];
        for lpn in (0..self.config.pages_logical).map(Lpn) {
            let Some(ppn) = self.lookup(lpn) else { continue };
            if self.is_lost(self.die_of(self.unit_of(ppn))) {
                bits[lpn.0 as usize / 64] |= 1 << (lpn.0 % 64);
                self.forget(lpn);
            }
        }
        let count: u64 = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        if let Some(lost) = &mut self.lost {
            lost.pages = bits;
        }
        count * self.config.geometry.counted_per_page()
    }

    /// Goes on from the units that are being filled on the lost die: what they hold is still in the
    /// owner's buffer, and is placed anew.
    fn leave_units(&mut self, media: &mut impl Media) {
        let banks = 0..self.config.geometry.banks as usize;
        let streams = self.streams.all();
        for (stream, bank) in streams.flat_map(|stream| banks.clone().map(move |it| (stream, it))) {
            let Some(open) = self.streams[stream].frontiers[bank] else { continue };
            let at = Unit { superblock: open.superblock, index: open.unit };
            if self.is_left_out(at) {
                let pages = self.pages_of(at);
                self.skip_left_out(stream, bank, media);
                for lpn in pages {
                    self.move_page(lpn, media);
                }
            }
        }
    }
}

impl<C> Ftl<C> {
    /// True if `die` is out of service.
    #[inline]
    pub(crate) fn is_lost(&self, die: DieId) -> bool {
        self.lost.as_ref().is_some_and(|lost| {
            die.0 == lost.bank * self.config.geometry.dies_per_bank + u32::from(lost.die)
        })
    }

    /// Nothing is mapped any more, so that nothing is lost or to be rebuilt.
    pub(crate) fn forget_losses(&mut self) {
        if let Some(lost) = &mut self.lost {
            (lost.rebuilding, lost.pages) = (None, Vec::new());
        }
    }

    /// True if nothing is placed in a unit because a die is lost.
    fn is_left_out(&self, Unit { superblock, index }: Unit) -> bool {
        let Some(lost) = self.lost.as_ref() else { return false };
        let place = self.layout.unit(index);
        let is_short = place.die == lost.die || place.parity_die == Some(lost.die);
        is_short && self.bank_of(superblock) == lost.bank
    }

    /// Passes over the units of the superblock that a stream has open for a bank that are left out.
    /// Parity that one of them completes is programmed on its own die where that of the parity is
    /// lost.
    #[cold]
    pub(crate) fn skip_left_out(&mut self, stream: Stream, bank: usize, media: &mut impl Media) {
        while let Some(open) = self.streams[stream].frontiers[bank] {
            let (superblock, unit) = (open.superblock, open.unit);
            if !self.is_left_out(Unit { superblock, index: unit }) {
                return;
            }
            let pages = self.pages_per_unit.divisor();
            let is_slc = self.superblocks.is_slc(superblock);
            let frontier = &mut self.streams[stream].frontiers[bank];
            if unit + 1 == self.units_per_superblock {
                *frontier = None;
                self.superblocks.close(superblock);
            } else if let Some(frontier) = frontier {
                frontier.begin(unit + 1, pages);
            }
            self.use_room(open.granules_left);
            let place = self.layout.unit(unit);
            if let Some(parity) = place.parity_die {
                let of_bank = DieId(open.die_first + u32::from(parity));
                let own = DieId(open.die_first + u32::from(place.die));
                let (row, cause) = (u32::from(place.row), Cause::Parity);
                let die = if self.is_lost(of_bank) { own } else { of_bank };
                media.submit(MediaOp::Program { superblock, die, row, cause, is_slc });
                self.counters.pages_parity += self.pages_of_parity(superblock);
            }
        }
    }
}
