//! Admin commands that change a drive: Format NVM, Sanitize, Namespace Management and Attachment,
//! Device Self-test ([nvme-base-2021]; offsets in bytes).
//!
//! ```text
//!   Format NVM ──► begun ──► held ──► the drive has ended ──► its completion
//!   Sanitize, Device Self-test ──► begun: completed at once; their logs report the progress
//! ```

use std::sync::RwLockReadGuard;

use device::{
    EventKind, Exit, FormatRequest, FormatResult, NamespaceRequest, SanitizeRequest, SelfTest, Work,
};

use super::command::{AdminCommand, Command};
use super::context::{CommandCompletion, Context, Outcome};
use super::controller::Controller;
use super::identify::{BLOCK_FORMATS, IDENTIFY_BYTES};
use super::namespace::{ALL_NAMESPACES, AttachmentError, Namespaces};
use super::reservation::{Access, Reservations};
use super::status::{Status, in_progress, refusal};
use super::wire::{low8, u16_at, u64_at};

/// Bit of Sanitize: blocks are to stay allocated.
const NO_DEALLOCATE: u32 = 1 << 9;
/// Most entries of a Controller List.
const LISTED_MAX: u16 = 2047;

/// Bytes that the host sends with one of these commands.
pub(super) fn data_bytes(kind: AdminCommand, command: &Command) -> usize {
    match (kind, command.dword(10) & 0xF) {
        (AdminCommand::NamespaceManagement, 0) | (AdminCommand::NamespaceAttachment, _) => {
            IDENTIFY_BYTES
        }
        _ => 0,
    }
}

/// Carries out one of these commands.
pub(super) fn manage(
    controller: &mut Controller,
    context: &Context<'_>,
    (kind, command): (AdminCommand, &Command),
    data: &[u8],
) -> Outcome {
    let all = context.drive.directory().all();
    // Held until it is begun: a host that acquires a reservation meanwhile waits.
    let _admitted = match admit(controller, &all, (kind, command)) {
        Ok(admitted) => admitted,
        Err(status) => return Outcome::Completed(status.into()),
    };
    let done = match kind {
        AdminCommand::FormatNvm => match format(context, command) {
            Ok(result) => {
                controller.hold_format(command.id(), result);
                note(controller, context, command, "format");
                return Outcome::Held;
            }
            Err(status) => Err(status),
        },
        AdminCommand::Sanitize => sanitize(context, command),
        AdminCommand::NamespaceManagement => namespace_management(context, command, data),
        AdminCommand::NamespaceAttachment => attachment(context, command, data),
        _ => self_test(context, command),
    };
    if done.is_ok() {
        note(controller, context, command, word(kind, command));
    }
    done.into()
}

/// Admits one of these commands, which are of the group of writes, to its namespaces as long as
/// what is returned lives; a self-test and a creation are of none.
///
/// # Errors
/// Fails if a reservation of another host does not admit it.
fn admit<'a>(
    controller: &Controller,
    all: &'a Namespaces,
    (kind, command): (AdminCommand, &Command),
) -> Result<Vec<RwLockReadGuard<'a, Reservations>>, Status> {
    match (kind, command.dword(10) & 0xF) {
        (AdminCommand::DeviceSelfTest, _) | (AdminCommand::NamespaceManagement, 0) => {
            return Ok(Vec::new());
        }
        _ => {}
    }
    let id = command.namespace();
    let is_of_all = kind == AdminCommand::Sanitize || id == ALL_NAMESPACES;
    let host = || controller.shown().identity().host;
    all.iter()
        .filter(|it| is_of_all || it.id == id)
        .map(|it| it.reservations().admit(host, Some(Access::Write)))
        .collect()
}

/// The command in the drive's history, after "asked to ".
fn word(kind: AdminCommand, command: &Command) -> &'static str {
    match (kind, command.dword(10) & 0xF) {
        (AdminCommand::Sanitize, 1) => "exit the failure mode of a sanitize of",
        (AdminCommand::Sanitize, _) => "sanitize",
        (AdminCommand::NamespaceManagement, 0) => "create a namespace of",
        (AdminCommand::NamespaceManagement, _) => "delete",
        (AdminCommand::NamespaceAttachment, 0) => "attach",
        (AdminCommand::NamespaceAttachment, _) => "detach",
        (AdminCommand::DeviceSelfTest, 0xF) => "abort the self-test of",
        _ => "start a self-test of",
    }
}

/// Notes the host and its command in the drive's history.
fn note(controller: &Controller, context: &Context<'_>, command: &Command, word: &str) {
    let of = match command.namespace() {
        0 | ALL_NAMESPACES => "the drive".to_owned(),
        id => format!("namespace {id}"),
    };
    let who = match controller.host() {
        // That of a virtual machine has no name.
        "" => format!("The host of controller {}", controller.id()),
        name => format!("Host {name}"),
    };
    let text = format!("{who} asked to {word} {of}.");
    context.drive.operations().note(EventKind::Other, text);
}

fn format(context: &Context<'_>, command: &Command) -> Result<FormatResult, Status> {
    let dword = command.dword(10);
    // Nothing of metadata or protection information; LBAFU is of formats above 15.
    if dword >> 4 & 0x1F != 0 || dword >> 12 & 3 != 0 {
        return Err(Status::INVALID_FORMAT);
    }
    let formats = BLOCK_FORMATS.get((dword & 0xF) as usize);
    let block_shift = *formats.ok_or(Status::INVALID_FORMAT)?;
    let is_secure = match dword >> 9 & 7 {
        0 => false,
        1 => true,
        // What is erased are the keys, and blocks besides.
        2 if context.drive.operations().erases_keys() => true,
        _ => return Err(Status::INVALID_FIELD),
    };
    let namespace = Some(command.namespace()).filter(|id| *id != ALL_NAMESPACES);
    let request = FormatRequest { namespace, block_bytes: 1 << block_shift, is_secure };
    context.drive.operations().begin_format(&request).map_err(|error| match refusal(&error) {
        // A block size that does not fit the namespace.
        Status::INVALID_FIELD => Status::INVALID_FORMAT,
        status => status,
    })
}

fn sanitize(context: &Context<'_>, command: &Command) -> Result<CommandCompletion, Status> {
    let operations = context.drive.operations();
    let dword = command.dword(10);
    let done = match dword & 7 {
        1 => operations.exit_failure(),
        // Block erase and crypto erase. They leave no blocks allocated, whatever is asked for.
        action @ (2 | 4)
            if (action == 2 || operations.erases_keys())
                && (dword & NO_DEALLOCATE == 0 || context.drive.answers_no_deallocate()) =>
        {
            let is_free = dword & 1 << 3 != 0;
            let exit = if is_free { Exit::Unrestricted } else { Exit::Restricted };
            let keeps_blocks = dword & NO_DEALLOCATE != 0;
            let is_crypto = action == 4;
            operations.begin_sanitize(SanitizeRequest { exit, keeps_blocks, is_crypto })
        }
        _ => return Err(Status::INVALID_FIELD),
    };
    done.map(|()| CommandCompletion::value(0_u32)).map_err(|error| refusal(&error))
}

fn namespace_management(
    context: &Context<'_>,
    command: &Command,
    data: &[u8],
) -> Result<CommandCompletion, Status> {
    let operations = context.drive.operations();
    match command.dword(10) & 0xF {
        0 => {
            let (blocks, capacity) = (u64_at(data, 0), u64_at(data, 8));
            let format = BLOCK_FORMATS.get(usize::from(data[26] & 0xF));
            let block_shift = *format.ok_or(Status::INVALID_FORMAT)?;
            // No thin provisioning, no protection information, not dispersed; NVM command set
            // alone.
            let (protection, sharing) = (data[29], data[30]);
            let is_of_nvm = low8(command.dword(11) >> 24) == 0;
            if capacity != blocks || protection != 0 || sharing > 1 || !is_of_nvm {
                return Err(Status::INVALID_FIELD);
            }
            let size = blocks.checked_mul(1 << block_shift).ok_or(Status::INSUFFICIENT_CAPACITY)?;
            let (block_bytes, is_private) = (1 << block_shift, sharing == 0);
            let request = NamespaceRequest { size, block_bytes, is_private };
            let id = operations.create_namespace(&request).map_err(|error| refusal(&error))?;
            context.drive.directory().forget(id);
            Ok(CommandCompletion::value(id))
        }
        1 => {
            let id = Some(command.namespace()).filter(|id| *id != ALL_NAMESPACES);
            operations.delete_namespace(id).map_err(|error| refusal(&error))?;
            if let Some(id) = id {
                context.drive.directory().forget(id);
            }
            Ok(CommandCompletion::value(0_u32))
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Attaches a namespace to the hosts of listed controllers, or detaches it.
fn attachment(
    context: &Context<'_>,
    command: &Command,
    data: &[u8],
) -> Result<CommandCompletion, Status> {
    let is_attached = match command.dword(10) & 0xF {
        0 => true,
        1 => false,
        _ => return Err(Status::INVALID_FIELD),
    };
    let (drive, id) = (context.drive, command.namespace());
    if let Some(work) = work(context) {
        return Err(in_progress(work));
    }
    let all = drive.directory().all();
    let namespace = all.get(id).ok_or(Status::INVALID_NAMESPACE)?;
    let count = u16_at(data, 0);
    if count == 0 || count > LISTED_MAX {
        return Err(Status::CONTROLLER_LIST);
    }
    let listed: Vec<u16> = (1..=usize::from(count)).map(|index| u16_at(data, 2 * index)).collect();
    let controllers = drive.host_controllers(&listed).ok_or(Status::CONTROLLER_LIST)?;
    match drive.directory().attach(namespace, &controllers, is_attached) {
        Ok(()) => Ok(CommandCompletion::value(0_u32)),
        Err(AttachmentError::IsPrivate) => Err(Status::PRIVATE),
        Err(AttachmentError::TooManyHosts) => Err(Status::ATTACHMENT_LIMIT),
        Err(AttachmentError::IsSo) if is_attached => Err(Status::ALREADY_ATTACHED),
        Err(AttachmentError::IsSo) => Err(Status::NOT_ATTACHED),
    }
}

/// Work under way that does not admit changes of namespaces.
fn work(context: &Context<'_>) -> Option<Work> {
    let status = context.drive.operations().operation_status();
    let is_sanitizing = status.sanitize.state == device::SanitizeState::Running;
    match (is_sanitizing, status.is_formatting) {
        (true, _) => Some(Work::Sanitize),
        (_, true) => Some(Work::Format),
        _ => None,
    }
}

fn self_test(context: &Context<'_>, command: &Command) -> Result<CommandCompletion, Status> {
    let operations = context.drive.operations();
    let test = match command.dword(10) & 0xF {
        1 => SelfTest::Short,
        2 => SelfTest::Extended,
        0xF => {
            operations.abort_self_test();
            return Ok(CommandCompletion::value(0_u32));
        }
        _ => return Err(Status::INVALID_FIELD),
    };
    // 0: the controller alone, which is what is below all namespaces.
    let namespace = Some(command.namespace()).filter(|id| ![0, ALL_NAMESPACES].contains(id));
    let begun = operations.begin_self_test(test, namespace);
    begun.map(|()| CommandCompletion::value(0_u32)).map_err(|error| refusal(&error))
}
