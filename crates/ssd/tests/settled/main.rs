//! Drives under load until they have settled.

mod climate;
mod closed_loop;
mod laws;
mod mechanisms;
mod state;
mod time_lapse;
