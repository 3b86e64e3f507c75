//! Guard of a namespace: its reservations, which commands pass while they are carried out.
//!
//! ```text
//!   command for data, or for the drive ──► admit ──► carried out, or begun ──► passed
//!   reservation command ──► pending ──► waits for those that are admitted ──► stored ──► in force
//!                              └── its host is gone: refused
//! ```
//!
//! **Invariants**
//! - When a reservation command is completed, no command is carried out any more that it does not
//!   admit.
//! - A command that waited for its data when its host was preempted with abort is not carried out.
//!   None is aborted by a command that fails.
//! - What is to persist is stored before it is in force.
//! - A host that is gone is not registered by a command that was under way. One of which nothing is
//!   registered or under way leaves without waiting for commands of others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use device::{Fence, Operations};

use super::super::lock::locked;
use super::super::status::{Status, refusal};
use super::{
    Access, HOSTS_MAX, Keys, Notice, Notification, ReservationCommand, Reservations, ReservingHost,
};

/// Reservations of a namespace.
#[derive(Debug)]
pub(crate) struct ReservationGuard {
    namespace: u32,
    reservations: RwLock<Reservations>,
    shown: Mutex<ShownReservations>,
    /// Holds off clients that are no hosts.
    fence: Arc<Fence>,
    /// Notices that hosts do not want (Reservation Notification Mask).
    mask: AtomicU32,
    /// Times at which commands were aborted so far.
    aborts: AtomicU64,
    last_aborts: Mutex<LastAborts>,
}

/// Reservations outside of their lock, which is held as long as commands are carried out.
#[derive(Debug, Default)]
struct ShownReservations {
    reservations: Reservations,
    /// Hosts of reservation commands under way, by a number.
    pending: BTreeMap<u64, ReservingHost>,
    /// Reservation commands so far.
    begun: u64,
}

/// Times of aborts, which are counted, of commands that wait for their data.
#[derive(Debug, Default)]
struct LastAborts {
    /// Latest abort of each host.
    hosts: BTreeMap<ReservingHost, u64>,
    /// Latest abort of all hosts.
    all: u64,
}

/// Reservation command of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostCommand {
    pub(crate) host: ReservingHost,
    pub(crate) command: ReservationCommand,
    pub(crate) keys: Keys,
}

impl ReservationGuard {
    /// A guard with the reservations that the drive stored.
    pub(crate) fn new(namespace: u32, fence: Arc<Fence>, operations: &dyn Operations) -> Self {
        let stored = operations.reservations(namespace);
        let reservations = Reservations::restored(&stored, operations.keeps_reservations());
        let shown = ShownReservations {
            reservations: reservations.clone(),
            ..ShownReservations::default()
        };
        Self {
            namespace,
            reservations: RwLock::new(reservations),
            shown: Mutex::new(shown),
            fence,
            mask: AtomicU32::new(0),
            aborts: AtomicU64::new(0),
            last_aborts: Mutex::default(),
        }
    }

    pub(crate) const fn namespace(&self) -> u32 {
        self.namespace
    }

    /// A copy of the reservations, which waits for no command.
    pub(crate) fn snapshot(&self) -> Reservations {
        locked(&self.shown).reservations.clone()
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

    /// Carries a reservation command out, once commands that were admitted have ended. Returns what
    /// hosts are to be told and want to be. `is_current` says whether the host is still there.
    ///
    /// # Errors
    /// Fails if reservations do not admit it, what is to persist cannot be stored, or the host is
    /// gone; then nothing has changed.
    pub(crate) fn carry_out(
        &self,
        operations: &dyn Operations,
        it: &HostCommand,
        is_current: impl FnOnce() -> bool,
    ) -> Result<Vec<Notification>, Status> {
        let number = locked(&self.shown).begin(it.host);
        // Asked after it is pending: a host that goes from now on removes it.
        let done = if is_current() {
            self.carry_out_pending(operations, it, number)
        } else {
            Err(Status::ABORTED_BY_REQUEST)
        };
        locked(&self.shown).pending.remove(&number);
        done
    }

    fn carry_out_pending(
        &self,
        operations: &dyn Operations,
        it: &HostCommand,
        number: u64,
    ) -> Result<Vec<Notification>, Status> {
        let HostCommand { host, command, keys } = *it;
        let mut now = self.write();
        if !locked(&self.shown).pending.contains_key(&number) {
            return Err(Status::ABORTED_BY_REQUEST);
        }
        let act = |next: &mut Reservations| Ok(next.carry_out(host, command, keys)?);
        let told = self.replace(&mut now, operations, act)?;
        if let ReservationCommand::Preempt { aborts: true, .. } = command {
            // Before another command is admitted.
            let is_preempted = |it: &&Notification| it.notice == Notice::RegistrationPreempted;
            self.abort(told.iter().filter(is_preempted).map(|it| it.host));
        }
        Ok(self.wanted(told))
    }

    /// Has reservations persist through power loss from now on, or not.
    ///
    /// # Errors
    /// Fails if they cannot be stored; then nothing has changed.
    pub(crate) fn persist(
        &self,
        operations: &dyn Operations,
        is_persistent: bool,
    ) -> Result<(), Status> {
        let act = |next: &mut Reservations| {
            next.persist(is_persistent);
            Ok(Vec::new())
        };
        self.replace(&mut self.write(), operations, act).map(drop)
    }

    /// Removes what is registered of a host that is gone, and its commands under way. Returns what
    /// other hosts are to be told and want to be.
    ///
    /// # Errors
    /// Fails if what is left is to persist, and cannot be stored.
    pub(crate) fn forget(
        &self,
        operations: &dyn Operations,
        host: ReservingHost,
    ) -> Result<Vec<Notification>, Status> {
        if !locked(&self.shown).end_of(host) {
            return Ok(Vec::new());
        }
        let told = self.replace(&mut self.write(), operations, |next| Ok(next.remove(host)))?;
        Ok(self.wanted(told))
    }

    fn write(&self) -> RwLockWriteGuard<'_, Reservations> {
        self.reservations.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the reservations by what `act` makes of them.
    fn replace(
        &self,
        now: &mut Reservations,
        operations: &dyn Operations,
        act: impl FnOnce(&mut Reservations) -> Result<Vec<Notification>, Status>,
    ) -> Result<Vec<Notification>, Status> {
        let mut next = now.clone();
        let told = act(&mut next)?;
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
        locked(&self.shown).reservations.clone_from(&next);
        *now = next;
        Ok(told)
    }

    /// Notices that hosts want.
    fn wanted(&self, mut told: Vec<Notification>) -> Vec<Notification> {
        told.retain(|it| self.mask() & it.notice.mask() == 0);
        told
    }

    /// Time of a command that waits for its data from now on.
    pub(crate) fn now(&self) -> u64 {
        self.aborts.load(Ordering::Acquire)
    }

    /// Aborts the commands of hosts that wait for their data.
    fn abort(&self, hosts: impl Iterator<Item = ReservingHost>) {
        let mut last = locked(&self.last_aborts);
        let now = self.aborts.load(Ordering::Relaxed) + 1;
        last.hosts.extend(hosts.map(|host| (host, now)));
        if last.hosts.len() > HOSTS_MAX {
            // Rather too many than ever more memory.
            (last.hosts, last.all) = (BTreeMap::new(), now);
        }
        self.aborts.store(now, Ordering::Release);
    }

    /// True if a command of a host that waits since `then` is aborted.
    pub(crate) fn is_aborted(&self, host: ReservingHost, then: u64) -> bool {
        // Usually nothing was aborted since: a load alone leaves the cache line shared.
        if self.now() == then {
            return false;
        }
        let last = locked(&self.last_aborts);
        last.hosts.get(&host).copied().unwrap_or(0).max(last.all) > then
    }

    /// Bits of notices that hosts do not want.
    pub(crate) fn mask(&self) -> u32 {
        self.mask.load(Ordering::Relaxed)
    }

    pub(crate) fn set_mask(&self, mask: u32) {
        self.mask.store(mask, Ordering::Relaxed);
    }
}

impl ShownReservations {
    /// Adds a command of a host. Returns its number.
    fn begin(&mut self, host: ReservingHost) -> u64 {
        self.begun += 1;
        self.pending.insert(self.begun, host);
        self.begun
    }

    /// Removes commands of a host. Returns whether there were any, or it is registered.
    fn end_of(&mut self, host: ReservingHost) -> bool {
        let before = self.pending.len();
        self.pending.retain(|_, of| *of != host);
        self.pending.len() < before || self.reservations.registrants.contains_key(&host)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use device::{Administration, DriveHealth, Identity, OperationError, PersistentReservations};
    use device::{ReservationKind, ServedNamespace};

    use super::super::RegisterAction;
    use super::*;

    /// A drive that stores reservations, or fails to.
    #[derive(Debug, Default)]
    struct StoringDrive {
        fails: AtomicBool,
    }

    impl Administration for StoringDrive {
        fn identity(&self) -> Identity {
            let text = String::new;
            Identity { number: 1, model: text(), firmware: text() }
        }

        fn health(&self) -> DriveHealth {
            DriveHealth::default()
        }
    }

    impl Operations for StoringDrive {
        fn namespaces(&self) -> Vec<ServedNamespace> {
            Vec::new()
        }

        fn keeps_reservations(&self) -> bool {
            true
        }

        fn keep_reservations(
            &self,
            _: u32,
            _: &PersistentReservations,
        ) -> Result<(), OperationError> {
            if self.fails.load(Ordering::SeqCst) {
                let (attempted, reason) = ("storing reservations", "a test".to_owned());
                return Err(OperationError::Failed { attempted, reason });
            }
            Ok(())
        }
    }

    const ANONYMOUS: ReservingHost = ReservingHost::Anonymous { controller: 3 };

    fn register(host: ReservingHost, key: u64) -> HostCommand {
        let (action, persists) = (RegisterAction::Register, Some(true));
        let command = ReservationCommand::Register { action, ignores_key: false, persists };
        HostCommand { host, command, keys: Keys { current: 0, other: key } }
    }

    fn preempt(host: ReservingHost, keys: Keys) -> HostCommand {
        let kind = ReservationKind::WriteExclusive;
        HostCommand { host, command: ReservationCommand::Preempt { kind, aborts: true }, keys }
    }

    #[test]
    fn nothing_is_aborted_where_storing_fails() {
        let drive = StoringDrive::default();
        let guard = ReservationGuard::new(1, Arc::default(), &drive);
        let [a, b] = [1, 2].map(|id| ReservingHost::Identified([id; 16]));
        for (host, key) in [(a, 0xA), (b, 0xB)] {
            guard.carry_out(&drive, &register(host, key), || true).unwrap();
        }
        let (then, command) = (guard.now(), preempt(a, Keys { current: 0xA, other: 0xB }));
        drive.fails.store(true, Ordering::SeqCst);
        assert_eq!(guard.carry_out(&drive, &command, || true), Err(Status::INTERNAL));
        assert!(!guard.is_aborted(b, then) && guard.look().registrants.contains_key(&b));
        drive.fails.store(false, Ordering::SeqCst);
        guard.carry_out(&drive, &command, || true).unwrap();
        assert!(guard.is_aborted(b, then) && !guard.look().registrants.contains_key(&b));
        assert!(!guard.is_aborted(a, then) && !guard.is_aborted(b, guard.now()));
    }

    #[test]
    fn a_host_that_goes_in_the_middle_of_its_command_is_not_registered() {
        let drive = StoringDrive::default();
        let guard = ReservationGuard::new(1, Arc::default(), &drive);
        let goes = || guard.forget(&drive, ANONYMOUS).unwrap().is_empty();
        let done = guard.carry_out(&drive, &register(ANONYMOUS, 7), goes);
        assert_eq!(done, Err(Status::ABORTED_BY_REQUEST));
        let is_gone = || false;
        let done = guard.carry_out(&drive, &register(ANONYMOUS, 7), is_gone);
        assert_eq!(done, Err(Status::ABORTED_BY_REQUEST));
        assert!(guard.look().registrants.is_empty() && locked(&guard.shown).pending.is_empty());
        guard.carry_out(&drive, &register(ANONYMOUS, 7), || true).unwrap();
        assert_eq!(guard.snapshot(), *guard.look());
        assert!(guard.look().registrants.contains_key(&ANONYMOUS));
        assert!(goes() && guard.look().registrants.is_empty());
        assert_eq!(guard.snapshot(), *guard.look());
    }
}
