//! Arguments of the commands that check, scrub, repair and recover drives, and inject faults.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use export::Address;

use crate::quantity;

/// `floatgate check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Folder of the drive, which nobody has open
    pub(crate) volume: PathBuf,
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
    pub(crate) volume: PathBuf,
    /// Does not wait for its end; `floatgate status` tells how far it is
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// `floatgate fail-die`.
#[derive(Debug, Args)]
pub(crate) struct FailDie {
    /// Folder of the drive, whether it is served or closed
    pub(crate) volume: PathBuf,
    /// Index of the die, from 0, as it was named when the drive was created
    pub(crate) die: usize,
}

/// `floatgate replace-die`.
#[derive(Debug, Args)]
pub(crate) struct ReplaceDie {
    /// Folder of the drive, whether it is served or closed
    pub(crate) volume: PathBuf,
    /// Index of the die, which has failed or is missing
    pub(crate) die: usize,
    /// The new die: a file, which is made, or a block device, whose contents are lost
    #[arg(long, value_name = "PATH")]
    pub(crate) with: PathBuf,
    /// Does not wait for its end, where the drive is served
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// `floatgate add-spare`.
#[derive(Debug, Args)]
pub(crate) struct AddSpare {
    /// Folder of the drive, whether it is served or closed
    pub(crate) volume: PathBuf,
    /// The hot spare: a file, which is made, or a block device, whose contents are lost
    #[arg(value_name = "PATH")]
    pub(crate) spare: PathBuf,
}

/// `floatgate inject`.
#[derive(Debug, Args)]
pub(crate) struct Inject {
    /// Folder of the drive, which a server has open that was started with `--fault-injection`
    pub(crate) volume: PathBuf,
    /// Fault to inject
    #[command(subcommand)]
    pub(crate) fault: Fault,
}

/// Fault to inject into a served drive.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Fault {
    /// The power goes: what was not durable is lost or torn, and the server is gone
    CutPower,
    /// Every command to a die fails
    FailDie {
        /// Index of the die, from 0
        die: u32,
    },
    /// Bits of what a die holds flip
    FlipBits {
        /// Index of the die [default: one that is drawn]
        #[arg(long)]
        die: Option<u32>,
        /// Number of bits
        #[arg(long, default_value_t = 8)]
        bits: u32,
    },
    /// Nothing is answered for this time, such as 2s
    Stall {
        /// Length of the stall
        #[arg(value_parser = quantity::span)]
        time: Duration,
    },
    /// Writes fail for want of space, but for what is trimmed from then on
    Fill,
}

/// Options of `floatgate recover`.
#[derive(Debug, Args)]
pub(crate) struct Recover {
    /// Folder of the drive, which nobody has open
    pub(crate) volume: PathBuf,
    /// Read from this checkpoint instead of the newest that can be read
    #[arg(long, value_name = "NUMBER")]
    pub(crate) checkpoint: Option<u64>,
    /// Copy what can be read to a sparse raw image, and which parts those are to IMAGE.map
    #[arg(long, value_name = "IMAGE", conflicts_with = "nbd")]
    pub(crate) out: Option<PathBuf>,
    /// Serve it read-only to NBD clients instead, at unix:PATH, tcp:PORT (loopback) or
    /// tcp:HOST:PORT; what cannot be read fails with EIO; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<Address>,
    /// Serve it though something is doubtful: pages may be older than what was written last
    #[arg(long, requires = "nbd")]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
