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

use super::answers::Answers;
use super::command::{Command, admin, fabrics};
use super::counters::{QueueCounters, Shown};
use super::error_log::{ErrorLog, Failed};
use super::event::Events;
use super::fabrics::{Connect, ConnectRefusal, property, property_of};
use super::feature::Features;
use super::identify::identify;
use super::log::{Telemetry, log_page};
use super::management::{self, manage};
use super::namespace::{Namespaces, View};
use super::status::Status;
use super::subsystem::Subsystem;
use super::transport::Transport;
use super::wire::low16;

/// Entries of the largest submission queue.
pub(super) const QUEUE_ENTRIES_MAX: u32 = 1024;
/// I/O queues of a controller.
pub(super) const QUEUES_MAX: u16 = 128;
/// Version of the base specification that it keeps to, 2.0.
pub(super) const VERSION: u32 = 0x0002_0000;

/// CRTO: ready, with or without media, within half a second.
pub(super) const READY_TIMEOUTS: u32 = 1 << 16 | 1;
/// Time between checks whether a format has ended.
const FORMAT_LOOK_EVERY: Nanos = Nanos::from_millis(5);

/// Bits of CC.
pub(super) const ENABLE: u32 = 1;
const SHUTDOWN: u32 = 3 << 14;
/// Entry sizes of 64 and 16 bytes, the NVM command set, pages of 4 KiB.
const CONFIGURATION_CHECKED: u32 = 0xFF << 16 | 0xF << 7 | 7 << 4;
const CONFIGURATION_EXPECTED: u32 = 4 << 20 | 6 << 16;
/// Bits of CSTS.
pub(super) const READY: u32 = 1;
pub(super) const FATAL: u32 = 2;
pub(super) const SHUTDOWN_COMPLETE: u32 = 2 << 2;

/// Purpose of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads and writes namespaces.
    Io,
    /// Reports the addresses of subsystems.
    Discovery,
}

/// A host as it presents itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// NQN.
    pub(super) name: String,
    /// Host Identifier, of 128 bits.
    pub(super) id: [u8; 16],
    pub(super) transport: Transport,
    /// True if it is authenticated.
    pub(super) is_authenticated: bool,
}

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

/// A controller of one host.
#[derive(Debug)]
pub(super) struct Controller {
    id: u16,
    kind: Purpose,
    host: Host,
    configuration: u32,
    /// CSTS and the I/O queues, which the status of the server shows.
    shown: Arc<Shown>,
    features: Features,
    events: Events,
    errors: ErrorLog,
    link: Arc<Link>,
    view: View,
    /// Formats that are under way, by command.
    formats: Vec<u16>,
    telemetry: Telemetry,
    /// Persistent Event log as it was when the host began to read it.
    persistent_events: Option<Vec<u8>>,
    /// True if all of its connections are to end.
    is_lost: bool,
    /// Time of the last sign of life of the host.
    heard_at: Nanos,
}

/// Completion of a command, with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Completed {
    pub(super) status: Status,
    /// Dwords 0 and 1.
    pub(super) value: u64,
    pub(super) data: Vec<u8>,
}

/// Effect of a command.
#[derive(Debug)]
pub(super) enum Outcome {
    Completed(Completed),
    /// Completed later, by [`Controller::completed`].
    Held,
    /// Completed, and the queue goes.
    Disconnected,
}

impl From<Status> for Completed {
    fn from(status: Status) -> Self {
        Self { status, value: 0, data: Vec::new() }
    }
}

impl Completed {
    pub(super) fn value(value: impl Into<u64>) -> Self {
        Self { value: value.into(), ..Status::SUCCESS.into() }
    }

    pub(super) fn data(data: Vec<u8>) -> Self {
        Self { data, ..Status::SUCCESS.into() }
    }
}

/// A controller with its subsystem and the time, as commands are carried out on it.
pub(super) struct Context<'a> {
    pub(super) subsystem: &'a Subsystem,
    pub(super) now: Nanos,
    /// Address that the host connected to, and its port.
    pub(super) address: Option<std::net::SocketAddr>,
}

impl Controller {
    /// A controller that is disabled, for a host that came at `now` with its Keep Alive Timeout in
    /// milliseconds, 0 for none.
    pub(super) fn new(
        id: u16,
        kind: Purpose,
        host: Host,
        (keep_alive_ms, now): (u32, Nanos),
    ) -> Self {
        Self {
            id,
            kind,
            shown: Arc::new(Shown::new(id, &host)),
            host,
            configuration: 0,
            features: Features::new(keep_alive_ms),
            events: Events::default(),
            errors: ErrorLog::default(),
            link: Link::new(),
            view: View::default(),
            formats: Vec::new(),
            telemetry: Telemetry::default(),
            persistent_events: None,
            is_lost: false,
            heard_at: now,
        }
    }

    pub(super) const fn id(&self) -> u16 {
        self.id
    }

    pub(super) const fn kind(&self) -> Purpose {
        self.kind
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
        context.subsystem.directory().refresh(&mut self.view, &self.host.name)
    }

    /// Counters of an I/O queue.
    pub(super) fn counters(&self, queue: u16) -> Arc<QueueCounters> {
        self.shown.counters(queue)
    }

    /// Its status, which is shown without its lock.
    pub(super) const fn shown(&self) -> &Arc<Shown> {
        &self.shown
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
    pub(super) fn hold_format(&mut self, command: u16) {
        self.formats.push(command);
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

    fn is_ready(&self) -> bool {
        self.status() & READY != 0
    }

    /// Adds an I/O queue that a host connects.
    pub(super) fn connect_queue(&mut self, connect: &Connect) -> Result<(), ConnectRefusal> {
        if (&self.host.name, self.host.id) != (&connect.host.name, connect.host.id) {
            return Err(Status::CONNECT_HOST.into());
        }
        if self.kind == Purpose::Discovery || connect.queue > self.features.queues() {
            return Err(ConnectRefusal::command(Connect::QUEUE_AT));
        }
        if connect.entries > QUEUE_ENTRIES_MAX {
            return Err(ConnectRefusal::command(Connect::ENTRIES_AT));
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

    /// Ends the queues, because the host or its admin queue is gone.
    pub(super) fn end(&mut self) {
        self.link.is_alive.store(false, Ordering::Release);
    }

    /// Logs a command that an I/O queue completed with an error of the drive.
    pub(super) fn note_failure(&mut self, subsystem: &Subsystem, failed: Failed) {
        self.errors.add(subsystem.next_error(), failed);
    }

    /// Carries out a command of the admin queue; `data` is the host's data for it.
    pub(super) fn execute(
        &mut self,
        context: &Context<'_>,
        command: &Command,
        data: &[u8],
    ) -> Outcome {
        self.heard_at = context.now;
        if command.opcode() == fabrics::OPCODE && self.transport().is_fabrics() {
            return match command.fabrics_type() {
                fabrics::PROPERTY_GET => self.property_get(command).into(),
                fabrics::PROPERTY_SET => self.property_set(context, command).into(),
                fabrics::DISCONNECT => Outcome::Completed(Status::QUEUE_TYPE.into()),
                fabrics::CONNECT => Outcome::Completed(Status::COMMAND_SEQUENCE.into()),
                _ => Outcome::Completed(Status::INVALID_OPCODE.into()),
            };
        }
        if !self.is_ready() {
            return Outcome::Completed(Status::COMMAND_SEQUENCE.into());
        }
        let done = match command.opcode() {
            admin::IDENTIFY => identify(self, context, command),
            admin::GET_LOG_PAGE => log_page(self, context, command),
            admin::GET_FEATURES => self.get_feature(context, command),
            admin::SET_FEATURES => self.set_feature(context, command, data),
            admin::FORMAT_NVM
            | admin::SANITIZE
            | admin::NAMESPACE_MANAGEMENT
            | admin::NAMESPACE_ATTACHMENT
            | admin::DEVICE_SELF_TEST
                if self.kind == Purpose::Io =>
            {
                return manage(self, context, command, data);
            }
            admin::KEEP_ALIVE => Ok(Completed::value(0_u32)),
            admin::ABORT if self.kind == Purpose::Io => {
                Ok(Completed::value(self.events.abort(low16(command.dword(10) >> 16))))
            }
            admin::ASYNCHRONOUS_EVENT => match self.events.hold(command.id()) {
                Ok(()) => return Outcome::Held,
                Err(status) => Err(status),
            },
            _ => Err(Status::INVALID_OPCODE),
        };
        done.into()
    }

    /// Completions of commands that were held, by command, with dword 0: Asynchronous Event
    /// Requests, aborted ones too, and formats that have ended.
    pub(super) fn completed(&mut self, subsystem: &Subsystem) -> Vec<(u16, Status, u32)> {
        let mut completed = self.events.completed();
        if self.formats.is_empty() {
            return completed;
        }
        let status = subsystem.operations().operation_status();
        if !status.is_formatting {
            let status = match status.format_failure {
                None => Status::SUCCESS,
                Some(_) => Status::INTERNAL,
            };
            completed.extend(self.formats.drain(..).map(|command| (command, status, 0)));
        }
        completed
    }

    /// Advances time. Returns the time of the next call, or that the Keep Alive Timeout expired.
    pub(super) fn advance(&mut self, context: &Context<'_>) -> Result<Option<Nanos>, u32> {
        let keep_alive_ms = self.features.keep_alive_ms();
        let mut next = None;
        if keep_alive_ms > 0 {
            let due = self.heard_at + Nanos::from_millis(keep_alive_ms.into());
            if context.now >= due {
                self.shown.set_status(FATAL);
                self.end();
                return Err(keep_alive_ms);
            }
            next = Some(due);
        }
        if self.is_ready() && self.kind == Purpose::Io {
            self.namespaces(context);
            let look = self.events.look(context, &self.features, self.view.namespaces());
            let format = (!self.formats.is_empty()).then(|| context.now + FORMAT_LOOK_EVERY);
            next = next.into_iter().chain(look).chain(format).min();
        }
        Ok(next)
    }

    fn property_get(&self, command: &Command) -> Result<Completed, Status> {
        let (offset, is_long) = property_of(command)?;
        let value = match offset {
            property::CAPABILITIES if is_long => capabilities(),
            property::VERSION if !is_long => VERSION.into(),
            property::CONFIGURATION if !is_long => self.configuration().into(),
            property::STATUS if !is_long => self.status().into(),
            property::SUBSYSTEM_RESET if !is_long => 0,
            property::READY_TIMEOUTS if !is_long => READY_TIMEOUTS.into(),
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(Completed::value(value))
    }

    fn property_set(
        &mut self,
        context: &Context<'_>,
        command: &Command,
    ) -> Result<Completed, Status> {
        let (offset, is_long) = property_of(command)?;
        if offset != property::CONFIGURATION || is_long {
            return Err(Status::INVALID_FIELD);
        }
        self.configure(context, command.dword(12));
        Ok(Completed::value(0_u32))
    }

    /// Sets CC: enables, disables or shuts down the controller.
    pub(super) fn configure(&mut self, context: &Context<'_>, configuration: u32) {
        let before = std::mem::replace(&mut self.configuration, configuration);
        match (before & ENABLE, configuration & ENABLE) {
            (0, 1) if self.is_configured() => self.shown.set_status(READY),
            (0, 1) => self.shown.set_status(FATAL),
            (1, 0) => self.reset(),
            _ => {}
        }
        if configuration & SHUTDOWN != 0 && before & SHUTDOWN == 0 {
            // What a host leaves behind is durable; a drive that cannot says so to the next one.
            for namespace in context.subsystem.directory().all().iter() {
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

    fn reset(&mut self) {
        self.end();
        self.link = Link::new();
        self.shown.clear_queues();
        self.shown.set_status(0);
        self.is_lost = false;
        self.features = Features::new(self.features.keep_alive_ms());
        self.events = Events::default();
        self.formats.clear();
        self.persistent_events = None;
    }

    fn get_feature(
        &mut self,
        context: &Context<'_>,
        command: &Command,
    ) -> Result<Completed, Status> {
        let host_id = self.host.id;
        self.features.get(context, command, (self.kind, &host_id))
    }

    fn set_feature(
        &mut self,
        context: &Context<'_>,
        command: &Command,
        data: &[u8],
    ) -> Result<Completed, Status> {
        let (kind, has_queues) = (self.kind, self.has_queues());
        let done = self.features.set(context, command, (kind, has_queues), data)?;
        self.set_caching(self.features.is_caching());
        self.link.has_retry_delay.store(self.features.has_retry_delay(), Ordering::Release);
        Ok(done)
    }
}

/// Completes a command of the admin queue, unless it is held.
pub(super) fn complete(command: &Command, outcome: Outcome, answers: &mut impl Answers) {
    let completed = match outcome {
        Outcome::Held => return,
        Outcome::Disconnected => Status::SUCCESS.into(),
        Outcome::Completed(completed) => completed,
    };
    let Completed { status, value, data } = completed;
    if data.is_empty() {
        answers.complete(command.id(), status, value);
    } else {
        answers.deliver(command, &data, value);
    }
}

/// Completes the commands that were held and are due.
pub(super) fn complete_held(
    controller: &mut Controller,
    subsystem: &Subsystem,
    answers: &mut impl Answers,
) {
    for (id, status, value) in controller.completed(subsystem) {
        answers.complete(id, status, value.into());
    }
}

impl From<Result<Completed, Status>> for Outcome {
    fn from(done: Result<Completed, Status>) -> Self {
        Self::Completed(done.unwrap_or_else(Completed::from))
    }
}

/// CAP: the largest queue, contiguous queues, half a second to be ready, the NVM command set, and
/// the way of readiness of 2.0 (CRWMS).
pub(super) const fn capabilities() -> u64 {
    (QUEUE_ENTRIES_MAX as u64 - 1) | 1 << 16 | 1 << 24 | 1 << 37 | 1 << 59
}

/// Bytes that the host sends with a command of the admin queue.
pub(super) fn admin_data_bytes(command: &Command) -> usize {
    match (command.opcode(), command.fabrics_type()) {
        (fabrics::OPCODE, fabrics::CONNECT) => super::fabrics::CONNECT_BYTES,
        (fabrics::OPCODE, fabrics::AUTHENTICATION_SEND) => {
            super::authentication::message_bytes(command.dword(11))
        }
        (admin::SET_FEATURES, _) => Features::data_bytes(command),
        _ => management::data_bytes(command),
    }
}
