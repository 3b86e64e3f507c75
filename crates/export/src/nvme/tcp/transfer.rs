//! Transfers: data that hosts send once they are asked for it ([nvme-tcp-2021], "Data Transfers").
//!
//! ```text
//!   command ──► waits ──► R2T, memory for all of it ──► H2CData, ... ──► the command is whole
//! ```
//!
//! **Invariants**
//! - A queue has at most [`MEMORY_BYTES`] for transfers, and waits for nobody else's.
//! - At most as many commands as the queue has entries wait.

use std::collections::{BTreeMap, VecDeque};

use super::super::command::Command;
use super::super::wire::{u16_at, u32_at};
use super::pdu::{self, Digests, Violation, flag};
use crate::Replies;

/// Memory for data that is on its way: one largest transfer, and half of another.
const MEMORY_BYTES: usize = 768 << 10;

/// Transfers of one queue.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    waiting: VecDeque<(Command, usize)>,
    open: BTreeMap<u16, Transfer>,
    open_bytes: usize,
    last_tag: u16,
}

/// A transfer that the host was asked for.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) command: Command,
    pub(super) bytes: Vec<u8>,
    received: usize,
    /// True if some of it was not that of its digest.
    pub(super) is_hurt: bool,
}

impl Transfers {
    /// Adds a command whose data the host has to be asked for.
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

    /// Asks for what there is memory for, in the order of the commands. Returns whether it asked
    /// for anything.
    pub(super) fn ask(&mut self, replies: &mut Replies, digests: Digests) -> bool {
        let before = self.open.len();
        while let Some((command, bytes)) = self.waiting.front().copied() {
            if self.open_bytes + bytes > MEMORY_BYTES {
                break;
            }
            self.waiting.pop_front();
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
        self.open.len() > before
    }

    /// Takes data of a host, from an H2CData with this header. Returns the transfer once it is
    /// whole.
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
