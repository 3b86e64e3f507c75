//! Arguments of `floatgate export`.

use std::path::PathBuf;

use blockio::Bytes;
use clap::{Args, Subcommand};

use crate::quantity;

/// `floatgate export`.
#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Gives clients a part of a drive under a name; the first one holds what is stored there
    Add(AddExport),
    /// Gives an export another size, where it is
    Resize(ResizeExport),
    /// Removes an export, and what is stored in it
    Remove(RemoveExport),
}

/// An export of a drive.
#[derive(Debug, Args)]
pub(crate) struct NamedExport {
    /// Folder of the drive, which nobody has open
    pub(crate) volume: PathBuf,
    /// Name that clients ask for
    pub(crate) name: String,
}

/// `floatgate export add`.
#[derive(Debug, Args)]
pub(crate) struct AddExport {
    #[command(flatten)]
    pub(crate) meant: NamedExport,
    /// Size that clients see, such as 1g
    #[arg(long, value_parser = quantity::size)]
    pub(crate) size: Bytes,
}

/// `floatgate export resize`.
#[derive(Debug, Args)]
pub(crate) struct ResizeExport {
    #[command(flatten)]
    pub(crate) meant: NamedExport,
    /// Size that clients see from then on, such as 2g
    #[arg(long, value_parser = quantity::size)]
    pub(crate) size: Bytes,
    /// Number of the drive, as `floatgate status` has it: what lies beyond the new end may be lost
    #[arg(long, value_name = "DRIVE")]
    pub(crate) destroy: Option<String>,
}

/// `floatgate export remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveExport {
    #[command(flatten)]
    pub(crate) meant: NamedExport,
    /// Number of the drive, as `floatgate status` has it: what the export stores may be lost
    #[arg(long, value_name = "DRIVE")]
    pub(crate) destroy: Option<String>,
}
