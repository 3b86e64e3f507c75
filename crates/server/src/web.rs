//! HTTP server of the dashboards: one served drive, or several drives and the runs of a folder.
//!
//! ```text
//!   connection ──► request ──► origin check: host name, page of origin ──► content ──┬─► reply
//!                                                                                    ├─► stream
//!                                       of a drive (drive routes), or many (volumes) └─► action,
//!                                                                                        by token
//! ```
//!
//! Every request has a connection and a thread of its own, and little time: a slow client holds up
//! neither the others nor the drive.

mod action;
mod attempts;
mod connection;
mod connections;
mod drive_card;
mod drive_routes;
mod metrics;
mod origin_check;
mod page;
mod reply;
mod reports;
mod request;
mod stream;
mod token;
mod visit;
mod volumes;

use std::io::{self, IsTerminal as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use export::Tls;

use self::connection::Connection;
use self::connections::{Connections, Entry};
pub use self::drive_routes::DriveRoutes;
use self::origin_check::OriginCheck;
use self::reply::Reply;
use self::request::{Fault, Request};
pub use self::token::Token;
use self::visit::Visit;
pub use self::volumes::Volumes;

/// Time limit for the TLS handshake and the request of a client, and for each part of an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause after the system had nothing left to accept a connection with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers at a socket until it is dropped.
#[derive(Debug)]
pub struct Web {
    address: SocketAddr,
    site: Arc<Site>,
    acceptor: Option<JoinHandle<()>>,
}

/// State that the threads of all connections share.
#[derive(Debug)]
struct Site {
    content: Content,
    door: Door,
    origin_check: OriginCheck,
    connections: Arc<Connections>,
    is_stopping: AtomicBool,
}

/// Ways in which a server is reached, and the token that permits changes.
#[derive(Debug)]
pub struct Door {
    /// The key to everything that changes a drive.
    pub token: Token,
    /// Names by which it may be reached beside its addresses and `localhost`.
    pub hosts: Vec<String>,
    /// TLS that clients have to use; none for plain HTTP.
    pub tls: Option<Tls>,
}

/// Content of a server.
#[derive(Debug)]
pub enum Content {
    /// The page of one drive.
    Drive(DriveRoutes),
    /// A page of many, and theirs behind it.
    Volumes(Volumes),
}

impl Content {
    fn answer(&self, visit: &Visit<'_>) -> io::Result<()> {
        match self {
            Self::Drive(routes) => routes.answer(visit, &visit.request.path),
            Self::Volumes(volumes) => volumes.answer(visit),
        }
    }

    /// Disconnects all viewers.
    fn end(&self) {
        match self {
            Self::Drive(routes) => routes.end(),
            Self::Volumes(volumes) => volumes.end(),
        }
    }
}

/// Listens at an address; it answers once [`Web::start`] is given the socket.
///
/// # Errors
/// Fails if the address is in use, or the system refuses.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "http://{address} is in use; stop the program that uses it, or give --http another port"
        ),
        _ => anyhow!("listening at http://{address}: {error}"),
    })
}

impl Web {
    /// Answers at a socket what is asked, and has done what is asked with the token.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn start(listener: TcpListener, content: Content, mut door: Door) -> Result<Self> {
        let address = listener.local_addr().context("asking for the port of HTTP")?;
        let hosts = std::mem::take(&mut door.hosts);
        let origin_check = OriginCheck { hosts, is_encrypted: door.tls.is_some() };
        let (connections, is_stopping) = (Arc::default(), AtomicBool::new(false));
        let site = Arc::new(Site { content, door, origin_check, connections, is_stopping });
        let own = Arc::clone(&site);
        let acceptor = thread::Builder::new()
            .name("http-accept".to_owned())
            .spawn(move || own.accept(&listener))
            .context("starting a thread for HTTP")?;
        Ok(Self { address, site, acceptor: Some(acceptor) })
    }

    /// The address of its first page.
    pub fn place(&self) -> String {
        format!("{}{}/", self.site.origin_check.scheme(), self.address)
    }

    /// Prints the address; for a person, with the token.
    pub fn introduction(&self) -> String {
        let (place, token) = (self.place(), &self.site.door.token);
        if io::stderr().is_terminal() {
            return format!("dashboard at {place}#token={}", token.text());
        }
        let token = match token.path() {
            Some(path) => format!("token in {}", path.display()),
            None => "read-only; --token FILE stores a token for changes".to_owned(),
        };
        format!("dashboard at {place}, {token}")
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.site.is_stopping.store(true, Ordering::Release);
        self.site.content.end();
        // The acceptor looks up when a client comes; without this it ends with the process.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(acceptor) = self.acceptor.take()
        {
            // A thread that panicked accepts no client any more.
            let _ = acceptor.join();
        }
    }
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

    fn admit(self: &Arc<Self>, socket: TcpStream) {
        let socket = Arc::new(socket);
        let (own, entry) = (Arc::clone(self), self.connections.enter(&socket));
        let host = move || {
            // A client that is gone needs no report.
            let _ = own.converse(&socket, &entry);
        };
        // Without a thread the connection is closed and its entry given back.
        let _ = thread::Builder::new().name("http".to_owned()).spawn(host);
    }

    fn converse(&self, socket: &Arc<TcpStream>, entry: &Entry) -> io::Result<()> {
        let connection = Connection::new(socket, self.door.tls.as_ref(), PATIENCE)?;
        let request = match Request::read(&connection, PATIENCE) {
            Ok(request) => request,
            Err(Fault::Refused(status, why)) => {
                Reply::text(status, why).send(&connection, false)?;
                return connection.take_leave();
            }
            Err(Fault::Gone(error)) => return Err(error),
        };
        entry.begin_answer();
        let token = &self.door.token;
        let visit = Visit { request: &request, token, entry, connection: &connection };
        match self.origin_check.check(&request) {
            Err(refusal) => visit.send(&refusal)?,
            Ok(()) => self.content.answer(&visit)?,
        }
        connection.take_leave()
    }
}
