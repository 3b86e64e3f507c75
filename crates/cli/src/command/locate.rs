//! `floatgate locate`: a mark that tells one volume from many.

use anyhow::{Context as _, Result, bail};
use live::management::{Connection, Request};
use live::{is_volume, locate};

use crate::Ending;
use crate::args::{Locate, Switch};

/// Turns the locate LED of a volume on or off, whether the volume is served or not.
pub(crate) fn locate(args: &Locate) -> Result<Ending> {
    let shown = args.volume.display();
    if !is_volume(&args.volume) {
        bail!("{shown} is not the folder of a volume; `floatgate create` creates one");
    }
    let is_lit = args.switch == Switch::On;
    let attempted = || format!("asking the server of {shown}");
    match Connection::open(&args.volume).with_context(attempted)? {
        Some(mut server) => {
            server.order(&Request::Locate { is_lit }).with_context(attempted)?;
        }
        None => {
            locate::set(&args.volume, is_lit).with_context(|| format!("marking {shown}"))?;
        }
    }
    Ok(Ending::Done)
}
