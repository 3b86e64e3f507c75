//! Block devices of this machine, through the ublk driver.

use std::num::NonZeroU16;
use std::thread;

use anyhow::Result;
use clap::Args;
use export::{Ublk, UblkDriver, UblkError, UblkSettings};
use lab::{Error, Kind};
use live::Administration as _;

use super::{ExportedDrive, FrontEnd, Preparation, ReadyFrontEnd, Running};

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
    fn prepare(&self, _: &mut Preparation<'_>) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        if !self.ublk {
            return Ok(None);
        }
        let driver = UblkDriver::open().map_err(|error| driver_error("serving over ublk", error))?;
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
    fn start(self: Box<Self>, drive: &mut ExportedDrive<'_>) -> Result<Box<dyn Running>> {
        let settings = UblkSettings {
            drive: drive.operator.identity().number,
            queues: self.queues,
            outlives_server: drive.survives_server(),
        };
        let started = Ublk::start(&self.driver, drive.exports, settings, drive.observer);
        let ublk = started.map_err(|error| driver_error("serving over ublk", error))?;
        for (name, device) in ublk.devices() {
            if let Some(export) = drive.export_named(name) {
                export.uris.push(device.display().to_string());
            }
        }
        Ok(Box::new(ublk))
    }
}

/// The failure of what was attempted with the driver, with what helps.
pub fn driver_error(attempted: &str, error: UblkError) -> anyhow::Error {
    let hint = error.remedy().unwrap_or_default();
    Error::new(Kind::Input, attempted).hint(hint).source(error).into()
}
