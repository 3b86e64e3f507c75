//! Arguments of `floatgate drives`, `floatgate workloads` and `floatgate protocols`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::drive_query::Query;

/// `floatgate drives`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DriveListing {
    #[command(subcommand)]
    pub(crate) command: Option<DriveCommand>,
    /// Name of one to show
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List the drives that meet conditions on columns of --csv: with numbers =, !=, >, >=, < and
    /// <=; of text, = means that it contains the value. What is unknown meets none
    #[arg(long = "where", value_name = "CONDITIONS", conflicts_with = "name")]
    pub(crate) query: Option<Query>,
    /// List the drives as CSV, with what their data sheets state; empty where that is unknown
    #[arg(long, conflicts_with_all = ["name", "json"])]
    pub(crate) csv: bool,
    /// Print its TOML file, as a template for your own
    #[arg(long, requires = "name", conflicts_with = "json")]
    pub(crate) toml: bool,
    /// Print its published figures as CSV, in the format of `fit` and `validate`
    #[arg(long, requires = "name", conflicts_with_all = ["json", "toml"])]
    pub(crate) figures: bool,
}

/// Subcommands of `floatgate drives`.
#[derive(Debug, Subcommand)]
pub(crate) enum DriveCommand {
    /// Make a drive file from the figures of a data sheet and a drive of its class
    #[command(after_help = "\
Figures are rows of one drive, as `floatgate drives NAME --figures` prints them.
What they do not state is that of the other drive, and named on stderr.

Examples:
  floatgate drives samsung-pm9a3-7680 --figures > figures.csv
  floatgate drives new --like generic-tlc-gen4 --datasheet figures.csv > my-drive.toml")]
    New(NewDrive),
}

/// `floatgate drives new`.
#[derive(Debug, Args)]
pub(crate) struct NewDrive {
    /// NAND drive of the catalogue that has what the data sheet does not state
    #[arg(long, value_name = "NAME")]
    pub(crate) like: String,
    /// Figures of the data sheet, in the columns of published/figures.csv
    #[arg(long, value_name = "FILE")]
    pub(crate) datasheet: PathBuf,
    /// Output file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "out")]
    pub(crate) overwrite: bool,
}

/// `floatgate workloads`, `floatgate protocols`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Listing {
    #[command(subcommand)]
    pub(crate) command: Option<ListingCommand>,
    /// Name, or path of a file, of one to show
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Subcommands of `floatgate workloads` and `floatgate protocols`.
#[derive(Debug, Subcommand)]
pub(crate) enum ListingCommand {
    /// List all, with the file that each comes from
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one
    Show {
        /// A name, or the path of a file
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print its TOML file, as a template for your own
        #[arg(long, conflicts_with = "json")]
        toml: bool,
    },
    /// Convert a fio job file, or a vdbench parameter file, to TOML
    Import(Import),
}

/// `floatgate workloads import`, `floatgate protocols import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// fio job file or vdbench parameter file
    pub(crate) file: PathBuf,
    /// Output folder [default: ./workloads or ./protocols, where files are found by name]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) overwrite: bool,
}
