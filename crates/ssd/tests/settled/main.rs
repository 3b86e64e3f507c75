//! Drives under load until they have settled.

// The longest: tests run in the order of their names, and these would end alone.
mod against_full_scale;
mod climate;
mod closed_loop;
mod die_failure;
mod disk;
mod indirection_unit;
mod laws;
mod mechanisms;
mod read_retry;
mod slc_cache;
mod state;
