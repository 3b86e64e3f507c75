//! Real drives: what is known of them and of their machine, and fio, which loads them.
//!
//! ```text
//!   review ──► drivers ──► fio ──► sites ──► environment ──► target ──► guard ──► lab
//! ```

#[cfg(test)]
mod conformance;
pub mod doctor;
pub mod drivers;
mod environment;
pub mod fio;
pub mod guard;
mod interference;
mod lateness;
/// The machine made of files that the tests of `lab` have, too.
#[cfg(test)]
#[path = "../../lab/src/target/system/fixture.rs"]
pub mod machine_fixture;
pub mod recorded;
pub mod review;
mod sites;
mod target;
mod thermometer;
mod tools;
pub mod tuning;

// The fixture takes it from the module above its own, as in `lab`.
#[cfg(test)]
use lab::target::system::System;
