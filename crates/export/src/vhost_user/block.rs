//! The block device of virtio: requests of a driver, carried out on an export.
//!
//! ```text
//!   chain: header ──► data to be written ──► data to be read ──► status
//! ```
//!
//! Reads that come together are one call of the device. A flush, and a write that is to be durable,
//! is answered after one flush of the device for all of a batch.
//!
//! **Invariants**
//! - A write is durable once it is answered if the driver switched the cache off, or if the client
//!   may go on with another server: it would not learn that this one took a cache with it. The
//!   user may choose that such a write is volatile.
//! - Data is copied before the device sees it: a change by the virtual machine meanwhile does not
//!   reach what is stored.
//! - No request takes more memory than [`PIECE_BYTES`], however long it is.
//!
//! Its layout is that of [virtio-2022], section 5.2.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use blockio::{Op, SECTOR_BYTES};
use device::{DeviceError, Durability, ReadPart};

use super::ring::{Chain, Part};
use crate::guest_memory::{GuestMemory, GuestMemoryError};
use crate::little_endian::{u32_at, u64_at};
use crate::{Export, PacedCommand};

/// Data of a request that is in memory at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Longest read that is asked for together with others.
const TOGETHER_BYTES: u64 = 128 << 10;
/// Bytes of the header of a request, and of a range to be discarded.
const HEADER_BYTES: u64 = 16;
const RANGE_BYTES: u64 = 16;
/// Bytes of either.
const STRUCTURE_BYTES: usize = 16;
/// Bytes of the device's identifier.
const ID_BYTES: usize = 20;
/// Most ranges of a request, and most sectors of one.
pub(super) const RANGES_MAX: u32 = 256;
pub(super) const RANGE_SECTORS_MAX: u32 = 8 << 20;
/// Most data buffers of a request.
pub(super) const SEGMENTS_MAX: u32 = 254;
/// Flag of Write Zeroes: the device may unmap the range.
const MAY_UNMAP: u32 = 1;

/// Kinds of requests (section 5.2.6).
mod kind {
    pub(super) const READ: u32 = 0;
    pub(super) const WRITE: u32 = 1;
    pub(super) const FLUSH: u32 = 4;
    pub(super) const GET_ID: u32 = 8;
    pub(super) const DISCARD: u32 = 11;
    pub(super) const WRITE_ZEROES: u32 = 13;
}

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok = 0,
    Error = 1,
    Unsupported = 2,
}

/// The device of an export, as queues share it.
#[derive(Debug)]
pub(super) struct Block {
    export: Arc<Export>,
    /// Identifier, padded with zeroes.
    serial: [u8; ID_BYTES],
    /// True if the driver asked that a write is durable once it is answered.
    writes_through: AtomicBool,
    /// True if the client may go on with the next server after this one is killed.
    may_reconnect: AtomicBool,
    /// Durability of what such a client was answered.
    kept: Durability,
    /// Time after which requests are left undone, once the server ends.
    until: Arc<OnceLock<Instant>>,
}

/// Memory that is reused from batch to batch.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    /// Data of requests.
    data: Vec<u8>,
    headers: Vec<Option<Header>>,
    /// Offsets and lengths of reads that are asked for together.
    places: Vec<(u64, usize)>,
    done: Vec<CompletedRequest>,
}

/// A request that was carried out, or waits for a flush.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompletedRequest {
    status: Status,
    /// Data that was written into the memory of the virtual machine.
    data_bytes: u32,
    /// Command for the modelled drive, if it was one.
    pub(super) asked: Option<PacedCommand>,
    waits_for_flush: bool,
}

/// Failure of a request.
enum Failure {
    /// Its buffers do not fit the request.
    Malformed,
    Unsupported,
    Device,
    /// Its time is over: it is left undone.
    Late,
}

impl From<GuestMemoryError> for Failure {
    fn from(_: GuestMemoryError) -> Self {
        Self::Malformed
    }
}

impl From<DeviceError> for Failure {
    fn from(_: DeviceError) -> Self {
        Self::Device
    }
}

/// Header of a request.
#[derive(Clone, Copy, Debug)]
struct Header {
    kind: u32,
    sector: u64,
}

/// A range of sectors with flags.
struct Range {
    offset: u64,
    length: u64,
    flags: u32,
}

impl CompletedRequest {
    /// True if it was carried out.
    pub(super) fn is_ok(&self) -> bool {
        self.status == Status::Ok
    }

    const fn of(status: Status) -> Self {
        Self { status, data_bytes: 0, asked: None, waits_for_flush: false }
    }

    fn of_failure(failure: &Failure) -> Self {
        match failure {
            Failure::Unsupported => Self::of(Status::Unsupported),
            Failure::Malformed | Failure::Device | Failure::Late => Self::of(Status::Error),
        }
    }
}

impl Block {
    /// The device; once `until` has a time, requests are left undone after it.
    pub(super) fn new(
        export: Arc<Export>,
        serial: &str,
        kept: Durability,
        until: Arc<OnceLock<Instant>>,
    ) -> Self {
        let mut id = [0; ID_BYTES];
        for (byte, from) in id.iter_mut().zip(serial.bytes()) {
            *byte = from;
        }
        let (writes_through, may_reconnect) = Default::default();
        Self { export, serial: id, writes_through, may_reconnect, kept, until }
    }

    pub(super) const fn export(&self) -> &Arc<Export> {
        &self.export
    }

    /// Sets whether the driver asked that writes are durable once they are answered.
    pub(super) fn set_writes_through(&self, is_so: bool) {
        self.writes_through.store(is_so, Ordering::Relaxed);
    }

    pub(super) fn writes_through(&self) -> bool {
        self.writes_through.load(Ordering::Relaxed)
    }

    /// Notes that the client may go on with the next server after this one is killed.
    pub(super) fn set_may_reconnect(&self) {
        self.may_reconnect.store(true, Ordering::Relaxed);
    }

    /// True if a write is durable once it is answered.
    pub(super) fn is_durable(&self) -> bool {
        let is_kept = self.kept == Durability::Durable;
        self.writes_through()
            || self.export.device.is_write_through()
            || is_kept && self.may_reconnect.load(Ordering::Relaxed)
    }

    /// True if requests are left undone.
    pub(super) fn is_late(&self) -> bool {
        self.until.get().is_some_and(|until| Instant::now() >= *until)
    }

    fn check_time(&self) -> Result<(), Failure> {
        if self.is_late() { Err(Failure::Late) } else { Ok(()) }
    }

    /// Carries out requests, and returns the result of each; those behind the last result were left
    /// undone.
    pub(super) fn carry_out<'a>(
        &self,
        memory: &GuestMemory,
        chains: &[Chain],
        workspace: &'a mut Workspace,
    ) -> &'a [CompletedRequest] {
        let Workspace { data, headers, places, done } = workspace;
        done.clear();
        headers.clear();
        // One after the other, so that the processor fetches what the driver wrote all at once.
        headers.extend(chains.iter().map(|it| header(memory, it)));
        while let Some(chain) = chains.get(done.len()) {
            let at = done.len();
            self.find_reads(&chains[at..], &headers[at..], places);
            if places.len() > 1 {
                let here = &chains[at..][..places.len()];
                self.read_together(memory, here, (places, data), done);
            } else {
                let carried = headers[at].ok_or(Failure::Malformed);
                let carried = carried.and_then(|it| self.carry_out_one(memory, chain, it, data));
                if matches!(carried, Err(Failure::Late)) {
                    break;
                }
                done.push(carried.unwrap_or_else(|failure| CompletedRequest::of_failure(&failure)));
            }
        }
        if done.iter().any(|it| it.waits_for_flush) && self.export.device.flush().is_err() {
            for waiting in done.iter_mut().filter(|it| it.waits_for_flush) {
                *waiting = CompletedRequest::of(Status::Error);
            }
        }
        done
    }

    /// Puts the status of a request behind its data. Returns the bytes that were written in all.
    pub(super) fn answer(memory: &GuestMemory, chain: &Chain, done: &CompletedRequest) -> u32 {
        let Some(last) = chain.writable.iter().rev().find(|part| part.length > 0) else { return 0 };
        let place = last.address.wrapping_add(u64::from(last.length) - 1);
        // A status outside of the memory cannot be written anywhere else.
        match memory.write(place, &[done.status as u8]) {
            Ok(()) => done.data_bytes.saturating_add(1),
            Err(_) => 0,
        }
    }

    /// Finds the places of the reads that the chains begin with, of small ones alone.
    fn find_reads(
        &self,
        chains: &[Chain],
        headers: &[Option<Header>],
        places: &mut Vec<(u64, usize)>,
    ) {
        places.clear();
        let mut sum = 0;
        for (chain, header) in chains.iter().zip(headers) {
            let length = data_bytes(&chain.writable);
            let Some(Header { kind: kind::READ, sector }) = *header else { break };
            let offset = sector.checked_mul(SECTOR_BYTES);
            let within = |it: &u64| self.export.device.check_range(*it, length).is_ok();
            let Some(offset) = offset.filter(within) else { break };
            sum += length;
            let is_small = length > 0 && length <= TOGETHER_BYTES && sum <= PIECE_BYTES as u64;
            if !is_small || !length.is_multiple_of(SECTOR_BYTES) {
                break;
            }
            places.push((offset, usize::try_from(length).expect("it is small")));
        }
    }

    fn read_together(
        &self,
        memory: &GuestMemory,
        chains: &[Chain],
        (places, data): (&[(u64, usize)], &mut Vec<u8>),
        done: &mut Vec<CompletedRequest>,
    ) {
        let sum = places.iter().map(|(_, length)| length).sum();
        let mut rest = room(data, sum);
        let mut reads = Vec::with_capacity(places.len());
        for (offset, length) in places {
            let (buffer, after) = rest.split_at_mut(*length);
            reads.push(ReadPart { offset: *offset, buffer });
            rest = after;
        }
        let answers = self.export.device.read_many(&mut reads);
        done.extend(chains.iter().zip(&reads).zip(answers).map(|((chain, read), answer)| {
            let written = answer
                .map_err(Failure::from)
                .and_then(|()| Cursor::new(&chain.writable).write(memory, read.buffer));
            match written {
                Ok(()) => self.done(Op::Read, read.offset, read.buffer.len() as u64),
                Err(failure) => CompletedRequest::of_failure(&failure),
            }
        }));
    }

    fn carry_out_one(
        &self,
        memory: &GuestMemory,
        chain: &Chain,
        header: Header,
        data: &mut Vec<u8>,
    ) -> Result<CompletedRequest, Failure> {
        self.check_time()?;
        match header.kind {
            kind::READ => self.read(memory, chain, header, data),
            kind::WRITE => self.write(memory, chain, header, data),
            kind::FLUSH => {
                let asked = PacedCommand { op: Op::Flush, offset: 0, length: 0, fua: false };
                let done =
                    CompletedRequest { asked: Some(asked), ..CompletedRequest::of(Status::Ok) };
                Ok(CompletedRequest { waits_for_flush: true, ..done })
            }
            kind::GET_ID => {
                let length = data_bytes(&chain.writable).min(ID_BYTES as u64);
                let length = usize::try_from(length).expect("it is small");
                Cursor::new(&chain.writable).write(memory, &self.serial[..length])?;
                let data_bytes = u32::try_from(length).expect("it is small");
                Ok(CompletedRequest { data_bytes, ..CompletedRequest::of(Status::Ok) })
            }
            kind::DISCARD | kind::WRITE_ZEROES => self.discard(memory, chain, header.kind),
            _ => Err(Failure::Unsupported),
        }
    }

    fn read(
        &self,
        memory: &GuestMemory,
        chain: &Chain,
        header: Header,
        data: &mut Vec<u8>,
    ) -> Result<CompletedRequest, Failure> {
        let length = data_bytes(&chain.writable);
        let offset = self.place(header.sector, length)?;
        let mut cursor = Cursor::new(&chain.writable);
        for (at, piece_bytes) in pieces(offset, length) {
            self.check_time()?;
            let piece = room(data, piece_bytes);
            self.export.device.read(at, piece)?;
            cursor.write(memory, piece)?;
        }
        Ok(self.done(Op::Read, offset, length))
    }

    fn write(
        &self,
        memory: &GuestMemory,
        chain: &Chain,
        header: Header,
        data: &mut Vec<u8>,
    ) -> Result<CompletedRequest, Failure> {
        let length = total_bytes(&chain.readable) - HEADER_BYTES;
        let offset = self.place(header.sector, length)?;
        self.check_change()?;
        let mut cursor = Cursor::new(&chain.readable);
        cursor.skip(HEADER_BYTES);
        for (at, piece_bytes) in pieces(offset, length) {
            self.check_time()?;
            let piece = room(data, piece_bytes);
            cursor.read(memory, piece)?;
            self.export.device.write(at, piece, Durability::Volatile)?;
        }
        Ok(self.changed(Op::Write, offset, length))
    }

    /// Discards ranges, or writes zeroes to them.
    fn discard(
        &self,
        memory: &GuestMemory,
        chain: &Chain,
        kind: u32,
    ) -> Result<CompletedRequest, Failure> {
        self.check_change()?;
        let length = total_bytes(&chain.readable) - HEADER_BYTES;
        let count = length / RANGE_BYTES;
        if count == 0 || count > RANGES_MAX.into() || !length.is_multiple_of(RANGE_BYTES) {
            return Err(Failure::Malformed);
        }
        let mut cursor = Cursor::new(&chain.readable);
        cursor.skip(HEADER_BYTES);
        let mut ranges = Vec::new();
        for _ in 0..count {
            ranges.push(self.range(memory, &mut cursor, kind)?);
        }
        let device = &self.export.device;
        for Range { offset, length, flags } in &ranges {
            self.check_time()?;
            if kind == kind::DISCARD || flags & MAY_UNMAP != 0 {
                device.trim(*offset, *length, Durability::Volatile)?;
                continue;
            }
            if !device.write_zeroes(*offset, *length, &|| self.check_time().is_ok())? {
                self.check_time()?;
            }
        }
        let first = ranges.first().ok_or(Failure::Malformed)?;
        Ok(self.changed(Op::Trim, first.offset, ranges.iter().map(|range| range.length).sum()))
    }

    fn range(
        &self,
        memory: &GuestMemory,
        cursor: &mut Cursor<'_>,
        kind: u32,
    ) -> Result<Range, Failure> {
        let mut bytes = [0; STRUCTURE_BYTES];
        cursor.read(memory, &mut bytes)?;
        let number = |at| u32_at(&bytes, at).expect("within the range");
        let sector = u64_at(&bytes, 0).expect("within the range");
        let (sectors, flags) = (number(8), number(12));
        let known = if kind == kind::DISCARD { 0 } else { MAY_UNMAP };
        if flags & !known != 0 {
            return Err(Failure::Unsupported);
        }
        let length = u64::from(sectors) * SECTOR_BYTES;
        if sectors > RANGE_SECTORS_MAX {
            return Err(Failure::Malformed);
        }
        Ok(Range { offset: self.place(sector, length)?, length, flags })
    }

    /// Offset of a range that lies within the device.
    fn place(&self, sector: u64, length: u64) -> Result<u64, Failure> {
        let offset = sector.checked_mul(SECTOR_BYTES).ok_or(Failure::Malformed)?;
        if !length.is_multiple_of(SECTOR_BYTES) {
            return Err(Failure::Malformed);
        }
        self.export.device.check_range(offset, length)?;
        Ok(offset)
    }

    fn check_change(&self) -> Result<(), Failure> {
        if self.export.is_read_only { Err(Failure::Device) } else { Ok(()) }
    }

    fn changed(&self, op: Op, offset: u64, length: u64) -> CompletedRequest {
        let mut done = self.done(op, offset, length);
        if let Some(asked) = &mut done.asked {
            // What the driver asked for: the model and recordings know nothing of servers.
            asked.fua = self.writes_through();
        }
        CompletedRequest { waits_for_flush: self.is_durable(), data_bytes: 0, ..done }
    }

    fn done(&self, op: Op, offset: u64, length: u64) -> CompletedRequest {
        let offset = offset.saturating_add(self.export.device.origin());
        let asked = Some(PacedCommand { op, offset, length, fua: false });
        let data_bytes = u32::try_from(length).unwrap_or(u32::MAX);
        CompletedRequest { data_bytes, asked, ..CompletedRequest::of(Status::Ok) }
    }
}

/// The header of a request; none if its buffers have no room for it, or for the status.
fn header(memory: &GuestMemory, chain: &Chain) -> Option<Header> {
    if total_bytes(&chain.readable) < HEADER_BYTES || total_bytes(&chain.writable) == 0 {
        return None;
    }
    let mut bytes = [0; STRUCTURE_BYTES];
    Cursor::new(&chain.readable).read(memory, &mut bytes).ok()?;
    let (kind, sector) = u32_at(&bytes, 0).zip(u64_at(&bytes, 8))?;
    Some(Header { kind, sector })
}

fn total_bytes(parts: &[Part]) -> u64 {
    parts.iter().map(|part| u64::from(part.length)).sum()
}

/// Bytes of the data in writable buffers: all but the status.
fn data_bytes(writable: &[Part]) -> u64 {
    total_bytes(writable).saturating_sub(1)
}

/// The places and lengths of a range, piece by piece.
fn pieces(offset: u64, length: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..length.div_ceil(PIECE_BYTES as u64)).map(move |piece| {
        let done = piece * PIECE_BYTES as u64;
        let here = usize::try_from(length - done).unwrap_or(usize::MAX).min(PIECE_BYTES);
        (offset + done, here)
    })
}

/// The first `length` bytes of the memory for data, with any contents.
fn room(data: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if data.len() < length {
        data.resize(length, 0);
    }
    &mut data[..length]
}

/// A place in buffers that belong together.
struct Cursor<'a> {
    parts: &'a [Part],
    /// Bytes of the first part that are done with.
    done: u32,
}

impl<'a> Cursor<'a> {
    const fn new(parts: &'a [Part]) -> Self {
        Self { parts, done: 0 }
    }

    /// The address of the next piece, at most `left` bytes.
    fn next(&mut self, left: usize) -> Option<(u64, usize)> {
        loop {
            let (first, rest) = self.parts.split_first()?;
            let here = (first.length - self.done) as usize;
            if here == 0 {
                (self.parts, self.done) = (rest, 0);
                continue;
            }
            let address = first.address.wrapping_add(self.done.into());
            let length = here.min(left);
            self.done += u32::try_from(length).expect("no more than the part has");
            return Some((address, length));
        }
    }

    fn skip(&mut self, bytes: u64) {
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        while left > 0
            && let Some((_, length)) = self.next(left)
        {
            left -= length;
        }
    }

    fn read(&mut self, memory: &GuestMemory, buffer: &mut [u8]) -> Result<(), Failure> {
        let mut done = 0;
        while done < buffer.len() {
            let next = self.next(buffer.len() - done).ok_or(Failure::Malformed)?;
            memory.read(next.0, &mut buffer[done..][..next.1])?;
            done += next.1;
        }
        Ok(())
    }

    fn write(&mut self, memory: &GuestMemory, bytes: &[u8]) -> Result<(), Failure> {
        let mut done = 0;
        while done < bytes.len() {
            let next = self.next(bytes.len() - done).ok_or(Failure::Malformed)?;
            memory.write(next.0, &bytes[done..][..next.1])?;
            done += next.1;
        }
        Ok(())
    }
}
