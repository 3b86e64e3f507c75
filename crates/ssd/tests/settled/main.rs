//! Drives under load until they have settled.

mod closed_loop;
mod laws;
mod state;
mod time_lapse;
