//! Arguments of `floatgate create`.

use std::path::PathBuf;

use blockio::Bytes;
use clap::{Args, ValueEnum};

use crate::quantity;

/// `floatgate create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Folder of the drive, which is made
    pub(crate) volume: PathBuf,
    /// Files, which are made, or block devices, whose contents are lost: the dies, 1 to 64
    #[arg(long, required = true, value_delimiter = ',', value_name = "PATHS")]
    pub(crate) dies: Vec<PathBuf>,
    /// Name of the drive, shown wherever it is listed [default: the name of its folder]
    #[arg(long, value_parser = name)]
    pub(crate) name: Option<String>,
    /// Size that clients see, such as 4g
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) size: Bytes,
    /// Dies with data and dies with parity, together all of them; or `none` [default: one parity]
    #[arg(long, value_name = "N+1", value_parser = protection)]
    pub(crate) protect: Option<Protection>,
    /// Bytes that fit as they are stored, if fewer than --size; writes beyond them fail
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) thin: Option<Bytes>,
    /// Spare space as a share of what fits: more of it makes random writes cheaper
    #[arg(long, default_value = "15%", value_name = "PERCENT", value_parser = quantity::percent)]
    pub(crate) spare: f64,
    /// Bytes that each die programs in one go, 16k to 4m [default: 256k, less on small drives]
    ///
    /// A disk that turns or a remote store takes random writes the faster the larger it is; memory
    /// and journal grow with it.
    #[arg(long, value_parser = quantity::transfer, value_name = "SIZE")]
    pub(crate) unit: Option<Bytes>,
    /// Dies that take the place of others when those fail: files, which are made, or block devices
    #[arg(long, value_delimiter = ',', value_name = "PATHS")]
    pub(crate) hot_spares: Vec<PathBuf>,
    /// Compression of pages; a page that does not become smaller is stored as it is
    #[arg(long, value_enum, default_value_t = Compress::None)]
    pub(crate) compress: Compress,
    /// Leave the dies' files sparse: they take space as they are written, and writes fail once the
    /// host has none left [default: all space is taken at once]
    #[arg(long)]
    pub(crate) sparse: bool,
    /// A part of it that clients see as a device of its own, such as logs=1g; may be repeated
    /// [default: they see the whole]
    #[arg(long, value_name = "NAME=SIZE", value_parser = named_size)]
    pub(crate) export: Vec<(String, Bytes)>,
    /// Erases that the dies are rated for, to hold their wear against
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rated_cycles: Option<u32>,
}

/// Compression of pages as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compress {
    /// As they are
    None,
    /// By LZ4, in a few microseconds each
    Lz4,
    /// By Zstandard: smaller, and slower
    Zstd,
}

/// Protection of a drive against the loss of a die.
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

/// The name of a drive.
fn name(text: &str) -> Result<String, String> {
    live::check_name(text).map(|()| text.to_owned())
}

/// `logs=1g`.
fn named_size(text: &str) -> Result<(String, Bytes), String> {
    let (name, size) = text.rsplit_once('=').ok_or("it is not such as logs=1g")?;
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
        _ => Err(format!("`{text}` is not such as 7+1, or none")),
    }
}
