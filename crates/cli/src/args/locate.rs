//! Arguments of `floatgate volume locate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `floatgate volume locate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every view of the volume shows the mark. No LED of an enclosure is switched: for block devices,
`ledctl locate=/dev/DEVICE` does that.

Examples:
  floatgate volume locate volume on
  floatgate volume locate volume off")]
pub(crate) struct Locate {
    /// Folder of the volume
    pub(crate) volume: PathBuf,
    /// State of the locate LED
    #[arg(value_enum)]
    pub(crate) switch: Switch,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Turn the mark on
    On,
    /// Turn the mark off
    Off,
}
