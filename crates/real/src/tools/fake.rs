//! Programs that say what a test wants, and note what they were asked.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::Tools;

/// A folder of such programs, deleted with it.
pub(crate) struct Fakes {
    folder: TempDir,
}

impl Fakes {
    /// Creates a folder without programs.
    pub(crate) fn none() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// Adds `program`, which runs the shell lines `body` after it noted its arguments.
    ///
    /// Another process writes it: a program that a thread of this one starts meanwhile would hold
    /// the file open for writing, and the kernel runs none that is.
    pub(crate) fn with(self, program: &str, body: &str) -> Self {
        let path = self.folder.path().join(program);
        let (draft, log) = (path.with_extension("draft"), self.folder.path().join("asked"));
        let text = format!("#!/bin/sh\necho {program} \"$@\" >> {}\n{body}\n", log.display());
        fs::write(&draft, text).unwrap();
        let installed = Command::new("install").args(["-m", "755"]).args([&draft, &path]).status();
        assert!(installed.unwrap().success(), "{}", path.display());
        self
    }

    /// Handle that runs them.
    pub(crate) fn tools(&self) -> Tools {
        Tools::in_folder(self.folder.path())
    }

    /// Calls so far, a line each.
    pub(crate) fn asked(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("asked")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}
