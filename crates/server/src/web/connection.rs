//! A connection to a browser or to monitoring, encrypted or not, on which everything has to happen
//! in time.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use export::{Tls, TlsStream};

/// Bytes that are sent at a time, each within the patience of the connection.
const SENT_AT_ONCE: usize = 256 << 10;
/// Longest wait for a client to close its end after the answer.
const LEAVE: Duration = Duration::from_secs(1);

/// A way to one client.
pub(super) struct Connection {
    peer: IpAddr,
    /// Time limit for the client to receive each part that is sent.
    patience: Duration,
    way: RefCell<Way>,
}

enum Way {
    Plain(TimedSocket),
    Encrypted(Box<TlsStream<TimedSocket>>),
}

/// A socket on which nothing is waited for beyond a deadline.
struct TimedSocket {
    socket: Arc<TcpStream>,
    deadline: Instant,
}

impl Connection {
    /// Sets up the connection on a socket, encrypted if `tls` is given.
    ///
    /// # Errors
    /// Fails if the other end is gone, or encryption cannot begin.
    pub(super) fn new(
        socket: &Arc<TcpStream>,
        tls: Option<&Tls>,
        patience: Duration,
    ) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        let peer = socket.peer_addr()?.ip();
        let timed = TimedSocket { socket: Arc::clone(socket), deadline: Instant::now() + patience };
        let way = match tls {
            None => Way::Plain(timed),
            Some(tls) => Way::Encrypted(Box::new(tls.stream(timed)?)),
        };
        Ok(Self { peer, patience, way: RefCell::new(way) })
    }

    /// Returns the address of the client.
    pub(super) const fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Receives what is there, waiting for the first byte until `deadline`. Returns how much; zero
    /// at the end.
    pub(super) fn receive(&self, room: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let mut way = self.way.borrow_mut();
        way.timed().deadline = deadline;
        match &mut *way {
            Way::Plain(timed) => timed.read(room),
            Way::Encrypted(tls) => tls.read(room),
        }
    }

    /// Sends all of `bytes`.
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut way = self.way.borrow_mut();
        for part in bytes.chunks(SENT_AT_ONCE) {
            way.timed().deadline = Instant::now() + self.patience;
            match &mut *way {
                Way::Plain(timed) => timed.write_all(part)?,
                Way::Encrypted(tls) => {
                    tls.write_all(part)?;
                    tls.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Ends it so that what was sent arrives: what was received and not read would undo it.
    pub(super) fn take_leave(&self) -> io::Result<()> {
        let mut way = self.way.borrow_mut();
        way.timed().deadline = Instant::now() + LEAVE;
        if let Way::Encrypted(tls) = &mut *way {
            tls.end()?;
        }
        let timed = way.timed();
        timed.socket.shutdown(Shutdown::Write)?;
        let mut rest = [0; 4096];
        while timed.read(&mut rest)? > 0 {}
        Ok(())
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Connection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Way {
    fn timed(&mut self) -> &mut TimedSocket {
        match self {
            Self::Plain(timed) => timed,
            Self::Encrypted(tls) => tls.socket(),
        }
    }
}

impl TimedSocket {
    /// Time that is left; a socket takes none of zero.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for TimedSocket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        (&*self.socket).read(room).map_err(timed_out)
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        (&*self.socket).write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket that ran out of time says that it would have to wait.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}
