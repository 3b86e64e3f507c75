//! One module: a flash translation layer over media in virtual time.

mod folding;
mod indirection_unit;
pub(crate) mod retry;
mod warming;

use std::collections::VecDeque;

use blockio::{Bytes, Nanos, SECTOR_BYTES};
use ftl::{
    ConfigError, DieId, DieLoss, Ftl, Lpn, NoMedia, PAGE_BYTES, Ppn, Redundancy, SuperblockId, Unit,
};

use self::folding::Folding;
use self::indirection_unit::IndirectionUnits;
use crate::backend::{self, Backend};
use crate::die_failure::LostDies;
use crate::event::{Event, EventQueue, Lane, PAGES_MAX};
use crate::link::Port;
use crate::spec::{DriveSpec, HostSpec, MappingUnit, StallDuring};

/// Sectors of a mapping unit.
const UNIT_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Pauses between two steps towards redundancy under load, each as long as the step before: a
/// quarter of the controller's time, or of the dies'. Estimated; a controller has to give it some,
/// or a busy drive would stay without redundancy.
const RESTORING_PAUSES: u64 = 3;

/// Consecutive sectors of a drive or of one module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) sectors: u32,
    /// Placement handle of a write.
    pub(crate) handle: u8,
}

/// One module.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) ftl: Ftl,
    pub(crate) backend: Backend,
    /// Port to the bridge before the modules, where one bounds it.
    port: Option<Port>,
    pub(crate) index: u16,
    channel_first: u16,
    mapping_unit: MappingUnit,
    write_through: bool,
    /// True if the controller works on what is written as compressed.
    compresses_first: bool,
    /// Sectors of a mapping unit that is compressed.
    unit_sectors_compressed: f64,
    /// Delay of each write's acknowledgement; it keeps nothing busy.
    acknowledge: Nanos,
    /// Sectors of parts of mapping units, written but not yet a page of their own.
    sectors_packed: u64,
    /// Indirection units of more than 4 KiB, if it has them.
    coarse: Option<Box<IndirectionUnits>>,
    /// Pages of 4 KiB of a logical page, as a shift.
    pages_shift: u32,
    /// Idle time, if there is an SLC cache to be folded then.
    folding: Option<Folding>,
    /// True if every read takes tR of whole cells, once.
    reads_plainly: bool,
    /// Mapping units that host reads asked for.
    pub(crate) pages_read: u64,
    /// Units of them that were unwritten: the map answers them.
    pub(crate) pages_read_unmapped: u64,
    /// Writes that wait for relocation, in order: request and extent.
    waiting: VecDeque<(u32, Extent)>,
    /// Time at which the next step towards redundancy is due.
    restores_at: Nanos,
    /// True if a relocation step is in the event queue.
    scheduled: bool,
    /// Steps of relocation that the controller took in idle time.
    pub(crate) idle_steps: u64,
    /// Pages of relocation in idle time that are due while only addresses are written.
    idle_due: f64,
}

/// Pages that a read wants of one NAND page on all planes of a die.
#[derive(Clone, Copy, Debug)]
struct WantedPages {
    place: Unit,
    /// The first of them.
    first: Ppn,
    pages: u16,
    /// Lines that they take on the channel.
    lines: u16,
}

/// Work of a module for a read that is still to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sensing {
    /// Dies that read for it.
    pub(crate) dies: u32,
    /// Mapping units that no die reads for it: in the buffer, or never written.
    pub(crate) pages_answered: u32,
    /// True if the data of some mapping unit was lost with a die.
    pub(crate) lost: bool,
    /// Time at which the controller is done with the command.
    pub(crate) commanded_at: Nanos,
    /// Time at which what no die reads for it has left the module.
    pub(crate) answered_at: Nanos,
}

impl Module {
    /// An idle module, the `index`-th of its drive, around its flash translation layer.
    pub(crate) fn around(
        ftl: Ftl,
        spec: &DriveSpec,
        host: &HostSpec,
        index: u16,
        time_lapse: u32,
    ) -> Self {
        let backend = Backend::new(spec, host, ftl.config(), time_lapse);
        let mapping = spec.mapping.as_ref();
        let gather_kib = mapping.map_or(0, |mapping| mapping.gather_kib);
        let pages = ftl.config().geometry.counted_per_page();
        let channel_first = index * backend.channels();
        Self {
            ftl,
            backend,
            port: spec.modules.port_mb_s.map(Port::new),
            index,
            channel_first,
            mapping_unit: spec.mapping_unit(),
            write_through: spec.buffer.write_through,
            compresses_first: spec.controller.compresses_first,
            unit_sectors_compressed: UNIT_SECTORS as f64,
            acknowledge: Nanos::from_micros_f64(spec.buffer.acknowledge_us),
            sectors_packed: 0,
            coarse: IndirectionUnits::new(spec.indirection_kib(), gather_kib),
            pages_shift: pages.trailing_zeros(),
            folding: Folding::new(spec, time_lapse),
            reads_plainly: spec.slc_cache.is_none() && spec.read_retry.is_none(),
            pages_read: 0,
            pages_read_unmapped: 0,
            waiting: VecDeque::new(),
            restores_at: Nanos::ZERO,
            scheduled: false,
            idle_steps: 0,
            idle_due: 0.0,
        }
    }

    /// Erases everything. No step may be in the event queue.
    pub(crate) fn purge(&mut self) {
        self.ftl.purge();
        self.waiting.clear();
        self.sectors_packed = 0;
        self.scheduled = false;
        self.idle_due = 0.0;
        if let Some(coarse) = &mut self.coarse {
            coarse.purge();
        }
        if let Some(folding) = &mut self.folding {
            folding.scheduled = false;
        }
        if let Some(retry) = &mut self.backend.retry {
            retry.purge();
        }
    }

    /// True if the module is in the state of a stall.
    pub(crate) fn is_during(&self, state: StallDuring) -> bool {
        match state {
            StallDuring::Always => true,
            StallDuring::DearRelocation => self.ftl.occupancy().is_relocation_put_off,
        }
    }

    /// True if there is flash for a write of `extent`, beside those that wait.
    #[inline]
    pub(crate) fn has_space_for(&self, extent: Extent) -> bool {
        let (first, last) = units(extent);
        let waiting = self.waiting.iter().map(|(_, extent)| units(*extent));
        let waiting = waiting.map(|(first, last)| last - first + 1).sum();
        self.ftl.has_space_for((first..=last).map(lpn), waiting)
    }

    /// Answers a command that the drive does not carry out, which reaches the module at `at`.
    pub(crate) fn refuse(&mut self, at: Nanos) -> Nanos {
        self.backend.command_write(at, 0)
    }

    /// Writes an extent that reaches the module at `at`; returns when it is acknowledged, or
    /// nothing if it has to wait for relocation: then [`Module::step`] reports it.
    #[inline]
    pub(crate) fn write(
        &mut self,
        at: Nanos,
        extent: Extent,
        slot: u32,
        events: &mut EventQueue,
    ) -> Option<Nanos> {
        if !self.ftl.needs_room() {
            let done = self.write_at_once(at, extent);
            self.schedule(at, events);
            if self.folding.is_some() {
                self.note_write(at, events);
            }
            return Some(done);
        }
        self.waiting.push_back((slot, extent));
        self.schedule(at, events);
        None
    }

    /// Relocation in the background, at `now`: while host writes wait, or while the controller has
    /// nothing else to do.
    ///
    /// Once there is room, hands what waited and when it is acknowledged to `acknowledge`.
    pub(crate) fn step(
        &mut self,
        now: Nanos,
        events: &mut EventQueue,
        mut acknowledge: impl FnMut(u32, Nanos),
    ) {
        assert!(self.scheduled, "a step is taken that was scheduled");
        self.scheduled = false;
        while !self.ftl.needs_room() {
            let Some((slot, extent)) = self.waiting.pop_front() else { break };
            acknowledge(slot, self.write_at_once(now, extent));
        }
        self.backend.now = now;
        let is_waited_for = self.ftl.needs_room();
        if is_waited_for || self.relocates_at() <= now {
            self.idle_steps += u64::from(!is_waited_for);
            self.relocate_unit();
        }
        self.schedule(now, events);
    }

    /// Has [`Module::step`] called when relocation may next go on, if there is anything to gain.
    #[inline]
    fn schedule(&mut self, now: Nanos, events: &mut EventQueue) {
        let has_work = self.ftl.wants_room() || !self.waiting.is_empty();
        if !self.scheduled && has_work {
            self.scheduled = true;
            let next = self.relocates_at().max(now + Nanos(1));
            let event = Event::Relocate { module: self.index };
            events.push_in_order(Lane::Relocation(self.index), next, event);
        }
    }

    /// Time at which relocation in the background may go on: as soon as the controller takes
    /// another command if host writes wait for it or a lost die is rebuilt, when its share of the
    /// time allows while redundancy is restored, else when the controller is idle; and never before
    /// the relocation buffer has space for the next read.
    #[inline]
    fn relocates_at(&mut self) -> Nanos {
        let redundancy = self.ftl.redundancy();
        let controller = if self.ftl.needs_room() || redundancy == Redundancy::Rebuilding {
            self.backend.controller_free_at()
        } else {
            let idle_at = self.backend.controller_idle_at();
            if redundancy == Redundancy::Restoring {
                idle_at.min(self.restores_at)
            } else {
                idle_at
            }
        };
        controller.max(self.backend.relocation_admits_at())
    }

    /// One step of relocation. While redundancy is restored the next one is due after so many times
    /// what this one takes of the controller, or of all dies, however busy they are.
    fn relocate_unit(&mut self) {
        let begun_at = self.backend.controller_free_at().max(self.backend.now);
        self.ftl.relocate_unit(&mut self.backend);
        if self.ftl.redundancy() == Redundancy::Restoring {
            let ended_at = self.backend.controller_free_at().max(begun_at);
            let took = (ended_at - begun_at).max(self.backend.program_share());
            self.restores_at = begun_at + took * (1 + RESTORING_PAUSES);
        }
    }

    /// Writes an extent; returns when it is acknowledged.
    #[inline]
    fn write_at_once(&mut self, at: Nanos, extent: Extent) -> Nanos {
        self.backend.now = at;
        if self.coarse.is_some() {
            return self.write_coarse(at, extent);
        }
        let (first, last) = units(extent);
        let sectors = self.sectors_written(extent, last - first + 1);
        let at = self.port.as_mut().map_or(at, |port| port.write(at, extent.sectors));
        let arrived_at = self.backend.command_write(at, sectors);
        let mut done = arrived_at;
        for unit in first..=last {
            self.backend.arrived_at = arrived_at;
            if covers(extent, unit) || self.takes_page(extent, unit) {
                done = done.max(self.place(unit, extent.handle));
            }
        }
        debug_assert!(done >= arrived_at, "a write is safe once its data has arrived");
        self.ftl.count_host_bytes(bytes(extent), Bytes::ZERO);
        done.max(self.backend.buffer_admits_at()) + self.acknowledge
    }

    /// Gives a mapping unit a new page; returns when what it holds is safe.
    #[inline]
    fn place(&mut self, unit: u64, handle: u8) -> Nanos {
        let ppn = self.ftl.write_at_once(handle, lpn(unit), &mut self.backend);
        if !self.write_through {
            return self.backend.arrived_at;
        }
        let place = self.ftl.unit_of(ppn);
        if self.ftl.is_buffered(place) {
            self.backend.padded_at(self.ftl.die_of(place))
        } else {
            self.backend.programmed_at()
        }
    }

    /// True if a mapping unit that is written in part takes a page now.
    ///
    /// With mapping by page it does, after a read of the page (read-modify-write). With mapping by
    /// sector, parts of units are packed into pages: every eighth sector takes a page, in the name
    /// of the unit that it belongs to, so that pages are taken and given up by the sector, on
    /// average.
    #[cold]
    fn takes_page(&mut self, extent: Extent, unit: u64) -> bool {
        match self.mapping_unit {
            MappingUnit::Page => {
                self.backend.arrived_at = self.fetch(self.backend.arrived_at, lpn(unit));
                true
            }
            MappingUnit::Sector => self.fills_page(extent, unit),
        }
    }

    /// Packs the part of a mapping unit that an extent covers; whether that fills a page.
    fn fills_page(&mut self, extent: Extent, unit: u64) -> bool {
        self.sectors_packed += sectors_within(extent, unit);
        let full = self.sectors_packed >= UNIT_SECTORS;
        if full {
            self.sectors_packed -= UNIT_SECTORS;
        }
        assert!(self.sectors_packed < UNIT_SECTORS, "a part of a unit fills one page at most");
        full
    }

    /// Writes an extent in no time: only what is mapped changes.
    pub(crate) fn age(&mut self, extent: Extent) {
        if self.coarse.is_some() {
            return self.age_coarse(extent);
        }
        let (first, last) = units(extent);
        for unit in first..=last {
            let taken = covers(extent, unit)
                || self.mapping_unit == MappingUnit::Page
                || self.fills_page(extent, unit);
            if taken {
                self.ftl.write(extent.handle, lpn(unit), &mut NoMedia);
            }
        }
    }

    /// A good compressor shortens what is written from now on by `percent`.
    pub(crate) fn set_compressible(&mut self, percent: f64) {
        self.unit_sectors_compressed = UNIT_SECTORS as f64 * (1.0 - percent / 100.0);
    }

    /// Sectors that the controller works on for a write that touches `units` mapping units.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as carried")]
    fn sectors_written(&self, extent: Extent, units: u64) -> u32 {
        let carried = self.sectors_carried(extent, units);
        if !self.compresses_first {
            return carried;
        }
        let compressed = (self.unit_sectors_compressed * units as f64).ceil() as u32;
        compressed.min(carried)
    }

    /// Sectors that go through the controller for an extent that touches `units` mapping units.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a request has less than 2^32 sectors")]
    const fn sectors_carried(&self, extent: Extent, units: u64) -> u32 {
        match self.mapping_unit {
            MappingUnit::Page => (units * UNIT_SECTORS) as u32,
            MappingUnit::Sector => extent.sectors,
        }
    }

    /// Begins to read an extent: the dies that sense its pages report to `events` for `slot`.
    #[inline]
    pub(crate) fn read(
        &mut self,
        at: Nanos,
        extent: Extent,
        slot: u32,
        events: &mut EventQueue,
    ) -> Sensing {
        if self.coarse.is_some() {
            self.read_coarse(at, extent, slot, events)
        } else {
            self.read_pages::<false>(at, extent, slot, events)
        }
    }

    /// [`Module::read`] of coarse indirection units, apart from the path of all other drives.
    #[inline(never)]
    fn read_coarse(
        &mut self,
        at: Nanos,
        extent: Extent,
        slot: u32,
        events: &mut EventQueue,
    ) -> Sensing {
        self.read_pages::<true>(at, extent, slot, events)
    }

    /// Reads an extent page of 4 KiB by page; `COARSE` indirection units have several.
    #[inline]
    fn read_pages<const COARSE: bool>(
        &mut self,
        at: Nanos,
        extent: Extent,
        slot: u32,
        events: &mut EventQueue,
    ) -> Sensing {
        let (first, last) = units(extent);
        let mapped = (first..=last).filter(|page| self.lookup::<COARSE>(*page).1.is_some()).count();
        self.pages_read += last - first + 1;
        self.pages_read_unmapped += last - first + 1 - mapped as u64;
        let commanded_at = if mapped == 0 {
            self.backend.command_unmapped(at)
        } else {
            let sectors = self.sectors_carried(extent, last - first + 1);
            self.backend.command_read(at, sectors)
        };
        let mut sensing =
            Sensing { dies: 0, pages_answered: 0, lost: false, commanded_at, answered_at: at };
        let mut wanted: Option<WantedPages> = None;
        for page in first..=last {
            let (lpn, ppn) = self.lookup::<COARSE>(page);
            let place =
                ppn.map(|ppn| self.ftl.unit_of(ppn)).filter(|place| !self.ftl.is_buffered(*place));
            let lines =
                if COARSE { backend::PAGE_LINES } else { backend::lines(self.ftl.extent(lpn)) };
            sensing.pages_answered += u32::from(place.is_none());
            if ppn.is_none() && self.ftl.is_page_lost(lpn) {
                sensing.lost = true;
                self.pages_read_unmapped -= 1;
            }
            match (&mut wanted, place) {
                (Some(wanted), Some(next))
                    if wanted.place == next && self.shares_read(wanted.first, ppn) =>
                {
                    wanted.pages += 1;
                    wanted.lines += lines;
                }
                (_, next) => {
                    self.sense(wanted, slot, &mut sensing, events);
                    let next = next.zip(ppn);
                    wanted =
                        next.map(|(place, first)| WantedPages { place, first, pages: 1, lines });
                }
            }
        }
        self.sense(wanted, slot, &mut sensing, events);
        sensing.answered_at = match &mut self.port {
            Some(port) => port.read(at, commanded_at, sensing.pages_answered * 8),
            None => commanded_at,
        };
        let pages = u64::from(sensing.dies) + u64::from(sensing.pages_answered);
        debug_assert!(pages <= last - first + 1, "no more is read than the request asks for");
        debug_assert!(sensing.dies as usize <= mapped, "dies read what is mapped");
        self.ftl.count_host_bytes(Bytes::ZERO, bytes(extent));
        sensing
    }

    /// The logical page of a page of 4 KiB, and where it is; nowhere while it is being gathered.
    #[inline]
    fn lookup<const COARSE: bool>(&self, page: u64) -> (Lpn, Option<Ppn>) {
        if !COARSE {
            let lpn = lpn(page);
            return (lpn, self.ftl.lookup(lpn));
        }
        let lpn = self.lpn_of_page(page);
        let is_held = self.coarse.as_ref().is_some_and(|coarse| coarse.holds(page));
        (lpn, if is_held { None } else { self.ftl.lookup(lpn) })
    }

    /// Forgets the mapping units that an extent covers whole; returns when it is acknowledged.
    pub(crate) fn trim(&mut self, at: Nanos, extent: Extent) -> Nanos {
        if self.coarse.is_some() {
            self.trim_coarse(extent);
            return self.backend.command_write(at, 0);
        }
        let (first, last) = units(extent);
        for unit in first..=last {
            if covers(extent, unit) {
                self.ftl.trim(lpn(unit));
            }
        }
        self.backend.command_write(at, 0)
    }

    /// A die fails at `now`. Where nothing may be written from then on, writes that wait are given
    /// up: the caller answers them.
    ///
    /// # Errors
    /// As [`Ftl::lose_die`].
    pub(crate) fn fail_die(
        &mut self,
        now: Nanos,
        die: DieId,
        events: &mut EventQueue,
    ) -> Result<(DieLoss, Vec<u32>), ConfigError> {
        let config = *self.ftl.config();
        let new = || Box::new(LostDies::new(config.geometry, config.extents_per_page));
        self.backend.now = now;
        self.backend.lost.get_or_insert_with(new).add(die);
        let loss = self.ftl.lose_die(die, &mut self.backend)?;
        let given_up = if loss.is_writable { Vec::new() } else { self.waiting.drain(..).collect() };
        self.schedule(now, events);
        Ok((loss, given_up.into_iter().map(|(slot, _)| slot).collect()))
    }

    /// Requests whose writes wait for relocation, in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.waiting.iter().map(|(slot, _)| *slot)
    }

    /// Asserts what holds between any two events, the map of pages apart. `steps` of relocation and
    /// of folding are in the event queue.
    pub(crate) fn check_invariants(&self, (steps, folds): (u32, u32)) {
        self.backend.check_invariants();
        let is_folding = self.folding.is_some_and(|folding| folding.scheduled);
        assert_eq!(folds, u32::from(is_folding), "folding that is scheduled is to come");
        self.coarse.iter().for_each(|coarse| coarse.check_invariants());
        assert_eq!(steps, u32::from(self.scheduled), "a step that is scheduled is to come");
        let is_served = self.scheduled || self.waiting.is_empty();
        assert!(is_served, "a step is to come where writes wait");
        let (read, unmapped) = (self.pages_read, self.pages_read_unmapped);
        assert!(unmapped <= read, "{unmapped} pages of {read} were never written");
    }

    /// The logical page that holds a sector.
    #[inline]
    pub(crate) fn lpn_at(&self, sector: u64) -> Lpn {
        self.lpn_of_page(sector / UNIT_SECTORS)
    }

    /// `pages` of a read that have been sensed, of so many `lines`, leave the module.
    #[inline]
    pub(crate) fn transfer_out(
        &mut self,
        at: Nanos,
        channel: u16,
        pages: u16,
        lines: u16,
    ) -> Nanos {
        let at = self.backend.transfer_out(at, channel - self.channel_first, lines);
        self.port.as_mut().map_or(at, |port| port.read(at, at, u32::from(pages) * 8))
    }

    fn fetch(&mut self, at: Nanos, lpn: Lpn) -> Nanos {
        let Some(ppn) = self.ftl.lookup(lpn) else { return at };
        let (place, extent) = (self.ftl.unit_of(ppn), self.ftl.extent(lpn));
        if self.ftl.is_buffered(place) {
            return at;
        }
        let (die, t_read) = (self.ftl.die_of(place), self.t_read_of(place.superblock, at));
        if self.backend.is_lost(die) {
            self.backend.reconstruct(at, (die, ppn), backend::lines(extent), t_read)
        } else {
            self.backend.fetch(at, die, extent, t_read)
        }
    }

    /// Time of a read from `superblock` that begins at about `at`.
    #[inline]
    fn t_read_of(&mut self, superblock: SuperblockId, at: Nanos) -> Nanos {
        if self.reads_plainly {
            self.backend.t_read()
        } else {
            self.backend.t_read_of(&self.ftl, superblock, at)
        }
    }

    /// True if a die reads two pages of one program unit at once.
    #[inline]
    fn shares_read(&self, first: Ppn, other: Option<Ppn>) -> bool {
        other.is_some_and(|other| self.backend.read_of(first) == self.backend.read_of(other))
    }

    /// One die reads the pages of one NAND page on all planes that a request wants.
    #[inline]
    fn sense(
        &mut self,
        wanted: Option<WantedPages>,
        slot: u32,
        sensing: &mut Sensing,
        events: &mut EventQueue,
    ) {
        let Some(WantedPages { place, first, pages, lines }) = wanted else { return };
        debug_assert!((1..=PAGES_MAX).contains(&pages), "a die reads a program unit at most");
        let die = self.ftl.die_of(place);
        let t_read = self.t_read_of(place.superblock, sensing.commanded_at);
        if self.backend.is_lost(die) {
            let at = self.backend.reconstruct(sensing.commanded_at, (die, first), lines, t_read);
            events.push(at, Event::Answered { slot, pages: pages.into() });
            sensing.dies += 1;
            return;
        }
        let (at, waited) = self.backend.sense(sensing.commanded_at, die, t_read);
        let channel = self.channel_first + self.backend.channel_of(die);
        let event = Event::Sensed { slot, channel, pages, page_lines: lines.div_ceil(pages) };
        if waited {
            events.push(at, event);
        } else {
            events.push_in_order(Lane::Sensed(self.index), at, event);
        }
        sensing.dies += 1;
    }
}

/// First and last mapping unit that an extent touches.
#[inline]
const fn units(extent: Extent) -> (u64, u64) {
    debug_assert!(extent.sectors > 0, "an extent has a sector");
    let end = extent.first + extent.sectors as u64;
    (extent.first / UNIT_SECTORS, (end - 1) / UNIT_SECTORS)
}

/// True if an extent covers all of a mapping unit.
#[inline]
const fn covers(extent: Extent, unit: u64) -> bool {
    let first = unit * UNIT_SECTORS;
    extent.first <= first && first + UNIT_SECTORS <= extent.first + extent.sectors as u64
}

/// Sectors of a mapping unit that an extent covers.
const fn sectors_within(extent: Extent, unit: u64) -> u64 {
    let (first, end) = (unit * UNIT_SECTORS, (unit + 1) * UNIT_SECTORS);
    let extent_end = extent.first + extent.sectors as u64;
    let first = if extent.first > first { extent.first } else { first };
    let end = if extent_end < end { extent_end } else { end };
    end - first
}

#[inline]
fn lpn(unit: u64) -> Lpn {
    Lpn(u32::try_from(unit).expect("Config::check limits pages to 32 bits"))
}

/// Bytes of an extent.
#[inline]
pub(crate) const fn bytes(extent: Extent) -> Bytes {
    Bytes(extent.sectors as u64 * SECTOR_BYTES)
}
