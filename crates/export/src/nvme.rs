//! NVMe: a subsystem with a controller for each host, and namespaces that are exports.
//!
//! ```text
//!   transport (tcp: Session; pcie: registers) ──► command, its data
//!                                  ├─ admin queue: Controller ──► Identify, logs, features, events
//!                                  └─ I/O queue: IoQueue ──► Device of a namespace
//!   transport (tcp: Capsules) ◄── Answers: completion, data
//! ```
//!
//! The controller core takes submission queue entries with the data that came with them, and gives
//! completions and data to [`answers::Answers`]; it knows no PDU and no address. Those are of the
//! transports.
//!
//! [`Session`], and the controller behind it, are plain values: received bytes and the time go in,
//! commands to devices and bytes for the host come out. They own no socket, no thread and no clock.
//! A thread for each connection owns the socket and calls them, as with NBD.
//!
//! **Invariants**
//! - Nothing that a host sends makes the server panic.
//! - A queue takes no more memory than the server grants to each client.
//! - Only commands that Identify and the Commands Supported and Effects log announce are carried
//!   out; any other is completed with the status that the specification prescribes.
//! - The completion of a flush, or of a write that must be durable, is sent only after the
//!   device's flush has returned.
//!
//! `docs/internals/nvme.md` lists section by section which commands are answered and which are
//! refused. The protocol is [nvme-base-2021], [nvme-nvm-2021] and [nvme-tcp-2021].

mod admin;
mod answers;
mod authentication;
mod command;
mod context;
mod controller;
mod counters;
mod drive;
mod error_log;
mod event;
mod fabrics;
mod feature;
mod host;
mod identify;
mod io;
mod io_queue;
mod lock;
mod log;
mod management;
mod namespace;
mod pcie;
mod property;
mod repertoire;
mod reservation;
mod security;
mod status;
mod subsystem;
mod tcp;
mod transport;
mod wire;

pub use self::authentication::{Secrets, SecretsError};
#[cfg(test)]
pub(crate) use self::pcie::DOORBELLS_AT;
pub(crate) use self::pcie::PcieController;
pub(crate) use self::property::VECTORS;
pub use self::reservation::stored_reservations;
pub(crate) use self::subsystem::SecureChannel;
pub use self::subsystem::{ControllerFault, Subsystem, SubsystemError};
pub(crate) use self::tcp::AuthenticatedHost;
pub use self::tcp::{Queue, Session, TlsKeys, TlsKeysError, Violation};
pub(crate) use self::transport::VENDOR;
