//! Guard of a namespace: its reservations, which commands pass while they are carried out.
//!
//! ```text
//!   command for data ──► admit ──► carried out ──► passed
//!   reservation command ──► change: waits for those that are admitted ──► stored ──► in force
//! ```
//!
//! **Invariants**
//! - When a reservation command is completed, no command is carried out any more that it does not
//!   admit.
//! - A command that waited for its data when its host was preempted with abort is not carried out.
//! - What is to persist is stored before it is in force.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use device::{Fence, Operations};

use super::super::lock::locked;
use super::super::status::{Status, refusal};
use super::{Access, HOSTS_MAX, Notification, Reservations, ReservingHost};

/// Reservations of a namespace.
#[derive(Debug)]
pub(crate) struct ReservationGuard {
    namespace: u32,
    reservations: RwLock<Reservations>,
    /// Holds off clients that are no hosts.
    fence: Arc<Fence>,
    /// Notices that hosts do not want (Reservation Notification Mask).
    mask: AtomicU32,
    aborts: Mutex<Aborts>,
}

/// Times of aborts, which are counted, of commands that wait for their data.
#[derive(Debug, Default)]
struct Aborts {
    count: u64,
    /// Latest abort of each host.
    hosts: BTreeMap<ReservingHost, u64>,
    /// Latest abort of all hosts.
    all: u64,
}

impl ReservationGuard {
    /// A guard with the reservations that the drive stored.
    pub(crate) fn new(namespace: u32, fence: Arc<Fence>, operations: &dyn Operations) -> Self {
        let stored = operations.reservations(namespace);
        let reservations = Reservations::restored(&stored, operations.keeps_reservations());
        let (reservations, mask) = (RwLock::new(reservations), AtomicU32::new(0));
        Self { namespace, reservations, fence, mask, aborts: Mutex::default() }
    }

    pub(crate) const fn namespace(&self) -> u32 {
        self.namespace
    }

    /// The reservations, which stay as they are meanwhile.
    pub(crate) fn look(&self) -> RwLockReadGuard<'_, Reservations> {
        self.reservations.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a command until the guard is dropped; one that is of no group always.
    ///
    /// # Errors
    /// Fails if the reservation does not admit it.
    pub(crate) fn admit(
        &self,
        host: impl FnOnce() -> ReservingHost,
        access: Option<Access>,
    ) -> Result<RwLockReadGuard<'_, Reservations>, Status> {
        let reservations = self.look();
        let is_reserved = reservations.reservation.is_some();
        if is_reserved && access.is_some_and(|access| !reservations.admits(host(), access)) {
            return Err(Status::RESERVATION_CONFLICT);
        }
        Ok(reservations)
    }

    /// Changes the reservations, once commands that were admitted have ended. Returns what hosts
    /// are to be told and want to be.
    ///
    /// # Errors
    /// Fails as `act` does, or if what is to persist cannot be stored; then nothing has changed.
    pub(crate) fn change(
        &self,
        operations: &dyn Operations,
        act: impl FnOnce(&mut Reservations) -> Result<Vec<Notification>, Status>,
    ) -> Result<Vec<Notification>, Status> {
        let mut now = self.reservations.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = now.clone();
        let mut told = act(&mut next)?;
        if next.is_persistent() && !operations.keeps_reservations() {
            return Err(Status::INVALID_FIELD);
        }
        let stored = next.stored();
        if stored != now.stored() {
            let kept = operations.keep_reservations(self.namespace, &stored);
            kept.map_err(|error| refusal(&error))?;
        }
        if next.kind() != now.kind() {
            self.fence.set(next.kind());
        }
        *now = next;
        told.retain(|it| self.mask() & it.notice.mask() == 0);
        Ok(told)
    }

    /// Time of a command that waits for its data from now on.
    pub(crate) fn now(&self) -> u64 {
        locked(&self.aborts).count
    }

    /// Aborts the commands of hosts that wait for their data.
    pub(crate) fn abort(&self, hosts: impl Iterator<Item = ReservingHost>) {
        let mut aborts = locked(&self.aborts);
        aborts.count += 1;
        let now = aborts.count;
        aborts.hosts.extend(hosts.map(|host| (host, now)));
        if aborts.hosts.len() > HOSTS_MAX {
            // Rather too many than ever more memory.
            (aborts.hosts, aborts.all) = (BTreeMap::new(), now);
        }
    }

    /// True if a command of a host that waits since `then` is aborted.
    pub(crate) fn is_aborted(&self, host: ReservingHost, then: u64) -> bool {
        let aborts = locked(&self.aborts);
        let last = aborts.hosts.get(&host).copied().unwrap_or(0);
        last.max(aborts.all) > then
    }

    /// Bits of notices that hosts do not want.
    pub(crate) fn mask(&self) -> u32 {
        self.mask.load(Ordering::Relaxed)
    }

    pub(crate) fn set_mask(&self, mask: u32) {
        self.mask.store(mask, Ordering::Relaxed);
    }
}
