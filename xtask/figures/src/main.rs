//! The figures of the documents: what `cargo xtask bench`, `validate` and the like carry out,
//! compiled for speed.

#![expect(clippy::print_stdout, reason = "a tool of the workspace talks to who runs it")]

mod applications;
mod atlas;
mod baseline;
mod bench;
mod validate;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The figures of the documents")]
struct Args {
    #[command(subcommand)]
    figures: Figures,
}

#[derive(Subcommand)]
enum Figures {
    /// Measures speed and memory of the model, and overheads of the tools
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
        /// Measures what acknowledged writes cost by what they survive, instead of other servers
        #[arg(long)]
        promises: bool,
        /// Folder of the volumes [default: bench-nbd in the target folder]
        #[arg(long, value_name = "PATH")]
        folder: Option<PathBuf>,
        /// Runs servers and clients at real-time priority
        #[arg(long)]
        realtime: bool,
        /// Prints a line of JSON for each server and load
        #[arg(long)]
        json: bool,
    },
    /// Compares the models with published figures, and writes the documents; takes minutes
    Validate {
        /// Output of `floatgate validate --rankings --json`, instead of a simulation
        #[arg(long, value_name = "FILE")]
        rankings_from: Option<PathBuf>,
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
    /// Reviews every drive of the catalogue, and makes the atlas of the site
    Atlas(atlas::Options),
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

fn main() -> Result<()> {
    match Args::parse().figures {
        Figures::Applications {
            threads,
            repeats,
            realtime,
            keep,
            published,
            models,
            floatgate,
        } => {
            let options = applications::Options {
                threads: &threads,
                repeats,
                is_realtime: realtime,
                floatgate: floatgate.as_deref(),
                keep: keep.as_deref(),
            };
            match (published, models) {
                (true, _) => applications::renew_published(options),
                (_, true) => applications::renew_models(options),
                _ => applications::run_all(options),
            }
        }
        Figures::Validate { from, rankings_from } => {
            validate::run(from.as_deref(), rankings_from.as_deref())
        }
        Figures::CrossValidate { from: Some(file), .. } => validate::cross::take_from(&file),
        Figures::CrossValidate { drives, from: None } => validate::cross::run(&drives),
        Figures::Baseline { drives } => baseline::run(&drives),
        Figures::Atlas(options) => atlas::provide(&options),
        Figures::Bench { case, json } => bench::run_all(&case, json),
        Figures::BenchNbd { rounds, seconds, promises, folder, realtime, json } => {
            let (of_promises, is_realtime) = (promises, realtime);
            let options = bench::nbd::Options { rounds, seconds, of_promises, is_realtime, json };
            bench::nbd::run_all(options, folder.as_deref())
        }
        Figures::BenchCase { name, json } => bench::run_case(&name, json),
    }
}
