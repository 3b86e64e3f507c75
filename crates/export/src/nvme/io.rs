//! Commands of the NVM command set ([nvme-nvm-2021]), checked against their namespace.

use std::ops::RangeInclusive;

use blockio::Op;
use device::{DeviceError, Durability};

use super::command::{Command, nvm};
use super::identify::ALL_NAMESPACES;
use super::status::Status;
use super::subsystem::{Namespace, Subsystem};
use super::transport::TRANSFER_BYTES_MAX;
use super::wire::{low16, u32_at, u64_at};
use crate::Asked;

/// Bytes that are compared, or zeroes that are written, at a time.
const STEP_BYTES: usize = 256 << 10;
/// Source of zeroes that are written.
static ZEROES: [u8; STEP_BYTES] = [0; STEP_BYTES];
/// Bytes of a range of Dataset Management.
const RANGE_BYTES: usize = 16;
/// Maximum number of ranges in one Dataset Management.
const RANGES_MAX: usize = 256;
/// Bits of command dword 12.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
const DEALLOCATE: u32 = 1 << 25;
/// Protection information, which is not supported.
const PROTECTION: u32 = 0xF << 26;

/// Kind of a command for I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IoKind {
    Read,
    Write,
    Compare,
    Verify,
    /// True if the zeroes may be deallocated.
    WriteZeroes(bool),
    /// True if the ranges are deallocated; otherwise they are hints.
    Manage(bool),
    Flush,
}

/// A checked I/O command, which its namespace can carry out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io {
    pub(super) kind: IoKind,
    /// Namespace, 0 for a flush of all of them.
    pub(super) namespace: u32,
    /// First byte.
    pub(super) offset: u64,
    /// Length in bytes; for Dataset Management, that of its list of ranges.
    pub(super) length: u64,
    /// First logical block.
    pub(super) lba: u64,
    /// True if it must be durable before it is completed.
    pub(super) is_durable: bool,
}

impl Io {
    /// Reads a command and checks it.
    ///
    /// # Errors
    /// Fails with the status for the command's completion.
    pub(super) fn parse(command: &Command, subsystem: &Subsystem) -> Result<Self, Status> {
        if command.fuse() != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let dword = command.dword(12);
        let kind = match command.opcode() {
            nvm::READ => IoKind::Read,
            nvm::WRITE => IoKind::Write,
            nvm::COMPARE => IoKind::Compare,
            nvm::VERIFY => IoKind::Verify,
            nvm::WRITE_ZEROES => IoKind::WriteZeroes(dword & DEALLOCATE != 0),
            nvm::DATASET_MANAGEMENT => IoKind::Manage(command.dword(11) & 1 << 2 != 0),
            nvm::FLUSH => IoKind::Flush,
            _ => return Err(Status::INVALID_OPCODE),
        };
        let id = command.namespace();
        if kind == IoKind::Flush && id == ALL_NAMESPACES {
            let (offset, length, lba) = (0, 0, 0);
            return Ok(Self { kind, namespace: 0, offset, length, lba, is_durable: true });
        }
        let namespace = subsystem.namespace(id).ok_or(Status::INVALID_NAMESPACE)?;
        let mut io = Self { kind, namespace: id, offset: 0, length: 0, lba: 0, is_durable: false };
        match kind {
            IoKind::Flush => io.is_durable = true,
            IoKind::Manage(_) => io.length = ranges_bytes(command.dword(10)),
            _ => io.place(namespace, command)?,
        }
        if io.changes() && namespace.export.is_read_only {
            return Err(Status::WRITE_PROTECTED);
        }
        Ok(io)
    }

    /// Sets the range and the Force Unit Access bit.
    fn place(&mut self, namespace: &Namespace, command: &Command) -> Result<(), Status> {
        let dword = command.dword(12);
        if dword & PROTECTION != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let blocks = u64::from(low16(dword)) + 1;
        self.lba = command.quad(10);
        let end = self.lba.checked_add(blocks).filter(|end| *end <= namespace.blocks());
        end.ok_or(Status::LBA_OUT_OF_RANGE)?;
        self.offset = self.lba << namespace.block_shift;
        self.length = blocks << namespace.block_shift;
        let is_moved = matches!(self.kind, IoKind::Read | IoKind::Write | IoKind::Compare);
        if is_moved && self.length > TRANSFER_BYTES_MAX as u64 {
            return Err(Status::INVALID_FIELD);
        }
        self.is_durable = self.changes() && dword & FORCE_UNIT_ACCESS != 0;
        Ok(())
    }

    /// True if it changes stored data.
    pub(super) const fn changes(&self) -> bool {
        matches!(self.kind, IoKind::Write | IoKind::WriteZeroes(_) | IoKind::Manage(true))
    }

    /// Minimum and maximum bytes that the host sends with it. They differ for Dataset Management:
    /// Linux always sends a list of the maximum size.
    pub(super) fn host_bytes(&self) -> RangeInclusive<usize> {
        let bytes = match self.kind {
            IoKind::Write | IoKind::Compare | IoKind::Manage(_) => self.length,
            _ => 0,
        };
        let least = usize::try_from(bytes).expect("bounded by a transfer");
        let most = if let IoKind::Manage(_) = self.kind { RANGES_MAX * RANGE_BYTES } else { least };
        least..=most
    }

    /// The command for the modelled drive, if drives have such a command; `origin` is the
    /// namespace's first byte on the drive.
    pub(super) fn asked(&self, origin: u64) -> Option<Asked> {
        let op = match self.kind {
            // The drive compares, so it reads.
            IoKind::Read | IoKind::Compare | IoKind::Verify => Op::Read,
            IoKind::Write | IoKind::WriteZeroes(false) => Op::Write,
            IoKind::WriteZeroes(true) => Op::Trim,
            IoKind::Flush => Op::Flush,
            // Its ranges are known once its data has arrived.
            IoKind::Manage(_) => return None,
        };
        let (offset, length) = (self.offset.saturating_add(origin), self.length);
        let fua = self.is_durable && self.kind != IoKind::Flush;
        Some(Asked { op, offset, length, fua })
    }

    /// Carries out a command other than a read or a flush; `data` is the host's data for it.
    ///
    /// # Errors
    /// Fails with the device's error, or with Compare Failure if the data differs.
    pub(super) fn carry_out(&self, namespace: &Namespace, data: &[u8]) -> Result<(), IoFailure> {
        let device = namespace.device();
        match self.kind {
            IoKind::Write => device.write(self.offset, data, Durability::Volatile)?,
            IoKind::WriteZeroes(true) => {
                device.trim(self.offset, self.length, Durability::Volatile)?;
            }
            IoKind::WriteZeroes(false) => {
                for_each_step(self.offset, self.length, |offset, length| {
                    device.write(offset, &ZEROES[..length], Durability::Volatile)
                })?;
            }
            IoKind::Verify => {
                let mut read = vec![0; STEP_BYTES];
                for_each_step(self.offset, self.length, |offset, length| {
                    device.read(offset, &mut read[..length])
                })?;
            }
            IoKind::Compare => {
                let mut stored = vec![0; data.len()];
                device.read(self.offset, &mut stored)?;
                if stored != data {
                    return Err(IoFailure::Refused(Status::COMPARE_FAILURE));
                }
            }
            IoKind::Manage(deallocates) => manage(namespace, deallocates, data)?,
            IoKind::Read | IoKind::Flush => {}
        }
        Ok(())
    }
}

/// Reason why a command failed.
#[derive(Debug)]
pub(super) enum IoFailure {
    /// The host's request is invalid.
    Refused(Status),
    /// The device failed.
    Device(DeviceError),
}

impl From<DeviceError> for IoFailure {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl IoFailure {
    /// The status, and the first logical block that failed, for a command that began at `lba`.
    pub(super) fn status(&self, io: &Io, block_shift: u8) -> (Status, u64) {
        let error = match self {
            Self::Refused(status) => return (*status, io.lba),
            Self::Device(error) => error,
        };
        let status = match error {
            DeviceError::OutOfRange { .. } => Status::LBA_OUT_OF_RANGE,
            _ if error.is_no_space() => Status::CAPACITY_EXCEEDED,
            DeviceError::ReadOnly => Status::WRITE_PROTECTED,
            DeviceError::Unreadable { .. } => Status::UNRECOVERED_READ,
            DeviceError::Medium { .. } if !io.changes() && io.kind != IoKind::Flush => {
                Status::UNRECOVERED_READ
            }
            _ => Status::WRITE_FAULT,
        };
        let lba = match error {
            // Sectors of 512 bytes.
            DeviceError::Unreadable { lba, .. } => lba >> (block_shift - 9),
            _ => io.lba,
        };
        (status, lba)
    }
}

/// Bytes of a Dataset Management's list of ranges; the dword has their number.
fn ranges_bytes(dword: u32) -> u64 {
    (u64::from(dword & 0xFF) + 1) * RANGE_BYTES as u64
}

/// Deallocates ranges, after all of them are checked. Other attributes are hints and ignored.
fn manage(namespace: &Namespace, deallocates: bool, data: &[u8]) -> Result<(), IoFailure> {
    let ranges = data.chunks_exact(RANGE_BYTES).map(|it| (u64_at(it, 8), u32_at(it, 4).into()));
    let ranges: Vec<(u64, u64)> = ranges.collect();
    for (lba, blocks) in &ranges {
        let end = lba.checked_add(*blocks).filter(|end| *end <= namespace.blocks());
        end.ok_or(IoFailure::Refused(Status::LBA_OUT_OF_RANGE))?;
    }
    if deallocates {
        let shift = namespace.block_shift;
        for (lba, blocks) in ranges.iter().filter(|(_, blocks)| *blocks > 0) {
            let (offset, length) = (lba << shift, blocks << shift);
            namespace.device().trim(offset, length, Durability::Volatile)?;
        }
    }
    Ok(())
}

fn for_each_step(
    offset: u64,
    length: u64,
    mut act: impl FnMut(u64, usize) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    let (mut at, end) = (offset, offset + length);
    while at < end {
        let step = usize::try_from(end - at).unwrap_or(usize::MAX).min(STEP_BYTES);
        act(at, step)?;
        at += step as u64;
    }
    Ok(())
}

/// The deallocation of a Dataset Management for the modelled drive: all ranges as one that begins
/// at the first; none if there are no ranges.
pub(super) fn asked_to_manage(namespace: &Namespace, data: &[u8]) -> Option<Asked> {
    let shift = namespace.block_shift;
    let mut ranges = data.chunks_exact(RANGE_BYTES).map(|it| (u64_at(it, 8), u32_at(it, 4)));
    let (first, _) = ranges.clone().find(|(_, blocks)| *blocks > 0)?;
    let length =
        ranges.try_fold(0_u64, |sum, (_, blocks)| sum.checked_add(blocks.into()))? << shift;
    let offset = (first << shift).saturating_add(namespace.device().origin());
    Some(Asked { op: Op::Trim, offset, length, fua: false })
}
