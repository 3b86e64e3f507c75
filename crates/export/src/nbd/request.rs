//! Requests of a client, taken out of the bytes that it sent.

use super::terms::{Dialect, Violation};
use super::wire::{self, flag, u16_at, u32_at, u64_at};

/// Bytes of a plain header.
const HEADER_BYTES: usize = 28;
/// Bytes of an extended header, whose length has 64 bits.
const EXTENDED_HEADER_BYTES: usize = 32;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    Cache,
    WriteZeroes,
    BlockStatus,
    /// None of these.
    Unknown(u16),
}

/// One request, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) kind: Kind,
    /// Bits of [`flag`].
    pub(super) flags: u16,
    /// Identifier that the client gave the request; its reply carries it.
    pub(super) cookie: u64,
    /// First byte of the range.
    pub(super) offset: u64,
    /// Bytes of the range.
    pub(super) length: u64,
    /// Bytes that follow the header.
    pub(super) payload_bytes: u64,
}

impl Kind {
    fn of(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            other => Self::Unknown(other),
        }
    }
}

/// Bytes of a header in this dialect.
pub(super) const fn header_bytes(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Simple | Dialect::Structured => HEADER_BYTES,
        Dialect::Extended => EXTENDED_HEADER_BYTES,
    }
}

/// The request whose header is at the beginning of `bytes`, if all of it is there.
///
/// # Errors
/// Fails if no request begins here: nothing that follows can be understood either.
pub(super) fn parse(bytes: &[u8], dialect: Dialect) -> Result<Option<Request>, Violation> {
    if bytes.len() < header_bytes(dialect) {
        return Ok(None);
    }
    let is_extended = dialect == Dialect::Extended;
    let expected = if is_extended { wire::EXTENDED_REQUEST } else { wire::REQUEST };
    let found = u32_at(bytes, 0);
    if found != expected {
        return Err(Violation::RequestMagic { found, expected });
    }
    let kind = Kind::of(u16_at(bytes, 6));
    let flags = u16_at(bytes, 4);
    let length = if is_extended { u64_at(bytes, 24) } else { u64::from(u32_at(bytes, 24)) };
    // With extended headers a flag says so of other kinds, too. QEMU leaves it out of its writes.
    let has_payload = kind == Kind::Write || is_extended && flags & flag::PAYLOAD != 0;
    Ok(Some(Request {
        kind,
        flags,
        cookie: u64_at(bytes, 8),
        offset: u64_at(bytes, 16),
        length,
        payload_bytes: if has_payload { length } else { 0 },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u16, flags: u16) -> Vec<u8> {
        let mut bytes = wire::REQUEST.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend(7_u64.to_be_bytes());
        bytes.extend(4096_u64.to_be_bytes());
        bytes.extend(512_u32.to_be_bytes());
        bytes
    }

    #[test]
    fn a_header_is_read_once_it_is_whole() {
        let bytes = header(1, flag::FUA);
        assert_eq!(parse(&bytes[..27], Dialect::Structured), Ok(None));
        let request = Request {
            kind: Kind::Write,
            flags: flag::FUA,
            cookie: 7,
            offset: 4096,
            length: 512,
            payload_bytes: 512,
        };
        assert_eq!(parse(&bytes, Dialect::Structured), Ok(Some(request)));
    }

    #[test]
    fn only_a_write_has_a_payload_without_a_flag_that_says_so() {
        for kind in [0, 2, 3, 4, 5, 6, 7, 8, u16::MAX] {
            let request = parse(&header(kind, flag::PAYLOAD), Dialect::Simple).unwrap().unwrap();
            assert_eq!(request.payload_bytes, 0, "{kind}");
        }
    }

    #[test]
    fn what_is_no_request_is_a_violation() {
        let mut bytes = header(0, 0);
        bytes[0] ^= 1;
        assert!(parse(&bytes, Dialect::Simple).is_err());
        bytes.extend([0; 4]);
        assert!(parse(&header(0, 0), Dialect::Extended).unwrap().is_none(), "4 bytes are missing");
        assert!(parse(&bytes, Dialect::Extended).is_err());
    }
}
