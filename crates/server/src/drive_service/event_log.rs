//! Event log of a drive: the last events in memory, and more of them in the drive's folder.
//!
//! The file has a line of JSON for each event. When it has grown large it becomes the old one, so
//! that there are never more than two. Events are told as well as that goes: a disk that is full
//! costs the lines, and nothing else; one that hangs costs the thread that writes, and no other.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use status::EventRecord;

const NAME: &str = "events.jsonl";
const OLD_NAME: &str = "events.old.jsonl";
/// Events that are told.
const TOLD_MAX: usize = 50;
/// Bytes after which a new file is begun.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Events that wait to be written while another thread writes; the disk may hang.
const WAITING_MAX: usize = 1000;

/// Adds an event to those of a folder's drive that no process serves.
pub fn note_event(volume: &Path, what: String) {
    EventLog::open(volume).note(what);
}

/// The events of one drive.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    /// Folder of the drive; none if events are lost with the server.
    folder: Option<PathBuf>,
    events: Mutex<Events>,
}

/// Events in memory.
#[derive(Debug, Default)]
struct Events {
    told: VecDeque<EventRecord>,
    /// Events that are not in the file yet, the oldest first.
    waiting: VecDeque<EventRecord>,
    /// True if a thread writes what waits.
    is_being_written: bool,
}

/// Milliseconds since the beginning of 1970, by the clock that events have.
pub(super) fn now_unix_ms() -> u64 {
    let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

impl EventLog {
    /// The events of a folder's drive, with those that earlier servers kept.
    pub(super) fn open(volume: &Path) -> Self {
        let text = fs::read_to_string(volume.join(NAME)).unwrap_or_default();
        // A line that a crash tore is no event.
        let events: Vec<EventRecord> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let told = events.into_iter().rev().take(TOLD_MAX).rev().collect();
        let events = Mutex::new(Events { told, ..Events::default() });
        Self { folder: Some(volume.to_owned()), events }
    }

    /// Records an event without a kind.
    pub(super) fn note(&self, what: String) {
        self.note_as("", what);
    }

    /// Records an event of a kind, and writes it unless another thread is writing, which then does.
    pub(super) fn note_as(&self, kind: &str, what: String) {
        let at_unix_ms = now_unix_ms();
        let kind = kind.to_owned();
        if self.events().take(EventRecord { at_unix_ms, what, kind }) {
            // A disk that hangs holds up this thread, and none that asks for the events.
            while let Some(event) = self.next_waiting() {
                // It is told all the same.
                let _ = self.keep(&event);
            }
        }
    }

    /// The last events, the latest at the end.
    pub(super) fn told(&self) -> Vec<EventRecord> {
        self.events().told.iter().cloned().collect()
    }

    /// Takes the next event to write; none ends the turn of the thread that writes.
    fn next_waiting(&self) -> Option<EventRecord> {
        let mut events = self.events();
        let event = events.waiting.pop_front();
        events.is_being_written = event.is_some();
        event
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, event: &EventRecord) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(NAME);
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut file = File::options().append(true).create(true).open(&path)?;
        if file.metadata()?.len() > FILE_BYTES_MAX {
            fs::rename(&path, folder.join(OLD_NAME))?;
            file = File::options().append(true).create(true).open(&path)?;
        }
        file.write_all(&line)
    }
}

impl Events {
    /// Adds an event. Returns true if the caller has to write the events that wait.
    fn take(&mut self, event: EventRecord) -> bool {
        if self.told.len() == TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(event.clone());
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(event);
        !std::mem::replace(&mut self.is_being_written, true)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::*;

    fn told(event_log: &EventLog) -> Vec<String> {
        event_log.told().into_iter().map(|event| event.what).collect()
    }

    #[test]
    fn the_last_events_are_told_by_the_next_server_too() {
        let folder = tempfile::tempdir().unwrap();
        let event_log = EventLog::open(folder.path());
        for number in 0..60 {
            event_log.note(format!("event {number}"));
        }
        assert_eq!(told(&event_log).len(), TOLD_MAX);
        let again = EventLog::open(folder.path());
        assert_eq!(told(&again), told(&event_log));
        assert_eq!(told(&again).last().unwrap(), "event 59");
    }

    #[test]
    #[cfg(unix)]
    fn a_disk_that_hangs_keeps_no_client_from_the_events() {
        let folder = tempfile::tempdir().unwrap();
        // Opening a pipe to write waits until a process reads it.
        let pipe = folder.path().join(NAME);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let event_log =
            EventLog { folder: Some(folder.path().to_owned()), events: Mutex::default() };
        // The reader stays until both are written.
        let reader = thread::scope(|scope| {
            scope.spawn(|| event_log.note("first".to_owned()));
            while told(&event_log).is_empty() {
                thread::yield_now();
            }
            event_log.note("second".to_owned());
            assert_eq!(told(&event_log), ["first", "second"]);
            File::open(&pipe).unwrap()
        });
        let written = io::read_to_string(reader).unwrap();
        assert_eq!(written.lines().count(), 2, "{written}");
        assert!(event_log.events().waiting.is_empty());
    }

    #[test]
    fn a_folder_that_takes_nothing_costs_no_event() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(NAME)).unwrap();
        let event_log = EventLog::open(folder.path());
        event_log.note("something".to_owned());
        assert_eq!(told(&event_log), ["something"]);
    }

    #[test]
    fn a_file_that_has_grown_large_makes_room_for_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), vec![b'\n'; 2 << 20]).unwrap();
        EventLog::open(folder.path()).note("something".to_owned());
        let size = fs::metadata(folder.path().join(NAME)).unwrap().len();
        assert!(size < 100, "{size} bytes");
        assert!(folder.path().join(OLD_NAME).exists());
    }
}
