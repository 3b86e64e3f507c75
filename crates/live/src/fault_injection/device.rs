//! A device that counts commands and runs out of space.

use std::io;
use std::sync::Arc;

use device::{Allocation, Device, DeviceError, Durability, ReadPart};

use super::FaultInjector;
use crate::lock::lock;

/// A drive as its clients see it.
#[derive(Debug)]
pub(super) struct InjectingDevice {
    device: Arc<dyn Device>,
    injector: Arc<FaultInjector>,
}

impl InjectingDevice {
    pub(super) fn new(device: Arc<dyn Device>, injector: Arc<FaultInjector>) -> Self {
        Self { device, injector }
    }

    /// Counts a command; none succeeds any more once the power is gone.
    fn begin(&self) -> Result<(), DeviceError> {
        self.injector.count_command();
        if self.injector.is_cut() {
            let source = io::Error::other("the power has been cut");
            return Err(DeviceError::Medium { attempted: "using the drive".to_owned(), source });
        }
        Ok(())
    }

    /// Counts a read; fails if it is one that is to fail.
    fn begin_read(&self) -> Result<(), DeviceError> {
        self.begin()?;
        self.injector.count_read();
        if self.injector.takes_failing_read() {
            return Err(DeviceError::Transient { reason: "the read was made to fail".to_owned() });
        }
        Ok(())
    }

    fn stored_bytes(&self, offset: u64, length: u64) -> Result<u64, DeviceError> {
        let runs = self.device.allocations(offset, length)?;
        Ok(runs.iter().filter(|run| run.is_stored).map(|run| run.length).sum())
    }
}

impl Device for InjectingDevice {
    fn size(&self) -> u64 {
        self.device.size()
    }

    fn origin(&self) -> u64 {
        self.device.origin()
    }

    fn atomic_bytes(&self) -> u64 {
        self.device.atomic_bytes()
    }

    fn is_write_through(&self) -> bool {
        self.device.is_write_through()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.begin_read()?;
        self.device.read(offset, buffer)
    }

    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        let begun: Vec<_> = reads.iter().map(|_| self.begin_read()).collect();
        if begun.iter().all(Result::is_ok) {
            return self.device.read_many(reads);
        }
        let read = |(begun, read): (Result<(), DeviceError>, &mut ReadPart<'_>)| {
            begun.and_then(|()| self.device.read(read.offset, read.buffer))
        };
        begun.into_iter().zip(reads).map(read).collect()
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        self.begin()?;
        if let Some(left) = &mut *lock(&self.injector.space_left) {
            let length = bytes.len() as u64;
            *left = left.checked_sub(length).ok_or(DeviceError::NoSpace { offset, length })?;
        }
        self.device.write(offset, bytes, durability)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.begin()?;
        self.device.flush()
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.begin()?;
        if lock(&self.injector.space_left).is_some() {
            let gained = self.stored_bytes(offset, length)?;
            if let Some(left) = &mut *lock(&self.injector.space_left) {
                *left += gained;
            }
        }
        self.device.trim(offset, length, durability)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.device.allocations(offset, length)
    }
}
