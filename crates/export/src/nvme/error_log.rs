//! Error Information log ([nvme-base-2021], "Error Information"): the latest entries first.

use std::collections::VecDeque;

use super::status::Status;
use super::transport::Transport;
use super::wire::Structure;

/// Entries that are kept.
pub(super) const ENTRIES: usize = 64;
/// Bytes of an entry.
const ENTRY_BYTES: usize = 64;
/// Parameter Error Location of errors that no field of the command is at fault for.
const NO_PARAMETER: u16 = 0xFFFF;

/// Command that failed because of the drive, not of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedCommand {
    pub(super) queue: u16,
    pub(super) command: u16,
    pub(super) status: Status,
    pub(super) namespace: u32,
    /// First logical block that failed.
    pub(super) lba: u64,
}

/// The latest errors of a controller.
#[derive(Debug, Default)]
pub(super) struct ErrorLog {
    /// Entries with their numbers, the latest first.
    entries: VecDeque<(u64, FailedCommand)>,
}

impl ErrorLog {
    pub(super) fn add(&mut self, number: u64, failed: FailedCommand) {
        self.entries.push_front((number, failed));
        self.entries.truncate(ENTRIES);
    }

    /// The log page, for a host that came by `transport`; entries that are not used are zero.
    pub(super) fn page(&self, transport: Transport) -> Vec<u8> {
        let mut page = Structure::new(ENTRIES * ENTRY_BYTES);
        for (index, (number, failed)) in self.entries.iter().enumerate() {
            let at = index * ENTRY_BYTES;
            page.put_u64(at, *number);
            page.put_u16(at + 8, failed.queue);
            page.put_u16(at + 10, failed.command);
            page.put_u16(at + 12, failed.status.field());
            page.put_u16(at + 14, NO_PARAMETER);
            page.put_u64(at + 16, failed.lba);
            page.put_u32(at + 24, failed.namespace);
            page.put_u8(at + 29, transport.kind());
        }
        page.into_bytes()
    }
}
