//! Commands and completions as queues carry them ([nvme-base-2021], "Submission Queue Entry" and
//! "Completion Queue Entry"; offsets in bytes).

use super::status::Status;
use super::wire::{u16_at, u32_at, u64_at};

/// Bytes of a submission queue entry.
pub(super) const COMMAND_BYTES: usize = 64;
/// Bytes of a completion queue entry.
pub(super) const COMPLETION_BYTES: usize = 16;

/// Commands of admin queues, by opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdminCommand {
    DeleteSubmissionQueue = 0x00,
    CreateSubmissionQueue = 0x01,
    GetLogPage = 0x02,
    DeleteCompletionQueue = 0x04,
    CreateCompletionQueue = 0x05,
    Identify = 0x06,
    Abort = 0x08,
    SetFeatures = 0x09,
    GetFeatures = 0x0A,
    AsynchronousEvent = 0x0C,
    NamespaceManagement = 0x0D,
    DeviceSelfTest = 0x14,
    NamespaceAttachment = 0x15,
    KeepAlive = 0x18,
    DoorbellBuffer = 0x7C,
    FormatNvm = 0x80,
    SecuritySend = 0x81,
    SecurityReceive = 0x82,
    Sanitize = 0x84,
}

/// Commands of the NVM command set ([nvme-nvm-2021]), by opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IoCommand {
    Flush = 0x00,
    Write = 0x01,
    Read = 0x02,
    WriteUncorrectable = 0x04,
    Compare = 0x05,
    WriteZeroes = 0x08,
    DatasetManagement = 0x09,
    Verify = 0x0C,
    ReservationRegister = 0x0D,
    ReservationReport = 0x0E,
    ReservationAcquire = 0x11,
    ReservationRelease = 0x15,
    Copy = 0x19,
}

/// The opcode of fabrics commands, and their types.
pub(super) mod fabrics {
    pub(crate) const OPCODE: u8 = 0x7F;
    pub(crate) const PROPERTY_SET: u8 = 0x00;
    pub(crate) const CONNECT: u8 = 0x01;
    pub(crate) const PROPERTY_GET: u8 = 0x04;
    pub(crate) const AUTHENTICATION_SEND: u8 = 0x05;
    pub(crate) const AUTHENTICATION_RECEIVE: u8 = 0x06;
    pub(crate) const DISCONNECT: u8 = 0x08;
}

/// A submission queue entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command([u8; COMMAND_BYTES]);

impl Command {
    /// The command in the first 64 bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(bytes[..COMMAND_BYTES].try_into().expect("a slice of this length"))
    }

    pub(super) fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// Bits 1:0 of byte 1: part of a fused operation.
    pub(super) fn fuse(&self) -> u8 {
        self.0[1] & 3
    }

    /// Command Identifier.
    pub(super) fn id(&self) -> u16 {
        u16_at(&self.0, 2)
    }

    /// Namespace Identifier.
    pub(super) fn namespace(&self) -> u32 {
        u32_at(&self.0, 4)
    }

    /// Fabrics Command Type.
    pub(super) fn fabrics_type(&self) -> u8 {
        self.0[4]
    }

    /// Command dword `number`, 10 to 15.
    pub(super) fn dword(&self, number: usize) -> u32 {
        u32_at(&self.0, 4 * number)
    }

    /// Two command dwords, the first of which is `number`.
    pub(super) fn quad(&self, number: usize) -> u64 {
        u64_at(&self.0, 4 * number)
    }

    /// All bytes.
    pub(super) fn bytes(&self) -> &[u8; COMMAND_BYTES] {
        &self.0
    }
}

/// A completion queue entry; `head` is the SQ Head Pointer.
pub(super) fn completion(id: u16, head: u16, status: Status, value: u64) -> [u8; COMPLETION_BYTES] {
    let mut bytes = [0; COMPLETION_BYTES];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    bytes[8..10].copy_from_slice(&head.to_le_bytes());
    bytes[12..14].copy_from_slice(&id.to_le_bytes());
    bytes[14..16].copy_from_slice(&status.field().to_le_bytes());
    bytes
}
