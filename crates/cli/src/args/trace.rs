//! Arguments of `floatgate trace`.

use std::path::PathBuf;

use blockio::Bytes;
use clap::{Args, Subcommand};

use super::{Record, Replay};
use crate::quantity;

/// `floatgate trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Generate a synthetic trace from the statistics of a workload
    Make(TraceMake),
    /// Convert a log of blktrace or fio with issues and completions to a recording for
    /// `floatgate trace replay`
    #[command(after_help = "\
Examples:
  floatgate trace import blkparse.txt --size 1920g --out oltp.rec
  floatgate trace import iolog.1 iolog.2 --latency-log lat.1.log,lat.2.log --out jobs.rec")]
    Import(TraceImport),
    /// Summarize a trace, and report invalid lines
    Show(TraceShow),
    /// Recordings of applications.
    #[command(flatten)]
    Recording(Recording),
}

/// Commands of `floatgate trace` for recordings of applications.
#[derive(Debug, Subcommand)]
pub(crate) enum Recording {
    /// Record the I/O of a command on a volume
    #[command(after_help = "\
The volume is served while the command runs. If the command prints a result of sysbench, pgbench
or db_bench, the recording contains the result, and the time that it was measured over.

Examples:
  floatgate trace record volume --out boot.rec -- sh -c 'qemu-img bench \"$FLOATGATE_NBD\"'
  floatgate trace record volume --mount /mnt/volume --out oltp.rec -- ./my-benchmark.sh
  floatgate trace record --memory 2g --mount /mnt/volume --mkfs --timing model \\
    --model iodrive-duo --out oltp.rec -- ./my-benchmark.sh")]
    Record(Record),
    /// Replay a recorded application on modelled or real drives
    #[command(after_help = "\
A request is issued when the request that completed last before it in the recording has completed,
and the think time between the two has passed. `factor` is the time of the recording divided by that
of the replay: 2 is twice as fast.

Examples:
  floatgate trace replay oltp.rec px600-2600 flashmax-ii p5800x
  floatgate trace replay oltp.rec csd-3000-7680 --compressible 50 --json
  floatgate trace replay oltp.rec /dev/nvme1n1 px600-2600 --destroy")]
    Replay(Replay),
}

/// `floatgate trace make`.
#[derive(Debug, Args)]
pub(crate) struct TraceMake {
    /// File to write, a fio iolog
    pub(crate) file: PathBuf,
    /// Workload whose trace table has the statistics
    #[arg(long, default_value = "mail-server", value_name = "NAME")]
    pub(crate) workload: String,
    /// Number of requests [default: that of the workload]
    #[arg(long, value_name = "N", value_parser = quantity::within(1..=100_000_000_u64))]
    pub(crate) requests: Option<u64>,
    /// Seed of the random numbers: the same seed gives the same trace
    #[arg(long, default_value_t = 1, value_parser = quantity::whole::<u64>)]
    pub(crate) seed: u64,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// `floatgate trace import`.
#[derive(Debug, Args)]
pub(crate) struct TraceImport {
    /// Output of `blktrace -d DEVICE -o - | blkparse -i -`, for one device; or, with --latency-log,
    /// iologs of fio jobs that ran at once (`write_iolog`)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Latency logs of the same jobs, in the same order (`write_lat_log` with `log_offset=1`)
    #[arg(long, value_delimiter = ',', value_name = "FILE,...")]
    pub(crate) latency_log: Vec<PathBuf>,
    /// New file for the recording
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Size of the device [default: up to the end of its last request]
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// Output of the sysbench, pgbench or `db_bench` run that ended with the trace; enables the
    /// prediction of transactions
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Traced machine, processors first, such as `16 x AMD EPYC, Linux 6.1`
    #[arg(long, value_name = "TEXT", default_value = "unknown machine")]
    pub(crate) machine: String,
}

/// `floatgate trace show`.
#[derive(Debug, Args)]
pub(crate) struct TraceShow {
    /// Trace file
    pub(crate) file: PathBuf,
    /// Print the hit rates of read caches of these sizes, and the bound of any cache
    #[arg(long, value_parser = quantity::size, value_name = "SIZES", value_delimiter = ',')]
    pub(crate) cache: Vec<Bytes>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
