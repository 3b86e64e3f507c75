//! SGL descriptors of capsules ([nvme-base-2021], "Scatter Gather List"; [nvme-tcp-2021], "Data
//! Transfers"): where the data of a command is.

use std::ops::RangeInclusive;

use super::super::command::Command;
use super::super::status::Status;
use super::super::wire::{u32_at, u64_at};

/// Place of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataPlace {
    /// In the capsule of the command, from this offset on.
    Capsule { offset: u64, length: u32 },
    /// Brought by the transport.
    Transport { length: u32 },
}

/// Data of a command.
pub(super) enum CommandData<'a> {
    Here(&'a [u8]),
    /// The host is to be asked for so many bytes.
    Later(usize),
}

/// The place of a command's data, as its only descriptor has it.
pub(super) fn place(command: &Command) -> Result<DataPlace, Status> {
    let entry = command.bytes();
    // PSDT: fabrics use SGLs, without metadata.
    if entry[1] >> 6 != 1 {
        return Err(Status::INVALID_FIELD);
    }
    let (address, length) = (u64_at(entry, 24), u32_at(entry, 32));
    match entry[39] {
        0x01 => Ok(DataPlace::Capsule { offset: address, length }),
        0x5A => Ok(DataPlace::Transport { length }),
        _ => Err(Status::SGL_TYPE),
    }
}

/// Checks that a command has a place for `bytes` that the controller sends, and for no more where
/// `is_exact`.
pub(super) fn check_room(command: &Command, bytes: usize, is_exact: bool) -> Result<(), Status> {
    match place(command)? {
        DataPlace::Transport { length } if length as usize == bytes => Ok(()),
        DataPlace::Transport { length } if !is_exact && length as usize > bytes => Ok(()),
        DataPlace::Transport { .. } => Err(Status::SGL_LENGTH),
        DataPlace::Capsule { .. } => Err(Status::SGL_TYPE),
    }
}

/// Finds the `bytes` that a host sends with a command, in its capsule or by the transport.
pub(super) fn found<'a>(
    command: &Command,
    bytes: &RangeInclusive<usize>,
    capsule: &'a [u8],
) -> Result<CommandData<'a>, Status> {
    if *bytes.end() == 0 {
        return Ok(CommandData::Here(&[]));
    }
    match place(command)? {
        DataPlace::Capsule { length, .. } | DataPlace::Transport { length }
            if !bytes.contains(&(length as usize)) =>
        {
            Err(Status::SGL_LENGTH)
        }
        DataPlace::Capsule { offset, length } => {
            let from = usize::try_from(offset).ok().filter(|from| *from <= capsule.len());
            let rest = &capsule[from.ok_or(Status::SGL_OFFSET)?..];
            rest.get(..length as usize).map(CommandData::Here).ok_or(Status::SGL_LENGTH)
        }
        DataPlace::Transport { length } => Ok(CommandData::Later(length as usize)),
    }
}
