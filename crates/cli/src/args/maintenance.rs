//! Arguments of the commands that check, scrub, repair and recover volumes, and inject faults.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use export::Address;

use super::KeyArgs;
use crate::quantity;

/// `floatgate volume check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Folder of a volume that is not being served
    pub(crate) volume: PathBuf,
    /// Rewrite damaged data from intact copies and parity
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// `floatgate volume scrub`.
#[derive(Debug, Args)]
pub(crate) struct Scrub {
    /// Folder of a served volume
    pub(crate) volume: PathBuf,
    /// Return at once; `floatgate volume status` shows the progress
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// `floatgate volume fail-die`.
#[derive(Debug, Args)]
pub(crate) struct FailDie {
    /// Folder of a served or closed volume
    pub(crate) volume: PathBuf,
    /// Index of the die from 0, in the order given to `floatgate volume create`
    #[arg(value_parser = quantity::whole::<usize>)]
    pub(crate) die: usize,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// `floatgate volume replace-die`.
#[derive(Debug, Args)]
pub(crate) struct ReplaceDie {
    /// Folder of a served or closed volume
    pub(crate) volume: PathBuf,
    /// Index of the failed or missing die, from 0
    #[arg(value_parser = quantity::whole::<usize>)]
    pub(crate) die: usize,
    /// New die: a new file, or a block device, which is overwritten
    #[arg(long, value_name = "PATH")]
    pub(crate) with: PathBuf,
    /// Overwrite a block device that holds a file system, a partition table or a die of a volume
    #[arg(long)]
    pub(crate) destroy: bool,
    /// Return at once if the volume is served
    #[arg(long)]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// `floatgate volume add-spare`.
#[derive(Debug, Args)]
pub(crate) struct AddSpare {
    /// Folder of a served or closed volume
    pub(crate) volume: PathBuf,
    /// Hot spare: a new file, or a block device, which is overwritten
    #[arg(value_name = "PATH")]
    pub(crate) spare: PathBuf,
    /// Overwrite a block device that holds a file system, a partition table or a die of a volume
    #[arg(long)]
    pub(crate) destroy: bool,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// `floatgate volume rekey`.
#[derive(Debug, Args)]
pub(crate) struct Rekey {
    /// Folder of a volume that is not being served
    pub(crate) volume: PathBuf,
    /// File with the new passphrase, or with the new key of 32 bytes
    #[arg(long, value_name = "FILE", required_unless_present = "new_key_command")]
    #[arg(conflicts_with = "new_key_command")]
    pub(crate) new_key_file: Option<PathBuf>,
    /// Command that prints the new passphrase or key
    #[arg(long, value_name = "COMMAND")]
    pub(crate) new_key_command: Option<String>,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// `floatgate volume remove-spare`.
#[derive(Debug, Args)]
pub(crate) struct RemoveSpare {
    /// Folder of a served or closed volume
    pub(crate) volume: PathBuf,
    /// Hot spare that has replaced no die; the file or block device is not changed
    #[arg(value_name = "PATH")]
    pub(crate) spare: PathBuf,
}

/// `floatgate volume inject`.
#[derive(Debug, Args)]
pub(crate) struct Inject {
    /// Folder of a volume whose server was started with `--fault-injection`
    pub(crate) volume: PathBuf,
    /// Fault to inject
    #[command(subcommand)]
    pub(crate) fault: Fault,
}

/// Fault to inject into a served volume.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Fault {
    /// Cut the power: data that was not flushed may be lost, and the server exits
    CutPower,
    /// Fail every command to a die
    FailDie {
        /// Index of the die, from 0
        #[arg(value_parser = quantity::whole::<u32>)]
        die: u32,
    },
    /// Fail reads of a range of a die, as on a worn medium
    FailRange {
        /// Index of the die, from 0
        #[arg(value_parser = quantity::whole::<u32>)]
        die: u32,
        /// First byte
        #[arg(long, value_parser = quantity::whole::<u64>, value_name = "BYTE")]
        from: u64,
        /// Number of bytes
        #[arg(long, value_parser = quantity::whole::<u64>, value_name = "BYTES")]
        length: u64,
    },
    /// Flip bits of a die's data
    FlipBits {
        /// Index of the die from 0 [default: a random one]
        #[arg(long, value_parser = quantity::whole::<u32>)]
        die: Option<u32>,
        /// Number of bits
        #[arg(long, default_value_t = 8, value_parser = quantity::whole::<u32>)]
        bits: u32,
    },
    /// Stop answering for this time, such as 2s
    Stall {
        /// Length of the stall
        #[arg(value_parser = quantity::span)]
        time: Duration,
    },
    /// Fail writes with ENOSPC until space is trimmed
    Fill,
    /// Fail reads, which succeed when they are repeated; NVMe hosts get a hint to retry
    FailReads {
        /// Number of reads that fail
        #[arg(long, default_value_t = 1, value_name = "NUMBER")]
        #[arg(value_parser = quantity::whole::<u32>)]
        commands: u32,
    },
    /// Reset all NVMe controllers: connections end, and hosts may reconnect at once
    ResetControllers,
    /// Fail all NVMe controllers (CSTS.CFS)
    FailControllers,
    /// Remove the drive from NVMe hosts for this time, such as 30s
    Remove {
        /// Time until it is back
        #[arg(value_parser = quantity::span)]
        time: Duration,
    },
    /// Fail writes to a namespace, as if its media were worn out
    FailWrites {
        /// Namespace identifier (NSID)
        #[arg(value_parser = quantity::whole::<u32>)]
        namespace: u32,
    },
    /// Fail the power-loss protection: writes are acknowledged once durable
    FailPlp,
    /// Report this temperature in degrees Celsius, until another one is set
    Heat {
        /// Degrees, -40 to 200
        #[arg(allow_negative_numbers = true, value_parser = quantity::within(-40..=200_i16))]
        celsius: i16,
    },
    /// Report this wear, until another one is set
    Wear {
        /// Share of the rated endurance that is used, in percent, at most 255
        #[arg(long, value_parser = quantity::whole::<u8>, value_name = "PERCENT")]
        used: u8,
        /// Spare space that is left, in percent; NVMe hosts are warned below 10
        #[arg(long, value_parser = quantity::within(0..=100_u8), value_name = "PERCENT")]
        spare: u8,
    },
}

/// Options of `floatgate volume recover`.
#[derive(Debug, Args)]
pub(crate) struct Recover {
    /// Folder of a volume that is not being served
    pub(crate) volume: PathBuf,
    /// Use this checkpoint instead of the newest readable one
    #[arg(long, value_name = "NUMBER", value_parser = quantity::whole::<u64>)]
    pub(crate) checkpoint: Option<u64>,
    /// Copy readable data to a sparse raw image, and write a map of it to IMAGE.map
    #[arg(long, value_name = "IMAGE", conflicts_with = "nbd")]
    pub(crate) out: Option<PathBuf>,
    /// Serve it read-only to NBD clients instead, at unix:PATH, tcp:PORT (loopback) or
    /// tcp:HOST:PORT; reads of lost data fail with EIO; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<Address>,
    /// Serve it even though pages may be older than the last write
    #[arg(long, requires = "nbd")]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}
