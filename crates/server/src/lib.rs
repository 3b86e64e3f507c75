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

/// The chain of an error's causes, outermost first, without repetitions: an error may end with the
/// text of its source, which is a link of the chain by itself.
pub fn chain_text(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if !parts.last().is_some_and(|outer| outer.ends_with(&cause)) {
            parts.push(cause);
        }
    }
    parts.join(": ")
}
