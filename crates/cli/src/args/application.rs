//! Arguments of the commands that record applications and replay them.

use std::ffi::OsString;
use std::path::PathBuf;

use blockio::Bytes;
use clap::Args;

use super::{DataArgs, ModelArgs, TimingArgs};
use crate::quantity;

/// `floatgate replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Recording of an application
    pub(crate) recording: PathBuf,
    /// Modelled drives: names in the catalogue or drive files
    #[arg(required = true)]
    pub(crate) drives: Vec<String>,
    /// Format of the drives [default: the first of each]
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `floatgate record`.
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// Folder of the drive, as `floatgate create` made it
    #[arg(required_unless_present = "memory", conflicts_with = "memory")]
    pub(crate) volume: Option<PathBuf>,
    /// A drive in memory of this size, which is empty at first and gone at the end
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// New file for the recording
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Mounts the file system of the drive here for the time
    #[arg(long, value_name = "DIR")]
    pub(crate) mount: Option<PathBuf>,
    /// Makes an ext4 file system first, without what is on the drive
    #[arg(long, requires = "mount")]
    pub(crate) mkfs: bool,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    /// Command to run, with `FLOATGATE_NBD` and `FLOATGATE_MOUNT` in its environment
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
