//! The log of a drive: what was changed, and what brings the drive back from it.
//!
//! ```text
//!  checkpoint ──► journal: batches since then ──► replay ──► recovery: a drive
//! ```

pub(crate) mod checkpoint;
pub(crate) mod journal;
pub(crate) mod recovery;
pub(crate) mod replay;
