//! The NBD protocol: a server of fixed newstyle, with structured replies and extended headers.
//!
//! ```text
//!             Negotiation: options of the client ──► Terms
//!   socket ──►                                              ──► Replies ──► socket
//!             Session:     requests of the client ──► Device
//! ```
//!
//! [`Negotiation`] and [`Session`] are plain values: received bytes go in, commands to the device
//! and bytes for the client come out. They own no socket, no thread and no clock, so that a fuzzer
//! can drive them. A thread for each connection owns the socket and calls them: one `recv` brings
//! many requests, they are carried out one after the other in that thread, and one `send` takes
//! all replies away. [`Server`] owns the threads.
//!
//! **Invariants**
//! - Nothing that a client sends makes the server panic.
//! - All clients together take no more memory for requests and replies than [`Limits`] say, and
//!   those that ask for little, or for nothing yet, shut nobody out.
//! - A reply to a flush, or to a command with force unit access, is sent only after the device's
//!   flush has returned.
//! - Nothing that was agreed on, or received, before encryption counts after it.
//!
//! The protocol is [nbd-protocol-2023].

mod channel;
#[cfg(test)]
mod client;
mod connection;
mod limits;
mod negotiation;
mod paced;
mod replies;
mod request;
mod server;
mod session;
mod wire;

use std::sync::Arc;

pub use self::limits::{Limits, LimitsError};
pub use self::negotiation::Negotiation;
pub use self::replies::Replies;
pub use self::server::{Event, Observer, Server};
pub use self::session::Session;
use super::Export;

/// Most bytes that one request reads or writes; clients are told so.
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;
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

/// Progress made with received bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes that are done with.
    pub used_bytes: usize,
    /// Bytes that must be there, from the first that is not done with, before anything more can
    /// be; zero when replies have to be sent first.
    pub wanted_bytes: usize,
    /// Room that replies must have before the next request can be carried out; zero when they have
    /// it.
    pub room_bytes: usize,
}

impl Taken {
    /// True if something has to come, or to go, before more can be taken.
    const fn is_blocked(&self) -> bool {
        self.wanted_bytes > 0 || self.room_bytes > 0
    }
}

/// Protocol violation for which a client is dropped: nothing that it sends afterwards can be
/// understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The client asks for what no version of the handshake knows.
    #[error("handshake flags {0:#x} are unknown")]
    HandshakeFlags(u32),
    /// An option does not begin as one.
    #[error("an option begins with {0:#x}")]
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
    #[error("asked for an export before encrypting, which is required")]
    Unencrypted,
    /// An export that is not served, by the option that cannot be refused.
    #[error("no export is named `{0}`")]
    UnknownExport(String),
    /// A request does not begin as one.
    #[error("a request begins with {found:#x}, not with {expected:#x}")]
    RequestMagic {
        /// First four bytes of the request.
        found: u32,
        /// Magic of the agreed headers.
        expected: u32,
    },
}
