//! Controller: one host's view of a subsystem, and its admin queue.
//!
//! ```text
//!   Connect ──► disabled ──► enabled (CC.EN) ──► ready ──► shutdown (CC.SHN) ──► gone
//!                   ▲                              │
//!                   └────── reset (CC.EN = 0) ◄────┘
//! ```
//!
//! It is a value: commands go in, with the time and the data that came with them, and completions
//! with data come out.
//!
//! **Invariants**
//! - Until the controller is ready, only fabrics commands are carried out.
//! - An I/O queue belongs to the host that connected the admin queue, and a reset ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blockio::Nanos;
use device::FormatResult;

use super::command::Command;
use super::context::{CommandCompletion, Context};
use super::counters::{ControllerSnapshot, QueueCounters};
use super::drive::NvmeDrive;
use super::error_log::{ErrorLog, FailedCommand};
use super::event::Events;
use super::fabrics::{Connect, ConnectRefusal, property_of};
use super::feature::{FeatureTarget, Features, uses};
use super::host::{Host, Purpose};
use super::log::Telemetry;
use super::namespace::{HostController, Namespaces, View};
use super::property::{
    ENABLE, FATAL, READY, READY_TIMEOUTS, SHUTDOWN_COMPLETE, VERSION, capabilities, offset,
};
use super::repertoire::{Feature, Repertoire, Scope};
use super::reservation::{NotificationLog, ReservingHost};
use super::status::Status;
use super::transport::Transport;
use super::wire::low8;

/// Time between checks whether a format has ended.
const FORMAT_LOOK_EVERY: Nanos = Nanos::from_millis(5);

/// Time that a host over fabrics has from its Connect to enable its controller.
const ENABLE_PATIENCE: Nanos = Nanos::from_secs(10);
/// Time that a host over fabrics may be silent that has neither a Keep Alive Timeout nor an I/O
/// queue: the activity timeout of discovery controllers ([nvme-base-2021], "Discovery Controller").
const SILENCE: Nanos = Nanos::from_secs(120);

/// Bits of CC: CC.SHN.
const SHUTDOWN: u32 = 3 << 14;
/// Entry sizes of 64 and 16 bytes, the NVM command set, pages of 4 KiB.
const CONFIGURATION_CHECKED: u32 = 0xFF << 16 | 0xF << 7 | 7 << 4;
const CONFIGURATION_EXPECTED: u32 = 4 << 20 | 6 << 16;
/// State that a controller shares with its I/O queues, until it is reset.
#[derive(Debug)]
pub(super) struct Link {
    is_alive: AtomicBool,
    /// True if writes may be acknowledged before they are durable.
    is_caching: AtomicBool,
    /// True if completions of transient failures have a Command Retry Delay (ACRE).
    has_retry_delay: AtomicBool,
}

impl Link {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            is_alive: AtomicBool::new(true),
            is_caching: AtomicBool::new(true),
            has_retry_delay: AtomicBool::new(false),
        })
    }

    pub(super) fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Acquire)
    }

    pub(super) fn is_caching(&self) -> bool {
        self.is_caching.load(Ordering::Acquire)
    }

    pub(super) fn has_retry_delay(&self) -> bool {
        self.has_retry_delay.load(Ordering::Acquire)
    }
}

/// Reason why the patience with a host has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostTimeout {
    /// No command came within its Keep Alive Timeout in milliseconds.
    KeepAlive(u32),
    /// The controller was never enabled.
    NotEnabled,
    /// No command came, and it has no I/O queue and no Keep Alive Timeout.
    Silent,
}

/// A controller of one host.
#[derive(Debug)]
pub(super) struct Controller {
    id: u16,
    kind: Purpose,
    repertoire: Repertoire,
    host: Host,
    configuration: u32,
    /// CSTS and the I/O queues, which the status of the server shows.
    shown: Arc<ControllerSnapshot>,
    features: Features,
    events: Events,
    errors: ErrorLog,
    link: Arc<Link>,
    view: View,
    /// Formats that this controller began and that are under way, by command.
    formats: Vec<(u16, FormatResult)>,
    telemetry: Telemetry,
    /// Persistent Event log as it was when the host began to read it.
    persistent_events: Option<Vec<u8>>,
    /// True if all of its connections are to end.
    is_lost: bool,
    /// True if a command came since time last passed. It may take long, and the host need not be
    /// heard of again meanwhile.
    is_heard: bool,
    /// Time of the last sign of life of the host.
    heard_at: Nanos,
    /// Time of the host's Connect.
    came_at: Nanos,
    /// True once the host enabled it.
    was_enabled: bool,
}

impl Controller {
    /// A controller that is disabled, for a host that came at `now` with its Keep Alive Timeout in
    /// milliseconds, 0 for none.
    pub(super) fn new(
        (id, shown): (u16, Arc<ControllerSnapshot>),
        kind: Purpose,
        repertoire: Repertoire,
        host: Host,
        (keep_alive_ms, now): (u32, Nanos),
    ) -> Self {
        Self {
            id,
            kind,
            repertoire,
            shown,
            configuration: 0,
            features: Features::new(keep_alive_ms, &host),
            host,
            events: Events::default(),
            errors: ErrorLog::default(),
            link: Link::new(),
            view: View::default(),
            formats: Vec::new(),
            telemetry: Telemetry::default(),
            persistent_events: None,
            is_lost: false,
            is_heard: false,
            heard_at: now,
            came_at: now,
            was_enabled: false,
        }
    }

    pub(super) const fn id(&self) -> u16 {
        self.id
    }

    /// Number that no other controller of the subsystem has or had: it came at another time.
    pub(super) const fn security_channel(&self) -> u64 {
        self.came_at.0 << 16 | self.id as u64
    }

    pub(super) const fn kind(&self) -> Purpose {
        self.kind
    }

    /// Commands, log pages, features and structures that it has.
    pub(super) const fn repertoire(&self) -> Repertoire {
        self.repertoire
    }

    pub(super) const fn transport(&self) -> Transport {
        self.host.transport
    }

    /// NQN of the host.
    pub(super) fn host(&self) -> &str {
        &self.host.name
    }

    pub(super) const fn telemetry(&mut self) -> &mut Telemetry {
        &mut self.telemetry
    }

    pub(super) const fn persistent_events(&mut self) -> &mut Option<Vec<u8>> {
        &mut self.persistent_events
    }

    /// The namespaces that are attached to its host now.
    pub(super) fn namespaces<'a>(&'a mut self, context: &Context<'_>) -> &'a Namespaces {
        let of = self.host_controller();
        context.drive.directory().refresh(&mut self.view, &of)
    }

    /// The controller and its host, as namespaces are attached to them.
    pub(super) fn host_controller(&self) -> HostController {
        HostController { id: self.id, host: self.host.name.clone() }
    }

    /// Its status outside of its lock.
    pub(super) const fn shown(&self) -> &Arc<ControllerSnapshot> {
        &self.shown
    }

    /// The oldest page of the log of reservations.
    pub(super) fn take_notification(&self) -> Vec<u8> {
        self.shown.notifications().take_page()
    }

    /// Has reservations know the host by its identifier as it is now.
    fn identify(&self, drive: &NvmeDrive) {
        let now = self.features.identity(self.id);
        let before = self.shown.identify(now);
        if before.host != now.host {
            drive.forget_host(before.host);
        }
    }

    /// Counters of an I/O queue.
    pub(super) fn counters(&self, queue: u16) -> Arc<QueueCounters> {
        self.shown.counters(queue)
    }

    /// Notes that the host is authenticated.
    pub(super) fn authenticate(&mut self) {
        self.host.is_authenticated = true;
        self.shown.authenticate();
    }

    /// True if all of its connections are to end.
    pub(super) const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Ends all of its connections.
    pub(super) fn lose(&mut self) {
        if !self.transport().is_fabrics() {
            // No connection ends: the host finds the failure in CSTS.
            self.shown.set_status(FATAL);
        }
        self.is_lost = true;
        self.end();
    }

    /// Has it fail: the host finds CSTS.CFS set.
    pub(super) fn fail(&mut self) {
        self.shown.set_status(FATAL);
        self.end();
    }

    /// Completes a Format NVM once it has ended.
    pub(super) fn hold_format(&mut self, command: u16, result: FormatResult) {
        self.formats.push((command, result));
    }

    /// CC, as the host set it.
    pub(super) const fn configuration(&self) -> u32 {
        self.configuration
    }

    /// CSTS.
    pub(super) fn status(&self) -> u32 {
        self.shown.status()
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(super) const fn errors(&self) -> &ErrorLog {
        &self.errors
    }

    pub(super) const fn features(&mut self) -> &mut Features {
        &mut self.features
    }

    pub(super) const fn events(&mut self) -> &mut Events {
        &mut self.events
    }

    pub(super) fn has_queues(&self) -> bool {
        self.shown.has_queues()
    }

    /// Sets whether I/O queues acknowledge writes at once, or only when they are durable.
    pub(super) fn set_caching(&self, is_caching: bool) {
        self.link.is_caching.store(is_caching, Ordering::Release);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.status() & READY != 0
    }

    /// Adds an I/O queue that a host connects.
    pub(super) fn connect_queue(&mut self, connect: &Connect) -> Result<(), ConnectRefusal> {
        let own = |it: &Host| (it.name.clone(), it.id, it.is_encrypted);
        if own(&self.host) != own(&connect.host) {
            return Err(Status::CONNECT_HOST.into());
        }
        if self.kind == Purpose::Discovery || connect.queue > self.features.queues() {
            return Err(ConnectRefusal::command(Connect::QUEUE_AT));
        }
        if !self.is_ready() || !self.add_queue(connect.queue) {
            return Err(Status::COMMAND_SEQUENCE.into());
        }
        Ok(())
    }

    /// Adds an I/O queue. Returns false if there is one of that number.
    pub(super) fn add_queue(&mut self, queue: u16) -> bool {
        self.shown.add_queue(queue)
    }

    pub(super) fn remove_queue(&mut self, queue: u16) {
        self.shown.remove_queue(queue);
    }

    /// Removes a queue by its counters, too: after a reset another one may have its number.
    pub(super) fn leave_queue(&mut self, queue: u16, counters: &Arc<QueueCounters>) {
        self.shown.leave_queue(queue, counters);
    }

    /// Ends the queues, because the host or its admin queue is gone.
    pub(super) fn end(&mut self) {
        self.link.is_alive.store(false, Ordering::Release);
    }

    /// Logs a command that an I/O queue completed with an error of the drive.
    pub(super) fn note_failure(&mut self, drive: &NvmeDrive, failed: FailedCommand) {
        self.errors.add(drive.next_error(), failed);
    }

    /// Restarts the Keep Alive Timer, at the time that is set next: the host is alive.
    pub(super) const fn restart_keep_alive(&mut self) {
        self.is_heard = true;
    }

    /// Lets the time be `now`, at which commands before have ended.
    pub(super) const fn pass_time(&mut self, now: Nanos) {
        if std::mem::replace(&mut self.is_heard, false) {
            self.heard_at = now;
        }
    }

    /// Completions of commands that were held, by command, with dword 0: Asynchronous Event
    /// Requests, aborted ones too, and formats that have ended.
    pub(super) fn completed(&mut self) -> Vec<(u16, Status, u32)> {
        if self.shown.notifications().take_news() {
            self.events.note_reservation();
        }
        let mut completed = self.events.completed();
        self.formats.retain(|(command, result)| {
            let Some(done) = result.get() else { return true };
            let status = if done.is_ok() { Status::SUCCESS } else { Status::INTERNAL };
            completed.push((*command, status, 0));
            false
        });
        completed
    }

    /// Advances time. Returns the time of the next call, or why the patience with the host ended.
    pub(super) fn advance(&mut self, context: &Context<'_>) -> Result<Option<Nanos>, HostTimeout> {
        self.pass_time(context.now);
        let patience = self.patience();
        if let Some((due, expired)) = patience
            && context.now >= due
        {
            self.shown.set_status(FATAL);
            self.end();
            return Err(expired);
        }
        let mut next = patience.map(|(due, _)| due);
        if self.is_ready() && self.kind == Purpose::Io {
            self.namespaces(context);
            let look = self.events.look(context, &self.features, self.view.namespaces());
            let format = (!self.formats.is_empty()).then(|| context.now + FORMAT_LOOK_EVERY);
            next = next.into_iter().chain(look).chain(format).min();
        }
        Ok(next)
    }

    /// The time at which the patience with the host ends, and why; none of a host whose timeout
    /// never comes. Virtual machines may take any time to boot.
    fn patience(&self) -> Option<(Nanos, HostTimeout)> {
        let keep_alive_ms = self.features.keep_alive_ms();
        let is_fabrics = self.transport().is_fabrics();
        let enable = (is_fabrics && !self.was_enabled)
            .then(|| (self.came_at + ENABLE_PATIENCE, HostTimeout::NotEnabled));
        let life = if keep_alive_ms > 0 {
            let due = self.heard_at + Nanos::from_millis(keep_alive_ms.into());
            Some((due, HostTimeout::KeepAlive(keep_alive_ms)))
        } else if is_fabrics && !self.has_queues() {
            Some((self.heard_at + SILENCE, HostTimeout::Silent))
        } else {
            None
        };
        enable.into_iter().chain(life).min_by_key(|(due, _)| *due)
    }

    pub(super) fn property_get(&self, command: &Command) -> Result<CommandCompletion, Status> {
        let (offset, is_long) = property_of(command)?;
        let value = match offset {
            offset::CAPABILITIES if is_long => capabilities(),
            offset::VERSION if !is_long => VERSION.into(),
            offset::CONFIGURATION if !is_long => self.configuration().into(),
            offset::STATUS if !is_long => self.status().into(),
            offset::SUBSYSTEM_RESET if !is_long => 0,
            offset::READY_TIMEOUTS if !is_long => READY_TIMEOUTS.into(),
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(CommandCompletion::value(value))
    }

    pub(super) fn property_set(
        &mut self,
        context: &Context<'_>,
        command: &Command,
    ) -> Result<CommandCompletion, Status> {
        let (offset, is_long) = property_of(command)?;
        if offset != offset::CONFIGURATION || is_long {
            return Err(Status::INVALID_FIELD);
        }
        self.configure(context, command.dword(12));
        Ok(CommandCompletion::value(0_u32))
    }

    /// Sets CC: enables, disables or shuts down the controller.
    pub(super) fn configure(&mut self, context: &Context<'_>, configuration: u32) {
        let before = std::mem::replace(&mut self.configuration, configuration);
        self.was_enabled |= configuration & ENABLE != 0;
        match (before & ENABLE, configuration & ENABLE) {
            (0, 1) if self.is_configured() => self.shown.set_status(READY),
            (0, 1) => self.shown.set_status(FATAL),
            (1, 0) => self.reset(context.drive),
            _ => {}
        }
        if configuration & SHUTDOWN != 0 && before & SHUTDOWN == 0 {
            // What a host leaves behind is durable; a drive that cannot says so to the next one.
            for namespace in context.drive.directory().all().iter() {
                let _ = namespace.device().flush();
            }
            self.shown.set_status(self.status() | SHUTDOWN_COMPLETE);
        } else if configuration & SHUTDOWN == 0 {
            self.shown.set_status(self.status() & !SHUTDOWN_COMPLETE);
        }
    }

    /// True if this controller supports the configuration that the host asks for. A discovery
    /// controller has no I/O queues, so their entry sizes do not matter to it.
    const fn is_configured(&self) -> bool {
        let checked = self.configuration & CONFIGURATION_CHECKED;
        match self.kind {
            Purpose::Io => checked == CONFIGURATION_EXPECTED,
            Purpose::Discovery => checked.trailing_zeros() >= 16,
        }
    }

    fn reset(&mut self, drive: &NvmeDrive) {
        self.end();
        self.link = Link::new();
        self.shown.clear_queues();
        self.shown.set_status(0);
        self.is_lost = false;
        self.features = Features::new(self.features.keep_alive_ms(), &self.host);
        self.events = Events::default();
        self.formats.clear();
        self.persistent_events = None;
        *self.shown.notifications() = NotificationLog::default();
        drive.operations().security_end(self.security_channel());
        // Without an identifier its host is another one afterwards.
        drive.forget_host(ReservingHost::Anonymous { controller: self.id });
        self.identify(drive);
    }

    pub(super) fn get_feature(
        &mut self,
        context: &Context<'_>,
        command: &Command,
    ) -> Result<CommandCompletion, Status> {
        const DEFAULT: u32 = 1;
        const SAVED: u32 = 2;
        const CAPABILITIES: u32 = 3;
        let feature = self.repertoire.feature(low8(command.dword(10)));
        let feature = feature.ok_or(Status::INVALID_FIELD)?;
        let select = command.dword(10) >> 8 & 7;
        if select == CAPABILITIES {
            let value = uses(context, feature, &self.host);
            return Ok(CommandCompletion::value(value));
        }
        let (id, limit) = (command.namespace(), context.drive.namespace_max());
        let target = FeatureTarget::of_get(feature, id, self.namespaces(context), limit)?;
        match select {
            0 => self.features.get(context, command, &target),
            // Nothing is saved, so they are the same; what the drive keeps has no default but 0.
            DEFAULT | SAVED
                if is_kept(feature.0)
                    || matches!(feature.1, Scope::EnduranceGroup | Scope::Subsystem) =>
            {
                Ok(CommandCompletion::value(0_u32))
            }
            DEFAULT | SAVED => {
                let default = Features::new(self.features.keep_alive_ms(), &self.host);
                default.get(context, command, &target)
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    pub(super) fn set_feature(
        &mut self,
        context: &Context<'_>,
        command: &Command,
        data: &[u8],
    ) -> Result<CommandCompletion, Status> {
        let feature = self.repertoire.feature(low8(command.dword(10)));
        let feature = feature.ok_or(Status::INVALID_FIELD)?;
        let (id, limit) = (command.namespace(), context.drive.namespace_max());
        let target = FeatureTarget::of_set(feature, id, self.namespaces(context), limit)?;
        if command.dword(10) >> 31 == 1 {
            return Err(Status::NOT_SAVEABLE);
        }
        let has_queues = self.has_queues();
        let done = self.features.set(context, command, (&target, has_queues), data)?;
        self.identify(context.drive);
        self.set_caching(self.features.is_caching());
        self.link.has_retry_delay.store(self.features.has_retry_delay(), Ordering::Release);
        Ok(done)
    }
}

/// True if the drive keeps a feature of namespaces, whichever controller set it.
const fn is_kept(feature: Feature) -> bool {
    matches!(
        feature,
        Feature::ReservationMask | Feature::ReservationPersistence | Feature::WriteProtection
    )
}
