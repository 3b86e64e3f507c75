//! Counters of a controller's queues, which the status of the server shows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use status::{NvmeController, NvmeQueue};

use super::host::Host;
use super::io::{Io, IoKind};
use super::lock::locked;
use super::property::{FATAL, READY, SHUTDOWN_COMPLETE};
use super::reservation::{HostIdentity, NotificationLog};

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

/// Status of a controller outside of its lock: a command that holds the lock may ask the drive for
/// its health, and the drive in turn for the status of controllers.
#[derive(Debug)]
pub(super) struct ControllerSnapshot {
    controller: u16,
    host: String,
    transport: &'static str,
    is_authenticated: AtomicBool,
    is_encrypted: bool,
    /// CSTS.
    status: AtomicU32,
    /// I/O queues, by number.
    queues: Mutex<BTreeMap<u16, Arc<QueueCounters>>>,
    identity: Mutex<HostIdentity>,
    notifications: Mutex<NotificationLog>,
}

impl ControllerSnapshot {
    pub(super) fn new(controller: u16, host: &Host) -> Self {
        Self {
            controller,
            host: host.name.clone(),
            transport: if host.transport.is_fabrics() { "tcp" } else { "pcie" },
            is_authenticated: AtomicBool::new(host.is_authenticated),
            is_encrypted: host.is_encrypted,
            status: AtomicU32::new(0),
            queues: Mutex::default(),
            identity: Mutex::new(HostIdentity::of(controller, host.id, host.is_extended())),
            notifications: Mutex::default(),
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Identity of the host, as reservations know it.
    pub(super) fn identity(&self) -> HostIdentity {
        *locked(&self.identity)
    }

    /// Sets the identity of the host. Returns the one before.
    pub(super) fn identify(&self, identity: HostIdentity) -> HostIdentity {
        std::mem::replace(&mut *locked(&self.identity), identity)
    }

    /// Notices for its host about reservations.
    pub(super) fn notifications(&self) -> MutexGuard<'_, NotificationLog> {
        locked(&self.notifications)
    }

    pub(super) fn status(&self) -> u32 {
        self.status.load(Ordering::Acquire)
    }

    pub(super) fn set_status(&self, status: u32) {
        self.status.store(status, Ordering::Release);
    }

    pub(super) fn authenticate(&self) {
        self.is_authenticated.store(true, Ordering::Release);
    }

    pub(super) fn counters(&self, queue: u16) -> Arc<QueueCounters> {
        locked(&self.queues).get(&queue).map(Arc::clone).unwrap_or_default()
    }

    /// Adds a queue. Returns false if there is one of that number.
    pub(super) fn add_queue(&self, queue: u16) -> bool {
        let mut queues = locked(&self.queues);
        let is_new = !queues.contains_key(&queue);
        if is_new {
            queues.insert(queue, Arc::default());
        }
        is_new
    }

    pub(super) fn remove_queue(&self, queue: u16) {
        locked(&self.queues).remove(&queue);
    }

    /// Removes the queue of this number, if it has these counters.
    pub(super) fn leave_queue(&self, queue: u16, counters: &Arc<QueueCounters>) {
        let mut queues = locked(&self.queues);
        if queues.get(&queue).is_some_and(|it| Arc::ptr_eq(it, counters)) {
            queues.remove(&queue);
        }
    }

    pub(super) fn clear_queues(&self) {
        locked(&self.queues).clear();
    }

    pub(super) fn has_queues(&self) -> bool {
        !locked(&self.queues).is_empty()
    }

    /// The controller as it is now.
    pub(super) fn report(&self) -> NvmeController {
        let state = match self.status() {
            status if status & FATAL != 0 => "failed",
            status if status & SHUTDOWN_COMPLETE != 0 => "shut down",
            status if status & READY != 0 => "enabled",
            _ => "disabled",
        };
        NvmeController {
            controller: self.controller,
            host: self.host.clone(),
            transport: self.transport.to_owned(),
            state: state.to_owned(),
            is_authenticated: self.is_authenticated.load(Ordering::Acquire),
            is_encrypted: self.is_encrypted,
            queues: locked(&self.queues).iter().map(|(queue, it)| it.report(*queue)).collect(),
        }
    }
}

impl QueueCounters {
    pub(super) fn count(&self, io: &Io) {
        let (commands, bytes) = match io.kind {
            IoKind::Read | IoKind::Compare | IoKind::Verify => {
                (&self.read_commands, Some(&self.read_bytes))
            }
            IoKind::Write => (&self.write_commands, Some(&self.written_bytes)),
            // No data comes from the host.
            IoKind::WriteZeroes(_) => (&self.write_commands, None),
            IoKind::Flush
            | IoKind::Manage(_)
            | IoKind::WriteUncorrectable
            | IoKind::Copy(_)
            | IoKind::Reserve(_)
            | IoKind::ReportReservations { .. } => (&self.other_commands, None),
        };
        commands.fetch_add(1, Ordering::Relaxed);
        if let Some(bytes) = bytes {
            bytes.fetch_add(io.length, Ordering::Relaxed);
        }
    }

    pub(super) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn report(&self, queue: u16) -> NvmeQueue {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NvmeQueue {
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
