//! Arguments of `floatgate volume export`.

use std::path::PathBuf;

use blockio::Bytes;
use clap::{Args, Subcommand};

use super::KeyArgs;
use super::format::volume_size;

/// `floatgate volume export`.
#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Create an export; the first one contains the data already stored at its location
    Add(AddExport),
    /// Change the size of an export in place
    Resize(ResizeExport),
    /// Remove an export and its data
    Remove(RemoveExport),
}

/// An export of a volume.
#[derive(Debug, Args)]
pub(crate) struct NamedExport {
    /// Folder of a volume that is not being served
    pub(crate) volume: PathBuf,
    /// Name of the export
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// `floatgate volume export add`.
#[derive(Debug, Args)]
pub(crate) struct AddExport {
    #[command(flatten)]
    pub(crate) meant: NamedExport,
    /// Size that clients see, such as 1g
    #[arg(long, value_parser = volume_size)]
    pub(crate) size: Bytes,
}

/// `floatgate volume export resize`.
#[derive(Debug, Args)]
pub(crate) struct ResizeExport {
    #[command(flatten)]
    pub(crate) meant: NamedExport,
    /// New size that clients see, such as 2g
    #[arg(long, value_parser = volume_size)]
    pub(crate) size: Bytes,
    /// Volume ID from `floatgate volume status`: allow data beyond the new end to be lost
    #[arg(long, value_name = "ID")]
    pub(crate) destroy: Option<String>,
}

/// `floatgate volume export remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveExport {
    #[command(flatten)]
    pub(crate) meant: NamedExport,
    /// Volume ID from `floatgate volume status`: allow the export's data to be lost
    #[arg(long, value_name = "ID")]
    pub(crate) destroy: Option<String>,
}
