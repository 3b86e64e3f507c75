//! Arguments of `floatgate trace`.

use std::path::PathBuf;

use blockio::Bytes;
use clap::{Args, Subcommand};

use crate::quantity;

/// `floatgate trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Makes a trace from the statistics of a workload, marked as made up
    Make(TraceMake),
    /// Makes a recording of what blktrace or fio logged of a device, with issues and completions,
    /// for `floatgate replay`
    #[command(after_help = "\
Examples:
  floatgate trace import blkparse.txt --size 1920g --out oltp.rec
  floatgate trace import iolog.1 iolog.2 --latency-log lat.1.log,lat.2.log --out jobs.rec")]
    Import(TraceImport),
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

/// `floatgate trace import`.
#[derive(Debug, Args)]
pub(crate) struct TraceImport {
    /// Text of blkparse of one device, which `blktrace -d DEVICE -o - | blkparse -i -` prints; or
    /// with --latency-log the iologs of fio jobs that ran at once (write_iolog)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Latency logs of the same jobs, in the same order (write_lat_log with log_offset=1)
    #[arg(long, value_delimiter = ',', value_name = "FILE,...")]
    pub(crate) latency_log: Vec<PathBuf>,
    /// New file for the recording
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Size of the device [default: up to the end of its last request]
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// Output of sysbench, pgbench or `db_bench` that ended with the trace, so that transactions
    /// are predicted
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Machine that was traced, its processors first, as `16 x AMD EPYC, Linux 6.1`
    #[arg(long, value_name = "TEXT", default_value = "a machine that nobody described")]
    pub(crate) machine: String,
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
