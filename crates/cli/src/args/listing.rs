//! Arguments of `floatgate drives`, `floatgate workloads` and `floatgate protocols`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `floatgate drives`.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The one to show
    pub(crate) name: Option<String>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Prints its file, to begin another one with
    #[arg(long, requires = "name", conflicts_with = "json")]
    pub(crate) toml: bool,
    /// Prints the published figures of it as CSV, as `fit` and `validate` read them
    #[arg(long, requires = "name", conflicts_with_all = ["json", "toml"])]
    pub(crate) figures: bool,
}

/// `floatgate workloads`, `floatgate protocols`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Listing {
    #[command(subcommand)]
    pub(crate) command: Option<ListingCommand>,
    /// The one to show: a name, or the path of a file
    pub(crate) name: Option<String>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Subcommands of `floatgate workloads` and `floatgate protocols`.
#[derive(Debug, Subcommand)]
pub(crate) enum ListingCommand {
    /// Lists all, and where each comes from
    List {
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows one
    Show {
        /// A name, or the path of a file
        name: String,
        /// Prints JSON
        #[arg(long)]
        json: bool,
        /// Prints its file, to begin another one with
        #[arg(long, conflicts_with = "json")]
        toml: bool,
    },
    /// Makes TOML of what a job file of fio asks for
    Import(Import),
}

/// `floatgate workloads import`, `floatgate protocols import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The job file
    pub(crate) file: PathBuf,
    /// Folder for what is made [default: ./workloads or ./protocols, where it is found by name]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replaces files of these names that are there
    #[arg(long)]
    pub(crate) overwrite: bool,
}
