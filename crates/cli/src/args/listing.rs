//! Arguments of `floatgate drives`, `floatgate workloads` and `floatgate protocols`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `floatgate drives`.
#[derive(Debug, Args)]
pub(crate) struct DriveListing {
    /// Name of one to show
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print its TOML file, as a template for your own
    #[arg(long, requires = "name", conflicts_with = "json")]
    pub(crate) toml: bool,
    /// Print its published figures as CSV, in the format of `fit` and `validate`
    #[arg(long, requires = "name", conflicts_with_all = ["json", "toml"])]
    pub(crate) figures: bool,
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
