//! Limits of a server: number of clients, and memory for their requests and replies.
//!
//! ```text
//!   large request ──► wait, first come first served ──► received or read, sent ──► given back
//!                         │ a client has memory and moves next to nothing for STALL
//!                         └──► that connection ends
//! ```
//!
//! Each client has [`OWN_BYTES`] of its own, in which small requests are carried out without asking
//! for more. The rest is shared: it is lent for one request at a time, and no client waits for
//! memory while it holds some, so that clients that receive and send always get on.
//!
//! **Invariants**
//! - What is lent never exceeds what is shared.
//! - No socket is used while the lock is held.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blockio::Bytes;

use crate::socket::Socket;

/// Most bytes that one request reads or writes; clients are told so.
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// Memory that each client has: for requests, for replies, and for encryption.
pub(crate) const OWN_BYTES: u64 = 2 * OWN_BUFFER_BYTES as u64 + (256 << 10);
/// The part of it for requests, and that for replies.
pub(crate) const OWN_BUFFER_BYTES: usize = 1 << 20;
/// Shared memory without which the largest request could never be carried out.
const SHARED_BYTES_MIN: u64 = REQUEST_BYTES_MAX as u64 + OWN_BUFFER_BYTES as u64;
/// Time for which a client with shared memory may make no progress while others wait for some.
pub(crate) const STALL: Duration = Duration::from_secs(3);
/// Bytes that count as progress. Single bytes do not: a client that sends one now and then would
/// keep the memory for ever.
pub(crate) const PROGRESS_BYTES: usize = 256 << 10;

/// Limits for all clients of a server together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients at once that have finished the handshake; at least 1.
    pub connections: usize,
    /// Clients at once of one peer, a process or, over TCP, a machine; at least 1.
    pub connections_per_peer: usize,
    /// Memory for requests and replies of all of them.
    pub memory_bytes: u64,
}

/// Places for clients that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Places of all of them.
    pub(crate) all: usize,
    /// Places that those of one front end may have.
    pub(crate) of_front_end: usize,
    /// Places that those of one peer may have.
    pub(crate) of_peer: usize,
}

/// Error of limits within which no client can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// No client could ever come.
    #[error("the maximum number of clients is 0, must be at least 1")]
    NoClients,
    /// Too little memory for so many clients.
    #[error(
        "{memory} of memory for {connections} clients, must be at least {memory_min}; raise the \
         memory or lower the number of clients"
    )]
    Memory {
        /// Memory that was given.
        memory: Bytes,
        /// Clients at once.
        connections: usize,
        /// Least that is needed.
        memory_min: Bytes,
    },
}

impl Default for Limits {
    /// 256 clients, and 768 MiB, so that a server stays within 1 GiB.
    fn default() -> Self {
        let connections = 256;
        let connections_per_peer = Self::per_peer(connections);
        Self { connections, connections_per_peer, memory_bytes: 768 << 20 }
    }
}

impl Limits {
    /// Returns the limits, if clients can be served within them.
    ///
    /// # Errors
    /// Fails if there may be no client, or too little memory for so many.
    pub fn checked(self) -> Result<Self, LimitsError> {
        let Self { connections, connections_per_peer, memory_bytes } = self;
        if connections == 0 || connections_per_peer == 0 {
            return Err(LimitsError::NoClients);
        }
        let own_bytes = OWN_BYTES.saturating_mul(connections as u64);
        // Whole MiB, so that it can be typed.
        let memory_min = own_bytes.saturating_add(SHARED_BYTES_MIN).next_multiple_of(1 << 20);
        if memory_bytes < memory_min {
            let (memory, memory_min) = (Bytes(memory_bytes), Bytes(memory_min));
            return Err(LimitsError::Memory { memory, connections, memory_min });
        }
        Ok(self)
    }

    /// Returns the clients of one peer where nothing else is given: seven eighths of all, rounded
    /// up, so that one program leaves some for others.
    pub const fn per_peer(connections: usize) -> usize {
        connections - connections / 8
    }

    /// Returns the places where so many front ends share them: each leaves a quarter to each
    /// other one.
    pub(crate) fn room(self, front_ends: usize) -> Room {
        let left = self.connections / 4 * front_ends.saturating_sub(1);
        Room {
            all: self.connections,
            of_front_end: self.connections.saturating_sub(left).max(1),
            of_peer: self.connections_per_peer,
        }
    }

    /// Returns the bytes that remain for large requests.
    fn shared_bytes(self) -> u64 {
        let own_bytes = OWN_BYTES.saturating_mul(self.connections as u64);
        self.memory_bytes.saturating_sub(own_bytes).max(SHARED_BYTES_MIN)
    }
}

/// The memory that clients share.
pub(crate) struct Memory {
    state: Mutex<MemoryState>,
    /// Signalled whenever memory is given back.
    freed: Condvar,
}

struct MemoryState {
    free_bytes: u64,
    /// Numbers of the requests for memory that wait, the first at the front.
    queue: VecDeque<u64>,
    /// Loans, by the number of their request.
    loans: BTreeMap<u64, LoanRecord>,
    /// Number of the latest request for memory.
    number: u64,
    is_over: bool,
}

struct LoanRecord {
    bytes: u64,
    socket: Arc<Socket>,
    /// Bytes that the client moved since `moved_at`.
    moved_bytes: usize,
    moved_at: Instant,
    is_recalled: bool,
}

/// Shared memory that a client has; given back when dropped.
pub(crate) struct Loan {
    memory: Arc<Memory>,
    number: u64,
    bytes: u64,
}

impl Memory {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let state = MemoryState {
            free_bytes: limits.shared_bytes(),
            queue: VecDeque::new(),
            loans: BTreeMap::new(),
            number: 0,
            is_over: false,
        };
        Arc::new(Self { state: Mutex::new(state), freed: Condvar::new() })
    }

    /// Waits for so many bytes, at most what the largest request takes, for the client at the other
    /// end of `socket`. None once everything ends.
    pub(crate) fn lend(self: &Arc<Self>, socket: &Arc<Socket>, bytes: u64) -> Option<Loan> {
        let mut state = self.lock();
        let number = state.next_number();
        state.queue.push_back(number);
        loop {
            if state.is_over {
                return None;
            }
            if state.queue.front() == Some(&number) && state.free_bytes >= bytes {
                state.queue.pop_front();
                state.note(number, socket, bytes);
                // The next one's may be there as well.
                self.freed.notify_all();
                return Some(Loan { memory: Arc::clone(self), number, bytes });
            }
            let (stalled, patience) = state.recall(Instant::now());
            if stalled.is_empty() {
                let waited = self.freed.wait_timeout(state, patience);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(state);
            for socket in &stalled {
                socket.cut();
            }
            state = self.lock();
        }
    }

    /// Lends so many bytes, if they are there and no client waits for some.
    pub(crate) fn lend_at_once(self: &Arc<Self>, socket: &Arc<Socket>, bytes: u64) -> Option<Loan> {
        let mut state = self.lock();
        if !state.queue.is_empty() || state.free_bytes < bytes {
            return None;
        }
        let number = state.next_number();
        state.note(number, socket, bytes);
        Some(Loan { memory: Arc::clone(self), number, bytes })
    }

    /// True if a client waits for memory.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.lock().queue.is_empty()
    }

    /// Releases all waiting clients.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.freed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryState {
    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn note(&mut self, number: u64, socket: &Arc<Socket>, bytes: u64) {
        self.free_bytes -= bytes;
        let (socket, moved_at) = (Arc::clone(socket), Instant::now());
        let lent = LoanRecord { bytes, socket, moved_bytes: 0, moved_at, is_recalled: false };
        self.loans.insert(number, lent);
    }

    /// The connections that made no progress for too long, each once, and the time until there may
    /// be more of them.
    fn recall(&mut self, now: Instant) -> (Vec<Arc<Socket>>, Duration) {
        let (mut stalled, mut patience) = (Vec::new(), STALL);
        for lent in self.loans.values_mut().filter(|lent| !lent.is_recalled) {
            let left = (lent.moved_at + STALL).saturating_duration_since(now);
            if left.is_zero() {
                lent.is_recalled = true;
                stalled.push(Arc::clone(&lent.socket));
            } else {
                patience = patience.min(left);
            }
        }
        (stalled, patience)
    }
}

impl Loan {
    /// Returns the size of the loan in bytes.
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Records that the client moved so many bytes.
    pub(crate) fn note_moved(&self, bytes: usize) {
        if let Some(lent) = self.memory.lock().loans.get_mut(&self.number) {
            lent.moved_bytes = lent.moved_bytes.saturating_add(bytes);
            if lent.moved_bytes >= PROGRESS_BYTES {
                (lent.moved_bytes, lent.moved_at) = (0, Instant::now());
            }
        }
    }

    /// True if its connection was ended because it made no progress while others waited.
    pub(crate) fn is_recalled(&self) -> bool {
        self.memory.lock().loans.get(&self.number).is_some_and(|lent| lent.is_recalled)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let mut state = self.memory.lock();
        if let Some(lent) = state.loans.remove(&self.number) {
            state.free_bytes += lent.bytes;
        }
        drop(state);
        self.memory.freed.notify_all();
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Memory")
            .field("free_bytes", &self.lock().free_bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn few(connections: usize) -> Limits {
        Limits { connections, ..Limits::default() }
    }

    /// Memory of which so much is shared.
    fn memory(shared_bytes: u64) -> Arc<Memory> {
        Memory::new(Limits { memory_bytes: OWN_BYTES + shared_bytes, ..few(1) })
    }

    fn pair() -> (Arc<Socket>, UnixStream) {
        let (own_end, client) = UnixStream::pair().unwrap();
        (Arc::new(Socket::from(own_end)), client)
    }

    #[test]
    fn limits_that_let_no_client_in_are_refused_with_what_is_needed() {
        assert!(Limits::default().checked().is_ok());
        let none = Limits { connections: 0, ..Limits::default() };
        assert_eq!(none.checked(), Err(LimitsError::NoClients));
        let little = Limits { memory_bytes: 10 * MIB, ..few(4) };
        assert_eq!(
            little.checked().unwrap_err().to_string(),
            "10 MiB of memory for 4 clients, must be at least 42 MiB; raise the memory or lower \
             the number of clients"
        );
        assert!(Limits { memory_bytes: 42 * MIB, ..few(4) }.checked().is_ok());
    }

    #[test]
    fn a_front_end_leaves_a_quarter_to_another_one_and_a_peer_an_eighth_to_others() {
        let room = |connections, front_ends| few(connections).room(front_ends).of_front_end;
        assert_eq!([room(256, 1), room(256, 2), room(3, 2), room(1, 2)], [256, 192, 3, 1]);
        assert_eq!([256, 9, 7, 1].map(Limits::per_peer), [224, 8, 7, 1]);
    }

    #[test]
    fn who_comes_first_is_lent_to_first_and_never_more_than_there_is() {
        let memory = memory(64 * MIB);
        let (socket, _client) = pair();
        let first = memory.lend(&socket, 40 * MIB).unwrap();
        assert!(memory.lend_at_once(&socket, 32 * MIB).is_none());
        thread::scope(|scope| {
            let large = scope.spawn(|| memory.lend(&socket, 64 * MIB).unwrap());
            while !memory.is_wanted() {
                thread::yield_now();
            }
            assert!(memory.lend_at_once(&socket, MIB).is_none(), "it would overtake");
            drop(first);
            let large = large.join().unwrap();
            assert_eq!(memory.lock().free_bytes, 0);
            drop(large);
        });
        assert_eq!(memory.lock().free_bytes, 64 * MIB);
    }

    #[test]
    fn who_moves_nothing_while_others_wait_loses_the_connection() {
        let memory = memory(64 * MIB);
        let (stuck, mut its_client) = pair();
        let (socket, _client) = pair();
        let stalled = memory.lend(&stuck, 64 * MIB).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| memory.lend(&socket, MIB).is_some());
            // It ends for its client, and so for the thread that would send to it.
            assert_eq!(its_client.read(&mut [0]).unwrap(), 0);
            assert!(stalled.is_recalled());
            drop(stalled);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn no_client_waits_beyond_the_end() {
        let memory = memory(64 * MIB);
        let (socket, _client) = pair();
        let _all = memory.lend(&socket, 64 * MIB).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| memory.lend(&socket, MIB).is_none());
            memory.end();
            assert!(waiting.join().unwrap());
        });
    }
}
