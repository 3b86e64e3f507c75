//! vhost-user of `floatgate serve`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use export::VhostUser;
use live::{Administration as _, Durability};

use super::{FrontEnd, ReadyFrontEnd, Sockets, Start, path};

/// `--vhost-user`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Unix socket for virtual machines, which get the volume as a virtio-blk device; may be
    /// repeated
    #[arg(long, value_name = "PATH")]
    vhost_user: Vec<PathBuf>,
}

impl FrontEnd for Options {
    fn prepare(&self) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        let start: Box<Start<VhostUser>> = Box::new(move |listener, served, offered| {
            if let Some(first) = offered.first_mut() {
                first.uris.push(format!("vhost-user-blk:{}", path(&listener)));
            }
            let serial = format!("{:016x}", served.operator.identity().number);
            let observer = Arc::clone(served.observer);
            // What it was answered survives this server, or the user gave that up.
            let kept = Durability::Volatile;
            Ok(VhostUser::start(served.exports, listener, &serial, observer, kept)?)
        });
        Sockets::prepare(&self.vhost_user, start)
    }
}
