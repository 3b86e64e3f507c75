//! Arguments of `floatgate run`.

use std::path::PathBuf;
use std::time::Duration;

use blockio::Bytes;
use clap::Args;

use super::{ClientArgs, DataArgs, ModelArgs, PlaceArgs, RealArgs, SamplingArgs};
use crate::quantity;

/// `floatgate run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Catalogue name, drive file, file, block devices (a,b), or NBD address
    #[arg(default_value = "iodrive-duo")]
    pub(crate) target: String,
    /// Workload to run: a name, or a workload file
    #[arg(default_value = "4k-rand-write")]
    pub(crate) workload: String,
    /// Number of threads (fio jobs) [default: 16; of a trace that a model replays with --speed, as
    /// many as keep up]
    #[arg(long, value_parser = quantity::within(1..=1024_u16))]
    pub(crate) threads: Option<u16>,
    /// Queue depth of each thread
    #[arg(long, default_value_t = 16, value_parser = quantity::within(1..=4096_u16))]
    pub(crate) queue: u16,
    /// Length of the measurement, in the drive's protocol time
    #[arg(long, default_value = "60s", value_parser = quantity::span, value_name = "TIME")]
    pub(crate) runtime: Duration,
    /// Precondition with the same workload for this long before measuring; for a workload that only
    /// reads, with the same requests as writes
    #[arg(long, value_parser = quantity::span, value_name = "TIME", conflicts_with = "read_only")]
    pub(crate) precondition: Option<Duration>,
    /// Transfer size instead of the workload's own, such as 8k
    #[arg(long, value_parser = quantity::transfer, value_name = "SIZE")]
    pub(crate) bs: Option<Bytes>,
    /// Random arrivals at this rate per second, such as 50k, instead of a closed loop
    #[arg(long, value_parser = quantity::rate, value_name = "IOPS")]
    pub(crate) rate: Option<f64>,
    /// Replay a trace instead of a workload, with at most threads x queue outstanding requests
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "bs", "rate"])]
    pub(crate) trace: Option<PathBuf>,
    /// Replay with the trace's own timing, sped up by this factor [default: closed loop, no timing]
    #[arg(long, value_name = "FACTOR", requires = "trace", value_parser = quantity::amount)]
    pub(crate) speed: Option<f64>,
    /// Keep the addresses of the trace and wrap them at the drive's end, instead of scaling them
    #[arg(long, requires = "trace")]
    pub(crate) wrap: bool,
    /// Format of a modelled drive [default: its first]
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
    #[command(flatten)]
    pub(crate) clients: ClientArgs,
    /// Repeat with so many seeds, for intervals beside the figures, which are those of the first
    /// seed [default: 3 for models that take less than a minute, else 1]
    #[arg(long, value_name = "N", help_heading = "Results",
        value_parser = quantity::within(1..=99_u32))]
    pub(crate) repeat: Option<u32>,
    /// Store the run in this folder, such as `runs`, for `floatgate compare` and `floatgate fit`
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(crate) out: Option<PathBuf>,
    /// Exit with status 3 if a preconditioning did not reach steady state
    #[arg(long, help_heading = "Results")]
    pub(crate) require_steady: bool,
    /// Print all results as JSON
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
}
