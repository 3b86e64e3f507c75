//! Lifetime counters.

use super::Status;
use serde::{Deserialize, Serialize};

/// Lifetime counters of a drive, over all times that it was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Life {
    /// Seconds that it was served.
    pub power_on_s: u64,
    /// Bytes that clients read.
    pub host_read_bytes: u64,
    /// Bytes that they wrote.
    pub host_written_bytes: u64,
    /// Reads of clients.
    pub host_read_commands: u64,
    /// Writes of clients.
    pub host_write_commands: u64,
    /// Bytes read from the dies.
    pub media_read_bytes: u64,
    /// Bytes written to the dies, for whatever cause.
    pub media_written_bytes: u64,
    /// Pages found lost.
    pub media_errors: u64,
}

impl Life {
    /// With what happened since the drive was opened.
    #[must_use]
    pub fn and(mut self, status: &Status) -> Self {
        let smart = &status.smart;
        self.media_read_bytes += smart.physical_media_units_read.unwrap_or_default();
        self.media_written_bytes += smart.physical_media_units_written.unwrap_or_default();
        self.media_errors += smart.media_errors.unwrap_or_default();
        // Those that a crash kept from being counted are known to the drive itself.
        self.media_errors = self.media_errors.max(status.pages_lost.unwrap_or_default());
        if let Some(server) = &status.server {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "seconds since the server began"
            )]
            let uptime_s = server.uptime_s as u64;
            self.power_on_s += uptime_s;
            self.host_read_bytes += server.traffic.reads.bytes;
            self.host_written_bytes += server.traffic.writes.bytes;
            self.host_read_commands += server.traffic.reads.commands;
            self.host_write_commands += server.traffic.writes.commands;
        }
        self
    }

    /// Written to the dies by written by clients; none before their first write.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.host_written_bytes;
        (written > 0).then(|| self.media_written_bytes as f64 / written as f64)
    }
}
