//! Fabrics commands: Connect, Property Get and Set ([nvme-base-2021], "Fabrics Commands").

use blockio::text::is_unshown;

use super::command::Command;
use super::host::Host;
use super::property::QUEUE_ENTRIES_MAX;
use super::status::Status;
use super::transport::Transport;
use super::wire::{terminated, u16_at};

/// Bytes of the data of Connect.
pub(super) const CONNECT_BYTES: usize = 1024;
/// Entries of the smallest admin queue ([nvme-base-2021], "Connect Command and Response").
const ADMIN_ENTRIES_MIN: u32 = 32;
/// Bytes of a field for an NVMe Qualified Name, and most bytes of such a name
/// ([nvme-base-2021], "NVMe Qualified Names").
const NQN_FIELD_BYTES: usize = 256;
const NQN_BYTES_MAX: usize = 223;

/// A Connect command with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Connect {
    /// Queue, 0 for the admin queue.
    pub(super) queue: u16,
    /// Entries of the submission queue.
    pub(super) entries: u32,
    /// True if the host disables flow control of the submission queue.
    pub(super) is_unpaced: bool,
    /// Keep Alive Timeout in milliseconds; 0 for none.
    pub(super) keep_alive_ms: u32,
    pub(super) controller: u16,
    pub(super) subsystem: String,
    pub(super) host: Host,
}

/// Refusal of a Connect: a status, and the invalid parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectRefusal {
    pub(super) status: Status,
    /// Dword 0 of the completion: offset of the parameter; bit 16 is set if it is in the data.
    pub(super) value: u64,
}

impl From<Status> for ConnectRefusal {
    fn from(status: Status) -> Self {
        Self { status, value: 0 }
    }
}

impl ConnectRefusal {
    /// A parameter in the command.
    pub(super) fn command(at: u16) -> Self {
        Self { status: Status::CONNECT_PARAMETER, value: at.into() }
    }

    /// A parameter in the data.
    pub(super) fn data(at: u16) -> Self {
        Self { status: Status::CONNECT_PARAMETER, value: 1 << 16 | u64::from(at) }
    }
}

impl Connect {
    /// Controller Identifier with which a host accepts any controller.
    pub(super) const ANY_CONTROLLER: u16 = 0xFFFF;
    /// Offsets in the command.
    pub(super) const QUEUE_AT: u16 = 42;
    pub(super) const ENTRIES_AT: u16 = 44;
    /// Offsets in the data.
    pub(super) const CONTROLLER_AT: u16 = 16;
    pub(super) const SUBSYSTEM_AT: u16 = 256;
    pub(super) const HOST_AT: u16 = 512;

    /// Reads a Connect.
    ///
    /// # Errors
    /// Fails if the format is unknown, or a field has a reserved value.
    pub(super) fn parse(command: &Command, data: &[u8]) -> Result<Self, ConnectRefusal> {
        let bytes = command.bytes();
        if u16_at(bytes, 40) != 0 {
            return Err(Status::CONNECT_FORMAT.into());
        }
        if data.len() != CONNECT_BYTES {
            return Err(Status::SGL_LENGTH.into());
        }
        let queue = u16_at(bytes, usize::from(Self::QUEUE_AT));
        let entries = u32::from(u16_at(bytes, usize::from(Self::ENTRIES_AT))) + 1;
        let entries_min = if queue == 0 { ADMIN_ENTRIES_MIN } else { 2 };
        if !(entries_min..=QUEUE_ENTRIES_MAX).contains(&entries) {
            return Err(ConnectRefusal::command(Self::ENTRIES_AT));
        }
        let name = |at: u16| {
            let named = terminated(&data[usize::from(at)..][..NQN_FIELD_BYTES]);
            let named = named.filter(|it| is_nqn(it)).map(str::to_owned);
            named.ok_or_else(|| ConnectRefusal::data(at))
        };
        Ok(Self {
            queue,
            entries,
            is_unpaced: bytes[46] & 1 << 2 != 0,
            keep_alive_ms: command.dword(12),
            controller: u16_at(data, usize::from(Self::CONTROLLER_AT)),
            subsystem: name(Self::SUBSYSTEM_AT)?,
            host: Host {
                name: name(Self::HOST_AT)?,
                id: data[..16].try_into().expect("a slice of this length"),
                transport: Transport::Tcp,
                is_authenticated: false,
                is_encrypted: false,
            },
        })
    }
}

/// True if a name may be one of a host. Names go into logs, metrics and the status as they are,
/// where a line break, an escape sequence or another direction would pass for something that the
/// server says.
fn is_nqn(name: &str) -> bool {
    name.len() <= NQN_BYTES_MAX && !name.chars().any(is_unshown)
}

/// Dword 0 of the completion of Connect, beside the controller's identifier: the host is to
/// authenticate itself (ATR).
pub(super) const AUTHENTICATION_REQUIRED: u64 = 1 << 17;

/// Property that a Property Get or Set accesses; true if it has 8 bytes.
pub(super) fn property_of(command: &Command) -> Result<(u32, bool), Status> {
    match command.bytes()[40] & 7 {
        0 => Ok((command.dword(11), false)),
        1 => Ok((command.dword(11), true)),
        _ => Err(Status::INVALID_FIELD),
    }
}
