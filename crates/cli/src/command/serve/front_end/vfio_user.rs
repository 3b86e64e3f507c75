//! vfio-user of `floatgate serve`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use export::{Listener, VfioUser};
use live::status;

use super::{FrontEnd, Prepared, Running, Served, listen, path};

/// `--vfio-user`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Unix socket for virtual machines, which get the drive as an NVMe drive on PCI Express; may
    /// be repeated
    #[arg(long, value_name = "PATH")]
    vfio_user: Vec<PathBuf>,
}

/// Sockets that are listened at.
struct Sockets(Vec<Listener>);

impl FrontEnd for Options {
    fn prepare(&self) -> Result<Option<Box<dyn Prepared>>> {
        let listeners = listen(&self.vfio_user)?;
        Ok((!listeners.is_empty()).then(|| Box::new(Sockets(listeners)) as Box<dyn Prepared>))
    }
}

impl Prepared for Sockets {
    fn start(
        self: Box<Self>,
        served: &Served<'_>,
        offered: &mut [status::Export],
    ) -> Result<Box<dyn Running>> {
        let subsystem = served.subsystem()?;
        let start = |listener: Listener| {
            served.add_uris(offered, |id| format!("vfio-user:{}#{id}", path(&listener)));
            let (subsystem, observer) = (Arc::clone(&subsystem), Arc::clone(served.observer));
            VfioUser::start(served.exports, subsystem, listener, observer)
        };
        let servers: std::io::Result<Vec<_>> = self.0.into_iter().map(start).collect();
        Ok(Box::new(servers.context("serving virtual machines")?))
    }
}

impl Running for Vec<VfioUser> {}
