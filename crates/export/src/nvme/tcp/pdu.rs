//! PDUs of NVMe/TCP ([nvme-tcp-2021], "PDU Definitions"; offsets in bytes).
//!
//! ```text
//!   header (HLEN) ── digest ── padding to PDO ── data ── digest        PLEN in all
//! ```

use super::super::controller::HostTimeout;
use super::super::wire::{Structure, u16_at, u32_at};
use crate::Replies;

/// Data that a capsule of an I/O queue carries: small writes come with their command.
pub(crate) const IO_CAPSULE_DATA_BYTES: usize = 32 << 10;
/// Data that a capsule of the admin queue carries, as the transport has it.
pub(crate) const ADMIN_CAPSULE_DATA_BYTES: usize = 8192;
/// Data of the largest H2CData PDU (`MAXH2CDATA`).
pub(super) const HOST_DATA_BYTES_MAX: usize = 128 << 10;
/// Bytes of a digest.
pub(super) const DIGEST_BYTES: usize = 4;
/// Largest alignment of data that a host or controller may ask for, in bytes.
const ALIGNMENT_MAX: usize = 128;

/// Kinds of PDUs.
pub(super) mod kind {
    pub(crate) const INITIALIZE: u8 = 0x00;
    pub(crate) const INITIALIZED: u8 = 0x01;
    pub(crate) const HOST_TERMINATES: u8 = 0x02;
    pub(crate) const CONTROLLER_TERMINATES: u8 = 0x03;
    pub(crate) const COMMAND: u8 = 0x04;
    pub(crate) const RESPONSE: u8 = 0x05;
    pub(crate) const HOST_DATA: u8 = 0x06;
    pub(crate) const CONTROLLER_DATA: u8 = 0x07;
    pub(crate) const READY_TO_TRANSFER: u8 = 0x09;
}

/// Flags of PDUs.
pub(super) mod flag {
    pub(crate) const HEADER_DIGEST: u8 = 1;
    pub(crate) const DATA_DIGEST: u8 = 1 << 1;
    pub(crate) const LAST: u8 = 1 << 2;
    pub(crate) const SUCCESS: u8 = 1 << 3;
}

/// Bytes of the common header.
pub(super) const COMMON_BYTES: usize = 8;
/// Bytes of ICReq and ICResp.
pub(super) const INITIALIZE_BYTES: usize = 128;
/// Bytes of the header of a command capsule.
pub(super) const COMMAND_HEADER_BYTES: usize = 72;
/// Bytes of the headers of data, R2T and termination requests, and of a response capsule.
pub(super) const SHORT_HEADER_BYTES: usize = 24;

/// Digests that host and controller agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digests {
    pub(super) has_header: bool,
    pub(super) has_data: bool,
}

impl Digests {
    pub(super) const fn header_bytes(self) -> usize {
        if self.has_header { DIGEST_BYTES } else { 0 }
    }

    pub(super) const fn data_bytes(self) -> usize {
        if self.has_data { DIGEST_BYTES } else { 0 }
    }
}

/// Violation of the transport's rules, which ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A field of a header has an invalid value.
    #[error("the PDU field at byte {at} has an invalid value")]
    Field {
        /// Offset of the field.
        at: u32,
    },
    /// A PDU arrived out of sequence.
    #[error("unexpected PDU of type {kind:#04x}")]
    Sequence {
        /// Its type.
        kind: u8,
    },
    /// The digest of a header does not match.
    #[error("header digest mismatch: {found:#010x}, computed {computed:#010x}")]
    HeaderDigest {
        /// Digest in the PDU.
        found: u32,
        /// Digest of the received header.
        computed: u32,
    },
    /// More data arrived than was requested.
    #[error("data beyond the requested transfer")]
    DataRange,
    /// More commands are outstanding than the queue has entries.
    #[error("more than {entries} commands are outstanding, the size of the queue")]
    QueueFull {
        /// Entries of the queue.
        entries: u32,
    },
    /// The host asked for an unsupported version of the PDU format.
    #[error("PDU format version {version}, must be 0")]
    Version {
        /// Version that the host asked for.
        version: u16,
    },
    /// The host ended the connection.
    #[error("the host ended the connection for fatal error {status}")]
    Terminated {
        /// Fatal Error Status.
        status: u16,
    },
    /// Nothing arrived from the host within its Keep Alive Timeout.
    #[error("no Keep Alive within {keep_alive_ms} ms")]
    KeepAlive {
        /// The timeout.
        keep_alive_ms: u32,
    },
    /// The host did not enable its controller in time.
    #[error("the host did not enable its controller within 10 s")]
    NotEnabled,
    /// The host, which has neither a Keep Alive Timeout nor an I/O queue, sent nothing for long.
    #[error("no command in 120 s, no I/O queue and no Keep Alive Timeout")]
    Silent,
    /// The controller of an I/O queue was reset, or its host's admin queue is gone.
    #[error("the controller of this queue is gone")]
    ControllerGone,
}

impl Violation {
    /// Fatal Error Status and Information of the termination request, if one is sent to the host.
    const fn fatal(self) -> Option<(u16, u32)> {
        match self {
            Self::Field { at } => Some((1, at)),
            Self::Sequence { .. } | Self::QueueFull { .. } => Some((2, 0)),
            Self::HeaderDigest { found, .. } => Some((3, found)),
            Self::DataRange => Some((4, 0)),
            Self::Version { .. } => Some((6, 8)),
            Self::Terminated { .. }
            | Self::KeepAlive { .. }
            | Self::NotEnabled
            | Self::Silent
            | Self::ControllerGone => None,
        }
    }
}

impl From<HostTimeout> for Violation {
    fn from(expired: HostTimeout) -> Self {
        match expired {
            HostTimeout::KeepAlive(keep_alive_ms) => Self::KeepAlive { keep_alive_ms },
            HostTimeout::NotEnabled => Self::NotEnabled,
            HostTimeout::Silent => Self::Silent,
        }
    }
}

/// The common header of a PDU, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// Bytes of the header, without its digest.
    pub(super) header_bytes: usize,
    /// Offset of the data; the end of the PDU if it has no data.
    pub(super) data_at: usize,
    /// Bytes of the data, without its digest.
    pub(super) data_bytes: usize,
    /// Bytes in all.
    pub(super) bytes: usize,
}

impl Head {
    /// Checks a common header; a capsule carries at most `capsule_bytes` of data.
    pub(super) fn parse(
        bytes: &[u8],
        digests: Digests,
        capsule_bytes: usize,
    ) -> Result<Self, Violation> {
        let (kind, flags, header_bytes) = (bytes[0], bytes[1], usize::from(bytes[2]));
        let (offset, length) = (usize::from(bytes[3]), u32_at(bytes, 4) as usize);
        let (expected, data_max) = match kind {
            kind::INITIALIZE => (INITIALIZE_BYTES, 0),
            // It carries the faulty header.
            kind::HOST_TERMINATES => (SHORT_HEADER_BYTES, 152 - SHORT_HEADER_BYTES),
            kind::COMMAND => (COMMAND_HEADER_BYTES, capsule_bytes),
            kind::HOST_DATA => (SHORT_HEADER_BYTES, HOST_DATA_BYTES_MAX),
            _ => return Err(Violation::Field { at: 0 }),
        };
        if header_bytes != expected {
            return Err(Violation::Field { at: 2 });
        }
        if matches!(kind, kind::INITIALIZE | kind::HOST_TERMINATES) {
            // These PDUs have neither digests nor padding.
            if length < expected || length > expected + data_max {
                return Err(Violation::Field { at: 4 });
            }
            let data_bytes = length - expected;
            return Ok(Self {
                kind,
                flags,
                header_bytes,
                data_at: expected,
                data_bytes,
                bytes: length,
            });
        }
        if (flags & flag::HEADER_DIGEST != 0) != digests.has_header {
            return Err(Violation::Field { at: 1 });
        }
        let head_bytes = expected + digests.header_bytes();
        if length == head_bytes && kind == kind::COMMAND {
            let data_at = length;
            return Ok(Self { kind, flags, header_bytes, data_at, data_bytes: 0, bytes: length });
        }
        if (flags & flag::DATA_DIGEST != 0) != digests.has_data {
            return Err(Violation::Field { at: 1 });
        }
        if offset < head_bytes || offset % 4 != 0 || offset > head_bytes + ALIGNMENT_MAX {
            return Err(Violation::Field { at: 3 });
        }
        let data = length.checked_sub(offset + digests.data_bytes());
        let Some(data_bytes) = data.filter(|bytes| (1..=data_max).contains(bytes)) else {
            return Err(Violation::Field { at: 4 });
        };
        Ok(Self { kind, flags, header_bytes, data_at: offset, data_bytes, bytes: length })
    }

    /// Checks the digest of the header, if there is one.
    pub(super) fn check_header(&self, pdu: &[u8], digests: Digests) -> Result<(), Violation> {
        if !digests.has_header {
            return Ok(());
        }
        let computed = crc32c::crc32c(&pdu[..self.header_bytes]);
        let found = u32_at(pdu, self.header_bytes);
        if computed == found { Ok(()) } else { Err(Violation::HeaderDigest { found, computed }) }
    }

    /// The data, and true if it matches its digest.
    pub(super) fn data<'a>(&self, pdu: &'a [u8], digests: Digests) -> (&'a [u8], bool) {
        let data = &pdu[self.data_at..self.data_at + self.data_bytes];
        let is_good = !digests.has_data
            || self.data_bytes == 0
            || crc32c::crc32c(data) == u32_at(pdu, self.data_at + self.data_bytes);
        (data, is_good)
    }
}

/// Parameters of a host's ICReq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Initialize {
    pub(super) digests: Digests,
    /// Alignment in bytes that the host wants for data.
    pub(super) alignment: usize,
}

impl Initialize {
    pub(super) fn parse(pdu: &[u8]) -> Result<Self, Violation> {
        let version = u16_at(pdu, 8);
        if version != 0 {
            return Err(Violation::Version { version });
        }
        if pdu[10] > 31 {
            return Err(Violation::Field { at: 10 });
        }
        let digests = Digests { has_header: pdu[11] & 1 != 0, has_data: pdu[11] & 2 != 0 };
        Ok(Self { digests, alignment: (usize::from(pdu[10]) + 1) * 4 })
    }

    /// The ICResp, which enables the digests that the host asked for.
    pub(super) fn answer(self) -> Vec<u8> {
        let mut it = Structure::new(INITIALIZE_BYTES);
        put_common(&mut it, (kind::INITIALIZED, 0), INITIALIZE_BYTES, (0, INITIALIZE_BYTES));
        let Digests { has_header, has_data } = self.digests;
        it.put_u8(11, u8::from(has_header) | u8::from(has_data) << 1);
        it.put_u32(12, u32::try_from(HOST_DATA_BYTES_MAX).expect("far below"));
        it.into_bytes()
    }
}

/// Appends a common header: type and flags, bytes of the header, offset of the data, total bytes.
fn put_common(
    it: &mut Structure,
    (kind, flags): (u8, u8),
    header_bytes: usize,
    (offset, length): (usize, usize),
) {
    it.put_u8(0, kind);
    it.put_u8(1, flags);
    it.put_u8(2, u8::try_from(header_bytes).expect("headers are short"));
    it.put_u8(3, u8::try_from(offset).expect("headers are short"));
    it.put_u32(4, u32::try_from(length).expect("transfers are far below 4 GiB"));
}

/// Appends a header of 24 bytes with its digest: type and flags, offset of the data and total
/// bytes, and its last 16 bytes.
fn put_short(
    replies: &mut Replies,
    digests: Digests,
    kind_flags: (u8, u8),
    place: (usize, usize),
    rest: &[u8; 16],
) {
    let digest_flag = if digests.has_header { flag::HEADER_DIGEST } else { 0 };
    let mut header = [0; SHORT_HEADER_BYTES];
    header[0] = kind_flags.0;
    header[1] = kind_flags.1 | digest_flag;
    header[2] = u8::try_from(SHORT_HEADER_BYTES).expect("it is 24");
    header[3] = u8::try_from(place.0).expect("headers are short");
    let length = u32::try_from(place.1).expect("transfers are far below 4 GiB");
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..].copy_from_slice(rest);
    replies.put(&header);
    if digests.has_header {
        replies.put(&crc32c::crc32c(&header).to_le_bytes());
    }
}

/// Appends a response capsule.
pub(super) fn put_response(replies: &mut Replies, digests: Digests, completion: &[u8; 16]) {
    let length = SHORT_HEADER_BYTES + digests.header_bytes();
    put_short(replies, digests, (kind::RESPONSE, 0), (0, length), completion);
}

/// Appends an R2T, which asks the host for `length` bytes.
pub(super) fn put_ready(
    replies: &mut Replies,
    digests: Digests,
    (command, tag): (u16, u16),
    length: u32,
) {
    let mut rest = [0; 16];
    rest[..2].copy_from_slice(&command.to_le_bytes());
    rest[2..4].copy_from_slice(&tag.to_le_bytes());
    rest[8..12].copy_from_slice(&length.to_le_bytes());
    let bytes = SHORT_HEADER_BYTES + digests.header_bytes();
    put_short(replies, digests, (kind::READY_TO_TRANSFER, 0), (0, bytes), &rest);
}

/// Appends the header of a command's only C2HData, up to its data.
pub(super) fn put_data_header(
    replies: &mut Replies,
    initialize: Initialize,
    command: u16,
    flags: u8,
    length: usize,
) {
    let digests = initialize.digests;
    let head_bytes = SHORT_HEADER_BYTES + digests.header_bytes();
    let offset = head_bytes.next_multiple_of(initialize.alignment);
    let digest_flag = if digests.has_data { flag::DATA_DIGEST } else { 0 };
    let mut rest = [0; 16];
    rest[..2].copy_from_slice(&command.to_le_bytes());
    let data_bytes = u32::try_from(length).expect("transfers are far below 4 GiB");
    rest[8..12].copy_from_slice(&data_bytes.to_le_bytes());
    let place = (offset, offset + length + digests.data_bytes());
    put_short(replies, digests, (kind::CONTROLLER_DATA, flags | digest_flag), place, &rest);
    replies.room(offset - head_bytes).fill(0);
}

/// Appends a termination request for the PDU that begins with `header`, if the error has one.
pub(super) fn put_termination(replies: &mut Replies, violation: Violation, header: &[u8]) {
    let Some((status, information)) = violation.fatal() else { return };
    let header = &header[..header.len().min(SHORT_HEADER_BYTES)];
    let mut it = Structure::new(SHORT_HEADER_BYTES);
    let length = SHORT_HEADER_BYTES + header.len();
    put_common(&mut it, (kind::CONTROLLER_TERMINATES, 0), SHORT_HEADER_BYTES, (0, length));
    it.put_u16(8, status);
    it.put_u32(10, information);
    replies.put(&it.into_bytes());
    replies.put(header);
}
