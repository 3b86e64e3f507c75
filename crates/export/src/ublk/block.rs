//! Requests of the block layer, carried out on an export.
//!
//! Small reads that come together are one call of the device. A flush, and a write that is to be
//! durable, is answered after one flush of the device for all of a batch.
//!
//! **Invariants**
//! - A write is durable once it is answered if it says so, or if the device outlives this server:
//!   its users would not learn that a killed server took a cache with it.
//! - The data of a request is copied once out of the kernel and then stays as it is, whatever its
//!   user does with its memory meanwhile.

use std::io;
use std::sync::Arc;

use blockio::{Op, SECTOR_BYTES};
use device::{DeviceError, Durability, Read};
use rustix::io::Errno;

use super::layout::{Descriptor, kind};
use crate::{Asked, Export};

/// Longest read or write.
pub(super) const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Longest discard, or range of zeroes.
pub(super) const DISCARD_SECTORS_MAX: u32 = 1 << 22;
/// Longest read that is asked for together with others.
const TOGETHER_BYTES: usize = 128 << 10;
/// Source of zeroes that are written.
static ZEROES: [u8; 1 << 18] = [0; 1 << 18];

/// The data of requests, which the kernel holds.
pub(super) trait RequestData {
    /// Copies what the request of a tag writes.
    ///
    /// # Errors
    /// Fails if the request is gone.
    fn take(&self, tag: u16, bytes: &mut [u8]) -> io::Result<()>;

    /// Fills what the request of a tag reads.
    ///
    /// # Errors
    /// Fails if the request is gone.
    fn give(&self, tag: u16, bytes: &[u8]) -> io::Result<()>;
}

/// A request with its tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tagged {
    pub(super) tag: u16,
    pub(super) request: Descriptor,
}

/// A request that was carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// Bytes that were moved, or a negative error number.
    pub(super) result: i32,
    /// Command for the modelled drive; none if it failed.
    pub(super) asked: Option<Asked>,
    waits_for_flush: bool,
}

/// The export that a device is.
#[derive(Debug)]
pub(super) struct Block {
    export: Arc<Export>,
    /// Durability of writes that do not say it.
    kept: Durability,
    /// Memory for data.
    scratch: Vec<u8>,
}

/// Place and length of a request in bytes.
#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    length: u64,
}

impl Done {
    fn of_error(errno: Errno) -> Self {
        Self { result: -errno.raw_os_error(), asked: None, waits_for_flush: false }
    }
}

impl Block {
    pub(super) const fn new(export: Arc<Export>, kept: Durability) -> Self {
        Self { export, kept, scratch: Vec::new() }
    }

    /// Carries out requests, and returns the result of each.
    pub(super) fn carry_out(&mut self, data: &dyn RequestData, requests: &[Tagged]) -> Vec<Done> {
        let mut done: Vec<Done> = Vec::with_capacity(requests.len());
        while let Some(first) = requests.get(done.len()) {
            let rest = &requests[done.len()..];
            let together = self.reads_at(rest);
            if together > 1 {
                done.extend(self.read_together(data, &rest[..together]));
            } else {
                let carried = self.carry_out_one(data, *first);
                done.push(carried.unwrap_or_else(Done::of_error));
            }
        }
        if done.iter().any(|it| it.waits_for_flush)
            && let Err(error) = self.export.device.flush()
        {
            for waiting in done.iter_mut().filter(|it| it.waits_for_flush) {
                *waiting = Done::of_error(errno(&error));
            }
        }
        done
    }

    /// Number of small reads that the requests begin with.
    fn reads_at(&self, requests: &[Tagged]) -> usize {
        let mut sum = 0;
        let is_small_read = |it: &&Tagged| {
            let bytes = bytes_of(&it.request);
            sum += bytes;
            let is_small = bytes <= TOGETHER_BYTES && sum <= REQUEST_BYTES_MAX as usize;
            it.request.kind == kind::READ && is_small && self.place(&it.request).is_ok()
        };
        requests.iter().take_while(is_small_read).count()
    }

    fn read_together(&mut self, data: &dyn RequestData, requests: &[Tagged]) -> Vec<Done> {
        let sum = requests.iter().map(|it| bytes_of(&it.request)).sum();
        let mut rest = room(&mut self.scratch, sum);
        let mut reads = Vec::with_capacity(requests.len());
        for Tagged { request, .. } in requests {
            let (buffer, after) = rest.split_at_mut(bytes_of(request));
            reads.push(Read { offset: request.first_sector * SECTOR_BYTES, buffer });
            rest = after;
        }
        let answers = self.export.device.read_many(&mut reads);
        let given = requests.iter().zip(&reads).zip(answers).map(|((it, read), answer)| {
            let answer = answer.map_err(|error| errno(&error));
            answer.and_then(|()| data.give(it.tag, read.buffer).map_err(|_| Errno::IO))
        });
        let given: Vec<_> = given.collect();
        let done = requests.iter().zip(given).map(|(it, given)| match given {
            Ok(()) => {
                let length = bytes_of(&it.request) as u64;
                let place = Place { offset: it.request.first_sector * SECTOR_BYTES, length };
                self.done(Op::Read, place, &it.request)
            }
            Err(errno) => Done::of_error(errno),
        });
        done.collect()
    }

    fn carry_out_one(&mut self, data: &dyn RequestData, it: Tagged) -> Result<Done, Errno> {
        let Tagged { tag, request } = it;
        match request.kind {
            kind::READ => {
                let place = self.place(&request)?;
                let buffer = room(&mut self.scratch, checked(place.length)?);
                let read = self.export.device.read(place.offset, buffer);
                read.map_err(|error| errno(&error))?;
                data.give(tag, buffer).map_err(|_| Errno::IO)?;
                Ok(self.done(Op::Read, place, &request))
            }
            kind::WRITE => {
                let place = self.place(&request)?;
                self.check_change()?;
                let buffer = room(&mut self.scratch, checked(place.length)?);
                data.take(tag, buffer).map_err(|_| Errno::IO)?;
                let device = &self.export.device;
                let written = device.write(place.offset, buffer, Durability::Volatile);
                written.map_err(|error| errno(&error))?;
                Ok(self.changed(Op::Write, place, &request))
            }
            kind::FLUSH => {
                let done = self.done(Op::Flush, Place { offset: 0, length: 0 }, &request);
                let asked = Some(Asked { op: Op::Flush, offset: 0, length: 0, fua: false });
                Ok(Done { asked, waits_for_flush: true, ..done })
            }
            kind::DISCARD | kind::WRITE_ZEROES => self.discard(&request),
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// Discards a range, or writes zeroes to it.
    fn discard(&self, request: &Descriptor) -> Result<Done, Errno> {
        let place = self.place(request)?;
        self.check_change()?;
        let device = &self.export.device;
        if request.kind == kind::DISCARD || request.may_unmap {
            let trimmed = device.trim(place.offset, place.length, Durability::Volatile);
            trimmed.map_err(|error| errno(&error))?;
            return Ok(self.changed(Op::Trim, place, request));
        }
        let mut done = 0;
        while done < place.length {
            let here = (place.length - done).min(ZEROES.len() as u64);
            let zeroes = &ZEROES[..usize::try_from(here).expect("it is small")];
            let written = device.write(place.offset + done, zeroes, Durability::Volatile);
            written.map_err(|error| errno(&error))?;
            done += here;
        }
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

    fn changed(&self, op: Op, place: Place, request: &Descriptor) -> Done {
        let mut done = self.done(op, place, request);
        if let Some(asked) = &mut done.asked {
            // What its user asked for: the model and recordings know nothing of servers.
            asked.fua = request.is_fua;
        }
        Done { waits_for_flush: request.is_fua || self.kept == Durability::Durable, ..done }
    }

    fn done(&self, op: Op, place: Place, request: &Descriptor) -> Done {
        let Place { offset, length } = place;
        let offset = offset.saturating_add(self.export.device.origin());
        let asked = Some(Asked { op, offset, length, fua: false });
        // The driver looks at the bytes of reads and writes alone, which are few.
        let moves = matches!(request.kind, kind::READ | kind::WRITE);
        let result = if moves { i32::try_from(length).unwrap_or(i32::MAX) } else { 0 };
        Done { result, asked, waits_for_flush: false }
    }
}

/// Bytes of a request.
const fn bytes_of(request: &Descriptor) -> usize {
    request.sectors as usize * 512
}

/// The length of a read or a write, which the driver keeps within the limit.
fn checked(length: u64) -> Result<usize, Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::IO)?;
    if length > REQUEST_BYTES_MAX as usize { Err(Errno::IO) } else { Ok(length) }
}

/// The first `length` bytes of the scratch memory, with any contents.
fn room(scratch: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if scratch.len() < length {
        scratch.resize(length, 0);
    }
    &mut scratch[..length]
}

/// The error number of an error: the block layer knows media errors and missing space.
fn errno(error: &DeviceError) -> Errno {
    match error {
        _ if error.is_no_space() => Errno::NOSPC,
        DeviceError::Unreadable { .. } => Errno::NODATA,
        DeviceError::InProgress(_) => Errno::BUSY,
        _ => Errno::IO,
    }
}

#[cfg(test)]
mod tests;
