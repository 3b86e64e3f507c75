//! The contract between a block device and the front ends that offer it to clients, and between a
//! drive and the hosts that administer it ([`Operations`], which [`operator`] carries out).
//!
//! ```text
//!   front ends (crate `export`) ──► Device ◄── drives (crate `live`), memory, fault injection
//! ```
//!
//! A front end knows nothing of the device behind the contract, and a device nothing of clients.

mod administration;
mod locking;
mod memory;
mod operations;
pub mod operator;
mod reservations;

use std::{fmt, io};

use blockio::Bytes;
pub use opal;

pub use self::administration::{Administration, DriveHealth, Identity};
pub use self::locking::{OpalDrive, OpalStore};
pub use self::memory::MemoryDevice;
pub use self::operations::{
    DriveEvent, EventKind, Exit, FormatRequest, FormatResult, InjectedError, InjectedErrorKind,
    NamespaceRequest, NamespaceSpace, Operability, OperationError, OperationStatus, Operations,
    Protection, SanitizeRequest, SanitizeState, SanitizeStatus, SecurityRefusal, SelfTest,
    SelfTestEnd, SelfTestResult, ServedNamespace, Work,
};
pub use self::reservations::{Fence, PersistentReservations, Registration, ReservationKind};

/// Source of zeroes that are written.
static ZEROES: [u8; 256 << 10] = [0; 256 << 10];

/// Point at which a command that changes data is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// As soon as every later read sees it; a crash before the next flush may undo it.
    Volatile,
    /// Once no crash can undo it (force unit access).
    Durable,
}

/// A run of bytes that either hold data or read as zeroes because nothing is stored there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Bytes from the end of the run before, at least one.
    pub length: u64,
    /// True if data is stored there; otherwise the run reads as zeroes.
    pub is_stored: bool,
}

/// One of several reads.
#[derive(Debug)]
pub struct ReadPart<'a> {
    /// First byte.
    pub offset: u64,
    /// Destination of the read; its length is that of the range.
    pub buffer: &'a mut [u8],
}

/// Error of a command to a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Part of the range lies beyond the end; nothing was done.
    #[error("{length} bytes at {offset} reach beyond the device's {size} bytes")]
    OutOfRange {
        /// First byte.
        offset: u64,
        /// Bytes asked for.
        length: u64,
        /// Bytes of the device.
        size: u64,
    },
    /// No physical space for this data. What of the range lies before `offset` was stored, nothing
    /// else was done; reads and trims go on.
    #[error("no physical space is left for {length} bytes at {offset}; trim or delete some data")]
    NoSpace {
        /// First byte of the page that there is no space for.
        offset: u64,
        /// Bytes to be written.
        length: u64,
    },
    /// The system beneath the drive has too little space for what was to be written; nothing was
    /// done. Reads go on, and so do writes once it has enough.
    #[error(
        "the host has {} free beneath the dies, {} are needed; free some, and write again",
        Bytes(*free), Bytes(*needed)
    )]
    HostFull {
        /// Bytes that must be free for a write.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The device is opened for reading only; nothing was done.
    #[error("the device is opened for reading only")]
    ReadOnly,
    /// An NVMe host reserved the namespace; nothing was done.
    #[error(
        "an NVMe host reserved the namespace; have it release that, or clear it with `nvme \
         resv-release --rrela=1`"
    )]
    Reserved,
    /// A range is locked by TCG Opal, or the MBR shadow stands before it; nothing was done.
    #[error(
        "the range is locked by TCG Opal; unlock it with `sedutil-cli --setLockingRange` or a tool \
         like it"
    )]
    Locked,
    /// Stored data cannot be read back as it was written, and redundancy did not help.
    #[error("sector {lba} is lost: {reason}")]
    Unreadable {
        /// Sector of 512 bytes.
        lba: u64,
        /// Attempts to read it that failed.
        reason: String,
    },
    /// The command failed, but may succeed when it comes again; a write may have been carried out
    /// in part.
    #[error("{reason}; the same command may succeed later")]
    Transient {
        /// Failure, as text.
        reason: String,
    },
    /// Work on the drive keeps it from all commands; nothing was done.
    #[error("the drive is {}", .0.word())]
    InProgress(Work),
    /// The namespace was deleted.
    #[error("this namespace was deleted")]
    Gone,
    /// An earlier failure makes any promise impossible until the device is reopened.
    #[error("the device takes no more writes: {reason}; close it, check it, and open it again")]
    Poisoned {
        /// Earlier failure, with its cause.
        reason: String,
    },
    /// The medium below failed.
    #[error("{attempted}: {source}")]
    Medium {
        /// Operation that failed.
        attempted: String,
        /// Error that the system returned.
        source: io::Error,
    },
}

impl DeviceError {
    /// True if space is what is missing, of the device or of the host beneath it: `ENOSPC`.
    pub fn is_no_space(&self) -> bool {
        match self {
            Self::NoSpace { .. } | Self::HostFull { .. } => true,
            Self::Medium { source, .. } => is_host_full(source),
            _ => false,
        }
    }
}

/// True if the host had no space, or no quota, for what was written: nothing that is stored is at
/// fault.
pub fn is_host_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A block device: what every export offers to its clients.
///
/// Offsets and lengths are in bytes; ranges may begin and end anywhere. Many threads may call at
/// once. A command that has returned is seen by every command that begins later, whichever client
/// sends it, and a flush covers what was acknowledged to any of them.
pub trait Device: fmt::Debug + Send + Sync {
    /// Bytes that clients address.
    fn size(&self) -> u64;

    /// Byte offset of the device on the drive that it is part of; 0 if it is the whole drive.
    fn origin(&self) -> u64 {
        0
    }

    /// Bytes of the blocks, aligned to their size, that a crash during a write leaves with all of
    /// the old or all of the new data; a power of two, at least 512.
    fn atomic_bytes(&self) -> u64 {
        512
    }

    /// True if whatever changes data has to be durable before it is acknowledged, so that clients
    /// see no write cache: a front end flushes before it answers. It may change at any time.
    fn is_write_through(&self) -> bool {
        false
    }

    /// Fills `buffer` from `offset` on; what was never written, or trimmed, reads as zeroes.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`], [`DeviceError::Unreadable`], [`DeviceError::Medium`].
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError>;

    /// Fills the buffers of several reads, at once where that is possible, and says of each what
    /// [`Device::read`] would.
    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        reads.iter_mut().map(|read| self.read(read.offset, read.buffer)).collect()
    }

    /// Stores `bytes` from `offset` on.
    ///
    /// # Errors
    /// Any but [`DeviceError::Unreadable`]; part of the range may have been replaced, each sector
    /// whole or not at all.
    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError>;

    /// Stores zeroes in a range, so that later writes to it cannot fail for want of space, as one
    /// command of a client, however large; gives up the rest once `goes_on` returns false. Returns
    /// whether all of the range was written.
    ///
    /// # Errors
    /// As [`Device::write`].
    fn write_zeroes(
        &self,
        offset: u64,
        length: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool, DeviceError> {
        self.check_range(offset, length)?;
        let (mut at, end) = (offset, offset + length);
        while at < end {
            if !goes_on() {
                return Ok(false);
            }
            let step = usize::try_from(end - at).unwrap_or(usize::MAX).min(ZEROES.len());
            self.write(at, &ZEROES[..step], Durability::Volatile)?;
            at += step as u64;
        }
        Ok(true)
    }

    /// True if it refuses changes now, since a host protected it or its media are worn out.
    fn is_write_protected(&self) -> bool {
        false
    }

    /// Makes everything acknowledged so far durable.
    ///
    /// # Errors
    /// [`DeviceError::Poisoned`], [`DeviceError::Medium`]; then nothing since the last flush can be
    /// relied upon, and the device stays poisoned until it is reopened.
    fn flush(&self) -> Result<(), DeviceError>;

    /// Forgets what is stored in a range, which then reads as zeroes.
    ///
    /// # Errors
    /// As [`Device::write`].
    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError>;

    /// Returns the runs of stored and unstored bytes of a range, in order; their lengths add up to
    /// `length`.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`].
    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError>;

    /// Checks that a range lies within the device.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`].
    fn check_range(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        let size = self.size();
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(()),
            _ => Err(DeviceError::OutOfRange { offset, length, size }),
        }
    }
}
