//! The thread of one client: bytes from its socket, through handshake and session, and back.

use std::error::Error;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockio::Nanos;

use crate::channel::Channel;
use crate::conversation::{Conversation, ReceiveProgress};
use crate::limits::{Loan, Memory, OWN_BUFFER_BYTES, PROGRESS_BYTES, STALL};
use crate::nbd::{Negotiation, Terms};
use crate::nvme::{AuthenticatedHost, SecureChannel};
use crate::polls::Polls;
use crate::recorder::Tape;
use crate::seats::{Full, SeatRefusal};
use crate::socket::Socket;
use crate::tls::ClientHello;
use crate::{Exports, Replies, Tls, TlsMode};

/// Time limit of the whole handshake.
pub(crate) const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// Size of the receive buffer at first, and again after a long request.
const INBOX_BYTES: usize = 256 << 10;

/// Reason why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Break {
    /// The client sent what cannot be understood.
    #[error("{0}")]
    Violation(String),
    /// Encryption could not begin, or received data was not authentic.
    #[error("encryption failed: {0}")]
    Encryption(String),
    /// The client does not encrypt, and has to.
    #[error("TLS is required, and it did not begin with a TLS handshake")]
    Plain,
    /// The client did not finish the handshake in time.
    #[error("the handshake was not complete within {} s", HANDSHAKE_PATIENCE.as_secs())]
    Slow,
    /// A limit of clients is reached.
    #[error(transparent)]
    Full(Full),
    /// Newer clients began a handshake, and this one took too long for its own.
    #[error("too many handshakes at once: newer ones displaced this one")]
    Displaced,
    /// The client neither sent the rest of a large request nor took a large reply, and others
    /// waited.
    #[error(
        "stalled transfer: less than {} KiB in {} s while other clients waited for buffer memory",
        PROGRESS_BYTES >> 10,
        STALL.as_secs()
    )]
    Stalled,
    /// Its replies cannot keep to the times of the model.
    #[error("its replies cannot follow the timing model: {0}")]
    Unpaced(io::Error),
    /// The server ends.
    #[error("the server is stopping")]
    Over,
    /// The client went without saying so, or the network did.
    #[error("{0}")]
    Gone(io::Error),
}

impl From<SeatRefusal> for Break {
    fn from(unseated: SeatRefusal) -> Self {
        match unseated {
            SeatRefusal::Full(full) => Self::Full(full),
            SeatRefusal::Displaced => Self::Displaced,
        }
    }
}

/// Received bytes that are not done with yet.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// The part that holds something.
    start: usize,
    end: usize,
}

/// One client: what was received from it and what is to be sent.
pub(crate) struct Connection<'a> {
    channel: Channel<'a>,
    socket: &'a Arc<Socket>,
    pub(crate) memory: &'a Arc<Memory>,
    /// Memory for a request or a reply that is larger than the client's own.
    loan: Option<Loan>,
    pub(crate) inbox: Inbox,
    pub(crate) replies: Replies,
    /// The way to the recorder of what clients ask for, if there is one.
    pub(crate) tape: Option<Tape>,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(socket: &'a Arc<Socket>, memory: &'a Arc<Memory>) -> Self {
        let (channel, inbox) = (Channel::new(socket), Inbox::new());
        let mut replies = Replies::new();
        replies.set_limit(OWN_BUFFER_BYTES);
        Self { channel, socket, memory, loan: None, inbox, replies, tape: None }
    }

    /// Waits for the memory of a reply with so much data. Nothing may wait to be sent.
    pub(crate) fn make_room(&mut self, room_bytes: usize) -> Result<(), Break> {
        self.borrow(room_bytes)?;
        self.replies.set_limit(room_bytes);
        Ok(())
    }

    /// Lent memory, if some is there and no client waits for it.
    pub(crate) fn lend_at_once(&self, bytes: usize) -> Option<Loan> {
        self.memory.lend_at_once(self.socket, bytes as u64)
    }

    fn borrow(&mut self, bytes: usize) -> Result<(), Break> {
        // No client waits for memory while it holds some.
        self.loan = None;
        self.loan = Some(self.memory.lend(self.socket, bytes as u64).ok_or(Break::Over)?);
        Ok(())
    }

    /// Gives lent memory back once nothing is in it.
    fn give_back(&mut self) {
        if self.loan.is_some() && self.replies.is_empty() && self.inbox.is_own() {
            self.end_loan();
        }
    }

    /// Lent memory, without which replies are bounded by the client's own again.
    pub(crate) fn end_loan(&mut self) -> Option<Loan> {
        self.replies.clear();
        self.replies.set_limit(OWN_BUFFER_BYTES);
        self.loan.take()
    }

    /// Converts an I/O error to a reason: [`Break::Stalled`] if the client's lent memory is
    /// recalled.
    fn told(&self, error: io::Error) -> Break {
        match &self.loan {
            Some(loan) if loan.is_recalled() => Break::Stalled,
            _ => timed(error),
        }
    }

    /// Waits until something can be received, or for this long. Returns whether something can.
    pub(crate) fn wait(&mut self, patience: Option<Duration>) -> Result<bool, Break> {
        self.channel.wait(patience).map_err(timed)
    }

    /// Waits until `wake` was written to, for this long at most, and if `takes_more` until
    /// something can be received. Returns whether something can that may be.
    pub(crate) fn wait_also(
        &mut self,
        takes_more: bool,
        wake: &OwnedFd,
        patience: Option<Duration>,
    ) -> Result<bool, Break> {
        self.channel.wait_also(takes_more, wake, patience).map_err(timed)
    }

    pub(crate) fn socket(&self) -> Arc<Socket> {
        Arc::clone(self.socket)
    }

    pub(crate) const fn is_encrypted(&self) -> bool {
        self.channel.is_encrypted()
    }

    /// Agrees with the client on terms; with none when it leaves before.
    pub(crate) fn negotiate(&mut self, exports: &Exports) -> Result<Option<Terms>, Break> {
        let deadline = Self::deadline();
        let mut negotiation = Negotiation::new(exports.clone(), &mut self.replies);
        loop {
            let taken = negotiation.take(self.inbox.received(), &mut self.replies);
            let taken = taken.map_err(violated)?;
            self.inbox.forget(taken.used_bytes);
            let left = deadline.checked_duration_since(Instant::now()).unwrap_or_default();
            if left.is_zero() {
                return Err(Break::Slow);
            }
            self.channel.set_patience(Some(left)).map_err(Break::Gone)?;
            self.send()?;
            if negotiation.is_over() {
                break;
            }
            if let Some(tls) = exports.tls().filter(|_| negotiation.is_encrypting()) {
                self.encrypt(tls, deadline)?;
                negotiation.encrypted();
            }
            if self.receive(taken.wanted_bytes)? == 0 {
                return Ok(None);
            }
        }
        self.channel.set_patience(None).map_err(Break::Gone)?;
        Ok(negotiation.into_terms())
    }

    fn encrypt(&mut self, tls: &Tls, deadline: Instant) -> Result<(), Break> {
        if !self.inbox.received().is_empty() {
            // An attacker between client and server could have put it there.
            return Err(Break::Encryption("data arrived before the TLS handshake".to_owned()));
        }
        self.channel.encrypt(tls, deadline).map_err(timed)
    }

    /// Time until which a handshake that begins now must be over.
    pub(crate) fn deadline() -> Instant {
        Instant::now() + HANDSHAKE_PATIENCE
    }

    /// Encrypts with the pre-shared key of a host, if it begins a TLS handshake. Returns which host
    /// it is; none where it does not encrypt.
    pub(crate) fn secure(
        &mut self,
        channel: &SecureChannel,
        subsystem: &str,
        deadline: Instant,
    ) -> Result<Option<AuthenticatedHost>, Break> {
        match self.channel.begins_handshake(deadline).map_err(timed)? {
            Some(true) => {}
            Some(false) if channel.mode() == TlsMode::Required => return Err(Break::Plain),
            Some(false) | None => return Ok(None),
        }
        let choose = |hello: &ClientHello| channel.keys().choose(&hello.offers(), subsystem);
        let identity = self.channel.encrypt_with_psk(choose, deadline).map_err(timed)?;
        Ok(AuthenticatedHost::of(&identity))
    }

    /// Talks with the client until `is_agreed`, before `deadline`; the time of what is timed began
    /// at `begun`. Returns whether it was; otherwise the client left before.
    pub(crate) fn establish<C: Conversation>(
        &mut self,
        session: &mut C,
        is_agreed: impl Fn(&C) -> bool,
        (begun, deadline): (Instant, Instant),
    ) -> Result<bool, Break> {
        loop {
            session.set_time(elapsed(begun));
            let next = session.take_next(self.inbox.received(), &mut self.replies);
            let used_bytes = next.as_ref().map_or(0, |next| next.used_bytes);
            self.inbox.forget(used_bytes);
            let left = deadline.checked_duration_since(Instant::now()).unwrap_or_default();
            if left.is_zero() {
                return Err(Break::Slow);
            }
            self.channel.set_patience(Some(left)).map_err(Break::Gone)?;
            self.send()?;
            let next = next.map_err(violated)?;
            if is_agreed(session) {
                break;
            }
            if next.wanted_bytes > 0 && self.receive(next.wanted_bytes)? == 0 {
                return Ok(false);
            }
        }
        self.channel.set_patience(None).map_err(Break::Gone)?;
        Ok(true)
    }

    /// Serves the client until it goes; the time of what is timed began at `begun`.
    pub(crate) fn serve<C: Conversation>(
        &mut self,
        session: &mut C,
        begun: Instant,
    ) -> Result<(), Break> {
        if self.tape.is_some() {
            *session.answered() = Some(Vec::new());
        }
        loop {
            self.catch_up(session, begun)?;
            let taken = session.take(self.inbox.received(), &mut self.replies);
            let used_bytes = taken.as_ref().map_or(0, |taken| taken.used_bytes);
            self.inbox.forget(used_bytes);
            let next = advance(session, begun, &mut self.replies)?;
            // What needs no promise goes before what waits for the device.
            self.send()?;
            self.record(session);
            match &taken {
                Ok(taken) if !taken.is_blocked() && !session.is_over() => continue,
                _ => {}
            }
            session.settle(&mut self.replies);
            self.send()?;
            self.record(session);
            let ReceiveProgress { wanted_bytes, room_bytes, .. } = taken.map_err(violated)?;
            if room_bytes > 0 {
                self.make_room(room_bytes)?;
                continue;
            }
            if session.is_over() {
                return Ok(());
            }
            if used_bytes > 0 && session.is_timed() {
                // What was just taken may have something to wait for.
                continue;
            }
            if let Some(next) = next
                && !self.wait(Some(Duration::from_nanos(next.saturating_sub(elapsed(begun)).0)))?
            {
                continue;
            }
            if self.receive(wanted_bytes)? == 0 {
                return Ok(());
            }
        }
    }

    /// Receives what is there for a timed conversation, and sets its time: what came in time
    /// counts, however late this thread looks for it.
    pub(crate) fn catch_up<C: Conversation>(
        &mut self,
        session: &mut C,
        begun: Instant,
    ) -> Result<(), Break> {
        if session.is_timed() {
            if self.wait(Some(Duration::ZERO))? {
                // The end of the input is found when the thread waits for more.
                self.receive(1)?;
            }
            session.set_time(elapsed(begun));
        }
        Ok(())
    }

    /// Records the commands that were just answered, if there is a recorder.
    fn record<C: Conversation>(&mut self, session: &mut C) {
        if let Some((tape, answered)) = self.tape.as_mut().zip(session.answered().as_mut()) {
            tape.keep(answered);
        }
    }

    pub(crate) fn send(&mut self) -> Result<(), Break> {
        if !self.replies.is_empty() {
            self.note_sending();
            match &self.loan {
                None => self.channel.send(self.replies.as_bytes()).map_err(timed)?,
                Some(_) => self.send_watched()?,
            }
            self.replies.clear();
        }
        self.give_back();
        Ok(())
    }

    /// Sends replies that lent memory holds, so that others see that the client takes them.
    fn send_watched(&mut self) -> Result<(), Break> {
        for part in self.replies.as_bytes().chunks(PROGRESS_BYTES) {
            self.channel.send(part).map_err(|error| match &self.loan {
                Some(loan) if loan.is_recalled() => Break::Stalled,
                _ => timed(error),
            })?;
            if let Some(loan) = &self.loan {
                loan.note_moved(part.len());
            }
        }
        Ok(())
    }

    /// Sends something that was held back.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Break> {
        self.channel.send(bytes).map_err(timed)
    }

    /// Notes when replies are sent, where there is a recorder.
    fn note_sending(&mut self) {
        if let Some(tape) = &mut self.tape {
            tape.note_sending();
        }
    }

    pub(crate) fn receive(&mut self, wanted_bytes: usize) -> Result<usize, Break> {
        if wanted_bytes > OWN_BUFFER_BYTES && self.loan.is_none() {
            self.borrow(wanted_bytes)?;
        }
        let awaits_rest = !self.inbox.received().is_empty();
        let room = self.inbox.room(wanted_bytes);
        let mut received = None;
        // Clients send a header and its data one after the other, so the rest mostly arrives sooner
        // than a thread falls asleep and wakes.
        if awaits_rest {
            let mut polls = Polls::default();
            loop {
                received = self.channel.receive_at_once(room).map_err(timed)?;
                if received.is_some() || !polls.poll_again() {
                    break;
                }
            }
        }
        let received = match received {
            Some(received) => Ok(received),
            None => self.channel.receive(room),
        };
        let received = received.map_err(|error| self.told(error))?;
        if received == 0 && self.loan.as_ref().is_some_and(Loan::is_recalled) {
            return Err(Break::Stalled);
        }
        self.inbox.end += received;
        if let Some(loan) = &self.loan {
            // A client that sent all of a request is no longer waited for, the device is.
            let is_whole = self.inbox.received().len() >= wanted_bytes;
            loan.note_moved(if is_whole { PROGRESS_BYTES } else { received });
        }
        if let Some(tape) = &mut self.tape {
            tape.note_received();
        }
        Ok(received)
    }
}

/// Advances time for a timed conversation. Returns the time of the next call, if it is timed.
pub(crate) fn advance<C: Conversation>(
    session: &mut C,
    begun: Instant,
    replies: &mut Replies,
) -> Result<Option<Nanos>, Break> {
    if !session.is_timed() {
        return Ok(None);
    }
    session.advance(elapsed(begun), replies).map_err(violated)
}

/// Time since `begun`.
pub(crate) fn elapsed(begun: Instant) -> Nanos {
    Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// A violation of the protocol, as the reason why the connection ends.
pub(crate) fn violated(violation: impl Error) -> Break {
    Break::Violation(violation.to_string())
}

/// Only during the handshake do sockets run out of time; only encrypted bytes can be wrong.
fn timed(error: io::Error) -> Break {
    match error.kind() {
        io::ErrorKind::WouldBlock => Break::Slow,
        io::ErrorKind::InvalidData => Break::Encryption(error.to_string()),
        _ => Break::Gone(error),
    }
}

impl Inbox {
    fn new() -> Self {
        Self { bytes: vec![0; INBOX_BYTES], start: 0, end: 0 }
    }

    pub(crate) fn received(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn forget(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if !self.is_own() {
                self.bytes = vec![0; INBOX_BYTES];
            }
        }
    }

    /// True if it takes no more than the client's own memory.
    fn is_own(&self) -> bool {
        self.bytes.len() <= OWN_BUFFER_BYTES
    }

    /// Room behind what is there, so that `wanted` bytes fit in all; at least one byte. Beyond the
    /// client's own memory, for no more than these: then nothing follows that would keep it.
    fn room(&mut self, wanted: usize) -> &mut [u8] {
        if self.start + wanted.max(self.end - self.start + 1) > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if wanted > self.bytes.len() {
            let round = wanted.next_multiple_of(INBOX_BYTES);
            let mut larger = vec![0; if wanted > OWN_BUFFER_BYTES { wanted } else { round }];
            larger[..self.end].copy_from_slice(&self.bytes[..self.end]);
            self.bytes = larger;
        }
        let end = if self.is_own() { self.bytes.len() } else { wanted.max(self.end + 1) };
        &mut self.bytes[self.end..end]
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::conversation::Next;
    use crate::pace::tests::drive;
    use crate::{Limits, Pace, PacedCommand, paced};

    /// A conversation that ends when nothing came for five seconds.
    #[derive(Default)]
    struct Impatient {
        answered: Option<Vec<PacedCommand>>,
        now: Nanos,
        heard_at: Nanos,
    }

    impl Conversation for Impatient {
        type Violation = io::Error;

        fn begin_next(&mut self, input: &[u8], _: &mut Replies) -> Result<Next, io::Error> {
            if input.is_empty() {
                return Ok(Next::wants(0, 1));
            }
            self.heard_at = self.now;
            Ok(Next::used(1))
        }

        fn finish_reads(&mut self, _: &mut Replies) {}

        fn settle(&mut self, _: &mut Replies) {}

        fn is_over(&self) -> bool {
            false
        }

        fn answered(&mut self) -> &mut Option<Vec<PacedCommand>> {
            &mut self.answered
        }

        fn is_timed(&self) -> bool {
            true
        }

        fn set_time(&mut self, now: Nanos) {
            self.now = now;
        }

        fn advance(&mut self, now: Nanos, _: &mut Replies) -> Result<Option<Nanos>, io::Error> {
            let due = self.heard_at + Nanos::from_secs(5);
            if now < due { Ok(Some(due)) } else { Err(io::ErrorKind::TimedOut.into()) }
        }
    }

    #[test]
    fn what_came_in_time_counts_however_late_it_is_looked_for() {
        let served = |is_paced: bool, sent: &[u8]| {
            let (own_end, mut client) = UnixStream::pair().unwrap();
            client.write_all(sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let (socket, memory) =
                (Arc::new(Socket::from(own_end)), Memory::new(Limits::default()));
            let begun = Instant::now().checked_sub(Duration::from_secs(6)).unwrap();
            let (mut connection, mut session) =
                (Connection::new(&socket, &memory), Impatient::default());
            if is_paced {
                let pace = Arc::new(Pace::new(drive()));
                return paced::serve(&mut connection, &mut session, &pace, begun);
            }
            connection.serve(&mut session, begun)
        };
        for is_paced in [false, true] {
            served(is_paced, &[1]).unwrap();
            assert!(matches!(served(is_paced, &[]), Err(Break::Violation(_))), "{is_paced}");
        }
    }

    #[test]
    fn an_inbox_keeps_what_is_not_done_with_in_order() {
        let mut inbox = Inbox::new();
        let room = inbox.room(28);
        for (byte, number) in room.iter_mut().zip((0..=255_u8).cycle()) {
            *byte = number;
        }
        inbox.end = INBOX_BYTES;
        inbox.forget(INBOX_BYTES - 10);
        let kept: Vec<u8> = inbox.received().to_vec();
        assert!(inbox.room(INBOX_BYTES * 3 + 1).len() >= INBOX_BYTES * 3 - 9);
        assert_eq!(inbox.received(), kept);
        let wanted = 2 * OWN_BUFFER_BYTES;
        assert_eq!(inbox.room(wanted).len(), wanted - 10, "what was lent, and no more");
        assert!(!inbox.is_own());
        assert_eq!(inbox.received(), kept);
        inbox.forget(10);
        assert!(inbox.received().is_empty() && inbox.is_own());
    }
}
