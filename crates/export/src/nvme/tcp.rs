//! NVMe/TCP: PDUs before the controller core ([nvme-tcp-2021]).
//!
//! ```text
//!   socket ──► Session: PDU, capsule, command ──► core ──► Capsules: completion, PDU ──► socket
//! ```
//!
//! Where hosts have keys, TLS lies between the socket and the session, which then knows whose key
//! it was.

mod capsules;
mod keys;
mod pdu;
mod session;
mod sgl;
mod transfer;

pub(crate) use self::keys::AuthenticatedHost;
pub use self::keys::{TlsKeys, TlsKeysError};
pub use self::pdu::Violation;
pub(super) use self::pdu::{ADMIN_CAPSULE_DATA_BYTES, IO_CAPSULE_DATA_BYTES};
pub use self::session::{Queue, Session};
