//! ublk of `floatgate serve`.

use std::num::NonZeroU16;
use std::thread;

use anyhow::Result;
use clap::Args;
use export::{Ublk, UblkDriver, UblkSettings};
use live::{Administration as _, status};

use super::{FrontEnd, ReadyFrontEnd, Running, ExportedDrive};
use crate::ublk::failed;

/// Most queues of a device where the user chose no number.
const QUEUES_MAX: usize = 4;

/// `--ublk`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Make a block device of this machine for each export, such as /dev/ublkb0, through the ublk
    /// driver of Linux; needs root
    #[arg(long)]
    ublk: bool,
    /// Queues of each device, each with a thread; the driver gives at most one for each processor
    /// [default: one for each processor, at most 4]
    #[arg(long, value_name = "COUNT", requires = "ublk")]
    ublk_queues: Option<NonZeroU16>,
}

/// The driver, before the drive is opened.
struct Devices {
    driver: UblkDriver,
    queues: u16,
}

impl FrontEnd for Options {
    fn prepare(&self) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        if !self.ublk {
            return Ok(None);
        }
        let driver = UblkDriver::open().map_err(|error| failed("serving over ublk", error))?;
        let queues = self.ublk_queues.map_or_else(queues, NonZeroU16::get);
        Ok(Some(Box::new(Devices { driver, queues })))
    }
}

/// A queue for each processor, up to the most.
fn queues() -> u16 {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    u16::try_from(processors.min(QUEUES_MAX)).expect("it is small")
}

impl ReadyFrontEnd for Devices {
    fn start(
        self: Box<Self>,
        served: &ExportedDrive<'_>,
        offered: &mut [status::Export],
    ) -> Result<Box<dyn Running>> {
        let settings = UblkSettings {
            drive: served.operator.identity().number,
            queues: self.queues,
            outlives_server: served.survives_server(),
        };
        let started = Ublk::start(&self.driver, served.exports, settings, served.observer);
        let ublk = started.map_err(|error| failed("serving over ublk", error))?;
        for (name, device) in ublk.devices() {
            if let Some(export) = offered.iter_mut().find(|export| export.name == name) {
                export.uris.push(device.display().to_string());
            }
        }
        Ok(Box::new(ublk))
    }
}
