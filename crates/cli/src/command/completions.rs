//! `floatgate completions`: what a shell needs to complete the command line.

use anyhow::Result;
use clap_complete::Shell;

use crate::args::command_line;
use crate::{Ending, output};

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<Ending> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line(), "floatgate", &mut script);
    output::bytes(&script)?;
    Ok(Ending::Done)
}
