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
//! The command line says what to serve and where; everything that goes on afterwards is here.

pub mod activation;
pub mod drive_service;
pub mod log;
pub mod monitor;
pub mod recording;
mod temperature;
pub mod web;

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
