//! `floatgate volume rekey`: another passphrase or key for an encrypted volume.

use anyhow::{Context as _, Result};
use live::{key_of_command, key_of_file};

use crate::args::Rekey;
use crate::{Ending, output};

/// Has another key unlock the volume.
pub(crate) fn rekey(args: &Rekey) -> Result<Ending> {
    let shown = args.volume.display();
    let attempted = || format!("giving {shown} another key");
    let file = args.new_key_file.as_deref().map(key_of_file);
    let new = file.or_else(|| args.new_key_command.as_deref().map(key_of_command));
    let new = new.context("no new key was named")?.with_context(attempted)?;
    let drive = args.key.open(&args.volume)?;
    let rekeyed = drive.rekey(&new);
    let lost = drive.lost_dies();
    drive.close().with_context(|| format!("closing {shown}"))?;
    rekeyed.with_context(attempted)?;
    if !lost.is_empty() {
        let text = "warning: dies that are missing or have failed keep headers that the former key \
                    unlocks";
        output::talk(text);
    }
    output::talk(&format!("{shown}: opens with the new key alone"));
    Ok(Ending::Done)
}
