//! What is typed to look after drives that store.

use std::path::PathBuf;

use clap::Args;

/// `floatgate check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Folder of the drive, which nobody has open
    pub(crate) vault: PathBuf,
    /// Writes again what is not as it was written, from what is whole
    #[arg(long)]
    pub(crate) repair: bool,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `floatgate scrub`.
#[derive(Debug, Args)]
pub(crate) struct Scrub {
    /// Folder of the drive, which a server has open
    pub(crate) vault: PathBuf,
    /// Does not wait for its end; `floatgate status` tells how far it is
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// `floatgate fail-die`.
#[derive(Debug, Args)]
pub(crate) struct FailDie {
    /// Folder of the drive, whether it is served or closed
    pub(crate) vault: PathBuf,
    /// Index of the die, from 0, as it was named when the drive was created
    pub(crate) die: usize,
}

/// `floatgate replace-die`.
#[derive(Debug, Args)]
pub(crate) struct ReplaceDie {
    /// Folder of the drive, whether it is served or closed
    pub(crate) vault: PathBuf,
    /// Index of the die, which has failed or is missing
    pub(crate) die: usize,
    /// The new die: a file, which is made, or a block device, whose contents are lost
    #[arg(long, value_name = "PATH")]
    pub(crate) with: PathBuf,
    /// Does not wait for its end, where the drive is served
    #[arg(long)]
    pub(crate) no_wait: bool,
}
