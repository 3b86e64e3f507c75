//! Deterministic simulation: the whole drive over media that lose what a cut of the power may lose.
//!
//! One seed decides everything: the shape of the drive, what the host asks, when the power goes,
//! during recovery too, what survives of each sector that was not synced, and what a failing die
//! does, and how copies of the dies are damaged while the power is off. An oracle knows for each
//! sector which contents are allowed.

mod absence;
mod content;
mod damage;
mod disk;
mod exhaustive;
#[cfg(test)]
mod former_dies;
mod headers;
mod history;
pub mod hostile;
#[cfg(test)]
mod media_format;
#[cfg(test)]
pub(crate) mod operators;
mod run;

#[cfg(test)]
pub(crate) use absence::KeptProof;
pub use absence::{Absences, simulate_absences};
pub use damage::Outcome;
pub use disk::{DiskFault, Disks};
pub use exhaustive::{
    FlipResult, PACKED, PROTECTED, RestingState, SINGLE, ScriptStep, exhaust, exhaust_openings,
    flip_each,
};
#[cfg(test)]
pub(crate) use former_dies::{erase_each, reuse_die};
pub use headers::{HeadersLeft, exhaust_headers};
pub use run::{Failure, Tally, simulate, simulate_damage, simulate_deaths, simulate_encrypted};
