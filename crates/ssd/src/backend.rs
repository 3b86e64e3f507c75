//! One module's media in virtual time: dies, channels, controller and buffer as time lines.
//!
//! The flash translation layer hands over media operations; each is booked at once on the resources
//! that it needs, which answers when it will be done. Nothing here knows what the data is.

use blockio::{Bytes, Nanos};
use ftl::{Cause, Config, DieId, Divider, Ftl, Media, MediaOp, PAGE_BYTES, Ppn, SuperblockId};

use crate::buffer::Buffer;
use crate::climate::Throttle;
use crate::die::Die;
use crate::die_failure::LostDies;
use crate::module::retry::ReadRetry;
use crate::server::{PriorityServer, ServerPool};
use crate::spec::{DriveSpec, HostSpec};

/// Bytes of a line, by which transfers between dies and controller are measured.
pub(crate) const LINE_BYTES: u64 = 64;
/// Lines of a page of 4 KiB.
pub(crate) const PAGE_LINES: u16 = 64;

/// Time that each operation costs.
#[derive(Clone, Debug)]
struct Costs {
    read_command: Nanos,
    read_unit: Nanos,
    read_unmapped: Nanos,
    write_command: Nanos,
    write_unit: Nanos,
    relocate: Nanos,
    t_read: Nanos,
    /// Mapping units that a die reads at a time: a NAND page on every plane.
    pages_per_read: Divider,
    t_program: Vec<Nanos>,
    /// Mean over the page types.
    t_program_mean: Nanos,
    /// Divider by the number of page types, which the pages of an erase block have in turn.
    page_types: Divider,
    t_erase: Nanos,
    suspend: Option<Nanos>,
    channel_unit: Nanos,
    /// A whole program unit.
    channel_program: Nanos,
    /// A program unit in SLC mode; absent where there is no cache.
    slc: Option<SlcCosts>,
    /// Bytes of a logical page.
    page_bytes: u64,
    dies_per_bank: u32,
    read_first: bool,
}

/// Time of a program unit in SLC mode.
#[derive(Clone, Copy, Debug)]
struct SlcCosts {
    t_read: Nanos,
    t_program: Nanos,
    channel_program: Nanos,
    /// Program units in SLC mode that together hold as much as a whole one.
    parts: u32,
}

/// Dies, channels, controller and buffer of one module.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    costs: Costs,
    /// Costs while nothing is throttled; absent if nothing ever was.
    costs_free: Option<Box<Costs>>,
    controller: ServerPool,
    dies: Vec<Die>,
    /// Dies that are out of service.
    pub(crate) lost: Option<Box<LostDies>>,
    channels: Vec<PriorityServer>,
    channel_by_die: Vec<u16>,
    buffer: Buffer,
    /// The present.
    pub(crate) now: Nanos,
    /// Time at which the host data that is being placed will have arrived.
    pub(crate) arrived_at: Nanos,
    /// Time at which the last unit of host data that was handed over will have been programmed.
    programmed_at: Nanos,
    /// Relocated data from its read to the end of its program.
    relocation_buffer: Buffer,
    /// Start of the last NAND read for relocation.
    relocation_begun_at: Nanos,
    /// Last NAND read for relocation: its number among all reads of the module, and the time from
    /// which its next page may leave the die's register. None if the register holds nothing of use.
    read_last: Option<(u32, Nanos)>,
    /// Time at which the relocated data that is waiting for its unit will have arrived.
    relocated_at: Nanos,
    /// Retries of reads; absent where NAND never retries.
    pub(crate) retry: Option<Box<ReadRetry>>,
}

impl Backend {
    /// An idle module.
    pub(crate) fn new(spec: &DriveSpec, host: &HostSpec, config: &Config, time_lapse: u32) -> Self {
        let geometry = &config.geometry;
        let channels = u16::try_from(spec.channels.count).expect("the spec limits channels");
        assert!(channels > 0, "a module has a channel");
        // Counted in units of SLC mode where there is one.
        let parts = config.slc_cache.map_or(1, |cache| cache.bits_per_cell);
        let unit_kib = f64::from(geometry.pages_per_unit() * geometry.indirection_kib);
        let buffer = |kib: u32| Buffer::new(floor(f64::from(kib) / unit_kib) * parts);
        let of = (time_lapse, config.seed);
        let retry = |retry| Box::new(ReadRetry::new(retry, geometry.superblocks(), of));
        Self {
            costs: Costs::new(spec, host, config),
            costs_free: None,
            controller: ServerPool::new(spec.controller.cores),
            dies: vec![Die::default(); geometry.dies() as usize],
            lost: None,
            channels: vec![PriorityServer::default(); channels.into()],
            channel_by_die: (0..channels).cycle().take(geometry.dies() as usize).collect(),
            buffer: buffer(spec.buffer.kib),
            now: Nanos::ZERO,
            arrived_at: Nanos::ZERO,
            programmed_at: Nanos::ZERO,
            relocation_buffer: buffer(spec.relocation.buffer_kib.unwrap_or(spec.buffer.kib)),
            relocation_begun_at: Nanos::ZERO,
            read_last: None,
            relocated_at: Nanos::ZERO,
            retry: spec.read_retry.as_ref().map(retry),
        }
    }

    /// Holds the programs and erases that are booked from now on.
    pub(crate) fn throttle(&mut self, throttle: Throttle) {
        let free = self.costs_free.get_or_insert_with(|| Box::new(self.costs.clone()));
        let costs = &mut self.costs;
        costs.t_program = free.t_program.iter().map(|time| throttle.of(*time)).collect();
        costs.t_program_mean = throttle.of(free.t_program_mean);
        costs.t_erase = throttle.of(free.t_erase);
        if let (Some(slc), Some(free)) = (&mut costs.slc, &free.slc) {
            slc.t_program = throttle.of(free.t_program);
        }
        assert!(
            costs.t_program_mean >= free.t_program_mean,
            "a throttled program takes no less time"
        );
        assert!(costs.t_erase >= free.t_erase, "a throttled erase takes no less time");
    }

    /// Books a read command of `sectors` on the controller; returns its end.
    #[inline]
    pub(crate) fn command_read(&mut self, at: Nanos, sectors: u32) -> Nanos {
        let span = self.costs.read_command + sectors_of(self.costs.read_unit, sectors);
        self.urgent(at, span)
    }

    /// Books a read that the map answers by itself on the controller; returns its end.
    #[inline]
    pub(crate) fn command_unmapped(&mut self, at: Nanos) -> Nanos {
        self.urgent(at, self.costs.read_unmapped)
    }

    /// Books a write command on the controller; returns its end.
    #[inline]
    pub(crate) fn command_write(&mut self, at: Nanos, sectors: u32) -> Nanos {
        let span = self.costs.write_command + sectors_of(self.costs.write_unit, sectors);
        self.controller.book(at, span)
    }

    #[inline]
    fn urgent(&mut self, at: Nanos, span: Nanos) -> Nanos {
        if self.costs.read_first {
            self.controller.book_urgent(at, span)
        } else {
            self.controller.book(at, span)
        }
    }

    /// Time at which the controller takes the next command.
    pub(crate) fn controller_free_at(&mut self) -> Nanos {
        self.controller.free_at()
    }

    /// Work that the controller was given so far.
    pub(crate) const fn controller_work(&self) -> Nanos {
        self.controller.work()
    }

    /// Time at which the controller becomes idle, as far as is known now.
    pub(crate) fn controller_idle_at(&self) -> Nanos {
        self.controller.idle_at()
    }

    /// Channels of the module.
    #[expect(clippy::cast_possible_truncation, reason = "the spec limits channels to 1024")]
    pub(crate) const fn channels(&self) -> u16 {
        self.channels.len() as u16
    }

    /// Time at which the buffer takes the next page and the relocation owed for host writes has
    /// begun.
    #[inline]
    pub(crate) fn buffer_admits_at(&self) -> Nanos {
        self.buffer.admits_at().max(self.relocation_begun_at)
    }

    /// Pages of the translation layer that the buffer holds, of `unit` to a program unit.
    pub(crate) fn buffer_pages(&self, unit: u32) -> u64 {
        self.buffer.units_max() * u64::from(unit)
    }

    /// Time at which relocation may go on, its buffer having space for the next read.
    pub(crate) const fn relocation_admits_at(&self) -> Nanos {
        self.relocation_buffer.admits_at()
    }

    /// Time at which the unit of host data that was handed over last will have been programmed.
    #[inline]
    pub(crate) const fn programmed_at(&self) -> Nanos {
        self.programmed_at
    }

    /// Time at which a unit that is still open would be programmed if it were closed with padding
    /// now.
    pub(crate) fn padded_at(&self, die: DieId) -> Nanos {
        self.dies[die.0 as usize].free_at().max(self.arrived_at) + self.costs.t_program_mean
    }

    /// Time that the program of a unit takes of all dies together.
    pub(crate) fn program_share(&self) -> Nanos {
        self.costs.t_program_mean / self.dies.len() as u64
    }

    /// Time of a read of whole cells.
    #[inline]
    pub(crate) const fn t_read(&self) -> Nanos {
        self.costs.t_read
    }

    /// Number of the NAND read, among all of the module, by which a page is read.
    #[inline]
    pub(crate) fn read_of(&self, ppn: Ppn) -> u32 {
        self.costs.pages_per_read.divide(ppn.0).0
    }

    /// True if `die` is out of service.
    #[inline]
    pub(crate) fn is_lost(&self, die: DieId) -> bool {
        self.lost.as_ref().is_some_and(|lost| lost.has(die))
    }

    /// Time of a read from `superblock` that begins at about `at`, in its mode and with its
    /// retries.
    #[inline(never)]
    pub(crate) fn t_read_of(&mut self, ftl: &Ftl, superblock: SuperblockId, at: Nanos) -> Nanos {
        if let Some(slc) = self.costs.slc.filter(|_| ftl.superblock(superblock).is_slc) {
            return slc.t_read;
        }
        self.costs.t_read + self.retries(superblock, at)
    }

    /// Time of the retries of a read from `superblock` that begins at about `at`.
    #[inline]
    fn retries(&mut self, superblock: SuperblockId, at: Nanos) -> Nanos {
        self.retry.as_mut().map_or(Nanos::ZERO, |retry| retry.time(superblock, at))
    }

    /// Books the host's read of a die, which takes `t_read`; returns when the data is in its
    /// register, and whether it had to wait for the die.
    #[inline]
    pub(crate) fn sense(&mut self, at: Nanos, die: DieId, t_read: Nanos) -> (Nanos, bool) {
        let sensed_at = self.dies[die.0 as usize].read(at, t_read, self.costs.suspend);
        debug_assert!(sensed_at >= at + t_read, "a read takes as long as the media at least");
        (sensed_at, sensed_at > at + t_read)
    }

    /// Books the transfer of what the host reads; returns its end.
    #[inline]
    pub(crate) fn transfer_out(&mut self, at: Nanos, channel: u16, lines: u16) -> Nanos {
        let span = self.costs.channel(u64::from(lines) * LINE_BYTES);
        self.channels[usize::from(channel)].book_urgent(at, span)
    }

    /// The channel of a die.
    #[inline]
    pub(crate) fn channel_of(&self, die: DieId) -> u16 {
        self.channel_by_die[die.0 as usize]
    }

    /// Books the page that a partial write has to read first, which takes `t_read`; returns when
    /// it is there.
    pub(crate) fn fetch(&mut self, at: Nanos, die: DieId, extent: Bytes, t_read: Nanos) -> Nanos {
        let span = self.costs.read_unit * extent.0.div_ceil(PAGE_BYTES);
        let at = self.urgent(at, span);
        let (at, _) = self.sense(at, die, t_read);
        let channel = self.channel_of(die);
        self.transfer_out(at, channel, lines(extent))
    }

    /// Books the relocation of one page. Pages that lie in one NAND page of all planes are read
    /// together, and nothing is read before there is memory for it.
    #[inline]
    fn relocate(&mut self, from: Ppn, of: (SuperblockId, DieId), extent: Bytes) {
        let (superblock, die) = of;
        let moved = self.controller.book(self.now, self.costs.relocate);
        let read = self.read_of(from);
        let ready_at = match self.read_last {
            Some((last, ready_at)) if last == read => ready_at,
            _ => {
                self.relocation_begun_at = self.relocation_admits_at().max(self.now);
                let at = self.relocation_begun_at;
                let t_read = self.costs.t_read + self.retries(superblock, at);
                match &self.lost {
                    Some(lost) if lost.has(die) => self.reconstruct_read(from, die, t_read),
                    _ => self.dies[die.0 as usize].book_read(self.now, at, t_read),
                }
            }
        };
        let channel = usize::from(self.channel_of(die));
        let span = self.costs.channel(extent.0);
        let arrived_at = self.channels[channel].book_ahead(self.now, ready_at, span);
        debug_assert!(arrived_at >= ready_at + span, "data is carried once it has been read");
        self.read_last = Some((read, arrived_at));
        self.relocated_at = self.relocated_at.max(moved).max(arrived_at);
        debug_assert!(self.relocated_at >= self.now, "relocated data arrives after its read");
    }

    /// Books the reads and transfers from which what a die would read at once is reconstructed for
    /// relocation: one of the same size from each other unit of the stripe. Returns when all have
    /// arrived.
    #[cold]
    fn reconstruct_read(&mut self, from: Ppn, lost_die: DieId, t_read: Nanos) -> Nanos {
        let Some(lost) = &self.lost else { return self.relocation_begun_at };
        let pages = u64::from(self.costs.pages_per_read.divisor());
        let span = self.costs.channel(pages * self.costs.page_bytes);
        let (others, mut arrived_at) = (lost.others(lost_die, from), self.relocation_begun_at);
        for die in others {
            let begins_at = self.relocation_begun_at;
            let read_at = self.dies[die.0 as usize].book_read(self.now, begins_at, t_read);
            let channel = usize::from(self.channel_of(die));
            arrived_at = arrived_at.max(self.channels[channel].book_ahead(self.now, read_at, span));
        }
        arrived_at
    }

    /// Books the host's read of what lay at `ppn` on a lost die, `lines` from each other unit of
    /// its stripe, each of which takes `t_read`; returns when all have arrived at the controller.
    #[cold]
    pub(crate) fn reconstruct(
        &mut self,
        at: Nanos,
        (lost_die, ppn): (DieId, Ppn),
        lines: u16,
        t_read: Nanos,
    ) -> Nanos {
        let Some(lost) = &self.lost else { return at };
        let (others, mut arrived_at) = (lost.others(lost_die, ppn), at);
        for die in others {
            let (sensed_at, _) = self.sense(at, die, t_read);
            let channel = self.channel_of(die);
            arrived_at = arrived_at.max(self.transfer_out(sensed_at, channel, lines));
        }
        arrived_at
    }

    /// Books the program of a unit, `is_slc` with one bit a cell.
    #[inline(never)]
    fn program(&mut self, die: DieId, row: u32, cause: Cause, is_slc: bool) {
        let slc = if is_slc { self.costs.slc } else { None };
        debug_assert!(cause != Cause::Host || self.arrived_at >= self.now, "data arrives first");
        let ready = match cause {
            Cause::Host => self.arrived_at,
            Cause::Relocation | Cause::Wear => std::mem::take(&mut self.relocated_at),
            Cause::Parity => self.now,
        };
        let channel = usize::from(self.channel_of(die));
        let (span, t_program) = match slc {
            None => {
                let (_, page_type) = self.costs.page_types.divide(row);
                (self.costs.channel_program, self.costs.t_program[page_type as usize])
            }
            Some(slc) => (slc.channel_program, slc.t_program),
        };
        let ready = self.channels[channel].book_ahead(self.now, ready, span);
        let end = self.dies[die.0 as usize].book(self.now, ready, t_program);
        assert!(end >= ready + t_program, "a program takes as long as the media at least");
        if cause == Cause::Host {
            self.programmed_at = end;
        }
        let buffer = match cause {
            Cause::Host | Cause::Parity => &mut self.buffer,
            Cause::Relocation | Cause::Wear => &mut self.relocation_buffer,
        };
        buffer.fill(end);
        if let (Some(whole), None) = (self.costs.slc, slc) {
            (1..whole.parts).for_each(|_| buffer.fill(end));
        }
    }

    /// Asserts what holds of buffers, channels and controller between any two events.
    pub(crate) fn check_invariants(&self) {
        self.buffer.check_invariants();
        self.relocation_buffer.check_invariants();
        self.controller.check_invariants();
        self.channels.iter().for_each(|channel| channel.check_invariants());
        let channels = self.channels();
        let is_known = self.channel_by_die.iter().all(|channel| *channel < channels);
        assert!(is_known, "a die is on a channel of its module");
        assert_eq!(self.channel_by_die.len(), self.dies.len(), "every die is on a channel");
    }

    fn erase(&mut self, die_first: DieId) {
        self.read_last = None;
        let ready = self.relocated_at.max(self.now);
        for die in die_first.0..die_first.0 + self.costs.dies_per_bank {
            if self.is_lost(DieId(die)) {
                continue;
            }
            self.dies[die as usize].book(self.now, ready, self.costs.t_erase);
        }
    }
}

impl Media for Backend {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "which operation it is is known where it is called")]
    fn submit(&mut self, op: MediaOp) {
        match op {
            MediaOp::Relocate { from, superblock, die, extent, .. } => {
                self.relocate(from, (superblock, die), extent);
            }
            MediaOp::Program { superblock, die, row, cause, is_slc } => {
                if let (Some(retry), 0) = (&mut self.retry, row) {
                    retry.begin(superblock, self.now, is_slc);
                }
                self.program(die, row, cause, is_slc);
            }
            MediaOp::Erase { superblock, die_first } => {
                if let Some(retry) = &mut self.retry {
                    retry.erase(superblock);
                }
                self.erase(die_first);
            }
        }
    }
}

/// Lines that an extent takes.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "an extent is at most a page")]
pub(crate) const fn lines(extent: Bytes) -> u16 {
    debug_assert!(extent.0 > 0 && extent.0 <= 1 << 16, "an extent is at most a logical page");
    extent.0.div_ceil(LINE_BYTES) as u16
}

impl Costs {
    /// Time of a channel for so many bytes.
    #[inline]
    const fn channel(&self, bytes: u64) -> Nanos {
        Nanos(self.channel_unit.0 * bytes / PAGE_BYTES)
    }

    fn new(spec: &DriveSpec, host: &HostSpec, config: &Config) -> Self {
        let (controller, nand) = (&spec.controller, &spec.nand);
        let factor = if controller.on_host { host.controller_factor } else { 1.0 };
        let command = |micros: f64| Nanos::from_micros_f64(micros * factor);
        let micros = Nanos::from_micros_f64;
        let unmapped = spec.mapping.as_ref().and_then(|mapping| mapping.unmapped_read_us);
        let types = nand.t_program_us.len() as f64;
        let channel_unit = micros(PAGE_BYTES as f64 / spec.channels.mb_s);
        assert!(channel_unit > Nanos::ZERO, "a channel takes time for a page");
        let geometry = &config.geometry;
        let pages_counted = geometry.counted_per_page();
        let channel_program = channel_unit * u64::from(geometry.pages_per_unit()) * pages_counted;
        let slc = spec.slc_cache.as_ref().zip(config.slc_cache).map(|(slc, cache)| SlcCosts {
            t_read: micros(slc.t_read_us),
            t_program: micros(slc.t_program_us),
            channel_program: channel_program / u64::from(cache.bits_per_cell),
            parts: cache.bits_per_cell,
        });
        Self {
            read_command: command(controller.read_us),
            read_unit: command(controller.read_us_per_kib * 4.0),
            read_unmapped: command(unmapped.unwrap_or(controller.read_us)),
            write_command: command(controller.write_us),
            write_unit: command(controller.write_us_per_kib * 4.0),
            relocate: command(controller.relocate_us) * pages_counted,
            t_read: micros(nand.t_read_us),
            pages_per_read: Divider::new(
                config.geometry.pages_per_unit() / spec.geometry.pages_per_program,
            ),
            t_program: nand.t_program_us.iter().map(|time| micros(*time)).collect(),
            t_program_mean: micros(nand.t_program_us.iter().sum::<f64>() / types),
            page_types: Divider::new(u32::try_from(nand.t_program_us.len()).expect("a few")),
            t_erase: micros(nand.t_erase_us),
            suspend: (nand.suspend_us > 0.0).then(|| micros(nand.suspend_us)),
            channel_unit,
            channel_program,
            slc,
            page_bytes: geometry.page_bytes(),
            dies_per_bank: config.geometry.dies_per_bank,
            read_first: controller.read_first,
        }
    }
}

/// Time for `sectors` where a mapping unit (8 sectors) takes `unit`.
#[inline]
fn sectors_of(unit: Nanos, sectors: u32) -> Nanos {
    Nanos(unit.0 * u64::from(sectors) / 8)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn floor(number: f64) -> u32 {
    number.floor() as u32
}

#[cfg(test)]
mod tests {
    use ftl::Lpn;

    use super::*;
    use crate::catalogue;

    /// The Duo's module, whose program unit is two pages of 4 KiB, without a controller in the way.
    fn duo(change: impl FnOnce(&mut DriveSpec)) -> Backend {
        let mut spec = catalogue::find("iodrive-duo").expect("in the catalogue");
        spec.controller.relocate_us = 0.0;
        change(&mut spec);
        let config = spec.ftl_config(&spec.formats[0], 128).expect("feasible");
        Backend::new(&spec, &spec.hosts[0], &config, 128)
    }

    /// Relocates a page of the first die; returns when it has arrived.
    fn relocate(backend: &mut Backend, page: u32) -> Nanos {
        backend.submit(MediaOp::Relocate {
            from: Ppn(page),
            superblock: SuperblockId(0),
            die: DieId(0),
            to: Ppn(1_000 + page),
            lpn: Lpn(page),
            extent: Bytes(PAGE_BYTES),
            cause: Cause::Relocation,
        });
        backend.relocated_at
    }

    /// Programs what has been relocated; returns when relocation may go on.
    fn program(backend: &mut Backend, die: u32) -> Nanos {
        let (superblock, cause) = (SuperblockId(1), Cause::Relocation);
        backend.submit(MediaOp::Program {
            superblock,
            die: DieId(die),
            row: 0,
            cause,
            is_slc: false,
        });
        backend.relocation_admits_at()
    }

    #[test]
    fn pages_of_one_nand_page_on_all_planes_are_relocated_by_one_read() {
        let mut backend = duo(|_| {});
        let (t_read, transfer) = (backend.costs.t_read, backend.costs.channel_unit);
        assert_eq!(relocate(&mut backend, 6), t_read + transfer);
        assert_eq!(relocate(&mut backend, 7), t_read + transfer * 2);
        assert_eq!(relocate(&mut backend, 8), t_read * 2 + transfer);
    }

    #[test]
    fn pages_that_are_programmed_in_one_go_are_read_one_after_the_other() {
        let mut backend = duo(|spec| spec.geometry.pages_per_program = 2);
        let (t_read, transfer) = (backend.costs.t_read, backend.costs.channel_unit);
        assert_eq!(relocate(&mut backend, 0), t_read + transfer);
        assert_eq!(relocate(&mut backend, 1), t_read + transfer * 2);
        assert_eq!(relocate(&mut backend, 2), t_read * 2 + transfer);
    }

    #[test]
    fn an_erase_forgets_what_was_read() {
        let mut backend = duo(|_| {});
        let t_read = backend.costs.t_read;
        let first = relocate(&mut backend, 6);
        backend.submit(MediaOp::Erase { superblock: SuperblockId(0), die_first: DieId(25) });
        assert_eq!(relocate(&mut backend, 6), first + t_read);
    }

    #[test]
    fn relocation_reads_no_more_than_its_memory_takes_and_the_host_waits_for_what_it_owes() {
        let mut backend = duo(|spec| spec.relocation.buffer_kib = Some(8));
        relocate(&mut backend, 0);
        assert_eq!(program(&mut backend, 1), Nanos::ZERO, "one unit fits");
        relocate(&mut backend, 2);
        let admitted_at = program(&mut backend, 2);
        assert!(admitted_at >= backend.costs.t_program[0], "{admitted_at}");
        assert_eq!(backend.buffer_admits_at(), Nanos::ZERO, "both reads have begun");
        let read = relocate(&mut backend, 4);
        assert_eq!(read, admitted_at + backend.costs.t_read + backend.costs.channel_unit);
        assert_eq!(backend.buffer_admits_at(), admitted_at);
    }
}
