//! One module's media in virtual time: dies, channels, controller and buffer as time lines.
//!
//! The flash translation layer hands over media operations; each is booked at once on the resources
//! that it needs, which answers when it will be done. Nothing here knows what the data is.

use blockio::{Bytes, Nanos};
use ftl::{Cause, Config, DieId, Divider, Media, MediaOp, UNIT_BYTES};

use crate::buffer::Buffer;
use crate::die::Die;
use crate::server::{PriorityServer, ServerPool};
use crate::spec::{DriveSpec, HostSpec};

/// Bytes of a line, by which transfers between dies and controller are measured.
pub(crate) const LINE_BYTES: u64 = 64;

/// What each operation costs, in virtual time.
#[derive(Clone, Debug)]
struct Costs {
    read_command: Nanos,
    read_unit: Nanos,
    read_unmapped: Nanos,
    write_command: Nanos,
    write_unit: Nanos,
    relocate: Nanos,
    t_read: Nanos,
    t_program: Vec<Nanos>,
    /// Mean over the page types.
    t_program_mean: Nanos,
    /// By how many page types the pages of an erase block take turns.
    page_types: Divider,
    t_erase: Nanos,
    suspend: Option<Nanos>,
    channel_unit: Nanos,
    /// A whole program unit.
    channel_program: Nanos,
    dies_per_bank: u32,
    read_first: bool,
}

/// Dies, channels, controller and buffer of one module.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    costs: Costs,
    controller: ServerPool,
    dies: Vec<Die>,
    channels: Vec<PriorityServer>,
    channel_by_die: Vec<u16>,
    buffer: Buffer,
    /// The present.
    pub(crate) now: Nanos,
    /// When the host data that is being placed will have arrived.
    pub(crate) arrived_at: Nanos,
    /// When the last unit of host data that was handed over will have been programmed.
    programmed_at: Nanos,
    /// When the relocated data that is waiting for its unit will have arrived.
    pub(crate) relocated_at: Nanos,
}

impl Backend {
    /// An idle module.
    pub(crate) fn new(spec: &DriveSpec, host: &HostSpec, config: &Config) -> Self {
        let geometry = &config.geometry;
        let channels = u16::try_from(spec.channels.count).expect("the spec limits channels");
        let unit_kib = (Bytes::from_kib(u64::from(geometry.pages_per_unit()) * 4)).as_kib_f64();
        Self {
            costs: Costs::new(spec, host, config),
            controller: ServerPool::new(spec.controller.cores),
            dies: vec![Die::default(); geometry.dies() as usize],
            channels: vec![PriorityServer::default(); channels.into()],
            channel_by_die: (0..channels).cycle().take(geometry.dies() as usize).collect(),
            buffer: Buffer::new(floor(f64::from(spec.buffer.kib) / unit_kib)),
            now: Nanos::ZERO,
            arrived_at: Nanos::ZERO,
            programmed_at: Nanos::ZERO,
            relocated_at: Nanos::ZERO,
        }
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

    /// When the controller will have done all that it has been told.
    pub(crate) fn controller_free_at(&mut self) -> Nanos {
        self.controller.free_at()
    }

    /// Channels of the module.
    #[expect(clippy::cast_possible_truncation, reason = "the spec limits channels to 1024")]
    pub(crate) const fn channels(&self) -> u16 {
        self.channels.len() as u16
    }

    /// When the buffer takes the next page.
    #[inline]
    pub(crate) const fn buffer_admits_at(&self) -> Nanos {
        self.buffer.admits_at()
    }

    /// When the unit of host data that was handed over last will have been programmed.
    #[inline]
    pub(crate) const fn programmed_at(&self) -> Nanos {
        self.programmed_at
    }

    /// When a unit that is still open would have been programmed, were it full: it is closed with
    /// padding if nothing else comes.
    pub(crate) fn padded_at(&self, die: DieId) -> Nanos {
        self.dies[die.0 as usize].free_at().max(self.arrived_at) + self.costs.t_program_mean
    }

    /// Books the host's read of a die; returns when the data is in its register, and whether it had
    /// to wait for the die.
    #[inline]
    pub(crate) fn sense(&mut self, at: Nanos, die: DieId) -> (Nanos, bool) {
        let t_read = self.costs.t_read;
        let sensed_at = self.dies[die.0 as usize].read(at, t_read, self.costs.suspend);
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

    /// Books the page that a partial write has to read first; returns when it is there.
    pub(crate) fn fetch(&mut self, at: Nanos, die: DieId, extent: Bytes) -> Nanos {
        let at = self.urgent(at, self.costs.read_unit);
        let (at, _) = self.sense(at, die);
        let channel = self.channel_of(die);
        self.transfer_out(at, channel, lines(extent))
    }

    #[inline]
    fn relocate(&mut self, die: DieId, extent: Bytes) {
        let moved = self.controller.book(self.now, self.costs.relocate);
        let channel = usize::from(self.channel_of(die));
        let sensed = self.dies[die.0 as usize].book(self.now, self.now, self.costs.t_read);
        let span = self.costs.channel(extent.0);
        let read = self.channels[channel].book_ahead(self.now, sensed, span);
        self.relocated_at = self.relocated_at.max(moved).max(read);
    }

    #[inline]
    fn program(&mut self, die: DieId, row: u32, cause: Cause) {
        let ready = match cause {
            Cause::Host => self.arrived_at,
            Cause::Relocation | Cause::Wear => std::mem::take(&mut self.relocated_at),
            Cause::Parity => self.now,
        };
        let channel = usize::from(self.channel_of(die));
        let span = self.costs.channel_program;
        let ready = self.channels[channel].book_ahead(self.now, ready, span);
        let (_, page_type) = self.costs.page_types.divide(row);
        let t_program = self.costs.t_program[page_type as usize];
        let end = self.dies[die.0 as usize].book(self.now, ready, t_program);
        self.buffer.fill(end);
        if cause == Cause::Host {
            self.programmed_at = end;
        }
    }

    fn erase(&mut self, die_first: DieId) {
        let ready = self.relocated_at.max(self.now);
        for die in die_first.0..die_first.0 + self.costs.dies_per_bank {
            self.dies[die as usize].book(self.now, ready, self.costs.t_erase);
        }
    }
}

impl Media for Backend {
    #[inline]
    fn submit(&mut self, op: MediaOp) {
        match op {
            MediaOp::Relocate { die, extent, .. } => self.relocate(die, extent),
            MediaOp::Program { die, row, cause, .. } => self.program(die, row, cause),
            MediaOp::Erase { die_first, .. } => self.erase(die_first),
        }
    }
}

/// Lines that an extent takes.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "an extent is at most a page")]
pub(crate) const fn lines(extent: Bytes) -> u16 {
    extent.0.div_ceil(LINE_BYTES) as u16
}

impl Costs {
    /// Time of a channel for so many bytes.
    #[inline]
    const fn channel(&self, bytes: u64) -> Nanos {
        Nanos(self.channel_unit.0 * bytes / UNIT_BYTES)
    }

    fn new(spec: &DriveSpec, host: &HostSpec, config: &Config) -> Self {
        let (controller, nand) = (&spec.controller, &spec.nand);
        let factor = if controller.on_host { host.controller_factor } else { 1.0 };
        let command = |micros: f64| Nanos::from_micros_f64(micros * factor);
        let micros = Nanos::from_micros_f64;
        let unmapped = spec.mapping.as_ref().and_then(|mapping| mapping.unmapped_read_us);
        let types = nand.t_program_us.len() as f64;
        let channel_unit = micros(UNIT_BYTES as f64 / spec.channels.mb_s);
        Self {
            read_command: command(controller.read_us),
            read_unit: command(controller.read_us_per_kib * 4.0),
            read_unmapped: command(unmapped.unwrap_or(controller.read_us)),
            write_command: command(controller.write_us),
            write_unit: command(controller.write_us_per_kib * 4.0),
            relocate: command(controller.relocate_us),
            t_read: micros(nand.t_read_us),
            t_program: nand.t_program_us.iter().map(|time| micros(*time)).collect(),
            t_program_mean: micros(nand.t_program_us.iter().sum::<f64>() / types),
            page_types: Divider::new(u32::try_from(nand.t_program_us.len()).expect("a few")),
            t_erase: micros(nand.t_erase_us),
            suspend: (nand.suspend_us > 0.0).then(|| micros(nand.suspend_us)),
            channel_unit,
            channel_program: channel_unit * u64::from(config.geometry.pages_per_unit()),
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
