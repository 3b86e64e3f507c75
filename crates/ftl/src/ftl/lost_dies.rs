//! Loss of dies, one after another: superblocks go on without them, what they held is rebuilt from
//! parity, and then redundancy is restored.
//!
//! In each row that is written from then on a stripe has one data unit less for each die that it
//! lost: the lost ones, or, where one of them was to hold parity, the last living one, whose die
//! takes the parity.
//!
//! ```text
//!             die 0   die 1   die 2 lost   die 3
//!  row 0       u0      u1      -            P
//!  row 1       P       u2      -            u3
//!  row 2       u4      P       -            u5
//!  row 3       u6      -  ◄ P  (was P)      u7     shown turned back to the order of the stripe
//! ```
//!
//! Rows that were written before hold a unit of the lost die: as long as one is missing the others
//! stand in for it, and a second one takes both. So two passes follow a loss:
//!
//! ```text
//!  lost ──► rebuilding ──────────────► restoring redundancy ─────────────► redundant again
//!           valid pages of the die      valid pages of the other units
//!           move, as fast as may be     of its stripes move, in the background
//! ```
//!
//! Without parity the pages of a lost die are lost at once: they are forgotten, and remembered as
//! lost until the host writes them anew. The same goes for pages of stripes that lack two units.
//! Where the spare space does not allow for another loss nothing may be written any more.
//!
//! Invariants:
//! - No page is placed in a unit that is left out.
//! - What a row leaves out counts as used room until its superblock is erased.
//! - A mapped page lies in a stripe that lacks one unit at most.

use crate::stream::Stream;
use crate::{
    Cause, ConfigError, DieId, Ftl, Lpn, Media, MediaOp, Ppn, SuperblockId, SuperblockState, Unit,
};

/// Dies that are out of service, and what their loss leaves to be done.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostDies {
    /// In the order of their loss.
    dies: Vec<LostDie>,
    /// Pages whose data is lost, one bit each by LPN; empty while none is.
    pages: Vec<u64>,
    /// True once the spare space could not stand in for a lost die.
    is_read_only: bool,
}

/// A die that is out of service.
#[derive(Clone, Debug)]
struct LostDie {
    bank: u32,
    /// Number within its bank.
    die: u16,
    /// Units of each superblock of its bank, from the first on, that were placed before the loss;
    /// none once it was erased.
    units_before: Vec<u32>,
    /// Progress of the moves off its stripes; absent once they are whole again.
    pass: Option<Pass>,
}

/// Progress of a pass over the stripes of a lost die.
#[derive(Clone, Copy, Debug)]
struct Pass {
    /// The pages that lay on the die itself, or those of the other units of its stripes.
    is_of_others: bool,
    superblock: u32,
    /// The next unit.
    unit: u32,
}

/// State of the redundancy of a drive of which dies are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redundancy {
    /// No stripe lacks a unit that parity could give back.
    Whole,
    /// A lost die holds pages that are to be rebuilt.
    Rebuilding,
    /// Pages lie in stripes that lack a unit, and are to be moved to whole ones.
    Restoring,
    /// The spare space could not stand in for a die: nothing may be written any more.
    Exhausted,
}

/// Outcome of the loss of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieLoss {
    /// Pages of 4 KiB that no redundancy could give back.
    pub pages_lost: u64,
    /// Logical pages that the die had room for.
    pub pages_held: u64,
    /// False if the spare space cannot stand in for the die: nothing may be written any more.
    pub is_writable: bool,
}

impl LostDies {
    /// A page was written anew.
    #[inline]
    pub(crate) fn written(&mut self, lpn: Lpn) {
        if let Some(word) = self.pages.get_mut(lpn.0 as usize / 64) {
            *word &= !(1 << (lpn.0 % 64));
        }
    }

    /// A superblock was erased: no row in it has a unit of a lost die any more.
    #[cold]
    pub(crate) fn erased(&mut self, SuperblockId(superblock): SuperblockId, banks: u32) {
        for lost in self.dies.iter_mut().filter(|lost| lost.bank == superblock % banks) {
            lost.units_before[(superblock / banks) as usize] = 0;
        }
    }

    /// True if `die` of `bank` is lost.
    fn has(&self, bank: u32, die: u16) -> bool {
        self.dies.iter().any(|lost| (lost.bank, lost.die) == (bank, die))
    }

    fn redundancy(&self) -> Redundancy {
        let is_in = |is_of_others: bool| {
            let mut passes = self.dies.iter().filter_map(|lost| lost.pass);
            passes.any(|pass| pass.is_of_others == is_of_others)
        };
        if self.is_read_only {
            Redundancy::Exhausted
        } else if is_in(false) {
            Redundancy::Rebuilding
        } else if is_in(true) {
            Redundancy::Restoring
        } else {
            Redundancy::Whole
        }
    }
}

impl Ftl {
    /// Takes a die out of service. Its data is rebuilt by [`Ftl::relocate_unit`] where parity gives
    /// it back, after which redundancy is restored; the rest is lost.
    ///
    /// # Errors
    /// Fails if there is no such die, or it is lost already; then nothing has changed.
    pub fn lose_die(&mut self, die: DieId, media: &mut impl Media) -> Result<DieLoss, ConfigError> {
        self.config.check_die(die)?;
        if self.is_lost(die) {
            let limit = "a die that is in service".to_owned();
            return Err(ConfigError::OutOfRange { name: "die", value: die.0.to_string(), limit });
        }
        let is_writable =
            self.redundancy() != Redundancy::Exhausted && self.check_without(die).is_ok();
        let units_before = self.units_placed(die.0 / self.config.geometry.dies_per_bank);
        let lost = self.lost_die(die, units_before);
        let lost_dies = self.lost.get_or_insert_default();
        lost_dies.dies.push(lost);
        lost_dies.is_read_only = !is_writable;
        if is_writable {
            self.leave_units(media);
        }
        let pages_lost = self.forget_lost(die.0 / self.config.geometry.dies_per_bank);
        assert!(self.is_lost(die), "a die that was lost is out of service");
        Ok(DieLoss { pages_lost, pages_held: self.config.pages_per_die(), is_writable })
    }

    /// True if the data of a page was lost with a die, and not written since.
    #[inline]
    pub fn is_page_lost(&self, lpn: Lpn) -> bool {
        self.lost.as_ref().is_some_and(|lost| {
            let word = lost.pages.get(lpn.0 as usize / 64);
            word.is_some_and(|word| word & (1 << (lpn.0 % 64)) != 0)
        })
    }

    /// State of the redundancy.
    #[inline]
    pub fn redundancy(&self) -> Redundancy {
        self.lost.as_ref().map_or(Redundancy::Whole, |lost| lost.redundancy())
    }

    /// Checks that the drive can do without `die`, beside those that are lost.
    fn check_without(&self, die: DieId) -> Result<(), ConfigError> {
        let dies_per_bank = self.config.geometry.dies_per_bank;
        let lost = self.lost.iter().flat_map(|lost| &lost.dies);
        let mut dies: Vec<DieId> =
            lost.map(|lost| DieId(lost.bank * dies_per_bank + u32::from(lost.die))).collect();
        dies.push(die);
        self.config.check_without(&dies)
    }

    /// Moves the valid pages of the next unit that has any: of the lost dies first, then of the
    /// other units of their stripes; nothing once all are moved.
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

    /// The next unit that is to be moved off the stripes of a lost die: of the dies in their first
    /// pass, then of the others.
    fn next_to_rebuild(&mut self) -> Option<Unit> {
        loop {
            let dies = &self.lost.as_ref()?.dies;
            let passes = (0..).zip(dies).filter_map(|(index, lost)| Some((index, lost.pass?)));
            let (index, pass) = passes.min_by_key(|(_, pass)| pass.is_of_others)?;
            let next = self.unit_of_pass(&dies[index], pass);
            let lost = &mut self.lost.as_mut()?.dies[index];
            match next {
                Some(Unit { superblock, index }) => {
                    lost.pass = Some(Pass { superblock: superblock.0, unit: index + 1, ..pass });
                    return next;
                }
                None if pass.is_of_others => lost.pass = None,
                None => lost.pass = Some(Pass { is_of_others: true, superblock: 0, unit: 0 }),
            }
        }
    }

    /// The next unit of a pass, from where it stands.
    fn unit_of_pass(&self, lost: &LostDie, pass: Pass) -> Option<Unit> {
        let (mut superblock, mut unit) = (pass.superblock.max(lost.bank), pass.unit);
        if superblock != pass.superblock {
            unit = 0;
        }
        let banks = self.config.geometry.banks;
        while superblock < self.config.geometry.superblocks() {
            let before = lost.units_before[(superblock / banks) as usize];
            let is_of_pass = |unit: &u32| {
                let is_own = self.layout.unit(*unit).die == lost.die;
                if pass.is_of_others {
                    !is_own && self.lacks(SuperblockId(superblock), *unit) > 0
                } else {
                    is_own
                }
            };
            if let Some(index) = (unit..before).find(is_of_pass) {
                return Some(Unit { superblock: SuperblockId(superblock), index });
            }
            (superblock, unit) = (superblock + banks, 0);
        }
        None
    }

    /// Units of each superblock of a bank that have been placed, those that are being filled not
    /// counted.
    fn units_placed(&self, bank: u32) -> Vec<u32> {
        let in_bank = self.superblocks.ids().skip(bank as usize);
        let in_bank = in_bank.step_by(self.config.geometry.banks as usize);
        let open = |id: SuperblockId| {
            let mut open = self.streams.iter().flat_map(|stream| &stream.frontiers).flatten();
            open.find(|open| open.superblock == id).map_or(0, |open| open.unit)
        };
        let placed = in_bank.map(|id| match self.superblocks.state(id) {
            SuperblockState::Free | SuperblockState::Bad => 0,
            SuperblockState::Open => open(id),
            SuperblockState::Closed | SuperblockState::Victim => self.units_per_superblock,
        });
        placed.collect()
    }

    fn lost_die(&self, die: DieId, units_before: Vec<u32>) -> LostDie {
        let dies = self.config.geometry.dies_per_bank;
        let has_parity = self.config.geometry.stripe_dies > 0;
        LostDie {
            bank: die.0 / dies,
            die: u16::try_from(die.0 % dies).expect("Config::check limits dies"),
            units_before,
            pass: has_parity.then_some(Pass { is_of_others: false, superblock: 0, unit: 0 }),
        }
    }

    /// Forgets what lies on lost dies of a bank in stripes that lack more than parity gives back;
    /// returns its pages of 4 KiB.
    fn forget_lost(&mut self, bank: u32) -> u64 {
        let spared = u32::from(self.config.geometry.stripe_dies > 0);
        let mut count = 0;
        for unit in self.units_on_lost_dies(bank) {
            if self.lacks(unit.superblock, unit.index) <= spared {
                continue;
            }
            for lpn in self.pages_of(unit) {
                self.forget(lpn);
                self.note_lost(lpn);
                count += 1;
            }
        }
        count * self.config.geometry.counted_per_page()
    }

    fn note_lost(&mut self, lpn: Lpn) {
        let words = self.config.pages_logical.div_ceil(64) as usize;
        let Some(lost) = &mut self.lost else { return };
        lost.pages.resize(words, 0);
        lost.pages[lpn.0 as usize / 64] |= 1 << (lpn.0 % 64);
    }

    /// Goes on from the units that are being filled on lost dies: what they hold is still in the
    /// owner's buffer, and is placed anew.
    fn leave_units(&mut self, media: &mut impl Media) {
        let banks = 0..self.config.geometry.banks as usize;
        let (streams, mut pages) = (self.streams.all(), Vec::new());
        for (stream, bank) in streams.flat_map(|stream| banks.clone().map(move |it| (stream, it))) {
            let Some(open) = self.streams[stream].frontiers[bank] else { continue };
            let at = Unit { superblock: open.superblock, index: open.unit };
            if self.is_left_out(at) {
                pages.extend(self.pages_of(at));
                self.skip_left_out(stream, bank, media);
            }
        }
        // Not before no stream stands at such a unit any more.
        for lpn in pages {
            self.move_page(lpn, media);
        }
    }
}

impl<C> Ftl<C> {
    /// True if `die` is out of service.
    #[inline]
    pub(crate) fn is_lost(&self, die: DieId) -> bool {
        let dies = self.config.geometry.dies_per_bank;
        self.lost.as_ref().is_some_and(|lost| {
            let within = u16::try_from(die.0 % dies).expect("Config::check limits dies");
            lost.has(die.0 / dies, within)
        })
    }

    /// Nothing is mapped any more, so that nothing is lost or to be rebuilt.
    pub(crate) fn forget_losses(&mut self) {
        let Some(lost) = &mut self.lost else { return };
        lost.pages = Vec::new();
        lost.dies.iter_mut().for_each(|lost| lost.pass = None);
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

    /// Units of a bank that were placed on dies which are lost.
    fn units_on_lost_dies(&self, bank: u32) -> Vec<Unit> {
        let lost = self.lost.iter().flat_map(|lost| &lost.dies).filter(|lost| lost.bank == bank);
        let banks = self.config.geometry.banks;
        let of_die = |lost: &LostDie| {
            let own: Vec<u32> = (0..self.units_per_superblock)
                .filter(|unit| self.layout.unit(*unit).die == lost.die)
                .collect();
            let superblocks = (0_u32..).zip(&lost.units_before);
            let units = superblocks.flat_map(|(number, before)| {
                let superblock = SuperblockId(number * banks + bank);
                let placed = own.iter().filter(move |unit| *unit < before);
                placed.map(move |index| Unit { superblock, index: *index })
            });
            units.collect::<Vec<Unit>>()
        };
        lost.flat_map(of_die).collect()
    }

    /// Asserts that parity gives back every mapped page, whatever lies on lost dies.
    pub(crate) fn check_lost_dies(&self) {
        let spared = u32::from(self.config.geometry.stripe_dies > 0);
        for bank in 0..self.config.geometry.banks {
            for unit in self.units_on_lost_dies(bank) {
                let lacks = self.lacks(unit.superblock, unit.index);
                let is_safe = lacks <= spared || self.pages_of(unit).is_empty();
                assert!(is_safe, "{unit:?} holds pages, and its stripe lacks {lacks} units");
            }
        }
    }

    /// Units of the stripe of data unit `unit`, parity included, that were lost after they had been
    /// placed.
    pub(crate) fn lacks(&self, superblock: SuperblockId, unit: u32) -> u32 {
        let Some(lost) = self.lost.as_ref() else { return 0 };
        let (first, last) = self.config.geometry.stripe_units(unit);
        let parity_die = self.layout.unit(last).parity_die;
        let (bank, number) = (self.bank_of(superblock), superblock.0 / self.banks.divisor());
        let of_bank = || lost.dies.iter().filter(|lost| lost.bank == bank);
        let own =
            |lost: &LostDie| (first..=last).find(|unit| self.layout.unit(*unit).die == lost.die);
        // A stripe that was begun when a die of it was lost was left as it was: nothing but parity
        // was placed in it any more.
        let left_at = of_bank().filter_map(|lost| {
            let before = lost.units_before[number as usize];
            let is_left = before <= last && own(lost).is_some_and(|own| own < before);
            is_left.then_some(before)
        });
        let left_at = left_at.min().unwrap_or(u32::MAX);
        let is_lacking = |lost: &&LostDie| {
            let before = lost.units_before[number as usize];
            match own(lost) {
                Some(own) => own < before.min(left_at),
                // Parity is complete once the last unit is placed.
                None => parity_die == Some(lost.die) && last < before,
            }
        };
        let lacking = of_bank().filter(is_lacking).count();
        u32::try_from(lacking).expect("no more than a stripe has")
    }

    /// Die within the bank that takes the parity of the stripe of `unit` in rows that are written
    /// now: its own one, else the last of the data that is in service. Absent without parity, or
    /// where no die is left for it.
    fn parity_holder(&self, bank: u32, unit: u32) -> Option<u16> {
        let lost = self.lost.as_ref()?;
        let (first, last) = self.config.geometry.stripe_units(unit);
        let own = self.layout.unit(last).parity_die?;
        if !lost.has(bank, own) {
            return Some(own);
        }
        let dies = (first..=last).rev().map(|unit| self.layout.unit(unit).die);
        dies.into_iter().find(|die| !lost.has(bank, *die))
    }

    /// True if nothing is placed in a unit because a die is lost: it lies there, or takes the
    /// parity instead, or the rest of its stripe was placed before and lacks a unit.
    fn is_left_out(&self, Unit { superblock, index }: Unit) -> bool {
        let Some(lost) = self.lost.as_ref() else { return false };
        let bank = self.bank_of(superblock);
        let die = self.layout.unit(index).die;
        lost.has(bank, die)
            || self.parity_holder(bank, index) == Some(die)
            || self.lacks(superblock, index) > 0
    }

    /// True if something was placed in the stripe of `unit`, which has been gone through.
    fn holds_data(&self, superblock: SuperblockId, unit: u32) -> bool {
        let (first, last) = self.config.geometry.stripe_units(unit);
        self.lacks(superblock, unit) > 0
            || (first..=last).any(|index| !self.is_left_out(Unit { superblock, index }))
    }

    /// Passes over the units of the superblock that a stream has open for a bank that are left out.
    /// Parity of a stripe that one of them completes is programmed where it is held now.
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
            if place.parity_die.is_some()
                && self.holds_data(superblock, unit)
                && let Some(holder) = self.parity_holder(self.bank_of(superblock), unit)
            {
                let die = DieId(open.die_first + u32::from(holder));
                assert!(!self.is_lost(die), "parity is programmed on a die in service");
                let (row, cause) = (u32::from(place.row), Cause::Parity);
                media.submit(MediaOp::Program { superblock, die, row, cause, is_slc });
                self.counters.pages_parity += self.pages_of_parity(superblock);
            }
        }
    }
}
