//! Arguments of `floatgate volume purge`, `floatgate volume format` and `floatgate volume resize`.

use std::path::PathBuf;

use blockio::Bytes;
use clap::Args;
use live::UserCapacity;

use super::KeyArgs;
use crate::quantity;

/// Bytes of a page: sizes of volumes are whole ones.
const PAGE_BYTES: u64 = 4096;

/// The volume that is meant, and what may be done to it.
#[derive(Debug, Args)]
pub(crate) struct FormatTarget {
    /// Folder of the volume
    pub(crate) volume: PathBuf,
    /// Volume ID from `floatgate volume status`: allow all data to be destroyed
    #[arg(long, value_name = "ID")]
    pub(crate) destroy: Option<String>,
    /// Proceed even though the volume is served and clients may use it
    #[arg(long)]
    pub(crate) while_served: bool,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// `floatgate volume purge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --destroy nothing is erased, and the volume ID is printed.

Examples:
  floatgate volume purge volume --destroy 5f0c6a1b2d3e4f50")]
pub(crate) struct Purge {
    #[command(flatten)]
    pub(crate) target: FormatTarget,
}

/// `floatgate volume format`.
#[derive(Debug, Args)]
#[command(after_help = "\
A smaller capacity leaves more over-provisioning, which makes random writes faster. `stock` leaves
15 % in addition to the volume's own reserve (together about 18 % on 4 GB, as `floatgate volume
status` shows), regardless of the --spare given to `floatgate volume create`. `high-performance` is
80 % of the stock capacity, as on the ioDrive Duo.

Examples:
  floatgate volume format volume --capacity high-performance --destroy 5f0c6a1b2d3e4f50
  floatgate volume format volume --capacity 48g --destroy 5f0c6a1b2d3e4f50")]
pub(crate) struct Format {
    #[command(flatten)]
    pub(crate) target: FormatTarget,
    /// New user capacity: stock, high-performance, or a size such as 48g
    #[arg(long, value_parser = capacity)]
    pub(crate) capacity: Capacity,
}

/// A capacity as it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// Capacity, in whole pages.
    pub(crate) capacity: UserCapacity,
    /// Bytes that were asked for, if that was a size which was rounded down to it.
    pub(crate) asked: Option<Bytes>,
}

/// `floatgate volume resize`.
#[derive(Debug, Args)]
#[command(after_help = "\
The data is kept. A volume can become smaller only if no data is stored beyond the new end, or with
--destroy.

Examples:
  floatgate volume resize volume --size 80g")]
pub(crate) struct Resize {
    #[command(flatten)]
    pub(crate) target: FormatTarget,
    /// New size that clients see, such as 80g
    #[arg(long, value_parser = volume_size)]
    pub(crate) size: Bytes,
}

fn capacity(text: &str) -> Result<Capacity, String> {
    let (capacity, asked) = match text {
        "stock" => (UserCapacity::Stock, None),
        "high-performance" => (UserCapacity::HighPerformance, None),
        size if !size.starts_with(|first: char| first.is_ascii_digit()) => {
            return Err(format!(
                "`{size}` is not a capacity: give `stock`, `high-performance` or a size such as 48g"
            ));
        }
        size => {
            let (size, asked) = quantity::size_asked(size)?;
            check_whole(size)?;
            (UserCapacity::Bytes(size.0), (asked != size).then_some(asked))
        }
    };
    Ok(Capacity { capacity, asked })
}

/// A size of a volume or of an export.
pub(super) fn volume_size(text: &str) -> Result<Bytes, String> {
    let size = quantity::size(text)?;
    check_whole(size)?;
    Ok(size)
}

/// Checks that a size is one of whole pages.
fn check_whole(size: Bytes) -> Result<(), String> {
    let Bytes(bytes) = size;
    if bytes.is_multiple_of(PAGE_BYTES) {
        return Ok(());
    }
    Err(format!("{bytes} bytes, must be a multiple of {PAGE_BYTES}"))
}
