//! virtio-blk devices of virtual machines over vhost-user.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use export::VhostUser;
use live::{Administration as _, Durability};

use super::unix_sockets::{Start, UnixSockets, path};
use super::{FrontEnd, Preparation, ReadyFrontEnd};

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
    fn prepare(&self, _: &mut Preparation<'_>) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        let start: Box<Start<VhostUser>> = Box::new(move |listener, drive| {
            if let Some(first) = drive.offered.first_mut() {
                first.uris.push(format!("vhost-user-blk:{}", path(&listener)));
            }
            let serial = format!("{:016x}", drive.operator.identity().number);
            let observer = Arc::clone(drive.observer);
            // What it was answered survives this server, or the user gave that up.
            let kept = Durability::Volatile;
            Ok(VhostUser::start(drive.exports, listener, &serial, observer, kept)?)
        });
        UnixSockets::prepare(&self.vhost_user, start)
    }
}
