//! `floatgate volume rekey`: another passphrase or key for an encrypted volume.

use anyhow::{Context as _, Result};
use live::rekey_volume;
use server::drive_service::note_event;
use status::NotErased;

use crate::args::{Rekey, key_of};
use crate::{Ending, output};

/// Has another key unlock the volume.
pub(crate) fn rekey(args: &Rekey) -> Result<Ending> {
    let volume = &args.volume;
    let shown = volume.display();
    let attempted = || format!("giving {shown} another key");
    let new = key_of(args.new_key_file.as_deref(), args.new_key_command.as_deref());
    let new = new.with_context(attempted)?.context("no new key was named")?;
    let drive = args.key.open(volume)?;
    let rekeyed = rekey_volume(volume, &drive, &new);
    let closed = drive.close();
    if let Err(why) = &rekeyed {
        note_event(volume, format!("The volume was not given another key: {why}."));
    }
    let kept = rekeyed.with_context(attempted)?;
    let unlocked: Vec<String> = kept.iter().map(former).collect();
    for text in &unlocked {
        output::talk(&format!("warning: {text}"));
    }
    let sentences = ["The volume was given another key".to_owned()].into_iter().chain(unlocked);
    let event: Vec<String> = sentences.map(|sentence| format!("{sentence}.")).collect();
    note_event(volume, event.join(" "));
    closed.with_context(|| format!("closing {shown}"))?;
    output::talk(&format!("{shown}: opens with the new key alone"));
    Ok(Ending::Done)
}

/// Says of a medium that the former key unlocks it still.
fn former(NotErased { die, path, reason }: &NotErased) -> String {
    let what = die.map_or_else(|| "a hot spare".to_owned(), |die| format!("die {die}"));
    let why = reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    format!("{path}, {what}, may hold headers that the former key unlocks{why}")
}
