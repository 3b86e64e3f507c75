//! Lifetime counters.

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
    /// Reads that parity answered.
    pub xor_recoveries: u64,
}

impl Life {
    /// Written to the dies by written by clients; none before their first write.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.host_written_bytes;
        (written > 0).then(|| self.media_written_bytes as f64 / written as f64)
    }
}
