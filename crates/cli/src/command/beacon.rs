//! `floatgate beacon`: tells one drive from many.

use anyhow::{Context as _, Result, bail};
use live::management::{Connection, Request};
use live::{beacon, is_vault};

use crate::Ending;
use crate::args::{Beacon, Switch};

/// Lights a drive's beacon, or puts it out, whether the drive is served or not.
pub(crate) fn beacon(args: &Beacon) -> Result<Ending> {
    let shown = args.vault.display();
    if !is_vault(&args.vault) {
        bail!("{shown} is no folder of a drive; `floatgate create` makes one");
    }
    let is_lit = args.switch == Switch::On;
    let attempted = || format!("asking the server of {shown}");
    match Connection::open(&args.vault).with_context(attempted)? {
        Some(mut server) => {
            server.order(&Request::Beacon { is_lit }).with_context(attempted)?;
        }
        None => {
            beacon::set(&args.vault, is_lit).with_context(|| format!("marking {shown}"))?;
        }
    }
    Ok(Ending::Done)
}
