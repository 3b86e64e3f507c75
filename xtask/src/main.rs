//! The project's own tasks: `cargo xtask <task>`.

#![expect(clippy::print_stdout, reason = "a tool of the workspace talks to who runs it")]

mod dist;
mod guest;
mod python;
mod rustc;
mod site;
mod soak;
mod suite;
mod test;
mod test_programs;
mod timings;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::program;

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
    /// Tests the package of Python and the command, with its clients and guests: a part of `test`
    TestClients,
    /// Checks form, lints, unit tests and some seeds of the simulation, in minutes
    Check,
    /// Simulates, fuzzes and flips bits for hours
    Soak {
        /// Minutes of simulation and of fuzzing together; what is exhaustive comes besides
        #[arg(long, default_value_t = 120)]
        minutes: u64,
        /// The first seed [default: one of the time, which is printed]
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Builds the README's first command in an empty folder, and writes what takes how long into
    /// docs/internals/build.md
    Timings,
    /// Runs every test of the workspace, and writes the slowest into docs/internals/build.md
    SlowestTests,
    /// Tests the Python package, in a virtual environment below the target folder
    Python,
    /// Builds the wheel of the Python package, as `dist` does
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
    /// Builds the site: documents, atlas of reviews, API of Rust and Python; takes minutes
    Site {
        /// Protocol of the reviews of the atlas
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
    /// Measures speed and memory of the model, and overheads of the tools
    #[command(disable_help_flag = true)]
    Bench(Figures),
    /// Measures served drives beside other NBD servers, through fio
    #[command(disable_help_flag = true)]
    BenchNbd(Figures),
    /// Compares the models with published figures, and writes the documents; takes an hour
    #[command(disable_help_flag = true)]
    Validate(Figures),
    /// Predicts each family of published figures from the others, and writes the errors into the
    /// documents; takes minutes
    #[command(disable_help_flag = true)]
    CrossValidate(Figures),
    /// Simulates drives for the comparison in reviews; large drives take minutes each
    #[command(disable_help_flag = true)]
    Baseline(Figures),
    /// Compares predictions of applications with measurements on emulated drives; takes minutes
    #[command(disable_help_flag = true)]
    Applications(Figures),
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
}

/// Arguments that the package `figures` takes; `--help` lists them.
#[derive(clap::Args)]
struct Figures {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
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
        Task::TestClients => test::test_clients(),
        Task::Python => {
            program::run("cargo", &["build", "--quiet", "--package", "cli"], &[])?;
            python::test()
        }
        Task::Wheel => dist::wheel(),
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
        Task::Check => test::check(),
        Task::SlowestTests => test::write_slowest(),
        Task::Timings => timings::measure(),
        Task::Sim { minutes, seed } => soak::simulate(minutes, seed, None),
        Task::Soak { minutes, seed } => soak::run_for(minutes, seed),
        Task::Applications(more) => figures("applications", &more.arguments),
        Task::Baseline(more) => figures("baseline", &more.arguments),
        Task::Bench(more) => figures("bench", &more.arguments),
        Task::BenchNbd(more) => figures("bench-nbd", &more.arguments),
        Task::CrossValidate(more) => figures("cross-validate", &more.arguments),
        Task::Validate(more) => figures("validate", &more.arguments),
    }
}

/// Carries out a task of the package `figures`, compiled for speed.
fn figures(task: &str, arguments: &[String]) -> Result<()> {
    let cargo = ["run", "--quiet", "--release", "--package", "figures", "--", task];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    program::run("cargo", &[&cargo[..], &arguments].concat(), &[])
}
