//! Arguments of `floatgate runs`, `floatgate compare` and `floatgate atlas`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab::results::price::Price;

use crate::regression::Limit;

/// `floatgate runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    /// Folder that holds the runs
    #[arg(long, default_value = "runs", value_name = "DIR", global = true)]
    pub(crate) dir: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Subcommands of `floatgate runs`.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List all runs, oldest first
    List,
    /// Show the results of a run, step by step
    Show {
        /// Run: path, name, or beginning of its name
        run: String,
    },
    /// Delete runs with everything in their folders
    Delete {
        /// Runs: names, or the beginnings of names
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// Delete without confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Write the data of all charts as CSV and Parquet, one row per point
    Export {
        /// Runs: paths, names, or the beginnings of names
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// Folder for charts.csv and charts.parquet
        #[arg(long, default_value = ".", value_name = "DIR")]
        out: PathBuf,
        /// Overwrite existing files
        #[arg(long)]
        overwrite: bool,
    },
    /// Import a fio report written with --output-format=json+ (or json), or a flat file of vdbench,
    /// as a run
    Import {
        /// fio report, or flatfile.html of vdbench
        file: PathBuf,
        /// Title in reviews [default: the files or devices that fio used]
        #[arg(long, value_name = "TEXT")]
        title: Option<String>,
    },
}

/// `floatgate compare`.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Runs: paths, names, or the beginnings of names
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Folder that holds the runs
    #[arg(long, default_value = "runs", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// File for the review [default: compare.html, or compare-2.html if that exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "out")]
    pub(crate) overwrite: bool,
    /// Write verdict and sheets on one page of A4, too, beside the review
    #[arg(long, conflicts_with = "json")]
    pub(crate) one_page: bool,
    #[command(flatten)]
    pub(crate) price: PriceArgs,
    /// Exit with status 6 if a later run is beyond a limit, such as 'p99>+10%' or 'iops<-5%', in
    /// percent of the first run; may be repeated
    #[arg(long, value_name = "LIMIT")]
    pub(crate) fail_if: Vec<Limit>,
    /// Print the runs as JSON and write no review
    #[arg(long)]
    pub(crate) json: bool,
}

/// `floatgate atlas`.
#[derive(Debug, Args)]
pub(crate) struct Atlas {
    /// Runs: paths, names, or the beginnings of names [default: every finished one of the folder]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Folder that holds the runs
    #[arg(long, default_value = "runs", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Folder for the pages, which is made
    #[arg(long, default_value = "atlas", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace the atlas that the folder holds
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Leave out the drives of the catalogue that no run is of
    #[arg(long)]
    pub(crate) runs_only: bool,
    #[command(flatten)]
    pub(crate) price: PriceArgs,
}

/// Prices of drives.
#[derive(Debug, Args)]
pub(crate) struct PriceArgs {
    /// Price of a drive with its currency and date, such as px600-2600=12000USD@2014-06; may be
    /// repeated
    #[arg(long = "price", value_name = "DRIVE=PRICE", value_parser = drive_price)]
    pub(crate) prices: Vec<(String, Price)>,
}

/// Reads `px600-2600=12000USD@2014-06`.
fn drive_price(text: &str) -> Result<(String, Price), String> {
    let (drive, price) = text
        .rsplit_once('=')
        .filter(|(drive, _)| !drive.is_empty())
        .ok_or_else(|| format!("`{text}` names no drive, as in px600-2600=12000USD@2014-06"))?;
    Ok((drive.to_owned(), price.parse()?))
}
