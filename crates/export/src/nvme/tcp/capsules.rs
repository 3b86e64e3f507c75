//! Capsules: answers as PDUs, one after the other in the buffer of replies.

use std::ops::Range;

use super::super::answers::Answers;
use super::super::command::{Command, completion};
use super::super::status::Status;
use super::pdu::{self, DIGEST_BYTES, Initialize, flag};
use super::sgl::check_room;
use crate::Replies;

/// A read whose PDU waits for its data.
#[derive(Debug)]
pub(super) struct BegunRead {
    /// Offset of its PDU in the buffer of replies.
    start: usize,
    /// Range of that buffer for its data.
    room: Range<usize>,
}

/// Destination of completions, and their form.
pub(super) struct Capsules<'a> {
    pub(super) replies: &'a mut Replies,
    /// Reads whose replies have headers, and room for the data that is yet to be read.
    pub(super) reads: &'a mut Vec<BegunRead>,
    pub(super) initialize: Initialize,
    /// SQ Head Pointer of completions.
    pub(super) head: u16,
    /// True if the last data of a command may complete it.
    pub(super) is_unpaced: bool,
}

impl Capsules<'_> {
    fn put_completion(&mut self, id: u16, status: Status, value: u64) {
        let completion = completion(id, self.head, status, value);
        pdu::put_response(self.replies, self.initialize.digests, &completion);
    }

    /// Puts the digest of data behind it.
    fn put_digest(&mut self, room: &Range<usize>) {
        let digest = crc32c::crc32c(&self.replies.as_bytes()[room.clone()]).to_le_bytes();
        let place = room.end..room.end + DIGEST_BYTES;
        for part in self.replies.parts(std::iter::once(place)) {
            part.copy_from_slice(&digest);
        }
    }
}

impl Answers for Capsules<'_> {
    fn complete(&mut self, id: u16, status: Status, value: u64) {
        assert!(self.reads.is_empty(), "a completion would come between a read and its data");
        self.put_completion(id, status, value);
    }

    fn deliver(&mut self, command: &Command, data: &[u8], value: u64) {
        let (id, digests) = (command.id(), self.initialize.digests);
        if let Err(status) = check_room(command, data.len(), false) {
            self.complete(id, status, 0);
            return;
        }
        pdu::put_data_header(self.replies, self.initialize, id, flag::LAST, data.len());
        self.replies.put(data);
        if digests.has_data {
            self.replies.put(&crc32c::crc32c(data).to_le_bytes());
        }
        self.complete(id, Status::SUCCESS, value);
    }

    fn begin_read(&mut self, command: &Command, bytes: usize) -> Result<(), Status> {
        check_room(command, bytes, true)?;
        let id = command.id();
        let start = self.replies.len();
        let success = if self.is_unpaced { flag::SUCCESS } else { 0 };
        pdu::put_data_header(self.replies, self.initialize, id, flag::LAST | success, bytes);
        let from = self.replies.len();
        self.replies.room(bytes + self.initialize.digests.data_bytes());
        if !self.is_unpaced {
            self.put_completion(id, Status::SUCCESS, 0);
        }
        self.reads.push(BegunRead { start, room: from..from + bytes });
        Ok(())
    }

    fn buffers(&mut self) -> Vec<&mut [u8]> {
        self.replies.parts(self.reads.iter().map(|read| read.room.clone())).collect()
    }

    fn finish_reads(&mut self, good: usize) {
        let reads = std::mem::take(self.reads);
        if self.initialize.digests.has_data {
            reads[..good].iter().for_each(|read| self.put_digest(&read.room));
        }
        if let Some(first) = reads.get(good) {
            self.replies.cut(first.start);
        }
    }
}
