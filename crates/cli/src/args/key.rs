//! Options for the key of an encrypted volume.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use live::{Drive, Opening as OpenedAs, UnlockingKey, key_of_command, key_of_file};

use crate::failure::Opening;

/// Origin of the key of an encrypted volume.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Encryption")]
#[group(id = "key")]
pub(crate) struct KeyArgs {
    /// File with the passphrase of an encrypted volume, or with a key of 32 bytes
    #[arg(long, value_name = "FILE", conflicts_with = "key_command")]
    key_file: Option<PathBuf>,
    /// Command that prints the passphrase or the key of an encrypted volume
    #[arg(long, value_name = "COMMAND")]
    key_command: Option<String>,
}

impl KeyArgs {
    /// Returns the key; none where none was named.
    ///
    /// # Errors
    /// Fails if it cannot be had.
    pub(crate) fn key(&self) -> Result<Option<UnlockingKey>> {
        let file = self.key_file.as_deref().map(key_of_file);
        let key = file.or_else(|| self.key_command.as_deref().map(key_of_command));
        key.transpose().context("unlocking the volume")
    }

    /// Opens the volume of a folder with this key.
    ///
    /// # Errors
    /// Fails without its key, and if it cannot be opened.
    pub(crate) fn open(&self, volume: &Path) -> Result<Drive> {
        let opening = OpenedAs { key: self.key()?, ..OpenedAs::default() };
        Drive::open_as(volume, opening).with_context(|| Opening::of(volume))
    }
}
