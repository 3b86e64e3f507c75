//! A fast class before a slow one: where each block lies, and what has to be transferred.
//!
//! ```text
//!             ┌─ fast class: │ pinned │ written, not destaged │ read cache │
//!  requests ──┤                               │ destage          ▲ admit
//!             └─ slow class:                  ▼                  │
//! ```
//!
//! The owner carries out transfers and says when they are done. Whole blocks of 4 KiB move: a part
//! of one is transferred as all of it.
//!
//! **Invariants**: what was written and not destaged is read from nowhere else; the read cache has
//! no copy of it.

use blockio::Nanos;

use crate::budget::Budget;
use crate::busyness::Busyness;
use crate::cache::{Block, Cache};
use crate::counters::TierCounters;
use crate::policy::{Class, Layout, Policy, TierError, WriteMode};
use crate::queues::Queues;
use crate::slow_log::SlowLog;
use crate::transfer::{Direction, Transfer, push};
use crate::write_area::{Leaving, WriteArea};

/// Size of a block in bytes.
pub const BLOCK_BYTES: u64 = 4096;

/// Fewest units of destaging that the space for written data holds, so that it is filled while it
/// is emptied.
const UNITS_MIN: u32 = 4;

/// Classes that a tier is made of.
#[derive(Clone, Copy, Debug)]
pub struct Classes {
    /// Blocks of the fast class.
    pub fast_blocks: u64,
    /// Blocks of the slow class.
    pub slow_blocks: u64,
    /// Time lapse k: they have 1/k of their capacity, and a day lasts 1/k of one.
    pub time_lapse: u32,
}

/// Transfers of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Transfers that the host waits for.
    pub awaited: Vec<Transfer>,
    /// Transfers after those, which the host does not wait for: admissions to the read cache.
    pub after: Vec<Transfer>,
}

/// A unit of written data on its way to the slow class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destage {
    /// Transfers to carry out first.
    pub reads: Vec<Transfer>,
    /// Transfers to carry out then.
    pub writes: Vec<Transfer>,
    leaving: Vec<Leaving>,
    end: u64,
}

/// A pinned range, in blocks.
#[derive(Clone, Copy, Debug)]
struct PinnedRange {
    first: Block,
    end: Block,
    class: Class,
    /// Place of the first block on the fast class.
    place: u32,
}

/// The read cache on the fast class.
#[derive(Clone, Debug)]
struct ReadCache {
    cache: Cache,
    /// First place on the fast class.
    first: u32,
    /// Place of each block that it holds, from `first` on, by number of the block.
    places: Vec<u32>,
    free: Vec<u32>,
    /// Blocks that were missed and not admitted, with the number of their misses.
    missed: Queues<1>,
}

/// Data of two classes, without the data.
#[derive(Clone, Debug)]
pub struct Tier {
    policy: Policy,
    blocks: u32,
    pins: Vec<PinnedRange>,
    /// First place of written data on the fast class.
    written_first: u32,
    written: Option<WriteArea>,
    /// Blocks waiting in `written` from which on they are destaged.
    destage_from: u32,
    destages: u32,
    reads: Option<ReadCache>,
    log: Option<SlowLog>,
    budget: Option<Budget>,
    busyness: Busyness,
    counters: TierCounters,
}

impl Tier {
    /// A tier without data.
    ///
    /// # Errors
    /// Names the key or the property of a class with which it cannot work, and its limit.
    pub fn new(policy: &Policy, classes: &Classes) -> Result<Self, TierError> {
        policy.check()?;
        let [fast, slow] =
            [("fast", classes.fast_blocks), ("slow", classes.slow_blocks)].map(|(name, blocks)| {
                let limit = "below 4294967295 blocks of 4 KiB; a larger time lapse needs fewer";
                let count = u32::try_from(blocks).ok().filter(|blocks| *blocks < u32::MAX);
                count.ok_or_else(|| TierError::new(name, &format!("{blocks} blocks"), limit))
            });
        let (fast, slow) = (fast?, slow?);
        let log = match policy.layout {
            Layout::InPlace => None,
            Layout::Log => Some(SlowLog::new(policy, slow, classes.time_lapse)?),
        };
        let blocks = log.as_ref().map_or(slow, SlowLog::blocks);
        let (pins, pinned) = pinned_ranges(policy, blocks, classes.time_lapse)?;
        let free = fast.checked_sub(pinned).ok_or_else(|| {
            let limit = format!("at most the {fast} blocks of the fast class");
            TierError::new("pin", &format!("{pinned} blocks on the fast class"), limit)
        })?;
        let written_blocks = written_blocks(policy, free)?;
        let reads = policy.read_cache.map(|replacement| {
            let first = pinned + written_blocks;
            let cache = Cache::new(replacement, free - written_blocks).map_err(|error| {
                let limit = format!("{} at least", error.blocks_min);
                TierError::new("read_cache", &format!("{} blocks", error.blocks), limit)
            })?;
            Ok(ReadCache::new(cache, first))
        });
        let day = Nanos::from_secs_f64(86_400.0) / u64::from(classes.time_lapse.max(1));
        let per_day = policy.admit_drive_writes_per_day.map(|times| times * f64::from(fast));
        let written = policy.writes_to_fast();
        Ok(Self {
            policy: policy.clone(),
            blocks,
            pins,
            written_first: pinned,
            written: written.then(|| WriteArea::new(policy.write, written_blocks)),
            destage_from: share(written_blocks, policy.destage_percent),
            destages: 0,
            reads: reads.transpose()?,
            log,
            budget: per_day.map(|blocks| Budget::new(blocks, day)),
            busyness: Busyness::new(),
            counters: TierCounters::default(),
        })
    }

    /// Blocks that the host sees.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Counts since it was made.
    pub fn counters(&self) -> TierCounters {
        let log = self.log.as_ref().map(SlowLog::counters).unwrap_or_default();
        TierCounters { relocated: log.pages_relocation, ..self.counters }
    }

    /// Share of the space for written data that is in use, 0 to 1; absent where there is none.
    pub fn written_share(&self) -> Option<f64> {
        let written = self.written.as_ref()?;
        Some(1.0 - f64::from(written.free()) / f64::from(written.blocks()))
    }

    /// Plans a read of `blocks` blocks from `first` on, at `at`.
    pub fn read(&mut self, (first, blocks): (Block, u32), at: Nanos) -> Plan {
        self.assert_inside(first, blocks);
        let mut plan = Plan::default();
        self.counters.read += u64::from(blocks);
        let admits = blocks <= self.policy.admit_kib_max / 4;
        for block in first..first + blocks {
            let (class, place) = self.place_to_read(block, blocks);
            push(&mut plan.awaited, class, Direction::Read, place);
            let is_held = class == Class::Fast || self.has_copy(block);
            self.counters.held += u64::from(is_held);
            self.counters.read_fast += u64::from(class == Class::Fast);
            if !is_held && admits && self.pin_of(block).is_none() {
                self.admit(block, at, &mut plan.after);
            }
        }
        plan
    }

    /// True if a write of `blocks` blocks finds room; it has to wait for destaging if not.
    pub fn has_room(&self, blocks: u32) -> bool {
        self.written.as_ref().is_none_or(|written| written.free() >= blocks)
    }

    /// Most blocks of a write that is planned in one go: the owner splits longer ones.
    pub fn write_blocks_max(&self) -> u32 {
        // With less room than that, more waits than may, and a unit is destaged.
        let most = |blocks: u32| (blocks / UNITS_MIN).min(blocks - self.destage_from).max(1);
        self.written.as_ref().map_or(u32::MAX, |written| most(written.blocks()))
    }

    /// Plans a write of `blocks` blocks from `first` on, at `at`, for which there is room.
    pub fn write(&mut self, (first, blocks): (Block, u32), at: Nanos) -> Plan {
        self.assert_inside(first, blocks);
        let mut plan = Plan::default();
        self.counters.written += u64::from(blocks);
        for block in first..first + blocks {
            match self.pin_of(block) {
                Some(pin) => self.write_pinned(block, &pin, &mut plan),
                None => self.write_block(block, (blocks, at), &mut plan),
            }
        }
        plan
    }

    fn write_pinned(&mut self, block: Block, pin: &PinnedRange, plan: &mut Plan) {
        match pin.class {
            Class::Fast => {
                let place = pin.place + (block - pin.first);
                push(&mut plan.awaited, Class::Fast, Direction::Write, place);
            }
            Class::Slow => {
                self.counters.written_slow += 1;
                push(&mut plan.awaited, Class::Slow, Direction::Write, block);
            }
        }
    }

    fn write_block(&mut self, block: Block, (blocks, at): (u32, Nanos), plan: &mut Plan) {
        if let Some(written) = &mut self.written {
            let (place, was_here) = written.write(block);
            self.counters.absorbed += u64::from(was_here);
            self.forget_copy(block);
            let place = self.written_first + place;
            push(&mut plan.awaited, Class::Fast, Direction::Write, place);
            return;
        }
        self.counters.written_slow += 1;
        push(&mut plan.awaited, Class::Slow, Direction::Write, block);
        let reads = self.reads.as_mut().expect("checked: writes around a read cache");
        if self.policy.write == WriteMode::Around {
            reads.remove(block);
        } else if reads.cache.find(block) {
            push(&mut plan.awaited, Class::Fast, Direction::Write, reads.place(block));
        } else if blocks <= self.policy.admit_kib_max / 4 {
            let mut admitted = Vec::new();
            self.admit(block, at, &mut admitted);
            plan.awaited.append(&mut admitted);
        }
    }

    /// Forgets `blocks` blocks from `first` on; returns what the slow class is to forget.
    pub fn trim(&mut self, (first, blocks): (Block, u32)) -> Vec<Transfer> {
        self.assert_inside(first, blocks);
        let mut trims = Vec::new();
        for block in first..first + blocks {
            if let Some(pin) = self.pin_of(block).filter(|pin| pin.class == Class::Fast) {
                let place = pin.place + (block - pin.first);
                push(&mut trims, Class::Fast, Direction::Trim, place);
                continue;
            }
            if let Some(written) = &mut self.written {
                written.forget(block);
            }
            self.forget_copy(block);
            match &mut self.log {
                Some(log) => log.trim(block),
                None => push(&mut trims, Class::Slow, Direction::Trim, block),
            }
        }
        trims
    }

    /// Writes `blocks` blocks from `first` on as if long ago: they have left the fast class.
    /// Returns what is written to the classes.
    pub fn age(&mut self, (first, blocks): (Block, u32)) -> Vec<Transfer> {
        self.assert_inside(first, blocks);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for block in first..first + blocks {
            if let Some(pin) = self.pin_of(block).filter(|pin| pin.class == Class::Fast) {
                let place = pin.place + (block - pin.first);
                push(&mut writes, Class::Fast, Direction::Write, place);
                continue;
            }
            if let Some(written) = &mut self.written {
                written.forget(block);
            }
            self.forget_copy(block);
            match &mut self.log {
                Some(log) => log.append(block, &mut reads, &mut writes),
                None => push(&mut writes, Class::Slow, Direction::Write, block),
            }
        }
        writes
    }

    /// The next unit to destage, if one is due and not too many are under way.
    pub fn destage(&mut self) -> Option<Destage> {
        let written = self.written.as_mut()?;
        if self.destages >= self.policy.destage_units || written.waiting() <= self.destage_from {
            return None;
        }
        let mut leaving = written.take(self.policy.destage_kib / 4)?;
        let end = written.taken();
        leaving.sort_by_key(|it| it.place);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for Leaving { place, .. } in &leaving {
            push(&mut reads, Class::Fast, Direction::Read, self.written_first + place);
        }
        leaving.sort_by_key(|it| it.block);
        for Leaving { block, .. } in &leaving {
            match &mut self.log {
                Some(log) => log.append(*block, &mut reads, &mut writes),
                None => push(&mut writes, Class::Slow, Direction::Write, *block),
            }
        }
        self.counters.destaged += leaving.len() as u64;
        self.destages += 1;
        Some(Destage { reads, writes, leaving, end })
    }

    /// A unit has been written to the slow class: its space is free.
    pub fn destaged(&mut self, destage: &Destage) {
        assert!(self.destages > 0, "what was destaged was under way");
        self.destages -= 1;
        let written = self.written.as_mut().expect("what was destaged had been written");
        written.left(&destage.leaving, destage.end);
    }

    /// A transfer begins; returns what is outstanding on its class with it, for [`Tier::end`].
    pub fn begin(&mut self, transfer: &Transfer) -> u32 {
        self.busyness.begin(transfer.class, transfer.blocks)
    }

    /// A transfer ended after `latency`.
    pub fn end(&mut self, transfer: &Transfer, outstanding: u32, latency: Nanos) {
        let is_read = transfer.direction == Direction::Read;
        let latency = if is_read { latency } else { Nanos::ZERO };
        self.busyness.end(transfer.class, (transfer.blocks, outstanding), latency);
    }

    /// Class and place from which a block is read, of a request of `blocks`.
    fn place_to_read(&mut self, block: Block, blocks: u32) -> (Class, u32) {
        if let Some(pin) = self.pin_of(block) {
            return match pin.class {
                Class::Fast => (Class::Fast, pin.place + (block - pin.first)),
                Class::Slow => (Class::Slow, self.slow_place(block)),
            };
        }
        if let Some(place) = self.written.as_ref().and_then(|written| written.place(block)) {
            return (Class::Fast, self.written_first + place);
        }
        let place = self.reads.as_mut().and_then(|reads| {
            let is_hit = reads.cache.find(block);
            is_hit.then(|| reads.place(block))
        });
        match place {
            Some(_) if self.policy.split && self.busyness.choose(blocks) == Class::Slow => {
                (Class::Slow, self.slow_place(block))
            }
            Some(place) => (Class::Fast, place),
            None => (Class::Slow, self.slow_place(block)),
        }
    }

    /// Place of a block on the slow class. A log that never wrote it has none; the class is asked
    /// at the number of the block then.
    fn slow_place(&self, block: Block) -> u32 {
        self.log.as_ref().and_then(|log| log.place(block)).unwrap_or(block)
    }

    fn forget_copy(&mut self, block: Block) {
        if let Some(reads) = &mut self.reads {
            reads.remove(block);
        }
    }

    fn has_copy(&self, block: Block) -> bool {
        self.reads.as_ref().is_some_and(|reads| reads.cache.contains(block))
    }

    /// Takes a block into the read cache, where policy, budget and load allow it.
    fn admit(&mut self, block: Block, at: Nanos, transfers: &mut Vec<Transfer>) {
        let Some(reads) = &mut self.reads else { return };
        if !reads.is_due(block, self.policy.admit_after) {
            return;
        }
        if self.policy.split && self.busyness.choose(1) == Class::Slow {
            return;
        }
        if self.budget.as_mut().is_some_and(|budget| !budget.take(at)) {
            return;
        }
        push(transfers, Class::Fast, Direction::Write, reads.insert(block));
        self.counters.admitted += 1;
    }

    fn pin_of(&self, block: Block) -> Option<PinnedRange> {
        let holds = |pin: &&PinnedRange| (pin.first..pin.end).contains(&block);
        self.pins.iter().find(holds).copied()
    }

    fn assert_inside(&self, first: Block, blocks: u32) {
        let end = first.checked_add(blocks);
        assert!(end.is_some_and(|end| end <= self.blocks), "requests are for what there is");
    }
}

impl ReadCache {
    fn new(cache: Cache, first: u32) -> Self {
        let free = (0..cache.blocks()).rev().collect();
        Self { cache, first, places: Vec::new(), free, missed: Queues::new() }
    }

    /// Place on the fast class of a block that it holds.
    fn place(&self, block: Block) -> u32 {
        self.first + self.places[block as usize]
    }

    fn remove(&mut self, block: Block) -> bool {
        let was_held = self.cache.remove(block);
        if was_held {
            self.free.push(self.places[block as usize]);
        }
        was_held
    }

    /// Takes in a block that was looked up last; returns its place on the fast class.
    fn insert(&mut self, block: Block) -> u32 {
        self.cache.insert(block);
        while let Some(evicted) = self.cache.take_evicted() {
            self.free.push(self.places[evicted as usize]);
        }
        if block as usize >= self.places.len() {
            self.places.resize(block as usize + 1, 0);
        }
        self.places[block as usize] = self.free.pop().expect("an insertion evicts what it needs");
        self.place(block)
    }

    /// True if a block has been missed `after` times, this one included.
    fn is_due(&mut self, block: Block, after: u8) -> bool {
        if after <= 1 {
            return true;
        }
        let misses = self.missed.visits(block) + 1;
        self.missed.remove(block);
        if misses >= after {
            return true;
        }
        if self.missed.len(0) == self.cache.blocks() {
            self.missed.pop(0);
        }
        self.missed.push(0, block);
        self.missed.set_visits(block, misses);
        false
    }
}

/// Blocks of the fast class for written data.
fn written_blocks(policy: &Policy, free: u32) -> Result<u32, TierError> {
    if !policy.writes_to_fast() {
        return Ok(0);
    }
    let percent = if policy.read_cache.is_some() { policy.write_percent } else { 100.0 };
    let blocks = share(free, percent);
    let least = policy.destage_kib / 4 * UNITS_MIN;
    if blocks < least {
        let value = format!("{percent}, {blocks} blocks of 4 KiB");
        let limit = format!(
            "at least {least} blocks, {UNITS_MIN} units of destage_kib: more of the fast class, a \
             smaller unit or a smaller time lapse"
        );
        return Err(TierError::new("write_percent", &value, limit));
    }
    Ok(blocks)
}

/// The pinned ranges in blocks, and how many of those are on the fast class.
fn pinned_ranges(
    policy: &Policy,
    blocks: u32,
    time_lapse: u32,
) -> Result<(Vec<PinnedRange>, u32), TierError> {
    let (mut ranges, mut pinned): (Vec<PinnedRange>, u32) = (Vec::new(), 0);
    // Of the whole drive, so that pins keep their share in time lapse.
    let gb_per_block = BLOCK_BYTES as f64 * f64::from(time_lapse) / 1e9;
    for pin in &policy.pins {
        let value = format!("{} to {} GB", pin.from_gb, pin.to_gb);
        let [first, end] = [pin.from_gb, pin.to_gb].map(|gb| gb / gb_per_block);
        let is_range = first >= 0.0 && first < end && end <= f64::from(blocks) + 0.5;
        if !is_range {
            let limit = format!("a range within {} GB", f64::from(blocks) * gb_per_block);
            return Err(TierError::new("pin", &value, limit));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a range")]
        let [first, end] = [first, end].map(|block| (block.round() as u32).min(blocks));
        if ranges.iter().any(|other| first < other.end && other.first < end) {
            return Err(TierError::new("pin", &value, "apart from the other ranges"));
        }
        if pin.class == Class::Slow && policy.layout == Layout::Log {
            let limit = "fast, or layout in-place: a log writes what was destaged alone";
            return Err(TierError::new("pin", &"slow", limit));
        }
        let place = pinned;
        if pin.class == Class::Fast {
            pinned = pinned.saturating_add(end - first);
        }
        ranges.push(PinnedRange { first, end, class: pin.class, place });
    }
    Ok((ranges, pinned))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most all")]
fn share(blocks: u32, percent: f64) -> u32 {
    (f64::from(blocks) * percent / 100.0) as u32
}

#[cfg(test)]
mod tests;
