//! `floatgate man`: a manual page for each command.

use std::fs;

use anyhow::{Context as _, Result};

use crate::args::{Man, command_line};
use crate::{Ending, output};

/// Writes the pages into a folder, which is made.
pub(crate) fn man(args: &Man) -> Result<Ending> {
    let shown = args.dir.display();
    fs::create_dir_all(&args.dir).with_context(|| format!("making the folder {shown}"))?;
    clap_mangen::generate_to(command_line(), &args.dir)
        .with_context(|| format!("writing manual pages to {shown}"))?;
    output::talk(&format!("manual pages are in {shown}"));
    Ok(Ending::Done)
}
