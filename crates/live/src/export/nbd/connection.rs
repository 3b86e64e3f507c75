//! The thread of one client: bytes from its socket, through handshake and session, and back.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::channel::Channel;
use super::{Negotiation, Replies, Session, Taken, Terms, Violation};
use crate::export::socket::Socket;
use crate::export::{Exports, Tls};

/// How long a client may take for the whole handshake.
const HANDSHAKE_PATIENCE: Duration = Duration::from_mins(1);
/// What is received into at first, and again after a long request.
const INBOX_BYTES: usize = 256 << 10;

/// How often the rest of a request is looked for before the thread sleeps: some 10 us. Clients send
/// a header and its data one after the other, so the rest is mostly sooner there than a thread
/// falls asleep and wakes. Between two looks the client may have this processor.
const LOOKS: u32 = 24;

/// How a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Break {
    /// The client sent what cannot be understood.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// It could not be encrypted, or what came is not what was sent.
    #[error("encryption failed: {0}")]
    Encryption(String),
    /// The client did not finish the handshake in time.
    #[error("no end of the handshake within {} s", HANDSHAKE_PATIENCE.as_secs())]
    Slow,
    /// The client went without saying so, or the network did.
    #[error("{0}")]
    Gone(io::Error),
}

/// What was received and is not done with yet.
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// The part that holds something.
    start: usize,
    end: usize,
}

/// One client: what was received from it and what is to be sent.
pub(super) struct Connection<'a> {
    channel: Channel<'a>,
    pub(super) inbox: Inbox,
    pub(super) replies: Replies,
}

impl<'a> Connection<'a> {
    pub(super) fn new(socket: &'a Socket) -> Self {
        Self { channel: Channel::new(socket), inbox: Inbox::new(), replies: Replies::new() }
    }

    /// Waits until something can be received, or for this long. Returns whether something can.
    pub(super) fn wait(&mut self, patience: Option<Duration>) -> Result<bool, Break> {
        self.channel.wait(patience).map_err(timed)
    }

    /// Agrees with the client on terms; with none when it leaves before.
    pub(super) fn negotiate(&mut self, exports: &Exports) -> Result<Option<Terms>, Break> {
        let deadline = Instant::now() + HANDSHAKE_PATIENCE;
        let mut negotiation = Negotiation::new(exports.clone(), &mut self.replies);
        loop {
            let taken = negotiation.take(self.inbox.received(), &mut self.replies)?;
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
            // Somebody between client and server could have put it there.
            return Err(Break::Encryption("more came before it began".to_owned()));
        }
        self.channel.encrypt(tls, deadline).map_err(timed)
    }

    /// Serves the client until it goes.
    pub(super) fn serve(&mut self, terms: Terms) -> Result<(), Break> {
        let mut session = Session::new(terms);
        loop {
            let taken = session.take(self.inbox.received(), &mut self.replies);
            let used_bytes = taken.as_ref().map_or(0, |taken| taken.used_bytes);
            self.inbox.forget(used_bytes);
            // What needs no promise goes before what waits for the device.
            self.send()?;
            match taken {
                Ok(Taken { wanted_bytes: 0, .. }) if !session.is_over() => continue,
                _ => {}
            }
            session.settle(&mut self.replies);
            self.send()?;
            let wanted_bytes = taken?.wanted_bytes;
            if session.is_over() || self.receive(wanted_bytes)? == 0 {
                return Ok(());
            }
        }
    }

    pub(super) fn send(&mut self) -> Result<(), Break> {
        if !self.replies.is_empty() {
            self.channel.send(self.replies.as_bytes()).map_err(timed)?;
            self.replies.clear();
        }
        Ok(())
    }

    pub(super) fn receive(&mut self, wanted_bytes: usize) -> Result<usize, Break> {
        let looks = if self.inbox.received().is_empty() { 0 } else { LOOKS };
        let room = self.inbox.room(wanted_bytes);
        let mut received = None;
        for _ in 0..looks {
            received = self.channel.receive_at_once(room).map_err(timed)?;
            if received.is_some() {
                break;
            }
            thread::yield_now();
        }
        let received = match received {
            Some(received) => received,
            None => self.channel.receive(room).map_err(timed)?,
        };
        self.inbox.end += received;
        Ok(received)
    }
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

    pub(super) fn received(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn forget(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > 4 * INBOX_BYTES {
                self.bytes = vec![0; INBOX_BYTES];
            }
        }
    }

    /// Room behind what is there, so that `wanted` bytes fit in all; at least one byte.
    fn room(&mut self, wanted: usize) -> &mut [u8] {
        if self.start + wanted.max(self.end - self.start + 1) > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if wanted > self.bytes.len() {
            let mut larger = vec![0; wanted.next_multiple_of(INBOX_BYTES)];
            larger[..self.end].copy_from_slice(&self.bytes[..self.end]);
            self.bytes = larger;
        }
        &mut self.bytes[self.end..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        inbox.forget(10);
        assert!(inbox.received().is_empty());
    }
}
