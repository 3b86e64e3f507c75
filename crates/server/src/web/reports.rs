//! The runs of a folder, and the reviews beside them.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lab::runs::{RunMonitor, Runs, RunsSnapshot};
use percent_encoding::percent_decode_str;

/// Runs that are shown.
#[derive(Debug)]
pub(super) struct Reports(Mutex<RunMonitor>);

impl Reports {
    /// Monitors the runs of a folder, which need not exist yet.
    pub(super) fn new(folder: &Path) -> Self {
        Self(Mutex::new(RunMonitor::new(Runs::new(folder))))
    }

    /// Returns the state of all runs and the list of reviews.
    pub(super) fn look(&self) -> RunsSnapshot {
        self.run_monitor().look()
    }

    /// The text of a page by its name as an address has it. Only what was listed is opened, so that
    /// no name leads elsewhere.
    pub(super) fn review(&self, address: &str) -> Option<String> {
        let name = percent_decode_str(address).decode_utf8().ok()?;
        let mut run_monitor = self.run_monitor();
        let page = run_monitor.pages().into_iter().find(|page| page.name == name)?;
        run_monitor.page(&page).ok()
    }

    fn run_monitor(&self) -> MutexGuard<'_, RunMonitor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_pages_of_the_folder_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        fs::create_dir(&runs).unwrap();
        fs::write(folder.path().join("secret.html"), "secret").unwrap();
        fs::write(runs.join("notes.txt"), "notes").unwrap();
        fs::write(runs.join("a bé.html"), "review").unwrap();
        std::os::unix::fs::symlink("../secret.html", runs.join("link.html")).unwrap();
        let reports = Reports::new(&runs);
        assert_eq!(reports.review("a%20b%C3%A9.html").as_deref(), Some("review"));
        for elsewhere in ["../secret.html", "%2e%2e%2fsecret.html", "link.html", "notes.txt", ""] {
            assert_eq!(reports.review(elsewhere), None, "{elsewhere}");
        }
        for broken in ["%", "%2", "%zz", "%ff", "a%2é"] {
            assert_eq!(reports.review(broken), None, "{broken}");
        }
    }
}
