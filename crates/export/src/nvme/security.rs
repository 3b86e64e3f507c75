//! Security Send and Security Receive ([nvme-base-2021]): TCG Opal, which the drive carries out.
//!
//! Dword 10 has the protocol in bits 31:24 and what is specific to it, the ComID, in bits 23:8;
//! dword 11 the bytes that are moved.

use device::SecurityRefusal;
use device::opal::Channel;

use super::command::Command;
use super::context::{CommandCompletion, Context};
use super::controller::Controller;
use super::status::Status;
use super::transport::TRANSFER_BYTES_MAX;
use super::wire::{low8, low16};

/// Bytes that the host sends with Security Send; none of more than are taken.
pub(super) fn data_bytes(command: &Command) -> usize {
    length(command).unwrap_or(0)
}

fn length(command: &Command) -> Result<usize, Status> {
    let length = usize::try_from(command.dword(11)).ok();
    length.filter(|it| *it <= TRANSFER_BYTES_MAX).ok_or(Status::INVALID_FIELD)
}

fn channel(controller: &Controller, command: &Command) -> Channel {
    let dword = command.dword(10);
    let (protocol, specific) = (low8(dword >> 24), low16(dword >> 8));
    Channel { id: controller.security_channel(), protocol, specific }
}

/// Carries out Security Send.
pub(super) fn send(
    controller: &Controller,
    context: &Context<'_>,
    command: &Command,
    data: &[u8],
) -> Result<CommandCompletion, Status> {
    length(command)?;
    let sent = context.drive.operations().security_send(channel(controller, command), data);
    sent.map(|()| CommandCompletion::value(0_u32)).map_err(status)
}

/// Carries out Security Receive: what the drive has is followed by zeroes.
pub(super) fn receive(
    controller: &Controller,
    context: &Context<'_>,
    command: &Command,
) -> Result<CommandCompletion, Status> {
    let length = length(command)?;
    let channel = channel(controller, command);
    let mut bytes = context.drive.operations().security_receive(channel, length).map_err(status)?;
    bytes.resize(length, 0);
    Ok(CommandCompletion::data(bytes))
}

const fn status(refusal: SecurityRefusal) -> Status {
    match refusal {
        SecurityRefusal::Unsupported => Status::INVALID_FIELD,
        SecurityRefusal::Busy => Status::INTERNAL,
        SecurityRefusal::Sequence => Status::COMMAND_SEQUENCE,
    }
}
