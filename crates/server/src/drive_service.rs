//! A served drive under observation: its status, history, events and alerts.

mod backing;
mod changes;
mod event_log;
mod history;
mod latencies;
mod model;
mod orders;
mod subject;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use export::Event;
use export::nvme::Subsystem;
use lab::target::system::System;
use live::fault_injection::FaultInjector;
use live::operator::{Backing, Operator};
use live::{
    Administration, Device, Drive, DriveHealth, EventKind, Identity, InjectedError, Maintenance,
    MemoryDevice, Meter, Promise,
};
use rustix::rand::{GetRandomFlags, getrandom};
use status::{
    Client, Export, History, HistorySpan, Process, SPARE_THRESHOLD_PERCENT, Server, Status,
};
use tracing::{error, info, warn};

use self::changes::{Change, DriveSnapshot, Severity};
use self::event_log::EventLog;
pub use self::event_log::note_event;
use self::history::Rings;
pub use self::model::PacingModel;
pub(crate) use self::model::{model_name, warmth};
use self::subject::Subject;
use crate::monitor::{Alert, Monitor};
use crate::temperature;

/// Temperature in kelvin at which a drive without a model warns, as most drives do: 70 degrees.
const WARNING_TEMPERATURE_K: u16 = 343;

/// Wear that an injected fault has the drive report, in percent.
#[derive(Clone, Copy, Debug)]
struct InjectedWear {
    used_percent: u8,
    spare_percent: u8,
}

/// Service of a drive that is served: its status, its clients and its maintenance.
#[derive(Debug)]
pub struct DriveService {
    subject: Subject,
    /// Counters of all namespaces together, those that were deleted included.
    meter: Arc<Meter>,
    /// Counters of each namespace, by its number.
    meters: Mutex<BTreeMap<u32, Arc<Meter>>>,
    begun: Instant,
    /// Injects faults, where that was allowed.
    injector: Option<Arc<FaultInjector>>,
    clients: Mutex<Clients>,
    /// The modelled drive that sets the timing of replies.
    model: OnceLock<Arc<PacingModel>>,
    /// Operator for the commands of hosts.
    operator: OnceLock<Weak<Operator>>,
    /// The subsystem that NVMe hosts connect to.
    subsystem: OnceLock<Weak<Subsystem>>,
    /// Errors that a host ordered last.
    injected_errors: Mutex<Vec<InjectedError>>,
    /// Injected temperature in degrees Celsius.
    heat: Mutex<Option<i16>>,
    /// Wear that an injected fault has the drive report.
    wear: Mutex<Option<InjectedWear>>,
    event_log: EventLog,
    /// State seen at the previous look; locked for the whole of a look.
    known: Mutex<DriveSnapshot>,
    history: Mutex<Rings>,
    /// Sender of alerts on changes of health; none if no recipient is configured.
    monitor: OnceLock<Monitor>,
}

/// Clients, and the exports that they may use.
#[derive(Debug, Default)]
struct Clients {
    exports: Vec<Export>,
    /// By number.
    connected: BTreeMap<u64, Client>,
    accepted: u64,
    refused: u64,
}

impl DriveService {
    /// Observes the drive of a folder.
    pub fn new(volume: &Path, drive: Arc<Drive>, injector: Option<Arc<FaultInjector>>) -> Self {
        Self::of(Subject::of_volume(volume, drive), EventLog::open(volume), injector)
    }

    /// Makes and observes a drive in memory, which starts empty and is lost at the end.
    ///
    /// # Errors
    /// Fails if the system has no random number for the ID of the drive.
    pub fn in_memory(size: u64, injector: Option<Arc<FaultInjector>>) -> io::Result<Self> {
        let mut number = [0; 8];
        // Requests of at most 256 bytes are never answered in part.
        getrandom(&mut number, GetRandomFlags::empty())?;
        let number = u64::from_le_bytes(number);
        let subject = Subject::Memory { number, device: Arc::new(MemoryDevice::new(size)) };
        Ok(Self::of(subject, EventLog::default(), injector))
    }

    fn of(subject: Subject, event_log: EventLog, injector: Option<Arc<FaultInjector>>) -> Self {
        Self {
            subject,
            meter: Arc::default(),
            meters: Mutex::default(),
            begun: Instant::now(),
            injector,
            clients: Mutex::default(),
            model: OnceLock::new(),
            operator: OnceLock::new(),
            subsystem: OnceLock::new(),
            injected_errors: Mutex::default(),
            heat: Mutex::default(),
            wear: Mutex::default(),
            event_log,
            known: Mutex::default(),
            history: Mutex::default(),
            monitor: OnceLock::new(),
        }
    }

    /// Its maintenance; none of a drive in memory.
    pub fn maintenance(&self) -> Option<&Maintenance> {
        self.subject.volume().map(|volume| &volume.maintenance)
    }

    /// Sets the monitor that sends alerts.
    pub(crate) fn call(&self, monitor: Monitor) {
        // It is set once, before the first look.
        let _ = self.monitor.set(monitor);
    }

    /// Sends an alert to the monitor, if there is one.
    pub(crate) fn alert(&self, alert: Alert) {
        if let Some(monitor) = self.monitor.get() {
            monitor.tell(alert);
        }
    }

    /// Sets the modelled drive that sets the timing of replies, for the status.
    pub fn keep_pace_with(&self, model: &Arc<PacingModel>) {
        // It is set once, before the first status.
        let _ = self.model.set(Arc::clone(model));
    }

    /// Its folder; none of a drive in memory.
    pub fn volume(&self) -> Option<&Path> {
        self.subject.volume().map(|volume| &*volume.folder)
    }

    /// The number of the drive, 16 hexadecimal digits.
    pub fn number(&self) -> String {
        self.subject.number()
    }

    /// Records an event.
    fn note(&self, what: String) {
        self.event_log.note(what);
    }

    /// Records an event, and logs it.
    pub fn tell(&self, what: &str) {
        info!(drive = self.number(), "{what}");
        self.note(what.to_owned());
    }

    /// As [`DriveService::tell`], but logged as a warning.
    pub fn tell_warning(&self, what: &str) {
        warn!(drive = self.number(), "{what}");
        self.note(what.to_owned());
    }

    /// Records the start of the server, and logs it.
    pub fn tell_start(&self) {
        let text = format!("The server started, process {}.", std::process::id());
        Backing::note(self, EventKind::Started, text);
    }

    /// Saves the lifetime counters of the drive.
    ///
    /// # Errors
    /// Fails if the system refuses; the counters that were saved before remain.
    pub fn keep_life(&self) -> io::Result<()> {
        match self.subject.volume() {
            Some(volume) => live::keep_life(&self.status().life, &volume.folder),
            None => Ok(()),
        }
    }

    /// The drive, of which clients use namespaces.
    pub fn device(&self) -> Arc<dyn Device> {
        let device = self.subject.device();
        match &self.injector {
            Some(injector) => injector.device(device),
            None => device,
        }
    }

    /// Records an event of a client.
    pub fn saw(&self, event: &Event) {
        match event {
            Event::Connected { client, export } if export.is_empty() => {
                self.note(format!("Client {client} connected."));
            }
            Event::Connected { client, export } => {
                self.note(format!("Client {client} connected to `{export}`."));
            }
            Event::HostConnected { client, controller, host } => {
                self.note(format!(
                    "Client {client}, {host}, connected as controller {controller}."
                ));
            }
            Event::Disconnected { client } => self.note(format!("Client {client} disconnected.")),
            Event::Dropped { client, reason } => {
                self.note(format!("Client {client} was dropped: {reason}."));
            }
            Event::Rejected { clients: 1, reason } => {
                self.note(format!("A client was rejected: {reason}."));
            }
            Event::Rejected { clients, reason } => {
                self.note(format!(
                    "{clients} clients were rejected; the reason for the last: {reason}."
                ));
            }
        }
        let mut clients = self.clients();
        match event {
            Event::Connected { client, export } => {
                clients.accepted += 1;
                let (export, host) = (export.clone(), String::new());
                clients.connected.insert(*client, Client { client: *client, export, host });
            }
            Event::HostConnected { client, host, .. } => {
                clients.accepted += 1;
                let (export, host) = (String::new(), host.clone());
                clients.connected.insert(*client, Client { client: *client, export, host });
            }
            Event::Disconnected { client } => {
                clients.connected.remove(client);
            }
            Event::Dropped { client, .. } => {
                clients.connected.remove(client);
                clients.refused += 1;
            }
            Event::Rejected { clients: count, .. } => clients.refused += count,
        }
    }

    /// Returns the status of the drive and of its server.
    pub fn status(&self) -> Status {
        let Process { cpu_s, memory_bytes } = Process::own();
        let mut traffic = self.meter.traffic();
        // The device is flushed once for many flushes of clients, and for writes that are to be
        // durable.
        let flushes = &mut traffic.flushes;
        flushes.commands = flushes.latency_histogram.total() + flushes.failures;
        let (namespaces, controllers) = (self.namespace_traffic(), self.controllers());
        // Before the lock of the clients: the model may be busy, and clients that connect or
        // disconnect must not wait for it.
        let model = self.model.get().map(|model| model.status());
        let clients = self.clients();
        let server = Server {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.begun.elapsed().as_secs_f64(),
            cpu_s,
            memory_bytes,
            exports: clients.exports.clone(),
            clients: clients.connected.values().cloned().collect(),
            connections_accepted: clients.accepted,
            clients_refused: clients.refused,
            traffic,
            namespaces,
            controllers,
            model,
            events: self.event_log.told(),
        };
        drop(clients);
        let mut status = self.subject.status(server);
        if status.server.as_ref().is_some_and(|server| server.model.is_none()) {
            temperature::note_disks(&mut status.dies, &System::this_machine());
            status.smart.composite_temperature = temperature::of_disks(&status.dies);
            status = status.judged();
        }
        if let Some(InjectedWear { used_percent, spare_percent }) = *locked(&self.wear) {
            status.smart.percentage_used = Some(used_percent);
            status.smart.available_spare = Some(spare_percent);
            status.smart.available_spare_threshold = SPARE_THRESHOLD_PERCENT;
            return status.judged();
        }
        status
    }

    /// Records the activity of the drive and the changes since the previous look, whether or not
    /// any program asks. Returns its status.
    pub fn look(&self) -> Status {
        let mut known = locked(&self.known);
        let status = self.status();
        let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        locked(&self.history).look(&status, age.as_secs());
        for change in known.look(&status) {
            self.tell_change(change, &status.drive);
        }
        status
    }

    fn tell_change(&self, Change { severity, text, alert }: Change, drive: &str) {
        match severity {
            Severity::Info => info!(drive, "{text}"),
            Severity::Warning => warn!(drive, "{text}"),
            Severity::Error => error!(drive, "{text}"),
        }
        self.note(text);
        if let Some(alert) = alert {
            self.alert(alert);
        }
    }

    /// Returns the activity of the drive over a span.
    pub fn history(&self, span: HistorySpan) -> History {
        locked(&self.history).history(span)
    }

    /// Sets the exports that clients may use.
    pub fn offer(&self, offered: &[Export]) {
        self.clients().exports = offered.to_vec();
    }

    /// Returns the number of clients that are connected, and of those that ever were.
    pub fn client_counts(&self) -> (usize, u64) {
        let clients = self.clients();
        (clients.connected.len(), clients.accepted)
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        locked(&self.clients)
    }
}

impl Administration for DriveService {
    fn identity(&self) -> Identity {
        let number = u64::from_str_radix(&self.number(), 16);
        Identity {
            number: number.expect("drives are numbered with 16 hexadecimal digits"),
            model: model_name(self.model.get().map(|model| &**model), self.subject.kind()),
            firmware: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn health(&self) -> DriveHealth {
        let status = self.status().judged();
        let is_write_through = status.acknowledged_survives == Some(Promise::PowerLoss);
        let Status { smart, life, server, space, wear, dies, .. } = status;
        let climate = server.and_then(|server| server.model?.climate);
        let mut warmth = warmth(climate.as_ref(), &dies);
        let mut critical_warning = smart.critical_warning;
        if let Some(celsius) = *locked(&self.heat) {
            let kelvin =
                u16::try_from(i32::from(celsius) + 273).expect("the injector checks temperatures");
            warmth.composite_temperature_k = Some(kelvin);
            let limit = warmth.warning_temperature_k.unwrap_or(WARNING_TEMPERATURE_K);
            warmth.warning_temperature_k = Some(limit);
            critical_warning |= u8::from(kelvin >= limit) << 1;
        }
        let is_volume = self.subject.volume().is_some();
        let free = space.as_ref().filter(|space| !space.superblocks.is_empty());
        let free = free.map(|space| {
            let all = u32::try_from(space.superblocks.len()).unwrap_or(u32::MAX);
            u8::try_from(u64::from(space.superblocks_free) * 100 / u64::from(all)).unwrap_or(100)
        });
        DriveHealth {
            critical_warning,
            // An open drive knows it.
            available_spare_percent: smart.available_spare.unwrap_or(100),
            available_spare_threshold_percent: smart.available_spare_threshold,
            percentage_used: smart.percentage_used.unwrap_or(0),
            host_read_bytes: life.host_read_bytes,
            host_written_bytes: life.host_written_bytes,
            host_read_commands: life.host_read_commands,
            host_write_commands: life.host_write_commands,
            power_cycles: smart.power_cycles,
            power_on_s: life.power_on_s,
            unsafe_shutdowns: smart.unsafe_shutdowns,
            media_errors: life.media_errors,
            xor_recoveries: life.xor_recoveries,
            bad_places: dies.iter().map(|die| die.bad_places).sum(),
            is_write_through,
            is_throttled: climate.is_some_and(|it| it.temperature_c >= it.throttle_c),
            erase_count_max: wear.as_ref().map(|wear| wear.erase_count_max),
            erase_count_min: wear.as_ref().map(|wear| wear.erase_count_min),
            free_superblocks_percent: free,
            media_written_bytes: is_volume.then_some(life.media_written_bytes),
            media_read_bytes: is_volume.then_some(life.media_read_bytes),
            ..warmth
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
