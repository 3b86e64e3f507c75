//! A row that is being filled.

use crate::format::die_set::DieSet;
use crate::format::unit::{Origin, UnitBuffer};

/// A row that is being filled.
#[derive(Debug)]
pub(crate) struct OpenRow {
    pub(crate) row: u32,
    pub(crate) seq: u64,
    pub(crate) origin: Origin,
    /// Dies that it leaves out.
    pub(crate) out: DieSet,
    /// By position; those that were begun.
    pub(crate) units: Vec<UnitBuffer>,
    /// Exclusive or of the units that are full.
    pub(crate) parity: Vec<u8>,
}
