//! Channel to a client: its socket, plain or encrypted.

use std::error::Error;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::Tls;
use crate::socket::Socket;
use crate::tls::{ClientHello, HANDSHAKE, PreSharedKey, TlsConnection};

/// A way to one client.
pub(crate) struct Channel<'a> {
    socket: &'a Socket,
    tls: Option<Box<TlsConnection>>,
}

/// Blocking or non-blocking mode of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Waits,
    AtOnce,
}

impl<'a> Channel<'a> {
    /// One that is not encrypted.
    pub(crate) const fn new(socket: &'a Socket) -> Self {
        Self { socket, tls: None }
    }

    /// Encrypts it from here on, with the certificate of the server.
    ///
    /// # Errors
    /// Fails if client and server do not agree before `deadline`.
    pub(crate) fn encrypt(&mut self, tls: &Tls, deadline: Instant) -> io::Result<()> {
        let mut tls = tls.connection()?;
        self.agree(&mut tls, deadline)?;
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Carries out the rest of a handshake.
    fn agree(&self, tls: &mut TlsConnection, deadline: Instant) -> io::Result<()> {
        loop {
            let agreed = tls.negotiate();
            // A client that is refused gets an alert, too.
            tls.give_to(|bytes| self.socket.send(bytes))?;
            if agreed? {
                return Ok(());
            }
            self.bound_until(deadline)?;
            if tls.take_from(|room| self.socket.receive(room))? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Returns whether the client begins a TLS handshake; none if it left.
    ///
    /// # Errors
    /// Fails if it sends nothing before `deadline`.
    pub(crate) fn begins_handshake(&self, deadline: Instant) -> io::Result<Option<bool>> {
        self.bound_until(deadline)?;
        Ok(self.socket.peek()?.map(|first| first == HANDSHAKE))
    }

    /// Encrypts it from here on, with the pre-shared key that `choose` finds for the first message
    /// of the client. Returns the identity of the key.
    ///
    /// # Errors
    /// Fails if it finds none, or client and server do not agree before `deadline`.
    pub(crate) fn encrypt_with_psk(
        &mut self,
        choose: impl FnOnce(&ClientHello) -> Result<PreSharedKey, String>,
        deadline: Instant,
    ) -> io::Result<Vec<u8>> {
        let (received, hello) = self.receive_hello(deadline)?;
        let chosen = choose(&hello);
        let mut tls = TlsConnection::with_psk(chosen.as_ref().ok())?;
        tls.take_from(|room| {
            room[..received.len()].copy_from_slice(&received);
            Ok(received.len())
        })?;
        let agreed = self.agree(&mut tls, deadline);
        // Without a key the handshake fails, for this reason.
        let key = chosen.map_err(unauthentic)?;
        agreed?;
        self.tls = Some(Box::new(tls));
        Ok(key.identity)
    }

    /// Receives the first message of a client. Returns it with all that was received.
    fn receive_hello(&self, deadline: Instant) -> io::Result<(Vec<u8>, ClientHello)> {
        let mut received = vec![0; TlsConnection::RECEIVED_BYTES];
        let mut end = 0;
        loop {
            self.bound_until(deadline)?;
            let count = self.socket.receive(&mut received[end..])?;
            end += count;
            if let Some(hello) = ClientHello::of(&received[..end]).map_err(unauthentic)? {
                received.truncate(end);
                return Ok((received, hello));
            }
            if end == received.len() {
                return Err(unauthentic("its ClientHello is too long"));
            }
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Bounds how long receiving and sending wait, so that they end at `deadline`.
    fn bound_until(&self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // A socket takes no time of zero.
        self.socket.set_patience(Some(left.max(Duration::from_millis(1))))
    }

    /// Receives what is there, waiting for the first byte. Returns how much; zero at the end.
    pub(crate) fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.receive(room),
            Some(tls) => decrypt(tls, self.socket, Patience::Waits, room),
        }
    }

    /// Receives what is there, if anything is; `None` if nothing is. Zero at the end.
    pub(crate) fn receive_at_once(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else { return self.socket.receive_at_once(room) };
        match decrypt(tls, self.socket, Patience::AtOnce, room) {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends all of `bytes`.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return self.socket.send(bytes) };
        while !bytes.is_empty() {
            let taken = tls.write(bytes)?;
            bytes = &bytes[taken..];
            tls.give_to(|bytes| self.socket.send(bytes))?;
        }
        Ok(())
    }

    /// Waits until something can be received, or for this long. Returns whether something can.
    pub(crate) fn wait(&mut self, patience: Option<Duration>) -> io::Result<bool> {
        Ok(self.has_plaintext()? || (self.socket.wait(patience)? && self.is_readable()?))
    }

    /// Waits until `wake` was written to, which is then as before, or for this long; if
    /// `takes_more` also until something can be received. Returns whether something can.
    pub(crate) fn wait_also(
        &mut self,
        takes_more: bool,
        wake: &OwnedFd,
        patience: Option<Duration>,
    ) -> io::Result<bool> {
        if takes_more && self.has_plaintext()? {
            return Ok(true);
        }
        Ok(self.socket.wait_also(takes_more, wake, patience)? && self.is_readable()?)
    }

    /// True if bytes that were received are decrypted already.
    fn has_plaintext(&mut self) -> io::Result<bool> {
        self.tls.as_mut().map_or(Ok(false), |tls| tls.has_plaintext())
    }

    /// True if receiving from a socket with something to be received does not wait: a part of a
    /// record cannot be decrypted before the rest of it comes.
    fn is_readable(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        match tls.take_from(|room| Patience::AtOnce.receive(self.socket, room)) {
            Ok(0) => Ok(true),
            Ok(_) => tls.has_plaintext(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) const fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Bounds, or with `None` no longer bounds, how long receiving and sending wait.
    pub(crate) fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.socket.set_patience(patience)
    }
}

impl Patience {
    /// Receives what is there into `room`. Returns how much; zero at the end.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::WouldBlock`] where waiting would be needed and is not wanted.
    fn receive(self, socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Waits => socket.receive(room),
            Self::AtOnce => {
                socket.receive_at_once(room)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
            }
        }
    }
}

/// Decrypts what is there into `room`. Returns how much; zero at the end.
fn decrypt(
    tls: &mut TlsConnection,
    socket: &Socket,
    patience: Patience,
    room: &mut [u8],
) -> io::Result<usize> {
    loop {
        if let Some(received) = tls.read(room)? {
            return Ok(received);
        }
        if tls.take_from(|room| patience.receive(socket, room))? == 0 {
            return Ok(0);
        }
    }
}

fn unauthentic(reason: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
