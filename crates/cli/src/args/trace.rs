//! Arguments of `floatgate trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `floatgate trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Makes a trace from the statistics of a workload, marked as made up
    Make(TraceMake),
    /// Reads a trace and says what it asks for, and what of it is broken
    Show(TraceShow),
}

/// `floatgate trace make`.
#[derive(Debug, Args)]
pub(crate) struct TraceMake {
    /// File to write, a fio iolog
    pub(crate) file: PathBuf,
    /// Workload with the statistics, in its trace table
    #[arg(long, default_value = "mail-server", value_name = "NAME")]
    pub(crate) workload: String,
    /// Requests [default: as many as the workload says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) requests: Option<u64>,
    /// Seed: the same seed makes the same trace
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Replaces the file that is there
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// `floatgate trace show`.
#[derive(Debug, Args)]
pub(crate) struct TraceShow {
    /// The trace
    pub(crate) file: PathBuf,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}
