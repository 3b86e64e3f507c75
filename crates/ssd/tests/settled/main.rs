//! Drives under load until they have settled.

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
mod tiers;
mod time_lapse;
