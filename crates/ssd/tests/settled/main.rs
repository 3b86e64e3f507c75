//! Drives under load until they have settled.

mod climate;
mod closed_loop;
mod die_failure;
mod laws;
mod mechanisms;
mod state;
mod time_lapse;
