//! Garbage collection: reclaiming superblocks by relocating what is still valid in them.
//!
//! One victim at a time. How fast depends on the room left ([`crate::Watermarks`]): between `high`
//! and `low` each host page brings a share of the victim's work that just replaces what the host
//! uses up, `valid / (pages - valid)` pages, more as `low` comes nearer. A victim that costs more
//! than `price_max` is put off until `low` is reached; then host writes wait until room for `burst`
//! superblocks has been gained: the world stops, which is what makes the latency of a drive with
//! little spare space so uneven.

use crate::ftl::Stream;
use crate::{Cause, Config, Ftl, Lpn, Media, Ppn, SuperblockId, wear};

/// Victim pages whose map entries are looked up together.
const CHUNK_PAGES: u32 = 64;

/// The watermarks in pages of room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    stop: u64,
    resume: u64,
    pace: u64,
}

impl Thresholds {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    pub(crate) fn new(config: &Config) -> Self {
        let pages = u64::from(config.geometry.pages_per_superblock());
        let watermarks = &config.watermarks;
        let stop = u64::from(watermarks.low) * pages;
        let burst = (watermarks.burst * pages as f64).ceil() as u64;
        Self { stop, resume: stop + burst.max(1), pace: u64::from(watermarks.high) * pages }
    }
}

/// State of garbage collection.
#[derive(Clone, Debug)]
pub(crate) struct Relocation {
    victim: Option<Victim>,
    /// Pages owed to the host's writes, in pages.
    owed: f64,
    /// Whether host writes wait: from `low` superblocks of room until there are `low + burst`.
    pub(crate) stopped: bool,
    /// Whether the last victim was chosen by wear levelling.
    levelled: bool,
    /// Source of the page that is being placed.
    pub(crate) from: Ppn,
}

#[derive(Clone, Copy, Debug)]
struct Victim {
    superblock: SuperblockId,
    cause: Cause,
    /// Pages looked at so far.
    pages_scanned: u32,
    /// Pages relocated for each page gained.
    price: f64,
}

impl Default for Relocation {
    fn default() -> Self {
        Self { victim: None, owed: 0.0, stopped: false, levelled: false, from: Ppn(0) }
    }
}

impl Ftl {
    /// Whether host writes must wait: relocation has to catch up first.
    #[inline]
    pub const fn needs_room(&self) -> bool {
        self.relocation.stopped
    }

    /// Whether relocation has anything to gain: an owner with time on its hands may relocate.
    #[inline]
    pub const fn wants_room(&self) -> bool {
        self.room_pages < self.thresholds.pace
    }

    /// Relocates until host writes may go on, if they may not.
    pub fn make_room(&mut self, media: &mut impl Media) {
        while self.needs_room() {
            self.relocate_unit(media);
        }
    }

    /// Relocates about as many pages as a program unit holds: one step of [`Ftl::make_room`], or of
    /// relocation in the background, for an owner that lets time pass between steps.
    pub fn relocate_unit(&mut self, media: &mut impl Media) {
        for _ in 0..self.config.geometry.pages_per_unit() {
            self.relocate_page(media);
        }
    }

    /// Stops host writes, or lets them go on, after room has been used or gained.
    #[inline]
    pub(crate) fn watch_room(&mut self) {
        if self.room_pages <= self.thresholds.stop {
            self.relocation.stopped = true;
        } else if self.room_pages >= self.thresholds.resume {
            self.relocation.stopped = false;
        }
    }

    /// Relocates in proportion to one page that the host wrote.
    ///
    /// Exactly the victim's price half-way between the watermarks, none at the upper one and twice
    /// the price at the lower one. A victim dearer than `price_max` is left alone: it may become
    /// cheaper before it has to be paid for.
    #[inline]
    pub(crate) fn keep_pace(&mut self, media: &mut impl Media) {
        let thresholds = &self.thresholds;
        if self.room_pages > thresholds.pace {
            return;
        }
        let below = (thresholds.pace - self.room_pages) as f64;
        let urgency = 2.0 * below / (thresholds.pace - thresholds.stop) as f64;
        let price = self.victim_price();
        if price > self.config.watermarks.price_max {
            return;
        }
        self.relocation.owed += price * urgency;
        if self.relocation.owed < f64::from(self.config.watermarks.batch_pages) {
            return;
        }
        while self.relocation.owed >= 1.0 {
            self.relocation.owed -= 1.0;
            self.relocate_page(media);
        }
    }

    /// Pages relocated for each page gained from the present victim, or the next one.
    #[inline]
    fn victim_price(&mut self) -> f64 {
        if self.relocation.victim.is_none() {
            self.relocation.victim = self.choose_victim();
        }
        self.relocation.victim.map_or(f64::INFINITY, |victim| victim.price)
    }

    /// Relocates the next valid page of the victim; erases the victim when none is left.
    fn relocate_page(&mut self, media: &mut impl Media) {
        let Some(mut victim) = self.relocation.victim.or_else(|| self.choose_victim()) else {
            return;
        };
        if self.superblocks.pages_valid(victim.superblock) > 0 {
            let (from, lpn) = self.next_valid(&mut victim).expect("as many as pages_valid counts");
            self.relocation.victim = Some(victim);
            self.relocation.from = from;
            let stream = if victim.cause == Cause::Wear {
                self.counters.pages_wear += 1;
                Stream::Wear
            } else {
                self.counters.pages_relocation += 1;
                Stream::Relocation
            };
            self.place(lpn, stream, victim.cause, media);
        }
        if self.superblocks.pages_valid(victim.superblock) == 0 {
            self.relocation.victim = None;
            self.erase(victim.superblock, media);
        }
    }

    /// The next page of the victim that is still valid.
    fn next_valid(&self, victim: &mut Victim) -> Option<(Ppn, Lpn)> {
        let pages = self.config.geometry.pages_per_superblock();
        let first = victim.superblock.0 * pages;
        while victim.pages_scanned < pages {
            if victim.pages_scanned.is_multiple_of(CHUNK_PAGES) {
                self.touch_victim(first + victim.pages_scanned, pages - victim.pages_scanned);
            }
            let ppn = Ppn(first + victim.pages_scanned);
            victim.pages_scanned += 1;
            if let Some(lpn) = self.mapping.lpn_if_valid(ppn) {
                return Some((ppn, lpn));
            }
        }
        None
    }

    /// Looks up a chunk of the victim's pages, so that their cache misses overlap.
    fn touch_victim(&self, first: u32, pages_left: u32) {
        std::hint::black_box(self.mapping.count_valid(Ppn(first), pages_left.min(CHUNK_PAGES)));
    }

    fn choose_victim(&mut self) -> Option<Victim> {
        let pages = self.config.geometry.pages_per_superblock();
        // At most every second victim, so that worn superblocks come free in between.
        let due = !self.relocation.levelled;
        let overdue =
            due.then(|| wear::overdue(&self.superblocks, self.config.wear_spread_max)).flatten();
        self.relocation.levelled = overdue.is_some();
        let (superblock, cause) = if let Some(superblock) = overdue {
            (superblock, Cause::Wear)
        } else {
            (self.choose_by_policy(pages)?, Cause::Relocation)
        };
        self.superblocks.choose(superblock);
        let valid = self.superblocks.pages_valid(superblock);
        let gained = (pages - valid).max(1);
        let price = f64::from(valid) / f64::from(gained);
        Some(Victim { superblock, cause, pages_scanned: 0, price })
    }

    /// The victim in the bank that has fewest free superblocks, so that every bank keeps some and
    /// no stream has to borrow dies of another; from all banks if that one has nothing to gain.
    fn choose_by_policy(&mut self, pages: u32) -> Option<SuperblockId> {
        let (policy, banks) = (self.config.victim, self.config.geometry.banks);
        let (superblocks, rng) = (&self.superblocks, &mut self.rng);
        let free = |bank: &usize| self.free_by_bank[*bank].len();
        let neediest = (0..self.free_by_bank.len()).min_by_key(free)?;
        let in_bank = superblocks.ids().skip(neediest).step_by(banks as usize);
        policy
            .choose(in_bank, superblocks, pages, rng)
            .filter(|id| superblocks.pages_valid(*id) < pages)
            .or_else(|| policy.choose(superblocks.ids(), superblocks, pages, rng))
    }
}
