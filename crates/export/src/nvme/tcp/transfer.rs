//! Transfers: data that hosts send on request ([nvme-tcp-2021], "Data Transfers").
//!
//! ```text
//!   command ──► waits ──► R2T, memory for all of it ──► H2CData, ... ──► command is complete
//! ```
//!
//! **Invariants**
//! - A queue uses at most [`MEMORY_BYTES`] for transfers, and never waits for another queue.
//! - At most as many commands wait as the queue has entries.

use std::collections::{BTreeMap, VecDeque};

use super::super::command::Command;
use super::super::wire::{u16_at, u32_at};
use super::pdu::{self, Digests, Violation, flag};
use crate::Replies;

/// Memory for data in transit in bytes: one and a half times the largest transfer.
const MEMORY_BYTES: usize = 768 << 10;

/// Transfers of one queue.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    waiting: VecDeque<(Command, usize)>,
    open: BTreeMap<u16, Transfer>,
    open_bytes: usize,
    last_tag: u16,
}

/// A transfer that was requested from the host.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) command: Command,
    pub(super) bytes: Vec<u8>,
    received: usize,
    /// True if some of the data did not match its digest.
    pub(super) is_hurt: bool,
}

impl Transfers {
    /// Adds a command whose data must be requested from the host.
    pub(super) fn add(
        &mut self,
        command: Command,
        bytes: usize,
        entries: u32,
    ) -> Result<(), Violation> {
        if self.waiting.len() + self.open.len() >= entries as usize {
            return Err(Violation::QueueFull { entries });
        }
        self.waiting.push_back((command, bytes));
        Ok(())
    }

    /// True if there is data to be requested, and memory for it.
    pub(super) fn can_ask(&self) -> bool {
        let first = self.waiting.front();
        first.is_some_and(|(_, bytes)| self.open_bytes + bytes <= MEMORY_BYTES)
    }

    /// Requests data that there is memory for, in the order of the commands.
    pub(super) fn ask(&mut self, replies: &mut Replies, digests: Digests) {
        while self.can_ask()
            && let Some((command, bytes)) = self.waiting.pop_front()
        {
            while self.open.contains_key(&self.last_tag) {
                self.last_tag = self.last_tag.wrapping_add(1);
            }
            let tag = self.last_tag;
            self.last_tag = self.last_tag.wrapping_add(1);
            self.open_bytes += bytes;
            let transfer = Transfer { command, bytes: vec![0; bytes], received: 0, is_hurt: false };
            self.open.insert(tag, transfer);
            let length = u32::try_from(bytes).expect("bounded by a transfer");
            pdu::put_ready(replies, digests, (command.id(), tag), length);
        }
    }

    /// Takes the data of an H2CData with this header. Returns the transfer once it is complete.
    pub(super) fn take(
        &mut self,
        header: &[u8],
        (data, is_good): (&[u8], bool),
    ) -> Result<Option<Transfer>, Violation> {
        let (command, tag) = (u16_at(header, 8), u16_at(header, 10));
        let (offset, length) = (u32_at(header, 12) as usize, u32_at(header, 16) as usize);
        let transfer = self.open.get_mut(&tag).ok_or(Violation::Field { at: 10 })?;
        if transfer.command.id() != command {
            return Err(Violation::Field { at: 8 });
        }
        if length != data.len() {
            return Err(Violation::Field { at: 16 });
        }
        let end = offset + length;
        if offset != transfer.received || end > transfer.bytes.len() {
            return Err(Violation::DataRange);
        }
        let is_last = header[1] & flag::LAST != 0;
        if is_last != (end == transfer.bytes.len()) {
            return Err(Violation::Field { at: 1 });
        }
        transfer.bytes[offset..end].copy_from_slice(data);
        transfer.received = end;
        transfer.is_hurt |= !is_good;
        if !is_last {
            return Ok(None);
        }
        let transfer = self.open.remove(&tag);
        self.open_bytes -= end;
        Ok(transfer)
    }
}
