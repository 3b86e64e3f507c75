//! A server of virtual machines: a listener on a Unix socket, and a thread for each machine monitor
//! that connects.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::connection::HANDSHAKE_PATIENCE;
use crate::descriptor_socket::cut;
use crate::limits::Room;
use crate::seats::{Full, SeatRefusal, SeatedClient, Seats};
use crate::server::{GRACE, LAST_GRACE, Rejections};
use crate::socket::Socket;
use crate::{Event, Exports, Listener, Observer};

/// Virtual machines at once, and those of one process, which leave some for others.
const CLIENTS_MAX: usize = 16;
const CLIENTS_PER_PEER_MAX: usize = 14;
const ROOM: Room =
    Room { all: CLIENTS_MAX, of_front_end: CLIENTS_MAX, of_peer: CLIENTS_PER_PEER_MAX };
/// Pause after the system had nothing left to accept a client with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves one client until it goes.
type Serve = dyn Fn(Arrival) -> Result<(), Break> + Send + Sync;

/// A client that has connected.
pub(crate) struct Arrival {
    /// Its number.
    pub(crate) client: u64,
    pub(crate) socket: OwnedFd,
    pub(crate) handshake: Handshake,
}

/// Handshake of a client, to be completed before its deadline.
pub(crate) struct Handshake {
    seat: Arc<Seat>,
    deadline: Instant,
}

/// Reason why a client is dropped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Break {
    /// The client sent what cannot be understood or carried out.
    #[error("{0}")]
    Violation(String),
    /// The connection broke, or the system refused something.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The client completed its handshake in vain.
    #[error("{0}")]
    Unseated(String),
}

impl From<SeatRefusal> for Break {
    fn from(unseated: SeatRefusal) -> Self {
        Self::Unseated(match unseated {
            SeatRefusal::Full(full) => limit(full),
            SeatRefusal::Displaced => "newer connections displaced this one".to_owned(),
        })
    }
}

/// The limit of virtual machines that is reached, in words.
fn limit(full: Full) -> String {
    match full {
        Full::All(most) | Full::FrontEnd(most) => {
            format!("the limit of {most} virtual machines is reached")
        }
        Full::Peer(most) => {
            format!("the limit of {most} virtual machines of one process is reached")
        }
    }
}

/// A server until it is dropped.
#[derive(Debug)]
pub(crate) struct VmListener {
    shared: Arc<ListenerState>,
    listener: Arc<Listener>,
    acceptor: Option<JoinHandle<()>>,
}

struct ListenerState {
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
    seats: Seats<OwnedFd>,
    rejections: Rejections,
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
        let shared = Arc::new(ListenerState { protocol, exports, observer, serve, clients, went });
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
        clients.seats.sockets().for_each(cut);
        let deadline = Instant::now() + GRACE + LAST_GRACE;
        while !clients.seats.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.shared.went.wait_timeout(clients, left);
            clients = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl fmt::Debug for ListenerState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").field("exports", &self.exports).finish_non_exhaustive()
    }
}

/// A place among the clients, free again however its thread ends.
struct Seat {
    shared: Arc<ListenerState>,
    client: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.lock().seats.leave(self.client);
        self.shared.went.notify_all();
    }
}

impl ListenerState {
    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &Listener) {
        loop {
            let accepted = listener.accept();
            if self.lock().is_stopping {
                return;
            }
            if let Err(error) = accepted.and_then(|socket| self.admit(socket)) {
                self.reject(error.to_string());
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }

    fn reject(&self, reason: String) {
        let clients = self.lock().rejections.note(Instant::now());
        // Without the lock: an observer may take its time.
        if let Some(clients) = clients {
            self.observer.saw(&Event::Rejected { clients, reason });
        }
    }

    fn admit(self: &Arc<Self>, socket: Socket) -> io::Result<()> {
        let (front_end, peer) = (self.protocol, socket.peer());
        let socket = OwnedFd::from(socket);
        let client = self.exports.number_client();
        let mut clients = self.lock();
        clients.seats.check(ROOM, front_end, peer).map_err(|full| io::Error::other(limit(full)))?;
        let seated = SeatedClient { socket: socket.try_clone()?, front_end, peer };
        let displaced = clients.seats.arrive(client, seated);
        drop(clients);
        if let Some(displaced) = displaced {
            cut(&displaced.socket);
        }
        let seat = Arc::new(Seat { shared: Arc::clone(self), client });
        let builder = thread::Builder::new().name(format!("{}-{client}", self.protocol));
        builder.spawn(move || seat.host(socket)).map(drop)
    }
}

impl Handshake {
    /// Time until which it must be complete.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Has the client served from now on.
    ///
    /// # Errors
    /// Fails if there is no place for it.
    pub(crate) fn complete(self) -> Result<(), Break> {
        let Seat { shared, client } = &*self.seat;
        shared.lock().seats.begin_service(*client, ROOM)?;
        let export = shared.exports.iter().next().map_or_else(String::new, |it| it.name.clone());
        shared.observer.saw(&Event::Connected { client: *client, export });
        Ok(())
    }
}

impl Seat {
    fn host(self: &Arc<Self>, socket: OwnedFd) {
        let Self { shared, client } = &**self;
        let client = *client;
        let deadline = Instant::now() + HANDSHAKE_PATIENCE;
        let handshake = Handshake { seat: Arc::clone(self), deadline };
        let ended = (shared.serve)(Arrival { client, socket, handshake });
        let is_known = shared.lock().seats.served(client).is_some();
        match ended {
            Err(Break::Violation(reason)) if is_known => {
                shared.observer.saw(&Event::Dropped { client, reason });
            }
            // A client whose program ended needs no report.
            _ if is_known => shared.observer.saw(&Event::Disconnected { client }),
            Err(Break::System(error)) if error.kind() == io::ErrorKind::TimedOut => {
                let patience_s = HANDSHAKE_PATIENCE.as_secs();
                let reason = format!("the handshake was not complete within {patience_s} s");
                shared.reject(reason);
            }
            Err(Break::Violation(reason) | Break::Unseated(reason)) => shared.reject(reason),
            Ok(()) | Err(Break::System(_)) => {}
        }
    }
}
