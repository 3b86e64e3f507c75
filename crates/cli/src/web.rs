//! What a served drive shows over HTTP.
//!
//! ```text
//!   connection ──► request ──► gate: by which name, from which page? ──┬─► answer ──► closed
//!                                                                      ├─► stream
//!                                                                      └─► action, by token
//! ```
//!
//! Every request has a connection and a thread of its own, and little time: whoever is slow holds
//! up neither the others nor the drive.

mod action;
mod gate;
mod metrics;
mod reply;
mod request;
mod stream;

use std::io::{self, IsTerminal as _, Read as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use live::status::Status;

use self::action::Token;
use self::metrics::Metrics;
use self::reply::Reply;
use self::request::{Fault, Request};
use self::stream::Stream;
use crate::observed::Observed;

/// Connections at once; further ones are closed.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take to send a request, and to take an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client that was answered may be silent without going, and how often it may not be.
const LEAVE: Duration = Duration::from_millis(500);
const LEAVE_READS_MAX: u32 = 32;
/// The page, all of it part of the program: it needs nothing from elsewhere.
const PAGE: &str = include_str!("../assets/dashboard.html");
const SCRIPT: &str = include_str!("../assets/dashboard.js");
const STYLE: &str = include_str!("../assets/dashboard.css");
const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
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
    /// Whoever asks does not keep the drive from being closed.
    observed: Weak<Observed>,
    token: Token,
    metrics: Metrics,
    stream: Stream,
    connections: AtomicUsize,
    is_stopping: AtomicBool,
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
    /// Answers at a socket what is asked about a drive.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn start(listener: TcpListener, observed: &Arc<Observed>) -> Result<Self> {
        let address = listener.local_addr().context("asking for the port of HTTP")?;
        let token = Token::draw(observed.vault()).context("writing the token of the dashboard")?;
        let site = Arc::new(Site {
            observed: Arc::downgrade(observed),
            token,
            metrics: Metrics::default(),
            stream: Stream::default(),
            connections: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
        });
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
        format!("dashboard at http://{address}/, its token in {}", site.token.path().display())
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.site.is_stopping.store(true, Ordering::Release);
        self.site.stream.end();
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
        let is_head = request.method == "HEAD";
        match gate::check(&request) {
            Err(refusal) => refusal.send(connection, is_head),
            Ok(()) if request.path == "/stream" && !is_head => {
                self.stream.serve(connection, || self.look())
            }
            Ok(()) if request.method == "POST" => self.done(&request).send(connection, false),
            Ok(()) => self.shown(&request.path).send(connection, is_head),
        }
    }

    fn done(&self, request: &Request) -> Reply {
        match self.observed.upgrade() {
            Some(observed) => action::carry_out(request, &self.token, &observed),
            None => Reply::text(503, "the drive is being closed"),
        }
    }

    fn shown(&self, path: &str) -> Reply {
        match path {
            "/" => Reply::new(HTML, PAGE),
            "/dashboard.js" => Reply::new(JAVASCRIPT, SCRIPT),
            "/ground.css" => Reply::new(CSS, report::GROUND_STYLE),
            "/dashboard.css" => Reply::new(CSS, STYLE),
            "/metrics" => self
                .looked_at(|status| Reply::new(metrics::CONTENT_TYPE, self.metrics.text(status))),
            "/status.json" => self.looked_at(Reply::json),
            _ => Reply::text(404, "there are /, /metrics, /status.json and /stream"),
        }
    }

    fn looked_at(&self, tell: impl Fn(&Status) -> Reply) -> Reply {
        match self.look() {
            Some(status) => tell(&status),
            None => Reply::text(503, "the drive is being closed"),
        }
    }

    /// How the drive fares; nothing once it is being closed.
    fn look(&self) -> Option<Status> {
        Some(self.observed.upgrade()?.status())
    }
}
