//! Reservations of one namespace ([nvme-base-2021], "Reservations"): a value that commands of hosts
//! change, and that says which commands it admits.
//!
//! ```text
//!   stranger ── register ──► registrant ── acquire, preempt ──► holder
//!      ▲  ▲                     │  ▲                            │  │
//!      │  └ unregister, clear, ─┘  └───────── release ──────────┘  │
//!      │    preempted by another                                   │
//!      └──────────── unregister, clear, preempted by another ──────┘
//! ```
//!
//! **Invariants**
//! - A holder is registered. A reservation that all registrants hold has one at least.
//! - A command that is refused changes nothing.

mod guard;
mod notification;
mod report;

use std::collections::BTreeMap;

use device::{PersistentReservations, Registration, ReservationKind};

pub(super) use self::guard::{HostCommand, ReservationGuard};
pub(super) use self::notification::{Notice, Notification, NotificationLog};
pub use self::report::stored_reservations;
pub(super) use self::report::{report, shown};
use super::command::IoCommand;
use super::status::Status;
use super::wire::{low8, u64_at};

/// Most hosts that are registered with a namespace.
const HOSTS_MAX: usize = 1024;

/// Host as reservations know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReservingHost {
    /// One with a Host Identifier, whichever controllers it comes by.
    Identified([u8; 16]),
    /// One without, which is a host of its own until its controller is reset.
    Anonymous {
        /// Its controller.
        controller: u16,
    },
}

/// Identity of a controller's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostIdentity {
    pub(super) host: ReservingHost,
    /// True if its identifier has 128 bits, and not 64.
    pub(super) is_extended: bool,
}

impl HostIdentity {
    /// The identity of a controller with this Host Identifier, of which 0 is none.
    pub(super) fn of(controller: u16, id: [u8; 16], is_extended: bool) -> Self {
        let host = if id == [0; 16] {
            ReservingHost::Anonymous { controller }
        } else {
            ReservingHost::Identified(id)
        };
        Self { host, is_extended }
    }
}

/// Group of commands that a reservation admits or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Action of a Reservation Register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterAction {
    Register,
    Unregister,
    Replace,
}

/// Command that changes reservations, without its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReservationCommand {
    Register {
        action: RegisterAction,
        /// True if the current key need not be given (IEKEY).
        ignores_key: bool,
        /// Persistence through power loss from now on (CPTPL); none to leave it as it is.
        persists: Option<bool>,
    },
    Acquire(ReservationKind),
    Preempt {
        kind: ReservationKind,
        /// True if commands of preempted hosts are aborted.
        aborts: bool,
    },
    Release(ReservationKind),
    Clear,
}

/// Keys of such a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    /// Current key of the host (CRKEY).
    pub(super) current: u64,
    /// Key to register (NRKEY) or to preempt (PRKEY); 0 where a command has none.
    pub(super) other: u64,
}

/// Reason why a command changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReservationError {
    /// Registrations or a reservation do not admit it.
    Conflict,
    /// A field does not fit the reservation.
    Field,
    /// The largest number of hosts is registered.
    TooManyHosts,
}

impl From<ReservationError> for Status {
    fn from(error: ReservationError) -> Self {
        match error {
            ReservationError::Conflict => Self::RESERVATION_CONFLICT,
            ReservationError::Field => Self::INVALID_FIELD,
            ReservationError::TooManyHosts => Self::INTERNAL,
        }
    }
}

/// A reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reservation {
    kind: ReservationKind,
    /// None if all registrants hold it.
    holder: Option<ReservingHost>,
}

/// Registrations of hosts with a namespace, and the reservation of one or all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reservations {
    /// Keys, by host.
    registrants: BTreeMap<ReservingHost, u64>,
    reservation: Option<Reservation>,
    /// Commands that changed registrations since the power came, with wrapping.
    generation: u32,
    /// True if they persist through power loss.
    is_persistent: bool,
}

impl ReservationCommand {
    /// The command in command dword 10 of an opcode.
    ///
    /// # Errors
    /// Fails if a field has a reserved value, or the opcode is no such command.
    pub(super) fn parse(opcode: IoCommand, dword: u32) -> Result<Self, Status> {
        let ignores_key = dword & 1 << 3 != 0;
        let (action, kind) = (dword & 7, ReservationKind::of(low8(dword >> 8)));
        if opcode == IoCommand::ReservationRegister {
            let action = match action {
                0 => RegisterAction::Register,
                1 => RegisterAction::Unregister,
                2 => RegisterAction::Replace,
                _ => return Err(Status::INVALID_FIELD),
            };
            let persists = match dword >> 30 {
                0 => None,
                1 => return Err(Status::INVALID_FIELD),
                value => Some(value == 3),
            };
            return Ok(Self::Register { action, ignores_key, persists });
        }
        // Only a registration may leave the current key out.
        if ignores_key {
            return Err(Status::INVALID_FIELD);
        }
        match (opcode, action, kind) {
            (IoCommand::ReservationAcquire, 0, Some(kind)) => Ok(Self::Acquire(kind)),
            (IoCommand::ReservationAcquire, 1 | 2, Some(kind)) => {
                Ok(Self::Preempt { kind, aborts: action == 2 })
            }
            (IoCommand::ReservationRelease, 0, Some(kind)) => Ok(Self::Release(kind)),
            (IoCommand::ReservationRelease, 1, _) => Ok(Self::Clear),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Bytes that the host sends with it.
    pub(super) const fn data_bytes(self) -> usize {
        match self {
            Self::Register { .. } | Self::Acquire(_) | Self::Preempt { .. } => 16,
            Self::Release(_) | Self::Clear => 8,
        }
    }

    /// The keys in its data.
    pub(super) fn keys(self, data: &[u8]) -> Keys {
        let other = if self.data_bytes() > 8 { u64_at(data, 8) } else { 0 };
        Keys { current: u64_at(data, 0), other }
    }
}

impl Reservations {
    /// Restores what a drive stored; it persists as long as the drive can store it.
    pub(super) fn restored(stored: &PersistentReservations, is_persistent: bool) -> Self {
        let host = ReservingHost::Identified;
        let registrants: BTreeMap<ReservingHost, u64> =
            stored.registrations.iter().map(|it| (host(it.host), it.key)).collect();
        let reservation =
            stored.kind.map(|kind| Reservation { kind, holder: stored.holder.map(host) });
        let is_persistent = is_persistent && stored.is_persistent;
        Self { registrants, reservation, generation: 0, is_persistent }
    }

    /// Returns what a drive is to store: nothing unless it persists. Hosts without an identifier
    /// are others after a power loss.
    pub(super) fn stored(&self) -> PersistentReservations {
        if !self.is_persistent {
            return PersistentReservations::default();
        }
        let identifier = |host: &ReservingHost| match host {
            ReservingHost::Identified(host) => Some(*host),
            ReservingHost::Anonymous { .. } => None,
        };
        let registrations: Vec<Registration> = self
            .registrants
            .iter()
            .filter_map(|(host, key)| Some(Registration { host: identifier(host)?, key: *key }))
            .collect();
        let holder = self.reservation.and_then(|it| it.holder).as_ref().and_then(identifier);
        let lasts = |it: &Reservation| match it.holder {
            Some(_) => holder.is_some(),
            None => !registrations.is_empty(),
        };
        let kind = self.reservation.filter(lasts).map(|it| it.kind);
        PersistentReservations { is_persistent: true, registrations, kind, holder }
    }

    /// Kind of the reservation; none if there is none.
    pub(super) fn kind(&self) -> Option<ReservationKind> {
        self.reservation.map(|it| it.kind)
    }

    pub(super) const fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// Has it persist through power loss from now on, or not.
    pub(super) const fn persist(&mut self, is_persistent: bool) {
        self.is_persistent = is_persistent;
    }

    /// True if a command of a host is admitted.
    pub(super) fn admits(&self, host: ReservingHost, access: Access) -> bool {
        let Some(Reservation { kind, .. }) = self.reservation else { return true };
        let is_open = access == Access::Read && kind.is_write_exclusive();
        let is_admitted = kind.admits_registrants() && self.registrants.contains_key(&host);
        is_open || is_admitted || self.holds(host)
    }

    /// Carries a command of a host out. Returns the notices for other hosts.
    ///
    /// # Errors
    /// Fails if registrations or the reservation do not admit it.
    pub(super) fn carry_out(
        &mut self,
        host: ReservingHost,
        command: ReservationCommand,
        keys: Keys,
    ) -> Result<Vec<Notification>, ReservationError> {
        let is_own = self.registrants.get(&host) == Some(&keys.current);
        let notices = match command {
            ReservationCommand::Register { action, ignores_key, persists } => {
                let is_own = is_own || ignores_key && self.registrants.contains_key(&host);
                let notices = self.register(host, (action, is_own), keys.other)?;
                self.is_persistent = persists.unwrap_or(self.is_persistent);
                notices
            }
            _ if !is_own => return Err(ReservationError::Conflict),
            ReservationCommand::Acquire(kind) => self.acquire(host, kind)?,
            ReservationCommand::Preempt { kind, .. } => self.preempt(host, kind, keys.other)?,
            ReservationCommand::Release(kind) => self.release(host, kind)?,
            ReservationCommand::Clear => {
                self.reservation = None;
                let registrants = std::mem::take(&mut self.registrants);
                notices_to(registrants.keys(), host, Notice::ReservationPreempted)
            }
        };
        if !matches!(command, ReservationCommand::Acquire(_) | ReservationCommand::Release(_)) {
            self.generation = self.generation.wrapping_add(1);
        }
        Ok(notices)
    }

    /// Removes a host that is no more. Returns the notices for other hosts.
    pub(super) fn remove(&mut self, host: ReservingHost) -> Vec<Notification> {
        self.registrants.remove(&host);
        let Some(Reservation { kind, holder }) = self.reservation else { return Vec::new() };
        let is_gone = match holder {
            Some(holder) => holder == host,
            None => self.registrants.is_empty(),
        };
        if !is_gone {
            return Vec::new();
        }
        self.reservation = None;
        self.release_notices(host, kind)
    }

    fn holds(&self, host: ReservingHost) -> bool {
        self.reservation.is_some_and(|it| match it.holder {
            Some(holder) => holder == host,
            None => self.registrants.contains_key(&host),
        })
    }

    fn hold(&mut self, host: ReservingHost, kind: ReservationKind) {
        let holder = (!kind.is_held_by_all()).then_some(host);
        self.reservation = Some(Reservation { kind, holder });
    }

    /// `is_own` is true if the host is registered and gave its key, or need not.
    fn register(
        &mut self,
        host: ReservingHost,
        (action, is_own): (RegisterAction, bool),
        key: u64,
    ) -> Result<Vec<Notification>, ReservationError> {
        let known = self.registrants.get(&host).copied();
        match action {
            RegisterAction::Register if known.is_none() && self.registrants.len() >= HOSTS_MAX => {
                return Err(ReservationError::TooManyHosts);
            }
            // A host may register its key again, by another controller.
            RegisterAction::Register if known.is_none_or(|known| known == key) => {
                self.registrants.insert(host, key);
            }
            RegisterAction::Replace if is_own => {
                self.registrants.insert(host, key);
            }
            RegisterAction::Unregister if is_own => return Ok(self.remove(host)),
            _ => return Err(ReservationError::Conflict),
        }
        Ok(Vec::new())
    }

    fn acquire(
        &mut self,
        host: ReservingHost,
        kind: ReservationKind,
    ) -> Result<Vec<Notification>, ReservationError> {
        match self.kind() {
            None => self.hold(host, kind),
            Some(held) if held == kind && self.holds(host) => {}
            Some(_) => return Err(ReservationError::Conflict),
        }
        Ok(Vec::new())
    }

    fn preempt(
        &mut self,
        host: ReservingHost,
        kind: ReservationKind,
        key: u64,
    ) -> Result<Vec<Notification>, ReservationError> {
        let before = self.reservation;
        let is_held_by_all = before.is_some_and(|it| it.holder.is_none());
        let holder = before.and_then(|it| it.holder);
        let of_holder = holder.and_then(|holder| self.registrants.get(&holder));
        let takes_over = if is_held_by_all { key == 0 } else { of_holder == Some(&key) };
        if !takes_over && key == 0 && before.is_some() {
            return Err(ReservationError::Field);
        }
        let is_preempted = |of: &ReservingHost, its_key: u64| {
            let is_named = its_key == key || takes_over && is_held_by_all;
            is_named && !(takes_over && *of == host)
        };
        let preempted: Vec<ReservingHost> = self
            .registrants
            .iter()
            .filter(|(of, its_key)| is_preempted(of, **its_key))
            .map(|(of, _)| *of)
            .collect();
        if !takes_over && preempted.is_empty() {
            return Err(ReservationError::Conflict);
        }
        self.registrants.retain(|of, _| !preempted.contains(of));
        let mut all = notices_to(preempted.iter(), host, Notice::RegistrationPreempted);
        if takes_over {
            self.hold(host, kind);
            if before.is_some_and(|it| it.kind != kind) {
                all.extend(notices_to(self.registrants.keys(), host, Notice::ReservationReleased));
            }
        } else if self.registrants.is_empty() {
            self.reservation = None;
        }
        Ok(all)
    }

    fn release(
        &mut self,
        host: ReservingHost,
        kind: ReservationKind,
    ) -> Result<Vec<Notification>, ReservationError> {
        if !self.holds(host) {
            return Ok(Vec::new());
        }
        if self.kind() != Some(kind) {
            return Err(ReservationError::Field);
        }
        self.reservation = None;
        Ok(self.release_notices(host, kind))
    }

    /// Registrants learn that a reservation is gone which had admitted them.
    fn release_notices(&self, host: ReservingHost, kind: ReservationKind) -> Vec<Notification> {
        if !kind.admits_registrants() {
            return Vec::new();
        }
        notices_to(self.registrants.keys(), host, Notice::ReservationReleased)
    }
}

/// Makes a notice for each of some hosts, but for the host of the command.
fn notices_to<'a>(
    hosts: impl Iterator<Item = &'a ReservingHost>,
    but: ReservingHost,
    notice: Notice,
) -> Vec<Notification> {
    hosts.filter(|host| **host != but).map(|host| Notification { host: *host, notice }).collect()
}

#[cfg(test)]
mod tests;
