//! TCG Opal 2.02 as values: a drive's side of security protocols 00h to 02h.
//!
//! ```text
//!   Security Send ──► frame ──► tokens ──► session manager ──► session ──► method
//!                                               │                            │
//!   Security Receive ◄── answer ◄───────────────┴── state, by its backing ◄──┘
//! ```
//!
//! Sections are those of the TCG Storage Architecture Core Specification 2.01 ("TCG Core 2.01") and
//! of the TCG Storage Security Subsystem Class: Opal 2.02 ("Opal SSC 2.02").
//!
//! **Invariants**
//! - Nothing here reads a clock or a random generator, or stores anything: see [`Backing`].
//! - A changed state is stored before a method is answered with success, and in force only then.
//! - Any bytes get an answer or a status.

mod discovery;
pub mod host;
mod packet;
mod state;
mod token;
mod tper;
mod uid;

pub use self::discovery::{COM_ID, Geometry};
pub use self::state::{
    Credential, LockingSp, MbrControl, OpalState, PIN_BYTES_MAX, PinCost, PinDigest, Range,
    TRY_LIMIT, Term,
};
pub use self::token::Value;
pub use self::tper::{Backing, Channel, Erasure, Failure, Place, SecurityError, Tper, not_yet};
pub use self::uid::{ADMINS, Ace, ByteTable, ObjectId, RANGES, USERS};
