//! A release that is being packed: its sources, folders, version and date.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use xtask::files::make_empty;
use xtask::program::said;
use xtask::{root, target};

/// A release that is being packed.
#[derive(Clone, Debug)]
pub(super) struct Release {
    /// Folder of the sources.
    pub(super) sources: PathBuf,
    /// Folder that cargo builds into.
    pub(super) target: PathBuf,
    /// Folder of the packages.
    pub(super) packages: PathBuf,
    /// Version of the workspace.
    pub(super) version: &'static str,
    /// The date of all packages, in seconds since 1970: that of the newest commit.
    pub(super) epoch: String,
}

impl Release {
    /// The release of these sources, whose packages go to `packages` in the target folder.
    pub(super) fn of_sources() -> Result<Self> {
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => said(Command::new("git").args(["log", "-1", "--format=%ct"]))
                .context("finding the date of the newest commit; or set SOURCE_DATE_EPOCH")?
                .trim()
                .to_owned(),
        };
        Ok(Self {
            sources: root().to_owned(),
            target: target(),
            packages: target().join("packages"),
            version: env!("CARGO_PKG_VERSION"),
            epoch,
        })
    }

    /// Path of the package with this name.
    pub(super) fn package(&self, name: &str) -> PathBuf {
        self.packages.join(name)
    }

    /// An empty folder for intermediate files, below the target folder.
    pub(super) fn empty_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target.join("packing").join(name);
        make_empty(&folder)?;
        Ok(folder)
    }
}
