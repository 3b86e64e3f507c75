//! A drive in virtual time.
//!
//! A [`Drive`] is a value that neither reads the clock nor touches a disk. Whoever owns it submits
//! requests at times of their choosing and asks for completions up to a time.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod catalogue;
mod drive;
mod spec;

pub use drive::{Drive, Setup};
pub use spec::{DriveSpec, Fact, SpecError};

/// Version of the models: rises whenever a simulated number moves.
pub const MODEL_VERSION: u32 = 1;
