//! Garbage collection: reclaiming superblocks by relocating what is still valid in them.
//!
//! One victim at a time. How fast depends on the room left ([`crate::Watermarks`]): between `high`
//! and `low` each host page brings a share of the victim's work that just replaces what the host
//! uses up, `valid / (pages - valid)` pages, more as `low` comes nearer. A victim that costs more
//! than `price_max` is put off until `low` is reached; then host writes wait until room for `burst`
//! superblocks has been gained: the world stops, which is what makes the latency of a drive with
//! little spare space so uneven.

use crate::ftl::lost_dies::Redundancy;
use crate::mapping::{Map, Mapping};
use crate::stream::{ExtentMove, Origin, Stream};
use crate::{Cause, Config, Debt, Ftl, Lpn, Media, Ppn, SuperblockId, wear};

/// Valid pages of the victim whose map entries are fetched at a time, one such lot ahead: together,
/// so that the cache misses overlap.
const LOT: usize = 16;

/// The watermarks in granules of room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    pub(crate) stop: u64,
    pub(crate) resume: u64,
    pub(crate) pace: u64,
}

impl Thresholds {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    pub(crate) fn new(config: &Config) -> Self {
        let granules = u64::from(config.granules_per_superblock());
        let watermarks = &config.watermarks;
        let stop = u64::from(watermarks.low) * granules;
        let burst = (watermarks.burst * granules as f64).ceil() as u64;
        let (resume, pace) = (stop + burst.max(1), u64::from(watermarks.high) * granules);
        assert!(stop < resume, "host writes go on with more room than they stop with");
        assert!(stop < pace, "relocation keeps pace before host writes stop");
        Self { stop, resume, pace }
    }
}

/// State of garbage collection.
#[derive(Clone, Debug)]
pub(crate) struct Relocation {
    victim: Option<Victim>,
    /// Granules still to be relocated to keep pace with host writes.
    owed: f64,
    /// True while host writes wait: from the low watermark until `burst` superblocks have been
    /// gained.
    pub(crate) stopped: bool,
    /// True if the last victim was chosen by wear levelling.
    levelled: bool,
}

/// A superblock that is being reclaimed.
#[derive(Clone, Debug)]
struct Victim {
    superblock: SuperblockId,
    /// Its first page, and the first die of its bank.
    first: Ppn,
    die_first: u32,
    cause: Cause,
    /// The stream that its pages are moved to.
    stream: Stream,
    /// Pages relocated for each page gained.
    price: f64,
    valid: ValidPages,
}

/// The valid pages of a superblock, in order.
#[derive(Clone, Debug)]
struct ValidPages {
    /// The next page to look at.
    at: u32,
    /// The one after the last.
    end: u32,
    /// Word of the validity bitmap that is being scanned: bit `i` is set if page `word_first + i`
    /// is valid and not found yet.
    word: u64,
    word_first: u32,
    /// Valid pages that were found, in a ring of two lots: one to be taken, and one whose map
    /// entries are being prefetched. The logical page is `None` while it is left to the media.
    found: [(Ppn, Option<Lpn>); 2 * LOT],
    found_count: usize,
    taken_count: usize,
}

impl ValidPages {
    /// Valid pages from `first` on, before `end`.
    fn of(first: Ppn, end: Ppn, map: Map<'_>) -> Self {
        let mut pages = Self {
            at: first.0,
            end: end.0,
            word: 0,
            word_first: first.0,
            found: [(first, None); 2 * LOT],
            found_count: 0,
            taken_count: 0,
        };
        pages.find_lot(map);
        pages.find_lot(map);
        pages
    }

    /// The next page that is valid now.
    #[inline]
    fn next(&mut self, map: Map<'_>) -> Option<(Ppn, Option<Lpn>)> {
        while self.taken_count < self.found_count {
            let page = self.found[self.taken_count % (2 * LOT)];
            self.take(map);
            // The host may have written it anew since it was found.
            if map.mapping.is_valid(page.0) {
                return Some(page);
            }
        }
        None
    }

    /// The next page that is valid now, which stays the next one.
    fn peek(&mut self, map: Map<'_>) -> Option<Ppn> {
        while self.taken_count < self.found_count {
            let (ppn, _) = self.found[self.taken_count % (2 * LOT)];
            if map.mapping.is_valid(ppn) {
                return Some(ppn);
            }
            self.take(map);
        }
        None
    }

    /// Goes on by one page that was found.
    #[inline]
    fn take(&mut self, map: Map<'_>) {
        self.taken_count += 1;
        if self.taken_count.is_multiple_of(LOT) {
            self.find_lot(map);
        }
    }

    /// Finds the next lot and has its map entries fetched.
    fn find_lot(&mut self, map: Map<'_>) {
        for _ in 0..LOT {
            let Some(ppn) = self.find(map.mapping) else { break };
            let lpn = map.mapping.lpn(ppn);
            if let Some(lpn) = lpn {
                map.mapping.prefetch(lpn);
                map.extents.prefetch(lpn);
            }
            self.found[self.found_count % (2 * LOT)] = (ppn, lpn);
            self.found_count += 1;
        }
        let waiting = self.found_count - self.taken_count;
        assert!(waiting <= 2 * LOT, "no page that was found is overwritten before it is taken");
    }

    #[inline]
    fn find(&mut self, mapping: &Mapping) -> Option<Ppn> {
        // A word is rarely empty, so that this branch is predicted where one a page is not.
        while self.word == 0 {
            if self.at == self.end {
                return None;
            }
            self.word_first = self.at;
            (self.word, self.at) = mapping.validity(self.at, self.end);
        }
        let ppn = Ppn(self.word_first + self.word.trailing_zeros());
        self.word &= self.word - 1;
        debug_assert!(ppn.0 < self.at, "a valid page is found where it was looked for");
        Some(ppn)
    }
}

impl Default for Relocation {
    fn default() -> Self {
        Self { victim: None, owed: 0.0, stopped: false, levelled: false }
    }
}

impl Relocation {
    /// The superblock that is being reclaimed, if any.
    pub(crate) fn superblock(&self) -> Option<SuperblockId> {
        self.victim.as_ref().map(|victim| victim.superblock)
    }
}

impl Ftl {
    /// True if free space is below the high watermark, or the loss of a die is to be made good: an
    /// owner that is idle may relocate.
    #[inline]
    pub fn wants_room(&self) -> bool {
        match self.redundancy() {
            Redundancy::Whole => self.is_short(),
            Redundancy::Rebuilding | Redundancy::Restoring => true,
            Redundancy::Exhausted => false,
        }
    }

    /// Relocates about as many pages as a program unit holds: off the stripes of a lost die while
    /// there is room, else of a victim; nothing once nothing may be written. One step, for an owner
    /// that lets time pass between steps.
    pub fn relocate_unit(&mut self, media: &mut impl Media) {
        match self.redundancy() {
            Redundancy::Exhausted => return,
            Redundancy::Rebuilding | Redundancy::Restoring if !self.needs_room() => {
                return self.rebuild_unit(media);
            }
            _ => {}
        }
        for _ in 0..self.pages_per_unit.divisor() {
            self.relocate_page(media);
        }
    }

    /// Relocates in proportion to a page that the host wrote, which took `granules`.
    ///
    /// Exactly the victim's price half-way between the watermarks, none at the upper one and twice
    /// the price at the lower one. A victim dearer than `price_max` is left alone: it may become
    /// cheaper before it has to be paid for.
    #[inline]
    pub(crate) fn keep_pace(&mut self, granules: u32, media: &mut impl Media) {
        if self.room > self.thresholds.pace {
            return;
        }
        self.owe(granules);
        if !self.owes(1) {
            return;
        }
        assert!(self.relocation.owed.is_finite(), "what is owed can be paid");
        while self.relocation.owed >= 1.0 {
            self.relocation.owed -= f64::from(self.relocate_page(media).max(1));
        }
    }

    /// Begins to reclaim a closed superblock.
    pub(crate) fn reclaim(&mut self, superblock: SuperblockId) {
        assert!(!self.is_reclaiming(), "one superblock is reclaimed at a time");
        self.relocation.victim = Some(self.victim(superblock, Cause::Relocation));
    }
}

impl Ftl<Debt> {
    /// True if one more page of the host, of any extent, can be placed without an erase. Always so
    /// while [`Ftl::needs_room`] is false.
    pub fn can_write(&self) -> bool {
        self.can_advance(Stream::HOST)
    }

    /// Superblocks that were erased and not released, longest ago first.
    pub fn held_erased(&self) -> &[SuperblockId] {
        self.held.as_deref().unwrap_or_default()
    }

    /// The `count` superblocks that have been held longest may be opened; those that are condemned
    /// are retired.
    pub fn release_erased(&mut self, count: usize) {
        let Some(held) = &mut self.held else { return };
        for superblock in held.drain(..count).collect::<Vec<_>>() {
            self.release(superblock);
        }
    }

    /// True if host pages written by [`Ftl::write_owing`] owe at least `count` batches of
    /// relocation.
    #[inline]
    pub fn owes_batches(&self, count: u32) -> bool {
        self.owes(count)
    }

    /// The physical page that [`Ftl::relocate_next`] will move next, so that the owner can have
    /// read it by then; none if that would erase an empty victim, or there is no victim.
    pub fn next_to_relocate(&mut self) -> Option<Ppn> {
        self.see_victim();
        let victim = self.relocation.victim.as_mut()?;
        let next = victim.valid.peek(Map { mapping: &self.mapping, extents: &self.extents });
        let is_empty = self.superblocks.granules_valid(victim.superblock) == 0;
        assert_eq!(next.is_none(), is_empty, "a victim gives what it holds");
        next
    }

    /// Moves one page of the victim, and erases the victim once it is empty; pays for it what host
    /// pages owe.
    pub fn relocate_next(&mut self, media: &mut impl Media) {
        assert!(self.relocation.owed.is_finite(), "what is owed can be paid");
        let granules = self.relocate_page(media).max(1);
        let left = self.relocation.owed - f64::from(granules);
        // Debts that added up while no caller relocated are void once there is room again.
        self.relocation.owed = if self.is_short() { left.max(0.0) } else { 0.0 };
    }
}

impl<C> Ftl<C> {
    /// True if host writes must wait for relocation to catch up.
    #[inline]
    pub const fn needs_room(&self) -> bool {
        self.relocation.stopped
    }

    /// True if free space is below the high watermark, and relocation does not keep pace since the
    /// victim costs more than `price_max`.
    pub(crate) fn puts_relocation_off(&self) -> bool {
        let price = self.relocation.victim.as_ref().map(|victim| victim.price);
        self.is_short() && price.is_some_and(|price| price > self.config.watermarks.price_max)
    }

    /// True if free space is below the high watermark.
    #[inline]
    pub(crate) const fn is_short(&self) -> bool {
        self.room < self.thresholds.pace
    }

    /// True if a stream has a place for a page: in its open superblock, or in a free one. False
    /// only for a recovered map that no drive could have written.
    #[inline]
    pub(crate) fn can_advance(&self, stream: Stream) -> bool {
        if self.superblocks.free() > 0 && self.free_by_bank.iter().any(|free| !free.is_empty()) {
            return true;
        }
        let state = &self.streams[stream];
        let open = state.frontiers[state.bank as usize].as_ref();
        open.is_some_and(|open| {
            let rows = if self.shortened.units > 0 || open.left_out > 0 || self.lost.is_some() {
                self.units_per_row
            } else {
                1
            };
            open.granules_left >= self.config.granules_per_page()
                || open.unit + rows < self.units_per_superblock
        })
    }

    /// Stops host writes, or lets them go on, after room has been used or gained.
    #[inline]
    pub(crate) fn watch_room(&mut self) {
        if self.room <= self.thresholds.stop {
            self.relocation.stopped = true;
        } else if self.room >= self.thresholds.resume {
            self.relocation.stopped = false;
        }
    }

    /// Adds up what a page of the host owes.
    #[inline]
    pub(crate) fn owe(&mut self, granules: u32) {
        let thresholds = &self.thresholds;
        if self.room > thresholds.pace {
            return;
        }
        let below = (thresholds.pace - self.room) as f64;
        let urgency = 2.0 * below / (thresholds.pace - thresholds.stop) as f64;
        let price = self.victim_price();
        if price > self.config.watermarks.price_max {
            return;
        }
        self.relocation.owed += price * urgency * f64::from(granules);
    }

    #[inline]
    fn owes(&self, batches: u32) -> bool {
        let batch = self.config.watermarks.batch_pages * self.config.granules_per_page();
        self.relocation.owed >= f64::from(batch.max(1)) * f64::from(batches)
    }

    /// Pages relocated for each page gained from the present victim, or the next one.
    #[inline]
    fn victim_price(&mut self) -> f64 {
        self.see_victim();
        self.relocation.victim.as_ref().map_or(f64::INFINITY, |victim| victim.price)
    }

    /// Relocates the next valid page of the victim; erases the victim when none is left. Returns
    /// the granules relocated: none, too, where no superblock is left to relocate to.
    #[inline]
    pub(crate) fn relocate_page(&mut self, media: &mut impl Media) -> u32 {
        self.see_victim();
        let Some(victim) = &self.relocation.victim else { return 0 };
        let (superblock, stream) = (victim.superblock, victim.stream);
        let mut granules = 0;
        if self.superblocks.granules_valid(superblock) > 0 {
            if !self.can_advance(stream) {
                return 0;
            }
            let victim = self.relocation.victim.as_mut().expect("chosen above");
            let found = victim.valid.next(Map { mapping: &self.mapping, extents: &self.extents });
            let (ppn, kept) = found.expect("as granules_valid counts");
            let (cause, die_first, place) =
                (victim.cause, victim.die_first, ppn.0 - victim.first.0);
            debug_assert_eq!(self.superblock_of(ppn), superblock, "a victim gives what it holds");
            let from = Origin { superblock, ppn, die: self.die_at(die_first, place) };
            let lpn = match kept {
                Some(lpn) => lpn,
                None => self.ask(from, media),
            };
            granules = self.extents.size(lpn);
            let saved_bytes = self.saved_bytes(granules);
            if cause == Cause::Wear {
                self.counters.pages_wear += 1;
                self.counters.wear_saved_bytes += saved_bytes;
            } else {
                self.counters.pages_relocation += 1;
                self.counters.relocation_saved_bytes += saved_bytes;
            }
            self.move_extent(ExtentMove { lpn, granules, stream, cause }, from, media);
        }
        if self.superblocks.granules_valid(superblock) == 0 {
            self.relocation.victim = None;
            debug_assert!(!self.is_any_valid_in(superblock), "what is erased is not mapped");
            self.erase(superblock, media);
        }
        granules
    }

    /// True if any place of a superblock is valid, by the map and not by its count.
    fn is_any_valid_in(&self, superblock: SuperblockId) -> bool {
        let places = self.config.places_per_superblock();
        let first = superblock.0 * places;
        self.mapping.is_any_valid(first..first + places)
    }

    #[inline]
    fn see_victim(&mut self) {
        if self.relocation.victim.is_none() {
            self.relocation.victim = self.choose_victim();
        }
    }

    fn choose_victim(&mut self) -> Option<Victim> {
        let granules = self.config.granules_per_superblock();
        // At most every second victim, so that worn superblocks come free in between.
        let due = !self.relocation.levelled;
        let overdue =
            due.then(|| wear::overdue(&self.superblocks, self.config.wear_spread_max)).flatten();
        self.relocation.levelled = overdue.is_some();
        let (superblock, cause) = if let Some(superblock) = overdue {
            (superblock, Cause::Wear)
        } else {
            (self.choose_by_policy(granules)?, Cause::Relocation)
        };
        Some(self.victim(superblock, cause))
    }

    /// True if a superblock is being reclaimed.
    pub(crate) const fn is_reclaiming(&self) -> bool {
        self.relocation.victim.is_some()
    }

    /// A closed superblock becomes the victim.
    fn victim(&mut self, superblock: SuperblockId, cause: Cause) -> Victim {
        let granules = self.config.granules_per_superblock();
        self.superblocks.choose(superblock);
        let relocated = self.superblocks.granules_valid(superblock);
        let gained = (granules - relocated).max(1);
        let price = f64::from(relocated) / f64::from(gained);
        let places = self.config.places_per_superblock();
        let first = Ppn(superblock.0 * places);
        let map = Map { mapping: &self.mapping, extents: &self.extents };
        let valid = ValidPages::of(first, Ppn(first.0 + places), map);
        let die_first = self.die_first(superblock);
        let owner = self.superblocks.owner(superblock);
        let stream = Stream::moving(owner, cause, self.config.handles);
        Victim { superblock, first, die_first, cause, stream, price, valid }
    }

    /// The victim in the bank that has fewest free superblocks, so that every bank keeps some and
    /// no stream has to borrow dies of another; from all banks if that one has nothing to gain.
    fn choose_by_policy(&mut self, granules: u32) -> Option<SuperblockId> {
        let (policy, banks) = (self.config.victim, self.config.geometry.banks);
        let (superblocks, rng) = (&self.superblocks, &mut self.rng);
        let free = |bank: &usize| self.free_by_bank[*bank].len();
        let neediest = (0..self.free_by_bank.len()).min_by_key(free)?;
        let in_bank = superblocks.ids().skip(neediest).step_by(banks as usize);
        policy
            .choose(in_bank, superblocks, granules, rng)
            .filter(|id| superblocks.granules_valid(*id) < granules)
            .or_else(|| policy.choose(superblocks.ids(), superblocks, granules, rng))
    }
}
