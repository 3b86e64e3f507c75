//! Terms that client and server agree on, and limits that both keep.

use std::sync::Arc;

use blockio::text::shown;

use crate::Export;

/// Preferred alignment of requests, in bytes; clients are told so.
pub const PREFERRED_BYTES: u32 = 4096;

/// Format of headers that client and server agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Replies that are a number and data.
    Simple,
    /// Replies in chunks with kinds and messages.
    Structured,
    /// Structured replies, with lengths of 64 bits.
    Extended,
}

/// Terms that a client and the server agreed on in the handshake.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Export that the client uses.
    pub export: Arc<Export>,
    /// Format of requests and replies.
    pub dialect: Dialect,
    /// True if the client may ask which ranges are stored.
    pub reports_allocation: bool,
}

/// Protocol violation for which a client is dropped: nothing that it sends afterwards can be
/// understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The client asks for what no version of the handshake knows.
    #[error("handshake flags {0:#x} are unknown")]
    HandshakeFlags(u32),
    /// An option does not begin as one.
    #[error("invalid option magic {0:#x}")]
    OptionMagic(u64),
    /// An option longer than any that makes sense.
    #[error("option {option} has {length} bytes, the limit is {limit}")]
    LongOption {
        /// Number of the option.
        option: u32,
        /// Bytes of its data.
        length: u32,
        /// Most that are taken.
        limit: u32,
    },
    /// More options than any client needs.
    #[error("more than {0} options")]
    ManyOptions(u32),
    /// Something before encryption, by the option that cannot be refused.
    #[error("requested an export before TLS, which is required")]
    Unencrypted,
    /// An export that is not served, by the option that cannot be refused.
    #[error("no export is named `{}`", shown(.0))]
    UnknownExport(String),
    /// A request does not begin as one.
    #[error("invalid request magic {found:#x}, expected {expected:#x}")]
    RequestMagic {
        /// First four bytes of the request.
        found: u32,
        /// Magic of the agreed headers.
        expected: u32,
    },
}
