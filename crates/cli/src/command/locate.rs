//! `floatgate volume locate`: a mark that tells one volume from many.

use anyhow::{Context as _, Result};
use live::locate;
use status::management::Request;

use super::maintenance::server;
use super::unanswered::UnansweredRequest;
use crate::Ending;
use crate::args::{Locate, Switch};

/// Turns the locate LED of a volume on or off, whether the volume is served or not.
pub(crate) fn locate(args: &Locate) -> Result<Ending> {
    let is_lit = args.switch == Switch::On;
    let attempted = || format!("marking {}", args.volume.display());
    match server(&args.volume)? {
        Some(mut server) => {
            let unanswered = UnansweredRequest {
                state: "the LED may be on or off",
                next: "run the same command again".to_owned(),
            };
            let ordered = server.order(&Request::Locate { is_lit });
            ordered.map_err(|error| unanswered.of_order(error)).with_context(attempted)?;
        }
        None => locate::set(&args.volume, is_lit).with_context(attempted)?,
    }
    Ok(Ending::Done)
}
