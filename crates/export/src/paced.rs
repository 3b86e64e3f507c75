//! A client whose replies keep to the times of a model.
//!
//! ```text
//!   the client's thread:  receive ──► carry out ──► Outbox: held by ticket
//!                                                      │ due
//!   the thread of all clients:                         └──► sent, as far as the socket takes it
//!                                                              │ the rest, or encrypted
//!   the client's thread:                          sends it ◄───┘
//! ```

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use crate::connection::{Break, Connection, advance, elapsed, violated};
use crate::conversation::{Conversation, REPLIES_BYTES_MAX};
use crate::limits::REQUEST_BYTES_MAX;
use crate::limits::{Loan, OWN_BUFFER_BYTES, PROGRESS_BYTES};
use crate::pace::Holder;
use crate::recorder::Tape;
use crate::socket::Socket;
use crate::{Lane, Pace, PacedCommand};

/// Most bytes of replies that are held back before receiving stops: in the client's own memory, and
/// in lent memory.
const HELD_BYTES_OWN: usize = OWN_BUFFER_BYTES;
const HELD_BYTES_LENT: usize = REQUEST_BYTES_MAX as usize;

/// Replies on their way to one client.
struct Outbox {
    socket: Arc<Socket>,
    /// True if its own thread alone can send to it.
    is_encrypted: bool,
    /// Wakes its thread.
    wake: OwnedFd,
    outgoing: Mutex<Outgoing>,
}

#[derive(Default)]
struct Outgoing {
    /// Replies that are not due yet, by ticket.
    held: BTreeMap<u32, HeldReply>,
    /// Replies that are due, and what was answered by them.
    ready: Vec<u8>,
    answered: Vec<(PacedCommand, Instant)>,
    /// Bytes of all of them.
    bytes: usize,
    /// True while the client's own thread sends: no other thread does then.
    is_sending: bool,
    /// True if the client's thread waits for something to be sent, or is about to.
    is_awaited: bool,
    /// Reason why nothing can be sent any more.
    failure: Option<io::Error>,
    /// Recorder of the client's commands, if there is one.
    tape: Option<Tape>,
}

/// A reply that is held back, with its command and the time of its issue.
struct HeldReply {
    bytes: Vec<u8>,
    asked: PacedCommand,
    issued_at: Instant,
    is_done: bool,
}

/// The client's own thread.
struct Client<'a, 'b> {
    connection: &'a mut Connection<'b>,
    outbox: Arc<Outbox>,
    lane: Lane,
    /// Memory for what is beyond the client's own.
    loan: Option<Loan>,
    /// Time at which something was received last.
    received_at: Instant,
}

/// Serves a client at the pace of a model; the time of what else is timed began at `begun`.
pub(crate) fn serve<C: Conversation>(
    connection: &mut Connection<'_>,
    session: &mut C,
    pace: &Arc<Pace>,
    begun: Instant,
) -> Result<(), Break> {
    let outbox = Arc::new(Outbox::new(connection)?);
    let holder = Arc::<Outbox>::clone(&outbox);
    let lane = Lane::new(pace, holder).map_err(Break::Unpaced)?;
    let received_at = Instant::now();
    let mut client = Client { connection, outbox, lane, loan: None, received_at };
    let mut has_input = true;
    loop {
        client.connection.catch_up(session, begun)?;
        let wanted_bytes = client.take(session)?;
        // What was just taken may have something to wait for.
        let timed = advance(session, begun, &mut client.connection.replies)?;
        client.send()?;
        let (is_idle, bytes) = client.look()?;
        if wanted_bytes.is_none() && is_idle {
            continue;
        }
        let is_last = session.is_over() || !has_input;
        if is_idle && is_last {
            return Ok(());
        }
        // Memory for a large request is waited for by those alone who hold nothing.
        let bytes_max = client.bytes_max(bytes);
        let receives = wanted_bytes
            .filter(|it| !is_last && (*it <= OWN_BUFFER_BYTES || is_idle) && bytes < bytes_max);
        let is_awaited = receives.is_none() || client.loan.is_some();
        let patience = timed.map(|at| Duration::from_nanos(at.saturating_sub(elapsed(begun)).0));
        if client.wait(receives.is_some(), is_awaited, patience)? {
            has_input = client.connection.receive(receives.unwrap_or(1))? > 0;
            client.received_at = Instant::now();
        }
    }
}

impl Client<'_, '_> {
    /// Carries out what was received, and holds the replies. Returns how much the next request
    /// needs; none where it needs room that is there once what is held has gone.
    fn take<C: Conversation>(&mut self, session: &mut C) -> Result<Option<usize>, Break> {
        let mut held_bytes = self.outbox.lock().bytes;
        while !session.is_over() && held_bytes < self.bytes_max(held_bytes) {
            let ready_bytes = self.connection.replies.len();
            let input = self.connection.inbox.received();
            let next = session.take_next(input, &mut self.connection.replies);
            let next = match next {
                Ok(next) => next,
                Err(violation) => {
                    // It may say why.
                    self.send()?;
                    return Err(violated(violation));
                }
            };
            session.settle(&mut self.connection.replies);
            self.connection.inbox.forget(next.used_bytes);
            if next.room_bytes > 0 && (ready_bytes > 0 || held_bytes > 0) {
                return Ok(None);
            }
            if next.room_bytes > 0 {
                self.connection.make_room(next.room_bytes)?;
                continue;
            }
            if next.wanted_bytes > 0 {
                return Ok(Some(next.wanted_bytes));
            }
            // A request that the model does not have is answered at once. What was received may
            // hold thousands whose replies are large, such as log pages.
            let Some(asked) = next.asked else {
                if self.connection.replies.len() >= REPLIES_BYTES_MAX {
                    self.send()?;
                }
                continue;
            };
            let bytes = self.connection.replies.take_from(ready_bytes);
            if bytes.len() > HELD_BYTES_OWN {
                self.loan = self.connection.end_loan();
            }
            let issued_at = self.received_at;
            let reply = HeldReply { bytes, asked, issued_at, is_done: next.is_done };
            held_bytes = self.outbox.hold(&self.lane, reply);
        }
        Ok(Some(1))
    }

    /// Returns the most bytes that may be held now. Never waits for memory: others may wait for
    /// what is held here.
    fn bytes_max(&mut self, held_bytes: usize) -> usize {
        if held_bytes < HELD_BYTES_OWN {
            return HELD_BYTES_OWN;
        }
        if self.loan.is_none() {
            self.loan = self.connection.lend_at_once(HELD_BYTES_LENT);
        }
        match &self.loan {
            Some(loan) if !self.connection.memory.is_wanted() => HELD_BYTES_OWN + loan.bytes(),
            _ => HELD_BYTES_OWN,
        }
    }

    /// Sends replies that the model does not delay, and due ones that were left to this thread.
    fn send(&mut self) -> Result<(), Break> {
        let mut outgoing = self.outbox.lock();
        if self.connection.replies.is_empty() && outgoing.ready.is_empty() {
            return Ok(());
        }
        outgoing.is_sending = true;
        drop(outgoing);
        self.connection.send()?;
        let mut outgoing = self.outbox.lock();
        while !outgoing.ready.is_empty() {
            let (bytes, answered) = outgoing.take_ready();
            outgoing.note_sending();
            drop(outgoing);
            self.connection.send_bytes(&bytes)?;
            outgoing = self.outbox.lock();
            outgoing.bytes -= bytes.len();
            outgoing.record(answered);
        }
        outgoing.is_sending = false;
        Ok(())
    }

    /// True if nothing is on its way to the client, and the bytes that are on it. Whatever is sent
    /// from here on wakes this thread: otherwise it could wait for what has gone before it waits.
    fn look(&mut self) -> Result<(bool, usize), Break> {
        let mut outgoing = self.outbox.lock();
        if let Some(failure) = outgoing.failure.take() {
            return Err(Break::Gone(failure));
        }
        let (is_idle, bytes) = (outgoing.held.is_empty() && outgoing.bytes == 0, outgoing.bytes);
        let is_all_taken = outgoing.ready.is_empty();
        outgoing.is_awaited = !is_idle;
        drop(outgoing);
        if let Some(loan) = self.loan.as_ref().filter(|_| is_all_taken) {
            // What is left is not due yet: the client waits for the model.
            loan.note_moved(PROGRESS_BYTES);
        }
        if bytes < HELD_BYTES_OWN {
            self.loan = None;
        }
        Ok((is_idle, bytes))
    }

    /// Waits until something can be received that may be, or can be sent, or for this long; if
    /// `is_awaited` also until the other thread has sent something since [`Client::look`]. Returns
    /// whether something can be received.
    fn wait(
        &mut self,
        takes_more: bool,
        is_awaited: bool,
        patience: Option<Duration>,
    ) -> Result<bool, Break> {
        self.outbox.lock().is_awaited = is_awaited;
        let has_input = self.connection.wait_also(takes_more, &self.outbox.wake, patience)?;
        self.outbox.lock().is_awaited = false;
        Ok(has_input)
    }
}

impl Outbox {
    fn new(connection: &mut Connection<'_>) -> Result<Self, Break> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = eventfd(0, flags).map_err(|errno| Break::Unpaced(errno.into()))?;
        let outgoing = Outgoing { tape: connection.tape.take(), ..Outgoing::default() };
        let (socket, is_encrypted) = (connection.socket(), connection.is_encrypted());
        Ok(Self { socket, is_encrypted, wake, outgoing: Mutex::new(outgoing) })
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a reply until the model is done with its command. Returns the bytes that are held.
    fn hold(&self, lane: &Lane, reply: HeldReply) -> usize {
        let mut outgoing = self.lock();
        let ticket = lane.submit(reply.issued_at, reply.asked);
        outgoing.bytes += reply.bytes.len();
        let replaced = outgoing.held.insert(ticket, reply);
        assert!(replaced.is_none(), "tickets wrap around after 2^32 commands");
        outgoing.bytes
    }

    fn wake(&self) {
        // It fails only when it is as awake as can be.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Holder for Outbox {
    fn send_due(&self, tickets: &[u32]) {
        let mut outgoing = self.lock();
        for ticket in tickets {
            let Some(reply) = outgoing.held.remove(ticket) else { continue };
            outgoing.ready.extend_from_slice(&reply.bytes);
            if reply.is_done && outgoing.tape.is_some() {
                outgoing.answered.push((reply.asked, reply.issued_at));
            }
        }
        if outgoing.is_sending {
            return;
        }
        if !self.is_encrypted {
            outgoing.note_sending();
            outgoing.send_at_once(&self.socket);
        }
        let is_left = !outgoing.ready.is_empty() || outgoing.failure.is_some();
        if is_left || outgoing.is_awaited {
            drop(outgoing);
            self.wake();
        }
    }
}

impl Outgoing {
    /// Sends as much as the socket takes.
    fn send_at_once(&mut self, socket: &Socket) {
        let mut sent = 0;
        while sent < self.ready.len() && self.failure.is_none() {
            match socket.send_at_once(&self.ready[sent..]) {
                Ok(Some(more)) => sent += more,
                Ok(None) => break,
                Err(error) => self.failure = Some(error),
            }
        }
        let sent = if self.failure.is_some() { self.ready.len() } else { sent };
        self.ready.drain(..sent);
        self.bytes -= sent;
        if self.ready.is_empty() {
            let answered = std::mem::take(&mut self.answered);
            self.record(answered);
        }
    }

    fn take_ready(&mut self) -> (Vec<u8>, Vec<(PacedCommand, Instant)>) {
        (std::mem::take(&mut self.ready), std::mem::take(&mut self.answered))
    }

    /// Notes when replies are sent, if there is a recorder.
    fn note_sending(&mut self) {
        if let Some(tape) = &mut self.tape {
            tape.note_sending();
        }
    }

    /// Records the commands that were just answered, if there is a recorder.
    fn record(&mut self, answered: Vec<(PacedCommand, Instant)>) {
        if let Some(tape) = &mut self.tape {
            tape.keep_issued(answered.into_iter());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io::{Read as _, Write as _};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;
    use crate::conversation::Next;
    use crate::limits::Memory;
    use crate::pace::tests::drive;
    use crate::{Limits, Replies};

    /// Bytes of the answer to each byte.
    const ANSWER_BYTES: usize = 64 << 10;

    /// A conversation whose requests are bytes that the model does not have.
    #[derive(Default)]
    struct Talkative {
        answered: Option<Vec<PacedCommand>>,
        /// Most bytes of replies that waited when a request came.
        waiting_max: usize,
    }

    impl Conversation for Talkative {
        type Violation = Infallible;

        fn begin_next(&mut self, input: &[u8], replies: &mut Replies) -> Result<Next, Infallible> {
            if input.is_empty() {
                return Ok(Next::wants(0, 1));
            }
            self.waiting_max = self.waiting_max.max(replies.len());
            replies.room(ANSWER_BYTES).fill(7);
            Ok(Next::used(1))
        }

        fn finish_reads(&mut self, _replies: &mut Replies) {}

        fn settle(&mut self, _replies: &mut Replies) {}

        fn is_over(&self) -> bool {
            false
        }

        fn answered(&mut self) -> &mut Option<Vec<PacedCommand>> {
            &mut self.answered
        }
    }

    #[test]
    fn replies_to_many_requests_that_came_at_once_are_sent_before_all_of_them_are_there() {
        const REQUESTS: usize = 400;
        let (own_end, mut client) = UnixStream::pair().unwrap();
        let (socket, memory) = (Arc::new(Socket::from(own_end)), Memory::new(Limits::default()));
        client.write_all(&[1; REQUESTS]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            client.read_to_end(&mut bytes).unwrap();
            bytes.len()
        });
        let mut session = Talkative::default();
        let mut connection = Connection::new(&socket, &memory);
        let pace = Arc::new(Pace::new(drive()));
        serve(&mut connection, &mut session, &pace, Instant::now()).unwrap();
        drop(connection);
        drop(socket);
        assert_eq!(reader.join().unwrap(), REQUESTS * ANSWER_BYTES);
        let (most, limit) = (session.waiting_max, REPLIES_BYTES_MAX);
        assert!(most < limit, "{most} bytes wait, {limit} are the limit");
    }

    #[test]
    fn what_is_sent_between_a_look_and_the_wait_for_it_ends_the_wait() {
        let (own_end, _client) = UnixStream::pair().unwrap();
        let (socket, memory) = (Arc::new(Socket::from(own_end)), Memory::new(Limits::default()));
        let mut connection = Connection::new(&socket, &memory);
        let pace = Arc::new(Pace::new(drive()));
        let outbox = Arc::new(Outbox::new(&mut connection).unwrap());
        let holder = Arc::<Outbox>::clone(&outbox);
        let lane = Lane::new(&pace, holder).unwrap();
        let received_at = Instant::now();
        let mut client =
            Client { connection: &mut connection, outbox, lane, loan: None, received_at };
        let op = blockio::Op::Read;
        let asked = PacedCommand { op, offset: 0, length: 4096, fua: false };
        let reply = HeldReply { bytes: vec![7; 16], asked, issued_at: received_at, is_done: true };
        // On its way when this thread looks, and due only then.
        client.outbox.lock().bytes += reply.bytes.len();
        let (is_idle, _) = client.look().unwrap();
        client.outbox.lock().bytes -= reply.bytes.len();
        client.outbox.hold(&client.lane, reply);
        while client.outbox.lock().bytes > 0 {
            thread::yield_now();
        }
        let patience = Duration::from_mins(2);
        let begun = Instant::now();
        client.wait(false, !is_idle, Some(patience)).unwrap();
        assert!(begun.elapsed() < patience, "woken by what was sent");
    }
}
