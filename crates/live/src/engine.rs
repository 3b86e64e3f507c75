//! The engine: the flash translation layer over dies, with journal, checkpoints and recovery.

pub(crate) mod bad_places;
pub(crate) mod checkpoint;
pub(crate) mod completed_rows;
pub(crate) mod core;
pub(crate) mod creation;
pub(crate) mod dies;
pub(crate) mod drive;
pub(crate) mod erasure;
pub(crate) mod gathering;
pub(crate) mod header_copies;
pub(crate) mod headroom;
pub(crate) mod journal;
pub(crate) mod lost;
pub(crate) mod open_row;
pub(crate) mod program;
pub(crate) mod queue;
pub(crate) mod recovery;
pub(crate) mod replay;
pub(crate) mod signature;
pub(crate) mod store;
pub(crate) mod victim_unit;
pub(crate) mod witness;
pub(crate) mod write_buffer;
