//! A served drive under observation: what its status is made of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use live::export::nbd::Event;
use live::management::{Answer, Management, Request};
use live::status::{Client, Export, Process, Server, Status};
use live::{Device, Drive, Meter, Metered};

/// A drive that is served from its folder, and whoever uses it.
#[derive(Debug)]
pub(crate) struct Observed {
    vault: PathBuf,
    drive: Arc<Drive>,
    meter: Arc<Meter>,
    begun: Instant,
    guests: Mutex<Guests>,
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
    pub(crate) fn new(vault: &Path, drive: Arc<Drive>) -> Self {
        Self {
            vault: vault.to_owned(),
            drive,
            meter: Arc::default(),
            begun: Instant::now(),
            guests: Mutex::default(),
        }
    }

    /// The drive as clients are to use it.
    pub(crate) fn device(&self) -> Arc<dyn Device> {
        let drive = Arc::<Drive>::clone(&self.drive);
        Arc::new(Metered::new(drive, Arc::clone(&self.meter)))
    }

    /// Takes note of what happened to a client.
    pub(crate) fn saw(&self, event: &Event) {
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
        };
        drop(guests);
        self.drive.status().served(server)
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
        let answer = move |Request::Status| match own.upgrade() {
            Some(own) => Answer::Status { status: Box::new(own.status()) },
            None => Answer::Refused { reason: "the drive is being closed".to_owned() },
        };
        Management::start(&self.vault, answer)
            .with_context(|| format!("opening the management socket of {}", self.vault.display()))
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
