//! `/dev/ublk-control`, through which devices are made, started, stopped and removed.
//!
//! **Invariant**: each call returns within a time limit. The system may keep a call for as long as
//! it likes: then its ring and its memory stay until this process ends.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use io_uring::squeue::Entry128;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;

use super::UblkError;
use super::layout::{
    ControlCommand, INFO_BYTES, Info, PARAMETERS_BYTES, Parameters, control_command, feature,
};

/// The device that takes commands.
const PATH: &str = "/dev/ublk-control";
/// Number of a device for commands that are for none, or for the first free one.
const NO_DEVICE: u32 = u32::MAX;
/// Time limit of a call.
const PATIENCE: Duration = Duration::from_secs(20);
/// Features that each device has: commands with the numbers of `ioctl`.
const NEEDED: u64 = feature::CMD_IOCTL_ENCODE;

/// The driver, as far as it makes and removes devices.
#[derive(Debug)]
pub(super) struct Control {
    file: File,
}

impl Control {
    /// Opens the driver, and checks that it can do what is needed.
    ///
    /// # Errors
    /// Says what this machine lacks.
    pub(super) fn open() -> Result<Self, UblkError> {
        let file = File::options().read(true).write(true).open(PATH);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => UblkError::NoDriver,
            io::ErrorKind::PermissionDenied => UblkError::NotAllowed,
            _ => UblkError::System { attempted: format!("opening {PATH}"), source: error },
        })?;
        let control = Self { file };
        let features = match control.ask::<8>(ControlCommand::GetFeatures, NO_DEVICE, 0) {
            Ok(bytes) => u64::from_le_bytes(bytes),
            // Before 6.5 it has no such command, and none of the features.
            Err(UblkError::Refused { .. }) => 0,
            Err(other) => return Err(other),
        };
        if features & NEEDED != NEEDED {
            return Err(UblkError::Old);
        }
        Ok(control)
    }

    /// Makes a device, and returns what the driver made of the wish.
    pub(super) fn add(&self, wish: &Info) -> Result<Info, UblkError> {
        let wish = Info { number: NO_DEVICE, features: wish.features | NEEDED, ..*wish };
        let bytes = self.call(ControlCommand::Add, NO_DEVICE, wish.bytes(), 0)?;
        Ok(Info::of(&bytes))
    }

    /// Returns what the driver keeps of a device.
    pub(super) fn info(&self, device: u32) -> Result<Info, UblkError> {
        Ok(Info::of(&self.ask::<INFO_BYTES>(ControlCommand::GetInfo, device, 0)?))
    }

    pub(super) fn set_parameters(
        &self,
        device: u32,
        parameters: &Parameters,
    ) -> Result<(), UblkError> {
        self.call(ControlCommand::SetParameters, device, parameters.bytes(), 0).map(drop)
    }

    pub(super) fn parameters(&self, device: u32) -> Result<Parameters, UblkError> {
        let mut wanted = [0; PARAMETERS_BYTES];
        wanted[0] = u8::try_from(PARAMETERS_BYTES).expect("it is 60");
        let bytes = self.call(ControlCommand::GetParameters, device, wanted, 0)?;
        Ok(Parameters::of(&bytes))
    }

    /// Carries out a command that has a number alone.
    pub(super) fn send(
        &self,
        command: ControlCommand,
        device: u32,
        data: u64,
    ) -> Result<(), UblkError> {
        self.call(command, device, [], data).map(drop)
    }

    /// As [`Self::send`], again and again until the driver is no longer busy with the device.
    pub(super) fn send_when_free(
        &self,
        command: ControlCommand,
        device: u32,
        data: u64,
    ) -> Result<(), UblkError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.send(command, device, data) {
                Err(UblkError::Refused { source, .. })
                    if source.raw_os_error() == Some(Errno::BUSY.raw_os_error())
                        && Instant::now() < deadline =>
                {
                    std::thread::sleep(Duration::from_millis(10));
                }
                other => return other,
            }
        }
    }

    fn ask<const N: usize>(
        &self,
        command: ControlCommand,
        device: u32,
        data: u64,
    ) -> Result<[u8; N], UblkError> {
        self.call(command, device, [0; N], data)
    }

    /// Carries out a command with a buffer, which the driver may change. Returns the buffer.
    #[expect(unsafe_code, reason = "the system is given the address of a buffer")]
    fn call<const N: usize>(
        &self,
        command: ControlCommand,
        device: u32,
        buffer: [u8; N],
        data: u64,
    ) -> Result<[u8; N], UblkError> {
        let mut buffer = Box::new(buffer);
        let ring = IoUring::<Entry128, cqueue::Entry>::builder().build(1);
        let mut ring = ring.map_err(UblkError::NoRing)?;
        let length = u16::try_from(N).expect("structures are short");
        let address = if N == 0 { 0 } else { buffer.as_mut_ptr() as u64 };
        let bytes = control_command(device, address, length, data);
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), command.number());
        let entry = entry.cmd(bytes).build();
        // SAFETY: the buffer lives until the command was completed: otherwise it is leaked below,
        // with the ring. The file is that of `self`, and the system holds it meanwhile.
        unsafe { ring.submission().push(&entry) }.expect("the queue is empty");
        let Some(result) = wait(&mut ring).map_err(|source| UblkError::System {
            attempted: format!("{} of ublk device {device}", command.name()),
            source,
        })?
        else {
            let _ = (Box::leak(Box::new(ring)), Box::leak(buffer));
            return Err(UblkError::TimedOut {
                command: command.name(),
                seconds: PATIENCE.as_secs(),
            });
        };
        if result < 0 {
            let source = io::Error::from_raw_os_error(-result);
            return Err(UblkError::Refused { command: command.name(), source });
        }
        Ok(*buffer)
    }
}

/// Submits what is in the ring, and waits for the only completion; none if it takes too long.
fn wait(ring: &mut IoUring<Entry128>) -> io::Result<Option<i32>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Timespec::from(left);
        let waited = ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit));
        if let Some(completion) = ring.completion().next() {
            return Ok(Some(completion.result()));
        }
        match waited {
            // Nothing was submitted, so nothing refers to the buffer.
            Err(error) if !ring.submission().is_empty() && !is_passing(&error) => {
                return Err(error);
            }
            _ if left.is_zero() => return Ok(None),
            _ => {}
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::ResourceBusy | io::ErrorKind::WouldBlock
    )
}
