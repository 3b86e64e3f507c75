//! Arguments of `floatgate purge`, `floatgate format` and `floatgate resize`.

use std::path::PathBuf;

use blockio::Bytes;
use clap::Args;
use live::UserCapacity;

use crate::quantity;

/// The drive that is meant, and what may be done to it.
#[derive(Debug, Args)]
pub(crate) struct FormatTarget {
    /// Folder of the drive
    pub(crate) volume: PathBuf,
    /// Drive number from `floatgate status`: allow all data to be destroyed
    #[arg(long, value_name = "DRIVE")]
    pub(crate) destroy: Option<String>,
    /// Proceed even though the drive is served and clients may use it
    #[arg(long)]
    pub(crate) while_served: bool,
}

/// `floatgate purge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --destroy nothing is erased, and the drive number is printed.

Examples:
  floatgate purge volume --destroy 5f0c6a1b2d3e4f50")]
pub(crate) struct Purge {
    #[command(flatten)]
    pub(crate) target: FormatTarget,
}

/// `floatgate format`.
#[derive(Debug, Args)]
#[command(after_help = "\
Less capacity for clients leaves more spare space, which makes random writes cheaper. `stock` leaves
15 % as `floatgate create` does; `high-performance` is four fifths of that.

Examples:
  floatgate format volume --capacity high-performance --destroy 5f0c6a1b2d3e4f50
  floatgate format volume --capacity 48g --destroy 5f0c6a1b2d3e4f50")]
pub(crate) struct Format {
    #[command(flatten)]
    pub(crate) target: FormatTarget,
    /// New user capacity: stock, high-performance, or a size such as 48g
    #[arg(long, value_parser = capacity)]
    pub(crate) capacity: UserCapacity,
}

/// `floatgate resize`.
#[derive(Debug, Args)]
#[command(after_help = "\
What is stored stays. A drive becomes smaller only where nothing is stored beyond the new end, or
with --destroy.

Examples:
  floatgate resize volume --size 80g")]
pub(crate) struct Resize {
    #[command(flatten)]
    pub(crate) target: FormatTarget,
    /// New size that clients see, such as 80g
    #[arg(long, value_parser = quantity::size)]
    pub(crate) size: Bytes,
}

fn capacity(text: &str) -> Result<UserCapacity, String> {
    match text {
        "stock" => Ok(UserCapacity::Stock),
        "high-performance" => Ok(UserCapacity::HighPerformance),
        size => Ok(UserCapacity::Bytes(quantity::size(size)?.0)),
    }
}
