//! The project's own tasks: `cargo xtask <task>`.

#![expect(clippy::print_stdout, reason = "a tool of the workspace talks to who runs it")]

mod applications;
mod baseline;
mod bench;
mod dist;
mod files;
mod guest;
mod program;
mod python;
mod rustc;
mod site;
mod suite;
mod test;
mod validate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own tasks")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Installs what the tests need where it may, then checks form and lints and runs every test
    Test,
    /// Tests the Python package, in a virtual environment below the target folder
    Python,
    /// Builds the wheel of the Python package, in release
    Wheel,
    /// Builds the packages of a release: archive, .deb, container image, wheel, licences and SBOM
    Dist {
        /// Installs and runs the packages of the last build, each in a clean root
        #[arg(long, conflicts_with = "again")]
        check: bool,
        /// Builds everything twice, the second time in another folder, and compares byte by byte
        #[arg(long)]
        again: bool,
        /// Packs the debug build of the command, and checks the .deb and the crates; takes seconds
        #[arg(long, conflicts_with_all = ["again", "check"])]
        debug: bool,
        /// Packs the binary and the wheel of the last build, without compiling
        #[arg(long, conflicts_with = "check")]
        keep_compiled: bool,
    },
    /// Builds the site: documents, gallery of reviews, API of Rust and Python; takes minutes
    Site {
        /// Protocol of the reviews in the gallery
        #[arg(long, default_value = "enterprise")]
        protocol: String,
        /// Largest time lapse of the reviews [default: that of each drive]
        #[arg(long, value_name = "K")]
        time_lapse: Option<u32>,
        /// Makes only the reviews that the last build lacks
        #[arg(long)]
        keep_reviews: bool,
        /// Builds the pages of the documents alone, and checks their links
        #[arg(long, conflicts_with = "browse")]
        documents: bool,
        /// Opens pages in a browser at three widths, and takes screenshots
        #[arg(long)]
        browse: bool,
        /// Program to review with [default: the one of this workspace, built for release]
        #[arg(long, value_name = "PATH")]
        floatgate: Option<PathBuf>,
    },
    /// Measures speed and memory of the model, and overheads of the tools, in release
    Bench {
        /// Beginning of the names of the cases to run
        #[arg(default_value = "")]
        case: String,
        /// Prints a line of JSON for each case
        #[arg(long)]
        json: bool,
    },
    /// Measures served drives beside other NBD servers, through fio
    BenchNbd {
        /// Rounds over all servers and loads, of which the medians count
        #[arg(long, default_value_t = 3)]
        rounds: u32,
        /// Length of each load in seconds
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
        /// Runs servers and clients at real-time priority
        #[arg(long)]
        realtime: bool,
        /// Prints a line of JSON for each server and load
        #[arg(long)]
        json: bool,
    },
    /// Compares the models with published figures, and writes the documents; takes minutes
    Validate {
        /// Output of `floatgate validate --json` for all drives, instead of a simulation
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Predicts each family of published figures from the others, for the named drives or all that
    /// have free parameters, and writes the errors into the documents; takes minutes
    CrossValidate {
        /// Drives of the catalogue
        drives: Vec<String>,
        /// Output of `floatgate validate --cross --json`, instead of a simulation
        #[arg(long, value_name = "FILE", conflicts_with = "drives")]
        from: Option<PathBuf>,
    },
    /// Simulates the named drives, or all of the catalogue, for the comparison in reviews; large
    /// drives take minutes each
    Baseline {
        /// Drives of the catalogue
        drives: Vec<String>,
    },
    /// Compares predictions of applications with measurements on emulated drives; takes minutes
    Applications {
        /// Numbers of concurrent clients
        #[arg(long, default_value = "1,4,8")]
        threads: String,
        /// Measurements of each application on each drive, whose medians count
        #[arg(long, default_value_t = 3)]
        repeats: u32,
        /// Runs databases and their clients at real-time priority
        #[arg(long)]
        realtime: bool,
        /// Folder for measurements; those that it already has are reused
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
        /// Measures nothing, and renews the section on published transactions
        #[arg(long)]
        published: bool,
        /// Renews the section on models beneath a real database alone
        #[arg(long, conflicts_with = "published")]
        models: bool,
        /// Program to measure with [default: the one of this workspace, built for release]
        #[arg(long, value_name = "PATH")]
        floatgate: Option<PathBuf>,
    },
    /// Compares a review of a served model in an emulated machine, over NVMe/TCP, with one of the
    /// model itself, by the quick protocol; takes ten minutes
    GuestReview,
    /// Runs nvme-cli's own tests on a served drive in an emulated machine; takes four minutes
    GuestNvmeCli,
    /// Measures the processor time of a request over ublk and over kernel NBD in an emulated
    /// machine whose clock counts instructions; takes minutes
    GuestSpeed,
    /// Executes docs/notebooks and writes the outputs into them; takes minutes
    Notebooks,
    /// Crashes live drives, in simulation, and says which seed broke a promise
    Sim {
        /// Minutes to go on for
        #[arg(long, default_value_t = 1)]
        minutes: u64,
        /// The first seed; with 0 minutes the only one
        #[arg(long, default_value_t = 1_000_000)]
        seed: u64,
    },
    /// Measures the catalogue in this process
    #[command(hide = true)]
    BaselineHere {
        /// Drives of the catalogue
        drives: Vec<String>,
    },
    /// Validates in this process
    #[command(hide = true)]
    ValidateHere,
    /// Cross-validates in this process
    #[command(hide = true)]
    CrossValidateHere {
        /// Drives of the catalogue
        drives: Vec<String>,
    },
    /// Measures one case in this process
    #[command(hide = true)]
    BenchCase {
        /// Its name
        name: String,
        /// Prints JSON; the cases of the model print nothing else
        #[arg(long)]
        json: bool,
    },
}

fn main() -> Result<ExitCode> {
    if let Some(compiled) = rustc::run() {
        return Ok(compiled);
    }
    run(Args::parse().task)?;
    Ok(ExitCode::SUCCESS)
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Test => test::run_all(),
        Task::Python => {
            program::run("cargo", &["build", "--quiet", "--package", "cli"], &[])?;
            python::test()
        }
        Task::Wheel => python::wheel(),
        Task::GuestReview => guest::review(),
        Task::GuestNvmeCli => guest::nvme_cli(),
        Task::GuestSpeed => guest::speed(),
        Task::Notebooks => python::notebooks(),
        Task::Dist { debug: true, .. } => dist::check_quickly(),
        Task::Dist { check, again, keep_compiled, .. } => {
            dist::run(dist::Options { check, again, keep_compiled })
        }
        Task::Site { documents: true, .. } => site::check_quickly(),
        Task::Site { protocol, time_lapse, keep_reviews, browse, floatgate, .. } => {
            let (protocol, floatgate) = (protocol.as_str(), floatgate.as_deref());
            let options = site::Options { protocol, time_lapse, keep_reviews, floatgate, browse };
            site::build(options)
        }
        Task::Sim { minutes, seed } => {
            let (minutes, seed) = (minutes.to_string(), seed.to_string());
            let example =
                ["run", "--quiet", "--release", "-p", "live", "--example", "simulate", "--"];
            let numbers = [minutes.as_str(), seed.as_str()];
            program::run("cargo", &[&example[..], &numbers[..]].concat(), &[])
        }
        Task::Applications { threads, repeats, realtime, keep, published, models, floatgate } => {
            let options = applications::Options {
                threads: &threads,
                repeats,
                is_realtime: realtime,
                floatgate: floatgate.as_deref(),
                keep: keep.as_deref(),
            };
            if published {
                return applications::renew_published(options);
            }
            if models {
                return applications::renew_models(options);
            }
            applications::run_all(options)
        }
        Task::Validate { from: Some(file) } => validate::run(Some(&file)),
        Task::Validate { from: None } => in_release("validate-here", &[]),
        Task::CrossValidate { from: Some(file), .. } => validate::cross::take_from(&file),
        Task::CrossValidate { drives, from: None } => in_release("cross-validate-here", &drives),
        Task::CrossValidateHere { drives } => validate::cross::run(&drives),
        Task::Baseline { drives } => in_release("baseline-here", &drives),
        Task::BaselineHere { drives } => baseline::run(&drives),
        Task::ValidateHere => validate::run(None),
        Task::Bench { case, json } => bench::run_all(&case, json),
        Task::BenchNbd { rounds, seconds, realtime: is_realtime, json } => {
            bench::nbd::run_all(bench::nbd::Options { rounds, seconds, is_realtime, json })
        }
        Task::BenchCase { name, json } => bench::run_case(&name, json),
    }
}

/// Runs one of these tasks again, with its `arguments`, compiled for speed.
fn in_release(task: &str, arguments: &[String]) -> Result<()> {
    let cargo = ["run", "--quiet", "--release", "--package", "xtask", "--", task];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    program::run("cargo", &[&cargo[..], &arguments].concat(), &[])
}

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the root")
}

/// The folder that cargo builds into.
fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(target.unwrap_or_else(|| PathBuf::from("target")))
}
