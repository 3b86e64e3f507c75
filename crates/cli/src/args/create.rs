//! Arguments of `floatgate volume create`.

use std::path::PathBuf;

use blockio::Bytes;
use clap::{Args, ValueEnum};

use super::{KeyArgs, PromiseArgs};
use crate::quantity;

/// `floatgate volume create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// New folder for the volume
    pub(crate) volume: PathBuf,
    /// Member devices (dies), 1 to 64: new files, or block devices, which are overwritten
    #[arg(long, required = true, value_delimiter = ',', value_name = "PATHS")]
    #[arg(value_parser = listed)]
    pub(crate) dies: Vec<PathBuf>,
    /// Name of the volume, shown wherever it is listed [default: the name of its folder]
    #[arg(long, value_parser = name)]
    pub(crate) name: Option<String>,
    /// Size that clients see, such as 4g
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) size: Bytes,
    /// Data dies + parity dies, such as 7+1, or `none` [default: one parity die]
    #[arg(long, value_name = "N+1", value_parser = protection)]
    pub(crate) protect: Option<Protection>,
    /// Physical space for stored data, if less than --size; further writes fail
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) thin: Option<Bytes>,
    /// Over-provisioning in percent of --size, or of --thin; more makes random writes faster
    #[arg(long, default_value = "15%", value_name = "PERCENT", value_parser = quantity::percent)]
    pub(crate) spare: f64,
    /// Program unit of a die, 16k to 4m [default: 256k, less on small volumes]
    ///
    /// A larger unit speeds up random writes on hard disks and remote storage, but needs more
    /// memory and a larger journal.
    #[arg(long, value_parser = quantity::transfer, value_name = "SIZE")]
    pub(crate) unit: Option<Bytes>,
    /// Hot spares, which replace failed dies: new files or block devices
    #[arg(long, value_delimiter = ',', value_name = "PATHS", value_parser = listed)]
    pub(crate) hot_spares: Vec<PathBuf>,
    /// Overwrite block devices that hold a file system, a partition table or a die of a volume
    #[arg(long)]
    pub(crate) destroy: bool,
    /// Compression of pages; incompressible pages are stored uncompressed
    #[arg(long, value_enum, default_value_t = Compress::None)]
    pub(crate) compress: Compress,
    /// Leave the dies' files sparse: data take space when written, and writes fail once the host
    /// has no space left; journal and checkpoints are allocated [default: allocate all space]
    #[arg(long)]
    pub(crate) sparse: bool,
    /// Export: a part that clients see as a separate device, such as logs=1g; may be repeated
    /// [default: one export of the whole volume]
    #[arg(long, value_name = "NAME=SIZE", value_parser = named_size)]
    pub(crate) export: Vec<(String, Bytes)>,
    /// Rated erase cycles of the dies, for the wear in percent
    #[arg(long, value_name = "N", value_parser = quantity::within(1..=u32::MAX))]
    pub(crate) rated_cycles: Option<u32>,
    /// Encrypt pages with AES-256-XTS; the volume then opens with this key alone
    #[arg(long, requires = "key", help_heading = "Encryption")]
    pub(crate) encrypt: bool,
    /// Let NVMe hosts lock ranges by TCG Opal, as with sedutil-cli; prints the PSID, by which the
    /// volume is reverted if its passwords are lost
    #[arg(long, conflicts_with = "export", help_heading = "Encryption")]
    pub(crate) opal: bool,
    #[command(flatten)]
    pub(crate) promise: PromiseArgs,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Compression of pages as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compress {
    /// No compression
    None,
    /// LZ4: a few microseconds per page
    Lz4,
    /// Zstandard: smaller and slower than LZ4
    Zstd,
}

/// Protection of a volume against the loss of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Not at all.
    None,
    /// Each row of this many dies has one that protects the others.
    One {
        /// The dies, that one included.
        dies: usize,
    },
}

/// The name of a volume.
fn name(text: &str) -> Result<String, String> {
    live::check_name(text).map(|()| text.to_owned())
}

/// A path of a list, which may have blanks on either side of its commas.
fn listed(text: &str) -> Result<PathBuf, String> {
    match text.trim() {
        "" => Err("a path of the list is empty".to_owned()),
        path => Ok(PathBuf::from(path)),
    }
}

/// `logs=1g`.
fn named_size(text: &str) -> Result<(String, Bytes), String> {
    let (name, size) = text.rsplit_once('=').ok_or("expected NAME=SIZE, such as logs=1g")?;
    Ok((name.to_owned(), quantity::size(size)?))
}

/// `none`, or `7+1`.
fn protection(text: &str) -> Result<Protection, String> {
    if text == "none" {
        return Ok(Protection::None);
    }
    let data = text.strip_suffix("+1").and_then(|data| data.parse::<usize>().ok());
    match data {
        Some(data @ 1..=63) => Ok(Protection::One { dies: data + 1 }),
        _ => Err(format!("`{text}` is not a protection, such as 7+1 or none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_beside_the_commas_of_a_list_are_no_part_of_its_paths() {
        assert_eq!(listed(" b.img"), Ok("b.img".into()));
        assert_eq!(listed("my disk.img "), Ok("my disk.img".into()));
        listed("  ").unwrap_err();
    }
}
