//! Options for alerts when the health of a drive changes.

use std::path::PathBuf;

use clap::Args;

/// Options for alerts of `floatgate volume serve`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Monitor")]
pub(crate) struct MonitorArgs {
    /// Program to run at each change of health, with event, volume ID and detail as arguments
    #[arg(long = "monitor-program", value_name = "PATH", conflicts_with = "memory")]
    pub(crate) program: Option<PathBuf>,
    /// Mail address to notify at each change of health, through sendmail
    #[arg(long = "monitor-mail", value_name = "ADDRESS", conflicts_with = "memory")]
    pub(crate) mail: Option<String>,
    /// Send a test event when the server starts
    #[arg(long = "monitor-test", conflicts_with = "memory")]
    pub(crate) is_test: bool,
}
