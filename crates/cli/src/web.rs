//! What is shown over HTTP: a served drive, or several drives and the runs of a folder.
//!
//! ```text
//!   connection ──► request ──► gate: by which name, from which page? ──► content ──┬─► answer
//!                                                                                  ├─► stream
//!                                        of a drive (stand), or of many (fleet)    └─► action,
//!                                                                                    by token
//! ```
//!
//! Every request has a connection and a thread of its own, and little time: whoever is slow holds
//! up neither the others nor the drive.

mod action;
mod fleet;
mod gate;
mod glance;
mod metrics;
mod page;
mod reply;
mod request;
mod shelf;
mod stand;
mod stream;

use std::io::{self, IsTerminal as _, Read as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};

pub(crate) use self::action::Token;
pub(crate) use self::fleet::Fleet;
use self::reply::Reply;
use self::request::{Fault, Request};
pub(crate) use self::stand::Stand;
use self::stream::Viewers;

/// Connections at once; further ones are closed.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take to send a request, and to take an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client that was answered may be silent without going, and how often it may not be.
const LEAVE: Duration = Duration::from_millis(500);
const LEAVE_READS_MAX: u32 = 32;
/// Pause after the system had nothing left to accept a connection with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers at a socket until it is dropped.
#[derive(Debug)]
pub(crate) struct Web {
    address: SocketAddr,
    site: Arc<Site>,
    acceptor: Option<JoinHandle<()>>,
}

/// What is answered from.
#[derive(Debug)]
struct Site {
    content: Content,
    token: Token,
    viewers: Viewers,
    connections: AtomicUsize,
    is_stopping: AtomicBool,
}

/// What is shown.
#[derive(Debug)]
pub(crate) enum Content {
    /// The page of one drive.
    Drive(Stand),
    /// A page of many, and theirs behind it.
    Fleet(Fleet),
}

/// A request that was let in, and whoever is to be answered.
struct Visit<'a> {
    request: &'a Request,
    token: &'a Token,
    viewers: &'a Viewers,
    connection: &'a TcpStream,
}

impl Visit<'_> {
    fn is_head(&self) -> bool {
        self.request.method == "HEAD"
    }

    fn send(&self, reply: &Reply) -> io::Result<()> {
        reply.send(self.connection, self.is_head())
    }
}

impl Content {
    fn answer(&self, visit: &Visit<'_>) -> io::Result<()> {
        match self {
            Self::Drive(stand) => stand.answer(visit, &visit.request.path),
            Self::Fleet(fleet) => fleet.answer(visit),
        }
    }

    /// Lets every viewer go.
    fn end(&self) {
        match self {
            Self::Drive(stand) => stand.end(),
            Self::Fleet(fleet) => fleet.end(),
        }
    }
}

/// Listens at an address; it answers once [`Web::start`] is given the socket.
///
/// # Errors
/// When the address is in use, or the system refuses.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "http://{address} is in use; stop whoever listens there, or give --http another port"
        ),
        _ => anyhow!("listening at http://{address}: {error}"),
    })
}

impl Web {
    /// Answers at a socket what is asked, and has done what is asked with the token.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn start(listener: TcpListener, content: Content, token: Token) -> Result<Self> {
        let address = listener.local_addr().context("asking for the port of HTTP")?;
        let (connections, is_stopping) = (AtomicUsize::new(0), AtomicBool::new(false));
        let viewers = Viewers::default();
        let site = Arc::new(Site { content, token, viewers, connections, is_stopping });
        let own = Arc::clone(&site);
        let acceptor = thread::Builder::new()
            .name("http-accept".to_owned())
            .spawn(move || own.accept(&listener))
            .context("starting a thread for HTTP")?;
        Ok(Self { address, site, acceptor: Some(acceptor) })
    }

    /// Where it answers.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Says where it answers; to a person, with the token.
    pub(crate) fn introduction(&self) -> String {
        let Self { address, site, .. } = self;
        if io::stderr().is_terminal() {
            return format!("dashboard at http://{address}/#token={}", site.token.text());
        }
        let token = match site.token.path() {
            Some(path) => format!("its token in {}", path.display()),
            None => "to look at; --token FILE keeps a token to change things with".to_owned(),
        };
        format!("dashboard at http://{address}/, {token}")
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.site.is_stopping.store(true, Ordering::Release);
        self.site.content.end();
        // The acceptor looks up when somebody comes; without this it ends with the process.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(acceptor) = self.acceptor.take()
        {
            // A thread that panicked accepts nobody any more.
            let _ = acceptor.join();
        }
    }
}

/// Closes a connection so that the answer arrives: what was sent and not read would undo it.
fn take_leave(mut connection: &TcpStream) -> io::Result<()> {
    connection.shutdown(Shutdown::Write)?;
    connection.set_read_timeout(Some(LEAVE))?;
    let mut rest = [0; 4096];
    for _ in 0..LEAVE_READS_MAX {
        if connection.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

impl Site {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            if self.is_stopping.load(Ordering::Acquire) {
                return;
            }
            match accepted {
                Ok((connection, _)) => self.admit(connection),
                // Mostly the system's want of descriptors, which passes.
                Err(_) => thread::sleep(ACCEPT_PAUSE),
            }
        }
    }

    fn admit(self: &Arc<Self>, connection: TcpStream) {
        if self.connections.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            self.connections.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let own = Arc::clone(self);
        let host = move || {
            // A client that is gone needs no report.
            let _ = own.converse(&connection).and_then(|()| take_leave(&connection));
            own.connections.fetch_sub(1, Ordering::AcqRel);
        };
        if thread::Builder::new().name("http".to_owned()).spawn(host).is_err() {
            self.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn converse(&self, connection: &TcpStream) -> io::Result<()> {
        connection.set_write_timeout(Some(PATIENCE))?;
        connection.set_nodelay(true)?;
        let request = match Request::read(connection, PATIENCE) {
            Ok(request) => request,
            Err(Fault::Refused(status, why)) => {
                return Reply::text(status, why).send(connection, false);
            }
            Err(Fault::Gone(error)) => return Err(error),
        };
        let Self { token, viewers, .. } = self;
        let visit = Visit { request: &request, token, viewers, connection };
        match gate::check(&request) {
            Err(refusal) => visit.send(&refusal),
            Ok(()) => self.content.answer(&visit),
        }
    }
}
