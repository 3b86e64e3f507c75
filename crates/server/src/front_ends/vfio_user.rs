//! NVMe drives of virtual machines over vfio-user.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use export::VfioUser;

use super::unix_sockets::{Start, UnixSockets, path};
use super::{FrontEnd, Preparation, ReadyFrontEnd};

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
    fn prepare(&self, _: &mut Preparation<'_>) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        let start: Box<Start<VfioUser>> = Box::new(|listener, drive| {
            drive.add_uris(|id| format!("vfio-user:{}#{id}", path(&listener)));
            let (subsystem, observer) = (drive.subsystem(), Arc::clone(drive.observer));
            Ok(VfioUser::start(drive.exports, subsystem, listener, observer)?)
        });
        UnixSockets::prepare(&self.vfio_user, start)
    }
}
