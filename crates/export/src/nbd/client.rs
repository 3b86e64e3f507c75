//! A client for tests: writes options and requests as bytes, and reads what comes back.

use std::sync::Arc;

use super::session::Session;
use super::terms::{Dialect, Terms};
use super::wire::{self, option, u16_at, u32_at, u64_at};
use crate::Export;
use crate::Replies;
use device::Device;

/// Numbers of requests.
pub(crate) mod kind {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISCONNECT: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// An answer to one request: of a structured reply, its only chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Kind of the chunk; of a simple reply zero.
    pub(crate) kind: u16,
    /// Error of a simple reply; of a structured one, its first number where it failed.
    pub(crate) errno: u32,
    pub(crate) cookie: u64,
    pub(crate) payload: Vec<u8>,
}

/// A request in the plain dialects; `cookie` is its offset, so that answers can be told apart.
pub(crate) fn request(kind: u16, flags: u16, (offset, length): (u64, u32)) -> Vec<u8> {
    let header = header(wire::REQUEST, kind, flags, offset);
    [header, length.to_be_bytes().to_vec()].concat()
}

/// A write with its payload.
pub(crate) fn write(flags: u16, offset: u64, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [request(kind::WRITE, flags, (offset, length)), payload.to_vec()].concat()
}

/// A request with an extended header.
pub(crate) fn extended(kind: u16, flags: u16, (offset, length): (u64, u64)) -> Vec<u8> {
    let header = header(wire::EXTENDED_REQUEST, kind, flags, offset);
    [header, length.to_be_bytes().to_vec()].concat()
}

/// A request up to its length.
fn header(magic: u32, kind: u16, flags: u16, offset: u64) -> Vec<u8> {
    let [cookie, offset] = [offset.to_be_bytes(); 2];
    [&magic.to_be_bytes()[..], &flags.to_be_bytes(), &kind.to_be_bytes(), &cookie, &offset].concat()
}

/// An option with its data.
pub(crate) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = wire::OPTION.to_be_bytes().to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    bytes.extend(data);
    bytes
}

/// A text with its length before it.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
}

/// The shortest handshake: flags, then `EXPORT_NAME` of the first export. 10 bytes answer it after
/// the greeting of 18.
pub(crate) fn shortest_handshake() -> Vec<u8> {
    [3_u32.to_be_bytes().to_vec(), option(option::EXPORT_NAME, b"")].concat()
}

/// Terms for `device` alone.
pub(crate) fn terms(device: Arc<dyn Device>, dialect: Dialect) -> Terms {
    let export = Arc::new(Export {
        name: String::new(),
        description: String::new(),
        device,
        is_read_only: false,
        pace: None,
    });
    Terms { export, dialect, reports_allocation: dialect != Dialect::Simple }
}

/// Returns the answers of a session to `input`, all of which it must take.
pub(crate) fn answers(session: &mut Session, dialect: Dialect, input: &[u8]) -> Vec<Answer> {
    let mut replies = Replies::new();
    let mut used = 0;
    let mut answers = Vec::new();
    while used < input.len() && !session.is_over() {
        let taken = session.take(&input[used..], &mut replies).expect("well-formed");
        assert!(taken.used_bytes > 0 || !replies.is_empty(), "no progress");
        used += taken.used_bytes;
        session.settle(&mut replies);
        answers.extend(parse(dialect, replies.as_bytes()));
        replies.clear();
    }
    answers
}

/// The answers in `bytes`, where simple ones carry no data.
pub(crate) fn parse(dialect: Dialect, mut bytes: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let (answer, used) = parse_one(dialect, bytes);
        answers.push(answer);
        bytes = &bytes[used..];
    }
    answers
}

fn parse_one(dialect: Dialect, bytes: &[u8]) -> (Answer, usize) {
    if dialect == Dialect::Simple {
        assert_eq!(u32_at(bytes, 0), wire::SIMPLE_REPLY);
        let (errno, cookie) = (u32_at(bytes, 4), u64_at(bytes, 8));
        return (Answer { kind: 0, errno, cookie, payload: Vec::new() }, 16);
    }
    let is_extended = dialect == Dialect::Extended;
    let magic = if is_extended { wire::EXTENDED_CHUNK } else { wire::CHUNK };
    assert_eq!(u32_at(bytes, 0), magic);
    assert_eq!(u16_at(bytes, 4), wire::chunk::DONE, "one chunk answers a request");
    let (kind, cookie) = (u16_at(bytes, 6), u64_at(bytes, 8));
    let (header, length) = match dialect {
        Dialect::Extended => (32, usize::try_from(u64_at(bytes, 24)).unwrap()),
        _ => (20, u32_at(bytes, 16) as usize),
    };
    let payload = bytes[header..header + length].to_vec();
    let errno = if kind & 1 << 15 != 0 { u32_at(&payload, 0) } else { 0 };
    (Answer { kind, errno, cookie, payload }, header + length)
}
