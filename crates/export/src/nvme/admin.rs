//! The admin queue: each command goes to what carries it out.

use super::answers::Answers;
use super::command::{AdminCommand, Command, fabrics};
use super::context::{CommandCompletion, Context, Outcome};
use super::controller::Controller;
use super::feature::Features;
use super::identify::identify;
use super::log::log_page;
use super::management::{self, manage};
use super::repertoire;
use super::security;
use super::status::Status;
use super::wire::low16;

/// Carries out a command of the admin queue; `data` is the host's data for it.
pub(super) fn execute(
    controller: &mut Controller,
    context: &Context<'_>,
    command: &Command,
    data: &[u8],
) -> Outcome {
    controller.restart_keep_alive();
    if command.fuse() != 0 {
        return Outcome::Completed(Status::INVALID_FIELD.into());
    }
    if command.opcode() == fabrics::OPCODE && controller.transport().is_fabrics() {
        return match command.fabrics_type() {
            fabrics::PROPERTY_GET => controller.property_get(command).into(),
            fabrics::PROPERTY_SET => controller.property_set(context, command).into(),
            fabrics::DISCONNECT => Outcome::Completed(Status::QUEUE_TYPE.into()),
            fabrics::CONNECT => Outcome::Completed(Status::COMMAND_SEQUENCE.into()),
            _ => Outcome::Completed(Status::INVALID_OPCODE.into()),
        };
    }
    if !controller.is_ready() {
        return Outcome::Completed(Status::COMMAND_SEQUENCE.into());
    }
    let Some(kind) = controller.repertoire().admin_command(command.opcode()) else {
        return Outcome::Completed(Status::INVALID_OPCODE.into());
    };
    let done = match kind {
        AdminCommand::Identify => identify(controller, context, command),
        AdminCommand::GetLogPage => log_page(controller, context, command),
        AdminCommand::GetFeatures => controller.get_feature(context, command),
        AdminCommand::SetFeatures => controller.set_feature(context, command, data),
        AdminCommand::FormatNvm
        | AdminCommand::Sanitize
        | AdminCommand::NamespaceManagement
        | AdminCommand::NamespaceAttachment
        | AdminCommand::DeviceSelfTest => {
            return manage(controller, context, (kind, command), data);
        }
        AdminCommand::SecuritySend => security::send(controller, context, command, data),
        AdminCommand::SecurityReceive => security::receive(controller, context, command),
        AdminCommand::KeepAlive => Ok(CommandCompletion::value(0_u32)),
        AdminCommand::Abort => {
            Ok(CommandCompletion::value(controller.events().abort(low16(command.dword(10) >> 16))))
        }
        AdminCommand::AsynchronousEvent => match controller.events().hold(command.id()) {
            Ok(()) => return Outcome::Held,
            Err(status) => Err(status),
        },
        // Those of queues in memory, which the transport carries out.
        AdminCommand::CreateCompletionQueue
        | AdminCommand::CreateSubmissionQueue
        | AdminCommand::DeleteCompletionQueue
        | AdminCommand::DeleteSubmissionQueue
        | AdminCommand::DoorbellBuffer => Err(Status::INVALID_OPCODE),
    };
    done.into()
}

/// Completes a command of the admin queue, unless it is held.
pub(super) fn complete(command: &Command, outcome: Outcome, answers: &mut impl Answers) {
    let completed = match outcome {
        Outcome::Held => return,
        Outcome::Disconnected => Status::SUCCESS.into(),
        Outcome::Completed(completed) => completed,
    };
    let CommandCompletion { status, value, data } = completed;
    if data.is_empty() {
        answers.complete(command.id(), status, value);
    } else {
        answers.deliver(command, &data, value);
    }
}

/// Completes the commands that were held and are due.
pub(super) fn complete_held(controller: &mut Controller, answers: &mut impl Answers) {
    for (id, status, value) in controller.completed() {
        answers.complete(id, status, value.into());
    }
}

/// Bytes that the host sends with a command of the admin queue.
pub(super) fn admin_data_bytes(command: &Command) -> usize {
    match (command.opcode(), command.fabrics_type()) {
        (fabrics::OPCODE, fabrics::CONNECT) => super::fabrics::CONNECT_BYTES,
        (fabrics::OPCODE, fabrics::AUTHENTICATION_SEND) => {
            super::authentication::message_bytes(command.dword(11))
        }
        (opcode, _) => match repertoire::admin_command(opcode) {
            Some(AdminCommand::SetFeatures) => Features::data_bytes(command),
            Some(AdminCommand::SecuritySend) => security::data_bytes(command),
            Some(kind) => management::data_bytes(kind, command),
            None => 0,
        },
    }
}
