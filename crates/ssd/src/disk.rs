//! A hard disk: commands wait for one arm, which serves the one that it reaches first.
//!
//! ```text
//!  controller ─► queue ───────────────► arm: seek, rotation, transfer ─► link        (reads)
//!      ├─► what was read ahead ──────────────────────────────────────────► link
//!      └─► write cache, acknowledged ─► arm                                          (writes)
//!          or queue ──────────────────► arm, acknowledged
//! ```
//!
//! The arm is free or carries out one command, and an event is due when it is free again. Then it
//! serves the command with the shortest positioning time among the first `queue_depth` that have
//! arrived (NCQ). Writes in the cache compete if no command waits, if a flush waits, or if more
//! than half of the cache is full. A command that has waited for `wait_max_ms` goes before all
//! others; so do writes in the cache once a flush, or a write that waits for memory, has waited so
//! long and longer than every command.
//!
//! After a read the disk reads ahead until the next command: a read that begins where the last one
//! ended finds its data in memory, or on the way there.
//!
//! Invariants:
//! - Each request waits for the arm, or for memory, or has an event: one of these, once.
//! - Bytes in the write cache are those of its entries, and within its size.

mod mechanics;

use std::collections::VecDeque;

use blockio::{Nanos, SECTOR_BYTES};
use ftl::{Counters, PAGE_BYTES};

use self::mechanics::{Head, Mechanics};
use crate::command::CommandCosts;
use crate::event::{Event, EventQueue};
use crate::module::{Extent, bytes};
use crate::server::ServerPool;
use crate::spec::{DiskSpec, DriveSpec, HostSpec};

pub(crate) use self::mechanics::seek_curve;

/// A command that waits for the arm.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    arrived_at: Nanos,
    extent: Extent,
    slot: u32,
    is_write: bool,
}

/// A write in the cache.
#[derive(Clone, Copy, Debug)]
struct CachedWrite {
    extent: Extent,
    /// Number of the write: a flush waits for those up to a number.
    number: u64,
}

/// A write that waits for memory.
#[derive(Clone, Copy, Debug)]
struct BlockedWrite {
    arrived_at: Nanos,
    extent: Extent,
    slot: u32,
}

/// A flush that waits.
#[derive(Clone, Copy, Debug)]
struct Flush {
    arrived_at: Nanos,
    slot: u32,
    /// Number of the last write that it waits for.
    number: u64,
}

/// Read-ahead, until the next command.
#[derive(Clone, Copy, Debug)]
struct ReadAhead {
    from: Head,
    /// End of the sectors that the host has requested.
    asked: u64,
}

/// Task of the arm: a command, or a write of the cache.
#[derive(Clone, Copy, Debug)]
enum ArmTask {
    Waiting(usize),
    Cached(usize),
}

/// One disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    index: u16,
    command: CommandCosts,
    controller: ServerPool,
    mechanics: Mechanics,
    queue_depth: usize,
    wait_max: Nanos,
    read_ahead_sectors: u64,
    cache_bytes_max: u64,
    cache_entries_max: usize,
    head: Head,
    /// Time at which the arm has finished its command.
    arm_free_at: Nanos,
    read_ahead: Option<ReadAhead>,
    waiting: VecDeque<Waiting>,
    cached: Vec<CachedWrite>,
    cached_bytes: u64,
    /// A cached write that the arm carries out: its memory is free once that is done.
    leaving: Option<CachedWrite>,
    /// Writes that wait for memory, in order.
    blocked: VecDeque<BlockedWrite>,
    /// Flushes that wait, in order.
    flushes: VecDeque<Flush>,
    writes: u64,
    /// True if an event of the arm is to come.
    scheduled: bool,
    counters: Counters,
    media_bytes: u64,
}

impl Disk {
    /// An idle disk, the `index`-th of its drive, of `sectors`.
    pub(crate) fn new(spec: &DriveSpec, disk: &DiskSpec, host: &HostSpec, at: (u16, u64)) -> Self {
        let (index, sectors) = at;
        Self {
            index,
            command: CommandCosts::new(spec, host),
            controller: ServerPool::new(spec.controller.cores),
            mechanics: Mechanics::new(disk, sectors),
            queue_depth: disk.queue_depth as usize,
            wait_max: Nanos::from_micros_f64(disk.wait_max_ms * 1e3),
            read_ahead_sectors: u64::from(disk.read_ahead_kib) * 1024 / SECTOR_BYTES,
            cache_bytes_max: u64::from(disk.write_cache_kib) * 1024,
            cache_entries_max: disk.write_cache_entries as usize,
            head: Head::default(),
            arm_free_at: Nanos::ZERO,
            read_ahead: None,
            waiting: VecDeque::new(),
            cached: Vec::new(),
            cached_bytes: 0,
            leaving: None,
            blocked: VecDeque::new(),
            flushes: VecDeque::new(),
            writes: 0,
            scheduled: false,
            counters: Counters::default(),
            media_bytes: 0,
        }
    }

    /// Discards cached data and queues; nothing may be outstanding.
    pub(crate) fn purge(&mut self) {
        self.waiting.clear();
        self.cached.clear();
        self.blocked.clear();
        self.flushes.clear();
        (self.cached_bytes, self.leaving, self.scheduled) = (0, None, false);
        self.read_ahead = None;
    }

    /// Reads an extent. Returns the time at which its data is in memory; none if the arm has to
    /// read it, which an event reports.
    pub(crate) fn read(
        &mut self,
        at: Nanos,
        extent: Extent,
        slot: u32,
        events: &mut EventQueue,
    ) -> Option<Nanos> {
        let at = self.controller.book(at, self.command.read(extent.sectors));
        self.counters.host_read_bytes += bytes(extent).0;
        if self.is_cached(extent) {
            return Some(at);
        }
        if let Some(ready_at) = self.read_ahead_at(at, extent) {
            return Some(ready_at);
        }
        self.wait(Waiting { arrived_at: at, extent, slot, is_write: false }, events);
        None
    }

    /// Writes an extent. Returns the time of the acknowledgement if the cache has memory for it;
    /// else [`Disk::step`] reports it.
    pub(crate) fn write(
        &mut self,
        at: Nanos,
        extent: Extent,
        slot: u32,
        events: &mut EventQueue,
    ) -> Option<Nanos> {
        let at = self.controller.book(at, self.command.write(extent.sectors));
        self.counters.host_sent_bytes += bytes(extent).0;
        if bytes(extent).0 > self.cache_bytes_max {
            self.wait(Waiting { arrived_at: at, extent, slot, is_write: true }, events);
            return None;
        }
        if !self.blocked.is_empty() || !self.takes(extent) {
            self.blocked.push_back(BlockedWrite { arrived_at: at, extent, slot });
            return None;
        }
        self.cache(extent);
        self.schedule(at, events);
        Some(at)
    }

    /// Flushes the write cache. Returns the time at which that is done if the cache is empty; else
    /// [`Disk::step`] reports it.
    pub(crate) fn flush(&mut self, at: Nanos, slot: u32) -> Option<Nanos> {
        let at = self.controller.book(at, self.command.write(0));
        if self.cached.is_empty() && self.leaving.is_none() && self.blocked.is_empty() {
            return Some(at);
        }
        let number = self.writes + self.blocked.len() as u64;
        self.flushes.push_back(Flush { arrived_at: at, slot, number });
        None
    }

    /// Acknowledges a trim, which changes nothing.
    pub(crate) fn trim(&mut self, at: Nanos) -> Nanos {
        self.controller.book(at, self.command.write(0))
    }

    /// Carries out the next command at `now`, when the arm is free or a command has arrived.
    /// Reports writes and flushes that are done to `acknowledge`.
    pub(crate) fn step(
        &mut self,
        now: Nanos,
        events: &mut EventQueue,
        mut acknowledge: impl FnMut(u32, Nanos),
    ) {
        assert!(self.scheduled, "the arm has a turn that was scheduled");
        self.scheduled = false;
        if now < self.arm_free_at {
            self.schedule(now, events);
            return;
        }
        if let Some(CachedWrite { extent, .. }) = self.leaving.take() {
            self.cached_bytes -= bytes(extent).0;
            self.unblock(now, &mut acknowledge);
            self.end_flushes(now, &mut acknowledge);
        }
        if let Some(turn) = self.choose(now) {
            self.carry_out(now, turn, events, &mut acknowledge);
        }
        self.schedule(now, events);
    }

    /// Returns the counters so far: pages of the host are what the media wrote.
    pub(crate) fn counters(&self) -> Counters {
        Counters { pages_host: self.media_bytes / PAGE_BYTES, ..self.counters }
    }

    /// Work that the controller was given so far.
    pub(crate) const fn controller_work(&self) -> Nanos {
        self.controller.work()
    }

    /// Requests that wait for the arm, for memory or for a flush.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u32> {
        let blocked = self.blocked.iter().map(|blocked| blocked.slot);
        let flushes = self.flushes.iter().map(|flush| flush.slot);
        self.waiting.iter().map(|waiting| waiting.slot).chain(blocked).chain(flushes)
    }

    /// Asserts what holds between any two events, `turns` of the arm being in the event queue.
    pub(crate) fn check_invariants(&self, turns: u32) {
        assert_eq!(turns, u32::from(self.scheduled), "a turn that is scheduled is to come");
        let is_idle = self.waiting.is_empty() && self.cached.is_empty() && self.leaving.is_none();
        assert!(self.scheduled || is_idle, "an arm that has something to do has a turn");
        let cached = self.cached.iter().chain(&self.leaving);
        let sum: u64 = cached.map(|cached| bytes(cached.extent).0).sum();
        assert_eq!(self.cached_bytes, sum, "the cache holds its writes");
        assert!(self.cached_bytes <= self.cache_bytes_max, "the cache holds no more than it can");
        let waits = !self.blocked.is_empty() || !self.flushes.is_empty();
        assert!(self.scheduled || !waits, "nothing waits for an arm that rests");
    }

    fn wait(&mut self, waiting: Waiting, events: &mut EventQueue) {
        self.waiting.push_back(waiting);
        self.schedule(waiting.arrived_at, events);
    }

    /// Schedules [`Disk::step`] for when the arm is free, if it has anything to do.
    fn schedule(&mut self, now: Nanos, events: &mut EventQueue) {
        let arrives_at = self.waiting.iter().map(|waiting| waiting.arrived_at).min();
        let has_work = !self.cached.is_empty() || self.leaving.is_some();
        let at = match (has_work, arrives_at) {
            (true, _) => now,
            (false, Some(arrives_at)) => arrives_at.max(now),
            (false, None) => return,
        };
        if !self.scheduled {
            self.scheduled = true;
            events.push(at.max(self.arm_free_at), Event::Arm { disk: self.index });
        }
    }

    /// True if all of an extent is in the write cache.
    fn is_cached(&self, extent: Extent) -> bool {
        let end = extent.first + u64::from(extent.sectors);
        self.cached.iter().chain(&self.leaving).any(|CachedWrite { extent: held, .. }| {
            held.first <= extent.first && end <= held.first + u64::from(held.sectors)
        })
    }

    /// Time at which read-ahead has an extent in memory that is requested at `at`; none if it does
    /// not reach it.
    fn read_ahead_at(&mut self, at: Nanos, extent: Extent) -> Option<Nanos> {
        let ahead = self.read_ahead.as_mut()?;
        let end = extent.first + u64::from(extent.sectors);
        let is_next = extent.first == ahead.asked && self.waiting.is_empty();
        let reach = ahead.asked + self.read_ahead_sectors;
        if !is_next || end > reach {
            return None;
        }
        ahead.asked = end;
        let passed = end - ahead.from.sector;
        let ready_at = ahead.from.at + self.mechanics.transfer(ahead.from.sector, passed);
        Some(ready_at.max(at))
    }

    /// Position of the head at `now`, read-ahead included.
    fn head_at(&self, now: Nanos) -> Head {
        let Some(ahead) = self.read_ahead else { return self.head };
        let passed = self.mechanics.passed(ahead.from.sector, now.saturating_sub(ahead.from.at));
        let most = ahead.asked + self.read_ahead_sectors - ahead.from.sector;
        Head { sector: ahead.from.sector + passed.min(most), at: Nanos::ZERO }
    }

    /// True if the cache has memory for a write.
    fn takes(&self, extent: Extent) -> bool {
        let fits = self.cached_bytes + bytes(extent).0 <= self.cache_bytes_max;
        (fits && self.cached.len() < self.cache_entries_max) || self.same(extent).is_some()
    }

    /// The write in the cache of the same sectors.
    fn same(&self, extent: Extent) -> Option<usize> {
        let is_same = |held: &Extent| (held.first, held.sectors) == (extent.first, extent.sectors);
        self.cached.iter().position(|cached| is_same(&cached.extent))
    }

    /// Puts a write into the cache, in place of one of the same sectors.
    fn cache(&mut self, extent: Extent) {
        self.writes += 1;
        let number = self.writes;
        // An older one keeps its number: a flush that waits for it then waits for this one.
        if self.same(extent).is_none() {
            self.cached.push(CachedWrite { extent, number });
            self.cached_bytes += bytes(extent).0;
        }
        assert!(self.cached_bytes <= self.cache_bytes_max, "the cache holds no more than it can");
    }

    /// Takes writes that waited for memory into the cache.
    fn unblock(&mut self, now: Nanos, acknowledge: &mut impl FnMut(u32, Nanos)) {
        while let Some(BlockedWrite { extent, slot, .. }) = self.blocked.front().copied() {
            if !self.takes(extent) {
                return;
            }
            self.blocked.pop_front();
            self.cache(extent);
            acknowledge(slot, now);
        }
    }

    /// Ends flushes whose writes are on the media.
    fn end_flushes(&mut self, now: Nanos, acknowledge: &mut impl FnMut(u32, Nanos)) {
        let oldest = self.cached.iter().map(|cached| cached.number).min().unwrap_or(u64::MAX);
        while let Some(Flush { slot, number, .. }) = self.flushes.front().copied() {
            if oldest <= number || (self.writes < number && !self.blocked.is_empty()) {
                return;
            }
            self.flushes.pop_front();
            acknowledge(slot, now);
        }
    }

    /// Time since which a flush, or a write that there is no memory for, waits for writes in the
    /// cache; none if nothing does.
    fn drains_since(&self) -> Option<Nanos> {
        let flush = self.flushes.front().map(|flush| flush.arrived_at);
        let blocked = self.blocked.front().map(|blocked| blocked.arrived_at);
        flush.into_iter().chain(blocked).min().filter(|_| !self.cached.is_empty())
    }

    /// The command or write that the arm reaches first.
    fn choose(&self, now: Nanos) -> Option<ArmTask> {
        let head = self.head_at(now);
        let arrived = || {
            let first = self.waiting.iter().take(self.queue_depth).enumerate();
            first.filter(|(_, waiting)| waiting.arrived_at <= now)
        };
        let is_overdue = |since: Nanos| now > since + self.wait_max;
        let drains_since = self.drains_since().filter(|since| is_overdue(*since));
        let overdue = arrived().find(|(_, waiting)| is_overdue(waiting.arrived_at));
        if let Some((index, waiting)) = overdue
            && drains_since.is_none_or(|since| waiting.arrived_at <= since)
        {
            return Some(ArmTask::Waiting(index));
        }
        let commands = arrived().map(|(index, waiting)| {
            let Waiting { extent, is_write, .. } = waiting;
            let time = self.mechanics.position(head, now, extent.first, *is_write);
            (time, ArmTask::Waiting(index))
        });
        let commands = commands.filter(|_| drains_since.is_none());
        let is_urgent = self.cached_bytes * 2 > self.cache_bytes_max
            || self.cached.len() * 2 > self.cache_entries_max
            || !self.flushes.is_empty();
        let is_idle = arrived().next().is_none();
        // Those that came after the flush do not put it off.
        let last = self.flushes.front().filter(|_| drains_since.is_some());
        let last = last.map_or(u64::MAX, |flush| flush.number);
        let cached = self.cached.iter().enumerate().filter(|(_, cached)| cached.number <= last);
        let cached = cached.filter(|_| is_urgent || is_idle);
        let writes = cached.map(|(index, cached)| {
            let time = self.mechanics.position(head, now, cached.extent.first, true);
            (time, ArmTask::Cached(index))
        });
        commands.chain(writes).min_by_key(|(time, _)| *time).map(|(_, turn)| turn)
    }

    fn carry_out(
        &mut self,
        now: Nanos,
        task: ArmTask,
        events: &mut EventQueue,
        acknowledge: &mut impl FnMut(u32, Nanos),
    ) {
        let (extent, is_write) = match task {
            ArmTask::Waiting(index) => (self.waiting[index].extent, self.waiting[index].is_write),
            ArmTask::Cached(index) => (self.cached[index].extent, true),
        };
        let head = self.head_at(now);
        let positioned = now + self.mechanics.position(head, now, extent.first, is_write);
        let end = positioned + self.mechanics.transfer(extent.first, extent.sectors.into());
        let next = extent.first + u64::from(extent.sectors);
        (self.head, self.arm_free_at) = (Head { sector: next, at: end }, end);
        self.read_ahead = None;
        if is_write {
            self.media_bytes += bytes(extent).0;
        }
        match task {
            ArmTask::Cached(index) => self.leaving = Some(self.cached.remove(index)),
            ArmTask::Waiting(index) => {
                let waiting = self.waiting.remove(index).expect("chosen from those that wait");
                if is_write {
                    acknowledge(waiting.slot, end);
                } else {
                    let pages = extent.sectors.div_ceil(8);
                    events.push(end, Event::Answered { slot: waiting.slot, pages });
                    let ahead = ReadAhead { from: self.head, asked: next };
                    self.read_ahead = (self.read_ahead_sectors > 0).then_some(ahead);
                }
            }
        }
        assert!(self.arm_free_at > now, "a turn of the arm takes time");
    }
}
