//! `floatgate dashboard`: several served drives and the runs of a folder, on one page.

use anyhow::{Context as _, Result};
use lab::{Error, Kind};
use server::activation::PassedSockets;
use server::log::{Level, Log};
use server::web::{Content, Door, Token, Volumes, Web};

use super::serve::{http_tls, listen_http};
use crate::args::Dashboard;
use crate::signals::{self, Signal};
use crate::{Ending, output};

/// Shows them until a signal comes.
pub(crate) fn dashboard(args: &Dashboard) -> Result<Ending> {
    let _log = Log::start(Level::Info, false)?;
    let volumes = Volumes::new(&args.places, args.runs.as_deref());
    let volumes = volumes.map_err(|error| Error::new(Kind::Input, server::chain_text(&error)))?;
    let tls = http_tls(&args.pages)?;
    let listener = listen_http(&args.http, &mut PassedSockets::of_process(), tls.as_ref())?;
    let signals = signals::received()?;
    let token = Token::generate(args.token.clone()).context("writing the token")?;
    let door = Door { token, hosts: args.pages.http_host.clone(), tls };
    let web = Web::start(listener, Content::Volumes(volumes), door)?;
    output::talk(&web.introduction());
    // Nothing here is read again: what drives there are is seen at each look.
    while signals.recv().context("waiting for a signal")? != Signal::Stop {}
    Ok(Ending::Done)
}
