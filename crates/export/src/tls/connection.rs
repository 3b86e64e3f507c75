//! One side of an encrypted connection, of s2n-tls.
//!
//! ```text
//!   socket ──► received ──► s2n-tls ──► bytes for the protocol
//!   socket ◄── to be sent ◄── s2n-tls ◄── bytes of the protocol
//! ```
//!
//! s2n-tls reads and writes memory here, never a socket, so that it waits for nothing.

use std::ffi::{c_int, c_void};
use std::io;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use errno::{Errno, set_errno};
use rustix::io::Errno as Known;
use s2n_tls::config::Config;
use s2n_tls::connection::Connection;
use s2n_tls::error::{Error, ErrorType};

use super::psk::PreSharedKey;

/// Bytes that are encrypted at a time.
const SENT_BYTES: usize = 64 << 10;
/// Bytes of the data of the largest record.
const RECORD_BYTES: usize = 16 << 10;

/// The server's side of an encrypted connection.
pub(crate) struct TlsConnection {
    connection: Connection,
    /// Bytes of the network, which `connection` has the address of.
    pipes: Arc<Mutex<Pipes>>,
    /// Decrypted bytes that the protocol has not read yet.
    plaintext: Vec<u8>,
}

/// Bytes from the network and for it.
struct Pipes {
    received: Vec<u8>,
    /// The part of them that is not done with.
    start: usize,
    end: usize,
    has_ended: bool,
    to_send: Vec<u8>,
}

impl TlsConnection {
    /// Bytes that are taken from the network at a time.
    pub(crate) const RECEIVED_BYTES: usize = 64 << 10;

    /// The server's side, by what `config` has, before the handshake.
    ///
    /// # Errors
    /// Fails if s2n-tls refuses the configuration.
    pub(crate) fn server(config: Config) -> io::Result<Self> {
        let pipes = Arc::new(Mutex::new(Pipes::new()));
        let mut connection = Connection::new_server();
        let prepare = |connection: &mut Connection| -> Result<(), Error> {
            connection.set_config(config)?;
            connection.prefer_throughput()?;
            connection.set_receive_callback(Some(receive))?;
            connection.set_send_callback(Some(send))?;
            connect(connection, &pipes)
        };
        prepare(&mut connection).map_err(io::Error::other)?;
        Ok(Self { connection, pipes, plaintext: Vec::new() })
    }

    /// The server's side, with the key that a client offered; without one, the client is refused.
    ///
    /// # Errors
    /// Fails if s2n-tls refuses the key.
    pub(crate) fn with_psk(key: Option<&PreSharedKey>) -> io::Result<Self> {
        let mut tls = Self::server(PreSharedKey::config().map_err(io::Error::other)?)?;
        if let Some(key) = key {
            let key = key.build().map_err(io::Error::other)?;
            tls.connection.append_psk(&key).map_err(io::Error::other)?;
        }
        Ok(tls)
    }

    /// Takes bytes from the network through `receive`, which gets room for them and returns how
    /// many there were. Returns the same; zero at the end.
    ///
    /// # Errors
    /// As `receive`.
    pub(crate) fn take_from(
        &mut self,
        receive: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut pipes = locked(&self.pipes);
        let taken = receive(pipes.room())?;
        pipes.end += taken;
        pipes.has_ended |= taken == 0;
        Ok(taken)
    }

    /// Goes on with the handshake, as far as what was received allows. Returns whether it is over.
    ///
    /// # Errors
    /// Fails if client and server do not agree. An alert, if the library has one for it, is then to
    /// be sent.
    pub(crate) fn negotiate(&mut self) -> io::Result<bool> {
        match self.connection.poll_negotiate() {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(_)) => Ok(true),
            Poll::Ready(Err(error)) => {
                // An alert may wait to be sent, which no failure of its own must hide.
                let _ = self.connection.poll_shutdown_send();
                Err(invalid(error))
            }
        }
    }

    /// Decrypts into `room` what is there. Returns how much; zero at the end, and nothing where
    /// more has to be received first.
    ///
    /// # Errors
    /// Fails if received data is not authentic.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        if !self.plaintext.is_empty() {
            let count = room.len().min(self.plaintext.len());
            room[..count].copy_from_slice(&self.plaintext[..count]);
            self.plaintext.drain(..count);
            return Ok(Some(count));
        }
        let mut filled = 0;
        while filled < room.len() {
            match self.decrypt(&mut room[filled..]) {
                Ok(Some(count)) if count > 0 => filled += count,
                // What was decrypted is delivered first; a failure or the end lasts.
                _ if filled > 0 => break,
                other => return other,
            }
        }
        Ok(Some(filled))
    }

    /// True if decrypted bytes, or the end, can be read.
    ///
    /// # Errors
    /// As [`TlsConnection::read`].
    pub(crate) fn has_plaintext(&mut self) -> io::Result<bool> {
        if self.plaintext.is_empty() {
            if self.connection.peek_len() == 0 && !locked(&self.pipes).has_more() {
                return Ok(false);
            }
            let mut record = vec![0; RECORD_BYTES];
            match self.decrypt(&mut record)? {
                None => return Ok(false),
                Some(0) => return Ok(true),
                Some(count) => {
                    record.truncate(count);
                    self.plaintext = record;
                }
            }
        }
        Ok(true)
    }

    fn decrypt(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self.connection.poll_recv(room) {
            Poll::Pending => Ok(None),
            Poll::Ready(Ok(count)) => Ok(Some(count)),
            // A client that went without saying so has gone all the same.
            Poll::Ready(Err(error)) if error.kind() == ErrorType::ConnectionClosed => Ok(Some(0)),
            Poll::Ready(Err(error)) => Err(invalid(error)),
        }
    }

    /// Encrypts a part of `bytes`. Returns how many; they are then to be sent.
    ///
    /// # Errors
    /// Fails if the connection is at its end.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(SENT_BYTES)];
        match self.connection.poll_send(part) {
            Poll::Ready(Ok(taken)) => Ok(taken),
            Poll::Ready(Err(error)) => Err(invalid(error)),
            Poll::Pending => Err(io::Error::other("memory takes everything at once")),
        }
    }

    /// Ends what is sent, so that the other side knows that it received all. That is then to be
    /// sent.
    ///
    /// # Errors
    /// Fails if the connection failed before.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        match self.connection.poll_shutdown_send() {
            Poll::Ready(Err(error)) => Err(invalid(error)),
            Poll::Ready(Ok(_)) | Poll::Pending => Ok(()),
        }
    }

    /// Passes what is to be sent to `send`.
    ///
    /// # Errors
    /// As `send`.
    pub(crate) fn give_to(&mut self, send: impl FnOnce(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut pipes = locked(&self.pipes);
        if pipes.to_send.is_empty() {
            return Ok(());
        }
        let sent = send(&pipes.to_send);
        pipes.to_send.clear();
        sent
    }
}

impl Pipes {
    fn new() -> Self {
        Self {
            received: vec![0; TlsConnection::RECEIVED_BYTES],
            start: 0,
            end: 0,
            has_ended: false,
            to_send: Vec::new(),
        }
    }

    /// Room behind the bytes that are there.
    fn room(&mut self) -> &mut [u8] {
        self.received.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        &mut self.received[self.end..]
    }

    /// True if there are bytes that the library has not taken, or the end.
    const fn has_more(&self) -> bool {
        self.start < self.end || self.has_ended
    }

    /// The next bytes from the network, at most `bytes`.
    fn next(&mut self, bytes: usize) -> &[u8] {
        let from = self.start;
        self.start = self.end.min(from + bytes);
        &self.received[from..self.start]
    }
}

fn locked(pipes: &Mutex<Pipes>) -> MutexGuard<'_, Pipes> {
    pipes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Has a connection read and write `pipes`.
#[expect(unsafe_code, reason = "the library is given the address of the bytes of the network")]
fn connect(connection: &mut Connection, pipes: &Arc<Mutex<Pipes>>) -> Result<(), Error> {
    let address = Arc::as_ptr(pipes).cast_mut().cast::<c_void>();
    // SAFETY: the value that owns the connection owns the pipes, too, and drops them after it. They
    // do not move, and are only used as what may be shared.
    unsafe {
        connection.set_receive_context(address)?;
        connection.set_send_context(address)?;
    }
    Ok(())
}

/// Gives the library received bytes.
#[expect(unsafe_code, reason = "the library calls it with addresses")]
unsafe extern "C" fn receive(context: *mut c_void, room: *mut u8, bytes: u32) -> c_int {
    // SAFETY: the context is what `connect` set, which lives as long as the connection.
    let pipes = unsafe { &*context.cast::<Mutex<Pipes>>() };
    let mut pipes = locked(pipes);
    // One call moves no more than the pipes hold, which is far below a `c_int`.
    let next = pipes.next(bytes as usize);
    let count = next.len();
    // SAFETY: the library has room for `bytes`, of which it said so, elsewhere than in the pipes.
    unsafe { room.copy_from_nonoverlapping(next.as_ptr(), count) };
    if count == 0 && !pipes.has_ended {
        set_errno(Errno(Known::WOULDBLOCK.raw_os_error()));
        return -1;
    }
    c_int::try_from(count).unwrap_or(-1)
}

/// Takes encrypted bytes from the library.
#[expect(unsafe_code, reason = "the library calls it with addresses")]
unsafe extern "C" fn send(context: *mut c_void, bytes: *const u8, count: u32) -> c_int {
    // SAFETY: as above.
    let pipes = unsafe { &*context.cast::<Mutex<Pipes>>() };
    // SAFETY: the library has so many bytes there.
    let bytes = unsafe { slice::from_raw_parts(bytes, count as usize) };
    locked(pipes).to_send.extend_from_slice(bytes);
    c_int::try_from(count).unwrap_or(-1)
}
