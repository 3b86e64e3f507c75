//! Log pages ([nvme-base-2021], "Get Log Page command"; offsets in bytes).

mod endurance;
mod lateness;
mod persistent;
mod telemetry;
mod work;

use std::net::{IpAddr, SocketAddr};

pub(super) use self::telemetry::Telemetry;
use super::command::Command;
use super::context::{CommandCompletion, Context};
use super::controller::Controller;
use super::drive::DISCOVERY_NQN;
use super::feature::temperature_k;
use super::namespace::ALL_NAMESPACES;
use super::property::QUEUE_ENTRIES_MAX;
use super::repertoire::LogPage;
use super::status::Status;
use super::transport::TRANSFER_BYTES_MAX;
use super::wire::{Structure, low8, low16};
use crate::TlsMode;

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
    let repertoire = controller.repertoire();
    let page = repertoire.page(low8(command.dword(10))).ok_or(Status::INVALID_LOG_PAGE)?;
    // NUMD counts from 0, in dwords.
    let dwords = u64::from(command.dword(10) >> 16) | u64::from(command.dword(11) & 0xFFFF) << 16;
    let (length, offset) = (4 * (dwords + 1), command.quad(12));
    // OT: offsets are in bytes.
    if offset % 4 != 0 || command.dword(14) & 1 << 23 != 0 || length > TRANSFER_BYTES_MAX as u64 {
        return Err(Status::INVALID_FIELD);
    }
    let retains_event = command.dword(10) & 1 << 15 != 0;
    let whole = match page {
        LogPage::Supported => repertoire.supported_pages(),
        LogPage::Errors => {
            if !retains_event {
                controller.events().page_read(page);
            }
            controller.errors().page(controller.transport())
        }
        LogPage::Health => health(controller, context, command.namespace(), retains_event)?,
        LogPage::Firmware => firmware(context),
        LogPage::ChangedNamespaces => changed_namespaces(controller, retains_event),
        LogPage::Effects => repertoire.command_effects(),
        LogPage::Features => repertoire.feature_effects(),
        LogPage::SelfTests => work::self_tests(&context.drive.operations().operation_status()),
        LogPage::HostTelemetry | LogPage::ControllerTelemetry => {
            telemetry(controller, context, (page, command), (length, offset))?
        }
        LogPage::EnduranceGroup => {
            if command.dword(11) >> 16 != u32::from(endurance::GROUP) {
                return Err(Status::INVALID_FIELD);
            }
            let health = context.drive.operations().health();
            endurance::group(context, controller.features().critical_warning(&health))
        }
        LogPage::PersistentEvents => persistent_events(controller, context, command)?,
        LogPage::ReservationNotification => {
            if !retains_event {
                controller.events().page_read(page);
            }
            controller.take_notification()
        }
        LogPage::Sanitize => {
            if !retains_event {
                controller.events().page_read(LogPage::Sanitize);
            }
            work::sanitize(&context.drive.operations().operation_status().sanitize)
        }
        LogPage::OcpHealth => endurance::ocp(&context.drive.operations().health()),
        LogPage::Lateness => context.pace.map(lateness::page).unwrap_or_default(),
        // None of the management interface's commands are there.
        LogPage::ManagementInterface => vec![0; 1024],
        LogPage::Discovery => discovery(context),
    };
    let offset = usize::try_from(offset).ok().filter(|offset| *offset <= whole.len());
    let rest = &whole[offset.ok_or(Status::INVALID_FIELD)?..];
    let length = usize::try_from(length).expect("bounded by a transfer");
    let mut data = rest[..length.min(rest.len())].to_vec();
    // Reads beyond the end of a page return zeroes.
    data.resize(length, 0);
    Ok(CommandCompletion::data(data))
}

/// Telemetry, in whole blocks.
fn telemetry(
    controller: &mut Controller,
    context: &Context<'_>,
    (page, command): (LogPage, &Command),
    (length, offset): (u64, u64),
) -> Result<Vec<u8>, Status> {
    let block_bytes = telemetry::BLOCK_BYTES as u64;
    if !length.is_multiple_of(block_bytes) || !offset.is_multiple_of(block_bytes) {
        return Err(Status::INVALID_FIELD);
    }
    if page == LogPage::ControllerTelemetry {
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
            let page = persistent::page(controller, context, &health);
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
        controller.events().page_read(LogPage::Health);
    }
    let health = context.drive.operations().health();
    let units = |bytes: u64| u128::from(bytes.div_ceil(DATA_UNIT_BYTES));
    let mut it = Structure::new(HEALTH_BYTES);
    it.put_u8(0, controller.features().critical_warning(&health));
    it.put_u16(1, temperature_k(&health));
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
        events.page_read(LogPage::ChangedNamespaces)
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

/// Discovery log: the discovery subsystem itself and the one with the namespaces, at each port.
fn discovery(context: &Context<'_>) -> Vec<u8> {
    const HEADER_BYTES: usize = 1024;
    const ENTRY_BYTES: usize = 1024;
    // Without an address of the transport there is nothing to connect to.
    let Some(dialled) = context.address else { return vec![0; HEADER_BYTES] };
    let ports = ports(&context.drive.ports(), dialled);
    let subsystems = [(3, DISCOVERY_NQN), (2, context.drive.nqn())];
    let mut it = Structure::new(HEADER_BYTES + ports.len() * subsystems.len() * ENTRY_BYTES);
    // The log changes while the server begins alone, when it gets one port after the other.
    it.put_u64(0, ports.len() as u64);
    it.put_u64(8, (ports.len() * subsystems.len()) as u64);
    let entries = ports.iter().flat_map(|port| subsystems.map(|subsystem| (port, subsystem)));
    for (at, (port, subsystem)) in (HEADER_BYTES..).step_by(ENTRY_BYTES).zip(entries) {
        put_discovered(&mut it, at, port, subsystem);
        put_security(&mut it, at, context.encryption);
    }
    it.into_bytes()
}

/// A port of a subsystem as a host reaches it.
struct Port {
    number: u16,
    address: SocketAddr,
}

/// The ports for fabrics as they are reached from a host that dialled an address. One of any
/// address has that which the host dialled.
fn ports(all: &[Option<SocketAddr>], dialled: SocketAddr) -> Vec<Port> {
    // A host that comes by IPv4 to a socket of both has an IPv4-mapped address.
    let dialled = SocketAddr::new(dialled.ip().to_canonical(), dialled.port());
    let is_loopback = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    let reached = |address: &SocketAddr| match address.ip() {
        // Those are the host's own, unless it runs here.
        _ if is_loopback(address) && !is_loopback(&dialled) => None,
        ip if !ip.is_unspecified() => Some(*address),
        // An IPv6 socket of any address takes IPv4, too.
        ip if ip.is_ipv6() || dialled.is_ipv4() => {
            Some(SocketAddr::new(dialled.ip(), address.port()))
        }
        _ => None,
    };
    let numbered = (1..).zip(all);
    let found = numbered.filter_map(|(number, port)| {
        port.as_ref().and_then(reached).map(|address| Port { number, address })
    });
    let mut found: Vec<Port> = found.collect();
    if found.is_empty() {
        found.push(Port { number: 1, address: dialled });
    }
    found
}

/// One entry of the discovery log.
fn put_discovered(it: &mut Structure, at: usize, port: &Port, (kind, nqn): (u8, &str)) {
    // An IPv4-mapped IPv6 address is reported as IPv4.
    let host = port.address.ip().to_canonical();
    // TRTYPE: TCP. TREQ: SQ flow control may be left out.
    it.put_u8(at, 3);
    it.put_u8(at + 1, if matches!(host, IpAddr::V4(_)) { 1 } else { 2 });
    it.put_u8(at + 2, kind);
    it.put_u8(at + 3, 1 << 2);
    // PORTID. CNTLID: dynamic controllers.
    it.put_u16(at + 4, port.number);
    it.put_u16(at + 6, 0xFFFF);
    it.put_u16(at + 8, low16(QUEUE_ENTRIES_MAX));
    it.put_padded(at + 32, 32, &port.address.port().to_string());
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
