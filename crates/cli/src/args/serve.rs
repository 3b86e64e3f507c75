//! Arguments of `floatgate serve`, and of the times that replies keep to.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use blockio::Bytes;
use clap::{Args, ValueEnum};
use export::Address;
use server::activation::Place;
use server::log::Level;

use super::{AccessArgs, HttpArgs, LimitArgs, ModelArgs, MonitorArgs, TlsArgs};
use crate::quantity;

/// Timing of the replies of a served drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Timing {
    /// As fast as it goes
    Off,
    /// Those of a modelled drive, with its burst, cliff and stalls
    Model,
}

/// Model whose times replies keep to.
#[derive(Debug, Args)]
pub(crate) struct TimingArgs {
    /// Timing of replies: as fast as possible, or that of a modelled drive
    #[arg(long, value_enum, default_value_t = Timing::Off, help_heading = "Timing")]
    pub(crate) timing: Timing,
    /// The modelled drive: of the catalogue, or a drive.toml
    #[arg(long, default_value = "iodrive-duo", value_name = "DRIVE", help_heading = "Timing")]
    pub(crate) model: String,
    /// Format of the modelled drive [default: its first]
    #[arg(long, value_name = "NAME", help_heading = "Timing")]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) setup: ModelArgs,
}

/// `floatgate serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Folder of the drive, as `floatgate create` made it
    #[arg(required_unless_present_any = ["memory", "config"], conflicts_with = "memory")]
    pub(crate) volume: Option<PathBuf>,
    /// Serves a drive in memory of this size, which is empty at first and gone at the end
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Address for NBD clients: unix:PATH, tcp:PORT (loopback), tcp:HOST:PORT, or fd:N where the
    /// socket was passed; may be repeated
    #[arg(long, required_unless_present_any = ["config", "fuse", "nvme"], value_name = "ADDRESS")]
    pub(crate) nbd: Vec<Place<Address>>,
    /// Address for NVMe/TCP hosts: tcp:PORT (loopback), tcp:HOST:PORT or fd:N; may be repeated.
    /// Exports are namespaces of one subsystem
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nvme: Vec<Place<Address>>,
    /// Bytes of the logical blocks that NVMe hosts see: 512 or 4096
    #[arg(long, default_value_t = 512, value_name = "BYTES", requires = "nvme")]
    pub(crate) nvme_block_bytes: u64,
    /// Empty folder on which each export is mounted as a file, for as long as the server runs
    #[arg(long, value_name = "DIR")]
    pub(crate) fuse: Option<PathBuf>,
    /// Address for browsers and monitoring: HOST:PORT, of the loopback at best, or fd:N
    #[arg(long, conflicts_with = "memory", value_name = "ADDRESS")]
    pub(crate) http: Option<Place<SocketAddr>>,
    /// File of what else could be typed here: options by name, and `volume`; what is typed wins
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Name that clients ask for; without one they get it too. Of a drive that has exports, the
    /// one that clients get who name none [default: the first]
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
    pub(crate) export: String,
    /// Refuses what would change the drive
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Lets `floatgate inject` make things go wrong, or what a schedule says
    #[arg(long, value_name = "SCHEDULE", num_args = 0..=1, conflicts_with = "memory")]
    #[expect(clippy::option_option, reason = "given or not, with a file or without")]
    pub(crate) fault_injection: Option<Option<PathBuf>>,
    /// Reads all that is stored once in this time, such as 7d, and repairs it
    #[arg(long, value_parser = quantity::span, value_name = "TIME", conflicts_with = "memory")]
    pub(crate) scrub: Option<Duration>,
    /// Records what clients ask for in a new file, for `floatgate replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Least severe messages to print on stderr
    #[arg(long, value_enum, default_value_t = Level::Info, value_name = "LEVEL")]
    pub(crate) log_level: Level,
    /// Says it as a line of JSON an event
    #[arg(long)]
    pub(crate) log_json: bool,
    /// Prints what is served as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) monitor: MonitorArgs,
    #[command(flatten)]
    pub(crate) pages: HttpArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
}
