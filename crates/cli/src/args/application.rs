//! Arguments of the commands that measure applications, record and replay them.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use blockio::Bytes;
use clap::{Args, ValueEnum};
use lab::Error;
use lab::application::ReplayHost;
use lab::driver::model::ReplayState;

use super::{DataArgs, KeyArgs, ModelArgs, TimingArgs};
use crate::quantity;

/// `floatgate trace replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Recording of an application
    pub(crate) recording: PathBuf,
    /// Modelled drives (catalogue names or drive files) or real drives (files or block devices)
    #[arg(required = true)]
    pub(crate) drives: Vec<String>,
    /// Allow data on real drives to be destroyed
    #[arg(long)]
    pub(crate) destroy: bool,
    /// Format of the drives [default: the first of each]
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// Copies of the recording to run at once, each on its own part of the drive, like guests that
    /// share only the drive
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN, value_parser = count)]
    pub(crate) copies: NonZeroU32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// State of modelled drives [default: settled]
    #[arg(long, value_enum)]
    pub(crate) state: Option<StateArg>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments about the host of a prediction.
#[derive(Debug, Args)]
#[command(next_help_heading = "Host of a prediction")]
pub(crate) struct HostArgs {
    /// Speed of the host, as a multiple of the recording's host
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = quantity::amount)]
    pub(crate) host_speed: f64,
    /// Processors of the host, shared by all think times [default: as many as in the recording]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) host_processors: Option<NonZeroU32>,
    /// Percentage of page reads and page writes that a larger host cache absorbs, so that they do
    /// not reach the drive
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = quantity::percent)]
    pub(crate) buffered: f64,
    /// Keep the time that requests took through the file system and the front end of the recording,
    /// as for another drive that is served in the same way
    #[arg(long)]
    pub(crate) keep_front_end: bool,
}

impl HostArgs {
    /// The host that they describe.
    ///
    /// # Errors
    /// Fails if a number is outside its range.
    pub(crate) fn host(&self) -> Result<ReplayHost, Error> {
        let (speed, buffered_percent) = (self.host_speed, self.buffered);
        let (processors, keeps_front_end) = (self.host_processors, self.keep_front_end);
        let copies = NonZeroU32::MIN;
        ReplayHost { speed, processors, buffered_percent, keeps_front_end, copies }.checked()
    }
}

/// `floatgate trace record`.
#[derive(Debug, Args)]
#[command(mut_arg("model", |model| model.requires("timing")))]
pub(crate) struct Record {
    /// Folder of the volume, created by `floatgate volume create`
    #[arg(required_unless_present = "memory", conflicts_with = "memory")]
    pub(crate) volume: Option<PathBuf>,
    /// Use a volume in memory of this size; it starts empty, and its data is lost at the end
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// New file for the recording
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Slowdown factor of the emulated processor that the command uses, such as a guest without
    /// KVM; replays divide think times by it
    #[arg(long, value_name = "FACTOR", value_parser = quantity::within(1..=10_000_u32))]
    pub(crate) emulated: Option<u32>,
    /// Mount the volume's file system on this folder while the command runs
    #[arg(long, value_name = "DIR")]
    pub(crate) mount: Option<PathBuf>,
    /// Create an ext4 file system first, which erases the volume
    #[arg(long, requires = "mount")]
    pub(crate) mkfs: bool,
    /// Command to run, with `FLOATGATE_NBD` and `FLOATGATE_MOUNT` in its environment
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
}

/// `floatgate app`.
#[derive(Debug, Args)]
#[command(mut_arg("model", |model| model.requires("timing")))]
pub(crate) struct App {
    /// Application: a built-in name, or the path of a file [default: list the built-in ones]
    pub(crate) application: Option<String>,
    /// Mounted folders, folders of volumes, or modelled drives
    pub(crate) targets: Vec<String>,
    /// Use a volume in memory of this size, with a new file system, instead of a folder
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Create an ext4 file system on volumes first, which erases them
    #[arg(long)]
    pub(crate) mkfs: bool,
    /// Numbers of concurrent clients [default: those of the application]
    #[arg(long, value_delimiter = ',', value_name = "COUNTS",
        value_parser = quantity::within(1..=4096_u32))]
    pub(crate) threads: Vec<u32>,
    /// Length of each measurement [default: that of the application]
    #[arg(long, value_parser = quantity::span, value_name = "TIME")]
    pub(crate) runtime: Option<Duration>,
    /// Set a parameter of the application; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,
    /// New folder for a recording of each measurement on a volume
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Folder of recordings for predictions [default: the built-in recordings]
    #[arg(long, value_name = "DIR")]
    pub(crate) recordings: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// State of modelled drives [default: settled]
    #[arg(long, value_enum)]
    pub(crate) state: Option<StateArg>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
}

/// State of a modelled drive on which a recording is replayed.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum StateArg {
    /// Written once in order
    Filled,
    /// Then written at random until write amplification holds still
    #[default]
    Settled,
}

impl From<StateArg> for ReplayState {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::Filled => Self::Filled,
            StateArg::Settled => Self::Settled,
        }
    }
}

/// A number of at least one.
fn count(text: &str) -> Result<NonZeroU32, String> {
    let number = quantity::within(1..=u32::MAX)(text)?;
    NonZeroU32::new(number).ok_or_else(|| "must be above zero".to_owned())
}

/// A name and a value with `=` between them.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("has no `=`; write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
