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
//! all replies away. [`Server`](crate::Server) owns the threads.
//!
//! **Invariants**
//! - Nothing that a client sends makes the server panic.
//! - All clients together take no more memory for requests and replies than
//!   [`Limits`](crate::Limits) say, and those that ask for little, or for nothing yet, shut no
//!   other client out.
//! - A reply to a flush, or to a command with force unit access, is sent only after the device's
//!   flush has returned.
//! - Nothing that was agreed on, or received, before encryption counts after it.
//!
//! The protocol is [nbd-protocol-2023].

#[cfg(test)]
pub(crate) mod client;
mod lateness;
mod negotiation;
mod request;
mod session;
mod terms;
mod wire;

pub use self::negotiation::Negotiation;
pub use self::session::Session;
pub use self::terms::{Dialect, PREFERRED_BYTES, Terms, Violation};
