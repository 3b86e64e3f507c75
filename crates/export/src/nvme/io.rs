//! Commands of the NVM command set ([nvme-nvm-2021]), checked against their namespace.

use std::ops::RangeInclusive;

use blockio::Op;
use device::{DeviceError, Durability, Operations};

use super::command::{Command, IoCommand};
use super::namespace::{ALL_NAMESPACES, Namespace, Namespaces};
use super::repertoire::Repertoire;
use super::reservation::{Access, ReservationCommand};
use super::status::{Status, in_progress, refusal};
use super::transport::TRANSFER_BYTES_MAX;
use super::wire::{low16, u32_at, u64_at};
use crate::PacedCommand;

/// Bytes that are verified at a time.
const STEP_BYTES: usize = 256 << 10;
/// Bytes of a range of Dataset Management.
const RANGE_BYTES: usize = 16;
/// Maximum number of ranges in one Dataset Management.
const RANGES_MAX: usize = 256;
/// Bytes of a source range of Copy.
const SOURCE_BYTES: usize = 32;
/// Source ranges of one Copy at most.
pub(super) const SOURCES_MAX: usize = 128;
/// Bytes of a sector, in which devices name what is lost.
const SECTOR_BYTES: u64 = 512;
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
    WriteUncorrectable,
    /// Copies source ranges, as many as this says, to the place of the command.
    Copy(usize),
    /// Changes reservations.
    Reserve(ReservationCommand),
    ReportReservations {
        /// True if Host Identifiers of 128 bits are asked for.
        is_extended: bool,
    },
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
    /// Time in its namespace since which it waited for its data; none if it did not.
    pub(super) waits_since: Option<u64>,
}

impl Io {
    /// Reads a command and checks it.
    ///
    /// # Errors
    /// Fails with the status that the command is to be completed with.
    pub(super) fn parse(
        command: &Command,
        repertoire: Repertoire,
        namespaces: &Namespaces,
    ) -> Result<Self, Status> {
        if command.fuse() != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let dword = command.dword(12);
        let kind = match repertoire.io_command(command.opcode()) {
            Some(IoCommand::Read) => IoKind::Read,
            Some(IoCommand::Write) => IoKind::Write,
            Some(IoCommand::Compare) => IoKind::Compare,
            Some(IoCommand::Verify) => IoKind::Verify,
            Some(IoCommand::WriteZeroes) => IoKind::WriteZeroes(dword & DEALLOCATE != 0),
            Some(IoCommand::DatasetManagement) => IoKind::Manage(command.dword(11) & 1 << 2 != 0),
            Some(IoCommand::Flush) => IoKind::Flush,
            Some(IoCommand::WriteUncorrectable) => IoKind::WriteUncorrectable,
            Some(IoCommand::Copy) => IoKind::Copy(sources(dword)?),
            Some(
                it @ (IoCommand::ReservationRegister
                | IoCommand::ReservationAcquire
                | IoCommand::ReservationRelease),
            ) => IoKind::Reserve(ReservationCommand::parse(it, command.dword(10))?),
            Some(IoCommand::ReservationReport) => {
                IoKind::ReportReservations { is_extended: command.dword(11) & 1 == 1 }
            }
            None => return Err(Status::INVALID_OPCODE),
        };
        let id = command.namespace();
        if kind == IoKind::Flush && id == ALL_NAMESPACES {
            let (offset, length, lba) = (0, 0, 0);
            let (is_durable, waits_since) = (true, None);
            return Ok(Self { kind, namespace: 0, offset, length, lba, is_durable, waits_since });
        }
        let namespace = namespaces.get(id).ok_or(Status::INVALID_NAMESPACE)?;
        let (offset, length, lba, is_durable, waits_since) = (0, 0, 0, false, None);
        let mut io = Self { kind, namespace: id, offset, length, lba, is_durable, waits_since };
        match kind {
            IoKind::Flush => io.is_durable = true,
            IoKind::Manage(_) => io.length = ranges_bytes(command.dword(10)),
            IoKind::Reserve(_) => {}
            IoKind::ReportReservations { .. } => {
                // NUMD counts from 0, in dwords.
                io.length = 4 * (u64::from(command.dword(10)) + 1);
                if io.length > TRANSFER_BYTES_MAX as u64 {
                    return Err(Status::INVALID_FIELD);
                }
            }
            // Its length is that of its sources.
            IoKind::Copy(_) => {
                io.lba = command.quad(10);
                io.offset = io.lba.checked_shl(namespace.block_shift.into()).unwrap_or(u64::MAX);
                io.is_durable = dword & FORCE_UNIT_ACCESS != 0;
                if io.lba >= namespace.blocks() {
                    return Err(Status::LBA_OUT_OF_RANGE);
                }
            }
            _ => io.place(namespace, command)?,
        }
        if io.changes() && namespace.is_read_only {
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
        matches!(
            self.kind,
            IoKind::Write
                | IoKind::WriteZeroes(_)
                | IoKind::Manage(true)
                | IoKind::WriteUncorrectable
                | IoKind::Copy(_)
        )
    }

    /// Group of commands that reservations admit or not ([nvme-base-2021], "Command Behavior in the
    /// Presence of a Reservation"); none of those that check registrations themselves.
    pub(super) const fn access(&self) -> Option<Access> {
        match self.kind {
            IoKind::Read | IoKind::Compare | IoKind::Verify => Some(Access::Read),
            IoKind::Write
            | IoKind::WriteZeroes(_)
            | IoKind::Manage(_)
            | IoKind::Flush
            | IoKind::WriteUncorrectable
            | IoKind::Copy(_) => Some(Access::Write),
            IoKind::Reserve(_) | IoKind::ReportReservations { .. } => None,
        }
    }

    /// Minimum and maximum bytes that the host sends with it. They differ for Dataset Management:
    /// Linux always sends a list of the maximum size.
    pub(super) fn host_bytes(&self) -> RangeInclusive<usize> {
        let bytes = match self.kind {
            IoKind::Write | IoKind::Compare | IoKind::Manage(_) => self.length,
            IoKind::Copy(sources) => (sources * SOURCE_BYTES) as u64,
            IoKind::Reserve(command) => command.data_bytes() as u64,
            _ => 0,
        };
        let least = usize::try_from(bytes).expect("bounded by a transfer");
        let most = if let IoKind::Manage(_) = self.kind { RANGES_MAX * RANGE_BYTES } else { least };
        least..=most
    }

    /// The command for the modelled drive, if drives have such a command; `origin` is the
    /// namespace's first byte on the drive.
    pub(super) fn asked(&self, origin: u64) -> Option<PacedCommand> {
        let op = match self.kind {
            // The drive compares, so it reads.
            IoKind::Read | IoKind::Compare | IoKind::Verify => Op::Read,
            IoKind::Write | IoKind::WriteZeroes(false) => Op::Write,
            IoKind::WriteZeroes(true) => Op::Trim,
            IoKind::Flush => Op::Flush,
            // Its ranges are known once its data is there, or it moves no data.
            IoKind::Manage(_)
            | IoKind::Copy(_)
            | IoKind::WriteUncorrectable
            | IoKind::Reserve(_)
            | IoKind::ReportReservations { .. } => return None,
        };
        let (offset, length) = (self.offset.saturating_add(origin), self.length);
        let fua = self.is_durable && self.kind != IoKind::Flush;
        Some(PacedCommand { op, offset, length, fua })
    }

    /// Carries out a command other than a read, a flush or one of reservations; `data` is the
    /// host's data for it.
    ///
    /// # Errors
    /// Fails with what the device answered, or with the status of a comparison that differs.
    pub(super) fn carry_out(
        &self,
        namespace: &Namespace,
        data: &[u8],
        operations: &dyn Operations,
    ) -> Result<(), IoFailure> {
        let device = namespace.device();
        match self.kind {
            IoKind::Write => device.write(self.offset, data, Durability::Volatile)?,
            IoKind::WriteZeroes(true) => {
                device.trim(self.offset, self.length, Durability::Volatile)?;
            }
            IoKind::WriteZeroes(false) => {
                device.write_zeroes(self.offset, self.length, &|| true)?;
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
            IoKind::Copy(_) => copy(namespace, self.offset, data)?,
            IoKind::WriteUncorrectable => {
                let (sector, sectors) = (self.offset / SECTOR_BYTES, self.length / SECTOR_BYTES);
                let marked = operations.mark_unreadable(namespace.id, sector, sectors);
                marked.map_err(|error| IoFailure::Refused(refusal(&error)))?;
            }
            IoKind::Read
            | IoKind::Flush
            | IoKind::Reserve(_)
            | IoKind::ReportReservations { .. } => {}
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
            DeviceError::Reserved => Status::RESERVATION_CONFLICT,
            DeviceError::Locked => Status::ACCESS_DENIED,
            DeviceError::Gone => Status::INVALID_NAMESPACE,
            DeviceError::InProgress(work) => in_progress(*work),
            DeviceError::Unreadable { .. } => Status::UNRECOVERED_READ,
            DeviceError::Medium { .. } | DeviceError::Transient { .. }
                if !io.changes() && io.kind != IoKind::Flush =>
            {
                Status::UNRECOVERED_READ
            }
            _ => Status::WRITE_FAULT,
        };
        let lba = match error {
            DeviceError::Unreadable { lba, .. } => lba >> (block_shift - 9),
            _ => io.lba,
        };
        (status, lba)
    }
}

/// Number of source ranges of a Copy, from command dword 12, which has their format too.
fn sources(dword: u32) -> Result<usize, Status> {
    // Format 0: ranges of the same namespace, without protection information.
    if dword >> 8 & 0xF != 0 {
        return Err(Status::INVALID_FIELD);
    }
    let sources = (dword & 0xFF) as usize + 1;
    if sources > SOURCES_MAX { Err(Status::COMMAND_SIZE_LIMIT) } else { Ok(sources) }
}

/// Copies source ranges, one after the other, to `offset`. All are checked and read first, so that
/// a destination may overlap its sources.
fn copy(namespace: &Namespace, offset: u64, data: &[u8]) -> Result<(), IoFailure> {
    let shift = namespace.block_shift;
    let sources: Vec<(u64, u64)> = data
        .chunks_exact(SOURCE_BYTES)
        .map(|it| (u64_at(it, 8), u64::from(low16(u32_at(it, 16))) + 1))
        .collect();
    let blocks: u64 = sources.iter().map(|(_, blocks)| blocks).sum();
    if blocks << shift > TRANSFER_BYTES_MAX as u64 {
        return Err(IoFailure::Refused(Status::COMMAND_SIZE_LIMIT));
    }
    let ranges = sources.iter().copied().chain([(offset >> shift, blocks)]);
    for (lba, blocks) in ranges {
        let end = lba.checked_add(blocks).filter(|end| *end <= namespace.blocks());
        end.ok_or(IoFailure::Refused(Status::LBA_OUT_OF_RANGE))?;
    }
    let mut copied = vec![0; usize::try_from(blocks << shift).expect("bounded by a transfer")];
    let mut rest = &mut copied[..];
    for (lba, blocks) in sources {
        let length = usize::try_from(blocks << shift).expect("bounded by a transfer");
        let (here, after) = rest.split_at_mut(length);
        namespace.device().read(lba << shift, here)?;
        rest = after;
    }
    Ok(namespace.device().write(offset, &copied, Durability::Volatile)?)
}

/// Bytes of the ranges that follow a Dataset Management, of which the dword has the number.
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

/// The deallocation of a Dataset Management as the modelled drive needs it: all its ranges as one
/// that begins with the first; none where there is none.
pub(super) fn asked_of_ranges(namespace: &Namespace, data: &[u8]) -> Option<PacedCommand> {
    let shift = namespace.block_shift;
    let mut ranges = data.chunks_exact(RANGE_BYTES).map(|it| (u64_at(it, 8), u32_at(it, 4)));
    let (first, _) = ranges.clone().find(|(_, blocks)| *blocks > 0)?;
    let length =
        ranges.try_fold(0_u64, |sum, (_, blocks)| sum.checked_add(blocks.into()))? << shift;
    let offset = (first << shift).saturating_add(namespace.device().origin());
    Some(PacedCommand { op: Op::Trim, offset, length, fua: false })
}
