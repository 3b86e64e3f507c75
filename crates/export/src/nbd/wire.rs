//! Numbers of the NBD protocol [nbd-protocol-2023], and how they are put into bytes.

/// First word of a server.
pub(super) const GREETING: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second word of a server, and first of every option of a client.
pub(super) const OPTION: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// First word of every answer to an option.
pub(super) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// First word of a request.
pub(super) const REQUEST: u32 = 0x2560_9513;
/// First word of a request with an extended header.
pub(super) const EXTENDED_REQUEST: u32 = 0x21e4_1c71;
/// First word of a simple reply.
pub(super) const SIMPLE_REPLY: u32 = 0x6744_6698;
/// First word of a chunk of a structured reply.
pub(super) const CHUNK: u32 = 0x668e_33ef;
/// First word of a chunk with an extended header.
pub(super) const EXTENDED_CHUNK: u32 = 0x6e8a_278c;

/// Bits of the handshake: fixed newstyle, and no padding after `EXPORT_NAME`.
pub(super) mod handshake {
    pub(crate) const FIXED_NEWSTYLE: u16 = 1;
    pub(crate) const NO_ZEROES: u16 = 2;
}

/// Options of a client.
pub(super) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const START_TLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
    pub(crate) const EXTENDED_HEADERS: u32 = 11;
}

/// Answers to options.
pub(super) mod answer {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const ERR_UNSUPPORTED: u32 = (1 << 31) + 1;
    pub(crate) const ERR_INVALID: u32 = (1 << 31) + 3;
    pub(crate) const ERR_TLS_REQUIRED: u32 = (1 << 31) + 5;
    pub(crate) const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    pub(crate) const ERR_EXTENDED: u32 = (1 << 31) + 10;
}

/// Pieces of information about an export.
pub(super) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: commands that an export supports.
pub(super) mod ability {
    pub(crate) const HAS_FLAGS: u16 = 1;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const FLUSH: u16 = 1 << 2;
    pub(crate) const FUA: u16 = 1 << 3;
    pub(crate) const TRIM: u16 = 1 << 5;
    pub(crate) const WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const DONT_FRAGMENT: u16 = 1 << 7;
    pub(crate) const MULTI_CONN: u16 = 1 << 8;
    pub(crate) const CACHE: u16 = 1 << 10;
    pub(crate) const FAST_ZERO: u16 = 1 << 11;
}

/// Flags of a request.
pub(super) mod flag {
    pub(crate) const FUA: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DONT_FRAGMENT: u16 = 1 << 2;
    pub(crate) const REQUEST_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
    pub(crate) const PAYLOAD: u16 = 1 << 5;
}

/// Kinds of chunks, and the flag of the last one.
pub(super) mod chunk {
    pub(crate) const DONE: u16 = 1;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const DATA: u16 = 1;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const BLOCK_STATUS_EXTENDED: u16 = 6;
    pub(crate) const ERROR: u16 = (1 << 15) + 1;
    pub(crate) const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// The one metadata context that can be agreed on.
pub(super) mod allocation {
    pub(crate) const NAME: &str = "base:allocation";
    pub(crate) const ID: u32 = 1;
    /// Nothing is stored, and reads give zeroes.
    pub(crate) const HOLE_ZERO: u8 = 3;
}

/// Errors of requests, as numbers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Errno {
    /// The export is read-only.
    NotPermitted = 1,
    /// The medium failed.
    Io = 5,
    /// The request makes no sense, or is not allowed here.
    Invalid = 22,
    /// No space, or a write beyond the end.
    NoSpace = 28,
    /// Not to be had fast.
    NotSupported = 95,
    /// The server is stopping.
    Shutdown = 108,
}

/// A big-endian number at `at`, which must lie within `bytes`.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array_at(bytes, at))
}

/// A big-endian number at `at`, which must lie within `bytes`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, at))
}

/// A big-endian number at `at`, which must lie within `bytes`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array_at(bytes, at))
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice is as long as the array")
}
