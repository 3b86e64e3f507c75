//! Lifetime counters of a drive.
//!
//! The media know how often a drive was opened and erased; what clients asked for is counted by
//! whoever serves them, and kept beside the drive: in a file that is replaced as a whole, each
//! minute and when the server ends. A crash loses the counts of a minute, and nothing else.

use std::path::Path;
use std::{fs, io};

use crate::Life;
use crate::status::Status;
use crate::volume::folder::replace_file;

const NAME: &str = "lifetime.json";

impl Life {
    /// Loads the counters from a drive's folder; all zero if there are none, or they are damaged.
    pub fn load(volume: &Path) -> Self {
        let text = fs::read_to_string(volume.join(NAME)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Keeps it in the drive's folder: the whole of it, or what was there stays.
    ///
    /// # Errors
    /// What the system answered, such as that the disk is full.
    pub fn keep(&self, volume: &Path) -> io::Result<()> {
        replace_file(&volume.join(NAME), &serde_json::to_vec(self)?)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_what_was_kept_and_begins_anew_where_that_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Life::load(folder.path()), Life::default());
        let life = Life { power_on_s: 7, host_read_bytes: 1 << 40, ..Life::default() };
        life.keep(folder.path()).unwrap();
        assert_eq!(Life::load(folder.path()), life);
        fs::write(folder.path().join(NAME), "{").unwrap();
        assert_eq!(Life::load(folder.path()), Life::default());
    }

    #[test]
    fn a_folder_that_takes_no_file_leaves_what_was_kept() {
        let folder = tempfile::tempdir().unwrap();
        let life = Life { host_write_commands: 3, ..Life::default() };
        life.keep(folder.path()).unwrap();
        fs::create_dir(folder.path().join("lifetime.json.new")).unwrap();
        Life::default().keep(folder.path()).unwrap_err();
        assert_eq!(Life::load(folder.path()), life);
    }
}
