//! Front ends: devices offered to clients under a name.
//!
//! ```text
//!   clients ──► front end: NBD, NVMe/TCP, FUSE, vhost-user, vfio-user, ublk ──► Device
//!                     └──► Pace: the model whose latencies replies keep to
//! ```
//!
//! An [`Export`] is a [`Device`](device::Device) with a name; [`Exports`] is what one server
//! offers, to clients who encrypt by [`Tls`] where that is wanted; an [`Address`] is where it
//! listens, a [`Listener`] the socket there. [`nbd`] and [`nvme`] are protocols, spoken by a
//! [`Server`] that has a thread for each connection; [`fuse`] is a folder with a file for each
//! export.

#[cfg(test)]
extern crate self as export;

mod address;
mod batch_parts;
mod channel;
mod connection;
mod conversation;
mod descriptor_socket;
mod exports;
pub mod fuse;
mod guest_memory;
mod limits;
mod little_endian;
pub mod nbd;
pub mod nvme;
mod pace;
mod paced;
mod polls;
mod recorder;
mod replies;
mod seats;
mod server;
mod shared_mapping;
mod socket;
mod tls;
mod ublk;
mod vfio_user;
mod vhost_user;
mod vm_listener;

pub use self::address::{Address, AddressError};
pub use self::conversation::ReceiveProgress;
pub use self::exports::{Export, Exports, ExportsError, NAME_BYTES_MAX};
pub use self::limits::{Limits, LimitsError, REQUEST_BYTES_MAX};
pub use self::pace::{Holder, Lane, Lateness, Pace, PacedCommand, Peak, Peaks};
pub use self::recorder::{RecordedCommand, Recorder};
pub use self::replies::Replies;
pub use self::server::{Event, Observer, Protocol, Server};
pub use self::socket::{BindError, Listener};
pub use self::tls::{Tls, TlsError, TlsMode, TlsStream};
pub use self::ublk::{Ublk, UblkDriver, UblkError, UblkSettings};
pub use self::vfio_user::VfioUser;
pub use self::vhost_user::VhostUser;
