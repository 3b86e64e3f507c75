//! `floatgate dashboard`: several served drives and the runs of a folder, on one page.

use anyhow::{Context as _, Result};
use lab::{Error, Kind};
use server::activation::PassedSockets;
use server::log::{Level, Log};
use server::signals::{self, Signal};
use server::web::{Content, Volumes};

use crate::args::Dashboard;
use crate::{Ending, output};

/// Shows them until a signal comes.
pub(crate) fn dashboard(args: &Dashboard) -> Result<Ending> {
    let _log = Log::start(Level::Info, false)?;
    let volumes = Volumes::new(&args.places, args.runs.as_deref());
    let volumes = volumes.map_err(|error| Error::new(Kind::Input, server::chain_text(&error)))?;
    let pages = args.pages.at(args.http.clone());
    let listener = pages.listen(&mut PassedSockets::of_process())?;
    let signals = signals::received()?;
    let web = listener.open(Content::Volumes(volumes), args.token.clone())?;
    output::talk(&web.introduction());
    // Nothing here is read again: what drives there are is seen at each look.
    while signals.recv().context("waiting for a signal")? != Signal::Stop {}
    Ok(Ending::Done)
}
