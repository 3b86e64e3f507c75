//! NVMe/TCP: PDUs before the controller core ([nvme-tcp-2021]).
//!
//! ```text
//!   socket ──► Session: PDU, capsule, command ──► core ──► Capsules: completion, PDU ──► socket
//! ```

mod capsules;
mod pdu;
mod session;
mod sgl;
mod transfer;

pub use self::pdu::Violation;
pub(super) use self::pdu::{ADMIN_CAPSULE_DATA_BYTES, IO_CAPSULE_DATA_BYTES};
pub use self::session::{Queue, Session};
