//! Features ([nvme-base-2021], "Get Features command" and "Set Features command"). None is saved:
//! all return to their defaults with the controller.

use std::collections::BTreeSet;

use blockio::Nanos;
use device::{DriveHealth, Protection};

use super::command::Command;
use super::context::{CommandCompletion, Context};
use super::event;
use super::host::Purpose;
use super::io::refusal;
use super::property::{QUEUES_MAX, VECTORS};
use super::status::Status;
use super::transport::Transport;
use super::wire::{low8, low16, u64_at};

/// Identifiers of features.
mod id {
    pub(super) const ARBITRATION: u8 = 0x01;
    pub(super) const POWER: u8 = 0x02;
    pub(super) const TEMPERATURE: u8 = 0x04;
    pub(super) const ERROR_RECOVERY: u8 = 0x05;
    pub(super) const WRITE_CACHE: u8 = 0x06;
    pub(super) const QUEUES: u8 = 0x07;
    pub(super) const INTERRUPT_COALESCING: u8 = 0x08;
    pub(super) const INTERRUPT_VECTOR: u8 = 0x09;
    pub(super) const WRITE_ATOMICITY: u8 = 0x0A;
    pub(super) const EVENTS: u8 = 0x0B;
    pub(super) const TIMESTAMP: u8 = 0x0E;
    pub(super) const KEEP_ALIVE: u8 = 0x0F;
    pub(super) const HOST_BEHAVIOR: u8 = 0x16;
    pub(super) const SANITIZE: u8 = 0x17;
    pub(super) const ENDURANCE_EVENTS: u8 = 0x18;
    pub(super) const HOST_ID: u8 = 0x81;
    pub(super) const WRITE_PROTECTION: u8 = 0x84;
}

/// Features of a controller for I/O.
const OF_IO: [u8; 15] = [
    id::ARBITRATION,
    id::POWER,
    id::TEMPERATURE,
    id::ERROR_RECOVERY,
    id::WRITE_CACHE,
    id::QUEUES,
    id::WRITE_ATOMICITY,
    id::EVENTS,
    id::TIMESTAMP,
    id::KEEP_ALIVE,
    id::HOST_BEHAVIOR,
    id::SANITIZE,
    id::ENDURANCE_EVENTS,
    id::HOST_ID,
    id::WRITE_PROTECTION,
];
/// More features of a controller for I/O whose completions bring interrupts.
const OF_INTERRUPTS: [u8; 2] = [id::INTERRUPT_COALESCING, id::INTERRUPT_VECTOR];
/// Features of a discovery controller.
const OF_DISCOVERY: [u8; 2] = [id::EVENTS, id::KEEP_ALIVE];
/// Bytes of the data of Host Behavior Support.
const HOST_BEHAVIOR_BYTES: usize = 512;

/// Features that a controller of this purpose has over this transport.
pub(super) fn known(kind: Purpose, transport: Transport) -> impl Iterator<Item = u8> + use<> {
    let (all, interrupts): (&[u8], &[u8]) = match (kind, transport) {
        (Purpose::Io, Transport::Pcie) => (&OF_IO, &OF_INTERRUPTS),
        (Purpose::Io, Transport::Tcp) => (&OF_IO, &[]),
        (Purpose::Discovery, _) => (&OF_DISCOVERY, &[]),
    };
    all.iter().chain(interrupts).copied()
}

/// Features of one controller.
#[derive(Debug)]
pub(super) struct Features {
    arbitration: u32,
    /// Over and under temperature thresholds in kelvin; none if the host left them to the drive.
    over_k: Option<u16>,
    under_k: Option<u16>,
    error_recovery: u32,
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
    /// Endurance Group Event Configuration of the only group; its events are those of SMART.
    endurance_events: u32,
}

impl Features {
    pub(super) fn new(keep_alive_ms: u32) -> Self {
        Self {
            arbitration: 0,
            over_k: None,
            under_k: None,
            error_recovery: 0,
            interrupt_coalescing: 0,
            uncoalesced: BTreeSet::new(),
            is_caching: true,
            queues: QUEUES_MAX,
            write_atomicity: 0,
            events: event::SUPPORTED,
            timestamp: None,
            keep_alive_ms: rounded(keep_alive_ms),
            host_behavior: vec![0; HOST_BEHAVIOR_BYTES],
            endurance_events: 0,
        }
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
        let Some(now) = health.composite_temperature_k else { return health.critical_warning };
        let is_over = self.over_k.is_some_and(|over| now >= over);
        let is_under = self.under_k.is_some_and(|under| now <= under);
        health.critical_warning | u8::from(is_over || is_under) << 1
    }

    /// Bytes that the host sends with a Set Features command.
    pub(super) fn data_bytes(command: &Command) -> usize {
        match low8(command.dword(10)) {
            id::TIMESTAMP => 8,
            id::HOST_BEHAVIOR => HOST_BEHAVIOR_BYTES,
            _ => 0,
        }
    }

    pub(super) fn get(
        &self,
        context: &Context<'_>,
        command: &Command,
        known: impl Iterator<Item = u8>,
        host_id: &[u8; 16],
    ) -> Result<CommandCompletion, Status> {
        let feature = low8(command.dword(10));
        check_known(known, feature)?;
        match command.dword(10) >> 8 & 7 {
            0 => self.current(context, command, host_id),
            // Default and saved value; nothing is saved, so they are the same.
            1 | 2 => Self::new(self.keep_alive_ms).current(context, command, host_id),
            // Capabilities: changeable, and not a property of one namespace.
            3 => Ok(CommandCompletion::value(match feature {
                id::HOST_ID => 0_u32,
                id::WRITE_PROTECTION => 1 << 2 | 1 << 1,
                _ => 1 << 2,
            })),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn current(
        &self,
        context: &Context<'_>,
        command: &Command,
        host_id: &[u8; 16],
    ) -> Result<CommandCompletion, Status> {
        let value = match low8(command.dword(10)) {
            id::ARBITRATION => self.arbitration,
            // Of a sanitize NODRM: one that is to leave blocks allocated is refused, not changed.
            id::POWER | id::SANITIZE => 0,
            id::TEMPERATURE => self.threshold(context, command.dword(11))?.into(),
            id::ERROR_RECOVERY => self.error_recovery,
            id::WRITE_CACHE => {
                let is_through = context.drive.operations().health().is_write_through;
                u32::from(self.is_caching && !is_through)
            }
            id::QUEUES => queues_value(self.queues),
            id::INTERRUPT_COALESCING => self.interrupt_coalescing.into(),
            id::INTERRUPT_VECTOR => {
                let vector = vector(command.dword(11))?;
                u32::from(vector) | u32::from(self.uncoalesced.contains(&vector)) << 16
            }
            id::WRITE_ATOMICITY => self.write_atomicity,
            id::EVENTS => self.events,
            id::TIMESTAMP => return Ok(CommandCompletion::data(self.timestamp_data(context.now))),
            id::KEEP_ALIVE => self.keep_alive_ms,
            id::HOST_BEHAVIOR => return Ok(CommandCompletion::data(self.host_behavior.clone())),
            id::ENDURANCE_EVENTS if low16(command.dword(11)) == 1 => self.endurance_events,
            id::WRITE_PROTECTION => protection(context, command.namespace())?,
            // Fabrics know identifiers of 128 bits alone.
            id::HOST_ID if command.dword(11) & 1 == 1 => {
                return Ok(CommandCompletion::data(host_id.to_vec()));
            }
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(CommandCompletion::value(value))
    }

    pub(super) fn set(
        &mut self,
        context: &Context<'_>,
        command: &Command,
        (known, has_queues): (impl Iterator<Item = u8>, bool),
        data: &[u8],
    ) -> Result<CommandCompletion, Status> {
        let feature = low8(command.dword(10));
        check_known(known, feature)?;
        if command.dword(10) >> 31 == 1 {
            return Err(Status::NOT_SAVEABLE);
        }
        let value = command.dword(11);
        match feature {
            id::ARBITRATION => self.arbitration = value,
            // 0 is the only power state.
            id::POWER if low8(value) << 3 == 0 => {}
            id::TEMPERATURE => self.set_threshold(value)?,
            // DULBE: reads of deallocated blocks return zeroes, never an error.
            id::ERROR_RECOVERY if value & 1 << 16 == 0 => self.error_recovery = value,
            id::WRITE_CACHE => self.is_caching = value & 1 == 1,
            id::QUEUES => return self.set_queues(value, has_queues),
            id::INTERRUPT_COALESCING => self.interrupt_coalescing = low16(value),
            id::INTERRUPT_VECTOR if value >> 16 & 1 == 1 => {
                self.uncoalesced.insert(vector(value)?);
            }
            id::INTERRUPT_VECTOR => {
                self.uncoalesced.remove(&vector(value)?);
            }
            id::WRITE_ATOMICITY => self.write_atomicity = value & 1,
            id::EVENTS => self.events = value & event::SUPPORTED,
            id::TIMESTAMP => {
                let set_ms = u64_at(data, 0) & 0xFFFF_FFFF_FFFF;
                self.timestamp = Some((set_ms, context.now));
            }
            id::KEEP_ALIVE => self.keep_alive_ms = rounded(value),
            id::HOST_BEHAVIOR => self.host_behavior.copy_from_slice(data),
            id::SANITIZE if value & 1 == 0 => {}
            id::ENDURANCE_EVENTS if low16(value) == 1 => self.endurance_events = value,
            id::WRITE_PROTECTION => protect(context, command.namespace(), value & 7)?,
            id::HOST_ID => return Err(Status::COMMAND_SEQUENCE),
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(CommandCompletion::value(0_u32))
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

/// Namespace Write Protection state: 0 for none, 1 for protected.
fn protection(context: &Context<'_>, id: u32) -> Result<u32, Status> {
    context.drive.directory().all().get(id).ok_or(Status::INVALID_NAMESPACE)?;
    let protection = context.drive.operations().protection(id);
    Ok(u32::from(protection == Protection::ByHost))
}

/// Sets that state; what ends with the power, or never, is not offered.
fn protect(context: &Context<'_>, id: u32, state: u32) -> Result<(), Status> {
    if state > 1 {
        return Err(Status::INVALID_FIELD);
    }
    context.drive.operations().protect(id, state == 1).map_err(|error| refusal(&error))
}

fn check_known(mut known: impl Iterator<Item = u8>, feature: u8) -> Result<(), Status> {
    if known.any(|it| it == feature) { Ok(()) } else { Err(Status::INVALID_FIELD) }
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
