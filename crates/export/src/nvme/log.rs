//! Log pages ([nvme-base-2021], "Get Log Page command"; offsets in bytes).

mod endurance;
mod lateness;
mod persistent;
mod telemetry;
mod work;

use std::net::{IpAddr, SocketAddr};

pub(super) use self::telemetry::Telemetry;
use super::command::{Command, admin, nvm};
use super::context::{CommandCompletion, Context};
use super::controller::Controller;
use super::drive::DISCOVERY_NQN;
use super::event::Page;
use super::feature;
use super::host::Purpose;
use super::namespace::ALL_NAMESPACES;
use super::status::Status;
use super::transport::TRANSFER_BYTES_MAX;
use super::wire::{Structure, low8};
use crate::TlsMode;

/// Identifiers of log pages.
mod page {
    pub(super) const SUPPORTED: u8 = 0x00;
    pub(super) const ERRORS: u8 = 0x01;
    pub(super) const HEALTH: u8 = 0x02;
    pub(super) const FIRMWARE: u8 = 0x03;
    pub(super) const CHANGED_NAMESPACES: u8 = 0x04;
    pub(super) const EFFECTS: u8 = 0x05;
    pub(super) const SELF_TESTS: u8 = 0x06;
    pub(super) const HOST_TELEMETRY: u8 = 0x07;
    pub(super) const CONTROLLER_TELEMETRY: u8 = 0x08;
    pub(super) const ENDURANCE_GROUP: u8 = 0x09;
    pub(super) const PERSISTENT_EVENTS: u8 = 0x0D;
    pub(super) const FEATURES: u8 = 0x12;
    pub(super) const MANAGEMENT_INTERFACE: u8 = 0x13;
    pub(super) const DISCOVERY: u8 = 0x70;
    pub(super) const SANITIZE: u8 = 0x81;
    pub(super) const OCP_HEALTH: u8 = 0xC0;
    pub(super) const LATENESS: u8 = 0xC1;
}

/// Pages of a controller for I/O.
const OF_IO: [u8; 15] = [
    page::SUPPORTED,
    page::ERRORS,
    page::HEALTH,
    page::FIRMWARE,
    page::CHANGED_NAMESPACES,
    page::EFFECTS,
    page::SELF_TESTS,
    page::HOST_TELEMETRY,
    page::CONTROLLER_TELEMETRY,
    page::ENDURANCE_GROUP,
    page::PERSISTENT_EVENTS,
    page::FEATURES,
    page::MANAGEMENT_INTERFACE,
    page::SANITIZE,
    page::OCP_HEALTH,
];
/// Further page of a controller for I/O whose completions keep to the times of a model.
const OF_MODEL: [u8; 1] = [page::LATENESS];
/// Log pages of a discovery controller.
const OF_DISCOVERY: [u8; 2] = [page::SUPPORTED, page::DISCOVERY];
/// Admin commands of a controller for I/O.
const ADMIN_COMMANDS: [u8; 7] = [
    admin::GET_LOG_PAGE,
    admin::IDENTIFY,
    admin::ABORT,
    admin::SET_FEATURES,
    admin::GET_FEATURES,
    admin::ASYNCHRONOUS_EVENT,
    admin::KEEP_ALIVE,
];
/// Admin commands of a drive that hosts operate, with their effects but those on namespaces' data:
/// capabilities of namespaces (bit 2), which there are (bit 3), and what may be outstanding beside
/// the command (bits 18:16: nothing of its namespace, or nothing at all).
const OPERATIONS: [(u8, u32); 5] = [
    (admin::NAMESPACE_MANAGEMENT, 1 << 3 | 2 << 16),
    (admin::DEVICE_SELF_TEST, 0),
    (admin::NAMESPACE_ATTACHMENT, 1 << 3 | 2 << 16),
    (admin::FORMAT_NVM, 1 << 2 | 1 << 1 | 1 << 16),
    (admin::SANITIZE, 1 << 1 | 2 << 16),
];
/// Commands that change nothing of a namespace, and those that do.
const READING_COMMANDS: [u8; 4] = [nvm::FLUSH, nvm::READ, nvm::COMPARE, nvm::VERIFY];
const WRITING_COMMANDS: [u8; 5] =
    [nvm::WRITE, nvm::WRITE_UNCORRECTABLE, nvm::WRITE_ZEROES, nvm::DATASET_MANAGEMENT, nvm::COPY];
/// Bytes of the health log.
const HEALTH_BYTES: usize = 512;
/// Bytes of a data unit of the health log: a thousand sectors.
const DATA_UNIT_BYTES: u64 = 512_000;

/// Answers a Get Log Page command.
pub(super) fn log_page(
    controller: &mut Controller,
    context: &Context<'_>,
    command: &Command,
) -> Result<CommandCompletion, Status> {
    let id = low8(command.dword(10));
    let known = known(controller.kind(), context);
    if !known.contains(&id) {
        return Err(Status::INVALID_LOG_PAGE);
    }
    // NUMD counts from 0, in dwords.
    let dwords = u64::from(command.dword(10) >> 16) | u64::from(command.dword(11) & 0xFFFF) << 16;
    let (length, offset) = (4 * (dwords + 1), command.quad(12));
    // OT: offsets are in bytes.
    if offset % 4 != 0 || command.dword(14) & 1 << 23 != 0 || length > TRANSFER_BYTES_MAX as u64 {
        return Err(Status::INVALID_FIELD);
    }
    let retains_event = command.dword(10) & 1 << 15 != 0;
    let whole = match id {
        page::SUPPORTED => supported(&known),
        page::ERRORS => controller.errors().page(controller.transport()),
        page::HEALTH => health(controller, context, command.namespace(), retains_event)?,
        page::FIRMWARE => firmware(context),
        page::CHANGED_NAMESPACES => changed_namespaces(controller, retains_event),
        page::EFFECTS => effects(context),
        page::FEATURES => features(feature::known(controller.kind(), controller.transport())),
        page::SELF_TESTS => work::self_tests(&context.drive.operations().operation_status()),
        page::HOST_TELEMETRY | page::CONTROLLER_TELEMETRY => {
            telemetry(controller, context, command, (length, offset))?
        }
        page::ENDURANCE_GROUP => {
            if command.dword(11) >> 16 != u32::from(endurance::GROUP) {
                return Err(Status::INVALID_FIELD);
            }
            let health = context.drive.operations().health();
            endurance::group(context, controller.features().critical_warning(&health))
        }
        page::PERSISTENT_EVENTS => persistent_events(controller, context, command)?,
        page::SANITIZE => {
            if !retains_event {
                controller.events().page_read(Page::Sanitize);
            }
            work::sanitize(&context.drive.operations().operation_status().sanitize)
        }
        page::OCP_HEALTH => endurance::ocp(&context.drive.operations().health()),
        page::LATENESS => context.pace.map(lateness::page).unwrap_or_default(),
        // None of the management interface's commands are there.
        page::MANAGEMENT_INTERFACE => vec![0; 1024],
        _ => discovery(context),
    };
    let offset = usize::try_from(offset).ok().filter(|offset| *offset <= whole.len());
    let rest = &whole[offset.ok_or(Status::INVALID_FIELD)?..];
    let length = usize::try_from(length).expect("bounded by a transfer");
    let mut data = rest[..length.min(rest.len())].to_vec();
    // Reads beyond the end of a page return zeroes.
    data.resize(length, 0);
    Ok(CommandCompletion::data(data))
}

/// Identifiers of the pages of a controller.
fn known(kind: Purpose, context: &Context<'_>) -> Vec<u8> {
    match (kind, context.pace) {
        (Purpose::Io, Some(_)) => [&OF_IO[..], &OF_MODEL].concat(),
        (Purpose::Io, None) => OF_IO.to_vec(),
        (Purpose::Discovery, _) => OF_DISCOVERY.to_vec(),
    }
}

fn supported(known: &[u8]) -> Vec<u8> {
    let mut it = Structure::new(1024);
    for id in known {
        it.put_u32(4 * usize::from(*id), 1);
    }
    it.into_bytes()
}

/// Telemetry, in whole blocks.
fn telemetry(
    controller: &mut Controller,
    context: &Context<'_>,
    command: &Command,
    (length, offset): (u64, u64),
) -> Result<Vec<u8>, Status> {
    let block_bytes = telemetry::BLOCK_BYTES as u64;
    if !length.is_multiple_of(block_bytes) || !offset.is_multiple_of(block_bytes) {
        return Err(Status::INVALID_FIELD);
    }
    if low8(command.dword(10)) == page::CONTROLLER_TELEMETRY {
        return Ok(Telemetry::of_controller());
    }
    // LSP: a new capture.
    if command.dword(10) & 1 << 8 != 0 {
        controller.telemetry().capture(context.drive.operations().telemetry());
    }
    Ok(controller.telemetry().of_host())
}

/// Persistent Event log, as LSP asks for it: as it was when the host began to read it.
fn persistent_events(
    controller: &mut Controller,
    context: &Context<'_>,
    command: &Command,
) -> Result<Vec<u8>, Status> {
    const READ: u32 = 0;
    const BEGIN: u32 = 1;
    const END: u32 = 2;
    match command.dword(10) >> 8 & 3 {
        READ => controller.persistent_events().clone().ok_or(Status::COMMAND_SEQUENCE),
        BEGIN if controller.persistent_events().is_some() => Err(Status::COMMAND_SEQUENCE),
        BEGIN => {
            let health = health(controller, context, 0, true)?;
            let page = persistent::page(context, controller.id(), &health);
            *controller.persistent_events() = Some(page.clone());
            Ok(page)
        }
        END => {
            controller.persistent_events().take();
            Ok(vec![0; HEALTH_BYTES])
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

/// SMART / Health Information.
fn health(
    controller: &mut Controller,
    context: &Context<'_>,
    namespace: u32,
    retains_event: bool,
) -> Result<Vec<u8>, Status> {
    // The log exists for the controller only, not for single namespaces.
    if namespace != 0 && namespace != ALL_NAMESPACES {
        return Err(Status::INVALID_FIELD);
    }
    if !retains_event {
        controller.events().page_read(Page::Health);
    }
    let health = context.drive.operations().health();
    let units = |bytes: u64| u128::from(bytes.div_ceil(DATA_UNIT_BYTES));
    let mut it = Structure::new(HEALTH_BYTES);
    it.put_u8(0, controller.features().critical_warning(&health));
    it.put_u16(1, health.composite_temperature_k.unwrap_or(0));
    it.put_u8(3, health.available_spare_percent);
    it.put_u8(4, health.available_spare_threshold_percent);
    it.put_u8(5, health.percentage_used);
    it.put_u128(32, units(health.host_read_bytes));
    it.put_u128(48, units(health.host_written_bytes));
    it.put_u128(64, health.host_read_commands.into());
    it.put_u128(80, health.host_write_commands.into());
    it.put_u128(112, health.power_cycles.into());
    it.put_u128(128, (health.power_on_s / 3600).into());
    it.put_u128(144, health.unsafe_shutdowns.into());
    it.put_u128(160, health.media_errors.into());
    it.put_u128(176, context.drive.errors().into());
    Ok(it.into_bytes())
}

/// Firmware Slot Information: the only slot is active.
fn firmware(context: &Context<'_>) -> Vec<u8> {
    let mut it = Structure::new(512);
    it.put_u8(0, 1);
    it.put_padded(8, 8, &context.drive.identity().firmware);
    it.into_bytes()
}

fn changed_namespaces(controller: &mut Controller, retains_event: bool) -> Vec<u8> {
    let events = controller.events();
    let changed = if retains_event {
        events.changed().clone()
    } else {
        events.page_read(Page::ChangedNamespaces)
    };
    let mut it = Structure::new(4096);
    if changed.len() > 1024 {
        it.put_u32(0, ALL_NAMESPACES);
        return it.into_bytes();
    }
    for (index, id) in changed.into_iter().enumerate() {
        it.put_u32(4 * index, id);
    }
    it.into_bytes()
}

/// Commands Supported and Effects: admin commands, then those for I/O.
fn effects(context: &Context<'_>) -> Vec<u8> {
    const SUPPORTED: u32 = 1;
    const CHANGES_DATA: u32 = 1 << 1;
    // Scopes: one namespace, one controller.
    const OF_NAMESPACE: u32 = 1 << 20;
    const OF_CONTROLLER: u32 = 1 << 21;
    const OF_SUBSYSTEM: u32 = 1 << 25;
    let mut it = Structure::new(4096);
    for opcode in ADMIN_COMMANDS {
        it.put_u32(4 * usize::from(opcode), SUPPORTED | OF_CONTROLLER);
    }
    if context.drive.operations().is_operable() {
        for (opcode, effects) in OPERATIONS {
            it.put_u32(4 * usize::from(opcode), SUPPORTED | effects | OF_SUBSYSTEM);
        }
    }
    for opcode in READING_COMMANDS {
        it.put_u32(1024 + 4 * usize::from(opcode), SUPPORTED | OF_NAMESPACE);
    }
    for opcode in WRITING_COMMANDS {
        let effects = SUPPORTED | CHANGES_DATA | OF_NAMESPACE;
        it.put_u32(1024 + 4 * usize::from(opcode), effects);
    }
    it.into_bytes()
}

/// Feature Identifiers Supported and Effects: each feature has the scope of one controller.
fn features(known: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut it = Structure::new(1024);
    for id in known {
        it.put_u32(4 * usize::from(id), 1 << 21 | 1);
    }
    it.into_bytes()
}

/// Discovery log: the discovery subsystem itself and the one with the namespaces, both at the
/// address that the host connected to.
fn discovery(context: &Context<'_>) -> Vec<u8> {
    const HEADER_BYTES: usize = 1024;
    const ENTRY_BYTES: usize = 1024;
    // Without an address of the transport there is nothing to connect to.
    let Some(address) = context.address else { return vec![0; HEADER_BYTES] };
    let entries = [(3, DISCOVERY_NQN), (2, context.drive.nqn())];
    let mut it = Structure::new(HEADER_BYTES + entries.len() * ENTRY_BYTES);
    // The log never changes while the server runs, so its generation is always 1.
    it.put_u64(0, 1);
    it.put_u64(8, entries.len() as u64);
    for (index, (kind, nqn)) in entries.into_iter().enumerate() {
        let at = HEADER_BYTES + index * ENTRY_BYTES;
        put_discovered(&mut it, at, address, kind, nqn);
        put_security(&mut it, at, context.encryption);
    }
    it.into_bytes()
}

/// One entry of the discovery log.
fn put_discovered(it: &mut Structure, at: usize, address: SocketAddr, kind: u8, nqn: &str) {
    // An IPv4-mapped IPv6 address is reported as IPv4.
    let host = address.ip().to_canonical();
    // TRTYPE: TCP. TREQ: SQ flow control may be left out.
    it.put_u8(at, 3);
    it.put_u8(at + 1, if matches!(host, IpAddr::V4(_)) { 1 } else { 2 });
    it.put_u8(at + 2, kind);
    it.put_u8(at + 3, 1 << 2);
    // PORTID: the only port. CNTLID: dynamic controllers.
    it.put_u16(at + 4, 1);
    it.put_u16(at + 6, 0xFFFF);
    it.put_u16(at + 8, 32);
    it.put_padded(at + 32, 32, &address.port().to_string());
    it.put_terminated(at + 256, 256, nqn);
    it.put_padded(at + 512, 256, &host.to_string());
}

/// Security of an entry: whether a secure channel is required (TREQ), and TLS 1.3 (TSAS).
fn put_security(it: &mut Structure, at: usize, encryption: Option<TlsMode>) {
    let Some(mode) = encryption else { return };
    let secure_channel = match mode {
        TlsMode::Required => 1,
        TlsMode::Allowed => 2,
    };
    it.put_u8(at + 3, 1 << 2 | secure_channel);
    it.put_u8(at + 768, 2);
}
