//! NBD servers as drives: what the address of one says, and what a first conversation tells.
//!
//! fio carries out the loads through its own engine. Before that this program must know how large
//! the export is, whether it may be written to and which transfers it takes; and a purge is a trim
//! of everything, which fio would log as a load; and a server may tell which blocks hold data. That
//! needs the fixed newstyle handshake and three commands of the protocol, which is all that is here
//! [nbd-proto].
//!
//! ```text
//! nbd://host:10809/name          over TCP
//! nbd+unix:///name?socket=/path  over a socket of this machine
//! ```

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use blockio::{Bytes, SECTOR_BYTES};
use percent_encoding::percent_decode_str;

use crate::{Error, Kind};

mod allocation;

/// Port of servers that name none.
const PORT: u16 = 10_809;
/// Time that a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time that a server may take to trim one stretch.
const TRIM_PATIENCE: Duration = Duration::from_mins(2);
/// Longest stretch that one trim command covers.
const TRIM_BYTES_MAX: u64 = 1 << 30;

const GREETING: u64 = 0x4e42_444d_4147_4943;
const OPTION: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;

/// Fixed newstyle, and no zeroes after the old option.
const NEWSTYLE: u16 = 0b11;
const OPT_ABORT: u32 = 2;
const OPT_GO: u32 = 7;
const OPT_STRUCTURED_REPLY: u32 = 8;
const OPT_LIST_META_CONTEXT: u32 = 9;
const REP_ACK: u32 = 1;
const REP_INFO: u32 = 3;
const REP_META_CONTEXT: u32 = 4;
const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;
const FLAG_READ_ONLY: u16 = 1 << 1;
const FLAG_TRIM: u16 = 1 << 5;
const FLAG_MULTI_CONN: u16 = 1 << 8;
const CMD_DISCONNECT: u16 = 2;
const CMD_TRIM: u16 = 4;

/// Longest answer to an option that is read: names and descriptions may come with it.
const ANSWER_BYTES_MAX: u32 = 64 << 10;

/// Address of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    place: Endpoint,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// Properties of an export, as its server states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// Smallest transfer that it takes, in bytes.
    pub sector_bytes: u64,
    /// True if the export refuses writes.
    pub read_only: bool,
    /// True if the export takes trims.
    pub trims: bool,
    /// True if several connections see each other's writes (`NBD_FLAG_CAN_MULTI_CONN`).
    pub many_connections: bool,
}

/// True if `name` is an address of an NBD server, not a path.
pub fn is_uri(name: &str) -> bool {
    name.split_once("://").is_some_and(|(scheme, _)| {
        scheme == "nbd" || scheme.starts_with("nbd+") || scheme.starts_with("nbds")
    })
}

impl Uri {
    /// Reads an address.
    ///
    /// # Errors
    /// Fails with the missing part of the address.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refused = |why: &str| {
            let hint = "such as nbd://localhost:10809/name or nbd+unix:///name?socket=/run/it.sock";
            Error::new(Kind::Input, format!("address {text}: {why}")).hint(hint)
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| refused("no scheme"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
        let place = match scheme {
            "nbd" => Endpoint::tcp(authority).ok_or_else(|| refused("no host, or a bad port"))?,
            "nbd+unix" => {
                let socket = query.split('&').find_map(|part| part.strip_prefix("socket="));
                let socket = socket.filter(|path| !path.is_empty());
                let path = socket.ok_or_else(|| refused("no socket"))?;
                let path: Cow<'_, [u8]> = percent_decode_str(path).into();
                Endpoint::Unix(OsStr::from_bytes(&path).into())
            }
            _ => return Err(refused("only nbd and nbd+unix can be measured")),
        };
        let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
        Ok(Self { place, name })
    }

    /// Queries size and flags of the export from the server.
    ///
    /// # Errors
    /// Fails if no server answers, or there is no such export.
    pub fn export(&self) -> Result<Export, Error> {
        let mut session = self.session()?;
        // What is known is known, whether the server hears the farewell or not.
        let _ = session.command(CMD_DISCONNECT, 0, 0);
        Ok(session.export)
    }

    /// Trims everything; how many bytes that was.
    ///
    /// # Errors
    /// Fails if the server refuses.
    pub fn trim(&self) -> Result<u64, Error> {
        let mut session = self.session()?;
        let failed = |source| Error::new(Kind::Io, format!("trimming {self}")).source(source);
        session.stream.set_patience(TRIM_PATIENCE).map_err(failed)?;
        let size = session.export.capacity_bytes;
        let mut at = 0;
        while at < size {
            let length = (size - at).min(TRIM_BYTES_MAX);
            session.command(CMD_TRIM, at, length).map_err(failed)?;
            session.acknowledged().map_err(failed)?;
            at += length;
        }
        // Everything is trimmed already.
        let _ = session.command(CMD_DISCONNECT, 0, 0);
        Ok(size)
    }

    /// Names of the metadata contexts of the export that match `query`; none where the server has
    /// no such contexts.
    ///
    /// # Errors
    /// Fails if no server answers.
    pub fn contexts(&self, query: &str) -> io::Result<Vec<String>> {
        let mut stream = self.place.connect()?;
        greet(&mut stream)?;
        contexts(&mut stream, &self.name, query)
    }

    fn session(&self) -> Result<Session, Error> {
        let asked = |source: io::Error| {
            let missing = source.kind() == io::ErrorKind::NotFound
                && source.get_ref().and_then(|it| it.downcast_ref::<NoExport>()).is_some();
            let error = Error::new(Kind::Input, format!("asking the NBD server {self}"));
            let hint = if missing {
                "`nbdinfo --list` shows its exports"
            } else {
                "is the server running, and does it take connections without TLS?"
            };
            error.hint(hint).source(source)
        };
        let stream = self.place.connect().map_err(asked)?;
        Session::begin(stream, &self.name).map_err(asked)
    }
}

impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}")?,
            Endpoint::Unix(path) => write!(f, "{}", path.display())?,
        }
        if self.name.is_empty() { Ok(()) } else { write!(f, ", export {}", self.name) }
    }
}

impl Endpoint {
    /// Reads `host`, `host:port` or `[::1]:port`.
    fn tcp(authority: &str) -> Option<Self> {
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                (host, port.strip_prefix(':'))
            }
            None => authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p))),
        };
        let port = port.map_or(Some(PORT), |port| port.parse().ok())?;
        (!host.is_empty()).then(|| Self::Tcp { host: host.into(), port })
    }

    fn connect(&self) -> io::Result<Stream> {
        let mut stream = match self {
            Self::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            Self::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                let mut connected = None;
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, PATIENCE) {
                        Ok(stream) => {
                            connected = Some(stream);
                            break;
                        }
                        Err(source) => last = source,
                    }
                }
                Stream::Tcp(connected.ok_or(last)?)
            }
        };
        stream.set_patience(PATIENCE)?;
        Ok(stream)
    }
}

/// A connection, of either kind.
#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn set_patience(&mut self, span: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(span)),
            Self::Unix(stream) => stream.set_read_timeout(Some(span)),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
        }
    }

    fn receive<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.receive_into(&mut bytes)?;
        Ok(bytes)
    }

    fn receive_into(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.read_exact(bytes),
            Self::Unix(stream) => stream.read_exact(bytes),
        }
    }

    fn u16(&mut self) -> io::Result<u16> {
        Ok(u16::from_be_bytes(self.receive()?))
    }

    fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_be_bytes(self.receive()?))
    }

    fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_be_bytes(self.receive()?))
    }
}

/// The server has no export of the name that was asked for, or will not give it.
#[derive(Debug, thiserror::Error)]
#[error("the export does not exist, or access to it is refused (reply {0:#x})")]
struct NoExport(u32);

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// A connection after the handshake.
#[derive(Debug)]
struct Session {
    stream: Stream,
    export: Export,
}

impl Session {
    /// Greets the server and asks for the export `name`.
    fn begin(mut stream: Stream, name: &str) -> io::Result<Self> {
        greet(&mut stream)?;
        Self::go(stream, name)
    }

    /// Asks a server that was greeted for the export `name`.
    fn go(mut stream: Stream, name: &str) -> io::Result<Self> {
        let mut data = with_length(name)?;
        data.extend(1_u16.to_be_bytes());
        data.extend(INFO_BLOCK_SIZE.to_be_bytes());
        stream.send(&option(OPT_GO, &data)?)?;
        let export = told(&mut stream)?;
        Ok(Self { stream, export })
    }

    fn command(&mut self, command: u16, offset: u64, length: u64) -> io::Result<()> {
        let length = u32::try_from(length).map_err(|_| odd("a command covers 4 GiB at most"))?;
        let mut message = REQUEST.to_be_bytes().to_vec();
        message.extend(0_u16.to_be_bytes());
        message.extend(command.to_be_bytes());
        message.extend(0_u64.to_be_bytes());
        message.extend(offset.to_be_bytes());
        message.extend(length.to_be_bytes());
        self.stream.send(&message)
    }

    fn acknowledged(&mut self) -> io::Result<()> {
        if self.stream.u32()? != REPLY {
            return Err(odd("the reply to a command is malformed"));
        }
        let code = self.stream.u32()?;
        let _cookie = self.stream.u64()?;
        match i32::try_from(code) {
            Ok(0) => Ok(()),
            Ok(code) => Err(io::Error::from_raw_os_error(code)),
            Err(_) => Err(odd("the answer to a command has no known error")),
        }
    }
}

/// Reads the greeting of a server and answers it.
fn greet(stream: &mut Stream) -> io::Result<()> {
    if stream.u64()? != GREETING || stream.u64()? != OPTION {
        return Err(odd("it does not support the newstyle handshake of NBD"));
    }
    let flags = stream.u16()? & NEWSTYLE;
    stream.send(&u32::from(flags).to_be_bytes())
}

/// An option with its data.
fn option(number: u32, data: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(data.len()).map_err(|_| odd("the name is too long"))?;
    let head = [&OPTION.to_be_bytes()[..], &number.to_be_bytes(), &length.to_be_bytes()];
    Ok([&head.concat(), data].concat())
}

/// A text with its length before it.
fn with_length(text: &str) -> io::Result<Vec<u8>> {
    let length = u32::try_from(text.len()).map_err(|_| odd("the name is too long"))?;
    Ok([&length.to_be_bytes()[..], text.as_bytes()].concat())
}

/// Reads one answer to the option `number`: its kind and its data.
fn answer(stream: &mut Stream, number: u32) -> io::Result<(u32, Vec<u8>)> {
    if stream.u64()? != OPTION_REPLY || stream.u32()? != number {
        return Err(odd("the reply to an option is malformed"));
    }
    let (kind, length) = (stream.u32()?, stream.u32()?);
    if length > ANSWER_BYTES_MAX {
        return Err(odd("the answer to an option is too long"));
    }
    let mut data = vec![0; length as usize];
    stream.receive_into(&mut data)?;
    Ok((kind, data))
}

/// Asks a server that was greeted for the contexts of the export `name`, and leaves it.
fn contexts(stream: &mut Stream, name: &str, query: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    stream.send(&option(OPT_STRUCTURED_REPLY, &[])?)?;
    if answer(stream, OPT_STRUCTURED_REPLY)?.0 == REP_ACK {
        let queries = [&1_u32.to_be_bytes()[..], &with_length(query)?].concat();
        let data = [with_length(name)?, queries].concat();
        stream.send(&option(OPT_LIST_META_CONTEXT, &data)?)?;
        // A refusal ends the list as its acknowledgement does.
        while let (REP_META_CONTEXT, data) = answer(stream, OPT_LIST_META_CONTEXT)? {
            let context = data.get(4..).unwrap_or_default();
            names.push(String::from_utf8_lossy(context).into_owned());
        }
    }
    // What was asked for is there, whether the server hears the farewell or not.
    let _ = stream.send(&option(OPT_ABORT, &[])?);
    Ok(names)
}

/// Reads the answers to `GO` until the acknowledgement.
fn told(stream: &mut Stream) -> io::Result<Export> {
    let mut export = None;
    let mut sector_bytes = SECTOR_BYTES;
    loop {
        let (kind, answer) = answer(stream, OPT_GO)?;
        match kind {
            REP_ACK => {
                let export: Export = export.ok_or_else(|| odd("it reports no size"))?;
                return Ok(Export { sector_bytes, ..export });
            }
            REP_INFO => match info(&answer) {
                (Some(INFO_EXPORT), rest) => export = Some(exported(rest)?),
                (Some(INFO_BLOCK_SIZE), [a, b, c, d, ..]) => {
                    let smallest = u64::from(u32::from_be_bytes([*a, *b, *c, *d]));
                    sector_bytes = smallest.max(SECTOR_BYTES);
                }
                _ => {}
            },
            error => return Err(io::Error::new(io::ErrorKind::NotFound, NoExport(error))),
        }
    }
}

/// The type of an information, and the rest of it.
fn info(answer: &[u8]) -> (Option<u16>, &[u8]) {
    match answer {
        [a, b, rest @ ..] => (Some(u16::from_be_bytes([*a, *b])), rest),
        _ => (None, &[]),
    }
}

fn exported(rest: &[u8]) -> io::Result<Export> {
    let (size, flags) = rest.split_first_chunk::<8>().ok_or_else(|| odd("it reports no size"))?;
    let [a, b, ..] = flags else { return Err(odd("it reports no flags")) };
    let flags = u16::from_be_bytes([*a, *b]);
    Ok(Export {
        capacity_bytes: u64::from_be_bytes(*size),
        sector_bytes: SECTOR_BYTES,
        read_only: flags & FLAG_READ_ONLY != 0,
        trims: flags & FLAG_TRIM != 0,
        many_connections: flags & FLAG_MULTI_CONN != 0,
    })
}

impl Export {
    /// Rows of a specification sheet.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
        vec![
            ("Capacity", Bytes(self.capacity_bytes).to_string()),
            ("Logical sector", format!("{} B", self.sector_bytes)),
            ("Takes trims", yes(self.trims)),
            ("Consistent over several connections", yes(self.many_connections)),
        ]
    }
}

#[cfg(test)]
mod tests;
