//! The vocabulary of block I/O, shared by every other crate.
//!
//! Units are types here ([`Nanos`], [`Bytes`], [`Lba`]) and suffixes at every border.
//! Nothing in this crate opens a file, reads a clock or draws from the machine's entropy.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod bytes;
mod nanos;
mod nearest;
mod pacer;
mod request;
mod rng;
pub mod text;

pub use bytes::{Bytes, Lba, SECTOR_BYTES};
pub use nanos::Nanos;
pub use nearest::nearest;
pub use pacer::{ClimateReading, Pacer};
pub use request::{Completion, Op, Request, Status};
pub use rng::Rng;
