//! vhost-user of `floatgate serve`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use export::{Listener, VhostUser};
use live::{Administration as _, status};

use super::{FrontEnd, Prepared, Running, Served, listen, path};

/// `--vhost-user`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Unix socket for virtual machines, which get the drive as a virtio-blk device; may be
    /// repeated
    #[arg(long, value_name = "PATH")]
    vhost_user: Vec<PathBuf>,
}

/// Sockets that are listened at.
struct Sockets(Vec<Listener>);

impl FrontEnd for Options {
    fn prepare(&self) -> Result<Option<Box<dyn Prepared>>> {
        let listeners = listen(&self.vhost_user)?;
        Ok((!listeners.is_empty()).then(|| Box::new(Sockets(listeners)) as Box<dyn Prepared>))
    }
}

impl Prepared for Sockets {
    fn start(
        self: Box<Self>,
        served: &Served<'_>,
        offered: &mut [status::Export],
    ) -> Result<Box<dyn Running>> {
        let serial = format!("{:016x}", served.operator.identity().number);
        let start = |listener: Listener| {
            if let Some(first) = offered.first_mut() {
                first.uris.push(format!("vhost-user-blk:{}", path(&listener)));
            }
            VhostUser::start(served.exports, listener, &serial, Arc::clone(served.observer))
        };
        let servers: std::io::Result<Vec<_>> = self.0.into_iter().map(start).collect();
        Ok(Box::new(servers.context("serving virtual machines")?))
    }
}

impl Running for Vec<VhostUser> {}
