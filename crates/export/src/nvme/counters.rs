//! Counters of a controller's queues, for whoever watches the server.

use std::sync::atomic::{AtomicU64, Ordering};

use super::io::{Io, IoKind};

/// Counters of one I/O queue. One thread counts, any may read.
#[derive(Debug, Default)]
pub(super) struct QueueCounters {
    read_commands: AtomicU64,
    read_bytes: AtomicU64,
    write_commands: AtomicU64,
    written_bytes: AtomicU64,
    other_commands: AtomicU64,
    failures: AtomicU64,
}

/// An I/O queue, with what it carried out since it was connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// Number of the queue, from 1.
    pub queue: u16,
    /// Reads, and what reads alone: Compare and Verify.
    pub read_commands: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Writes, also of zeroes.
    pub write_commands: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Commands of all other kinds.
    pub other_commands: u64,
    /// Commands that failed.
    pub failures: u64,
}

/// A controller of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerStatus {
    /// Identifier of the controller.
    pub controller: u16,
    /// NQN of the host.
    pub host: String,
    /// Transport, as nvme-cli names it: `tcp` or `pcie`.
    pub transport: &'static str,
    /// State of the controller: `enabled`, `disabled`, `shut down` or `failed`.
    pub state: &'static str,
    /// True if the host proved who it is.
    pub is_authenticated: bool,
    /// I/O queues, in ascending order.
    pub queues: Vec<QueueStatus>,
}

impl QueueCounters {
    pub(super) fn count(&self, io: &Io) {
        let (commands, bytes) = match io.kind {
            IoKind::Read | IoKind::Compare | IoKind::Verify => {
                (&self.read_commands, Some(&self.read_bytes))
            }
            IoKind::Write | IoKind::WriteZeroes(_) => {
                (&self.write_commands, Some(&self.written_bytes))
            }
            IoKind::Flush | IoKind::Manage(_) | IoKind::Spoil | IoKind::Copy(_) => {
                (&self.other_commands, None)
            }
        };
        commands.fetch_add(1, Ordering::Relaxed);
        if let Some(bytes) = bytes {
            bytes.fetch_add(io.length, Ordering::Relaxed);
        }
    }

    pub(super) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn told(&self, queue: u16) -> QueueStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QueueStatus {
            queue,
            read_commands: read(&self.read_commands),
            read_bytes: read(&self.read_bytes),
            write_commands: read(&self.write_commands),
            written_bytes: read(&self.written_bytes),
            other_commands: read(&self.other_commands),
            failures: read(&self.failures),
        }
    }
}
