//! Sockets: where clients come in, and one for each that came.
//!
//! A socket in the file system outlives a server that was killed. [`Listener::bind`] asks such a
//! socket whether a server listens, and takes its place if none does.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};

use super::Address;

/// Most bytes that the path of a Unix socket may have on Linux.
const PATH_BYTES_MAX: usize = 107;
/// Size of the send buffer of a client, so that a batch of replies goes in one call.
const SEND_BUFFER_BYTES: usize = 1 << 20;
/// Attempts to lock the folder of a socket, and the pause after each.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Error of listening at an address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A server listens there already.
    #[error("{address} is in use{by}; stop that server, or listen elsewhere")]
    InUse {
        /// The address.
        address: Address,
        /// ` by ` and the process that listens there, if it is known; otherwise empty.
        by: String,
    },
    /// The system cannot express the path.
    #[error(
        "the path of socket {path} has {length} bytes, the limit is {PATH_BYTES_MAX}; choose a \
         shorter one"
    )]
    LongPath {
        /// The path.
        path: PathBuf,
        /// Bytes of the path.
        length: usize,
    },
    /// The path exists and is no socket.
    #[error("{path} exists and is not a socket; remove it, or listen elsewhere")]
    InTheWay {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("listening at {address}: {source}")]
    System {
        /// The address.
        address: Address,
        /// Error that the system returned.
        source: io::Error,
    },
}

/// A socket that clients come to. A Unix socket is removed when it is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: Listening,
    address: Address,
    place: Option<SocketFile>,
    /// Event that ends accepting at a socket of another process, which goes on to listen there:
    /// shut down, it would take no client of the next server either.
    end: Option<OwnedFd>,
}

#[derive(Debug)]
enum Listening {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A Unix socket's path, and which file it is.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// A connection to one client.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

/// Origin of a connection, of which each has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A process of this machine, over a Unix socket.
    Process(i32),
    /// A machine, over TCP; this one is one, too.
    Machine(IpAddr),
    /// The system does not say.
    Unknown,
}

impl Listener {
    /// Listens at an address. A Unix socket that no process listens at is replaced.
    ///
    /// # Errors
    /// As [`BindError`] has it.
    pub fn bind(address: &Address) -> Result<Self, BindError> {
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => {
                BindError::InUse { address: address.clone(), by: String::new() }
            }
            _ => BindError::System { address: address.clone(), source },
        };
        match address {
            Address::Unix(path) => {
                let (socket, place) = bind_unix(address, path)?;
                let socket = Listening::Unix(socket);
                Ok(Self { socket, address: address.clone(), place: Some(place), end: None })
            }
            Address::Tcp { host, port } => {
                let socket = TcpListener::bind((host.as_str(), *port)).map_err(refused)?;
                let port = socket.local_addr().map_err(refused)?.port();
                let address = Address::Tcp { host: host.clone(), port };
                Ok(Self { socket: Listening::Tcp(socket), address, place: None, end: None })
            }
        }
    }

    /// Listens at a socket that another process opened, and leaves its path alone.
    ///
    /// # Errors
    /// Fails if it has no path, so that clients could not be told of it, or the system refuses.
    pub fn of_unix(socket: UnixListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let path = socket.local_addr()?.as_pathname().map(Path::to_owned);
        let path = path.ok_or_else(|| io::Error::other("the socket has no path"))?;
        Self::of_other(Listening::Unix(socket), Address::Unix(path))
    }

    /// Listens at a socket that another process opened.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn of_tcp(socket: TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let place = socket.local_addr()?;
        let address = Address::Tcp { host: place.ip().to_string(), port: place.port() };
        Self::of_other(Listening::Tcp(socket), address)
    }

    fn of_other(socket: Listening, address: Address) -> io::Result<Self> {
        let end = Some(eventfd(0, EventfdFlags::CLOEXEC)?);
        Ok(Self { socket, address, place: None, end })
    }

    /// Returns the address that clients connect to, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Address and port of a TCP socket.
    pub(crate) fn place(&self) -> Option<SocketAddr> {
        match &self.socket {
            Listening::Unix(_) => None,
            Listening::Tcp(socket) => socket.local_addr().ok(),
        }
    }

    /// True if clients on other machines can connect.
    pub fn is_reachable_from_outside(&self) -> bool {
        match &self.socket {
            Listening::Unix(_) => false,
            Listening::Tcp(socket) => !socket.local_addr().is_ok_and(|it| it.ip().is_loopback()),
        }
    }

    /// Waits for the next client.
    ///
    /// # Errors
    /// What the system answered; always once the listener was shut down.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        let Some(end) = &self.end else { return self.accepted() };
        loop {
            let socket = match &self.socket {
                Listening::Unix(socket) => socket.as_fd(),
                Listening::Tcp(socket) => socket.as_fd(),
            };
            let mut polled =
                [PollFd::new(end, PollFlags::IN), PollFd::from_borrowed_fd(socket, PollFlags::IN)];
            retry_on_intr(|| rustix::event::poll(&mut polled, None))?;
            if !polled[0].revents().is_empty() {
                return Err(io::Error::other("the listener was shut down"));
            }
            match self.accepted() {
                // It went away, or another process took it.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                accepted => return accepted,
            }
        }
    }

    fn accepted(&self) -> io::Result<Socket> {
        match &self.socket {
            Listening::Unix(listener) => {
                let socket = OwnedFd::from(listener.accept()?.0);
                sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)?;
                Ok(Socket(socket))
            }
            Listening::Tcp(listener) => {
                let socket = OwnedFd::from(listener.accept()?.0);
                sockopt::set_tcp_nodelay(&socket, true)?;
                // A client whose machine is gone is noticed in the end.
                sockopt::set_socket_keepalive(&socket, true)?;
                Ok(Socket(socket))
            }
        }
    }

    /// Ends [`Listener::accept`], in whatever thread it waits.
    pub(crate) fn shut_down(&self) {
        if let Some(end) = &self.end {
            // It takes one event, and more than one says no more.
            let _ = rustix::io::write(end, &1_u64.to_ne_bytes());
            return;
        }
        // It fails only when the socket is shut down already.
        let _ = match &self.socket {
            Listening::Unix(socket) => rustix::net::shutdown(socket, Shutdown::Both),
            Listening::Tcp(socket) => rustix::net::shutdown(socket, Shutdown::Both),
        };
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(place) = &self.place
            && place.is_still_ours()
        {
            // What cannot be removed is replaced by the next server.
            let _ = fs::remove_file(&place.path);
        }
    }
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    fn is_still_ours(&self) -> bool {
        Self::of(&self.path)
            .is_ok_and(|found| (found.device, found.inode) == (self.device, self.inode))
    }
}

#[cfg(test)]
impl From<std::os::unix::net::UnixStream> for Socket {
    fn from(stream: std::os::unix::net::UnixStream) -> Self {
        Self(stream.into())
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        socket.0
    }
}

impl Socket {
    /// Receives what is there, waiting for the first byte. Returns how much; zero at the end.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (_, received) =
            retry_on_intr(|| rustix::net::recv(&self.0, &mut *buffer, RecvFlags::empty()))?;
        Ok(received)
    }

    /// Receives what is there, if anything is; `None` if nothing is. Zero at the end.
    pub(crate) fn receive_at_once(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let received =
            retry_on_intr(|| rustix::net::recv(&self.0, &mut *buffer, RecvFlags::DONTWAIT));
        match received {
            Ok((_, received)) => Ok(Some(received)),
            Err(Errno::AGAIN) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// The next byte, which stays to be received, once it is there; none at the end.
    pub(crate) fn peek(&self) -> io::Result<Option<u8>> {
        let mut first = [0];
        let (_, received) =
            retry_on_intr(|| rustix::net::recv(&self.0, &mut first, RecvFlags::PEEK))?;
        Ok((received > 0).then_some(first[0]))
    }

    /// Waits until something can be received, or for this long. Returns whether something can.
    pub(crate) fn wait(&self, patience: Option<Duration>) -> io::Result<bool> {
        let patience = patience.map(|it| Timespec::try_from(it).expect("far below an age"));
        let mut sockets = [PollFd::new(&self.0, PollFlags::IN)];
        match rustix::event::poll(&mut sockets, patience.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(other) => Err(other.into()),
        }
    }

    /// Waits until `wake`, an event descriptor, was written to, which then is as before, or for
    /// this long; if `takes_more` also until something can be received. Returns whether something
    /// can.
    pub(crate) fn wait_also(
        &self,
        takes_more: bool,
        wake: &OwnedFd,
        patience: Option<Duration>,
    ) -> io::Result<bool> {
        let patience = patience.map(|it| Timespec::try_from(it).expect("far below an age"));
        // Without it the end of the connection is noticed by sending.
        let events = [PollFd::new(wake, PollFlags::IN), PollFd::new(&self.0, PollFlags::IN)];
        let mut events = events;
        let awaited = &mut events[..if takes_more { 2 } else { 1 }];
        match rustix::event::poll(awaited, patience.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(other) => return Err(other.into()),
        }
        if !awaited[0].revents().is_empty() {
            // It holds a number of eight bytes, which is of no interest.
            let _ = rustix::io::read(wake, &mut [0; 8]);
        }
        Ok(awaited.get(1).is_some_and(|socket| !socket.revents().is_empty()))
    }

    /// Sends what the system takes at once; `None` if it takes nothing.
    pub(crate) fn send_at_once(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match retry_on_intr(|| rustix::net::send(&self.0, bytes, flags)) {
            Ok(sent) => Ok(Some(sent)),
            Err(Errno::AGAIN) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// Sends all of `bytes`.
    pub(crate) fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = retry_on_intr(|| rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL))?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Bounds, or with `None` no longer bounds, how long receiving and sending wait.
    pub(crate) fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.0, Timeout::Recv, patience)?;
        sockopt::set_socket_timeout(&self.0, Timeout::Send, patience)?;
        Ok(())
    }

    /// The address that the client connected to, if it came over TCP.
    pub(crate) fn local_place(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(rustix::net::getsockname(&self.0).ok()?).ok()
    }

    /// Returns the origin of the connection.
    pub(crate) fn peer(&self) -> Peer {
        let place = rustix::net::getpeername(&self.0).ok().flatten();
        if let Some(place) = place.and_then(|it| SocketAddr::try_from(it).ok()) {
            return Peer::Machine(place.ip().to_canonical());
        }
        match sockopt::socket_peercred(&self.0) {
            Ok(owner) => Peer::Process(owner.pid.as_raw_nonzero().get()),
            Err(_) => Peer::Unknown,
        }
    }

    /// Receives no more; what was received already is still there.
    pub(crate) fn end_input(&self) {
        // It fails only when the client is gone.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Read);
    }

    /// Ends receiving and sending, in whatever thread they wait.
    pub(crate) fn cut(&self) {
        // It fails only when the client is gone.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }
}

fn bind_unix(address: &Address, path: &Path) -> Result<(UnixListener, SocketFile), BindError> {
    let length = path.as_os_str().len();
    if length > PATH_BYTES_MAX {
        return Err(BindError::LongPath { path: path.to_owned(), length });
    }
    let refused = |source: io::Error| BindError::System { address: address.clone(), source };
    // Two servers that start at once must not both find the socket of a third that is gone.
    let _lock = lock_folder(path);
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(BindError::InTheWay { path: path.to_owned() });
        }
        if let Some(by) = listening_at(path).map_err(refused)? {
            return Err(BindError::InUse { address: address.clone(), by });
        }
        fs::remove_file(path).map_err(refused)?;
    }
    let socket = UnixListener::bind(path).map_err(refused)?;
    Ok((socket, SocketFile::of(path).map_err(refused)?))
}

/// Holds the folder of `path` while it is kept, if that can be done soon; it matters only to
/// servers that start at the same moment.
fn lock_folder(path: &Path) -> Option<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).ok()?;
    for _ in 0..LOCK_TRIES {
        if folder.try_lock().is_ok() {
            return Some(folder);
        }
        thread::sleep(LOCK_PAUSE);
    }
    None
}

/// Connects to the socket `path`. Returns ` by PROCESS` if a process listens there, an empty text
/// if it is not known which; none if no process listens.
fn listening_at(path: &Path) -> io::Result<Option<String>> {
    // A server that takes no clients any more must not make this one wait.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) => Ok(Some(owner_of(&socket).unwrap_or_default())),
        Err(Errno::AGAIN) => Ok(Some(String::new())),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

fn owner_of(socket: &OwnedFd) -> Option<String> {
    let process = sockopt::socket_peercred(socket).ok()?.pid.as_raw_nonzero();
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    Some(format!(" by process {process} {}", name.trim()).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(folder: &Path, name: &str) -> Address {
        Address::Unix(folder.join(name))
    }

    #[test]
    fn a_socket_that_no_process_listens_at_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let address = unix(folder.path(), "s");
        // What a killed server leaves: a socket without a listener.
        drop(UnixListener::bind(folder.path().join("s")).unwrap());
        assert!(folder.path().join("s").exists());
        let listener = Listener::bind(&address).unwrap();
        drop(listener);
        assert!(!folder.path().join("s").exists(), "removed when dropped");
    }

    #[test]
    fn a_socket_in_use_is_refused_and_its_owner_named() {
        let folder = tempfile::tempdir().unwrap();
        let address = unix(folder.path(), "s");
        let _first = Listener::bind(&address).unwrap();
        let said = Listener::bind(&address).unwrap_err().to_string();
        let owner = format!("is in use by process {} ", std::process::id());
        assert!(said.contains(&owner), "{said}");
    }

    #[test]
    fn a_file_in_the_way_is_never_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s"), "mine").unwrap();
        let refused = Listener::bind(&unix(folder.path(), "s")).unwrap_err();
        assert!(matches!(refused, BindError::InTheWay { .. }), "{refused}");
        assert_eq!(fs::read_to_string(folder.path().join("s")).unwrap(), "mine");
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused_with_the_limit() {
        let said = Listener::bind(&Address::Unix("/tmp/".repeat(30).into())).unwrap_err();
        assert!(said.to_string().contains("has 150 bytes, the limit is 107"), "{said}");
    }

    #[test]
    fn a_socket_that_another_server_took_over_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let address = unix(folder.path(), "s");
        let first = Listener::bind(&address).unwrap();
        fs::remove_file(folder.path().join("s")).unwrap();
        let _second = Listener::bind(&address).unwrap();
        drop(first);
        assert!(folder.path().join("s").exists());
    }
}
