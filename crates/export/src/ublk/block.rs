//! Requests of the block layer, carried out on an export.
//!
//! Small reads that come together are one call of the device. A flush, and a write that is to be
//! durable, is answered after one flush of the device for all of a batch.
//!
//! **Invariants**
//! - A write is durable once it is answered if it says so, or if the device has no write cache:
//!   its users would not learn that a killed server took a cache with it.
//! - The data of a request is what the kernel copied once, and stays as it is, whatever its user
//!   does with its memory meanwhile.

use std::mem;
use std::sync::Arc;

use blockio::{Op, SECTOR_BYTES};
use device::{DeviceError, Durability, ReadPart};
use rustix::io::Errno;

use super::layout::{Descriptor, kind};
use crate::{Export, PacedCommand};

/// Longest read or write: that of ublksrv, since each tag has memory for one.
pub(super) const REQUEST_BYTES_MAX: u32 = 512 << 10;
/// Longest discard, or range of zeroes.
pub(super) const DISCARD_SECTORS_MAX: u32 = 1 << 22;
/// Longest read that is asked for together with others.
const TOGETHER_BYTES: usize = 128 << 10;

/// Memory for the data of requests, by tag: of a write the driver fills it before it hands the tag
/// over, of a read it takes it with the answer. The system gives the memory as it is first used.
#[derive(Debug)]
pub(super) struct Buffers(Vec<Vec<u8>>);

/// A request with its tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaggedRequest {
    pub(super) tag: u16,
    pub(super) request: Descriptor,
}

/// A request that was carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompletedRequest {
    /// Bytes that were moved, or a negative error number.
    pub(super) result: i32,
    /// Command for the modelled drive; none if it failed.
    pub(super) asked: Option<PacedCommand>,
    waits_for_flush: bool,
}

/// The export that a device is.
#[derive(Debug)]
pub(super) struct Block {
    export: Arc<Export>,
}

/// Place and length of a request in bytes.
#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    length: u64,
}

impl CompletedRequest {
    fn of_error(errno: Errno) -> Self {
        Self { result: -errno.raw_os_error(), asked: None, waits_for_flush: false }
    }
}

impl Buffers {
    /// Memory for `depth` tags.
    pub(super) fn new(depth: u16) -> Self {
        Self((0..depth).map(|_| vec![0; REQUEST_BYTES_MAX as usize]).collect())
    }

    /// The address of the memory of a tag, for the driver.
    pub(super) fn address(&mut self, tag: u16) -> u64 {
        self.0[usize::from(tag)].as_mut_ptr().expose_provenance() as u64
    }

    fn get(&mut self, tag: u16, place: Place) -> Result<&mut [u8], Errno> {
        let length = usize::try_from(place.length).map_err(|_| Errno::IO)?;
        // The driver keeps reads and writes within the limit.
        self.0[usize::from(tag)].get_mut(..length).ok_or(Errno::IO)
    }
}

impl Block {
    pub(super) const fn new(export: Arc<Export>) -> Self {
        Self { export }
    }

    /// Carries out requests, and returns the result of each.
    pub(super) fn carry_out(
        &self,
        buffers: &mut Buffers,
        requests: &[TaggedRequest],
    ) -> Vec<CompletedRequest> {
        let mut done: Vec<CompletedRequest> = Vec::with_capacity(requests.len());
        while let Some(first) = requests.get(done.len()) {
            let rest = &requests[done.len()..];
            let together = self.reads_at(rest);
            if together > 1 {
                done.extend(self.read_together(buffers, &rest[..together]));
            } else {
                let carried = self.carry_out_one(buffers, *first);
                done.push(carried.unwrap_or_else(CompletedRequest::of_error));
            }
        }
        if done.iter().any(|it| it.waits_for_flush)
            && let Err(error) = self.export.device.flush()
        {
            for waiting in done.iter_mut().filter(|it| it.waits_for_flush) {
                *waiting = CompletedRequest::of_error(errno(&error));
            }
        }
        done
    }

    /// Number of small reads that the requests begin with.
    fn reads_at(&self, requests: &[TaggedRequest]) -> usize {
        let mut sum = 0;
        let is_small_read = |it: &&TaggedRequest| {
            let bytes = bytes_of(&it.request);
            sum += bytes;
            let is_small = bytes <= TOGETHER_BYTES && sum <= REQUEST_BYTES_MAX as usize;
            it.request.kind == kind::READ && is_small && self.place(&it.request).is_ok()
        };
        requests.iter().take_while(is_small_read).count()
    }

    fn read_together(
        &self,
        buffers: &mut Buffers,
        requests: &[TaggedRequest],
    ) -> Vec<CompletedRequest> {
        // Each tag has memory of its own, which is lent for the call.
        let lend = |it: &TaggedRequest| mem::take(&mut buffers.0[usize::from(it.tag)]);
        let mut lent: Vec<Vec<u8>> = requests.iter().map(lend).collect();
        let mut reads = Vec::with_capacity(requests.len());
        for (TaggedRequest { request, .. }, lent) in requests.iter().zip(&mut lent) {
            let buffer = &mut lent[..bytes_of(request)];
            reads.push(ReadPart { offset: request.first_sector * SECTOR_BYTES, buffer });
        }
        let answers = self.export.device.read_many(&mut reads);
        for (it, lent) in requests.iter().zip(lent) {
            buffers.0[usize::from(it.tag)] = lent;
        }
        let done = requests.iter().zip(answers).map(|(it, answer)| match answer {
            Ok(()) => {
                let length = bytes_of(&it.request) as u64;
                let place = Place { offset: it.request.first_sector * SECTOR_BYTES, length };
                self.done(Op::Read, place, &it.request)
            }
            Err(error) => CompletedRequest::of_error(errno(&error)),
        });
        done.collect()
    }

    fn carry_out_one(
        &self,
        buffers: &mut Buffers,
        it: TaggedRequest,
    ) -> Result<CompletedRequest, Errno> {
        let TaggedRequest { tag, request } = it;
        match request.kind {
            kind::READ => {
                let place = self.place(&request)?;
                let read = self.export.device.read(place.offset, buffers.get(tag, place)?);
                read.map_err(|error| errno(&error))?;
                Ok(self.done(Op::Read, place, &request))
            }
            kind::WRITE => {
                let place = self.place(&request)?;
                self.check_change()?;
                let (device, data) = (&self.export.device, buffers.get(tag, place)?);
                let written = device.write(place.offset, data, Durability::Volatile);
                written.map_err(|error| errno(&error))?;
                Ok(self.changed(Op::Write, place, &request))
            }
            kind::FLUSH => {
                let done = self.done(Op::Flush, Place { offset: 0, length: 0 }, &request);
                let asked = Some(PacedCommand { op: Op::Flush, offset: 0, length: 0, fua: false });
                Ok(CompletedRequest { asked, waits_for_flush: true, ..done })
            }
            kind::DISCARD | kind::WRITE_ZEROES => self.discard(&request),
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// Discards a range, or writes zeroes to it.
    fn discard(&self, request: &Descriptor) -> Result<CompletedRequest, Errno> {
        let place = self.place(request)?;
        self.check_change()?;
        let device = &self.export.device;
        if request.kind == kind::DISCARD || request.may_unmap {
            let trimmed = device.trim(place.offset, place.length, Durability::Volatile);
            trimmed.map_err(|error| errno(&error))?;
            return Ok(self.changed(Op::Trim, place, request));
        }
        let written = device.write_zeroes(place.offset, place.length, &|| true);
        written.map_err(|error| errno(&error))?;
        Ok(self.changed(Op::Trim, place, request))
    }

    /// Checks that a request lies within the device.
    fn place(&self, request: &Descriptor) -> Result<Place, Errno> {
        let offset = request.first_sector.checked_mul(SECTOR_BYTES).ok_or(Errno::IO)?;
        let length = u64::from(request.sectors) * SECTOR_BYTES;
        self.export.device.check_range(offset, length).map_err(|_| Errno::IO)?;
        Ok(Place { offset, length })
    }

    fn check_change(&self) -> Result<(), Errno> {
        if self.export.is_read_only { Err(Errno::ROFS) } else { Ok(()) }
    }

    fn changed(&self, op: Op, place: Place, request: &Descriptor) -> CompletedRequest {
        let mut done = self.done(op, place, request);
        if let Some(asked) = &mut done.asked {
            // What its user asked for: the model and recordings know nothing of servers.
            asked.fua = request.is_fua;
        }
        let waits_for_flush = request.is_fua || self.export.device.is_write_through();
        CompletedRequest { waits_for_flush, ..done }
    }

    fn done(&self, op: Op, place: Place, request: &Descriptor) -> CompletedRequest {
        let Place { offset, length } = place;
        let offset = offset.saturating_add(self.export.device.origin());
        let asked = Some(PacedCommand { op, offset, length, fua: false });
        // The driver looks at the bytes of reads and writes alone, which are few.
        let moves = matches!(request.kind, kind::READ | kind::WRITE);
        let result = if moves { i32::try_from(length).unwrap_or(i32::MAX) } else { 0 };
        CompletedRequest { result, asked, waits_for_flush: false }
    }
}

/// Bytes of a request.
const fn bytes_of(request: &Descriptor) -> usize {
    request.sectors as usize * 512
}

/// The error number of an error: the block layer knows media errors and missing space.
fn errno(error: &DeviceError) -> Errno {
    match error {
        _ if error.is_no_space() => Errno::NOSPC,
        DeviceError::Unreadable { .. } => Errno::NODATA,
        DeviceError::ReadOnly => Errno::ROFS,
        DeviceError::InProgress(_) => Errno::BUSY,
        // What Linux has for a reservation conflict.
        DeviceError::Reserved => Errno::BADE,
        _ => Errno::IO,
    }
}

#[cfg(test)]
mod tests;
