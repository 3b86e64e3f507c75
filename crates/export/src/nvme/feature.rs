//! Features ([nvme-base-2021], "Get Features command" and "Set Features command"). None is saved.
//! The drive keeps write protection, those of reservations and what belongs to an endurance group
//! or the subsystem; all others return to their defaults with the controller.

mod error_injection;
mod reservation;

use std::collections::{BTreeMap, BTreeSet};

use blockio::Nanos;
use device::{DriveHealth, Protection};

use super::command::Command;
use super::context::{CommandCompletion, Context};
use super::event;
use super::host::Host;
use super::namespace::{ALL_NAMESPACES, Namespaces};
use super::property::{QUEUES_MAX, VECTORS};
use super::repertoire::{self, Feature, Scope};
use super::reservation::HostIdentity;
use super::status::{Status, refusal};
use super::wire::{low8, low16, u64_at};

/// Temperature of a drive that has no sensor, in kelvin: that of a room, for hosts take 0 for one.
const ROOM_TEMPERATURE_K: u16 = 298;
/// Bytes of the data of Host Behavior Support.
const HOST_BEHAVIOR_BYTES: usize = 512;
/// Write protection until the power goes: that of a drive that is served for reading only.
const PROTECTED_UNTIL_POWER_CYCLE: u32 = 2;

/// Features of one controller.
#[derive(Debug)]
pub(super) struct Features {
    arbitration: u32,
    /// Over and under temperature thresholds in kelvin; none if the host left them to the drive.
    over_k: Option<u16>,
    under_k: Option<u16>,
    /// By namespace; that of [`ALL_NAMESPACES`] goes for the others.
    error_recovery: BTreeMap<u32, u32>,
    /// Recommendation of the host; interrupts are never held back.
    interrupt_coalescing: u16,
    /// Interrupt vectors that are not to be coalesced.
    uncoalesced: BTreeSet<u16>,
    is_caching: bool,
    /// I/O queues that the host may have.
    queues: u16,
    write_atomicity: u32,
    events: u32,
    /// Milliseconds since 1970 that the host set, and the time at which it set them.
    timestamp: Option<(u64, Nanos)>,
    keep_alive_ms: u32,
    host_behavior: Vec<u8>,
    host_id: [u8; 16],
    /// True if it came with Connect.
    is_host_id_fixed: bool,
    /// True if it has 128 bits, and not 64.
    is_host_id_extended: bool,
}

/// Feature that a command names, and the namespaces that it is about: none unless it is theirs.
pub(super) struct FeatureTarget {
    feature: Feature,
    namespaces: Vec<u32>,
}

impl FeatureTarget {
    /// The target of a Set Features command by a host with these namespaces, of which `limit` is
    /// the largest identifier.
    pub(super) fn of_set(
        (feature, scope): (Feature, Scope),
        id: u32,
        attached: &Namespaces,
        limit: u32,
    ) -> Result<Self, Status> {
        let namespaces = match (scope, id) {
            (Scope::Namespace, ALL_NAMESPACES) => attached.iter().map(|it| it.id).collect(),
            (Scope::Namespace, 0) => return Err(Status::INVALID_NAMESPACE),
            (Scope::Namespace, _) => return Self::of_get((feature, scope), id, attached, limit),
            (_, 0 | ALL_NAMESPACES) => Vec::new(),
            _ if id <= limit => return Err(Status::NOT_OF_NAMESPACE),
            _ => return Err(Status::INVALID_NAMESPACE),
        };
        Ok(Self { feature, namespaces })
    }

    /// The target of a Get Features command, likewise.
    pub(super) fn of_get(
        (feature, scope): (Feature, Scope),
        id: u32,
        attached: &Namespaces,
        limit: u32,
    ) -> Result<Self, Status> {
        let namespaces = match scope {
            Scope::Namespace if attached.get(id).is_some() => vec![id],
            // nvme-cli asks so unless it is given a namespace.
            Scope::Namespace
                if feature == Feature::ErrorRecovery && [0, ALL_NAMESPACES].contains(&id) =>
            {
                vec![ALL_NAMESPACES]
            }
            Scope::Namespace if (1..=limit).contains(&id) => return Err(Status::INVALID_FIELD),
            Scope::Namespace => return Err(Status::INVALID_NAMESPACE),
            _ => Vec::new(),
        };
        Ok(Self { feature, namespaces })
    }
}

impl Features {
    pub(super) fn new(keep_alive_ms: u32, host: &Host) -> Self {
        Self {
            arbitration: 0,
            over_k: None,
            under_k: None,
            error_recovery: BTreeMap::new(),
            interrupt_coalescing: 0,
            uncoalesced: BTreeSet::new(),
            is_caching: true,
            queues: QUEUES_MAX,
            write_atomicity: 0,
            events: event::SUPPORTED,
            timestamp: None,
            keep_alive_ms: rounded(keep_alive_ms),
            host_behavior: vec![0; HOST_BEHAVIOR_BYTES],
            host_id: host.id,
            is_host_id_fixed: host.transport.is_fabrics(),
            is_host_id_extended: host.is_extended(),
        }
    }

    /// Identity of the host of a controller.
    pub(super) fn identity(&self, controller: u16) -> HostIdentity {
        HostIdentity::of(controller, self.host_id, self.is_host_id_extended)
    }

    pub(super) const fn queues(&self) -> u16 {
        self.queues
    }

    pub(super) const fn is_caching(&self) -> bool {
        self.is_caching
    }

    pub(super) const fn keep_alive_ms(&self) -> u32 {
        self.keep_alive_ms
    }

    /// True if the host enabled Command Retry Delays (ACRE).
    pub(super) fn has_retry_delay(&self) -> bool {
        self.host_behavior[0] == 1
    }

    pub(super) const fn events(&self) -> u32 {
        self.events
    }

    /// The critical warnings; the one for temperature follows the host's thresholds.
    pub(super) fn critical_warning(&self, health: &DriveHealth) -> u8 {
        let now = temperature_k(health);
        let is_over = self.over_k.is_some_and(|over| now >= over);
        let is_under = self.under_k.is_some_and(|under| now <= under);
        health.critical_warning | u8::from(is_over || is_under) << 1
    }

    /// Bytes that the host sends with a Set Features command.
    pub(super) fn data_bytes(command: &Command) -> usize {
        match repertoire::feature(low8(command.dword(10))) {
            Some(Feature::Timestamp) => 8,
            Some(Feature::HostBehavior) => HOST_BEHAVIOR_BYTES,
            Some(Feature::HostId) => host_id_bytes(command),
            Some(Feature::ErrorInjection) => error_injection::bytes(command.dword(11)),
            _ => 0,
        }
    }

    /// The value of a feature, as Get Features has it.
    pub(super) fn get(
        &self,
        context: &Context<'_>,
        command: &Command,
        target: &FeatureTarget,
    ) -> Result<CommandCompletion, Status> {
        let of = target.namespaces.first().copied().unwrap_or(0);
        let value = match target.feature {
            Feature::Arbitration => self.arbitration,
            Feature::Power => 0,
            Feature::Sanitize => u32::from(context.drive.answers_no_deallocate()),
            Feature::Temperature => self.threshold(context, command.dword(11))?.into(),
            Feature::ErrorRecovery => {
                let own = self.error_recovery.get(&of);
                own.or_else(|| self.error_recovery.get(&ALL_NAMESPACES)).copied().unwrap_or(0)
            }
            Feature::WriteCache => {
                let is_through = context.drive.operations().health().is_write_through;
                u32::from(self.is_caching && !is_through)
            }
            Feature::Queues => queues_value(self.queues),
            Feature::InterruptCoalescing => self.interrupt_coalescing.into(),
            Feature::InterruptVector => {
                let vector = vector(command.dword(11))?;
                u32::from(vector) | u32::from(self.uncoalesced.contains(&vector)) << 16
            }
            Feature::WriteAtomicity => self.write_atomicity,
            Feature::Events => self.events,
            Feature::Timestamp => {
                return Ok(CommandCompletion::data(self.timestamp_data(context.now)));
            }
            Feature::KeepAlive => self.keep_alive_ms,
            Feature::HostBehavior => {
                return Ok(CommandCompletion::data(self.host_behavior.clone()));
            }
            Feature::EnduranceEvents => {
                check_group(command.dword(11))?;
                context.drive.endurance_events()
            }
            Feature::ReservationMask => reservation::mask(context, of)?,
            Feature::ReservationPersistence => reservation::persistence(context, of)?,
            Feature::WriteProtection => protection(context, of)?,
            Feature::ErrorInjection => {
                return Ok(error_injection::get(context.drive.operations()));
            }
            Feature::HostId => {
                let bytes = host_id_bytes(command);
                if self.is_host_id_fixed && bytes < self.host_id.len() {
                    return Err(Status::INVALID_FIELD);
                }
                return Ok(CommandCompletion::data(self.host_id[..bytes].to_vec()));
            }
        };
        Ok(CommandCompletion::value(value))
    }

    /// Sets a feature; `has_queues` is true if the host has I/O queues.
    pub(super) fn set(
        &mut self,
        context: &Context<'_>,
        command: &Command,
        (target, has_queues): (&FeatureTarget, bool),
        data: &[u8],
    ) -> Result<CommandCompletion, Status> {
        let value = command.dword(11);
        match target.feature {
            Feature::Arbitration => self.arbitration = value,
            // 0 is the only power state.
            Feature::Power if low8(value) << 3 == 0 => {}
            Feature::Power => return Err(Status::INVALID_FIELD),
            Feature::Temperature => self.set_threshold(value)?,
            // DULBE: reads of deallocated blocks return zeroes, never an error.
            Feature::ErrorRecovery if value & 1 << 16 != 0 => return Err(Status::INVALID_FIELD),
            Feature::ErrorRecovery => {
                if command.namespace() == ALL_NAMESPACES {
                    self.error_recovery.clear();
                }
                self.error_recovery.insert(command.namespace(), value);
            }
            Feature::WriteCache => self.is_caching = value & 1 == 1,
            Feature::Queues => return self.set_queues(value, has_queues),
            Feature::InterruptCoalescing => self.interrupt_coalescing = low16(value),
            Feature::InterruptVector if value >> 16 & 1 == 1 => {
                self.uncoalesced.insert(vector(value)?);
            }
            Feature::InterruptVector => {
                self.uncoalesced.remove(&vector(value)?);
            }
            Feature::WriteAtomicity => self.write_atomicity = value & 1,
            Feature::Events => self.events = value & event::SUPPORTED,
            Feature::Timestamp => {
                let set_ms = u64_at(data, 0) & 0xFFFF_FFFF_FFFF;
                self.timestamp = Some((set_ms, context.now));
            }
            Feature::KeepAlive => self.keep_alive_ms = rounded(value),
            Feature::HostBehavior => self.set_host_behavior(data)?,
            Feature::Sanitize => context.drive.answer_no_deallocate(value & 1 == 1),
            Feature::EnduranceEvents => {
                check_group(value)?;
                context.drive.set_endurance_events(value);
            }
            Feature::ErrorInjection => error_injection::set(context.drive.operations(), data)?,
            Feature::WriteProtection => protect(context, &target.namespaces, value & 7)?,
            Feature::HostId if self.is_host_id_fixed => return Err(Status::COMMAND_SEQUENCE),
            Feature::HostId => {
                self.host_id = [0; 16];
                self.host_id[..data.len()].copy_from_slice(data);
                self.is_host_id_extended = data.len() == self.host_id.len();
            }
            Feature::ReservationMask => reservation::set_mask(context, &target.namespaces, value)?,
            Feature::ReservationPersistence => {
                reservation::persist(context, &target.namespaces, value & 1 == 1)?;
            }
        }
        Ok(CommandCompletion::value(0_u32))
    }

    /// Host Behavior Support: Command Retry Delays alone; neither extended telemetry nor formats
    /// of blocks and of Copy beyond the first ones.
    fn set_host_behavior(&mut self, data: &[u8]) -> Result<(), Status> {
        let [is_delayed, rest @ ..] = data else { return Err(Status::INVALID_FIELD) };
        if *is_delayed > 1 || rest.iter().any(|byte| *byte != 0) {
            return Err(Status::INVALID_FIELD);
        }
        self.host_behavior.copy_from_slice(data);
        Ok(())
    }

    /// Number of queues: as many of each kind as the host asks for, within limits.
    fn set_queues(&mut self, value: u32, has_queues: bool) -> Result<CommandCompletion, Status> {
        let (submission, completion) = (low16(value), low16(value >> 16));
        if submission == 0xFFFF || completion == 0xFFFF {
            return Err(Status::INVALID_FIELD);
        }
        if has_queues {
            return Err(Status::COMMAND_SEQUENCE);
        }
        // Over fabrics a queue is always a pair.
        self.queues = (submission.min(completion) + 1).min(QUEUES_MAX);
        Ok(CommandCompletion::value(queues_value(self.queues)))
    }

    /// Temperature threshold of the composite temperature, the only one.
    fn threshold(&self, context: &Context<'_>, select: u32) -> Result<u16, Status> {
        match (select >> 16 & 0xF, select >> 20 & 3) {
            (0, 0) => {
                let own = context.drive.operations().health().warning_temperature_k;
                Ok(self.over_k.or(own).unwrap_or(u16::MAX))
            }
            (0, 1) => Ok(self.under_k.unwrap_or(0)),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn set_threshold(&mut self, value: u32) -> Result<(), Status> {
        match (value >> 16 & 0xF, value >> 20 & 3) {
            (0 | 0xF, 0) => self.over_k = Some(low16(value)),
            (0 | 0xF, 1) => self.under_k = Some(low16(value)),
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(())
    }

    /// Timestamp data: the time, and bits 3:1 of byte 6: 1 if a host set it.
    fn timestamp_data(&self, now: Nanos) -> Vec<u8> {
        let (origin, ms) = match self.timestamp {
            Some((set_ms, set_at)) => (1, set_ms + now.saturating_sub(set_at).0 / 1_000_000),
            None => (0, now.0 / 1_000_000),
        };
        let mut data = (ms & 0xFFFF_FFFF_FFFF).to_le_bytes();
        data[6] = origin << 1;
        data.to_vec()
    }
}

/// The composite temperature in kelvin.
pub(super) fn temperature_k(health: &DriveHealth) -> u16 {
    health.composite_temperature_k.unwrap_or(ROOM_TEMPERATURE_K)
}

/// Capabilities of a feature, as Get Features has them: whether a host may change it, and whether
/// each namespace has its own. None is saved.
pub(super) fn uses(context: &Context<'_>, (feature, scope): (Feature, Scope), host: &Host) -> u32 {
    let is_changeable = match feature {
        Feature::HostId => !host.transport.is_fabrics(),
        Feature::ReservationPersistence => context.drive.operations().keeps_reservations(),
        Feature::WriteProtection => context.drive.operations().is_operable(),
        _ => true,
    };
    u32::from(is_changeable) << 2 | u32::from(scope == Scope::Namespace) << 1
}

/// States of Namespace Write Protection (NWPC): those that hosts set and take back, and the one of
/// a drive that is served for reading only.
pub(super) fn protections(operations: &dyn device::Operations) -> u8 {
    if operations.is_operable() { 1 } else { 1 << 1 | 1 }
}

/// Namespace Write Protection state: 0 for none, 1 for protected by a host.
fn protection(context: &Context<'_>, id: u32) -> Result<u32, Status> {
    let all = context.drive.directory().all();
    if all.get(id).ok_or(Status::INVALID_NAMESPACE)?.is_read_only {
        return Ok(PROTECTED_UNTIL_POWER_CYCLE);
    }
    let protection = context.drive.operations().protection(id);
    Ok(u32::from(protection == Protection::ByHost))
}

/// Sets that state; what ends with the power, or never, is not offered.
fn protect(context: &Context<'_>, namespaces: &[u32], state: u32) -> Result<(), Status> {
    for id in namespaces {
        let now = protection(context, *id)?;
        if now == PROTECTED_UNTIL_POWER_CYCLE && state <= now {
            return if state == now { Ok(()) } else { Err(Status::NOT_CHANGEABLE) };
        }
        if state > 1 {
            return Err(Status::INVALID_FIELD);
        }
        let done = context.drive.operations().protect(*id, state == 1);
        done.map_err(|error| refusal(&error))?;
    }
    Ok(())
}

/// Bytes of a Host Identifier: of 128 bits (EXHID) or 64.
fn host_id_bytes(command: &Command) -> usize {
    if command.dword(11) & 1 == 1 { 16 } else { 8 }
}

/// Checks that a command names the only endurance group.
fn check_group(value: u32) -> Result<(), Status> {
    if low16(value) == 1 { Ok(()) } else { Err(Status::INVALID_FIELD) }
}

/// The interrupt vector that a command names, if the controller has it.
fn vector(value: u32) -> Result<u16, Status> {
    Some(low16(value)).filter(|vector| *vector < VECTORS).ok_or(Status::INVALID_FIELD)
}

/// Numbers of submission and completion queues, zero-based.
fn queues_value(queues: u16) -> u32 {
    let less = u32::from(queues - 1);
    less << 16 | less
}

/// A Keep Alive Timeout, rounded up to the granularity in Identify, a second; 0 stays 0.
const fn rounded(keep_alive_ms: u32) -> u32 {
    keep_alive_ms.div_ceil(1000).saturating_mul(1000)
}
