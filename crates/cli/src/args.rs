//! The command line as it is typed.

mod access;
mod application;
mod attach;
mod create;
mod dashboard;
mod export;
mod format;
mod groups;
mod http;
mod key;
mod limits;
mod listing;
mod locate;
mod maintenance;
mod monitor;
mod ordered;
mod place;
mod real;
mod run;
mod runs;
mod serve;
mod trace;
mod volume;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use lab::results::price::Price;
use study::fit::Free;

pub(crate) use self::access::{AccessArgs, PromiseArgs};
pub(crate) use self::application::{App, Record, Replay};
pub(crate) use self::attach::{Attach, Detach};
pub(crate) use self::create::{Compress, Create, Protection};
pub(crate) use self::dashboard::Dashboard;
pub(crate) use self::export::{AddExport, Export, NamedExport, RemoveExport, ResizeExport};
pub(crate) use self::format::{Capacity, Format, FormatTarget, Purge, Resize};
pub(crate) use self::groups::{command_line, grouped};
pub(crate) use self::http::HttpArgs;
pub(crate) use self::key::{KeyArgs, key_of};
pub(crate) use self::limits::LimitArgs;
pub(crate) use self::listing::{
    DriveCommand, DriveListing, Import, Listing, ListingCommand, NewDrive,
};
pub(crate) use self::locate::{Locate, Switch};
pub(crate) use self::maintenance::{
    AddSpare, Check, FailDie, Fault, Inject, Recover, Rekey, RemoveSpare, ReplaceDie, Scrub,
};
pub(crate) use self::monitor::MonitorArgs;
use self::ordered::{ORDERED_REVIEW, ORDERED_SWEEP};
pub(crate) use self::place::{PlaceArgs, SurroundingsArgs};
pub(crate) use self::real::{ClientArgs, RealArgs};
pub(crate) use self::run::Run;
pub(crate) use self::runs::{Atlas, Compare, Runs, RunsCommand};
pub(crate) use self::serve::{Serve, Timing, TimingArgs};
pub(crate) use self::trace::{Recording, TraceCommand, TraceImport, TraceMake, TraceShow};
pub(crate) use self::volume::Volume;
use crate::quantity;

/// Measure, model and serve flash drives: the enterprise SSD test lab in one command.
#[derive(Debug, Parser)]
#[command(name = "floatgate", version, propagate_version = true, max_term_width = 80)]
#[command(after_help = "\
Examples:
  floatgate review iodrive-duo                    review a modelled drive
  floatgate review ./disk.img --protocol quick    review a real file through fio
  floatgate compare RUN RUN --out side-by-side.html
  floatgate run                                   run one workload, print the result at once")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Subcommands of `floatgate`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole test protocol on a drive and write the review
    #[command(after_help = "\
Examples:
  floatgate review iodrive-duo
  floatgate review iodrive-duo --format stock --full-scale
  floatgate review iodrive-duo --host all
  floatgate review ./my-drive.toml
  floatgate review /dev/disk/by-id/nvme-EXAMPLE --protocol quick --destroy
  floatgate review /dev/nvme1n1,/dev/nvme2n1 --protocol enterprise-2021 --destroy
  floatgate review nbd://localhost/name --protocol quick --destroy
  floatgate review --resume 2026-11-21T101503Z-iodrive-duo-stock")]
    Review(Review),
    /// Run one workload on one drive and print the result
    #[command(after_help = "\
Examples:
  floatgate run
  floatgate run iodrive-duo 4k-rand-write --threads 16 --queue 16 --runtime 60s
  floatgate run iodrive-duo 8k-70-30 --precondition 6h --format high-performance
  floatgate run iodrive-duo 4k-rand-read --rate 50k
  floatgate run ./disk.img 4k-rand-read --size 4G --out runs")]
    Run(Run),
    /// List runs; show, delete, export or import them
    #[command(after_help = "\
Examples:
  floatgate runs
  floatgate runs show 2026-11-21T101503Z-iodrive-duo-stock
  floatgate runs delete 2026-11-21T101503Z-disk --yes
  floatgate runs export 2026-11-21T101503Z-disk --out data
  floatgate runs import output.json --title 'Lab drive 7'")]
    Runs(Runs),
    /// Compare runs side by side in one review
    #[command(after_help = "\
Figures of --fail-if are iops, mb_s, mean, p50, p90, p99, p99.9, p99.99 and max.

Examples:
  floatgate compare 2026-11-21T101503Z-iodrive-duo-stock 2026-11-21T101503Z-iodrive-duo-high
  floatgate compare runs/first runs/second --out compared.html
  floatgate compare runs/before runs/after --fail-if 'p99>+10%' --fail-if 'iops<-5%'")]
    Compare(Compare),
    /// Build pages of all drives, to sort, filter and compare
    #[command(after_help = "\
The folder works offline: open its index.html in a browser.

Examples:
  floatgate atlas
  floatgate atlas --out pages --runs-only
  floatgate atlas --price px600-2600=12000USD@2014-06")]
    Atlas(Atlas),
    /// Show the steps of a review without running them
    #[command(after_help = "\
Examples:
  floatgate plan iodrive-duo
  floatgate plan ./disk.img --protocol quick --json")]
    Plan(Plan),
    /// List the modelled drives, show one, or make one from a data sheet
    #[command(after_help = "\
Examples:
  floatgate drives
  floatgate drives iodrive-duo --json
  floatgate drives --csv --where 'user_gb>3000 and interface=u.2'
  floatgate drives iodrive-duo --toml > my-drive.toml
  floatgate drives new --like generic-tlc-gen4 --datasheet figures.csv > my-drive.toml")]
    Drives(DriveListing),
    /// List workloads, show one, or import a job file of fio
    #[command(after_help = "\
A workload is found by the path of its file, or by its name: in ./workloads, in
~/.config/floatgate/workloads, then among those that are built in.

Examples:
  floatgate workloads
  floatgate workloads show file-server
  floatgate workloads show file-server --toml > mine.toml
  floatgate workloads import job.fio")]
    Workloads(Listing),
    /// List protocols, show one, or import a job file of fio
    #[command(after_help = "\
A protocol is found by the path of its file, or by its name: in ./protocols, in
~/.config/floatgate/protocols, then among those that are built in.

Examples:
  floatgate protocols
  floatgate protocols show quick
  floatgate protocols show quick --toml > mine.toml
  floatgate protocols import job.fio")]
    Protocols(Listing),
    /// Compare the models with published figures, row by row
    #[command(after_help = "\
Exit status is 0 only if every comparable row is in tolerance; with --rankings
if enough statements hold or tie; with --cross if all families were predicted,
whatever the error.

Examples:
  floatgate validate
  floatgate validate --rankings --at-least 75
  floatgate validate --cross p5800x-pair
  floatgate validate iodrive-duo --figures figures.csv --json")]
    Validate(Validate),
    /// Measure a drive at every point of a grid of parameters
    #[command(after_help = "\
Values are a list, `16,64`, or a range: `400G..720G` for five numbers evenly apart,
`400G..720G:40G` for one every 40 GB, `400G..720G/9` for nine. Several options make a grid.

Examples:
  floatgate sweep iodrive-duo --user-capacity 400G..720G
  floatgate sweep iodrive-duo --user-capacity 512G,640G --set relocation.victim=greedy,fifo
  floatgate sweep iodrive-duo --read-percent 0..90:10 --workload 8k-70-30
  floatgate sweep --resume 2026-11-21T101503Z-iodrive-duo-sweep")]
    Sweep(Sweep),
    /// Fit free parameters of a drive to published or measured figures
    #[command(after_help = "\
The free parameters are those of the file's [[fit]] tables and of --free. Ctrl-C ends the search and
keeps the best result.

Examples:
  floatgate fit my-drive.toml --figures figures.csv
  floatgate fit my-drive.toml --figures figures.csv --free controller.relocate_us=10..40
  floatgate fit my-drive.toml --run runs/2026-11-21T101503Z-nvme0n1 --out twin.toml")]
    Fit(Fit),
    /// Create, serve and maintain volumes
    #[command(subcommand)]
    Volume(Volume),
    /// The commands of `floatgate volume` under the names of earlier versions, hidden.
    #[command(flatten)]
    FormerVolume(Volume),
    /// Serve a web page of volumes and of runs, until Ctrl-C
    #[command(after_help = "\
Volumes may appear and disappear; each has its own page, linked from the first one. In a terminal,
the printed address contains the token that is required to change anything.

Examples:
  floatgate dashboard /var/lib/floatgate
  floatgate dashboard volume-a volume-b --http 127.0.0.1:8481
  floatgate dashboard --runs runs")]
    Dashboard(Dashboard),
    /// Record and replay applications; make, import and summarize traces
    #[command(
        subcommand,
        after_help = "\
Traces that are read: fio iologs (version 2 and 3), blkparse text, MSR Cambridge
CSV, SYSTOR '17 CSV, SPC traces.

Examples:
  floatgate trace make mail.iolog
  floatgate trace show mail.iolog
  floatgate trace import blkparse.txt --output pgbench.txt --out oltp.rec
  floatgate run iodrive-duo --trace mail.iolog --threads 1 --queue 48
  floatgate review iodrive-duo --protocol mail-server --trace exchange.csv"
    )]
    Trace(TraceCommand),
    /// The commands of `floatgate trace` under the names of earlier versions, hidden.
    #[command(flatten)]
    FormerRecording(Recording),
    /// Measure a database on a drive, or predict it from recordings
    #[command(after_help = "\
A folder must be on a mounted file system. A volume is mounted during the measurement, and --out
records its I/O. Modelled drives are predicted from such recordings, or from the built-in ones.

Examples:
  floatgate app
  floatgate app sysbench-oltp px600-2600 p5800x
  floatgate app sysbench-oltp /mnt/nvme
  floatgate app sysbench-oltp volume --mkfs --threads 1,4,8 --out recordings
  floatgate app sysbench-oltp --memory 4g --timing model --model iodrive-duo --out recordings
  floatgate app sysbench-oltp px600-2600 p5800x --recordings recordings")]
    App(App),
    /// Check this machine for what measuring real drives needs
    Doctor(Doctor),
    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  floatgate completions bash > ~/.local/share/bash-completion/completions/floatgate")]
    Completions {
        /// Shell to complete in
        shell: Shell,
    },
    /// Write a manual page for each command
    #[command(
        after_help = "\
Examples:
  floatgate man ~/.local/share/man/man1",
        hide = true
    )]
    Man(Man),
}

/// Help of `--host` where a command takes several hosts.
const HOSTS: &str = "Host driver, platform, or `all` drivers [default: the drive's first]";

/// Setup of a modelled drive.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Host of the model: a driver of the drive's file, or a platform as `floatgate drives NAME`
    /// lists them [default: the file's first]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Simulate 1/K of the capacity for 1/K of the time [default: the drive's own]
    #[arg(long, value_name = "K", value_parser = quantity::within(1..=u32::MAX))]
    pub(crate) time_lapse: Option<u32>,
    /// Simulate the whole capacity for the whole time
    #[arg(long, conflicts_with = "time_lapse")]
    pub(crate) full_scale: bool,
    /// Seed of every random stream: the same seed gives the same figures
    #[arg(long, default_value_t = 1, value_parser = quantity::whole::<u64>)]
    pub(crate) seed: u64,
}

/// Sampling of a model.
#[derive(Clone, Debug, Args)]
pub(crate) struct SamplingArgs {
    /// Simulate a model in detail only in windows, so many that the rate is known to ±PERCENT, such
    /// as 1%; loads that cannot be sampled are simulated in detail [default: all in detail]
    #[arg(long, value_name = "PERCENT", value_parser = quantity::percent)]
    pub(crate) precision: Option<f64>,
}

/// Data that a workload writes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArgs {
    /// Compressibility of the data in percent, instead of the workload's own: 50 is 2:1
    #[arg(long, value_name = "PERCENT", value_parser = quantity::percent)]
    pub(crate) compressible: Option<f64>,
}

/// Trace for protocols that replay one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct TraceArgs {
    /// Trace to replay instead of the protocol's synthetic trace
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

/// `floatgate review`.
#[derive(Debug, Args)]
#[command(mut_arg("host", |host| host.help(HOSTS)))]
pub(crate) struct Review {
    /// Catalogue name, drive file, file, block devices (a,b), or NBD address
    #[arg(required_unless_present = "resume")]
    pub(crate) target: Option<String>,
    /// Protocol to run: a name, or a protocol file
    #[arg(long, default_value = "enterprise", value_name = "NAME")]
    pub(crate) protocol: String,
    /// Format of a modelled drive, or `all`
    #[arg(long, default_value = "all", value_name = "NAME")]
    pub(crate) format: String,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Precondition for exactly this long in each suite, such as 96h [default: as the protocol has
    /// it]
    #[arg(long, value_parser = quantity::span, value_name = "TIME", conflicts_with = "read_only")]
    pub(crate) precondition: Option<Duration>,
    /// Folder for the runs and the review
    #[arg(long, default_value = "runs", value_name = "DIR", help_heading = "Results")]
    pub(crate) out: PathBuf,
    /// Continue an interrupted run; may be repeated for each format
    #[arg(long, value_name = "RUN", conflicts_with_all = ORDERED_REVIEW, help_heading = "Results")]
    pub(crate) resume: Vec<String>,
    /// Repeat the whole protocol this many times as runs of their own, for confidence intervals of
    /// ratios; models get a new seed each time [default: one run; models that take less than a
    /// minute are measured with 3 seeds, for intervals beside its figures]
    #[arg(long, value_name = "N",
        value_parser = quantity::within(1..=99_u32), conflicts_with = "resume",
        help_heading = "Results")]
    pub(crate) repeat: Option<u32>,
    /// Write verdict and sheet on one page of A4, too, beside the review
    #[arg(long, help_heading = "Results")]
    pub(crate) one_page: bool,
    /// Exit with status 3 if a preconditioning or rounds did not reach steady state
    #[arg(long, help_heading = "Results")]
    pub(crate) require_steady: bool,
    /// Print the runs as JSON instead of the path of the review
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) real: RealArgs,
    #[command(flatten)]
    pub(crate) clients: ClientArgs,
    /// Suites to simulate in parallel [default: number of processors]
    #[arg(long, value_name = "N", help_heading = "Model")]
    #[arg(value_parser = quantity::within(1..=4096_usize))]
    pub(crate) jobs: Option<usize>,
}

/// `floatgate plan`.
#[derive(Debug, Args)]
#[command(mut_arg("host", |host| host.help(HOSTS)))]
pub(crate) struct Plan {
    /// Catalogue name, drive file, file, block devices (a,b), or NBD address
    pub(crate) target: String,
    /// Protocol to plan: a name, or a protocol file
    #[arg(long, default_value = "enterprise", value_name = "NAME")]
    pub(crate) protocol: String,
    /// Format of a modelled drive, or `all`
    #[arg(long, default_value = "all", value_name = "NAME")]
    pub(crate) format: String,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Precondition for exactly this long in each suite, such as 96h [default: as the protocol has
    /// it]
    #[arg(long, value_parser = quantity::span, value_name = "TIME")]
    pub(crate) precondition: Option<Duration>,
    #[command(flatten)]
    pub(crate) clients: ClientArgs,
    /// Print the plan as JSON
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
}

/// `floatgate validate`.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Catalogue names or drive files [default: all drives with published figures]
    pub(crate) drives: Vec<String>,
    /// Published figures, in the columns of published/figures.csv [default: the built-in figures]
    #[arg(long, value_name = "FILE")]
    pub(crate) figures: Option<PathBuf>,
    /// Cross-validate: leave out one family of loads at a time, fit to the others, and predict
    /// it
    #[arg(long)]
    pub(crate) cross: bool,
    /// Use the rows that an earlier --json printed for the same drive files; simulate nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Judge statements on order and ratios instead of figures, in the columns of
    /// published/rankings.csv [default: the built-in statements]
    #[arg(long, value_name = "FILE", num_args = 0..=1,
        conflicts_with_all = ["figures", "cross", "from"])]
    #[expect(clippy::option_option, reason = "the file may be left out")]
    pub(crate) rankings: Option<Option<PathBuf>>,
    /// Percentage of the statements that must hold or tie
    #[arg(long, value_name = "PERCENT", default_value_t = 80.0, requires = "rankings",
        value_parser = quantity::percent)]
    pub(crate) at_least: f64,
    /// Print the rows as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Simulations to run in parallel [default: number of processors]
    #[arg(long, value_name = "N", value_parser = quantity::within(1..=4096_usize))]
    pub(crate) jobs: Option<usize>,
}

/// `floatgate sweep`.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// Catalogue name or drive file
    #[arg(required_unless_present = "resume")]
    pub(crate) target: Option<String>,
    /// User capacities of the format, such as 400G..720G
    #[arg(long, value_name = "VALUES", help_heading = "Swept parameters")]
    pub(crate) user_capacity: Option<String>,
    /// Numbers of threads (fio jobs) [default: 16]
    #[arg(long, value_name = "VALUES", help_heading = "Swept parameters")]
    pub(crate) threads: Option<String>,
    /// Queue depths of each thread [default: 16]
    #[arg(long, value_name = "VALUES", help_heading = "Swept parameters")]
    pub(crate) queue: Option<String>,
    /// Percentages of reads, 0 to 100
    #[arg(long, value_name = "VALUES", help_heading = "Swept parameters")]
    pub(crate) read_percent: Option<String>,
    /// Compressibilities of the data in percent: 50 is 2:1
    #[arg(long, value_name = "VALUES", help_heading = "Swept parameters")]
    pub(crate) compressible: Option<String>,
    /// Values of a key of the drive's file; may be repeated for other keys
    ///
    /// Such as `nand.t_erase_us=2000..5000`, `relocation.victim=greedy,fifo`,
    /// `geometry.stripe_dies=0,5,25`, `nand.t_program_us.1=1800,2400`, `host.linux.submit_us=1..8`.
    #[arg(long, value_name = "KEY=VALUES", help_heading = "Swept parameters")]
    pub(crate) set: Vec<String>,
    /// Workload to run: a name, or a workload file
    #[arg(long, default_value = "4k-rand-write", value_name = "NAME")]
    pub(crate) workload: String,
    /// Format of the drive [default: its first]
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// Measure each point with so many seeds, for intervals beside the figures, which are those of
    /// the first seed [default: 3 for sweeps that take less than a minute, else 1]
    #[arg(long, value_name = "N", help_heading = "Results",
        value_parser = quantity::within(1..=99_u32))]
    pub(crate) repeat: Option<u32>,
    /// Load in decimal GB per day, for which the lifetime in years is reported
    #[arg(long, value_name = "GB", value_parser = quantity::amount)]
    pub(crate) load_gb_per_day: Option<f64>,
    /// Price of the drive with its currency and date, such as 12000USD@2014-06, which the page
    /// divides by capacity, rate and lifetime
    #[arg(long, value_name = "PRICE")]
    pub(crate) price: Option<Price>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Folder for the results
    #[arg(long, default_value = "runs", value_name = "DIR", help_heading = "Results")]
    pub(crate) out: PathBuf,
    /// Continue an interrupted sweep
    #[arg(long, value_name = "SWEEP", conflicts_with_all = ORDERED_SWEEP, help_heading = "Results")]
    pub(crate) resume: Option<String>,
    /// Exit with status 3 if a point did not reach steady state
    #[arg(long, help_heading = "Results")]
    pub(crate) require_steady: bool,
    /// Print the sweep as JSON
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
    /// Points to simulate in parallel [default: number of processors]
    #[arg(long, value_name = "N", help_heading = "Model")]
    #[arg(value_parser = quantity::within(1..=4096_usize))]
    pub(crate) jobs: Option<usize>,
    /// Measure the points on a Ray cluster: HOST:PORT, auto, or local for one on this machine
    ///
    /// Runs python3 as the driver, which must have the packages floatgate and ray.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jobs", help_heading = "Model")]
    pub(crate) ray: Option<String>,
}

/// `floatgate fit`.
#[derive(Debug, Args)]
pub(crate) struct Fit {
    /// The drive's file
    #[arg(value_name = "DRIVE.TOML")]
    pub(crate) drive: PathBuf,
    /// Published figures, in the columns of published/figures.csv [default: the built-in figures]
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub(crate) figures: Option<PathBuf>,
    /// Run to fit to instead: path, name, or beginning of its name
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Folder that holds the runs
    #[arg(long, default_value = "runs", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Additional free parameter, by its key [default bounds: half and double]
    #[arg(long, value_name = "PATH[=LOW..HIGH]", value_parser = free_number)]
    pub(crate) free: Vec<Free>,
    /// Fit to the figures of this format only, and predict those of the others
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// Parameter sets that the global search tries; 0: local search only, from the file's values
    #[arg(long, default_value_t = 400, value_name = "N", value_parser = quantity::whole::<usize>)]
    pub(crate) search: usize,
    /// Seed of the search: the same seed gives the same result
    #[arg(long, default_value_t = 1, value_parser = quantity::whole::<u64>)]
    pub(crate) seed: u64,
    /// File for the fitted drive [default: DRIVE-fitted.toml beside the file]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print the fit as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Simulations to run in parallel [default: number of processors]
    #[arg(long, value_name = "N", value_parser = quantity::within(1..=4096_usize))]
    pub(crate) jobs: Option<usize>,
}

/// `controller.relocate_us`, or `controller.relocate_us=10..40`.
fn free_number(text: &str) -> Result<Free, String> {
    let Some((path, bounds)) = text.split_once('=') else {
        return Ok(Free { path: text.to_owned(), bounds: None });
    };
    let ends = bounds.split_once("..").and_then(|(low, high)| {
        Some((low.trim().parse::<f64>().ok()?, high.trim().parse::<f64>().ok()?))
    });
    match ends {
        Some((low, high)) if low < high => {
            Ok(Free { path: path.to_owned(), bounds: Some((low, high)) })
        }
        _ => Err(format!("bounds `{bounds}` are not two numbers, the lower first, such as 10..40")),
    }
}

/// `floatgate volume status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Folder of the volume [default: the current one]
    #[arg(default_value = ".", hide_default_value = true)]
    pub(crate) volume: PathBuf,
    /// Also show dies, superblocks, writes by cause, and latencies
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print the whole status as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `floatgate volume top`.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Folder of a served volume
    pub(crate) volume: PathBuf,
    /// Time between screens
    #[arg(long, default_value = "1s", value_parser = quantity::span, value_name = "TIME")]
    pub(crate) interval: Duration,
    /// Print one screen and exit
    #[arg(long)]
    pub(crate) once: bool,
}

/// `floatgate man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder for the pages; created if missing
    pub(crate) dir: PathBuf,
}

/// `floatgate doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Folder for runs, whose space is checked
    #[arg(long, default_value = "runs", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Restore the settings that a killed run with --tune left behind
    #[arg(long)]
    pub(crate) revert: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
