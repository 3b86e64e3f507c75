//! Arguments of `floatgate volume serve`, and of the timing of replies.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use blockio::Bytes;
use clap::{Arg, ArgGroup, Args, ValueEnum};
use lab::subject::Choice;
use server::activation::Place;
use server::config::Pacing;
use server::front_ends::FrontEndOptions;
use server::log::Level;

use super::{
    AccessArgs, HttpArgs, KeyArgs, LimitArgs, ModelArgs, MonitorArgs, PromiseArgs, SurroundingsArgs,
};
use crate::{quantity, setup};

/// Timing of the replies of a served drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Timing {
    /// As fast as possible
    Off,
    /// The latencies of a modelled drive, with its burst, cliff and stalls
    Model,
}

/// Timing of replies, and the model that sets it.
#[derive(Debug, Args)]
pub(crate) struct TimingArgs {
    /// Timing of replies: as fast as possible, or as a modelled drive
    #[arg(long, value_enum, default_value_t = Timing::Off, help_heading = "Timing")]
    pub(crate) timing: Timing,
    /// Modelled drive: a catalogue name, or a drive file
    #[arg(long, default_value = "iodrive-duo", value_name = "DRIVE", help_heading = "Timing")]
    pub(crate) model: String,
    /// Format of the modelled drive [default: its first]
    #[arg(long, value_name = "NAME", help_heading = "Timing")]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) setup: ModelArgs,
    #[command(flatten)]
    pub(crate) around: SurroundingsArgs,
}

impl TimingArgs {
    /// The modelled drive that sets the timing of replies; none where they are sent at once.
    pub(crate) fn pacing(&self) -> Option<Pacing> {
        let Self { timing, model, format, setup, around } = self;
        (*timing == Timing::Model).then(|| {
            let choice = setup::choice(format.as_deref(), setup);
            let choice = Choice { surroundings: around.with(Vec::new()), ..choice };
            Pacing { drive: model.clone(), choice, seed: setup.seed }
        })
    }
}

/// `floatgate volume serve`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new(TIMED).args(["timing", "config"]).multiple(true)))]
#[command(mut_args(with_model))]
pub(crate) struct Serve {
    /// Folder of the volume, created by `floatgate volume create`
    #[arg(required_unless_present_any = ["memory", "config"], conflicts_with = "memory")]
    pub(crate) volume: Option<PathBuf>,
    /// Serve a volume in memory of this size; it starts empty, and its data is lost at the end
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    #[command(flatten)]
    pub(crate) front_ends: FrontEndOptions,
    /// Address for browsers and monitoring: HOST:PORT, preferably of the loopback, or fd:N
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<Place<SocketAddr>>,
    /// TOML file with options by name, and `volume`; options on the command line take precedence
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Name of the default export, which clients get that request no name. For a volume with
    /// exports, one of them [default: the first]
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
    pub(crate) export: String,
    /// Refuse writes and all other changes by clients. Repairs, and the commands of `floatgate`,
    /// still change the volume
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Exit once no client was connected for this time, such as 10s; for jobs and tests
    #[arg(long, value_parser = quantity::span, value_name = "TIME")]
    #[arg(conflicts_with_all = ["fuse", "ublk"])]
    pub(crate) exit_when_idle: Option<Duration>,
    /// Start although the folder proves that the dies hold an earlier state than was served last,
    /// and give up what was written since; health tells it until all is written anew
    #[arg(long, conflicts_with_all = ["memory", "config"])]
    pub(crate) force_stale: bool,
    /// Damaged places of a die in an hour, found by reads that parity answers, above which the die
    /// is a problem
    #[arg(long, default_value_t = 20, value_name = "PLACES", conflicts_with = "memory")]
    pub(crate) die_errors_per_hour: u64,
    /// Allow `floatgate volume inject`, and follow a schedule of faults if one is given: a file,
    /// or `dying-drive`
    #[arg(long, value_name = "SCHEDULE", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "given or not, with a file or without")]
    pub(crate) fault_injection: Option<Option<PathBuf>>,
    /// Scrub: read and repair all data once in this time, such as 7d
    #[arg(long, value_parser = quantity::span, value_name = "TIME", conflicts_with = "memory")]
    pub(crate) scrub: Option<Duration>,
    /// Most bytes of the dies that a scrub reads each second, such as 50M
    #[arg(long, value_parser = quantity::size, value_name = "BYTES", conflicts_with = "memory")]
    pub(crate) scrub_rate: Option<Bytes>,
    /// Record the clients' requests in a new file, for `floatgate trace replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Level of messages on stderr: this one and more severe ones
    #[arg(long, value_enum, default_value_t = Level::Info, value_name = "LEVEL")]
    pub(crate) log_level: Level,
    /// Log in JSON, one event per line
    #[arg(long)]
    pub(crate) log_json: bool,
    /// Print what is served as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    #[command(flatten)]
    pub(crate) promise: PromiseArgs,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    #[command(flatten)]
    pub(crate) monitor: MonitorArgs,
    #[command(flatten)]
    pub(crate) pages: HttpArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
}

/// Options that may say that a model sets the timing: `--timing`, or the file of a configuration.
const TIMED: &str = "timed";

/// Makes the options of a model need what may say that there is one.
fn with_model(option: Arg) -> Arg {
    const OF_MODEL: [&str; 9] = [
        "model",
        "format",
        "host",
        "time_lapse",
        "full_scale",
        "seed",
        "ambient",
        "airflow",
        "slot_power",
    ];
    if OF_MODEL.contains(&option.get_id().as_str()) { option.requires(TIMED) } else { option }
}
