//! The server: a thread for each place it listens at, and one for each client.
//!
//! ```text
//!   start ──► serving ──► stop: no new clients, no new requests ──► flush ──► gone
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::connection::{Break, Connection};
use super::paced;
use crate::DeviceError;
use crate::export::socket::Socket;
use crate::export::{Exports, Listener};

/// Most clients at once; further ones are turned away.
const CLIENTS_MAX: usize = 256;
/// How long clients that are told to go may take their last replies.
const GRACE: Duration = Duration::from_secs(3);
/// How long after that a device may still work on the last requests.
const LAST_GRACE: Duration = Duration::from_secs(30);
/// Pause after the system had nothing left to accept a client with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What happened to a client, for whoever watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It finished the handshake.
    Came {
        /// Number of the client, from 1 in order of arrival.
        client: u64,
        /// Name of the export that it uses.
        export: String,
    },
    /// It went.
    Left {
        /// Its number.
        client: u64,
    },
    /// It was dropped.
    Dropped {
        /// Its number.
        client: u64,
        /// Why.
        reason: String,
    },
    /// It was turned away.
    TurnedAway {
        /// Why.
        reason: String,
    },
}

/// Whoever watches a server. Any thread may call it.
pub trait Observer: Send + Sync {
    /// Is told what happened.
    fn saw(&self, event: &Event);
}

/// A server that runs until it is stopped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<Arc<Listener>>,
    acceptors: Vec<JoinHandle<()>>,
}

struct Shared {
    exports: Exports,
    /// Where models have their zero.
    begun: Instant,
    observer: Box<dyn Observer>,
    clients: Mutex<Clients>,
    /// Told whenever a client is gone.
    went: Condvar,
}

#[derive(Default)]
struct Clients {
    /// The sockets of those that are there, by number.
    sockets: BTreeMap<u64, Arc<Socket>>,
    came: u64,
    is_stopping: bool,
}

/// A place among the clients, given back in whatever way its thread ends.
struct Seat {
    shared: Arc<Shared>,
    client: u64,
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn saw(&self, event: &Event) {
        self(event);
    }
}

impl Server {
    /// Serves `exports` to whoever comes to `listeners`.
    ///
    /// # Errors
    /// When the system has no thread for a listener.
    pub fn start(
        exports: Exports,
        listeners: Vec<Listener>,
        observer: impl Observer + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            exports,
            begun: Instant::now(),
            observer: Box::new(observer),
            clients: Mutex::default(),
            went: Condvar::new(),
        });
        let listeners: Vec<_> = listeners.into_iter().map(Arc::new).collect();
        let mut server = Self { shared, listeners, acceptors: Vec::new() };
        for listener in &server.listeners {
            let (shared, listener) = (Arc::clone(&server.shared), Arc::clone(listener));
            let name = "nbd-accept".to_owned();
            let acceptor =
                thread::Builder::new().name(name).spawn(move || shared.accept(&listener))?;
            server.acceptors.push(acceptor);
        }
        Ok(server)
    }

    /// Takes no more clients and no more requests, answers what was received, and makes it all
    /// durable.
    ///
    /// # Errors
    /// When something acknowledged could not be made durable.
    pub fn stop(mut self) -> Result<(), DeviceError> {
        self.dismiss();
        self.shared.exports.flush()
    }

    fn dismiss(&mut self) {
        self.shared.lock().is_stopping = true;
        for listener in self.listeners.drain(..) {
            listener.shut_down();
        }
        for acceptor in self.acceptors.drain(..) {
            // A thread that panicked accepts nobody any more.
            let _ = acceptor.join();
        }
        self.shared.each_socket(Socket::end_input);
        if !self.shared.is_empty_within(GRACE) {
            self.shared.each_socket(Socket::cut);
            self.shared.is_empty_within(LAST_GRACE);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").field("exports", &self.exports).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn each_socket(&self, act: impl Fn(&Socket)) {
        self.lock().sockets.values().for_each(|socket| act(socket));
    }

    fn is_empty_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut clients = self.lock();
        while !clients.sockets.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.went.wait_timeout(clients, left);
            clients = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Takes clients in until the listener is shut down.
    fn accept(self: &Arc<Self>, listener: &Listener) {
        loop {
            let accepted = listener.accept();
            if self.lock().is_stopping {
                return;
            }
            if let Err(error) = accepted.and_then(|socket| self.admit(socket)) {
                self.observer.saw(&Event::TurnedAway { reason: error.to_string() });
                // Mostly the system's want of descriptors or threads, which passes.
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }

    fn admit(self: &Arc<Self>, socket: Socket) -> io::Result<()> {
        let socket = Arc::new(socket);
        let client = {
            let mut clients = self.lock();
            if clients.sockets.len() >= CLIENTS_MAX {
                let text = format!("{CLIENTS_MAX} clients are there already");
                return Err(io::Error::other(text));
            }
            clients.came += 1;
            let client = clients.came;
            clients.sockets.insert(client, Arc::clone(&socket));
            client
        };
        let seat = Seat { shared: Arc::clone(self), client };
        thread::Builder::new()
            .name(format!("nbd-{client}"))
            .spawn(move || seat.host(&socket))
            .map(drop)
    }
}

impl Seat {
    fn host(&self, socket: &Socket) {
        let client = self.client;
        let event = match self.converse(socket) {
            // A client whose program or network ended needs no report.
            Ok(()) | Err(Break::Gone(_)) => Event::Left { client },
            Err(reason) => Event::Dropped { client, reason: reason.to_string() },
        };
        socket.cut();
        self.shared.observer.saw(&event);
    }

    fn converse(&self, socket: &Socket) -> Result<(), Break> {
        let mut connection = Connection::new(socket);
        let Some(terms) = connection.negotiate(&self.shared.exports)? else { return Ok(()) };
        let export = terms.export.name.clone();
        self.shared.observer.saw(&Event::Came { client: self.client, export });
        match terms.export.pace.clone() {
            Some(pace) => paced::serve(&mut connection, terms, &pace, self.shared.begun),
            None => connection.serve(terms),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.lock().sockets.remove(&self.client);
        self.shared.went.notify_all();
    }
}

#[cfg(test)]
mod tests;
