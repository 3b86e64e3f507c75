//! The engine: the flash translation layer over dies, with journal, checkpoints and recovery.

pub(crate) mod core;
pub(crate) mod dies;
pub(crate) mod drive;
pub(crate) mod log;
pub(crate) mod store;
