//! `floatgate completions`: what a shell needs to complete the command line.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::{Ending, output};

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<Ending> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "floatgate", &mut script);
    output::bytes(&script)?;
    Ok(Ending::Done)
}
