//! vhost-user-blk: a virtual machine reads and writes an export through rings in its own memory,
//! which is the shortest way into one.
//!
//! ```text
//!   machine monitor ──► socket: where memory and rings are ──► Client
//!   driver ──► ring in the memory ──► thread of the queue: Block ──► Device ──► ring
//! ```
//!
//! No socket carries data: it is copied once between the machine's memory and our own.
//!
//! **Invariants**
//! - Nothing that a driver or a monitor sends makes the server panic, or reach outside of the
//!   memory that it was given; a client that breaks a rule is dropped, and no other notices.
//! - What a killed server took from a ring, its successor carries out again, where the client keeps
//!   the memory for that.
//!
//! The protocol is [vhost-user-2024] in a code of our own: `vhost` cannot tell a client of another
//! size, and `virtio-queue` knows no packed rings.

mod block;
mod client;
mod inflight;
mod message;
mod queue;
mod ring;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::block::Block;
use self::client::{Break, Client};
use self::queue::Common;
use crate::descriptor_socket::{DescriptorSocket, cut};
use crate::{Event, Export, Exports, Listener, Observer};

/// Clients at once.
const CLIENTS_MAX: usize = 16;
/// Pause after the system had nothing left to accept a client with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server of one export over vhost-user, until it is dropped.
#[derive(Debug)]
pub struct VhostUser {
    shared: Arc<Shared>,
    listener: Arc<Listener>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    exports: Exports,
    export: Arc<Export>,
    serial: String,
    observer: Arc<dyn Observer>,
    clients: Mutex<Clients>,
    /// Signalled whenever a client is gone.
    went: Condvar,
}

#[derive(Default)]
struct Clients {
    /// Connections, by the number of their client.
    sockets: BTreeMap<u64, OwnedFd>,
    is_stopping: bool,
}

impl VhostUser {
    /// Serves the first of `exports` to whoever comes to `listener`, a Unix socket; drivers see
    /// `serial`, of which 20 bytes count.
    ///
    /// # Errors
    /// Fails if the system has no thread for the listener.
    pub fn start(
        exports: &Exports,
        listener: Listener,
        serial: &str,
        observer: Arc<dyn Observer>,
    ) -> io::Result<Self> {
        let export = Arc::clone(exports.iter().next().expect("there is one at least"));
        let shared = Arc::new(Shared {
            exports: exports.clone(),
            export,
            serial: serial.to_owned(),
            observer,
            clients: Mutex::default(),
            went: Condvar::new(),
        });
        let listener = Arc::new(listener);
        let (own, place) = (Arc::clone(&shared), Arc::clone(&listener));
        let builder = thread::Builder::new().name("vhost-user-accept".to_owned());
        let acceptor = Some(builder.spawn(move || own.accept(&place))?);
        Ok(Self { shared, listener, acceptor })
    }
}

/// Takes no more clients, and answers what was taken from their rings.
impl Drop for VhostUser {
    fn drop(&mut self) {
        self.shared.lock().is_stopping = true;
        self.listener.shut_down();
        if let Some(acceptor) = self.acceptor.take() {
            // A thread that panicked accepts nobody any more.
            let _ = acceptor.join();
        }
        let mut clients = self.shared.lock();
        clients.sockets.values().for_each(cut);
        while !clients.sockets.is_empty() {
            clients = self.shared.went.wait(clients).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").field("export", &self.export).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &Listener) {
        loop {
            let accepted = listener.accept();
            if self.lock().is_stopping {
                return;
            }
            let admitted = accepted.and_then(|socket| self.admit(socket.into()));
            if let Err(error) = admitted {
                self.observer.saw(&Event::TurnedAway { clients: 1, reason: error.to_string() });
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }

    fn admit(self: &Arc<Self>, socket: OwnedFd) -> io::Result<()> {
        let client = self.exports.number_client();
        let mut clients = self.lock();
        if clients.sockets.len() >= CLIENTS_MAX {
            let text = format!("{CLIENTS_MAX} virtual machines are served, which is the limit");
            return Err(io::Error::other(text));
        }
        clients.sockets.insert(client, socket.try_clone()?);
        drop(clients);
        let own = Arc::clone(self);
        let builder = thread::Builder::new().name(format!("vhost-user-{client}"));
        let spawned = builder.spawn(move || own.host(client, socket));
        if spawned.is_err() {
            self.lock().sockets.remove(&client);
        }
        spawned.map(drop)
    }

    fn host(&self, client: u64, socket: OwnedFd) {
        let export = self.export.name.clone();
        self.observer.saw(&Event::Came { client, export });
        let event = match self.serve(client, socket) {
            // A client whose program ended needs no report.
            Ok(()) | Err(Break::System(_)) => Event::Left { client },
            Err(Break::Violation(reason)) => Event::Dropped { client, reason },
        };
        self.observer.saw(&event);
        self.lock().sockets.remove(&client);
        self.went.notify_all();
    }

    fn serve(&self, client: u64, socket: OwnedFd) -> Result<(), Break> {
        let socket = DescriptorSocket::new(socket);
        let handle = socket.handle()?;
        let recorder = self.exports.recorder();
        let common = Common {
            block: Block::new(Arc::clone(&self.export), &self.serial),
            memory: Mutex::default(),
            recorder: recorder.map(|it| (Arc::clone(it), client)),
            failure: Mutex::default(),
            fail: Box::new(move || cut(&handle)),
        };
        Client::new(socket, Arc::new(common)).serve()
    }
}

#[cfg(test)]
mod tests;
