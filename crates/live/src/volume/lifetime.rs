//! Lifetime counters of a drive.
//!
//! The media know how often a drive was opened and erased; what clients asked for is counted by the
//! server, and kept beside the drive: in a file that is replaced as a whole, each minute and when
//! the server ends. A crash loses the counts of a minute, and nothing else.

use std::path::Path;
use std::{fs, io};

use status::Life;

use crate::volume::folder::replace_file;

const NAME: &str = "lifetime.json";

/// Loads the counters from a drive's folder; all zero if there are none, or they are damaged.
pub fn load_life(volume: &Path) -> Life {
    let text = fs::read_to_string(volume.join(NAME)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Keeps the counters in the drive's folder: the whole of them, or what was there stays.
///
/// # Errors
/// What the system answered, such as that the disk is full.
pub fn keep_life(life: &Life, volume: &Path) -> io::Result<()> {
    replace_file(&volume.join(NAME), &serde_json::to_vec(life)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_what_was_kept_and_begins_anew_where_that_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load_life(folder.path()), Life::default());
        let life = Life { power_on_s: 7, host_read_bytes: 1 << 40, ..Life::default() };
        keep_life(&life, folder.path()).unwrap();
        assert_eq!(load_life(folder.path()), life);
        fs::write(folder.path().join(NAME), "{").unwrap();
        assert_eq!(load_life(folder.path()), Life::default());
    }

    #[test]
    fn a_folder_that_takes_no_file_leaves_what_was_kept() {
        let folder = tempfile::tempdir().unwrap();
        let life = Life { host_write_commands: 3, ..Life::default() };
        keep_life(&life, folder.path()).unwrap();
        fs::create_dir(folder.path().join("lifetime.json.new")).unwrap();
        keep_life(&Life::default(), folder.path()).unwrap_err();
        assert_eq!(load_life(folder.path()), life);
    }
}
