//! Options for the key of an encrypted volume.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use live::{
    Drive, OpenError, Opening as OpenedAs, UnlockingKey, is_readable_by_others, key_of_command,
    key_of_file,
};

use crate::failure::Opening;
use crate::output;

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
        key_of(self.key_file.as_deref(), self.key_command.as_deref())
            .context("unlocking the volume")
    }

    /// Opens the volume of a folder with this key.
    ///
    /// # Errors
    /// Fails without its key, and if it cannot be opened.
    pub(crate) fn open(&self, volume: &Path) -> Result<Drive> {
        let opening = OpenedAs { key: self.key()?, ..OpenedAs::default() };
        let drive = Drive::open_as(volume, opening).with_context(|| Opening::of(volume))?;
        if drive.is_key_read_as_before() {
            output::talk(&format!("warning: {}", live::KEY_READ_AS_BEFORE));
        }
        Ok(drive)
    }
}

/// The key in a file, or the one that a command prints; none where neither was named. Warns of a
/// file that others may read.
///
/// # Errors
/// Fails if it cannot be had.
pub(crate) fn key_of(
    file: Option<&Path>,
    command: Option<&str>,
) -> Result<Option<UnlockingKey>, OpenError> {
    if let Some(path) = file.filter(|path| is_readable_by_others(path)) {
        let shown = path.display();
        output::talk(&format!(
            "warning: the key file {shown} may be read by its group or by others; `chmod 600 \
             {shown}` keeps them out"
        ));
    }
    let key = file.map(key_of_file).or_else(|| command.map(key_of_command));
    key.transpose()
}
