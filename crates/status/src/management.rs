//! The management socket: how programs ask the process that serves a drive.
//!
//! It lies in the drive's folder, and only its owner may use it. A request is one line of JSON, and
//! so is its answer; a client may send one after the other.
//!
//! The process that binds it has the drive open, and so is alone: a socket that is there already
//! was left by a process that was killed, and is replaced.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketType};
use serde::{Deserialize, Serialize};

use crate::{Fault, History, HistorySpan, Status, UserCapacity};

const NAME: &str = "manage.sock";
/// Clients that may wait to be accepted.
const BACKLOG: i32 = 16;
/// Most clients at once.
const CLIENTS_MAX: usize = 16;
/// Bytes of the longest request.
const REQUEST_BYTES_MAX: u64 = 4096;
/// Time limit of a client for an answer, and of the server for a client to take one.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time after which a silent client is disconnected.
const SILENCE: Duration = Duration::from_mins(1);
/// Pause after the system had no resources left to accept a client.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Request of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Reports the status of the drive.
    Status,
    /// Reports what the drive did lately.
    History {
        /// Time span to report.
        span: HistorySpan,
    },
    /// Turns the locate LED on or off.
    Locate {
        /// True to turn it on.
        is_lit: bool,
    },
    /// Fails a die: the drive goes on without it.
    FailDie {
        /// Index of the die.
        die: usize,
    },
    /// Begins to fill a replacement with what belongs on a die that has failed.
    ReplaceDie {
        /// Index of the failed die.
        die: usize,
        /// File, which is made, or block device, whose contents are lost; an absolute path.
        path: PathBuf,
        /// True if the device may hold something, which is lost then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        destroy: bool,
    },
    /// Adds a hot spare, which replaces the next die that fails.
    AddSpare {
        /// File, which is made, or block device, whose contents are lost; an absolute path.
        path: PathBuf,
        /// True if the device may hold something, which is lost then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        destroy: bool,
    },
    /// Removes a hot spare; the file or the device stays as it is.
    RemoveSpare {
        /// Its absolute path.
        path: PathBuf,
    },
    /// Begins to erase everything that is stored.
    Purge {
        /// Number of the drive to erase, as its status has it.
        drive: String,
        /// True to do so while clients use the drive.
        #[serde(default)]
        while_served: bool,
    },
    /// Erases likewise, and then gives the drive another capacity.
    Format {
        /// Number of the drive to format.
        drive: String,
        /// Capacity of the drive afterwards.
        capacity: UserCapacity,
        /// True to do so while clients use the drive.
        #[serde(default)]
        while_served: bool,
    },
    /// Gives the drive another size, keeping what is stored.
    Resize {
        /// Number of the drive to resize.
        drive: String,
        /// Bytes that clients address afterwards.
        size_bytes: u64,
        /// True if data beyond the new end may be lost.
        #[serde(default)]
        discard: bool,
        /// True to do so while clients use the drive.
        #[serde(default)]
        while_served: bool,
    },
    /// Injects a fault; only where the server allows that.
    InjectFault {
        /// Fault to inject.
        fault: Fault,
    },
    /// Begins a scrub: reads everything that is stored, and repairs what is not as it was written.
    Scrub,
}

/// Reason why a server that was started without faults refuses [`Request::InjectFault`].
pub const FAULTS_NOT_ALLOWED: &str =
    "faults are not allowed; start the server with --fault-injection";

/// Answer of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// Status of the drive.
    Status {
        /// Status at the time of the request.
        status: Box<Status>,
    },
    /// History of the drive.
    History {
        /// History over the requested span.
        history: Box<History>,
    },
    /// The request was carried out, or its work has begun.
    Done,
    /// The request was refused.
    Refused {
        /// Reason, as text.
        reason: String,
    },
}

/// Management socket of a drive, served by a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Management {
    listener: Arc<UnixListener>,
    is_stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Management {
    /// Begins to serve requests about the drive of a folder, which the caller has open.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn start(
        volume: &Path,
        answer: impl Fn(Request) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let path = volume.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = Arc::new(bind(volume)?);
        let is_stopping = Arc::new(AtomicBool::new(false));
        let (own, flag) = (Arc::clone(&listener), Arc::clone(&is_stopping));
        let acceptor = thread::Builder::new()
            .name("manage".to_owned())
            .spawn(move || accept(&own, &flag, &Arc::new(answer)))?;
        Ok(Self { listener, is_stopping, acceptor: Some(acceptor), path })
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Release);
        // It fails only when the socket is shut down already.
        let _ = rustix::net::shutdown(&*self.listener, Shutdown::Both);
        if let Some(acceptor) = self.acceptor.take() {
            // A thread that panicked accepts no client any more.
            let _ = acceptor.join();
        }
        // What cannot be removed is replaced by the next server.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the address of a folder's socket, however long the path of the folder is.
fn address(folder: &File) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd()))?)
}

fn socket() -> io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

fn bind(volume: &Path) -> io::Result<UnixListener> {
    let (folder, socket) = (File::open(volume)?, socket()?);
    // Before it has a name, so that no other user may use it at any moment.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &address(&folder)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

fn accept<F>(listener: &UnixListener, is_stopping: &AtomicBool, answer: &Arc<F>)
where
    F: Fn(Request) -> Answer + Send + Sync + 'static,
{
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = listener.accept();
        if is_stopping.load(Ordering::Acquire) {
            return;
        }
        let Ok((client, _)) = accepted else {
            // Mostly the system's want of descriptors, which passes.
            thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        if clients.fetch_add(1, Ordering::AcqRel) >= CLIENTS_MAX {
            clients.fetch_sub(1, Ordering::AcqRel);
            turn_away(&client);
            continue;
        }
        let (answer, seats) = (Arc::clone(answer), Arc::clone(&clients));
        let host = move || {
            // A client that is gone needs no report.
            let _ = converse(&client, &*answer);
            seats.fetch_sub(1, Ordering::AcqRel);
        };
        if thread::Builder::new().name("manage-client".to_owned()).spawn(host).is_err() {
            clients.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Tells a client beyond the limit why it is not served.
fn turn_away(mut client: &UnixStream) {
    let reason = format!("{CLIENTS_MAX} programs use the management socket, the limit; try again");
    if let Ok(line) = line_of(&Answer::Refused { reason }) {
        // The empty buffer of a new connection takes it at once; one that is gone needs none.
        let _ = client.write_all(&line);
    }
}

fn converse(mut client: &UnixStream, answer: &impl Fn(Request) -> Answer) -> io::Result<()> {
    client.set_read_timeout(Some(SILENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(client);
    loop {
        let mut line = String::new();
        reader.by_ref().take(REQUEST_BYTES_MAX).read_line(&mut line)?;
        let is_cut = !line.ends_with('\n');
        if is_cut && (line.len() as u64) < REQUEST_BYTES_MAX {
            return Ok(());
        }
        let answered = match serde_json::from_str(&line) {
            _ if is_cut => {
                let reason = format!("the request is longer than {REQUEST_BYTES_MAX} bytes");
                Answer::Refused { reason }
            }
            Ok(request) => answer(request),
            Err(error) => Answer::Refused { reason: format!("invalid request: {error}") },
        };
        client.write_all(&line_of(&answered)?)?;
        if is_cut {
            return Ok(());
        }
    }
}

fn line_of(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// A connection to the process that serves a drive.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
    pid: i32,
}

impl Connection {
    /// Connects to the process that serves the drive of a folder; none if no process does.
    ///
    /// # Errors
    /// What the system answered, such as that this user may not; and that the process takes no
    /// connections, since it is stopped.
    pub fn open(volume: &Path) -> io::Result<Option<Self>> {
        let (folder, stream) = (File::open(volume)?, UnixStream::from(socket()?));
        stream.set_read_timeout(Some(PATIENCE))?;
        // It limits the wait for a connection, too.
        stream.set_write_timeout(Some(PATIENCE))?;
        match rustix::net::connect(&stream, &address(&folder)?).map_err(io::Error::from) {
            Ok(()) => {}
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => return Ok(None),
                io::ErrorKind::WouldBlock => return Err(silent("the server accepted no program")),
                _ => return Err(error),
            },
        }
        let pid = rustix::net::sockopt::socket_peercred(&stream)?.pid.as_raw_nonzero().get();
        Ok(Some(Self { stream: BufReader::new(stream), pid }))
    }

    /// Returns the id of the process at the other end.
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::UnexpectedEof`] if the server ended before it answered, with
    /// [`io::ErrorKind::TimedOut`] if there is no answer in time, and if the answer is malformed.
    pub fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        let sent = self.stream.get_mut().write_all(&line_of(request)?);
        let closed = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
        let mut line = String::new();
        // One that turns programs away says why without reading what they send.
        let received = match sent {
            Err(error) if !closed.contains(&error.kind()) => Err(error),
            _ => self.stream.read_line(&mut line),
        };
        match received {
            Ok(_) if line.ends_with('\n') => Ok(serde_json::from_str(&line)?),
            #[cfg(test)]
            Ok(_) if tests::ANSWER_ASSUMED.get() => Ok(Answer::Done),
            Ok(_) => Err(self.unanswered(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.unanswered(error)),
        }
    }

    /// Returns the error of a request without an answer, in words.
    fn unanswered(&self, error: io::Error) -> io::Error {
        let server = format!("the server, process {},", self.pid);
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => {
                let text = format!("{server} ended before it answered");
                io::Error::new(io::ErrorKind::UnexpectedEof, text)
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                silent(&format!("{server} did not answer"))
            }
            _ => error,
        }
    }

    /// Asks for the status of the drive.
    ///
    /// # Errors
    /// As [`Connection::ask`], and when the server refuses.
    pub fn status(&mut self) -> io::Result<Status> {
        match self.ask(&Request::Status)? {
            // A server of another version may judge otherwise, or not at all.
            Answer::Status { status } => Ok(status.judged()),
            Answer::Refused { reason } => Err(io::Error::other(reason)),
            Answer::History { .. } | Answer::Done => {
                Err(io::Error::other("the server returned no status"))
            }
        }
    }

    /// Sends a request that is answered once it is carried out, or its work has begun.
    ///
    /// # Errors
    /// As [`Connection::ask`], and when the server refuses.
    pub fn order(&mut self, request: &Request) -> io::Result<()> {
        match self.ask(request)? {
            Answer::Refused { reason } => Err(io::Error::other(reason)),
            Answer::Done | Answer::Status { .. } | Answer::History { .. } => Ok(()),
        }
    }
}

/// Returns the error of a server that lets [`PATIENCE`] pass; `what` it did not do.
fn silent(what: &str) -> io::Error {
    let text = format!("{what} within {} s: it is stopped or overloaded", PATIENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn refusing(volume: &Path) -> Management {
        let answer = |_| Answer::Refused { reason: "asked".to_owned() };
        Management::start(volume, answer).unwrap()
    }

    #[test]
    fn only_the_owner_may_ask_and_learns_which_process_answers() {
        let folder = tempfile::tempdir().unwrap();
        let _management = refusing(folder.path());
        let mode = fs::metadata(folder.path().join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut connection = Connection::open(folder.path()).unwrap().unwrap();
        assert_eq!(connection.pid().cast_unsigned(), std::process::id());
        for _ in 0..2 {
            let answer = connection.ask(&Request::Status).unwrap();
            assert_eq!(answer, Answer::Refused { reason: "asked".to_owned() });
        }
    }

    #[test]
    fn a_folder_with_a_long_path_has_a_socket_like_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("long".repeat(40));
        fs::create_dir(&long).unwrap();
        let _management = refusing(&long);
        assert!(Connection::open(&long).unwrap().is_some());
    }

    #[test]
    fn no_server_answers_before_and_after_and_where_it_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Connection::open(folder.path()).unwrap().is_none());
        drop(refusing(folder.path()));
        assert!(Connection::open(folder.path()).unwrap().is_none());
        drop(UnixListener::bind(folder.path().join(NAME)).unwrap());
        assert!(Connection::open(folder.path()).unwrap().is_none());
        let _management = refusing(folder.path());
        assert!(Connection::open(folder.path()).unwrap().is_some());
    }

    #[test]
    fn what_is_no_request_is_refused_and_the_next_one_answered() {
        let folder = tempfile::tempdir().unwrap();
        let _management = refusing(folder.path());
        let mut connection = Connection::open(folder.path()).unwrap().unwrap();
        connection.stream.get_mut().write_all(b"{\"request\":\"format\"}\n").unwrap();
        let mut line = String::new();
        connection.stream.read_line(&mut line).unwrap();
        let refused = "{\"answer\":\"refused\",\"reason\":\"invalid request: ";
        assert!(line.starts_with(refused), "{line}");
        connection.ask(&Request::Status).unwrap();
    }
    #[test]
    fn a_server_that_ends_before_it_answers_is_told_from_one_that_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let listener = bind(folder.path()).unwrap();
        let mut connection = Connection::open(folder.path()).unwrap().unwrap();
        drop(listener.accept().unwrap());
        let error = connection.order(&Request::Scrub).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let told = format!("the server, process {}, ended before it ans", std::process::id());
        assert!(error.to_string().starts_with(&told), "{error}");
        drop((connection, listener));
        let _management = refusing(folder.path());
        let mut connection = Connection::open(folder.path()).unwrap().unwrap();
        let error = connection.order(&Request::Scrub).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::Other, "asked".to_owned()));
    }

    thread_local! {
        /// A planted mistake: an order counts as carried out although its answer was cut off.
        pub(super) static ANSWER_ASSUMED: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn an_order_counts_as_carried_out_once_its_answer_is_whole() {
        cut_each_answer().unwrap();
        ANSWER_ASSUMED.set(true);
        assert!(cut_each_answer().is_err(), "the planted mistake is not found");
    }

    /// Has the server end after each byte of its answer to an order.
    fn cut_each_answer() -> Result<(), String> {
        let whole = b"{\"answer\":\"done\"}\n";
        for sent in 0..=whole.len() {
            let (near, mut far) = UnixStream::pair().expect("the system has sockets");
            far.write_all(&whole[..sent]).expect("the other end is open");
            drop(far);
            let mut connection = Connection { stream: BufReader::new(near), pid: 0 };
            let done = connection.order(&Request::Scrub);
            if done.is_ok() != (sent == whole.len()) {
                return Err(format!("after {sent} bytes of an answer: {done:?}"));
            }
        }
        Ok(())
    }

    #[test]
    fn a_program_beyond_the_limit_hears_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let _management = refusing(folder.path());
        let open = || Connection::open(folder.path()).unwrap().unwrap();
        let mut seated: Vec<_> = (0..CLIENTS_MAX).map(|_| open()).collect();
        for it in &mut seated {
            it.ask(&Request::Status).unwrap();
        }
        let Answer::Refused { reason } = open().ask(&Request::Status).unwrap() else {
            panic!("it was let in");
        };
        assert!(reason.starts_with("16 programs use the management socket"), "{reason}");
    }

    #[test]
    fn a_request_that_is_too_long_is_refused_with_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let _management = refusing(folder.path());
        let mut connection = Connection::open(folder.path()).unwrap().unwrap();
        let path = PathBuf::from("x".repeat(5000));
        let error = connection.order(&Request::RemoveSpare { path }).unwrap_err();
        assert_eq!(error.to_string(), "the request is longer than 4096 bytes");
    }
}
