//! Real drives: what is measured, what is known of it, and fio, which loads it.
//!
//! ```text
//! fio ──► sites ──► environment ──► target ──► guard, identity ──► system, nbd, hosts
//! ```

pub mod access;
pub mod address;
pub mod doctor;
pub(crate) mod environment;
pub mod fio;
pub mod guard;
pub mod hosts;
pub(crate) mod identity;
mod interference;
mod lateness;
pub(crate) mod nbd;
pub(crate) mod purge_method;
pub mod recorded;
mod sites;
pub(crate) mod system;
mod target;
mod thermometer;
mod tools;
pub mod tuning;
