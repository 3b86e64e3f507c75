//! Flash translation layer: a state machine without clock and without I/O.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod counters;

pub use counters::Counters;
