//! Data of commands in the memory of a host: Physical Region Pages ([nvme-base-2021],
//! "Physical Region Page Entry and List").

use std::sync::Arc;

use smallvec::SmallVec;

use super::super::answers::Answers;
use super::super::command::Command;
use super::super::status::Status;
use super::super::transport::TRANSFER_BYTES_MAX;
use super::super::wire::u64_at;
use crate::guest_memory::{GuestMemory, GuestMemoryError};

/// Bytes of a memory page, the only size that is supported (CAP.MPSMIN, CAP.MPSMAX).
pub(super) const PAGE_BYTES: u64 = 4096;
/// Entries of a page of a list.
const LIST_ENTRIES: u64 = PAGE_BYTES / 8;

/// A piece of memory: address and bytes.
type Piece = (u64, usize);
/// Pieces of a command's data; those of a small one need no memory of their own.
type Pieces = SmallVec<[Piece; 2]>;

impl From<GuestMemoryError> for Status {
    fn from(_: GuestMemoryError) -> Self {
        Self::DATA_TRANSFER
    }
}

/// The places of a command's data of `length` bytes.
///
/// # Errors
/// Fails with the status for the command's completion.
pub(super) fn places(
    memory: &GuestMemory,
    command: &Command,
    length: usize,
) -> Result<Pieces, Status> {
    let entry = command.bytes();
    // PSDT: pages, since no SGLs are announced.
    if entry[1] >> 6 != 0 {
        return Err(Status::INVALID_FIELD);
    }
    if length > TRANSFER_BYTES_MAX {
        return Err(Status::INVALID_FIELD);
    }
    let (first, second) = (u64_at(entry, 24), u64_at(entry, 32));
    if first % 4 != 0 {
        return Err(Status::PRP_OFFSET);
    }
    let page = |from: u64, left: usize| {
        let room = usize::try_from(PAGE_BYTES - from % PAGE_BYTES).expect("a page");
        (from, room.min(left))
    };
    let mut pieces = Pieces::new();
    let mut left = length;
    let mut add = |from: u64, left: &mut usize| {
        let piece = page(from, *left);
        *left -= piece.1;
        pieces.push(piece);
    };
    if left > 0 {
        add(first, &mut left);
    }
    if left > 0 && left as u64 <= PAGE_BYTES {
        if second % PAGE_BYTES != 0 {
            return Err(Status::PRP_OFFSET);
        }
        add(second, &mut left);
    }
    let mut list = second;
    if left > 0 && list % 8 != 0 {
        return Err(Status::PRP_OFFSET);
    }
    while left > 0 {
        let index = list % PAGE_BYTES / 8;
        let mut bytes = [0; 8];
        memory.read(list, &mut bytes)?;
        let entry = u64::from_le_bytes(bytes);
        if entry % PAGE_BYTES != 0 {
            return Err(Status::PRP_OFFSET);
        }
        // The last entry of a page names the next page of the list, if that is not the end.
        if index + 1 == LIST_ENTRIES && left as u64 > PAGE_BYTES {
            list = entry;
            continue;
        }
        add(entry, &mut left);
        list = list.wrapping_add(8);
    }
    Ok(pieces)
}

/// Copies a command's data from the host.
///
/// # Errors
/// As [`places`].
pub(super) fn fetch(
    memory: &GuestMemory,
    command: &Command,
    data: &mut [u8],
) -> Result<(), Status> {
    let mut done = 0;
    for (address, length) in places(memory, command, data.len())? {
        memory.read(address, &mut data[done..done + length])?;
        done += length;
    }
    Ok(())
}

/// Completions that wait to be posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) id: u16,
    pub(super) status: Status,
    pub(super) value: u64,
}

/// Answers of a queue, in the memory of the host.
#[derive(Debug, Default)]
pub(super) struct Pages {
    memory: Arc<GuestMemory>,
    /// Reads that have begun: command, its places, and its part of the room.
    reads: Vec<(u16, Pieces, usize)>,
    room: Vec<u8>,
    filled: usize,
    pub(super) completions: Vec<Completion>,
}

impl Pages {
    /// Sets the memory that data goes to. No read may be under way.
    pub(super) fn use_memory(&mut self, memory: &Arc<GuestMemory>) {
        assert!(self.reads.is_empty(), "no read is under way");
        self.memory = Arc::clone(memory);
    }

    fn bring(&self, places: &[Piece], data: &[u8]) -> Result<(), GuestMemoryError> {
        let mut done = 0;
        for (address, length) in places {
            self.memory.write(*address, &data[done..done + length])?;
            done += length;
        }
        Ok(())
    }
}

impl Answers for Pages {
    fn complete(&mut self, id: u16, status: Status, value: u64) {
        assert!(self.reads.is_empty(), "completions keep their order");
        self.completions.push(Completion { id, status, value });
    }

    fn deliver(&mut self, command: &Command, data: &[u8], value: u64) {
        let places = places(&self.memory, command, data.len());
        let brought = places.and_then(|places| Ok(self.bring(&places, data)?));
        match brought {
            Ok(()) => self.complete(command.id(), Status::SUCCESS, value),
            Err(status) => self.complete(command.id(), status, 0),
        }
    }

    fn begin_read(&mut self, command: &Command, bytes: usize) -> Result<(), Status> {
        let places = places(&self.memory, command, bytes)?;
        self.filled += bytes;
        if self.room.len() < self.filled {
            self.room.resize(self.filled, 0);
        }
        self.reads.push((command.id(), places, bytes));
        Ok(())
    }

    fn buffers(&mut self) -> Vec<&mut [u8]> {
        let mut rest = &mut self.room[..self.filled];
        let mut buffers = Vec::with_capacity(self.reads.len());
        for (_, _, bytes) in &self.reads {
            let (room, after) = rest.split_at_mut(*bytes);
            buffers.push(room);
            rest = after;
        }
        buffers
    }

    fn finish_reads(&mut self, good: usize) {
        let reads = std::mem::take(&mut self.reads);
        let mut at = 0;
        for (id, places, bytes) in &reads[..good] {
            let brought = self.bring(places, &self.room[at..at + bytes]);
            let status = brought.map_or_else(Status::from, |()| Status::SUCCESS);
            self.completions.push(Completion { id: *id, status, value: 0 });
            at += bytes;
        }
        self.filled = 0;
    }
}
