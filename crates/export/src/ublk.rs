//! ublk: exports as block devices of this machine, `/dev/ublkb0`, which the kernel has this process
//! serve through `io_uring`.
//!
//! ```text
//!   user of the device ──► block layer ──► queue of the driver ──► thread: Block ──► Device
//!                                               └─── data is copied once, by the thread ──┘
//! ```
//!
//! **Invariants**
//! - A device that outlives a killed server loses nothing: requests that the server had are carried
//!   out again by the next one, and the drive has the changes that it answered.
//! - A device that does not outlive its server fails all requests from then on, so that its users
//!   learn of it.
//! - Each call of the driver has a time limit.
//!
//! The driver is that of Linux (`Documentation/block/ublk.rst`), in code of our own.

mod block;
mod control;
mod descriptors;
mod disk;
mod layout;
mod queue;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use self::control::Control;
use self::disk::Disk;
use self::layout::ControlCommand;
use crate::{Exports, Observer};

/// Devices of the driver, by name.
const DEVICES: &str = "/sys/class/ublk-char";

/// Error of the ublk driver, or of what it needs.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// The kernel has no driver, or did not load it.
    #[error("this kernel has no ublk driver: /dev/ublk-control is missing")]
    NoDriver,
    /// This user may not use it.
    #[error("/dev/ublk-control may not be opened by this user")]
    NotAllowed,
    /// The driver lacks what this server needs of it.
    #[error("the ublk driver of this kernel is older than that of Linux 6.5")]
    Old,
    /// There is no `io_uring`.
    #[error("io_uring is not available")]
    NoRing(#[source] io::Error),
    /// The driver refused a command.
    #[error("the ublk driver refused {command}")]
    Refused {
        /// Name of the command.
        command: &'static str,
        /// Its reason.
        source: io::Error,
    },
    /// The driver did not complete a command in time.
    #[error("the ublk driver did not complete {command} within {seconds} s")]
    TimedOut {
        /// Name of the command.
        command: &'static str,
        /// Time limit.
        seconds: u64,
    },
    /// A device that outlived an earlier server is not what the export is now.
    #[error("{} of an earlier server has {was}, but the export now has {is}", device.display())]
    Differs {
        /// Path of the device.
        device: PathBuf,
        /// Size and protection of the device.
        was: String,
        /// Size and protection of the export.
        is: String,
    },
    /// The system refused something else.
    #[error("{attempted}")]
    System {
        /// Operation that failed.
        attempted: String,
        /// Error that the system returned.
        source: io::Error,
    },
}

impl UblkError {
    /// Returns what would help, if something would.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::NoDriver => Some(
                "load the driver: `modprobe ublk_drv`; a kernel has it if it was built with \
                 CONFIG_BLK_DEV_UBLK, and must be Linux 6.5 or newer"
                    .to_owned(),
            ),
            Self::NotAllowed => Some("run as root".to_owned()),
            Self::Old => Some("boot Linux 6.5 or newer".to_owned()),
            Self::NoRing(_) => Some(
                "allow io_uring: `sysctl kernel.io_uring_disabled=0`, and in the seccomp filter of \
                 a container"
                    .to_owned(),
            ),
            Self::Differs { device, .. } => {
                let device = device.display();
                Some(format!("unmount it, then remove it: `floatgate volume detach {device}`"))
            }
            Self::Refused { .. } | Self::TimedOut { .. } | Self::System { .. } => None,
        }
    }
}

/// Choices for the devices of exports.
#[derive(Clone, Copy, Debug)]
pub struct UblkSettings {
    /// Number of the drive, by which a device that outlived a server is found again.
    pub drive: u64,
    /// Queues of each device, at least one; the driver gives no more than the machine has
    /// processors.
    pub queues: u16,
    /// True if a device waits for the next server when this one is killed.
    pub outlives_server: bool,
}

/// The driver of this machine.
#[derive(Debug)]
pub struct UblkDriver {
    control: Arc<Control>,
}

impl UblkDriver {
    /// Opens the driver.
    ///
    /// # Errors
    /// Says what this machine lacks.
    pub fn open() -> Result<Self, UblkError> {
        Ok(Self { control: Arc::new(Control::open()?) })
    }

    /// Stops and removes a device, whichever process serves it, or served it before it was killed.
    ///
    /// # Errors
    /// Fails if there is no such device, or the driver does not remove it in time.
    pub fn remove(&self, device: u32) -> Result<(), UblkError> {
        self.control.send(ControlCommand::Stop, device, 0)?;
        self.control.send(ControlCommand::Delete, device, 0)
    }
}

/// Devices of exports, until it is dropped.
#[derive(Debug)]
pub struct Ublk {
    disks: Vec<Disk>,
}

impl Ublk {
    /// Makes a device of each export, or serves the one that outlived an earlier server.
    ///
    /// # Errors
    /// Fails if the driver or the system refuses; devices that were made are removed again.
    pub fn start(
        driver: &UblkDriver,
        exports: &Exports,
        settings: UblkSettings,
        observer: &Arc<dyn Observer>,
    ) -> Result<Self, UblkError> {
        let start = |export| Disk::start(&driver.control, exports, export, settings, observer);
        Ok(Self { disks: exports.iter().map(start).collect::<Result<_, _>>()? })
    }

    /// Returns the name of each export with the path of its device.
    pub fn devices(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.disks.iter().map(|disk| (disk.export(), disk.path()))
    }
}

/// Numbers of all devices of the driver.
fn devices() -> Vec<u32> {
    let entries = fs::read_dir(DEVICES).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix("ublkc")?.parse().ok();
    entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect()
}
