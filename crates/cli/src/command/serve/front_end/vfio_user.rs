//! vfio-user of `floatgate serve`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use export::VfioUser;

use super::{FrontEnd, ReadyFrontEnd, Sockets, Start, path};

/// `--vfio-user`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Unix socket for virtual machines, which get the volume as an NVMe drive on PCI Express; may
    /// be repeated
    #[arg(long, value_name = "PATH")]
    vfio_user: Vec<PathBuf>,
}

impl FrontEnd for Options {
    fn prepare(&self) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        let start: Box<Start<VfioUser>> = Box::new(|listener, served, offered| {
            served.add_uris(offered, |id| format!("vfio-user:{}#{id}", path(&listener)));
            let (subsystem, observer) = (served.subsystem(), Arc::clone(served.observer));
            Ok(VfioUser::start(served.exports, subsystem, listener, observer)?)
        });
        Sockets::prepare(&self.vfio_user, start)
    }
}
