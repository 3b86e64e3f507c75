//! The run of one load, stored so that other commands take it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use lab::plan::Plan;
use lab::runner::Outcome;
use lab::runs::{Folder, Runs};
use lab::wanted::TargetSetup;

use crate::setup::MadeFolder;

/// A run that is under way, with its folder.
#[derive(Debug)]
pub(super) struct StoredRun {
    folder: Folder,
    made: MadeFolder,
}

impl StoredRun {
    /// Makes the folder of a run below `out`.
    ///
    /// # Errors
    /// Fails if it cannot be made.
    pub(super) fn begin(out: &Path, plan: &Plan, wanted: &TargetSetup) -> Result<Self> {
        let made = MadeFolder::look(out);
        let folder = Runs::new(out).create(plan.clone(), wanted.clone());
        Ok(Self { folder: folder.inspect_err(|_| made.remove_empty())?, made })
    }

    /// Folder of the run.
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Removes the folder, unless something was measured.
    pub(super) fn give_up(&self) {
        self.folder.give_up();
        self.made.remove_empty();
    }

    /// Writes the result. Returns the path of the folder.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub(super) fn finish(self, outcome: Outcome) -> Result<PathBuf> {
        self.folder.finish(outcome)?;
        Ok(self.folder.path().to_owned())
    }
}
