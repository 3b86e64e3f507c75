//! Channel to a client: its socket, plain or encrypted.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustls::ServerConnection;

use crate::Tls;
use crate::socket::Socket;

/// A way to one client.
pub(crate) struct Channel<'a> {
    socket: &'a Socket,
    tls: Option<Box<ServerConnection>>,
}

/// Blocking or non-blocking mode of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Waits,
    AtOnce,
}

/// The socket as a source, and as a sink, of encrypted bytes.
struct Raw<'a>(&'a Socket, Patience);

impl<'a> Channel<'a> {
    /// One that is not encrypted.
    pub(crate) const fn new(socket: &'a Socket) -> Self {
        Self { socket, tls: None }
    }

    /// Encrypts it from here on.
    ///
    /// # Errors
    /// Fails if client and server do not agree before `deadline`.
    pub(crate) fn encrypt(&mut self, tls: &Tls, deadline: Instant) -> io::Result<()> {
        let mut tls = tls.connection().map_err(io::Error::other)?;
        while tls.is_handshaking() {
            let left = deadline.saturating_duration_since(Instant::now());
            // A socket takes no time of zero.
            self.socket.set_patience(Some(left.max(Duration::from_millis(1))))?;
            if left.is_zero() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if tls.read_tls(&mut Raw(self.socket, Patience::Waits))? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let agreed = tls.process_new_packets();
            // The client is told what was wrong, too.
            flush(&mut tls, self.socket)?;
            agreed.map_err(invalid)?;
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Receives what is there, waiting for the first byte. Returns how much; zero at the end.
    pub(crate) fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.receive(room),
            Some(tls) => decrypted(tls, self.socket, Patience::Waits, room),
        }
    }

    /// Receives what is there, if anything is; `None` if nothing is. Zero at the end.
    pub(crate) fn receive_at_once(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else { return self.socket.receive_at_once(room) };
        match decrypted(tls, self.socket, Patience::AtOnce, room) {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends all of `bytes`.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return self.socket.send(bytes) };
        while !bytes.is_empty() {
            let taken = tls.writer().write(bytes)?;
            bytes = &bytes[taken..];
            flush(tls, self.socket)?;
        }
        Ok(())
    }

    /// Waits until something can be received, or for this long. Returns whether something can.
    pub(crate) fn wait(&mut self, patience: Option<Duration>) -> io::Result<bool> {
        if self.has_plaintext()? {
            return Ok(true);
        }
        self.socket.wait(patience)
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
        self.socket.wait_also(takes_more, wake, patience)
    }

    /// True if bytes that were received are decrypted already.
    fn has_plaintext(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        let state = tls.process_new_packets().map_err(invalid)?;
        Ok(state.plaintext_bytes_to_read() > 0)
    }

    pub(crate) const fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Bounds, or with `None` no longer bounds, how long receiving and sending wait.
    pub(crate) fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.socket.set_patience(patience)
    }
}

/// Decrypts what is there into `room`. Returns how much; zero at the end.
fn decrypted(
    tls: &mut ServerConnection,
    socket: &Socket,
    patience: Patience,
    room: &mut [u8],
) -> io::Result<usize> {
    loop {
        match tls.reader().read(room) {
            // A client that went without saying so has gone all the same.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
        if tls.read_tls(&mut Raw(socket, patience))? == 0 {
            return Ok(0);
        }
        let processed = tls.process_new_packets();
        flush(tls, socket)?;
        processed.map_err(invalid)?;
    }
}

/// Sends what was encrypted.
fn flush(tls: &mut ServerConnection, socket: &Socket) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(&mut Raw(socket, Patience::Waits))?;
    }
    Ok(())
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Read for Raw<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.1 {
            Patience::Waits => self.0.receive(room),
            Patience::AtOnce => {
                self.0.receive_at_once(room)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
            }
        }
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
