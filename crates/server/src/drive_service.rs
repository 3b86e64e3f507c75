//! A served drive under observation: its status, history, events and alerts.

mod changes;
mod event_log;
mod history;
mod model;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use blockio::text;
use export::nbd::Event;
use live::fault_injection::{Fault, FaultInjector};
use live::management::{Answer, Management, Request};
use live::status::{Client, Export, History, HistorySpan, Process, Server, Status};
use live::{
    Administration, Beyond, Device, Drive, DriveHealth, Identity, Life, Maintenance, Meter,
    Metered, Namespaces, UserCapacity, locate,
};
use tracing::{error, info, warn};

use self::changes::{Change, Gravity, Known};
use self::event_log::EventLog;
use self::history::Rings;
pub use self::model::Paced;
pub(crate) use self::model::{model_name, warmth};
use crate::monitor::{Alert, Monitor};

/// Service of a drive that is served from its folder: its status, its clients and its maintenance.
#[derive(Debug)]
pub struct DriveService {
    volume: PathBuf,
    drive: Arc<Drive>,
    /// Looks after it.
    pub maintenance: Maintenance,
    meter: Arc<Meter>,
    begun: Instant,
    /// Erases that superblocks are rated for.
    rated_cycles: Option<u32>,
    /// Injects faults, where that was allowed.
    injector: Option<Arc<FaultInjector>>,
    guests: Mutex<Guests>,
    /// The modelled drive whose times replies keep to.
    model: OnceLock<Arc<Paced>>,
    /// Before this server began.
    life: Life,
    event_log: EventLog,
    /// State seen at the previous look; locked for the whole of a look.
    known: Mutex<Known>,
    history: Mutex<Rings>,
    /// Sender of alerts on changes of health; none if no recipient is configured.
    monitor: OnceLock<Monitor>,
}

/// Clients, and what they find.
#[derive(Debug, Default)]
struct Guests {
    exports: Vec<Export>,
    /// By number.
    clients: BTreeMap<u64, Client>,
    came: u64,
    refused: u64,
}

impl DriveService {
    /// Observes the drive of a folder.
    pub fn new(volume: &Path, drive: Arc<Drive>, injector: Option<Arc<FaultInjector>>) -> Self {
        Self {
            volume: volume.to_owned(),
            maintenance: Maintenance::new(volume, Arc::clone(&drive)),
            drive,
            meter: Arc::default(),
            begun: Instant::now(),
            rated_cycles: live::rated_cycles(volume),
            injector,
            guests: Mutex::default(),
            model: OnceLock::new(),
            life: Life::load(volume),
            event_log: EventLog::open(volume),
            known: Mutex::default(),
            history: Mutex::default(),
            monitor: OnceLock::new(),
        }
    }

    /// Sets the monitor that is told when health changes.
    pub fn call(&self, monitor: Monitor) {
        // It is said once, before anybody looks.
        let _ = self.monitor.set(monitor);
    }

    /// Sends an alert to the monitor, if there is one.
    pub fn alert(&self, alert: Alert) {
        if let Some(monitor) = self.monitor.get() {
            monitor.tell(alert);
        }
    }

    /// Sets the modelled drive whose times replies keep to, for the status.
    pub fn keep_pace_with(&self, model: &Arc<Paced>) {
        // It is said once, before anybody asks.
        let _ = self.model.set(Arc::clone(model));
    }

    /// Its folder.
    pub fn volume(&self) -> &Path {
        &self.volume
    }

    /// The number of the drive, 16 hexadecimal digits.
    pub fn number(&self) -> String {
        self.drive.status().drive
    }

    /// Takes note of something that happened.
    fn note(&self, what: String) {
        self.event_log.note(what);
    }

    /// Records an event, and logs it.
    pub fn tell(&self, what: &str) {
        info!(drive = self.number(), "{what}");
        self.note(what.to_owned());
    }

    /// Keeps what the drive did in its life.
    ///
    /// # Errors
    /// What the system answered; what was kept before is still there.
    pub fn keep_life(&self) -> io::Result<()> {
        self.status().life.keep(&self.volume)
    }

    /// The drive as clients are to use it.
    pub fn device(&self) -> Arc<dyn Device> {
        let drive = Arc::<Drive>::clone(&self.drive);
        let device: Arc<dyn Device> = match &self.injector {
            Some(injector) => injector.device(drive),
            None => drive,
        };
        Arc::new(Metered::new(device, Arc::clone(&self.meter)))
    }

    /// Records an event of a client.
    pub fn saw(&self, event: &Event) {
        match event {
            Event::Came { client, export } if export.is_empty() => {
                self.note(format!("Client {client} connected."));
            }
            Event::Came { client, export } => {
                self.note(format!("Client {client} connected to `{export}`."));
            }
            Event::HostCame { client, controller, host } => {
                self.note(format!(
                    "Client {client}, {host}, connected as controller {controller}."
                ));
            }
            Event::Left { client } => self.note(format!("Client {client} disconnected.")),
            Event::Dropped { client, reason } => {
                self.note(format!("Client {client} was dropped: {reason}."));
            }
            Event::TurnedAway { clients: 1, reason } => {
                self.note(format!("A client was turned away: {reason}."));
            }
            Event::TurnedAway { clients, reason } => {
                self.note(format!("{clients} clients were turned away, the last: {reason}."));
            }
        }
        let mut guests = self.guests();
        match event {
            Event::Came { client, export } => {
                guests.came += 1;
                let (export, host) = (export.clone(), String::new());
                guests.clients.insert(*client, Client { client: *client, export, host });
            }
            Event::HostCame { client, host, .. } => {
                guests.came += 1;
                let (export, host) = (String::new(), host.clone());
                guests.clients.insert(*client, Client { client: *client, export, host });
            }
            Event::Left { client } => {
                guests.clients.remove(client);
            }
            Event::Dropped { client, .. } => {
                guests.clients.remove(client);
                guests.refused += 1;
            }
            Event::TurnedAway { clients, .. } => guests.refused += clients,
        }
    }

    /// Returns the status of the drive and of its server.
    pub fn status(&self) -> Status {
        let Process { cpu_s, memory_bytes } = Process::own();
        let traffic = self.meter.traffic();
        // The model may be at work for others: whoever comes and goes does not wait for it.
        let model = self.model.get().map(|model| model.status());
        let guests = self.guests();
        let server = Server {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.begun.elapsed().as_secs_f64(),
            cpu_s,
            memory_bytes,
            exports: guests.exports.clone(),
            clients: guests.clients.values().cloned().collect(),
            clients_came: guests.came,
            clients_refused: guests.refused,
            traffic,
            model,
            events: self.event_log.told(),
        };
        drop(guests);
        let mut status = self.drive.status().served(server).rated(self.rated_cycles);
        // What cannot be read any more was served all the same.
        status.namespaces =
            Namespaces::of(&self.volume).unwrap_or_default().iter().cloned().collect();
        status.life = self.life.and(&status);
        status.described(&self.volume)
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

    fn tell_change(&self, Change { gravity, text, alert }: Change, drive: &str) {
        match gravity {
            Gravity::Good => info!(drive, "{text}"),
            Gravity::Bad => warn!(drive, "{text}"),
            Gravity::Grave => error!(drive, "{text}"),
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

    /// Answers programs that ask about the drive and what is offered of it, until what is returned
    /// is dropped.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn manage(self: &Arc<Self>, offered: &[Export]) -> Result<Management> {
        self.guests().exports = offered.to_vec();
        // Whoever still asks does not keep the drive from being closed.
        let own = Arc::downgrade(self);
        let answer = move |request| match own.upgrade() {
            Some(own) => own.answer(&request),
            None => Answer::Refused { reason: "the drive is being closed".to_owned() },
        };
        Management::start(&self.volume, answer)
            .with_context(|| format!("opening the management socket of {}", self.volume.display()))
    }

    /// Carries out the request of a program.
    pub fn answer(&self, request: &Request) -> Answer {
        let done = match request {
            Request::Status => return Answer::Status { status: Box::new(self.status()) },
            Request::History { span } => {
                return Answer::History { history: Box::new(self.history(*span)) };
            }
            Request::Locate { is_lit } => {
                locate::set(&self.volume, *is_lit).map_err(|error| error.to_string())
            }
            Request::FailDie { die } => {
                self.drive.fail_die(*die).map_err(|error| error.to_string())
            }
            Request::ReplaceDie { die, path } => {
                self.maintenance.replace_die(*die, path).map_err(|error| error.to_string())
            }
            Request::AddSpare { path } => {
                self.maintenance.add_spare(path).map_err(|error| error.to_string())
            }
            Request::Scrub => self.maintenance.scrub().map_err(|error| error.to_string()),
            Request::Purge { drive, while_served } => self
                .allowed(drive, *while_served)
                .and_then(|()| self.maintenance.purge().map_err(|error| error.to_string())),
            Request::Format { drive, capacity, while_served } => {
                self.allowed(drive, *while_served).and_then(|()| {
                    self.maintenance.format(*capacity).map_err(|error| error.to_string())
                })
            }
            Request::Resize { drive, size_bytes, discard, while_served } => {
                let beyond = if *discard { Beyond::Lost } else { Beyond::Kept };
                let resize = || self.maintenance.resize(*size_bytes, beyond);
                self.allowed(drive, *while_served)
                    .and_then(|()| resize().map_err(|error| error.to_string()))
            }
            Request::InjectFault { fault } => self.inject_fault(*fault),
        };
        let order = order(request);
        match done {
            Ok(()) => {
                self.tell(&format!("Request to {order}: accepted."));
                Answer::Done
            }
            Err(error) => {
                self.tell(&format!("Request to {order}: refused: {error}."));
                Answer::Refused { reason: error }
            }
        }
    }

    /// Checks a request to purge, format or resize: it must name this drive and allow the change
    /// while clients use it.
    fn allowed(&self, drive: &str, while_served: bool) -> Result<(), String> {
        let own = self.number();
        match (drive == own, while_served) {
            (false, _) => Err(format!("drive {own} is served here, not {drive}")),
            (_, false) => Err("clients may use it; allow that with while_served".to_owned()),
            _ => Ok(()),
        }
    }

    fn inject_fault(&self, fault: Fault) -> Result<(), String> {
        let Some(injector) = &self.injector else {
            return Err(
                "the server does not allow that; start it with --fault-injection".to_owned()
            );
        };
        injector.commit(fault).map_err(|error| error.to_string())
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        locked(&self.guests)
    }
}

impl Administration for DriveService {
    fn identity(&self) -> Identity {
        let number = u64::from_str_radix(&self.number(), 16);
        Identity {
            number: number.expect("drives are numbered with 16 hexadecimal digits"),
            model: model_name(self.model.get().map(|model| &**model), "live"),
            firmware: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn health(&self) -> DriveHealth {
        let Status { smart, life, server, .. } = self.status().judged();
        let climate = server.and_then(|server| server.model?.climate);
        DriveHealth {
            critical_warning: smart.critical_warning,
            available_spare_percent: smart.available_spare,
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
            media_written_bytes: Some(life.media_written_bytes),
            media_read_bytes: Some(life.media_read_bytes),
            ..warmth(climate.as_ref())
        }
    }
}

/// Returns the infinitive phrase for a request in event messages, to follow "to".
fn order(request: &Request) -> String {
    match request {
        Request::Status => "tell the status".to_owned(),
        Request::History { span } => format!("tell the history of {}", span.word()),
        Request::Locate { is_lit: true } => "turn the locate LED on".to_owned(),
        Request::Locate { is_lit: false } => "turn the locate LED off".to_owned(),
        Request::FailDie { die } => format!("fail die {die}"),
        Request::ReplaceDie { die, path } => {
            format!("replace die {die} with {}", path.display())
        }
        Request::AddSpare { path } => format!("add the hot spare {}", path.display()),
        Request::Scrub => "scrub the drive".to_owned(),
        Request::Purge { .. } => "purge the drive".to_owned(),
        Request::Format { capacity: UserCapacity::Bytes(size), .. } => {
            format!("format the drive to {}", text::bytes(*size))
        }
        Request::Format { capacity: UserCapacity::Stock, .. } => {
            "format the drive to its stock capacity".to_owned()
        }
        Request::Format { .. } => "format the drive for high performance".to_owned(),
        Request::Resize { size_bytes, .. } => {
            format!("resize the drive to {}", text::bytes(*size_bytes))
        }
        Request::InjectFault { fault } => {
            let fault = serde_json::to_string(fault).unwrap_or_default();
            format!("inject a fault ({fault})")
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
