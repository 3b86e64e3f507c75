//! What happened to a drive, the last of it in memory and more of it in the drive's folder.
//!
//! The file has a line of JSON for each event. When it has grown large it becomes the old one, so
//! that there are never more than two. Events are told as well as that goes: a disk that is full
//! costs the lines, and nothing else.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use live::status::Happening;

const NAME: &str = "events.jsonl";
const OLD_NAME: &str = "events.old.jsonl";
/// Events that are told.
const TOLD_MAX: usize = 50;
/// Bytes after which a new file is begun.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The events of one drive.
#[derive(Debug, Default)]
pub(crate) struct Chronicle {
    folder: PathBuf,
    told: VecDeque<Happening>,
}

impl Chronicle {
    /// The events of a folder's drive, with those that earlier servers kept.
    pub(crate) fn open(vault: &Path) -> Self {
        let text = fs::read_to_string(vault.join(NAME)).unwrap_or_default();
        // A line that a crash tore is no event.
        let events: Vec<Happening> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let told = events.into_iter().rev().take(TOLD_MAX).rev().collect();
        Self { folder: vault.to_owned(), told }
    }

    /// Takes note of an event.
    pub(crate) fn note(&mut self, what: String) {
        let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_unix_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let event = Happening { at_unix_ms, what };
        // It is told all the same.
        let _ = self.keep(&event);
        if self.told.len() == TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(event);
    }

    /// The last events, the latest at the end.
    pub(crate) fn told(&self) -> Vec<Happening> {
        self.told.iter().cloned().collect()
    }

    fn keep(&self, event: &Happening) -> io::Result<()> {
        let path = self.folder.join(NAME);
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut file = File::options().append(true).create(true).open(&path)?;
        if file.metadata()?.len() > FILE_BYTES_MAX {
            fs::rename(&path, self.folder.join(OLD_NAME))?;
            file = File::options().append(true).create(true).open(&path)?;
        }
        file.write_all(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(chronicle: &Chronicle) -> Vec<String> {
        chronicle.told().into_iter().map(|event| event.what).collect()
    }

    #[test]
    fn the_last_events_are_told_by_the_next_server_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut chronicle = Chronicle::open(folder.path());
        for number in 0..60 {
            chronicle.note(format!("event {number}"));
        }
        assert_eq!(told(&chronicle).len(), TOLD_MAX);
        let again = Chronicle::open(folder.path());
        assert_eq!(told(&again), told(&chronicle));
        assert_eq!(told(&again).last().unwrap(), "event 59");
    }

    #[test]
    fn a_folder_that_takes_nothing_costs_no_event() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(NAME)).unwrap();
        let mut chronicle = Chronicle::open(folder.path());
        chronicle.note("something".to_owned());
        assert_eq!(told(&chronicle), ["something"]);
    }

    #[test]
    fn a_file_that_has_grown_large_makes_room_for_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), vec![b'\n'; 2 << 20]).unwrap();
        Chronicle::open(folder.path()).note("something".to_owned());
        let size = fs::metadata(folder.path().join(NAME)).unwrap().len();
        assert!(size < 100, "{size} bytes");
        assert!(folder.path().join(OLD_NAME).exists());
    }
}
