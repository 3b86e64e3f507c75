//! A served drive under observation: what its status is made of.

mod chronicle;
mod model;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use live::export::nbd::Event;
use live::management::{Answer, Management, Request};
use live::misbehavior::{Fault, Misbehavior};
use live::status::{Client, Export, Happening, Process, Server, Status};
use live::{
    Beyond, Caretaker, Device, Drive, Life, Meter, Metered, Namespaces, beacon, spare_dies,
};
use tracing::{error, info, warn};

use self::chronicle::Chronicle;
pub(crate) use self::model::Paced;

/// A drive that is served from its folder, and whoever uses it.
#[derive(Debug)]
pub(crate) struct Observed {
    vault: PathBuf,
    drive: Arc<Drive>,
    /// Looks after it.
    pub(crate) caretaker: Caretaker,
    meter: Arc<Meter>,
    begun: Instant,
    /// Erases that superblocks are rated for.
    rated_cycles: Option<u32>,
    /// What may make it misbehave.
    misbehavior: Option<Arc<Misbehavior>>,
    guests: Mutex<Guests>,
    /// The modelled drive whose times replies keep to.
    model: OnceLock<Arc<Paced>>,
    /// Before this server began.
    life: Life,
    events: Mutex<Events>,
}

/// What happened, and what of the drive's state is known to have.
#[derive(Debug, Default)]
struct Events {
    chronicle: Chronicle,
    lost_dies: Vec<usize>,
    spare_dies: u32,
    has_failed: bool,
}

/// Clients, and what they find.
#[derive(Debug, Default)]
struct Guests {
    exports: Vec<Export>,
    /// The export that each client uses, by its number.
    clients: BTreeMap<u64, String>,
    came: u64,
    refused: u64,
}

impl Observed {
    /// Observes the drive of a folder.
    pub(crate) fn new(
        vault: &Path,
        drive: Arc<Drive>,
        misbehavior: Option<Arc<Misbehavior>>,
    ) -> Self {
        Self {
            vault: vault.to_owned(),
            caretaker: Caretaker::new(vault, Arc::clone(&drive)),
            drive,
            meter: Arc::default(),
            begun: Instant::now(),
            rated_cycles: live::rated_cycles(vault),
            misbehavior,
            guests: Mutex::default(),
            model: OnceLock::new(),
            life: Life::load(vault),
            events: Mutex::new(Events {
                chronicle: Chronicle::open(vault),
                spare_dies: u32::try_from(spare_dies(vault).len()).unwrap_or(u32::MAX),
                ..Events::default()
            }),
        }
    }

    /// Tells of a modelled drive, too: replies keep to its times.
    pub(crate) fn keep_pace_with(&self, model: &Arc<Paced>) {
        // It is said once, before anybody asks.
        let _ = self.model.set(Arc::clone(model));
    }

    /// Its folder.
    pub(crate) fn vault(&self) -> &Path {
        &self.vault
    }

    /// The number of the drive, 16 hexadecimal digits.
    pub(crate) fn number(&self) -> String {
        self.drive.status().drive
    }

    /// Takes note of something that happened.
    fn note(&self, what: String) {
        self.events().chronicle.note(what);
    }

    /// Takes note of something that happened, and says it.
    pub(crate) fn tell(&self, what: &str) {
        info!(drive = self.number(), "{what}");
        self.note(what.to_owned());
    }

    /// Keeps what the drive did in its life.
    ///
    /// # Errors
    /// What the system answered; what was kept before is still there.
    pub(crate) fn keep_life(&self) -> io::Result<()> {
        self.status().life.keep(&self.vault)
    }

    /// The drive as clients are to use it.
    pub(crate) fn device(&self) -> Arc<dyn Device> {
        let drive = Arc::<Drive>::clone(&self.drive);
        let device: Arc<dyn Device> = match &self.misbehavior {
            Some(misbehavior) => misbehavior.device(drive),
            None => drive,
        };
        Arc::new(Metered::new(device, Arc::clone(&self.meter)))
    }

    /// Takes note of what happened to a client.
    pub(crate) fn saw(&self, event: &Event) {
        match event {
            Event::Came { client, .. } => self.note(format!("client {client} came")),
            Event::Left { client } => self.note(format!("client {client} left")),
            Event::Dropped { client, reason } => {
                self.note(format!("client {client} was dropped: {reason}"));
            }
            Event::TurnedAway { reason } => {
                self.note(format!("a client was turned away: {reason}"));
            }
        }
        let mut guests = self.guests();
        match event {
            Event::Came { client, export } => {
                guests.came += 1;
                guests.clients.insert(*client, export.clone());
            }
            Event::Left { client } => {
                guests.clients.remove(client);
            }
            Event::Dropped { client, .. } => {
                guests.clients.remove(client);
                guests.refused += 1;
            }
            Event::TurnedAway { .. } => guests.refused += 1,
        }
    }

    /// How the drive and its server fare.
    pub(crate) fn status(&self) -> Status {
        let Process { cpu_s, memory_bytes } = Process::own();
        let traffic = self.meter.traffic();
        let guests = self.guests();
        let client =
            |(client, export): (&u64, &String)| Client { client: *client, export: export.clone() };
        let server = Server {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.begun.elapsed().as_secs_f64(),
            cpu_s,
            memory_bytes,
            exports: guests.exports.clone(),
            clients: guests.clients.iter().map(client).collect(),
            clients_came: guests.came,
            clients_refused: guests.refused,
            traffic,
            model: self.model.get().map(|model| model.status(self.begun.elapsed())),
            events: Vec::new(),
        };
        drop(guests);
        let mut status = self.drive.status().spared(&spare_dies(&self.vault));
        let events = self.events_of(&status);
        status = status.served(Server { events, ..server });
        // What cannot be read any more was served all the same.
        status.namespaces =
            Namespaces::of(&self.vault).unwrap_or_default().iter().cloned().collect();
        status.life = self.life.and(&status);
        status.rated(self.rated_cycles).marked(beacon::is_lit(&self.vault))
    }

    /// Takes note of what has happened to the drive, whether or not anybody asks. Returns how it
    /// fares, its server left out.
    pub(crate) fn look(&self) -> Status {
        let status = self.drive.status().spared(&spare_dies(&self.vault));
        self.events_of(&status);
        status
    }

    /// The last events, with what this look at the drive shows to have happened.
    fn events_of(&self, status: &Status) -> Vec<Happening> {
        let mut events = self.events();
        let lost: Vec<usize> =
            (0..status.dies.len()).filter(|die| status.dies[*die].is_lost).collect();
        for die in &lost {
            if !events.lost_dies.contains(die) {
                let what = format!("die {die} is lost; the others stand in for it");
                warn!(die, "{what}");
                events.chronicle.note(what);
            }
        }
        for die in std::mem::replace(&mut events.lost_dies, lost) {
            if !events.lost_dies.contains(&die) {
                let what = format!("die {die} is whole again");
                info!(die, "{what}");
                events.chronicle.note(what);
            }
        }
        if status.spare_dies < events.spare_dies {
            let what = format!("a spare die was taken, {} left", status.spare_dies);
            warn!("{what}");
            events.chronicle.note(what);
        }
        events.spare_dies = status.spare_dies;
        if let Some(reason) = status.reason.as_ref().filter(|_| !events.has_failed) {
            events.has_failed = true;
            let what = format!("the drive takes no more writes: {reason}");
            error!(reason, "{what}");
            events.chronicle.note(what);
        }
        events.chronicle.told()
    }

    /// Answers programs that ask about the drive and what is offered of it, until what is returned
    /// is dropped.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn manage(self: &Arc<Self>, offered: &[Export]) -> Result<Management> {
        self.guests().exports = offered.to_vec();
        // Whoever still asks does not keep the drive from being closed.
        let own = Arc::downgrade(self);
        let answer = move |request| match own.upgrade() {
            Some(own) => own.answer(&request),
            None => Answer::Refused { reason: "the drive is being closed".to_owned() },
        };
        Management::start(&self.vault, answer)
            .with_context(|| format!("opening the management socket of {}", self.vault.display()))
    }

    /// Does what a program asks for.
    pub(crate) fn answer(&self, request: &Request) -> Answer {
        let done = match request {
            Request::Status => return Answer::Status { status: Box::new(self.status()) },
            Request::Beacon { is_lit } => {
                beacon::set(&self.vault, *is_lit).map_err(|error| error.to_string())
            }
            Request::FailDie { die } => {
                self.drive.fail_die(*die).map_err(|error| error.to_string())
            }
            Request::ReplaceDie { die, path } => {
                self.caretaker.replace_die(*die, path).map_err(|error| error.to_string())
            }
            Request::AddSpare { path } => {
                self.caretaker.add_spare(path).map_err(|error| error.to_string())
            }
            Request::Scrub => self.caretaker.scrub().map_err(|error| error.to_string()),
            Request::Purge { drive, while_served } => self
                .allowed(drive, *while_served)
                .and_then(|()| self.caretaker.purge().map_err(|error| error.to_string())),
            Request::Format { drive, capacity, while_served } => self
                .allowed(drive, *while_served)
                .and_then(|()| self.caretaker.format(*capacity).map_err(|error| error.to_string())),
            Request::Resize { drive, size_bytes, discard, while_served } => {
                let beyond = if *discard { Beyond::Lost } else { Beyond::Kept };
                let resize = || self.caretaker.resize(*size_bytes, beyond);
                self.allowed(drive, *while_served)
                    .and_then(|()| resize().map_err(|error| error.to_string()))
            }
            Request::Misbehave { fault } => self.misbehave(*fault),
        };
        let asked = serde_json::to_string(request).unwrap_or_default();
        match done {
            Ok(()) => {
                self.tell(&format!("asked for and done: {asked}"));
                Answer::Done
            }
            Err(error) => {
                self.tell(&format!("asked for and refused: {asked}: {error}"));
                Answer::Refused { reason: error }
            }
        }
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what the drive is for its clients may be changed beneath them.
    fn allowed(&self, drive: &str, while_served: bool) -> Result<(), String> {
        let own = self.number();
        match (drive == own, while_served) {
            (false, _) => Err(format!("drive {own} is served here, not {drive}")),
            (_, false) => Err("clients may use it; allow that with while_served".to_owned()),
            _ => Ok(()),
        }
    }

    fn misbehave(&self, fault: Fault) -> Result<(), String> {
        let Some(misbehavior) = &self.misbehavior else {
            return Err("the server does not allow that; start it with --misbehave".to_owned());
        };
        misbehavior.commit(fault).map_err(|error| error.to_string())
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
