//! The admin queue: each command goes to what carries it out.

use super::answers::Answers;
use super::command::{Command, admin, fabrics};
use super::context::{CommandCompletion, Context, Outcome};
use super::controller::Controller;
use super::feature::Features;
use super::host::Purpose;
use super::identify::identify;
use super::log::log_page;
use super::management::{self, manage};
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
    let done = match command.opcode() {
        admin::IDENTIFY => identify(controller, context, command),
        admin::GET_LOG_PAGE => log_page(controller, context, command),
        admin::GET_FEATURES => controller.get_feature(context, command),
        admin::SET_FEATURES => controller.set_feature(context, command, data),
        admin::FORMAT_NVM
        | admin::SANITIZE
        | admin::NAMESPACE_MANAGEMENT
        | admin::NAMESPACE_ATTACHMENT
        | admin::DEVICE_SELF_TEST
            if controller.kind() == Purpose::Io =>
        {
            return manage(controller, context, command, data);
        }
        admin::KEEP_ALIVE => Ok(CommandCompletion::value(0_u32)),
        admin::ABORT if controller.kind() == Purpose::Io => {
            Ok(CommandCompletion::value(controller.events().abort(low16(command.dword(10) >> 16))))
        }
        admin::ASYNCHRONOUS_EVENT => match controller.events().hold(command.id()) {
            Ok(()) => return Outcome::Held,
            Err(status) => Err(status),
        },
        _ => Err(Status::INVALID_OPCODE),
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
        (admin::SET_FEATURES, _) => Features::data_bytes(command),
        _ => management::data_bytes(command),
    }
}
