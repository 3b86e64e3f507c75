//! The file of a recording: a magic number, then chunks, each with its length and checksum, so that
//! a truncated file is distinguished from a damaged one.
//!
//! ```text
//! file    "FLGTREC1", chunk, chunk, ...
//! chunk   kind u8, length of the payload u32, CRC-32C of kind, length and payload u32, payload
//!
//! kind    payload
//! H       head, JSON, once and first
//! R       requests in any order: count u32, then of each
//!           signed   issue in ns, less that of the request before (the first less 0)
//!           unsigned latency in ns
//!           signed   first sector, less the end of the request before (the first less 0)
//!           unsigned sectors
//!           u8       0 read, 1 write, 2 trim, 3 flush; 128 more with FUA
//!           unsigned client
//! L       number of requests u64 that were lost since the last R
//! T       transactions in any order: count u32, then of each
//!           signed   commit in ns, less that of the transaction before (the first less 0)
//!           unsigned latency in ns
//! E       tail, JSON, once and last
//! ```
//!
//! Whole numbers are little-endian; *unsigned* is LEB128, *signed* the same of the zigzag form. A
//! request takes some 12 bytes.

use std::io::{self, Read, Write};

use blockio::{Nanos, Op};
use thiserror::Error;

use super::{Head, RecordedRequest, Recording, Tail, Transaction};

/// First bytes of a recording.
pub const MAGIC: &[u8; 8] = b"FLGTREC1";
/// Maximum length of a chunk in bytes.
const CHUNK_BYTES_MAX: u32 = 64 << 20;
/// Maximum number of requests or transactions in a chunk, well below the maximum length.
const PART_MAX: usize = 1 << 20;
/// Bytes of a chunk before its payload.
const CHUNK_HEAD_BYTES: usize = 9;
/// Bit of a request's operation for FUA.
const FUA: u8 = 0x80;

/// Reason why a file cannot be read as a recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The file does not begin with the magic number.
    #[error("it is not a recording: it does not begin with FLGTREC1")]
    Magic,
    /// The file was written by a later version.
    #[error("it has format {found}, and formats up to {known} are known")]
    Schema {
        /// Version in the file.
        found: u32,
        /// Latest supported version.
        known: u32,
    },
    /// A part of the file is damaged.
    #[error("it is damaged at byte {at}: {what}")]
    Damaged {
        /// Offset of the chunk.
        at: u64,
        /// Fault that was found.
        what: String,
    },
    /// The file has no request.
    #[error("it has no request")]
    Empty,
    /// The file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Kind of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Head of the recording.
    Head,
    /// Requests.
    Requests,
    /// Number of lost requests.
    Lost,
    /// Transactions of the benchmark.
    Transactions,
    /// Tail of the recording.
    Tail,
}

impl Chunk {
    const ALL: [Self; 5] = [Self::Head, Self::Requests, Self::Lost, Self::Transactions, Self::Tail];

    const fn letter(self) -> u8 {
        match self {
            Self::Head => b'H',
            Self::Requests => b'R',
            Self::Lost => b'L',
            Self::Transactions => b'T',
            Self::Tail => b'E',
        }
    }
}

/// Writes a recording incrementally.
#[derive(Debug)]
pub struct RecordingWriter<W> {
    to: W,
    payload: Vec<u8>,
}

impl<W: Write> RecordingWriter<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn new(mut to: W, head: &Head) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        let mut writer = Self { to, payload: Vec::new() };
        writer.put_json(Chunk::Head, head)?;
        Ok(writer)
    }

    /// Adds requests, in any order.
    ///
    /// # Errors
    /// Fails if they cannot be written.
    pub fn put(&mut self, requests: &[RecordedRequest]) -> io::Result<()> {
        for part in requests.chunks(PART_MAX) {
            self.begin_part(part.len());
            let (mut issued, mut end) = (0, 0);
            for request in part {
                put_request(&mut self.payload, request, (issued, end));
                issued = request.issued_at.0;
                end = request.lba.wrapping_add(request.sectors.into());
            }
            self.put_chunk(Chunk::Requests)?;
        }
        Ok(())
    }

    /// Records that `count` requests were lost.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn put_lost(&mut self, count: u64) -> io::Result<()> {
        self.payload.clear();
        self.payload.extend(count.to_le_bytes());
        self.put_chunk(Chunk::Lost)
    }

    /// Adds transactions, in any order.
    ///
    /// # Errors
    /// Fails if they cannot be written.
    pub fn put_transactions(&mut self, transactions: &[Transaction]) -> io::Result<()> {
        for part in transactions.chunks(PART_MAX) {
            self.begin_part(part.len());
            let mut end = 0;
            for transaction in part {
                let mut entry = EntryBytes::new();
                entry.put_signed(transaction.to.0, end);
                entry.put_unsigned(transaction.latency().0);
                self.payload.extend_from_slice(entry.bytes());
                end = transaction.to.0;
            }
            self.put_chunk(Chunk::Transactions)?;
        }
        Ok(())
    }

    /// Starts the payload of a chunk with the number of its entries.
    fn begin_part(&mut self, count: usize) {
        let count = u32::try_from(count).expect("at most a mebi");
        self.payload.clear();
        self.payload.extend(count.to_le_bytes());
    }

    /// Passes added data to the kernel, so that it survives this process.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Ends the recording. Returns its writer.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn finish(mut self, tail: &Tail) -> io::Result<W> {
        self.put_json(Chunk::Tail, tail)?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn put_json(&mut self, chunk: Chunk, value: &impl serde::Serialize) -> io::Result<()> {
        self.payload = serde_json::to_vec(value)?;
        self.put_chunk(chunk)
    }

    fn put_chunk(&mut self, chunk: Chunk) -> io::Result<()> {
        let length = u32::try_from(self.payload.len()).map_err(io::Error::other)?;
        assert!(length <= CHUNK_BYTES_MAX, "a chunk that is written can be read");
        let mut head = [0; CHUNK_HEAD_BYTES];
        head[0] = chunk.letter();
        head[1..5].copy_from_slice(&length.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head[..5]), &self.payload);
        head[5..].copy_from_slice(&crc.to_le_bytes());
        self.to.write_all(&head)?;
        self.to.write_all(&self.payload)
    }
}

fn put_request(payload: &mut Vec<u8>, request: &RecordedRequest, (issued, end): (u64, u64)) {
    let mut entry = EntryBytes::new();
    entry.put_signed(request.issued_at.0, issued);
    entry.put_unsigned(request.latency().0);
    entry.put_signed(request.lba, end);
    entry.put_unsigned(request.sectors.into());
    let op = match request.op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Trim => 2,
        Op::Flush => 3,
    };
    entry.put(op | if request.fua { FUA } else { 0 });
    entry.put_unsigned(request.client.into());
    payload.extend_from_slice(entry.bytes());
}

/// A request or a transaction as bytes, which go to the payload at once: a check for room at each
/// byte took a third of the time.
struct EntryBytes {
    bytes: [u8; Self::BYTES_MAX],
    length: usize,
}

impl EntryBytes {
    /// Four numbers of ten bytes, one of three and an operation, with some room.
    const BYTES_MAX: usize = 48;

    const fn new() -> Self {
        Self { bytes: [0; Self::BYTES_MAX], length: 0 }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn put(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    fn put_unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.put(value.to_le_bytes()[0]);
    }

    /// Appends `value` minus `before`, modulo 2^64, in zigzag form.
    fn put_signed(&mut self, value: u64, before: u64) {
        let difference = value.wrapping_sub(before).cast_signed();
        self.put_unsigned(((difference << 1) ^ (difference >> 63)).cast_unsigned());
    }
}

/// Reads a recording. A truncated one ends with its last complete chunk and has no tail.
///
/// # Errors
/// Fails if the file is not a recording, is damaged, has no request, or cannot be read.
pub fn read(mut from: impl Read) -> Result<Recording, RecordingError> {
    let mut magic = [0; MAGIC.len()];
    if from.read_exact(&mut magic).is_err() || magic != *MAGIC {
        return Err(RecordingError::Magic);
    }
    let mut reading = RecordingReader { at: MAGIC.len() as u64, ..RecordingReader::default() };
    while let Some((chunk, payload)) = next_chunk(&mut from, reading.at)? {
        let taken = reading.take(chunk, &payload);
        taken.map_err(|what| what.at(reading.at))?;
        reading.at += (CHUNK_HEAD_BYTES + payload.len()) as u64;
    }
    reading.finish()
}

/// The next chunk; none at the end of the file, or if the rest is truncated.
fn next_chunk(from: &mut impl Read, at: u64) -> Result<Option<(Chunk, Vec<u8>)>, RecordingError> {
    let mut head = Vec::new();
    from.by_ref().take(CHUNK_HEAD_BYTES as u64).read_to_end(&mut head)?;
    let Some((kind, rest)) = head.split_first().filter(|_| head.len() == CHUNK_HEAD_BYTES) else {
        return Ok(None);
    };
    let damaged = |what: String| RecordingError::Damaged { at, what };
    let number = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
    let (length, crc) = (number(0), number(4));
    let chunk = Chunk::ALL.into_iter().find(|chunk| chunk.letter() == *kind);
    let chunk = chunk.ok_or_else(|| damaged(format!("no chunk is of kind {kind:#x}")))?;
    if length > CHUNK_BYTES_MAX {
        let what = format!("a chunk of {length} bytes, the limit is {CHUNK_BYTES_MAX}");
        return Err(damaged(what));
    }
    let mut payload = Vec::new();
    from.take(length.into()).read_to_end(&mut payload)?;
    if payload.len() < length as usize {
        return Ok(None);
    }
    let found = crc32c::crc32c_append(crc32c::crc32c(&head[..5]), &payload);
    if found != crc {
        return Err(damaged(format!("a checksum is {found:08x} and should be {crc:08x}")));
    }
    Ok(Some((chunk, payload)))
}

/// Fault of a chunk.
enum ChunkFault {
    Text(String),
    Schema(u32),
}

impl ChunkFault {
    fn at(self, at: u64) -> RecordingError {
        match self {
            Self::Text(what) => RecordingError::Damaged { at, what },
            Self::Schema(found) => RecordingError::Schema { found, known: Head::SCHEMA },
        }
    }
}

impl From<&str> for ChunkFault {
    fn from(what: &str) -> Self {
        Self::Text(what.to_owned())
    }
}

/// A recording that is being read.
#[derive(Default)]
struct RecordingReader {
    at: u64,
    head: Option<Head>,
    tail: Option<Tail>,
    requests: Vec<RecordedRequest>,
    lost: u64,
    transactions: Vec<Transaction>,
}

impl RecordingReader {
    fn take(&mut self, chunk: Chunk, payload: &[u8]) -> Result<(), ChunkFault> {
        if self.tail.is_some() {
            return Err("something follows the tail".into());
        }
        if (chunk == Chunk::Head) != self.head.is_none() {
            return Err("the head is not the first chunk, or there are two".into());
        }
        let json = |error: serde_json::Error| ChunkFault::Text(error.to_string());
        match chunk {
            Chunk::Head => {
                // The schema first: the rest may be of a later version.
                let value: serde_json::Value = serde_json::from_slice(payload).map_err(json)?;
                let schema = value.get("schema").and_then(serde_json::Value::as_u64);
                let schema = schema.and_then(|it| u32::try_from(it).ok()).unwrap_or(0);
                if schema > Head::SCHEMA {
                    return Err(ChunkFault::Schema(schema));
                }
                self.head = Some(serde_json::from_value(value).map_err(json)?);
            }
            Chunk::Requests => self.take_requests(payload)?,
            Chunk::Lost => {
                let count =
                    payload.try_into().map_err(|_| ChunkFault::from("a count of 8 bytes"))?;
                self.lost = self.lost.saturating_add(u64::from_le_bytes(count));
            }
            Chunk::Transactions => self.take_transactions(payload)?,
            Chunk::Tail => self.tail = Some(serde_json::from_slice(payload).map_err(json)?),
        }
        Ok(())
    }

    fn take_requests(&mut self, payload: &[u8]) -> Result<(), ChunkFault> {
        let (count, mut rest) = payload.split_first_chunk().ok_or("requests without a count")?;
        let space = self.head.as_ref().map_or(0, |head| head.size_bytes / blockio::SECTOR_BYTES);
        let (mut issued, mut end) = (0, 0);
        for _ in 0..u32::from_le_bytes(*count) {
            let request = take_request(&mut rest, (issued, end)).ok_or("a request is not whole")?;
            (issued, end) = (request.issued_at.0, request.lba.wrapping_add(request.sectors.into()));
            if end > space || end < request.lba {
                return Err("a request beyond the end of the device".into());
            }
            self.requests.push(request);
        }
        if !rest.is_empty() {
            return Err("more bytes than requests".into());
        }
        Ok(())
    }

    fn take_transactions(&mut self, payload: &[u8]) -> Result<(), ChunkFault> {
        let (count, mut rest) = payload.split_first_chunk().ok_or("transactions, no count")?;
        let mut end = 0;
        for _ in 0..u32::from_le_bytes(*count) {
            let to = take_signed(&mut rest, end).ok_or("a transaction is not whole")?;
            let latency = take_unsigned(&mut rest).ok_or("a transaction is not whole")?;
            let from = to.checked_sub(latency).ok_or("a transaction from before the recording")?;
            self.transactions.push(Transaction { from: Nanos(from), to: Nanos(to) });
            end = to;
        }
        if !rest.is_empty() {
            return Err("more bytes than transactions".into());
        }
        Ok(())
    }

    fn finish(self) -> Result<Recording, RecordingError> {
        let Self { at, head, mut tail, mut requests, lost, mut transactions } = self;
        let what = || "the head is not whole".to_owned();
        let head = head.ok_or_else(|| RecordingError::Damaged { at, what: what() })?;
        requests.sort_by_key(|it| (it.issued_at, it.completed_at));
        let start = requests.first().ok_or(RecordingError::Empty)?.issued_at;
        for request in &mut requests {
            request.issued_at = request.issued_at - start;
            request.completed_at = request.completed_at - start;
        }
        if let Some(tail) = &mut tail {
            tail.measured_from = tail.measured_from.saturating_sub(start);
            tail.measured_to = tail.measured_to.saturating_sub(start);
        }
        // The parents of requests before the first one are unknown.
        transactions.retain(|it| it.from >= start);
        for transaction in &mut transactions {
            transaction.from = transaction.from - start;
            transaction.to = transaction.to - start;
        }
        transactions.sort_by_key(|it| (it.to, it.from));
        Ok(Recording { head, tail, requests, lost, transactions })
    }
}

/// Takes a request from the front of `bytes`; none if they hold no complete, valid request.
fn take_request(bytes: &mut &[u8], (issued, end): (u64, u64)) -> Option<RecordedRequest> {
    let issued_at = take_signed(bytes, issued)?;
    let completed_at = issued_at.checked_add(take_unsigned(bytes)?)?;
    let lba = take_signed(bytes, end)?;
    let sectors = u32::try_from(take_unsigned(bytes)?).ok()?;
    let (op, rest) = bytes.split_first()?;
    *bytes = rest;
    let fua = op & FUA != 0;
    let op = match op & !FUA {
        0 => Op::Read,
        1 => Op::Write,
        2 => Op::Trim,
        3 => Op::Flush,
        _ => return None,
    };
    let client = u16::try_from(take_unsigned(bytes)?).ok()?;
    let is_legal = (op == Op::Flush) == (sectors == 0);
    let (issued_at, completed_at) = (Nanos(issued_at), Nanos(completed_at));
    is_legal.then_some(RecordedRequest { issued_at, completed_at, op, fua, lba, sectors, client })
}

fn take_unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part.checked_shl(shift)? >> shift != part {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take_signed(bytes: &mut &[u8], before: u64) -> Option<u64> {
    let zigzag = take_unsigned(bytes)?;
    let difference = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
    Some(before.wrapping_add_signed(difference))
}
