//! Drives under load until they have settled.

mod closed_loop;
mod laws;
mod time_lapse;
