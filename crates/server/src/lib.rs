//! The daemon around a live drive: what is known of it, its pages, metrics, log and alerts.
//!
//! ```text
//!   export ──► Device of the drive ──► DriveService ──┬─► Web: pages, metrics, orders by token
//!                                        each second  ├─► Log: a line an event, on stderr
//!                                                     ├─► event log in the drive's folder
//!                                                     └─► Monitor: a program or mail
//!          └──► Recorder: latencies for the DriveService; RecordingFile, what clients asked for
//! ```
//!
//! A [`config::Config`] says what to serve, how and to whom; [`run`] does it.
//!
//! ```text
//!   cli: options, file ──► Config ──► run ──► ServedDrive ──► front ends ──► clients
//! ```

pub mod activation;
mod checks;
pub mod cleanup;
pub mod config;
mod daemon;
pub mod drive_service;
pub mod failure;
mod fault_injection;
pub mod front_ends;
mod idle;
pub mod lateness;
pub mod log;
mod monitor;
pub mod mount;
pub mod pages;
pub mod recording;
mod served_drive;
pub mod signals;
mod temperature;
pub mod web;

pub use self::daemon::{Announcer, run};
pub use self::failure::chain_text;
