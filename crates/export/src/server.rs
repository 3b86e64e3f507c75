//! The server: a thread for each place it listens at, and one for each client.
//!
//! ```text
//!   start ──► serving ──► stop: no new clients, no new requests ──► flush ──► gone
//!
//!   client: accepted ──► handshake ──► served ──► gone
//! ```
//!
//! Those whose handshake is under way have a limit of their own ([`Seats`]): however many come and
//! say nothing, those that are served stay, and one more is let in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::connection::{Break, Connection, elapsed};
use crate::conversation::Conversation;
use crate::limits::{Limits, Memory, Room};
use crate::nvme::{self, Subsystem};
use crate::recorder::Tape;
use crate::seats::{SeatedClient, Seats};
use crate::socket::Socket;
use crate::{Exports, Listener, Pace, nbd, paced};
use device::DeviceError;

/// Time from one report of rejected clients to the next.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Time that clients have for their last replies once the server ends.
pub(crate) const GRACE: Duration = Duration::from_secs(3);
/// Time after [`GRACE`] that a device has to finish the last requests.
pub(crate) const LAST_GRACE: Duration = Duration::from_secs(30);
/// Pause after the system had nothing left to accept a client with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Event in the life of a client, for observers of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client finished the handshake.
    Connected {
        /// Number of the client, from 1 in order of arrival.
        client: u64,
        /// Name of the export that it uses.
        export: String,
    },
    /// A host created a controller of the NVMe subsystem.
    HostConnected {
        /// Number of the client, the host's admin queue, from 1 in order of arrival.
        client: u64,
        /// Identifier of the controller.
        controller: u16,
        /// NQN of the host.
        host: String,
    },
    /// A client that had connected disconnected.
    Disconnected {
        /// Number of the client.
        client: u64,
    },
    /// A client that had finished the handshake was dropped.
    Dropped {
        /// Number of the client.
        client: u64,
        /// Reason, as text.
        reason: String,
    },
    /// Clients were rejected, or failed in the handshake. It is told at most every ten seconds: any
    /// process that reaches the port can have it told.
    Rejected {
        /// Number of them since that was told last.
        clients: u64,
        /// Reason for the last of them, as text.
        reason: String,
    },
}

/// Protocol that is spoken at a listener.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// NBD: a client for each connection.
    Nbd,
    /// NVMe/TCP: a queue of a host for each connection.
    Nvme(Arc<Subsystem>),
}

/// Observer of a server's events. Any thread may call it.
pub trait Observer: Send + Sync {
    /// Receives an event.
    fn saw(&self, event: &Event);
}

/// A server that runs until it is stopped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<ServerState>,
    listeners: Vec<Arc<Listener>>,
    acceptors: Vec<JoinHandle<()>>,
}

struct ServerState {
    exports: Exports,
    room: Room,
    /// Memory for requests and replies of all clients.
    memory: Arc<Memory>,
    /// Start of the server, at which modelled time is zero.
    begun: Instant,
    /// Raised once no client gets a reply any more.
    is_cut: Arc<AtomicBool>,
    observer: Box<dyn Observer>,
    clients: Mutex<Clients>,
    /// Signalled whenever a client is gone.
    went: Condvar,
}

#[derive(Default)]
struct Clients {
    seats: Seats<Arc<Socket>>,
    /// The NVMe queues that they are, by number.
    queues: BTreeMap<u64, QueuePlace>,
    is_stopping: bool,
    rejections: Rejections,
}

/// A queue of an NVMe controller, 0 for the admin queue.
struct QueuePlace {
    controller: u16,
    queue: u16,
}

/// Clients that were rejected.
#[derive(Default)]
pub(crate) struct Rejections {
    /// Clients not reported yet.
    untold: u64,
    told_at: Option<Instant>,
}

impl Rejections {
    /// Counts one more. Returns the number to report now, if a report is due.
    pub(crate) fn note(&mut self, now: Instant) -> Option<u64> {
        self.untold += 1;
        if self.told_at.is_some_and(|at| now < at + REPORT_EVERY) {
            return None;
        }
        self.told_at = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

/// Stage that a client came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Handshake,
    /// An I/O queue of a host, which is known by its admin queue.
    Served,
    /// Its connection was told to the observer.
    Known,
}

/// A place among the clients, given back in whatever way its thread ends.
struct Seat {
    shared: Arc<ServerState>,
    protocol: Protocol,
    client: u64,
}

impl Protocol {
    /// The word for it in names of threads.
    const fn word(&self) -> &'static str {
        match self {
            Self::Nbd => "nbd",
            Self::Nvme(_) => "nvme",
        }
    }
}

impl Observer for Arc<dyn Observer> {
    fn saw(&self, event: &Event) {
        self.as_ref().saw(event);
    }
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn saw(&self, event: &Event) {
        self(event);
    }
}

impl Server {
    /// Serves `exports` over NBD, within `limits`, to the clients that come to `listeners`.
    ///
    /// # Errors
    /// Fails if the system has no thread for a listener.
    pub fn start(
        exports: Exports,
        listeners: Vec<Listener>,
        limits: Limits,
        observer: impl Observer + 'static,
    ) -> io::Result<Self> {
        let listeners = listeners.into_iter().map(|listener| (listener, Protocol::Nbd));
        Self::start_each(exports, listeners.collect(), limits, observer)
    }

    /// Serves `exports`, within `limits`, to the clients that come to a listener, over its
    /// protocol.
    ///
    /// # Errors
    /// Fails if the system has no thread for a listener.
    pub fn start_each(
        exports: Exports,
        listeners: Vec<(Listener, Protocol)>,
        limits: Limits,
        observer: impl Observer + 'static,
    ) -> io::Result<Self> {
        let words: BTreeSet<&str> = listeners.iter().map(|(_, protocol)| protocol.word()).collect();
        let shared = Arc::new(ServerState {
            exports,
            room: limits.room(words.len()),
            memory: Memory::new(limits),
            begun: Instant::now(),
            is_cut: Arc::default(),
            observer: Box::new(observer),
            clients: Mutex::default(),
            went: Condvar::new(),
        });
        let mut server = Self { shared, listeners: Vec::new(), acceptors: Vec::new() };
        for (listener, protocol) in listeners {
            if let Protocol::Nvme(subsystem) = &protocol {
                subsystem.add_port(listener.place());
                let shared = Arc::downgrade(&server.shared);
                subsystem.call_to_cut(Box::new(move |controller| {
                    if let Some(shared) = shared.upgrade() {
                        shared.cut_queues(controller);
                    }
                }));
            }
            let (shared, listener) = (Arc::clone(&server.shared), Arc::new(listener));
            server.listeners.push(Arc::clone(&listener));
            let name = format!("{}-accept", protocol.word());
            let accept = move || shared.accept(&listener, &protocol);
            server.acceptors.push(thread::Builder::new().name(name).spawn(accept)?);
        }
        Ok(server)
    }

    /// Takes no more clients and no more requests, answers what was received, and makes it all
    /// durable.
    ///
    /// # Errors
    /// Fails if something acknowledged could not be made durable.
    pub fn stop(mut self) -> Result<(), DeviceError> {
        self.dismiss();
        self.shared.exports.flush()
    }

    fn dismiss(&mut self) {
        if std::mem::replace(&mut self.shared.lock().is_stopping, true) {
            return;
        }
        for listener in self.listeners.drain(..) {
            listener.shut_down();
        }
        for acceptor in self.acceptors.drain(..) {
            // A thread that panicked accepts no client any more.
            let _ = acceptor.join();
        }
        self.shared.each_socket(Socket::end_input);
        if !self.shared.is_empty_within(GRACE) {
            self.shared.memory.end();
            self.shared.each_socket(Socket::cut);
            self.shared.is_cut.store(true, Ordering::Release);
            self.shared.is_empty_within(LAST_GRACE);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl fmt::Debug for ServerState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").field("exports", &self.exports).finish_non_exhaustive()
    }
}

impl ServerState {
    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn each_socket(&self, act: impl Fn(&Socket)) {
        self.lock().seats.sockets().for_each(|socket| act(socket));
    }

    /// Ends the connections of a controller's I/O queues, or of all NVMe hosts.
    fn cut_queues(&self, controller: Option<u16>) {
        let clients = self.lock();
        let is_meant = |it: &QueuePlace| {
            controller.is_none_or(|controller| it.controller == controller && it.queue > 0)
        };
        let meant = clients.queues.iter().filter(|(_, place)| is_meant(place));
        meant.filter_map(|(it, _)| clients.seats.served(*it)).for_each(|socket| socket.cut());
    }

    fn is_empty_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut clients = self.lock();
        while !clients.seats.is_empty() {
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
    fn accept(self: &Arc<Self>, listener: &Listener, protocol: &Protocol) {
        loop {
            let accepted = listener.accept();
            if self.lock().is_stopping {
                return;
            }
            match accepted {
                Ok(socket) => self.admit(socket, protocol),
                Err(error) => {
                    self.reject(error.to_string());
                    // Mostly the system's want of descriptors, which passes.
                    thread::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }

    fn admit(self: &Arc<Self>, socket: Socket, protocol: &Protocol) {
        let socket = Arc::new(socket);
        let (front_end, peer) = (protocol.word(), socket.peer());
        let mut clients = self.lock();
        if let Err(full) = clients.seats.check(self.room, front_end, peer) {
            drop(clients);
            self.reject(full.to_string());
            return;
        }
        let client = self.exports.number_client();
        let seated = SeatedClient { socket: Arc::clone(&socket), front_end, peer };
        let displaced = clients.seats.arrive(client, seated);
        drop(clients);
        if let Some(displaced) = displaced {
            displaced.socket.cut();
        }
        let seat = Seat { shared: Arc::clone(self), protocol: protocol.clone(), client };
        let name = format!("{}-{client}", protocol.word());
        let host = move || seat.host(&socket);
        if let Err(error) = thread::Builder::new().name(name).spawn(host) {
            self.reject(format!("starting a thread for the client: {error}"));
            thread::sleep(ACCEPT_PAUSE);
        }
    }

    fn reject(&self, reason: String) {
        let clients = self.lock().rejections.note(Instant::now());
        // Told without the lock: the observer may take its time.
        if let Some(clients) = clients {
            self.observer.saw(&Event::Rejected { clients, reason });
        }
    }
}

impl Seat {
    fn host(&self, socket: &Arc<Socket>) {
        let client = self.client;
        let (stage, ended) = match &self.protocol {
            Protocol::Nbd => self.converse(socket),
            Protocol::Nvme(subsystem) => self.serve_queue(socket, subsystem),
        };
        let event = match ended {
            // A client whose program or network ended needs no report.
            Ok(()) | Err(Break::Gone(_) | Break::Over) => {
                (stage == Stage::Known).then_some(Event::Disconnected { client })
            }
            Err(reason) if stage == Stage::Handshake => {
                self.shared.reject(reason.to_string());
                None
            }
            Err(reason) => Some(Event::Dropped { client, reason: reason.to_string() }),
        };
        socket.cut();
        if let Some(event) = event {
            self.shared.observer.saw(&event);
        }
    }

    /// Serves an NBD client. Returns how far it came, too.
    fn converse(&self, socket: &Arc<Socket>) -> (Stage, Result<(), Break>) {
        let mut connection = Connection::new(socket, &self.shared.memory);
        let agreed = connection.negotiate(&self.shared.exports);
        if !matches!(agreed, Ok(Some(_))) && self.is_displaced() {
            return (Stage::Handshake, Err(Break::Displaced));
        }
        let begun = agreed.and_then(|terms| match terms {
            Some(terms) => self.begin_service().map(|()| Some(terms)),
            None => Ok(None),
        });
        let terms = match begun {
            Ok(Some(terms)) => terms,
            Ok(None) => return (Stage::Handshake, Ok(())),
            Err(reason) => return (Stage::Handshake, Err(reason)),
        };
        let export = terms.export.name.clone();
        self.shared.observer.saw(&Event::Connected { client: self.client, export });
        let recorder = self.shared.exports.recorder();
        connection.tape = recorder.map(|it| Tape::new(Arc::clone(it), self.client));
        let pace = terms.export.pace.clone();
        let mut session = nbd::Session::new(terms);
        session.end_with(Arc::clone(&self.shared.is_cut));
        (Stage::Known, self.talk(&mut connection, &mut session, pace.as_ref()))
    }

    /// Serves a client that has finished the handshake.
    fn talk<C: Conversation>(
        &self,
        connection: &mut Connection<'_>,
        session: &mut C,
        pace: Option<&Arc<Pace>>,
    ) -> Result<(), Break> {
        let begun = self.shared.begun;
        match pace {
            Some(pace) => paced::serve(connection, session, pace, begun),
            None => connection.serve(session, begun),
        }
    }

    /// Serves a queue of an NVMe host. Returns how far it came, too.
    fn serve_queue(
        &self,
        socket: &Arc<Socket>,
        subsystem: &Arc<Subsystem>,
    ) -> (Stage, Result<(), Break>) {
        let mut connection = Connection::new(socket, &self.shared.memory);
        let (begun, deadline) = (self.shared.begun, Connection::deadline());
        let mut session =
            nvme::Session::new(Arc::clone(subsystem), socket.local_place(), elapsed(begun));
        session.end_with(Arc::clone(&self.shared.is_cut));
        let secured = subsystem
            .secure_channel()
            .map_or(Ok(None), |channel| connection.secure(channel, subsystem.nqn(), deadline));
        let agreed = secured.and_then(|secured| {
            session.secure(secured);
            let is_connected = nvme::Session::is_connected;
            connection.establish(&mut session, is_connected, (begun, deadline))
        });
        if !matches!(agreed, Ok(true)) && self.is_displaced() {
            return (Stage::Handshake, Err(Break::Displaced));
        }
        let begun = agreed.and_then(|_| match session.queue() {
            Some(queue) => self.begin_service().map(|()| Some(queue.clone())),
            None => Ok(None),
        });
        let queue = match begun {
            Ok(Some(queue)) => queue,
            Ok(None) => return (Stage::Handshake, Ok(())),
            Err(reason) => return (Stage::Handshake, Err(reason)),
        };
        let is_admin = queue.number == 0;
        let place = QueuePlace { controller: queue.controller, queue: queue.number };
        self.shared.lock().queues.insert(self.client, place);
        if !session.is_alive() {
            // It went while this queue came, and cut the queues that it knew of.
            return (Stage::Served, Ok(()));
        }
        if is_admin {
            let (client, controller, host) = (self.client, queue.controller, queue.host.clone());
            self.shared.observer.saw(&Event::HostConnected { client, controller, host });
        }
        let recorder = self.shared.exports.recorder();
        connection.tape = recorder.map(|it| Tape::new(Arc::clone(it), self.client));
        let first = self.shared.exports.iter().next();
        let pace = first.and_then(|export| export.pace.clone());
        let ended = self.talk(&mut connection, &mut session, pace.as_ref());
        if is_admin {
            // A controller without its admin queue is gone, and so are its other queues.
            self.shared.cut_queues(Some(queue.controller));
        }
        (if is_admin { Stage::Known } else { Stage::Served }, ended)
    }

    /// Takes its place among those that are served.
    fn begin_service(&self) -> Result<(), Break> {
        Ok(self.shared.lock().seats.begin_service(self.client, self.shared.room)?)
    }

    /// True if a newer client took its place among the handshakes.
    fn is_displaced(&self) -> bool {
        !self.shared.lock().seats.is_handshaking(self.client)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut clients = self.shared.lock();
        clients.seats.leave(self.client);
        clients.queues.remove(&self.client);
        drop(clients);
        self.shared.went.notify_all();
    }
}

#[cfg(test)]
mod tests;
