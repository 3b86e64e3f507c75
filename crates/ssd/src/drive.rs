//! The drive itself.
//!
//! ```text
//!  submit ─► host driver ─► link ─► module: controller ─► dies ─► channel ─► link ─► host driver
//!                                      │                 (reads)
//!                                      └─► flash translation layer ─► buffer   (writes)
//! ```
//!
//! Everything up to the die is booked when a request is submitted, since requests reach each of
//! those resources in the order of submission. What a die has read reaches channel and link in an
//! order of its own, so that is an event. A completion is an event too.

mod classes;
mod counters;
mod die_failure;
mod invariants;
mod mapless;
mod pacer;
mod state;
mod warming;

use std::collections::VecDeque;

use blockio::{Bytes, ClimateReading, Completion, Nanos, Op, Request, SECTOR_BYTES, Status};
use ftl::{Config, Divider, Ftl, Lpn, PAGE_BYTES};

use self::die_failure::DieFailures;
use crate::class_pair::ClassPair;
use crate::climate::Climate;
use crate::disk::Disk;
use crate::event::{Event, EventQueue, Lane};
use crate::host::Host;
use crate::in_place::InPlace;
use crate::link::Link;
use crate::module::{Extent, Module};
use crate::spec::{DriveSpec, SpecError};
use crate::stall::Wait;
use crate::stripe::Stripe;

pub use self::classes::{ClassCounters, TierWork};
pub use self::state::Placement;
pub use self::warming::WarmedRequests;

/// Setup of a drive for a run.
///
/// Format and host are names in the drive's file; other names are refused:
///
/// ```
/// use ssd::{Drive, Setup, catalogue};
///
/// let spec = catalogue::find("iodrive-duo").expect("it is in the catalogue");
/// assert_eq!(spec.formats(), ["stock", "high-performance"]);
/// let mut setup = Setup {
///     format: "high-performance".into(),
///     host: "windows".into(),
///     time_lapse: spec.time_lapse, // the smallest scale at which this drive settles as it does
///     seed: 1,
/// };
/// assert!(Drive::new(&spec, &setup).is_ok());
/// setup.format = "fast".into();
/// let refused = Drive::new(&spec, &setup).unwrap_err();
/// assert!(refused.to_string().contains("fast"), "{refused}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Name of one of its formats.
    pub format: String,
    /// Name of one of its host drivers.
    pub host: String,
    /// 1/k of the capacity, for 1/k of the time; 1 is full scale.
    pub time_lapse: u32,
    /// Seed of its random streams.
    pub seed: u64,
}

/// A drive: a value.
///
/// A value can be copied in any state, so two loads can continue from the same state:
///
/// ```
/// use blockio::{Lba, Nanos, Op, Request};
/// use ssd::{Drive, Setup, catalogue};
///
/// let spec = catalogue::find("p5800x").expect("it is in the catalogue");
/// let (format, host) = (spec.formats().remove(0), spec.hosts().remove(0));
/// let mut drive = Drive::new(&spec, &Setup { format, host, time_lapse: 64, seed: 1 })?;
/// let write = Request {
///     tag: 7, thread: 0, op: Op::Write, handle: 0, lba: Lba(0), sectors: 8,
/// };
/// drive.submit(Nanos::ZERO, write);
///
/// let mut other = drive.clone();
/// other.submit(Nanos::ZERO, Request { lba: Lba(4096), ..write });
/// let done = drive.next_completion(Nanos::MAX).expect("a request is outstanding");
/// assert_eq!((done.tag, done.submitted_at), (7, Nanos::ZERO));
/// assert_eq!(drive.next_event(), None);
/// assert!(other.next_event().is_some());
/// # Ok::<(), ssd::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Drive {
    host: Host,
    /// Requests that the host driver keeps back, and when they were submitted.
    kept_back: VecDeque<(Nanos, Request)>,
    /// One for each device.
    links: Vec<Link>,
    stripe: Stripe,
    /// Modules of NAND, device by device; none where media is written in place.
    modules: Vec<Module>,
    /// Modules of media that is written in place, device by device.
    in_place: Vec<InPlace>,
    /// Hard disks, device by device.
    disks: Vec<Disk>,
    /// The two drives that it is made of, if it is.
    classes: Option<Box<ClassPair>>,
    /// True if its media is NAND, with a map.
    is_nand: bool,
    modules_per_device: usize,
    channels_per_module: Divider,
    user_sectors_full_scale: u64,
    raw_capacity_full_scale: Bytes,
    /// Header that the drive adds to each compressed page, in bytes; absent if it does not
    /// compress.
    extent_header_bytes: Option<u32>,
    /// True if the drive offers more than it holds, so that writes can fail for lack of flash.
    can_run_out: bool,
    /// True if flash is managed on the host's processor.
    is_host_managed: bool,
    /// Memory of the host that the map takes at full scale; absent if the drive keeps it itself.
    host_map: Option<Bytes>,
    in_flight: Vec<InFlight>,
    slots_free: Vec<u32>,
    events: EventQueue,
    /// Power and heat; absent where nothing is known of them.
    climate: Option<Box<Climate>>,
    /// Time of the next update of power and heat, or of the failure of a die.
    look_at: Nanos,
    die_failures: DieFailures,
    /// Time of the next failure of a die; the end of time until the first load begins.
    die_fails_at: Nanos,
    /// True once too little is left for what would have to be moved: writes are refused.
    is_read_only: bool,
    /// True if a write may find no flash.
    may_refuse_writes: bool,
    time_lapse: u32,
    /// Sectors that it serves: none once it has switched itself off.
    sectors_served: u64,
    /// Sectors that the links have been given to carry, and those of completed requests.
    carried: SectorCounters,
    completed: SectorCounters,
}

/// Sectors of host requests in both directions.
#[derive(Clone, Copy, Debug, Default)]
struct SectorCounters {
    read: u64,
    written: u64,
}

/// Pages of 4 KiB that host reads asked for since the drive was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagesRead {
    /// Mapping units that host reads asked for.
    pub all: u64,
    /// Units of them that were unwritten: the map answers them, and no die is busy with them.
    pub unmapped: u64,
}

/// Request in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    request: Request,
    status: Status,
    submitted_at: Nanos,
    /// Parts that are still on their way: dies that read for it, extents that wait to be written.
    parts: u32,
    /// Completion time of the latest of its parts so far.
    done_at: Nanos,
    /// Length of a stall of the host that holds it alone.
    stalled: Nanos,
}

/// Progress of the submission of a request.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// One of the modules that it goes to.
    module: u16,
    /// Parts that are on their way.
    parts: u32,
    /// Time at which its parts that need no event of their own are done.
    done_at: Nanos,
}

impl Drive {
    /// A purged drive.
    ///
    /// # Errors
    /// Names the format, host or time lapse that the drive does not have.
    pub fn new(spec: &DriveSpec, setup: &Setup) -> Result<Self, SpecError> {
        if setup.time_lapse == 0 {
            let text = "time lapse is 0, must be at least 1".to_owned();
            return Err(SpecError { place: spec.name.clone(), text });
        }
        let modules = u64::from(spec.device_count() * spec.modules.count);
        let config = spec.nand_config(&setup.format, setup.time_lapse)?;
        let configs = config.into_iter().flat_map(|config| {
            (0..modules).map(move |index| Config { seed: setup.seed + index, ..config })
        });
        let ftls = configs.map(|config| {
            Ftl::format(&config)
                .map_err(|error| SpecError { place: spec.name.clone(), text: error.to_string() })
        });
        Self::around(spec, setup, ftls)
    }

    /// An idle drive around flash translation layers: one for each module of NAND, none where media
    /// is written in place.
    fn around(
        spec: &DriveSpec,
        setup: &Setup,
        ftls: impl Iterator<Item = Result<Ftl, SpecError>>,
    ) -> Result<Self, SpecError> {
        let (format, host) = (spec.format(&setup.format)?, &spec.host(&setup.host)?);
        let devices = spec.device_count();
        let modules = devices * spec.modules.count;
        let in_place = spec.in_place.as_ref().map(|media| InPlace::new(spec, media, host));
        let indices = (0..u16::MAX).take(modules as usize);
        let sectors = spec.module_sectors(format, setup.time_lapse)?;
        let classes =
            spec.tier.as_ref().map(|tier| ClassPair::new(spec, tier, setup).map(Box::new));
        let classes = classes.transpose()?;
        // Classes have a little less than their part of the capacity in time lapse, or more.
        let sectors = classes.as_ref().map_or(sectors, |classes| sectors.min(classes.sectors()));
        let stripe = Stripe::new(devices, &spec.modules, sectors);
        let climate = Climate::new(spec, setup.time_lapse).map(Box::new);
        let mut drive = Self {
            host: Host::new(host, devices, setup.time_lapse),
            kept_back: VecDeque::new(),
            links: vec![Link::new(spec.link.read_mb_s, spec.link.write_mb_s); devices as usize],
            stripe,
            events: EventQueue::new(modules as usize),
            modules: (0..u16::MAX)
                .zip(ftls)
                .map(|(index, ftl)| Ok(Module::around(ftl?, spec, host, index, setup.time_lapse)))
                .collect::<Result<Vec<_>, SpecError>>()?,
            in_place: in_place.map_or_else(Vec::new, |idle| vec![idle; modules as usize]),
            disks: spec.disk.as_ref().map_or_else(Vec::new, |disk| {
                indices.map(|index| Disk::new(spec, disk, host, (index, sectors))).collect()
            }),
            classes,
            is_nand: spec.is_nand(),
            modules_per_device: spec.modules.count as usize,
            channels_per_module: Divider::new(spec.channels.count.max(1)),
            user_sectors_full_scale: spec.module_sectors(format, 1)? * u64::from(modules),
            raw_capacity_full_scale: spec.raw_capacity(),
            extent_header_bytes: spec.compression.as_ref().map(|it| it.header_bytes),
            can_run_out: format.physical_gb.is_some(),
            is_host_managed: spec.controller.on_host,
            host_map: host_map(spec, &setup.format),
            in_flight: Vec::new(),
            slots_free: Vec::new(),
            look_at: climate.as_ref().map_or(Nanos::MAX, |climate| climate.look_at()),
            climate,
            die_failures: DieFailures::new(&spec.die_failures),
            die_fails_at: Nanos::MAX,
            is_read_only: false,
            may_refuse_writes: format.physical_gb.is_some(),
            time_lapse: setup.time_lapse,
            sectors_served: stripe.sectors(),
            carried: SectorCounters::default(),
            completed: SectorCounters::default(),
        };
        let count = drive.modules.len()
            + drive.in_place.len()
            + drive.disks.len()
            + usize::from(drive.classes.is_some());
        assert_eq!(count, modules as usize, "a drive has the modules that its file says");
        for module in &drive.modules {
            let mapped = module.ftl.config().user_capacity().0;
            assert_eq!(mapped, sectors * SECTOR_BYTES, "a module maps what the stripe gives it");
        }
        drive.check_die_failures(&spec.name)?;
        drive.forget_work();
        Ok(drive)
    }

    /// Devices of a group, each with `user_sectors` / `devices` consecutive sectors; else 1.
    pub const fn devices(&self) -> usize {
        self.links.len()
    }

    /// Time lapse k: the drive has 1/k of its capacity, and what comes by the clock of the protocol
    /// comes k times as often.
    pub fn time_lapse(&self) -> u32 {
        self.time_lapse
    }

    /// Sectors that the host sees, after time lapse.
    pub fn user_sectors(&self) -> u64 {
        self.stripe.sectors()
    }

    /// Sectors that the host sees at full scale.
    pub const fn user_sectors_full_scale(&self) -> u64 {
        self.user_sectors_full_scale
    }

    /// Raw media at full scale.
    pub const fn raw_capacity_full_scale(&self) -> Bytes {
        self.raw_capacity_full_scale
    }

    /// Takes a request that the host submits at `at`, no earlier than what the drive has done.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a request that is passed on is copied through memory"
    )]
    pub fn submit(&mut self, at: Nanos, request: Request) {
        self.events.assert_not_past(at);
        if self.host.admit() {
            self.dispatch(at, at, request);
        } else {
            self.kept_back.push_back((at, request));
        }
    }

    /// Hands a request to the drive at `at`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call costs a tenth of the simulator's speed")]
    fn dispatch(&mut self, at: Nanos, submitted_at: Nanos, request: Request) {
        if at >= self.look_at {
            self.look(at);
        }
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        let inside = end.is_some_and(|end| end <= self.sectors_served);
        let status = if inside { Status::Ok } else { self.refusal() };
        let slot = self.take_slot(request, status, submitted_at);
        if self.host.begins(request.thread, slot) {
            self.begin(at, slot, &request, status);
        }
    }

    /// The host begins with a request at `at`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call costs a tenth of the simulator's speed")]
    fn begin(&mut self, at: Nanos, slot: u32, request: &Request, status: Status) {
        let inside = status == Status::Ok;
        let device = if inside { self.device_of(request.lba.0) } else { 0 };
        // Scalars from here on: what a call takes by reference has to lie in memory.
        let (sectors, handle) = (request.sectors, request.handle);
        let extent = Extent { first: request.lba.0, sectors, handle };
        let done_at = self.host.submit((request.thread, request.sectors), at, device);
        debug_assert!(done_at >= at, "the drive sees a request once the host has submitted it");
        let mut progress = Progress { module: 0, parts: 0, done_at };
        if inside && (request.sectors > 0 || !self.is_nand) {
            match request.op {
                op if !self.is_nand => {
                    self.access(slot, (op, extent), &mut progress, device);
                }
                // What is in the buffer survives a power cut: nothing is left to wait for.
                Op::Flush => {}
                Op::Read => self.read(slot, extent, &mut progress),
                Op::Write => self.write(slot, extent, &mut progress, device),
                Op::Trim if self.is_read_only => {
                    self.in_flight[slot as usize].status = Status::ReadOnly;
                    self.refuse(extent, &mut progress);
                }
                Op::Trim => self.trim(extent, &mut progress),
            }
        }
        debug_assert!(progress.done_at >= done_at, "nothing is done before the drive sees it");
        let Progress { module, parts, done_at } = progress;
        if parts == 0 {
            let lane = Lane::Acknowledged(module);
            self.events.push_in_order(lane, done_at, Event::Done { slot });
        } else {
            let flight = &mut self.in_flight[slot as usize];
            (flight.parts, flight.done_at) = (parts, done_at);
        }
    }

    /// Returns the time of the next event; `None` if nothing is pending.
    pub fn next_event(&self) -> Option<Nanos> {
        self.events.next_at()
    }

    /// Lets time pass to the next completion, which is returned, but at most to `until`.
    ///
    /// The drive is done by `until`; the host may need a little longer to notice, so that
    /// `completed_at` can lie beyond it.
    ///
    /// Time passes to `until` where nothing completes by then, and the drive does what it does in
    /// idle time. Until [`Nanos::MAX`] it passes to the last completion only: beyond that the host
    /// could submit no request any more.
    #[inline]
    pub fn next_completion(&mut self, until: Nanos) -> Option<Completion> {
        if until == Nanos::MAX && self.slots_free.len() == self.in_flight.len() {
            return None;
        }
        while let Some((at, event)) = self.events.pop(until) {
            match event {
                Event::Sensed { slot, channel, pages, page_lines } => {
                    self.sensed(at, slot, channel, (pages, pages * page_lines));
                }
                Event::Answered { slot, pages } => self.answered(at, slot, pages),
                Event::Relocate { module } => self.relocate(at, module),
                Event::Fold { module } => {
                    self.modules[usize::from(module)].fold(at, &mut self.events);
                }
                Event::Arm { disk } => self.turn_of_arm(at, disk),
                Event::Classes => self.step_classes(at),
                Event::Done { slot } => {
                    let thread = self.in_flight[slot as usize].request.thread;
                    let modules = &self.modules;
                    let is_during = |state| modules.iter().any(|module| module.is_during(state));
                    match self.host.wait(thread, at, is_during) {
                        Some(Wait { until, alone }) => {
                            debug_assert!(until >= at, "a request is noticed once it is done");
                            self.in_flight[slot as usize].stalled = alone;
                            self.events.push_in_order(Lane::Woken, until, Event::Noticed { slot });
                        }
                        None => return Some(self.complete(at, slot)),
                    }
                }
                Event::Noticed { slot } => return Some(self.complete(at, slot)),
            }
        }
        None
    }

    /// Has the processor fetch what a request at `sector` will need, some requests ahead.
    ///
    /// Changes nothing that can be observed. At full scale the map is far larger than any cache,
    /// and nothing else takes as long as looking it up.
    #[inline]
    pub fn prefetch(&self, sector: u64) {
        if let Some((module, lpn)) = self.place(sector) {
            module.ftl.prefetch(lpn);
        }
    }

    /// Prefetches what a write needs besides, later than [`Drive::prefetch`].
    #[inline]
    pub fn prefetch_write(&self, sector: u64) {
        if let Some((module, lpn)) = self.place(sector) {
            module.ftl.prefetch_write(lpn);
        }
    }

    /// The module and the page of a sector; none where media are written in place.
    #[inline]
    fn place(&self, sector: u64) -> Option<(&Module, Lpn)> {
        let (module, sector) = self.stripe.place(sector);
        let module = self.modules.get(module)?;
        Some((module, module.lpn_at(sector)))
    }

    /// Returns to the state before the first write, wear apart. Nothing may be outstanding.
    pub fn purge(&mut self) {
        if cfg!(debug_assertions) {
            self.check_requests();
        }
        self.events.clear();
        self.kept_back.clear();
        self.host.release_all();
        self.in_flight.clear();
        self.slots_free.clear();
        (self.carried, self.completed) = (SectorCounters::default(), SectorCounters::default());
        for module in &mut self.modules {
            module.purge();
        }
        self.disks.iter_mut().for_each(Disk::purge);
        self.classes.iter_mut().for_each(|classes| classes.purge());
        self.forget_loads();
        self.forget_work();
    }

    /// Leaves the work done so far out of power and heat.
    fn forget_work(&mut self) {
        let counters = self.counters();
        if let Some(climate) = &mut self.climate {
            climate.leave_out(&counters);
        }
    }

    /// Sets the compressibility of the data of writes from now on: a good compressor shortens each
    /// 4 KiB of it by `percent`, 0 to 100. A drive that does not compress ignores it.
    pub fn set_compressible(&mut self, percent: f64) {
        debug_assert!((0.0..=100.0).contains(&percent), "data is compressible from 0 to 100 %");
        if let Some(classes) = &mut self.classes {
            classes.drives_mut().iter_mut().for_each(|class| class.set_compressible(percent));
        }
        self.modules.iter_mut().for_each(|module| module.set_compressible(percent));
        let Some(header_bytes) = self.extent_header_bytes else { return };
        let bytes = (PAGE_BYTES as f64 * (1.0 - percent / 100.0)).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 4096")]
        let bytes = Bytes(bytes as u64 + u64::from(header_bytes));
        for module in &mut self.modules {
            module.ftl.expect_extents_of(bytes);
        }
    }

    /// Power and heat at `at`, no earlier than the last completion; absent where nothing is known
    /// of them.
    pub fn climate(&self, at: Nanos) -> Option<ClimateReading> {
        self.climate.as_ref().map(|climate| climate.reading(at, &self.counters()))
    }

    /// Looks at what happens by the time: power and heat, and the failure of a die.
    #[cold]
    #[inline(never)]
    fn look(&mut self, at: Nanos) {
        if at >= self.die_fails_at {
            self.fail_dies(at);
        }
        self.look_at = self.die_fails_at;
        self.look_at_climate(at);
    }

    /// Looks at power and heat, and throttles programs accordingly.
    fn look_at_climate(&mut self, at: Nanos) {
        let counters = self.counters();
        let Some(climate) = &mut self.climate else { return };
        let before = climate.throttle();
        climate.look(at, &counters);
        self.look_at = self.look_at.min(climate.look_at());
        assert!(self.look_at > at, "power and heat are looked at again later");
        let throttle = climate.throttle();
        if climate.is_off() {
            self.sectors_served = 0;
        }
        if throttle != before {
            self.modules.iter_mut().for_each(|module| module.backend.throttle(throttle));
            self.in_place.iter_mut().for_each(|module| module.throttle(throttle));
        }
    }

    /// Status of a request that is refused: the drive is off, or the request out of range.
    #[cold]
    fn refusal(&self) -> Status {
        let is_off = self.climate.as_ref().is_some_and(|climate| climate.is_off());
        if is_off { Status::PoweredOff } else { Status::OutOfRange }
    }

    /// Status of a write that there is no flash for, if that is so.
    fn refusal_of_write(&self, extent: Extent) -> Option<Status> {
        if self.is_read_only {
            return Some(Status::ReadOnly);
        }
        (self.can_run_out && !self.has_space_for(extent)).then_some(Status::OutOfSpace)
    }

    /// Has the modules refuse a command.
    fn refuse(&mut self, extent: Extent, progress: &mut Progress) {
        let at = progress.done_at;
        self.stripe.split(extent, |module, _| {
            progress.done_at = progress.done_at.max(self.modules[module].refuse(at));
        });
    }

    /// The device that holds a sector.
    #[inline]
    fn device_of(&self, sector: u64) -> usize {
        usize::try_from(self.stripe.device(sector).0).expect("a device")
    }

    #[inline]
    fn read(&mut self, slot: u32, extent: Extent, progress: &mut Progress) {
        let at = progress.done_at;
        let (modules, events, mut lost) = (&mut self.modules, &mut self.events, false);
        self.stripe.split(extent, |module, extent| {
            let sensing = modules[module].read(at, extent, slot, events);
            progress.parts += sensing.dies;
            lost |= sensing.lost;
            progress.done_at = progress.done_at.max(sensing.commanded_at);
            if sensing.pages_answered > 0 {
                let event = Event::Answered { slot, pages: sensing.pages_answered };
                events.push(sensing.answered_at, event);
                progress.parts += 1;
            }
        });
        if lost {
            self.in_flight[slot as usize].status = Status::MediaError;
        }
    }

    #[inline]
    fn write(&mut self, slot: u32, extent: Extent, progress: &mut Progress, device: usize) {
        let at = self.links[device].write(progress.done_at, extent.sectors);
        self.carried.written += u64::from(extent.sectors);
        if self.may_refuse_writes
            && let Some(status) = self.refusal_of_write(extent)
        {
            self.in_flight[slot as usize].status = status;
            progress.done_at = at;
            self.refuse(extent, progress);
            return;
        }
        let (modules, events) = (&mut self.modules, &mut self.events);
        self.stripe.split(extent, |module, extent| {
            progress.module = modules[module].index;
            match modules[module].write(at, extent, slot, events) {
                Some(done_at) => progress.done_at = progress.done_at.max(done_at),
                None => progress.parts += 1,
            }
        });
    }

    /// True if every module has flash for what a write of `extent` would take.
    pub(super) fn has_space_for(&self, extent: Extent) -> bool {
        let mut fits = true;
        self.stripe.split(extent, |module, extent| {
            fits &= self.modules[module].has_space_for(extent);
        });
        fits
    }

    fn relocate(&mut self, at: Nanos, module: u16) {
        let mut acknowledged = Vec::new();
        self.modules[usize::from(module)].step(at, &mut self.events, |slot, done_at| {
            acknowledged.push((slot, done_at));
        });
        if self.die_failures.has_any() {
            self.note_rebuilt(at);
        }
        let (in_flight, events) = (&mut self.in_flight, &mut self.events);
        for (slot, done_at) in acknowledged {
            debug_assert!(done_at >= at, "a write that waits is done once there is room");
            in_flight[slot as usize].part_done(Lane::Acknowledged(module), slot, done_at, events);
        }
    }

    fn trim(&mut self, extent: Extent, progress: &mut Progress) {
        let at = progress.done_at;
        let modules = &mut self.modules;
        self.stripe.split(extent, |module, extent| {
            progress.done_at = progress.done_at.max(modules[module].trim(at, extent));
        });
    }

    #[inline]
    fn sensed(&mut self, at: Nanos, slot: u32, channel: u16, (pages, lines): (u16, u16)) {
        let module = self.channels_per_module.divide(channel.into()).0 as usize;
        let at = self.modules[module].transfer_out(at, channel, pages, lines);
        let device = if self.links.len() == 1 { 0 } else { module / self.modules_per_device };
        self.carry_out(at, slot, device, u32::from(pages));
    }

    /// Pages that no die has to read leave the controller at `at`.
    fn answered(&mut self, at: Nanos, slot: u32, pages: u32) {
        let device = self.device_of(self.in_flight[slot as usize].request.lba.0);
        self.carry_out(at, slot, device, pages);
    }

    /// The link carries pages to the host, a part of the request.
    #[inline]
    fn carry_out(&mut self, at: Nanos, slot: u32, device: usize, pages: u32) {
        let sectors = pages * 8;
        let at = self.links[device].read(at, sectors);
        self.carried.read += u64::from(sectors);
        self.in_flight[slot as usize].part_done(Lane::Link, slot, at, &mut self.events);
    }

    /// Counts what a request moved: a link carries one thing after another, so that nothing can
    /// complete faster than it does as long as each completion was carried.
    #[inline]
    fn count_completed(&mut self, op: Op, sectors: u32) {
        let (completed, carried) = match op {
            Op::Read => (&mut self.completed.read, self.carried.read),
            Op::Write => (&mut self.completed.written, self.carried.written),
            Op::Trim | Op::Flush => return,
        };
        *completed += u64::from(sectors);
        assert!(*completed <= carried, "a request completed whose data no link carried");
    }

    #[inline]
    fn complete(&mut self, at: Nanos, slot: u32) -> Completion {
        let InFlight { request, status, submitted_at, parts, stalled, .. } =
            self.in_flight[slot as usize];
        assert_eq!(parts, 0, "a request completes with the last of its parts");
        self.slots_free.push(slot);
        assert!(self.slots_free.len() <= self.in_flight.len(), "a request completes once");
        if status == Status::Ok {
            self.count_completed(request.op, request.sectors);
        }
        if self.kept_back.is_empty() {
            self.host.release();
        } else {
            self.dispatch_kept_back(at);
        }
        let completed_at = self.host.complete(request.thread, at);
        assert!(completed_at >= submitted_at, "a request completes after it was submitted");
        debug_assert!(stalled <= completed_at - submitted_at, "a stall is part of the latency");
        if let Some(next) = self.host.next_turn(request.thread) {
            self.begin_next(completed_at, next);
        }
        Completion {
            tag: request.tag,
            thread: request.thread,
            op: request.op,
            status,
            sectors: request.sectors,
            submitted_at,
            completed_at,
            stalled,
        }
    }

    /// [`Drive::dispatch`] for hosts that keep requests back, apart from the hot path.
    #[inline(never)]
    fn dispatch_kept_back(&mut self, at: Nanos) {
        if let Some((submitted_at, request)) = self.kept_back.pop_front() {
            self.dispatch(at, submitted_at, request);
        }
    }

    /// [`Drive::begin`] for hosts whose threads take turns, apart from the hot path.
    #[inline(never)]
    fn begin_next(&mut self, at: Nanos, slot: u32) {
        let InFlight { request, status, .. } = self.in_flight[slot as usize];
        self.begin(at, slot, &request, status);
    }

    #[inline]
    fn take_slot(&mut self, request: Request, status: Status, submitted_at: Nanos) -> u32 {
        // Part by part: as a whole it would be copied through memory, waiting for its parts.
        let Request { tag, thread, op, handle, lba, sectors } = request;
        let request = Request { tag, thread, op, handle, lba, sectors };
        let (done_at, stalled) = (Nanos::ZERO, Nanos::ZERO);
        let flight = InFlight { request, status, submitted_at, parts: 0, done_at, stalled };
        if let Some(slot) = self.slots_free.pop() {
            debug_assert_eq!(self.in_flight[slot as usize].parts, 0, "a free slot awaits nothing");
            self.in_flight[slot as usize] = flight;
            return slot;
        }
        let slot = u32::try_from(self.in_flight.len()).expect("fewer than 2^32 outstanding");
        self.in_flight.push(flight);
        slot
    }
}

/// Memory that the map of a drive takes at full scale where the host keeps it: as the model keeps
/// it, in all modules.
fn host_map(spec: &DriveSpec, format: &str) -> Option<Bytes> {
    if !spec.controller.on_host {
        return None;
    }
    let modules = u64::from(spec.device_count() * spec.modules.count);
    let config = spec.nand_config(format, 1).ok().flatten()?;
    Some(Bytes(config.map_bytes().0 * modules))
}

impl InFlight {
    /// One part was done at `at`, by what `lane` stands for; the last one completes the request.
    #[inline]
    fn part_done(&mut self, lane: Lane, slot: u32, at: Nanos, events: &mut EventQueue) {
        debug_assert!(self.parts > 0, "a part that is done was on its way");
        self.done_at = self.done_at.max(at);
        self.parts -= 1;
        if self.parts == 0 {
            events.push_in_order(lane, self.done_at, Event::Done { slot });
        }
    }
}
