//! A server of virtual machines: a listener on a Unix socket, and a thread for each machine monitor
//! that connects.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::descriptor_socket::cut;
use crate::server::{GRACE, LAST_GRACE};
use crate::{Event, Exports, Listener, Observer};

/// Clients at once.
const CLIENTS_MAX: usize = 16;
/// Pause after the system had nothing left to accept a client with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves one client, given its number and connection, until it goes.
type Serve = dyn Fn(u64, OwnedFd) -> Result<(), Break> + Send + Sync;

/// Reason why a client is dropped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Break {
    /// The client sent what cannot be understood or carried out.
    #[error("{0}")]
    Violation(String),
    /// The connection broke, or the system refused something.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A server until it is dropped.
#[derive(Debug)]
pub(crate) struct VmListener {
    shared: Arc<Shared>,
    listener: Arc<Listener>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    /// Name of the protocol.
    protocol: &'static str,
    exports: Exports,
    observer: Arc<dyn Observer>,
    serve: Box<Serve>,
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

impl VmListener {
    /// Serves the clients of `listener`.
    ///
    /// # Errors
    /// Fails if the system has no thread for the listener.
    pub(crate) fn start(
        (protocol, exports): (&'static str, Exports),
        listener: Listener,
        observer: Arc<dyn Observer>,
        serve: Box<Serve>,
    ) -> io::Result<Self> {
        let (clients, went) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { protocol, exports, observer, serve, clients, went });
        let listener = Arc::new(listener);
        let (own, place) = (Arc::clone(&shared), Arc::clone(&listener));
        let builder = thread::Builder::new().name(format!("{protocol}-accept"));
        let acceptor = Some(builder.spawn(move || own.accept(&place))?);
        Ok(Self { shared, listener, acceptor })
    }
}

/// Takes no more clients, and completes the requests that were taken from their queues. A device
/// that hangs in one is waited for no longer than by [`crate::Server::stop`].
impl Drop for VmListener {
    fn drop(&mut self) {
        self.shared.lock().is_stopping = true;
        self.listener.shut_down();
        if let Some(acceptor) = self.acceptor.take() {
            // A thread that panicked accepts no client either.
            let _ = acceptor.join();
        }
        let mut clients = self.shared.lock();
        clients.sockets.values().for_each(cut);
        let deadline = Instant::now() + GRACE + LAST_GRACE;
        while !clients.sockets.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.shared.went.wait_timeout(clients, left);
            clients = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").field("exports", &self.exports).finish_non_exhaustive()
    }
}

/// A place among the clients, free again however its thread ends.
struct Seat {
    shared: Arc<Shared>,
    client: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.lock().sockets.remove(&self.client);
        self.shared.went.notify_all();
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
                self.observer.saw(&Event::Rejected { clients: 1, reason: error.to_string() });
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }

    fn admit(self: &Arc<Self>, socket: OwnedFd) -> io::Result<()> {
        let client = self.exports.number_client();
        let mut clients = self.lock();
        if clients.sockets.len() >= CLIENTS_MAX {
            let text = format!("the limit of {CLIENTS_MAX} virtual machines is reached");
            return Err(io::Error::other(text));
        }
        clients.sockets.insert(client, socket.try_clone()?);
        drop(clients);
        let seat = Seat { shared: Arc::clone(self), client };
        let builder = thread::Builder::new().name(format!("{}-{client}", self.protocol));
        builder.spawn(move || seat.host(socket)).map(drop)
    }
}

impl Seat {
    fn host(&self, socket: OwnedFd) {
        let Self { shared, client } = self;
        let client = *client;
        let export = shared.exports.iter().next().map_or_else(String::new, |it| it.name.clone());
        shared.observer.saw(&Event::Connected { client, export });
        let event = match (shared.serve)(client, socket) {
            // A client whose program ended needs no report.
            Ok(()) | Err(Break::System(_)) => Event::Disconnected { client },
            Err(Break::Violation(reason)) => Event::Dropped { client, reason },
        };
        shared.observer.saw(&event);
    }
}
